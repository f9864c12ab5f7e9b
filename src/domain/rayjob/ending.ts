/**
 * The end of an attempt, written down: Complete, Failed, or Retrying, in one status write.
 *
 * Answers: which of the three it is, and what status, record, conditions, counters and events then say.
 * May not: delete anything. retry.ts and finish.ts do, on later passes.
 * A retryable failure is never persisted as Failed: whoever manages quota takes that for the end.
 */
import type { AttemptRecord, FailureCause, JobFailedReason, JobStatus, RayJobStatus } from "../../api/rayjob.ts";
import type { Decision, EventSpec } from "../decision.ts";
import { type Instant, toWire } from "../time.ts";
import { withCondition } from "./conditions.ts";
import { endEvents, withHoldings } from "./holdings.ts";
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
    status: withHoldings(next, observed, record, now),
    events: [
      {
        type: "Normal",
        reason: succeeded ? "AttemptSucceeded" : "AttemptStopped",
        action: "Finish",
        note: `Attempt ${record.number} ended: Ray job ${record.jobId} ${info.status}`,
      },
      ...endEvents(next, observed, record),
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
  let next = closed(status, record, jobStatus, { reason: cause, message }, now);
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
    status: withHoldings(next, observed, record, now),
    events: [...events, ...endEvents(next, observed, record)],
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
  { reason, message }: { reason: AttemptRecord["reason"]; message: string },
  now: Instant,
): RayJobStatus {
  return reviseRecord(status, record, { jobStatus, reason, message, endTime: record.endTime ?? toWire(now) });
}
