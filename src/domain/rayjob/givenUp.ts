/**
 * An attempt that was given up: it ended without Ray's own word, so what it had begun may yet come to pass.
 *
 * Answers: whether it is one, and whether its job might still be submitted.
 * Next: finish.ts sees to it that it is not; holdings.ts tells of it.
 */
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJobStatus } from "../../api/rayjob.ts";
import { hasLostOneHead } from "../raycluster/oneHead.ts";
import { findCluster } from "./children.ts";
import { headFacts } from "./cluster.ts";
import { findCondition } from "./conditions.ts";
import { RAYS_OWN_WORD } from "./halt.ts";
import type { ObservedRayJob } from "./observe.ts";
import { isSidecar, maySubmitYet } from "./sidecar.ts";

/** It ended without Ray's own word on the job. */
export const wasGivenUp = (status: RayJobStatus): boolean =>
  status.jobDeploymentStatus === "Failed" && !RAYS_OWN_WORD.has(findCondition(status, "Failed")?.reason ?? "");

/**
 * A sidecar cannot be deleted alone, and a head that is not there yet would bring one. So the cluster of an attempt that
 * was given up before Ray had its job goes whatever the policy: it was for this job only, and has run nothing.
 */
export function mayYetBeSubmitted(observed: ObservedRayJob, status: RayJobStatus, record: AttemptRecord): boolean {
  if (!isSidecar(record) || record.observedTime !== undefined || !wasGivenUp(status)) return false;
  const found = findCluster(observed, record);
  if (found.is !== "ours") return false;
  const cluster = found.object as Stored<RayCluster>;
  const { pod } = headFacts(cluster, observed.pods, record.headPodUID);
  return pod ? maySubmitYet(pod) : !hasLostOneHead(cluster, []);
}
