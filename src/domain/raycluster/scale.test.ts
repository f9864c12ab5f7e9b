import { describe, expect, it } from "vitest";
import type { Pod } from "../../api/kubernetes.ts";
import type { Stored } from "../../api/object.ts";
import { seconds, toWire } from "../time.ts";
import { desiredReplicas } from "./observe.ts";
import { scaling } from "./scale.ts";
import { NOON, ready, workerGroup } from "./testing.ts";

const patient = { retryAt: 0 };

function pod(name: string, age: number, status: Pod["status"], more: Partial<Pod["metadata"]> = {}): Stored<Pod> {
  return {
    metadata: { name, uid: name, resourceVersion: "1", creationTimestamp: toWire(NOON - seconds(age)), ...more },
    status,
  };
}
const unready: Pod["status"] = { phase: "Running", conditions: [{ type: "Ready", status: "False" }] };
const pending: Pod["status"] = { phase: "Pending" };
const terminating = { deletionTimestamp: toWire(NOON + seconds(30)) };

const scaled = (group: Parameters<typeof workerGroup>[0], pods: Stored<Pod>[], now = NOON) => {
  const { create, remove, wakeAt } = scaling(workerGroup(group), pods, patient, now);
  return { create, removed: remove.map(({ pod }) => pod.metadata.name), wakeAt };
};

describe("the Pods desired of a group", () => {
  it.each([
    [{ replicas: 5, maxReplicas: 4 }, 4],
    [{ replicas: 1, minReplicas: 2 }, 2],
    [{ replicas: undefined, minReplicas: 3 }, 3],
    [{ replicas: undefined, minReplicas: undefined as unknown as number }, 0],
    [{ replicas: 3 }, 3],
    [{ replicas: 3, minReplicas: 1, suspend: true }, 0],
  ])("with %j are %i", (group, desired) => {
    expect(desiredReplicas(workerGroup(group))).toBe(desired);
  });
});

describe("a group that has too many Pods", () => {
  const all = [
    pod("ready-old", 100, ready()),
    pod("ready-young", 10, ready()),
    pod("unready", 200, unready),
    pod("pending-old", 300, pending),
    pod("pending-young", 20, pending),
  ];

  it.each([
    [4, ["pending-young"]],
    [3, ["pending-young", "pending-old"]],
    [2, ["pending-young", "pending-old", "unready"]],
    [1, ["pending-young", "pending-old", "unready", "ready-young"]],
    [0, ["pending-young", "pending-old", "unready", "ready-young", "ready-old"]],
  ])("to have %i loses the least useful, the youngest first", (replicas, removed) => {
    expect(scaled({ replicas }, all)).toMatchObject({ create: 0, removed });
  });

  it("does not lose more while the surplus is still terminating", () => {
    const pods = [pod("a", 1, ready()), pod("b", 1, ready()), pod("c", 1, ready(), terminating)];
    expect(scaled({ replicas: 2 }, pods)).toMatchObject({ create: 0, removed: [] });
  });
});

describe("a group that has too few Pods", () => {
  it("is filled up, one that terminates not counted", () => {
    const pods = [pod("a", 1, ready()), pod("b", 1, ready(), terminating)];
    expect(scaled({ replicas: 3 }, pods)).toMatchObject({ create: 2, removed: [] });
  });

  it("never exceeds its maximum together with what terminates, until that is overdue", () => {
    const pods = [pod("a", 1, ready()), pod("b", 1, ready(), terminating)];
    const group = { replicas: 2, maxReplicas: 2 };
    expect(scaled(group, pods)).toMatchObject({ create: 0, wakeAt: NOON + seconds(60) });
    expect(scaled(group, pods, NOON + seconds(45))).toMatchObject({ create: 0 });
    expect(scaled(group, pods, NOON + seconds(60))).toMatchObject({ create: 1 });
  });

  it("does not exceed its maximum together with one that is about to go because it is named", () => {
    const scaleStrategy = { workersToDelete: ["a"] };
    const pods = [pod("a", 1, ready()), pod("b", 1, ready())];
    expect(scaled({ replicas: 2, maxReplicas: 2, scaleStrategy }, pods)).toMatchObject({ create: 0, removed: ["a"] });
  });

  it("replaces one that has ended though it is at its maximum", () => {
    const pods = [pod("a", 1, { phase: "Failed" }), pod("b", 1, ready())];
    expect(scaled({ replicas: 2, maxReplicas: 2 }, pods)).toMatchObject({ create: 1, removed: ["a"] });
  });
});
