/**
 * What RayJobs and RayClusters show, as metrics: KubeRay's by their names, and ours (`raykeeper_`).
 *
 * Fed by the informers' changes and read from their stores at each scrape. Objects that were there already when this
 * process started are listed, but what happened to them before is not counted again.
 */
import { Gauge, type Registry } from "prom-client";
import type { Pod } from "../api/kubernetes.ts";
import { LABEL } from "../api/labels.ts";
import type { Stored } from "../api/object.ts";
import type { RayCluster } from "../api/raycluster.ts";
import type { AttemptRecord, RayJob } from "../api/rayjob.ts";
import { fromWire, type Instant } from "../domain/time.ts";
import type { Change, Store } from "../machinery/kube/store.ts";
import type { Metrics } from "../machinery/logger.ts";

export interface RayObjects {
  readonly rayJobs: Pick<Store<RayJob>, "list">;
  readonly rayClusters: Pick<Store<RayCluster>, "list">;
  readonly rayPods: Pick<Store<Pod>, "list">;
}

type Row = [labels: Record<string, string>, value: number];

const identity = ({ metadata: { name, namespace = "", uid } }: Stored) => ({ name, namespace, uid });
const conditionOf = (
  object: { status?: { conditions?: { type: string; status: string; lastTransitionTime: string }[] } },
  type: string,
) => object.status?.conditions?.find((condition) => condition.type === type);

/** Gauges that are computed from the stores when they are asked for, so that a deleted object leaves no series behind. */
const LISTED: readonly { name: string; help: string; labels: string[]; rows: (objects: RayObjects) => Row[] }[] = [
  {
    name: "kuberay_job_info",
    help: "Metadata information about RayJob custom resources.",
    labels: ["name", "namespace", "uid"],
    rows: ({ rayJobs }) => rayJobs.list().map((job) => [identity(job), 1]),
  },
  {
    name: "kuberay_job_deployment_status",
    help: "The RayJob's current deployment status.",
    labels: ["name", "namespace", "uid", "deployment_status"],
    rows: ({ rayJobs }) =>
      rayJobs.list().map((job) => [{ ...identity(job), deployment_status: job.status?.jobDeploymentStatus ?? "" }, 1]),
  },
  {
    name: "kuberay_cluster_info",
    help: "Metadata information about RayCluster custom resources.",
    labels: ["name", "namespace", "uid", "owner_kind"],
    rows: ({ rayClusters }) =>
      rayClusters.list().map((cluster) => [{ ...identity(cluster), owner_kind: ownerKind(cluster) }, 1]),
  },
  {
    name: "kuberay_cluster_condition_provisioned",
    help: "Whether the RayCluster has been provisioned.",
    labels: ["name", "namespace", "uid", "condition"],
    rows: ({ rayClusters }) =>
      rayClusters.list().map((cluster) => {
        const provisioned = conditionOf(cluster, "RayClusterProvisioned")?.status === "True";
        return [{ ...identity(cluster), condition: String(provisioned) }, 1];
      }),
  },
  {
    name: "kuberay_cluster_provisioned_duration_seconds",
    help: "Seconds from the creation of a RayCluster until all its Pods were ready for the first time.",
    labels: ["name", "namespace", "uid"],
    rows: ({ rayClusters }) =>
      rayClusters.list().flatMap((cluster): Row[] => {
        const provisioned = conditionOf(cluster, "RayClusterProvisioned");
        const [start, end] = [cluster.metadata.creationTimestamp, provisioned?.lastTransitionTime].map(fromWire);
        return provisioned?.status === "True" && start !== undefined && end !== undefined
          ? [[identity(cluster), Math.max(0, end - start) / 1000]]
          : [];
      }),
  },
  {
    name: "raykeeper_rayjob_kept_pods",
    help: "Pods that RayJobs keep after their end, by namespace.",
    labels: ["namespace"],
    rows: ({ rayJobs, rayPods }) => {
      const kept = new Map<string, number>();
      for (const { metadata, status } of rayJobs.list()) {
        const released = status?.conditions?.find(({ type }) => type === "ResourcesReleased");
        if (released?.reason !== "KeptByPolicy") continue;
        const { namespace = "", uid } = metadata;
        const count = rayPods.list(namespace).filter((pod) => pod.metadata.labels?.[LABEL.rayJobUID] === uid).length;
        kept.set(namespace, (kept.get(namespace) ?? 0) + count);
      }
      return [...kept].map(([namespace, count]) => [{ namespace }, count]);
    },
  },
];

/** Registers the gauges that are listed at each scrape. */
export function registerRayObjects(registry: Registry, objects: RayObjects): void {
  for (const { name, help, labels, rows } of LISTED) {
    new Gauge({
      name,
      help,
      labelNames: labels,
      registers: [registry],
      collect() {
        this.reset();
        for (const [row, value] of rows(objects)) this.set(row, value);
      },
    });
  }
}

const ownerKind = (cluster: RayCluster): string =>
  cluster.metadata.ownerReferences?.find(({ controller }) => controller)?.kind ?? "None";

const ENDED = new Set(["Complete", "Failed", "Retrying"]);

/** Series of `kuberay_job_execution_duration_seconds`, which KubeRay keeps until the RayJob is gone. */
export class RayJobMetrics {
  readonly #metrics: Metrics;
  readonly #duration: Gauge<"name" | "namespace" | "uid" | "job_deployment_status" | "retry_count">;
  readonly #series = new Map<string, Record<string, string>[]>();
  /** When a RayJob was first seen in its present phase. */
  readonly #since = new Map<string, { phase: string; at: Instant }>();

  constructor(registry: Registry, metrics: Metrics) {
    this.#metrics = metrics;
    this.#duration = new Gauge({
      name: "kuberay_job_execution_duration_seconds",
      help: "Seconds from the start of an attempt to its end.",
      labelNames: ["name", "namespace", "uid", "job_deployment_status", "retry_count"],
      registers: [registry],
    });
  }

  /** A change of a RayJob, as its informer tells it. */
  changed({ old, new: now }: Change<RayJob>, at: Instant): void {
    const uid = (now ?? old)!.metadata.uid;
    if (!now || (old && old.metadata.uid !== now.metadata.uid)) this.#forget(old!.metadata.uid);
    if (!now) return;
    const phase = now.status?.jobDeploymentStatus ?? "";
    const before = this.#since.get(uid);
    if (before?.phase === phase) return;
    this.#since.set(uid, { phase, at });
    // The first sight of an object says nothing about when it came into its phase.
    if (!before || !old) return;
    const seconds = (at - before.at) / 1000;
    this.#metrics.observe("raykeeper_rayjob_phase_seconds", { phase: before.phase || "New" }, seconds);
    if (before.phase === "Retrying") this.#unblocked(old, at);
    if (ENDED.has(phase)) this.#ended(old, now, phase, at);
  }

  /** How long the next attempt waited at the barrier of BlockingRecreate; other retries block nothing. */
  #unblocked({ status = {} }: Stored<RayJob>, at: Instant): void {
    const blocked = fromWire(status.attempts?.at(-1)?.barrier?.blockedTime);
    if (blocked === undefined) return;
    this.#metrics.observe("raykeeper_rayjob_retry_blocked_seconds", {}, Math.max(0, at - blocked) / 1000);
  }

  #ended(old: Stored<RayJob>, now: Stored<RayJob>, phase: string, at: Instant): void {
    const { startTime, attempts, rayJobInfo } = now.status ?? {};
    const start = fromWire(startTime);
    const { namespace = "" } = now.metadata;
    if (start !== undefined) {
      const labels = { ...identity(now), job_deployment_status: phase, retry_count: String(old.status?.failed ?? 0) };
      this.#duration.set(labels, Math.max(0, at - start) / 1000);
      this.#series.set(now.metadata.uid, [...(this.#series.get(now.metadata.uid) ?? []), labels]);
    }
    this.#metrics.count("raykeeper_rayjob_attempts_total", { namespace, outcome: outcome(attempts?.at(-1), phase) });
    const rayEnd = fromWire(rayJobInfo?.endTime);
    if (rayEnd !== undefined && phase !== "Retrying") {
      this.#metrics.observe("raykeeper_rayjob_verdict_lag_seconds", {}, Math.max(0, at - rayEnd) / 1000);
    }
  }

  #forget(uid: string): void {
    for (const labels of this.#series.get(uid) ?? []) this.#duration.remove(labels);
    this.#series.delete(uid);
    this.#since.delete(uid);
  }
}

/** Succeeded, or why not, in few words: the label's values stay countable. */
const outcome = (record: AttemptRecord | undefined, phase: string): string =>
  phase === "Complete" ? record?.jobStatus || "SUCCEEDED" : record?.reason || "Failed";
