/**
 * What an attempt needs while it runs: its submitter, and the RayJob's head Service.
 *
 * May not: make anything twice. What the cache does not show is asked for at the API server first, and so is whether the
 * RayJob is still where the cache shows it.
 */
import type { Service } from "../../api/kubernetes.ts";
import { LABEL } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { RayJobStatus } from "../../api/rayjob.ts";
import { type Decision, type Effect, type EventSpec, type LiveQuestion, questionKey } from "../decision.ts";
import { earliest, type Instant, seconds } from "../time.ts";
import { deleteService, findHeadService, isLeaving, isStill, ownerUID, standing } from "./children.ts";
import { findCondition, withCondition } from "./conditions.ts";
import type { Pass } from "./evidence.ts";
import { mayFollowAgain } from "./learn.ts";
import { headServiceName } from "./names.ts";
import type { RayCommand, SubmitRequest } from "./ray.ts";
import { isSelected, statusOf } from "./records.ts";
import { buildRequest } from "./request.ts";
import { createHeadService } from "./service.ts";
import { same } from "./status.ts";
import { submissionOf } from "./submission.ts";
import { createSubmitter } from "./submitter.ts";

const PATROL = seconds(2);
/** While a stranger bears a name that is needed; it is not watched. */
const STRANGER_PATROL = seconds(30);

/**
 * What was learnt is written first; what is missing is made in the pass after. An object that the API server refuses
 * for ever (a quota, a webhook) then keeps nothing from being known. `waiting` is what is told of the wait for it, save
 * where it cannot be made at all: then that is told, and only that, or each would be written over the other for ever.
 */
export function provide(
  pass: Pass,
  summary: string,
  events: readonly EventSpec[],
  wakeAt: Instant | undefined,
  waiting: RayJobStatus = pass.status,
): Decision<RayCommand> {
  const { observed } = pass;
  if (!same(pass.status, observed.job.status)) return { summary, effects: [], status: pass.status, events, wakeAt };
  const made = [ensureSubmitter(pass), ensureHeadService(pass)];
  const ask = made.flatMap((one) => one.ask ?? []);
  if (ask.length > 0) return { summary: "is what is to be made really missing?", effects: [], events: [], ask };
  const status = made[0]!.status ?? waiting;
  return {
    summary,
    effects: same(status, observed.job.status) ? made.flatMap((one) => one.effects ?? []) : [],
    status,
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
  // A selected cluster has Services of its own, and others beside this job.
  if (!cluster || isLeaving(cluster) || isSelected(record)) return {};
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
  const questions: readonly LiveQuestion[] = [
    { ask: "get", kind: "Service", namespace, name: headServiceName(name) },
    { ask: "get", kind: "RayCluster", namespace, name: cluster.metadata.name },
  ];
  const [services, clusters] = questions.map((question) => observed.live.get(questionKey(question)));
  if (!services || !clusters) return { ask: questions };
  if (services.length > 0) return { wakeAt: now + STRANGER_PATROL };
  // Made for a cluster that is deleted, it is collected at once, and would be made again for as long as the cache lags.
  const stands = clusters.some((found) => found.metadata.uid === cluster.metadata.uid && !isLeaving(found));
  if (!stands) return { wakeAt: now + PATROL };
  return { effects: [createHeadService(observed.job, record, cluster, observed.settings)] };
}

/** The submitter exists once an attempt, and once more where it was deleted after the job was seen. */
function ensureSubmitter(pass: Pass): Ensured {
  const { observed, record, cluster, evidence, now, target } = pass;
  if (record.submissionMode !== "K8sJobMode" || !cluster || isLeaving(cluster) || !target) return {};
  if (record.raySession === undefined || record.submissionStartTime === undefined) return {};
  if (record.observedTime !== undefined && !mayFollowAgain(statusOf(observed.job), record)) return {};
  const { submitter } = evidence;
  const { name, namespace = "" } = observed.job.metadata;
  if (submitter.is === "leftover") return { wakeAt: now + PATROL };
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

function cannotSubmit({ status, now }: Pass, message: string): Ensured {
  const news = findCondition(status, "Started")?.message !== message;
  const event = { type: "Warning", reason: "FailedToCreateRayJobSubmitter", action: "Create", note: message } as const;
  return {
    status: withCondition(status, now, "Started", false, "WaitingForSubmission", message),
    events: news ? [event] : [],
    wakeAt: now + STRANGER_PATROL,
  };
}

/** The submission, or in words why there is none: where spec counts as it is now, an edit that validation refuses. */
export function requestOf({ observed, record, cluster }: Pass): { value: SubmitRequest } | { problem: string } {
  try {
    return { value: buildRequest(submissionOf(observed.job.spec, record, cluster), record) };
  } catch (error) {
    return { problem: (error as Error).message };
  }
}
