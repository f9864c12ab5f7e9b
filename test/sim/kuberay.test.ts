/**
 * What KubeRay's own tests hold it to, where no other test here says it: a RayJob that ran there behaves the same here.
 * What we do otherwise on purpose is in docs/differences.md.
 */
import { describe, expect, it } from "vitest";
import type { Job, Pod } from "../../src/api/kubernetes.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { DeletionPolicy, RayJobSpec, SubmissionMode } from "../../src/api/rayjob.ts";
import { jobs, pods, rayClusters, rayJobs, services } from "../../src/machinery/kube/resources.ts";
import type { KubeRequest } from "../../src/machinery/kube/transport.ts";
import { rayJob } from "../support/manifests.ts";
import { fails, runsForEver, succeeds } from "./fakeRay.ts";
import { diligent } from "./fakeSubmitter.ts";
import type { Fate } from "./process.ts";
import { type Scripts, World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const worlds = closedAfterEach();

async function living(spec: Partial<RayJobSpec> = {}, scripts: Scripts = {}, fate?: Fate) {
  const w = new World({ job: () => runsForEver, ...scripts });
  worlds.push(w);
  const running = w.start({ fate });
  await w.client.create(rayJobs, rayJob(spec));
  return { w, ...running };
}

const edit = (w: World, spec: Partial<RayJobSpec>) => w.client.patch(rayJobs, "default", "demo", { spec });
const running = (w: World) => w.until("RUNNING", async () => (await w.job())?.status?.jobStatus === "RUNNING");
const count = async (w: World) => ({
  clusters: (await w.list(rayClusters)).length,
  jobs: (await w.list(jobs)).length,
});
const rayOf = async (w: World) => w.ray.heads.get((await w.head()).metadata.uid)!;
const kept = { shutdownAfterJobFinishes: false };

const MODES: readonly SubmissionMode[] = ["K8sJobMode", "HTTPMode", "SidecarMode"];
describe.each(MODES)("a RayJob in %s", (submissionMode) => {
  const submitters = submissionMode === "K8sJobMode" ? 1 : 0;

  it("has its head Service while it runs, Ray's own times at the end, and keeps its submitter when the cluster goes", async () => {
    const { w } = await living({ submissionMode }, { job: () => succeeds() });
    await running(w);
    expect((await w.list(services)).map(({ metadata }) => metadata.name)).toContain("demo-head-svc");
    const { status } = await w.untilPhase("Complete");
    expect(Date.parse(status?.rayJobInfo?.startTime ?? "")).toBeLessThan(Date.parse(status?.rayJobInfo?.endTime ?? ""));
    await w.until("the cluster gone", async () => (await count(w)).clusters === 0);
    await w.clock.advance(MINUTE);
    expect(await count(w)).toEqual({ clusters: 0, jobs: submitters });
  });

  it("that has ended is not suspended any more", async () => {
    const { w } = await living({ submissionMode }, { job: () => succeeds() });
    await w.untilPhase("Complete");
    await edit(w, { suspend: true });
    await w.clock.advance(MINUTE);
    expect((await w.job())?.status).toMatchObject({ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" });
  });

  it("that fails and keeps its cluster takes everything along when it is deleted", async () => {
    const { w } = await living({ submissionMode, ...kept }, { job: () => fails() });
    const { status } = await w.untilPhase("Failed");
    expect(status).toMatchObject({ jobStatus: "FAILED", reason: "AppFailed" });
    await w.clock.advance(MINUTE);
    expect(await count(w)).toEqual({ clusters: 1, jobs: submitters });
    await w.client.delete(rayJobs, "default", "demo");
    await w.until("gone", async () => (await w.job()) === undefined, MINUTE);
    await w.until("nothing left", async () => (await w.list(pods)).length === 0, MINUTE);
    expect(await count(w)).toEqual({ clusters: 0, jobs: 0 });
  });

  it("whose job somebody stops in Ray is Complete", async () => {
    const { w } = await living({ submissionMode });
    await running(w);
    const ray = await rayOf(w);
    for (const job of ray.jobs.values()) ray.end(job, "STOPPED");
    const { status } = await w.untilPhase("Complete", "demo", MINUTE);
    expect(status).toMatchObject({ jobStatus: "STOPPED", succeeded: 0, failed: 0 });
    expect(status?.reason).toBeUndefined();
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: "Failed", status: "True", reason: "ApplicationStopped" }),
    );
    expect(await w.events()).toContainEqual(expect.stringMatching(/^Normal AttemptStopped: /));
  });

  it("that fails each time is run three times with backoffLimit 2", async () => {
    const { w } = await living({ submissionMode, backoffLimit: 2 }, { job: () => fails() });
    const { status } = await w.untilPhase("Failed");
    expect(status).toMatchObject({ reason: "AppFailed", failed: 3, succeeded: 0 });
    expect(w.submissions).toHaveLength(3);
    // The submitter itself did its work each time, and is made anew for each attempt.
    const all = await w.list<Job>(jobs);
    expect(all.map((job) => [job.status?.succeeded ?? 0, job.status?.failed ?? 0])).toEqual(submitters ? [[1, 0]] : []);
  });
});

describe("a submitter that fails", () => {
  const early: Scripts = { submitter: () => ({ ...diligent, failsEarly: true }) };

  it.each([
    [0, 1],
    [2, 3],
  ])(
    "with backoffLimit %i fails the RayJob %i times; the cluster goes, and the Kubernetes Job stays",
    async (limit, failed) => {
      const { w } = await living({ backoffLimit: limit, submitterConfig: { backoffLimit: 0 } }, early);
      const { status } = await w.untilPhase("Failed");
      expect(status).toMatchObject({ reason: "SubmissionFailed", failed, succeeded: 0 });
      expect(status?.jobStatus ?? "").toBe("");
      await w.until("the cluster gone", async () => (await count(w)).clusters === 0);
      await w.clock.advance(MINUTE);
      expect(await count(w)).toEqual({ clusters: 0, jobs: 1 });
    },
  );
});

it("a head Pod that is deleted while the job runs is made anew in K8sJobMode, and the RayJob has failed", async () => {
  const { w } = await living(kept);
  await running(w);
  const [cluster] = await w.list<RayCluster>(rayClusters);
  expect(cluster?.metadata.labels).toMatchObject({ "ray.io/job-submission-mode": "K8sJobMode" });
  expect(cluster?.metadata.annotations ?? {}).not.toHaveProperty(["ray.io/disable-provisioned-head-restart"]);
  const { uid, name } = (await w.head()).metadata;
  await w.client.delete(pods, "default", name);
  expect((await w.untilPhase("Failed", "demo", MINUTE)).status?.reason).toBe("AppFailed");
  await w.until("another head", async () => ((await w.head())?.metadata.uid ?? uid) !== uid, MINUTE);
  await w.clock.advance(MINUTE);
  expect(w.submissions).toHaveLength(1);
});

it("what changes in the RayCluster's status while the job runs shows in the RayJob's", async () => {
  const { w } = await living();
  await running(w);
  const [{ metadata, spec }] = (await w.list<RayCluster>(rayClusters)) as [Stored<RayCluster>];
  const most = async () => (await w.job())?.status?.rayClusterStatus?.maxWorkerReplicas;
  expect(await most()).toBe(5);
  const workerGroupSpecs = spec.workerGroupSpecs?.map((group) => ({ ...group, maxReplicas: 7 }));
  await w.client.patch(rayClusters, "default", metadata.name, { spec: { workerGroupSpecs } });
  await w.until("copied", async () => (await most()) === 7, MINUTE);
});

describe("a job that missed a deadline set while it ran, with a rule for Failed after 10 s", () => {
  it.each<[DeletionPolicy, number, { clusters: number } | undefined]>([
    ["DeleteWorkers", 1, { clusters: 1 }],
    ["DeleteCluster", 0, { clusters: 0 }],
    ["DeleteSelf", 0, undefined],
    ["DeleteNone", 3, { clusters: 1 }],
  ])("keeps everything until then, and by %s %i Pods of the cluster after", async (policy, left, then) => {
    const condition = { jobDeploymentStatus: "Failed", ttlSeconds: 10 } as const;
    const { w } = await living({ ...kept, deletionStrategy: { deletionRules: [{ policy, condition }] } });
    const ofCluster = async () =>
      (await w.list<Pod>(pods)).filter(({ metadata }) => metadata.labels?.["ray.io/node-type"]).length;
    await running(w);
    await w.until("all Pods", async () => (await ofCluster()) === 3);
    await edit(w, { activeDeadlineSeconds: 1 });
    const { status } = await w.untilPhase("Failed", "demo", MINUTE);
    expect(status?.reason).toBe("DeadlineExceeded");
    const end = Date.parse(status!.endTime!);
    await w.clock.advance(end + 9 * SECOND - w.clock.now());
    expect([await ofCluster(), (await count(w)).clusters]).toEqual([3, 1]);
    await w.clock.advance(MINUTE);
    expect(await ofCluster()).toBe(left);
    if (then) expect(await count(w)).toMatchObject(then);
    expect((await w.job()) !== undefined).toBe(then !== undefined);
  });
});

it("in HTTPMode a dashboard that fails before it has the job, and comes to itself, gets the job; the timer is reset", async () => {
  const w = new World({ job: () => succeeds() });
  worlds.push(w);
  w.start();
  await w.client.create(rayJobs, rayJob({ submissionMode: "HTTPMode" }));
  await w.until("Running", async () => (await w.job())?.status?.jobDeploymentStatus === "Running");
  expect(w.submissions).toEqual([]);
  const ray = await rayOf(w);
  ray.mood = 503;
  const timer = async () => (await w.job())?.status?.jobStatusCheckFailureStartTime;
  await w.until("the timer to run", async () => (await timer()) !== undefined, MINUTE);
  await w.clock.advance(2 * MINUTE);
  ray.mood = "well";
  await w.until("the timer reset", async () => (await timer()) === undefined, MINUTE);
  const { status } = await w.untilPhase("Complete");
  expect(status).toMatchObject({ jobStatus: "SUCCEEDED", failed: 0 });
  expect(w.submissions).toHaveLength(1);
});

it.each(["a".repeat(48), "1st"])(
  "a RayJob whose name cannot be, %s, is told so once, and not looked at again",
  async (name) => {
    const w = new World();
    worlds.push(w);
    const { passes, process } = w.start();
    await w.client.create(rayJobs, { ...rayJob(), metadata: { name, namespace: "default" } });
    const { status } = await w.untilPhase("ValidationFailed", name, MINUTE);
    expect(status).toMatchObject({ reason: "ValidationFailed", endTime: expect.any(String) });
    expect(status?.message).toContain("RayJob name should be");
    await w.clock.advance(MINUTE);
    expect((await w.events()).filter((event) => event.startsWith("Warning InvalidRayJobMetadata"))).toHaveLength(1);
    const before = [passes.length, process.writes.length];
    await w.clock.advance(60 * MINUTE);
    expect([passes.length, process.writes.length]).toEqual(before);
    expect(await count(w)).toEqual({ clusters: 0, jobs: 0 });
  },
);

it("a RayJob that is suspended is not looked at again and again", async () => {
  const { w, passes } = await living({ suspend: true });
  await w.untilPhase("Suspended");
  await w.clock.advance(MINUTE);
  const before = passes.length;
  await w.clock.advance(60 * MINUTE);
  expect(passes.length).toBe(before);
});

describe("what the API server refuses", () => {
  const to = (method: string, plural: string, named?: string) => (request: KubeRequest) =>
    request.method === method &&
    new RegExp(`/${plural}(/|$)`).test(request.path) &&
    !request.path.endsWith("/status") &&
    (named === undefined || JSON.stringify(request.body).includes(named));
  const workersGo = {
    ...kept,
    deletionStrategy: {
      deletionRules: [{ policy: "DeleteWorkers", condition: { jobDeploymentStatus: "Complete" } }],
    },
  } satisfies Partial<RayJobSpec>;

  it.each([
    ["FailedToCreateRayCluster", "rayclusters", "PreRunningDeadlineExceeded"],
    ["FailedToCreateRayJobSubmitter", "jobs", "DeadlineExceeded"],
  ])("for good is told by %s, and ended by the deadline that counts then", async (reason, plural, ended) => {
    const refused = to("POST", plural);
    const spec = { preRunningDeadlineSeconds: 120, activeDeadlineSeconds: 600 };
    const { w } = await living(spec, {}, (request) => (refused(request) ? { status: 403 } : "answer"));
    const { status } = await w.untilPhase("Failed");
    expect(status).toMatchObject({ reason: ended, failed: 1 });
    expect(status?.jobStatus).toBeUndefined();
    expect((await w.events()).some((event) => event.startsWith(`Warning ${reason}: `))).toBe(true);
    await w.until("nothing left", async () => (await w.list(pods)).length === 0, MINUTE);
    expect(w.submissions).toEqual([]);
  });

  it.each<[string, (request: KubeRequest) => boolean, Partial<RayJobSpec>, boolean?]>([
    ["FailedToCreateRayCluster", to("POST", "rayclusters"), {}],
    ["FailedToCreateRayJobSubmitter", to("POST", "jobs"), {}],
    ["FailedToCreateService", to("POST", "services", '"demo-head-svc"'), {}],
    ["FailedToDeleteRayCluster", to("DELETE", "rayclusters"), {}],
    ["FailedToUpdateRayCluster", to("PATCH", "rayclusters"), workersGo],
    ["FailedToDeleteRayJobSubmitter", to("DELETE", "jobs"), {}, true],
  ])("once is told by %s, and done at the next try", async (reason, refused, spec, retried = false) => {
    const scripts = retried ? [fails(), succeeds()] : [succeeds()];
    let tries = 0;
    const { w } = await living(
      { ...spec, ...(retried && { backoffLimit: 1 }) },
      { job: () => scripts.shift()! },
      (request) => (refused(request) && tries++ === 0 ? { status: 403 } : "answer"),
    );
    const { status } = await w.untilPhase("Complete");
    await w.clock.advance(MINUTE);
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", failed: retried ? 1 : 0 });
    const told = (await w.events()).filter((event) => event.startsWith(`Warning ${reason}: `));
    expect(told).toEqual([expect.stringMatching(/default\/demo.*injected 403/)]);
    expect(tries).toBeGreaterThan(1);
  });
});
