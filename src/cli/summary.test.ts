import { describe, expect, it } from "vitest";
import type { Stored } from "../api/object.ts";
import type { RayJob } from "../api/rayjob.ts";
import { age, failureAdvice, phasesOf, summaryJson, summaryLines, verdictOf } from "./summary.ts";

const job = (status: Record<string, unknown>) =>
  ({
    metadata: { name: "a", namespace: "ns", uid: "u", creationTimestamp: "2026-01-01T00:00:00Z" },
    status,
  }) as unknown as Stored<RayJob>;

const complete = job({
  jobDeploymentStatus: "Complete",
  jobStatus: "SUCCEEDED",
  rayClusterName: "a-xyz",
  executionAttempt: 1,
  startTime: "2026-01-01T00:00:10Z",
  endTime: "2026-01-01T00:01:00Z",
  message: "Job finished successfully.",
  attempts: [
    { number: 0 },
    {
      number: 1,
      startTime: "2026-01-01T00:00:10Z",
      submissionStartTime: "2026-01-01T00:00:25Z",
      runningTime: "2026-01-01T00:00:30Z",
      endTime: "2026-01-01T00:00:58Z",
    },
  ],
});

describe("the verdict", () => {
  it.each([
    [{ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" }, 0, "SUCCEEDED"],
    [{ jobDeploymentStatus: "Complete", jobStatus: "STOPPED" }, 1, "STOPPED"],
    [
      {
        jobDeploymentStatus: "Failed",
        jobStatus: "FAILED",
        reason: "AppFailed",
        conditions: [{ type: "Failed", status: "True", reason: "HeadPodLost", message: "", lastTransitionTime: "" }],
      },
      1,
      "FAILED, HeadPodLost",
    ],
    [{ jobDeploymentStatus: "Failed", jobStatus: "FAILED", reason: "AppFailed" }, 1, "FAILED, AppFailed"],
    [{ jobDeploymentStatus: "Failed", reason: "SubmissionFailed" }, 1, "FAILED, SubmissionFailed"],
    [{ jobDeploymentStatus: "ValidationFailed" }, 2, "ValidationFailed"],
  ])("on %o is exit code %i", (status, exitCode, word) => {
    expect(verdictOf(job(status))).toMatchObject({ exitCode, word });
  });

  it.each(["", "Initializing", "Running", "Retrying", "Suspended"])("is not yet given in %j", (jobDeploymentStatus) => {
    expect(verdictOf(job({ jobDeploymentStatus, jobStatus: "FAILED" }))).toBeUndefined();
  });

  it("on a deleted RayJob is a failure", () => expect(verdictOf(undefined)?.exitCode).toBe(1));
});

describe("the summary", () => {
  it("shows verdict, attempt, message, the time of each phase, and kubectl's columns", () => {
    const lines = summaryLines(
      complete,
      verdictOf(complete)!,
      Date.UTC(2026, 0, 1, 0, 3, 5),
      [{ name: "cluster start", milliseconds: 2100 }],
      61_000,
    );
    expect(lines).toEqual([
      "RayJob ns/a: SUCCEEDED, attempt 1",
      "  Job finished successfully.",
      "",
      "PHASE                 TIME",
      "cluster start         2.1s",
      "RayCluster starting   15.0s",
      "submitting            5.0s",
      "running               28.0s",
      "finishing             2.0s",
      "total                 1m01s",
      "",
      "NAME   JOB STATUS   DEPLOYMENT STATUS   RAY CLUSTER NAME   START TIME             END TIME               AGE",
      "a      SUCCEEDED    Complete            a-xyz              2026-01-01T00:00:10Z   2026-01-01T00:01:00Z   3m5s",
    ]);
  });

  it("leaves out the phases a job never reached", () => {
    const failed = job({ attempts: [{ startTime: "2026-01-01T00:00:10Z" }], endTime: "2026-01-01T00:00:20Z" });
    expect(phasesOf(failed)).toEqual([{ name: "RayCluster starting", milliseconds: 10_000 }]);
  });

  it("for programs names the same", () => {
    expect(summaryJson(complete, verdictOf(complete)!, [], 1500)).toMatchObject({
      verdict: "SUCCEEDED",
      exitCode: 0,
      attempt: 1,
      phases: [{ name: "RayCluster starting", seconds: 15 }, {}, {}, {}, { name: "total", seconds: 1.5 }],
    });
  });
});

describe("what can be done about a job that failed", () => {
  const failed = job({ jobDeploymentStatus: "Failed", jobStatus: "FAILED", reason: "AppFailed" });
  const advice = [
    { text: "The program's log says why.", command: "kubectl logs x" },
    { text: "Give the head more memory." },
    { text: "Three." },
    { text: "Four." },
  ];
  const said = (gone: boolean) => failureAdvice({ rayJob: failed, verdict: verdictOf(failed)!, advice }, gone, 80);

  it("is said below its summary, in short, with where to read more", () => {
    expect(said(false)).toEqual([
      "",
      "WHAT YOU CAN DO",
      "  - The program's log says why.",
      "      kubectl logs x",
      "  - Give the head more memory.",
      "  - Three.",
      "  More: raykeeper explain rayjob a -n ns",
    ]);
  });

  it("on an embedded cluster that is gone is what to change in the manifest", () => {
    expect(said(true)).toEqual(["", "WHAT YOU CAN DO", "  - Give the head more memory.", "  - Three.", "  - Four."]);
  });

  it("is nothing for one that succeeded", () => {
    expect(failureAdvice({ rayJob: complete, verdict: verdictOf(complete)!, advice }, false, 80)).toEqual([]);
  });
});

describe("an age", () => {
  it.each([
    [59, "59s"],
    [119, "119s"],
    [185, "3m5s"],
    [660, "11m"],
    [3 * 3600 + 240, "3h4m"],
    [30 * 3600, "30h"],
    [3 * 86_400 + 3600, "3d1h"],
    [20 * 86_400, "20d"],
  ])("of %i s is %s, as kubectl writes it", (seconds, text) => expect(age(seconds * 1000)).toBe(text));
});
