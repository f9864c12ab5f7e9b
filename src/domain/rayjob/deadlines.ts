/**
 * Deadlines: when they pass, and what happens when one passes while the job may be running.
 *
 * A deadline is noticed only after Ray has been asked (the job may have ended in time while nobody looked), and it is
 * journalled before anything is stopped: from then on the attempt is being stopped, whatever spec says later. The Ray
 * job and the submitter are stopped, Ray's word is waited for, but not for ever, and the rest is cleaned up by policy.
 * On a selected cluster, which stays, the submitter goes first, and longer is waited (halt.ts).
 */
import type { AttemptRecord, RayJob, RayJobStatus } from "../../api/rayjob.ts";
import type { Decision, Effect } from "../decision.ts";
import { type Duration, earliest, fromWire, type Instant, seconds, toWire } from "../time.ts";
import { deleteSubmitter, isLeaving } from "./children.ts";
import { endWith, type Failure, failWith } from "./ending.ts";
import { halt, STOP_AGAIN } from "./halt.ts";
import type { ObservedRayJob } from "./observe.ts";
import type { RayAnswer, RayCommand, RayJobInfo, RayTarget } from "./ray.ts";
import { isSelected, statusOf } from "./records.ts";
import { revise, reviseRecord } from "./status.ts";
import type { Submitter } from "./submitter.ts";
import type { Verdict } from "./verdict.ts";

/** How long a stopped job may take until Ray says so. Ray itself gives a driver three seconds. */
export const STOP_PATIENCE: Duration = seconds(30);
/** How long an answer about the deadline is waited for before it is noticed without one. */
const ASK_PATIENCE: Duration = seconds(30);
/** A submitter that was told to go has gone after so long, and submits nothing any more. */
const SUBMITTER_GONE: Duration = seconds(5);

export interface Deadline {
  readonly at: Instant;
  readonly failure: Failure;
}

/** `activeDeadlineSeconds`: from the start of the attempt, in every phase in which something of it exists. */
export function activeDeadline(job: RayJob): Deadline | undefined {
  const length = job.spec.activeDeadlineSeconds;
  return deadline(job, length, {
    reason: "DeadlineExceeded",
    cause: "DeadlineExceeded",
    message: `The RayJob has passed the activeDeadlineSeconds. StartTime: ${printed(job)}. ActiveDeadlineSeconds: ${length}`,
  });
}

/** `preRunningDeadlineSeconds`: from the start of the attempt until it is Running. */
export function preRunningDeadline(job: RayJob): Deadline | undefined {
  const length = job.spec.preRunningDeadlineSeconds;
  return deadline(job, length, {
    reason: "PreRunningDeadlineExceeded",
    cause: "PreRunningDeadlineExceeded",
    message: `The RayJob has passed the preRunningDeadlineSeconds. StartTime: ${printed(job)}. PreRunningDeadlineSeconds: ${length}`,
  });
}

/** Those that count before the attempt is Running. */
export const startDeadlines = (job: RayJob): readonly Deadline[] =>
  [activeDeadline(job), preRunningDeadline(job)].filter((deadline) => deadline !== undefined);

function deadline(job: RayJob, length: number | undefined, failure: Failure): Deadline | undefined {
  const start = fromWire(statusOf(job).startTime);
  // An edit to a length that validation refuses is reported there, and ignored here.
  if (length === undefined || length <= 0 || start === undefined) return undefined;
  return { at: start + seconds(length), failure };
}

/** As Go prints a time; tools of KubeRay's users match on it. */
const printed = (job: RayJob): string => {
  const start = fromWire(statusOf(job).startTime) ?? 0;
  return `${new Date(start).toISOString().slice(0, 19).replace("T", " ")} +0000 UTC`;
};

/**
 * Whether a passed deadline may be noticed now: Ray was asked after it passed, or could not be asked in time. An operator
 * that has just started asks first, however long ago the deadline was. `askable`: somebody asks; silence is an answer.
 */
export function mayNotice({ at }: Deadline, answer: RayAnswer | undefined, askable: boolean, now: Instant): boolean {
  if (now < at || (askable && answer === undefined)) return false;
  return (answer !== undefined && answer.requestedAt >= at) || now >= at + ASK_PATIENCE;
}

/** Journals that the deadline has passed; the attempt is being stopped from here on. */
export function notice(
  status: RayJobStatus,
  record: AttemptRecord,
  { failure }: Deadline,
  now: Instant,
): Decision<RayCommand> {
  const { reason, cause, message } = failure;
  return {
    summary: message,
    effects: [],
    status: revise(reviseRecord(status, record, { endTime: toWire(now), reason: cause, message }), { reason, message }),
    events: [{ type: "Warning", reason: "DeadlineExceeded", action: "Stop", note: message }],
  };
}

/** Whether the current attempt, in phase Running, is being stopped because of its deadline. */
export const isBeingStopped = (record: AttemptRecord): boolean =>
  record.endTime !== undefined && record.reason === "DeadlineExceeded";

/** A pass of stopping: either the attempt has ended, or what still runs is told to. */
export function stopping(
  observed: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
  verdict: Verdict,
  submitter: Submitter,
  target: RayTarget | undefined,
  now: Instant,
): Decision<RayCommand> {
  const since = fromWire(record.endTime) ?? now;
  const failure: Failure = {
    reason: "DeadlineExceeded",
    cause: "DeadlineExceeded",
    message: record.message ?? "The RayJob has passed the activeDeadlineSeconds.",
  };
  const ended = endOf(record, verdict, observed, submitter, target, since, now);
  const halted =
    ended || !isSelected(record) ? undefined : halt(observed, record, since, "its deadline has passed", now);
  if (halted?.is === "under way") return { ...halted.decision, status };
  const end = halted ? { confirmed: halted.event?.type !== "Warning", info: halted.info } : ended;
  // It finished its work before the stop reached it: that work counts.
  if (end?.info?.status === "SUCCEEDED") return endWith(observed, status, record, end.info, now);
  if (end) {
    const note =
      halted?.event?.note ??
      (end.confirmed
        ? "Ray stopped the job"
        : `Ray did not confirm within ${STOP_PATIENCE / 1000} s that the job has stopped`);
    return failWith(observed, status, record, failure, now, {
      jobStatus: end.info?.status,
      events: [
        end.confirmed
          ? { type: "Normal", reason: "RayJobStopped", action: "Stop", note }
          : { type: "Warning", reason: "RayJobStopUnconfirmed", action: "Stop", note },
      ],
    });
  }
  return {
    summary: "stopping the job, because its deadline has passed",
    effects: stops(observed, submitter, target),
    status,
    events: [],
    wakeAt: earliest(since + STOP_PATIENCE, now + seconds(2)),
  };
}

function endOf(
  record: AttemptRecord,
  verdict: Verdict,
  { ray }: ObservedRayJob,
  submitter: Submitter,
  target: RayTarget | undefined,
  since: Instant,
  now: Instant,
): { readonly confirmed: boolean; readonly info?: RayJobInfo } | undefined {
  if (verdict.kind === "ended") return { confirmed: true, info: verdict.info };
  // Silence that has lasted too long is no word.
  if (verdict.kind === "failed" && verdict.row !== "k") return { confirmed: true };
  // What becomes of a job that outlives its attempt's end is for halt.ts to see.
  if (isSelected(record)) return undefined;
  const gone = submitter.is === "absent" || submitter.is === "finished" || submitter.is === "failed";
  const asked = ray.answer?.requestedAt ?? 0;
  if (verdict.kind === "notSubmitted" && gone && !isUnderWay(ray.submit) && asked >= since + SUBMITTER_GONE) {
    return { confirmed: true };
  }
  return isInVain(ray, target, since, now) ? { confirmed: false } : undefined;
}

/**
 * Whether no word of Ray's is to be expected any more. Ray was told to stop and asked about it afterwards, however long
 * ago the deadline was noticed: an operator that has just started does both before it gives up.
 */
function isInVain(
  { stop, answer }: ObservedRayJob["ray"],
  target: RayTarget | undefined,
  since: Instant,
  now: Instant,
): boolean {
  if (now < since + STOP_PATIENCE) return false;
  return !target || (stop?.finishedAt !== undefined && (answer?.requestedAt ?? 0) >= stop.finishedAt + STOP_AGAIN);
}

const isUnderWay = (outcome: ObservedRayJob["ray"]["submit"]): boolean =>
  outcome !== undefined && outcome.finishedAt === undefined;

function stops({ ray }: ObservedRayJob, submitter: Submitter, target: RayTarget | undefined): Effect<RayCommand>[] {
  const effects: Effect<RayCommand>[] = [];
  const why = "its deadline has passed";
  const job = submitter.is === "working" ? submitter.object : undefined;
  if (job && !isLeaving(job)) effects.push(deleteSubmitter(job, why));
  if (target && mayStop(ray)) effects.push({ do: "stop", target, why });
  return effects;
}

/** Once, and again when Ray still had the job some time after a stop had been answered. */
function mayStop({ stop, answer }: ObservedRayJob["ray"]): boolean {
  if (stop === undefined) return true;
  return stop.finishedAt !== undefined && (answer?.requestedAt ?? 0) >= stop.finishedAt + STOP_AGAIN;
}
