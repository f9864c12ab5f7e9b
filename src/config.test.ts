import { isDeepStrictEqual } from "node:util";
import { describe, expect, it } from "vitest";
import { GATES } from "./config/gates.ts";
import { VARIABLES } from "./config/variables.ts";
import { type ConfigError, type ConfigSources, configFrom } from "./config.ts";
import { defaultSettings } from "./domain/settings.ts";
import { WEBHOOK } from "./permissions.ts";

const problems = (sources: ConfigSources): readonly string[] => {
  try {
    configFrom(sources);
  } catch (error) {
    return (error as ConfigError).problems;
  }
  return [];
};

const file = (lines: string) => `apiVersion: config.ray.io/v1alpha1\nkind: Configuration\n${lines}`;

describe("the configuration", () => {
  it("has KubeRay's defaults", () => {
    expect(configFrom({})).toMatchObject({
      settings: defaultSettings,
      reconcileConcurrency: 1,
      watchNamespaces: [],
      useKubernetesProxy: false,
      qps: 100,
      burst: 200,
      leaderElection: { enabled: true, namespace: undefined, leaseName: "ray-operator-leader", leaseDuration: 15_000 },
      metricsAddress: ":8080",
      probeAddress: ":8082",
      enableMetrics: false,
      features: { RayJobDeletionPolicy: true, SidecarSubmitterRestart: false },
      log: { level: "info", stdoutEncoder: "json" },
      warnings: [],
    });
  });

  it("takes flags", () => {
    const flags = {
      "reconcile-concurrency": "8",
      "watch-namespace": "a, b, a,",
      "enable-leader-election": "false",
      qps: "12.5",
      "zap-log-level": "2",
      "feature-gates": "SidecarSubmitterRestart=true,",
    };
    expect(configFrom({ flags })).toMatchObject({
      reconcileConcurrency: 8,
      watchNamespaces: ["a", "b"],
      leaderElection: { enabled: false },
      qps: 12.5,
      log: { level: "debug" },
      features: { SidecarSubmitterRestart: true },
      warnings: [],
    });
  });

  it("tells decisions of the gate that concerns them", () => {
    const { features, settings } = configFrom({ flags: { "feature-gates": "SidecarSubmitterRestart=true" } });
    expect([features.SidecarSubmitterRestart, settings.sidecarRestart]).toEqual([true, true]);
  });

  it("takes a file, and then of the flags only gates and log settings, saying which it passed over", () => {
    const config = configFrom({
      flags: { qps: "1", "log-stdout-encoder": "console", "feature-gates": "SidecarSubmitterRestart=true" },
      file: file("reconcileConcurrency: 0\nburst: 7\nleaderElectionNamespace: ray-system\ndefaultPodLabels: {}\n"),
    });
    expect(config).toMatchObject({
      qps: 100,
      burst: 7,
      reconcileConcurrency: 1,
      leaderElection: { namespace: "ray-system" },
      log: { stdoutEncoder: "console" },
      features: { SidecarSubmitterRestart: true },
      warnings: ["--qps does not count, because a configuration file is given."],
    });
  });

  it("takes the environment", () => {
    const env = {
      CLUSTER_DOMAIN: "example.org",
      RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS: "5",
      RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS: "7",
      ENABLE_LOGIN_SHELL: "True",
      ENABLE_PROBES_INJECTION: "FALSE",
      ENABLE_INIT_CONTAINER_INJECTION: "no",
      ENABLE_DETERMINISTIC_HEAD_POD_NAME: "true",
      PATH: "/bin",
    };
    expect(configFrom({ env }).settings).toMatchObject({
      clusterDomain: "example.org",
      transitionGrace: 5000,
      statusCheckTimeout: 7000,
      loginShell: true,
      probesInjection: false,
      initContainerInjection: true,
    });
  });

  it("takes what every Pod shall have from the file", () => {
    const { settings } = configFrom({
      file: file(`
defaultContainerEnvs: [{name: RAY_enable_open_telemetry, value: "true"}, {name: SECRET, valueFrom: {secretKeyRef: {name: s, key: k}}}]
defaultPodAnnotations: {example.org/owner: ml}
defaultPodLabels: {team: ml}
headSidecarContainers: [{name: collector, image: "collector:1", args: [--head]}]
workerSidecarContainers:
`),
    });
    expect(settings.podDefaults).toEqual({
      containerEnv: [
        { name: "RAY_enable_open_telemetry", value: "true" },
        { name: "SECRET", valueFrom: { secretKeyRef: { name: "s", key: "k" } } },
      ],
      annotations: { "example.org/owner": "ml" },
      labels: { team: "ml" },
      headSidecars: [{ name: "collector", image: "collector:1", args: ["--head"] }],
      workerSidecars: [],
    });
  });

  it("takes zap's flags", () => {
    const log = (flags: Record<string, unknown>) => configFrom({ flags }).log;
    expect(log({ "zap-devel": "true" }).level).toBe("debug");
    expect(log({ "zap-devel": "true", "zap-log-level": "error" }).level).toBe("error");
    expect(log({ "zap-log-level": "panic" }).level).toBe("fatal");
    expect(log({ "zap-encoder": "console" }).stdoutEncoder).toBe("console");
    expect(log({ "zap-encoder": "console", "log-stdout-encoder": "json" }).stdoutEncoder).toBe("json");
    expect(log({ "zap-time-encoding": "epoch" }).timeEncoding).toBe("epoch");
  });

  it("cannot be changed", () => {
    const config = configFrom({});
    expect(() => Object.assign(config.settings, { version: "x" })).toThrow(TypeError);
  });
});

describe("a mistake in the configuration", () => {
  it.each<[string, ConfigSources, string]>([
    ["an unknown flag", { flags: { qqs: "1" } }, "There is no flag --qqs. Did you mean --qps?"],
    ["a flag that is like none", { flags: { frobnicate: "1" } }, "There is no flag --frobnicate."],
    [
      "an unknown field",
      { file: file("reconcileConcurency: 1") },
      'The configuration file has an unknown field "reconcileConcurency". Did you mean reconcileConcurrency?',
    ],
    [
      "a mistyped gate",
      { flags: { "feature-gates": "RayJobDeletionPolcy=true" } },
      'there is no feature gate "RayJobDeletionPolcy". Did you mean RayJobDeletionPolicy?',
    ],
    ["a wrong number", { flags: { burst: "many" } }, '--burst must be a whole number, 1 or more, not "many".'],
    [
      "a wrong type in the file",
      { file: file("enableMetrics: 7") },
      "The configuration file's enableMetrics must be true or false, not 7.",
    ],
    [
      "an unknown gate",
      { flags: { "feature-gates": "AsyncJobInfoQuery=true" } },
      'there is no feature gate "AsyncJobInfoQuery"',
    ],
    [
      "a gate's name from Object",
      { flags: { "feature-gates": "constructor=true" } },
      'there is no feature gate "constructor"',
    ],
    [
      "a gate without a value",
      { flags: { "feature-gates": "RayJobDeletionPolicy" } },
      "RayJobDeletionPolicy must be true or false",
    ],
    ["a sidecar without an image", { file: file("headSidecarContainers: [{name: x}]") }, "with a name (a DNS label"],
    [
      "a sidecar that would be taken for the submitter",
      { file: file("headSidecarContainers: [{name: ray-job-submitter, image: x}]") },
      "other than ray-job-submitter",
    ],
    [
      "two sidecars of one name",
      { file: file("workerSidecarContainers: [{name: x, image: x}, {name: x, image: y}]") },
      'there are two "x"',
    ],
    [
      "a variable that is a number",
      { file: file("defaultContainerEnvs: [{name: A, value: 1}]") },
      "a text: write numbers in quotes",
    ],
    ["a label that is a truth", { file: file("defaultPodLabels: {a: true}") }, "true or false in quotes"],
    ["a label that no Pod could have", { file: file("defaultPodLabels: {team: machine learning}") }, "a map of labels"],
    [
      "a namespace that cannot exist",
      { flags: { "watch-namespace": "team-a,Team_B" } },
      '--watch-namespace must be names of namespaces, separated by commas, not "team-a,Team_B".',
    ],
    [
      "a label of the operator's own",
      { file: file("defaultPodLabels: {ray.io/cluster: x}") },
      'without "ray.io/cluster", which the operator sets itself',
    ],
    [
      "a variable",
      { env: { RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS: "5m" } },
      "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS must be a whole number",
    ],
    ["another kind", { file: "apiVersion: v1\nkind: ConfigMap" }, "not v1 and ConfigMap"],
    ["no YAML", { file: "a: [" }, "no YAML"],
    ["an empty file", { file: "" }, "empty"],
  ])("is named: %s", (_, sources, message) => {
    expect(problems(sources)).toEqual([expect.stringContaining(message)]);
  });

  it("does not hide the next one", () => {
    expect(problems({ flags: { qps: "0", nope: "" }, env: { RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS: "0" } })).toHaveLength(
      3,
    );
  });
});

/**
 * Every choice of KubeRay's that departs from its default and has no effect here: what the administrator reads. A choice
 * that is in neither list of this file is silently ignored, which the last test does not allow.
 */
describe("a choice whose feature is not built", () => {
  const REFUSED: readonly (readonly [ConfigSources, string])[] = [
    [
      { flags: { "batch-scheduler": "volcano" } },
      "--batch-scheduler: batch schedulers are not supported yet; remove it",
    ],
    [{ file: file("batchScheduler: yunikorn") }, "file's batchScheduler: batch schedulers are not supported yet"],
    [{ flags: { "enable-batch-scheduler": "true" } }, "--enable-batch-scheduler: batch schedulers are not"],
    [{ flags: { "feature-gates": "RayClusterStatusConditions=false" } }, "cannot be switched off"],
    [{ flags: { "feature-gates": "RayCronJob=true" } }, "RayCronJob is not supported yet; leave the gate off"],
    [{ flags: { "feature-gates": "RayClusterNetworkPolicy=true" } }, "network policies are not supported yet"],
    [{ flags: { "feature-gates": "RayClusterMTLS=true" } }, "TLS is not supported yet"],
    [{ flags: { "feature-gates": "RayClusterHistoryServer=true" } }, "collector is not supported yet"],
    [{ flags: { "feature-gates": "GCSFaultToleranceEmbeddedStorage=true" } }, "fault tolerance of the GCS is not"],
    [{ flags: { "feature-gates": "KubernetesWAS=true" } }, "workload-aware scheduling is not supported yet"],
    [{ env: { ENABLE_RANDOM_POD_DELETE: "true" } }, "autoscaling is not supported yet; unset it"],
    [{ env: { ENABLE_GCS_FT_REDIS_CLEANUP: "false" } }, "fault tolerance of the GCS is not supported yet; unset it"],
    [{ env: { ENABLE_ZERO_DOWNTIME: "false" } }, "RayService is not supported yet; unset it"],
    [{ env: { USE_INGRESS_ON_OPENSHIFT: "true" } }, "ingresses are not supported yet; unset it"],
  ];
  it.each(REFUSED)("is refused with the remedy: %j", (sources, message) => {
    expect(problems(sources)).toEqual([expect.stringContaining(message)]);
  });

  it("is none of deletionStrategy, which its gate switches off", () => {
    const { settings, warnings } = configFrom({ flags: { "feature-gates": "RayJobDeletionPolicy=false" } });
    expect([settings.deletionPolicy, warnings]).toEqual([false, []]);
    expect(configFrom({}).settings.deletionPolicy).toBe(true);
  });

  it.each(["9443", ":", ":70000", "a:b:9443", "0"])("refuses %j as the webhook's address", (written) => {
    expect(problems({ env: { ENABLE_WEBHOOKS: "true", RAYKEEPER_WEBHOOK_ADDRESS: written } })).toEqual([
      `RAYKEEPER_WEBHOOK_ADDRESS must be an address to listen on, such as :9443 or 127.0.0.1:9443, not "${written}".`,
    ]);
  });

  it("serves the webhook as KubeRay does, and elsewhere by variables of its own", () => {
    expect(configFrom({ env: {} }).webhook).toBeUndefined();
    // The name that the rights are bound to, where nobody chooses another.
    expect(configFrom({ env: { ENABLE_WEBHOOKS: "true" } }).webhook?.name).toBe(WEBHOOK);
    expect(configFrom({ env: { ENABLE_WEBHOOKS: "true", RAYKEEPER_WEBHOOK_NAME: "mine" } }).webhook).toEqual({
      name: "mine",
      address: ":9443",
      certificateFolder: "/tmp/k8s-webhook-server/serving-certs",
    });
  });

  const WARNED: readonly (readonly [ConfigSources, string])[] = [
    [{ flags: { "feature-gates": "RayMultiHostIndexing=false" } }, "RayMultiHostIndexing=false makes no difference"],
    [{ flags: { "feature-gates": "RayServiceIncrementalUpgrade=false" } }, "makes no difference: RayService is not"],
    [{ env: { RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV: "60" } }, "makes no difference: a RayCluster is looked at when"],
    [{ flags: { "forced-cluster-upgrade": "true" } }, "--forced-cluster-upgrade is deprecated and has no effect."],
    [{ flags: { "zap-stacktrace-level": "info" } }, "--zap-stacktrace-level has no effect"],
  ];
  it.each(WARNED)("is warned of where it can do no harm: %j", (sources, message) => {
    expect(configFrom(sources).warnings).toEqual([expect.stringContaining(message)]);
  });

  const VALUES = {
    ENABLE_WEBHOOKS: "false",
    ENABLE_RANDOM_POD_DELETE: "False",
    ENABLE_GCS_FT_REDIS_CLEANUP: "true",
    ENABLE_ZERO_DOWNTIME: "true",
    USE_INGRESS_ON_OPENSHIFT: "false",
    RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV: "300",
  };
  it("may be named at its default", () => {
    const gates = Object.entries(GATES).map(([name, { on }]) => `${name}=${on}`);
    const flags = { "feature-gates": gates.join(","), "batch-scheduler": "", "enable-batch-scheduler": "false" };
    expect(configFrom({ flags, env: VALUES })).toMatchObject({ settings: defaultSettings, warnings: [] });
  });

  it.each([
    ...Object.entries(GATES).map(([name, { on }]) => [
      `gate ${name}`,
      { flags: { "feature-gates": `${name}=${!on}` } },
    ]),
    ...Object.entries(VARIABLES).map(([name, { default: standard }]) => {
      const other = { true: "false", false: "true" }[standard] ?? (Number.isNaN(Number(standard)) ? "other" : "77");
      return [`variable ${name}`, { env: { [name]: other } }];
    }),
  ] as [string, ConfigSources][])("is never silently ignored: %s", (name, sources) => {
    // The one whose other value is what always happens here.
    if (name === "variable ENABLE_DETERMINISTIC_HEAD_POD_NAME") return;
    if (problems(sources).length > 0) return;
    const config = configFrom(sources);
    expect(config.warnings.length > 0 || !isDeepStrictEqual(config, configFrom({}))).toBe(true);
  });
});
