/** A user edits, toggles and takes away while a job runs; and strangers bear the names that it needs. */
import { describe, expect, it } from "vitest";
import type { Job, Pod, Service } from "../../src/api/kubernetes.ts";
import { LABEL } from "../../src/api/labels.ts";
import type { KubeObject } from "../../src/api/object.ts";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { generatedName } from "../../src/domain/rayjob/names.ts";
import { jobs, pods, rayClusters, rayJobs, services } from "../../src/machinery/kube/resources.ts";
import { clusterSpec, rayJob } from "../support/manifests.ts";
import { prompt } from "./fakeKubelet.ts";
import { fails, type JobScript, runsForEver, succeeds } from "./fakeRay.ts";
import { type Scripts, World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

const condition = (job: RayJob | undefined, type: string) => job?.status?.conditions?.find((one) => one.type === type);
const edit = (w: World, spec: object) => w.client.patch(rayJobs, "default", "demo", { spec });
const running = (w: World) => w.until("RUNNING", async () => (await w.job())?.status?.jobStatus === "RUNNING");
const ids = (w: World) => w.submissions.map((submission) => submission.split(" ")[1]!);

/** A world with an operator, in which jobs do one after the other what `scripts` say. */
function world(lives: JobScript[] = [succeeds(5000)], scripts: Scripts = {}): World {
  const w = new World({ job: () => lives.shift() ?? succeeds(5000), ...scripts });
  worlds.push(w);
  w.start();
  return w;
}

async function runningWorld(spec: Partial<RayJobSpec>, lives: JobScript[], scripts?: Scripts): Promise<World> {
  const w = world(lives, scripts);
  await w.client.create(rayJobs, rayJob(spec));
  await running(w);
  return w;
}

describe.each(["K8sJobMode", "HTTPMode"] as const)("in %s", (submissionMode) => {
  it("suspend, set and taken back again and again, ends in one run to the end", async () => {
    const w = world(Array.from({ length: 40 }, () => succeeds(8000)));
    await w.client.create(rayJobs, rayJob({ submissionMode }));
    for (let toggle = 0; toggle < 24; toggle++) {
      await edit(w, { suspend: toggle % 2 === 0 });
      await w.clock.advance(50 + toggle * 130);
    }
    await edit(w, { suspend: false });
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ succeeded: 1, failed: 0 });
    expect(new Set(ids(w)).size).toBe(ids(w).length);
    await w.clock.advance(60_000);
    expect(await w.list(rayClusters)).toEqual([]);
  });

  it("what a job runs and on what is edited for the next attempt, not for this one", async () => {
    const w = await runningWorld({ submissionMode, backoffLimit: 1 }, [fails(60_000), succeeds(5000)]);
    const [first] = [...w.ray.heads.values()];
    const next = clusterSpec(1);
    next.headGroupSpec.template.spec!.containers[0]!.image = "rayproject/ray:2.57.0";
    await edit(w, { entrypoint: "python second.py", rayClusterSpec: next });
    await w.clock.advance(30_000);
    expect(w.submissions).toHaveLength(1);
    expect((await w.list<Pod>(pods)).filter(({ metadata }) => metadata.labels?.[LABEL.nodeType])).toHaveLength(3);
    await running(w);
    await w.until("the second attempt", async () => (await w.job())?.status?.executionAttempt === 1);
    await running(w);
    expect((await w.head()).spec?.containers[0]?.image).toBe("rayproject/ray:2.57.0");
    const [second] = [...w.ray.heads.values()];
    const entrypoints = [first, second].flatMap((head) =>
      [...head!.jobs.values()].map((job) => job.request.entrypoint),
    );
    expect(entrypoints).toEqual([rayJob().spec.entrypoint, "python second.py"]);
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ executionAttempt: 1, failed: 1, succeeded: 1 });
  });

  it("an edit while the cluster is still on its way counts from the next attempt, too", async () => {
    const w = world([fails(3000), succeeds(3000)]);
    await w.client.create(rayJobs, rayJob({ submissionMode, backoffLimit: 1 }));
    await w.until("a RayCluster", async () => (await w.list(rayClusters)).length > 0);
    await edit(w, { entrypoint: "python second.py", runtimeEnvYAML: "env_vars: {A: '2'}" });
    const entrypoints: string[] = [];
    for (const attempt of [0, 1]) {
      await w.until("that attempt", async () => (await w.job())?.status?.executionAttempt === attempt);
      await running(w);
      const [head] = [...w.ray.heads.values()].slice(-1);
      entrypoints.push(...[...head!.jobs.values()].map(({ request }) => request.entrypoint));
    }
    expect(entrypoints).toEqual([rayJob().spec.entrypoint, "python second.py"]);
    await w.untilPhase("Complete");
  });

  it("another submission mode counts from the next attempt", async () => {
    const w = await runningWorld({ submissionMode, backoffLimit: 1 }, [fails(30_000), succeeds(5000)]);
    const other = submissionMode === "HTTPMode" ? "K8sJobMode" : "HTTPMode";
    await edit(w, { submissionMode: other });
    await w.clock.advance(10_000);
    expect(w.submissions).toHaveLength(1);
    const { status } = await w.untilPhase("Complete");
    expect(status?.attempts?.map((attempt) => attempt.submissionMode)).toEqual([submissionMode, other]);
    expect(w.submissions).toHaveLength(2);
    expect(await w.list(jobs)).toHaveLength(other === "K8sJobMode" ? 1 : 0);
  });

  it("backoffLimit counts as it is when an attempt fails", async () => {
    const w = await runningWorld({ submissionMode, backoffLimit: 0 }, [fails(20_000), fails(20_000), succeeds(5000)]);
    await edit(w, { backoffLimit: 5 });
    await w.until("the second attempt", async () => (await w.job())?.status?.executionAttempt === 1);
    await edit(w, { backoffLimit: 0 });
    const { status } = await w.untilPhase("Failed");
    expect(status).toMatchObject({ failed: 2, executionAttempt: 1 });
    await edit(w, { backoffLimit: 5 });
    await w.clock.advance(120_000);
    expect((await w.job())?.status?.jobDeploymentStatus).toBe("Failed");
    expect(w.submissions).toHaveLength(2);
  });

  it("a deadline may be set, moved and taken away while the job runs", async () => {
    const w = await runningWorld({ submissionMode, activeDeadlineSeconds: 60 }, [runsForEver]);
    await edit(w, { activeDeadlineSeconds: 120 });
    await w.clock.advance(90_000);
    expect((await w.job())?.status?.jobDeploymentStatus).toBe("Running");
    await edit(w, { activeDeadlineSeconds: null });
    await w.clock.advance(600_000);
    expect((await w.job())?.status?.jobDeploymentStatus).toBe("Running");
    await edit(w, { activeDeadlineSeconds: 30 });
    const { status } = await w.untilPhase("Failed", "demo", 60_000);
    expect(status?.reason).toBe("DeadlineExceeded");
  });

  it("a jobId of the user's own is kept over retries, each on a cluster of its own", async () => {
    const w = world([fails(3000), fails(3000), succeeds(3000)]);
    await w.client.create(rayJobs, rayJob({ submissionMode, jobId: "mine", backoffLimit: 3 }));
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ jobId: "mine", executionAttempt: 2, failed: 2, succeeded: 1 });
    expect(ids(w)).toEqual(["mine", "mine", "mine"]);
    expect(new Set(w.submissions).size).toBe(3);
  });

  it("a job born suspended has nothing and no attempt until it is resumed", async () => {
    const w = world();
    await w.client.create(rayJobs, rayJob({ submissionMode, suspend: true }));
    const { status } = await w.untilPhase("Suspended");
    await w.clock.advance(60_000);
    expect(status?.executionAttempt).toBeUndefined();
    expect([...(await w.list(pods)), ...(await w.list(rayClusters)), ...(await w.list(services))]).toEqual([]);
    await edit(w, { suspend: false });
    expect((await w.untilPhase("Complete")).status).toMatchObject({ executionAttempt: 0, succeeded: 1 });
  });

  it("everything of an attempt bears its number and the RayJob's UID, whatever templates say", async () => {
    const spec = clusterSpec();
    const lies = { [LABEL.executionAttempt]: "7", [LABEL.rayJobUID]: "nobody" };
    for (const group of [spec.headGroupSpec, ...spec.workerGroupSpecs!]) {
      group.template.metadata = { labels: lies, annotations: { [LABEL.executionAttempt]: "7" } };
    }
    const w = world([fails(20_000), succeeds(20_000)]);
    const seen: KubeObject[] = [];
    w.kube.storage.listen(({ type, object }) => {
      if (type === "ADDED" && ["RayCluster", "Job", "Pod"].includes(object.kind ?? "")) seen.push(object);
    });
    const manifest = rayJob({ submissionMode, backoffLimit: 1, rayClusterSpec: spec });
    await w.client.create(rayJobs, { ...manifest, metadata: { ...manifest.metadata, labels: lies } });
    await running(w);
    const worker = w.kubelet.running.find(({ metadata }) => metadata.labels?.[LABEL.nodeType] === "worker")!;
    await w.client.delete(pods, "default", worker.metadata.name, { gracePeriodSeconds: 0 });
    const job = await w.untilPhase("Complete");
    const told = seen.map(({ kind, metadata: { labels, annotations } }) => {
      expect(annotations?.[LABEL.executionAttempt], kind).toBe(labels?.[LABEL.executionAttempt]);
      expect(labels?.[LABEL.rayJobUID], kind).toBe(job.metadata.uid);
      return `${kind} ${labels?.[LABEL.nodeType] ?? ""} ${labels?.[LABEL.executionAttempt]}`;
    });
    const count = (what: string) => told.filter((one) => one === what).length;
    const submitters = submissionMode === "K8sJobMode" ? 1 : 0;
    expect(["RayCluster  0", "Pod head 0", "Pod worker 0", "Job  0", "Pod  0"].map(count)).toEqual([
      1,
      1,
      3,
      submitters,
      submitters,
    ]);
    expect(["RayCluster  1", "Pod head 1", "Pod worker 1", "Job  1", "Pod  1"].map(count)).toEqual([
      1,
      1,
      2,
      submitters,
      submitters,
    ]);
  });

  it("a head that is drained in good order while the job ends: the job has succeeded", async () => {
    const slow = (pod: Pod) => pod.metadata.labels?.[LABEL.nodeType] === "head";
    const w = await runningWorld({ submissionMode }, [succeeds(10_000)], {
      pod: (pod) => (slow(pod) ? { ...prompt, terminate: 25_000 } : prompt),
    });
    await w.client.delete(pods, "default", (await w.head()).metadata.name);
    const { status } = await w.untilPhase("Complete", "demo", 60_000);
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", failed: 0 });
  });

  it("a RayCluster that somebody holds keeps the next attempt waiting, and Suspended, and is named", async () => {
    const w = await runningWorld({ submissionMode, backoffLimit: 1 }, [fails(3000), runsForEver, succeeds(3000)]);
    const hold = async (finalizers: string[]) => {
      const { rayClusterName = "" } = (await w.job())!.status!;
      await w.client.patch(rayClusters, "default", rayClusterName, { metadata: { finalizers } });
      return rayClusterName;
    };
    const first = await hold(["example.com/hold"]);
    await w.untilPhase("Retrying");
    await w.client.delete(rayClusters, "default", first);
    await w.clock.advance(120_000);
    expect((await w.job())?.status).toMatchObject({ jobDeploymentStatus: "Retrying", executionAttempt: 0 });
    expect(condition(await w.job(), "Retrying")?.message).toContain(`RayCluster ${first}`);
    await hold([]);
    await w.until("the second attempt", async () => (await w.job())?.status?.executionAttempt === 1);
    await running(w);
    const second = await hold(["example.com/hold"]);
    await edit(w, { suspend: true });
    await w.clock.advance(120_000);
    expect((await w.job())?.status?.jobDeploymentStatus).toBe("Suspending");
    expect(condition(await w.job(), "Suspended")?.message).toContain(`RayCluster ${second}`);
    await hold([]);
    await w.untilPhase("Suspended");
    await edit(w, { suspend: false });
    expect((await w.untilPhase("Complete")).status).toMatchObject({ executionAttempt: 2, failed: 1, succeeded: 1 });
  });
});

describe("a submitter", () => {
  it("whose Job is deleted twice is made once more and no oftener, and the job runs to its end", async () => {
    const w = await runningWorld({}, [succeeds(120_000)]);
    for (let time = 0; time < 2; time++) {
      await w.client.delete(jobs, "default", "demo", { propagation: "Background" });
      await w.clock.advance(20_000);
    }
    expect(await w.list(jobs)).toEqual([]);
    expect(condition(await w.job(), "SubmitterHealthy")).toMatchObject({ status: "False", reason: "Deleted" });
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0 });
    expect(w.submissions).toHaveLength(1);
    expect((await w.events()).filter((event) => event.includes("SubmitterLost")).length).toBeLessThanOrEqual(2);
  });

  it("that is evicted before it has submitted is made again by its Job", async () => {
    const w = world();
    await w.client.create(rayJobs, rayJob());
    await w.until("a submitter runs", () =>
      w.kubelet.running.some(({ metadata }) => !metadata.labels?.[LABEL.nodeType]),
    );
    const submitter = w.kubelet.running.find(({ metadata }) => !metadata.labels?.[LABEL.nodeType])!;
    await w.kubelet.end(submitter.metadata.uid, { exitCode: 137, podReason: "Evicted" });
    expect(w.submissions).toEqual([]);
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ succeeded: 1, failed: 0, executionAttempt: 0 });
    expect(w.submissions).toHaveLength(1);
  });

  it("whose Job is deleted before it has submitted is made again", async () => {
    const w = world();
    await w.client.create(rayJobs, rayJob());
    for (let time = 0; time < 2; time++) {
      await w.until("a submitter", async () => (await w.list(jobs)).length > 0);
      await w.client.delete(jobs, "default", "demo", { propagation: "Background" });
      await w.clock.advance(100);
    }
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ succeeded: 1, failed: 0, executionAttempt: 0 });
    expect(w.submissions).toHaveLength(1);
  });
});

describe("a stranger", () => {
  const container = { name: "c", image: "busybox" };
  /** A RayJob that has nothing yet, and the name that its first RayCluster will have. */
  async function named() {
    const w = world();
    await w.client.create(rayJobs, rayJob({ suspend: true }));
    const { metadata } = await w.untilPhase("Suspended");
    return { w, name: generatedName("demo", metadata.uid, 0, "cluster") };
  }

  it("with the submitter's name is told of, left alone, and waited for", async () => {
    const w = world();
    const job = { apiVersion: "batch/v1", kind: "Job", metadata: { name: "demo", namespace: "default" } };
    const spec = { suspend: true, template: { spec: { restartPolicy: "Never", containers: [container] } } };
    await w.client.create(jobs, { ...job, spec } as Job & KubeObject);
    await w.client.create(rayJobs, rayJob());
    await w.until(
      "told",
      async () => condition(await w.job(), "Started")?.message.includes("does not belong") === true,
    );
    await w.clock.advance(120_000);
    expect((await w.list<Job>(jobs)).map(({ metadata }) => metadata.ownerReferences)).toEqual([undefined]);
    expect((await w.job())?.status?.jobDeploymentStatus).toBe("Running");
    await w.client.delete(jobs, "default", "demo", { propagation: "Background" });
    await w.untilPhase("Complete", "demo", 120_000);
    expect(w.submissions).toHaveLength(1);
  });

  it("with the head Pod's name is told of, left alone, and waited for", async () => {
    const { w, name } = await named();
    const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: `${name}-head`, namespace: "default" } };
    await w.client.create(pods, { ...pod, spec: { containers: [container] } } as Pod & KubeObject);
    await edit(w, { suspend: false });
    await w.until("told", async () => condition(await w.job(), "Started")?.message.includes(`${name}-head`) === true);
    await w.clock.advance(120_000);
    expect((await w.job())?.status?.jobDeploymentStatus).toBe("Initializing");
    await w.client.delete(pods, "default", `${name}-head`, { gracePeriodSeconds: 0 });
    await w.untilPhase("Complete", "demo", 600_000);
  });

  it("with the RayJob's Service's name is left alone, and the job runs", async () => {
    const w = world();
    const service = { apiVersion: "v1", kind: "Service", metadata: { name: "demo-head-svc", namespace: "default" } };
    await w.client.create(services, { ...service, spec: { ports: [{ port: 80 }] } } as Service & KubeObject);
    await w.client.create(rayJobs, rayJob());
    await w.untilPhase("Complete");
    await w.clock.advance(60_000);
    expect((await w.list(services)).map(({ metadata }) => metadata.name)).toEqual(["demo-head-svc"]);
  });

  it("with the RayCluster's name is told of, left alone, and waited for", async () => {
    const { w, name } = await named();
    const cluster = { apiVersion: "ray.io/v1", kind: "RayCluster", metadata: { name, namespace: "default" } };
    await w.client.create(rayClusters, { ...cluster, spec: { ...clusterSpec(0), suspend: true } });
    await edit(w, { suspend: false });
    await w.until(
      "told",
      async () => condition(await w.job(), "Started")?.message.includes("does not belong") === true,
    );
    await w.clock.advance(60_000);
    expect(await w.list(rayClusters)).toHaveLength(1);
    await w.client.delete(rayClusters, "default", name);
    await w.untilPhase("Complete", "demo", 120_000);
  });
});

it("a RayJob that another controller manages is not touched, not even when it is deleted", async () => {
  const w = world();
  await w.client.create(rayJobs, rayJob({ managedBy: "kueue.x-k8s.io/multikueue" }));
  await w.clock.advance(60_000);
  const job = await w.job();
  expect(job?.status).toBeUndefined();
  expect(job?.metadata.finalizers).toBeUndefined();
  await w.client.delete(rayJobs, "default", "demo");
  expect(await w.job()).toBeUndefined();
});
