/**
 * The CRDs as KubeRay has them: ours without the fields that we add, so that a server with them prunes our journal.
 *
 * They are the same in all that matters here; src/api/crds.test.ts holds ours against KubeRay's, field by field.
 */
import { crds } from "../../src/api/crds.ts";
import type { CustomResourceDefinition, JSONSchemaProps } from "../../src/api/kubernetes.ts";

const ADDED = [
  "spec.retryStrategy",
  "status.attempts",
  "status.executionAttempt",
  "status.conditions",
  "status.head.podUID",
  "status.rayClusterStatus.head.podUID",
];

export function kuberayCrds(): CustomResourceDefinition[] {
  const all = crds();
  for (const { spec } of all) {
    // KubeRay's RayClusters have conditions.
    const added = ADDED.filter((field) => spec.names.kind === "RayJob" || field !== "status.conditions");
    for (const { schema } of spec.versions) {
      for (const field of added) remove(schema?.openAPIV3Schema, field.split("."));
      const ofSpec = schema?.openAPIV3Schema?.properties?.["spec"] as JSONSchemaProps;
      // The rule about the field that is gone goes with it.
      const rules = ofSpec["x-kubernetes-validations"]?.filter(({ rule }) => !rule.includes("retryStrategy"));
      if (rules) ofSpec["x-kubernetes-validations"] = rules;
    }
  }
  return all;
}

function remove(schema: JSONSchemaProps | undefined, [name, ...rest]: readonly string[]): void {
  const properties = schema?.properties as Record<string, JSONSchemaProps> | undefined;
  if (properties === undefined || name === undefined) return;
  if (rest.length > 0) remove(properties[name], rest);
  else delete properties[name];
}
