// What reaches Ray is what the manifest says, byte for byte; and what the submitter's Pod asks of a cluster.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { EnvVar, Job } from "../../api/kubernetes.ts";
import type { RayJobSpec } from "../../api/rayjob.ts";
import { defaultSettings } from "../settings.ts";
import { buildRequest } from "./request.ts";
import { withSidecar } from "./sidecar.ts";
import { createSubmitter, type Submitter, submitterTrouble } from "./submitter.ts";
import { at, JOB_ID, observed, rayCluster, rayJob, record, SESSION, submitted, wire } from "./testing.ts";

const NASTY = 'echo "a;b" && echo \'$HOME\' "${X}" $(HOME) $$ `id` | x > f\nsecond line ünï✓日本 \u{1F600} \\';

function made(spec: Partial<RayJobSpec> = {}, settings: object = {}, cluster = rayCluster()): Job {
  const job = rayJob(spec);
  const record = submitted();
  const effect = createSubmitter(job, record, cluster, buildRequest(job.spec, record), "demo-head-svc.default:8265", {
    ...defaultSettings,
    submitterProgram: "print('$(HOME) $$')",
    ...settings,
  });
  if (effect.do !== "create") throw new Error("expected a create");
  return effect.object as Job;
}

const pod = (job: Job) => job.spec!.template.spec!;
const container = (job: Job) => pod(job).containers[0]!;

/** As kubelet does it: `$$` is a dollar, `$(NAME)` is the variable where there is one, and stays where there is none. */
const expanded = (text: string): string =>
  text.replace(/\$\$|\$\(([^)]*)\)/g, (match, name) => (match === "$$" ? "$" : name === "HOME" ? "/root" : match));

/** As the program reads it. */
const received = (job: Job): Record<string, unknown> => read(container(job).env as EnvVar[]);

function receivedBySidecar(spec: Partial<RayJobSpec>): Record<string, unknown> {
  const { headGroupSpec } = withSidecar(rayJob(spec), record(), defaultSettings);
  return read(headGroupSpec.template.spec?.containers.at(-1)?.env as EnvVar[]);
}

function read(variables: EnvVar[]): Record<string, unknown> {
  const value = (name: string) => variables.find((variable) => variable.name === name)?.value;
  let text = value("RAYKEEPER_SUBMIT") ?? "";
  for (let part = 1; value(`RAYKEEPER_SUBMIT_${part}`) !== undefined; part++) text += value(`RAYKEEPER_SUBMIT_${part}`);
  return JSON.parse(expanded(text)) as Record<string, unknown>;
}

describe("what reaches Ray", () => {
  it.each(["K8sJobMode", "HTTPMode", "SidecarMode"])("equals the manifest in %s", (mode) => {
    const spec = {
      entrypoint: NASTY,
      runtimeEnvYAML: JSON.stringify({ env_vars: { A: NASTY } }),
      metadata: { [NASTY]: NASTY },
      entrypointNumCpus: 0.5,
      entrypointNumGpus: 0,
      entrypointResources: '{"R1": 2}',
    };
    const expected = {
      entrypoint: NASTY,
      submission_id: JOB_ID,
      runtime_env: { env_vars: { A: NASTY } },
      metadata: { [NASTY]: NASTY },
      entrypoint_num_cpus: 0.5,
      entrypoint_resources: { R1: 2 },
    };
    if (mode === "HTTPMode") expect(buildRequest(rayJob(spec).spec, submitted())).toEqual(expected);
    else if (mode === "SidecarMode") expect(receivedBySidecar(spec)).toEqual(expected);
    else expect(received(made(spec))).toEqual({ ...expected, session: SESSION });
  });

  it("equals the manifest whatever the text", () => {
    const text = fc.oneof(fc.string({ unit: "binary" }), fc.stringMatching(/^[$(){}HOME`'"\\;&\n]{0,30}$/));
    fc.assert(
      fc.property(text, text, (entrypoint, value) => {
        expect(received(made({ entrypoint, metadata: { k: value } }))).toMatchObject({
          entrypoint,
          metadata: { k: value },
        });
      }),
    );
  });

  it("goes in several variables when it is longer than Linux takes in one", () => {
    const job = made({ entrypoint: NASTY.repeat(8000) });
    for (const { name, value } of container(job).env as EnvVar[]) {
      expect(`${name}=${value}`.length).toBeLessThan(128 * 1024);
    }
    expect(received(job)["entrypoint"]).toBe(NASTY.repeat(8000));
  });

  it("leaves out what is not asked for", () => {
    expect(buildRequest(rayJob().spec, submitted())).toEqual({ entrypoint: "python train.py", submission_id: JOB_ID });
  });
});

describe("the submitter Job", () => {
  it("has KubeRay's names, labels, environment and resources, which Kueue accounts for", () => {
    const job = made();
    const labels = {
      "ray.io/originated-from-cr-name": "demo",
      "ray.io/originated-from-crd": "RayJob",
      "app.kubernetes.io/created-by": "kuberay-operator",
      "ray.io/execution-attempt": "0",
      "ray.io/rayjob-uid": "uid-demo",
    };
    expect(job.metadata).toMatchObject({ name: "demo", labels, annotations: { "ray.io/execution-attempt": "0" } });
    expect(job.spec).toMatchObject({ backoffLimit: 2, template: { metadata: { labels } } });
    expect(job.spec).not.toHaveProperty("suspend");
    expect(pod(job).restartPolicy).toBe("Never");
    expect(container(job)).toMatchObject({
      name: "ray-job-submitter",
      image: "rayproject/ray:2.56.0",
      resources: { requests: { cpu: "500m", memory: "200Mi" }, limits: { cpu: "1", memory: "1Gi" } },
    });
    expect(container(job).env).toEqual(
      expect.arrayContaining([
        { name: "PYTHONUNBUFFERED", value: "1" },
        { name: "RAY_DASHBOARD_ADDRESS", value: "demo-head-svc.default:8265" },
        { name: "RAY_JOB_SUBMISSION_ID", value: JOB_ID },
      ]),
    );
  });

  it("is owned by the RayJob and carries no queue label, so no queue holds it", () => {
    const job = made();
    expect(job.metadata.ownerReferences).toMatchObject([{ kind: "RayJob", uid: "uid-demo", controller: true }]);
    expect(Object.keys(job.metadata.labels ?? {}).filter((key) => key.startsWith("kueue"))).toEqual([]);
  });

  it("runs its program as an argument that no shell reads, unharmed by kubelet", () => {
    expect(container(made())).toMatchObject({ command: ["python", "-u", "-c"] });
    expect(expanded(container(made()).args![0]!)).toBe("print('$(HOME) $$')");
  });

  it("finds python by a login shell where the administrator says so", () => {
    const { command, args } = container(made({}, { loginShell: true }));
    expect(command).toEqual(["/bin/bash", "-lc", 'exec python -u -c "$0"']);
    expect(expanded(args![0]!)).toBe("print('$(HOME) $$')");
  });

  it("takes pull secrets and account from the head, not its GPUs or selectors", () => {
    const template = {
      spec: {
        imagePullSecrets: [{ name: "pull" }],
        serviceAccountName: "runner",
        nodeSelector: { gpu: "yes" },
        tolerations: [{ operator: "Exists" }],
        containers: [{ name: "ray-head", image: "mine:1", resources: { limits: { "nvidia.com/gpu": "1" } } }],
      },
    };
    const job = made({}, {}, rayCluster({ spec: { headGroupSpec: { rayStartParams: {}, template } } }));
    expect(pod(job)).toMatchObject({ imagePullSecrets: [{ name: "pull" }], serviceAccountName: "runner" });
    expect(pod(job)).not.toHaveProperty("nodeSelector");
    expect(pod(job)).not.toHaveProperty("tolerations");
    expect(container(job).image).toBe("mine:1");
    expect(JSON.stringify(job)).not.toContain("gpu");
  });

  it("of a head that says nothing asks for what the documentation says, and no GPU (a submitter cloned from the head reserved one)", () => {
    expect(container(made()).resources).toEqual({
      requests: { cpu: "500m", memory: "200Mi" },
      limits: { cpu: "1", memory: "1Gi" },
    });
  });

  it.each([0, 5])("is restarted as often as submitterConfig.backoffLimit says: %i", (backoffLimit) => {
    expect(made({ submitterConfig: { backoffLimit } }).spec?.backoffLimit).toBe(backoffLimit);
  });
});

describe("a submitter's Job without a Pod", () => {
  const trouble = (status: object, time: string, spec: object = {}) => {
    const { metadata } = rayJob();
    const object = { metadata: { ...metadata, uid: "uid-job", creationTimestamp: wire("12:00:10") }, spec, status };
    const submitter = { is: "working", object } as unknown as Submitter;
    return submitterTrouble(submitter, observed({ pods: [] }), at(time));
  };

  it("is no news at first, and looked at again", () => {
    expect(trouble({}, "12:00:12")).toEqual({ wakeAt: at("12:00:20") });
  });

  it("is told of with where to look: a quota or Pod security shows in the Job's events alone", () => {
    expect(trouble({}, "12:00:20").is).toBe("Job demo has no Pod; `kubectl describe job -n default demo` says why.");
  });

  it("is told of at once when it is suspended by somebody else", () => {
    expect(trouble({}, "12:00:11", { suspend: true }).is).toContain("Job demo is suspended, and not by this operator");
  });

  it.each([{ active: 1 }, { failed: 1 }, { succeeded: 1 }])(
    "has or had one that the cache does not show: %j",
    (status) => {
      expect(trouble(status, "12:01:00")).toEqual({});
    },
  );
});
