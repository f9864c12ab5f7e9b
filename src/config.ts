/**
 * Everything an administrator can choose, read once at start: flags, KubeRay's `Configuration` file and the environment,
 * made into one frozen Config.
 *
 * Answers: what was chosen, or every mistake in it at once, each naming the flag, field or variable.
 * May not: read files or process.env itself; the command line hands them in. Names and defaults are KubeRay's. A choice
 * that exists in KubeRay but has no effect here yet is refused rather than ignored.
 * Next: config/ has the tables: options.ts (flags and fields), gates.ts, variables.ts.
 */
import { isDeepStrictEqual } from "node:util";
import { parse as parseYaml } from "yaml";
import { type FeatureGates, readGates } from "./config/gates.ts";
import { didYouMean } from "./config/nearest.ts";
import { type Chosen, options, type TimeEncoding } from "./config/options.ts";
import { boolean, type LogLevel } from "./config/readers.ts";
import { chosen as fromVariable, readEnvironment, VARIABLES } from "./config/variables.ts";
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
  readonly features: FeatureGates;
  /** Absent: no webhook is served. */
  readonly webhook?: {
    readonly name: string;
    /** `host:port`. */
    readonly address: string;
    /** Where a certificate may be mounted. */
    readonly certificateFolder: string;
  };
  readonly log: {
    readonly level: LogLevel;
    readonly stdoutEncoder: LogEncoder;
    readonly fileEncoder: LogEncoder;
    readonly timeEncoding: TimeEncoding;
    /** Absent: no file beside standard output. */
    readonly file?: string;
  };
  /** The mistakes that are no reason not to start: deprecated flags, choices that make no difference. */
  readonly warnings: readonly string[];
}

export type LogEncoder = "json" | "console";

/** All that is wrong with the configuration, one line each. The program exits with it. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}

export interface ConfigSources {
  /** By flag name without dashes in front: `{"qps": "50"}`. */
  readonly flags?: Readonly<Record<string, unknown>>;
  /** Text of the file named by `--config`. */
  readonly file?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** The generated submitter's program (src/submitter), which becomes part of the settings. */
  readonly submitterProgram?: string;
}

/** The flags there are, for the command line's own help. */
export const configFlags: readonly {
  readonly name: string;
  readonly boolean: boolean;
  readonly default: unknown;
  readonly what: string;
}[] = options.flatMap(([, { flag, read, default: standard, what }]) =>
  flag ? [{ name: flag, boolean: read === boolean, default: standard, what }] : [],
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
  const features = readGates(chosen.featureGates, problems, warnings);
  const fromEnvironment = readEnvironment(env, problems, warnings);
  if (problems.length > 0) throw new ConfigError(problems);

  const config: Config = {
    settings: {
      ...defaultSettings,
      submitterProgram,
      ...(chosen.deleteRayJob && { deleteRayJobAfterFinish: true }),
      deletionPolicy: features.RayJobDeletionPolicy,
      sidecarRestart: features.SidecarSubmitterRestart,
      podDefaults: {
        containerEnv: chosen.containerEnvs,
        annotations: chosen.podAnnotations,
        labels: chosen.podLabels,
        headSidecars: chosen.headSidecars,
        workerSidecars: chosen.workerSidecars,
      },
      ...fromEnvironment,
    },
    reconcileConcurrency: chosen.reconcileConcurrency || 1,
    watchNamespaces: chosen.watchNamespace,
    useKubernetesProxy: chosen.useKubernetesProxy,
    qps: chosen.qps,
    burst: chosen.burst,
    leaderElection: {
      enabled: chosen.leaderElection,
      namespace: chosen.leaderElectionNamespace || undefined,
      leaseName: "ray-operator-leader",
      leaseDuration: seconds(15),
      renewDeadline: seconds(10),
      retryPeriod: seconds(2),
    },
    metricsAddress: chosen.metricsAddress,
    probeAddress: chosen.probeAddress,
    enableMetrics: chosen.enableMetrics,
    features,
    ...webhookFrom(env, warnings),
    log: {
      level: chosen.logLevel ?? (chosen.zapDevelopment ? "debug" : "info"),
      stdoutEncoder: chosen.logStdoutEncoder ?? chosen.zapEncoder ?? "json",
      fileEncoder: chosen.logFileEncoder,
      timeEncoding: chosen.zapTimeEncoding,
      file: chosen.logFile || undefined,
    },
    warnings,
  };
  return deepFreeze(config);
}

function webhookFrom(env: Readonly<Record<string, string | undefined>>, warnings: string[]): Pick<Config, "webhook"> {
  if (fromVariable(env, "ENABLE_WEBHOOKS").toLowerCase() === "true") {
    return {
      webhook: {
        name: fromVariable(env, "RAYKEEPER_WEBHOOK_NAME"),
        address: fromVariable(env, "RAYKEEPER_WEBHOOK_ADDRESS"),
        certificateFolder: fromVariable(env, "RAYKEEPER_WEBHOOK_CERT_DIR"),
      },
    };
  }
  for (const name of Object.keys(VARIABLES).filter((one) => one.startsWith("RAYKEEPER_WEBHOOK_"))) {
    if (env[name]) warnings.push(`${name} makes no difference: ENABLE_WEBHOOKS is not true.`);
  }
  return {};
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
  const names = (key: "flag" | "field") => options.flatMap(([, option]) => option[key] ?? []);
  for (const name of Object.keys(flags)) {
    if (!names("flag").includes(name)) {
      problems.push(`There is no flag --${name}.${didYouMean(name, names("flag"), "--")}`);
    }
  }
  for (const name of Object.keys(fields ?? {})) {
    if (!names("field").includes(name)) {
      problems.push(`The configuration file has an unknown field "${name}".${didYouMean(name, names("field"))}`);
    }
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
    const differs = !isDeepStrictEqual(chosen[name], option.default);
    if (option.refused && differs) problems.push(`${called}: ${option.refused}.`);
    if (option.warning) warnings.push(`${called} ${option.warning}.`);
  }
  return chosen as Chosen;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    for (const part of Object.values(value)) deepFreeze(part);
    Object.freeze(value);
  }
  return value;
}
