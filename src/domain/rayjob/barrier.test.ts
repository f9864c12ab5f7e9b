// BlockingRecreate: what the next attempt waits for, what is said meanwhile, and how long.
import { describe, expect, it } from "vitest";
import { LABEL } from "../../api/labels.ts";
import type { KubeObject } from "../../api/object.ts";
import type { AttemptRecord, RayJobSpec, RayJobStatus } from "../../api/rayjob.ts";
import { type LiveQuestion, questionKey } from "../decision.ts";
import { decideRayJob } from "./decide.ts";
import type { ObservedRayJob } from "./observe.ts";
import {
  at,
  CLUSTER,
  conditionOf,
  decide,
  doings,
  headPod,
  JOB_ID,
  labels,
  messageOf,
  observed,
  rayCluster,
  rayJob,
  reasons,
  seenRunning,
  statusWith,
  submitterJob,
  wire,
  written,
} from "./testing.ts";

const BLOCKING = { backoffLimit: 1, retryStrategy: { type: "BlockingRecreate" } } as const;
const withTimeout = (blockingTimeoutSeconds: number) => ({
  backoffLimit: 1,
  retryStrategy: { type: "BlockingRecreate", blockingTimeoutSeconds } as const,
});
const FAILED_AT = "12:09:00";

type Changes = Partial<ObservedRayJob> & {
  spec?: Partial<RayJobSpec>;
  record?: Partial<AttemptRecord>;
  reason?: string;
};

/** Attempt 0 failed at 12:09:00, and the next one may follow. */
function retrying({ spec = BLOCKING, record = {}, reason = "Deleting", ...rest }: Changes = {}): ObservedRayJob {
  const ended = seenRunning({
    retryStrategy: "BlockingRecreate",
    endTime: wire(FAILED_AT),
    jobStatus: "FAILED",
    reason: "AppFailed",
    ...record,
  });
  const status = statusWith(ended, {
    jobDeploymentStatus: "Retrying",
    failed: 1,
    jobStatus: "FAILED",
    reason: "AppFailed",
    conditions: [
      { type: "SpecValid", status: "True", reason: "Valid", message: "", lastTransitionTime: wire("12:00:00") },
      { type: "Retrying", status: "True", reason, message: "", lastTransitionTime: wire(FAILED_AT) },
    ],
  });
  return observed({ job: rayJob(spec, status), ...rest });
}

const leaving = { deletionTimestamp: wire("12:09:31"), deletionGracePeriodSeconds: 30 };
const leavingHead = () => headPod({ metadata: leaving });
const pod = (name: string, metadata: object = {}, more: object = {}) => ({
  ...headPod({ metadata: { name, uid: `uid-${name}`, ...metadata } }),
  ...more,
});
const phaseOf = (decision: { status?: object }) => (decision.status as RayJobStatus | undefined)?.jobDeploymentStatus;
const recordOf = (decision: { status?: object }) => (decision.status as RayJobStatus | undefined)?.attempts?.at(-1);
const NOW = at("12:09:02");

describe("the next attempt", () => {
  const redis = { labels: { ...labels(0), [LABEL.nodeType]: "redis-cleanup" } };
  const everything: readonly [string, Partial<ObservedRayJob>][] = [
    ["the RayCluster", { rayClusters: [rayCluster({ metadata: leaving })] }],
    ["the submitter Job", { jobs: [submitterJob("failed", { metadata: leaving })] }],
    [
      "a submitter Pod that has finished",
      { pods: [pod("demo-x", { labels: labels(0) }, { status: { phase: "Failed" } })] },
    ],
    ["the head in Terminating", { pods: [leavingHead()] }],
    [
      "a worker in Terminating",
      { pods: [pod("w", { ...leaving, labels: { ...labels(0), [LABEL.nodeType]: "worker" } })] },
    ],
    [
      "the Redis clean-up Job",
      { jobs: [submitterJob("working", { metadata: { ...redis, name: "redis", ...leaving } })] },
    ],
    ["the Redis clean-up Pod", { pods: [pod("redis", { ...redis, ...leaving })] }],
  ];

  it.each(everything)("does not begin while %s exists", (_, rest) => {
    for (const now of [NOW, at("13:00:00")])
      expect(phaseOf(decide(retrying(rest), now)) ?? "Retrying").toBe("Retrying");
  });

  it.each(everything)("does not begin while the API server has %s and the cache does not", (_, rest) => {
    expect(phaseOf(decide(retrying(), NOW, rest)) ?? "Retrying").toBe("Retrying");
  });

  it("begins in one write when nothing exists, straight in Initializing, with the next number", () => {
    const decision = decide(retrying(), NOW);
    expect(decision.effects).toEqual([]);
    expect(decision.status).toMatchObject({ jobDeploymentStatus: "Initializing", executionAttempt: 1, failed: 1 });
    expect(recordOf(decision)).toMatchObject({ number: 1, retryStrategy: "BlockingRecreate" });
    expect(conditionOf(decision.status, "Retrying")).toBe("False NotRetrying");
  });

  it("asks the API server for owners first, and for Pods only when it has said that there is none", () => {
    const asked: LiveQuestion[][] = [];
    const live = new Map<string, readonly KubeObject[]>();
    const seen = retrying();
    for (;;) {
      const { ask } = decideRayJob({ ...seen, live }, NOW);
      if (!ask) break;
      asked.push([...ask]);
      for (const question of ask) live.set(questionKey(question), []);
    }
    expect(asked.map((step) => [...new Set(step.map(({ kind }) => kind))])).toEqual([["RayCluster", "Job"], ["Pod"]]);
    expect(asked.flat().filter(({ ask }) => ask === "list")).not.toEqual([]);
    const owner = new Map([...live, [questionKey(asked[0]![0]!), [rayCluster()]]]);
    for (const question of asked[1]!) owner.delete(questionKey(question));
    expect(decideRayJob({ ...seen, live: owner }, NOW).ask).toBeUndefined();
  });

  it("waits for a reconcile of the RayCluster that is under way, since it may yet make a Pod", () => {
    expect(decide(retrying({ clusterInFlight: true }), NOW)).toMatchObject({ effects: [], wakeAt: NOW + 1000 });
    expect(decide(retrying({ clusterInFlight: true }), NOW).status).toBeUndefined();
  });

  it("does not wait for objects of another RayJob", () => {
    const other = { labels: { ...labels(0), [LABEL.rayJobUID]: "another" }, ownerReferences: [] };
    const decision = decide(retrying({ rayClusters: [rayCluster({ metadata: { ...other, name: "other" } })] }), NOW);
    expect(phaseOf(decision)).toBe("Initializing");
  });
});

describe("what is left", () => {
  it("is deleted in the foreground, with its UID, so that a RayCluster outlives its Pods", () => {
    const decision = decide(
      retrying({ rayClusters: [rayCluster()], jobs: [submitterJob("failed")], pods: [headPod()] }),
      NOW,
    );
    expect(decision.effects).toMatchObject([
      { do: "delete", propagation: "Foreground", ref: { kind: "RayCluster", uid: "uid-cluster" } },
      { do: "delete", propagation: "Foreground", ref: { kind: "Job", uid: "uid-submitter" } },
    ]);
  });

  it("and bears the RayJob's UID goes by that, whatever spec says now, and though its owner is gone", () => {
    const stray = pod("stray", { ownerReferences: [], labels: labels(0) });
    expect(doings(decide(retrying({ pods: [stray] }), NOW))).toEqual(["delete Pod stray"]);
    const older = rayCluster({ metadata: { name: "older", uid: "uid-older" } });
    const seen = retrying({ rayClusters: [older], spec: { ...BLOCKING, submissionMode: "HTTPMode" } });
    expect(doings(decide(seen, NOW))).toEqual(["delete RayCluster older"]);
  });

  it("is left to do its work where it is a RayCluster's clean-up of Redis", () => {
    const ownerReferences = [
      { apiVersion: "ray.io/v1", kind: "RayCluster", name: CLUSTER, uid: "u", controller: true },
    ];
    const redis = submitterJob("working", { metadata: { name: "redis", uid: "uid-redis", ownerReferences } });
    expect(decide(retrying({ jobs: [redis] }), NOW).effects).toEqual([]);
  });

  it("is named: kind, name, node, terminating since; five, then a count", () => {
    const blocked = decide(retrying({ rayClusters: [rayCluster({ metadata: leaving })], pods: [leavingHead()] }), NOW);
    expect(conditionOf(blocked.status, "Retrying")).toBe("True Blocked");
    expect(messageOf(blocked.status, "Retrying")).toBe(
      `Attempt 1 waits until nothing of attempt 0 is left: Pod ${CLUSTER}-head on node node-1 (terminating since ${wire("12:09:01")}), RayCluster ${CLUSTER} (terminating since ${wire("12:09:01")}).`,
    );
    const many = Array.from({ length: 8 }, (_, index) => pod(`p${index}`, leaving));
    expect(messageOf(decide(retrying({ pods: many }), NOW).status, "Retrying")).toMatch(
      /: Pod p0 .*, Pod p4 on node node-1 \(.*\) and 3 more\.$/,
    );
  });

  it("is told with one event at the start of the wait and one at its end", () => {
    const seen = retrying({ pods: [leavingHead()] });
    const blocked = decide(seen, NOW);
    expect(blocked.events).toMatchObject([
      { type: "Normal", reason: "RetryBlocked", note: expect.stringContaining("node-1") },
    ]);
    const later = written(seen, blocked);
    expect(reasons(decide(later, NOW + 60_000))).toEqual([]);
    const open = decide({ ...later, pods: [] }, NOW + 60_000);
    expect(reasons(open)).toEqual(["RetryUnblocked", "AttemptStarted"]);
    expect(open.events[0]?.note).toContain("after 60 s");
    expect(reasons(decide(retrying(), NOW))).toEqual(["AttemptStarted"]);
  });

  it("is written again when it has changed, every ten seconds at most", () => {
    const seen = retrying({ pods: [pod("a", leaving), pod("b", leaving)] });
    const told = written(seen, decide(seen, NOW));
    expect(decide(told, NOW + 60_000).status).toBeUndefined();
    const fewer = { ...told, pods: [pod("b", leaving)] };
    const soon = decide(fewer, NOW + 3000);
    expect(soon.status).toBeUndefined();
    expect(soon.wakeAt).toBe(NOW + 10_000);
    expect(messageOf(decide(fewer, NOW + 10_000).status, "Retrying")).not.toContain("Pod a");
  });

  it("is told, too, when the API server refuses to delete it", () => {
    const seen = retrying({ rayClusters: [rayCluster()] });
    expect(decide(seen, NOW).status).toBeUndefined();
    const told = decide(seen, at("12:09:06"));
    expect(conditionOf(told.status, "Retrying")).toBe("True Blocked");
    expect(doings(decide(written(seen, told), at("12:09:06")))).toEqual([`delete RayCluster ${CLUSTER}`]);
  });
});

describe("blockingTimeoutSeconds", () => {
  const stuck = (changes: Changes = {}) => retrying({ spec: withTimeout(60), pods: [leavingHead()], ...changes });
  const told = (seen: ObservedRayJob) => written(seen, decide(seen, NOW));

  it("runs from Retrying=True; exceeded, the RayJob has failed, and no attempt follows", () => {
    const seen = told(stuck());
    expect(decide(seen, at("12:09:59")).status).toBeUndefined();
    expect(decide(seen, at("12:09:59")).wakeAt).toBe(at("12:10:00"));
    const decision = decide(seen, at("12:10:00"));
    expect(decision.status).toMatchObject({
      jobDeploymentStatus: "Failed",
      reason: "RetryBlockedTimeoutExceeded",
      message: expect.stringContaining(`Pod ${CLUSTER}-head on node node-1`),
      jobStatus: "FAILED",
      jobId: JOB_ID,
      executionAttempt: 0,
      // The attempt's failure is counted; the wait was no attempt.
      failed: 1,
      endTime: wire("12:10:00"),
    });
    expect(conditionOf(decision.status, "Failed")).toBe("True RetryBlockedTimeout");
    expect(conditionOf(decision.status, "Retrying")).toBe("False NotRetrying");
    expect(recordOf(decision)).toMatchObject({ number: 0, reason: "AppFailed" });
    const after = written(seen, decision);
    expect(decide({ ...after, pods: [] }, at("12:20:00")).status).toMatchObject({ jobDeploymentStatus: "Failed" });
  });

  it("that passed while nobody looked fails nothing, where the API server has nothing left", () => {
    const decision = decide(told(stuck()), at("12:30:00"), { pods: [] });
    expect(decision).toMatchObject({ effects: [], wakeAt: at("12:30:01") });
    expect(phaseOf(decision) ?? "Retrying").toBe("Retrying");
  });

  it("does not run while the RayJob is suspended, and goes on where it stood, whoever leads then", () => {
    const seen = told(stuck());
    const suspended = { ...seen, job: rayJob({ ...withTimeout(60), suspend: true }, seen.job.status) };
    // Suspended at 20 s, for ten minutes.
    const noted = decide(suspended, at("12:09:20"));
    expect(recordOf(noted)?.barrier).toMatchObject({ suspendedTime: wire("12:09:20") });
    expect(conditionOf(noted.status, "Suspended")).toBe("False Suspending");
    expect(reasons(noted)).toEqual(["Suspending"]);
    const waiting = written(suspended, noted);
    expect(phaseOf(decide(waiting, at("12:19:00"))) ?? "Retrying").toBe("Retrying");
    const resumed = { ...waiting, job: rayJob(withTimeout(60), waiting.job.status) };
    const again = decide(resumed, at("12:19:20"));
    expect(recordOf(again)?.barrier).toMatchObject({ suspendedSeconds: 600 });
    expect(recordOf(again)?.barrier).not.toHaveProperty("suspendedTime");
    const after = written(resumed, again);
    // 40 s are left.
    expect(phaseOf(decide(after, at("12:19:59"))) ?? "Retrying").toBe("Retrying");
    expect(phaseOf(decide(after, at("12:20:00")))).toBe("Failed");
  });

  it.each([
    ["that was never blocked", []],
    ["that was blocked for 2 s", [leavingHead()]],
  ])(
    "does not run while a retry %s waits for a valid spec; a stray that comes then has the time that is left",
    (_, pods) => {
      const invalid = { ...withTimeout(60), runtimeEnvYAML: "[a]" };
      const blocked = retrying({ spec: withTimeout(60), pods });
      const before = pods.length > 0 ? written(blocked, decide(blocked, NOW)) : blocked;
      const open = { ...before, job: rayJob(invalid, before.job.status), pods: [] };
      const waits = decide(open, at("12:09:04"));
      expect(conditionOf(waits.status, "Retrying")).toBe("True SpecInvalid");
      const waiting = written(open, waits);
      expect(decide(waiting, at("12:40:00")).status).toBeUndefined();

      const stray = { ...waiting, pods: [leavingHead()] };
      const anew = decide(stray, at("13:00:00"));
      expect(conditionOf(anew.status, "Retrying")).toBe("True Blocked");
      expect(reasons(anew)).toEqual(["RetryBlocked"]);
      const held = written(stray, anew);
      // 4 s had run when it opened.
      expect(phaseOf(decide(held, at("13:00:55"))) ?? "Retrying").toBe("Retrying");
      expect(phaseOf(decide(held, at("13:00:56")))).toBe("Failed");
    },
  );

  it("may be edited while it runs, as a deadline", () => {
    const seen = told(stuck());
    const edited = (seconds: number) => ({ ...seen, job: rayJob(withTimeout(seconds), seen.job.status) });
    expect(phaseOf(decide(edited(600), at("12:10:00"))) ?? "Retrying").toBe("Retrying");
    expect(phaseOf(decide(edited(10), at("12:09:30")))).toBe("Failed");
  });

  it("does not run without one", () => {
    expect(decide(told(retrying({ pods: [leavingHead()] })), at("18:00:00")).status).toBeUndefined();
  });
});

describe("suspended at the barrier", () => {
  const suspend = { ...BLOCKING, suspend: true };

  it("deletion goes on, nothing is made, the number stays; then it is Suspended", () => {
    const seen = retrying({ spec: suspend, rayClusters: [rayCluster()] });
    const noted = written(seen, decide(seen, NOW));
    expect(doings(decide(noted, NOW))).toEqual([`delete RayCluster ${CLUSTER}`]);
    const decision = decide({ ...noted, rayClusters: [] }, NOW);
    expect(decision.status).toMatchObject({ jobDeploymentStatus: "Suspended", executionAttempt: 0, failed: 1 });
    expect(decision.effects).toEqual([]);
  });

  it("promises no attempt while it is suspended, and does again when it is resumed, in no more writes than those two", () => {
    const blocked = retrying({ pods: [leavingHead()] });
    const told = written(blocked, decide(blocked, NOW));
    const paused = { ...told, job: rayJob(suspend, told.job.status) };
    const noted = decide(paused, at("12:09:20"));
    expect(messageOf(noted.status, "Retrying")).toMatch(
      /^spec\.suspend is set, so no attempt follows until the RayJob is resumed\. Still there of attempt 0: Pod /,
    );
    const asleep = written(paused, noted);
    expect(decide(asleep, at("12:09:40")).status).toBeUndefined();
    const resumed = { ...asleep, job: rayJob(BLOCKING, asleep.job.status) };
    const again = decide(resumed, at("12:10:00"));
    expect(messageOf(again.status, "Retrying")).toContain("Attempt 1 waits until nothing of attempt 0 is left");
    expect(decide(written(resumed, again), at("12:10:20")).status).toBeUndefined();
  });

  it("resumed, it meets the barrier, too", () => {
    const status = statusWith(seenRunning(), { jobDeploymentStatus: "Suspended" });
    const seen = observed({ job: rayJob(BLOCKING, status) });
    expect(phaseOf(decide(seen, NOW))).toBe("Initializing");
    for (const pods of [[leavingHead()], [headPod()]]) {
      expect(phaseOf(decide({ ...seen, pods }, NOW)) ?? "Suspended").toBe("Suspended");
      expect(phaseOf(decide(seen, NOW, { pods })) ?? "Suspended").toBe("Suspended");
    }
  });
});

describe("edited at the barrier", () => {
  const held = () => ({ ...leaving, finalizers: ["foregroundDeletion"] });

  it("to Recreate, the barrier opens: an owner does not wait for its Pods any more", () => {
    const rayClusters = [rayCluster({ metadata: held() })];
    const seen = retrying({ rayClusters, pods: [leavingHead()] });
    const blocked = written(seen, decide(seen, NOW));
    const edited = { ...blocked, job: rayJob({ backoffLimit: 1 }, blocked.job.status) };
    expect(decide(edited, NOW).effects).toMatchObject([
      { do: "delete", propagation: "Background", ref: { kind: "RayCluster", uid: "uid-cluster" } },
    ]);
    const open = decide({ ...edited, rayClusters: [] }, NOW);
    expect(open.status).toMatchObject({ jobDeploymentStatus: "Initializing", executionAttempt: 1 });
    expect(reasons(open)).toEqual(["RetryUnblocked", "AttemptStarted"]);
  });

  it("to BlockingRecreate, the retry waits: the strategy is that of the attempt that is about to begin", () => {
    const seen = retrying({ record: { retryStrategy: "Recreate" }, pods: [leavingHead()] });
    expect(conditionOf(decide(seen, NOW).status, "Retrying")).toBe("True Blocked");
  });

  it("to what cannot be run, it waits on in Retrying and says so", () => {
    const seen = retrying({ spec: { ...BLOCKING, clusterSelector: { [LABEL.cluster]: "c" } } });
    const edited = { ...seen, job: { ...seen.job, metadata: { ...seen.job.metadata, generation: 2 } } };
    const decision = decide(edited, NOW);
    expect(phaseOf(decision)).toBe("Retrying");
    expect(conditionOf(decision.status, "SpecValid")).toBe("False Invalid");
    expect(conditionOf(decision.status, "Retrying")).toBe("True SpecInvalid");
    expect(decide(written(edited, decision), NOW).status).toBeUndefined();
  });
});

it("deletes in the background with Recreate, as ever", () => {
  const seen = retrying({
    spec: { backoffLimit: 1 },
    record: { retryStrategy: "Recreate" },
    rayClusters: [rayCluster()],
  });
  expect(decide(seen, NOW).effects).toMatchObject([{ propagation: "Background" }]);
  const going = retrying({ spec: { backoffLimit: 1 }, record: { retryStrategy: "Recreate" }, pods: [leavingHead()] });
  expect(phaseOf(decide(going, NOW))).toBe("Initializing");
});
