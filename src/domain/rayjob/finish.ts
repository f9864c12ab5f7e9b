/**
 * Complete and Failed: the RayJob is over; its RayCluster goes by policy (policy.ts).
 *
 * Answers: what is deleted, and when; when it may be said that nothing is held any more.
 * May not: change the verdict. The submitter Job stays, for its log; a submitter that still works gets no further try,
 * or goes, where it might yet submit what has been given up.
 */
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJobStatus } from "../../api/rayjob.ts";
import type { Decision, Effect, KubeEffect } from "../decision.ts";
import { earliest, fromWire, type Instant, toWire } from "../time.ts";
import { absence, enumerate, unproven } from "./absence.ts";
import {
  deleteCluster,
  deleteSubmitter,
  findSubmitter,
  isLeaving,
  placeOf,
  type Remains,
  refOf,
  remains,
} from "./children.ts";
import { findCondition, isTrue, withCondition } from "./conditions.ts";
import { mayYetBeSubmitted, wasGivenUp } from "./givenUp.ts";
import { holdingsNews } from "./holdings.ts";
import type { ObservedRayJob } from "./observe.ts";
import { disposalOf, endOf, type Stage, stageNow } from "./policy.ts";
import type { RayCommand } from "./ray.ts";
import { currentRecord, isSelected, statusOf } from "./records.ts";
import { revise } from "./status.ts";
import { lastTry, submitterState } from "./submitter.ts";

export function finish(observed: ObservedRayJob, now: Instant): Decision<RayCommand> {
  const { job } = observed;
  const status = statusOf(job);
  const record = currentRecord(observed);
  const some = remains(observed, record);
  // What ended under KubeRay stays as KubeRay left it, save that what is to go by policy goes when it is due.
  const isOurs = status.attempts !== undefined;
  const submitter = record && isOurs ? settleSubmitter(observed, status, record) : [];
  if (record && isOurs && mayYetBeSubmitted(observed, status, record)) {
    const why = "the attempt was given up, and its sidecar might still submit the job";
    const all = some.rayClusters.filter((cluster) => !isLeaving(cluster));
    if (all.length > 0) return { summary: why, effects: all.map((one) => deleteCluster(one, why)), events: [] };
  }
  const disposal = disposalOf(job.spec, status, observed.settings, isSelected(record));
  if (endOf(status) === undefined && disposal.stages.some(({ after }) => after > 0)) {
    // Written down, so that the time does not begin anew with whoever leads next.
    const summary = "the job is over, and its status does not say since when: from now on";
    return { summary, effects: [], events: [], status: revise(status, { endTime: toWire(now) }) };
  }
  const { due, nextAt } = stageNow(disposal, status, now);
  if (due?.policy === "DeleteSelf") {
    const why = `the job is over, and its time by ${due.field} has passed`;
    const effect: Effect<RayCommand> = { do: "delete", ref: refOf("RayJob", job), propagation: "Background", why };
    return { summary: why, effects: [effect], events: [] };
  }
  const effects = [...submitter, ...(due ? disposals[due.policy](some) : [])];
  if (effects.length > 0) return { summary: "the job is over: cleaning up", effects, events: [], wakeAt: nextAt };
  const released = release(observed, status, record, now);
  return { ...released, wakeAt: earliest(released.wakeAt, nextAt) };
}

/** What each policy does to the RayClusters that are this RayJob's own. */
const disposals: Readonly<Record<Exclude<Stage["policy"], "DeleteSelf">, (some: Remains) => readonly KubeEffect[]>> = {
  DeleteCluster: ({ rayClusters }) =>
    rayClusters.filter((cluster) => !isLeaving(cluster)).map((cluster) => deleteCluster(cluster, "the job is over")),
  DeleteWorkers: ({ rayClusters }) => rayClusters.filter(hasWorkers).map(suspendWorkers),
};

/** One that somebody has suspended as a whole has none either; `suspend` of the cluster is not this RayJob's to change. */
const hasWorkers = (cluster: RayCluster): boolean =>
  !isLeaving(cluster) && !cluster.spec.suspend && (cluster.spec.workerGroupSpecs ?? []).some(({ suspend }) => !suspend);

function suspendWorkers(cluster: Stored<RayCluster>): KubeEffect {
  const place = placeOf(cluster);
  return {
    do: "patch",
    ref: refOf("RayCluster", cluster),
    patch: { spec: { workerGroupSpecs: cluster.spec.workerGroupSpecs?.map((group) => ({ ...group, suspend: true })) } },
    resourceVersion: cluster.metadata.resourceVersion,
    why: "the job is over, and its policy is to keep the head only",
    event: {
      type: "Normal",
      reason: "UpdatedRayCluster",
      action: "Update",
      note: `Set the \`suspend\` field to true for all worker groups in cluster ${place}`,
    },
    failureEvent: {
      type: "Warning",
      reason: "FailedToUpdateRayCluster",
      action: "Update",
      note: `Failed to suspend worker groups in cluster ${place}: {error}`,
    },
  };
}

function settleSubmitter(
  observed: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord,
): readonly Effect<RayCommand>[] {
  if (record.submissionMode !== "K8sJobMode") return [];
  const submitter = submitterState(findSubmitter(observed, record), observed.pods);
  if (submitter.is !== "working" || !submitter.object) return [];
  const created = fromWire(submitter.object.metadata.creationTimestamp) ?? 0;
  if (created >= (endOf(status) ?? Number.POSITIVE_INFINITY)) {
    return [deleteSubmitter(submitter.object, "it came after the end, from a request that had been given up")];
  }
  // Where Ray holds the end, the submitter has nothing left to submit.
  if (wasGivenUp(status)) {
    return [deleteSubmitter(submitter.object, "the attempt was given up: nothing may be submitted any more")];
  }
  const patch = lastTry(submitter.object);
  return patch ? [patch] : [];
}

/**
 * `ResourcesReleased`: said once, when no Pod holds a machine any more; a finished submitter's Pod holds none. Before that,
 * what is held.
 */
function release(
  observed: ObservedRayJob,
  status: RayJobStatus,
  record: AttemptRecord | undefined,
  now: Instant,
): Decision<RayCommand> {
  // A RayJob that ended under KubeRay has no conditions, and gets none: an upgrade is no reason to rewrite what is over.
  const reported = findCondition(status, "ResourcesReleased") !== undefined;
  if (!reported || isTrue(status, "ResourcesReleased")) return { summary: "the job is over", effects: [], events: [] };
  const found = absence(observed, "machines");
  const waiting = unproven(found, now);
  if (waiting) return waiting;
  if (found.is === "left") {
    const news = record && holdingsNews(status, observed, record, now);
    const summary = `the job is over; still there: ${enumerate(found.objects)}`;
    return { summary, effects: [], status: news, events: [] };
  }
  return {
    summary: "the job is over, and nothing is held any more",
    effects: [],
    status: withCondition(status, now, "ResourcesReleased", true, "Released", "No Pod of this RayJob is running."),
    events: [],
  };
}
