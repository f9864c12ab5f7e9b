/**
 * Phase Running: the job is with Ray, or on its way there.
 *
 * Answers: what the verdict means for status; which of submitter, head Service and submission is still to be made.
 * May not: judge (verdict.ts). Nothing is submitted that the record does not say has begun: session, head Pod and
 * `submissionStartTime` are journalled before this phase is entered (start.ts).
 * Next: ending.ts, when the attempt is over.
 */
import type { Service } from "../../api/kubernetes.ts";
import { ANNOTATION, LABEL, NODE_TYPE } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJobStatus } from "../../api/rayjob.ts";
import { type Decision, type Effect, type EventSpec, type LiveQuestion, questionKey } from "../decision.ts";
import { earliest, fromWire, type Instant, seconds, since, toWire } from "../time.ts";
import {
  deleteService,
  deleteSubmitter,
  findCluster,
  findHeadService,
  findSubmitter,
  isLeaving,
  isStill,
  ownerUID,
  standing,
} from "./children.ts";
import { headFacts, mirror, targetOf } from "./cluster.ts";
import { findCondition, withCondition } from "./conditions.ts";
import { activeDeadline, isBeingStopped, mayNotice, notice, stopping } from "./deadlines.ts";
import { endWith, failWith } from "./ending.ts";
import { headServiceName } from "./names.ts";
import type { ObservedRayJob } from "./observe.ts";
import { isTerminal, type RayCommand, type RayJobInfo, type RayTarget, type SubmitRequest } from "./ray.ts";
import { currentRecord, statusOf } from "./records.ts";
import { buildRequest } from "./request.ts";
import { createHeadService } from "./service.ts";
import { revise, reviseRecord, same } from "./status.ts";
import { createSubmitter, isDone, type Submitter, submitterState } from "./submitter.ts";
import { enterSuspending, wantsSuspension } from "./suspend.ts";
import { DEAD_NODE_PATIENCE, type Evidence, type Verdict, verdict } from "./verdict.ts";

/** Until a name has spread and a dashboard has settled, silence is not news. */
const SETTLING = seconds(10);
/** Between a refused submission and the next. */
const SUBMIT_PAUSE = seconds(5);
/** How long a job may be PENDING before that is news. */
const PENDING_PATIENCE = seconds(5);
/** How long Ray's answer about a job it has just taken is waited for, before the taking itself is written down. */
const ACKNOWLEDGE_AFTER = seconds(3);
/** While an answer is awaited; the poller usually wakes us earlier. */
const PATROL = seconds(2);
/** While a stranger bears a name that is needed; it is not watched. */
const STRANGER_PATROL = seconds(30);

export function run(observed: ObservedRayJob, now: Instant): Decision<RayCommand> {
  const found = currentRecord(observed);
  if (!found) return { summary: "Running, but no attempt is recorded: nothing to go by", effects: [], events: [] };
  const gathered = gather(observed, found);
  if ("ask" in gathered) return { summary: gathered.why, effects: [], events: [], ask: gathered.ask };
  const pass: Pass = { observed, now, ...gathered };
  const { record, status } = pass;

  const journalled = journalledEnd(status);
  const judged = verdict(pass.evidence, now);
  if (judged.kind === "ask") return { summary: judged.why, effects: [], events: [], ask: judged.questions };
  const end = journalled ?? (judged.kind === "ended" ? judged.info : undefined);

  if (isBeingStopped(record)) {
    const word: Verdict = end ? { row: "a", kind: "ended", info: end } : judged;
    const seen = end ? learn(pass, end) : pass;
    return stopping(observed, seen.status, seen.record, word, pass.evidence.submitter, pass.target, now);
  }
  if (end || judged.kind === "ended") return conclude(pass, end!, journalled !== undefined);
  if (wantsSuspension(observed.job)) return enterSuspending(observed, status, record, now);
  const deadline = activeDeadline(observed.job);
  if (deadline && mayNotice(deadline, observed.ray.answer, now)) return notice(status, record, deadline, now);

  const decision = proceed(pass, judged);
  const overdue = deadline && now >= deadline.at ? now + PATROL : deadline?.at;
  return { ...decision, wakeAt: earliest(decision.wakeAt, overdue) };
}

interface Gathered {
  readonly record: AttemptRecord;
  /** As observed, with the record in it. */
  readonly status: RayJobStatus;
  readonly cluster: Stored<RayCluster> | undefined;
  readonly target: RayTarget | undefined;
  readonly evidence: Evidence;
}

interface Pass extends Gathered {
  readonly observed: ObservedRayJob;
  readonly now: Instant;
}

/** What the verdict is given from; or the question whether the RayCluster is really gone. */
function gather(
  observed: ObservedRayJob,
  record: AttemptRecord,
): Gathered | { readonly ask: readonly LiveQuestion[]; readonly why: string } {
  const { job, ray, settings } = observed;
  const status = job.status?.attempts?.length ? statusOf(job) : reviseRecord(statusOf(job), record, {});
  const namespace = job.metadata.namespace ?? "";
  let found = findCluster(observed, record);
  if (found.is === "absent") {
    const question: LiveQuestion = { ask: "get", kind: "RayCluster", namespace, name: record.rayClusterName ?? "" };
    const answer = observed.live.get(questionKey(question));
    if (answer === undefined) return { ask: [question], why: "is the RayCluster really gone?" };
    const object = answer[0] as Stored<RayCluster> | undefined;
    if (object) found = { is: standing(object, observed, record.number), object };
  }
  const cluster = found.is === "absent" || found.is === "stranger" ? undefined : (found.object as Stored<RayCluster>);
  const headQuestions: readonly LiveQuestion[] = [
    {
      ask: "list",
      kind: "Pod",
      namespace,
      labels: { [LABEL.cluster]: record.rayClusterName ?? "", [LABEL.nodeType]: NODE_TYPE.head },
    },
  ];
  const heads = observed.live.get(questionKey(headQuestions[0]!));
  const evidence: Evidence = {
    record,
    head: headFacts(cluster, observed.pods, record.headPodUID),
    headAbsence: heads === undefined ? "unasked" : heads.some((pod) => !isLeaving(pod)) ? "refuted" : "confirmed",
    headQuestions,
    clusterLost: record.ownsCluster === false ? undefined : lossOf(found.is, record),
    submitter:
      record.submissionMode === "K8sJobMode"
        ? submitterState(findSubmitter(observed, record), observed.pods)
        : { is: "absent" },
    answer: ray.answer,
    submit: ray.submit,
    faultTolerant: isFaultTolerant(cluster),
    silentSince: fromWire(status.jobStatusCheckFailureStartTime),
    settings,
  };
  return { record, status, cluster, target: targetOf(observed, record, cluster), evidence };
}

function lossOf(is: ReturnType<typeof findCluster>["is"], record: AttemptRecord): string | undefined {
  if (is === "ours") return undefined;
  return is === "stranger"
    ? `RayCluster ${record.rayClusterName} was replaced by one that does not belong to this RayJob`
    : `RayCluster ${record.rayClusterName} was deleted`;
}

const isFaultTolerant = (cluster: RayCluster | undefined): boolean =>
  cluster?.spec.gcsFaultToleranceOptions !== undefined ||
  cluster?.metadata.annotations?.[ANNOTATION.ftEnabled]?.toLowerCase() === "true";

/** The end that an earlier pass wrote down while it waited for the log; nothing that Ray says later changes it. */
function journalledEnd(status: RayJobStatus): RayJobInfo | undefined {
  if (!isTerminal(status.jobStatus)) return undefined;
  const { jobStatus, message = "", rayJobInfo } = status;
  return {
    status: jobStatus as RayJobInfo["status"],
    message,
    startTime: fromWire(rayJobInfo?.startTime),
    endTime: fromWire(rayJobInfo?.endTime),
  };
}

/** Row a: Ray's status is the verdict; the submitter gets the grace period to finish its log. */
function conclude(pass: Pass, end: RayJobInfo, journalled: boolean): Decision<RayCommand> {
  const { observed, now, evidence, cluster } = pass;
  const seen: Learnt = journalled ? pass : learn(pass, end);
  const { submitter } = evidence;
  const ended = fromWire(seen.status.rayJobInfo?.endTime) ?? now;
  const lateAt = ended + observed.settings.transitionGrace;
  const nobodyReads = isDone(submitter) || isBetweenTries(submitter) || !cluster || isLeaving(cluster);
  if (nobodyReads || wantsSuspension(observed.job) || now >= lateAt) {
    const status =
      submitter.is === "finished"
        ? withCondition(seen.status, now, "SubmitterHealthy", true, "Finished", "The submitter has done its work.")
        : seen.status;
    return endWith(observed, status, seen.record, end, now, !nobodyReads && now >= lateAt);
  }
  // The end is journalled before it is waited for the log: the head may be gone when the log is complete.
  return {
    summary: `a: Ray says ${end.status}; waiting for the submitter to finish its log`,
    effects: [],
    status: seen.status,
    events: seen.events ?? [],
    wakeAt: lateAt,
  };
}

/** Its Pod has failed, and the next is not there yet: nobody is reading the log. */
const isBetweenTries = (submitter: Submitter): boolean =>
  submitter.is === "working" && (submitter.object.status?.failed ?? 0) > 0 && !submitter.object.status?.active;

interface Learnt extends Pass {
  readonly events?: readonly EventSpec[];
}

/** The status with what Ray said in it. */
function learn(pass: Pass, info: RayJobInfo): Learnt {
  const { observed, now, cluster, evidence, target } = pass;
  const first = pass.record.observedTime === undefined;
  const answer = observed.ray.answer;
  const head = evidence.head.pod;
  const sameSession = answer?.session !== undefined && answer.session === (pass.record.raySession ?? answer.session);
  const dead = answer?.driverNode === "DEAD" || answer?.driverNode === "MISSING";
  let status = reviseRecord(pass.status, pass.record, {
    observedTime: pass.record.observedTime ?? toWire(now),
    runningTime: pass.record.runningTime ?? (info.status === "RUNNING" ? toWire(now) : undefined),
    jobStatus: isTerminal(info.status) ? info.status : undefined,
    ...(sameSession && head ? { raySession: answer.session, headPodUID: head.metadata.uid } : {}),
    driverNodeDeadTime:
      info.status !== "RUNNING" || answer?.driverNode === "ALIVE"
        ? undefined
        : dead
          ? (pass.record.driverNodeDeadTime ?? toWire(now))
          : pass.record.driverNodeDeadTime,
  });
  const endTime = info.endTime ?? (isTerminal(info.status) ? now : undefined);
  status = revise(status, {
    jobStatus: info.status,
    message: info.message,
    reason: undefined,
    dashboardURL: target?.dashboard ?? status.dashboardURL,
    rayClusterStatus: mirror(status.rayClusterStatus, cluster?.status),
    rayJobInfo: {
      ...(info.startTime === undefined ? {} : { startTime: toWire(info.startTime) }),
      ...(endTime === undefined ? {} : { endTime: toWire(endTime) }),
    },
    jobStatusCheckFailureStartTime: undefined,
  });
  const id = pass.record.jobId;
  status = withCondition(status, now, "Started", true, "Submitted", `Ray has job ${id}.`);
  const health = submitterHealth(pass, status);
  const submitted: EventSpec = {
    type: "Normal",
    reason: "RayJobSubmitted",
    action: "Submit",
    note: `Ray has job ${id} of attempt ${pass.record.number}`,
  };
  return {
    ...pass,
    status: health.status,
    record: currentRecord({ job: { ...observed.job, status: health.status } }) ?? pass.record,
    events: [...(first ? [submitted] : []), ...health.events],
  };
}

/**
 * PENDING lasts a moment, as a rule: to write it down, and RUNNING right after, would be one write too many. A crash
 * meanwhile loses nothing, since Ray is asked again before anything is submitted. Undefined when it is to be written.
 */
function isSettling({ record, now }: Pass, { status, startTime }: RayJobInfo): Instant | undefined {
  if (status !== "PENDING" || record.observedTime !== undefined || startTime === undefined) return undefined;
  return Math.abs(now - startTime) < PENDING_PATIENCE ? now + PATROL : undefined;
}

const MADE_AGAIN = "The submitter was deleted, and made once more to follow the log.";

/** `SubmitterHealthy`, and one event when it ceases to be. A submitter says nothing about the job itself. */
function submitterHealth(
  { record, evidence: { submitter, answer }, now }: Pass,
  status: RayJobStatus,
): { readonly status: RayJobStatus; readonly events: readonly EventSpec[] } {
  if (record.submissionMode !== "K8sJobMode") return { status, events: [] };
  const before = findCondition(status, "SubmitterHealthy");
  const health = (value: boolean, reason: "Following" | "Finished" | "JobFailed" | "Deleted", message: string) => {
    const next = withCondition(status, now, "SubmitterHealthy", value, reason, message);
    const note = `${message} The Ray job is not affected; its log can be read from Ray.`;
    const lost = !value && before?.status !== "False";
    return {
      status: next,
      events: lost ? ([{ type: "Warning", reason: "SubmitterLost", action: "Observe", note }] as const) : [],
    };
  };
  // Its end may only be the first we see of the job's end: judged by an answer that was asked for afterwards.
  const judged = (at: Instant) => answer !== undefined && answer.requestedAt >= at && status.jobStatus === "RUNNING";
  switch (submitter.is) {
    case "working": {
      const again = before?.reason === "Deleted" || before?.message === MADE_AGAIN;
      return health(true, "Following", again ? MADE_AGAIN : "The submitter follows the job's log.");
    }
    case "finished":
      return judged(submitter.at)
        ? health(false, "Finished", "The submitter has ended although the job runs; nobody follows the log.")
        : { status, events: [] };
    case "failed":
      return judged(submitter.at) ? health(false, "JobFailed", submitter.message) : { status, events: [] };
    case "absent":
    case "leftover":
    case "stranger": {
      if (before?.status === "False") return { status, events: [] };
      const twice = before?.message === MADE_AGAIN;
      return health(false, "Deleted", twice ? DELETED_TWICE : "The submitter's Kubernetes Job was deleted.");
    }
  }
}

const DELETED_TWICE = "The submitter's Kubernetes Job was deleted again; it is not made another time.";

/** The attempt goes on: write down what was learnt, make what is missing. */
function proceed(pass: Pass, judged: Exclude<Verdict, { kind: "ended" | "ask" }>): Decision<RayCommand> {
  const { observed, now, record, evidence } = pass;
  switch (judged.kind) {
    case "failed":
      return failWith(observed, pass.status, record, judged, now);
    case "carryOn": {
      const settling = isSettling(pass, judged.info);
      if (settling !== undefined) {
        return { summary: "d: Ray has the job, and is starting it", effects: [], events: [], wakeAt: settling };
      }
      const seen = learn(pass, judged.info);
      const dead = fromWire(seen.record.driverNodeDeadTime);
      const patience = dead === undefined ? undefined : Math.max(dead + DEAD_NODE_PATIENCE, now + PATROL);
      return make(seen, `${judged.row}: Ray says ${judged.info.status}`, seen.events ?? [], patience);
    }
    case "notSubmitted": {
      // "Done" was said by Ray, too: from now on the job is never submitted again.
      if (isAccepted(pass)) return acknowledged(pass);
      if (record.raySession === undefined) return takeSession(pass);
      return submit(pass, judged.maySubmit);
    }
    case "wait": {
      if (isAccepted(pass)) return acknowledged(pass);
      const start = evidence.silentSince;
      const asked = observed.ray.answer?.requestedAt ?? 0;
      const settled = asked >= (fromWire(record.submissionStartTime) ?? 0) + SETTLING;
      const status =
        judged.silent && settled && start === undefined
          ? revise(pass.status, {
              jobStatusCheckFailureStartTime: toWire(now),
              message: `Ray does not answer at ${pass.target?.dashboard}: ${judged.why}`,
            })
          : pass.status;
      const due = fromWire(status.jobStatusCheckFailureStartTime);
      const wakeAt =
        due === undefined ? now + PATROL : Math.max(due + observed.settings.statusCheckTimeout, now + PATROL);
      return make({ ...pass, status }, `${judged.row}: ${judged.why}`, [], wakeAt);
    }
  }
}

const isAccepted = ({ evidence: { submit }, record }: Pass): boolean =>
  submit?.result === "done" && record.observedTime === undefined;

/**
 * Ray took the operator's submission. Its answer to the next question tells more, so that is waited for, a little: in
 * the session it was submitted to Ray does not forget it, and into another it is never submitted.
 */
function acknowledged(pass: Pass): Decision<RayCommand> {
  const { record, now, evidence } = pass;
  const due = (evidence.submit?.finishedAt ?? 0) + ACKNOWLEDGE_AFTER;
  if (now < due) return { summary: "Ray accepted the job; asking about it", effects: [], events: [], wakeAt: due };
  let status = reviseRecord(pass.status, record, { observedTime: toWire(now) });
  status = withCondition(status, now, "Started", true, "Submitted", `Ray has job ${record.jobId}.`);
  return {
    summary: `Ray accepted job ${record.jobId}`,
    effects: [],
    status: revise(status, { jobStatus: "PENDING", jobStatusCheckFailureStartTime: undefined }),
    events: [
      {
        type: "Normal",
        reason: "RayJobSubmitted",
        action: "Submit",
        note: `Ray has job ${record.jobId} of attempt ${record.number}`,
      },
    ],
  };
}

/** A RayJob taken over from KubeRay has no session in its record: it gets one before anything is submitted. */
function takeSession(pass: Pass): Decision<RayCommand> {
  const { record, now, observed, evidence } = pass;
  const session = observed.ray.answer?.session;
  const head = evidence.head.pod;
  if (!session || !head)
    return { summary: "Ray has not told its session yet", effects: [], events: [], wakeAt: now + PATROL };
  return {
    summary: `the record gets Ray's session ${session}`,
    effects: [],
    status: reviseRecord(pass.status, record, {
      raySession: session,
      headPodUID: head.metadata.uid,
      submissionStartTime: record.submissionStartTime ?? toWire(now),
    }),
    events: [],
  };
}

/** Row i. In HTTPMode the operator itself submits; else it sees to it that there is a submitter. */
function submit(pass: Pass, maySubmit: boolean): Decision<RayCommand> {
  const { observed, now, record, evidence, target } = pass;
  if (record.submissionMode !== "HTTPMode") return make(pass, "i: waiting for the submitter", [], undefined);
  const { submit: last } = evidence;
  const refused = last?.result === "refused" || last?.result === "unknown";
  const status =
    refused && evidence.silentSince === undefined
      ? revise(pass.status, { jobStatusCheckFailureStartTime: toWire(now), message: refusal(last?.message) })
      : pass.status;
  const start = fromWire(status.jobStatusCheckFailureStartTime);
  if (refused && start !== undefined && since(start, now) >= observed.settings.statusCheckTimeout) {
    const message = `${refusal(last?.message)} (tried since ${status.jobStatusCheckFailureStartTime})`;
    return failWith(observed, status, record, { reason: "SubmissionFailed", cause: "SubmissionFailed", message }, now);
  }
  const pausedUntil = refused ? (last?.finishedAt ?? 0) + SUBMIT_PAUSE : 0;
  const decision = make({ ...pass, status }, "i: Ray does not know the job yet", [], now + PATROL);
  if (!maySubmit || now < pausedUntil || !target || decision.ask) return decision;
  const request = requestOf(pass);
  if ("problem" in request) return decision;
  const why = "Ray does not know the job, in the session it is meant for";
  const command: RayCommand = { do: "submit", target, request: request.value, session: record.raySession ?? "", why };
  return { ...decision, summary: `i: submitting job ${record.jobId}`, effects: [...decision.effects, command] };
}

const refusal = (message: string | undefined): string => `Ray did not take the job: ${message ?? "no reason given"}`;

function requestOf({ observed, record }: Pass): { value: SubmitRequest } | { problem: string } {
  try {
    return { value: buildRequest(observed.job.spec, record) };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}

/**
 * What was learnt is written first; what is missing is made in the pass after. An object that the API server refuses
 * for ever (a quota, a webhook) then keeps nothing from being known.
 */
function make(
  pass: Pass,
  summary: string,
  events: readonly EventSpec[],
  wakeAt: Instant | undefined,
): Decision<RayCommand> {
  const { observed, status } = pass;
  if (!same(status, observed.job.status)) return { summary, effects: [], status, events, wakeAt };
  const made = [ensureSubmitter(pass), ensureHeadService(pass)];
  const ask = made.flatMap((one) => one.ask ?? []);
  if (ask.length > 0) return { summary: "is what is to be made really missing?", effects: [], events: [], ask };
  return {
    summary,
    effects: made.flatMap((one) => one.effects ?? []),
    status: made[0]!.status ?? status,
    events: [...events, ...made.flatMap((one) => one.events ?? [])],
    wakeAt: earliest(wakeAt, ...made.map((one) => one.wakeAt)),
  };
}

/** What is to be done about an object that the attempt needs. Nothing, where it is there. */
interface Ensured {
  readonly status?: RayJobStatus;
  readonly effects?: readonly Effect<RayCommand>[];
  readonly events?: readonly EventSpec[];
  readonly wakeAt?: Instant;
  readonly ask?: readonly LiveQuestion[];
}

/** A convenience for users: a stranger of that name is left alone, and the job runs without it. */
function ensureHeadService({ observed, record, cluster, now }: Pass): Ensured {
  if (!cluster || isLeaving(cluster) || record.ownsCluster === false) return {};
  const existing = findHeadService(observed);
  if (existing) {
    const { selector } = (existing as Stored<Service>).spec ?? {};
    const stale =
      ownerUID(existing) === observed.job.metadata.uid && selector?.[LABEL.cluster] !== record.rayClusterName;
    const effects =
      stale && !isLeaving(existing) ? [deleteService(existing, "it leads to an earlier attempt's head")] : [];
    return { effects };
  }
  const { name, namespace = "" } = observed.job.metadata;
  const question: LiveQuestion = { ask: "get", kind: "Service", namespace, name: headServiceName(name) };
  const answer = observed.live.get(questionKey(question));
  if (!answer) return { ask: [question] };
  if (answer.length > 0) return { wakeAt: now + STRANGER_PATROL };
  return { effects: [createHeadService(observed.job, record, cluster, observed.settings)] };
}

/** The submitter exists once an attempt, and once more where it was deleted after the job was seen. */
function ensureSubmitter(pass: Pass): Ensured {
  const { observed, record, cluster, evidence, now, target } = pass;
  if (record.submissionMode !== "K8sJobMode" || !cluster || isLeaving(cluster) || !target) return {};
  if (record.raySession === undefined || record.submissionStartTime === undefined) return {};
  if (record.observedTime !== undefined && !mayFollowAgain(statusOf(observed.job))) return {};
  const { submitter } = evidence;
  const { name, namespace = "", uid } = observed.job.metadata;
  if (submitter.is === "leftover") {
    const { object } = submitter;
    const mine = ownerUID(object) === uid && !isLeaving(object);
    return { effects: mine ? [deleteSubmitter(object, "it belongs to an earlier attempt")] : [], wakeAt: now + PATROL };
  }
  if (submitter.is === "stranger") return nameTaken(pass);
  if (submitter.is !== "absent") return {};
  const questions: readonly LiveQuestion[] = [
    { ask: "get", kind: "RayJob", namespace, name },
    { ask: "get", kind: "Job", namespace, name },
  ];
  const [jobs, submitters] = questions.map((question) => observed.live.get(questionKey(question)));
  if (!jobs || !submitters) return { ask: questions };
  const [existing] = submitters;
  if (existing && standing(existing, observed, record.number) === "stranger") return nameTaken(pass);
  // The cache lags: what it says about this attempt is over, or the submitter is there already.
  if (!isStill(observed, jobs[0]) || existing) return { wakeAt: now + PATROL };
  const request = requestOf(pass);
  if ("problem" in request) return cannotSubmit(pass, request.problem);
  const { settings, job } = observed;
  return { effects: [createSubmitter(job, record, cluster, request.value, target.dashboard, settings)] };
}

function nameTaken(pass: Pass): Ensured {
  const { name, namespace } = pass.observed.job.metadata;
  return cannotSubmit(
    pass,
    `Kubernetes Job ${namespace}/${name} exists and does not belong to this RayJob; delete it, or name the RayJob otherwise.`,
  );
}

const mayFollowAgain = (status: RayJobStatus): boolean => {
  const health = findCondition(status, "SubmitterHealthy");
  return status.jobStatus === "RUNNING" && health?.reason === "Deleted" && health.message !== DELETED_TWICE;
};

function cannotSubmit({ status, now }: Pass, message: string): Ensured {
  const news = findCondition(status, "Started")?.message !== message;
  const event = { type: "Warning", reason: "FailedToCreateRayJobSubmitter", action: "Create", note: message } as const;
  return {
    status: withCondition(status, now, "Started", false, "WaitingForSubmission", message),
    events: news ? [event] : [],
    wakeAt: now + STRANGER_PATROL,
  };
}
