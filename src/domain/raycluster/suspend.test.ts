import { describe, expect, it } from "vitest";
import { rayCluster, World } from "./testing.ts";

function up(): World {
  const world = new World();
  world.settle();
  world.allReady();
  world.settle();
  world.writes.length = 0;
  world.events.length = 0;
  return world;
}

const phase = (world: World) => [
  world.condition("RayClusterSuspending")?.status,
  world.condition("RayClusterSuspended")?.status,
];

describe("suspending a cluster", () => {
  it("says so first, then deletes all Pods, then says that it is suspended when nothing is left", () => {
    const world = up();
    world.spec({ suspend: true });
    world.pass();
    expect(world.writes).toEqual(["status ready"]);
    expect(phase(world)).toEqual(["True", "False"]);
    world.settle();
    expect(world.writes.filter((write) => write.startsWith("delete Pod"))).toHaveLength(3);
    expect(phase(world)).toEqual(["True", "False"]);
    world.reap();
    world.settle();
    expect(phase(world)).toEqual(["False", "True"]);
    expect(world.cluster.status).toMatchObject({ state: "suspended" });
    expect(world.cluster.status?.head?.podName).toBeUndefined();
    expect(world.condition("RayClusterProvisioned")).toMatchObject({
      status: "False",
      message: "RayCluster has been suspended",
    });
    expect(world.events.map(({ reason }) => reason)).toEqual(["DeletedPod"]);
  });

  it("is not over while the API server still has a Pod that the cache does not show", () => {
    const world = up();
    world.spec({ suspend: true });
    world.settle();
    world.hidden = world.pods;
    world.pods = [];
    world.settle();
    expect(phase(world)).toEqual(["True", "False"]);
    world.hidden = [];
    world.settle();
    expect(phase(world)).toEqual(["False", "True"]);
  });

  it("ends a Pod that a user took the label off, which no cache shows", () => {
    const world = up();
    const [worker] = world.workers();
    world.pods = world.pods.filter((pod) => pod !== worker);
    const { "ray.io/node-type": _, ...labels } = worker!.metadata.labels!;
    world.hidden = [{ ...worker!, metadata: { ...worker!.metadata, labels } }];
    world.settle();
    expect(world.workers()).toHaveLength(2);
    world.spec({ suspend: true });
    while (world.pods.length > 0 || world.condition("RayClusterSuspending")?.status !== "True") {
      world.pass();
      world.reap();
    }
    expect(world.decide().effects).toMatchObject([{ do: "delete", ref: { uid: worker!.metadata.uid } }]);
  });

  it("takes the head Service along after the Pods, without which it is suspended nevertheless, and brings it back", () => {
    const world = up();
    world.spec({ suspend: true });
    world.settle();
    expect(world.services).toHaveLength(1);
    world.reap();
    while (phase(world)[1] !== "True") world.pass();
    expect(world.services).toHaveLength(1);
    world.settle();
    expect(world.services).toEqual([]);
    world.spec({ suspend: false });
    world.settle();
    expect(world.services).toHaveLength(1);
  });

  it("leaves a head Service alone that the user made himself", () => {
    const world = up();
    world.services = world.services.map(({ metadata, ...rest }) => ({
      ...rest,
      metadata: { ...metadata, ownerReferences: [] },
    }));
    world.spec({ suspend: true });
    world.settle();
    world.reap();
    world.settle();
    expect(phase(world)).toEqual(["False", "True"]);
    expect(world.services).toHaveLength(1);
  });

  it("is finished even when it is taken back meanwhile, and then resumes with new Pods", () => {
    const world = up();
    const before = world.pods.map(({ metadata }) => metadata.uid);
    world.spec({ suspend: true });
    world.settle();
    world.spec({ suspend: false });
    world.settle();
    expect(phase(world)).toEqual(["True", "False"]);
    world.reap();
    world.settle();
    expect(phase(world)).toEqual(["False", "False"]);
    expect(world.pods).toHaveLength(3);
    expect(world.pods.some(({ metadata }) => before.includes(metadata.uid))).toBe(false);
  });

  it.each([false, undefined])(
    "is undone by suspend: %s, after which the cluster is not called suspended",
    (suspend) => {
      const world = new World(rayCluster({ suspend: true }));
      world.settle();
      expect(world.pods).toEqual([]);
      expect(world.services).toEqual([]);
      expect(world.cluster.status?.state).toBe("suspended");
      world.spec({ suspend });
      world.settle();
      expect(world.pods).toHaveLength(3);
      expect(world.cluster.status?.state).toBe("");
      world.allReady();
      world.settle();
      expect(world.cluster.status?.state).toBe("ready");
    },
  );

  it("works although the spec has become invalid", () => {
    const world = up();
    world.spec({ suspend: true, enableInTreeAutoscaling: true });
    world.settle();
    world.reap();
    world.settle();
    expect(world.pods).toEqual([]);
    expect(phase(world)).toEqual(["False", "True"]);
    expect(world.cluster.status?.reason).toContain("enableInTreeAutoscaling");
  });
});
