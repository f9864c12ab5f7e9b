/**
 * The status of a RayCluster, from what is observed.
 *
 * Answers: what do its users, Kueue and the RayJob's decisions get to read.
 * May not: cause a write of its own: times follow other changes, and no text contains an age or a counter.
 *
 * As with KubeRay `state` stays `ready` once reached, whatever happens to Pods later; the conditions tell how things are.
 */
import type { Pod, Service } from "../../api/kubernetes.ts";
import type { Condition, Stored } from "../../api/object.ts";
import { addQuantities, formatQuantity, parseQuantity, type Quantity, scaleQuantity } from "../../api/quantity.ts";
import type { RayCluster, RayClusterState, RayClusterStatus, WorkerGroupSpec } from "../../api/raycluster.ts";
import { sameButForNumbers, wordsStand } from "../rewording.ts";
import { type Duration, fromWire, type Instant, minutes, seconds, since, toWire } from "../time.ts";
import { SECRET_GONE, SECRET_REFUSED } from "./authSecret.ts";
import { podProblem, STARTING } from "./explain.ts";
import { failureOf } from "./failures.ts";
import { namesake } from "./head.ts";
import {
  type ClusterPods,
  desiredReplicas,
  isOverdue,
  isReady,
  isTerminating,
  lacksSubmitterOnly,
  MAX_INT32,
  type ObservedRayCluster,
  overdueAt,
  readyCondition,
} from "./observe.ts";
import { hasLostOneHead, oneHeadUID, podUIDOf } from "./oneHead.ts";
import { findHeadService } from "./services.ts";
import { isGPU } from "./start.ts";
import type { SuspendPhase } from "./suspend.ts";
import { volumeWarnings } from "./warnings.ts";

const MAX_MESSAGE = 1024;

/** KubeRay's words; what stands in the way follows after a colon. */
export const PROVISIONING = "RayCluster Pods are being provisioned for first time";

/** Steps on the way up are told together: each write of a cluster's status is read by all who watch it. */
const PROGRESS_PAUSE = seconds(5);

export interface StatusStep {
  /** The whole status to be written; absent when nothing but times would change, or it can wait. */
  readonly status?: RayClusterStatus;
  /** When it cannot wait any more. */
  readonly wakeAt?: Instant;
}

/**
 * What to write now. Progress alone waits until 5 s after the last write, other numbers in the same words for longer;
 * trouble, and that all is well, never wait.
 *
 * @param phase where suspension is after this pass
 * @param invalid what is wrong with the spec, in words; empty when nothing is
 */
export function nextStatus(
  observed: ObservedRayCluster,
  pods: ClusterPods,
  phase: SuspendPhase,
  invalid: string,
  now: Instant,
): StatusStep {
  const { cluster } = observed;
  const before = cluster.status ?? {};
  const complete = phase === "running" && !invalid && isComplete(pods);
  const state = nextState(before, complete, phase);
  const status: RayClusterStatus = {
    ...before,
    ...desiredResources(cluster),
    ...replicaCounts(cluster, pods),
    ...addresses(observed, pods),
    state,
    // KubeRay never sets it; here it says why a spec is not acted upon.
    reason: invalid,
    conditions: nextConditions(observed, pods, phase, complete, now),
    observedGeneration: cluster.metadata.generation,
  };
  if (state && state !== before.state) {
    status.stateTransitionTimes = { ...before.stateTransitionTimes, [state]: toWire(now) };
  }
  if (same(status, before)) return {};
  const heldUntil = (fromWire(before.lastUpdateTime) ?? Number.NEGATIVE_INFINITY) + pauseBefore(before, status);
  if (now < heldUntil) return { wakeAt: heldUntil };
  return { status: { ...status, lastUpdateTime: toWire(now) } };
}

/** How long this may wait after the last write. */
function pauseBefore(before: RayClusterStatus, after: RayClusterStatus): Duration {
  if (isProgress(before, after)) return PROGRESS_PAUSE;
  const reworded = rewordedSince(before, after);
  return reworded === undefined ? 0 : wordsStand(reworded, fromWire(before.lastUpdateTime) ?? reworded);
}

/** Since when that has gone on of which nothing but numbers in its words have changed; undefined when there is other news. */
function rewordedSince(before: RayClusterStatus, after: RayClusterStatus): Instant | undefined {
  const { conditions: old = [], ...rest } = before;
  const { conditions = [], ...others } = after;
  if (!same(rest, others) || old.length !== conditions.length) return undefined;
  const changed = conditions.filter((condition, index) => !same(condition, old[index]));
  const isReworded = changed.every((condition) => {
    const known = old.find(({ type }) => type === condition.type);
    return (
      known &&
      same({ ...known, message: "" }, { ...condition, message: "" }) &&
      sameButForNumbers(known.message, condition.message)
    );
  });
  return isReworded
    ? Math.max(...changed.map(({ lastTransitionTime }) => fromWire(lastTransitionTime) ?? 0))
    : undefined;
}

/** Reasons of HeadPodReady that a head has on its way up. */
const ON_THE_WAY: ReadonlySet<string> = new Set(["HeadPodNotFound", "Unknown", "ContainersNotReady", ...STARTING]);

/** Whether Pods have merely come nearer to being ready: nobody waits for these numbers and addresses. */
function isProgress(before: RayClusterStatus, after: RayClusterStatus): boolean {
  const headPodReady = (status: RayClusterStatus) => status.conditions?.find(({ type }) => type === "HeadPodReady");
  const wasReady = headPodReady(before)?.status === "True";
  const rest = (status: RayClusterStatus) => {
    const { readyWorkerReplicas: _, availableWorkerReplicas: __, head, conditions, ...others } = status;
    const { podIP: ___, serviceIP: ____, ...names } = head ?? {};
    const ready = headPodReady(status);
    const isFine = ready?.status === "True" || (!wasReady && ON_THE_WAY.has(ready?.reason ?? ""));
    return { ...others, names, ready: isFine || ready, conditions: conditions?.filter((each) => each !== ready) };
  };
  return same(rest(before), rest(after));
}

/** In one sentence: why the cluster is not ready; undefined when nothing is known to stand in its way. */
function clusterProblem(observed: ObservedRayCluster, pods: ClusterPods, now: Instant): string | undefined {
  const trouble = [headProblem(observed, pods, now)?.message, ...workerProblems(observed, pods, now)].filter(
    (text) => text !== undefined,
  );
  const [first, second] = trouble;
  if (first === undefined) return undefined;
  return trouble.length > 2 ? `${first}; ${second}; and ${trouble.length - 2} more Pods` : trouble.join("; ");
}

function nextState(before: RayClusterStatus, complete: boolean, phase: SuspendPhase): RayClusterState {
  if (phase === "suspended") return "suspended";
  if (complete) return "ready";
  // Resumed: "suspended" would be a lie while the Pods come up.
  return before.state === "suspended" ? "" : (before.state ?? "");
}

/** The head and as many workers as desired are there, and all of them ready. KubeRay looks at the Pods that exist only. */
function isComplete({ heads, groups }: ClusterPods): boolean {
  const ready = (all: readonly Stored<Pod>[], count: number) => {
    const staying = all.filter((pod) => !isTerminating(pod));
    return staying.length === count && staying.every(isReady);
  };
  return ready(heads, 1) && groups.every(({ spec, pods }) => ready(pods, desiredReplicas(spec)));
}

function replicaCounts(cluster: RayCluster, { groups, orphans }: ClusterPods) {
  const workers = [...groups.flatMap(({ pods }) => pods), ...orphans];
  const specs = cluster.spec.workerGroupSpecs ?? [];
  const sum = (of: (spec: WorkerGroupSpec) => number) =>
    Math.min(
      specs.reduce((total, spec) => total + (spec.suspend ? 0 : of(spec)), 0),
      MAX_INT32,
    );
  const running = workers.filter((pod) => pod.status?.phase === "Running");
  return {
    readyWorkerReplicas: running.filter((pod) => readyCondition(pod)?.status === "True").length,
    availableWorkerReplicas: running.length,
    desiredWorkerReplicas: sum(desiredReplicas),
    minWorkerReplicas: sum((spec) => spec.minReplicas ?? 0),
    maxWorkerReplicas: sum((spec) => spec.maxReplicas ?? MAX_INT32),
  };
}

/** What the Pods ask for when all are there: the template's containers; a request, or else the limit. */
function desiredResources(cluster: RayCluster) {
  const { headGroupSpec, workerGroupSpecs = [] } = cluster.spec;
  const parts = [
    { template: headGroupSpec.template, count: 1 },
    ...workerGroupSpecs.map((spec) => ({ template: spec.template, count: desiredReplicas(spec) })),
  ];
  const total = (wanted: (name: string) => boolean): string => {
    const amounts = parts.flatMap(({ template, count }) =>
      (template.spec?.containers ?? []).flatMap(({ resources = {} }) =>
        Object.entries({ ...resources.limits, ...resources.requests })
          .filter(([name]) => wanted(name))
          .flatMap(([, amount]) => parseQuantity(amount) ?? [])
          .map((amount: Quantity) => scaleQuantity(amount, count)),
      ),
    );
    return formatQuantity(addQuantities(...amounts));
  };
  return {
    desiredCPU: total((name) => name === "cpu"),
    desiredMemory: total((name) => name === "memory"),
    desiredGPU: total(isGPU),
    desiredTPU: total((name) => name === "google.com/tpu"),
  };
}

function addresses(observed: ObservedRayCluster, pods: ClusterPods): Pick<RayClusterStatus, "head" | "endpoints"> {
  const service = findHeadService(observed);
  const head = theHead(pods);
  const clusterIP = service?.spec?.clusterIP;
  const serviceIP = clusterIP && clusterIP !== "None" ? clusterIP : clusterIP && head?.status?.podIP;
  return {
    head: {
      ...podUIDOf(observed.cluster, pods),
      ...(head && { podName: head.metadata.name }),
      ...(head?.status?.podIP && { podIP: head.status.podIP }),
      ...(service && { serviceName: service.metadata.name }),
      ...(serviceIP && { serviceIP }),
    },
    endpoints: endpoints(service),
  };
}

function endpoints(service: Service | undefined): Record<string, string> {
  const named = (service?.spec?.ports ?? []).filter((port) => port.name);
  return Object.fromEntries(named.map((port) => [port.name!, String(port.nodePort || port.targetPort || port.port)]));
}

/** The head that is meant when there is talk of one: not one that is going, when there is another. */
const theHead = ({ heads }: ClusterPods): Stored<Pod> | undefined =>
  heads.find((pod) => !isTerminating(pod)) ?? heads[0];

type Assertion = Pick<Condition, "type" | "status" | "reason" | "message">;

function nextConditions(
  observed: ObservedRayCluster,
  pods: ClusterPods,
  phase: SuspendPhase,
  complete: boolean,
  now: Instant,
): Condition[] {
  const before = observed.cluster.status?.conditions ?? [];
  const assertions = [
    headPodReady(observed, pods, now),
    provisioned(observed, pods, phase, complete, before, now),
    replicaFailure(observed, pods, now),
    suspendCondition("RayClusterSuspending", phase === "suspending"),
    suspendCondition("RayClusterSuspended", phase === "suspended"),
  ].filter((assertion) => assertion !== undefined);
  const ours = new Set(["ReplicaFailure", ...assertions.map(({ type }) => type)]);
  return [
    ...before.filter(({ type }) => !ours.has(type)),
    ...assertions.map((assertion) => {
      const old = before.find(({ type }) => type === assertion.type);
      const message = assertion.message.slice(0, MAX_MESSAGE);
      const lastTransitionTime = old?.status === assertion.status ? old.lastTransitionTime : toWire(now);
      return { ...assertion, message, lastTransitionTime };
    }),
  ];
}

const suspendCondition = (type: string, holds: boolean): Assertion => ({
  type,
  status: holds ? "True" : "False",
  reason: type,
  message: "",
});

function headPodReady(observed: ObservedRayCluster, pods: ClusterPods, now: Instant): Assertion {
  const type = "HeadPodReady";
  const problem = headProblem(observed, pods, now);
  if (problem) return { type, status: "False", reason: asReason(problem.reason), message: problem.message };
  const head = theHead(pods);
  if (!head) return { type, status: "False", reason: "HeadPodNotFound", message: "Head Pod not found" };

  const ready = readyCondition(head);
  if (!ready)
    return { type, status: "False", reason: "Unknown", message: `Head Pod ${head.metadata.name} is being started` };
  if (ready.status === "True") {
    return {
      type,
      status: "True",
      reason: asReason(ready.reason, "HeadPodRunningAndReady"),
      message: ready.message ?? "",
    };
  }
  if (lacksSubmitterOnly(head)) return { type, status: "True", reason: "HeadPodRunningAndReady", message: "" };
  const waiting = head.status?.containerStatuses?.find(({ state }) => state?.waiting ?? state?.terminated);
  const cause = ready.reason === "ContainersNotReady" ? waiting?.state?.waiting?.reason : undefined;
  return { type, status: "False", reason: asReason(cause ?? ready.reason), message: ready.message ?? "" };
}

function provisioned(
  observed: ObservedRayCluster,
  pods: ClusterPods,
  phase: SuspendPhase,
  complete: boolean,
  conditions: readonly Condition[],
  now: Instant,
): Assertion {
  const type = "RayClusterProvisioned";
  const old = conditions.find((condition) => condition.type === type);
  const not = (message: string): Assertion => ({
    type,
    status: "False",
    reason: "RayClusterPodsProvisioning",
    message,
  });
  if (phase === "suspended") return not("RayCluster has been suspended");
  if (old?.status === "True") return { type, status: "True", reason: old.reason, message: old.message };
  if (complete) {
    const message = "All Ray Pods are ready for the first time";
    return { type, status: "True", reason: "AllPodRunningAndReadyFirstTime", message };
  }
  const problem = clusterProblem(observed, pods, now);
  return not(problem ? `${PROVISIONING}: ${problem}` : PROVISIONING);
}

/** KubeRay's reason for each refusal, by the reason of the event that announces it. */
const REFUSALS: Readonly<Record<string, string>> = {
  FailedToDeletePodCollection: "FailedDeleteAllPods",
  FailedToDeleteHeadPod: "FailedDeleteHeadPod",
  FailedToCreateHeadPod: "FailedCreateHeadPod",
  FailedToDeleteWorkerPod: "FailedDeleteWorkerPod",
  FailedToCreateWorkerPod: "FailedCreateWorkerPod",
  // Ours: without its Service nobody finds the head, and without its token nobody may speak to it.
  FailedToCreateService: "FailedCreateService",
  [SECRET_REFUSED]: "FailedCreateAuthSecret",
  [SECRET_GONE]: SECRET_GONE,
};

/** True while the API server refuses Pods, as with KubeRay, and, beyond it, while a failed Pod waits to be replaced. */
function replicaFailure(observed: ObservedRayCluster, pods: ClusterPods, now: Instant): Assertion | undefined {
  const type = "ReplicaFailure";
  const refused = observed.refused?.find(({ reason }) => reason in REFUSALS);
  if (refused) {
    const reason = REFUSALS[refused.reason]!;
    return { type, status: "True", reason, message: refusalText(observed.cluster, reason, refused.message, now) };
  }

  const isFailed = (pod: Pod) => failureOf(pod, now).kind === "failed";
  const head = pods.heads.find(isFailed);
  if (head) return { type, status: "True", reason: "HeadPodFailed", message: describe("Head", head) };
  const worker = pods.groups.flatMap((group) => group.pods).find(isFailed);
  if (worker) return { type, status: "True", reason: "WorkerPodFailed", message: describe("Worker", worker) };
  return undefined;
}

/**
 * The server's words, without the random end of a name that it refused. Words that differ each time nevertheless are
 * repeated once a minute at most: each new text is a write, and the write brings the next try.
 */
function refusalText(cluster: RayCluster, reason: string, message: string, now: Instant): string {
  const old = cluster.status?.conditions?.find((condition) => condition.type === "ReplicaFailure");
  const age = since(fromWire(cluster.status?.lastUpdateTime), now);
  if (old?.reason === reason && age !== undefined && age < minutes(1)) return old.message;
  return message.replace(/(-worker-)[a-z0-9]{5}\b/g, "$1…");
}

function describe(word: "Head" | "Worker", pod: Stored<Pod>): string {
  return `${word} Pod ${pod.metadata.name} ${podProblem(pod)?.message ?? "has ended"}`;
}

function headProblem(observed: ObservedRayCluster, pods: ClusterPods, now: Instant) {
  const { cluster } = observed;
  const stranger = pods.heads.length === 0 ? namesake(pods, cluster) : undefined;
  if (stranger) {
    const message = `Pod ${stranger.metadata.name} has the head Pod's name and belongs to another object; waiting for it to be deleted`;
    return { reason: "HeadPodNameTaken", message };
  }
  const staying = pods.heads.filter((pod) => !isTerminating(pod));
  if (staying.length > 1) {
    const names = staying.map((pod) => pod.metadata.name).sort();
    return {
      reason: "MultipleHeadPods",
      message: `The cluster has several head Pods: ${names.join(", ")}; delete all but one`,
    };
  }
  const head = theHead(pods);
  if (!head && hasLostOneHead(cluster, pods.heads)) {
    const message = `The head Pod (UID ${oneHeadUID(cluster)}) is gone, and this cluster may not have another: a second head would run its job a second time`;
    return { reason: "HeadPodLost", message };
  }
  if (!head) return undefined;
  const problem = isTerminating(head) ? stuck(head, now) : podProblem(head, volumeWarnings(observed, now));
  return problem && { reason: problem.reason, message: `Head Pod ${head.metadata.name} ${problem.message}` };
}

/** The worst first would need a ranking; the order of the spec is at least the same in each pass. */
function workerProblems(observed: ObservedRayCluster, { groups }: ClusterPods, now: Instant): string[] {
  const warnings = volumeWarnings(observed, now);
  return groups
    .flatMap(({ pods }) => pods)
    .flatMap((pod) => {
      const problem = isTerminating(pod) ? stuck(pod, now) : podProblem(pod, warnings);
      return problem ? [`Worker Pod ${pod.metadata.name} ${problem.message}`] : [];
    })
    .sort();
}

/** Nobody ends a Pod on a dead node but its administrator. */
function stuck(pod: Pod, now: Instant) {
  if (!isOverdue(pod, now)) return undefined;
  const node = pod.spec?.nodeName ?? "its node";
  const message = `does not terminate, its end was due at ${pod.metadata.deletionTimestamp}: if node ${node} is dead, delete it or taint it node.kubernetes.io/out-of-service`;
  return { reason: "Terminating", message };
}

/** When the text about stuck Pods would change though nothing else does. */
export function nextStuckAt({ all }: ClusterPods, now: Instant): Instant | undefined {
  const ahead = all.map(overdueAt).filter((at) => at !== undefined && at > now) as Instant[];
  return ahead.length > 0 ? Math.min(...ahead) : undefined;
}

/** The API server refuses a condition whose reason is empty or has other characters; kubelet's may be. */
function asReason(reason: string | undefined, otherwise = "Unknown"): string {
  return reason && /^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/.test(reason) ? reason : otherwise;
}

/** Equal as JSON, whatever the order of fields; an absent field and an undefined one are the same. */
function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].every((key) => same((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]));
}
