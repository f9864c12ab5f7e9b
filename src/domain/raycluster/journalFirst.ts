/**
 * The first head of a RayJob's cluster in SidecarMode: it submits as soon as it runs, so it is not made before the
 * RayJob's journal says so (`submissionStartTime` of the attempt). Then a cluster that is gone, of an attempt whose journal
 * says nothing, has never had a head, whatever the operator and its caches went through, and may be made anew.
 *
 * Answers: must the first head wait for the journal; for ever, where the journal says that there was one. What the journal says once it says for ever, so the cache will do.
 * May not: hold back a head that takes up the job of another, under fault tolerance.
 */
import { LABEL } from "../../api/labels.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { ObservedRayCluster } from "./observe.ts";
import { awaitsOneHead } from "./oneHead.ts";

export function waitsForJournal({ cluster, rayJob }: ObservedRayCluster): boolean {
  const { name, labels = {} } = cluster.metadata;
  // KubeRay's clusters do not bear the UID: nobody writes a journal for them.
  if (labels[LABEL.jobSubmissionMode] !== "SidecarMode" || labels[LABEL.rayJobUID] === undefined) return false;
  if (!awaitsFirstHead(cluster)) return false;
  const isOwner = rayJob?.metadata.uid === labels[LABEL.rayJobUID];
  const record = isOwner ? rayJob?.status?.attempts?.at(-1) : undefined;
  // A cluster that comes late, from a request that had been given up, finds its attempt ended, or another one.
  const isCurrent = record?.rayClusterName === name && record.endTime === undefined;
  // The RayJob may know a head that this cluster's controller, held up by a cache that lags, has not written down yet.
  return !isCurrent || record.submissionStartTime === undefined || record.headPodUID !== undefined;
}

/** The first pass that finds a head reports it. */
const awaitsFirstHead = (cluster: RayCluster): boolean =>
  awaitsOneHead(cluster) || (cluster.status?.conditions?.length ?? 0) === 0;
