/** Nobody leads for an hour, and the world goes on meanwhile: what the next operator makes of what it finds. */
import { describe, expect, it } from "vitest";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { jobs, pods, rayClusters, rayJobs } from "../../src/machinery/kube/resources.ts";
import { rayJob } from "../support/manifests.ts";
import { fails, type JobScript, runsForEver, succeeds } from "./fakeRay.ts";
import { type Scripts, World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

const HOUR = 3_600_000;
const condition = (job: RayJob, type: string) => job.status?.conditions?.find((one) => one.type === type);

/** A job that is RUNNING, and whose operator is killed at that moment. */
async function leaderless(spec: Partial<RayJobSpec>, script: JobScript | JobScript[], scripts: Scripts = {}) {
  const lives = [script].flat();
  const w = new World({ job: () => lives.shift() ?? succeeds(5000), ...scripts });
  worlds.push(w);
  const { process } = w.start();
  await w.client.create(rayJobs, rayJob(spec));
  await w.until("RUNNING", async () => (await w.job())?.status?.jobStatus === "RUNNING");
  process.kill();
  return w;
}

async function warnings(w: World): Promise<string[]> {
  await w.clock.advance(30_000);
  return (await w.events()).filter((event) => event.startsWith("Warning"));
}

const stops = (w: World) => w.ray.requests.filter((request) => request.endsWith("/stop")).length;

describe.each(["K8sJobMode", "HTTPMode"] as const)("while nobody leads, in %s", (submissionMode) => {
  it("a job that succeeds has succeeded, without a warning", async () => {
    const w = await leaderless({ submissionMode }, succeeds(60_000));
    await w.clock.advance(HOUR);
    w.start();
    const { status } = await w.untilPhase("Complete", "demo", 60_000);
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", succeeded: 1, failed: 0, executionAttempt: 0 });
    expect(await warnings(w)).toEqual([]);
  });

  it("a job that succeeds has succeeded though its deadline passed, too, and nothing is stopped", async () => {
    const w = await leaderless({ submissionMode, activeDeadlineSeconds: 600 }, succeeds(60_000));
    await w.clock.advance(HOUR);
    w.start();
    const { status } = await w.untilPhase("Complete", "demo", 60_000);
    expect(status?.jobStatus).toBe("SUCCEEDED");
    expect(status?.reason).toBeUndefined();
    expect(stops(w)).toBe(0);
    expect(await warnings(w)).toEqual([]);
  });

  it("a job that succeeds has succeeded though it was suspended after that", async () => {
    const w = await leaderless({ submissionMode }, succeeds(60_000));
    await w.clock.advance(HOUR);
    await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
    w.start();
    const { status } = await w.untilPhase("Complete", "demo", 60_000);
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0 });
  });

  it("a job that runs on is suspended at once when somebody leads again", async () => {
    const w = await leaderless({ submissionMode }, runsForEver);
    await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
    await w.clock.advance(HOUR);
    w.start();
    await w.untilPhase("Suspended", "demo", 30_000);
    expect(await w.list(pods)).toEqual([]);
  });

  it("a dashboard that has come to hang does not keep a suspension waiting", async () => {
    const w = await leaderless({ submissionMode }, runsForEver);
    for (const head of w.ray.heads.values()) head.mood = "hang";
    await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
    w.start();
    await w.untilPhase("Suspended", "demo", 30_000);
  });

  it("a job that fails is tried again", async () => {
    const w = await leaderless({ submissionMode, backoffLimit: 1 }, [fails(60_000), succeeds(5000)]);
    await w.clock.advance(HOUR);
    w.start();
    const { status } = await w.untilPhase("Complete", "demo", 120_000);
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", failed: 1, executionAttempt: 1 });
  });

  it("a head that is lost fails the job, which is not run again by the head that takes its place", async () => {
    const w = await leaderless({ submissionMode }, runsForEver);
    const head = await w.head();
    await w.client.delete(pods, "default", head.metadata.name, { gracePeriodSeconds: 0 });
    await w.clock.advance(HOUR);
    w.start();
    const job = await w.untilPhase("Failed", "demo", 60_000);
    expect(job.status).toMatchObject({ reason: "AppFailed", jobStatus: "FAILED" });
    expect(["HeadPodLost", "RayJobLost"]).toContain(condition(job, "Failed")?.reason);
    await w.clock.advance(120_000);
    expect(w.submissions).toHaveLength(1);
  });

  it("a RayCluster that is deleted costs the attempt", async () => {
    const w = await leaderless({ submissionMode, backoffLimit: 1 }, [runsForEver, succeeds(5000)]);
    await w.client.delete(rayClusters, "default", (await w.job())!.status!.rayClusterName!);
    await w.clock.advance(HOUR);
    w.start();
    const { status } = await w.untilPhase("Complete", "demo", 120_000);
    expect(status).toMatchObject({ failed: 1, executionAttempt: 1 });
    expect(status?.attempts?.[0]?.jobStatus).toBe("FAILED");
  });

  it("a RayJob that is deleted is stopped in Ray nevertheless, once, before it goes", async () => {
    const w = await leaderless({ submissionMode }, runsForEver);
    await w.client.delete(rayJobs, "default", "demo");
    await w.clock.advance(HOUR);
    expect(stops(w)).toBe(0);
    w.start();
    await w.until("gone", async () => (await w.job()) === undefined, 30_000);
    expect(stops(w)).toBe(1);
  });

  it("a RayJob that is deleted goes, too, when its dashboard hangs", async () => {
    const w = await leaderless({ submissionMode }, runsForEver);
    for (const head of w.ray.heads.values()) head.mood = "hang";
    await w.client.delete(rayJobs, "default", "demo");
    await w.clock.advance(HOUR);
    w.start();
    await w.until("gone", async () => (await w.job()) === undefined, 60_000);
    expect((await warnings(w)).join()).toContain("RayJobStopUnconfirmed");
  });

  it("time to live passes: the cluster goes when somebody leads again", async () => {
    const w = new World();
    worlds.push(w);
    const { process } = w.start();
    await w.client.create(rayJobs, rayJob({ submissionMode, ttlSecondsAfterFinished: 600 }));
    await w.untilPhase("Complete");
    process.kill();
    await w.clock.advance(HOUR);
    expect(await w.list(rayClusters)).toHaveLength(1);
    w.start();
    await w.until("deleted", async () => (await w.list(rayClusters)).length === 0, 10_000);
  });
});

describe("while nobody leads, a submitter", () => {
  it("whose Job reaches its limit does not take the job's success from it", async () => {
    const w = await leaderless({ submitterConfig: { backoffLimit: 0 } }, succeeds(60_000));
    const [submitter] = await w.submitterPods();
    await w.kubelet.end(submitter!.metadata.uid, { exitCode: 137, podReason: "Evicted" });
    await w.clock.advance(HOUR);
    w.start();
    const { status } = await w.untilPhase("Complete", "demo", 60_000);
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", failed: 0 });
  });

  it("whose Job is deleted does not take the job's success from it, and is not made again", async () => {
    const w = await leaderless({}, succeeds(60_000));
    await w.client.delete(jobs, "default", "demo", { propagation: "Background" });
    await w.clock.advance(HOUR);
    const { process } = w.start();
    const { status } = await w.untilPhase("Complete", "demo", 60_000);
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", failed: 0 });
    expect(process.writes.filter((write) => write.startsWith("POST"))).toEqual([]);
  });

  it("submits, and its job ends, though nobody has seen it start", async () => {
    const w = new World({ job: () => succeeds(5000) });
    worlds.push(w);
    const { process } = w.start();
    await w.client.create(rayJobs, rayJob());
    await w.until("a submitter", async () => (await w.list(jobs)).length > 0);
    process.kill();
    await w.clock.advance(HOUR);
    expect(w.submissions).toHaveLength(1);
    w.start();
    const { status } = await w.untilPhase("Complete", "demo", 60_000);
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", succeeded: 1 });
  });

  it("submits, and loses job and head: never run a second time within the attempt", async () => {
    const w = new World({ job: () => runsForEver });
    worlds.push(w);
    const { process } = w.start();
    await w.client.create(rayJobs, rayJob());
    await w.until("a submitter", async () => (await w.list(jobs)).length > 0);
    process.kill();
    await w.until("submitted", () => w.submissions.length === 1);
    await w.client.delete(pods, "default", (await w.head()).metadata.name, { gracePeriodSeconds: 0 });
    await w.clock.advance(HOUR);
    w.start();
    const { status } = await w.untilPhase("Failed", "demo", 60_000);
    expect(status?.reason).toMatch(/AppFailed|SubmissionFailed/);
    expect(w.submissions).toHaveLength(1);
  });
});
