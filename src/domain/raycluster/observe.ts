/**
 * What is known about one RayCluster, as a plain value, and the names its rules use for parts of it.
 *
 * Answers: which Pods are this cluster's, of which group, and in what shape.
 * May not: decide anything. decide.ts is next.
 */
import type { ContainerStatus, Pod, Service } from "../../api/kubernetes.ts";
import { LABEL, MANAGED_BY, NODE_TYPE, SUBMITTER_CONTAINER } from "../../api/labels.ts";
import type { KubeObject, Stored } from "../../api/object.ts";
import type { RayCluster, WorkerGroupSpec } from "../../api/raycluster.ts";
import type { RayJob } from "../../api/rayjob.ts";
import type { LiveAnswers, RefusedWrite } from "../decision.ts";
import type { Settings } from "../settings.ts";
import { fromWire, type Instant, seconds } from "../time.ts";

export interface ObservedRayCluster {
  readonly cluster: Stored<RayCluster>;
  /** Every Pod of the namespace labelled `ray.io/cluster=<name>`, whoever owns it. */
  readonly pods: readonly Stored<Pod>[];
  /** Every Service of the namespace labelled `ray.io/cluster=<name>`, or with the head Service's name. */
  readonly services: readonly Stored<Service>[];
  /** The RayJob that owns it, if any, and if the cache shows it. */
  readonly rayJob?: Stored<RayJob>;
  readonly settings: Settings;
  /** Answers to the questions that an earlier decision of this pass asked. */
  readonly live: LiveAnswers;
  /**
   * Writes of the pass before that the API server refused, as they would be shown to a user. Held in memory only, and a
   * hint: when they are lost with the process, the next refusal brings them back.
   */
  readonly refused?: readonly RefusedWrite[];
}

/** KubeRay's rule: whatever is not its own name, the empty text included, is somebody else's. */
export const isManagedElsewhere = ({ spec }: RayCluster): boolean =>
  spec.managedBy !== undefined && spec.managedBy !== null && spec.managedBy !== MANAGED_BY.operator;

/** Time a terminating Pod may take beyond its grace before it counts as out of reach. */
const OVERDUE = seconds(30);

export const isOwned = (object: KubeObject, cluster: Stored<RayCluster>): boolean =>
  object.metadata.ownerReferences?.some((owner) => owner.controller && owner.uid === cluster.metadata.uid) ?? false;

export const isTerminating = (object: KubeObject): boolean => object.metadata.deletionTimestamp !== undefined;

/** Still terminating well after its grace is over: nobody is there to end it, as on a dead node. */
export function isOverdue(pod: Pod, now: Instant): boolean {
  // Kubernetes sets deletionTimestamp to the end of the grace, not to the moment of the request.
  const end = fromWire(pod.metadata.deletionTimestamp);
  return end !== undefined && now >= end + OVERDUE;
}

/** The end of `isOverdue`'s wait. */
export function overdueAt(pod: Pod): Instant | undefined {
  const end = fromWire(pod.metadata.deletionTimestamp);
  return end === undefined ? undefined : end + OVERDUE;
}

export const hasEnded = (pod: Pod): boolean => pod.status?.phase === "Failed" || pod.status?.phase === "Succeeded";

export const readyCondition = (pod: Pod) => pod.status?.conditions?.find((condition) => condition.type === "Ready");

/**
 * The Ready condition of a Pod whose node does not report any more; undefined while it does. The node lifecycle
 * controller of today takes only Ready away, gives no reason, and leaves ContainersReady as it was; kubelet always gives
 * one. `Unknown` is what it wrote long ago, and what others may write.
 */
export function silenceOf(pod: Pod): ReturnType<typeof readyCondition> {
  const ready = readyCondition(pod);
  const containersReady = pod.status?.conditions?.find(({ type }) => type === "ContainersReady");
  const takenAway = ready?.status === "False" && !ready.reason && containersReady?.status === "True";
  return ready?.status === "Unknown" || takenAway ? ready : undefined;
}

/**
 * Running, and not said to be unready: a Pod without a Ready condition passes, as it does with KubeRay. A submitter in a
 * head Pod is no part of Ray: when it has ended the Pod is not Ready any more, and works as before.
 */
export const isReady = (pod: Pod): boolean =>
  pod.status?.phase === "Running" && ((readyCondition(pod)?.status ?? "True") === "True" || lacksSubmitterOnly(pod));

/** Whether the Pod is not Ready only because its submitter has ended, or is between two tries. */
export function lacksSubmitterOnly(pod: Pod): boolean {
  const ready = readyCondition(pod);
  const statuses = pod.status?.containerStatuses ?? [];
  const submitter = statuses.find(({ name }) => name === SUBMITTER_CONTAINER);
  return (
    ready?.status === "False" &&
    submitter !== undefined &&
    hasRun(submitter) &&
    statuses.every((status) => status === submitter || status.ready)
  );
}

/** It has run to an end at least once. */
export const hasRun = ({ state, lastState }: ContainerStatus): boolean =>
  state?.terminated !== undefined || lastState?.terminated !== undefined;

/** Status of the container that runs Ray: the first of the Pod's. */
export function rayContainerStatus(pod: Pod): ContainerStatus | undefined {
  const name = pod.spec?.containers?.[0]?.name;
  return pod.status?.containerStatuses?.find((status) => status.name === name);
}

/** The cluster's own Pods, sorted into what the rules speak of. Pods of a deleted namesake are in `strangers`. */
export interface ClusterPods {
  readonly heads: readonly Stored<Pod>[];
  /** In the order of the spec; each group with all its Pods, terminating ones included. */
  readonly groups: readonly { readonly spec: WorkerGroupSpec; readonly pods: readonly Stored<Pod>[] }[];
  /** Workers of groups that the spec does not have any more. */
  readonly orphans: readonly Stored<Pod>[];
  readonly all: readonly Stored<Pod>[];
  readonly strangers: readonly Stored<Pod>[];
}

export function sortPods({ cluster, pods }: Pick<ObservedRayCluster, "cluster" | "pods">): ClusterPods {
  const label = (pod: Pod, key: string) => pod.metadata.labels?.[key];
  const all = pods.filter((pod) => isOwned(pod, cluster));
  const workers = all.filter((pod) => label(pod, LABEL.nodeType) === NODE_TYPE.worker);
  const specs = cluster.spec.workerGroupSpecs ?? [];
  const groups = specs.map((spec) => ({
    spec,
    pods: workers.filter((pod) => label(pod, LABEL.group) === spec.groupName),
  }));
  const known = new Set(specs.map((spec) => spec.groupName));
  return {
    heads: all.filter((pod) => label(pod, LABEL.nodeType) === NODE_TYPE.head),
    groups,
    orphans: workers.filter((pod) => !known.has(label(pod, LABEL.group) ?? "")),
    all,
    strangers: pods.filter((pod) => !isOwned(pod, cluster)),
  };
}

/** How many Pods a group shall have: its replicas within its bounds, none while it is suspended. */
export const desiredReplicas = ({ replicas, minReplicas, maxReplicas, suspend }: WorkerGroupSpec): number =>
  suspend ? 0 : Math.min(Math.max(replicas ?? 0, minReplicas ?? 0), maxReplicas ?? MAX_INT32);

export const MAX_INT32 = 2_147_483_647;
