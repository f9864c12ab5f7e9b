// What holds for every RayJob, whatever Ray, Kubernetes and the user do to it.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Job, Pod } from "../../api/kubernetes.ts";
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { RayJob, RayJobStatus } from "../../api/rayjob.ts";
import { type Instant, seconds, toWire } from "../time.ts";
import type { ObservedRayJob } from "./observe.ts";
import { isTerminal, type RayAnswer, type RayJobStatus as RaysStatus } from "./ray.ts";
import { currentRecord } from "./records.ts";
import { decide, headPod, observed, rayCluster, rayJob, SESSION, START, submitterJob } from "./testing.ts";

type Step =
  | { do: "wait"; seconds: number }
  | { do: "ray"; says: RaysStatus | "notFound" | "silence"; session: string; node: RayAnswer["driverNode"] }
  | { do: "submitter"; stage: "working" | "complete" | "failed" | "gone" }
  | { do: "head"; state: "well" | "gone" | "replaced" | "failed" }
  | { do: "cluster"; state: "ready" | "leaving" | "gone" }
  | { do: "user"; suspend: boolean }
  | { do: "restart" };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant("wait" as const), seconds: fc.constantFrom(1, 5, 31, 301) }),
  fc.record({
    do: fc.constant("ray" as const),
    says: fc.constantFrom("PENDING", "RUNNING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED", "notFound", "silence"),
    session: fc.constantFrom(SESSION, SESSION, SESSION, "session-2"),
    node: fc.constantFrom("ALIVE", "ALIVE", "DEAD", "UNKNOWN"),
  }),
  fc.record({ do: fc.constant("submitter" as const), stage: fc.constantFrom("working", "complete", "failed", "gone") }),
  fc.record({ do: fc.constant("head" as const), state: fc.constantFrom("well", "well", "gone", "replaced", "failed") }),
  fc.record({
    do: fc.constant("cluster" as const),
    state: fc.constantFrom("ready", "ready", "ready", "leaving", "gone"),
  }),
  fc.record({ do: fc.constant("user" as const), suspend: fc.boolean() }),
  fc.record({ do: fc.constant("restart" as const) }),
);

const TO_RUNNING: readonly Step[] = [
  { do: "wait", seconds: 1 },
  { do: "head", state: "well" },
  { do: "wait", seconds: 31 },
  { do: "ray", says: "notFound", session: SESSION, node: "UNKNOWN" },
];

/** A world that obeys decisions at once: what is created is there, what is deleted is gone. */
class World {
  now: Instant = START;
  job: Stored<RayJob>;
  clusters: Stored<RayCluster>[] = [];
  pods: Stored<Pod>[] = [];
  jobs: Stored<Job>[] = [];
  ray: ObservedRayJob["ray"] = {};
  submissions = new Map<number, number>();
  readonly submittedIn = new Map<number, string>();

  constructor(mode: "K8sJobMode" | "HTTPMode", backoffLimit: number) {
    this.job = rayJob({ submissionMode: mode, backoffLimit, activeDeadlineSeconds: 900 });
  }

  get seen(): ObservedRayJob {
    return observed({ job: this.job, rayClusters: this.clusters, pods: this.pods, jobs: this.jobs, ray: this.ray });
  }

  /** One pass; returns the status before and after. */
  pass(): [RayJobStatus, RayJobStatus] {
    const before = this.job.status ?? {};
    const decision = decide(this.seen, this.now);
    for (const effect of decision.effects) {
      if (effect.do === "create" && effect.object.kind === "RayCluster") {
        const { metadata } = effect.object;
        this.clusters = [
          rayCluster({ metadata: { ...metadata, uid: `uid-${metadata.name}`, creationTimestamp: toWire(this.now) } }),
        ];
        this.head("well");
      } else if (effect.do === "create" && effect.object.kind === "Job") {
        this.jobs = [submitterJob("working", { metadata: { ...effect.object.metadata, uid: `uid-${this.now}` } })];
      } else if (effect.do === "delete" && effect.ref.kind === "RayCluster") {
        this.clusters = [];
        this.pods = [];
      } else if (effect.do === "delete" && effect.ref.kind === "Job") {
        this.jobs = [];
      } else if (effect.do === "submit") {
        const { attempt } = effect.target;
        this.submittedIn.set(attempt, effect.session);
        this.submissions.set(attempt, (this.submissions.get(attempt) ?? 0) + 1);
        this.ray = { ...this.ray, submit: { startedAt: this.now, finishedAt: this.now + 1, result: "done" } };
      }
    }
    if (decision.status) this.job = { ...this.job, status: decision.status as RayJobStatus };
    return [before, this.job.status ?? {}];
  }

  head(state: "well" | "gone" | "replaced" | "failed"): void {
    const [cluster] = this.clusters;
    if (!cluster || state === "gone") {
      this.pods = [];
      return;
    }
    const { name, uid } = cluster.metadata;
    const podUID = state === "replaced" ? `${uid}-head-${this.now}` : `${uid}-head`;
    this.pods = [
      headPod({
        metadata: {
          uid: podUID,
          creationTimestamp: toWire(this.now),
          labels: { "ray.io/cluster": name, "ray.io/node-type": "head", "ray.io/rayjob-uid": "uid-demo" },
          ownerReferences: [{ apiVersion: "ray.io/v1", kind: "RayCluster", name, uid, controller: true }],
        },
        status: {
          ...(state === "failed" ? { phase: "Failed" } : {}),
          containerStatuses: [{ name: "ray-head", state: { running: { startedAt: toWire(this.now) } } }],
        },
      }),
    ];
  }

  take(step: Step): void {
    this.now += seconds(1);
    const attempt = currentRecord({ job: this.job });
    switch (step.do) {
      case "wait":
        this.now += seconds(step.seconds);
        return;
      case "ray":
        this.ray = { ...this.ray, answer: this.answer(step) };
        return;
      case "submitter":
        if (step.stage === "gone") this.jobs = [];
        else if (this.jobs[0] && attempt) {
          const { metadata } = this.jobs[0];
          this.jobs = [
            {
              ...submitterJob(step.stage, { metadata }),
              status: {
                conditions:
                  step.stage === "working"
                    ? []
                    : [
                        {
                          type: step.stage === "complete" ? "Complete" : "Failed",
                          status: "True",
                          lastTransitionTime: toWire(this.now),
                        },
                      ],
              },
            },
          ];
        }
        return;
      case "head":
        this.head(step.state);
        return;
      case "cluster":
        if (step.state === "gone") this.clusters = [];
        if (step.state === "leaving") {
          this.clusters = this.clusters.map((one) => ({
            ...one,
            metadata: { ...one.metadata, deletionTimestamp: toWire(this.now) },
          }));
        }
        return;
      case "user":
        this.job = { ...this.job, spec: { ...this.job.spec, suspend: step.suspend } };
        return;
      case "restart":
        this.ray = {};
    }
  }

  answer({ says, session, node }: Extract<Step, { do: "ray" }>): RayAnswer {
    const requestedAt = this.now;
    if (says === "silence") return { requestedAt, job: { kind: "none", error: "refused" }, driverNode: "UNKNOWN" };
    const current = currentRecord({ job: this.job });
    // In its session Ray does not forget a job that it has just taken.
    const taken = this.submittedIn.get(current?.number ?? -1) === session && current?.observedTime === undefined;
    if (says === "notFound" && !taken)
      return { requestedAt, job: { kind: "notFound" }, session, driverNode: "UNKNOWN" };
    return {
      requestedAt,
      job: { kind: "known", info: { status: says === "notFound" ? "PENDING" : says, message: says } },
      session,
      driverNode: node,
    };
  }
}

const terminal = (status: RayJobStatus) =>
  status.jobDeploymentStatus === "Complete" || status.jobDeploymentStatus === "Failed";

describe("whatever happens", () => {
  const walk = fc.record({
    mode: fc.constantFrom("K8sJobMode" as const, "HTTPMode" as const),
    backoffLimit: fc.integer({ min: 0, max: 2 }),
    // Most walks begin with a job that is with Ray; chance alone would seldom lead there.
    handedOver: fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
    steps: fc.array(step, { minLength: 5, maxLength: 40, size: "max" }),
  });

  it("attempts count up one by one, ends are final and terminal in both words, and what was decided settles", () => {
    let ends = 0;
    fc.assert(
      fc.property(walk, ({ mode, backoffLimit, handedOver, steps }) => {
        const world = new World(mode, backoffLimit);
        for (const next of [...(handedOver ? TO_RUNNING : []), ...steps]) {
          world.take(next);
          // A pass may lead to the next; but in one instant, with nothing changing outside, it comes to rest.
          for (let passes = 0; ; passes++) {
            expect(passes).toBeLessThan(12);
            const [before, after] = world.pass();
            check(world, before, after, backoffLimit);
            if (before === after) break;
          }
        }
        if (terminal(world.job.status ?? {})) ends++;
      }),
      { numRuns: 300 },
    );
    // The walks are worth something only when many reach an end.
    expect(ends).toBeGreaterThan(60);
  });

  function check(world: World, before: RayJobStatus, after: RayJobStatus, backoffLimit: number): void {
    const numbers = (after.attempts ?? []).map(({ number }) => number);
    expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0) + index));
    expect(after.executionAttempt ?? -1).toBeGreaterThanOrEqual(before.executionAttempt ?? -1);
    expect(after.executionAttempt ?? -1).toBeLessThanOrEqual((before.executionAttempt ?? -1) + 1);
    expect(after.failed ?? 0).toBeGreaterThanOrEqual(before.failed ?? 0);
    expect(after.failed ?? 0).toBeLessThanOrEqual(backoffLimit + 1);
    if (terminal(before)) {
      expect([after.jobDeploymentStatus, after.jobStatus]).toEqual([before.jobDeploymentStatus, before.jobStatus]);
    }
    if (terminal(after)) expect(after.jobStatus === undefined || isTerminal(after.jobStatus)).toBe(true);
    if (after.jobDeploymentStatus === "Suspended")
      expect([world.clusters, world.pods, world.jobs]).toEqual([[], [], []]);
    for (const [, count] of world.submissions) expect(count).toBe(1);
    const conditions = (after.conditions ?? []).map(({ type }) => type);
    expect(new Set(conditions).size).toBe(conditions.length);
  }
});
