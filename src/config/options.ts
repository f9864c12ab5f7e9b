/**
 * What can be chosen by a flag, by a field of the configuration file, or by either: one table.
 *
 * May not: hold a name or default that is not KubeRay's.
 */
import {
  boolean,
  containers,
  envVars,
  integer,
  type LogLevel,
  labels,
  logLevel,
  metadata,
  namespaces,
  oneOf,
  positive,
  type Reader,
  text,
} from "./readers.ts";

interface Option<T = unknown> {
  readonly flag?: string;
  /** Field of the file. */
  readonly field?: string;
  readonly read: Reader<T>;
  readonly default: T;
  readonly what: string;
  /** Why a value other than the default is refused. */
  readonly refused?: string;
  /** Said when it is given at all. */
  readonly warning?: string;
  /** The flag counts even when a file is given. */
  readonly flagBesideFile?: true;
}

/** Keeps the type of the value. */
const option = <T>(entry: Option<T>): Option<T> => entry;

const encoder = oneOf("json", "console");
const TIMES = ["iso8601", "rfc3339", "rfc3339nano", "epoch", "millis", "nano"] as const;
export type TimeEncoding = (typeof TIMES)[number];

export const OPTIONS = {
  metricsAddress: option({
    flag: "metrics-addr",
    field: "metricsAddr",
    read: text,
    default: ":8080",
    what: "where `/metrics` is served; `0` for nowhere",
  }),
  probeAddress: option({
    flag: "health-probe-bind-address",
    field: "probeAddr",
    read: text,
    default: ":8082",
    what: "where `/healthz` and `/readyz` are served; `0` for nowhere",
  }),
  leaderElection: option({
    flag: "enable-leader-election",
    field: "enableLeaderElection",
    read: boolean,
    default: true,
    what: "one replica works, the others stand by; switch it off only where there can never be two",
  }),
  leaderElectionNamespace: option({
    flag: "leader-election-namespace",
    field: "leaderElectionNamespace",
    read: text,
    default: "",
    what: "where the lease `ray-operator-leader` is; empty: the operator's own namespace",
  }),
  reconcileConcurrency: option({
    flag: "reconcile-concurrency",
    field: "reconcileConcurrency",
    read: integer(0),
    default: 1,
    what: "RayJobs, and RayClusters, that are looked at at the same time",
  }),
  watchNamespace: option({
    flag: "watch-namespace",
    field: "watchNamespace",
    read: namespaces,
    default: [],
    what: "namespaces to watch, separated by commas; empty: all",
  }),
  useKubernetesProxy: option({
    flag: "use-kubernetes-proxy",
    field: "useKubernetesProxy",
    read: boolean,
    default: false,
    what: "reach Ray's dashboards through the API server (`services/proxy`), for an operator outside the cluster or behind a mesh",
  }),
  qps: option({
    flag: "qps",
    field: "qps",
    read: positive,
    default: 100,
    what: "requests a second to the API server, on average",
  }),
  burst: option({
    flag: "burst",
    field: "burst",
    read: integer(1),
    default: 200,
    what: "requests to the API server that may go out at once",
  }),
  enableMetrics: option({
    flag: "enable-metrics",
    field: "enableMetrics",
    read: boolean,
    default: false,
    what: "serve metrics (KubeRay's charts set it)",
  }),
  featureGates: option({
    flag: "feature-gates",
    read: text,
    default: "",
    what: "`A=true,B=false`, see below",
    flagBesideFile: true,
  }),
  logLevel: option<LogLevel | undefined>({
    flag: "zap-log-level",
    read: logLevel,
    default: undefined,
    what: "`debug`, `info`, `warn`, `error`, `panic`, or a number above 0 (debug); `info` unless `--zap-devel`",
    flagBesideFile: true,
  }),
  logStdoutEncoder: option<"json" | "console" | undefined>({
    flag: "log-stdout-encoder",
    field: "logStdoutEncoder",
    read: encoder,
    default: undefined,
    what: "`json` or `console` on standard output; `json` unless `--zap-encoder` says otherwise",
    flagBesideFile: true,
  }),
  logFile: option({
    flag: "log-file-path",
    field: "logFile",
    read: text,
    default: "",
    what: "a file that gets the log too: rotated at 500 MB, ten old ones kept for 30 days",
  }),
  logFileEncoder: option<"json" | "console">({
    flag: "log-file-encoder",
    field: "logFileEncoder",
    read: encoder,
    default: "json",
    what: "`json` or `console` in that file",
    flagBesideFile: true,
  }),
  zapDevelopment: option({
    flag: "zap-devel",
    read: boolean,
    default: false,
    what: "log from `debug` on",
    flagBesideFile: true,
  }),
  zapEncoder: option<"json" | "console" | undefined>({
    flag: "zap-encoder",
    read: encoder,
    default: undefined,
    what: "as `--log-stdout-encoder`, which wins",
    flagBesideFile: true,
  }),
  zapTimeEncoding: option<TimeEncoding>({
    flag: "zap-time-encoding",
    read: oneOf(...TIMES),
    default: "iso8601",
    what: `how \`ts\` is written: ${TIMES.map((word) => `\`${word}\``).join(", ")}`,
    flagBesideFile: true,
  }),
  zapStacktraceLevel: option({
    flag: "zap-stacktrace-level",
    read: oneOf("info", "error", "panic"),
    default: "error",
    what: "no effect: what failed unexpectedly is logged with its stack, and nothing else is",
    warning: "has no effect: what failed unexpectedly is logged with its stack, and nothing else is",
    flagBesideFile: true,
  }),
  batchScheduler: option({
    flag: "batch-scheduler",
    field: "batchScheduler",
    read: text,
    default: "",
    what: "gang scheduling by another scheduler",
    refused: "batch schedulers are not supported yet; remove it (Kueue works without)",
  }),
  enableBatchScheduler: option({
    flag: "enable-batch-scheduler",
    field: "enableBatchScheduler",
    read: boolean,
    default: false,
    what: "deprecated, means volcano",
    refused: "batch schedulers are not supported yet; remove it (Kueue works without)",
  }),
  forcedClusterUpgrade: option({
    flag: "forced-cluster-upgrade",
    read: boolean,
    default: false,
    what: "deprecated, no effect",
    warning: "is deprecated and has no effect",
  }),
  deleteRayJob: option({
    field: "deleteRayJobAfterJobFinishes",
    read: boolean,
    default: false,
    what: "as the variable `DELETE_RAYJOB_CR_AFTER_JOB_FINISHES`",
  }),
  containerEnvs: option({
    field: "defaultContainerEnvs",
    read: envVars,
    default: [],
    what: "environment of every Ray container, where the user has no variable of that name",
  }),
  podAnnotations: option({
    field: "defaultPodAnnotations",
    read: metadata,
    default: {},
    what: "annotations of every head and worker Pod, where the user has none of that key",
  }),
  podLabels: option({
    field: "defaultPodLabels",
    read: labels,
    default: {},
    what: "labels of every head and worker Pod, likewise",
  }),
  headSidecars: option({
    field: "headSidecarContainers",
    read: containers,
    default: [],
    what: "containers added to every head Pod",
  }),
  workerSidecars: option({
    field: "workerSidecarContainers",
    read: containers,
    default: [],
    what: "containers added to every worker Pod",
  }),
} as const;

type Options = typeof OPTIONS;
export type Chosen = { readonly [K in keyof Options]: Options[K] extends Option<infer T> ? T : never };
export const options: readonly (readonly [keyof Options, Option])[] = Object.entries(OPTIONS) as [
  keyof Options,
  Option,
][];
