// The table of verdict.ts, as a user sees it: each row is a situation, and what becomes of the RayJob.
import { describe, expect, it } from "vitest";
import type { RayJobStatus } from "../../api/rayjob.ts";
import { withCondition } from "./conditions.ts";
import {
  at,
  CLUSTER,
  conditionOf,
  decide,
  doings,
  headPod,
  messageOf,
  rayCluster,
  reasons,
  says,
  seenRunning,
  silence,
  statusWith,
  submitted,
  submitterJob,
  unknownToRay,
  whileRunning,
  wire,
  written,
} from "./testing.ts";

const NOW = at("12:10:01");
const phase = (status: object | undefined) => (status as RayJobStatus | undefined)?.jobDeploymentStatus;

describe("a: Ray says how the job ended", () => {
  it("SUCCEEDED with the submitter done is Complete", () => {
    const decision = decide(whileRunning({ answer: says("SUCCEEDED"), jobs: [submitterJob("complete")] }), NOW);
    expect(decision.status).toMatchObject({
      jobDeploymentStatus: "Complete",
      jobStatus: "SUCCEEDED",
      succeeded: 1,
      failed: 0,
    });
    expect(conditionOf(decision.status, "Succeeded")).toBe("True JobSucceeded");
    expect(decision.effects).toEqual([]);
  });

  it("FAILED is Failed at once when the submitter's Pod failed with it: nobody reads the log", () => {
    const jobs = [submitterJob("working", { status: { active: 0, failed: 1 } })];
    const decision = decide(whileRunning({ answer: says("FAILED", { message: "exit 3" }), jobs }), NOW);
    expect(decision.status).toMatchObject({
      jobDeploymentStatus: "Failed",
      jobStatus: "FAILED",
      reason: "AppFailed",
      message: "exit 3",
    });
    expect(conditionOf(decision.status, "Failed")).toBe("True ApplicationFailed");
    const later = decide(written(whileRunning({ jobs }), decision), NOW);
    expect(doings(later)).toContain("patch Job demo");
  });

  it("STOPPED is Complete, and counts neither as success nor as failure", () => {
    const decision = decide(whileRunning({ answer: says("STOPPED"), jobs: [submitterJob("complete")] }), NOW);
    expect(decision.status).toMatchObject({
      jobDeploymentStatus: "Complete",
      jobStatus: "STOPPED",
      succeeded: 0,
      failed: 0,
    });
    expect(conditionOf(decision.status, "Failed")).toBe("True ApplicationStopped");
  });

  it("waits for the submitter's log, with the end written down first", () => {
    const seen = whileRunning({ answer: says("SUCCEEDED", { endTime: "12:09:58" }) });
    const first = decide(seen, NOW);
    expect(first.status).toMatchObject({ jobDeploymentStatus: "Running", jobStatus: "SUCCEEDED" });
    expect(first.effects).toEqual([]);
    const waiting = decide(written(seen, first), NOW);
    expect(waiting.status).toBeUndefined();
    expect(waiting.wakeAt).toBe(at("12:14:58"));
  });

  it("keeps an end that was written down, whatever Ray and the head show afterwards", () => {
    const seen = whileRunning({ answer: says("SUCCEEDED", { endTime: "12:09:58" }) });
    const ended = written(seen, decide(seen, NOW));
    for (const answer of [unknownToRay(), silence(), says("FAILED"), says("RUNNING", { session: "session-2" })]) {
      const decision = decide({ ...ended, ray: { answer }, jobs: [submitterJob("failed")], pods: [] }, NOW);
      expect(decision.status).toMatchObject({ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" });
    }
  });

  it("waits no longer than the grace period for a submitter that hangs", () => {
    const seen = whileRunning({ answer: says("SUCCEEDED", { endTime: "12:05:01" }) });
    expect(phase(decide(seen, at("12:10:00")).status)).toBe("Running");
    const late = decide(seen, at("12:10:01"));
    expect(late.status).toMatchObject({
      jobDeploymentStatus: "Complete",
      jobStatus: "SUCCEEDED",
      message: "Job is SUCCEEDED",
    });
    expect(late.status).not.toHaveProperty("reason");
    expect(conditionOf(late.status, "SubmitterHealthy")).toBe("False Following");
    const stopped = decide({ ...seen, ray: { answer: says("STOPPED", { endTime: "12:05:01" }) } }, at("12:10:01"));
    expect(stopped.status).toMatchObject({ reason: "JobDeploymentStatusTransitionGracePeriodExceeded" });
    const cleaning = decide(written(seen, late), at("12:10:02"));
    expect(doings(cleaning)).toEqual(["patch Job demo", `delete RayCluster ${CLUSTER}`]);
  });

  it("waits no longer where the end that KubeRay wrote down lacks its time: it counts from when it was seen", () => {
    const seen = whileRunning({ status: statusWith(seenRunning(), { jobStatus: "SUCCEEDED" }) });
    const first = decide(seen, NOW);
    expect(first).toMatchObject({
      status: { jobDeploymentStatus: "Running", rayJobInfo: { endTime: wire("12:10:01") } },
    });
    const after = written(seen, first);
    expect(decide(after, at("12:15:00"))).toMatchObject({ effects: [], wakeAt: at("12:15:01") });
    expect(phase(decide(after, at("12:15:01")).status)).toBe("Complete");
  });

  it("a submitter that finished long ago while no operator was there does not matter", () => {
    const jobs = [submitterJob("complete", { at: "12:01:00" })];
    const decision = decide(whileRunning({ answer: says("SUCCEEDED"), jobs, spec: { backoffLimit: 3 } }), NOW);
    expect(decision.status).toMatchObject({ jobDeploymentStatus: "Complete", failed: 0 });
  });
});

describe("b: Ray says RUNNING", () => {
  it.each([
    ["has failed", [submitterJob("failed")], "False JobFailed"],
    ["has ended well in the middle of the job", [submitterJob("complete")], "False Finished"],
    ["is deleted", [], "False Deleted"],
  ])("a submitter that %s is reported once, and the job runs on", (_, jobs, health) => {
    const seen = whileRunning({ jobs });
    const decision = decide(seen, NOW);
    expect(phase(decision.status)).toBe("Running");
    expect(conditionOf(decision.status, "SubmitterHealthy")).toBe(health);
    expect(reasons(decision)).toEqual(["SubmitterLost"]);
    const again = decide(written(seen, decision), NOW);
    expect(again.events).toEqual([]);
    expect(doings(again).filter((doing) => doing.startsWith("delete"))).toEqual([]);
  });

  it("a submitter's end is not held against an answer from before it", () => {
    const jobs = [submitterJob("complete", { at: "12:10:00" })];
    const decision = decide(whileRunning({ jobs, answer: says("RUNNING", { at: "12:10:00" }) }), NOW);
    expect(conditionOf(decision.status, "SubmitterHealthy")).toBeUndefined();
    expect(decision.events).toEqual([]);
  });

  it("a deleted submitter is made once more to follow the log, and not a third time", () => {
    let seen = whileRunning({ jobs: [] });
    seen = written(seen, decide(seen, NOW));
    const again = decide(seen, NOW);
    expect(doings(again)).toEqual(["create Job demo"]);
    // An operator that has read an older journal than there is makes none.
    const job = { ...seen.job, status: statusWith(seenRunning({ submitterDeletions: 2 })) };
    expect(doings(decide(seen, NOW, { job }))).toEqual([]);
    expect(again.asked.map(({ kind }) => kind)).toContain("Job");
    seen = { ...seen, jobs: [submitterJob()] };
    seen = written(seen, decide(seen, NOW));
    expect(conditionOf(seen.job.status, "SubmitterHealthy")).toBe("True Following");
    seen = { ...seen, jobs: [] };
    seen = written(seen, decide(seen, NOW));
    expect(conditionOf(seen.job.status, "SubmitterHealthy")).toBe("False Deleted");
    expect(doings(decide(seen, NOW))).toEqual([]);
  });

  it("a driver whose node cannot be learnt is no reason to give up", () => {
    expect(phase(decide(whileRunning({ answer: says("RUNNING", { node: "UNKNOWN" }) }), NOW).status)).toBe("Running");
  });
});

describe("c: the driver's node is dead", () => {
  it.each([
    ["DEAD", "dead"],
    ["MISSING", "not in Ray's node list any more"],
  ] as const)("%s is watched for 30 s, then the job fails and the message names the node", (node, words) => {
    let seen = whileRunning({ answer: says("RUNNING", { node, at: "12:10:00" }) });
    const first = decide(seen, NOW);
    expect((first.status as RayJobStatus).attempts?.[0]?.driverNodeDeadTime).toBe(wire("12:10:01"));
    seen = written(seen, first);
    expect(
      phase(decide({ ...seen, ray: { answer: says("RUNNING", { node, at: "12:10:30" }) } }, at("12:10:31")).status),
    ).not.toBe("Failed");
    const decision = decide({ ...seen, ray: { answer: says("RUNNING", { node, at: "12:10:31" }) } }, at("12:10:32"));
    expect(decision.status).toMatchObject({ jobDeploymentStatus: "Failed", jobStatus: "FAILED", reason: "AppFailed" });
    expect(decision.status?.["message"]).toBe(`The node of the job's driver, node-abc, has been ${words} for 30 s.`);
    expect(conditionOf(decision.status, "Failed")).toBe("True DriverNodeDead");
    expect(reasons(decision)).toEqual(["DriverNodeDead", "AttemptFailed"]);
  });

  it("a node that comes back is forgiven", () => {
    const status = statusWith(seenRunning({ driverNodeDeadTime: wire("12:09:00") }));
    const decision = decide(whileRunning({ status, answer: says("RUNNING", { node: "ALIVE" }) }), NOW);
    expect((decision.status as RayJobStatus).attempts?.[0]?.driverNodeDeadTime).toBeUndefined();
    expect(phase(decision.status)).toBe("Running");
  });
});

describe("d and e: Ray says PENDING", () => {
  it("d: before it ever ran, Ray has the job and will start or fail it", () => {
    const decision = decide(whileRunning({ status: statusWith(submitted()), answer: says("PENDING") }), NOW);
    expect(decision.status).toMatchObject({ jobDeploymentStatus: "Running", jobStatus: "PENDING" });
    expect(reasons(decision)).toContain("RayJobSubmitted");
  });

  it("e: after it ran, Ray has lost its table, and the job is lost", () => {
    const decision = decide(whileRunning({ answer: says("PENDING") }), NOW);
    expect(decision.status).toMatchObject({ jobDeploymentStatus: "Failed", jobStatus: "FAILED" });
    expect(conditionOf(decision.status, "Failed")).toBe("True RayJobLost");
  });
});

describe("f and g: Ray has never known the job, and the submitter is done", () => {
  const never = statusWith(submitted());

  it("f: a failed submitter fails the attempt with the Job's words and the Pod's", () => {
    const pod = headPod({
      metadata: {
        name: "demo-x",
        labels: {},
        ownerReferences: [
          { apiVersion: "batch/v1", kind: "Job", name: "demo", uid: "uid-submitter", controller: true },
        ],
      },
      status: {
        containerStatuses: [
          {
            name: "ray-job-submitter",
            state: { terminated: { exitCode: 128, reason: "StartError", message: 'exec: "python": not found' } },
          },
        ],
      },
    });
    const seen = whileRunning({
      status: never,
      answer: unknownToRay(),
      jobs: [submitterJob("failed")],
      pods: [headPod(), pod],
    });
    const decision = decide(seen, NOW);
    expect(decision.status).toMatchObject({ jobDeploymentStatus: "Failed", reason: "SubmissionFailed", failed: 1 });
    expect(decision.status?.["jobStatus"]).toBeUndefined();
    expect(decision.status?.["message"]).toContain("Job submission has failed. Reason: BackoffLimitExceeded.");
    expect(decision.status?.["message"]).toContain('exec: "python": not found');
    expect(conditionOf(decision.status, "Failed")).toBe("True SubmissionFailed");
    expect(conditionOf(decision.status, "SubmitterHealthy")).toBe("False JobFailed");
  });

  it("f: an answer from before the submitter's end does not count", () => {
    const seen = whileRunning({
      status: never,
      answer: unknownToRay({ at: "12:05:00" }),
      jobs: [submitterJob("failed", { at: "12:05:00" })],
    });
    expect(phase(decide(seen, NOW).status)).not.toBe("Failed");
  });

  it("g: a submitter that ended well, and no job: failed within seconds", () => {
    const seen = whileRunning({ status: never, answer: unknownToRay(), jobs: [submitterJob("complete")] });
    const decision = decide(seen, NOW);
    expect(decision.status).toMatchObject({
      jobDeploymentStatus: "Failed",
      reason: "AppFailed",
      message: "Submitter completed but Ray job not found in RayCluster.",
    });
  });

  it("a submitter that failed while Ray has the job is no failure, though the job was never seen before", () => {
    const decision = decide(
      whileRunning({ status: never, answer: says("RUNNING"), jobs: [submitterJob("failed")] }),
      NOW,
    );
    expect(decision.status).toMatchObject({ jobDeploymentStatus: "Running", jobStatus: "RUNNING" });
    expect(conditionOf(decision.status, "SubmitterHealthy")).toBe("False JobFailed");
  });
});

describe("h: Ray has lost the job", () => {
  it.each([
    ["does not know an observed job", unknownToRay()],
    ["runs in another session", says("RUNNING", { session: "session-2" })],
    ["runs in another session and knows nothing", unknownToRay({ session: "session-2" })],
  ])("when Ray %s, the job fails and is never submitted again there", (_, answer) => {
    for (const submissionMode of ["K8sJobMode", "HTTPMode"] as const) {
      const status = statusWith(seenRunning({ submissionMode }));
      const decision = decide(whileRunning({ status, answer }), NOW);
      expect(decision.status).toMatchObject({
        jobDeploymentStatus: "Failed",
        jobStatus: "FAILED",
        reason: "AppFailed",
      });
      expect(conditionOf(decision.status, "Failed")).toBe("True RayJobLost");
      expect(decision.effects).toEqual([]);
    }
  });

  it("another session counts even when the job was never seen", () => {
    const decision = decide(
      whileRunning({ status: statusWith(submitted()), answer: unknownToRay({ session: "session-2" }) }),
      NOW,
    );
    expect(conditionOf(decision.status, "Failed")).toBe("True RayJobLost");
    expect(decision.status?.["jobStatus"]).toBeUndefined();
  });

  it("says how the head's container ended when it was restarted in place", () => {
    const pod = headPod({
      status: {
        containerStatuses: [
          {
            name: "ray-head",
            restartCount: 1,
            state: { running: { startedAt: wire("12:08:00") } },
            lastState: { terminated: { reason: "OOMKilled", exitCode: 137, finishedAt: wire("12:07:58") } },
          },
        ],
      },
    });
    const decision = decide(whileRunning({ pods: [pod], answer: unknownToRay({ session: "session-2" }) }), NOW);
    expect(decision.status?.["message"]).toMatch(/OOMKilled, exit code 137, at 2026-01-01T12:07:58Z/);
  });

  it("an answer from before the head's container was restarted says nothing", () => {
    const pod = headPod({
      status: { containerStatuses: [{ name: "ray-head", state: { running: { startedAt: wire("12:10:00") } } }] },
    });
    expect(
      phase(decide(whileRunning({ pods: [pod], answer: says("SUCCEEDED", { at: "12:10:00" }) }), NOW).status),
    ).not.toBe("Complete");
  });

  it("with backoffLimit 1 there is one new attempt, on a new cluster", () => {
    const decision = decide(whileRunning({ spec: { backoffLimit: 1 }, answer: unknownToRay() }), NOW);
    expect(decision.status).toMatchObject({ jobDeploymentStatus: "Retrying", jobStatus: "FAILED", failed: 1 });
    expect(decision.status?.["endTime"]).toBeUndefined();
  });
});

describe("i: the job is on its way", () => {
  it("waits while the submitter works", () => {
    const decision = decide(whileRunning({ status: statusWith(submitted()), answer: unknownToRay() }), NOW);
    expect(decision.status).toBeUndefined();
    expect(decision.effects).toEqual([]);
  });

  it("makes the submitter that is missing, after asking whether it really is", () => {
    const decision = decide(whileRunning({ status: statusWith(submitted()), answer: unknownToRay(), jobs: [] }), NOW);
    expect(doings(decision)).toEqual(["create Job demo"]);
    expect(decision.asked).toContainEqual({ ask: "get", kind: "Job", namespace: "default", name: "demo" });
  });

  it("makes none when the cache lags: the submitter is there, or the attempt is over", () => {
    const seen = whileRunning({ status: statusWith(submitted()), answer: unknownToRay(), jobs: [] });
    expect(decide(seen, NOW, { jobs: [submitterJob()] }).effects).toEqual([]);
    const moved = { ...seen.job, status: { ...seen.job.status, jobDeploymentStatus: "Complete" as const } };
    expect(decide(seen, NOW, { job: moved }).effects).toEqual([]);
  });

  it("a Kubernetes Job of somebody else in the submitter's place is shown, not adopted", () => {
    const stranger = submitterJob("complete", { metadata: { ownerReferences: [], labels: {} } });
    for (const jobs of [[stranger], []]) {
      const seen = whileRunning({ status: statusWith(submitted()), answer: unknownToRay(), jobs });
      const decision = decide(seen, NOW, { jobs: [stranger] });
      expect(decision.effects).toEqual([]);
      expect(messageOf(decision.status, "Started")).toContain("does not belong to this RayJob");
      expect(reasons(decision)).toEqual(["FailedToCreateRayJobSubmitter"]);
    }
  });

  it("says once that somebody else's Kubernetes Job is in the submitter's place, not again at every look", () => {
    const stranger = submitterJob("complete", { metadata: { ownerReferences: [], labels: {} } });
    const before = whileRunning({ status: statusWith(submitted()), answer: unknownToRay(), jobs: [stranger] });
    const waiting = withCondition(before.job.status!, NOW, "Started", false, "WaitingForSubmission", "Soon.");
    const seen = { ...before, job: { ...before.job, status: waiting } };
    const told = decide(seen, NOW, { jobs: [stranger] });
    expect(messageOf(told.status, "Started")).toContain("does not belong to this RayJob");
    const again = decide({ ...seen, job: { ...seen.job, status: told.status! } }, NOW, { jobs: [stranger] });
    expect(again.status, "nothing is written").toBeUndefined();
    expect(again.events).toEqual([]);
  });

  it("the submitter of an attempt that the cache does not tell of yet is not taken away", () => {
    const later = submitterJob("working", { metadata: { labels: { "ray.io/execution-attempt": "1" } } });
    const seen = whileRunning({ status: statusWith(submitted()), jobs: [later], answer: unknownToRay() });
    expect(decide(seen, NOW).effects).toEqual([]);
  });

  it("the submitter of a deleted namesake is waited for", () => {
    const namesakes = submitterJob("complete", {
      metadata: {
        ownerReferences: [{ apiVersion: "ray.io/v1", kind: "RayJob", name: "demo", uid: "old", controller: true }],
      },
    });
    const decision = decide(
      whileRunning({ status: statusWith(submitted()), answer: unknownToRay(), jobs: [namesakes] }),
      NOW,
    );
    expect(decision.effects).toEqual([]);
    expect(phase(decision.status)).not.toBe("Failed");
    expect(decision.wakeAt).toBeDefined();
  });
});

describe("j: the head is gone and Ray is silent", () => {
  const gone = [
    [
      "is being deleted",
      headPod({ metadata: { deletionTimestamp: wire("12:09:30"), deletionGracePeriodSeconds: 30 } }),
    ],
    ["has failed", headPod({ status: { phase: "Failed", reason: "Evicted", message: "low on memory" } })],
    ["is on a node that is silent", headPod({ status: { conditions: [{ type: "Ready", status: "Unknown" }] } })],
    [
      "is on a node that is silent, as the node controller of today says it",
      headPod({
        status: {
          conditions: [
            { type: "Ready", status: "False" },
            { type: "ContainersReady", status: "True" },
          ],
        },
      }),
    ],
    ["was replaced", headPod({ metadata: { uid: "uid-other", creationTimestamp: wire("12:09:00") } })],
  ] as const;

  it.each(gone)("a head that %s fails the job in seconds", (_, pod) => {
    const decision = decide(whileRunning({ pods: [pod], answer: silence() }), NOW);
    expect(decision.status).toMatchObject({ jobDeploymentStatus: "Failed", jobStatus: "FAILED", reason: "AppFailed" });
    expect(conditionOf(decision.status, "Failed")).toBe("True HeadPodLost");
    expect(decision.status?.["message"]).toContain(`head Pod ${CLUSTER}-head`);
    expect(reasons(decision)).toEqual(["HeadPodLost", "AttemptFailed"]);
  });

  it("a head whose Ray works is not lost because another container of its Pod has ended", () => {
    const agent = { name: "log-agent", state: { terminated: { exitCode: 1, finishedAt: wire("12:09:00") } } };
    const ray = { name: "ray-head", state: { running: { startedAt: wire("12:00:10") } } };
    const pod = headPod({ status: { containerStatuses: [agent, ray] } });
    const beside = { ...pod, spec: { ...pod.spec, restartPolicy: "Never" } } as typeof pod;
    expect(phase(decide(whileRunning({ pods: [beside], answer: silence() }), NOW).status)).toBe("Running");
  });

  it("what Ray said before the head Pod of now was made is no word about it, though none of its containers has begun", () => {
    const metadata = { uid: "uid-other", creationTimestamp: wire("12:09:00") };
    const pod = headPod({ metadata, status: { phase: "Pending", conditions: [], containerStatuses: [] } });
    for (const answer of [says("RUNNING", { at: "12:08:59" }), unknownToRay({ at: "12:08:59" })]) {
      const decision = decide(whileRunning({ pods: [pod], answer }), NOW);
      expect(decision.summary).toContain("Ray is recovering: head Pod demo-c0000-head was replaced");
      expect(phase(decision.status ?? statusWith(seenRunning()))).toBe("Running");
    }
  });

  it("an evicted head's reason stays readable in the message", () => {
    const decision = decide(whileRunning({ pods: [gone[1][1]], answer: silence() }), NOW);
    expect(decision.status?.["message"]).toContain("Evicted: low on memory");
  });

  it.each(gone)("with fault tolerance a head that %s is given time to recover", (_, pod) => {
    const rayClusters = [rayCluster({ metadata: { annotations: { "ray.io/ft-enabled": "true" } } })];
    const seen = whileRunning({ pods: [pod], answer: silence(), rayClusters });
    const first = decide(seen, NOW);
    expect(first.status).toMatchObject({
      jobDeploymentStatus: "Running",
      jobStatusCheckFailureStartTime: wire("12:10:01"),
    });
    const later = { ...written(seen, first), ray: { answer: silence({ at: "12:15:01" }) } };
    expect(decide(later, at("12:15:02")).status).toMatchObject({ reason: "JobStatusCheckTimeoutExceeded" });
  });

  it("with fault tolerance the record takes the new head's UID once Ray knows the job in the same session", () => {
    const rayClusters = [rayCluster({ metadata: { annotations: { "ray.io/ft-enabled": "true" } } })];
    const pods = [headPod({ metadata: { uid: "uid-new", creationTimestamp: wire("12:09:00") } })];
    const decision = decide(whileRunning({ pods, rayClusters, answer: says("RUNNING") }), NOW);
    expect((decision.status as RayJobStatus).attempts?.[0]?.headPodUID).toBe("uid-new");
    expect(phase(decision.status)).toBe("Running");
  });

  it("a head missing in the cache is looked for at the API server first", () => {
    const seen = whileRunning({ pods: [], answer: silence() });
    expect(phase(decide(seen, NOW, { pods: [headPod()] }).status)).not.toBe("Failed");
    expect(conditionOf(decide(seen, NOW).status, "Failed")).toBe("True HeadPodLost");
  });

  it("nothing is concluded before Ray was asked: an operator that just started waits for an answer", () => {
    for (const [, pod] of gone) {
      const decision = decide({ ...whileRunning({ pods: [pod] }), ray: {} }, NOW);
      expect(phase(decision.status)).not.toBe("Failed");
      expect(decision.wakeAt).toBeDefined();
    }
  });
});

describe("k: Ray is silent and its head looks well", () => {
  it("the timer starts at the first silence, and an answer ends it", () => {
    const seen = whileRunning({ answer: silence() });
    const first = decide(seen, NOW);
    expect(first.status).toMatchObject({
      jobDeploymentStatus: "Running",
      jobStatusCheckFailureStartTime: wire("12:10:01"),
    });
    const back = decide(
      { ...written(seen, first), ray: { answer: says("RUNNING", { at: "12:11:00" }) } },
      at("12:11:01"),
    );
    expect(back.status).not.toHaveProperty("jobStatusCheckFailureStartTime");
  });

  it.each(["K8sJobMode", "HTTPMode"] as const)(
    "before the submission, in %s, ends with Ray's word that it does not know the job yet",
    (submissionMode) => {
      const status = statusWith(submitted({ submissionMode }), { jobStatusCheckFailureStartTime: wire("12:02:00") });
      const seen = whileRunning({ status, answer: unknownToRay({ at: "12:04:00" }) });
      const heard = decide(seen, at("12:04:01"));
      expect(heard.status).not.toHaveProperty("jobStatusCheckFailureStartTime");
      const silentAgain = { ...written(seen, heard), ray: { answer: silence({ at: "12:08:00" }) } };
      expect(phase(decide(silentAgain, at("12:08:01")).status)).toBe("Running");
    },
  );

  it("300 s of it end the RayJob, and it is not retried", () => {
    const status = statusWith(seenRunning(), { jobStatusCheckFailureStartTime: wire("12:10:00") });
    const before = whileRunning({ status, spec: { backoffLimit: 5 }, answer: silence({ at: "12:14:59" }) });
    expect(phase(decide(before, at("12:15:02")).status)).not.toBe("Failed");
    const decision = decide({ ...before, ray: { answer: silence({ at: "12:15:00" }) } }, at("12:15:02"));
    expect(decision.status).toMatchObject({
      jobDeploymentStatus: "Failed",
      jobStatus: "FAILED",
      reason: "JobStatusCheckTimeoutExceeded",
    });
    expect(decision.status?.["message"]).toContain(
      "Job status checks have been failing since 2026-01-01 12:10:00; exceeded timeout of 300s",
    );
  });

  it("after an outage of the operator Ray is asked first: a job that succeeded meanwhile is Complete", () => {
    const status = statusWith(seenRunning({ driverNodeDeadTime: wire("12:10:00") }), {
      jobStatusCheckFailureStartTime: wire("12:10:00"),
    });
    const back = whileRunning({ status, jobs: [submitterJob("failed")] });
    expect(phase(decide({ ...back, ray: {} }, at("18:00:00")).status)).not.toBe("Failed");
    const told = decide({ ...back, ray: { answer: says("SUCCEEDED", { at: "18:00:01" }) } }, at("18:00:02"));
    expect(told.status).toMatchObject({ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" });
  });
});

describe("the RayCluster vanishes while the job runs", () => {
  it.each([
    ["is being deleted", [rayCluster({ metadata: { deletionTimestamp: wire("12:09:00") } })]],
    ["is gone", []],
  ])("a cluster that %s ends the attempt and is not rebuilt", (_, rayClusters) => {
    const decision = decide(whileRunning({ rayClusters, pods: [], answer: silence() }), NOW);
    expect(decision.status).toMatchObject({ jobDeploymentStatus: "Failed", jobStatus: "FAILED" });
    expect(conditionOf(decision.status, "Failed")).toBe("True RayClusterLost");
    expect(decision.effects).toEqual([]);
  });

  it("a cluster missing in the cache alone is not believed to be gone", () => {
    const decision = decide(whileRunning({ rayClusters: [], answer: silence() }), NOW, {
      rayClusters: [rayCluster()],
    });
    expect(phase(decision.status)).not.toBe("Failed");
  });

  it("Ray's last word on the job still counts", () => {
    const rayClusters = [rayCluster({ metadata: { deletionTimestamp: wire("12:09:00") } })];
    const decision = decide(whileRunning({ rayClusters, answer: says("SUCCEEDED") }), NOW);
    expect(decision.status).toMatchObject({ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" });
  });
});
