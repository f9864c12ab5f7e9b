/**
 * Retrying: between a failed attempt and the next.
 *
 * Answers: what is cleaned up, what is waited for, and when the next attempt may be journalled.
 * With strategy Recreate the RayCluster and the submitter Job are waited for, as KubeRay does; a Pod of theirs may still
 * be terminating when the next attempt begins. With BlockingRecreate nothing may exist any more (barrier.ts).
 */
import type { Decision } from "../decision.ts";
import type { Instant } from "../time.ts";
import { awaitAbsence } from "./absence.ts";
import { beginAttempt } from "./attempt.ts";
import { atBarrier, heldOpen, isBlocking, released } from "./barrier.ts";
import { letGo, remains } from "./children.ts";
import { withCondition } from "./conditions.ts";
import type { ObservedRayJob } from "./observe.ts";
import type { RayCommand } from "./ray.ts";
import { currentRecord } from "./records.ts";
import { becomeSuspended, wantsSuspension } from "./suspend.ts";
import { validateRayJob } from "./validate.ts";

export function retry(observed: ObservedRayJob, now: Instant): Decision<RayCommand> {
  const blocking = isBlocking(observed.job);
  const waiting = blocking ? atBarrier(observed, now) : recreate(observed, now);
  if (waiting) return waiting;
  return next(observed, blocking ? "nothing of it is left" : "retryStrategy.type is Recreate now", now);
}

function recreate(observed: ObservedRayJob, now: Instant): Decision<RayCommand> | undefined {
  const suspend = wantsSuspension(observed.job);
  // The barrier that stood here until the strategy was changed deleted in the foreground: owners would wait for Pods.
  const held = suspend ? [] : letGo(remains(observed, currentRecord(observed)), "its Pods are not waited for any more");
  if (held.length > 0 && wasBlocking(observed)) {
    return { summary: "the strategy is Recreate now: the barrier opens", effects: held, events: [] };
  }
  return awaitAbsence(observed, suspend ? "everything" : "owners", now, "Retrying");
}

const wasBlocking = (observed: ObservedRayJob): boolean => {
  const record = currentRecord(observed);
  return record?.retryStrategy === "BlockingRecreate" || record?.barrier !== undefined;
};

/** Nothing is in the way: the next attempt, unless it is not wanted, or not to be run. */
function next(observed: ObservedRayJob, why: string, now: Instant): Decision<RayCommand> {
  const { status, events } = released(observed, why, now);
  const after = { ...observed, job: { ...observed.job, status } };
  const also = (decision: Decision<RayCommand>) => ({ ...decision, events: [...events, ...decision.events] });
  if (wantsSuspension(observed.job)) return also(becomeSuspended(after, status, now));
  const problem = validateRayJob(observed.job, observed.settings);
  if (!problem) return also(beginAttempt(after, now));
  const message = `The next attempt waits for a valid spec. ${problem.text}`;
  return also({
    summary: message,
    effects: [],
    status: withCondition(heldOpen(after, now), now, "Retrying", true, "SpecInvalid", message),
    events: [],
  });
}
