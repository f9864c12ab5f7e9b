/**
 * How many Pods a worker group has, and how many it shall have.
 *
 * Answers: which Pods of a group go, and how many new ones come.
 * May not: remove a Pod more than needed, or make one more than the group's maximum allows to exist.
 *
 * A Pod that is being deleted counts for the maximum until it is gone, but not as one of those desired. Surplus goes by
 * usefulness, the least first: not scheduled, not ready, ready; among equals the youngest, which has done the least work.
 */
import type { Pod } from "../../api/kubernetes.ts";
import { LABEL } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { RayCluster, WorkerGroupSpec } from "../../api/raycluster.ts";
import type { Settings } from "../settings.ts";
import { earliest, fromWire, type Instant } from "../time.ts";
import { createPod, deletePod } from "./effects.ts";
import { describeFailure, failureOf, type Patience } from "./failures.ts";
import { desiredReplicas, hasEnded, isOverdue, isReady, isTerminating, MAX_INT32, overdueAt } from "./observe.ts";
import type { Plan } from "./plan.ts";
import { workerPod } from "./worker.ts";

interface Removal {
  readonly pod: Stored<Pod>;
  readonly why: string;
}

interface Scaling {
  readonly create: number;
  readonly remove: readonly Removal[];
  readonly wakeAt?: Instant;
}

/** `most`: of the Pods that are missing so many are made at most. `replicas` may say two thousand million. */
export function planGroup(
  cluster: Stored<RayCluster>,
  group: { readonly spec: WorkerGroupSpec; readonly pods: readonly Stored<Pod>[] },
  patience: Patience,
  settings: Settings,
  now: Instant,
  most: number,
): Plan {
  const { create, remove, wakeAt } = scaling(group.spec, group.pods, patience, now);
  const why = `Worker group ${group.spec.groupName} has fewer Pods than desired.`;
  return {
    creates: Array.from({ length: Math.min(create, most) }, () =>
      createPod(cluster, workerPod(cluster, group.spec, settings), "worker", why),
    ),
    deletes: remove.map(({ pod, why }) => deletePod(cluster, pod, "worker", why)),
    wakeAt,
  };
}

/** Pods of groups that the spec has no more. KubeRay leaves them running, and counts them. */
export function planOrphans(cluster: Stored<RayCluster>, orphans: readonly Stored<Pod>[]): Plan {
  return {
    deletes: orphans
      .filter((pod) => !isTerminating(pod))
      .map((pod) =>
        deletePod(
          cluster,
          pod,
          "worker",
          `its worker group ${pod.metadata.labels?.[LABEL.group]} is not in the RayCluster any more`,
        ),
      ),
  };
}

export function scaling(
  spec: WorkerGroupSpec,
  pods: readonly Stored<Pod>[],
  patience: Patience,
  now: Instant,
): Scaling {
  const desired = desiredReplicas(spec);
  const named = new Set(spec.scaleStrategy?.workersToDelete);
  const leaving = pods.filter(isTerminating);
  const listed = pods.filter((pod) => !isTerminating(pod) && named.has(pod.metadata.name));
  const kept = pods.filter((pod) => !isTerminating(pod) && !named.has(pod.metadata.name));
  const failed = kept.filter((pod) => failureOf(pod, now).kind === "failed");
  const alive = kept.filter((pod) => failureOf(pod, now).kind !== "failed");

  const asked = listed.map((pod) => ({ pod, why: "it is named in workersToDelete" }));
  const silent = alive.map((pod) => failureOf(pod, now)).map((f) => (f.kind === "none" ? f.lookAgainAt : undefined));
  const missing = desired - alive.length;

  if (missing <= 0) {
    const why = spec.suspend ? "its worker group is suspended" : `its worker group shall have ${desired} Pods`;
    const surplus = [...alive].sort(leastUsefulFirst).slice(0, -missing);
    return {
      create: 0,
      remove: [...asked, ...[...failed, ...surplus].map((pod) => ({ pod, why }))],
      wakeAt: earliest(...silent),
    };
  }
  if (now < patience.retryAt) return { create: 0, remove: asked, wakeAt: earliest(patience.retryAt, ...silent) };

  const holding = [...leaving, ...listed, ...failed].filter((pod) => !hasEnded(pod) && !isOverdue(pod, now));
  const room = (spec.maxReplicas ?? MAX_INT32) - alive.length - holding.length;
  return {
    create: Math.max(0, Math.min(missing, room)),
    remove: [...asked, ...failed.map((pod) => ({ pod, why: describeFailure(pod) }))],
    wakeAt: earliest(...silent, ...(room < missing ? holding.map(overdueAt) : [])),
  };
}

function leastUsefulFirst(a: Stored<Pod>, b: Stored<Pod>): number {
  return usefulness(a) - usefulness(b) || createdAt(b) - createdAt(a) || (a.metadata.name < b.metadata.name ? 1 : -1);
}

const usefulness = (pod: Stored<Pod>): number => (isReady(pod) ? 2 : pod.status?.phase === "Running" ? 1 : 0);

const createdAt = (pod: Stored<Pod>): Instant => fromWire(pod.metadata.creationTimestamp) ?? 0;
