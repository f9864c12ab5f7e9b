/**
 * What Kueue writes to a RayJob: its webhook at the creation, one patch that starts it, one that stops it.
 *
 * Each patch is a merge patch of what Kueue wants against the version it has read, which it names: on a newer one it is
 * refused, and Kueue looks again. It starts a RayJob with the nodes and tolerations of a ResourceFlavor and the name of
 * the Pod set in every template; it stops it with the templates that it found when it made the Workload.
 */

import type { PodTemplateSpec } from "../../src/api/kubernetes.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";

export const QUEUE = "kueue.x-k8s.io/queue-name";
export const PODSET = "kueue.x-k8s.io/podset";
/** The label that nodes of a ResourceFlavor bear here. */
export const FLAVOR = "flavor";

/** How Kueue's webhook leaves a RayJob that is just created. */
export const queued = (job: RayJob): RayJob => ({
  ...job,
  metadata: { ...job.metadata, labels: { ...job.metadata.labels, [QUEUE]: "team" } },
  spec: { ...job.spec, suspend: true },
});

/** The templates of the Pod sets, as Kueue keeps them in the Workload. */
export type PodSets = Pick<RayJobSpec, "rayClusterSpec" | "submitterPodTemplate">;

/**
 * The templates that Kueue books for: in K8sJobMode also the submitter's, and where the user gave none, one that Kueue
 * writes, without a command.
 */
export function podSetsOf({ spec }: RayJob): PodSets {
  const { rayClusterSpec, submitterPodTemplate, submissionMode = "K8sJobMode" } = spec;
  if (submissionMode !== "K8sJobMode") return { rayClusterSpec };
  return { rayClusterSpec, submitterPodTemplate: submitterPodTemplate ?? generatedSubmitter(spec) };
}

const generatedSubmitter = ({ rayClusterSpec }: RayJobSpec): PodTemplateSpec =>
  ({
    spec: {
      restartPolicy: "Never",
      containers: [
        {
          name: "ray-job-submitter",
          image: rayClusterSpec?.headGroupSpec.template.spec?.containers?.[0]?.image,
          resources: { requests: { cpu: "500m", memory: "200Mi" }, limits: { cpu: "1", memory: "1Gi" } },
        },
      ],
    },
  }) as PodTemplateSpec;

/** An admission. */
export const startPatch = (job: Stored<RayJob>, podSets: PodSets, flavor: string): object =>
  patchTo(job, {
    suspend: false,
    rayClusterSpec: {
      ...podSets.rayClusterSpec!,
      headGroupSpec: {
        ...podSets.rayClusterSpec!.headGroupSpec,
        template: placed("head", podSets.rayClusterSpec!.headGroupSpec.template, flavor),
      },
      workerGroupSpecs: podSets.rayClusterSpec!.workerGroupSpecs?.map((group) => ({
        ...group,
        template: placed(group.groupName, group.template, flavor),
      })),
    },
    ...(podSets.submitterPodTemplate && {
      submitterPodTemplate: placed("submitter", podSets.submitterPodTemplate, flavor),
    }),
  });

/** A preemption, an eviction, a deactivation, or an end of the Workload. */
export const stopPatch = (job: Stored<RayJob>, podSets: PodSets): object => patchTo(job, { ...podSets, suspend: true });

const placed = (podSet: string, template: PodTemplateSpec, flavor: string): PodTemplateSpec => ({
  ...template,
  metadata: { ...template.metadata, labels: { ...template.metadata?.labels, [PODSET]: podSet } },
  spec: {
    ...template.spec!,
    nodeSelector: { ...template.spec?.nodeSelector, [FLAVOR]: flavor },
    tolerations: [
      ...(template.spec?.tolerations ?? []),
      { key: "reserved", operator: "Exists", effect: "NoSchedule" } as const,
    ],
  },
});

function patchTo({ metadata: { resourceVersion }, spec }: Stored<RayJob>, wanted: Partial<RayJobSpec>): object {
  return { metadata: { resourceVersion }, spec: difference(spec, { ...spec, ...wanted }) };
}

/** The merge patch that makes one of the other. */
function difference(before: unknown, after: unknown): unknown {
  if (!isRecord(before) || !isRecord(after)) return after;
  const patch: Record<string, unknown> = {};
  for (const key of Object.keys(before)) if (after[key] === undefined) patch[key] = null;
  for (const [key, value] of Object.entries(after)) {
    if (value === undefined || JSON.stringify(value) === JSON.stringify(before[key])) continue;
    patch[key] = difference(before[key], value);
  }
  return patch;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
