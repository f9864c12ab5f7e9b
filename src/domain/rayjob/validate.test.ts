// Which RayJobs are refused, and in which words.
import { describe, expect, it } from "vitest";
import type { RayJob, RayJobSpec } from "../../api/rayjob.ts";
import { placed, ruleCases } from "../../api/testdata/rules.ts";
import { workerGroup } from "../raycluster/testing.ts";
import { defaultSettings } from "../settings.ts";
import { isElsewhere } from "./observe.ts";
import { rayJob } from "./testing.ts";
import { rayJobViolations, validateRayJob as validate } from "./validate.ts";

const validateRayJob = (job: RayJob) => validate(job, defaultSettings);
const INVALID = "The RayJob spec is invalid: ";
const template = rayJob().spec.rayClusterSpec!;

/** A cluster whose head Pod has this in its spec, and a container of that name beside Ray's. */
const head = (pod: object, beside?: string) => ({
  ...template,
  headGroupSpec: {
    rayStartParams: {},
    template: {
      spec: {
        ...pod,
        containers: [{ name: "ray-head", image: "ray" }, ...(beside ? [{ name: beside, image: "x" }] : [])],
      },
    },
  },
});

describe("a RayJob is refused for", () => {
  it.each<[string, Partial<RayJobSpec>, string]>([
    [
      "suspend without shutdown",
      { suspend: true, shutdownAfterJobFinishes: false },
      `${INVALID}a RayJob with shutdownAfterJobFinishes set to false is not allowed to be suspended`,
    ],
    [
      "a negative TTL",
      { ttlSecondsAfterFinished: -1 },
      `${INVALID}TTLSecondsAfterFinished must be a non-negative integer`,
    ],
    [
      "a TTL without shutdown",
      { ttlSecondsAfterFinished: 5, shutdownAfterJobFinishes: false },
      `${INVALID}a RayJob with shutdownAfterJobFinishes set to false cannot have TTLSecondsAfterFinished`,
    ],
    ["no cluster", { rayClusterSpec: undefined }, `${INVALID}one of RayClusterSpec or ClusterSelector must be set`],
    [
      "a selector without name",
      { clusterSelector: { app: "x" } },
      "cluster name in ClusterSelector should not be empty",
    ],
    [
      "a selector with retries",
      { clusterSelector: { "ray.io/cluster": "x" }, backoffLimit: 1 },
      `${INVALID}BackoffLimit is incompatible with ClusterSelector mode`,
    ],
    [
      "retries in InteractiveMode",
      { submissionMode: "InteractiveMode", backoffLimit: 1 },
      `${INVALID}BackoffLimit is incompatible with InteractiveMode`,
    ],
    [
      "submitterConfig in SidecarMode",
      { submissionMode: "SidecarMode", submitterConfig: {} },
      "Currently, SidecarMode doesn't support SubmitterConfig",
    ],
    [
      "submitterPodTemplate in SidecarMode",
      { submissionMode: "SidecarMode", submitterPodTemplate: { spec: { containers: [] } } },
      "Currently, SidecarMode doesn't support SubmitterPodTemplate",
    ],
    [
      "clusterSelector in SidecarMode",
      { submissionMode: "SidecarMode", clusterSelector: { "ray.io/cluster": "x" } },
      "ClusterSelector is not supported in SidecarMode",
    ],
    [
      "a head that is to be started again in SidecarMode",
      { submissionMode: "SidecarMode", rayClusterSpec: head({ restartPolicy: "Always" }) },
      "restartPolicy for head Pod should be Never or unset when using SidecarMode",
    ],
    [
      "a runtimeEnvYAML that is text",
      { runtimeEnvYAML: "invalid_yaml_string" },
      "failed to unmarshal RuntimeEnvYAML: invalid_yaml_string: must be a mapping, not a text",
    ],
    [
      "activeDeadlineSeconds of 0",
      { activeDeadlineSeconds: 0 },
      `${INVALID}activeDeadlineSeconds must be a positive integer`,
    ],
    [
      "preRunningDeadlineSeconds of 0",
      { preRunningDeadlineSeconds: 0 },
      `${INVALID}preRunningDeadlineSeconds must be a positive integer`,
    ],
    ["a negative backoffLimit", { backoffLimit: -1 }, `${INVALID}backoffLimit must be a positive integer`],
    [
      "metadata on a Ray too old for it",
      { metadata: { a: "b" }, rayClusterSpec: { ...template, rayVersion: "2.5.1" } },
      `${INVALID}the Ray version must be at least 2.6.0 to use the metadata field`,
    ],
  ])("%s, in KubeRay's words, and then with field and remedy", (_, spec, words) => {
    const { of, text } = validateRayJob(rayJob(spec))!;
    expect(of).toBe("Spec");
    expect(text.startsWith(`${words}: `)).toBe(true);
    expect(text.slice(words.length)).toMatch(/(remove|set|describe|correct) .*spec\.\w+/);
  });

  it("a selector without name, saying where the name belongs", () => {
    expect(validateRayJob(rayJob({ clusterSelector: { app: "x" } }))?.text).toBe(
      `cluster name in ClusterSelector should not be empty: set spec.clusterSelector["ray.io/cluster"] to the RayCluster's name`,
    );
  });

  it("an init container named as SidecarMode names its own, which no Pod could ever have beside it", () => {
    const initContainers = [{ name: "ray-job-submitter", image: "x" }];
    const rayClusterSpec = head({ initContainers });
    expect(validateRayJob(rayJob({ submissionMode: "SidecarMode", rayClusterSpec }))?.text).toContain(
      "name it otherwise",
    );
    expect(validateRayJob(rayJob({ submissionMode: "K8sJobMode", rayClusterSpec }))).toBeUndefined();
  });

  it.each<[string, Partial<RayJobSpec>, string]>([
    ["clusterSelector", { clusterSelector: { "ray.io/cluster": "a/b" } }, "name of a RayCluster"],
    [
      "named ray-job-submitter",
      { submissionMode: "SidecarMode", rayClusterSpec: head({}, "ray-job-submitter") },
      "name",
    ],
    [
      "BlockingRecreate",
      { retryStrategy: { type: "BlockingRecreate" }, clusterSelector: { "ray.io/cluster": "x" } },
      "not supported with clusterSelector",
    ],
    ["blockingTimeoutSeconds", { retryStrategy: { blockingTimeoutSeconds: 5 } }, "requires type BlockingRecreate"],
    [
      "blockingTimeoutSeconds",
      { retryStrategy: { type: "BlockingRecreate", blockingTimeoutSeconds: 0 } },
      "must be a positive integer",
    ],
    ["retryStrategy.type", { retryStrategy: { type: "Never" as "Recreate" } }, "Recreate, BlockingRecreate"],
    ["submitterPodTemplate", { submitterPodTemplate: { spec: { containers: [] } } }, "at least one container"],
    [
      "submitterPodTemplate.spec.restartPolicy",
      { submitterPodTemplate: { spec: { restartPolicy: "Always", containers: [{ name: "s" }] } } },
      "to Never, or remove it",
    ],
    [
      "submitterPodTemplate.metadata.labels",
      {
        submitterPodTemplate: {
          metadata: { labels: { "ray.io/node-type": "head" } },
          spec: { containers: [{ name: "s" }] },
        },
      },
      "remove the label",
    ],
    ["submissionMode", { submissionMode: "Magic" as "HTTPMode" }, "K8sJobMode, HTTPMode, SidecarMode"],
    ["entrypoint", { entrypoint: " " }, "shell command"],
    ["entrypointResources", { entrypointResources: "[1]" }, `{"R1": 2}`],
    ["entrypointResources", { entrypointResources: '{"R1": "2"}' }, `"R1" is "2"`],
    ["jobId", { jobId: "a/b" }, "URL"],
    ["jobId", { jobId: ".." }, "URL"],
    ["submitterConfig.backoffLimit", { submitterConfig: { backoffLimit: -1 } }, "non-negative"],
    [
      "gcsFaultToleranceOptions",
      { rayClusterSpec: { ...template, gcsFaultToleranceOptions: {} } },
      "spec.rayClusterSpec",
    ],
    ["rayClusterSpec.suspend", { rayClusterSpec: { ...template, suspend: true } }, "suspend of the RayJob"],
    [
      "rayClusterSpec.upgradeStrategy",
      { rayClusterSpec: { ...template, upgradeStrategy: { type: "None" } } },
      "RayJob",
    ],
    ["rayVersion", { metadata: { a: "b" }, rayClusterSpec: { ...template, rayVersion: "nightly" } }, "2.56.0"],
  ])("%s that cannot be obeyed, naming field and remedy", (field, spec, remedy) => {
    const problem = validateRayJob(rayJob(spec));
    expect(problem?.text).toContain(field);
    expect(problem?.text).toContain(remedy);
  });

  it.each([
    ["of 48 characters", "a".repeat(48), "RayJob name should be no more than 47 characters"],
    ["that starts with a digit", "1a", "RayJob name should be a valid DNS1035 label"],
  ])("a name %s", (_, name, text) => {
    expect(validateRayJob(rayJob({}, undefined, { name }))).toMatchObject({ of: "Metadata" });
    expect(validateRayJob(rayJob({}, undefined, { name }))?.text).toContain(`The RayJob metadata is invalid: ${text}`);
  });
});

it.each<[string, Partial<RayJobSpec>]>([
  ["the smallest one", {}],
  ["HTTPMode", { submissionMode: "HTTPMode" }],
  [
    "InteractiveMode, whose user brings the entrypoint along",
    { submissionMode: "InteractiveMode", entrypoint: undefined },
  ],
  ["a selected cluster", { clusterSelector: { "ray.io/cluster": "x" }, rayClusterSpec: undefined }],
  [
    "suspending on a selected cluster, where nothing is shut down anyway",
    {
      clusterSelector: { "ray.io/cluster": "x" },
      rayClusterSpec: undefined,
      shutdownAfterJobFinishes: false,
      suspend: true,
    },
  ],
  ["a template of the submitter's Pod", { submitterPodTemplate: { spec: { containers: [{ name: "s" }] } } }],
  [
    "no entrypoint where the submitter's own command has it",
    { entrypoint: undefined, submitterPodTemplate: { spec: { containers: [{ name: "s", command: ["submit"] }] } } },
  ],
  [
    "a template in HTTPMode, where it means nothing",
    { submissionMode: "HTTPMode", submitterPodTemplate: { spec: { containers: [] } } },
  ],
  ["BlockingRecreate", { retryStrategy: { type: "BlockingRecreate", blockingTimeoutSeconds: 1 } }],
  ["SidecarMode", { submissionMode: "SidecarMode" }],
  [
    "SidecarMode with a head that says what it is anyway",
    { submissionMode: "SidecarMode", rayClusterSpec: head({ restartPolicy: "Never" }) },
  ],
  [
    "everything that is built",
    {
      suspend: true,
      ttlSecondsAfterFinished: 5,
      backoffLimit: 3,
      retryStrategy: { type: "Recreate" },
      submitterConfig: { backoffLimit: 0 },
      runtimeEnvYAML: "env_vars:\n  A: '1'\n",
      entrypointResources: '{"R1": 2.5}',
      entrypointNumCpus: 1,
      jobId: "mine",
      metadata: { a: "b" },
      activeDeadlineSeconds: 1,
      preRunningDeadlineSeconds: 1,
    },
  ],
])("%s is accepted", (_, spec) => {
  expect(validateRayJob(rayJob(spec))).toBeUndefined();
});

describe("the API server's rules, which an older CRD does not have,", () => {
  // What changed cannot be seen here; and whoever a RayCluster is left to, its own controller sees.
  const here = ruleCases.filter(({ kind, old, path }) => kind === "RayJob" && !old && !path.includes("managedBy"));

  it.each(here)("are kept here, too: $rule.id at $path, of $self", (one) => {
    const said = validateRayJob(placed(rayJob(), one, one.self))?.text;
    if (one.holds) expect(said ?? "").not.toContain(one.rule.message);
    else expect(said).toBeDefined();
  });

  it("let nobody but MultiKueue have a RayJob; one of somebody else's is left alone", () => {
    expect(isElsewhere(rayJob({ managedBy: "someone-else" }))).toBe(true);
  });
});

describe("several mistakes", () => {
  const job = rayJob({
    suspend: true,
    shutdownAfterJobFinishes: false,
    backoffLimit: -1,
    jobId: "a b",
    rayClusterSpec: { ...template, networkPolicy: {}, suspend: true },
  });

  it("are all told at once, each with its field, the first in KubeRay's words and order", () => {
    expect(rayJobViolations(job, defaultSettings).map(({ rule, at }) => `${rule} ${at}`)).toEqual([
      "suspend-needs-shutdown spec.suspend",
      "cluster-not-suspended spec.rayClusterSpec.suspend",
      "network-policy-not-built spec.rayClusterSpec.networkPolicy",
      "job-id-in-url spec.jobId",
      "backoff-limit-not-negative spec.backoffLimit",
    ]);
    const text = validateRayJob(job)!.text.split("; ");
    expect(text[0]).toMatch(/^The RayJob spec is invalid: a RayJob with shutdownAfterJobFinishes set to false/);
    expect(text.at(-1)).toMatch(/^spec\.backoffLimit: backoffLimit must be a positive integer: set /);
  });

  it("are told in a text that a status and an event can hold, however many they are", () => {
    const workerGroupSpecs = Array.from({ length: 40 }, () => ({ ...workerGroup(), groupName: "" }));
    const { text } = validateRayJob(rayJob({ rayClusterSpec: { ...template, workerGroupSpecs } }))!;
    expect(text).toHaveLength(1024);
    expect(text.endsWith("…")).toBe(true);
  });

  it("begin with the metadata's, which the event's reason names", () => {
    expect(validateRayJob({ ...job, metadata: { ...job.metadata, name: "1a" } })?.of).toBe("Metadata");
  });
});

it("a job that waits for its user is not made one that waits for nobody: the mode stays InteractiveMode", () => {
  const problem = validateRayJob(rayJob({}, { jobDeploymentStatus: "Waiting" }));
  expect(problem?.of).toBe("Status");
  expect(problem?.text).toContain(
    "The RayJob status is invalid: JobDeploymentStatus cannot be `Waiting` when SubmissionMode is not InteractiveMode",
  );
});

it("no rule stumbles over an object that is nearly empty, as an older CRD lets it pass", () => {
  for (const spec of [undefined, {}, { rayClusterSpec: {} }, { rayClusterSpec: { workerGroupSpecs: [{}] } }]) {
    const job = { metadata: {}, spec } as unknown as RayJob;
    expect(rayJobViolations(job, defaultSettings).length).toBeGreaterThan(0);
  }
});

it("a long runtimeEnvYAML is quoted in part: the reason after it is told, and what it holds is not spread", () => {
  const { text } = validateRayJob(rayJob({ runtimeEnvYAML: `env_vars: {A: ${"x".repeat(2000)}}\nb: [` }))!;
  expect(text.length).toBeLessThan(600);
  expect(text).toMatch(
    /^failed to unmarshal RuntimeEnvYAML: env_vars: \{A: x+…: .*at line 2.*: correct spec\.runtimeEnvYAML$/,
  );
});
