/**
 * Retrying: between a failed attempt and the next.
 *
 * Answers: what is cleaned up, what is waited for, and when the next attempt may be journalled.
 * With strategy Recreate the RayCluster and the submitter Job are waited for, as KubeRay does; a Pod of theirs may still
 * be terminating when the next attempt begins.
 */
import type { Decision } from "../decision.ts";
import { type Instant, seconds } from "../time.ts";
import { beginAttempt } from "./attempt.ts";
import { cleanUp, type Extent, enumerate, left, proof, proofOfAbsence, remains } from "./children.ts";
import { withCondition } from "./conditions.ts";
import type { ObservedRayJob } from "./observe.ts";
import type { RayCommand } from "./ray.ts";
import { currentRecord, statusOf } from "./records.ts";
import { becomeSuspended, wantsSuspension } from "./suspend.ts";
import { validateRayJob } from "./validate.ts";

export function retry(observed: ObservedRayJob, now: Instant): Decision<RayCommand> {
  const suspend = wantsSuspension(observed.job);
  const waiting = awaitAbsence(observed, suspend ? "everything" : "owners", now);
  if (waiting) return waiting;
  const status = statusOf(observed.job);
  if (suspend) return becomeSuspended(observed, status, now);
  const problem = validateRayJob(observed.job);
  if (problem) {
    const message = `The next attempt waits for a valid spec. ${problem.text}`;
    return {
      summary: message,
      effects: [],
      status: withCondition(status, now, "Retrying", true, "SpecInvalid", message),
      events: [],
    };
  }
  return beginAttempt(observed, now);
}

/** Deletes what is left of the last attempt and waits for it to be gone; undefined when it surely is. */
export function awaitAbsence(observed: ObservedRayJob, extent: Extent, now: Instant): Decision<RayCommand> | undefined {
  const record = currentRecord(observed);
  const some = remains(observed, record);
  const rest = left(some, extent);
  const effects = cleanUp(some, "it belongs to an attempt that is over");
  if (rest.length > 0 || effects.length > 0) {
    return { summary: `waiting for ${enumerate(rest)} to be gone`, effects, events: [] };
  }
  const questions = proofOfAbsence(observed, record, extent);
  const proven = proof(observed, questions);
  if (proven === "unasked") return { summary: "is really nothing left?", effects: [], events: [], ask: questions };
  if (proven.left > 0)
    return { summary: "the cache lags: something is left", effects: [], events: [], wakeAt: now + seconds(1) };
  return undefined;
}
