/**
 * The end of an attempt, written down: Complete, Failed, or Retrying, in one status write.
 *
 * Answers: which of the three it is, and what status, record, conditions, counters and events then say.
 * May not: delete anything. retry.ts and finish.ts do, on later passes.
 * A retryable failure is never persisted as Failed: whoever manages quota takes that for the end.
 */
import type { Pod } from "../../api/kubernetes.ts";
import { LABEL } from "../../api/labels.ts";
import { addQuantities, formatQuantity, parseQuantity } from "../../api/quantity.ts";
import type { AttemptRecord, JobFailedReason, JobStatus, RayJobStatus } from "../../api/rayjob.ts";
import type { Decision, EventSpec } from "../decision.ts";
import { type Instant, toWire } from "../time.ts";
import { type FailureCause, withCondition } from "./conditions.ts";
import type { ObservedRayJob } from "./observe.ts";
import { isTerminal, type RayCommand, type RayJobInfo } from "./ray.ts";
import { isSelected } from "./records.ts";
import { revise, reviseRecord } from "./status.ts";

/** These end the RayJob, however many attempts are left: another attempt would meet the same clock, or the same silence. */
const NEVER_RETRIED: readonly JobFailedReason[] = ["DeadlineExceeded", "JobStatusCheckTimeoutExceeded"];

export interface Failure {
  readonly reason: JobFailedReason;
  readonly cause: FailureCause;
  readonly message: string;
}

/** Ray's word on the end of the job. */
export function endWith(
  observed: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
  info: RayJobInfo,
  now: Instant,
  late = false,
): Decision<RayCommand> {
  if (info.status === "FAILED") {
    return failWith(
      observed,
      status,
      record,
      { reason: "AppFailed", cause: "ApplicationFailed", message: info.message },
      now,
      {
        jobStatus: "FAILED",
      },
    );
  }
  const succeeded = info.status === "SUCCEEDED";
  // A success is no failure, however long its log took.
  const overdue = late && !succeeded;
  const message = overdue ? GRACE_EXCEEDED : info.message;
  const reason = overdue ? "JobDeploymentStatusTransitionGracePeriodExceeded" : undefined;
  let next = closed(status, record, info.status, { reason, message }, now);
  next = revise(next, {
    jobDeploymentStatus: "Complete",
    jobStatus: info.status,
    reason,
    message,
    endTime: toWire(now),
    succeeded: (status.succeeded ?? 0) + (succeeded ? 1 : 0),
    failed: status.failed ?? 0,
    jobStatusCheckFailureStartTime: undefined,
  });
  next = withCondition(next, now, "Succeeded", succeeded, succeeded ? "JobSucceeded" : "JobFailed", info.message);
  next = succeeded
    ? withCondition(next, now, "Failed", false, "JobSucceeded")
    : withCondition(next, now, "Failed", true, "ApplicationStopped", info.message || "The Ray job was stopped.");
  return {
    summary: `attempt ${record.number} ended: ${info.status}`,
    effects: [],
    status: held(next, observed, record, now),
    events: [
      {
        type: "Normal",
        reason: succeeded ? "AttemptSucceeded" : "AttemptStopped",
        action: "Finish",
        note: `Attempt ${record.number} ended: Ray job ${record.jobId} ${info.status}`,
      },
    ],
  };
}

const GRACE_EXCEEDED =
  "JobDeploymentStatus does not transition to Complete or Failed within the grace period after JobStatus reaches a terminal state.";

/**
 * The attempt failed. `jobStatus`: what Ray said, where it said how the job ended; else FAILED is written for a job that
 * Ray has known, so that no version of the object pairs a terminal phase with a job that seems to run.
 */
export function failWith(
  observed: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
  { reason, cause, message }: Failure,
  now: Instant,
  options: { readonly jobStatus?: JobStatus; readonly events?: readonly EventSpec[] } = {},
): Decision<RayCommand> {
  const { backoffLimit } = observed.job.spec;
  const failed = (status.failed ?? 0) + 1;
  // Validation refuses retries on a selected cluster; a running job's such edit changes nothing.
  const again = failed <= (backoffLimit ?? 0) && !NEVER_RETRIED.includes(reason) && !isSelected(record);
  const jobStatus = terminalStatus(status, record, options.jobStatus);
  let next = closed(status, record, jobStatus, { reason, message }, now);
  next = revise(next, {
    jobDeploymentStatus: again ? "Retrying" : "Failed",
    jobStatus,
    reason,
    message,
    failed,
    succeeded: status.succeeded ?? 0,
    ...(again ? {} : { endTime: toWire(now) }),
    jobStatusCheckFailureStartTime: undefined,
  });
  const attemptFailed: EventSpec = {
    type: "Warning",
    reason: "AttemptFailed",
    action: "Finish",
    note: `Attempt ${record.number} failed (${reason}, ${cause}): ${message}`,
  };
  const events = [...(options.events ?? []), ...lossEvents(cause, message), attemptFailed];
  if (again) {
    const limit = `attempt ${failed} of ${(backoffLimit ?? 0) + 1} failed (${cause}): ${message}`;
    next = withCondition(next, now, "Retrying", true, "Deleting", `Cleaning up before the next attempt; ${limit}`);
    return { summary: `attempt ${record.number} failed, retrying: ${message}`, effects: [], status: next, events };
  }
  next = withCondition(next, now, "Succeeded", false, "JobFailed", message);
  next = withCondition(next, now, "Failed", true, cause, message);
  return {
    summary: `attempt ${record.number} failed: ${message}`,
    effects: [],
    status: held(next, observed, record, now),
    events,
  };
}

function lossEvents(cause: FailureCause, note: string): EventSpec[] {
  const reasons: Partial<Record<FailureCause, string>> = {
    HeadPodLost: "HeadPodLost",
    DriverNodeDead: "DriverNodeDead",
  };
  const reason = reasons[cause];
  return reason ? [{ type: "Warning", reason, action: "Observe", note }] : [];
}

/** Only a job that Ray has never known stays without a status. */
function terminalStatus(
  status: RayJobStatus,
  record: AttemptRecord,
  said: JobStatus | undefined,
): JobStatus | undefined {
  if (isTerminal(said)) return said;
  if (isTerminal(status.jobStatus)) return status.jobStatus;
  return record.observedTime !== undefined || status.jobStatus ? "FAILED" : undefined;
}

/** The record with its end; the first end stays, so that a deadline keeps its time. */
function closed(
  status: RayJobStatus,
  record: AttemptRecord,
  jobStatus: JobStatus | undefined,
  { reason, message }: { reason: JobFailedReason | undefined; message: string },
  now: Instant,
): RayJobStatus {
  return reviseRecord(status, record, { jobStatus, reason, message, endTime: record.endTime ?? toWire(now) });
}

/** What the ended job still holds, and for how long. */
function held(status: RayJobStatus, observed: ObservedRayJob, record: AttemptRecord, now: Instant): RayJobStatus {
  const { rayClusterName: name } = status;
  if (!name) return status;
  if (isSelected(record)) {
    const message = `RayCluster ${name} is not this RayJob's, and stays; its submitter is being waited for.`;
    return released(status, now, "InUse", message);
  }
  const { shutdownAfterJobFinishes, ttlSecondsAfterFinished = 0 } = observed.job.spec;
  const what = `RayCluster ${name} with ${holdings(observed.pods.filter((pod) => pod.metadata.labels?.[LABEL.cluster] === name))}`;
  return shutdownAfterJobFinishes
    ? released(status, now, "InUse", `${what} is deleted ${ttlSecondsAfterFinished} s after the end of the job.`)
    : released(status, now, "KeptByPolicy", `${what} is kept, because shutdownAfterJobFinishes is not set.`);
}

const released = (status: RayJobStatus, now: Instant, reason: "InUse" | "KeptByPolicy", message: string) =>
  withCondition(status, now, "ResourcesReleased", false, reason, message);

/** `3 Pods (cpu 3, memory 4Gi)`: what they ask for, since that is what a quota would have to cover. */
function holdings(pods: readonly Pod[]): string {
  const requests = pods.flatMap((pod) => pod.spec?.containers ?? []).map(({ resources }) => resources?.requests ?? {});
  const sums = [...new Set(requests.flatMap((amounts) => Object.keys(amounts)))].sort().map((name) => {
    const amounts = requests.map((request) => parseQuantity(request[name])).filter((amount) => amount !== undefined);
    return `${name} ${formatQuantity(addQuantities(...amounts))}`;
  });
  return `${pods.length} Pods${sums.length > 0 ? ` (${sums.join(", ")})` : ""}`;
}
