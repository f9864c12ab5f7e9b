// InteractiveMode: the cluster waits for its user, and his job is judged by what Ray says.
import { describe, expect, it } from "vitest";
import type { AttemptRecord, RayJobSpec, RayJobStatus } from "../../api/rayjob.ts";
import { rayInterest } from "./interest.ts";
import type { ObservedRayJob } from "./observe.ts";
import type { RayAnswer } from "./ray.ts";
import {
  at,
  CLUSTER,
  conditionOf,
  decide,
  doings,
  HEAD_UID,
  headPod,
  messageOf,
  observed,
  rayCluster,
  rayJob,
  reasons,
  record,
  SESSION,
  says,
  silence,
  statusWith,
  unknownToRay,
  whileRunning,
  wire,
  written,
} from "./testing.ts";

const ADDRESS = `${CLUSTER}-head-svc.default.svc.cluster.local:8265`;
const interactive = (changes: Partial<AttemptRecord> = {}) => {
  const { jobId: _, ...without } = record({ submissionMode: "InteractiveMode", ...changes });
  return { ...without, ...(changes.jobId && { jobId: changes.jobId }) };
};
const spec = (changes: Partial<RayJobSpec> = {}): Partial<RayJobSpec> => ({
  submissionMode: "InteractiveMode",
  entrypoint: undefined,
  ...changes,
});

/** In this phase, with a cluster that is ready. */
function inPhase(
  phase: "Initializing" | "Waiting",
  changes: Partial<RayJobSpec> = {},
  more: Partial<ObservedRayJob> & { answer?: RayAnswer; status?: RayJobStatus; attempts?: AttemptRecord[] } = {},
): ObservedRayJob {
  const { answer, status = {}, attempts = [interactive()], ...rest } = more;
  const { jobId: _, ...flat } = statusWith(attempts.at(-1)!, { jobDeploymentStatus: phase, attempts, ...status });
  return observed({
    job: rayJob(spec(changes), flat),
    rayClusters: [rayCluster()],
    pods: [headPod()],
    ray: answer ? { answer } : {},
    ...rest,
  });
}

describe("an attempt", () => {
  it("begins without an id, though its user has told one already", () => {
    for (const jobId of [undefined, "raysubmit_1"]) {
      const { status, events } = decide(observed({ job: rayJob(spec({ jobId })) }), at("12:00:00"));
      expect(status).toMatchObject({
        jobDeploymentStatus: "Initializing",
        attempts: [{ submissionMode: "InteractiveMode" }],
      });
      expect(status).not.toHaveProperty("jobId");
      expect((status as RayJobStatus).attempts![0]).not.toHaveProperty("jobId");
      expect(events.at(-1)?.note).not.toContain("undefined");
    }
  });

  it("waits when its cluster is ready, and says where to submit and what to do then", () => {
    for (const jobId of [undefined, "raysubmit_1"]) {
      const { status } = decide(inPhase("Initializing", { jobId }), at("12:01:00"));
      expect(status).toMatchObject({
        jobDeploymentStatus: "Waiting",
        dashboardURL: ADDRESS,
        rayClusterStatus: { state: "ready" },
      });
      expect(conditionOf(status, "Started")).toBe("False WaitingForSubmission");
      expect(messageOf(status, "Started")).toContain(`${ADDRESS}. Submit a job to it, and set spec.jobId`);
    }
  });

  it("waits on without a write, and without asking Ray", () => {
    const begun = inPhase("Initializing");
    const waiting = written(begun, decide(begun, at("12:01:00")));
    expect(decide(waiting, at("13:00:00"))).toMatchObject({ effects: [], events: [], asked: [] });
    expect(decide(waiting, at("13:00:00")).status).toBeUndefined();
    expect(rayInterest(waiting, at("13:00:00"))).toBeUndefined();
  });

  it("asks Ray about the id that its user tells, and then journals id, session and head in one write", () => {
    const told = inPhase("Waiting", { jobId: "raysubmit_1" });
    expect(rayInterest(told, at("12:05:00"))).toMatchObject({ target: { jobId: "raysubmit_1" }, pace: "quick" });
    expect(decide(told, at("12:05:00")).status).not.toMatchObject({ jobDeploymentStatus: "Running" });
    const answered = { ...told, ray: { answer: unknownToRay({ at: "12:05:00" }) } };
    expect(decide(answered, at("12:05:01")).status).toMatchObject({
      jobDeploymentStatus: "Running",
      jobId: "raysubmit_1",
      attempts: [
        { jobId: "raysubmit_1", raySession: SESSION, headPodUID: HEAD_UID, submissionStartTime: wire("12:05:01") },
      ],
    });
  });

  it("ignores an id that would be no part of a URL", () => {
    const { status } = decide(inPhase("Waiting", { jobId: "a/b" }, { answer: unknownToRay() }), at("12:10:01"));
    expect(status).not.toMatchObject({ jobDeploymentStatus: "Running" });
  });

  it("ends by the status-check timer where the dashboard does not answer about the id that was told", () => {
    const silent = inPhase(
      "Waiting",
      { jobId: "mine" },
      { answer: silence({ at: "12:10:00" }), status: { jobStatusCheckFailureStartTime: wire("12:05:00") } },
    );
    expect(decide(silent, at("12:10:01")).status).toMatchObject({ reason: "JobStatusCheckTimeoutExceeded" });
  });
});

describe("after a resumption the id of the attempt before stands in spec: the next attempt", () => {
  const former = interactive({ jobId: "mine", endTime: wire("12:30:00") });
  const again = (jobId: string) =>
    inPhase(
      "Waiting",
      { jobId },
      {
        attempts: [former, interactive({ number: 1 })],
        answer: unknownToRay(),
        rayClusters: [rayCluster({ metadata: { labels: {} } })],
      },
    );

  it("stays in Waiting, saying so", () => {
    const { status } = decide(again("mine"), at("12:40:00"));
    expect(status).toMatchObject({ jobDeploymentStatus: "Waiting" });
    expect(messageOf(status, "Started")).toContain("(mine was attempt 0's, so another is needed)");
  });

  it("goes on when another id arrives", () => {
    expect(decide(again("other"), at("12:40:00")).status).toMatchObject({
      jobDeploymentStatus: "Running",
      jobId: "other",
    });
  });
});

describe("waiting for ever", () => {
  it.each<[string, Partial<RayJobSpec>, object]>([
    [
      "preRunningDeadlineSeconds ends it",
      { preRunningDeadlineSeconds: 60 },
      { jobDeploymentStatus: "Failed", reason: "PreRunningDeadlineExceeded" },
    ],
    [
      "activeDeadlineSeconds ends it",
      { activeDeadlineSeconds: 60 },
      { jobDeploymentStatus: "Failed", reason: "DeadlineExceeded" },
    ],
    ["suspend ends it", { suspend: true }, { jobDeploymentStatus: "Suspending" }],
  ])("is not needed: %s", (_, changes, expected) => {
    expect(decide(inPhase("Waiting", changes), at("12:00:59")).status ?? {}).not.toMatchObject({
      reason: expect.anything(),
    });
    expect(decide(inPhase("Waiting", changes), at("12:01:00")).status).toMatchObject(expected);
  });

  it("ends with the cluster: it is not built again under somebody who works in it", () => {
    const gone = inPhase("Waiting", {}, { rayClusters: [], pods: [] });
    const { status, effects } = decide(gone, at("12:05:00"));
    expect(effects).toEqual([]);
    expect(status).toMatchObject({ jobDeploymentStatus: "Failed", reason: "AppFailed" });
    expect(conditionOf(status, "Failed")).toBe("True RayClusterLost");
  });

  it("survives its head, while nothing is submitted: the next one is told to its user", () => {
    const headless = inPhase("Waiting", {}, { pods: [], rayClusters: [rayCluster({ ready: false })] });
    expect(decide(headless, at("12:05:00")).status).toMatchObject({ jobDeploymentStatus: "Waiting" });
  });
});

describe("the job of a user is judged as any other, without a submitter:", () => {
  const ran = interactive({
    jobId: "mine",
    headPodUID: HEAD_UID,
    raySession: SESSION,
    submissionStartTime: wire("12:00:30"),
  });
  const seen = { ...ran, observedTime: wire("12:00:40"), runningTime: wire("12:00:40") };
  const running = (answer: RayAnswer, current: AttemptRecord = seen) =>
    whileRunning({ spec: spec({ jobId: "mine" }), status: statusWith(current), jobs: [], answer });
  const NOW = at("12:10:01");

  it.each<[string, RayAnswer, AttemptRecord, object]>([
    [
      "a: it succeeded, and nobody is waited for",
      says("SUCCEEDED", { endTime: "12:10:00" }),
      seen,
      { jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" },
    ],
    ["a: it was stopped", says("STOPPED"), seen, { jobDeploymentStatus: "Complete", jobStatus: "STOPPED" }],
    ["a: it failed", says("FAILED"), seen, { jobDeploymentStatus: "Failed", reason: "AppFailed" }],
    ["d: it is pending", says("PENDING"), ran, { jobDeploymentStatus: "Running", jobStatus: "PENDING" }],
    ["b: it runs", says("RUNNING"), ran, { jobDeploymentStatus: "Running", jobStatus: "RUNNING" }],
    ["h: Ray lost it", unknownToRay(), seen, { jobDeploymentStatus: "Failed", reason: "AppFailed" }],
    [
      "h: another session than that it was told for",
      unknownToRay({ session: "session-2" }),
      ran,
      { jobDeploymentStatus: "Failed", reason: "AppFailed" },
    ],
  ])("%s", (_, answer, current, expected) => {
    expect(decide(running(answer, current), NOW).status).toMatchObject(expected);
  });

  it("i: not submitted yet, it is waited for, as long as it takes, and nothing is made for it", () => {
    const decision = decide(running(unknownToRay({ at: "23:00:00" }), ran), at("23:00:01"));
    expect(doings(decision)).toEqual([]);
    expect(decision.status).toBeUndefined();
  });

  it("tells nothing of a submitter", () => {
    const decision = decide(running(says("RUNNING"), ran), NOW);
    expect(conditionOf(decision.status, "SubmitterHealthy")).toBeUndefined();
    expect(reasons(decision)).toEqual(["RayJobSubmitted"]);
  });

  it("a deletion asks Ray to stop it; while it waits there is nothing to stop", () => {
    const leaving = { deletionTimestamp: wire("12:10:00") };
    const deleted = running(says("RUNNING"));
    expect(
      doings(decide({ ...deleted, job: { ...deleted.job, metadata: { ...deleted.job.metadata, ...leaving } } }, NOW)),
    ).toEqual(["stop"]);
    const waiting = inPhase("Waiting");
    expect(
      doings(decide({ ...waiting, job: { ...waiting.job, metadata: { ...waiting.job.metadata, ...leaving } } }, NOW)),
    ).toEqual(["patch RayJob demo"]);
  });
});

it("on a selected cluster the user's job is taken, though Ray has it already", () => {
  const selecting = inPhase(
    "Waiting",
    { jobId: "mine", clusterSelector: { "ray.io/cluster": CLUSTER }, rayClusterSpec: undefined },
    { attempts: [interactive({ ownsCluster: false })], answer: says("RUNNING", { at: "12:05:00" }) },
  );
  expect(decide(selecting, at("12:05:01")).status).toMatchObject({ jobDeploymentStatus: "Running", jobId: "mine" });
});

it("a RayJob that KubeRay left Waiting goes on, whatever its spec says by now", () => {
  const status: RayJobStatus = {
    jobDeploymentStatus: "Waiting",
    rayClusterName: CLUSTER,
    startTime: wire("12:00:00"),
    dashboardURL: ADDRESS,
  };
  const job = rayJob(spec({ jobId: "mine" }), status);
  const seen = observed({
    job,
    rayClusters: [rayCluster({ metadata: { labels: {} } })],
    pods: [headPod()],
    ray: { answer: unknownToRay() },
  });
  expect(decide(seen, at("12:10:01")).status).toMatchObject({
    jobDeploymentStatus: "Running",
    jobId: "mine",
    attempts: [{ number: 0, submissionMode: "InteractiveMode", jobId: "mine" }],
  });
});
