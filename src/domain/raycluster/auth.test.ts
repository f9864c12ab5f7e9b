import { describe, expect, it } from "vitest";
import { defaultSettings } from "../settings.ts";
import { tokenSecret } from "./auth.ts";
import { headPod } from "./head.ts";
import { headGroup, rayCluster, workerGroup } from "./testing.ts";
import { workerPod } from "./worker.ts";

const fromSecret = (name: string) => ({
  name: "RAY_AUTH_TOKEN",
  valueFrom: { secretKeyRef: { name, key: "auth_token" } },
});
const MODE = { name: "RAY_AUTH_MODE", value: "token" };

describe("the Secret that has a cluster's token", () => {
  const called = (name: string, authOptions?: NonNullable<ReturnType<typeof rayCluster>["spec"]["authOptions"]>) =>
    tokenSecret(rayCluster({ authOptions }, { name }));

  it.each([
    ["is none where nothing is said", undefined, undefined],
    ["is none where none is wanted", { mode: "disabled", secretName: "own" } as const, undefined],
    ["is the user's", { mode: "token", secretName: "own" } as const, "own"],
    ["is named as the cluster", { mode: "token" } as const, "demo"],
    ["is named as the cluster where the name is empty", { mode: "token", secretName: "" } as const, "demo"],
    ["is wanted where no mode is said, as KubeRay documents it", { secretName: "own" }, "own"],
    ["and is made where nothing else is said either", {}, "demo"],
  ])("%s", (_, authOptions, secret) => {
    expect(called("demo", authOptions)).toBe(secret);
  });

  it.each([
    [`${"a".repeat(50)}`, "a".repeat(50)],
    [`bb${"a".repeat(50)}`, "a".repeat(50)],
    [`b-9${"a".repeat(49)}`, `r${"a".repeat(49)}`],
    [`bb-${"a".repeat(49)}`, `r${"a".repeat(49)}`],
  ])("of cluster %s has KubeRay's name %s", (name, secret) => {
    expect(called(name, { mode: "token" })).toBe(secret);
  });
});

describe("a Pod of a cluster with a token", () => {
  const env = [{ name: "MINE", value: "1" }];
  const template = (more: typeof env | (typeof MODE)[] = env) => ({
    spec: {
      containers: [
        { name: "ray", image: "i", env: more },
        { name: "mine", image: "j" },
      ],
      initContainers: [{ name: "first", image: "k" }],
    },
  });
  const cluster = rayCluster({ authOptions: { mode: "token" } });
  const settings = {
    ...defaultSettings,
    podDefaults: {
      ...defaultSettings.podDefaults,
      containerEnv: [{ name: "DEFAULT", value: "2" }],
      headSidecars: [{ name: "beside", image: "l" }],
    },
  };
  const head = headPod(
    { ...cluster, spec: { ...cluster.spec, headGroupSpec: headGroup({ template: template() }) } },
    settings,
  );
  const worker = workerPod(cluster, workerGroup({ template: template() }), settings);

  it("knows it in its Ray container, after the user's variables and before the administrator's", () => {
    expect(head.spec!.containers[0]!.env!.slice(0, 5)).toEqual([
      ...env,
      MODE,
      fromSecret("demo"),
      { name: "DEFAULT", value: "2" },
      { name: "RAY_CLUSTER_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.labels['ray.io/cluster']" } } },
    ]);
    expect(worker.spec!.containers[0]!.env!.slice(0, 5).map(({ name }) => name)).toEqual([
      "MINE",
      "RAY_AUTH_MODE",
      "RAY_AUTH_TOKEN",
      "DEFAULT",
      "FQ_RAY_IP",
    ]);
  });

  it("knows it in wait-gcs-ready, which asks the head, and in no other container", () => {
    const [first, wait] = worker.spec!.initContainers!;
    expect(wait!.env!.map(({ name }) => name)).toEqual([
      "MINE",
      "RAY_AUTH_MODE",
      "RAY_AUTH_TOKEN",
      "FQ_RAY_IP",
      "RAY_IP",
    ]);
    const others = [first!, ...head.spec!.containers.slice(1), ...worker.spec!.containers.slice(1)];
    expect(others.map(({ name }) => name)).toEqual(["first", "mine", "beside", "mine"]);
    expect(JSON.stringify(others)).not.toContain("RAY_AUTH");
  });

  it("keeps what the user says of either variable", () => {
    const own = [{ name: "RAY_AUTH_MODE", value: "disabled" }];
    const pod = workerPod(cluster, workerGroup({ template: template(own) }), settings);
    for (const container of [pod.spec!.containers[0]!, pod.spec!.initContainers!.at(-1)!]) {
      const said = container.env!.filter(({ name }) => name.startsWith("RAY_AUTH"));
      expect(said).toEqual([...own, fromSecret("demo")]);
    }
  });
});
