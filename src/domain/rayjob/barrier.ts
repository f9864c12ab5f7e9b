/**
 * The barrier of BlockingRecreate: the next attempt waits until nothing of this RayJob exists.
 *
 * Answers: what is deleted, what is said while something is left, and when the wait is given up.
 * May not: begin an attempt, or force anything: a Pod on a node that nobody can reach holds the barrier until the node
 * comes back, its administrator acts, the user changes the strategy, or the time is up. Attempts never overlap.
 *
 * It belongs to the attempt that is about to begin, so the strategy that spec names now decides. Its clock runs from
 * `Retrying=True`, and stands still while the RayJob is suspended, and from when the barrier has opened (an attempt may
 * wait for a valid spec then) until it is blocked anew; how long it stood is in the record, so that an operator that starts
 * anew neither loses nor adds time.
 * Next: absence.ts for the predicate, retry.ts for what follows.
 */
import type { Stored } from "../../api/object.ts";
import type { AttemptRecord, RayJob, RayJobStatus } from "../../api/rayjob.ts";
import type { Decision, EventSpec, KubeEffect } from "../decision.ts";
import { type Duration, earliest, fromWire, type Instant, seconds, toWire } from "../time.ts";
import { absence, enumerate, proveAbsence, unproven } from "./absence.ts";
import { cleanUp, cleanUpOrphans, isLeaving, remains } from "./children.ts";
import { findCondition, withCondition } from "./conditions.ts";
import { endEvents } from "./holdings.ts";
import type { ObservedRayJob } from "./observe.ts";
import type { RayCommand } from "./ray.ts";
import { currentRecord, nextNumber, statusOf } from "./records.ts";
import { revise, reviseRecord } from "./status.ts";
import { wantsSuspension } from "./suspend.ts";

/** What is left is written down this often at most, however fast it changes. */
const TELL_AGAIN: Duration = seconds(10);
/** Until every deletion has reached its object; one that is refused is no reason to say nothing for longer. */
const DELETING: Duration = seconds(5);

export const isBlocking = ({ spec }: RayJob): boolean => spec.retryStrategy?.type === "BlockingRecreate";

/** When `blockingTimeoutSeconds` is over; undefined while it does not run, or is not set. */
export function blockingDeadline(
  job: RayJob,
  status: RayJobStatus,
  record: AttemptRecord | undefined,
): Instant | undefined {
  const length = job.spec.retryStrategy?.blockingTimeoutSeconds;
  const retrying = findCondition(status, "Retrying");
  const start = retrying?.status === "True" ? fromWire(retrying.lastTransitionTime) : undefined;
  const { suspendedTime, suspendedSeconds = 0, releasedTime } = record?.barrier ?? {};
  if (!isBlocking(job) || length === undefined || start === undefined) return undefined;
  const stands = suspendedTime !== undefined || releasedTime !== undefined || wantsSuspension(job);
  return stands ? undefined : start + seconds(length + suspendedSeconds);
}

/** A pass that waits at the barrier; undefined when nothing of this RayJob exists any more. */
export function atBarrier(observed: ObservedRayJob, now: Instant): Decision<RayCommand> | undefined {
  const { job } = observed;
  const status = statusOf(job);
  const record = currentRecord(observed);
  const found = absence(observed, "everything");
  if (found.is === "proven") return undefined;
  if (found.is !== "left" || !record) return unproven(found, now) ?? { summary: "waiting", effects: [], events: [] };

  const suspension = noteSuspension(job, status, record, found.objects, now);
  if (suspension) return suspension;
  const deadline = blockingDeadline(job, status, record);
  if (deadline !== undefined && now >= deadline) {
    // What the cache shows may be gone: then the wait is over, and not given up.
    const really = proveAbsence(observed, "everything");
    if (really.is === "left") return giveUp(observed, status, record, agreed(found.objects, really.objects), now);
    return unproven(really, now) ?? { ...quiet("the cache lags: nothing is left"), wakeAt: now + seconds(1) };
  }
  const effects = deletions(observed, record);
  const toldBy = (fromWire(findCondition(status, "Retrying")?.lastTransitionTime) ?? 0) + DELETING;
  const wakeAt = earliest(deadline, found.unseen ? now + seconds(1) : undefined);
  const told = record.barrier?.blockedTime !== undefined && record.barrier.releasedTime === undefined;
  const spreading = !told && now < toldBy && found.objects.some((object) => !isLeaving(object));
  if (spreading || (told && effects.length > 0)) {
    return {
      summary: `deleting ${enumerate(found.objects)}`,
      effects,
      events: [],
      wakeAt: earliest(wakeAt, spreading ? toldBy : undefined),
    };
  }
  return tell(observed, status, record, found.objects, now, wakeAt);
}

/** The status once the barrier is open, and the event that says so; the same status where it was never shut. */
export function released(
  observed: ObservedRayJob,
  why: string,
  now: Instant,
): { readonly status: RayJobStatus; readonly events: readonly EventSpec[] } {
  const status = statusOf(observed.job);
  const record = currentRecord(observed);
  if (!record?.barrier) return { status, events: [] };
  const { suspendedTime, ...kept } = record.barrier;
  const stood = secondsFrom(suspendedTime, now);
  const barrier = stood > 0 ? { ...kept, suspendedSeconds: (kept.suspendedSeconds ?? 0) + stood } : kept;
  const blocked = fromWire(barrier.blockedTime);
  if (blocked === undefined || barrier.releasedTime !== undefined) {
    return { status: reviseRecord(status, record, { barrier }), events: [] };
  }
  const note = `The retry after attempt ${record.number} is blocked no more, after ${Math.round((now - blocked) / 1000)} s: ${why}`;
  return {
    status: reviseRecord(status, record, { barrier: { ...barrier, releasedTime: toWire(now) } }),
    events: [{ type: "Normal", reason: "RetryUnblocked", action: "Retry", note }],
  };
}

/** The barrier is open, and yet no attempt begins: from now on the clock stands. */
export function heldOpen(observed: ObservedRayJob, now: Instant): RayJobStatus {
  const { job } = observed;
  const status = statusOf(job);
  const record = currentRecord(observed);
  if (!record || !isBlocking(job) || record.barrier?.releasedTime !== undefined) return status;
  return reviseRecord(status, record, { barrier: { ...record.barrier, releasedTime: toWire(now) } });
}

const quiet = (summary: string): Decision<RayCommand> => ({ summary, effects: [], events: [] });

/** Everything goes in the foreground: a RayCluster is there until its last Pod is gone. */
function deletions(observed: ObservedRayJob, record: AttemptRecord): readonly KubeEffect[] {
  const some = remains(observed, record);
  const why = "it belongs to an attempt that is over, and the next one waits until it is gone";
  return [...cleanUp(some, why, "Foreground"), ...cleanUpOrphans(some, why)];
}

/** Says that the retry is blocked, and by what. */
function tell(
  { job }: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
  objects: readonly Stored[],
  now: Instant,
  wakeAt: Instant | undefined,
): Decision<RayCommand> {
  const message = blockedText(job, record, objects);
  const { barrier } = record;
  const told = fromWire(barrier?.toldTime);
  const again = told === undefined ? now : told + TELL_AGAIN;
  const condition = findCondition(status, "Retrying");
  if (condition?.reason === "Blocked" && condition.message === message) return { ...quiet(message), wakeAt };
  if (now < again) return { ...quiet(message), wakeAt: earliest(wakeAt, again) };
  const first = barrier?.blockedTime === undefined || barrier.releasedTime !== undefined;
  const { releasedTime, ...kept } = barrier ?? {};
  const stood = secondsFrom(releasedTime, fromWire(kept.suspendedTime) ?? now);
  const next = reviseRecord(status, record, {
    barrier: {
      ...kept,
      ...(stood > 0 && { suspendedSeconds: (kept.suspendedSeconds ?? 0) + stood }),
      blockedTime: barrier?.blockedTime ?? toWire(now),
      toldTime: toWire(now),
    },
  });
  return {
    summary: message,
    effects: [],
    status: withCondition(next, now, "Retrying", true, "Blocked", message),
    events: first ? [{ type: "Normal", reason: "RetryBlocked", action: "Retry", note: message }] : [],
    wakeAt,
  };
}

/** While it is suspended, no attempt is promised. */
function blockedText(job: ObservedRayJob["job"], record: AttemptRecord, objects: readonly Stored[]): string {
  const names = enumerate(inOrder(objects));
  return wantsSuspension(job)
    ? `spec.suspend is set, so no attempt follows until the RayJob is resumed. Still there of attempt ${record.number}: ${names}.`
    : `Attempt ${nextNumber({ job })} waits until nothing of attempt ${record.number} is left: ${names}.`;
}

/** Whole seconds between the two; 0 where it never began. */
const secondsFrom = (wire: string | undefined, end: Instant): number =>
  Math.max(0, Math.round((end - (fromWire(wire) ?? end)) / 1000));

/** What holds the others first: Pods before their owners, and those that have been leaving for longest. */
export function inOrder(objects: readonly Stored[]): readonly Stored[] {
  const rank = (object: Stored) =>
    [
      object.kind === "Pod" ? 0 : 1,
      isLeaving(object) ? 0 : 1,
      object.metadata.deletionTimestamp ?? "",
      object.metadata.name,
    ].join(" ");
  return [...objects].sort((one, other) => (rank(one) < rank(other) ? -1 : 1));
}

/** Suspended at the barrier: deletion goes on, and the clock stands still. Undefined when that is written already. */
function noteSuspension(
  job: ObservedRayJob["job"],
  status: RayJobStatus,
  record: AttemptRecord,
  objects: readonly Stored[],
  now: Instant,
): Decision<RayCommand> | undefined {
  const { suspendedTime, ...before } = record.barrier ?? {};
  const suspend = wantsSuspension(job);
  if (suspend === (suspendedTime !== undefined)) return undefined;
  // What the retry waits for is worded anew in the same write.
  const isTold = findCondition(status, "Retrying")?.reason === "Blocked";
  const barrier = isTold ? { ...before, toldTime: toWire(now) } : before;
  const worded = (next: RayJobStatus) =>
    isTold ? withCondition(next, now, "Retrying", true, "Blocked", blockedText(job, record, objects)) : next;
  if (suspend) {
    const next = reviseRecord(status, record, { barrier: { ...barrier, suspendedTime: toWire(now) } });
    const message = "Deleting everything of this RayJob.";
    const note = `Suspending RayJob ${job.metadata.namespace}/${job.metadata.name}, whose retry waits`;
    return {
      summary: "suspend is set: no attempt follows",
      effects: [],
      status: withCondition(worded(next), now, "Suspended", false, "Suspending", message),
      events: [{ type: "Normal", reason: "Suspending", action: "Suspend", note }],
    };
  }
  const stood = secondsFrom(suspendedTime, now);
  const next = reviseRecord(status, record, {
    barrier: { ...barrier, suspendedSeconds: (barrier.suspendedSeconds ?? 0) + stood },
  });
  return {
    summary: "suspend was taken back: the next attempt follows",
    effects: [],
    status: withCondition(worded(next), now, "Suspended", false, "NotSuspended"),
    events: [],
  };
}

/** The time is up: the RayJob has failed, and the attempts have not overlapped. What is being deleted goes all the same. */
function giveUp(
  observed: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
  objects: readonly Stored[],
  now: Instant,
): Decision<RayCommand> {
  const length = observed.job.spec.retryStrategy?.blockingTimeoutSeconds;
  const names = enumerate(inOrder(objects));
  const message = `The retry was blocked for longer than blockingTimeoutSeconds, ${length}, because this did not go: ${names}.`;
  let next = revise(status, {
    jobDeploymentStatus: "Failed",
    reason: "RetryBlockedTimeoutExceeded",
    message,
    endTime: toWire(now),
  });
  next = reviseRecord(next, record, { barrier: { ...record.barrier, releasedTime: toWire(now) } });
  next = withCondition(next, now, "Retrying", false, "NotRetrying");
  next = withCondition(next, now, "Succeeded", false, "JobFailed", message);
  next = withCondition(next, now, "Failed", true, "RetryBlockedTimeout", message);
  next = withCondition(next, now, "ResourcesReleased", false, "InUse", `Still there: ${names}.`);
  return {
    summary: message,
    effects: [],
    status: next,
    events: [
      { type: "Warning", reason: "RetryBlocked", action: "Finish", note: message },
      ...endEvents(next, observed, record),
    ],
  };
}

/** The cache tells more (the node), the API server is right; while it has an owner, nobody has asked it for Pods. */
function agreed(cached: readonly Stored[], live: readonly Stored[]): readonly Stored[] {
  const uids = new Set(live.map(({ metadata }) => metadata.uid));
  const askedForPods = live.every(({ kind }) => kind === "Pod");
  const both = cached.filter(({ kind, metadata }) => uids.has(metadata.uid) || (kind === "Pod" && !askedForPods));
  return both.length > 0 ? both : live;
}
