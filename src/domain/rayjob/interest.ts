/**
 * What the poller is to ask Ray about a RayJob, and how urgently.
 *
 * Answers: whether, how often, and since when an answer counts. The decision never waits for an answer; it says here
 * which one it would like.
 */
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJob } from "../../api/rayjob.ts";
import { fromWire, type Instant, seconds } from "../time.ts";
import { findCluster, isLeaving } from "./children.ts";
import { headFacts, readinessFor, targetOf } from "./cluster.ts";
import { activeDeadline, isBeingStopped, startDeadlines } from "./deadlines.ts";
import { mayRunOn } from "./halt.ts";
import { withToldId } from "./interactive.ts";
import { isElsewhere, type ObservedRayJob } from "./observe.ts";
import { isTerminal, type PollPace, type RayInterest, type RayTarget } from "./ray.ts";
import { aboutItFrom, currentRecord, statusOf } from "./records.ts";
import { isSidecar } from "./sidecar.ts";
import { submitterOf } from "./submitter.ts";
import { wantsSuspension } from "./suspend.ts";
import { DEAD_NODE_PATIENCE } from "./verdict.ts";

/** Close to a deadline its answer is wanted soon. */
const NEAR = seconds(15);

/** Undefined when there is nobody to ask. */
export function rayInterest(observed: ObservedRayJob, now: Instant): RayInterest | undefined {
  const { job } = observed;
  const record = currentRecord(observed);
  if (!record || isElsewhere(job)) return undefined;
  const found = findCluster(observed, record);
  const cluster = found.is === "ours" || found.is === "leftover" ? (found.object as Stored<RayCluster>) : undefined;
  const target = cluster ? targetOf(observed, withToldId(job, record), cluster) : undefined;
  if (!target || !cluster) return undefined;
  if (job.metadata.deletionTimestamp) {
    // Of an owned cluster, which goes anyway, commands' outcomes are still wanted, answers are not.
    return mayRunOn(observed, record) ? whileHalted(observed, target) : { target, pace: "off" };
  }
  const status = statusOf(job);
  switch (status.jobDeploymentStatus) {
    case "Initializing":
    case "Waiting": {
      if (found.is !== "ours") return undefined;
      if (!readinessFor(record, cluster, observed.pods).ready && !isToBeGivenUp(observed, record, now))
        return undefined;
      // Ray's record of an earlier attempt may have been deleted meanwhile (claim.ts).
      const forgotten = observed.ray.forget?.finishedAt ?? 0;
      const { changedAt } = headFacts(cluster, observed.pods, undefined);
      return { target, pace: "quick", notBefore: Math.max(changedAt, forgotten), ...occasionOf(job) };
    }
    case "Running":
      return isTerminal(status.jobStatus)
        ? { target, pace: "off" }
        : whileRunning(observed, record, cluster, target, now);
    case "Suspending":
      return mayRunOn(observed, record) ? whileHalted(observed, target) : undefined;
    default:
      return undefined;
  }
}

/** A sidecar may have submitted, though the cache does not show its head: Ray is asked before that is given up. */
const isToBeGivenUp = ({ job }: ObservedRayJob, record: AttemptRecord, now: Instant): boolean =>
  isSidecar(record) &&
  record.submissionStartTime !== undefined &&
  (wantsSuspension(job) || startDeadlines(job).some(({ at }) => now >= at));

/** Its end is wanted as soon as Ray has answered the stop. */
function whileHalted({ ray }: ObservedRayJob, target: RayTarget): RayInterest {
  return { target, pace: "quick", notBefore: ray.stop?.finishedAt };
}

function whileRunning(
  observed: ObservedRayJob,
  record: AttemptRecord,
  cluster: Stored<RayCluster>,
  target: RayTarget,
  now: Instant,
): RayInterest {
  const { job, pods, ray, settings } = observed;
  const status = statusOf(job);
  const head = headFacts(cluster, pods, record.headPodUID);
  const submitter = submitterOf(observed, record, head.pod);
  const submitterEnd = submitter.is === "finished" || submitter.is === "failed" ? submitter.at : undefined;
  const deadline = activeDeadline(job)?.at;
  const dead = fromWire(record.driverNodeDeadTime);
  const silent = fromWire(status.jobStatusCheckFailureStartTime);
  const facts = [
    head.changedAt,
    aboutItFrom(record),
    submitterEnd,
    ray.submit?.finishedAt === undefined ? undefined : ray.submit.finishedAt + 1,
    ray.stop?.finishedAt === undefined ? undefined : ray.stop.finishedAt + seconds(5),
    deadline,
    dead === undefined ? undefined : dead + DEAD_NODE_PATIENCE,
    silent === undefined ? undefined : silent + settings.statusCheckTimeout,
  ].filter((fact) => fact !== undefined);
  const calm =
    record.runningTime !== undefined &&
    ray.answer?.job.kind === "known" &&
    head.lost === undefined &&
    !isLeaving(cluster) &&
    (submitterEnd === undefined || (ray.answer?.requestedAt ?? 0) >= submitterEnd) &&
    dead === undefined &&
    silent === undefined &&
    !isBeingStopped(record) &&
    (deadline === undefined || now < deadline - NEAR);
  const pace: PollPace = calm ? "steady" : "quick";
  return { target, pace, notBefore: wanted(facts, ray.answer?.requestedAt ?? 0, now), ...occasionOf(job) };
}

const occasionOf = (job: RayJob): Pick<RayInterest, "occasion"> =>
  wantsSuspension(job) ? { occasion: "suspension" } : {};

/** The newest fact that no answer has met yet; else the next one to come. */
function wanted(facts: readonly Instant[], asked: Instant, now: Instant): Instant | undefined {
  const past = Math.max(...facts.filter((fact) => fact <= now));
  if (past > asked) return past;
  const next = Math.min(...facts.filter((fact) => fact > now));
  return Number.isFinite(next) ? next : Number.isFinite(past) ? past : undefined;
}
