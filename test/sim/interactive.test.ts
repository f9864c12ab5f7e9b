/** InteractiveMode: somebody uses the cluster and submits by hand, as `kubectl ray job submit` does. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJobSpec } from "../../src/api/rayjob.ts";
import { jobs, pods, rayClusters, rayJobs } from "../../src/machinery/kube/resources.ts";
import { rayJob } from "../support/manifests.ts";
import { fails, type JobScript, succeeds } from "./fakeRay.ts";
import { World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

async function living(spec: Partial<RayJobSpec> = {}, job: JobScript = succeeds(3000)): Promise<World> {
  const world = new World({ job: () => job });
  worlds.push(world);
  world.start();
  await world.client.create(rayJobs, rayJob({ submissionMode: "InteractiveMode", entrypoint: undefined, ...spec }));
  return world;
}

async function submit(world: World, id: string): Promise<void> {
  const head = world.ray.heads.get((await world.head()).metadata.uid)!;
  expect(world.ray.give(head, { entrypoint: "python mine.py", submission_id: id })).toBe(true);
}
const tell = (world: World, jobId: string) => world.client.patch(rayJobs, "default", "demo", { spec: { jobId } });

describe("kubectl ray job submit", () => {
  it("finds the cluster by status.rayClusterName, waits until it is ready, submits under spec.jobId, and sees jobStatus to its end", async () => {
    const world = await living({ jobId: "raysubmit_abcdefgh12345678" });
    const phases = new Set<string>();
    world.kube.storage.listen(({ object }) => {
      if (object.kind === "RayJob")
        phases.add((object as { status?: { jobDeploymentStatus?: string } }).status?.jobDeploymentStatus ?? "");
    });
    await world.until("named", async () => Boolean((await world.job())?.status?.rayClusterName));
    const name = (await world.job())!.status!.rayClusterName!;
    await world.until("ready", async () => (await world.get<RayCluster>(rayClusters, name))?.status?.state === "ready");
    expect((await world.get<RayCluster>(rayClusters, name))?.status?.head?.serviceName).toBe(`${name}-head-svc`);
    // Port-forwarding and Ray's own command take their time.
    await world.clock.advance(20_000);
    expect((await world.job())?.status).toMatchObject({
      jobDeploymentStatus: "Running",
      jobId: "raysubmit_abcdefgh12345678",
    });
    await submit(world, "raysubmit_abcdefgh12345678");
    await world.until("RUNNING", async () => (await world.job())?.status?.jobStatus === "RUNNING");
    const { status } = await world.untilPhase("Complete");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", succeeded: 1, executionAttempt: 0 });
    expect([...phases]).toEqual(expect.arrayContaining(["Initializing", "Waiting", "Running", "Complete"]));
    expect(await world.list(jobs)).toEqual([]);
  });
});

it("a cluster waits until its user tells what he has submitted, and ends as that ends", async () => {
  const world = await living({}, fails(3000));
  const { status } = await world.untilPhase("Waiting");
  expect(status).not.toHaveProperty("jobId");
  await world.clock.advance(3_600_000);
  await submit(world, "mine");
  await world.clock.advance(1500);
  await tell(world, "mine");
  const failed = await world.untilPhase("Failed");
  expect(failed.status).toMatchObject({ jobId: "mine", jobStatus: "FAILED", reason: "AppFailed", failed: 1 });
});

it("waiting for ever is ended by suspend: nothing is left, and the next attempt waits anew", async () => {
  const world = await living();
  await world.untilPhase("Waiting");
  await world.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
  await world.untilPhase("Suspended");
  expect(await world.list<Pod>(pods)).toEqual([]);
  await world.client.patch(rayJobs, "default", "demo", { spec: { suspend: false } });
  const { status } = await world.untilPhase("Waiting");
  expect(status).toMatchObject({ executionAttempt: 1 });
});

it.each(["activeDeadlineSeconds", "preRunningDeadlineSeconds"])("waiting for ever is ended by %s", async (field) => {
  const world = await living({ [field]: 60 });
  await world.untilPhase("Waiting");
  const { status } = await world.untilPhase("Failed");
  expect(status?.reason).toBe(field === "activeDeadlineSeconds" ? "DeadlineExceeded" : "PreRunningDeadlineExceeded");
  await world.until("nothing held", async () => (await world.list<Pod>(pods)).length === 0);
});

it("a retry that would reuse the stale id is refused; a resumed attempt waits for another", async () => {
  const refused = await living({ jobId: "mine", backoffLimit: 1 });
  expect((await refused.untilPhase("ValidationFailed")).status?.message).toContain(
    "BackoffLimit is incompatible with InteractiveMode",
  );
  const world = await living({}, succeeds(600_000));
  await world.untilPhase("Waiting");
  await submit(world, "mine");
  await tell(world, "mine");
  await world.until("RUNNING", async () => (await world.job())?.status?.jobStatus === "RUNNING");
  await world.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
  await world.untilPhase("Suspended");
  await world.client.patch(rayJobs, "default", "demo", { spec: { suspend: false } });
  await world.untilPhase("Waiting");
  await world.clock.advance(60_000);
  expect((await world.job())?.status?.jobDeploymentStatus).toBe("Waiting");
  await submit(world, "again");
  await tell(world, "again");
  await world.until("RUNNING", async () => (await world.job())?.status?.jobStatus === "RUNNING");
});
