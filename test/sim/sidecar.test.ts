/** SidecarMode: the submitter is a container of the head Pod, and nobody waits for the workers. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import { LABEL, NODE_TYPE, SUBMITTER_CONTAINER } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { configFrom } from "../../src/config.ts";
import { jobs, pods, rayClusters, rayJobs } from "../../src/machinery/kube/resources.ts";
import { clusterSpec, rayJob } from "../support/manifests.ts";
import { type PodBehaviour, prompt } from "./fakeKubelet.ts";
import { fails, runsForEver, succeeds } from "./fakeRay.ts";
import { diligent, type SubmitterScript } from "./fakeSubmitter.ts";
import type { World } from "./world.ts";
import { worldMaker } from "./worlds.ts";

const world = worldMaker();

const RESTARTS = configFrom({
  flags: { "enable-leader-election": "false", "feature-gates": "SidecarSubmitterRestart=true" },
});

async function apply(w: World, spec: Parameters<typeof rayJob>[0] = {}, gate: "on" | "off" = "off") {
  const running = w.start(gate === "on" ? { config: RESTARTS } : {});
  await w.client.create(rayJobs, rayJob({ submissionMode: "SidecarMode", ...spec }));
  return running;
}

const condition = (object: RayJob | RayCluster | undefined, type: string) =>
  (object?.status?.conditions as { type: string; status: string; reason: string; message: string }[] | undefined)?.find(
    (one) => one.type === type,
  );
const running = (w: World) => w.until("RUNNING", async () => (await w.job())?.status?.jobStatus === "RUNNING");
const sidecar = (pod: Pod) => pod.status?.containerStatuses?.find(({ name }) => name === SUBMITTER_CONTAINER);
const exits = async (w: World, exitCode: number) =>
  w.kubelet.endContainer((await w.head()).metadata.uid, SUBMITTER_CONTAINER, { exitCode });
const sidecarEnded = (w: World) =>
  w.until("the sidecar's end", async () => sidecar(await w.head())?.state?.terminated !== undefined);

const isHead = ({ metadata }: Stored<Pod>) => metadata.labels?.[LABEL.nodeType] === NODE_TYPE.head;
/** Workers that no node takes for so long. */
const workersAfter =
  (schedule: number) =>
  (pod: Stored<Pod>): PodBehaviour =>
    isHead(pod) ? prompt : { ...prompt, schedule };
const NEVER = Number.POSITIVE_INFINITY;

describe("the cluster of a RayJob in SidecarMode", () => {
  it("has the submitter in its head Pod, which is never started again, and no Job", async () => {
    const w = world();
    await apply(w);
    await running(w);
    const [cluster] = await w.list<RayCluster>(rayClusters);
    expect(cluster?.metadata.annotations).toMatchObject({ "ray.io/disable-provisioned-head-restart": "true" });
    expect(cluster?.metadata.labels).toMatchObject({ "ray.io/job-submission-mode": "SidecarMode" });
    const { spec } = await w.head();
    expect(spec?.restartPolicy).toBe("Never");
    expect(spec?.containers.map(({ name, image, restartPolicy }) => [name, image, restartPolicy])).toEqual([
      ["ray-head", "rayproject/ray:2.56.0", undefined],
      [SUBMITTER_CONTAINER, "rayproject/ray:2.56.0", undefined],
    ]);
    expect(await w.list(jobs)).toEqual([]);
  });

  it("has no head before it is journalled that it may submit", async () => {
    const w = world();
    const journalled: unknown[] = [];
    w.kube.storage.listen(({ resource, type }) => {
      if (resource !== "/pods" || type !== "ADDED" || journalled.length > 0) return;
      const [job] = w.kube.storage.all("ray.io/rayjobs") as unknown as RayJob[];
      journalled.push(job?.status?.attempts?.[0]?.submissionStartTime);
    });
    await apply(w);
    await running(w);
    expect(journalled).toEqual([expect.any(String)]);
    const head = await w.head();
    expect((await w.job())?.status?.attempts?.[0]).toMatchObject({
      headPodUID: head.metadata.uid,
      raySession: w.ray.heads.get(head.metadata.uid)?.session,
    });
  });

  it.each([
    // One more than in HTTPMode: the submission has begun, which is in the journal before the head is made.
    ["the least, where the workers are ready before the job, and the log is complete when Ray's end is seen", 3000, 16],
    ["one more, where the workers come while the job runs: the cluster's status is copied once more", 500, 17],
  ])("costs few writes: %s", async (_, dashboard, writes) => {
    const w = world({ dashboard });
    const { process } = await apply(w);
    await w.untilPhase("Complete");
    await w.clock.advance(120_000);
    expect(process.writes.length, process.writes.join("\n")).toBe(writes);
  });

  it("stays ready, and its head too, when the sidecar's end has made the head Pod not Ready", async () => {
    const w = world({ pod: workersAfter(60_000) });
    await apply(w, { shutdownAfterJobFinishes: false });
    await w.untilPhase("Complete");
    const name = (await w.job())!.status!.rayClusterName!;
    expect((await w.head()).status?.conditions).toContainEqual(
      expect.objectContaining({ type: "Ready", status: "False" }),
    );
    // Workers that come after the sidecar's end complete the cluster as any.
    await w.until("ready", async () => (await w.get<RayCluster>(rayClusters, name))?.status?.state === "ready");
    const cluster = await w.get<RayCluster>(rayClusters, name);
    expect(condition(cluster, "HeadPodReady")).toMatchObject({ status: "True", reason: "HeadPodRunningAndReady" });
    expect(condition(cluster, "ReplicaFailure")).toBeUndefined();
  });

  it("is told nothing of the sidecar's end", async () => {
    const w = world({ job: () => succeeds(600_000) });
    const { process } = await apply(w);
    await running(w);
    await w.clock.advance(60_000);
    const before = process.writes.filter((write) => write.includes("rayclusters"));
    await exits(w, 1);
    await w.clock.advance(60_000);
    expect(process.writes.filter((write) => write.includes("rayclusters"))).toEqual(before);
  });
});

describe("while no node takes the workers", () => {
  it.each([
    ["Complete", "SUCCEEDED", succeeds(3000), undefined],
    ["Failed", "FAILED", fails(3000), "AppFailed"],
  ] as const)("a job that ends makes the RayJob %s", async (phase, jobStatus, script, reason) => {
    const w = world({ pod: workersAfter(NEVER), job: () => script });
    await apply(w);
    const { status } = await w.untilPhase(phase, "demo", 60_000);
    expect(status).toMatchObject({ jobStatus });
    expect(status?.reason).toBe(reason);
    await w.until("cleaned up", async () => (await w.list(pods)).length === 0);
  });

  it("a submitter that cannot do its work fails the attempt within seconds, and says how it ended", async () => {
    const w = world({ pod: workersAfter(NEVER), submitter: () => ({ ...diligent, failsEarly: true }) });
    await apply(w);
    const job = await w.untilPhase("Failed", "demo", 60_000);
    expect(job.status).toMatchObject({
      reason: "SubmissionFailed",
      message: "Ray head pod container ray-job-submitter terminated with exit code 1: Error",
    });
    expect(job.status?.jobStatus).toBeUndefined();
    expect(condition(job, "Failed")?.reason).toBe("SubmissionFailed");
    expect(w.submissions).toEqual([]);
  });

  it("a job that runs is Running", async () => {
    const w = world({ pod: workersAfter(NEVER), job: () => runsForEver });
    await apply(w, { preRunningDeadlineSeconds: 60 });
    await running(w);
    await w.clock.advance(600_000);
    expect((await w.job())?.status).toMatchObject({ jobDeploymentStatus: "Running", jobStatus: "RUNNING" });
  });
});

describe("a sidecar that ends while its job runs", () => {
  it.each([0, 1, 137])("with %i loses nothing: the job goes on, and is followed by nobody", async (exitCode) => {
    const w = world({ job: () => succeeds(60_000) });
    await apply(w);
    await running(w);
    const head = await w.head();
    await exits(w, exitCode);
    await w.until("noticed", async () => condition(await w.job(), "SubmitterHealthy")?.status === "False");
    await w.clock.advance(20_000);
    const job = await w.job();
    expect(job?.status).toMatchObject({ jobDeploymentStatus: "Running", jobStatus: "RUNNING" });
    expect(condition(job, "SubmitterHealthy")?.reason).toBe(exitCode === 0 ? "Finished" : "ContainerExited");
    if (exitCode !== 0) expect(condition(job, "SubmitterHealthy")?.message).toContain(`exit code ${exitCode}: Error`);
    expect((await w.head()).metadata.uid).toBe(head.metadata.uid);
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, failed: 0 });
    expect(w.submissions).toHaveLength(1);
    expect((await w.events()).filter((event) => event.includes("SubmitterLost"))).toHaveLength(1);
  });

  it("and whose job then fails, fails with Ray's word", async () => {
    const w = world({ job: () => fails(30_000, "exit code 3") });
    await apply(w);
    await running(w);
    await exits(w, 1);
    expect((await w.untilPhase("Failed")).status).toMatchObject({ reason: "AppFailed", message: "exit code 3" });
  });
});

describe("a job that has ended", () => {
  it("waits for its sidecar to finish the log, for the grace period at most", async () => {
    const w = world({ job: () => succeeds(5000), submitter: () => ({ ...diligent, hangs: true }) });
    await apply(w);
    await w.until("SUCCEEDED", async () => (await w.job())?.status?.jobStatus === "SUCCEEDED");
    const at = w.clock.now();
    const job = await w.untilPhase("Complete");
    expect(w.clock.now() - at).toBeGreaterThan(290_000);
    expect(w.clock.now() - at).toBeLessThanOrEqual(301_000);
    expect(condition(job, "SubmitterHealthy")).toMatchObject({ status: "False", reason: "Following" });
    expect(job.status?.reason).toBeUndefined();
  });

  it("is Complete when its sidecar has done its work", async () => {
    const w = world();
    await apply(w);
    const job = await w.untilPhase("Complete");
    expect(condition(job, "SubmitterHealthy")).toMatchObject({ status: "True", reason: "Finished" });
  });
});

describe("a sidecar's head", () => {
  it("that is deleted is not replaced: the attempt fails, and the next has a cluster of its own", async () => {
    const scripts = [runsForEver, succeeds(3000)];
    const w = world({ job: () => scripts.shift()! });
    await apply(w, { backoffLimit: 1 });
    await running(w);
    const head = await w.head();
    const cluster = (await w.job())?.status?.rayClusterName;
    await w.client.delete(pods, "default", head.metadata.name, { gracePeriodSeconds: 0 });
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ executionAttempt: 1, failed: 1, succeeded: 1 });
    expect(status?.rayClusterName).not.toBe(cluster);
    expect(new Set(w.submissions.map((submission) => submission.split(" ")[0])).size).toBe(2);
  });

  it("may have had the job, so that a cluster deleted meanwhile is not made anew", async () => {
    const w = world({ dashboard: 5000, job: () => runsForEver });
    await apply(w);
    await w.until("a submission", () => w.submissions.length > 0);
    const { metadata } = (await w.list<RayCluster>(rayClusters))[0]!;
    await w.client.delete(rayClusters, "default", metadata.name);
    const job = await w.untilPhase("Failed", "demo", 30_000);
    expect(condition(job, "Failed")?.reason).toBe("RayClusterLost");
    expect(w.submissions).toHaveLength(1);
  });

  it("that is lost before its dashboard answered fails the attempt at once", async () => {
    const w = world({ dashboard: NEVER });
    await apply(w);
    await w.until("a head", async () => (await w.head())?.status?.phase === "Running");
    const { uid } = (await w.head()).metadata;
    await w.kubelet.end(uid, { exitCode: 137, podReason: "Evicted" });
    const job = await w.untilPhase("Failed", "demo", 30_000);
    expect(condition(job, "Failed")?.reason).toBe("HeadPodLost");
    expect(job.status?.message).toContain("Evicted");
    expect(job.status?.reason).toBe("AppFailed");
  });

  it("whose dashboard never answers ends by the status-check timer", async () => {
    const w = world({ dashboard: NEVER });
    await apply(w);
    const job = await w.untilPhase("Failed", "demo", 600_000);
    expect(job.status).toMatchObject({ reason: "JobStatusCheckTimeoutExceeded" });
    // It might still come up, and submit what was given up.
    await w.until("cleaned up", async () => (await w.list(pods)).length === 0);
  });
});

describe("what is given up before Ray had the job is never submitted afterwards", () => {
  it.each([
    ["activeDeadlineSeconds", "DeadlineExceeded"],
    ["preRunningDeadlineSeconds", "PreRunningDeadlineExceeded"],
  ])("at %s, though the cluster was to be kept", async (field, reason) => {
    const slow = (pod: Stored<Pod>) => (isHead(pod) ? { ...prompt, schedule: 60_000 } : prompt);
    const w = world({ pod: slow });
    await apply(w, { [field]: 20, shutdownAfterJobFinishes: false });
    const { status } = await w.untilPhase("Failed", "demo", 60_000);
    expect(status?.reason).toBe(reason);
    await w.clock.advance(300_000);
    expect(w.submissions).toEqual([]);
    expect(await w.list(rayClusters)).toEqual([]);
  });

  it("while a cluster whose job ran is kept as asked", async () => {
    const w = world({ job: () => runsForEver });
    await apply(w, { activeDeadlineSeconds: 60, shutdownAfterJobFinishes: false });
    const { status } = await w.untilPhase("Failed", "demo", 120_000);
    expect(status).toMatchObject({ reason: "DeadlineExceeded", jobStatus: "STOPPED" });
    await sidecarEnded(w);
    await w.clock.advance(300_000);
    expect(await w.list(rayClusters)).toHaveLength(1);
  });
});

it("a cluster that lost its head before Ray had the job is kept as asked, to be looked at", async () => {
  const w = world({ dashboard: NEVER });
  await apply(w, { shutdownAfterJobFinishes: false });
  await w.until("a head", async () => (await w.head())?.status?.phase === "Running");
  await w.kubelet.restart((await w.head()).metadata.uid, { exitCode: 1, reason: "Error" });
  const job = await w.untilPhase("Failed", "demo", 30_000);
  expect(condition(job, "Failed")?.reason).toBe("HeadPodLost");
  await w.clock.advance(300_000);
  expect(await w.list(rayClusters)).toHaveLength(1);
});

describe("an operator that was away", () => {
  it.each(["activeDeadlineSeconds", "preRunningDeadlineSeconds"])(
    "learns of a job's success before it holds %s against it",
    async (field) => {
      const w = world({ job: () => succeeds(5000) });
      const { process } = await apply(w, { [field]: 60 });
      await w.until("a head", async () => (await w.head()) !== undefined);
      process.kill();
      await w.clock.advance(3_600_000);
      w.start();
      expect((await w.untilPhase("Complete", "demo", 60_000)).status).toMatchObject({ jobStatus: "SUCCEEDED" });
      expect(w.submissions).toHaveLength(1);
    },
  );

  it("learns of a job's success before it suspends it", async () => {
    const w = world({ job: () => succeeds(5000) });
    const { process } = await apply(w);
    await w.until("a head", async () => (await w.head()) !== undefined);
    process.kill();
    await w.clock.advance(60_000);
    await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
    w.start();
    expect((await w.untilPhase("Complete", "demo", 60_000)).status).toMatchObject({ jobStatus: "SUCCEEDED" });
  });

  it("asks Ray to stop the job of a RayJob that was deleted meanwhile", async () => {
    const w = world({ job: () => runsForEver });
    const { process } = await apply(w);
    await w.until("a head", async () => (await w.head()) !== undefined);
    process.kill();
    await w.clock.advance(60_000);
    await w.client.delete(rayJobs, "default", "demo");
    w.start();
    await w.until("gone", async () => (await w.job()) === undefined);
    expect(w.ray.requests.filter((request) => request.endsWith("/stop"))).toHaveLength(1);
  });
});

it("suspended while it starts, it leaves nothing, and runs once when it is resumed", async () => {
  const w = world({ pod: workersAfter(NEVER) });
  await apply(w);
  await w.until("a head", async () => (await w.head()) !== undefined);
  await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
  await w.untilPhase("Suspended");
  expect(await w.list(pods)).toEqual([]);
  await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: false } });
  expect((await w.untilPhase("Complete")).status).toMatchObject({ executionAttempt: 1, succeeded: 1 });
});

describe("with SidecarSubmitterRestart", () => {
  it("a sidecar that is killed is started again and follows on, and the job is the same", async () => {
    const w = world({ job: () => succeeds(60_000) });
    await apply(w, {}, "on");
    await running(w);
    expect((await w.head()).spec).toMatchObject({
      restartPolicy: "Never",
      containers: [{ name: "ray-head" }, { name: SUBMITTER_CONTAINER, restartPolicy: "OnFailure" }],
    });
    const { jobId } = (await w.job())!.status!;
    await exits(w, 137);
    await w.until("restarted", async () => sidecar(await w.head())?.restartCount === 1);
    const job = await w.untilPhase("Complete");
    expect(job.status).toMatchObject({ jobId, jobStatus: "SUCCEEDED", executionAttempt: 0 });
    expect(condition(job, "SubmitterHealthy")).toMatchObject({ status: "True", reason: "Finished" });
    expect(w.submissions).toHaveLength(1);
    expect((await w.events()).filter((event) => event.includes("SubmitterLost"))).toEqual([]);
  });

  it("a sidecar that never hands its job over fails the attempt after two restarts, and its cluster goes", async () => {
    let tries = 0;
    const submitter = (): SubmitterScript => ({ ...diligent, failsEarly: ++tries > 0 });
    const w = world({ submitter });
    await apply(w, { shutdownAfterJobFinishes: false }, "on");
    const job = await w.untilPhase("Failed", "demo", 60_000);
    expect(job.status).toMatchObject({ reason: "SubmissionFailed" });
    expect(job.status?.message).toMatch(
      /^Ray head pod submitter container ray-job-submitter terminated after exceeding/,
    );
    expect(condition(job, "SubmitterHealthy")?.reason).toBe("RestartLimit");
    expect(tries).toBeGreaterThanOrEqual(4);
    await w.until("cleaned up", async () => (await w.list(pods)).length === 0);
    expect(w.submissions).toEqual([]);
  });

  it("a sidecar that hands its job over at the last restart is in time", async () => {
    let tries = 0;
    const w = world({ submitter: () => ({ ...diligent, failsEarly: ++tries < 3 }) });
    await apply(w, {}, "on");
    expect((await w.untilPhase("Complete")).status).toMatchObject({ jobStatus: "SUCCEEDED" });
    expect(tries).toBe(3);
  });

  it("a sidecar over its limit costs a job that Ray runs nothing", async () => {
    const w = world({
      job: () => succeeds(60_000),
      submitter: () => ({ ...diligent, failsAfterSubmission: 3000 }),
    });
    await apply(w, {}, "on");
    await w.until(
      "over the limit",
      async () => condition(await w.job(), "SubmitterHealthy")?.reason === "RestartLimit",
    );
    expect((await w.job())?.status).toMatchObject({ jobDeploymentStatus: "Running", jobStatus: "RUNNING" });
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", failed: 0 });
    expect(w.submissions).toHaveLength(1);
    expect((await w.events()).filter((event) => event.includes("SubmitterLost"))).toHaveLength(1);
  });

  it("a Ray that is too old for it is warned of once an attempt", async () => {
    const w = world();
    await apply(w, { rayClusterSpec: { ...clusterSpec(), rayVersion: "2.53.0" } }, "on");
    await w.untilPhase("Complete");
    expect((await w.events()).filter((event) => event.startsWith("Warning OldRayVersion"))).toHaveLength(1);
  });

  it("a Ray that is new enough is not warned of", async () => {
    const w = world();
    await apply(w, {}, "on");
    await w.untilPhase("Complete");
    expect((await w.events()).filter((event) => event.startsWith("Warning"))).toEqual([]);
  });
});
