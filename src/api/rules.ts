/**
 * The rules that a type cannot say: each once as CEL, for the API server, and once as TypeScript, for everyone who asks
 * without one (the embedded cluster, the controller's own validation).
 *
 * The schemas take CEL text and message from here, so the two spellings stand side by side and nowhere else.
 */
import { MANAGED_BY } from "./labels.ts";

export interface Rule {
  readonly id: string;
  /** Where it hangs, from the object's root; `[]` is each element of a list. One rule may hang in several places. */
  readonly paths: readonly `${"RayJob" | "RayCluster"}.${string}`[];
  readonly rule: string;
  /** What the user reads when it does not hold. */
  readonly message: string;
  /** Whether `self`, the value found at the path, is fine; `oldSelf` is the value before, if there was one. */
  holds(self: unknown, oldSelf?: unknown): boolean;
}

type Fields = Readonly<Record<string, unknown>>;

/** As in CEL, an absent field and null are the same. */
const has = (self: Fields, field: string): boolean => self[field] !== undefined && self[field] !== null;

/** For texts. What was not there before has not changed. */
const unchanged = (self: unknown, oldSelf?: unknown): boolean => oldSelf === undefined || self === oldSelf;

/** For rules about the fields of an object. */
const fields = (holds: (self: Fields) => boolean) => (self: unknown) => holds(self as Fields);

const MANAGED_BY_PATHS = [
  "RayJob.spec.managedBy",
  "RayJob.spec.rayClusterSpec.managedBy",
  "RayCluster.spec.managedBy",
] as const;

export const rules = {
  managedByImmutable: {
    id: "managedByImmutable",
    paths: MANAGED_BY_PATHS,
    rule: "self == oldSelf",
    message: "the managedBy field is immutable",
    holds: unchanged,
  },
  managedByKnown: {
    id: "managedByKnown",
    paths: MANAGED_BY_PATHS,
    rule: `self in ['${MANAGED_BY.operator}', '${MANAGED_BY.multiKueue}']`,
    message: `the managedBy field value must be either '${MANAGED_BY.operator}' or '${MANAGED_BY.multiKueue}'`,
    holds: (self) => self === MANAGED_BY.operator || self === MANAGED_BY.multiKueue,
  },
  gcsBackendImmutable: {
    id: "gcsBackendImmutable",
    paths: [
      "RayCluster.spec.gcsFaultToleranceOptions.backend",
      "RayJob.spec.rayClusterSpec.gcsFaultToleranceOptions.backend",
    ],
    rule: "self == oldSelf",
    message: "gcsFaultToleranceOptions.backend is immutable",
    holds: unchanged,
  },
  deletionFormsExclusive: {
    id: "deletionFormsExclusive",
    paths: ["RayJob.spec.deletionStrategy"],
    rule: "!has(self.deletionRules) || (!has(self.onSuccess) && !has(self.onFailure))",
    message:
      "legacy policies (onSuccess/onFailure) and deletionRules cannot be used together within the same deletionStrategy",
    holds: fields((self) => !has(self, "deletionRules") || (!has(self, "onSuccess") && !has(self, "onFailure"))),
  },
  deletionFormComplete: {
    id: "deletionFormComplete",
    paths: ["RayJob.spec.deletionStrategy"],
    rule: "has(self.deletionRules) || (has(self.onSuccess) && has(self.onFailure))",
    message:
      "deletionStrategy requires either BOTH onSuccess and onFailure, OR the deletionRules field (cannot be empty)",
    holds: fields((self) => has(self, "deletionRules") || (has(self, "onSuccess") && has(self, "onFailure"))),
  },
  deletionConditionExclusive: {
    id: "deletionConditionExclusive",
    paths: ["RayJob.spec.deletionStrategy.deletionRules[].condition"],
    rule: "!has(self.jobStatus) || !has(self.jobDeploymentStatus)",
    message: "JobStatus and JobDeploymentStatus cannot be used together within the same deletion condition.",
    holds: fields((self) => !has(self, "jobStatus") || !has(self, "jobDeploymentStatus")),
  },
  deletionConditionPresent: {
    id: "deletionConditionPresent",
    paths: ["RayJob.spec.deletionStrategy.deletionRules[].condition"],
    rule: "has(self.jobStatus) || has(self.jobDeploymentStatus)",
    message: "the deletion condition requires either the JobStatus or the JobDeploymentStatus field.",
    holds: fields((self) => has(self, "jobStatus") || has(self, "jobDeploymentStatus")),
  },
  blockingTimeoutNeedsBlocking: {
    id: "blockingTimeoutNeedsBlocking",
    paths: ["RayJob.spec.retryStrategy"],
    rule: "!has(self.blockingTimeoutSeconds) || (has(self.type) && self.type == 'BlockingRecreate')",
    message: "retryStrategy.blockingTimeoutSeconds requires type BlockingRecreate",
    holds: fields((self) => !has(self, "blockingTimeoutSeconds") || self["type"] === "BlockingRecreate"),
  },
  blockingNeedsOwnCluster: {
    id: "blockingNeedsOwnCluster",
    paths: ["RayJob.spec"],
    rule: "!has(self.clusterSelector) || size(self.clusterSelector) == 0 || !has(self.retryStrategy) || !has(self.retryStrategy.type) || self.retryStrategy.type != 'BlockingRecreate'",
    message: "retryStrategy.type BlockingRecreate is not supported with clusterSelector",
    holds: fields((self) => {
      const selector = (self["clusterSelector"] ?? {}) as Fields;
      const strategy = (self["retryStrategy"] ?? {}) as Fields;
      return Object.keys(selector).length === 0 || strategy["type"] !== "BlockingRecreate";
    }),
  },
} as const satisfies Record<string, Rule>;

export type RuleId = keyof typeof rules;

/** The rules by their CEL text, for who finds the text in a schema. What is equal in CEL is equal here. */
export const ruleTable: ReadonlyMap<string, Rule> = new Map(Object.values(rules).map((rule) => [rule.rule, rule]));

/** The schema entry for the rules named: `{...celRules("managedByKnown")}` beside a schema's other keywords. */
export function celRules(...ids: RuleId[]): { "x-kubernetes-validations": { rule: string; message: string }[] } {
  return { "x-kubernetes-validations": ids.map((id) => ({ rule: rules[id].rule, message: rules[id].message })) };
}

export interface Violation {
  readonly rule: Rule;
  /** The place in the object, `spec.deletionStrategy.deletionRules[2].condition`. */
  readonly path: string;
}

/**
 * Every rule of `kind` that `self` breaks, in the order of the table. `old` is the stored object on an update.
 *
 * Throws nothing on a value of another shape than the schema's: such a value has no such path.
 */
export function violations(kind: "RayJob" | "RayCluster", self: unknown, old?: unknown): Violation[] {
  return Object.values(rules as Record<RuleId, Rule>).flatMap((rule) =>
    rule.paths
      .filter((path) => path.startsWith(`${kind}.`))
      .flatMap((path) => occurrences(path.slice(kind.length + 1).split("."), self, old, ""))
      .filter(({ value, before }) => !rule.holds(value, before))
      .map(({ path }) => ({ rule, path })),
  );
}

interface Occurrence {
  readonly path: string;
  readonly value: unknown;
  readonly before: unknown;
}

/** The values at a path, with the value before. An element of an atomic list has no value before: it has no identity. */
function occurrences(steps: readonly string[], self: unknown, old: unknown, path: string): Occurrence[] {
  const [step, ...rest] = steps;
  if (step === undefined)
    return self === undefined || self === null ? [] : [{ path, value: self, before: old ?? undefined }];
  const name = step.replace("[]", "");
  const value = field(self, name);
  const here = path === "" ? name : `${path}.${name}`;
  if (!step.endsWith("[]")) return occurrences(rest, value, field(old, name), here);
  return Array.isArray(value)
    ? value.flatMap((item, index) => occurrences(rest, item, undefined, `${here}[${index}]`))
    : [];
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Fields)[name] : undefined;
}
