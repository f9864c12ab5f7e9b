/**
 * The verdict on a running attempt.
 *
 * Answers: has the attempt ended, and how, from what Ray, the head Pod and the submitter show.
 * May not: fetch anything, read a clock, or let the submitter overrule Ray.
 * Next: run.ts applies the verdict; ending.ts writes the end down; retry.ts takes over when another attempt is allowed.
 */
import type { AttemptRecord, FailureCause, JobFailedReason } from "../../api/rayjob.ts";
import type { LiveQuestion } from "../decision.ts";
import type { Settings } from "../settings.ts";
import { type Duration, fromWire, type Instant, seconds, since } from "../time.ts";
import type { HeadFacts } from "./cluster.ts";
import { isTerminal, type RayAnswer, type RayJobInfo, type RayOutcome } from "./ray.ts";
import { aboutItFrom } from "./records.ts";
import type { Submitter } from "./submitter.ts";

/** How long a driver's node must look dead before the attempt is given up. Ray needs a few heartbeats to be sure. */
export const DEAD_NODE_PATIENCE = seconds(30);

export type Row = "a" | "b" | "c" | "d" | "e" | "f" | "g" | "h" | "i" | "j" | "k" | "cluster";

export type Verdict =
  /** Ray's own end of the job. */
  | { readonly row: Row; readonly kind: "ended"; readonly info: RayJobInfo }
  | {
      readonly row: Row;
      readonly kind: "failed";
      readonly reason: JobFailedReason;
      readonly cause: FailureCause;
      readonly message: string;
    }
  /** Ray has the job, and it goes on. */
  | { readonly row: Row; readonly kind: "carryOn"; readonly info: RayJobInfo }
  /** Ray does not have the job yet. `maySubmit`: its answer is fresh enough for a submission by the operator itself. */
  | { readonly row: "i"; readonly kind: "notSubmitted"; readonly maySubmit: boolean }
  /** Nothing to conclude yet. `silent`: Ray was asked and said nothing, so the status-check timer runs. */
  | { readonly row: Row; readonly kind: "wait"; readonly silent: boolean; readonly why: string }
  /** The cache shows that something is gone; the API server is asked before that is believed. */
  | { readonly row: Row; readonly kind: "ask"; readonly questions: readonly LiveQuestion[]; readonly why: string };

/** Everything the rows speak of, gathered by run.ts. */
export interface Evidence {
  readonly record: AttemptRecord;
  readonly head: HeadFacts;
  /** Head Pod's absence: what the API server itself says. */
  readonly headAbsence: "unasked" | "confirmed" | "refuted";
  readonly headQuestions: readonly LiveQuestion[];
  /** Why the RayCluster is gone or going, in words; undefined while it is there. */
  readonly clusterLost: string | undefined;
  readonly submitter: Submitter;
  readonly answer: RayAnswer | undefined;
  readonly submit: RayOutcome | undefined;
  /** Whether Redis or a volume keeps Ray's tables over the loss of a head. */
  readonly faultTolerant: boolean;
  /** `status.jobStatusCheckFailureStartTime`. */
  readonly silentSince: Instant | undefined;
  readonly settings: Settings;
}

interface RowRule {
  readonly row: Row;
  readonly when: (seen: Seen) => boolean;
  readonly give: (seen: Seen) => Verdict;
}

/** First match wins, so the order is the argument: Ray's own word before any sign that Ray is gone. */
const rows: readonly RowRule[] = [
  { row: "h", when: (s) => s.otherSession, give: (s) => lost("h", s) },
  { row: "a", when: (s) => isTerminal(s.info?.status), give: (s) => ({ row: "a", kind: "ended", info: s.info! }) },
  { row: "cluster", when: (s) => s.clusterLost !== undefined, give: clusterLost },
  { row: "c", when: (s) => s.running && s.nodeDead && s.nodeDeadFor >= DEAD_NODE_PATIENCE, give: nodeDead },
  { row: "b", when: (s) => s.running, give: (s) => ({ row: "b", kind: "carryOn", info: s.info! }) },
  { row: "e", when: (s) => s.pendingAgain, give: (s) => lost("e", s) },
  { row: "d", when: (s) => s.pending, give: (s) => ({ row: "d", kind: "carryOn", info: s.info! }) },
  { row: "h", when: (s) => s.notFound && s.observed, give: (s) => lost("h", s) },
  {
    row: "f",
    when: (s) => s.unknownAfterFailure,
    give: (s) => failed("f", "SubmissionFailed", "SubmissionFailed", s.failure!),
  },
  { row: "g", when: (s) => s.unknownAfterFinish, give: () => failed("g", "AppFailed", "SubmissionFailed", NOT_FOUND) },
  { row: "i", when: (s) => s.notFound, give: (s) => ({ row: "i", kind: "notSubmitted", maySubmit: s.maySubmit }) },
  { row: "j", when: (s) => s.headToBeConfirmed, give: askForHead },
  { row: "j", when: (s) => s.headLost && s.silent && !s.faultTolerant, give: headLost },
  {
    row: "j",
    when: (s) => s.headLost && s.silentFor < s.timeout,
    give: (s) => waitFor("j", s, `Ray is recovering: ${s.head.lost}`),
  },
  { row: "k", when: (s) => s.silent && s.silentFor >= s.timeout, give: silentTooLong },
  {
    row: "k",
    when: () => true,
    give: (s) => waitFor("k", s, s.error ?? "Ray has not been asked yet since the last change"),
  },
];

/**
 * The verdict on the current attempt at `now`.
 *
 * Total: every observation matches a row. An answer older than the facts it is held against counts as no answer,
 * because a reply that left Ray before the head died says nothing about the head.
 */
export function verdict(evidence: Evidence, now: Instant): Verdict {
  const seen = see(evidence, now);
  return rows.find((rule) => rule.when(seen))!.give(seen);
}

type Seen = ReturnType<typeof see>;

/** Names the facts that the rows speak of; no row computes anything itself. */
function see(evidence: Evidence, now: Instant) {
  const { record, head, submitter, submit, silentSince, settings } = evidence;
  // Where Ray's tables survive the head, an answer from before its loss stays true; the head is only a way to ask.
  const { answer } = evidence;
  const isAboutIt = answer?.job.kind !== "known" || answer.requestedAt >= aboutItFrom(record);
  const fresh = answer && isAboutIt && answer.requestedAt >= head.changedAt ? answer : undefined;
  const job = fresh?.job;
  const info = job?.kind === "known" ? job.info : undefined;
  const asked = fresh?.requestedAt ?? Number.NEGATIVE_INFINITY;
  const observed = record.observedTime !== undefined || submit?.result === "done";
  // "Not found", asked before the job was there, is no news: it is held against the last thing that put it there.
  const outdated = submit !== undefined && (submit.finishedAt === undefined || asked <= submit.finishedAt);
  const notFound = job?.kind === "notFound" && !(observed && outdated) && asked >= after(record.observedTime);
  const silent = job?.kind === "none";
  const deadSince = fromWire(record.driverNodeDeadTime);
  return {
    ...evidence,
    info,
    notFound,
    observed,
    silent,
    running: info?.status === "RUNNING",
    pending: info?.status === "PENDING" && record.runningTime === undefined,
    pendingAgain: info?.status === "PENDING" && record.runningTime !== undefined && asked >= after(record.runningTime),
    otherSession:
      fresh?.session !== undefined && record.raySession !== undefined && fresh.session !== record.raySession,
    nodeDead: fresh?.driverNode === "DEAD" || fresh?.driverNode === "MISSING",
    // Both ends of the time were looked at: the answer that is judged came after the patience was over.
    nodeDeadFor: deadSince === undefined ? 0 : Math.max(0, asked - deadSince),
    unknownAfterFailure: notFound && submitter.is === "failed" && asked >= submitter.at,
    unknownAfterFinish: notFound && submitter.is === "finished" && asked >= submitter.at,
    failure: submitter.is === "failed" ? submitter.message : undefined,
    maySubmit: notFound && !outdated && record.raySession !== undefined && fresh?.session === record.raySession,
    headLost: head.lost !== undefined && evidence.headAbsence !== "refuted",
    headToBeConfirmed: head.missing && silent && evidence.headAbsence === "unasked",
    silentFor: silentFor(silentSince, asked, now),
    timeout: settings.statusCheckTimeout,
    error: job?.kind === "none" ? job.error : undefined,
  };
}

/** A wire time is rounded down: the end of its second is surely not before what it tells of. */
const after = (wire: string | undefined): Instant => (fromWire(wire) ?? Number.NEGATIVE_INFINITY) + seconds(1);

/** Ray is asked before the timer is judged: silence lasts until the last question that stayed without answer. */
function silentFor(start: Instant | undefined, asked: Instant, now: Instant): Duration {
  return start === undefined ? 0 : Math.max(0, Math.min(asked, now) - start);
}

const NOT_FOUND = "Submitter completed but Ray job not found in RayCluster.";

function failed(row: Row, reason: JobFailedReason, cause: FailureCause, message: string): Verdict {
  return { row, kind: "failed", reason, cause, message };
}

function lost(row: Row, { head, record, answer, otherSession }: Seen): Verdict {
  const what = otherSession
    ? `Ray runs in another session (${answer?.session}) than the one the job was submitted to (${record.raySession})`
    : `Ray does not know job ${record.jobId} any more`;
  const why = head.lost ?? (head.lastEnd ? `head Pod ${head.pod?.metadata.name}: ${head.lastEnd}` : undefined);
  return failed(row, "AppFailed", "RayJobLost", `Ray lost the job: ${what}${why ? `; ${why}` : ""}.`);
}

function headLost({ head, record }: Seen): Verdict {
  return failed("j", "AppFailed", "HeadPodLost", `Ray lost the job ${record.jobId}: ${head.lost}.`);
}

function clusterLost({ clusterLost: how }: Seen): Verdict {
  return failed("cluster", "AppFailed", "RayClusterLost", `${how} while the job was running.`);
}

function nodeDead({ info, answer, nodeDeadFor }: Seen): Verdict {
  const state = answer?.driverNode === "DEAD" ? "dead" : "not in Ray's node list any more";
  const message = `The node of the job's driver, ${info?.driverNodeId ?? "unknown"}, has been ${state} for ${Math.floor(nodeDeadFor / 1000)} s.`;
  return failed("c", "AppFailed", "DriverNodeDead", message);
}

function askForHead({ headQuestions }: Seen): Verdict {
  return { row: "j", kind: "ask", questions: headQuestions, why: "is the head Pod really gone?" };
}

function silentTooLong({ silentSince, timeout, error }: Seen): Verdict {
  const when = new Date(silentSince ?? 0).toISOString().slice(0, 19).replace("T", " ");
  const message = `Job status checks have been failing since ${when}; exceeded timeout of ${since(0, timeout) / 1000}s. Last error: ${error}`;
  return failed("k", "JobStatusCheckTimeoutExceeded", "StatusCheckTimeout", message);
}

function waitFor(row: Row, { silent }: Seen, why: string): Verdict {
  return { row, kind: "wait", silent, why };
}
