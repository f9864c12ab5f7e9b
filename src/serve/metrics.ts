/**
 * Numbers for Prometheus, in prom-client's registry.
 *
 * Two sources: what the machinery counts on its way (`Metrics` of machinery/logger.ts), and what RayJobs and RayClusters
 * show (rayMetrics.ts). Names and labels are those of KubeRay, controller-runtime and client-go, so that dashboards and
 * alerts made for them go on working.
 * May not: decide anything.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { Labels, Metrics } from "../machinery/logger.ts";

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const LONG_SECONDS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400];

/** What the names mean; a name that is not here is described by itself. */
const HELP: Readonly<Record<string, string>> = {
  controller_runtime_reconcile_total: "Reconciles by controller and result.",
  controller_runtime_reconcile_time_seconds: "How long a reconcile took.",
  controller_runtime_reconcile_errors_total: "Reconciles that ended with an error.",
  controller_runtime_active_workers: "Workers that are reconciling now.",
  workqueue_depth: "Keys that are ready to be reconciled.",
  workqueue_adds_total: "Keys added to the queue.",
  workqueue_queue_duration_seconds: "How long a key waited in the queue.",
  workqueue_work_duration_seconds: "How long work on a key took.",
  workqueue_retries_total: "Keys queued again after an error.",
  rest_client_requests_total: "Requests to the API server by method and status code.",
  rest_client_request_duration_seconds: "How long requests to the API server took.",
  reflector_errors_total: "Lists and watches that ended with an error.",
  raykeeper_dashboard_polls_total: "Questions to Ray's dashboards by result.",
  raykeeper_dashboard_poll_seconds: "How long a question to a Ray dashboard took.",
  raykeeper_rayjob_attempts_total: "Attempts that ended, by outcome.",
  raykeeper_rayjob_phase_seconds: "How long RayJobs stayed in a phase.",
  raykeeper_rayjob_retry_blocked_seconds: "How long a retry waited for the failed attempt to be gone.",
  raykeeper_rayjob_verdict_lag_seconds: "From the end of the job in Ray to the RayJob's terminal status.",
};

const LONG = new Set([
  "raykeeper_rayjob_phase_seconds",
  "raykeeper_rayjob_retry_blocked_seconds",
  "raykeeper_rayjob_verdict_lag_seconds",
]);

/** Implements the machinery's `Metrics` on a registry; a metric comes into being, with its labels, at its first use. */
export class PrometheusMetrics implements Metrics {
  readonly registry = new Registry();

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }

  count(name: string, labels: Labels, by = 1): void {
    this.#metric(name, labels, Counter).inc({ ...labels }, by);
  }

  observe(name: string, labels: Labels, value: number): void {
    this.#metric(name, labels, Histogram).observe({ ...labels }, value);
  }

  gauge(name: string, labels: Labels, value: number): void {
    this.#metric(name, labels, Gauge).set({ ...labels }, value);
  }

  #metric<T extends Counter | Gauge | Histogram>(
    name: string,
    labels: Labels,
    Kind: new (options: {
      name: string;
      help: string;
      labelNames: string[];
      registers: Registry[];
      buckets?: number[];
    }) => T,
  ): T {
    const known = this.registry.getSingleMetric(name);
    if (known) return known as unknown as T;
    const buckets = LONG.has(name) ? LONG_SECONDS : SECONDS;
    return new Kind({
      name,
      help: HELP[name] ?? name.replaceAll("_", " "),
      labelNames: Object.keys(labels),
      registers: [this.registry],
      ...((Kind as unknown) === Histogram ? { buckets } : {}),
    });
  }
}
