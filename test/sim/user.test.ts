/** A user acts at every moment of a job's life: suspends, deletes, deletes what the job is made of. */
import { describe, expect, it } from "vitest";
import type { RayJob } from "../../src/api/rayjob.ts";
import {
  events,
  jobs,
  pods,
  type ResourceType,
  rayClusters,
  rayJobs,
  services,
} from "../../src/machinery/kube/resources.ts";
import { rayJob } from "../support/manifests.ts";
import { type Mood, succeeds } from "./fakeRay.ts";
import { World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

/** Events between the moments that are tried. */
const STRIDE = 4;
const MODES = ["K8sJobMode", "HTTPMode"] as const;

/** A job's life up to its `moment`-th event; undefined when it has ended before. */
async function upTo(moment: number, submissionMode: (typeof MODES)[number]): Promise<World | undefined> {
  const world = new World({ job: () => succeeds(3000) });
  worlds.push(world);
  world.start();
  await world.client.create(rayJobs, rayJob({ submissionMode }));
  for (let step = 0; step < moment; step++) {
    await world.clock.step();
    if ((await world.job())?.status?.jobDeploymentStatus === "Complete") {
      await world.close();
      return undefined;
    }
  }
  return world;
}

/** Calls `act` for worlds at each moment, a few events apart; returns how many there were. */
async function atEachMoment(mode: (typeof MODES)[number], act: (world: World, moment: number) => Promise<void>) {
  let count = 0;
  for (let moment = 0; ; moment += STRIDE) {
    const world = await upTo(moment, mode);
    if (!world) return count;
    await act(world, moment);
    await world.close();
    count++;
  }
}

const kinds: readonly ResourceType[] = [rayClusters, pods, services, jobs];
async function everything(world: World): Promise<string[]> {
  const all = await Promise.all(kinds.map((type) => world.list(type)));
  return all.flat().map(({ kind, metadata }) => `${kind} ${metadata.name}`);
}

const ended = (job: RayJob | undefined) => ["Complete", "Failed"].includes(job?.status?.jobDeploymentStatus ?? "");

describe.each(MODES)("in %s", (mode) => {
  it("a RayJob suspended at any moment lets go of everything, and runs to its end when resumed", async () => {
    const moments = await atEachMoment(mode, async (world, moment) => {
      await world.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
      await world.until(`suspended (moment ${moment})`, async () => {
        const job = await world.job();
        // The job may have ended in the same moment.
        return job?.status?.jobDeploymentStatus === "Suspended" || ended(job);
      });
      if (ended(await world.job())) return;
      expect((await everything(world)).filter((name) => !name.startsWith("Service"))).toEqual([]);
      const before = world.submissions.length;
      await world.clock.advance(60_000);
      expect(world.submissions.length).toBe(before);
      await world.client.patch(rayJobs, "default", "demo", { spec: { suspend: false } });
      const { status } = await world.untilPhase("Complete");
      expect(status).toMatchObject({ succeeded: 1, failed: 0, executionAttempt: status?.attempts?.at(-1)?.number });
      expect(world.submissions.length).toBe(before + 1);
    });
    expect(moments).toBeGreaterThan(10);
  });

  it("a RayJob deleted at any moment is gone soon, with all that was made for it", async () => {
    const moments = await atEachMoment(mode, async (world, moment) => {
      await world.client.delete(rayJobs, "default", "demo");
      await world.until(`gone (moment ${moment})`, async () => (await world.job()) === undefined, 90_000);
      await world.until("cleaned up", async () => (await everything(world)).length === 0, 90_000);
      await world.clock.advance(60_000);
      expect(await everything(world)).toEqual([]);
    });
    expect(moments).toBeGreaterThan(10);
  });

  it("a namesake made anew right after a deletion at any moment runs as a job of its own", async () => {
    await atEachMoment(mode, async (world, moment) => {
      const old = (await world.job())!.metadata.uid;
      await world.client.delete(rayJobs, "default", "demo");
      await world.until(`gone (moment ${moment})`, async () => (await world.job()) === undefined, 90_000);
      await world.client.create(rayJobs, rayJob({ submissionMode: mode }));
      const { metadata, status } = await world.untilPhase("Complete");
      expect(metadata.uid).not.toBe(old);
      expect(status).toMatchObject({ executionAttempt: 0, succeeded: 1, failed: 0 });
    });
  });

  it("a RayCluster deleted by hand at any moment costs the attempt, no more, and the next one succeeds", async () => {
    await atEachMoment(mode, async (world) => {
      const [cluster] = await world.list(rayClusters);
      if (!cluster) return;
      await world.client.patch(rayJobs, "default", "demo", { spec: { backoffLimit: 1 } });
      await world.client.delete(rayClusters, "default", cluster.metadata.name);
      const { status } = await world.untilPhase("Complete");
      expect(status?.jobStatus).toBe("SUCCEEDED");
      expect(status?.failed).toBeLessThanOrEqual(1);
      expect(status?.attempts?.length).toBeLessThanOrEqual(2);
    });
  });

  it("a head Pod force-deleted at any moment is replaced before the job is submitted, and ends the attempt after", async () => {
    await atEachMoment(mode, async (world) => {
      const head = await world.head();
      if (!head) return;
      await world.client.patch(rayJobs, "default", "demo", { spec: { backoffLimit: 1 } });
      await world.client.delete(pods, "default", head.metadata.name, { gracePeriodSeconds: 0 });
      const { status } = await world.untilPhase("Complete");
      expect(status?.failed).toBeLessThanOrEqual(1);
      // Never twice into one head, nor into the head that took its place within an attempt.
      const ids = world.submissions.map((submission) => submission.split(" ")[1]);
      expect(new Set(ids).size, world.submissions.join()).toBe(ids.length);
    });
  });

  it("a head whose Ray is restarted in place at any moment never runs the job twice", async () => {
    await atEachMoment(mode, async (world) => {
      const head = await world.head();
      if (!head) return;
      await world.client.patch(rayJobs, "default", "demo", { spec: { backoffLimit: 1 } });
      await world.kubelet.restart(head.metadata.uid, { exitCode: 137, reason: "OOMKilled" });
      const { status } = await world.untilPhase("Complete");
      expect(status?.failed).toBeLessThanOrEqual(1);
      const ids = world.submissions.map((submission) => submission.split(" ")[1]);
      expect(new Set(ids).size, world.submissions.join()).toBe(ids.length);
    });
  });

  it("a dashboard that answers nonsense for a while at any moment changes nothing", async () => {
    await atEachMoment(mode, async (world, moment) => {
      const moods: readonly Mood[] = [403, 500, "hang", "refuse", { slow: 4000 }];
      const heads = [...world.ray.heads.values()];
      for (const head of heads) head.mood = moods[(moment / STRIDE) % moods.length]!;
      await world.clock.advance(20_000);
      for (const head of heads) head.mood = "well";
      const { status } = await world.untilPhase("Complete");
      expect(status).toMatchObject({ jobStatus: "SUCCEEDED", failed: 0, executionAttempt: 0 });
    });
  });
});

it("a namesake with the same fixed jobId is not told what Ray said of its predecessor", async () => {
  const scripts = [succeeds(1000), succeeds(60_000)];
  const world = new World({ job: () => scripts.shift()! });
  worlds.push(world);
  world.start();
  await world.client.create(rayJobs, rayJob({ jobId: "fixed", shutdownAfterJobFinishes: false }));
  await world.untilPhase("Complete");
  await world.client.delete(rayJobs, "default", "demo");
  await world.until("gone", async () => (await world.job()) === undefined);
  await world.client.create(rayJobs, rayJob({ jobId: "fixed" }));
  await world.until("RUNNING", async () => {
    const jobStatus = (await world.job())?.status?.jobStatus ?? "";
    expect(["", "PENDING", "RUNNING"]).toContain(jobStatus);
    return jobStatus === "RUNNING";
  });
  expect((await world.untilPhase("Complete")).status?.jobStatus).toBe("SUCCEEDED");
});

it("a job's life is told in events", async () => {
  const world = (await upTo(0, "K8sJobMode"))!;
  await world.untilPhase("Complete");
  await world.clock.advance(30_000);
  const reasons = new Set((await world.list<{ reason: string } & RayJob>(events)).map(({ reason }) => reason));
  for (const reason of ["AttemptStarted", "CreatedRayCluster", "CreatedRayJobSubmitter", "DeletedRayCluster"]) {
    expect(reasons).toContain(reason);
  }
  expect((await world.events()).filter((event) => event.startsWith("Warning"))).toEqual([]);
});
