/**
 * Under Kueue: its part is played with the two patches that it makes, one that starts a RayJob and one that stops it, and
 * by the few fields that it reads (test/support/kueue.ts).
 */
import { describe, expect, it } from "vitest";
import type { Job, Pod } from "../../src/api/kubernetes.ts";
import { LABEL } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { jobs, pods, rayClusters, rayJobs } from "../../src/machinery/kube/resources.ts";
import { kueueView } from "../support/kueue.ts";
import { PODSET, type PodSets, podSetsOf, queued, startPatch, stopPatch } from "../support/kueueWrites.ts";
import { rayJob } from "../support/manifests.ts";
import { prompt } from "./fakeKubelet.ts";
import { fails, succeeds } from "./fakeRay.ts";
import { World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

const waiting = (name: string, spec: Partial<RayJobSpec> = {}): RayJob => queued(rayJob(spec, name));

/** A ClusterQueue with room for one RayJob, and what its books say at every moment. */
class Queue {
  readonly world: World;
  /** Name of the RayJob that has the quota. */
  holder: string | undefined;
  readonly order: string[] = [];
  readonly wrong: string[] = [];
  readonly #podSets = new Map<string, PodSets>();

  constructor(world: World) {
    this.world = world;
    world.kube.storage.listen(({ type, object }) => {
      const { kind, metadata } = object as unknown as Stored;
      const name = metadata.labels?.[LABEL.originatedFromName];
      if (kind === "Pod" && type === "ADDED" && name && name !== this.holder) {
        this.wrong.push(`Pod ${metadata.name} was made for ${name}, and the quota was ${this.holder ?? "nobody"}'s`);
      }
    });
  }

  async admit(name: string, flavor = "spot"): Promise<void> {
    expect(this.holder).toBeUndefined();
    this.holder = name;
    this.order.push(name);
    const job = (await this.world.job(name))!;
    const podSets = podSetsOf(job);
    this.#podSets.set(name, podSets);
    await this.world.client.patch(rayJobs, "default", name, startPatch(job, podSets, flavor));
  }

  /** Takes the quota away, and gives it to nobody before the RayJob is inactive. */
  async evict(name: string): Promise<void> {
    const job = (await this.world.job(name))!;
    await this.world.client.patch(rayJobs, "default", name, stopPatch(job, this.#podSets.get(name)!));
    await this.world.until(`${name} inactive`, async () => !kueueView((await this.world.job(name))!).active);
    this.holder = undefined;
  }

  async untilFinished(name: string): Promise<Stored<RayJob>> {
    await this.world.until(`${name} over`, async () => kueueView((await this.world.job(name))!).finished);
    this.holder = undefined;
    await this.#suspendChildren(name);
    return (await this.world.job(name))!;
  }

  /** Of what belongs to a RayJob that is not admitted (any more) nothing may go on, unless it is over itself. */
  async #suspendChildren(name: string): Promise<void> {
    for (const { metadata, status } of await this.world.list<Job>(jobs)) {
      const isOver = status?.conditions?.some(({ type, status: is }) => is === "True" && /Complete|Failed/.test(type));
      if (isOver || metadata.labels?.[LABEL.originatedFromName] !== name) continue;
      await this.world.client.patch(jobs, "default", metadata.name, { spec: { suspend: true } });
    }
  }
}

function queue(scripts: ConstructorParameters<typeof World>[0] = {}): { w: World; kueue: Queue } {
  const w = new World({ job: () => succeeds(20_000), ...scripts });
  worlds.push(w);
  w.start();
  return { w, kueue: new Queue(w) };
}

const isRunning = async (w: World, name: string) => (await w.job(name))?.status?.jobStatus === "RUNNING";
const nothingIsThere = async (w: World) => {
  for (const type of [rayClusters, jobs, pods]) expect(await w.list(type)).toEqual([]);
};

describe("a RayJob that Kueue queues", () => {
  it("has nothing before it is admitted, not even a name of a cluster", async () => {
    const { w } = queue();
    await w.client.create(rayJobs, waiting("demo"));
    const { status } = await w.untilPhase("Suspended");
    await w.clock.advance(60_000);
    await nothingIsThere(w);
    expect(status?.rayClusterName ?? "").toBe("");
    expect(status?.executionAttempt).toBeUndefined();
  });

  it.each(["K8sJobMode", "SidecarMode", "HTTPMode"] as const)(
    "in %s has every Pod where the admission wants it, under the name of its Pod set",
    async (submissionMode) => {
      const { w, kueue } = queue();
      await w.client.create(rayJobs, waiting("demo", { submissionMode }));
      await w.untilPhase("Suspended");
      await kueue.admit("demo");
      await w.until("running", () => isRunning(w, "demo"));
      const all = await w.list<Pod>(pods);
      expect(all.length).toBe(submissionMode === "K8sJobMode" ? 4 : 3);
      for (const { spec, metadata } of all) {
        expect(spec?.nodeSelector).toEqual({ flavor: "spot" });
        expect(spec?.tolerations).toContainEqual({ key: "reserved", operator: "Exists", effect: "NoSchedule" });
        expect(metadata.labels?.[PODSET]).toBeDefined();
      }
      expect(await kueue.untilFinished("demo")).toMatchObject({
        status: { jobStatus: "SUCCEEDED", jobDeploymentStatus: "Complete" },
      });
      expect(kueue.wrong).toEqual([]);
    },
  );

  it("runs the generated submitter in the container that Kueue wrote, with the resources that it booked", async () => {
    const { w, kueue } = queue();
    await w.client.create(rayJobs, waiting("demo", { submissionMode: "K8sJobMode" }));
    await w.untilPhase("Suspended");
    await kueue.admit("demo");
    await w.until("running", () => isRunning(w, "demo"));
    const [submitter] = await w.submitterPods();
    const [container] = submitter!.spec!.containers;
    expect(container).toMatchObject({
      name: "ray-job-submitter",
      resources: { requests: { cpu: "500m", memory: "200Mi" }, limits: { cpu: "1", memory: "1Gi" } },
    });
    expect(container!.command ?? container!.args).toBeDefined();
  });

  it("gets its spec back as Kueue and the user wrote it: the operator never writes there", async () => {
    const { w, kueue } = queue();
    await w.client.create(rayJobs, waiting("demo", { submissionMode: "K8sJobMode" }));
    await w.untilPhase("Suspended");
    await kueue.admit("demo");
    const admitted = (await w.job())!;
    await w.until("running", () => isRunning(w, "demo"));
    expect((await w.job())!.spec).toEqual(admitted.spec);
    expect((await w.job())!.metadata.generation).toBe(admitted.metadata.generation);
    const over = await kueue.untilFinished("demo");
    expect(over.metadata.generation).toBe(admitted.metadata.generation);
  });
});

it("the log is kept though Kueue suspends whatever is not over with the RayJob, and kubelet takes its time to end a Pod", async () => {
  const { w, kueue } = queue({ pod: () => ({ ...prompt, lingers: 2000 }) });
  await w.client.create(rayJobs, waiting("demo", { submissionMode: "K8sJobMode" }));
  await w.untilPhase("Suspended");
  await kueue.admit("demo");
  await kueue.untilFinished("demo");
  await w.clock.advance(30_000);
  expect((await w.submitterPods()).map(({ status }) => status?.phase)).toEqual(["Succeeded"]);
  expect((await w.job())?.status?.conditions).toContainEqual(
    expect.objectContaining({ type: "SubmitterHealthy", status: "True", reason: "Finished" }),
  );
});

describe("two RayJobs and room for one", () => {
  it("the other starts when the first has ended, and no Pod is ever without quota", async () => {
    const { w, kueue } = queue();
    for (const name of ["first", "second"]) await w.client.create(rayJobs, waiting(name));
    for (const name of ["first", "second"]) await w.untilPhase("Suspended", name);
    await kueue.admit("first");
    await kueue.untilFinished("first");
    expect(kueueView((await w.job("second"))!)).toMatchObject({ suspended: true, active: false });
    await kueue.admit("second");
    const { status } = await kueue.untilFinished("second");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0 });
    expect(kueue.wrong).toEqual([]);
  });

  it("a preempted one holds its quota until its last Pod is gone, comes back on another flavor, and ends", async () => {
    const { w, kueue } = queue({ pod: () => ({ ...prompt, terminate: 25_000 }) });
    for (const name of ["low", "high"]) await w.client.create(rayJobs, waiting(name));
    for (const name of ["low", "high"]) await w.untilPhase("Suspended", name);
    await kueue.admit("low");
    await w.until("running", () => isRunning(w, "low"));
    const before = (await w.job("low"))!.status!;
    await kueue.evict("low");
    await nothingIsThere(w);
    await kueue.admit("high");
    await kueue.untilFinished("high");
    await kueue.admit("low", "on-demand");
    await w.until("running", () => isRunning(w, "low"));
    for (const pod of await w.list<Pod>(pods)) {
      if (pod.metadata.labels?.[LABEL.originatedFromName] !== "low") continue;
      expect(pod.spec?.nodeSelector).toEqual({ flavor: "on-demand" });
    }
    const { status } = await kueue.untilFinished("low");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 1, failed: 0 });
    expect(status!.jobId).not.toBe(before.jobId);
    expect(status!.rayClusterName).not.toBe(before.rayClusterName);
    expect(kueue.order).toEqual(["low", "high", "low"]);
    expect(kueue.wrong).toEqual([]);
  });

  it("a retry keeps the quota all the way, and Kueue never sees a failure", async () => {
    let runs = 0;
    const { w, kueue } = queue({ job: () => (++runs === 1 ? fails(5000) : succeeds(5000)) });
    const finished: string[] = [];
    w.kube.storage.listen(({ object }) => {
      const job = object as unknown as Stored<RayJob>;
      if (job.kind === "RayJob" && kueueView(job).finished) finished.push(job.status!.jobDeploymentStatus!);
    });
    await w.client.create(rayJobs, waiting("demo", { backoffLimit: 1 }));
    await w.untilPhase("Suspended");
    await kueue.admit("demo");
    const { status } = await kueue.untilFinished("demo");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 1, failed: 1, succeeded: 1 });
    expect(new Set(finished)).toEqual(new Set(["Complete"]));
  });

  it("suspended at the barrier of a retry, it holds its quota until the last Pod is gone, and starts nothing", async () => {
    const { w, kueue } = queue({ job: () => fails(1000), pod: () => ({ ...prompt, terminate: 40_000 }) });
    await w.client.create(rayJobs, waiting("demo", { backoffLimit: 1, retryStrategy: { type: "BlockingRecreate" } }));
    await w.untilPhase("Suspended");
    await kueue.admit("demo");
    await w.untilPhase("Retrying");
    await kueue.evict("demo");
    await nothingIsThere(w);
    expect((await w.job())?.status).toMatchObject({ executionAttempt: 0, failed: 1 });
  });

  it("flipped to and fro at once, no Pods of two admissions are there together", async () => {
    const { w, kueue } = queue({ pod: () => ({ ...prompt, terminate: 30_000 }) });
    await w.client.create(rayJobs, waiting("demo"));
    await w.untilPhase("Suspended");
    await kueue.admit("demo");
    await w.until("running", () => isRunning(w, "demo"));
    const attempts = new Set<string>();
    w.kube.storage.listen(({ type, object }) => {
      const { kind, metadata } = object as unknown as Stored;
      if (kind !== "Pod" || type === "DELETED") return;
      attempts.add(metadata.labels?.[LABEL.executionAttempt] ?? "none");
    });
    for (const suspend of [true, false, true, false]) {
      await w.client.patch(rayJobs, "default", "demo", { spec: { suspend } });
      await w.clock.advance(50);
    }
    const { status } = await kueue.untilFinished("demo");
    expect(status?.jobStatus).toBe("SUCCEEDED");
    expect(status!.executionAttempt).toBeLessThanOrEqual(1);
  });

  it("a RayJob whose Workload is deleted is stopped like one that is preempted", async () => {
    const { w, kueue } = queue();
    await w.client.create(rayJobs, waiting("demo"));
    await w.untilPhase("Suspended");
    await kueue.admit("demo");
    await w.until("running", () => isRunning(w, "demo"));
    await kueue.evict("demo");
    await nothingIsThere(w);
  });
});

it("a RayJob that is invalid is on hold, and proceeds when it is corrected", async () => {
  const { w, kueue } = queue();
  await w.client.create(rayJobs, waiting("demo", { entrypoint: " " }));
  await w.until("on hold", async () => kueueView((await w.job())!).onHold);
  await nothingIsThere(w);
  await w.client.patch(rayJobs, "default", "demo", { spec: { entrypoint: "python job.py" } });
  await w.untilPhase("Suspended");
  await kueue.admit("demo");
  expect((await kueue.untilFinished("demo")).status?.jobStatus).toBe("SUCCEEDED");
});
