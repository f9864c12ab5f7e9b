/**
 * RayClusters that may have one head Pod in their life: those of RayJobs whose attempts must not overlap, or whose
 * submitter lives in the head. A second head would run the job a second time within one attempt.
 *
 * Answers: is this such a cluster; which Pod is its head; is that lost for good.
 * May not: replace or restart the head. It runs with `restartPolicy: Never`, and stays for diagnosis until the cluster goes.
 *
 * The head's UID is written down (`status.head.podUID`) before anything else of the cluster is made, and a job is handed
 * over only to the head that is written down. One that vanished before anybody could write it down had nothing to do yet
 * (a sidecar's may have had: formerHead.ts), so it counts as never made. Where fault tolerance keeps Ray's tables, a new
 * head takes up the job: it is replaced as usual.
 */
import type { Pod } from "../../api/kubernetes.ts";
import { ANNOTATION } from "../../api/labels.ts";
import type { KubeObject, Stored } from "../../api/object.ts";
import type { RayCluster, RayClusterSpec } from "../../api/raycluster.ts";
import { type ClusterPods, hasEnded, rayContainerStatus } from "./observe.ts";

/** Whether Redis or a volume keeps Ray's tables over the loss of a head. */
export const isFaultTolerant = (
  spec: RayClusterSpec | undefined,
  annotations: KubeObject["metadata"]["annotations"],
): boolean =>
  spec?.gcsFaultToleranceOptions !== undefined || annotations?.[ANNOTATION.ftEnabled]?.toLowerCase() === "true";

export const hasOneHead = ({ metadata, spec }: RayCluster): boolean =>
  metadata.annotations?.[ANNOTATION.oneHead] === "true" && !isFaultTolerant(spec, metadata.annotations);

/** The UID that was written down. */
export const oneHeadUID = ({ status }: RayCluster): string | undefined => status?.head?.podUID;

/** The one head is written down, and is no more, or has ended: nothing of the cluster is made again. */
export function hasLostOneHead(cluster: RayCluster, heads: readonly Stored<Pod>[]): boolean {
  const uid = oneHeadUID(cluster);
  if (!hasOneHead(cluster) || uid === undefined) return false;
  const head = heads.find(({ metadata }) => metadata.uid === uid);
  // Ray's container is not started again; the Pod lives on with what else is in it.
  return !head || hasEnded(head) || rayContainerStatus(head)?.state?.terminated !== undefined;
}

/** The one head is not written down yet: it comes before anything else. */
export const awaitsOneHead = (cluster: RayCluster): boolean => hasOneHead(cluster) && oneHeadUID(cluster) === undefined;

/** Heads beside the one that is written down, or after it: the API server may carry out a request that was given up. */
export function secondHeads(cluster: RayCluster, heads: readonly Stored<Pod>[]): readonly Stored<Pod>[] {
  const uid = oneHeadUID(cluster);
  return hasOneHead(cluster) && uid !== undefined ? heads.filter(({ metadata }) => metadata.uid !== uid) : [];
}

/** What the status says about it from now on: once it is there, for ever. */
export function podUIDOf(cluster: RayCluster, { heads }: ClusterPods): { readonly podUID?: string } {
  const uid = oneHeadUID(cluster) ?? (hasOneHead(cluster) ? heads[0]?.metadata.uid : undefined);
  return uid === undefined ? {} : { podUID: uid };
}
