/**
 * The submitter: what carries the request to Ray and follows the log. In K8sJobMode a Kubernetes Job, which is built
 * here; in SidecarMode a container in the head Pod (sidecar.ts); in HTTPMode nobody.
 *
 * Answers: how it stands, whoever it is; how the Job is built.
 * May not: speak for the job. That the submitter failed is no verdict (verdict.ts).
 * Next: submitterPod.ts has its Pod, program.ts the container that runs the program.
 */
import type { ContainerStatus, Job, Pod } from "../../api/kubernetes.ts";
import { CREATED_BY, LABEL } from "../../api/labels.ts";
import type { KubeObject, Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJob } from "../../api/rayjob.ts";
import type { KubeEffect } from "../decision.ts";
import { lastWords } from "../lastWords.ts";
import { podProblem } from "../raycluster/explain.ts";
import type { Settings } from "../settings.ts";
import { endOfSecond, fromWire, type Instant, seconds } from "../time.ts";
import { type Found, findSubmitter, isLeaving, ownerUID } from "./children.ts";
import { attemptAnnotations, attemptLabels, ownedBy } from "./cluster.ts";
import type { ObservedRayJob } from "./observe.ts";
import type { SubmitRequest } from "./ray.ts";
import { sidecarState } from "./sidecar.ts";
import { submissionOf } from "./submission.ts";
import { submitterPod } from "./submitterPod.ts";

const DEFAULT_BACKOFF_LIMIT = 2;
/** The event when the API server refuses the submitter's Job. */
export const SUBMITTER_REFUSED = "FailedToCreateRayJobSubmitter";
/** A Job gets its Pod at once, as a rule. */
const POD_EXPECTED_WITHIN = seconds(10);

/** How the submitter stands. `object`: its Kubernetes Job, where it is one. */
export type Submitter =
  | { readonly is: "absent" }
  /** Of an earlier attempt or a namesake, or being deleted. */
  | { readonly is: "leftover"; readonly object: Stored<Job> }
  | { readonly is: "stranger"; readonly object: Stored<Job> }
  | {
      readonly is: "working";
      readonly object?: Stored<Job>;
      /** Its last try has failed, and the next has not begun: nobody is reading the log. */
      readonly pausing?: boolean;
      /** How often its container was started again. */
      readonly restarts?: number;
    }
  | { readonly is: "finished"; readonly object?: Stored<Job>; readonly at: Instant }
  | {
      readonly is: "failed";
      readonly object?: Stored<Job>;
      /** From then on nothing more is to be expected of it. */
      readonly at: Instant;
      readonly why: "JobFailed" | "ContainerExited" | "RestartLimit";
      readonly message: string;
    };

/** How the submitter of this attempt stands, whoever it is. `head`: the Pod that a sidecar is in. */
export function submitterOf(observed: ObservedRayJob, record: AttemptRecord, head: Stored<Pod> | undefined): Submitter {
  switch (record.submissionMode) {
    case "SidecarMode":
      return sidecarState(head);
    case "K8sJobMode":
      return submitterState(findSubmitter(observed, record), observed.pods);
    default:
      return { is: "absent" };
  }
}

export function submitterState(found: Found<Job>, pods: readonly Stored<Pod>[]): Submitter {
  if (found.is === "absent") return found;
  const object = found.object as Stored<Job>;
  if (found.is !== "ours") return { is: found.is, object };
  const condition = (type: string) =>
    object.status?.conditions?.find((candidate) => candidate.type === type && candidate.status === "True");
  const complete = condition("Complete");
  if (complete) return { is: "finished", object, at: endOfSecond(complete.lastTransitionTime) };
  const failed = condition("Failed");
  if (failed) {
    const said = `Job submission has failed. Reason: ${failed.reason ?? ""}. Message: ${failed.message ?? ""}`;
    const pod = lastWordsOf(object, pods);
    const message = pod ? `${said}. ${pod}` : said;
    return { is: "failed", object, at: endOfSecond(failed.lastTransitionTime), why: "JobFailed", message };
  }
  return { is: "working", object, pausing: isPausing(object, pods) };
}

/** Between two Pods; or, with restartPolicy OnFailure, between two starts of its container. */
function isPausing({ metadata, status }: Stored<Job>, pods: readonly Stored<Pod>[]): boolean {
  if ((status?.failed ?? 0) > 0 && !status?.active) return true;
  const alive = pods.filter(
    (pod) => ownerUID(pod) === metadata.uid && !isLeaving(pod) && pod.status?.phase === "Running",
  );
  return alive.length > 0 && alive.every((pod) => isDown(pod) && !isEnding(pod));
}

/**
 * All that ran in it has ended, and none is started again: in a moment kubelet calls the Pod ended, and then its Job is.
 * Waiting for that costs a second or two. Kueue suspends a Job that is not over when the RayJob is, and with it goes the
 * Pod, and its log.
 */
function isEnding({ spec, status }: Pod): boolean {
  const ends = status?.containerStatuses?.map(({ state }) => state?.terminated) ?? [];
  const { restartPolicy = "Always", containers = [] } = spec ?? {};
  const stays = (exitCode: number | undefined) =>
    restartPolicy === "Never" || (restartPolicy === "OnFailure" && exitCode === 0);
  return ends.length >= containers.length && ends.every((end) => end !== undefined && stays(end.exitCode));
}

/** The submitter's container has ended, though its Pod lives on: with others in it, or because it is started again. */
function isDown(pod: Pod): boolean {
  const { state, lastState } = statusOfSubmitter(pod) ?? {};
  return !state?.running && (state?.terminated ?? lastState?.terminated) !== undefined;
}

/** Of the Pod's first container; kubelet tells of them in no order to rely on. */
function statusOfSubmitter({ spec, status }: Pod): ContainerStatus | undefined {
  const all = status?.containerStatuses;
  return all?.find(({ name }) => name === spec?.containers?.[0]?.name) ?? all?.[0];
}

/** The Job's condition tells only of its limit; the Pods tell why (a program that is not there, memory, an exit code). */
function lastWordsOf(job: Stored<Job>, pods: readonly Stored<Pod>[]): string | undefined {
  const words = pods
    .filter((pod) => ownerUID(pod) === job.metadata.uid)
    .sort((one, other) => one.metadata.creationTimestamp.localeCompare(other.metadata.creationTimestamp))
    .flatMap((pod) => {
      const status = statusOfSubmitter(pod);
      const end = status?.state?.terminated ?? status?.lastState?.terminated ?? status?.state?.waiting;
      if (!end) return [];
      const exit = "exitCode" in end && end.exitCode !== undefined ? `, exit code ${end.exitCode}` : "";
      const words = lastWords(end.message);
      return [`Pod ${pod.metadata.name}: ${end.reason ?? "ended"}${exit}${words ? `: ${words}` : ""}`];
    });
  return words.at(-1);
}

/** Why the submitter's Pod cannot even start (an image, a node, a quota), and when more will be known of that. */
export function submitterTrouble(
  submitter: Submitter,
  { job: { metadata }, pods, refused }: ObservedRayJob,
  now: Instant,
): { readonly is?: string; readonly wakeAt?: Instant } {
  if (submitter.is === "absent") {
    const write = refused?.find(({ reason }) => reason === SUBMITTER_REFUSED);
    return write ? { is: `Job ${metadata.name} is refused by the API server: ${write.message}.` } : {};
  }
  const job = submitter.is === "working" ? submitter.object : undefined;
  if (!job) return {};
  const own = pods.filter((pod) => ownerUID(pod) === job.metadata.uid);
  if (own.length === 0) return withoutPod(job, now);
  for (const pod of own) {
    const problem = isLeaving(pod) ? undefined : podProblem(pod);
    // How one ended is for the Job to count; the next is made.
    if (problem && !problem.ended && pod.status?.phase === "Pending") {
      return { is: `Pod ${pod.metadata.name} ${problem.message}.` };
    }
  }
  return {};
}

/** The Job controller tells by events alone why it can make no Pod: a quota, Pod Security, a LimitRange, a webhook. */
function withoutPod({ metadata: { name, namespace, creationTimestamp }, spec, status }: Stored<Job>, now: Instant) {
  if (spec?.suspend)
    return { is: `Job ${name} is suspended, and not by this operator: it has no Pod until that is undone.` };
  if (status?.active || status?.failed || status?.succeeded) return {};
  const wakeAt = (fromWire(creationTimestamp) ?? now) + POD_EXPECTED_WITHIN;
  if (now < wakeAt) return { wakeAt };
  return { is: `Job ${name} has no Pod; \`kubectl describe job -n ${namespace} ${name}\` says why.` };
}

/** Whether nobody reads the log now: it has ended, or failed and is not back yet. */
export const isDone = (submitter: Submitter): boolean => submitter.is !== "working" || submitter.pausing === true;

/** Creates the submitter of the current attempt. */
export function createSubmitter(
  job: Stored<RayJob>,
  record: AttemptRecord,
  cluster: RayCluster,
  request: SubmitRequest,
  dashboard: string,
  settings: Settings,
): KubeEffect {
  const { name, namespace } = job.metadata;
  const labels = {
    [LABEL.originatedFromName]: name,
    [LABEL.originatedFromCRD]: "RayJob",
    [LABEL.createdBy]: CREATED_BY,
    ...attemptLabels(job, record),
  };
  const annotations = attemptAnnotations(record);
  const { submitterConfig, submitterPodTemplate } = submissionOf(job.spec, record, cluster);
  const object: Job & KubeObject & { kind: "Job"; apiVersion: string } = {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name, namespace, labels, annotations, ownerReferences: [ownedBy(job)] },
    spec: {
      backoffLimit: submitterConfig?.backoffLimit ?? DEFAULT_BACKOFF_LIMIT,
      template: submitterPod(
        submitterPodTemplate,
        { labels, annotations },
        record,
        request,
        { cluster, dashboard },
        settings,
      ),
    },
  };
  const place = `${namespace}/${name}`;
  return {
    do: "create",
    object,
    why: `attempt ${record.number} needs its submitter`,
    event: {
      type: "Normal",
      reason: "CreatedRayJobSubmitter",
      action: "Create",
      note: `Created Kubernetes Job ${place}`,
    },
    failureEvent: {
      type: "Warning",
      reason: SUBMITTER_REFUSED,
      action: "Create",
      note: `Failed to create new Kubernetes Job ${place}: {error}`,
    },
  };
}

/** A submitter that outlives its job gets no further try: the first failure of a Pod ends it. */
export function lastTry(job: Stored<Job>): KubeEffect | undefined {
  if (isLeaving(job) || job.spec?.backoffLimit === 0) return undefined;
  return {
    do: "patch",
    ref: { kind: "Job", namespace: job.metadata.namespace ?? "", name: job.metadata.name, uid: job.metadata.uid },
    patch: { spec: { backoffLimit: 0 } },
    resourceVersion: job.metadata.resourceVersion,
    why: "the Ray job has ended, so its submitter is not to be started again",
  };
}
