/**
 * The rules about what is deleted at the end: part of validate.ts, which says how a rule is written.
 *
 * KubeRay's, and one of ours: a queue requires `shutdownAfterJobFinishes`, which KubeRay refuses beside rules. Both are
 * taken together where the rules let no Pod outlive the quota, or the user says that they may.
 */
import { ANNOTATION, LABEL } from "../../api/labels.ts";
import type { DeletionStrategy, RayJob, RayJobSpec } from "../../api/rayjob.ts";
import type { Settings } from "../settings.ts";
import type { Finding, Rule } from "../validation.ts";
import { disposalOf, OUTCOMES, outcomeText, takesCluster } from "./policy.ts";
import { selects } from "./records.ts";

const STRATEGY = "spec.deletionStrategy";
const SIDES = ["onSuccess", "onFailure"] as const;
type DeletionRule = NonNullable<DeletionStrategy["deletionRules"]>[number];

/** Nothing more is said of a strategy that may not be used at all. */
const strategyOf = ({ spec }: RayJob, { deletionPolicy }: Settings): DeletionStrategy | undefined =>
  deletionPolicy ? spec.deletionStrategy : undefined;
const isLegacy = (strategy: DeletionStrategy | undefined): boolean => SIDES.some((side) => strategy?.[side]);
const touchesCluster = (policy: string | undefined): boolean =>
  policy === "DeleteCluster" || policy === "DeleteWorkers";
const goName = (side: (typeof SIDES)[number]): string => (side === "onSuccess" ? "OnSuccess" : "OnFailure");
const scales = ({ rayClusterSpec }: RayJobSpec): boolean => rayClusterSpec?.enableInTreeAutoscaling === true;

/** In KubeRay's order. */
export const deletionValidation: readonly Rule<RayJob>[] = [
  {
    name: "deletion-strategy-needs-gate",
    kuberay: "bare",
    at: STRATEGY,
    broken: ({ spec }, { deletionPolicy }) => spec.deletionStrategy !== undefined && !deletionPolicy,
    text: "RayJobDeletionPolicy feature gate must be enabled to use DeletionStrategy",
    remedy: `remove ${STRATEGY}, or have the operator's administrator switch the gate on`,
  },
  { name: "deletion-rules-with-shutdown", kuberay: "prefixed", find: rulesWithShutdown },
  {
    name: "deletion-forms-exclusive",
    kuberay: "prefixed",
    at: STRATEGY,
    broken: (job, settings) => {
      const strategy = strategyOf(job, settings);
      return strategy?.deletionRules !== undefined && isLegacy(strategy);
    },
    text: "Cannot use both legacy onSuccess/onFailure fields and deletionRules simultaneously",
    remedy: `remove onSuccess and onFailure from ${STRATEGY}, or deletionRules`,
  },
  {
    name: "deletion-form-complete",
    kuberay: "prefixed",
    at: STRATEGY,
    broken: (job, settings) => {
      const strategy = strategyOf(job, settings);
      return strategy !== undefined && !strategy.deletionRules?.length && !isLegacy(strategy);
    },
    text: "DeletionStrategy requires either BOTH onSuccess and onFailure, OR the deletionRules field (cannot be empty)",
    remedy: `set deletionRules in ${STRATEGY}, or remove the latter`,
  },
  {
    name: "deletion-both-sides",
    kuberay: "bare",
    at: STRATEGY,
    broken: (job, settings) => {
      const strategy = strategyOf(job, settings);
      return isLegacy(strategy) && SIDES.some((side) => !strategy?.[side]);
    },
    text: "both DeletionStrategy.OnSuccess and DeletionStrategy.OnFailure must be set when using the legacy deletion policy fields of DeletionStrategy",
    remedy: `set both in ${STRATEGY}, or use deletionRules`,
  },
  {
    name: "deletion-policy-set",
    kuberay: "bare",
    find: eachSide((side, policy) =>
      policy
        ? undefined
        : {
            text: `the DeletionPolicyType field of DeletionStrategy.${goName(side)} cannot be unset when DeletionStrategy is enabled`,
            remedy: `set ${STRATEGY}.${side}.policy`,
          },
    ),
  },
  {
    name: "deletion-spares-selected-cluster",
    kuberay: "bare",
    find: eachSide((side, policy, { spec }) =>
      selects(spec) && touchesCluster(policy)
        ? {
            text: `the ClusterSelector mode doesn't support DeletionStrategy=${policy} on ${side === "onSuccess" ? "success" : "failure"}`,
            remedy: `set ${STRATEGY}.${side}.policy to DeleteNone or DeleteSelf`,
          }
        : undefined,
    ),
  },
  {
    name: "deletion-of-workers-without-autoscaling",
    kuberay: "bare",
    at: STRATEGY,
    broken: (job, settings) => {
      const strategy = strategyOf(job, settings);
      return scales(job.spec) && SIDES.some((side) => strategy?.[side]?.policy === "DeleteWorkers");
    },
    text: "DeletionStrategy=DeleteWorkers currently does not support RayCluster with autoscaling enabled",
    remedy: `use another policy in ${STRATEGY}`,
  },
  {
    name: "deletion-none-without-shutdown",
    kuberay: "prefixed",
    at: STRATEGY,
    broken: (job, settings) => {
      const strategy = strategyOf(job, settings);
      const none = SIDES.some((side) => strategy?.[side]?.policy === "DeleteNone");
      return job.spec.shutdownAfterJobFinishes === true && none;
    },
    // The misspelling is KubeRay's.
    text: "shutdownAfterJobFinshes is set to 'true' while deletion policy is 'DeleteNone'",
    remedy: `set spec.shutdownAfterJobFinishes to false, or another policy in ${STRATEGY}`,
  },
  { name: "deletion-rule", kuberay: "bare", find: eachRule },
  { name: "deletion-rules-in-order", kuberay: "bare", find: rulesInOrder },
];

function eachSide(
  judge: (
    side: (typeof SIDES)[number],
    policy: string | undefined,
    job: RayJob,
  ) => Pick<Finding, "text" | "remedy"> | undefined,
) {
  return (job: RayJob, settings: Settings): Finding[] => {
    const strategy = strategyOf(job, settings);
    return SIDES.flatMap((side) => {
      const found = strategy?.[side] && judge(side, strategy[side].policy, job);
      return found ? [{ at: `${STRATEGY}.${side}.policy`, ...found }] : [];
    });
  };
}

function rulesWithShutdown(job: RayJob, settings: Settings): Finding[] {
  const { spec, metadata } = job;
  if (!spec.shutdownAfterJobFinishes || strategyOf(job, settings)?.deletionRules === undefined) return [];
  const at = "spec.shutdownAfterJobFinishes";
  const text = "spec.shutdownAfterJobFinishes and spec.deletionStrategy.deletionRules are mutually exclusive";
  if (metadata.labels?.[LABEL.kueueQueueName] === undefined) {
    return [{ at, text, remedy: `remove ${at}, or ${STRATEGY}.deletionRules` }];
  }
  const allowed = metadata.annotations?.[ANNOTATION.allowPodsOutsideQuota] === "true";
  const outliving = OUTCOMES.find((outcome) => {
    const end = disposalOf(spec, outcome, settings).stages.find(takesCluster);
    return end === undefined || (end.after > 0 && !allowed);
  });
  if (!outliving) return [];
  const need = allowed ? "" : ` with ttlSeconds 0, or accept that Pods outlive the quota with the annotation`;
  const remedy = `the queue takes the quota back when the job ends, so every outcome has to end in DeleteCluster or DeleteSelf${need}${need && ` ${ANNOTATION.allowPodsOutsideQuota}: "true"`}; ${outcomeText(outliving)} does not (${STRATEGY}.deletionRules)`;
  return [{ at, text, remedy }];
}

const selectorOf = ({ condition }: DeletionRule): readonly [kind: string, value: string] =>
  condition.jobStatus !== undefined
    ? ["JobStatus", condition.jobStatus]
    : ["JobDeploymentStatus", condition.jobDeploymentStatus ?? ""];

/** What is wrong with a rule by itself. */
function faultOf({ policy, condition }: DeletionRule, { spec }: RayJob): readonly [text: string, remedy: string][] {
  const { jobStatus, jobDeploymentStatus, ttlSeconds = 0 } = condition;
  const faults: (readonly [boolean, string, string])[] = [
    [
      jobStatus !== undefined && jobDeploymentStatus !== undefined,
      "cannot set both JobStatus and JobDeploymentStatus at the same time",
      "remove one of the two from its condition",
    ],
    [
      jobStatus === undefined && jobDeploymentStatus === undefined,
      "exactly one of JobStatus and JobDeploymentStatus must be set",
      "set one of the two in its condition",
    ],
    [ttlSeconds < 0, "TTLSeconds must be non-negative", "set its ttlSeconds to 0 or more"],
    [
      selects(spec) && touchesCluster(policy),
      `DeletionPolicyType '${policy}' not supported when ClusterSelector is set`,
      "use DeleteSelf or DeleteNone",
    ],
    [
      policy === "DeleteWorkers" && scales(spec),
      `DeletionPolicyType '${policy}' not supported with autoscaling enabled`,
      "use another policy",
    ],
  ];
  return faults.flatMap(([is, text, remedy]) => (is ? [[text, remedy] as [string, string]] : []));
}

function eachRule(job: RayJob, settings: Settings): Finding[] {
  const known = new Set<string>();
  return (strategyOf(job, settings)?.deletionRules ?? []).flatMap((rule, index) => {
    const at = `${STRATEGY}.deletionRules[${index}]`;
    const finding = ([text, remedy]: readonly [string, string]) => ({
      at,
      text: `deletionRules[${index}]: ${text}`,
      remedy: `${remedy} (${at})`,
    });
    const faults = faultOf(rule, job);
    if (faults.length > 0) return faults.map(finding);
    const [kind, value] = selectorOf(rule);
    const key = `${rule.policy} ${kind} ${value}`;
    if (!known.has(key)) {
      known.add(key);
      return [];
    }
    return [
      finding([`duplicate rule for DeletionPolicyType '${rule.policy}' and ${kind} '${value}'`, "remove one of them"]),
    ];
  });
}

/** What deletes more may not come before what deletes less. */
const ORDER = ["DeleteWorkers", "DeleteCluster", "DeleteSelf"] as const;

function rulesInOrder(job: RayJob, settings: Settings): Finding[] {
  const rules = (strategyOf(job, settings)?.deletionRules ?? []).filter((rule) => faultOf(rule, job).length === 0);
  const selectors = [...new Set(rules.map((rule) => selectorOf(rule).join("\n")))];
  return selectors.flatMap((selector) => {
    const [kind, value] = selector.split("\n");
    const here = ORDER.flatMap((policy) => {
      const rule = rules.find((one) => one.policy === policy && selectorOf(one).join("\n") === selector);
      return rule ? [{ policy, after: rule.condition.ttlSeconds ?? 0 }] : [];
    });
    return here.slice(1).flatMap((later, index) => {
      const earlier = here[index]!;
      return later.after >= earlier.after
        ? []
        : [
            {
              at: `${STRATEGY}.deletionRules`,
              text: `for ${kind} '${value}': ${later.policy} TTL (${later.after}) must be >= ${earlier.policy} TTL (${earlier.after})`,
              remedy: `raise the former's ttlSeconds in ${STRATEGY}.deletionRules`,
            },
          ];
    });
  });
}
