import { describe, expect, it } from "vitest";
import { type ConfigError, type ConfigSources, configFrom } from "./config.ts";
import { defaultSettings } from "./domain/settings.ts";

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
      "watch-namespace": "a, b,",
      "enable-leader-election": "false",
      qps: "12.5",
      "zap-log-level": "2",
      "feature-gates": "RayJobDeletionPolicy=false,",
    };
    expect(configFrom({ flags })).toMatchObject({
      reconcileConcurrency: 8,
      watchNamespaces: ["a", "b"],
      leaderElection: { enabled: false },
      qps: 12.5,
      log: { level: "debug" },
      features: { RayJobDeletionPolicy: false },
    });
  });

  it("tells decisions of the gate that concerns them", () => {
    const { features, settings } = configFrom({ flags: { "feature-gates": "SidecarSubmitterRestart=true" } });
    expect([features.SidecarSubmitterRestart, settings.sidecarRestart]).toEqual([true, true]);
  });

  it("takes a file, and then of the flags only gates and log settings, saying which it passed over", () => {
    const config = configFrom({
      flags: { qps: "1", "log-stdout-encoder": "console", "feature-gates": "RayJobDeletionPolicy=false" },
      file: file("reconcileConcurrency: 0\nburst: 7\nleaderElectionNamespace: ray-system\ndefaultPodLabels: {}\n"),
    });
    expect(config).toMatchObject({
      qps: 100,
      burst: 7,
      reconcileConcurrency: 1,
      leaderElection: { namespace: "ray-system" },
      log: { stdoutEncoder: "console" },
      features: { RayJobDeletionPolicy: false },
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

  it("cannot be changed", () => {
    const config = configFrom({});
    expect(() => Object.assign(config.settings, { version: "x" })).toThrow(TypeError);
  });
});

describe("a mistake in the configuration", () => {
  it.each<[string, ConfigSources, string]>([
    ["an unknown flag", { flags: { qqs: "1" } }, "There is no flag --qqs."],
    ["an unknown field", { file: file("qqs: 1") }, 'The configuration file has an unknown field "qqs".'],
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
    [
      "a gate of what is not built",
      { flags: { "feature-gates": "KubernetesWAS=true" } },
      "KubernetesWAS is not supported yet.",
    ],
    ["a scheduler", { flags: { "batch-scheduler": "volcano" } }, "--batch-scheduler is not supported yet."],
    ["sidecars", { file: file("headSidecarContainers: [{name: x}]") }, "headSidecarContainers is not supported yet."],
    ["webhooks", { env: { ENABLE_WEBHOOKS: "true" } }, "ENABLE_WEBHOOKS=true is not supported yet."],
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
