/** KubeRay is replaced while RayJobs and RayClusters are in every state: nothing is restarted, and each job gets its verdict. */
import { describe, expect, it } from "vitest";
import type { Job, Pod } from "../../src/api/kubernetes.ts";
import { LABEL } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { SubmitRequest } from "../../src/domain/rayjob/ray.ts";
import { jobs, pods, rayClusters, rayJobs } from "../../src/machinery/kube/resources.ts";
import { VirtualClock } from "../../src/machinery/virtualClock.ts";
import { prompt, stuckTerminating } from "../sim/fakeKubelet.ts";
import { fails, type JobScript, succeeds } from "../sim/fakeRay.ts";
import { World } from "../sim/world.ts";
import { closedAfterEach } from "../sim/worlds.ts";
import { HOLD } from "./play.ts";
import { type Any, recorded, recordings, restore } from "./restore.ts";

const worlds = closedAfterEach();

class Takeover extends World {
  /** What stood there when the operator came. */
  before: { pods: string[]; clusters: [string, number | undefined][]; submissions: number } | undefined;

  static async at(name: string, next: JobScript = succeeds(60_000)): Promise<Takeover> {
    const recording = recorded(name, "default", START);
    const pending = new Set(
      recording.objects
        .filter(({ kind, status }) => kind === "Pod" && status?.["phase"] === "Pending")
        .map(({ metadata }) => metadata.name),
    );
    const leaving = new Set(
      recording.objects
        .filter(({ kind, metadata }) => kind === "Pod" && metadata.deletionTimestamp)
        .map(({ metadata }) => metadata.name),
    );
    // The jobs that had ended by then end at once; the others do what the test says.
    const ended = new Map(recording.ray.map(({ id, status }) => [id, status]));
    const w: Takeover = new Takeover({
      pod: ({ metadata }) =>
        leaving.has(metadata.name)
          ? stuckTerminating
          : pending.has(metadata.name)
            ? { ...prompt, schedule: 30_000 }
            : prompt,
      job: ({ submission_id }) => {
        const status = ended.get(submission_id);
        ended.delete(submission_id);
        if (status === "SUCCEEDED") return succeeds(0, 0);
        return status === "FAILED" ? { ...fails(0), pending: 0 } : next;
      },
    });
    worlds.push(w);
    const made = await restore(w.client, recording, () => w.clock.advance(8000));
    for (const { head, id } of recording.ray) {
      const pod = made.get(head);
      const running = pod && w.ray.heads.get(pod.metadata.uid);
      if (running) w.ray.give(running, { entrypoint: "kuberay's", submission_id: id } as SubmitRequest);
    }
    await w.clock.advance(2000);
    // A submitter whose job has ended has ended, too.
    for (const job of recording.objects.filter(({ kind }) => kind === "Job"))
      if (hasFinished(job)) await w.endSubmitters();
    await w.clock.advance(2000);
    w.before = await w.snapshot();
    return w;
  }

  override async close(): Promise<void> {
    // The model of Kueue has not seen the life that was led under KubeRay.
    const { violations } = this.invariants;
    violations.push(...violations.splice(0).filter((each) => !each.includes("Kueue saw the Pods")));
    await super.close();
  }

  async snapshot() {
    return {
      pods: (await this.list<Pod>(pods)).map(({ metadata }) => metadata.uid).sort(),
      clusters: (await this.list<RayCluster>(rayClusters)).map(
        ({ metadata }) => [metadata.uid, metadata.generation] as [string, number | undefined],
      ),
      submissions: this.submissions.length,
    };
  }

  /** Neither Pods nor the RayClusters' specs have been touched, nothing was submitted. */
  async expectUntouched(): Promise<void> {
    expect(await this.snapshot()).toEqual(this.before);
  }

  async endSubmitters(): Promise<void> {
    for (const pod of await this.submitterPods()) await this.kubelet.end(pod.metadata.uid, { exitCode: 0 });
  }

  async letGo(): Promise<void> {
    for (const type of [rayClusters, rayJobs]) {
      for (const { metadata } of await this.list(type)) {
        const finalizers = metadata.finalizers?.filter((each) => each !== HOLD);
        if (finalizers?.length === metadata.finalizers?.length) continue;
        await this.client.patch(type, "default", metadata.name, { metadata: { finalizers } });
      }
    }
  }
}

const hasFinished = ({ status }: Any): boolean =>
  (status as Stored<Job>["status"])?.conditions?.some(({ type, status }) => type === "Complete" && status === "True") ??
  false;

/** Where the virtual clock begins; the statuses are written 8 s later. */
const START = new VirtualClock().now() + 8000;
/** After the operator has had time to do what it should not. */
const LONG = 60_000;

const running = recordings.filter((name) => name.startsWith("running-"));

describe.each(running)("%s", (name) => {
  it("goes on where it is, and gets the verdict that Ray gives", async () => {
    const w = await Takeover.at(name, succeeds(120_000));
    w.start();
    await w.clock.advance(LONG);
    await w.expectUntouched();
    const { status } = await w.untilPhase("Complete", "demo", 600_000);
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", succeeded: 1 });
    expect(w.submissions).toHaveLength(w.before!.submissions);
  });

  it("gets the verdict Failed when its job fails, and is not run again unless it may be", async () => {
    const w = await Takeover.at(name, fails(90_000));
    w.start();
    await w.clock.advance(LONG);
    await w.expectUntouched();
    const { status, spec } = await w.untilPhase("Failed", "demo", 3_600_000);
    expect(status).toMatchObject({ jobStatus: "FAILED", reason: "AppFailed", failed: (spec.backoffLimit ?? 0) + 1 });
    expect(w.submissions.length).toBe(w.before!.submissions + (name === "running-second-attempt" ? 1 : 0));
  });

  it("ends while no operator is there, and gets its verdict when one comes", async () => {
    const w = await Takeover.at(name, succeeds(60_000));
    await w.clock.advance(3_600_000);
    await w.endSubmitters();
    w.start();
    expect((await w.untilPhase("Complete", "demo", 600_000)).status).toMatchObject({ jobStatus: "SUCCEEDED" });
    expect(w.submissions).toHaveLength(w.before!.submissions);
  });

  it("can be suspended and resumed, and leaves nothing of KubeRay's behind", async () => {
    const w = await Takeover.at(name, succeeds(300_000));
    w.start();
    await w.clock.advance(5000);
    await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
    await w.untilPhase("Suspended", "demo", 120_000);
    const left = [...(await w.list(rayClusters)), ...(await w.list<Pod>(pods))].map(({ metadata }) => metadata.name);
    // A selected cluster stays.
    expect(left.filter((each) => !each.startsWith("shared"))).toEqual([]);
    expect(await w.list(jobs)).toEqual([]);
  });
});

it("initializing, with nothing made yet: the names that KubeRay has chosen are used", async () => {
  const w = await Takeover.at("initializing", succeeds(20_000));
  const { rayClusterName, jobId } = (await w.job())!.status!;
  w.start();
  const { status } = await w.untilPhase("Complete", "demo", 300_000);
  expect(status).toMatchObject({ executionAttempt: 0, jobId, rayClusterName, succeeded: 1 });
  expect(w.submissions).toHaveLength(1);
});

it("initializing: the cluster that KubeRay has made is used, and the job is submitted once", async () => {
  const w = await Takeover.at("initializing-cluster", succeeds(20_000));
  const cluster = w.before!.clusters;
  w.start();
  const { status } = await w.untilPhase("Running", "demo", 300_000);
  expect((await w.snapshot()).clusters).toEqual(cluster);
  expect(status).toMatchObject({ executionAttempt: 0 });
  await w.untilPhase("Complete", "demo", 300_000);
  expect(w.submissions).toHaveLength(1);
});

it("waiting: goes on waiting for the user, and gets the verdict on the job that he submits and names", async () => {
  const w = await Takeover.at("waiting", succeeds(20_000));
  w.start();
  await w.clock.advance(LONG);
  await w.expectUntouched();
  expect((await w.job())?.status?.jobDeploymentStatus).toBe("Waiting");
  const head = w.ray.heads.get((await w.head()).metadata.uid)!;
  w.ray.give(head, { entrypoint: "the user's", submission_id: "by-hand" } as SubmitRequest);
  await w.client.patch(rayJobs, "default", "demo", { spec: { jobId: "by-hand" } });
  const { status } = await w.untilPhase("Complete", "demo", 300_000);
  expect(status).toMatchObject({ jobId: "by-hand", jobStatus: "SUCCEEDED", executionAttempt: 0 });
  expect(w.submissions).toHaveLength(1);
});

it("suspending: carried through, and resumed as another attempt", async () => {
  const w = await Takeover.at("suspending", succeeds(5000));
  w.start();
  await w.clock.advance(LONG);
  expect((await w.job())?.status?.jobDeploymentStatus).toBe("Suspending");
  await w.letGo();
  await w.untilPhase("Suspended", "demo", 60_000);
  expect(await w.list(pods)).toEqual([]);
  await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: false } });
  await w.untilPhase("Complete", "demo", 300_000);
});

it("suspended: stays so, and is resumed", async () => {
  const w = await Takeover.at("suspended", succeeds(5000));
  const { process } = w.start();
  await w.clock.advance(LONG);
  expect((await w.job())?.status?.jobDeploymentStatus).toBe("Suspended");
  // The Service points nowhere.
  expect(process.writes).toEqual(["DELETE /api/v1/namespaces/default/services/demo-head-svc"]);
  await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: false } });
  expect((await w.untilPhase("Complete", "demo", 300_000)).status).toMatchObject({ succeeded: 1 });
});

it("retrying: the next attempt begins when the last one's cluster is gone", async () => {
  const w = await Takeover.at("retrying", succeeds(5000));
  const submitted = w.before!.submissions;
  w.start();
  await w.clock.advance(LONG);
  expect((await w.job())?.status?.jobDeploymentStatus).toBe("Retrying");
  expect(w.submissions).toHaveLength(submitted);
  await w.letGo();
  const { status } = await w.untilPhase("Complete", "demo", 300_000);
  expect(status).toMatchObject({ executionAttempt: 1, failed: 1, succeeded: 1 });
});

it.each(["complete-kept", "failed-deadline"])(
  "%s: what is over stays over, and nothing of it is touched",
  async (name) => {
    const w = await Takeover.at(name);
    const was = (await w.job())?.status;
    w.start();
    await w.clock.advance(3_600_000);
    await w.expectUntouched();
    expect((await w.job())?.status).toEqual(was);
  },
);

it.each(["complete-shut-down", "failed"])(
  "%s: its cluster goes, as was asked for, and the verdict stays",
  async (name) => {
    const w = await Takeover.at(name);
    const was = (await w.job())?.status;
    w.start();
    await w.clock.advance(3_600_000);
    expect(await w.list(rayClusters)).toEqual([]);
    expect((await w.job())?.status).toEqual(was);
    expect(w.submissions).toHaveLength(w.before!.submissions);
  },
);

it("complete-with-ttl: the cluster goes when its time is up, by KubeRay's clock", async () => {
  const w = await Takeover.at("complete-with-ttl");
  const was = (await w.job())?.status;
  w.start();
  await w.until("deleted", async () => (await w.list(rayClusters)).length === 0, 3_600_000);
  expect((await w.job())?.status).toEqual(was);
});

it("validation-failed: stays so, in words, until the spec is corrected", async () => {
  const w = await Takeover.at("validation-failed", succeeds(5000));
  w.start();
  await w.clock.advance(LONG);
  await w.expectUntouched();
  expect((await w.job())?.status?.jobDeploymentStatus).toBe("ValidationFailed");
  await w.client.patch(rayJobs, "default", "demo", { spec: { backoffLimit: 0 } });
  await w.untilPhase("Complete", "demo", 300_000);
});

it("deleting: Ray is told to stop, and the finalizer goes", async () => {
  const w = await Takeover.at("deleting");
  w.start();
  await w.clock.advance(LONG);
  expect(await w.job().then((job) => job?.metadata.finalizers)).toEqual([HOLD]);
  await w.letGo();
  await w.until("gone", async () => (await w.job()) === undefined && (await w.list(pods)).length === 0, 60_000);
});

describe("a RayCluster", () => {
  it("that is ready keeps its Pods, under the names that KubeRay gave them", async () => {
    const w = await Takeover.at("cluster-ready");
    w.start();
    await w.clock.advance(3_600_000);
    await w.expectUntouched();
    expect((await w.list<RayCluster>(rayClusters))[0]?.status).toMatchObject({
      state: "ready",
      readyWorkerReplicas: 1,
    });
  });

  it("that is suspended stays so, and can be resumed", async () => {
    const w = await Takeover.at("cluster-suspended");
    w.start();
    await w.clock.advance(LONG);
    await w.expectUntouched();
    await w.client.patch(rayClusters, "default", "shared", { spec: { suspend: false } });
    await w.until("ready", async () => (await w.list<RayCluster>(rayClusters))[0]?.status?.state === "ready", 120_000);
  });

  it("of which a worker is going gets one in its place, and the head stays", async () => {
    const w = await Takeover.at("cluster-worker-deleted");
    const head = await w.head();
    w.start();
    await w.clock.advance(LONG);
    const all = await w.list<Pod>(pods);
    const alive = all.filter(({ metadata }) => !metadata.deletionTimestamp);
    expect(alive.map(({ metadata }) => metadata.labels?.[LABEL.nodeType]).sort()).toEqual(["head", "worker"]);
    expect((await w.head()).metadata.uid).toBe(head.metadata.uid);
  });

  it("that is being deleted is not helped to live", async () => {
    const w = await Takeover.at("cluster-deleting");
    const before = w.before!.pods;
    w.start();
    await w.clock.advance(LONG);
    expect((await w.snapshot()).pods.every((uid) => before.includes(uid))).toBe(true);
    await w.letGo();
    await w.until("gone", async () => (await w.list(rayClusters)).length + (await w.list(pods)).length === 0, 60_000);
  });
});
