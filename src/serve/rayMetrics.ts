/**
 * What RayJobs and RayClusters show, as numbers: KubeRay's by their names, and ours.
 *
 * Fed by the informers' changes, at a cost that does not depend on how many objects there are, and read from their stores
 * at each scrape. Told by the leader alone, so that the sum over replicas is right; a standby follows silently, and knows
 * since when each RayJob is in its phase when it takes over. What happened before this process started is not counted again.
 */
import type { Pod } from "../api/kubernetes.ts";
import type { Stored } from "../api/object.ts";
import type { RayCluster } from "../api/raycluster.ts";
import type { RayJob } from "../api/rayjob.ts";
import { hasEnded } from "../domain/raycluster/observe.ts";
import { fromWire, type Instant } from "../domain/time.ts";
import type { Clock } from "../machinery/clock.ts";
import type { Change, Store } from "../machinery/kube/store.ts";
import type { LabelsOf } from "../machinery/metrics.ts";
import type { RAY_METRICS } from "./catalogue.ts";
import type { PrometheusMetrics, Row } from "./metrics.ts";

export interface RayObjects {
  readonly rayJobs: Pick<Store<RayJob>, "list">;
  readonly rayClusters: Pick<Store<RayCluster>, "list">;
  readonly rayPods: Pick<Store<Pod>, "byIndex">;
}

/** Has the numbers follow an operator, which has not seen anything yet. */
export function measure(
  metrics: PrometheusMetrics,
  operator: {
    readonly caches: { readonly [K in keyof RayObjects]: { readonly store: RayObjects[K] } } & {
      readonly rayJobs: { onChange(handler: (change: Change<RayJob>) => void): void };
    };
    readonly leading: boolean;
  },
  clock: Clock,
): void {
  const { rayJobs, rayClusters, rayPods } = operator.caches;
  const isLeading = () => operator.leading;
  const stores = { rayJobs: rayJobs.store, rayClusters: rayClusters.store, rayPods: rayPods.store };
  listRayObjects(metrics, stores, isLeading);
  const told = new RayJobMetrics(metrics, isLeading);
  rayJobs.onChange((change) => told.changed(change, clock.now()));
}

const identity = ({ metadata: { name, namespace = "", uid } }: Stored) => ({ name, namespace, uid });
const conditionOf = (
  object: { status?: { conditions?: { type: string; status: string; reason?: string; lastTransitionTime: string }[] } },
  type: string,
) => object.status?.conditions?.find((condition) => condition.type === type);

/** The gauges that are computed from the stores when they are asked for, so that a deleted object leaves no series behind. */
export function listRayObjects(
  metrics: PrometheusMetrics,
  { rayJobs, rayClusters, rayPods }: RayObjects,
  isLeading: () => boolean,
): void {
  const list = <N extends keyof typeof RAY_METRICS>(name: N, rows: () => Iterable<Row<N>>) =>
    metrics.listed(name, () => (isLeading() ? rows() : []));

  list("kuberay_job_info", () => rayJobs.list().map((job) => [identity(job), 1]));
  list("kuberay_job_deployment_status", () =>
    rayJobs.list().map((job) => [{ ...identity(job), deployment_status: job.status?.jobDeploymentStatus ?? "" }, 1]),
  );
  list("kuberay_cluster_info", () =>
    rayClusters.list().map((cluster) => [{ ...identity(cluster), owner_kind: ownerKind(cluster) }, 1]),
  );
  list("kuberay_cluster_condition_provisioned", () =>
    rayClusters.list().map((cluster) => {
      const provisioned = conditionOf(cluster, "RayClusterProvisioned")?.status === "True";
      return [{ ...identity(cluster), condition: String(provisioned) }, 1];
    }),
  );
  list("kuberay_cluster_provisioned_duration_seconds", () =>
    rayClusters.list().flatMap((cluster): Row<"kuberay_cluster_provisioned_duration_seconds">[] => {
      const provisioned = conditionOf(cluster, "RayClusterProvisioned");
      const [start, end] = [cluster.metadata.creationTimestamp, provisioned?.lastTransitionTime].map(fromWire);
      return provisioned?.status === "True" && start !== undefined && end !== undefined
        ? [[identity(cluster), Math.max(0, end - start) / 1000]]
        : [];
    }),
  );
  list("raykeeper_rayjob_kept_pods", () => {
    const kept = new Map<string, number>();
    for (const job of rayJobs.list()) {
      if (conditionOf(job, "ResourcesReleased")?.reason !== "KeptByPolicy") continue;
      const { namespace = "", uid } = job.metadata;
      const pods = rayPods.byIndex("rayJob", uid).filter((pod) => !hasEnded(pod));
      kept.set(namespace, (kept.get(namespace) ?? 0) + pods.length);
    }
    return [...kept].map(([namespace, count]) => [{ namespace }, count]);
  });
}

const ownerKind = (cluster: RayCluster): string =>
  cluster.metadata.ownerReferences?.find(({ controller }) => controller)?.kind ?? "None";

const ENDED = new Set(["Complete", "Failed", "Retrying"]);
/** Phases in which there is no attempt that a suspension could end. */
const IDLE = new Set(["", "ValidationFailed"]);
/** Namespaces whose attempts are counted apart. Those that come and go must not fill the memory of whoever scrapes. */
const MOST_NAMESPACES = 1000;

type Duration = LabelsOf<(typeof RAY_METRICS)["kuberay_job_execution_duration_seconds"]>;

/** What becomes of RayJobs, told as it happens. */
export class RayJobMetrics {
  readonly #metrics: PrometheusMetrics;
  readonly #isLeading: () => boolean;
  /** Series of each RayJob, by UID: KubeRay keeps them until it is gone. */
  readonly #durations = new Map<string, Duration[]>();
  /** When a RayJob was first seen in its present phase, by UID. */
  readonly #since = new Map<string, { readonly phase: string; readonly at: Instant }>();
  /** Outcomes told of each namespace, the one that was longest quiet first. */
  readonly #outcomes = new Map<string, Set<string>>();

  constructor(metrics: PrometheusMetrics, isLeading: () => boolean) {
    this.#metrics = metrics;
    this.#isLeading = isLeading;
  }

  /** A change of a RayJob, as its informer tells it. */
  changed({ old, new: now }: Change<RayJob>, at: Instant): void {
    if (old && old.metadata.uid !== now?.metadata.uid) this.#forget(old.metadata.uid);
    if (!now) return;
    const { uid } = now.metadata;
    const phase = now.status?.jobDeploymentStatus ?? "";
    const before = this.#since.get(uid);
    if (before?.phase === phase) return;
    this.#since.set(uid, { phase, at });
    // The first sight of an object says nothing about when it came into its phase.
    if (!before || !old || !this.#isLeading()) return;
    const seconds = (at - before.at) / 1000;
    this.#metrics.observe("raykeeper_rayjob_phase_seconds", { phase: before.phase || "New" }, seconds);
    if (before.phase === "Retrying") this.#unblocked(old, at);
    if (ENDED.has(phase)) this.#ended(old, now, phase, at);
    // An attempt that failed is counted when that is known, not again when its retry is given up; none ends where none
    // was under way, as in a RayJob that is born suspended.
    const isEnd = ENDED.has(phase) || (phase === "Suspended" && !IDLE.has(before.phase));
    if (isEnd && before.phase !== "Retrying") this.#count(now, phase);
  }

  /** How long the next attempt waited at the barrier of BlockingRecreate; other retries block nothing. */
  #unblocked({ status = {} }: Stored<RayJob>, at: Instant): void {
    const blocked = fromWire(status.attempts?.at(-1)?.barrier?.blockedTime);
    if (blocked === undefined) return;
    this.#metrics.observe("raykeeper_rayjob_retry_blocked_seconds", {}, Math.max(0, at - blocked) / 1000);
  }

  #ended(old: Stored<RayJob>, now: Stored<RayJob>, phase: string, at: Instant): void {
    const { uid } = now.metadata;
    const start = fromWire(now.status?.startTime);
    if (start !== undefined) {
      const labels = { ...identity(now), job_deployment_status: phase, retry_count: String(old.status?.failed ?? 0) };
      this.#metrics.gauge("kuberay_job_execution_duration_seconds", labels, Math.max(0, at - start) / 1000);
      this.#durations.set(uid, [...(this.#durations.get(uid) ?? []), labels]);
    }
    const rayEnd = fromWire(now.status?.rayJobInfo?.endTime);
    if (rayEnd !== undefined && phase !== "Retrying") {
      this.#metrics.observe("raykeeper_rayjob_verdict_lag_seconds", {}, Math.max(0, at - rayEnd) / 1000);
    }
  }

  #count(now: Stored<RayJob>, phase: string): void {
    const { namespace = "" } = now.metadata;
    const outcome = outcomeOf(now, phase);
    this.#metrics.count("raykeeper_rayjob_attempts_total", { namespace, outcome });
    const told = this.#outcomes.get(namespace) ?? new Set();
    this.#outcomes.delete(namespace);
    this.#outcomes.set(namespace, told.add(outcome));
    if (this.#outcomes.size <= MOST_NAMESPACES) return;
    const [quiet, theirs] = this.#outcomes.entries().next().value!;
    this.#outcomes.delete(quiet);
    for (const outcome of theirs) {
      this.#metrics.drop("raykeeper_rayjob_attempts_total", { namespace: quiet, outcome });
    }
  }

  #forget(uid: string): void {
    for (const labels of this.#durations.get(uid) ?? []) {
      this.#metrics.drop("kuberay_job_execution_duration_seconds", labels);
    }
    this.#durations.delete(uid);
    this.#since.delete(uid);
  }
}

/** Succeeded, or why not, in few words: the label's values stay countable. */
function outcomeOf({ status }: RayJob, phase: string): string {
  const record = status?.attempts?.at(-1);
  if (phase === "Complete") return record?.jobStatus || "SUCCEEDED";
  return phase === "Suspended" ? phase : record?.reason || "Failed";
}
