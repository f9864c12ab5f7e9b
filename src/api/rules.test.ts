import { describe, expect, test } from "vitest";
import { crds } from "./crds.ts";
import type { JSONSchemaProps } from "./kubernetes.ts";
import { type Rule, type RuleId, rules, ruleTable, violations } from "./rules.ts";
import cases from "./testdata/rules.json" with { type: "json" };

const all: [string, Rule][] = Object.entries(rules);

/** Where the schemas carry rules: `RayJob.spec.managedBy` and the messages there. */
function carried(): Map<string, { rule?: string; message?: string }[]> {
  const found = new Map<string, { rule?: string; message?: string }[]>();
  const visit = (schema: JSONSchemaProps, path: string) => {
    if (schema["x-kubernetes-validations"]) found.set(path, schema["x-kubernetes-validations"]);
    for (const [name, child] of Object.entries(schema.properties ?? {})) visit(child, `${path}.${name}`);
    if (schema.items) visit(schema.items as JSONSchemaProps, `${path}[]`);
  };
  for (const { spec } of crds()) {
    for (const { schema } of spec.versions) visit(schema!.openAPIV3Schema as JSONSchemaProps, spec.names.kind);
  }
  return found;
}

describe("the table of rules", () => {
  test("names exactly the places where the schemas carry them", () => {
    const named = new Map<string, { rule: string; message: string }[]>();
    for (const [, { paths, rule, message }] of all) {
      for (const path of paths) named.set(path, [...(named.get(path) ?? []), { rule, message }]);
    }
    expect(Object.fromEntries(named)).toEqual(Object.fromEntries(carried()));
  });

  test.each(all)("has for %s a case that holds and one that does not", (id) => {
    expect(new Set(cases.filter(({ rule }) => rule === id).map(({ holds }) => holds))).toEqual(new Set([true, false]));
  });

  test.each(all)("finds %s by its CEL text", (_, { rule, holds }) => {
    // Two rules may share a text; then they must be one in TypeScript too.
    expect(ruleTable.get(rule)!.holds).toBe(holds);
  });
});

describe("a rule in TypeScript says what its CEL says", () => {
  test.each(cases)("$rule of $self, before $old: $holds", ({ rule, self, old, holds }) => {
    expect((rules[rule as RuleId] as Rule).holds(self, old)).toBe(holds);
  });
});

describe("violations", () => {
  const broken = (kind: "RayJob" | "RayCluster", self: unknown, old?: unknown) =>
    violations(kind, self, old).map(({ path, rule }) => `${path}: ${rule.id}`);

  test("are found at each element of a list, and named by its place", () => {
    const deletionRules = [{ condition: { jobStatus: "FAILED" } }, { condition: {} }, { condition: { ttlSeconds: 1 } }];
    expect(broken("RayJob", { spec: { deletionStrategy: { deletionRules } } })).toEqual([
      "spec.deletionStrategy.deletionRules[1].condition: deletionConditionPresent",
      "spec.deletionStrategy.deletionRules[2].condition: deletionConditionPresent",
    ]);
  });

  test("of a change need the value before and after", () => {
    const job = (managedBy?: string) => ({ spec: { managedBy } });
    const [ours, theirs] = ["ray.io/kuberay-operator", "kueue.x-k8s.io/multikueue"];
    expect(broken("RayJob", job(ours), job(theirs))).toEqual(["spec.managedBy: managedByImmutable"]);
    expect(broken("RayJob", job(ours), job())).toEqual([]);
    expect(broken("RayJob", job(), job(theirs))).toEqual([]);
    expect(broken("RayJob", job(ours))).toEqual([]);
  });

  test("are looked for in a RayJob's cluster as in a RayCluster", () => {
    const cluster = (backend: string) => ({ gcsFaultToleranceOptions: { backend } });
    expect(broken("RayCluster", { spec: cluster("rocksdb") }, { spec: cluster("redis") })).toEqual([
      "spec.gcsFaultToleranceOptions.backend: gcsBackendImmutable",
    ]);
    expect(
      broken(
        "RayJob",
        { spec: { rayClusterSpec: cluster("rocksdb") } },
        { spec: { rayClusterSpec: cluster("redis") } },
      ),
    ).toEqual(["spec.rayClusterSpec.gcsFaultToleranceOptions.backend: gcsBackendImmutable"]);
  });

  test.each([undefined, null, "text", 3, {}, { spec: null }, { spec: { deletionStrategy: null } }])(
    "of %j are none",
    (self) => {
      expect(broken("RayJob", self)).toEqual([]);
    },
  );
});
