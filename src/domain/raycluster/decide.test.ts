import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { PodStatus } from "../../api/kubernetes.ts";
import { GROUP } from "../../api/labels.ts";
import { minutes, seconds, toWire } from "../time.ts";
import { delay } from "./failures.ts";
import { desiredReplicas, hasEnded, isTerminating } from "./observe.ts";
import { exited, headGroup, NOON, rayCluster, ready, World, waiting, withContainer, workerGroup } from "./testing.ts";

/** A cluster that is up: one head, two workers. */
function up(cluster = rayCluster()): World {
  const world = new World(cluster);
  world.settle();
  world.allReady();
  world.settle();
  world.writes.length = 0;
  world.events.length = 0;
  return world;
}

const fail = (world: World, part: string, container = "ray-worker") =>
  world.set(world.pod(part).metadata.name, withContainer("Failed", exited(1), {}, container));

describe("a new cluster", () => {
  it("is made with one write for each object and two of its status", () => {
    const world = new World();
    world.pass();
    expect(world.writes).toEqual([
      "create Service demo-head-svc",
      "create Pod demo-head",
      "create Pod demo-small-worker-00003",
      "create Pod demo-small-worker-00004",
    ]);
    world.settle();
    world.now += seconds(20);
    world.allReady();
    world.settle();
    world.now += minutes(60);
    world.settle();
    expect(world.writes.slice(4)).toEqual(["status provisioning", "status ready"]);
    expect(world.events.map(({ reason }) => reason)).toEqual([
      "CreatedService",
      "CreatedHeadPod",
      "CreatedWorkerPod",
      "CreatedWorkerPod",
    ]);
  });

  it("with a hundred workers is made in several passes, so that other clusters get their turn", () => {
    const world = new World(rayCluster({ workerGroupSpecs: [workerGroup({ replicas: 100 })] }));
    world.pass();
    expect(world.pods).toHaveLength(50);
    world.settle();
    expect(world.workers()).toHaveLength(100);
  });

  it("of more Pods than there is memory for is begun like any other", () => {
    const replicas = 2_147_483_647;
    const groups = Array.from({ length: 3 }, (_, index) =>
      workerGroup({ groupName: `g${index}`, replicas, minReplicas: replicas, maxReplicas: replicas }),
    );
    const world = new World(rayCluster({ workerGroupSpecs: groups }));
    world.pass();
    expect(world.pods).toHaveLength(50);
  });

  it("gets no Pods twice from an operator whose cache lags behind another's writes", () => {
    const first = new World(rayCluster({ workerGroupSpecs: [workerGroup({ replicas: 20 })] }));
    first.pass();
    const second = new World(first.cluster);
    second.hidden = first.pods;
    expect(second.decide().effects.filter((effect) => effect.do === "create" && effect.object.kind === "Pod")).toEqual(
      [],
    );
    expect(second.decide().wakeAt).toBe(NOON + seconds(1));
    second.pods = first.pods;
    second.services = first.services;
    second.hidden = [];
    expect(second.decide().effects).toEqual([]);
  });

  it("gets no Service back that went with it, from an operator whose cache does not know yet that it is deleted", () => {
    const world = up();
    world.services = [];
    expect(world.decide().effects).toMatchObject([{ do: "create", object: { kind: "Service" } }]);
    world.deleted = true;
    expect(world.decide()).toMatchObject({ effects: [], wakeAt: world.now + seconds(1) });
  });

  it("gets no Pods from an operator whose cache does not know yet that it is deleted", () => {
    const world = new World();
    world.deleted = true;
    expect(world.decide()).toMatchObject({ effects: [], wakeAt: NOON + seconds(1) });
  });

  it("waits while the head Pod of a deleted cluster of the same name is still there", () => {
    const old = up();
    const world = new World(rayCluster({}, { uid: "new-uid" }));
    world.pods = [old.pod("head")];
    world.settle();
    expect(world.workers()).toHaveLength(2);
    expect(world.pods.filter(({ metadata }) => metadata.name === "demo-head")).toHaveLength(1);
    expect(world.condition("HeadPodReady")).toMatchObject({ status: "False", reason: "HeadPodNameTaken" });
    world.remove("demo-head");
    world.settle();
    expect(world.pod("head").metadata.ownerReferences![0]!.uid).toBe("new-uid");
  });
});

describe("a cluster that is not this operator's", () => {
  it.each(["kueue.x-k8s.io/multikueue", ""])("because it is managed by '%s' is left alone", (managedBy) => {
    const world = new World(rayCluster({ managedBy }));
    world.settle();
    expect(world.writes).toEqual([]);
  });

  it("because it is being deleted is left to garbage collection", () => {
    const world = up();
    world.cluster = { ...world.cluster, metadata: { ...world.cluster.metadata, deletionTimestamp: toWire(NOON) } };
    world.pods = [];
    world.settle();
    expect(world.writes).toEqual([]);
  });
});

describe("a lost Pod", () => {
  it("of a worker is replaced, and the head stays", () => {
    const world = up();
    world.terminate(world.workers()[0]!.metadata.name);
    world.settle();
    expect(world.workers().filter((pod) => !isTerminating(pod))).toHaveLength(2);
    expect(world.writes.filter((write) => write.startsWith("create"))).toEqual(["create Pod demo-small-worker-00005"]);
  });

  it("of a head is replaced when it is gone, not while it terminates, and the workers stay", () => {
    const world = up();
    world.terminate("demo-head");
    world.settle();
    expect(world.names().filter((name) => name === "demo-head")).toHaveLength(1);
    world.reap();
    world.settle();
    expect(world.writes.filter((write) => write.startsWith("create"))).toEqual(["create Pod demo-head"]);
    expect(world.workers()).toHaveLength(2);
  });

  it("of a head is not replaced where the cluster may not have another", () => {
    const world = up(rayCluster({}, { annotations: { "ray.io/disable-provisioned-head-restart": "true" } }));
    world.remove("demo-head");
    world.remove(world.workers()[0]!.metadata.name);
    world.wait(minutes(10));
    expect(world.names()).toHaveLength(1);
  });

  it("on a dead node, Terminating for ever, is replaced even in a group at its maximum; the head only when gone", () => {
    const world = up(rayCluster({ workerGroupSpecs: [workerGroup({ maxReplicas: 2 })] }));
    const [worker] = world.workers();
    world.terminate(worker!.metadata.name, seconds(30));
    world.terminate("demo-head", seconds(30));
    world.settle();
    expect(world.workers()).toHaveLength(2);
    world.wait(seconds(60));
    expect(world.workers()).toHaveLength(3);
    expect(world.names().filter((name) => name === "demo-head")).toHaveLength(1);
    expect(world.condition("HeadPodReady")?.message).toContain("node.kubernetes.io/out-of-service");
  });

  it.each<[string, NonNullable<PodStatus["conditions"]>]>([
    ["Unknown", [{ type: "Ready", status: "Unknown", lastTransitionTime: toWire(NOON) }]],
    [
      "taken away without a reason",
      [
        { type: "Ready", status: "False", lastTransitionTime: toWire(NOON) },
        { type: "ContainersReady", status: "True", lastTransitionTime: toWire(NOON) },
      ],
    ],
  ])("whose node has been silent for five minutes is replaced: Ready is %s", (_, conditions) => {
    const world = up();
    const [worker] = world.workers();
    world.set(worker!.metadata.name, { phase: "Running", conditions });
    world.wait(minutes(4));
    expect(world.pod(worker!.metadata.name).metadata.deletionTimestamp).toBeUndefined();
    world.wait(minutes(2));
    expect(world.pod(worker!.metadata.name).metadata.deletionTimestamp).toBeDefined();
    expect(world.workers().filter((pod) => !isTerminating(pod))).toHaveLength(2);
  });

  it("evicted from its node is made anew within a minute", () => {
    const world = up();
    world.set("demo-head", { phase: "Failed", reason: "Evicted", message: "The node was low on resource: disk." });
    world.settle();
    expect(world.condition("ReplicaFailure")).toMatchObject({
      reason: "HeadPodFailed",
      message: expect.stringContaining("disk"),
    });
    world.wait(minutes(1));
    expect(world.pod("head").status?.phase).toBe("Pending");
  });
});

describe("Pods that fail again and again", () => {
  /** Looks once a second and fails the head Pod that it finds; returns the seconds at which it found a new one. */
  function failing(world: World, duration: number): number[] {
    const made: number[] = [];
    const end = world.now + duration;
    while (world.now < end) {
      const head = world.pods.find(({ metadata }) => metadata.name === "demo-head");
      if (head && head.status?.phase === "Pending") {
        made.push((world.now - NOON) / 1000);
        world.set("demo-head", withContainer("Failed", exited(42), { initContainerStatuses: undefined }, "ray-head"));
      }
      world.settle();
      world.now += seconds(1);
    }
    return made;
  }

  it("are made at growing distances, not without end at once", () => {
    const world = new World(rayCluster({ workerGroupSpecs: [] }));
    world.settle();
    expect(failing(world, minutes(5))).toEqual([0, 6, 17, 38, 79, 160]);
  });

  it("are counted where an operator's restart cannot lose it, before anything is done about them", () => {
    const world = up(rayCluster({ workerGroupSpecs: [] }));
    fail(world, "head", "ray-head");
    world.wait(seconds(5));
    expect(world.writes.filter((write) => !write.startsWith("status"))).toEqual([
      "patch RayCluster",
      "delete Pod demo-head",
      "create Pod demo-head",
    ]);
  });

  it("say which container ended how, and stay to be looked at until their replacement is due", () => {
    const world = up();
    fail(world, world.workers()[0]!.metadata.name);
    world.settle();
    expect(world.workers()).toHaveLength(2);
    expect(world.condition("ReplicaFailure")).toMatchObject({
      reason: "WorkerPodFailed",
      message: "Worker Pod demo-small-worker-00003 has failed: container ray-worker ended with exit code 1 (Error)",
    });
    world.wait(seconds(5));
    expect(world.names()).not.toContain("demo-small-worker-00003");
    expect(world.condition("ReplicaFailure")).toBeUndefined();
  });

  it("that were made together count once", () => {
    const world = up(rayCluster({ workerGroupSpecs: [workerGroup({ replicas: 20 })] }));
    for (const pod of world.workers()) fail(world, pod.metadata.name);
    world.settle();
    expect(world.writes.filter((write) => write === "patch RayCluster")).toHaveLength(1);
    world.wait(seconds(5));
    expect(world.workers().filter((pod) => !hasEnded(pod))).toHaveLength(20);
  });

  it("are tried at once when the spec was corrected", () => {
    const world = new World();
    world.settle();
    for (let failures = 0; failures < 6; failures++) {
      fail(world, "head", "ray-head");
      world.wait(minutes(3));
    }
    fail(world, "head", "ray-head");
    world.settle();
    expect(world.pod("head").status?.phase).toBe("Failed");
    world.spec({ headGroupSpec: headGroup({ rayStartParams: { "num-cpus": "1" } }) });
    world.settle();
    expect(world.pod("head").status?.phase).toBe("Pending");
  });

  it("are counted anew after one that lived for ten minutes", () => {
    const world = new World(rayCluster({ workerGroupSpecs: [] }));
    world.settle();
    for (let failures = 0; failures < 4; failures++) {
      fail(world, "head", "ray-head");
      world.wait(minutes(2));
    }
    world.allReady();
    world.wait(minutes(10));
    fail(world, "head", "ray-head");
    world.wait(seconds(5));
    expect(world.pod("head").status?.phase).toBe("Pending");
  });

  it("are not replaced before their time because somebody took the failed one away", () => {
    const world = up();
    fail(world, "head", "ray-head");
    world.settle();
    world.remove("demo-head");
    world.wait(seconds(4));
    expect(world.names()).not.toContain("demo-head");
    world.wait(seconds(1));
    expect(world.names()).toContain("demo-head");
  });

  it("are counted by group", () => {
    const world = up();
    fail(world, "head", "ray-head");
    world.wait(seconds(5));
    fail(world, world.workers()[0]!.metadata.name);
    world.wait(seconds(5));
    fail(world, "head", "ray-head");
    world.wait(seconds(9));
    expect(world.pod("head").status?.phase).toBe("Failed");
    world.wait(seconds(1));
    expect(world.pod("head").status?.phase).toBe("Pending");
  });

  it("do not include one that somebody deleted and that ended by it", () => {
    const world = up();
    world.terminate("demo-head");
    fail(world, "head", "ray-head");
    world.settle();
    expect(world.writes).not.toContain("patch RayCluster");
    world.reap();
    world.settle();
    expect(world.pod("head").status?.phase).toBe("Pending");
  });

  it.each([
    [1, 5],
    [2, 10],
    [6, 160],
    [7, 300],
    [1000, 300],
  ])("wait after failure %i for %i seconds", (count, wait) => {
    expect(delay(count)).toBe(seconds(wait));
  });

  it("of one group do not hold up another", () => {
    const world = up(
      rayCluster({ workerGroupSpecs: [workerGroup(), workerGroup({ groupName: "large", replicas: 1 })] }),
    );
    fail(world, "small");
    world.remove(world.workers("large")[0]!.metadata.name);
    world.settle();
    expect(world.workers("large")).toHaveLength(1);
  });

  it.each([
    ["Never", true],
    ["OnFailure", false],
  ] as const)(
    "include one whose Ray container ended while a sidecar runs on, if restartPolicy is %s: %s",
    (restartPolicy, replaced) => {
      const template = { spec: { restartPolicy, containers: [{ name: "ray-worker", image: "i" }] } };
      const world = up(rayCluster({ workerGroupSpecs: [workerGroup({ replicas: 1, template })] }));
      const { name } = world.workers()[0]!.metadata;
      world.set(name, withContainer("Running", exited(1)));
      world.wait(seconds(5));
      expect(world.pods.some((pod) => pod.metadata.name === name && !isTerminating(pod))).toBe(!replaced);
    },
  );

  it("are not mistaken for new failures by an unreadable count", () => {
    const world = up(rayCluster({}, { annotations: { "raykeeper.dev/pod-failures": "{" } }));
    fail(world, "head", "ray-head");
    world.wait(seconds(5));
    expect(world.pod("head").status?.phase).toBe("Pending");
  });
});

describe("writes that the API server refuses", () => {
  const refusal = (name: string) => ({
    reason: "FailedToCreateWorkerPod",
    message: `pods "demo-small-worker-${name}" is forbidden: exceeded quota`,
  });

  it("are reported before they are tried again, though no pass with the effect succeeds", () => {
    const world = new World();
    world.refused = [refusal("abcde")];
    const decision = world.pass();
    expect(decision.effects).toEqual([]);
    expect(world.condition("ReplicaFailure")).toMatchObject({
      status: "True",
      reason: "FailedCreateWorkerPod",
      message: expect.stringContaining("exceeded quota"),
    });
    expect(world.decide().effects).not.toEqual([]);
  });

  it("are reported once, though each refused name is another", () => {
    const world = new World();
    world.refused = [refusal("abcde")];
    world.pass();
    world.refused = [refusal("fghij")];
    world.now += minutes(5);
    expect(world.decide().status).toBeUndefined();
  });

  it("are reported once a minute at most, though the server's words differ each time", () => {
    const world = new World();
    world.refused = [{ ...refusal("abcde"), message: "request 1 timed out" }];
    world.pass();
    world.refused = [{ ...refusal("abcde"), message: "request 2 timed out" }];
    world.now += seconds(59);
    expect(world.decide().status).toBeUndefined();
    world.now += seconds(1);
    expect(world.decide().status).toBeDefined();
  });

  it("are forgotten when they succeed", () => {
    const world = new World();
    world.refused = [refusal("abcde")];
    world.pass();
    world.refused = [];
    world.settle();
    expect(world.condition("ReplicaFailure")).toBeUndefined();
  });
});

describe("an invalid spec", () => {
  it("is reported once, in an event and in the status, and its Pods are left alone", () => {
    const world = up();
    world.spec({ enableInTreeAutoscaling: true, workerGroupSpecs: [] });
    world.settle();
    world.settle();
    expect(world.events).toEqual([
      {
        type: "Warning",
        reason: "InvalidRayClusterSpec",
        action: "Validate",
        note: "The RayCluster ns1/demo is not acted upon: spec.enableInTreeAutoscaling: autoscaling is not supported yet: remove it and set replicas of the worker groups",
      },
    ]);
    expect(world.cluster.status?.reason).toContain("spec.enableInTreeAutoscaling");
    expect(world.workers()).toHaveLength(2);
    world.spec({ enableInTreeAutoscaling: false, workerGroupSpecs: [workerGroup()] });
    world.settle();
    expect(world.cluster.status?.reason).toBe("");
  });

  it("in the name has an event of its own", () => {
    const world = new World(rayCluster({}, { name: "1-demo" }));
    world.settle();
    expect(world.events).toMatchObject([{ reason: "InvalidRayClusterMetadata" }]);
    expect(world.pods).toEqual([]);
  });
});

describe("worker groups", () => {
  it("taken out of the spec lose their Pods, the others and the head keep theirs", () => {
    const world = up(rayCluster({ workerGroupSpecs: [workerGroup(), workerGroup({ groupName: "b" })] }));
    const kept = [world.pod("head"), ...world.workers("small")].map(({ metadata }) => metadata.uid);
    world.spec({ workerGroupSpecs: [workerGroup()] });
    world.settle();
    world.reap();
    world.settle();
    expect(world.pods.map(({ metadata }) => metadata.uid)).toEqual(kept);
    expect(world.cluster.status?.desiredWorkerReplicas).toBe(2);
  });

  it("that are suspended lose their workers, and the head stays", () => {
    const world = up();
    world.spec({ workerGroupSpecs: [workerGroup({ suspend: true })] });
    world.settle();
    world.reap();
    world.settle();
    expect(world.names()).toEqual(["demo-head"]);
    expect(world.cluster.status).toMatchObject({ desiredWorkerReplicas: 0, maxWorkerReplicas: 0 });
  });

  it("lose exactly the worker that is named, alive or dead meanwhile", () => {
    for (const dead of [false, true]) {
      const world = up(rayCluster({ workerGroupSpecs: [workerGroup({ replicas: 3 })] }));
      const { name } = world.workers()[1]!.metadata;
      if (dead) fail(world, name);
      world.spec({ workerGroupSpecs: [workerGroup({ replicas: 2, scaleStrategy: { workersToDelete: [name] } })] });
      world.settle();
      world.reap();
      world.wait(minutes(1));
      expect(world.writes.filter((write) => write.startsWith("delete"))).toEqual([`delete Pod ${name}`]);
      expect(world.writes.filter((write) => write.startsWith("create"))).toEqual([]);
    }
  });

  it("lose the live one of two that are named, and go on scaling with a vanished one on the list", () => {
    const world = up();
    const { name } = world.workers()[0]!.metadata;
    const scaleStrategy = { workersToDelete: ["vanished", name] };
    world.spec({ workerGroupSpecs: [workerGroup({ replicas: 1, scaleStrategy })] });
    world.settle();
    world.reap();
    expect(world.workers()).toHaveLength(1);
    world.spec({ workerGroupSpecs: [workerGroup({ replicas: 4, scaleStrategy })] });
    world.settle();
    expect(world.workers()).toHaveLength(4);
  });

  it("cannot have another group's worker named for deletion, nor the head", () => {
    const world = up();
    world.spec({ workerGroupSpecs: [workerGroup({ scaleStrategy: { workersToDelete: ["demo-head"] } })] });
    world.settle();
    expect(world.writes.filter((write) => write.startsWith("delete"))).toEqual([]);
  });
});

describe("whatever Pods exist", () => {
  const anyPod = fc.record({
    group: fc.constantFrom("small", "large", "removed", GROUP.head),
    phase: fc.constantFrom("Pending", "Running", "Failed", "Succeeded"),
    readiness: fc.constantFrom("True", "False", "Unknown", undefined),
    terminating: fc.boolean(),
    ours: fc.constantFrom(true, true, true, false),
    age: fc.integer({ min: 0, max: 3600 }),
  });
  const anyGroup = (groupName: string) =>
    fc
      .record({ replicas: fc.nat(6), minReplicas: fc.nat(3), more: fc.nat(4), suspend: fc.boolean() })
      .map(({ more, ...group }) => workerGroup({ ...group, groupName, maxReplicas: group.minReplicas + more }));

  it("the cluster comes to the Pods desired, and then to rest", () => {
    fc.assert(
      fc.property(fc.array(anyPod, { maxLength: 14 }), anyGroup("small"), anyGroup("large"), (pods, small, large) => {
        const world = new World(rayCluster({ workerGroupSpecs: [small, large] }));
        let heads = 0;
        world.pods = pods.flatMap(({ group, phase, readiness, terminating, ours, age }, index) => {
          const head = group === GROUP.head;
          // At most one head of each owner: more never come from this operator.
          if (head && heads++ > 0) return [];
          return [
            {
              apiVersion: "v1",
              kind: "Pod",
              metadata: {
                name: head && ours ? "demo-head" : `p${index}`,
                namespace: "ns1",
                uid: `p${index}`,
                resourceVersion: "1",
                creationTimestamp: toWire(NOON - seconds(age)),
                labels: {
                  "ray.io/cluster": "demo",
                  "ray.io/group": group,
                  "ray.io/node-type": head ? "head" : "worker",
                },
                ownerReferences: [
                  {
                    apiVersion: "ray.io/v1",
                    kind: "RayCluster",
                    name: "demo",
                    uid: ours ? "cluster-uid" : "other",
                    controller: true,
                  },
                ],
                ...(terminating && { deletionTimestamp: toWire(NOON + seconds(30)) }),
              },
              status: {
                phase,
                conditions: readiness ? [{ type: "Ready", status: readiness, lastTransitionTime: toWire(NOON) }] : [],
              },
            },
          ];
        });
        const strangers = world.pods.filter((pod) => pod.metadata.ownerReferences![0]!.uid === "other");
        for (let steps = 0; steps < 12; steps++) {
          world.wait(minutes(1));
          world.reap();
          world.allReady();
        }
        world.wait(minutes(10));
        const mine = (group: string) =>
          world
            .workers(group)
            .filter(
              (pod) => !strangers.includes(pod) && !hasEnded(pod) && pod.metadata.ownerReferences![0]!.uid !== "other",
            );
        expect(mine("small")).toHaveLength(desiredReplicas(small));
        expect(mine("large")).toHaveLength(desiredReplicas(large));
        expect(mine("removed")).toHaveLength(0);
        expect(world.names().filter((name) => name === "demo-head")).toHaveLength(1);
        expect(world.cluster.status?.state).toBe("ready");
        const writes = world.writes.length;
        world.wait(minutes(60));
        expect(world.writes.slice(writes)).toEqual([]);
      }),
      { numRuns: 150 },
    );
  });
});

describe("a head that never comes up", () => {
  it("is told with its cause in the conditions, for a RayJob to repeat", () => {
    const world = new World();
    world.settle();
    world.set(
      "demo-head",
      withContainer("Pending", waiting("ImagePullBackOff", 'Back-off pulling image "nope"'), {}, "ray-head"),
    );
    world.settle();
    expect(world.condition("HeadPodReady")).toMatchObject({
      status: "False",
      reason: "ImagePullBackOff",
      message:
        'Head Pod demo-head is not starting: container ray-head: ImagePullBackOff: Back-off pulling image "nope"',
    });
    world.set("demo-head", ready());
    world.settle();
    expect(world.condition("HeadPodReady")).toMatchObject({ status: "True", reason: "HeadPodRunningAndReady" });
  });
});
