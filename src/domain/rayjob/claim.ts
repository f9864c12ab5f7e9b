/**
 * Whether the attempt's job id is free on a selected cluster, before anything is submitted under it.
 *
 * Such a cluster has run other jobs and keeps their records, so an id that `spec.jobId` fixes may be taken. Ray is asked
 * before the submission is journalled: what Ray knows by then is not this attempt's. What an earlier attempt of this RayJob
 * left (a suspension) is deleted, once it has ended; anything else is somebody else's job, whose end is none of ours: the
 * attempt fails in words. Two RayJobs that want the same id at the same time are told apart by who started first.
 * May not: take a job over.
 */
import type { AttemptRecord, RayJobStatus } from "../../api/rayjob.ts";
import { type Decision, questionKey } from "../decision.ts";
import { sameButForNumbers } from "../rewording.ts";
import { type Duration, fromWire, type Instant, seconds, since, toWire } from "../time.ts";
import { findSubmitter, isStill, whereIsIt } from "./children.ts";
import { findCondition, withCondition } from "./conditions.ts";
import { failWith } from "./ending.ts";
import { STOP_AGAIN } from "./halt.ts";
import type { ObservedRayJob } from "./observe.ts";
import { isTerminal, type JobAnswer, type RayAnswer, type RayCommand, type RayTarget } from "./ray.ts";
import { currentRecord, statusOf } from "./records.ts";
import { revise } from "./status.ts";

const PATROL: Duration = seconds(2);
/**
 * Ray watches each job in a loop of a second (Ray 2.56, `_monitor_job`). Should the record of an ended one be another's
 * by the time the loop sees that its supervisor has gone, that other job is marked as failed. So the record stays a while.
 */
const WATCHED_FOR: Duration = seconds(10);

/** Ray answered about the job, known or not. */
type Heard = RayAnswer & { readonly job: Exclude<JobAnswer, { kind: "none" }> };

/** Undefined when the id is free: then the submission may be journalled. */
export function claim(
  observed: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
  answer: Heard,
  target: RayTarget,
  now: Instant,
): Decision<RayCommand> | undefined {
  const { forget } = observed.ray;
  if (answer.job.kind === "notFound") {
    const first = firstOf(observed, record);
    if (!first) return undefined;
    const message = `Job id ${record.jobId} is in use on RayCluster ${record.rayClusterName}: RayJob ${first.metadata.name} submits it. Give this RayJob a spec.jobId of its own, or none.`;
    return refuse(observed, status, record, message, now);
  }
  const { info } = answer.job;
  // What KubeRay has submitted before we came is ours.
  if (!observed.job.status?.attempts?.length || findSubmitter(observed, record).is === "ours") return undefined;
  if (!isOurs(observed, record, answer)) {
    const message = `Ray on RayCluster ${record.rayClusterName} has a job ${record.jobId} already (${info.status}), which this RayJob did not submit. Give the RayJob another spec.jobId, or delete that job's record (ray job delete).`;
    return refuse(observed, status, record, message, now);
  }
  const deleted = forget?.finishedAt !== undefined && answer.requestedAt < forget.finishedAt;
  const start = fromWire(status.jobStatusCheckFailureStartTime);
  const trouble = !isTerminal(info.status)
    ? `the earlier job ${record.jobId} still runs in Ray (${info.status}), and is being stopped`
    : forget?.result !== undefined && forget.result !== "done"
      ? `Ray does not delete the record of the earlier job ${record.jobId}: ${forget.message}`
      : undefined;
  if (trouble && start !== undefined && since(start, now) >= observed.settings.statusCheckTimeout) {
    return refuse(observed, status, record, `The job cannot be submitted: ${trouble}.`, now);
  }
  const quietAt = (fromWire(record.startTime) ?? now) + WATCHED_FOR;
  if (isTerminal(info.status) && forget === undefined && now < quietAt) {
    const summary = `Ray may still watch the earlier job ${record.jobId}; its record is deleted later`;
    return { summary, effects: [], events: [], wakeAt: quietAt };
  }
  // A later attempt may have submitted it by now, while this cache still shows an earlier one.
  const question = whereIsIt(observed);
  const live = observed.live.get(questionKey(question));
  if (!live) {
    return { summary: "is the RayJob still in this attempt?", effects: [], events: [], ask: [question] };
  }
  if (!isStill(observed, live[0])) {
    return { summary: "the cache lags behind the API server", effects: [], events: [], wakeAt: now + PATROL };
  }
  const what = isTerminal(info.status) ? "forget" : "stop";
  const why = "an earlier attempt left it, and its id is wanted again";
  return {
    summary: `${why}: ${record.jobId} (${info.status})`,
    effects: deleted || isAnswered(observed, what, answer) ? [] : [{ do: what, target, why }],
    status: trouble ? told(status, trouble, now) : status,
    events: [],
    wakeAt: now + PATROL,
  };
}

/** The command was sent, and has yet to show in what Ray says. */
function isAnswered({ ray }: ObservedRayJob, what: "stop" | "forget", answer: Heard): boolean {
  const before = ray[what];
  if (before === undefined) return false;
  return before.finishedAt === undefined || answer.requestedAt < before.finishedAt + STOP_AGAIN;
}

function told(status: RayJobStatus, trouble: string, now: Instant): RayJobStatus {
  const news = `Waiting, because ${trouble}.`;
  const known = findCondition(status, "Started")?.message;
  const message = known !== undefined && sameButForNumbers(known, news) ? known : news;
  const next = withCondition(status, now, "Started", false, "WaitingForSubmission", message);
  return revise(next, { jobStatusCheckFailureStartTime: status.jobStatusCheckFailureStartTime ?? toWire(now) });
}

/** An earlier attempt of this RayJob submitted it, into this very session. */
const isOurs = ({ job }: ObservedRayJob, record: AttemptRecord, { session }: Heard): boolean =>
  statusOf(job).attempts?.some(
    (earlier) =>
      earlier.number < record.number &&
      earlier.jobId === record.jobId &&
      earlier.rayClusterName === record.rayClusterName &&
      earlier.raySession === session &&
      earlier.submissionStartTime !== undefined,
  ) ?? false;

const UNDER_WAY: ReadonlySet<string | undefined> = new Set(["Initializing", "Waiting", "Running", "Suspending"]);

/** Another RayJob that wants the same id on the same cluster, and has begun to submit, or started earlier. */
function firstOf({ job, neighbours = [] }: ObservedRayJob, record: AttemptRecord) {
  const rank = (startTime: string | undefined, uid: string) => `${startTime} ${uid}`;
  const mine = rank(record.startTime, job.metadata.uid);
  return neighbours.find((other) => {
    const theirs = currentRecord({ job: other });
    if (other.metadata.uid === job.metadata.uid || theirs?.jobId !== record.jobId) return false;
    if (theirs?.rayClusterName !== record.rayClusterName) return false;
    if (!UNDER_WAY.has(statusOf(other).jobDeploymentStatus)) return false;
    return theirs?.submissionStartTime !== undefined || rank(theirs?.startTime, other.metadata.uid) < mine;
  });
}

function refuse(
  observed: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
  message: string,
  now: Instant,
): Decision<RayCommand> {
  const failure = { reason: "SubmissionFailed", cause: "SubmissionFailed", message } as const;
  return failWith(observed, status, record, failure, now);
}
