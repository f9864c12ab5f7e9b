import { describe, expect, it } from "vitest";
import type { RayCluster, RayClusterSpec } from "../../api/raycluster.ts";
import { defaultSettings } from "../settings.ts";
import { sentence } from "../validation.ts";
import { headGroup, rayCluster, workerGroup } from "./testing.ts";
import { clusterSpecViolations, rayClusterViolations } from "./validate.ts";

const withEnv = (name: string, value: string) => ({
  headGroupSpec: headGroup({
    template: { spec: { containers: [{ name: "ray", image: "i", env: [{ name, value }] }] } },
  }),
});
const head = (more: Parameters<typeof headGroup>[0]) => ({ headGroupSpec: headGroup(more) });
const workers = (...groups: Parameters<typeof workerGroup>[0][]) => ({ workerGroupSpecs: groups.map(workerGroup) });

/** Each violation as a sentence. */
const said = (cluster: RayCluster) => rayClusterViolations(cluster, defaultSettings).map(sentence);

describe("a RayCluster", () => {
  it("that is fine has no problems, at either extreme of its length", () => {
    expect(said(rayCluster())).toEqual([]);
    expect(said(rayCluster({ workerGroupSpecs: undefined }, { name: "a".repeat(53) }))).toEqual([]);
  });

  it.each<[string, Partial<RayClusterSpec>, RegExp]>([
    ["autoscaling", { enableInTreeAutoscaling: true }, /^spec\.enableInTreeAutoscaling: .*not supported yet.*remove/],
    ["options of the autoscaler", { autoscalerOptions: {} }, /^spec\.autoscalerOptions: .*remove/],
    ["fault tolerance", { gcsFaultToleranceOptions: {} }, /^spec\.gcsFaultToleranceOptions: .*remove/],
    [
      "Kubernetes' own tokens",
      { authOptions: { mode: "token", enableK8sTokenAuth: true } },
      /^spec\.authOptions\.enableK8sTokenAuth: .*not supported yet: remove it/,
    ],
    ["TLS", { tlsOptions: { enabled: true } }, /^spec\.tlsOptions: .*remove/],
    ["network policies", { networkPolicy: {} }, /^spec\.networkPolicy: .*yourself/],
    ["the history server", { historyServerOptions: {} }, /^spec\.historyServerOptions: .*remove/],
    ["recreation on change", { upgradeStrategy: { type: "Recreate" } }, /^spec\.upgradeStrategy\.type: .*None/],
    ["an Ingress", head({ enableIngress: true }), /^spec\.headGroupSpec\.enableIngress: .*yourself/],
    ["several hosts a replica", workers({ numOfHosts: 2 }), /^spec\.workerGroupSpecs\[0\]\.numOfHosts: .*set it to 1/],
    [
      "idle time-outs",
      workers({ idleTimeoutSeconds: 5 }),
      /^spec\.workerGroupSpecs\[0\]\.idleTimeoutSeconds: .*remove/,
    ],
    ["priorities", workers({ priority: 1 }), /^spec\.workerGroupSpecs\[0\]\.priority: .*remove/],
    ["Redis by the back door", withEnv("RAY_REDIS_ADDRESS", "r"), /RAY_REDIS_ADDRESS.*not supported yet: remove/],
    ["autoscaling by the back door", withEnv("RAY_enable_autoscaler_v2", "1"), /RAY_enable_autoscaler_v2.*remove/],
  ])("that asks for what is not built, %s, is refused with the remedy", (_, spec, words) => {
    expect(said(rayCluster(spec))).toEqual([expect.stringMatching(words)]);
  });

  it.each<[string, Partial<RayClusterSpec>]>([
    ["authentication", { authOptions: { mode: "disabled" }, rayVersion: undefined }],
    ["Kubernetes' own tokens", { authOptions: { mode: "token", enableK8sTokenAuth: false } }],
    ["TLS", { tlsOptions: { enabled: false } }],
    ["autoscaling", { enableInTreeAutoscaling: false }],
    ["upgrades", { upgradeStrategy: { type: "None" } }],
  ])("that says no to %s is accepted", (_, spec) => {
    expect(said(rayCluster(spec))).toEqual([]);
  });

  it.each([
    [undefined, "RayVersion was not specified. Ray version 2.52.0 or later is required"],
    ["", "RayVersion was not specified. Ray version 2.52.0 or later is required"],
    ["nightly", 'RayVersion format is invalid: nightly, could not parse "nightly" as version'],
    ["2", 'RayVersion format is invalid: 2, illegal version string "2"'],
    ["2.51.2", "minimum Ray version is 2.52.0, got 2.51.2"],
  ])("with a token and rayVersion %s is refused in KubeRay's words, with the remedy", (rayVersion, words) => {
    for (const authOptions of [{ mode: "token" } as const, {}]) {
      expect(said(rayCluster({ authOptions, rayVersion }))).toEqual([
        `spec.rayVersion: authOptions.mode is 'token' but ${words}: set it to the images' version, 2.52.0 or newer, or set authOptions.mode to disabled`,
      ]);
    }
  });

  it.each(["2.52.0", "v2.52", "2.53.0rc1", "2.56.0", "3.0.0"])(
    "with a token and rayVersion %s is accepted",
    (rayVersion) => {
      expect(said(rayCluster({ authOptions: { mode: "token" }, rayVersion }))).toEqual([]);
    },
  );

  it.each<[string, Partial<RayClusterSpec>, RegExp]>([
    [
      "a head without containers",
      head({ template: { spec: { containers: [] } } }),
      /headGroupSpec\.template\.spec\.containers: headGroupSpec should have at least one container/,
    ],
    ["a template without a spec", head({ template: {} }), /headGroupSpec\.template\.spec\.containers/],
    [
      "resources given twice",
      head({ resources: { CPU: "1" }, rayStartParams: { "num-cpus": "1" } }),
      /resources: resource fields should not be set in both rayStartParams and Resources for Head group.*num-cpus/,
    ],
    ["resources that are no amounts", head({ resources: { CPU: "many" } }), /resources\[CPU\]: "many"/],
    [
      "labels as a start parameter",
      head({ rayStartParams: { labels: "a=b" } }),
      /rayStartParams\.labels: rayStartParams\['labels'\] is not supported for Head group/,
    ],
    ["labels that are none", workers({ labels: { "a b": "c" } }), /labels: "a b"/],
    ["label values that are none", workers({ labels: { a: "-" } }), /labels\[a\]: "-"/],
    [
      "two groups of one name",
      workers({}, {}),
      /^spec\.workerGroupSpecs\[1\]\.groupName: worker group names must be unique: .*"small"/,
    ],
    ["a group without a name", workers({ groupName: "" }), /groupName/],
    ["a group named as the head's", workers({ groupName: "headgroup" }), /reserved/],
    ["a group named as no label may be", workers({ groupName: "a b" }), /groupName: "a b"/],
    [
      "bounds the wrong way round",
      workers({ minReplicas: 3, maxReplicas: 2 }),
      /minReplicas: 3 is larger than maxReplicas, 2/,
    ],
    ["negative bounds", workers({ minReplicas: -1 }), /negative/],
    ["a missing bound", workers({ minReplicas: undefined as unknown as number }), /both must be set/],
    [
      "a Secret of another namespace",
      { authOptions: { secretName: "../../theirs/secrets/x" } },
      /^spec\.authOptions\.secretName: "\.\.\/\.\.\/theirs\/secrets\/x" is no name for a Secret/,
    ],
    [
      "a head Service of another namespace",
      head({ headService: { metadata: { name: "other-head-svc.their-namespace" } } }),
      /^spec\.headGroupSpec\.headService\.metadata\.name: "other-head-svc\.their-namespace" is no name for a Service/,
    ],
    ["a user name for Redis", head({ rayStartParams: { "redis-username": "u" } }), /redis-username/],
  ])("with %s is refused", (_, spec, words) => {
    expect(said(rayCluster(spec))).toEqual([expect.stringMatching(words)]);
  });

  it("may have a worker group suspended only where the gate is on", () => {
    const suspended = rayCluster(workers({ suspend: true }));
    expect(said(suspended)).toEqual([]);
    const off = rayClusterViolations(suspended, { ...defaultSettings, deletionPolicy: false });
    expect(off.map(({ at }) => at)).toEqual(["spec.workerGroupSpecs[0].suspend"]);
  });

  it.each([
    ["too long", "a".repeat(54), /54 characters/],
    ["beginning with a digit", "1a", /begin with a letter/],
    ["with a dot", "a.b", /letters, digits/],
  ])("whose name is %s is refused", (_, name, words) => {
    expect(said(rayCluster({}, { name }))).toEqual([expect.stringMatching(words)]);
  });

  it.each([
    ["ray.io/ft-enabled", "True", 1],
    ["ray.io/ft-enabled", "false", 0],
    ["ray.io/external-storage-namespace", "x", 1],
    ["ray.io/enable-serve-service", "true", 1],
  ])("with annotation %s: %s has %i problems", (key, value, count) => {
    expect(said(rayCluster({}, { annotations: { [key]: value } }))).toHaveLength(count);
  });

  it("inside a RayJob is reported at its place there", () => {
    expect(
      clusterSpecViolations(rayCluster({ networkPolicy: {} }).spec, "spec.rayClusterSpec", defaultSettings)[0]?.at,
    ).toMatch(/^spec\.rayClusterSpec\.networkPolicy/);
  });
});
