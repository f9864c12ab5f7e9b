// A RayCluster that may have one head Pod in its life, and what becomes of it without.
import { describe, expect, it } from "vitest";
import type { PodSpec } from "../../api/kubernetes.ts";
import { defaultSettings } from "../settings.ts";
import { minutes, seconds } from "../time.ts";
import { headPod } from "./head.ts";
import { hasOneHead } from "./oneHead.ts";
import { exited, headGroup, rayCluster, World, withContainer } from "./testing.ts";

const ONE = { annotations: { "raykeeper.dev/one-head": "true" } };
const HEAD = "demo-head";

function up(world = new World(rayCluster({}, ONE))): World {
  world.settle();
  world.allReady();
  world.wait(seconds(10));
  world.writes.length = 0;
  return world;
}

const heads = (world: World) => world.writes.filter((write) => write === `create Pod ${HEAD}`).length;

describe("a cluster with one head in its life", () => {
  it("makes it first, writes down its UID, then makes the rest; with no write more than any other cluster", () => {
    const world = new World(rayCluster({}, ONE));
    world.pass();
    expect(world.writes).toEqual(["create Service demo-head-svc", `create Pod ${HEAD}`]);
    world.pass();
    expect(world.cluster.status?.head?.podUID).toBe(world.pod(HEAD).metadata.uid);
    expect(world.writes.slice(2)).toEqual(["status provisioning"]);
    world.settle();
    expect(world.workers()).toHaveLength(2);
    world.now += seconds(20);
    world.allReady();
    world.wait(minutes(10));
    expect(world.writes.filter((write) => write.startsWith("status"))).toEqual(["status provisioning", "status ready"]);
  });

  it("deletes a second one that comes late, from a request that had been given up, and nothing else", () => {
    const world = up();
    const first = world.pod(HEAD);
    const second = { ...first, metadata: { ...first.metadata, uid: "late" } };
    world.pods = world.pods.map((pod) => (pod === first ? second : pod));
    world.settle();
    expect(world.writes.filter((write) => !write.startsWith("status"))).toEqual([`delete Pod ${HEAD}`]);
  });

  it("runs it with restartPolicy Never", () => {
    const spec = { containers: [{ name: "ray-head", image: "ray" }], restartPolicy: "Always" } as PodSpec;
    const world = new World(rayCluster({ headGroupSpec: headGroup({ template: { spec } }) }, ONE));
    world.settle();
    expect(world.pod(HEAD).spec?.restartPolicy).toBe("Never");
  });

  it.each<[string, (world: World) => void]>([
    ["is missing", (world) => world.remove(HEAD)],
    ["has failed", (world) => world.set(HEAD, withContainer("Failed", exited(1), {}, "ray-head"))],
    [
      "has lost Ray beside a sidecar that runs",
      (world) => world.set(HEAD, withContainer("Running", exited(1), {}, "ray-head")),
    ],
    ["has ended", (world) => world.set(HEAD, withContainer("Succeeded", exited(0), {}, "ray-head"))],
    [
      "is terminating, and then gone",
      (world) => {
        world.terminate(HEAD);
        world.settle();
        world.reap();
      },
    ],
  ])("makes nothing again, and takes nothing away, when it %s", (_, happens) => {
    const world = up();
    happens(world);
    const left = world.names();
    world.remove(world.workers()[0]!.metadata.name);
    world.wait(minutes(30));
    expect(world.writes.filter((write) => !write.startsWith("status"))).toEqual([]);
    expect(world.names()).toEqual(left.filter((name) => world.names().includes(name)));
    expect(world.condition("HeadPodReady")).toMatchObject({ status: "False" });
  });

  it("leaves a failed head for diagnosis, and says why a missing one does not come back", () => {
    const world = up();
    const uid = world.pod(HEAD).metadata.uid;
    world.set(HEAD, withContainer("Failed", exited(1), {}, "ray-head"));
    world.wait(minutes(30));
    expect(world.names()).toContain(HEAD);
    world.remove(HEAD);
    world.settle();
    expect(world.condition("HeadPodReady")).toMatchObject({
      reason: "HeadPodLost",
      message: expect.stringContaining(uid),
    });
    expect(world.cluster.status?.head?.podUID).toBe(uid);
  });

  it("keeps it lost when it goes before the workers are made, or fails before anybody looked", () => {
    const world = new World(rayCluster({}, ONE));
    world.pass();
    world.set(HEAD, withContainer("Failed", exited(1), {}, "ray-head"));
    world.wait(minutes(30));
    expect(world.workers()).toEqual([]);
    expect(heads(world)).toBe(1);
    world.remove(HEAD);
    world.wait(minutes(30));
    expect(heads(world)).toBe(1);
  });

  it("adopts a head that was made by an operator that was killed then, whatever the cache shows", () => {
    const world = new World(rayCluster({}, ONE));
    world.pass();
    world.hidden = world.pods;
    world.pods = [];
    world.pass();
    expect(heads(world)).toBe(1);
    world.pods = world.hidden;
    world.hidden = [];
    world.settle();
    expect(world.cluster.status?.head?.podUID).toBe(world.pod(HEAD).metadata.uid);
  });

  it("makes none when the API server knows of one that was written down, and the cache does not", () => {
    const world = new World(rayCluster({}, ONE));
    world.newer = { ...world.cluster, status: { head: { podUID: "an-earlier-one" } } };
    expect(world.decide().effects).toEqual([]);
    world.newer = undefined;
    expect(world.decide().effects).not.toEqual([]);
  });

  it("counts one that vanished before its UID was written down as never made: nothing was handed over to it", () => {
    const world = new World(rayCluster({}, ONE));
    world.pass();
    world.remove(HEAD);
    world.settle();
    expect(heads(world)).toBe(2);
    expect(world.cluster.status?.head?.podUID).toBe(world.pod(HEAD).metadata.uid);
  });

  it("loses it for good by being suspended", () => {
    const world = up();
    world.spec({ suspend: true });
    world.settle();
    world.reap();
    world.settle();
    world.spec({ suspend: false });
    world.wait(minutes(10));
    expect(heads(world)).toBe(0);
  });
});

it.each([
  ["an annotation", {}, { "ray.io/ft-enabled": "true" }],
  ["gcsFaultToleranceOptions", { gcsFaultToleranceOptions: {} }, {}],
])("with fault tolerance, by %s, the head is replaced and restarted as usual", (_, spec, annotations) => {
  const cluster = rayCluster(spec, { annotations: { ...ONE.annotations, ...annotations } });
  expect(hasOneHead(cluster)).toBe(false);
  expect(headPod(cluster, defaultSettings).spec).not.toHaveProperty("restartPolicy");
});
