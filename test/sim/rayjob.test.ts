/** A RayJob's life in a world of our own: what a user sees of it, from applying it to its end. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { jobs, pods, rayClusters, rayJobs, services } from "../../src/machinery/kube/resources.ts";
import { rayJob } from "../support/manifests.ts";
import { badImage, prompt, stuckTerminating } from "./fakeKubelet.ts";
import { fails, runsForEver, succeeds } from "./fakeRay.ts";
import { nodeId, type World } from "./world.ts";
import { worldMaker } from "./worlds.ts";

const world = worldMaker();

const condition = (job: RayJob, type: string) => job.status?.conditions?.find((one) => one.type === type);

const isReady = (pod: Pod) =>
  pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;

/** Applies a RayJob to a world with an operator. */
async function apply(w: World, spec: Parameters<typeof rayJob>[0] = {}) {
  const running = w.start();
  await w.client.create(rayJobs, rayJob(spec));
  return running;
}

const running = (w: World) => w.until("RUNNING", async () => (await w.job())?.status?.jobStatus === "RUNNING");

describe.each(["K8sJobMode", "HTTPMode", "SidecarMode"] as const)("a RayJob in %s", (submissionMode) => {
  it("runs to its end and leaves nothing behind", async () => {
    const w = world();
    await apply(w, { submissionMode });
    const job = await w.untilPhase("Complete");
    expect(job.status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, succeeded: 1, failed: 0 });
    expect(condition(job, "Succeeded")?.status).toBe("True");
    expect(w.submissions).toHaveLength(1);
    await w.until("released", async () => condition((await w.job())!, "ResourcesReleased")?.status === "True");
    expect(await w.list(pods)).toHaveLength(submissionMode === "K8sJobMode" ? 1 : 0);
    expect(await w.list(rayClusters)).toEqual([]);
    expect(await w.list(services)).toEqual([]);
  });

  it("costs few writes to the API server", async () => {
    const w = world();
    const { process } = await apply(w, { submissionMode });
    await w.untilPhase("Complete");
    await w.clock.advance(120_000);
    // sidecar.test.ts tells of what.
    const most = { K8sJobMode: 16, HTTPMode: 15, SidecarMode: 17 }[submissionMode];
    expect(process.writes.length, process.writes.join("\n")).toBeLessThanOrEqual(most);
  });

  it("settles: further looks write nothing", async () => {
    const w = world();
    const { process } = await apply(w, { submissionMode });
    await w.untilPhase("Complete");
    await w.clock.advance(120_000);
    const before = process.writes.length;
    await w.clock.advance(3_600_000);
    expect(process.writes.slice(before)).toEqual([]);
    const next = w.start();
    await w.clock.advance(60_000);
    expect(next.process.writes).toEqual([]);
  });

  it("that fails says what Ray says", async () => {
    const w = world({ job: () => fails(5000, "exit code 7") });
    await apply(w, { submissionMode });
    const { status } = await w.untilPhase("Failed");
    expect(status).toMatchObject({ jobStatus: "FAILED", reason: "AppFailed", message: "exit code 7", failed: 1 });
    expect(w.submissions).toHaveLength(1);
  });

  it("is tried again on a new cluster when it may, and counts what it took", async () => {
    const scripts = [fails(5000), succeeds(5000)];
    const w = world({ job: () => scripts.shift()! });
    await apply(w, { submissionMode, backoffLimit: 2 });
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ executionAttempt: 1, failed: 1, succeeded: 1, jobStatus: "SUCCEEDED" });
    expect(status?.attempts?.map(({ number, jobStatus }) => [number, jobStatus])).toEqual([
      [0, "FAILED"],
      [1, "SUCCEEDED"],
    ]);
    const [first, second] = status?.attempts ?? [];
    expect(second?.jobId).not.toBe(first?.jobId);
    expect(second?.rayClusterName).not.toBe(first?.rayClusterName);
    expect(w.submissions).toHaveLength(2);
  });

  it("ends after the last try", async () => {
    const w = world({ job: () => fails(5000) });
    await apply(w, { submissionMode, backoffLimit: 1 });
    const { status } = await w.untilPhase("Failed");
    expect(status).toMatchObject({ executionAttempt: 1, failed: 2, reason: "AppFailed" });
    await w.clock.advance(600_000);
    expect(w.submissions).toHaveLength(2);
  });

  it("stops and frees everything when it is suspended, and runs anew when resumed", async () => {
    const scripts = [runsForEver, succeeds(5000)];
    const w = world({ job: () => scripts.shift()! });
    await apply(w, { submissionMode });
    await running(w);
    await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
    const suspended = await w.untilPhase("Suspended");
    expect(condition(suspended, "Suspended")?.status).toBe("True");
    expect(await w.list(pods)).toEqual([]);
    await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: false } });
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ executionAttempt: 1, failed: 0, succeeded: 1 });
  });

  it("deleted mid-run is stopped in Ray once and leaves nothing", async () => {
    const w = world({ job: () => runsForEver });
    await apply(w, { submissionMode });
    await running(w);
    await w.client.delete(rayJobs, "default", "demo");
    await w.until("gone", async () => (await w.job()) === undefined);
    expect(w.ray.requests.filter((request) => request.endsWith("/stop"))).toHaveLength(1);
    await w.until("cleaned up", async () => (await w.list(pods)).length === 0);
    expect([...(await w.list(rayClusters)), ...(await w.list(jobs)), ...(await w.list(services))]).toEqual([]);
  });

  it("past its deadline is stopped in Ray and fails", async () => {
    const w = world({ job: () => runsForEver });
    await apply(w, { submissionMode, activeDeadlineSeconds: 60, backoffLimit: 3 });
    const job = await w.untilPhase("Failed", "demo", 120_000);
    expect(job.status).toMatchObject({ reason: "DeadlineExceeded", executionAttempt: 0 });
    expect(condition(job, "Failed")?.reason).toBe("DeadlineExceeded");
    expect(w.ray.requests.some((request) => request.endsWith("/stop"))).toBe(true);
  });

  it("fails within seconds when its head is gone, and is not run again there", async () => {
    const w = world({ job: () => runsForEver });
    await apply(w, { submissionMode });
    await running(w);
    const head = await w.head();
    const at = w.clock.now();
    await w.client.delete(pods, "default", head.metadata.name, { gracePeriodSeconds: 0 });
    const job = await w.untilPhase("Failed");
    expect(w.clock.now() - at).toBeLessThan(15_000);
    expect(job.status?.reason).toBe("AppFailed");
    expect(["HeadPodLost", "RayJobLost"]).toContain(condition(job, "Failed")?.reason);
    expect(job.status?.message).toContain(head.metadata.name);
    expect(job.status?.jobStatus).toBe("FAILED");
    await w.clock.advance(120_000);
    expect(w.submissions).toHaveLength(1);
  });

  it("fails when Ray's container ended, and never counts on the session of one that was started in its place", async () => {
    const w = world({ job: () => runsForEver });
    await apply(w, { submissionMode });
    await running(w);
    await w.kubelet.restart((await w.head()).metadata.uid, { exitCode: 137, reason: "OOMKilled" });
    const job = await w.untilPhase("Failed", "demo", 60_000);
    // A sidecar's head is not started again.
    const reason = submissionMode === "SidecarMode" ? "HeadPodLost" : "RayJobLost";
    expect(condition(job, "Failed")?.reason).toBe(reason);
    expect(job.status?.message).toContain("OOMKilled");
    expect(w.submissions).toHaveLength(1);
  });

  it.each([
    ["its head's node is lost", (w: World, uid: string) => w.kubelet.lose(uid), "out of reach"],
    [
      "its head's node is lost, and said to be unknown",
      (w: World, uid: string) => w.kubelet.lose(uid, "unknown"),
      "out of reach",
    ],
    [
      "its head is evicted",
      (w: World, uid: string) => w.kubelet.end(uid, { exitCode: 137, podReason: "Evicted" }),
      "Evicted",
    ],
  ])("fails, saying so, when %s", async (_, happens, words) => {
    const w = world({ job: () => runsForEver });
    await apply(w, { submissionMode });
    await running(w);
    // In SidecarMode a job may run before its head is ready, and only of a Pod that was can Ready be taken away.
    await w.until("a ready head", async () => isReady(await w.head()));
    await happens(w, (await w.head()).metadata.uid);
    const job = await w.untilPhase("Failed", "demo", 60_000);
    expect(condition(job, "Failed")?.reason).toBe("HeadPodLost");
    expect(job.status?.message).toContain(words);
  });

  it("is not called Suspended while a Pod of it is stuck", async () => {
    const stuck = (pod: Pod) => pod.metadata.labels?.["ray.io/node-type"] === "worker";
    const w = world({ job: () => runsForEver, pod: (pod) => (stuck(pod) ? stuckTerminating : prompt) });
    await apply(w, { submissionMode });
    await running(w);
    await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
    await w.clock.advance(600_000);
    expect((await w.job())?.status?.jobDeploymentStatus).toBe("Suspending");
    for (const { metadata } of await w.list<Pod>(pods)) {
      await w.client.delete(pods, "default", metadata.name, { gracePeriodSeconds: 0 });
    }
    await w.untilPhase("Suspended", "demo", 60_000);
  });

  it("fails when its RayCluster is deleted by hand; the cluster is not built again", async () => {
    const w = world({ job: () => runsForEver });
    await apply(w, { submissionMode });
    await running(w);
    const [cluster] = await w.list<RayCluster>(rayClusters);
    await w.client.delete(rayClusters, "default", cluster!.metadata.name);
    const job = await w.untilPhase("Failed", "demo", 60_000);
    expect(condition(job, "Failed")?.reason).toMatch(/RayClusterLost|HeadPodLost/);
    await w.clock.advance(60_000);
    expect(await w.list(rayClusters)).toEqual([]);
  });

  it("goes on while its dashboard is silent for less than the limit", async () => {
    const w = world({ job: () => succeeds(400_000) });
    await apply(w, { submissionMode });
    await running(w);
    const fake = w.ray.heads.get((await w.head()).metadata.uid)!;
    for (const mood of ["hang", 500, "refuse", 403] as const) {
      fake.mood = mood;
      await w.clock.advance(60_000);
      expect((await w.job())?.status?.jobDeploymentStatus).toBe("Running");
      fake.mood = "well";
      await w.clock.advance(10_000);
    }
    const { status } = await w.untilPhase("Complete");
    expect(status?.jobStatus).toBe("SUCCEEDED");
  });

  it("fails when its dashboard stays silent", async () => {
    const w = world({ job: () => runsForEver });
    await apply(w, { submissionMode });
    await running(w);
    w.ray.heads.get((await w.head()).metadata.uid)!.mood = "hang";
    const { status } = await w.untilPhase("Failed", "demo", 400_000);
    expect(status).toMatchObject({ reason: "JobStatusCheckTimeoutExceeded", jobStatus: "FAILED" });
  });

  it("fails, naming the node, when its driver's node is dead for half a minute", async () => {
    let worker: Pod | undefined;
    const w = world({
      job: (_, head) => ({ ...runsForEver, node: [...head.nodes.keys()][1] }),
      pod: (pod) => {
        if (pod.metadata.labels?.["ray.io/node-type"] === "worker") worker ??= pod;
        return prompt;
      },
    });
    await apply(w, { submissionMode });
    await running(w);
    const head = w.ray.heads.get((await w.head()).metadata.uid)!;
    const node = [...head.nodes.keys()][1]!;
    expect(worker).toBeDefined();
    head.nodes.set(node, "DEAD");
    const job = await w.untilPhase("Failed", "demo", 90_000);
    expect(condition(job, "Failed")).toMatchObject({
      reason: "DriverNodeDead",
      message: expect.stringContaining(node),
    });
  });

  it("is deleted with everything of it some time after its end, if it says so", async () => {
    const w = world();
    await apply(w, { submissionMode, ttlSecondsAfterFinished: 60 });
    const done = await w.untilPhase("Complete");
    const [cluster] = await w.list<RayCluster>(rayClusters);
    expect(cluster?.metadata.name).toBe(done.status?.rayClusterName);
    const at = w.clock.now();
    await w.until("deleted", async () => (await w.list(rayClusters)).length === 0);
    expect(w.clock.now() - at).toBeGreaterThanOrEqual(59_000);
    expect(w.clock.now() - at).toBeLessThan(70_000);
  });

  it("keeps its cluster when nothing says that it should go", async () => {
    const w = world();
    await apply(w, { submissionMode, shutdownAfterJobFinishes: false });
    await w.untilPhase("Complete");
    await w.clock.advance(3_600_000);
    expect(await w.list(rayClusters)).toHaveLength(1);
  });
});

describe("a submitter", () => {
  it("that is killed mid-run does not harm the job", async () => {
    const w = world({ job: () => succeeds(60_000) });
    await apply(w);
    await running(w);
    const [submitter] = await w.submitterPods();
    await w.client.delete(pods, "default", submitter!.metadata.name, { gracePeriodSeconds: 0 });
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, failed: 0 });
    expect(w.submissions).toHaveLength(1);
  });

  it("whose Job is deleted mid-run does not harm the job either", async () => {
    const w = world({ job: () => succeeds(60_000) });
    await apply(w);
    await running(w);
    await w.client.delete(jobs, "default", "demo", { propagation: "Background" });
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0 });
    expect(w.submissions).toHaveLength(1);
  });

  it("that fails again and again after submitting is reported, and the job runs on", async () => {
    const w = world({ job: () => succeeds(120_000), submitter: () => ({ boot: 500, failsAfterSubmission: 3000 }) });
    await apply(w, { submitterConfig: { backoffLimit: 0 } });
    await running(w);
    await w.until("reported", async () => condition((await w.job())!, "SubmitterHealthy")?.status === "False");
    expect((await w.job())?.status?.jobDeploymentStatus).toBe("Running");
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, failed: 0 });
    expect(w.submissions).toHaveLength(1);
  });

  it("that never submits fails the job with its own last words", async () => {
    const w = world({ submitter: () => ({ boot: 500, failsEarly: true }) });
    await apply(w, { submitterConfig: { backoffLimit: 1 } });
    const job = await w.untilPhase("Failed", "demo", 600_000);
    expect(job.status).toMatchObject({ reason: "SubmissionFailed", failed: 1 });
    expect(condition(job, "Failed")?.reason).toBe("SubmissionFailed");
    // Never observed, so there is no status to tell.
    expect(job.status?.jobStatus ?? "").toBe("");
    expect(w.submissions).toEqual([]);
  });

  it("that never ends is waited for no longer than the grace period", async () => {
    const w = world({ submitter: () => ({ boot: 500, hangs: true }) });
    await apply(w);
    await w.until("SUCCEEDED in Ray", () =>
      [...w.ray.heads.values()].some(({ jobs: table }) =>
        [...table.values()].some(({ status }) => status === "SUCCEEDED"),
      ),
    );
    const at = w.clock.now();
    const { status } = await w.untilPhase("Complete");
    expect(w.clock.now() - at).toBeLessThan(320_000);
    expect(status?.jobStatus).toBe("SUCCEEDED");
  });
});

describe("a cluster that cannot start", () => {
  it("says, too, which worker it waits for, and why", async () => {
    const w = world({ pod: (pod) => (pod.metadata.labels?.["ray.io/node-type"] === "worker" ? badImage : prompt) });
    await apply(w, { preRunningDeadlineSeconds: 120 });
    await w.until("explained", async () => {
      const { message = "" } = condition((await w.job()) ?? rayJob(), "Started") ?? {};
      return /Worker Pod \S+ is not starting: .*ErrImagePull/.test(message);
    });
    const { status } = await w.untilPhase("Failed", "demo", 200_000);
    expect(status).toMatchObject({ reason: "PreRunningDeadlineExceeded" });
    expect(status?.message).toContain("ErrImagePull");
  });

  it("says why, and the deadline ends the wait", async () => {
    const w = world({ pod: (pod) => (pod.metadata.labels?.["ray.io/node-type"] === "head" ? badImage : prompt) });
    await apply(w, { activeDeadlineSeconds: 120 });
    await w.until("explained", async () => {
      const job = await w.job();
      return job !== undefined && condition(job, "Started")?.message.includes("ErrImagePull") === true;
    });
    const { status } = await w.untilPhase("Failed", "demo", 200_000);
    expect(status?.reason).toBe("DeadlineExceeded");
    expect(w.submissions).toEqual([]);
  });

  it("replaces a worker that fails, and the job starts", async () => {
    const w = world();
    let killed = false;
    await apply(w);
    await w.until("a worker runs", async () => {
      const worker = w.kubelet.running.find(({ metadata }) => metadata.labels?.["ray.io/node-type"] === "worker");
      if (worker && !killed) {
        killed = true;
        await w.kubelet.end(worker.metadata.uid, { exitCode: 1 });
      }
      return killed;
    });
    const { status } = await w.untilPhase("Complete");
    expect(status?.executionAttempt).toBe(0);
  });
});

it("two RayJobs at once do not get in each other's way", async () => {
  const w = world();
  w.start();
  await w.client.create(rayJobs, rayJob({}, "one"));
  await w.client.create(rayJobs, rayJob({ submissionMode: "HTTPMode" }, "two"));
  await w.untilPhase("Complete", "one");
  await w.untilPhase("Complete", "two");
  expect(w.submissions).toHaveLength(2);
});

it("the world's nodes and Ray's nodes have the same names", async () => {
  const w = world({ job: () => runsForEver });
  await apply(w);
  await running(w);
  const workers = w.kubelet.running.filter(({ metadata }) => metadata.labels?.["ray.io/node-type"] === "worker");
  const head = w.ray.heads.get((await w.head()).metadata.uid)!;
  expect([...head.nodes.keys()].slice(1).sort()).toEqual(workers.map(nodeId).sort());
});

it("dashboards that hang delay nobody else: a new job starts at once, an ended one is told of in time", async () => {
  const w = world({ job: ({ submission_id }) => (submission_id.startsWith("short") ? succeeds(60_000) : runsForEver) });
  w.start();
  const names = Array.from({ length: 24 }, (_, index) => `job-${index}`);
  for (const name of ["short", ...names]) await w.client.create(rayJobs, rayJob({}, name));
  await w.until("all RUNNING", async () =>
    (await w.list<RayJob>(rayJobs)).every(({ status }) => status?.jobStatus === "RUNNING"),
  );
  for (const head of w.ray.heads.values()) {
    if ([...head.jobs.keys()].some((id) => !id.startsWith("short"))) head.mood = "hang";
  }
  await w.clock.advance(20_000);
  await w.client.create(rayJobs, rayJob({}, "late"));
  const at = w.clock.now();
  await w.until("its RayCluster", async () => (await w.job("late"))?.status?.jobDeploymentStatus === "Initializing");
  expect(w.clock.now() - at).toBeLessThan(5000);
  const short = [...w.ray.heads.values()]
    .flatMap((head) => [...head.jobs.values()])
    .find(({ script }) => script.running === 60_000)!;
  const { status } = await w.untilPhase("Complete", "short");
  expect(status?.jobStatus).toBe("SUCCEEDED");
  expect(w.clock.now() - short.endTime!).toBeLessThan(10_000);
});
