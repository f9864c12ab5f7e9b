/**
 * The RayCluster of an attempt: how it is built, whether it is ready, and what its head Pod shows.
 *
 * May not: judge the job. That the head is gone is a fact here; what follows from it is verdict.ts's business.
 */
import type { ContainerStatus, Pod } from "../../api/kubernetes.ts";
import { ANNOTATION, LABEL, NODE_TYPE } from "../../api/labels.ts";
import type { KubeObject, OwnerReference, Stored } from "../../api/object.ts";
import type { RayCluster, RayClusterStatus } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJob } from "../../api/rayjob.ts";
import type { KubeEffect, LiveQuestion } from "../decision.ts";
import { tokenSecret } from "../raycluster/auth.ts";
import { dashboardAddress, headPodName, isAddressIn } from "../raycluster/names.ts";
import { silenceOf } from "../raycluster/observe.ts";
import { hasLostOneHead, hasOneHead, isFaultTolerant, oneHeadUID } from "../raycluster/oneHead.ts";
import { PROVISIONING } from "../raycluster/status.ts";
import type { Settings } from "../settings.ts";
import { fromWire, type Instant, seconds } from "../time.ts";
import { isLeaving, ownerUID } from "./children.ts";
import { isInteractive } from "./interactive.ts";
import type { ObservedRayJob } from "./observe.ts";
import type { RayTarget } from "./ray.ts";
import { statusOf } from "./records.ts";
import { isSidecar, withSidecar } from "./sidecar.ts";
import { same } from "./status.ts";
import { submissionAnnotation } from "./submission.ts";

/** A wire time is rounded down: what it tells of has happened by the end of that second. */
const WIRE_RESOLUTION = seconds(1);

export function ownedBy(job: Stored<RayJob>): OwnerReference {
  return {
    apiVersion: "ray.io/v1",
    kind: "RayJob",
    name: job.metadata.name,
    uid: job.metadata.uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** Label and annotation that tell an attempt's objects apart; RayCluster and Job templates pass them on to every Pod. */
export function attemptLabels(job: Stored<RayJob>, record: AttemptRecord): Record<string, string> {
  return { [LABEL.executionAttempt]: String(record.number), [LABEL.rayJobUID]: job.metadata.uid };
}

export const attemptAnnotations = (record: AttemptRecord): Record<string, string> => ({
  [LABEL.executionAttempt]: String(record.number),
});

/** Whether a second head would run the job of this attempt a second time, or beside the first one. */
function wantsOneHead({ retryStrategy, submissionMode }: AttemptRecord, { spec, metadata }: RayJob): boolean {
  const wanted = retryStrategy === "BlockingRecreate" || submissionMode === "SidecarMode";
  return wanted && !isFaultTolerant(spec.rayClusterSpec, metadata.annotations);
}

/** The event when the API server refuses an attempt's RayCluster. */
export const CLUSTER_REFUSED = "FailedToCreateRayCluster";

/** Creates the RayCluster that the record names, from what spec says now. Kueue wants all labels and annotations on it. */
export function createCluster(job: Stored<RayJob>, record: AttemptRecord, settings: Settings): KubeEffect {
  const { name, namespace, labels, annotations } = job.metadata;
  const spec = isSidecar(record) ? withSidecar(job, record, settings) : job.spec.rayClusterSpec!;
  const one = wantsOneHead(record, job);
  const own = {
    ...inherited(annotations),
    ...attemptAnnotations(record),
    ...(one && { [ANNOTATION.oneHead]: "true" }),
    // KubeRay's word for it, which its users' tools know.
    ...(one && isSidecar(record) && { [ANNOTATION.disableProvisionedHeadRestart]: "true" }),
  };
  const object: RayCluster & KubeObject & { kind: "RayCluster"; apiVersion: string } = {
    apiVersion: "ray.io/v1",
    kind: "RayCluster",
    metadata: {
      name: record.rayClusterName,
      namespace,
      labels: {
        ...labels,
        [LABEL.originatedFromName]: name,
        [LABEL.originatedFromCRD]: "RayJob",
        [LABEL.jobSubmissionMode]: record.submissionMode ?? "K8sJobMode",
        ...attemptLabels(job, record),
      },
      annotations: { ...own, ...submissionAnnotation(job.spec, own) },
      ownerReferences: [ownedBy(job)],
    },
    spec,
  };
  const place = `${namespace}/${record.rayClusterName}`;
  return {
    do: "create",
    object,
    why: `attempt ${record.number} needs its RayCluster`,
    event: { type: "Normal", reason: "CreatedRayCluster", action: "Create", note: `Created RayCluster ${place}` },
    failureEvent: {
      type: "Warning",
      reason: CLUSTER_REFUSED,
      action: "Create",
      note: `Failed to create RayCluster ${place}: {error}`,
    },
  };
}

/** `kubectl apply` keeps the whole manifest in an annotation; on another object it would be a lie, as what is ours would. */
function inherited(annotations: Record<string, string> | undefined): Record<string, string> {
  const {
    "kubectl.kubernetes.io/last-applied-configuration": _,
    [ANNOTATION.submission]: __,
    [ANNOTATION.oneHead]: ___,
    ...rest
  } = annotations ?? {};
  return rest;
}

export type Readiness =
  /** `settled`: from then on its dashboard should answer. */
  | { readonly ready: true; readonly head: Stored<Pod>; readonly settled: Instant }
  | { readonly ready: false; readonly why: string };

/** A head that has just become ready may need this long until its dashboard answers under its name. */
const SETTLING = seconds(10);
/** From the start of a head's container until its dashboard answers, at most. */
const HEAD_START = seconds(60);

/**
 * Whether the attempt goes on with this cluster now. A sidecar waits for nobody: as soon as its head runs the job may be
 * with Ray, whatever the workers do.
 */
export const readinessFor = (
  record: AttemptRecord,
  cluster: Stored<RayCluster>,
  pods: readonly Stored<Pod>[],
): Readiness => (isSidecar(record) ? headReadiness(cluster, pods) : readiness(cluster, pods));

/** What has come to be when the attempt goes on, as the beginning of a sentence. */
export const upText = (record: AttemptRecord | undefined, cluster: string | undefined): string =>
  record && isSidecar(record) ? `The head of RayCluster ${cluster} runs` : `RayCluster ${cluster} is ready`;

/** Whether its head runs: in SidecarMode Ray may have the job from then on. */
export function headReadiness(cluster: Stored<RayCluster>, pods: readonly Stored<Pod>[]): Readiness {
  // Where there may be one head only, it has to be that one; which one it is the cluster may say late.
  const one = hasOneHead(cluster) ? oneHeadUID(cluster) : undefined;
  const mayServe = ({ metadata }: Stored<Pod>) => one === undefined || metadata.uid === one;
  const head = headsOf(cluster, pods).find(
    (pod) => !isLeaving(pod) && pod.status?.phase === "Running" && mayServe(pod),
  );
  const startedAt = upper(head && rayContainer(head)?.state?.running?.startedAt);
  if (head && startedAt !== undefined) return { ready: true, head, settled: startedAt + HEAD_START };
  const trouble = troubleOf(cluster);
  const name = cluster.metadata.name;
  return { ready: false, why: trouble ? `Waiting for RayCluster ${name}: ${trouble}` : waitingFor(name) };
}

/**
 * Whether the job can be handed to this cluster now. `status.state` alone would not do: it stays `ready` once it was,
 * so the head is looked at, too (its condition and its Pod).
 */
export function readiness(cluster: Stored<RayCluster>, pods: readonly Stored<Pod>[]): Readiness {
  const name = cluster.metadata.name;
  const head = headsOf(cluster, pods).find((pod) => !isLeaving(pod) && isReady(pod));
  const trouble = troubleOf(cluster);
  if (trouble) return { ready: false, why: `Waiting for RayCluster ${name}: ${trouble}` };
  if (cluster.status?.state !== "ready" || !head) return { ready: false, why: waitingFor(name) };
  // Where there may be one head only, it has to be that one.
  if (hasOneHead(cluster) && head.metadata.uid !== oneHeadUID(cluster)) return { ready: false, why: waitingFor(name) };
  if (conditionOf(cluster, "HeadPodReady")?.status === "False") return { ready: false, why: waitingFor(name) };
  return { ready: true, head, settled: readySince(head) + SETTLING };
}

/** `trouble`: what keeps the submitter from starting. */
export const beingSubmitted = (record: AttemptRecord, trouble?: string): string =>
  `${upText(record, record.rayClusterName)}; job ${record.jobId} is ${isInteractive(record) ? "to be submitted by its user" : "being submitted"}.${trouble ? ` Its submitter cannot start: ${trouble}` : ""}`;

export const waitingFor = (cluster: string | undefined): string => `Waiting for RayCluster ${cluster} to be ready.`;

/**
 * What keeps a cluster from starting, in the words of its conditions. Being on the way is no trouble: a message that
 * followed every step would cost a write at each.
 */
const ON_THE_WAY = new Set([
  "HeadPodNotFound",
  "ContainersNotReady",
  "ContainerCreating",
  "PodInitializing",
  "HeadPodRunningAndReady",
  "Unknown",
  "",
]);

function troubleOf(cluster: RayCluster): string | undefined {
  if (cluster.spec.suspend) return "it is suspended, so nothing runs in it; set its spec.suspend to false";
  const failure = conditionOf(cluster, "ReplicaFailure");
  if (failure?.status === "True") return `${failure.reason}: ${failure.message}`;
  const head = conditionOf(cluster, "HeadPodReady");
  if (head?.status === "False" && !ON_THE_WAY.has(head.reason)) return `${head.reason}: ${head.message}`;
  // It tells of the workers, too.
  const provisioned = conditionOf(cluster, "RayClusterProvisioned");
  const trouble = `${PROVISIONING}: `;
  return provisioned?.message.startsWith(trouble) ? provisioned.message.slice(trouble.length) : undefined;
}

const conditionOf = (cluster: RayCluster, type: string) =>
  cluster.status?.conditions?.find((condition) => condition.type === type);

export const headsOf = (cluster: Stored<RayCluster>, pods: readonly Stored<Pod>[]): readonly Stored<Pod>[] =>
  pods.filter(
    (pod) => pod.metadata.labels?.[LABEL.nodeType] === NODE_TYPE.head && ownerUID(pod) === cluster.metadata.uid,
  );

const podCondition = (pod: Pod, type: string) => pod.status?.conditions?.find((condition) => condition.type === type);

const isReady = (pod: Pod): boolean => pod.status?.phase === "Running" && podCondition(pod, "Ready")?.status === "True";

const readySince = (pod: Pod): Instant =>
  upper(podCondition(pod, "Ready")?.lastTransitionTime) ?? upper(pod.metadata.creationTimestamp) ?? 0;

const upper = (wire: string | undefined): Instant | undefined => {
  const instant = fromWire(wire);
  return instant === undefined ? undefined : instant + WIRE_RESOLUTION;
};

/** What the head Pod shows, held against the one the job was submitted to. */
export interface HeadFacts {
  /** The Pod that is head now, if any. */
  readonly pod: Stored<Pod> | undefined;
  /** It is not what it was: an end in words, for a message. Undefined while the head is the same and well. */
  readonly lost: string | undefined;
  /** No head Pod in the cache at all: to be confirmed, since the cache may lag. */
  readonly missing: boolean;
  /** Since when, at the latest, the head is as it is now: an answer asked for earlier says nothing about it. */
  readonly changedAt: Instant;
  /** Why its Ray container ended last, where the Pod tells: out of memory, evicted, exit code. */
  readonly lastEnd: string | undefined;
}

export function headFacts(
  cluster: Stored<RayCluster> | undefined,
  pods: readonly Stored<Pod>[],
  recordedUID: string | undefined,
): HeadFacts {
  const heads = cluster ? headsOf(cluster, pods) : [];
  const recorded = heads.find((pod) => pod.metadata.uid === recordedUID);
  const pod = recorded ?? heads.find((candidate) => !isLeaving(candidate)) ?? heads[0];
  if (pod === undefined) {
    const lost = cluster ? `head Pod ${headPodName(cluster.metadata.name)} is gone` : "no head Pod exists any more";
    return { pod: undefined, lost, missing: true, changedAt: 0, lastEnd: undefined };
  }
  const lastEnd = endOf(pod);
  return { pod, lost: lossOf(pod, recordedUID, lastEnd), missing: false, changedAt: changedAt(pod), lastEnd };
}

/** Asked before a head that the cache does not show is believed to be gone. */
export const headQuestion = (namespace: string, cluster: string): LiveQuestion => ({
  ask: "list",
  kind: "Pod",
  namespace,
  labels: { [LABEL.cluster]: cluster, [LABEL.nodeType]: NODE_TYPE.head },
});

/**
 * Why a cluster that may have one head only will never be ready: that head is lost. `missing`: the cache shows none, which
 * the API server has to confirm. A head out of reach may come back.
 */
export function lossOfOneHead(
  cluster: Stored<RayCluster>,
  pods: readonly Stored<Pod>[],
): { readonly why: string; readonly missing: boolean } | undefined {
  const uid = oneHeadUID(cluster);
  if (!hasOneHead(cluster) || uid === undefined) return undefined;
  const { pod, lost, missing } = headFacts(cluster, pods, uid);
  const gone = !pod || pod.metadata.uid !== uid || isLeaving(pod) || hasLostOneHead(cluster, [pod]);
  return gone && lost !== undefined ? { why: lost, missing } : undefined;
}

function lossOf(pod: Stored<Pod>, recordedUID: string | undefined, lastEnd: string | undefined): string | undefined {
  const name = `head Pod ${pod.metadata.name}`;
  if (recordedUID !== undefined && pod.metadata.uid !== recordedUID) {
    return `${name} was replaced at ${pod.metadata.creationTimestamp} (UID ${recordedUID} is gone, ${pod.metadata.uid} took its place)`;
  }
  if (isLeaving(pod)) return `${name} is being deleted${lastEnd ? ` (${lastEnd})` : ""}`;
  const phase = pod.status?.phase;
  if (phase === "Failed" || phase === "Succeeded") return `${name} ended${lastEnd ? `: ${lastEnd}` : ""}`;
  const ended = rayContainer(pod)?.state?.terminated;
  // The Pod lives on with what else is in it.
  if (ended && pod.spec?.restartPolicy === "Never") return `${name} ended: ${lastEnd}`;
  if (silenceOf(pod)) {
    return `${name} is out of reach: its node ${pod.spec?.nodeName ?? ""} does not report any more`;
  }
  return undefined;
}

/** The newest thing that may have taken Ray's memory: Pod made, Ray container started or ended, deletion asked for. */
function changedAt(pod: Stored<Pod>): Instant {
  const deletion = fromWire(pod.metadata.deletionTimestamp);
  const asked =
    deletion === undefined
      ? undefined
      : deletion - seconds(pod.metadata.deletionGracePeriodSeconds ?? 0) + WIRE_RESOLUTION;
  const { running, terminated } = rayContainer(pod)?.state ?? {};
  const moved = upper(running?.startedAt ?? terminated?.finishedAt);
  return Math.max(upper(pod.metadata.creationTimestamp) ?? 0, moved ?? 0, asked ?? 0);
}

/** The Ray container is the template's first; an injected one comes after it. */
function rayContainer(pod: Pod): ContainerStatus | undefined {
  const name = pod.spec?.containers?.[0]?.name;
  return pod.status?.containerStatuses?.find((status) => status.name === name) ?? pod.status?.containerStatuses?.[0];
}

function endOf(pod: Pod): string | undefined {
  const status = rayContainer(pod);
  const ended = status?.state?.terminated ?? status?.lastState?.terminated;
  const parts = [
    disruptionOf(pod),
    pod.status?.reason ? `${pod.status.reason}${pod.status.message ? `: ${pod.status.message}` : ""}` : undefined,
    ended
      ? `container ${status?.name} ended with ${ended.reason ?? "no reason"}, exit code ${ended.exitCode}${
          ended.finishedAt ? `, at ${ended.finishedAt}` : ""
        }${ended.message ? `: ${ended.message}` : ""}`
      : undefined,
  ].filter((part) => part !== undefined);
  return parts.length > 0 ? parts.join("; ") : undefined;
}

/** Who has it end, where Kubernetes does: a drain, a scheduler that needs the room, a taint. kubelet has its own words. */
function disruptionOf({ status }: Pod): string | undefined {
  const disruption = status?.conditions?.find(({ type, status: is }) => type === "DisruptionTarget" && is === "True");
  if (!disruption?.reason || status?.reason) return undefined;
  return disruption.message ? `${disruption.reason}: ${disruption.message}` : disruption.reason;
}

/** The RayJob's copy of the cluster's status; kept as it is while nothing a reader acts on has changed. */
export function mirror(copy: RayClusterStatus | undefined, original: RayClusterStatus | undefined) {
  if (original === undefined) return copy;
  return copy !== undefined && same(essence(copy), essence(original)) ? copy : original;
}

function essence(status: RayClusterStatus): unknown {
  const { lastUpdateTime: _, observedGeneration: __, stateTransitionTimes: ___, conditions, ...rest } = status;
  return {
    ...rest,
    conditions: conditions?.map(({ type, status: value, reason }) => ({ type, value, reason })),
  };
}

/** Where and under which id Ray is asked about this attempt; undefined while its dashboard has no address. */
export function targetOf(
  { job, settings }: ObservedRayJob,
  record: AttemptRecord,
  cluster: Stored<RayCluster> | undefined,
): RayTarget | undefined {
  const { uid, namespace = "", name } = job.metadata;
  const { dashboardURL: told = "" } = statusOf(job);
  // Who may write a status in this namespace may not have the operator speak to another one's Ray.
  const known = isAddressIn(namespace, told) ? told : undefined;
  const dashboard = known ?? (cluster ? dashboardAddress(cluster, settings) : undefined);
  if (!dashboard || !record.jobId || !record.rayClusterName) return undefined;
  const { number: attempt, jobId, rayClusterName } = record;
  const secret = cluster && tokenSecret(cluster);
  const token = secret === undefined ? {} : { token: { namespace, name: secret } };
  return { uid, attempt, namespace, name, rayClusterName, jobId, dashboard, ...token };
}
