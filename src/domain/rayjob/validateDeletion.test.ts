// Which deletion settings are refused: in KubeRay's words, and where a queue needs what KubeRay forbids.
import { describe, expect, it } from "vitest";
import type { DeletionStrategy, RayJob, RayJobSpec } from "../../api/rayjob.ts";
import { defaultSettings } from "../settings.ts";
import { rayJob } from "./testing.ts";
import { rayJobViolations, validateRayJob } from "./validate.ts";

type Rule = NonNullable<DeletionStrategy["deletionRules"]>[number];
const INVALID = "The RayJob spec is invalid: ";
const SELECTED = { clusterSelector: { "ray.io/cluster": "x" }, rayClusterSpec: undefined };
const template = rayJob().spec.rayClusterSpec!;
const AUTOSCALING = { rayClusterSpec: { ...template, enableInTreeAutoscaling: true } };

const on = (condition: Rule["condition"], policy: Rule["policy"], ttlSeconds?: number): Rule => ({
  policy,
  condition: { ...condition, ...(ttlSeconds !== undefined && { ttlSeconds }) },
});
const SUCCEEDED = { jobStatus: "SUCCEEDED" } as const;
const COMPLETE = { jobDeploymentStatus: "Complete" } as const;
const FAILED = { jobDeploymentStatus: "Failed" } as const;

const withRules = (...deletionRules: Rule[]): Partial<RayJobSpec> => ({
  shutdownAfterJobFinishes: false,
  deletionStrategy: { deletionRules },
});
const legacy = (
  success: Rule["policy"] | undefined,
  failure: Rule["policy"] | undefined,
  spec: Partial<RayJobSpec> = {},
): Partial<RayJobSpec> => ({
  shutdownAfterJobFinishes: false,
  deletionStrategy: { onSuccess: { policy: success }, onFailure: { policy: failure } },
  ...spec,
});
const textOf = (job: RayJob, settings = defaultSettings) => validateRayJob(job, settings)?.text ?? "";

describe("refused, in KubeRay's words, is", () => {
  it.each<[string, Partial<RayJobSpec>, string]>([
    [
      "shutdownAfterJobFinishes beside rules",
      { ...withRules(on(SUCCEEDED, "DeleteCluster")), shutdownAfterJobFinishes: true },
      `${INVALID}spec.shutdownAfterJobFinishes and spec.deletionStrategy.deletionRules are mutually exclusive`,
    ],
    [
      "both forms at once",
      {
        shutdownAfterJobFinishes: false,
        deletionStrategy: { deletionRules: [on(SUCCEEDED, "DeleteSelf")], onSuccess: { policy: "DeleteSelf" } },
      },
      `${INVALID}Cannot use both legacy onSuccess/onFailure fields and deletionRules simultaneously`,
    ],
    [
      "neither form",
      { deletionStrategy: {} },
      `${INVALID}DeletionStrategy requires either BOTH onSuccess and onFailure, OR the deletionRules field (cannot be empty)`,
    ],
    [
      "an empty list of rules",
      withRules(),
      `${INVALID}DeletionStrategy requires either BOTH onSuccess and onFailure, OR the deletionRules field (cannot be empty)`,
    ],
    [
      "one side of the older form",
      { deletionStrategy: { onSuccess: { policy: "DeleteCluster" } } },
      "both DeletionStrategy.OnSuccess and DeletionStrategy.OnFailure must be set when using the legacy deletion policy fields of DeletionStrategy",
    ],
    [
      "a side without policy (success)",
      legacy(undefined, "DeleteSelf"),
      "the DeletionPolicyType field of DeletionStrategy.OnSuccess cannot be unset when DeletionStrategy is enabled",
    ],
    [
      "a side without policy (failure)",
      legacy("DeleteSelf", undefined),
      "the DeletionPolicyType field of DeletionStrategy.OnFailure cannot be unset when DeletionStrategy is enabled",
    ],
    [
      "the deletion of a selected cluster (success)",
      legacy("DeleteCluster", "DeleteNone", SELECTED),
      "the ClusterSelector mode doesn't support DeletionStrategy=DeleteCluster on success",
    ],
    [
      "the deletion of a selected cluster's workers (failure)",
      legacy("DeleteNone", "DeleteWorkers", SELECTED),
      "the ClusterSelector mode doesn't support DeletionStrategy=DeleteWorkers on failure",
    ],
    [
      "DeleteNone with shutdownAfterJobFinishes",
      legacy("DeleteNone", "DeleteCluster", { shutdownAfterJobFinishes: true }),
      `${INVALID}shutdownAfterJobFinshes is set to 'true' while deletion policy is 'DeleteNone'`,
    ],
    [
      "a rule about both",
      withRules(on({ ...SUCCEEDED, ...FAILED }, "DeleteSelf")),
      "deletionRules[0]: cannot set both JobStatus and JobDeploymentStatus at the same time",
    ],
    [
      "a rule about nothing",
      withRules(on(FAILED, "DeleteSelf"), on({}, "DeleteSelf")),
      "deletionRules[1]: exactly one of JobStatus and JobDeploymentStatus must be set",
    ],
    ["a negative TTL", withRules(on(FAILED, "DeleteSelf", -1)), "deletionRules[0]: TTLSeconds must be non-negative"],
    [
      "a rule that deletes a selected cluster",
      { ...withRules(on(FAILED, "DeleteCluster")), ...SELECTED },
      "deletionRules[0]: DeletionPolicyType 'DeleteCluster' not supported when ClusterSelector is set",
    ],
    [
      "a rule that is there twice",
      withRules(on(FAILED, "DeleteCluster"), on(FAILED, "DeleteCluster", 5)),
      "deletionRules[1]: duplicate rule for DeletionPolicyType 'DeleteCluster' and JobDeploymentStatus 'Failed'",
    ],
    [
      "a cluster that goes before its workers",
      withRules(on(SUCCEEDED, "DeleteWorkers", 20), on(SUCCEEDED, "DeleteCluster", 10)),
      "for JobStatus 'SUCCEEDED': DeleteCluster TTL (10) must be >= DeleteWorkers TTL (20)",
    ],
    [
      "a RayJob that goes before its cluster",
      withRules(on(FAILED, "DeleteSelf", 5), on(FAILED, "DeleteCluster", 10)),
      "for JobDeploymentStatus 'Failed': DeleteSelf TTL (5) must be >= DeleteCluster TTL (10)",
    ],
  ])("%s", (_, spec, words) => {
    const text = textOf(rayJob(spec));
    expect(text.startsWith(`${words}: `)).toBe(true);
    expect(text.slice(words.length)).toMatch(/spec\.\w+/);
  });

  it("DeleteWorkers with autoscaling, in both forms", () => {
    const texts = (spec: Partial<RayJobSpec>) =>
      rayJobViolations(rayJob({ ...spec, ...AUTOSCALING }), defaultSettings).map(({ text }) => text);
    expect(texts(legacy("DeleteWorkers", "DeleteNone"))).toContain(
      "DeletionStrategy=DeleteWorkers currently does not support RayCluster with autoscaling enabled",
    );
    expect(texts(withRules(on(SUCCEEDED, "DeleteWorkers")))).toContain(
      "deletionRules[0]: DeletionPolicyType 'DeleteWorkers' not supported with autoscaling enabled",
    );
  });

  it("any strategy while the feature gate is off, and nothing more is said of it", () => {
    const off = { ...defaultSettings, deletionPolicy: false };
    expect(textOf(rayJob({ ...withRules(on({}, "DeleteSelf")) }), off)).toBe(
      "RayJobDeletionPolicy feature gate must be enabled to use DeletionStrategy: remove spec.deletionStrategy, or have the operator's administrator switch the gate on",
    );
    expect(textOf(rayJob(), off)).toBe("");
  });

  it("every faulty rule at once; one that is faulty by itself is not held against the others", () => {
    const spec = withRules(on({}, "DeleteSelf", 1), on(FAILED, "DeleteCluster", -1), on(FAILED, "DeleteSelf", 0));
    const found = rayJobViolations(rayJob(spec), defaultSettings).map(({ at, text }) => `${at} ${text}`);
    expect(found).toEqual([
      "spec.deletionStrategy.deletionRules[0] deletionRules[0]: exactly one of JobStatus and JobDeploymentStatus must be set",
      "spec.deletionStrategy.deletionRules[1] deletionRules[1]: TTLSeconds must be non-negative",
    ]);
  });
});

it.each<[string, Partial<RayJobSpec>]>([
  [
    "rules in stages",
    withRules(on(SUCCEEDED, "DeleteWorkers", 5), on(SUCCEEDED, "DeleteCluster", 9), on(FAILED, "DeleteNone")),
  ],
  [
    "rules about jobStatus and jobDeploymentStatus side by side",
    withRules(on({ jobStatus: "FAILED" }, "DeleteCluster"), on(FAILED, "DeleteSelf")),
  ],
  ["rules about Complete", withRules(on(COMPLETE, "DeleteCluster"))],
  ["the older form", legacy("DeleteCluster", "DeleteNone")],
  [
    "the older form with a TTL",
    legacy("DeleteWorkers", "DeleteSelf", { shutdownAfterJobFinishes: true, ttlSecondsAfterFinished: 5 }),
  ],
  [
    "DeleteSelf and DeleteNone on a selected cluster",
    { ...withRules(on(COMPLETE, "DeleteSelf"), on(FAILED, "DeleteNone")), ...SELECTED },
  ],
  [
    "rules of a suspended RayJob without shutdownAfterJobFinishes (deletionRules cannot be used with Kueue)",
    { ...withRules(on(COMPLETE, "DeleteCluster")), suspend: true },
  ],
])("%s are accepted", (_, spec) => {
  expect(textOf(rayJob(spec))).toBe("");
});

describe("rules and shutdownAfterJobFinishes, which a queue requires, go together", () => {
  const queued = (rules: Rule[], annotations: Record<string, string> = {}) =>
    rayJob({ ...withRules(...rules), shutdownAfterJobFinishes: true }, undefined, {
      labels: { "kueue.x-k8s.io/queue-name": "q" },
      annotations,
    });
  const ALLOWED = { "raykeeper.dev/allow-pods-outside-quota": "true" };
  const REFUSED = "are mutually exclusive: the queue takes the quota back when the job ends";

  it("where every outcome ends in DeleteCluster or DeleteSelf at once", () => {
    expect(textOf(queued([on(COMPLETE, "DeleteCluster"), on(FAILED, "DeleteSelf", 0)]))).toBe("");
  });

  it.each<[string, Rule[], string]>([
    ["an outcome that no rule is about", [on(SUCCEEDED, "DeleteCluster"), on(FAILED, "DeleteCluster")], "STOPPED"],
    ["a cluster that is kept", [on(COMPLETE, "DeleteCluster"), on(FAILED, "DeleteNone")], "Failed"],
    ["a head that is kept", [on(COMPLETE, "DeleteWorkers"), on(FAILED, "DeleteCluster")], "SUCCEEDED"],
  ])("but not with %s, annotation or not", (_, rules, outcome) => {
    for (const annotations of [{}, ALLOWED]) {
      expect(textOf(queued(rules, annotations))).toContain(REFUSED);
      expect(textOf(queued(rules, annotations))).toContain(outcome);
    }
  });

  it.each<[string, Rule[]]>([
    ["a later TTL", [on(COMPLETE, "DeleteCluster", 60), on(FAILED, "DeleteCluster")]],
    [
      "DeleteWorkers before it",
      [on(COMPLETE, "DeleteWorkers", 0), on(COMPLETE, "DeleteCluster", 60), on(FAILED, "DeleteSelf")],
    ],
  ])("with %s only where the user accepts Pods outside the quota", (_, rules) => {
    expect(textOf(queued(rules))).toContain('raykeeper.dev/allow-pods-outside-quota: "true"');
    expect(textOf(queued(rules, { "raykeeper.dev/allow-pods-outside-quota": "false" }))).toContain(REFUSED);
    expect(textOf(queued(rules, ALLOWED))).toBe("");
  });
});
