/** The cases of rules.json, one for each place where their rule hangs: a rule may stand in a RayJob and in its cluster. */
import { type Rule, type RuleId, rules } from "../rules.ts";
import cases from "./rules.json" with { type: "json" };

export interface RuleCase {
  readonly rule: Rule;
  readonly kind: "RayJob" | "RayCluster";
  readonly path: string;
  readonly self: unknown;
  readonly old?: unknown;
  readonly holds: boolean;
}

export const ruleCases: readonly RuleCase[] = cases.flatMap(({ rule: id, ...values }) => {
  const rule: Rule = rules[id as RuleId];
  return rule.paths.map((path) => ({ rule, kind: path.split(".")[0] as RuleCase["kind"], path, ...values }));
});

/** A valid object with `value` at the case's path; `name[]` is a list of one element. */
export function placed<T extends object>(object: T, { path }: RuleCase, value: unknown): T {
  const merge = (here: unknown, [step, ...rest]: readonly string[]): unknown => {
    // Beside what stands there: a rule about some fields leaves the others.
    if (step === undefined) return isMap(here) && isMap(value) ? { ...here, ...value } : value;
    const name = step.replace("[]", "");
    const before = isMap(here) ? here : {};
    const inner = merge(before[name], rest);
    return { ...before, [name]: step.endsWith("[]") ? [{ policy: "DeleteCluster", ...(inner as object) }] : inner };
  };
  return merge(object, path.split(".").slice(1)) as T;
}

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
