/**
 * What to do about a RayJob now: the entrance to everything in this folder.
 *
 * Answers: a `Decision` for every observation. A phase has a file; the table below is the state machine.
 * May not: fetch, wait, or remember. The same observation at the same time gives the same decision, and deciding again
 * after its own status was written gives a quiet one.
 */
import type { JobDeploymentStatus } from "../../api/rayjob.ts";
import type { Decision } from "../decision.ts";
import type { Instant } from "../time.ts";
import { cleanUp, highestNumber, strays } from "./children.ts";
import { findCondition, withCondition } from "./conditions.ts";
import { removal } from "./deletion.ts";
import { finish } from "./finish.ts";
import { isElsewhere, type ObservedRayJob } from "./observe.ts";
import type { RayCommand } from "./ray.ts";
import { currentRecord, nextNumber, statusOf } from "./records.ts";
import { retry } from "./retry.ts";
import { run } from "./run.ts";
import { begin, initialize, invalid } from "./start.ts";
import { revise, same } from "./status.ts";
import { suspended, suspending, wantsSuspension } from "./suspend.ts";
import { validateRayJob } from "./validate.ts";

type Phase = (observed: ObservedRayJob, now: Instant) => Decision<RayCommand>;

const phases: Readonly<Record<JobDeploymentStatus, Phase>> = {
  "": begin,
  ValidationFailed: begin,
  Suspended: (observed, now) => (wantsSuspension(observed.job) ? suspended(observed) : begin(observed, now)),
  Initializing: initialize,
  Waiting: initialize,
  Running: run,
  Retrying: retry,
  Suspending: suspending,
  Complete: finish,
  Failed: finish,
};

/** Phases in which an attempt exists, so that an edit which cannot be run is reported and otherwise ignored. */
const UNDER_WAY: readonly (JobDeploymentStatus | undefined)[] = [
  "Initializing",
  "Waiting",
  "Running",
  "Retrying",
  "Suspending",
];

/** Phases in which the current attempt's children may stay; in the others everything goes anyway. */
const KEEPS: readonly (JobDeploymentStatus | undefined)[] = [
  "Initializing",
  "Waiting",
  "Running",
  "Complete",
  "Failed",
];

export function decideRayJob(observed: ObservedRayJob, now: Instant): Decision<RayCommand> {
  const { job } = observed;
  if (isElsewhere(job)) return quiet(`managed by ${job.spec.managedBy}`);
  if (job.metadata.deletionTimestamp) return removal(observed, now);
  const phase = phases[statusOf(job).jobDeploymentStatus ?? ""];
  if (!phase) return quiet(`unknown phase ${statusOf(job).jobDeploymentStatus}`);
  const remembered = remember(observed);
  if (remembered) return settled(observed, remembered);
  return settled(observed, withoutStrays(observed, withSpecVerdict(observed, phase(observed, now), now)));
}

const quiet = (summary: string): Decision<RayCommand> => ({ summary, effects: [], events: [] });

/** Phases whose next step is another attempt, before which everything goes that tells the number of the last. */
const BETWEEN: readonly (JobDeploymentStatus | undefined)[] = [undefined, "", "Retrying", "Suspending", "Suspended"];

/** KubeRay, when it was gone back to, kept no number: then labels tell it, and it is written down before they go. */
function remember(observed: ObservedRayJob): Decision<RayCommand> | undefined {
  const status = statusOf(observed.job);
  if (status.executionAttempt !== undefined || status.attempts?.length) return undefined;
  if (!BETWEEN.includes(status.jobDeploymentStatus)) return undefined;
  const number = highestNumber(observed);
  if (number === undefined || number < nextNumber(observed)) return undefined;
  const summary = `no number of an attempt is written down, and there is something of attempt ${number}`;
  return { summary, effects: [], events: [], status: revise(status, { executionAttempt: number }) };
}

/** What is left of an earlier attempt goes; what was learnt is written first, since a deletion may be refused. */
function withoutStrays(observed: ObservedRayJob, decision: Decision<RayCommand>): Decision<RayCommand> {
  const { job } = observed;
  const record = currentRecord(observed);
  const begun = KEEPS.includes(statusOf(job).jobDeploymentStatus);
  const news = decision.status !== undefined && !same(decision.status, statusOf(job));
  if (!record || !begun || decision.ask || news) return decision;
  const effects = cleanUp(strays(observed, record), "it belongs to an earlier attempt");
  return effects.length > 0 ? { ...decision, effects: [...effects, ...decision.effects] } : decision;
}

/** `SpecValid` of a job that has started. Validation is repeated only when the spec has changed. */
function withSpecVerdict(observed: ObservedRayJob, decision: Decision<RayCommand>, now: Instant): Decision<RayCommand> {
  const { job } = observed;
  const before = statusOf(job);
  const known = findCondition(before, "SpecValid");
  // A correction, or the taking back, of what a resumption was refused for.
  const isTakenBack = before.jobDeploymentStatus === "Suspended" && wantsSuspension(job) && known?.status === "False";
  if (decision.ask || !(UNDER_WAY.includes(before.jobDeploymentStatus) || isTakenBack)) return decision;
  if (known && before.observedGeneration === job.metadata.generation) return decision;
  const problem = validateRayJob(job, observed.settings);
  const status = decision.status ?? before;
  const told = problem
    ? withCondition(status, now, "SpecValid", false, "Invalid", problem.text)
    : withCondition(status, now, "SpecValid", true, "Valid");
  const news = problem !== undefined && known?.message !== problem.text;
  return {
    ...decision,
    status: revise(told, { observedGeneration: job.metadata.generation }),
    events: news ? [...decision.events, invalid(job, problem)] : decision.events,
  };
}

/** No difference, no write; and whatever is written tells which generation of the spec it was decided from. */
function settled({ job, refused }: ObservedRayJob, decision: Decision<RayCommand>): Decision<RayCommand> {
  const { status, ...rest } = decision;
  const before = statusOf(job);
  if (status === undefined || same(status, before)) return rest;
  const next = revise(status, { observedGeneration: job.metadata.generation });
  // A refusal is told before the same is tried again: the status of a pass that fails is not written.
  return refused?.length ? { ...rest, effects: [], status: next } : { ...rest, status: next };
}
