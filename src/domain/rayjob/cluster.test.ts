import { describe, expect, it } from "vitest";
import { headFacts } from "./cluster.ts";
import { HEAD_UID, headPod, rayCluster, wire } from "./testing.ts";

const disruption = (reason: string, message?: string) => ({
  type: "DisruptionTarget",
  status: "True",
  reason,
  message,
  lastTransitionTime: wire("12:05:00"),
});
const leaving = (status: object) =>
  headFacts(rayCluster(), [headPod({ metadata: { deletionTimestamp: wire("12:05:30") }, status })], HEAD_UID).lost;

describe("a head Pod that is being deleted", () => {
  it.each([
    [
      "by a drain",
      disruption("EvictionByEvictionAPI", "Eviction API: evicting"),
      "(EvictionByEvictionAPI: Eviction API: evicting)",
    ],
    ["by a taint", disruption("DeletionByTaintManager"), "(DeletionByTaintManager)"],
  ])("says that it is %s", (_, condition, words) => {
    expect(leaving({ conditions: [condition] })).toMatch(/^head Pod \S+ is being deleted \(/);
    expect(leaving({ conditions: [condition] })).toContain(words);
  });

  it("says what kubelet says of an eviction of its own, and says it once", () => {
    const conditions = [disruption("TerminationByKubelet", "The node was low on resource: memory.")];
    const lost = leaving({ conditions, reason: "Evicted", message: "The node was low on resource: memory." });
    expect(lost).toContain("(Evicted: The node was low on resource: memory.");
    expect(lost).not.toContain("TerminationByKubelet");
  });

  it("says no more where somebody has just deleted it", () => {
    expect(leaving({ conditions: [{ ...disruption("EvictionByEvictionAPI"), status: "False" }] })).toMatch(
      / is being deleted$/,
    );
  });
});
