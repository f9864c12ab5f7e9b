/**
 * Everything an administrator can choose, read once at start: flags, KubeRay's `Configuration` file and the environment,
 * made into one frozen Config.
 *
 * Answers: what was chosen, or every mistake in it at once, each naming the flag, field or variable.
 * May not: read files or process.env itself; the command line hands them in. Names and defaults are KubeRay's. A choice
 * that exists in KubeRay but has no effect here yet is refused rather than ignored.
 */
import { parse as parseYaml } from "yaml";
import { defaultSettings, type Settings } from "./domain/settings.ts";
import { type Duration, seconds } from "./domain/time.ts";

export interface Config {
  readonly settings: Settings;
  /** RayJobs, and RayClusters, that are reconciled at the same time. */
  readonly reconcileConcurrency: number;
  /** Empty: all namespaces. */
  readonly watchNamespaces: readonly string[];
  /** Reach dashboards through the API server. */
  readonly useKubernetesProxy: boolean;
  readonly qps: number;
  readonly burst: number;
  readonly leaderElection: {
    readonly enabled: boolean;
    /** Absent: the operator's own namespace. */
    readonly namespace?: string;
    readonly leaseName: string;
    readonly leaseDuration: Duration;
    readonly renewDeadline: Duration;
    readonly retryPeriod: Duration;
  };
  /** `host:port`; `0` for none. */
  readonly metricsAddress: string;
  readonly probeAddress: string;
  readonly enableMetrics: boolean;
  readonly features: Readonly<Record<FeatureGate, boolean>>;
  readonly log: {
    readonly level: LogLevel;
    readonly stdoutEncoder: LogEncoder;
    readonly fileEncoder: LogEncoder;
    /** Absent: no file beside standard output. */
    readonly file?: string;
  };
  /** The mistakes that are no reason not to start: deprecated flags, flags that have no effect. */
  readonly warnings: readonly string[];
}

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogEncoder = "json" | "console";

/** Default, and whether what it gates is built: an unbuilt gate may be named, but not switched on. */
const GATES = {
  RayClusterStatusConditions: { on: true, built: "always on" },
  RayJobDeletionPolicy: { on: true, built: "yes" },
  RayMultiHostIndexing: { on: true, built: "yes" },
  RayServiceIncrementalUpgrade: { on: true, built: "yes" },
  RayCronJob: { on: false, built: "no" },
  SidecarSubmitterRestart: { on: false, built: "yes" },
  RayClusterNetworkPolicy: { on: false, built: "no" },
  GCSFaultToleranceEmbeddedStorage: { on: false, built: "no" },
  RayClusterMTLS: { on: false, built: "no" },
  RayClusterHistoryServer: { on: false, built: "no" },
  KubernetesWAS: { on: false, built: "no" },
} as const satisfies Record<string, { on: boolean; built: "yes" | "no" | "always on" }>;

export type FeatureGate = keyof typeof GATES;

/** All that is wrong with the configuration, one line each. The program exits with it. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

/** What kind of value an option takes, and how its spelling becomes one. */
type Reader = (value: unknown) => unknown;

const text: Reader = (value) => (typeof value === "string" ? value : wrong("a text"));
const boolean: Reader = (value) => {
  if (typeof value === "boolean") return value;
  // Go's flag package takes these spellings, so manifests of KubeRay have them.
  if (typeof value === "string" && /^(1|t|true)$/i.test(value)) return true;
  if (typeof value === "string" && /^(0|f|false)$/i.test(value)) return false;
  return wrong("true or false");
};
const integer =
  (least: number): Reader =>
  (value) => {
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    return Number.isSafeInteger(number) && (number as number) >= least
      ? number
      : wrong(`a whole number, ${least} or more`);
  };
const positive: Reader = (value) => {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) && number > 0 ? number : wrong("a number above 0");
};
const oneOf =
  (...words: string[]): Reader =>
  (value) =>
    words.includes(value as string) ? value : wrong(`one of ${words.join(", ")}`);

function wrong(expected: string): never {
  throw new TypeError(expected);
}

interface Option {
  readonly flag?: string;
  /** Field of the file. */
  readonly field?: string;
  readonly read: Reader;
  readonly default: unknown;
  /** Why a value other than the default is refused. */
  readonly unsupported?: string;
  /** The flag counts even when a file is given. */
  readonly flagBesideFile?: true;
  /** Said when it is given at all. */
  readonly warning?: string;
}

const NOT_BUILT = "is not supported yet";

const OPTIONS = {
  metricsAddress: { flag: "metrics-addr", field: "metricsAddr", read: text, default: ":8080" },
  probeAddress: { flag: "health-probe-bind-address", field: "probeAddr", read: text, default: ":8082" },
  leaderElection: { flag: "enable-leader-election", field: "enableLeaderElection", read: boolean, default: true },
  leaderElectionNamespace: {
    flag: "leader-election-namespace",
    field: "leaderElectionNamespace",
    read: text,
    default: "",
  },
  reconcileConcurrency: { flag: "reconcile-concurrency", field: "reconcileConcurrency", read: integer(0), default: 1 },
  watchNamespace: { flag: "watch-namespace", field: "watchNamespace", read: text, default: "" },
  logFile: { flag: "log-file-path", field: "logFile", read: text, default: "" },
  logFileEncoder: {
    flag: "log-file-encoder",
    field: "logFileEncoder",
    read: oneOf("json", "console"),
    default: "json",
    flagBesideFile: true,
  },
  logStdoutEncoder: {
    flag: "log-stdout-encoder",
    field: "logStdoutEncoder",
    read: oneOf("json", "console"),
    default: "json",
    flagBesideFile: true,
  },
  logLevel: { flag: "zap-log-level", read: logLevel, default: "info", flagBesideFile: true },
  enableBatchScheduler: {
    flag: "enable-batch-scheduler",
    field: "enableBatchScheduler",
    read: boolean,
    default: false,
    unsupported: NOT_BUILT,
  },
  batchScheduler: { flag: "batch-scheduler", field: "batchScheduler", read: text, default: "", unsupported: NOT_BUILT },
  useKubernetesProxy: { flag: "use-kubernetes-proxy", field: "useKubernetesProxy", read: boolean, default: false },
  enableMetrics: { flag: "enable-metrics", field: "enableMetrics", read: boolean, default: false },
  qps: { flag: "qps", field: "qps", read: positive, default: 100 },
  burst: { flag: "burst", field: "burst", read: integer(1), default: 200 },
  featureGates: { flag: "feature-gates", read: text, default: "", flagBesideFile: true },
  forcedClusterUpgrade: {
    flag: "forced-cluster-upgrade",
    read: boolean,
    default: false,
    warning: "is deprecated and has no effect",
  },
  deleteRayJob: { field: "deleteRayJobAfterJobFinishes", read: boolean, default: false },
  headSidecars: { field: "headSidecarContainers", read: emptyList, default: undefined, unsupported: NOT_BUILT },
  workerSidecars: { field: "workerSidecarContainers", read: emptyList, default: undefined, unsupported: NOT_BUILT },
  containerEnvs: { field: "defaultContainerEnvs", read: emptyList, default: undefined, unsupported: NOT_BUILT },
  podAnnotations: { field: "defaultPodAnnotations", read: emptyMap, default: undefined, unsupported: NOT_BUILT },
  podLabels: { field: "defaultPodLabels", read: emptyMap, default: undefined, unsupported: NOT_BUILT },
} as const satisfies Record<string, Option>;

type Chosen = Record<keyof typeof OPTIONS, unknown>;

/** zap takes names, and numbers that grow with the detail. */
function logLevel(value: unknown): LogLevel {
  const word = String(value).toLowerCase();
  if (word === "warning") return "warn";
  if (["debug", "info", "warn", "error"].includes(word)) return word as LogLevel;
  if (/^[1-9]\d*$/.test(word)) return "debug";
  return wrong("debug, info, warn, error or a number above 0");
}

/** An empty list or map is what a template writes where nothing was chosen: as good as absent. */
function emptyList(value: unknown): unknown {
  if (value === null || value === undefined) return undefined;
  if (!Array.isArray(value)) return wrong("a list");
  return value.length === 0 ? undefined : value;
}

function emptyMap(value: unknown): unknown {
  if (value === null || value === undefined) return undefined;
  if (typeof value !== "object" || Array.isArray(value)) return wrong("a map");
  return Object.keys(value).length === 0 ? undefined : value;
}

interface Variable {
  readonly read: Reader;
  readonly apply?: (value: never) => Partial<Settings>;
  /** Values other than this are refused: the variable has no effect here yet. */
  readonly only?: unknown;
}

/** KubeRay compares with the one word that departs from its default, in any case, and takes all else for the default. */
const unless =
  (word: string): Reader =>
  (value) =>
    String(value).toLowerCase() !== word;
const only =
  (word: string): Reader =>
  (value) =>
    String(value).toLowerCase() === word;

const VARIABLES: Record<string, Variable> = {
  CLUSTER_DOMAIN: { read: text, apply: (clusterDomain: string) => ({ clusterDomain }) },
  RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS: {
    read: integer(0),
    apply: (count: number) => ({ transitionGrace: seconds(count) }),
  },
  RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS: {
    read: integer(1),
    apply: (count: number) => ({ statusCheckTimeout: seconds(count) }),
  },
  ENABLE_LOGIN_SHELL: { read: only("true"), apply: (loginShell: boolean) => ({ loginShell }) },
  ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE: {
    read: only("true"),
    apply: (headClusterIPService: boolean) => ({ headClusterIPService }),
  },
  ENABLE_PROBES_INJECTION: { read: unless("false"), apply: (probesInjection: boolean) => ({ probesInjection }) },
  ENABLE_INIT_CONTAINER_INJECTION: {
    read: unless("false"),
    apply: (initContainerInjection: boolean) => ({ initContainerInjection }),
  },
  DELETE_RAYJOB_CR_AFTER_JOB_FINISHES: {
    read: only("true"),
    apply: (deleteRayJobAfterFinish: boolean) => ({ deleteRayJobAfterFinish }),
  },
  ENABLE_WEBHOOKS: { read: only("true"), only: false },
  ENABLE_RANDOM_POD_DELETE: { read: only("true"), only: false },
};

export interface ConfigSources {
  /** By flag name without dashes in front: `{"qps": "50"}`. */
  readonly flags?: Readonly<Record<string, unknown>>;
  /** Text of the file named by `--config`. */
  readonly file?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The generated submitter's program (src/submitter), which becomes part of the settings. */
  readonly submitterProgram?: string;
}

/** The flags there are, for the command line's own help: name, kind and default. */
export const configFlags: readonly { readonly name: string; readonly boolean: boolean; readonly default: unknown }[] =
  Object.values<Option>(OPTIONS).flatMap((option) =>
    option.flag ? [{ name: option.flag, boolean: option.read === boolean, default: option.default }] : [],
  );

/**
 * The configuration, or a ConfigError with all that is wrong. With a file, the flags other than feature gates and log
 * settings do not count, as in KubeRay; each flag that is thus passed over is a warning.
 */
export function configFrom({ flags = {}, file, env = {}, submitterProgram = "" }: ConfigSources): Config {
  const problems: string[] = [];
  const warnings: string[] = [];
  const fields = file === undefined ? undefined : readFile(file, problems);
  const chosen = choose(flags, fields, problems, warnings);
  const features = readGates(String(chosen.featureGates), problems);
  let settings: Settings = { ...defaultSettings, submitterProgram };
  if (chosen.deleteRayJob) settings = { ...settings, deleteRayJobAfterFinish: true };
  settings = { ...settings, sidecarRestart: features.SidecarSubmitterRestart, ...readEnvironment(env, problems) };
  if (problems.length > 0) throw new ConfigError(problems);

  const config: Config = {
    settings,
    reconcileConcurrency: (chosen.reconcileConcurrency as number) || 1,
    watchNamespaces: String(chosen.watchNamespace)
      .split(",")
      .map((name) => name.trim())
      .filter((name) => name !== ""),
    useKubernetesProxy: chosen.useKubernetesProxy as boolean,
    qps: chosen.qps as number,
    burst: chosen.burst as number,
    leaderElection: {
      enabled: chosen.leaderElection as boolean,
      namespace: (chosen.leaderElectionNamespace as string) || undefined,
      leaseName: "ray-operator-leader",
      leaseDuration: seconds(15),
      renewDeadline: seconds(10),
      retryPeriod: seconds(2),
    },
    metricsAddress: chosen.metricsAddress as string,
    probeAddress: chosen.probeAddress as string,
    enableMetrics: chosen.enableMetrics as boolean,
    features,
    log: {
      level: chosen.logLevel as LogLevel,
      stdoutEncoder: chosen.logStdoutEncoder as LogEncoder,
      fileEncoder: chosen.logFileEncoder as LogEncoder,
      file: (chosen.logFile as string) || undefined,
    },
    warnings,
  };
  return deepFreeze(config);
}

function readFile(text: string, problems: string[]): Record<string, unknown> | undefined {
  let parsed: unknown;
  try {
    parsed = parseYaml(text);
  } catch (error) {
    problems.push(`The configuration file is no YAML: ${(error as Error).message}`);
    return undefined;
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    problems.push("The configuration file is empty or no map.");
    return undefined;
  }
  const { apiVersion, kind, metadata: _, ...fields } = parsed as Record<string, unknown>;
  if (apiVersion !== "config.ray.io/v1alpha1" || kind !== "Configuration") {
    problems.push(
      `The configuration file must have apiVersion config.ray.io/v1alpha1 and kind Configuration, not ${apiVersion} and ${kind}.`,
    );
  }
  return fields;
}

function choose(
  flags: Readonly<Record<string, unknown>>,
  fields: Record<string, unknown> | undefined,
  problems: string[],
  warnings: string[],
): Chosen {
  const options = Object.entries<Option>(OPTIONS);
  const known = <K extends "flag" | "field">(key: K) => new Set(options.map(([, option]) => option[key]));
  for (const name of Object.keys(flags)) if (!known("flag").has(name)) problems.push(`There is no flag --${name}.`);
  for (const name of Object.keys(fields ?? {})) {
    if (!known("field").has(name)) problems.push(`The configuration file has an unknown field "${name}".`);
  }

  const chosen: Record<string, unknown> = {};
  for (const [name, option] of options) {
    const flag = option.flag !== undefined && flags[option.flag] !== undefined ? option.flag : undefined;
    const field = option.field !== undefined && fields?.[option.field] !== undefined ? option.field : undefined;
    const flagCounts = flag !== undefined && (!fields || option.flagBesideFile);
    if (flag !== undefined && !flagCounts)
      warnings.push(`--${flag} does not count, because a configuration file is given.`);
    chosen[name] = option.default;
    if (!flagCounts && field === undefined) continue;
    const called = flagCounts ? `--${flag}` : `The configuration file's ${field}`;
    const value = flagCounts ? flags[flag] : fields![field!];
    try {
      chosen[name] = option.read(value);
    } catch (error) {
      problems.push(`${called} must be ${(error as Error).message}, not ${JSON.stringify(value)}.`);
      continue;
    }
    if (option.unsupported && chosen[name] !== option.default) problems.push(`${called} ${option.unsupported}.`);
    if (option.warning) warnings.push(`${called} ${option.warning}.`);
  }
  return chosen as Chosen;
}

function readGates(text: string, problems: string[]): Config["features"] {
  const gates = Object.fromEntries(Object.entries(GATES).map(([name, { on }]) => [name, on])) as Record<
    FeatureGate,
    boolean
  >;
  for (const part of text.split(",").filter((part) => part.trim() !== "")) {
    const [name = "", value] = part.split("=").map((word) => word.trim());
    if (!Object.hasOwn(GATES, name)) {
      problems.push(
        `--feature-gates: there is no feature gate "${name}". There are: ${Object.keys(GATES).join(", ")}.`,
      );
      continue;
    }
    const gate = name as FeatureGate;
    if (value !== "true" && value !== "false") {
      problems.push(`--feature-gates: ${name} must be true or false, not ${JSON.stringify(value ?? "")}.`);
      continue;
    }
    gates[gate] = value === "true";
    if (gates[gate] && GATES[gate].built === "no") problems.push(`--feature-gates: ${name} ${NOT_BUILT}.`);
    if (!gates[gate] && GATES[gate].built === "always on") {
      problems.push(`--feature-gates: ${name} cannot be switched off: decisions read the conditions it gates.`);
    }
  }
  return gates;
}

function readEnvironment(env: Readonly<Record<string, string | undefined>>, problems: string[]): Partial<Settings> {
  const settings: Partial<Settings> = {};
  for (const [name, variable] of Object.entries(VARIABLES)) {
    const value = env[name];
    if (value === undefined || value === "") continue;
    try {
      const read = variable.read(value);
      if ("only" in variable && read !== variable.only) problems.push(`${name}=${value} ${NOT_BUILT}.`);
      Object.assign(settings, variable.apply?.(read as never));
    } catch (error) {
      problems.push(`${name} must be ${(error as Error).message}, not ${JSON.stringify(value)}.`);
    }
  }
  return settings;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    for (const part of Object.values(value)) deepFreeze(part);
    Object.freeze(value);
  }
  return value;
}
