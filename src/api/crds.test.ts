import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { crdFiles } from "../../hack/generate/files.ts";
import { crds } from "./crds.ts";
import type { CustomResourceDefinitionVersion, JSONSchemaProps } from "./kubernetes.ts";
import { rules } from "./rules.ts";
import fixture from "./testdata/kuberay-fields.json" with { type: "json" };

/** One field as the fixture spells it: KubeRay's facts, without descriptions. */
type Facts = Record<string, unknown>;
type Fields = Record<string, Facts>;

/** Kubernetes' own types, full in ours; the fixture does not look inside either. */
const OPAQUE = /\.(template|submitterPodTemplate|headService)$/;

const COMPARED = [
  "type",
  "format",
  "default",
  "enum",
  "minimum",
  "minItems",
  "maxLength",
  "x-kubernetes-int-or-string",
  "x-kubernetes-list-type",
  "x-kubernetes-map-type",
] as const satisfies readonly (keyof JSONSchemaProps)[];

function facts(schema: JSONSchemaProps): Facts {
  const found: Facts = Object.fromEntries(
    COMPARED.filter((key) => schema[key] !== undefined).map((key) => [key, schema[key]]),
  );
  if (schema.required) found["required"] = [...schema.required].sort();
  const cel = schema["x-kubernetes-validations"];
  if (cel) found["cel"] = cel.map(({ message }) => message);
  return found;
}

function flatten(schema: JSONSchemaProps, path = "", found: Fields = {}): Fields {
  found[path] = facts(schema);
  if (OPAQUE.test(path)) {
    // Required fields of a template are Kubernetes' business.
    delete found[path]["required"];
    return found;
  }
  for (const [name, child] of Object.entries(schema.properties ?? {})) flatten(child, `${path}.${name}`, found);
  if (schema.items) flatten(schema.items as JSONSchemaProps, `${path}[]`, found);
  if (typeof schema.additionalProperties === "object") {
    flatten(schema.additionalProperties as JSONSchemaProps, `${path}{}`, found);
  }
  return found;
}

const definition = (kind: string) => crds().find((crd) => crd.spec.names.kind === kind)!;
const versionOf = (kind: string, version: string): CustomResourceDefinitionVersion =>
  definition(kind).spec.versions.find(({ name }) => name === version)!;
const schemaOf = (kind: string, version: string): JSONSchemaProps =>
  versionOf(kind, version).schema!.openAPIV3Schema as JSONSchemaProps;

/** KubeRay's fields; a RayJob's cluster has those of the RayCluster, which the fixture names once. */
function kubeRay(kind: string, version: string): Fields {
  const of = (name: string) => (fixture as unknown as Record<string, { fields: Fields }>)[`${name}/${version}`]!.fields;
  if (kind === "RayCluster") return of("RayCluster");
  const nested = (part: string, at: string) =>
    Object.entries(of("RayCluster"))
      .filter(([path]) => path.startsWith(`${part}.`))
      .map(([path, field]) => [at + path.slice(part.length), field]);
  return {
    ...of("RayJob"),
    ...Object.fromEntries([
      ...nested(".spec", ".spec.rayClusterSpec"),
      ...nested(".status", ".status.rayClusterStatus"),
    ]),
  };
}

const CONDITION: Fields = {
  ".status.conditions": { type: "array", "x-kubernetes-list-type": "map" },
  ...Object.fromEntries(
    Object.entries(kubeRay("RayCluster", "v1")).filter(([path]) => path.startsWith(".status.conditions[]")),
  ),
};
const timeField = { type: "string", format: "date-time" };
const textField = { type: "string" };

/** Every field that KubeRay does not have. */
const ADDED: Record<string, Fields> = {
  "RayCluster/v1": { ".status.head.podUID": textField },
  "RayJob/v1": {
    ".spec.retryStrategy": { type: "object", cel: [rules.blockingTimeoutNeedsBlocking.message] },
    ".spec.retryStrategy.type": { type: "string", enum: ["Recreate", "BlockingRecreate"], default: "Recreate" },
    ".spec.retryStrategy.blockingTimeoutSeconds": { type: "integer", format: "int32", minimum: 1 },
    ".status.executionAttempt": { type: "integer", format: "int32", minimum: 0 },
    ".status.attempts": { type: "array", "x-kubernetes-list-type": "atomic" },
    ".status.attempts[]": { type: "object", required: ["number"] },
    ".status.attempts[].number": { type: "integer", format: "int32" },
    ".status.attempts[].jobId": textField,
    ".status.attempts[].rayClusterName": textField,
    ".status.attempts[].submissionMode": textField,
    ".status.attempts[].retryStrategy": textField,
    ".status.attempts[].ownsCluster": { type: "boolean" },
    ".status.attempts[].headPodUID": textField,
    ".status.attempts[].raySession": textField,
    ".status.attempts[].startTime": timeField,
    ".status.attempts[].submissionStartTime": timeField,
    ".status.attempts[].observedTime": timeField,
    ".status.attempts[].runningTime": timeField,
    ".status.attempts[].endTime": timeField,
    ".status.attempts[].driverNodeDeadTime": timeField,
    ".status.attempts[].submitterDeletions": { type: "integer", format: "int32", minimum: 0 },
    ".status.attempts[].barrier": { type: "object" },
    ".status.attempts[].barrier.blockedTime": timeField,
    ".status.attempts[].barrier.releasedTime": timeField,
    ".status.attempts[].barrier.suspendedSeconds": { type: "integer", format: "int32", minimum: 0 },
    ".status.attempts[].barrier.suspendedTime": timeField,
    ".status.attempts[].barrier.toldTime": timeField,
    ".status.attempts[].jobStatus": textField,
    ".status.attempts[].reason": textField,
    ".status.attempts[].message": textField,
    ...CONDITION,
    ".status.rayClusterStatus.head.podUID": textField,
  },
};

/** Every fact that differs from KubeRay's about a field that both have. */
const CHANGED: Record<string, Fields> = {
  "RayCluster/v1": { "": { type: "object", required: ["spec"] } },
  "RayJob/v1": {
    "": { type: "object", required: ["spec"] },
    ".spec": { type: "object", cel: [rules.blockingNeedsOwnCluster.message] },
    ".spec.submissionMode": {
      type: "string",
      default: "K8sJobMode",
      enum: ["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"],
    },
    ".spec.deletionStrategy.deletionRules[].condition.jobDeploymentStatus": {
      type: "string",
      enum: ["Failed", "Complete"],
    },
  },
  "RayCluster/v1alpha1": { "": { type: "object", required: ["spec"] } },
  "RayJob/v1alpha1": { "": { type: "object", required: ["spec"] } },
};

const EVERY_VERSION = ["RayCluster/v1", "RayJob/v1", "RayCluster/v1alpha1", "RayJob/v1alpha1"].map(
  (name) => name.split("/") as [string, string],
);

describe.each(EVERY_VERSION)("%s/%s", (kind, version) => {
  test("has KubeRay's fields, with their types, defaults, bounds, enumerations and rules, and the additions, and no more", () => {
    const expected = {
      ...kubeRay(kind, version),
      ...CHANGED[`${kind}/${version}`],
      ...ADDED[`${kind}/${version}`],
    };
    expect(flatten(schemaOf(kind, version))).toEqual(expected);
  });

  test("is served, stored and printed as KubeRay's is", () => {
    const { about } = fixture[`${kind}/${version}` as keyof typeof fixture];
    const ours = versionOf(kind, version);
    expect(ours.served).toBe(about.served);
    expect(ours.storage).toBe(about.storage);
    expect(Object.keys(ours.subresources!)).toEqual(about.subresources);
    expect(ours.additionalPrinterColumns ?? []).toEqual(about.printer);
    expect(ours.deprecated ?? false).toBe(version === "v1alpha1");
  });
});

describe("a Pod template", () => {
  const pod = (kind: string, version: string, ...path: string[]) =>
    path.reduce(
      (schema, name) => (schema.properties?.[name] ?? schema.items) as JSONSchemaProps,
      schemaOf(kind, version),
    );
  const templates: [string, string, string[]][] = [
    ["RayCluster", "head", ["spec", "headGroupSpec", "template"]],
    ["RayCluster", "worker", ["spec", "workerGroupSpecs", "items", "template"]],
    ["RayJob", "head", ["spec", "rayClusterSpec", "headGroupSpec", "template"]],
    ["RayJob", "worker", ["spec", "rayClusterSpec", "workerGroupSpecs", "items", "template"]],
    ["RayJob", "submitter", ["spec", "submitterPodTemplate"]],
  ];

  test.each(templates)("of a %s's %s can be explained down to its last field", (kind, _, path) => {
    const container = pod(kind, "v1", ...path, "spec", "containers", "items");
    expect(container.required).toEqual(["name"]);
    expect(container.properties).toMatchObject({
      restartPolicy: { type: "string" },
      ports: {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
        items: { required: ["containerPort"], properties: { protocol: { type: "string", default: "TCP" } } },
      },
      resources: {
        properties: { limits: { additionalProperties: { "x-kubernetes-int-or-string": true } } },
      },
      livenessProbe: { properties: { httpGet: { properties: { port: { "x-kubernetes-int-or-string": true } } } } },
    });
    const metadata = pod(kind, "v1", ...path, "metadata");
    expect(Object.keys(metadata.properties!).sort()).toEqual([
      "annotations",
      "finalizers",
      "labels",
      "name",
      "namespace",
    ]);
    expect(pod(kind, "v1", ...path, "spec").required).toEqual(["containers"]);
  });

  test("of the deprecated version is kept as it is, so that nothing of it is lost on the way to the current one", () => {
    expect(pod("RayCluster", "v1alpha1", "spec", "headGroupSpec", "template")).toMatchObject({
      "x-kubernetes-preserve-unknown-fields": true,
      properties: { spec: { "x-kubernetes-preserve-unknown-fields": true, required: ["containers"] } },
    });
  });
});

describe("the definitions", () => {
  test("are committed as they are generated", () => {
    for (const [path, content] of crdFiles()) {
      const committed = readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
      expect(committed === content, `${path} is not what \`npm run generate\` makes`).toBe(true);
    }
  });

  test.each(crds().map((crd) => [crd.metadata.name, crd] as const))(
    "%s fits into etcd and into kubectl's annotation",
    (_, crd) => {
      const stored = Buffer.byteLength(JSON.stringify(crd));
      expect(stored).toBeLessThan(1024 * 1024);
      // `kubectl apply` keeps the whole object in an annotation, of which the API server takes 256 KiB.
      expect(stored).toBeLessThan(256 * 1024);
    },
  );

  test("share nothing between two calls, so that a caller may change what it got", () => {
    const [first] = crds();
    first!.spec.versions.length = 0;
    expect(crds()[0]!.spec.versions).toHaveLength(2);
  });

  test("name the kinds as KubeRay does", () => {
    expect(crds().map(({ metadata, spec }) => [metadata.name, spec.scope, spec.names])).toEqual([
      [
        "rayclusters.ray.io",
        "Namespaced",
        {
          kind: "RayCluster",
          listKind: "RayClusterList",
          plural: "rayclusters",
          singular: "raycluster",
          categories: ["all"],
        },
      ],
      [
        "rayjobs.ray.io",
        "Namespaced",
        { kind: "RayJob", listKind: "RayJobList", plural: "rayjobs", singular: "rayjob", categories: ["all"] },
      ],
    ]);
  });

  test("are structural: no reference, no field beside free-form ones, no default on a field that must be there", () => {
    const faults: string[] = [];
    const visit = (schema: JSONSchemaProps, path: string) => {
      const foreign = ["$ref", "oneOf", "allOf", "not", "patternProperties"].filter((word) => word in schema);
      if (foreign.length > 0) faults.push(`${path} has ${foreign}`);
      if (!schema.type && !schema["x-kubernetes-int-or-string"]) faults.push(`${path} has no type`);
      if (schema.properties && schema.additionalProperties) faults.push(`${path} has fields beside free-form ones`);
      const item = (schema.items ?? {}) as JSONSchemaProps;
      for (const key of schema["x-kubernetes-list-map-keys"] ?? []) {
        if (!item.required?.includes(key) && item.properties?.[key]?.default === undefined) {
          faults.push(`${path}[].${key} is a key, so it must be required or have a default`);
        }
      }
      for (const name of schema.required ?? []) {
        // Only KubeRay's replica bounds: they are required and have defaults, so that nobody needs to write them.
        if (schema.properties?.[name]?.default !== undefined && !/^(min|max)Replicas$/.test(name)) {
          faults.push(`${path}.${name} is required, yet has a default`);
        }
      }
      for (const [name, child] of Object.entries(schema.properties ?? {})) visit(child, `${path}.${name}`);
      if (schema.items) visit(item, `${path}[]`);
      if (typeof schema.additionalProperties === "object") {
        visit(schema.additionalProperties as JSONSchemaProps, `${path}{}`);
      }
    };
    for (const [kind, version] of EVERY_VERSION) visit(schemaOf(kind, version), `${kind}/${version}`);
    expect(faults).toEqual([]);
  });
});
