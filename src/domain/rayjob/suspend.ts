/**
 * Suspending and Suspended.
 *
 * Once begun, a suspension is carried through, whatever `suspend` says meanwhile: half a deleted attempt is never
 * resumed. `Suspended` is said only when nothing is left, Pods in Terminating included, since whoever manages quota
 * gives it away at that word. A selected cluster is none of the RayJob's: it stays as it is, and only the job in it is
 * stopped (halt.ts).
 */
import type { AttemptRecord, RayJob, RayJobSpec, RayJobStatus } from "../../api/rayjob.ts";
import type { Decision } from "../decision.ts";
import { fromWire, type Instant, toWire } from "../time.ts";
import { awaitAbsence } from "./absence.ts";
import { cleanUp, remains } from "./children.ts";
import { withCondition, withoutConditions } from "./conditions.ts";
import { halt, mayRunOn } from "./halt.ts";
import type { ObservedRayJob } from "./observe.ts";
import type { RayCommand } from "./ray.ts";
import { currentRecord, isSelected, selects, statusOf } from "./records.ts";
import { nothingUnderWay, revise, reviseRecord } from "./status.ts";

/**
 * Validation refuses `suspend` without `shutdownAfterJobFinishes`, unless the cluster is a selected one, or rules say what is
 * deleted; a running job's such edit is no suspension.
 */
export const wantsSuspension = ({ spec }: RayJob): boolean => spec.suspend === true && maySuspend(spec);

export const maySuspend = (spec: RayJobSpec): boolean =>
  spec.shutdownAfterJobFinishes === true || selects(spec) || spec.deletionStrategy?.deletionRules !== undefined;

/** How the record of an attempt tells that a suspension ended it. */
export const WAS_SUSPENDED = "The RayJob was suspended.";

/** From any phase in which an attempt is under way. */
export function enterSuspending(
  { job }: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord | undefined,
  now: Instant,
): Decision<RayCommand> {
  const ended = record
    ? reviseRecord(status, record, { endTime: record.endTime ?? toWire(now), message: WAS_SUSPENDED })
    : status;
  const message = isSelected(record)
    ? `Stopping the Ray job and its submitter; RayCluster ${record?.rayClusterName} stays as it is.`
    : "Deleting everything of this RayJob.";
  return {
    summary: "suspend is set: cleaning up",
    effects: [],
    status: revise(withCondition(ended, now, "Suspended", false, "Suspending", message), {
      jobDeploymentStatus: "Suspending",
    }),
    events: [
      {
        type: "Normal",
        reason: "Suspending",
        action: "Suspend",
        note: `Suspending RayJob ${job.metadata.namespace}/${job.metadata.name}`,
      },
    ],
  };
}

/** Phase Suspending: delete, and wait until nothing is left. */
export function suspending(observed: ObservedRayJob, now: Instant): Decision<RayCommand> {
  const status = statusOf(observed.job);
  const record = currentRecord(observed);
  const halted = mayRunOn(observed, record)
    ? halt(observed, record, fromWire(record.endTime) ?? now, "the RayJob is being suspended", now)
    : undefined;
  if (halted?.is === "under way") return halted.decision;
  const waiting = awaitAbsence(observed, "everything", now, "Suspended");
  if (waiting) return waiting;
  if (!record || !halted) return becomeSuspended(observed, status, now);
  // Ray's own word, where it was heard: what is over there need not be stopped again.
  const suspended = becomeSuspended(observed, reviseRecord(status, record, { jobStatus: halted.info?.status }), now);
  return { ...suspended, events: [...(halted.event ? [halted.event] : []), ...suspended.events] };
}

/** Phase Suspended: whatever comes late, from a request that had been given up, goes again. */
export function suspended(observed: ObservedRayJob): Decision<RayCommand> {
  const effects = cleanUp(remains(observed, currentRecord(observed)), "the RayJob is suspended");
  return { summary: "suspended", effects, events: [] };
}

/** Nothing exists: say so. Also the answer to a RayJob that was born suspended, which never had anything. */
export function becomeSuspended({ job }: ObservedRayJob, status: RayJobStatus, now: Instant): Decision<RayCommand> {
  // A spec that had been refused is corrected: neither failure nor end is left of that.
  const refused = status.jobDeploymentStatus === "ValidationFailed";
  let next = revise(status, {
    ...nothingUnderWay,
    jobDeploymentStatus: "Suspended",
    ...(refused && { endTime: undefined }),
  });
  next = withoutConditions(next, "Started", "SubmitterHealthy", "Succeeded", "Failed");
  next = withCondition(next, now, "Suspended", true, "Suspended", "Nothing of this RayJob is left.");
  next = withCondition(next, now, "Retrying", false, "NotRetrying");
  next = withCondition(next, now, "ResourcesReleased", true, "Released", "No Pod of this RayJob exists.");
  return {
    summary: "suspended: nothing is left",
    effects: [],
    status: next,
    events: [
      {
        type: "Normal",
        reason: "Suspended",
        action: "Suspend",
        note: `Suspended RayJob ${job.metadata.namespace}/${job.metadata.name}; nothing of it is left`,
      },
    ],
  };
}
