/**
 * What Ray said about a job, written into its status; and what that makes of the submitter.
 *
 * May not: end the attempt, or make anything.
 */

import type { AttemptRecord, RayJobStatus } from "../../api/rayjob.ts";
import type { EventSpec } from "../decision.ts";
import { type Instant, toWire } from "../time.ts";
import { mirror } from "./cluster.ts";
import { findCondition, type Reasons, withCondition } from "./conditions.ts";
import type { Pass } from "./evidence.ts";
import { isTerminal, type RayJobInfo } from "./ray.ts";
import { currentRecord } from "./records.ts";
import { revise, reviseRecord } from "./status.ts";

export interface Learnt extends Pass {
  readonly events?: readonly EventSpec[];
}

/** The status with what Ray said in it. */
export function learn(pass: Pass, info: RayJobInfo): Learnt {
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
    record: currentRecord({ ...observed, job: { ...observed.job, status: health.status } }) ?? pass.record,
    events: [...(first ? [submitted] : []), ...health.events],
  };
}

/** A submitter that somebody keeps deleting is not wanted. */
const MOST_DELETIONS = 1;
const DELETED = "The submitter's Kubernetes Job was deleted.";
const DELETED_AGAIN = "The submitter's Kubernetes Job was deleted again; it is not made another time.";
const STOPPED = "The submitter was deleted, because the job is being stopped.";
const MADE_AGAIN = "The submitter was deleted, and made once more to follow the log.";

/** `SubmitterHealthy`, and one event when it ceases to be. A submitter says nothing about the job itself. */
function submitterHealth(
  { observed, record, evidence: { submitter, answer }, now }: Pass,
  status: RayJobStatus,
): { readonly status: RayJobStatus; readonly events: readonly EventSpec[] } {
  const { submitterDeletions: deletions = 0 } = record;
  // There is none in HTTPMode; and a sidecar goes with its head, which is told elsewhere.
  if (record.submissionMode !== "K8sJobMode" && submitter.is === "absent") return { status, events: [] };
  const before = findCondition(status, "SubmitterHealthy");
  const health = (value: boolean, reason: Reasons["SubmitterHealthy"], message: string) => {
    const next = withCondition(status, now, "SubmitterHealthy", value, reason, message);
    const note = `${message.replace(/[^.!?]$/, "$&.")} The Ray job is not affected; its log can be read from Ray.`;
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
      return health(true, "Following", deletions > 0 ? MADE_AGAIN : following(submitter.restarts));
    }
    case "finished":
      return judged(submitter.at)
        ? health(false, "Finished", "The submitter has ended although the job runs; nobody follows the log.")
        : { status, events: [] };
    case "failed":
      return judged(submitter.at) ? health(false, submitter.why, submitter.message) : { status, events: [] };
    case "absent":
    case "leftover":
    case "stranger": {
      if (before?.status === "False") return { status, events: [] };
      // Our own doing is no loss.
      if (record.endTime !== undefined) return { status: health(false, "Deleted", STOPPED).status, events: [] };
      const lost = health(false, "Deleted", deletions < MOST_DELETIONS ? DELETED : DELETED_AGAIN);
      // Counted in the journal before the next one is made, by whoever leads then.
      const counted = currentRecord({ ...observed, job: { ...observed.job, status: lost.status } }) ?? record;
      return { ...lost, status: reviseRecord(lost.status, counted, { submitterDeletions: deletions + 1 }) };
    }
  }
}

function following(restarts = 0): string {
  if (restarts === 0) return "The submitter follows the job's log.";
  const times = restarts === 1 ? "once" : `${restarts} times`;
  return `The submitter follows the job's log; its container was started again ${times}.`;
}

/** Whether a deleted submitter is made once more, since the job that it followed still runs. */
export const mayFollowAgain = (status: RayJobStatus, { submitterDeletions = 0 }: AttemptRecord): boolean =>
  status.jobStatus === "RUNNING" &&
  findCondition(status, "SubmitterHealthy")?.reason === "Deleted" &&
  submitterDeletions > 0 &&
  submitterDeletions <= MOST_DELETIONS;
