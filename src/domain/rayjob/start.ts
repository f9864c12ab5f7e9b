/**
 * The start of an attempt: New, Initializing, and Waiting.
 *
 * Three writes, in this order, each a pass of its own: the finalizer; the attempt's record; the RayCluster. Then, when
 * the cluster is ready and Ray has told its session, the record gets session and head Pod, and the phase is Running.
 * Nothing has been submitted before that; save in SidecarMode, where the head submits as soon as it runs, and nobody waits
 * for the workers. There the record says that the submission has begun when the RayCluster is seen, and no head is made
 * before (raycluster/journalFirst.ts). So it is known at any time whether there may have been one. In InteractiveMode the
 * ready cluster waits for its user (phase Waiting), who submits when and how he likes, and tells the job's id; from then on
 * the attempt is in Ray's hands, as any other.
 * Next: run.ts.
 */
import type { Pod } from "../../api/kubernetes.ts";
import { FINALIZER } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJobStatus } from "../../api/rayjob.ts";
import { type Decision, type LiveQuestion, questionKey } from "../decision.ts";
import { headInVain } from "../raycluster/failures.ts";
import { dashboardAddress } from "../raycluster/names.ts";
import { earliest, fromWire, type Instant, seconds, toWire } from "../time.ts";
import { awaitAbsence } from "./absence.ts";
import { beginAttempt } from "./attempt.ts";
import { isBlocking } from "./barrier.ts";
import { findCluster, isStill, left, remains } from "./children.ts";
import { claim } from "./claim.ts";
import {
  beingSubmitted,
  CLUSTER_REFUSED,
  createCluster,
  headFacts,
  headQuestion,
  headsOf,
  lossOfOneHead,
  mirror,
  readinessFor,
  targetOf,
  upText,
} from "./cluster.ts";
import { findCondition, isTrue, withCondition } from "./conditions.ts";
import { type Deadline, mayNotice, startDeadlines } from "./deadlines.ts";
import { type Failure, failWith } from "./ending.ts";
import { formerOf, isInteractive, withToldId } from "./interactive.ts";
import type { ObservedRayJob } from "./observe.ts";
import { isTerminal, type RayAnswer, type RayCommand } from "./ray.ts";
import { currentRecord, isSelected, nextNumber, statusOf } from "./records.ts";
import { isSidecar } from "./sidecar.ts";
import { revise, reviseRecord } from "./status.ts";
import { becomeSuspended, enterSuspending, suspended, wantsSuspension } from "./suspend.ts";
import { type Problem, validateRayJob } from "./validate.ts";

const PATROL = seconds(2);
const STRANGER_PATROL = seconds(30);

/** No attempt under way: a new RayJob, one whose spec was refused, or one that is suspended and shall go on. */
export function begin(observed: ObservedRayJob, now: Instant): Decision<RayCommand> {
  const { job } = observed;
  const problem = validateRayJob(job, observed.settings);
  const started = nextNumber(observed) > 0 || currentRecord(observed) !== undefined;
  if (problem && started && statusOf(job).jobDeploymentStatus === "Suspended")
    return staySuspended(observed, problem, now);
  if (problem) return refuse(observed, problem, now);
  if (wantsSuspension(job)) {
    const waiting = started ? awaitAbsence(observed, "everything", now) : undefined;
    return waiting ?? becomeSuspended(observed, withCondition(statusOf(job), now, "SpecValid", true, "Valid"), now);
  }
  if (!job.metadata.finalizers?.includes(FINALIZER.rayJob)) return addFinalizer(observed);
  const some = remains(observed, currentRecord(observed));
  // Resumed, it meets the barrier, too.
  const extent = isBlocking(job) ? "everything" : "owners";
  const showIn = isBlocking(job) && statusOf(job).jobDeploymentStatus === "Suspended" ? "Suspended" : undefined;
  const waiting = started || left(some, extent).length > 0 ? awaitAbsence(observed, extent, now, showIn) : undefined;
  return waiting ?? beginAttempt(observed, now);
}

/** Resumed with a spec that cannot be run, after an attempt: the next one waits, as it does in Retrying. */
function staySuspended(observed: ObservedRayJob, problem: Problem, now: Instant): Decision<RayCommand> {
  const { job } = observed;
  const known = findCondition(statusOf(job), "SpecValid");
  const news = known?.status !== "False" || known.message !== problem.text;
  return {
    ...suspended(observed),
    summary: `the next attempt waits for a valid spec: ${problem.text}`,
    status: withCondition(statusOf(job), now, "SpecValid", false, "Invalid", problem.text),
    events: news ? [invalid(job, problem)] : [],
  };
}

/** A spec that cannot be run: said once for each different reason. A corrected one starts afresh. */
function refuse({ job }: ObservedRayJob, problem: Problem, now: Instant): Decision<RayCommand> {
  const status = statusOf(job);
  let next = revise(status, {
    jobDeploymentStatus: "ValidationFailed",
    reason: "ValidationFailed",
    message: problem.text,
    endTime: status.jobDeploymentStatus === "ValidationFailed" ? status.endTime : toWire(now),
  });
  next = withCondition(next, now, "SpecValid", false, "Invalid", problem.text);
  next = withCondition(next, now, "Failed", true, "ValidationFailed", problem.text);
  if (isTrue(next, "Suspended")) next = withCondition(next, now, "Suspended", false, "NotSuspended");
  return {
    summary: problem.text,
    effects: [],
    status: next,
    events: status.message === problem.text ? [] : [invalid(job, problem)],
  };
}

export const invalid = (job: ObservedRayJob["job"], problem: Problem) =>
  ({
    type: "Warning",
    reason: `InvalidRayJob${problem.of}`,
    action: "Validate",
    note: `${job.metadata.namespace}/${job.metadata.name}: ${problem.text}`,
  }) as const;

function addFinalizer({ job }: ObservedRayJob): Decision<RayCommand> {
  const { namespace = "", name, uid, resourceVersion, finalizers = [] } = job.metadata;
  return {
    summary: "adding the finalizer, so that a deletion stops the Ray job first",
    effects: [
      {
        do: "patch",
        ref: { kind: "RayJob", namespace, name, uid },
        patch: { metadata: { finalizers: [...finalizers, FINALIZER.rayJob] } },
        resourceVersion,
        why: "a deletion shall stop the Ray job first",
        // Without it nothing else is begun, so this is all that the user sees.
        failureEvent: {
          type: "Warning",
          reason: "FailedToAddFinalizer",
          action: "AddFinalizer",
          note: `Failed to add the finalizer ${FINALIZER.rayJob} to RayJob ${namespace}/${name}: {error}`,
        },
      },
    ],
    events: [],
  };
}

/**
 * Phases Initializing and Waiting: make the RayCluster, wait until it is ready, learn Ray's session. In SidecarMode the job may be with
 * Ray as soon as the head runs: from then on Ray is asked before anything is given up, and its first answer ends this
 * phase, however many workers are missing.
 */
export function initialize(observed: ObservedRayJob, now: Instant): Decision<RayCommand> {
  const { job } = observed;
  const record = currentRecord(observed);
  if (!record?.rayClusterName) return { summary: "Initializing, but no attempt is recorded", effects: [], events: [] };
  const status = job.status?.attempts?.length ? statusOf(job) : reviseRecord(statusOf(job), record, {});
  const cluster = mayHaveSubmitted(observed, record);
  const answer = cluster && freshAnswer(observed, cluster);
  if (wantsSuspension(job)) {
    // It may have ended since Ray was asked last: that is learnt first.
    if (cluster && answer?.occasion !== "suspension") return asking("asking Ray before suspending", status, now);
    if (answer?.job.kind !== "known" || !isTerminal(answer.job.info.status)) {
      return enterSuspending(observed, status, record, now);
    }
  }
  const deadlines = startDeadlines(job);
  const passed = answer?.session !== undefined ? undefined : deadlines.find(({ at }) => now >= at);
  if (passed && (!cluster || mayNotice(passed, answer, true, now))) {
    return tooLate(observed, status, record, passed, now);
  }
  if (passed) return asking("asking Ray before the deadline counts", status, now);
  const decision = prepare(observed, status, record, now);
  return { ...decision, wakeAt: earliest(decision.wakeAt, ...deadlines.map(({ at }) => at)) };
}

const asking = (summary: string, status: RayJobStatus, now: Instant): Decision<RayCommand> => ({
  summary,
  effects: [],
  status,
  events: [],
  wakeAt: now + PATROL,
});

/**
 * The cluster whose Ray is asked before anything is given up. That its head does not run yet is no reason not to ask: the
 * cache may lag, and a head that does not run answers with silence.
 */
function mayHaveSubmitted(observed: ObservedRayJob, record: AttemptRecord): Stored<RayCluster> | undefined {
  if (!isSidecar(record) || record.submissionStartTime === undefined) return undefined;
  const found = findCluster(observed, record);
  return found.is === "ours" ? (found.object as Stored<RayCluster>) : undefined;
}

/** Asked of this head, after its container had started: an earlier answer may be another head's. */
function freshAnswer({ ray: { answer }, pods }: ObservedRayJob, cluster: Stored<RayCluster>): RayAnswer | undefined {
  return answer && answer.requestedAt >= headFacts(cluster, pods, undefined).changedAt ? answer : undefined;
}

/**
 * Nothing has been submitted yet, so there is nothing to stop and nobody to ask. What a sidecar may have submitted goes
 * with its cluster (finish.ts).
 */
function tooLate(
  observed: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
  { failure }: Deadline,
  now: Instant,
): Decision<RayCommand> {
  const why = findCondition(status, "Started")?.message;
  const message = why ? `${failure.message}. ${why}` : failure.message;
  return failWith(observed, status, record, { ...failure, message }, now, {
    events: [{ type: "Warning", reason: "DeadlineExceeded", action: "Stop", note: message }],
  });
}

function prepare(
  observed: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
  now: Instant,
): Decision<RayCommand> {
  const found = findCluster(observed, record);
  switch (found.is) {
    case "absent":
      return isSelected(record)
        ? missSelected(observed, status, record, now)
        : makeCluster(observed, status, record, now);
    case "stranger": {
      const message = `RayCluster ${record.rayClusterName} exists and does not belong to this RayJob; delete it.`;
      const news = findCondition(status, "Started")?.message !== message;
      return {
        summary: message,
        effects: [],
        status: withCondition(status, now, "Started", false, "WaitingForCluster", message),
        events: news ? [{ type: "Warning", reason: "FailedToCreateRayCluster", action: "Create", note: message }] : [],
        wakeAt: now + STRANGER_PATROL,
      };
    }
    case "leftover": {
      if (isSelected(record)) return waitForCluster(status, found.object as RayCluster, isGoing(record), now);
      const summary = `waiting for the earlier RayCluster ${record.rayClusterName} to be gone`;
      return { summary, effects: [], status, events: [] };
    }
    case "ours":
      return handOver(observed, status, record, found.object as Stored<RayCluster>, now);
  }
}

const isGoing = ({ rayClusterName }: AttemptRecord): string =>
  `Waiting for RayCluster ${rayClusterName}, which clusterSelector names: it is being deleted, and must be created anew.`;

/** A selected cluster is made by others, later perhaps: said once, and waited for, since it is watched. */
function missSelected(
  observed: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
  now: Instant,
): Decision<RayCommand> {
  const { namespace = "" } = observed.job.metadata;
  const place = `${namespace}/${record.rayClusterName}`;
  const message = `Waiting for RayCluster ${place}, which clusterSelector names: it does not exist. It must be created by someone.`;
  if (findCondition(status, "Started")?.message === message) {
    return { summary: message, effects: [], status, events: [] };
  }
  // One that was applied together with the RayJob may not have come through the other watch yet.
  const question: LiveQuestion = { ask: "get", kind: "RayCluster", namespace, name: record.rayClusterName ?? "" };
  const answer = observed.live.get(questionKey(question));
  if (!answer) return { summary: "is the RayCluster really missing?", effects: [], events: [], ask: [question] };
  if (answer.length > 0) {
    return { summary: "the cache lags behind the API server", effects: [], events: [], wakeAt: now + PATROL };
  }
  const note = `RayCluster ${place} set in the clusterSelector is not found. It must be created manually`;
  return {
    summary: message,
    effects: [],
    status: withCondition(status, now, "Started", false, "WaitingForCluster", message),
    events: [{ type: "Warning", reason: "RayClusterNotFound", action: "Validate", note }],
  };
}

function makeCluster(
  observed: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
  now: Instant,
): Decision<RayCommand> {
  const { job } = observed;
  const { namespace = "", name } = job.metadata;
  const questions: readonly LiveQuestion[] = [
    { ask: "get", kind: "RayJob", namespace, name },
    { ask: "get", kind: "RayCluster", namespace, name: record.rayClusterName ?? "" },
  ];
  const [jobs, clusters] = questions.map((question) => observed.live.get(questionKey(question)));
  // An edit that cannot be run waits here, too: nothing has been made from the spec yet.
  const problem = validateRayJob(job, observed.settings);
  const wasReady = statusOf(job).jobDeploymentStatus === "Waiting";
  const hadHead = wasReady || (isSidecar(record) && record.submissionStartTime !== undefined);
  if (problem && !hadHead) return { summary: problem.text, effects: [], status, events: [] };
  if (!job.spec.rayClusterSpec && !hadHead) {
    const message = `Attempt ${record.number} began with a RayCluster of its own, and spec.rayClusterSpec is gone; put it back, or suspend and resume the RayJob.`;
    const told = withCondition(status, now, "Started", false, "WaitingForCluster", message);
    return { summary: message, effects: [], status: told, events: [] };
  }
  if (!jobs || !clusters) {
    return { summary: "is the RayCluster really missing, in this attempt?", effects: [], events: [], ask: questions };
  }
  if (!isStill(observed, jobs[0]) || clusters.length > 0) {
    return { summary: "the cache lags behind the API server", effects: [], events: [], wakeAt: now + PATROL };
  }
  if (hadHead) {
    // It may have had a head, and that the job: a new one would run it again.
    const until = wasReady ? "while a submission was waited for" : `before Ray answered about job ${record.jobId}`;
    const message = `RayCluster ${record.rayClusterName} was deleted ${until}.`;
    return failWith(observed, status, record, { reason: "AppFailed", cause: "RayClusterLost", message }, now);
  }
  const refused = observed.refused?.find(({ reason }) => reason === CLUSTER_REFUSED);
  const trouble = `RayCluster ${record.rayClusterName} is refused by the API server: ${refused?.message}.`;
  return {
    summary: `creating RayCluster ${record.rayClusterName}`,
    effects: [createCluster(job, record, observed.settings)],
    status: refused ? withCondition(status, now, "Started", false, "WaitingForCluster", trouble) : status,
    events: [],
  };
}

/** The cluster exists: when it is ready and Ray has told its session, the submission is journalled and may begin. */
function handOver(
  observed: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
  cluster: Stored<RayCluster>,
  now: Instant,
): Decision<RayCommand> {
  const lost = withoutHead(observed, status, record, cluster, now);
  if (lost) return lost;
  if (isSidecar(record) && record.submissionStartTime === undefined) {
    const begun = reviseRecord(status, record, { submissionStartTime: toWire(now) });
    return {
      summary: "the submission begins: from now on the head may be made",
      effects: [],
      status: begun,
      events: [],
    };
  }
  const ready = readinessFor(record, cluster, observed.pods);
  if (!ready.ready) {
    const hopeless = isSelected(record) ? undefined : hopelessness(cluster, observed.pods, now);
    if (hopeless) return failWith(observed, status, record, hopeless, now);
    return waitForCluster(status, cluster, ready.why, now);
  }
  const told = withToldId(observed.job, record);
  // Passed even where the id is known already: tools wait for that phase.
  const isPassed = !isInteractive(record) || status.jobDeploymentStatus === "Waiting";
  if (!isPassed || !told.jobId) return awaitUser(observed, status, record, cluster, now);
  const target = targetOf(observed, told, cluster);
  const fresh = freshAnswer(observed, cluster);
  if (!target || !fresh?.session) return waitForDashboard(observed, status, record, cluster, ready.settled, now);
  // What Ray knows by then in InteractiveMode, its user has submitted.
  if (isSelected(record) && !isInteractive(record)) {
    if (fresh.job.kind === "none") return waitForDashboard(observed, status, record, cluster, ready.settled, now);
    const taken = claim(observed, status, record, { ...fresh, job: fresh.job }, target, now);
    if (taken) return taken;
  }
  let next = reviseRecord(status, record, {
    jobId: told.jobId,
    headPodUID: ready.head.metadata.uid,
    raySession: fresh.session,
    submissionStartTime: record.submissionStartTime ?? toWire(now),
  });
  next = revise(next, {
    jobDeploymentStatus: "Running",
    jobId: told.jobId,
    dashboardURL: target.dashboard,
    rayClusterStatus: mirror(next.rayClusterStatus, cluster.status),
    jobStatusCheckFailureStartTime: undefined,
    message: undefined,
  });
  const message = beingSubmitted(told);
  return {
    summary: message,
    effects: [],
    status: withCondition(next, now, "Started", false, "WaitingForSubmission", message),
    events: [],
  };
}

/** The cluster is there for its user, who is told where to submit, and what is wanted of him. */
function awaitUser(
  { job, settings }: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
  cluster: Stored<RayCluster>,
  now: Instant,
): Decision<RayCommand> {
  const dashboard = dashboardAddress(cluster, settings);
  const former = formerOf(job, record);
  const why = former ? ` (${job.spec.jobId} was attempt ${former.number}'s, so another is needed)` : "";
  const message = `${upText(record, record.rayClusterName)} at ${dashboard}. Submit a job to it, and set spec.jobId to its submission id${why}.`;
  const begins = status.jobDeploymentStatus !== "Waiting";
  const news = begins || findCondition(status, "Started")?.message !== message;
  const next = revise(status, {
    jobDeploymentStatus: "Waiting",
    dashboardURL: dashboard,
    ...(news && { rayClusterStatus: mirror(status.rayClusterStatus, cluster.status) }),
    jobStatusCheckFailureStartTime: undefined,
    message: undefined,
  });
  return {
    summary: message,
    effects: [],
    status: withCondition(next, now, "Started", false, "WaitingForSubmission", message),
    events: [],
  };
}

/** A head that cannot live: another cluster of the same spec may be tried, but not for ever the same. */
function hopelessness(cluster: Stored<RayCluster>, pods: readonly Stored<Pod>[], now: Instant): Failure | undefined {
  const why = headInVain(cluster, headsOf(cluster, pods), now);
  if (why === undefined) return undefined;
  const message = `RayCluster ${cluster.metadata.name} does not start: ${why}.`;
  return { reason: "SubmissionFailed", cause: "HeadPodFailed", message };
}

/**
 * A cluster that has lost the one head it may have is never ready: the attempt fails at once, and may be retried. A
 * sidecar may have submitted before its head was ever seen to answer, and nothing is submitted twice in an attempt.
 */
function withoutHead(
  observed: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
  cluster: Stored<RayCluster>,
  now: Instant,
): Decision<RayCommand> | undefined {
  const loss = lossOfOneHead(cluster, observed.pods);
  if (!loss) return undefined;
  const { namespace = "", name } = cluster.metadata;
  const question = headQuestion(namespace, name);
  const heads = loss.missing ? observed.live.get(questionKey(question)) : [];
  if (!heads) return { summary: "is the head Pod really gone?", effects: [], events: [], ask: [question] };
  if (heads.length > 0)
    return { summary: "the cache lags: there is a head", effects: [], events: [], wakeAt: now + PATROL };
  const when = isSidecar(record) ? `Ray answered about job ${record.jobId}` : "the job was submitted";
  const message = `RayCluster ${name} lost its only head before ${when}: ${loss.why}.`;
  return failWith(observed, status, record, { reason: "AppFailed", cause: "HeadPodLost", message }, now);
}

/** The cluster's status is copied only when the reason to wait changes: a copy at each step would be a write at each. */
function waitForCluster(status: RayJobStatus, cluster: RayCluster, why: string, now: Instant): Decision<RayCommand> {
  const news = findCondition(status, "Started")?.message !== why;
  const copied = news ? { rayClusterStatus: mirror(status.rayClusterStatus, cluster.status) } : {};
  // Whatever a dashboard did before, the next one is timed anew.
  const next = revise(status, { ...copied, jobStatusCheckFailureStartTime: undefined });
  return {
    summary: why,
    effects: [],
    status: withCondition(next, now, "Started", isTrue(status, "Started"), "WaitingForCluster", why),
    events: [],
  };
}

/** Ready, and yet Ray tells nothing: the status-check timer runs here, too, so that this cannot last for ever. */
function waitForDashboard(
  observed: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
  cluster: RayCluster,
  settled: Instant,
  now: Instant,
): Decision<RayCommand> {
  const { ray, settings } = observed;
  const { answer } = ray;
  const summary = "waiting for Ray's dashboard to tell its session";
  const start = fromWire(status.jobStatusCheckFailureStartTime);
  const silent = answer !== undefined && answer.session === undefined && answer.requestedAt >= settled;
  const error = answer?.job.kind === "none" ? answer.job.error : "no session was told";
  if (start !== undefined && answer && answer.requestedAt >= start + settings.statusCheckTimeout && silent) {
    const message = `RayCluster ${cluster.metadata.name} is ready, but its dashboard has not answered since ${status.jobStatusCheckFailureStartTime}: ${error}`;
    const failure = { reason: "JobStatusCheckTimeoutExceeded", cause: "StatusCheckTimeout", message } as const;
    return failWith(observed, status, record, failure, now);
  }
  if (!silent || start !== undefined) return { summary, effects: [], status, events: [], wakeAt: now + PATROL };
  const message = `RayCluster ${cluster.metadata.name} is ready; its dashboard does not answer: ${error}`;
  const next = revise(status, { jobStatusCheckFailureStartTime: toWire(now) });
  return {
    summary: message,
    effects: [],
    status: withCondition(next, now, "Started", false, "WaitingForCluster", message),
    events: [],
    wakeAt: now + PATROL,
  };
}
