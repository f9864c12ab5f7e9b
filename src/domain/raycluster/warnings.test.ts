import { describe, expect, it } from "vitest";
import type { Event } from "../../api/kubernetes.ts";
import { minutes, seconds, toWire } from "../time.ts";
import { rayCluster, World, waiting, withContainer } from "./testing.ts";

const NOT_FOUND = 'MountVolume.SetUp failed for volume "code" : configmap "code" not found';

/** A cluster whose head has a node, and waits there. */
function scheduled(): World {
  const world = new World(rayCluster({ workerGroupSpecs: [] }));
  world.settle();
  const head = world.pods[0]!;
  head.spec!.nodeName = "node-1";
  head.status = withContainer("Pending", waiting("ContainerCreating"));
  return world;
}

const warn = (world: World, note = NOT_FOUND, reason = "FailedMount", at = world.now) =>
  world.warnings.push({
    metadata: {},
    reason,
    note,
    deprecatedLastTimestamp: toWire(at),
    regarding: { kind: "Pod", uid: world.pods[0]!.metadata.uid },
  } as Event);

const headPodReady = (world: World) => world.cluster.status?.conditions?.find(({ type }) => type === "HeadPodReady");

describe("a Pod whose volume is not to be had", () => {
  it("is explained by the cluster's condition, though only an event tells", () => {
    const world = scheduled();
    warn(world);
    world.wait(seconds(29));
    expect(headPodReady(world)?.reason).not.toBe("FailedMount");
    world.wait(seconds(2));
    expect(headPodReady(world)).toMatchObject({ status: "False", reason: "FailedMount" });
    expect(headPodReady(world)?.message).toContain(NOT_FOUND);
    const provisioned = world.cluster.status?.conditions?.find(({ type }) => type === "RayClusterProvisioned");
    expect(provisioned?.message).toContain('configmap "code" not found');
  });

  it("is looked for again, since nothing tells of an event", () => {
    const world = scheduled();
    world.wait(seconds(40));
    warn(world);
    world.wait(minutes(1));
    expect(headPodReady(world)?.reason).toBe("FailedMount");
  });

  it("costs no write while the cause stays, and is forgotten when the Pod starts", () => {
    const world = scheduled();
    warn(world);
    world.wait(seconds(40));
    const writes = world.writes.length;
    warn(world);
    world.wait(minutes(3));
    expect(world.writes).toHaveLength(writes);
    world.allReady();
    world.wait(seconds(5));
    expect(headPodReady(world)?.status).toBe("True");
  });

  it.each([
    ["an old warning, overcome since", NOT_FOUND, minutes(6)],
    ["kubelet's summary, which names no cause", "Unable to attach or mount volumes: timed out", 0],
  ])("is not concluded from %s", (_, note, age) => {
    const world = scheduled();
    warn(world, note, "FailedMount", world.now - age);
    world.wait(seconds(40));
    expect(headPodReady(world)?.reason).not.toBe("FailedMount");
  });

  it("is not concluded once kubelet says that volumes and sandbox are there", () => {
    const world = scheduled();
    world.pods[0]!.status!.conditions!.push({ type: "PodReadyToStartContainers", status: "True" });
    warn(world);
    world.wait(seconds(40));
    expect(headPodReady(world)?.reason).not.toBe("FailedMount");
  });

  it("is not asked about while Pods start in the usual time, nor once they run", () => {
    const world = scheduled();
    world.wait(seconds(25));
    world.allReady();
    world.wait(minutes(10));
    expect(world.asked.filter(({ ask }) => ask === "warnings")).toEqual([]);
  });
});
