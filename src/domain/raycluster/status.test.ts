import { describe, expect, it } from "vitest";
import type { PodStatus } from "../../api/kubernetes.ts";
import { seconds, toWire } from "../time.ts";
import { exited, headGroup, NOON, rayCluster, ready, World, waiting, withContainer, workerGroup } from "./testing.ts";

function started(cluster = rayCluster()): World {
  const world = new World(cluster);
  world.settle();
  return world;
}

const resources = (name: string, requests: Record<string, string>, limits: Record<string, string> = {}) => ({
  template: { spec: { containers: [{ name, image: "i", resources: { requests, limits } }] } },
});

describe("the status", () => {
  it("counts Pods and what they ask for", () => {
    const world = started(
      rayCluster({
        headGroupSpec: headGroup(resources("head", { cpu: "500m" }, { memory: "2Gi" })),
        workerGroupSpecs: [
          workerGroup({
            replicas: 9,
            minReplicas: 1,
            maxReplicas: 3,
            ...resources("w", { cpu: "1" }, { cpu: "2", memory: "1Gi", "nvidia.com/gpu": "1", "google.com/tpu": "4" }),
          }),
          workerGroup({ groupName: "off", minReplicas: 5, suspend: true }),
        ],
      }),
    );
    world.set(world.workers()[0]!.metadata.name, ready());
    world.set(world.workers()[1]!.metadata.name, withContainer("Running", { running: {} }));
    world.wait(seconds(5));
    expect(world.cluster.status).toMatchObject({
      desiredWorkerReplicas: 3,
      availableWorkerReplicas: 2,
      readyWorkerReplicas: 1,
      minWorkerReplicas: 1,
      maxWorkerReplicas: 3,
      desiredCPU: "3500m",
      desiredMemory: "5Gi",
      desiredGPU: "3",
      desiredTPU: "12",
      observedGeneration: 1,
    });
  });

  it("has no bound where the groups have none", () => {
    expect(
      started(rayCluster({ workerGroupSpecs: [workerGroup(), workerGroup({ groupName: "b" })] })).cluster.status
        ?.maxWorkerReplicas,
    ).toBe(2147483647);
  });

  it("says where the head is: by its Pod's address while the Service is headless", () => {
    const world = started();
    world.services[0]!.spec!.ports![0]!.nodePort = 30001;
    world.services[0]!.spec!.ports![1]!.targetPort = "dash";
    world.allReady();
    world.settle();
    expect(world.cluster.status).toMatchObject({
      head: { podName: "demo-head", podIP: "10.0.0.1", serviceName: "demo-head-svc", serviceIP: "10.0.0.1" },
      endpoints: { client: "30001", dashboard: "dash", "gcs-server": "6379", metrics: "8080", serve: "8000" },
    });
  });

  it("says when it became ready, once", () => {
    const world = started();
    world.now += seconds(20);
    world.allReady();
    world.settle();
    expect(world.cluster.status?.stateTransitionTimes).toEqual({ ready: toWire(NOON + seconds(20)) });
    world.now += seconds(20);
    world.set("demo-head", withContainer("Running", { running: {} }));
    world.settle();
    world.allReady();
    world.settle();
    expect(world.cluster.status?.stateTransitionTimes).toEqual({ ready: toWire(NOON + seconds(20)) });
  });

  it("is not ready with the head alone", () => {
    const world = started();
    world.set("demo-head", ready());
    world.wait(seconds(5));
    expect(world.cluster.status?.state).toBe("");
    expect(world.condition("RayClusterProvisioned")?.status).toBe("False");
    expect(world.condition("HeadPodReady")?.status).toBe("True");
  });

  it("calls Pods ready that run and have no Ready condition, as KubeRay does", () => {
    const world = started();
    for (const name of world.names()) world.set(name, { phase: "Running" });
    world.settle();
    expect(world.cluster.status?.state).toBe("ready");
  });

  it("keeps what somebody else wrote into it", () => {
    const world = started();
    const conditions = [...world.cluster.status!.conditions!, { ...world.condition("HeadPodReady")!, type: "Theirs" }];
    const status = {
      ...world.cluster.status,
      conditions,
      head: { ...world.cluster.status?.head, podUID: "u" },
      theirs: 1,
    };
    world.cluster = { ...world.cluster, status };
    world.allReady();
    world.settle();
    expect(world.cluster.status).toMatchObject({ theirs: 1, head: { podUID: "u" } });
    expect(world.condition("Theirs")).toBeDefined();
  });

  it("tells the steps on the way up together, every five seconds at most, and at once that all is well", () => {
    const world = started();
    world.writes.length = 0;
    world.now += seconds(1);
    for (const name of world.names()) {
      world.set(name, withContainer("Pending", waiting("ContainerCreating")));
      world.settle();
      world.set(name, withContainer("Running", { running: {} }, { podIP: "10.0.0.1" }));
      world.settle();
    }
    expect(world.writes).toEqual([]);
    expect(world.decide().wakeAt).toBe(NOON + seconds(5));
    world.wait(seconds(4));
    expect(world.writes).toEqual(["status provisioning"]);
    world.allReady();
    world.settle();
    expect(world.writes).toEqual(["status provisioning", "status ready"]);
  });

  it("tells trouble at once", () => {
    const world = started();
    world.set("demo-head", withContainer("Pending", waiting("ErrImagePull"), {}, "ray-head"));
    world.settle();
    expect(world.condition("HeadPodReady")?.reason).toBe("ErrImagePull");
  });

  it("tells other numbers in the same words ever more seldom: what lasts for a day is no write at each of them", () => {
    const scheduler = (nodes: number, why = "Insufficient cpu"): PodStatus => ({
      phase: "Pending",
      conditions: [
        {
          type: "PodScheduled",
          status: "False",
          reason: "Unschedulable",
          message: `0/${nodes} nodes are available: ${nodes} ${why}.`,
        },
      ],
    });
    const world = started();
    world.set("demo-head", scheduler(5));
    world.settle();
    world.writes.length = 0;
    const told: number[] = [];
    for (let minute = 1; minute <= 60; minute++) {
      world.set("demo-head", scheduler(5 + minute));
      const before = world.writes.length;
      world.wait(seconds(60));
      if (world.writes.length > before) told.push(minute);
    }
    expect(told).toEqual([1, 2, 4, 8, 16, 26, 36, 46, 56]);
    expect(world.condition("HeadPodReady")?.message).toContain("0/61 nodes");
    world.set("demo-head", scheduler(65, "node(s) had untolerated taint {gpu}"));
    world.settle();
    expect(world.condition("HeadPodReady")?.message).toContain("untolerated taint");
  });

  it("is written when the spec has been seen, though nothing else changed", () => {
    const world = started();
    world.writes.length = 0;
    world.spec({ headServiceAnnotations: { a: "b" } });
    world.settle();
    expect(world.writes).toEqual(["status provisioning"]);
    expect(world.cluster.status?.observedGeneration).toBe(2);
  });
});

describe("a head that was ready", () => {
  it("and is not any more, is again, and is gone, is followed by its condition each time", () => {
    const world = started();
    world.allReady();
    world.settle();
    const seen = () => [world.condition("HeadPodReady")?.status, world.condition("HeadPodReady")?.reason];
    expect(seen()).toEqual(["True", "HeadPodRunningAndReady"]);
    world.set("demo-head", withContainer("Running", { running: {} }));
    world.settle();
    expect(seen()).toEqual(["False", "ContainersNotReady"]);
    world.set("demo-head", ready());
    world.wait(seconds(5));
    expect(seen()).toEqual(["True", "HeadPodRunningAndReady"]);
    world.remove("demo-head");
    world.pass();
    expect(seen()).toEqual(["False", "HeadPodNotFound"]);
    expect(world.condition("RayClusterProvisioned")?.status).toBe("True");
  });
});

describe("a head whose node does not report any more", () => {
  const at = toWire(NOON);
  it.each<[string, NonNullable<PodStatus["conditions"]>]>([
    [
      "only Ready was taken away, without a reason (as the node lifecycle controller of Kubernetes 1.35 writes it)",
      [
        { type: "Ready", status: "False", lastTransitionTime: at },
        { type: "ContainersReady", status: "True", lastTransitionTime: at },
      ],
    ],
    ["Ready is Unknown", [{ type: "Ready", status: "Unknown", lastTransitionTime: at }]],
  ])("is said to be out of reach: %s", (_, conditions) => {
    const world = started();
    world.allReady();
    world.settle();
    world.set("demo-head", { ...ready(), conditions });
    world.settle();
    expect(world.condition("HeadPodReady")).toMatchObject({
      status: "False",
      reason: "NodeSilent",
      message: expect.stringContaining("its node does not report"),
    });
  });
});

describe("a cluster that does not start says why", () => {
  const unschedulable: PodStatus = {
    phase: "Pending",
    conditions: [
      {
        type: "PodScheduled",
        status: "False",
        reason: "Unschedulable",
        message: "0/3 nodes are available: 3 Insufficient cpu.",
      },
    ],
  };

  it.each<[string, PodStatus, string]>([
    [
      "an image that cannot be pulled",
      withContainer("Pending", waiting("ErrImagePull", "not found")),
      "is not starting: container ray-worker: ErrImagePull: not found",
    ],
    [
      "an init container that fails",
      {
        ...withContainer("Failed", waiting("PodInitializing")),
        initContainerStatuses: [
          { name: "wait", image: "", imageID: "", ready: false, restartCount: 0, state: exited(42) },
        ],
      },
      "has failed: init container wait ended with exit code 42 (Error)",
    ],
    [
      "an init container that is killed for its memory again and again",
      {
        ...withContainer("Pending", waiting("PodInitializing")),
        initContainerStatuses: [
          {
            name: "wait-gcs-ready",
            image: "",
            imageID: "",
            ready: false,
            restartCount: 3,
            state: waiting("CrashLoopBackOff", "back-off 40s"),
            lastState: exited(137, "OOMKilled"),
          },
        ],
      },
      "is not starting: init container wait-gcs-ready: CrashLoopBackOff, it last was killed for using more memory than its limit (OOMKilled, exit code 137)",
    ],
    [
      "a node that nobody has",
      unschedulable,
      "cannot be scheduled: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.",
    ],
    [
      "a Ray that ends and is started again",
      {
        ...withContainer("Running", { running: {} }),
        containerStatuses: [
          {
            name: "ray-worker",
            image: "",
            imageID: "",
            ready: false,
            restartCount: 1,
            state: { running: {} },
            lastState: exited(1),
          },
        ],
      },
      "is not working: container ray-worker ended with exit code 1 (Error)",
    ],
    [
      "an eviction",
      { phase: "Failed", reason: "Evicted", message: "low on memory" },
      "has failed: Evicted: low on memory",
    ],
  ])("%s, on a worker", (_, status, words) => {
    const world = started();
    const { name } = world.workers()[0]!.metadata;
    world.set("demo-head", ready());
    world.set(name, status);
    world.settle();
    expect(world.condition("RayClusterProvisioned")?.message).toBe(
      `RayCluster Pods are being provisioned for first time: Worker Pod ${name} ${words}`,
    );
  });

  it.each<[string, PodStatus]>([
    [
      "an init container has done its work",
      {
        ...withContainer("Pending", waiting("PodInitializing")),
        initContainerStatuses: [{ name: "a", image: "", imageID: "", ready: true, restartCount: 0, state: exited(0) }],
      },
    ],
    [
      "Ray was started again and is ready, and something else is not yet",
      {
        ...withContainer("Running", { running: {} }),
        containerStatuses: [
          {
            name: "ray-worker",
            image: "",
            imageID: "",
            ready: true,
            restartCount: 1,
            state: { running: {} },
            lastState: exited(1),
          },
        ],
      },
    ],
  ])("but not when it is on its way: %s", (_, status) => {
    const world = started();
    world.set(world.workers()[0]!.metadata.name, status);
    world.settle();
    expect(world.condition("RayClusterProvisioned")?.message).toBe(
      "RayCluster Pods are being provisioned for first time",
    );
  });

  it("with the head first, and not with each of a hundred workers", () => {
    const world = started(rayCluster({ workerGroupSpecs: [workerGroup({ replicas: 40 })] }));
    for (const name of world.names()) world.set(name, unschedulable);
    world.settle();
    expect(world.condition("HeadPodReady")).toMatchObject({ reason: "Unschedulable", status: "False" });
    expect(world.condition("RayClusterProvisioned")?.message).toMatch(
      /: Head Pod demo-head cannot .*; Worker Pod .* cannot .*; and 39 more Pods$/,
    );
  });

  it("naming the node", () => {
    const world = started();
    const pod = world.pod("worker");
    world.pods = world.pods.map((each) => (each === pod ? { ...pod, spec: { ...pod.spec!, nodeName: "n1" } } : each));
    world.set(pod.metadata.name, withContainer("Pending", waiting("ErrImagePull")));
    world.settle();
    expect(world.condition("RayClusterProvisioned")?.message).toMatch(/ErrImagePull \(node n1\)$/);
  });

  it("naming two heads, of which it touches neither", () => {
    const world = started();
    const head = world.pod("head");
    world.set("demo-head", { phase: "Failed" });
    world.pods.push({ ...head, metadata: { ...head.metadata, name: "demo-head-x1", uid: "other" } });
    world.wait(seconds(60));
    expect(world.condition("HeadPodReady")).toMatchObject({
      reason: "MultipleHeadPods",
      message: expect.stringContaining("demo-head, demo-head-x1"),
    });
    expect(world.names()).toEqual(expect.arrayContaining(["demo-head", "demo-head-x1"]));
  });
});
