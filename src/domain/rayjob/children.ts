/**
 * Whose an existing object is, what is left of an attempt, and how it is cleaned up.
 *
 * Answers: may this object be adopted; does anything of this RayJob still exist; what is to be deleted.
 * May not: conclude absence from the cache alone. `Remains` tells what the cache shows; when it shows nothing, the
 * questions of `proofOfAbsence` are put to the API server before anything irreversible follows.
 */
import type { Job, Pod } from "../../api/kubernetes.ts";
import { FINALIZER, LABEL } from "../../api/labels.ts";
import type { KubeObject, Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord } from "../../api/rayjob.ts";
import { type KubeEffect, type LiveQuestion, type ObjectRef, questionKey, type WritableKind } from "../decision.ts";
import { headServiceName } from "./names.ts";
import type { ObservedRayJob } from "./observe.ts";
import { isSelected, numberIn } from "./records.ts";
import { same } from "./status.ts";

/**
 * - `ours`: made for the current attempt, alive: adopt it.
 * - `leftover`: of an earlier attempt, of a deleted namesake, or on its way out: wait for it to go.
 * - `stranger`: somebody else's: an error shown to the user, never touched.
 */
export type Standing = "ours" | "leftover" | "stranger";

export type Found<T> = { readonly is: "absent" } | { readonly is: Standing; readonly object: Stored<T & KubeObject> };

export const ownerUID = (object: KubeObject): string | undefined =>
  object.metadata.ownerReferences?.find((owner) => owner.controller)?.uid;

export const isLeaving = (object: KubeObject): boolean => object.metadata.deletionTimestamp !== undefined;

/** What an object with a name that the attempt uses is to it. */
export function standing(object: KubeObject, { job }: ObservedRayJob, attempt: number): Standing {
  if (ownerUID(object) !== job.metadata.uid) return isNamesakes(object, job.metadata.name) ? "leftover" : "stranger";
  if (isLeaving(object)) return "leftover";
  // KubeRay labels nothing: whoever is asked about here bears a name that status mentions, so it is the current attempt's.
  const label = object.metadata.labels?.[LABEL.executionAttempt];
  return label === undefined || label === String(attempt) ? "ours" : "leftover";
}

/** Owned by a RayJob of the same name: as only one can exist, that one is gone, and the garbage collector is on its way. */
const isNamesakes = (object: KubeObject, name: string): boolean =>
  object.metadata.ownerReferences?.some(
    (owner) => owner.controller && owner.kind === "RayJob" && owner.name === name,
  ) ?? false;

/** What a RayCluster of the recorded name is to the attempt. A selected one is taken as it is, whoever made it. */
export function clusterStanding(object: KubeObject, observed: ObservedRayJob, record: AttemptRecord): Standing {
  if (!isSelected(record)) return standing(object, observed, record.number);
  return isLeaving(object) ? "leftover" : "ours";
}

/** The attempt's RayCluster. */
export function findCluster(observed: ObservedRayJob, record: AttemptRecord): Found<RayCluster> {
  const object = observed.rayClusters.find((cluster) => cluster.metadata.name === record.rayClusterName);
  return object ? { is: clusterStanding(object, observed, record), object } : { is: "absent" };
}

/** The attempt's submitter: the Kubernetes Job named as the RayJob. */
export function findSubmitter(observed: ObservedRayJob, record: AttemptRecord): Found<Job> {
  const object = observed.jobs.find((job) => job.metadata.name === observed.job.metadata.name);
  return object ? { is: standing(object, observed, record.number), object } : { is: "absent" };
}

const belongs = (object: KubeObject, uid: string): boolean =>
  ownerUID(object) === uid || object.metadata.labels?.[LABEL.rayJobUID] === uid;

/** What `isStill` is asked about. */
export const whereIsIt = ({ job: { metadata } }: ObservedRayJob): LiveQuestion => ({
  ask: "get",
  kind: "RayJob",
  namespace: metadata.namespace ?? "",
  name: metadata.name,
});

/** What still exists of this RayJob, as far as the cache shows. A Pod in Terminating exists. */
export interface Remains {
  readonly rayClusters: readonly Stored<RayCluster>[];
  readonly jobs: readonly Stored<Job>[];
  readonly services: readonly Stored[];
  readonly pods: readonly Stored<Pod>[];
}

export function remains(observed: ObservedRayJob, record: AttemptRecord | undefined): Remains {
  const { uid } = observed.job.metadata;
  const ofCluster = (pod: Pod): boolean =>
    record?.ownsCluster === true &&
    record.rayClusterName !== undefined &&
    pod.metadata.labels?.[LABEL.cluster] === record.rayClusterName;
  const known = (object: KubeObject): boolean => !isOfLaterAttempt(object, record);
  return {
    rayClusters: observed.rayClusters.filter((cluster) => belongs(cluster, uid) && known(cluster)),
    jobs: observed.jobs.filter((job) => belongs(job, uid) && known(job)),
    // Those of a RayCluster go with it.
    services: observed.services.filter((service) => ownerUID(service) === uid && known(service)),
    pods: observed.pods.filter((pod) => (belongs(pod, uid) || ofCluster(pod)) && known(pod)),
  };
}

/**
 * Made for an attempt that the record does not tell of: the cache shows an older RayJob than its children, as it may
 * after a change of leaders. To clean that up would be to kill the attempt that is running.
 */
export function isOfLaterAttempt(object: KubeObject, record: AttemptRecord | undefined): boolean {
  const attempt = Number(object.metadata.labels?.[LABEL.executionAttempt] ?? Number.NaN);
  return record !== undefined && attempt > record.number;
}

/** The highest number of an attempt that anything of this RayJob bears. */
export function highestNumber(observed: ObservedRayJob): number | undefined {
  const { rayClusters, jobs, pods } = observed;
  const { uid } = observed.job.metadata;
  const numbers = [...rayClusters, ...jobs, ...pods]
    .filter((object) => belongs(object, uid))
    .flatMap(({ metadata }) => numberIn(metadata.labels?.[LABEL.executionAttempt]) ?? []);
  return numbers.length > 0 ? Math.max(...numbers) : undefined;
}

/**
 * What an earlier attempt left behind although it was cleaned up and seen gone: the API server may still carry out a
 * request that had been given up long before. It is never adopted, and goes as soon as it is seen. KubeRay labels nothing:
 * of what it made, a RayCluster of another name than the current attempt's is such a leftover.
 */
export function strays(observed: ObservedRayJob, record: AttemptRecord): Remains {
  const isStray = ({ metadata }: KubeObject) => Number(metadata.labels?.[LABEL.executionAttempt]) < record.number;
  const isKubeRays = ({ metadata: { name, labels } }: KubeObject) =>
    observed.job.status?.attempts !== undefined &&
    labels?.[LABEL.executionAttempt] === undefined &&
    record.rayClusterName !== undefined &&
    name !== record.rayClusterName;
  const some = remains(observed, record);
  return {
    rayClusters: some.rayClusters.filter((cluster) => isStray(cluster) || isKubeRays(cluster)),
    jobs: some.jobs.filter(isStray),
    services: some.services.filter(isStray),
    // They go with their owners.
    pods: [],
  };
}

export type Extent =
  /** The objects that make Pods: enough for strategy Recreate, where an old Pod may still be terminating. */
  | "owners"
  /** And every Pod: for the barrier of BlockingRecreate, and for `Suspended`, which promises that nothing is left. */
  | "everything"
  /** What holds a machine, or may yet: all save submitter Jobs that are over, and Pods that have ended. */
  | "machines";

/** Objects left of the given extent. Services hold no machine and go with their owner: nobody waits for them. */
export function left({ rayClusters, jobs, pods }: Remains, extent: Extent): readonly Stored[] {
  switch (extent) {
    case "owners":
      return [...rayClusters, ...jobs];
    case "everything":
      return [...rayClusters, ...jobs, ...pods];
    case "machines":
      return [...rayClusters, ...jobs.filter((job) => !isOver(job)), ...pods.filter((pod) => !hasEnded(pod))];
  }
}

const isOver = ({ status }: Job): boolean =>
  status?.conditions?.some(({ type, status }) => ["Complete", "Failed"].includes(type) && status === "True") ?? false;

const hasEnded = ({ status }: Pod): boolean => status?.phase === "Succeeded" || status?.phase === "Failed";

/** UIDs of what exists and is not waited for. No Pod that has ended begins again, so of that the cache may be believed. */
export const spentOf = ({ jobs, pods }: Remains, extent: Extent): ReadonlySet<string> =>
  new Set(
    extent === "machines"
      ? [...jobs.filter(isOver), ...pods.filter(hasEnded)].map(({ metadata }) => metadata.uid)
      : undefined,
  );

/**
 * Asked before the cache's "nothing left" is believed, a step after the other: owners first, since they make Pods. Pods
 * that were listed while an owner was still there prove nothing.
 */
export function proofOfAbsence(
  { job }: ObservedRayJob,
  record: AttemptRecord | undefined,
  extent: Extent,
): readonly (readonly LiveQuestion[])[] {
  const { namespace = "", name, uid } = job.metadata;
  const ours = { [LABEL.rayJobUID]: uid };
  const owners: LiveQuestion[] = [
    ...(record?.rayClusterName
      ? [{ ask: "get", kind: "RayCluster", namespace, name: record.rayClusterName } as const]
      : []),
    { ask: "list", kind: "RayCluster", namespace, labels: ours },
    { ask: "get", kind: "Job", namespace, name },
    { ask: "list", kind: "Job", namespace, labels: ours },
  ];
  if (extent === "owners") return [owners];
  const pods: LiveQuestion[] = [
    { ask: "list", kind: "Pod", namespace, labels: ours },
    // KubeRay's submitters do not bear our label.
    { ask: "list", kind: "Pod", namespace, labels: { [LABEL.jobName]: name } },
    ...(record?.ownsCluster && record.rayClusterName
      ? [{ ask: "list", kind: "Pod", namespace, labels: { [LABEL.cluster]: record.rayClusterName } } as const]
      : []),
  ];
  return [owners, pods];
}

/**
 * What the API server said: a step of `questions` that it has not been asked yet, or what of this RayJob it still has.
 * Objects of strangers that bear a name we asked for do not count, nor does what is known to be `spent` (by UID).
 */
export function proof(
  observed: ObservedRayJob,
  steps: readonly (readonly LiveQuestion[])[],
  spent: ReadonlySet<string> = new Set(),
): { readonly ask: readonly LiveQuestion[] } | { readonly left: readonly Stored[] } {
  const { uid } = observed.job.metadata;
  const others = new Set<string>();
  for (const questions of steps) {
    const answers = questions.map((question) => observed.live.get(questionKey(question)));
    if (answers.some((answer) => answer === undefined)) return { ask: questions };
    const said = questions.flatMap(({ kind }, index) =>
      (answers[index] ?? []).map((object) => ({ ...object, kind }) as Stored),
    );
    // Pods of a stranger's Job of our name bear that name, too.
    for (const object of said) if (object.kind === "Job" && !belongs(object, uid)) others.add(object.metadata.uid);
    const found = said
      .filter((object) => (object.kind === "Pod" ? !others.has(ownerUID(object) ?? "") : belongs(object, uid)))
      .filter(({ metadata }) => !spent.has(metadata.uid));
    if (found.length > 0) return { left: [...new Map(found.map((object) => [object.metadata.uid, object])).values()] };
  }
  return { left: [] };
}

export function refOf(kind: WritableKind, object: Stored): ObjectRef {
  return {
    kind,
    namespace: object.metadata.namespace ?? "",
    name: object.metadata.name,
    uid: object.metadata.uid,
  };
}

/** Deletes what makes Pods, and the Services that no RayCluster takes along. What is on its way out is left alone. */
export function cleanUp(some: Remains, why: string, propagation: Propagation = "Background"): readonly KubeEffect[] {
  return [
    ...some.rayClusters
      .filter((cluster) => !isLeaving(cluster))
      .map((cluster) => deleteCluster(cluster, why, propagation)),
    ...some.jobs
      // A RayCluster's own Job cleans up after it, and goes with it.
      .filter((job) => !isLeaving(job) && !isOfCluster(job))
      .map((job) => deleteSubmitter(job, why, propagation)),
    ...some.services.filter((service) => !isLeaving(service)).map((service) => deleteService(service, why)),
  ];
}

/** Deletes Pods that nobody else will: their owner is gone, or let them go. */
export function cleanUpOrphans({ rayClusters, jobs, pods }: Remains, why: string): readonly KubeEffect[] {
  const owners = new Set([...rayClusters, ...jobs].map(({ metadata }) => metadata.uid));
  return pods
    .filter((pod) => !isLeaving(pod) && !owners.has(ownerUID(pod) ?? ""))
    .map((pod) => ({ do: "delete", ref: refOf("Pod", pod), propagation: "Background", why }) as const);
}

/**
 * Lets owners go that are held in foreground deletion until their Pods are gone: a second deletion takes the first one's
 * way back.
 */
export const letGo = ({ rayClusters, jobs }: Remains, why: string): readonly KubeEffect[] => [
  ...rayClusters.filter(isHeldByPods).map((cluster) => deleteCluster(cluster, why)),
  ...jobs.filter(isHeldByPods).map((job) => deleteSubmitter(job, why)),
];

const isHeldByPods = (object: KubeObject): boolean =>
  isLeaving(object) && (object.metadata.finalizers?.includes(FINALIZER.foregroundDeletion) ?? false);

const isOfCluster = (object: KubeObject): boolean =>
  object.metadata.ownerReferences?.some((owner) => owner.controller && owner.kind === "RayCluster") ?? false;

type Propagation = "Background" | "Foreground";

export function deleteCluster(cluster: Stored, why: string, propagation: Propagation = "Background"): KubeEffect {
  const place = placeOf(cluster);
  return {
    do: "delete",
    ref: refOf("RayCluster", cluster),
    propagation,
    why,
    event: { type: "Normal", reason: "DeletedRayCluster", action: "Delete", note: `Deleted cluster ${place}` },
    failureEvent: {
      type: "Warning",
      reason: "FailedToDeleteRayCluster",
      action: "Delete",
      note: `Failed to delete cluster ${place}: {error}`,
    },
  };
}

export function deleteSubmitter(job: Stored, why: string, propagation: Propagation = "Background"): KubeEffect {
  const place = placeOf(job);
  return {
    do: "delete",
    ref: refOf("Job", job),
    propagation,
    why,
    event: {
      type: "Normal",
      reason: "DeletedRayJobSubmitter",
      action: "Delete",
      note: `Deleted submitter K8s Job ${place}`,
    },
    failureEvent: {
      type: "Warning",
      reason: "FailedToDeleteRayJobSubmitter",
      action: "Delete",
      note: `Failed to delete submitter K8s Job ${place}: {error}`,
    },
  };
}

export const deleteService = (service: Stored, why: string): KubeEffect => ({
  do: "delete",
  ref: refOf("Service", service),
  propagation: "Background",
  why,
});

export const placeOf = (object: KubeObject): string => `${object.metadata.namespace}/${object.metadata.name}`;

/** The RayJob's head Service, whoever owns it. */
export function findHeadService(observed: ObservedRayJob): Stored | undefined {
  const name = headServiceName(observed.job.metadata.name);
  return observed.services.find((service) => service.metadata.name === name);
}

/**
 * Whether the RayJob, read live, is in the attempt and phase that the cache shows, and its journal says no more; and is
 * being deleted only if the cache shows that, too.
 */
export function isStill(
  { job }: ObservedRayJob,
  live: { metadata: { uid?: string; deletionTimestamp?: string } } | undefined,
): boolean {
  if (live?.metadata.uid !== job.metadata.uid) return false;
  if (live.metadata.deletionTimestamp && !job.metadata.deletionTimestamp) return false;
  const status = (live as ObservedRayJob["job"]).status;
  return (
    status?.jobDeploymentStatus === job.status?.jobDeploymentStatus &&
    status?.executionAttempt === job.status?.executionAttempt &&
    same(status?.attempts?.at(-1), job.status?.attempts?.at(-1))
  );
}
