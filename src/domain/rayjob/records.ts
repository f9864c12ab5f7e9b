/**
 * The attempts of a RayJob: which one is current, and which number the next one bears.
 *
 * The last entry of `status.attempts` is the journal. A RayJob that KubeRay ran has none: its record is read out of the
 * flat fields, and becomes part of the status with the next write.
 */
import { LABEL } from "../../api/labels.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJob, RayJobSpec, RayJobStatus } from "../../api/rayjob.ts";
import { fromWire, type Instant, seconds, toWire } from "../time.ts";
import { generatedName } from "./names.ts";
import type { ObservedRayJob } from "./observe.ts";

/** How many records the status keeps. */
const KEPT = 10;

/** Whether a RayCluster that is there is to be used. What an attempt was started with is in its record: `isSelected`. */
export const selects = (spec: RayJobSpec): boolean => Object.keys(spec.clusterSelector ?? {}).length > 0;

/** The queue in which Kueue has it wait; it manages no RayJob that selects a RayCluster. */
export const queueOf = ({ metadata, spec }: RayJob): string | undefined =>
  selects(spec) ? undefined : metadata.labels?.[LABEL.kueueQueueName] || undefined;

/** Whether the attempt runs on a RayCluster that is not its own: never made, changed, labelled or deleted by it. */
export const isSelected = (record: AttemptRecord | undefined): boolean => record?.ownsCluster === false;

/**
 * From when on Ray's answers are about the attempt's job. On a selected cluster its id may have been another job's, so what
 * was asked before the submission was journalled does not count; a wire time is rounded down.
 */
export const aboutItFrom = (record: AttemptRecord): Instant =>
  isSelected(record)
    ? (fromWire(record.submissionStartTime) ?? Number.NEGATIVE_INFINITY) + seconds(1)
    : Number.NEGATIVE_INFINITY;

export const statusOf = (job: RayJob): RayJobStatus => job.status ?? {};

/**
 * The current attempt's record; undefined before the first attempt, and while none is under way. Without a journal the
 * RayCluster tells which attempt it was made for: KubeRay, when it was gone back to, kept neither records nor numbers.
 */
export function currentRecord({
  job,
  rayClusters = [],
}: Pick<ObservedRayJob, "job"> & Partial<Pick<ObservedRayJob, "rayClusters">>): AttemptRecord | undefined {
  const status = statusOf(job);
  const last = status.attempts?.at(-1);
  if (last !== undefined) return last;
  if (!status.rayClusterName && !status.jobId) return undefined;
  return {
    number: status.executionAttempt ?? numberOnCluster(job, rayClusters) ?? numberUnderKubeRay(status),
    jobId: status.jobId,
    rayClusterName: status.rayClusterName,
    // Nobody else waits like that, whatever spec says by now.
    submissionMode:
      status.jobDeploymentStatus === "Waiting" ? "InteractiveMode" : (job.spec.submissionMode ?? "K8sJobMode"),
    retryStrategy: "Recreate",
    ownsCluster: !selects(job.spec),
    startTime: status.startTime,
    // KubeRay wrote `jobStatus` only from Ray's answers: so Ray has known the job.
    observedTime: status.jobStatus ? (status.rayJobInfo?.startTime ?? status.startTime) : undefined,
    runningTime: status.jobStatus === "RUNNING" ? (status.rayJobInfo?.startTime ?? status.startTime) : undefined,
    submissionStartTime: status.jobDeploymentStatus === "Running" ? status.startTime : undefined,
  };
}

/** What the attempt's own RayCluster is labelled with. */
function numberOnCluster({ metadata, status }: RayJob, rayClusters: readonly RayCluster[]): number | undefined {
  const label = rayClusters.find(
    (cluster) =>
      cluster.metadata.name === status?.rayClusterName &&
      cluster.metadata.ownerReferences?.some(({ controller, uid }) => controller && uid === metadata.uid),
  )?.metadata.labels?.[LABEL.executionAttempt];
  return numberIn(label);
}

/** The number of an attempt, as a label has it. */
export const numberIn = (label: string | undefined): number | undefined =>
  label !== undefined && /^\d{1,9}$/.test(label) ? Number(label) : undefined;

/** KubeRay counted failures only; a failure that is being retried, or was the last, is counted already. */
function numberUnderKubeRay(status: RayJobStatus): number {
  const failed = status.failed ?? 0;
  const counted = status.jobDeploymentStatus === "Retrying" || status.jobDeploymentStatus === "Failed";
  return counted ? Math.max(0, failed - 1) : failed;
}

/** The number of the attempt after the current one: it never goes down and never repeats. */
export function nextNumber({ job }: Pick<ObservedRayJob, "job">): number {
  const status = statusOf(job);
  const known = Math.max(status.executionAttempt ?? -1, ...(status.attempts ?? []).map((attempt) => attempt.number));
  return known >= 0 ? known + 1 : (status.failed ?? 0);
}

/** What the next attempt is started with; frozen from here on. */
export function newRecord(job: ObservedRayJob["job"], number: number, now: Instant): AttemptRecord {
  const { name, uid } = job.metadata;
  const mode = job.spec.submissionMode ?? "K8sJobMode";
  return {
    number,
    ...(mode !== "InteractiveMode" && { jobId: job.spec.jobId || generatedName(name, uid, number, "job") }),
    rayClusterName: job.spec.clusterSelector?.[LABEL.cluster] ?? generatedName(name, uid, number, "cluster"),
    submissionMode: mode,
    retryStrategy: job.spec.retryStrategy?.type ?? "Recreate",
    ownsCluster: !selects(job.spec),
    startTime: toWire(now),
  };
}

/** The list with a new record at its end, and not longer than is kept. */
export function append(attempts: readonly AttemptRecord[] | undefined, record: AttemptRecord): AttemptRecord[] {
  return [...(attempts ?? []), record].slice(-KEPT);
}
