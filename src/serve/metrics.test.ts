import { describe, expect, it } from "vitest";
import { METRICS } from "./catalogue.ts";
import { PrometheusMetrics } from "./metrics.ts";

/** What dashboards and alerts made for KubeRay, controller-runtime and client-go ask for, and what Raykeeper promises. */
const PROMISED = `
kuberay_cluster_provisioned_duration_seconds gauge name namespace uid
kuberay_cluster_info gauge name namespace uid owner_kind
kuberay_cluster_condition_provisioned gauge name namespace uid condition
kuberay_job_execution_duration_seconds gauge name namespace uid job_deployment_status retry_count
kuberay_job_info gauge name namespace uid
kuberay_job_deployment_status gauge name namespace uid deployment_status
raykeeper_rayjob_attempts_total counter namespace outcome
raykeeper_rayjob_retry_blocked_seconds histogram
raykeeper_rayjob_phase_seconds histogram phase
raykeeper_rayjob_verdict_lag_seconds histogram
raykeeper_rayjob_kept_pods gauge namespace
raykeeper_dashboard_polls_total counter result
raykeeper_dashboard_poll_seconds histogram
raykeeper_foreign_status_writes_total counter kind
controller_runtime_reconcile_total counter controller result
controller_runtime_reconcile_errors_total counter controller
controller_runtime_reconcile_time_seconds histogram controller
controller_runtime_max_concurrent_reconciles gauge controller
controller_runtime_active_workers gauge controller
workqueue_depth gauge name controller
workqueue_adds_total counter name controller
workqueue_queue_duration_seconds histogram name controller
workqueue_work_duration_seconds histogram name controller
workqueue_unfinished_work_seconds gauge name controller
workqueue_longest_running_processor_seconds gauge name controller
workqueue_retries_total counter name controller
rest_client_requests_total counter code method host
rest_client_request_duration_seconds histogram verb host
leader_election_master_status gauge name
controller_runtime_webhook_requests_total counter webhook code
controller_runtime_webhook_latency_seconds histogram webhook
controller_runtime_webhook_requests_in_flight gauge webhook
raykeeper_watch_errors_total counter resource
raykeeper_live_reads_total counter resource
raykeeper_events_dropped_total counter reason
`;

describe("the metrics", () => {
  it("are those that are promised: names, types, labels", () => {
    const ours = Object.entries<{ type: string; labels: readonly string[]; constant?: readonly string[] }>(METRICS).map(
      ([name, { type, labels, constant = [] }]) => [name, type, ...labels, ...constant].join(" "),
    );
    expect(ours.sort()).toEqual(PROMISED.trim().split("\n").sort());
  });

  it("are all announced at the first scrape, with those of the process", async () => {
    const text = await new PrometheusMetrics().registry.metrics();
    for (const line of PROMISED.trim().split("\n")) {
      const [name, type] = line.split(" ");
      expect(text).toContain(`# TYPE ${name} ${type}\n`);
    }
    for (const name of ["process_resident_memory_bytes", "process_cpu_seconds_total", "process_start_time_seconds"]) {
      expect(text).toMatch(new RegExp(`^${name} [0-9.]`, "m"));
    }
  });

  it("are served under their names, with their labels", async () => {
    const metrics = new PrometheusMetrics({ host: "kubernetes:443" });
    metrics.count("rest_client_requests_total", { method: "GET", code: "200" });
    metrics.count("rest_client_requests_total", { method: "GET", code: "200" }, 2);
    metrics.gauge("workqueue_depth", { name: "rayjob", controller: "rayjob" }, 4);
    metrics.observe("workqueue_queue_duration_seconds", { name: "rayjob", controller: "rayjob" }, 0.2);
    const text = await metrics.registry.metrics();
    expect(text).toContain('rest_client_requests_total{method="GET",code="200",host="kubernetes:443"} 3');
    expect(text).toContain('workqueue_depth{name="rayjob",controller="rayjob"} 4');
    expect(text).toContain('workqueue_queue_duration_seconds_bucket{le="1",name="rayjob",controller="rayjob"} 1');
  });

  it("that are computed are computed at each scrape", async () => {
    const metrics = new PrometheusMetrics();
    let working = 2;
    metrics.computed("controller_runtime_active_workers", { controller: "rayjob" }, () => working);
    expect(await metrics.registry.metrics()).toContain('controller_runtime_active_workers{controller="rayjob"} 2');
    working = 0;
    expect(await metrics.registry.metrics()).toContain('controller_runtime_active_workers{controller="rayjob"} 0');
  });
});
