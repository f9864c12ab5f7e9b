/**
 * Stops the Ray job of an attempt whose RayCluster stays: a selected one, which outlives the RayJob.
 *
 * Answers: what is to be done next until Ray says that nothing of the job runs; or that it did not say so in time.
 * The order is the point: the submitter and its Pods are gone first, else a late submission follows the stop; then Ray is
 * asked to stop; then Ray's own word is waited for. All of it takes a bounded time, from an instant that is persisted
 * (a deletion, a deadline that was noticed, a suspension that has begun). An operator that comes later than that still
 * asks Ray once.
 * May not: touch the RayCluster, or say what follows. deletion.ts, suspend.ts and deadlines.ts do.
 */
import type { Pod } from "../../api/kubernetes.ts";
import { LABEL } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord } from "../../api/rayjob.ts";
import { type Decision, type EventSpec, type LiveQuestion, questionKey } from "../decision.ts";
import { type Duration, earliest, type Instant, seconds } from "../time.ts";
import { enumerate } from "./absence.ts";
import {
  deleteSubmitter,
  findCluster,
  isLeaving,
  isStill,
  ownerUID,
  proof,
  proofOfAbsence,
  type Remains,
  remains,
  whereIsIt,
} from "./children.ts";
import { targetOf } from "./cluster.ts";
import { findCondition } from "./conditions.ts";
import { isInteractive } from "./interactive.ts";
import type { ObservedRayJob } from "./observe.ts";
import { isTerminal, type RayCommand, type RayJobInfo } from "./ray.ts";
import { aboutItFrom, isSelected, statusOf } from "./records.ts";

/** From the beginning to the end of it all, whatever Ray says. */
export const HALT_PATIENCE: Duration = seconds(60);
/** For Ray's answer to a stop; kept free of the above for the last one. */
const ANSWER_PATIENCE: Duration = seconds(15);
/** A submission that was under way when nobody submitted any more has arrived after so long, or never will. */
const LATE_SUBMISSION: Duration = seconds(15);
/** A stop that was not taken, or seems to have done nothing, is sent again after so long. */
export const STOP_AGAIN: Duration = seconds(5);
const PATROL: Duration = seconds(2);

export type Halt =
  | { readonly is: "under way"; readonly decision: Decision<RayCommand> }
  /** Ray has nothing of it, or nothing was ever given to Ray. `info`: how the job ended, where Ray says it. */
  | { readonly is: "over"; readonly why: string; readonly event?: EventSpec; readonly info?: RayJobInfo };

/** Whether Ray may still run the job of an attempt on a selected cluster, by all that is written down. */
export function mayRunOn({ job }: ObservedRayJob, record: AttemptRecord | undefined): record is AttemptRecord {
  if (!record || !isSelected(record)) return false;
  if (record.submissionStartTime === undefined && record.observedTime === undefined) return false;
  if (!isTerminal(record.jobStatus ?? statusOf(job).jobStatus)) return true;
  // FAILED is written, too, where Ray was given up; Ray may not have given up.
  const failure = findCondition(statusOf(job), "Failed");
  return failure?.status === "True" && !RAYS_OWN_WORD.has(failure.reason);
}

/** Causes after which Ray itself holds the end of the job. */
export const RAYS_OWN_WORD: ReadonlySet<string> = new Set(["ApplicationFailed", "ApplicationStopped"]);

export function halt(observed: ObservedRayJob, record: AttemptRecord, since: Instant, why: string, now: Instant): Halt {
  if (!mayRunOn(observed, record)) return { is: "over", why: "nothing of it runs in Ray" };
  const found = findCluster(observed, record);
  if (found.is === "absent") {
    const { namespace = "" } = observed.job.metadata;
    const question: LiveQuestion = { ask: "get", kind: "RayCluster", namespace, name: record.rayClusterName ?? "" };
    const answer = observed.live.get(questionKey(question));
    if (!answer) return underWay("is the RayCluster really gone?", { ask: [question] });
    if (answer.length > 0 && now < since + HALT_PATIENCE + ANSWER_PATIENCE) {
      return underWay("the cache lags: the RayCluster is there", { wakeAt: now + seconds(1) });
    }
    if (answer.length > 0) return unconfirmed(observed, record);
  }
  const cluster = found.is === "ours" ? (found.object as Stored<RayCluster>) : undefined;
  const target = targetOf(observed, record, cluster);
  if (!cluster || !target) return { is: "over", why: "its RayCluster is gone, and the job with it" };

  const end = wordOf(observed, record, since);
  if (end) return { is: "over", ...end, event: stopped(`Job ${target.jobId} runs no more: ${end.why}`) };
  const { stop } = observed.ray;
  const last = since + HALT_PATIENCE - ANSWER_PATIENCE;
  if (stop === undefined && now < last) {
    const waiting = withoutSubmitter(observed, record, last, now);
    if (waiting) return waiting;
  }
  const bound = stop && Math.max(since + HALT_PATIENCE, stop.startedAt + ANSWER_PATIENCE);
  if (bound !== undefined && now >= bound) return unconfirmed(observed, record);
  const asks = stop === undefined || (now < last && isDue(observed, now));
  // A job id that spec.jobId fixes may be a later attempt's by now: to stop that would be to kill what is meant to run.
  const question = whereIsIt(observed);
  const live = asks ? observed.live.get(questionKey(question)) : undefined;
  if (asks && !live) return underWay("is the RayJob still where the cache shows it?", { ask: [question] });
  if (live && !isStill(observed, live[0])) {
    return underWay("the cache lags behind the API server", { wakeAt: now + seconds(1) });
  }
  return underWay(asks ? "asking Ray to stop the job" : "waiting until Ray says that the job runs no more", {
    // At the last moment also beside a submitter that does not go.
    effects: [...leave(submitterOf(observed, record), why), ...(asks ? [{ do: "stop", target, why } as const] : [])],
    wakeAt: earliest(bound, now + PATROL),
  });
}

const underWay = (summary: string, changes: Partial<Decision<RayCommand>>): Halt => ({
  is: "under way",
  decision: { summary, effects: [], events: [], ...changes },
});

/** Undefined when the submitter and its Pods are gone for sure, and no submission of the operator's own is under way. */
function withoutSubmitter(
  observed: ObservedRayJob,
  record: AttemptRecord,
  last: Instant,
  now: Instant,
): Halt | undefined {
  const { submit } = observed.ray;
  const wakeAt = earliest(last, now + PATROL);
  if (submit && submit.finishedAt === undefined) return underWay("a submission is under way", { wakeAt });
  if (record.submissionMode === "HTTPMode" || isInteractive(record)) return undefined;
  const some = submitterOf(observed, record);
  const rest = [...some.jobs, ...some.pods];
  if (rest.length > 0) {
    const effects = leave(some, "the Ray job is being stopped, and nothing may be submitted any more");
    return underWay(`waiting for ${enumerate(rest)} to be gone, before Ray is asked to stop the job`, {
      effects,
      wakeAt,
    });
  }
  const said = proof(observed, proofOfAbsence(observed, record, "everything"));
  if ("ask" in said) return underWay("is the submitter really gone?", { ask: said.ask });
  return said.left.length > 0
    ? underWay("the cache lags: a submitter is left", { wakeAt: now + seconds(1) })
    : undefined;
}

/** Of the RayJob's own objects, what might submit. */
function submitterOf(observed: ObservedRayJob, record: AttemptRecord): Pick<Remains, "jobs" | "pods"> {
  const { jobs, pods } = remains(observed, record);
  const isRays = (pod: Pod): boolean => pod.metadata?.labels?.[LABEL.nodeType] !== undefined;
  return {
    jobs: jobs.filter((job) => ownerUID(job) === observed.job.metadata.uid),
    pods: pods.filter((pod) => !isRays(pod)),
  };
}

const leave = ({ jobs }: Pick<Remains, "jobs">, why: string) =>
  jobs.filter((job) => !isLeaving(job)).map((job) => deleteSubmitter(job, why));

/** Ray's own word that nothing of the job runs; undefined while it has not said so. */
function wordOf(
  { ray: { answer, stop, submit } }: ObservedRayJob,
  record: AttemptRecord,
  since: Instant,
): { readonly why: string; readonly info?: RayJobInfo } | undefined {
  if (!answer) return undefined;
  const { job, session, requestedAt } = answer;
  if (session !== undefined && record.raySession !== undefined && session !== record.raySession) {
    return { why: `Ray runs in another session (${session}) than the one it was submitted to` };
  }
  if (job.kind === "known") {
    if (requestedAt < aboutItFrom(record)) return undefined;
    return isTerminal(job.info.status) ? { why: `Ray says ${job.info.status}`, info: job.info } : undefined;
  }
  if (job.kind === "none" || stop?.finishedAt === undefined || requestedAt < stop.finishedAt) return undefined;
  // "Not found" of a job that Ray has never told of may be said before the submission arrives.
  const arrived = Math.max(since, submit?.finishedAt ?? since) + LATE_SUBMISSION;
  return record.observedTime !== undefined || requestedAt >= arrived ? { why: "Ray does not know it" } : undefined;
}

/** Whether a stop is to be repeated: Ray did not take it, or still had the job a while after. */
function isDue({ ray: { stop, answer } }: ObservedRayJob, now: Instant): boolean {
  if (stop?.finishedAt === undefined) return false;
  if (stop.result !== "done") return now >= stop.finishedAt + STOP_AGAIN;
  return answer?.job.kind === "known" && answer.requestedAt >= stop.finishedAt + STOP_AGAIN;
}

function unconfirmed({ ray: { stop, answer } }: ObservedRayJob, { jobId, rayClusterName }: AttemptRecord): Halt {
  const said =
    answer?.job.kind === "known"
      ? `Ray said ${answer.job.info.status} last`
      : answer?.job.kind === "none"
        ? `Ray does not answer: ${answer.job.error}`
        : (stop?.message ?? "Ray did not answer");
  const note = `Ray did not confirm that job ${jobId} on RayCluster ${rayClusterName} has stopped (${said}); it may still run there`;
  return {
    is: "over",
    why: "Ray did not confirm the stop in time",
    event: { type: "Warning", reason: "RayJobStopUnconfirmed", action: "Stop", note },
  };
}

const stopped = (note: string): EventSpec => ({ type: "Normal", reason: "RayJobStopped", action: "Stop", note });
