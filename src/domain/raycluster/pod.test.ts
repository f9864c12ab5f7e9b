import { describe, expect, it } from "vitest";
import type { PodTemplateSpec } from "../../api/kubernetes.ts";
import { defaultSettings } from "../settings.ts";
import { headPod } from "./head.ts";
import { workerGenerateName } from "./names.ts";
import { headGroup, rayCluster, workerGroup } from "./testing.ts";
import { workerPod } from "./worker.ts";

const template = (
  more: Partial<PodTemplateSpec["spec"]> = {},
  metadata: PodTemplateSpec["metadata"] = {},
): PodTemplateSpec => ({
  metadata,
  spec: { containers: [{ name: "ray", image: "rayproject/ray:2.56.0" }], ...more },
});

const ray = (resources: { limits?: Record<string, string>; requests?: Record<string, string> }) =>
  template({ containers: [{ name: "ray", image: "i", resources }] });

const headOf = (
  group: Parameters<typeof headGroup>[0] = {},
  metadata = {},
  settings = defaultSettings,
  rayVersion = "2.56.0",
) => headPod(rayCluster({ headGroupSpec: headGroup(group), rayVersion }, metadata), settings);

const workerOf = (group: Parameters<typeof workerGroup>[0] = {}, metadata = {}, settings = defaultSettings) =>
  workerPod(rayCluster({}, metadata), workerGroup(group), settings);

const envNames = (pod: ReturnType<typeof headOf>) => pod.spec!.containers[0]!.env!.map(({ name }) => name);
const env = (pod: ReturnType<typeof headOf>, name: string) =>
  pod.spec!.containers[0]!.env!.findLast((entry) => entry.name === name);

describe("a head Pod", () => {
  it("has a name of its own, and the cluster as its owner", () => {
    expect(headOf().metadata).toMatchObject({
      name: "demo-head",
      namespace: "ns1",
      ownerReferences: [
        { kind: "RayCluster", name: "demo", uid: "cluster-uid", controller: true, blockOwnerDeletion: true },
      ],
    });
  });

  it("has KubeRay's labels", () => {
    expect(headOf({ labels: { zone: "a" } }).metadata.labels).toEqual({
      "ray.io/is-ray-node": "yes",
      "ray.io/cluster": "demo",
      "ray.io/node-type": "head",
      "ray.io/group": "headgroup",
      "ray.io/identifier": "demo-head",
      "app.kubernetes.io/name": "kuberay",
      "app.kubernetes.io/created-by": "kuberay-operator",
      zone: "a",
    });
  });

  it("has the environment that Ray and its tools expect, after the user's own, in KubeRay's order", () => {
    const pod = headOf({
      template: template({ containers: [{ name: "ray", image: "i", env: [{ name: "MINE", value: "$(X)" }] }] }),
    });
    expect(envNames(pod)).toEqual([
      "MINE",
      "RAY_CLUSTER_NAME",
      "RAY_CLUSTER_NAMESPACE",
      "RAY_CLOUD_INSTANCE_ID",
      "RAY_NODE_TYPE_NAME",
      "KUBERAY_GEN_RAY_START_CMD",
      "RAY_PORT",
      "RAY_ADDRESS",
      "RAY_USAGE_STATS_KUBERAY_IN_USE",
      "RAY_USAGE_STATS_EXTRA_TAGS",
      "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE",
    ]);
    expect(env(pod, "RAY_ADDRESS")?.value).toBe("127.0.0.1:6379");
    expect(env(pod, "MINE")?.value).toBe("$(X)");
  });

  it("tells Ray's usage statistics for what it was made", () => {
    const pod = headOf(
      {},
      { labels: { "ray.io/originated-from-crd": "RayJob" } },
      { ...defaultSettings, version: "v9" },
    );
    expect(env(pod, "RAY_USAGE_STATS_EXTRA_TAGS")?.value).toBe("kuberay_version=v9;kuberay_crd=RayJob");
  });

  it("keeps an address that the user gave", () => {
    const own = [{ name: "RAY_ADDRESS", value: "auto" }];
    const pod = headOf({ template: template({ containers: [{ name: "ray", image: "i", env: own }] }) });
    expect(pod.spec!.containers[0]!.env!.filter(({ name }) => name === "RAY_ADDRESS")).toEqual(own);
  });

  it("has shared memory as large as its memory limit", () => {
    const { spec } = headOf({ template: ray({ limits: { memory: "2Gi" } }) });
    expect(spec!.volumes).toEqual([{ name: "shared-mem", emptyDir: { medium: "Memory", sizeLimit: "2Gi" } }]);
    expect(spec!.containers[0]!.volumeMounts).toEqual([{ name: "shared-mem", mountPath: "/dev/shm" }]);
  });

  it.each([
    ["the object store is elsewhere", { rayStartParams: { "plasma-directory": "/data" } }],
    [
      "something is mounted there",
      {
        template: template({
          containers: [{ name: "ray", image: "i", volumeMounts: [{ name: "x", mountPath: "/dev/shm" }] }],
        }),
      },
    ],
  ])("has no shared memory of ours when %s", (_, group) => {
    expect(headOf(group).spec!.volumes).toBeUndefined();
  });

  it.each([
    ["2.53.0", { httpGet: { path: "/api/healthz", port: 52365 } }],
    [
      "2.9.3",
      {
        exec: {
          command: [
            "bash",
            "-c",
            expect.stringMatching(/52365\/api\/local_raylet_healthz.*&&.*8265\/api\/gcs_healthz/),
          ],
        },
      },
    ],
    ["nightly", { exec: expect.anything() }],
  ])("of Ray %s is probed in the way that this version answers", (version, probe) => {
    const [container] = headOf({}, {}, defaultSettings, version).spec!.containers;
    expect(container!.livenessProbe).toMatchObject({
      ...probe,
      initialDelaySeconds: 30,
      timeoutSeconds: 5,
      periodSeconds: 5,
      failureThreshold: 120,
    });
    expect(container!.readinessProbe).toMatchObject({ ...probe, initialDelaySeconds: 10, failureThreshold: 10 });
  });

  it("probes the ports that the user chose", () => {
    const pod = headOf(
      { rayStartParams: { "dashboard-agent-listen-port": "1111", "dashboard-port": "2222" } },
      {},
      defaultSettings,
      "2.40.0",
    );
    expect(pod.spec!.containers[0]!.readinessProbe!.exec!.command![2]).toMatch(/localhost:1111.*localhost:2222/);
  });

  it("keeps the user's probe, and gets none where the administrator wants none", () => {
    const own = { tcpSocket: { port: 1 } };
    const pod = headOf({ template: template({ containers: [{ name: "ray", image: "i", livenessProbe: own }] }) });
    expect(pod.spec!.containers[0]!.livenessProbe).toEqual(own);
    const bare = headOf({}, {}, { ...defaultSettings, probesInjection: false });
    expect(bare.spec!.containers[0]!.readinessProbe).toBeUndefined();
  });

  it.each([
    ["the cluster's annotation", { annotations: { "ray.io/overwrite-container-cmd": "True" } }, {}],
    ["the template's annotation", {}, { annotations: { "ray.io/overwrite-container-cmd": "true" } }],
  ])(
    "keeps the user's command by %s, and offers the start command in its environment",
    (_, metadata, templateMetadata) => {
      const spec = { containers: [{ name: "ray", image: "i", command: ["mine"] }] };
      const pod = headOf({ template: template(spec, templateMetadata) }, metadata);
      expect(pod.spec!.containers[0]!.command).toEqual(["mine"]);
      expect(env(pod, "KUBERAY_GEN_RAY_START_CMD")?.value).toContain("ray start --head");
    },
  );

  it("lands in the cluster's namespace, whatever the template says", () => {
    expect(headOf({ template: template({}, { namespace: "elsewhere", name: "x" }) }).metadata).toMatchObject({
      namespace: "ns1",
      name: "demo-head",
    });
  });

  it("of the longest cluster name still fits a host name, and is no other cluster's", () => {
    const name = "a".repeat(53);
    const pod = headPod(rayCluster({}, { name }), defaultSettings);
    expect(pod.metadata.name).toBe(`${name}-head`);
    expect(pod.metadata.name!.length).toBeLessThanOrEqual(63);
  });
});

describe("a worker Pod", () => {
  it("is named by the API server, with the prefix that KubeRay's users know", () => {
    expect(workerOf().metadata).toMatchObject({ generateName: "demo-small-worker-" });
    expect(workerOf().metadata.name).toBeUndefined();
  });

  it.each([
    ["GPU_a.b", "demo-gpu-a-b-worker-"],
    ["x".repeat(63), `demo-${"x".repeat(45)}-worker-`],
  ])("of group %s has a name that Kubernetes accepts", (group, prefix) => {
    expect(workerGenerateName("demo", group)).toBe(prefix);
  });

  it("knows where the head is, and so do its init containers", () => {
    const pod = workerOf({ template: template({ initContainers: [{ name: "mine", image: "i" }] }) });
    expect(envNames(pod).slice(0, 3)).toEqual(["FQ_RAY_IP", "RAY_IP", "RAY_CLUSTER_NAME"]);
    expect(envNames(pod)).not.toContain("RAY_USAGE_STATS_EXTRA_TAGS");
    expect(env(pod, "RAY_ADDRESS")?.value).toBe("demo-head-svc.ns1.svc.cluster.local:6379");
    expect(pod.spec!.initContainers!.map(({ name, env }) => [name, env])).toEqual(
      ["mine", "wait-gcs-ready"].map((name) => [
        name,
        [
          { name: "FQ_RAY_IP", value: "demo-head-svc.ns1.svc.cluster.local" },
          { name: "RAY_IP", value: "demo-head-svc" },
        ],
      ]),
    );
  });

  it("waits for the head with the image and the environment of its Ray container", () => {
    const container = {
      name: "ray",
      image: "mine:1",
      imagePullPolicy: "Always" as const,
      env: [{ name: "A", value: "b" }],
    };
    const [wait] = workerOf({ template: template({ containers: [container] }) }).spec!.initContainers!;
    expect(wait).toMatchObject({
      name: "wait-gcs-ready",
      image: "mine:1",
      imagePullPolicy: "Always",
      command: ["/bin/bash", "-c", "--"],
    });
    expect(wait!.env![0]).toEqual({ name: "A", value: "b" });
    expect(wait!.args![0]).toContain("ray health-check --address demo-head-svc.ns1.svc.cluster.local:6379");
  });

  it("waits with a script in which kubelet finds nothing to expand", () => {
    const [wait] = workerOf().spec!.initContainers!;
    expect(wait!.args![0]).not.toMatch(/\$\(|\$\$/);
  });

  it("has no wait container where the administrator wants none", () => {
    expect(
      workerOf({}, {}, { ...defaultSettings, initContainerInjection: false }).spec!.initContainers,
    ).toBeUndefined();
  });

  it("is not OOM-killed for ever in wait-gcs-ready, because that has the Ray container's memory and no GPU", () => {
    const pod = workerOf({
      template: ray({ limits: { cpu: "2", memory: "4Gi", "nvidia.com/gpu": "1" }, requests: { cpu: "1" } }),
    });
    expect(pod.spec!.initContainers![0]!.resources).toEqual({
      limits: { cpu: "2", memory: "4Gi" },
      requests: { cpu: "1" },
    });
  });

  it("gives wait-gcs-ready 512Mi at least", () => {
    const pod = workerOf({ template: ray({ limits: { memory: "256Mi" } }) });
    expect(pod.spec!.initContainers![0]!.resources).toEqual({ limits: { memory: "512Mi" } });
  });

  it("does not lose most of a minute in wait-gcs-ready, because that is not held to a fifth of a CPU", () => {
    expect(workerOf().spec!.initContainers![0]!.resources).toEqual({});
  });
});

describe("an attempt of a RayJob", () => {
  const attempt = {
    labels: { "ray.io/execution-attempt": "3", "ray.io/rayjob-uid": "job-uid" },
    annotations: { "ray.io/execution-attempt": "3" },
  };
  const imposter = template({}, { labels: attempt.labels, annotations: attempt.annotations });
  imposter.metadata!.labels = {
    "ray.io/execution-attempt": "7",
    "ray.io/rayjob-uid": "other",
    "ray.io/cluster": "other",
  };
  imposter.metadata!.annotations = { "ray.io/execution-attempt": "7" };

  it.each([
    ["head", headOf({ template: imposter, labels: imposter.metadata!.labels }, attempt)],
    ["worker", workerOf({ template: imposter, labels: imposter.metadata!.labels }, attempt)],
  ])("can be told from each %s Pod, whatever its template says", (_, pod) => {
    expect(pod.metadata.labels).toMatchObject({ ...attempt.labels, "ray.io/cluster": "demo" });
    expect(pod.metadata.annotations).toMatchObject(attempt.annotations);
  });
});

describe("what the administrator gives every Pod", () => {
  const settings = {
    ...defaultSettings,
    podDefaults: {
      containerEnv: [
        { name: "RAY_enable_open_telemetry", value: "true" },
        { name: "MINE", value: "the administrator's" },
        { name: "RAY_ADDRESS", value: "auto" },
      ],
      annotations: { "example.org/owner": "platform", "example.org/cost": "shared" },
      labels: { team: "platform", zone: "any" },
      headSidecars: [{ name: "head-shipper", image: "shipper:1" }],
      workerSidecars: [{ name: "worker-shipper", image: "shipper:1" }],
    },
  };
  const user = template(
    { containers: [{ name: "ray", image: "i", env: [{ name: "MINE", value: "the user's" }] }] },
    { labels: { team: "ml" }, annotations: { "example.org/owner": "ml" } },
  );
  const head = () => headOf({ template: user, labels: { zone: "a" } }, {}, settings);
  const worker = () => workerOf({ template: user }, {}, settings);

  it("comes after the user's own environment, before the operator's, and gives way to the user's", () => {
    expect(envNames(head()).slice(0, 4)).toEqual([
      "MINE",
      "RAY_enable_open_telemetry",
      "RAY_ADDRESS",
      "RAY_CLUSTER_NAME",
    ]);
    expect(env(head(), "MINE")?.value).toBe("the user's");
    expect(envNames(worker()).slice(0, 4)).toEqual(["MINE", "RAY_enable_open_telemetry", "RAY_ADDRESS", "FQ_RAY_IP"]);
  });

  it("stands instead of what the operator would set where nobody did", () => {
    expect(env(head(), "RAY_ADDRESS")?.value).toBe("auto");
    expect(envNames(head()).filter((name) => name === "RAY_ADDRESS")).toHaveLength(1);
  });

  it("fills in labels and annotations that nobody set", () => {
    expect(head().metadata.labels).toMatchObject({ team: "ml", zone: "a", "ray.io/cluster": "demo" });
    expect(worker().metadata.labels).toMatchObject({ team: "ml", zone: "any" });
    expect(worker().metadata.annotations).toMatchObject({
      "example.org/owner": "ml",
      "example.org/cost": "shared",
    });
  });

  it("adds its containers behind the user's, to heads and workers apart, and none to init containers", () => {
    const names = (pod: ReturnType<typeof headOf>) => pod.spec!.containers.map(({ name }) => name);
    expect(names(head())).toEqual(["ray", "head-shipper"]);
    expect(names(worker())).toEqual(["ray", "worker-shipper"]);
    expect(worker().spec!.initContainers!.map(({ name }) => name)).toEqual(["wait-gcs-ready"]);
    expect(worker().spec!.initContainers![0]!.env!.map(({ name }) => name)).not.toContain("RAY_enable_open_telemetry");
  });
});
