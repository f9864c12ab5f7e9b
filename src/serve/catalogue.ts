/**
 * The numbers about Ray: KubeRay's under their names, and ours (`raykeeper_`). Those of the machinery: machinery/metrics.ts.
 *
 * docs/operations.md lists them all; a test holds it, and the names that others rely on, against this.
 */
import { type Catalogue, MACHINERY_METRICS, type MetricsOf } from "../machinery/metrics.ts";

const OBJECT = ["name", "namespace", "uid"] as const;
/** From a moment to a day: what people wait for. */
const WAITS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400];
const ANSWERS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

export const RAY_METRICS = {
  kuberay_cluster_info: {
    type: "gauge",
    labels: [...OBJECT, "owner_kind"],
    help: "1 for each RayCluster, and whose it is (None, RayJob, RayService).",
  },
  kuberay_cluster_condition_provisioned: {
    type: "gauge",
    labels: [...OBJECT, "condition"],
    help: "1 for each RayCluster, and whether all its Pods have been ready.",
  },
  kuberay_cluster_provisioned_duration_seconds: {
    type: "gauge",
    labels: OBJECT,
    help: "From the creation of a RayCluster until all its Pods were ready for the first time.",
  },
  kuberay_job_info: { type: "gauge", labels: OBJECT, help: "1 for each RayJob." },
  kuberay_job_deployment_status: {
    type: "gauge",
    labels: [...OBJECT, "deployment_status"],
    help: "1 for each RayJob, and its deployment status (empty while new).",
  },
  kuberay_job_execution_duration_seconds: {
    type: "gauge",
    labels: [...OBJECT, "job_deployment_status", "retry_count"],
    help: "From the start of an attempt to its end, how it ended, and how many had failed before it.",
  },
  raykeeper_rayjob_attempts_total: {
    type: "counter",
    labels: ["namespace", "outcome"],
    help: "Attempts that ended: SUCCEEDED, STOPPED, Suspended, or the cause of the failure, as the condition Failed has it.",
  },
  raykeeper_rayjob_phase_seconds: {
    type: "histogram",
    labels: ["phase"],
    help: "How long RayJobs stayed in a deployment status.",
    buckets: WAITS,
  },
  raykeeper_rayjob_retry_blocked_seconds: {
    type: "histogram",
    labels: [],
    help: "How long a retry with BlockingRecreate waited until nothing of the failed attempt was left.",
    buckets: WAITS,
  },
  raykeeper_rayjob_verdict_lag_seconds: {
    type: "histogram",
    labels: [],
    help: "From the end of the job in Ray to the RayJob's terminal status.",
    buckets: WAITS,
  },
  raykeeper_rayjob_kept_pods: {
    type: "gauge",
    labels: ["namespace"],
    help: "Pods that RayJobs keep after their end: for good, or until a time-to-live has passed.",
  },
  raykeeper_foreign_status_writes_total: {
    type: "counter",
    labels: ["kind"],
    help: "Writes of a status by somebody else than this operator: a second operator for the same namespaces, or KubeRay's.",
  },
  controller_runtime_webhook_requests_total: {
    type: "counter",
    labels: ["webhook", "code"],
    help: "Questions of the API server to a webhook (its path), by the status code of the answer; a refusal is a 200, too.",
  },
  controller_runtime_webhook_latency_seconds: {
    type: "histogram",
    labels: ["webhook"],
    help: "How long a webhook took to answer.",
    buckets: ANSWERS,
  },
  controller_runtime_webhook_requests_in_flight: {
    type: "gauge",
    labels: ["webhook"],
    help: "Questions to a webhook that are being answered.",
  },
  raykeeper_dashboard_polls_total: {
    type: "counter",
    labels: ["result"],
    help: "Rounds of questions to Ray's dashboards: ok, or none where no answer came.",
  },
  raykeeper_dashboard_poll_seconds: {
    type: "histogram",
    labels: [],
    help: "How long a round of questions to a Ray dashboard took.",
    buckets: ANSWERS,
  },
} as const satisfies Catalogue;

export const METRICS = { ...MACHINERY_METRICS, ...RAY_METRICS };
export type OperatorMetrics = MetricsOf<typeof METRICS>;
