/**
 * The machinery's numbers: which there are, with their labels, and how they are told.
 *
 * Names, labels and buckets are controller-runtime's and client-go's, so existing dashboards read them; what those have
 * no name for is `raykeeper_`. A name that is not in a catalogue, or a label too few, does not compile.
 * May not: know who serves them; serve/ maps them to prom-client.
 */

export interface Metric {
  readonly type: "counter" | "histogram" | "gauge";
  readonly labels: readonly string[];
  /** Labels whose one value is known where the numbers are served. */
  readonly constant?: readonly string[];
  readonly help: string;
  /** Of a histogram, in seconds. */
  readonly buckets?: readonly number[];
}

export type Catalogue = Readonly<Record<string, Metric>>;

type Named<C extends Catalogue, T extends Metric["type"]> = {
  [N in keyof C]: C[N]["type"] extends T ? N : never;
}[keyof C] &
  string;
export type LabelsOf<M extends Metric> = Readonly<Record<M["labels"][number], string>>;

export interface MetricsOf<C extends Catalogue> {
  /** Adds `by` (1 when absent) to a counter; 0 shows that there is one. */
  count<N extends Named<C, "counter">>(name: N, labels: LabelsOf<C[N]>, by?: number): void;
  /** One observation of a histogram, in seconds. */
  observe<N extends Named<C, "histogram">>(name: N, labels: LabelsOf<C[N]>, value: number): void;
  /** Sets a gauge. */
  gauge<N extends Named<C, "gauge">>(name: N, labels: LabelsOf<C[N]>, value: number): void;
  /** A gauge that is computed whenever somebody looks. */
  computed<N extends Named<C, "gauge">>(name: N, labels: LabelsOf<C[N]>, read: () => number): void;
}

/** controller-runtime's. */
const RECONCILE_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2,
  2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
/** controller-runtime's, without those below what this clock can tell. */
const QUEUE_SECONDS = [0.001, 0.01, 0.1, 1, 10, 100, 1000];
/** client-go's. */
const REQUEST_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

export const MACHINERY_METRICS = {
  controller_runtime_reconcile_total: {
    type: "counter",
    labels: ["controller", "result"],
    help: "Reconciles by result: success, requeue_after (it looks again by itself), requeue (overtaken by another write) or error.",
  },
  controller_runtime_reconcile_errors_total: {
    type: "counter",
    labels: ["controller"],
    help: "Reconciles that ended with an error: a write that was refused or left unknown, or a failure of the operator's own.",
  },
  controller_runtime_reconcile_time_seconds: {
    type: "histogram",
    labels: ["controller"],
    help: "How long a reconcile took.",
    buckets: RECONCILE_SECONDS,
  },
  controller_runtime_max_concurrent_reconciles: {
    type: "gauge",
    labels: ["controller"],
    help: "Reconciles that may be under way at a time.",
  },
  controller_runtime_active_workers: {
    type: "gauge",
    labels: ["controller"],
    help: "Reconciles that are under way.",
  },
  workqueue_depth: { type: "gauge", labels: ["name", "controller"], help: "Keys that are ready to be reconciled." },
  workqueue_adds_total: { type: "counter", labels: ["name", "controller"], help: "Keys added to the queue." },
  workqueue_queue_duration_seconds: {
    type: "histogram",
    labels: ["name", "controller"],
    help: "How long a key waited in the queue.",
    buckets: QUEUE_SECONDS,
  },
  workqueue_work_duration_seconds: {
    type: "histogram",
    labels: ["name", "controller"],
    help: "How long work on a key took.",
    buckets: QUEUE_SECONDS,
  },
  workqueue_unfinished_work_seconds: {
    type: "gauge",
    labels: ["name", "controller"],
    help: "How long the work under way has taken so far, all of it together.",
  },
  workqueue_longest_running_processor_seconds: {
    type: "gauge",
    labels: ["name", "controller"],
    help: "How long the oldest work under way has taken so far.",
  },
  workqueue_retries_total: {
    type: "counter",
    labels: ["name", "controller"],
    help: "Keys queued again after an error.",
  },
  rest_client_requests_total: {
    type: "counter",
    labels: ["code", "method"],
    constant: ["host"],
    help: "Requests to the API server by method and status code; <error> where no answer came.",
  },
  rest_client_request_duration_seconds: {
    type: "histogram",
    labels: ["verb"],
    constant: ["host"],
    help: "How long requests to the API server took.",
    buckets: REQUEST_SECONDS,
  },
  leader_election_master_status: {
    type: "gauge",
    labels: ["name"],
    help: "1 in the replica that holds the lease, 0 in the others.",
  },
  raykeeper_watch_errors_total: {
    type: "counter",
    labels: ["resource"],
    help: "Lists and watches that ended with an error.",
  },
  raykeeper_live_reads_total: {
    type: "counter",
    labels: ["resource"],
    help: "Reads past a cache that had not shown the operator's own write for long, or whose outcome was unknown.",
  },
  raykeeper_events_dropped_total: {
    type: "counter",
    labels: ["reason"],
    help: "Events that were not recorded, by the event's reason.",
  },
} as const satisfies Catalogue;

export type Metrics = MetricsOf<typeof MACHINERY_METRICS>;

const nothing = () => {};

export const noMetrics = { count: nothing, observe: nothing, gauge: nothing, computed: nothing };
