/**
 * Retrying: between a failed attempt and the next.
 *
 * Answers: what is cleaned up, what is waited for, and when the next attempt may be journalled.
 * With strategy Recreate the RayCluster and the submitter Job are waited for, as KubeRay does; a Pod of theirs may still
 * be terminating when the next attempt begins.
 */
import type { Decision } from "../decision.ts";
import type { Instant } from "../time.ts";
import { awaitAbsence } from "./absence.ts";
import { beginAttempt } from "./attempt.ts";
import { withCondition } from "./conditions.ts";
import type { ObservedRayJob } from "./observe.ts";
import type { RayCommand } from "./ray.ts";
import { statusOf } from "./records.ts";
import { becomeSuspended, wantsSuspension } from "./suspend.ts";
import { validateRayJob } from "./validate.ts";

export function retry(observed: ObservedRayJob, now: Instant): Decision<RayCommand> {
  const suspend = wantsSuspension(observed.job);
  const waiting = awaitAbsence(observed, suspend ? "everything" : "owners", now, "Retrying");
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
