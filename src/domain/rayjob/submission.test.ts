// What an attempt was asked to run stays with it, whatever spec says later.
import { describe, expect, it } from "vitest";
import type { RayCluster } from "../../api/raycluster.ts";
import type { RayJobSpec } from "../../api/rayjob.ts";
import {
  at,
  decide,
  observed,
  rayCluster,
  rayJob,
  record,
  statusWith,
  submitted,
  unknownToRay,
  whileRunning,
} from "./testing.ts";

const SPEC = {
  entrypoint: "python first.py; echo $HOME",
  runtimeEnvYAML: "env_vars:\n  A: '1'\n",
  metadata: { team: "a" },
  entrypointNumCpus: 1.5,
  entrypointNumGpus: 2,
  entrypointResources: '{"R1": 2}',
  submitterConfig: { backoffLimit: 7 },
} satisfies Partial<RayJobSpec>;

/** The RayCluster that is made for an attempt from `spec`. */
function made(spec: Partial<RayJobSpec>, metadata: object = {}): RayCluster {
  const status = statusWith(record(), { jobDeploymentStatus: "Initializing" });
  const [effect] = decide(observed({ job: rayJob(spec, status, metadata) }), at("12:00:01")).effects;
  return (effect as unknown as { object: RayCluster }).object;
}

const MINUTE_LATER = at("12:10:01");

/** What is submitted to that RayCluster when spec says something else by then. */
function submits(cluster: RayCluster, spec: Partial<RayJobSpec>, mode: "K8sJobMode" | "HTTPMode") {
  const { annotations } = cluster.metadata;
  const seen = whileRunning({
    spec: { ...spec, submissionMode: mode },
    status: statusWith(submitted({ submissionMode: mode })),
    rayClusters: [rayCluster({ metadata: { annotations } })],
    jobs: [],
    answer: unknownToRay(),
  });
  const [effect] = decide(seen, MINUTE_LATER).effects;
  if (effect?.do === "submit") return effect.request;
  const { object } = effect as unknown as { object: { spec: { backoffLimit: number; template: never } } };
  const { containers } = (
    object.spec.template as { spec: { containers: { env: { name: string; value: string }[] }[] } }
  ).spec;
  const { session: _, ...request } = JSON.parse(
    containers[0]!.env.find(({ name }) => name === "RAYKEEPER_SUBMIT")!.value,
  ) as Record<string, unknown>;
  return { ...request, backoffLimit: object.spec.backoffLimit };
}

const AS_STARTED = {
  entrypoint: SPEC.entrypoint,
  runtime_env: { env_vars: { A: "1" } },
  metadata: { team: "a" },
  entrypoint_num_cpus: 1.5,
  entrypoint_num_gpus: 2,
  entrypoint_resources: { R1: 2 },
};
const EDITED: Partial<RayJobSpec> = {
  entrypoint: "python second.py",
  runtimeEnvYAML: "[not a mapping]",
  entrypointNumGpus: 0,
  submitterConfig: { backoffLimit: 0 },
};

describe("an edit after the attempt's RayCluster was made", () => {
  it("reaches neither the operator's submission nor the submitter, not even where it cannot be run", () => {
    expect(submits(made(SPEC), EDITED, "HTTPMode")).toMatchObject(AS_STARTED);
    expect(submits(made(SPEC), EDITED, "K8sJobMode")).toMatchObject({ ...AS_STARTED, backoffLimit: 7 });
  });

  it("counts on a RayCluster that nothing was written down with: KubeRay's, or an earlier version's", () => {
    const spec = { ...SPEC, entrypoint: "python second.py" };
    expect(submits({ ...made(SPEC), metadata: {} }, spec, "HTTPMode")).toMatchObject({
      entrypoint: "python second.py",
    });
    const torn = { ...made(SPEC), metadata: { annotations: { "raykeeper.dev/submission": "{" } } };
    expect(submits(torn, spec, "HTTPMode")).toMatchObject({ entrypoint: "python second.py" });
  });
});

describe("what is written down", () => {
  it("is left out where annotations would not fit, and the job is then submitted as spec says", () => {
    const runtimeEnvYAML = `env_vars:\n  A: "${"ü".repeat(130 * 1024)}"\n`;
    const cluster = made({ ...SPEC, runtimeEnvYAML });
    expect(cluster.metadata.annotations).not.toHaveProperty("raykeeper.dev/submission");
    expect(submits(cluster, { ...SPEC, entrypoint: "python second.py" }, "HTTPMode")).toMatchObject({
      entrypoint: "python second.py",
    });
    const others = { annotations: { theirs: "x".repeat(200 * 1024) } };
    expect(
      made({ ...SPEC, runtimeEnvYAML: `a: ${"x".repeat(50 * 1024)}` }, others).metadata.annotations,
    ).not.toHaveProperty("raykeeper.dev/submission");
  });

  it("is ours: what the RayJob itself bears under that name is not handed on", () => {
    const cluster = made(SPEC, { annotations: { "raykeeper.dev/submission": '{"entrypoint":"other"}', note: "b" } });
    expect(JSON.parse(cluster.metadata.annotations!["raykeeper.dev/submission"]!)).toMatchObject(SPEC);
    expect(cluster.metadata.annotations).toMatchObject({ note: "b" });
  });
});

it("on a selected cluster spec counts when the job is submitted, whatever that cluster was made for", () => {
  const { annotations } = made(SPEC).metadata;
  const mode = { submissionMode: "HTTPMode" } as const;
  const seen = whileRunning({
    spec: {
      ...mode,
      entrypoint: "python mine.py",
      clusterSelector: { "ray.io/cluster": "demo-c0000" },
      rayClusterSpec: undefined,
    },
    status: statusWith(submitted({ ...mode, ownsCluster: false })),
    rayClusters: [rayCluster({ metadata: { annotations } })],
    jobs: [],
    answer: unknownToRay(),
  });
  const [effect] = decide(seen, MINUTE_LATER).effects;
  expect(effect).toMatchObject({ do: "submit", request: { entrypoint: "python mine.py" } });
});
