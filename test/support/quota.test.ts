/** The judge of quota and Pods is judged: what must not be, it finds; what Kueue itself makes so, it lets pass. */
import { describe, expect, it } from "vitest";
import { LABEL } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { Version } from "./history.ts";
import { judgeQuota } from "./quota.ts";

const ROOM = { cpu: "2", memory: "1Gi" };
const meta = (name: string, more: object = {}) => ({ metadata: { name, namespace: "n", uid: name, ...more } });
const version = (kind: string, content: object, type: Version["type"] = "MODIFIED"): Version => ({
  type,
  object: { kind, ...content } as unknown as Stored,
});

const job = (phase: string, { suspend = false, name = "demo", status = {}, queue = "team" } = {}): Version =>
  version("RayJob", {
    ...meta(name, { labels: { [LABEL.kueueQueueName]: queue } }),
    spec: { suspend },
    status: { jobDeploymentStatus: phase, endTime: "2026-01-01T00:00:10Z", ...status },
  });
const pod = (
  type: Version["type"],
  { cpu = "1", name = "head", of = "demo", phase = "Running", gone = "", attempt = 0 } = {},
): Version =>
  version(
    "Pod",
    {
      ...meta(name, {
        labels: { [LABEL.rayJobUID]: of, [LABEL.executionAttempt]: String(attempt) },
        ...(gone && { deletionTimestamp: gone }),
      }),
      spec: { containers: [{ resources: { requests: { cpu } } }] },
      status: { phase },
    },
    type,
  );
type Is = Readonly<Record<string, string | boolean>>;
const workload = (is: Is, { cpu = "1", of = "demo", type = "MODIFIED" as Version["type"] } = {}): Version =>
  version(
    "Workload",
    {
      ...meta(`workload-${of}`, { ownerReferences: [{ kind: "RayJob", uid: of }] }),
      status: {
        conditions: Object.entries(is).map(([condition, reason]) => ({
          type: condition,
          status: reason === false ? "False" : "True",
          reason: String(reason),
          message: "",
        })),
        ...(is["QuotaReserved"] && { admission: { podSetAssignments: [{ name: "head", resourceUsage: { cpu } }] } }),
      },
    },
    type,
  );

const ADMITTED = { QuotaReserved: true, Admitted: true };
const PENDING = { QuotaReserved: false };
const EVICTED = { ...PENDING, Evicted: "Preempted" };
const violations = (...versions: Version[]) => judgeQuota(versions, ROOM).violations;

describe("quota and Pods agree", () => {
  it("while a RayJob is queued, admitted, runs and ends", () => {
    const history = [
      job("Suspended", { suspend: true }),
      workload(PENDING),
      workload(ADMITTED),
      job("Initializing"),
      pod("ADDED"),
      pod("MODIFIED", { gone: "2026-01-01T00:00:12Z" }),
      job("Complete", { status: { jobStatus: "SUCCEEDED" } }),
      workload({ ...ADMITTED, Finished: "Succeeded" }),
      pod("DELETED", { gone: "2026-01-01T00:00:12Z" }),
    ];
    const { violations, outlived, stories } = judgeQuota(history, ROOM);
    expect(violations).toEqual([]);
    expect([...outlived]).toEqual([["demo", 2]]);
    expect(stories.get("demo")).toEqual([
      "QuotaReserved=True (true)",
      "Admitted=True (true)",
      "Finished=True (Succeeded)",
    ]);
  });

  it("while one is preempted for another that takes its place", () => {
    const history = [
      ...[job("Suspended", { suspend: true }), workload(ADMITTED, { cpu: "2" }), job("Running")],
      ...[pod("ADDED", { cpu: "2" }), job("Suspending", { suspend: true }), pod("DELETED", { cpu: "2" })],
      ...[job("Suspended", { suspend: true }), workload(EVICTED), job("Initializing", { name: "high" })],
      ...[workload(ADMITTED, { of: "high", cpu: "2" }), pod("ADDED", { of: "high", cpu: "2" })],
    ];
    expect(violations(...history)).toEqual([]);
  });

  it("while a RayJob that has no queue does what it likes", () => {
    const free = { queue: "" };
    expect(violations(job("Running", free), pod("ADDED", { cpu: "100" }), job("Complete", free))).toEqual([]);
  });
});

describe("what must not be is found:", () => {
  const running = [job("Running"), workload(ADMITTED), pod("ADDED")];

  it("a Pod of a RayJob that is not admitted", () => {
    expect(violations(job("Running"), workload(PENDING), pod("ADDED"))).toContain(
      "Pod head was made for demo, which Kueue has not admitted",
    );
  });

  it("a Pod that is made after the end", () => {
    const end = [job("Complete"), workload({ ...ADMITTED, Finished: "Failed" })];
    expect(violations(...running, ...end, pod("ADDED", { name: "late" }))).toEqual([
      "Pod late was made for demo, which Kueue has not admitted",
    ]);
  });

  it("quota that went to somebody else while there was a Pod, also one that is on its way out", () => {
    const leaving = pod("MODIFIED", { gone: "2026-01-01T00:00:12Z" });
    const told = violations(...running, leaving, job("Suspended", { suspend: true }), workload(EVICTED));
    expect(told[0]).toBe("demo: its quota went, and yet there was Pod head");
  });

  it("quota that went while the RayJob said that it was active", () => {
    const told = violations(...running, pod("DELETED"), job("Suspending", { suspend: true }), workload(EVICTED));
    expect(told).toEqual(["demo: lost its quota while Kueue saw it active"]);
  });

  it("Pods that ask for more than was reserved for them", () => {
    expect(violations(...running, pod("ADDED", { name: "worker", cpu: "500m" }))).toEqual([
      "demo: its Pods request 1500m of cpu, more than the 1 that Kueue has reserved for it",
    ]);
  });

  it.each([
    ["is found where attempts must not overlap", "BlockingRecreate", 1],
    ["is passed where they may", "Recreate", 0],
  ])("a Pod that is on its way out, beside one of the next attempt, %s", (_, type, found) => {
    const retried = version("RayJob", {
      ...meta("demo", { labels: { [LABEL.kueueQueueName]: "team" } }),
      spec: { retryStrategy: { type } },
      status: { jobDeploymentStatus: "Initializing", executionAttempt: 1 },
    });
    const leaving = pod("MODIFIED", { gone: "2026-01-01T00:00:12Z" });
    expect(violations(...running, leaving, retried, pod("ADDED", { name: "next", attempt: 1 }))).toHaveLength(found);
  });

  it("Pods that together ask for more than the queue has", () => {
    const other = [job("Running", { name: "other" }), workload(ADMITTED, { of: "other", cpu: "2" })];
    expect(violations(...running, ...other, pod("ADDED", { of: "other", name: "more", cpu: "2" }))).toEqual([
      "the Pods request 3 of cpu, more than the 2 that the queue has",
    ]);
  });

  it.each([
    ["no success", "FAILED", "Succeeded", "demo: Kueue calls its end Succeeded, and it has not succeeded"],
    ["a success", "SUCCEEDED", "Failed", "demo: Kueue calls its end Failed, and it has succeeded"],
  ])("another end than that of the RayJob, which is %s", (_, jobStatus, reason, sentence) => {
    const end = [job("Complete", { status: { jobStatus } }), workload({ ...ADMITTED, Finished: reason })];
    expect(violations(...running, ...end)).toEqual([sentence]);
  });

  it("an end of which Kueue does not know, and one that is none", () => {
    expect(violations(...running, job("Complete"))).toEqual(["demo: it is over, and Kueue does not know"]);
    expect(violations(...running, workload({ ...ADMITTED, Finished: "FailedToStart" }))[0]).toMatch(
      /^demo: Kueue has it finished \(FailedToStart\), and it is not over/,
    );
  });

  it("Pods that Kueue has ready before the RayCluster is", () => {
    expect(violations(...running, workload({ ...ADMITTED, PodsReady: "Started" }))).toEqual([
      "demo: Kueue has its Pods ready, and its RayCluster is not",
    ]);
  });
});
