/**
 * The CustomResourceDefinitions, built from the schemas in memory.
 *
 * `npm run generate` writes them to deploy/crds; the embedded cluster and the tests take them from here.
 */
import Type, { type TSchema } from "typebox";
import type { CustomResourceDefinition, CustomResourceDefinitionVersion, JSONSchemaProps } from "./kubernetes.ts";
import { rayClusterSpec, rayClusterStatus } from "./raycluster.ts";
import { rayJobSpec, rayJobStatus } from "./rayjob.ts";
import { v1alpha1 } from "./v1alpha1.ts";

const GROUP = "ray.io";
/** The version that is stored, and the only one the operator uses. */
const VERSION = "v1";

type Column = NonNullable<CustomResourceDefinitionVersion["additionalPrinterColumns"]>[number];

const age: Column = { name: "age", type: "date", jsonPath: ".metadata.creationTimestamp" };
const column = (name: string, jsonPath: string, more: Partial<Column> = {}): Column => ({
  name,
  type: "string",
  jsonPath,
  ...more,
});

/** KubeRay's columns, by their names and in their order, because scripts read them. */
const rayJobColumns: readonly Column[] = [
  column("job status", ".status.jobStatus"),
  column("deployment status", ".status.jobDeploymentStatus"),
  column("ray cluster name", ".status.rayClusterName"),
  column("start time", ".status.startTime"),
  column("end time", ".status.endTime"),
  age,
];

const rayClusterColumns: readonly Column[] = [
  column("desired workers", ".status.desiredWorkerReplicas", { type: "integer" }),
  column("available workers", ".status.availableWorkerReplicas", { type: "integer" }),
  column("cpus", ".status.desiredCPU"),
  column("memory", ".status.desiredMemory"),
  column("gpus", ".status.desiredGPU"),
  column("tpus", ".status.desiredTPU", { priority: 1 }),
  column("status", ".status.state"),
  age,
  column("head pod IP", ".status.head.podIP", { priority: 1 }),
  column("head service IP", ".status.head.serviceIP", { priority: 1 }),
];

/** The whole object's schema. Without a spec there is nothing to act on, so it must be there. */
const whole = (description: string, spec: TSchema, status: TSchema) =>
  Type.Object(
    {
      apiVersion: Type.Optional(Type.String()),
      kind: Type.Optional(Type.String()),
      metadata: Type.Optional(Type.Unsafe<object>({ type: "object" })),
      spec,
      status: Type.Optional(status),
    },
    { description },
  );

/**
 * The definitions of all kinds, each time as fresh plain JSON that the caller may change.
 */
export function crds(): CustomResourceDefinition[] {
  return [
    definition({
      kind: "RayCluster",
      plural: "rayclusters",
      description: "A RayCluster is a Ray head and its groups of workers.",
      current: { spec: rayClusterSpec, status: rayClusterStatus, columns: rayClusterColumns },
      deprecated: { ...v1alpha1.RayCluster, columns: rayClusterColumns },
    }),
    definition({
      kind: "RayJob",
      plural: "rayjobs",
      description: "A RayJob runs one Ray job, on a RayCluster of its own or on one that exists.",
      current: { spec: rayJobSpec, status: rayJobStatus, columns: rayJobColumns },
      deprecated: v1alpha1.RayJob,
    }),
  ];
}

interface Parts {
  readonly spec: TSchema;
  readonly status: TSchema;
  readonly columns?: readonly Column[];
}

interface Kind {
  readonly kind: string;
  readonly plural: string;
  readonly description: string;
  readonly current: Parts;
  readonly deprecated: Parts;
}

function definition({ kind, plural, description, current, deprecated }: Kind): CustomResourceDefinition {
  const crd: CustomResourceDefinition = {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase(), categories: ["all"] },
      scope: "Namespaced",
      versions: [
        { name: VERSION, served: true, storage: true, ...version(description, current) },
        {
          name: "v1alpha1",
          served: true,
          storage: false,
          deprecated: true,
          ...version(`Deprecated: use ${GROUP}/${VERSION}.`, deprecated),
        },
      ],
    },
  };
  return JSON.parse(JSON.stringify(crd)) as CustomResourceDefinition;
}

function version(description: string, { spec, status, columns }: Parts) {
  return {
    schema: { openAPIV3Schema: whole(description, spec, status) as JSONSchemaProps },
    subresources: { status: {} },
    ...(columns && { additionalPrinterColumns: [...columns] }),
  };
}
