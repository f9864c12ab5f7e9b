// What becomes of spec.submitterPodTemplate: the user's Pod, made to submit, and marked as the attempt's.
import { describe, expect, it } from "vitest";
import type { Container, EnvVar, Job, PodTemplateSpec } from "../../api/kubernetes.ts";
import type { RayJobSpec } from "../../api/rayjob.ts";
import { defaultSettings } from "../settings.ts";
import { buildRequest } from "./request.ts";
import { createSubmitter, submitterState } from "./submitter.ts";
import { JOB_ID, rayCluster, rayJob, submitted, submitterJob, wire } from "./testing.ts";

const ADDRESS = "demo-head-svc.default:8265";
const head = {
  imagePullSecrets: [{ name: "pull" }],
  serviceAccountName: "runner",
  nodeSelector: { gpu: "yes" },
  containers: [{ name: "ray-head", image: "mine:1", imagePullPolicy: "Always", resources: { limits: { gpu: "1" } } }],
};
const cluster = rayCluster({ spec: { headGroupSpec: { rayStartParams: {}, template: { spec: head } } } });

function made(submitterPodTemplate?: PodTemplateSpec, spec: Partial<RayJobSpec> = {}): PodTemplateSpec {
  const job = rayJob({ ...spec, submitterPodTemplate });
  const record = submitted();
  const settings = { ...defaultSettings, submitterProgram: "print('submit')" };
  const effect = createSubmitter(job, record, cluster, buildRequest(job.spec, record), ADDRESS, settings);
  if (effect.do !== "create") throw new Error("expected a create");
  return (effect.object as Job).spec!.template;
}

const template = (container: Partial<Container>, more: object = {}): PodTemplateSpec =>
  ({ spec: { containers: [{ name: "mine", ...container }], ...more } }) as PodTemplateSpec;
const first = ({ spec }: PodTemplateSpec): Container => spec!.containers[0]!;
const names = ({ env }: Container): string[] => (env ?? []).map(({ name }) => name);
const KUBERAYS: EnvVar[] = [
  { name: "PYTHONUNBUFFERED", value: "1" },
  { name: "RAY_DASHBOARD_ADDRESS", value: ADDRESS },
  { name: "RAY_JOB_SUBMISSION_ID", value: JOB_ID },
];

describe("a template without a command", () => {
  it("runs the operator's program in the user's container, whatever its arguments were", () => {
    const pod = made(template({ args: ["--lost"] }));
    expect(first(pod)).toMatchObject({ name: "mine", command: ["python", "-u", "-c"], args: ["print('submit')"] });
    expect(first(pod).env).toEqual(expect.arrayContaining(KUBERAYS));
    expect(names(first(pod))).toContain("RAYKEEPER_SUBMIT");
  });

  it("keeps what the user says of image, resources, environment, volumes, placement and further containers", () => {
    const resources = { requests: { cpu: "250m" } };
    const volumeMounts = [{ name: "code", mountPath: "/code" }];
    const more = {
      nodeSelector: { pool: "small" },
      tolerations: [{ operator: "Exists" }],
      volumes: [{ name: "code", emptyDir: {} }],
      serviceAccountName: "theirs",
      schedulingGates: [{ name: "kueue.x-k8s.io/topology" }],
    };
    const pod = made(template({ image: "theirs:2", resources, volumeMounts, env: [{ name: "A", value: "1" }] }, more));
    expect(first(pod)).toMatchObject({ image: "theirs:2", resources, volumeMounts });
    expect(first(pod).env).toContainEqual({ name: "A", value: "1" });
    expect(pod.spec).toMatchObject(more);
    expect(made({ spec: { containers: [{ name: "mine" }, { name: "beside" }] } }).spec?.containers[1]).toEqual({
      name: "beside",
    });
  });

  it("gets image, pull secrets and account from the head where it names none, and no resources (what the template asks for is what a queue counts)", () => {
    const pod = made(template({}));
    expect(first(pod)).toMatchObject({ image: "mine:1", imagePullPolicy: "Always" });
    expect(pod.spec).toMatchObject({
      imagePullSecrets: [{ name: "pull" }],
      serviceAccountName: "runner",
      restartPolicy: "Never",
    });
    expect(first(pod)).not.toHaveProperty("resources");
    expect(pod.spec).not.toHaveProperty("nodeSelector");
    expect(made(template({}, { restartPolicy: "OnFailure" })).spec?.restartPolicy).toBe("OnFailure");
  });

  it("cannot say otherwise where Ray is: each name is there once, with the operator's value", () => {
    const { env = [] } = first(made(template({ env: [{ name: "RAY_DASHBOARD_ADDRESS", value: "elsewhere" }] })));
    expect(env.filter(({ name }) => name === "RAY_DASHBOARD_ADDRESS")).toEqual([KUBERAYS[1]]);
  });

  it("runs in a login shell where its own environment asks for one (ray: command not found in the submitter)", () => {
    const asking = template({ env: [{ name: "ENABLE_LOGIN_SHELL", value: "true" }] });
    expect(first(made(asking)).command).toEqual(["/bin/bash", "-lc", 'exec python -u -c "$0"']);
    expect(first(made(template({}))).command).toEqual(["python", "-u", "-c"]);
  });
});

describe("a template with a command of its own", () => {
  const own = template({ command: ["/submitter"], args: ["--", "python", "train.py"] });

  it("is left as it is, and told what KubeRay tells", () => {
    expect(first(made(own))).toMatchObject({ command: ["/submitter"], args: ["--", "python", "train.py"] });
    expect(first(made(own)).env).toEqual(KUBERAYS);
  });
});

it("no template overrides whose Pod it is; other labels and annotations stay", () => {
  const theirs = {
    "ray.io/execution-attempt": "7",
    "ray.io/rayjob-uid": "mine",
    "ray.io/originated-from-crd": "RayService",
    "kueue.x-k8s.io/podset": "submitter",
  };
  const { metadata } = made({ metadata: { labels: theirs, annotations: theirs }, ...template({}) });
  expect(metadata?.labels).toMatchObject({
    "ray.io/execution-attempt": "0",
    "ray.io/rayjob-uid": "uid-demo",
    "ray.io/originated-from-crd": "RayJob",
    "ray.io/originated-from-cr-name": "demo",
    "app.kubernetes.io/created-by": "kuberay-operator",
    "kueue.x-k8s.io/podset": "submitter",
  });
  expect(metadata?.annotations).toMatchObject({
    "ray.io/execution-attempt": "0",
    "kueue.x-k8s.io/podset": "submitter",
  });
});

describe("the submitter was not in the quota: its requests are", () => {
  const requests = (pod: PodTemplateSpec) => first(pod).resources?.requests;

  it("the template's", () => {
    expect(requests(made(template({ resources: { requests: { cpu: "3", memory: "1Gi" } } })))).toEqual({
      cpu: "3",
      memory: "1Gi",
    });
  });

  it("or, without one, the documented default", () => {
    expect(requests(made())).toEqual({ cpu: "500m", memory: "200Mi" });
  });
});

describe("how its container stands", () => {
  const pod = (
    containerStatuses: object[],
    containers = [{ name: "mine" }, { name: "beside" }],
    restartPolicy = "Never",
  ) =>
    ({
      metadata: {
        name: "demo-abcde",
        uid: "uid-pod",
        creationTimestamp: wire("12:00:32"),
        ownerReferences: [
          { apiVersion: "batch/v1", kind: "Job", name: "demo", uid: "uid-submitter", controller: true },
        ],
      },
      spec: { containers, restartPolicy },
      status: { phase: "Running", containerStatuses },
    }) as never;
  const ended = { terminated: { exitCode: 1, reason: "Error", message: "exec: python: not found in $PATH" } };
  const state = (stage: "working" | "failed", pods: never[]) =>
    submitterState({ is: "ours", object: submitterJob(stage) as never }, pods);

  it("is told by its first container, in whatever order kubelet lists them", () => {
    const seen = pod([
      { name: "beside", state: { running: {} } },
      { name: "mine", state: ended },
    ]);
    expect(state("failed", [seen])).toMatchObject({ message: expect.stringContaining("python: not found in $PATH") });
  });

  it("is a pause where kubelet starts it again, or others in its Pod go on: nobody reads the log", () => {
    const waiting = { waiting: { reason: "CrashLoopBackOff" } };
    expect(state("working", [pod([{ name: "mine", state: waiting, lastState: ended }])])).toMatchObject({
      pausing: true,
    });
    expect(state("working", [pod([{ name: "mine", state: ended }])])).toMatchObject({ pausing: true });
    expect(state("working", [pod([{ name: "mine", state: { running: {} } }])])).toMatchObject({ pausing: false });
    expect(
      state("working", [pod([{ name: "mine", state: { waiting: { reason: "PodInitializing" } } }])]),
    ).toMatchObject({
      pausing: false,
    });
  });

  it.each([
    [0, "Never", false],
    [1, "Never", false],
    [0, "OnFailure", false],
    [1, "OnFailure", true],
  ])(
    "that has ended with %d under restartPolicy %s is worth a moment's wait, unless it is started again",
    (code, policy, pausing) => {
      const alone = pod([{ name: "mine", state: { terminated: { exitCode: code } } }], [{ name: "mine" }], policy);
      expect(state("working", [alone])).toMatchObject({ is: "working", pausing });
    },
  );
});

describe("a cluster that wants a token", () => {
  const wanting = { ...cluster, spec: { ...cluster.spec, authOptions: { mode: "token" as const } } };
  const env = (submitterPodTemplate?: PodTemplateSpec) => {
    const job = rayJob({ submitterPodTemplate });
    const record = submitted();
    const effect = createSubmitter(job, record, wanting, buildRequest(job.spec, record), ADDRESS, defaultSettings);
    return first((effect as { object: Job }).object.spec!.template).env!;
  };
  const token = {
    name: "RAY_AUTH_TOKEN",
    valueFrom: { secretKeyRef: { name: cluster.metadata.name, key: "auth_token" } },
  };

  it.each([
    ["the default", undefined],
    ["a template", template({})],
    ["a command of the user's own", template({ command: ["/submitter"] })],
  ])("has it told to %s", (_, pod) => {
    expect(env(pod).slice(-2)).toEqual([{ name: "RAY_AUTH_MODE", value: "token" }, token]);
  });

  it("leaves a variable that the user has set", () => {
    const own = { name: "RAY_AUTH_TOKEN", value: "mine" };
    const said = env(template({ env: [own] })).filter(({ name }) => name.startsWith("RAY_AUTH"));
    expect(said).toEqual([own, { name: "RAY_AUTH_MODE", value: "token" }]);
  });
});
