import { describe, expect, it } from "vitest";
import { headFacts, targetOf } from "./cluster.ts";
import { currentRecord } from "./records.ts";
import { HEAD_UID, headPod, rayCluster, whileRunning, wire } from "./testing.ts";

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

describe("where Ray is asked", () => {
  const OURS = "rayjob-1-head-svc.default.svc.cluster.local:8265";
  const asked = (dashboardURL: string | undefined, headServiceName?: string) => {
    const seen = whileRunning();
    const { spec } = rayCluster();
    const headService = headServiceName ? { metadata: { name: headServiceName } } : undefined;
    const cluster = rayCluster({ spec: { ...spec, headGroupSpec: { ...spec.headGroupSpec, headService } } });
    const job = { ...seen.job, status: { ...seen.job.status, dashboardURL } };
    return targetOf({ ...seen, job }, currentRecord(seen)!, cluster)?.dashboard;
  };

  it("is where the status says, for a Service of this namespace", () => {
    expect(asked(OURS)).toBe(OURS);
    expect(asked(undefined, "mine")).toBe("mine.default.svc.cluster.local:8265");
  });

  it.each([
    ["a status that names another namespace", "theirs-head-svc.their-namespace.svc.cluster.local:8265", undefined],
    ["a status that names another host", "example.com:80/x?", undefined],
    ["a Service's name with a namespace in it", undefined, "theirs-head-svc.their-namespace"],
    ["a Service's name with a namespace and a domain in it", undefined, "theirs-head-svc.their-namespace.svc"],
    ["a Service's name with a path in it", undefined, "a/b"],
  ])("is never elsewhere, whatever %s", (_, dashboardURL, headServiceName) => {
    expect(asked(dashboardURL, headServiceName)).toMatch(/^[a-z0-9-]+-head-svc\.default\.svc\.cluster\.local:8265$/);
  });
});
