/** RayJobs on a RayCluster that somebody else made (clusterSelector): what its owner, and the users of it, see. */
import { describe, expect, it } from "vitest";
import type { Job } from "../../src/api/kubernetes.ts";
import { LABEL } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { jobs, pods, rayClusters, rayJobs, services } from "../../src/machinery/kube/resources.ts";
import { rayCluster, rayJob } from "../support/manifests.ts";
import { prompt, stuckTerminating } from "./fakeKubelet.ts";
import { fails, runsForEver, succeeds } from "./fakeRay.ts";
import { type Scripts, World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

const MODES = ["K8sJobMode", "HTTPMode"] as const;
const selecting = (spec: Partial<RayJobSpec> = {}, name = "demo"): RayJob =>
  rayJob(
    {
      rayClusterSpec: undefined,
      shutdownAfterJobFinishes: false,
      clusterSelector: { [LABEL.cluster]: "shared" },
      ...spec,
    },
    name,
  );

/** A world with an operator and a RayCluster "shared", and a RayJob that selects it. */
async function selected(spec: Partial<RayJobSpec> = {}, scripts: Scripts = {}) {
  const w = new World(scripts);
  worlds.push(w);
  const operator = w.start();
  await w.client.create(rayClusters, rayCluster("shared"));
  await w.client.create(rayJobs, selecting(spec));
  return { w, operator };
}

const status = async (w: World, name = "demo") => (await w.job(name))?.status;
const condition = (job: RayJob | undefined, type: string) => job?.status?.conditions?.find((one) => one.type === type);
const running = (w: World, name = "demo") =>
  w.until("RUNNING", async () => (await status(w, name))?.jobStatus === "RUNNING");
const gone = (w: World) => w.until("gone", async () => (await w.job()) === undefined);
const suspend = (w: World, value: boolean) => w.client.patch(rayJobs, "default", "demo", { spec: { suspend: value } });
const head = (w: World) => [...w.ray.heads.values()][0]!;
/** What Ray was told, beside questions, in order. */
const told = (w: World) => w.ray.requests.filter((request) => !request.startsWith("GET")).map(short);
const short = (request: string) => request.replace(/ \S+ \/api\/jobs/, " ");
const shared = async (w: World) => (await w.get<RayCluster>(rayClusters, "shared"))!;

describe.each(MODES)("a RayJob that selects a RayCluster, in %s", (submissionMode) => {
  it.each([
    ["succeeds", succeeds(5000), "Complete"],
    ["fails", fails(5000), "Failed"],
  ] as const)("and %s leaves the cluster exactly as it was", async (_, script, phase) => {
    const { w } = await selected(
      { submissionMode, shutdownAfterJobFinishes: true, ttlSecondsAfterFinished: 5 },
      { job: () => script },
    );
    await w.until("ready", async () => (await shared(w)).status?.state === "ready");
    const before = await shared(w);
    const job = await w.untilPhase(phase);
    expect(job.status).toMatchObject({ rayClusterName: "shared", attempts: [{ number: 0, ownsCluster: false }] });
    await w.clock.advance(600_000);
    const after = await shared(w);
    expect(after.metadata).toEqual({ ...before.metadata, resourceVersion: after.metadata.resourceVersion });
    expect(after.spec).toEqual(before.spec);
    expect(condition(await w.job(), "ResourcesReleased")?.status).toBe("True");
    expect((await w.list(services)).map(({ metadata }) => metadata.name)).toEqual(["shared-head-svc"]);
    const ofRay = (await w.list(pods)).filter(({ metadata }) => metadata.labels?.[LABEL.nodeType] !== undefined);
    expect(ofRay).toHaveLength(3);
    for (const pod of ofRay) expect(pod.metadata.labels).not.toHaveProperty(LABEL.rayJobUID);
  });

  it("costs few writes", async () => {
    const w = new World({});
    worlds.push(w);
    const { process } = w.start();
    await w.client.create(rayClusters, rayCluster("shared"));
    await w.until("ready", async () => (await shared(w)).status?.state === "ready");
    const before = process.writes.length;
    await w.client.create(rayJobs, selecting({ submissionMode }));
    await w.untilPhase("Complete");
    await w.clock.advance(120_000);
    const writes = process.writes.slice(before);
    expect(writes.length, writes.join("\n")).toBeLessThanOrEqual(submissionMode === "HTTPMode" ? 6 : 7);
  });

  it("waits for one that does not exist, says so once, and starts when it does", async () => {
    const w = new World({});
    worlds.push(w);
    const { process } = w.start();
    await w.client.create(rayJobs, selecting({ submissionMode }));
    await w.clock.advance(30_000);
    const writes = process.writes.length;
    await w.clock.advance(3_600_000);
    expect(process.writes.length).toBe(writes);
    expect(condition(await w.job(), "Started")).toMatchObject({
      status: "False",
      reason: "WaitingForCluster",
      message: expect.stringContaining("default/shared"),
    });
    const complaints = (await w.events()).filter((text) => text.includes("RayClusterNotFound"));
    expect(complaints).toHaveLength(1);
    await w.client.create(rayClusters, rayCluster("shared"));
    await w.untilPhase("Complete");
  });

  it("applied together with its cluster is never told that there is none", async () => {
    const { w } = await selected({ submissionMode });
    await w.untilPhase("Complete");
    expect((await w.events()).filter((text) => text.includes("RayClusterNotFound"))).toEqual([]);
  });

  it("fails in seconds when its owner deletes the cluster mid-run", async () => {
    const { w } = await selected({ submissionMode }, { job: () => runsForEver });
    await running(w);
    await w.client.delete(rayClusters, "default", "shared");
    const job = await w.untilPhase("Failed", "demo", 60_000);
    expect(condition(job, "Failed")).toMatchObject({ reason: "RayClusterLost" });
    expect(job.status?.message).toContain("shared, which clusterSelector names, was deleted");
    await w.clock.advance(120_000);
    expect(await w.list(rayClusters)).toEqual([]);
  });

  it("fails when the cluster's head is replaced: the new one is another session, and gets nothing", async () => {
    const { w } = await selected({ submissionMode }, { job: () => runsForEver });
    await running(w);
    const { metadata } = await w.head();
    await w.client.delete(pods, "default", metadata.name, { gracePeriodSeconds: 0 });
    const job = await w.untilPhase("Failed");
    expect(["RayJobLost", "HeadPodLost"]).toContain(condition(job, "Failed")?.reason);
    await w.clock.advance(300_000);
    expect(w.submissions).toHaveLength(1);
    expect((await shared(w)).status?.state).toBe("ready");
  });

  it("when deleted goes only after the submitter, the stop, and Ray's word", async () => {
    const slow = { ...prompt, terminate: 20_000 };
    const isRays = (pod: { metadata: { labels?: object } }) => LABEL.nodeType in (pod.metadata.labels ?? {});
    const { w } = await selected(
      { submissionMode },
      { job: () => runsForEver, pod: (pod) => (isRays(pod) ? prompt : slow) },
    );
    await running(w);
    let submittersAtStop = -1;
    w.ray.onChange(() => {
      if ([...head(w).jobs.values()][0]?.status !== "STOPPED" || submittersAtStop >= 0) return;
      const left = w.kube.storage.all("/pods").filter((pod) => !isRays(pod));
      submittersAtStop = left.length + w.kube.storage.all("batch/jobs").length;
    });
    await w.client.delete(rayJobs, "default", "demo");
    await gone(w);
    expect(submittersAtStop).toBe(0);
    expect([...head(w).jobs.values()].map((job) => job.status)).toEqual(["STOPPED"]);
    expect((await w.events()).filter((text) => text.includes("RayJobStop"))).toEqual([
      expect.stringContaining("Normal RayJobStopped"),
    ]);
    expect((await shared(w)).status?.state).toBe("ready");
  });

  it("when deleted while Ray is silent goes after a minute, and says that the job may still run", async () => {
    const { w } = await selected({ submissionMode }, { job: () => runsForEver });
    await running(w);
    head(w).mood = "hang";
    const start = w.clock.now();
    await w.client.delete(rayJobs, "default", "demo");
    await gone(w);
    expect(w.clock.now() - start).toBeGreaterThan(50_000);
    expect(w.clock.now() - start).toBeLessThanOrEqual(62_000);
    expect((await w.events()).join()).toMatch(/Warning RayJobStopUnconfirmed: [^,]*it may still run there/);
  });

  it("deleted while no operator was there is still stopped in Ray, however late", async () => {
    const { w, operator } = await selected({ submissionMode }, { job: () => runsForEver });
    await running(w);
    operator.process.kill();
    await w.client.delete(rayJobs, "default", "demo");
    await w.clock.advance(3_600_000);
    w.start();
    await gone(w);
    expect([...head(w).jobs.values()].map((job) => job.status)).toEqual(["STOPPED"]);
  });

  it("is suspended without shutdownAfterJobFinishes, and resumed under the same fixed id", async () => {
    const scripts = [runsForEver, succeeds(5000)];
    const { w } = await selected({ submissionMode, jobId: "mine" }, { job: () => scripts.shift()! });
    await running(w);
    await suspend(w, true);
    const suspended = await w.untilPhase("Suspended");
    expect(suspended.status?.attempts).toMatchObject([{ number: 0, jobStatus: "STOPPED" }]);
    expect((await shared(w)).status?.state).toBe("ready");
    expect(await w.list(jobs)).toEqual([]);
    await w.clock.advance(600_000);
    expect(told(w).filter((request) => request.includes("stop"))).toHaveLength(1);
    await suspend(w, false);
    const job = await w.untilPhase("Complete");
    expect(job.status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 1, jobId: "mine", failed: 0 });
    expect(told(w)).toContain("DELETE /mine");
    expect(w.submissions).toHaveLength(2);
  });

  it("is suspended though Ray never heard of it, and though Ray is silent", async () => {
    const { w } = await selected({ submissionMode }, { submitter: () => ({ boot: 3_600_000 }) });
    await w.untilPhase("Running");
    await suspend(w, true);
    await w.untilPhase("Suspended", "demo", 120_000);
    await suspend(w, false);
    await w.untilPhase("Running");
    head(w).mood = "refuse";
    await suspend(w, true);
    await w.untilPhase("Suspended", "demo", 180_000);
    expect((await w.events()).join()).toContain("RayJobStopUnconfirmed");
  });

  it("that passes its deadline is stopped in Ray, the submitter first; the cluster lives", async () => {
    const { w } = await selected({ submissionMode, activeDeadlineSeconds: 30 }, { job: () => runsForEver });
    const job = await w.untilPhase("Failed");
    expect(job.status).toMatchObject({ reason: "DeadlineExceeded", jobStatus: "STOPPED" });
    expect(told(w).at(-1)).toMatch(/^POST .*\/stop$/);
    await w.clock.advance(300_000);
    expect((await shared(w)).status?.state).toBe("ready");
    expect(w.submissions).toHaveLength(1);
  });

  it("does not take over a job that Ray has under its id already", async () => {
    const { w } = await selected({ submissionMode, jobId: "mine" }, { job: () => succeeds(5000) });
    await w.untilPhase("Complete");
    await w.client.create(rayJobs, selecting({ submissionMode, jobId: "mine" }, "other"));
    const job = await w.untilPhase("Failed", "other");
    expect(job.status).toMatchObject({ reason: "SubmissionFailed" });
    expect(job.status?.jobStatus).toBeUndefined();
    expect(job.status?.message).toContain("which this RayJob did not submit");
    expect(w.submissions).toHaveLength(1);
  });

  it("of two that want one id at the same time, one runs, and the other is told of it", async () => {
    const { w } = await selected({ submissionMode, jobId: "mine" }, { job: () => succeeds(5000) });
    await w.client.create(rayJobs, selecting({ submissionMode, jobId: "mine" }, "other"));
    await w.until("both over", async () =>
      (await Promise.all(["demo", "other"].map((name) => status(w, name)))).every((one) =>
        ["Complete", "Failed"].includes(one?.jobDeploymentStatus ?? ""),
      ),
    );
    const ends = await Promise.all(["demo", "other"].map(async (name) => (await status(w, name))?.jobDeploymentStatus));
    expect(ends.sort()).toEqual(["Complete", "Failed"]);
    expect(w.submissions).toHaveLength(1);
  });
});

it("the submitter is labelled with the attempt, the cluster is not", async () => {
  const { w } = await selected({}, { job: () => runsForEver });
  await running(w);
  const [submitter] = await w.list<Job>(jobs);
  expect(submitter?.metadata.labels).toMatchObject({ [LABEL.executionAttempt]: "0" });
  expect(submitter?.spec?.template.spec?.containers[0]?.image).toBe("rayproject/ray:2.56.0");
});

it("a submitter Pod that does not go keeps the finalizer for a minute at most, and the stop is sent in that time", async () => {
  const isRays = (pod: Stored) => LABEL.nodeType in (pod.metadata.labels ?? {});
  const { w } = await selected({}, { job: () => runsForEver, pod: (pod) => (isRays(pod) ? prompt : stuckTerminating) });
  await running(w);
  const start = w.clock.now();
  await w.client.delete(rayJobs, "default", "demo");
  await gone(w);
  expect(w.clock.now() - start).toBeLessThanOrEqual(62_000);
  expect([...head(w).jobs.values()].map((job) => job.status)).toEqual(["STOPPED"]);
});

it("a failed job is not retried, whatever an edit says meanwhile", async () => {
  const { w } = await selected({}, { job: () => fails(20_000) });
  await running(w);
  await w.client.patch(rayJobs, "default", "demo", { spec: { backoffLimit: 3 } });
  const job = await w.untilPhase("Failed");
  expect(job.status).toMatchObject({ executionAttempt: 0, failed: 1 });
});

it("two RayJobs share one cluster, and the end of one is none of the other's", async () => {
  const { w } = await selected({}, { job: (request) => (request.entrypoint === "long" ? runsForEver : fails(5000)) });
  await w.client.create(rayJobs, selecting({ submissionMode: "HTTPMode", entrypoint: "long" }, "other"));
  await w.untilPhase("Failed");
  await running(w, "other");
  await w.client.delete(rayJobs, "default", "demo");
  await gone(w);
  await w.clock.advance(300_000);
  expect((await status(w, "other"))?.jobStatus).toBe("RUNNING");
});

it("a RayJob with a given-up job in Ray asks Ray to stop it when it is deleted", async () => {
  const { w } = await selected({}, { job: () => runsForEver });
  await running(w);
  head(w).mood = "hang";
  const job = await w.untilPhase("Failed");
  expect(job.status?.reason).toBe("JobStatusCheckTimeoutExceeded");
  head(w).mood = "well";
  await w.client.delete(rayJobs, "default", "demo");
  await gone(w);
  expect([...head(w).jobs.values()].map(({ status: says }) => says)).toEqual(["STOPPED"]);
});

it("suspended while Ray was silent, and then deleted, has its job stopped in Ray after all", async () => {
  const { w } = await selected({}, { job: () => runsForEver });
  await running(w);
  head(w).mood = "refuse";
  await suspend(w, true);
  await w.untilPhase("Suspended");
  head(w).mood = "well";
  await w.client.delete(rayJobs, "default", "demo");
  await gone(w);
  expect([...head(w).jobs.values()].map(({ status: says }) => says)).toEqual(["STOPPED"]);
});

it("a suspended selected cluster is named as what the job waits for", async () => {
  const { w } = await selected();
  await w.untilPhase("Complete");
  await w.client.patch(rayClusters, "default", "shared", { spec: { suspend: true } });
  await w.client.create(rayJobs, selecting({}, "other"));
  await w.until("told", async () => condition(await w.job("other"), "Started")?.message.includes("suspended") === true);
  await w.client.patch(rayClusters, "default", "shared", { spec: { suspend: false } });
  await w.untilPhase("Complete", "other");
});
