/**
 * Phase Running: the job is with Ray, or on its way there.
 *
 * Answers: what the verdict means for this pass.
 * May not: judge (verdict.ts). Nothing is submitted that the record does not say has begun: session, head Pod and
 * `submissionStartTime` are journalled before this phase is entered (start.ts).
 * Next: evidence.ts for what is judged, learn.ts for what is written down, provide.ts for what is made; ending.ts, when the
 * attempt is over.
 */
import type { RayJobStatus } from "../../api/rayjob.ts";
import type { Decision } from "../decision.ts";
import { sameButForNumbers } from "../rewording.ts";
import type { Settings } from "../settings.ts";
import { earliest, fromWire, type Instant, seconds, since, toWire } from "../time.ts";
import { isLeaving } from "./children.ts";
import { beingSubmitted } from "./cluster.ts";
import { findCondition, withCondition } from "./conditions.ts";
import { activeDeadline, isBeingStopped, mayNotice, notice, stopping } from "./deadlines.ts";
import { endWith, failWith } from "./ending.ts";
import { gather, type Pass } from "./evidence.ts";
import { type Learnt, learn } from "./learn.ts";
import type { ObservedRayJob } from "./observe.ts";
import { provide, requestOf } from "./provide.ts";
import { isTerminal, type RayCommand, type RayJobInfo } from "./ray.ts";
import { currentRecord } from "./records.ts";
import { revise, reviseRecord } from "./status.ts";
import { isDone, submitterTrouble } from "./submitter.ts";
import { enterSuspending, wantsSuspension } from "./suspend.ts";
import { DEAD_NODE_PATIENCE, type Verdict, verdict } from "./verdict.ts";

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
  const askable = pass.cluster !== undefined && pass.target !== undefined;
  if (wantsSuspension(observed.job)) {
    // It may have ended since Ray was asked last: that is learnt first. Silence is an answer, too, so this is soon over.
    if (askable && observed.ray.answer?.occasion !== "suspension") {
      return { summary: "asking Ray before suspending", effects: [], events: [], wakeAt: now + PATROL };
    }
    return enterSuspending(observed, status, record, now);
  }
  const deadline = activeDeadline(observed.job);
  if (deadline && mayNotice(deadline, observed.ray.answer, askable, now)) return notice(status, record, deadline, now);

  const decision = proceed(pass, judged);
  const overdue = deadline && now >= deadline.at ? now + PATROL : deadline?.at;
  return { ...decision, wakeAt: earliest(decision.wakeAt, overdue) };
}

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

/** Row a of verdict.ts: Ray's status is the verdict; the submitter gets the grace period to finish its log. */
function conclude(pass: Pass, end: RayJobInfo, journalled: boolean): Decision<RayCommand> {
  const { observed, now, evidence, cluster } = pass;
  // An end that KubeRay wrote down may lack its time: the grace would begin anew in each pass.
  const seen: Learnt = journalled && end.endTime !== undefined ? pass : learn(pass, end);
  const { submitter } = evidence;
  const ended = fromWire(seen.status.rayJobInfo?.endTime) ?? now;
  const lateAt = ended + observed.settings.transitionGrace;
  const nobodyReads = isDone(submitter) || !cluster || isLeaving(cluster);
  if (nobodyReads || wantsSuspension(observed.job) || now >= lateAt) {
    const late = !nobodyReads && now >= lateAt;
    const status =
      submitter.is === "finished"
        ? withCondition(seen.status, now, "SubmitterHealthy", true, "Finished", "The submitter has done its work.")
        : late
          ? withCondition(seen.status, now, "SubmitterHealthy", false, "Following", hangs(observed.settings))
          : seen.status;
    return endWith(observed, status, seen.record, end, now, late);
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

const hangs = ({ transitionGrace }: Settings): string =>
  `The submitter had not finished the log ${transitionGrace / 1000} s after the job's end; it was waited for no longer.`;

/**
 * PENDING lasts a moment, as a rule: to write it down, and RUNNING right after, would be one write too many. A crash
 * meanwhile loses nothing, since Ray is asked again before anything is submitted. Undefined when it is to be written.
 */
function isSettling({ record, now }: Pass, { status, startTime }: RayJobInfo): Instant | undefined {
  if (status !== "PENDING" || record.observedTime !== undefined || startTime === undefined) return undefined;
  return Math.abs(now - startTime) < PENDING_PATIENCE ? now + PATROL : undefined;
}

/** The attempt goes on: write down what was learnt, make what is missing. */
function proceed(pass: Pass, judged: Exclude<Verdict, { kind: "ended" | "ask" }>): Decision<RayCommand> {
  const { observed, now, record, evidence } = pass;
  switch (judged.kind) {
    case "failed": {
      const { submitter } = evidence;
      const status =
        submitter.is === "failed"
          ? withCondition(pass.status, now, "SubmitterHealthy", false, submitter.why, submitter.message)
          : pass.status;
      return failWith(observed, status, record, judged, now);
    }
    case "carryOn": {
      const settling = isSettling(pass, judged.info);
      if (settling !== undefined) {
        return { summary: "d: Ray has the job, and is starting it", effects: [], events: [], wakeAt: settling };
      }
      const seen = learn(pass, judged.info);
      const dead = fromWire(seen.record.driverNodeDeadTime);
      const patience = dead === undefined ? undefined : Math.max(dead + DEAD_NODE_PATIENCE, now + PATROL);
      return provide(seen, `${judged.row}: Ray says ${judged.info.status}`, seen.events ?? [], patience);
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
      return provide({ ...pass, status }, `${judged.row}: ${judged.why}`, [], wakeAt);
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

/** Row i of verdict.ts. In HTTPMode the operator itself submits; else it sees to it that there is a submitter. */
function submit(pass: Pass, maySubmit: boolean): Decision<RayCommand> {
  const { observed, now, record, evidence, target } = pass;
  const { submit: last } = evidence;
  const refused = last?.result === "refused" || last?.result === "unknown";
  // Ray has answered, so its silence is over. That it does not take the job is timed by the same clock.
  const heard = revise(pass.status, { jobStatusCheckFailureStartTime: undefined, message: undefined });
  if (record.submissionMode !== "HTTPMode") {
    const { is: trouble, wakeAt } = submitterTrouble(evidence.submitter, observed, now);
    // Where it was told: a record that KubeRay's job was given has no such condition, and a submitter that works no news.
    const known = findCondition(heard, "Started");
    const news = beingSubmitted(record, trouble);
    const message = known && stands(known.message, news, observed) ? known.message : news;
    const waiting =
      trouble || known?.reason === "WaitingForSubmission"
        ? withCondition(heard, now, "Started", false, "WaitingForSubmission", message)
        : heard;
    return provide({ ...pass, status: heard }, trouble ?? `i: ${message}`, [], wakeAt, waiting);
  }
  const status = !refused
    ? heard
    : evidence.silentSince === undefined
      ? revise(pass.status, { jobStatusCheckFailureStartTime: toWire(now), message: refusal(last?.message) })
      : pass.status;
  const start = fromWire(status.jobStatusCheckFailureStartTime);
  if (refused && start !== undefined && since(start, now) >= observed.settings.statusCheckTimeout) {
    const message = `${refusal(last?.message)} (tried since ${status.jobStatusCheckFailureStartTime})`;
    return failWith(observed, status, record, { reason: "SubmissionFailed", cause: "SubmissionFailed", message }, now);
  }
  const pausedUntil = refused ? (last?.finishedAt ?? 0) + SUBMIT_PAUSE : 0;
  const decision = provide({ ...pass, status }, "i: Ray does not know the job yet", [], now + PATROL);
  if (!maySubmit || now < pausedUntil || !target || decision.ask) return decision;
  const request = requestOf(pass);
  if ("problem" in request) return decision;
  const why = "Ray does not know the job, in the session it is meant for";
  const command: RayCommand = { do: "submit", target, request: request.value, session: record.raySession ?? "", why };
  return { ...decision, summary: `i: submitting job ${record.jobId}`, effects: [...decision.effects, command] };
}

/** What was told is told no more once it names another Pod than the one that there is: users go and look at it. */
const stands = (told: string, news: string, { pods }: ObservedRayJob): boolean =>
  sameButForNumbers(told, news) && pods.every(({ metadata: { name } }) => !news.includes(name) || told.includes(name));

/** How the message begins while Ray refuses a submission by the operator itself. */
export const REFUSED = "Ray did not take the job";

const refusal = (message: string | undefined): string => `${REFUSED}: ${message ?? "no reason given"}`;
