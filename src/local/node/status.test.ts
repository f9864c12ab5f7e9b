import { describe, expect, it } from "vitest";
import type { Pod } from "../../api/kubernetes.ts";
import { type ContainerRecord, newRecord, phaseOf, podStatus } from "./status.ts";

const running = { running: { startedAt: "2030-01-01T00:00:00Z" } };
const terminated = (exitCode: number) => ({ terminated: { exitCode } });
const waiting = { waiting: { reason: "CrashLoopBackOff" } };
const record = (kind: ContainerRecord["kind"], rest: Partial<ContainerRecord> = {}): ContainerRecord => ({
  ...newRecord({ name: kind, image: "i" }, kind, true),
  ...rest,
});
const done = (kind: ContainerRecord["kind"], exitCode: number) =>
  record(kind, { state: terminated(exitCode), over: true });

describe("a Pod's phase", () => {
  it.each<[string, ContainerRecord[], string]>([
    ["nothing has started", [record("init"), record("main")], "Pending"],
    ["an init container runs", [record("init", { state: running }), record("main")], "Pending"],
    ["an init container failed for good", [done("init", 1), record("main")], "Failed"],
    [
      "an init container failed and will run again",
      [record("init", { state: terminated(1) }), record("main")],
      "Pending",
    ],
    ["its container runs", [done("init", 0), record("main", { state: running })], "Running"],
    ["a container waits to run again", [record("main", { state: waiting, last: terminated(1) })], "Running"],
    ["one of two still has to start", [record("main", { state: running }), record("main")], "Pending"],
    ["one of two is over", [done("main", 1), record("main", { state: running })], "Running"],
    ["all succeeded", [done("main", 0), done("main", 0)], "Succeeded"],
    ["one of them failed", [done("main", 0), done("main", 2)], "Failed"],
    ["a sidecar has not started", [record("sidecar", { state: running }), record("main")], "Pending"],
    ["a sidecar still ends", [record("sidecar", { state: running, started: true }), done("main", 0)], "Running"],
    ["a sidecar was killed at the end", [done("sidecar", 137), done("main", 0)], "Succeeded"],
  ])("when %s: %#", (_, records, phase) => {
    expect(phaseOf(records, false)).toBe(phase);
  });

  it("is Failed when the node ended it, once its containers have", () => {
    expect(phaseOf([record("main", { state: running })], true)).toBe("Running");
    expect(phaseOf([record("main", { state: terminated(137) })], true)).toBe("Failed");
  });
});

describe("a Pod's status", () => {
  const facts = { hostIP: "10.244.0.1", startTime: 0, podIP: "10.244.0.2", failure: undefined };
  const pod = { metadata: { name: "p" } } as Pod;
  const condition = (status: ReturnType<typeof podStatus>, type: string) =>
    status.conditions!.find((one) => one.type === type)!;

  it("is Ready when every container is, and names those that are not", () => {
    const ready = record("main", { state: running, ready: true });
    expect(condition(podStatus(pod, [ready], facts, 0), "Ready").status).toBe("True");
    const unready = condition(
      podStatus(pod, [ready, record("sidecar", { state: running, started: true })], facts, 0),
      "Ready",
    );
    expect(unready).toMatchObject({ status: "False", message: "containers with unready status: [sidecar]" });
  });

  it("keeps the time of a condition that has not changed", () => {
    const first = podStatus(pod, [record("main", { state: running })], facts, 0);
    const later = podStatus(
      { ...pod, status: first },
      [record("main", { state: running, ready: true })],
      facts,
      60_000,
    );
    expect(condition(later, "Initialized").lastTransitionTime).toBe("1970-01-01T00:00:00Z");
    expect(condition(later, "Ready").lastTransitionTime).toBe("1970-01-01T00:01:00Z");
  });

  it("keeps conditions that others have set", () => {
    const other = { type: "DisruptionTarget", status: "True", lastTransitionTime: "1970-01-01T00:00:00Z" };
    const status = podStatus({ ...pod, status: { conditions: [other] } }, [record("main")], facts, 0);
    expect(condition(status, "DisruptionTarget")).toEqual(other);
  });

  it("calls a completed Pod not ready, and says why", () => {
    expect(condition(podStatus(pod, [done("main", 0)], facts, 0), "Ready")).toMatchObject({
      status: "False",
      reason: "PodCompleted",
    });
  });
});
