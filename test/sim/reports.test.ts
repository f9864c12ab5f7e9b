/**
 * What users of KubeRay reported and takes minutes to see, or every write and line of a life, on a virtual clock; each in
 * the words of what they would have liked to see. The other reports are told on a real API server
 * (test/integration/reports.test.ts).
 */
import { describe, expect, it } from "vitest";
import type { Job, Pod } from "../../src/api/kubernetes.ts";
import { LABEL, NODE_TYPE } from "../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob, RayJobSpec, SubmissionMode } from "../../src/api/rayjob.ts";
import { jobs, pods, rayClusters, rayJobs } from "../../src/machinery/kube/resources.ts";
import type { Logger } from "../../src/machinery/logger.ts";
import { clusterSpec, rayCluster, rayJob } from "../support/manifests.ts";
import { badImage, type PodBehaviour, prompt, stuckTerminating } from "./fakeKubelet.ts";
import { fails, type JobScript, runsForEver, succeeds } from "./fakeRay.ts";
import { diligent } from "./fakeSubmitter.ts";
import type { Scripts, World } from "./world.ts";
import { worldMaker } from "./worlds.ts";

const MINUTE = 60_000;
const world = worldMaker();

const condition = (job: RayJob, type: string) => job.status?.conditions?.find((one) => one.type === type);
const isHead = (pod: Pod) => pod.metadata.labels?.[LABEL.nodeType] === NODE_TYPE.head;
const isWorker = (pod: Pod) => pod.metadata.labels?.[LABEL.nodeType] === NODE_TYPE.worker;
const workers = async (w: World) => (await w.list<Pod>(pods)).filter(isWorker);
const running = (w: World) => w.until("RUNNING", async () => (await w.job())?.status?.jobStatus === "RUNNING");

/** A head of `restartPolicy: Never`, as Kueue's users write it. */
function headThatIsNotRestarted() {
  const spec = clusterSpec();
  spec.headGroupSpec.template.spec!.restartPolicy = "Never";
  return spec;
}

describe("a head that can never live", () => {
  /** A RayJob whose heads all end so; the seconds at which they were made. */
  async function withHeadsThat(dies: NonNullable<PodBehaviour["dies"]>, spec: Partial<RayJob["spec"]> = {}) {
    const made: number[] = [];
    const w = world({
      pod(pod) {
        if (!isHead(pod)) return prompt;
        made.push(w.clock.now() / 1000);
        return { ...prompt, dies };
      },
    });
    w.start();
    await w.client.create(rayJobs, rayJob({ rayClusterSpec: headThatIsNotRestarted(), ...spec }));
    const job = await w.untilPhase("Failed");
    await w.until("nothing held", async () => (await w.list(rayClusters)).length === 0);
    return { w, job, made };
  }
  const pauses = (made: readonly number[]) => made.slice(1).map((at, index) => at - made[index]!);

  it("because its image has no Ray is made anew with growing pauses, and then the job says so", async () => {
    const { w, job, made } = await withHeadsThat({ exitCode: 127 });
    expect(pauses(made)).toEqual(pauses(made).toSorted((one, other) => one - other));
    expect(made.filter((at) => at < made[0]! + 60).length).toBeLessThan(6);
    expect(job.status).toMatchObject({ reason: "SubmissionFailed", failed: 1, executionAttempt: 0 });
    expect(job.status?.jobStatus).toBeUndefined();
    expect(job.status?.message).toMatch(/failed 6 times in a row; Pod \S+-head has failed: container ray-head .*127/);
    expect(condition(job, "Failed")?.reason).toBe("HeadPodFailed");
    expect(made).toHaveLength(6);
    expect(w.submissions).toEqual([]);
  });

  it("because its init container fails for sure is not churned, and the job names container and code", async () => {
    const { job, made } = await withHeadsThat({ exitCode: 42, initContainer: "fetch-data" });
    expect(made.filter((at) => at < made[0]! + 60).length).toBeLessThan(6);
    expect(job.status?.message).toMatch(/init container fetch-data ended with exit code 42/);
  });

  it("is tried on another cluster when the job may be tried again, and no oftener than that", async () => {
    const { job, made } = await withHeadsThat({ exitCode: 127 }, { backoffLimit: 1 });
    expect(job.status).toMatchObject({ failed: 2, executionAttempt: 1 });
    expect(made).toHaveLength(12);
  });

  it("but comes to itself at the fifth try has cost nothing but time", async () => {
    let heads = 0;
    const w = world({
      pod: (pod) => (isHead(pod) && heads++ < 4 ? { ...prompt, dies: { exitCode: 1, podReason: "Evicted" } } : prompt),
    });
    w.start();
    await w.client.create(rayJobs, rayJob());
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ executionAttempt: 0, failed: 0 });
    expect(heads).toBe(5);
  });
});

describe("a node that dies", () => {
  it("loses its worker to another node, and keeps the Pod that cannot end", async () => {
    const w = world({ pod: (pod) => (isWorker(pod) ? stuckTerminating : prompt) });
    w.start();
    await w.client.create(rayClusters, rayCluster("lone"));
    const ready = async () => (await w.get<ReturnType<typeof rayCluster> & Stored>(rayClusters, "lone"))?.status;
    await w.until("two workers", async () => (await ready())?.readyWorkerReplicas === 2);
    const lost = (await workers(w))[0]!;
    await w.kubelet.lose(lost.metadata.uid);
    await w.until("one worker left", async () => (await ready())?.readyWorkerReplicas === 1);
    await w.until("two workers again", async () => (await ready())?.readyWorkerReplicas === 2, 7 * MINUTE);
    const still = (await workers(w)).find(({ metadata }) => metadata.uid === lost.metadata.uid);
    expect(still?.metadata.deletionTimestamp).toBeDefined();
    expect(await workers(w)).toHaveLength(3);
  });

  it.each(["K8sJobMode", "HTTPMode"] as const)(
    "takes the head along: the job in %s is failed, not left",
    async (submissionMode) => {
      const w = world({ job: () => runsForEver });
      w.start();
      await w.client.create(rayJobs, rayJob({ submissionMode }));
      await running(w);
      await w.kubelet.lose((await w.head()).metadata.uid);
      const job = await w.untilPhase("Failed", "demo", MINUTE);
      expect(condition(job, "Failed")?.reason).toBe("HeadPodLost");
      expect(job.status?.message).toContain("does not report");
      expect(w.submissions).toHaveLength(1);
    },
  );
});

describe("a dashboard in HTTPMode", () => {
  it("that fails, comes to itself, and fails again for less than the limit each time ends no job", async () => {
    const w = world({ job: () => succeeds(500_000) });
    w.start();
    await w.client.create(rayJobs, rayJob({ submissionMode: "HTTPMode" }));
    await running(w);
    const dashboard = w.ray.heads.get((await w.head()).metadata.uid)!;
    for (const _ of ["once", "again"]) {
      dashboard.mood = 500;
      await w.clock.advance(200_000);
      dashboard.mood = "well";
      await w.clock.advance(30_000);
      expect((await w.job())?.status?.jobDeploymentStatus).toBe("Running");
    }
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", failed: 0 });
    expect(w.submissions).toHaveLength(1);
  });
});

/** A world with an operator and a RayJob, whose attempts run these jobs; the last one again and again. */
async function living(spec: Partial<RayJobSpec> = {}, scripts: readonly JobScript[] = [runsForEver], more?: Scripts) {
  const left = [...scripts];
  const w = world({ job: () => (left.length > 1 ? left.shift()! : left[0]!), ...more });
  w.start();
  await w.client.create(rayJobs, rayJob(spec));
  return w;
}
const edit = (w: World, spec: Partial<RayJobSpec>) => w.client.patch(rayJobs, "default", "demo", { spec });
const ofCluster = async (w: World) => (await w.list<Pod>(pods)).filter((pod) => isHead(pod) || isWorker(pod));
const headOf = (w: World, uid: string) => w.ray.heads.get(uid)!;

describe("a head that is lost while its job runs, and whose successor knows no job", () => {
  const losses: Record<string, (w: World, head: Stored<Pod>) => Promise<unknown>> = {
    OOMKilled: (w, { metadata: { uid } }) => w.kubelet.restart(uid, { exitCode: 137, reason: "OOMKilled" }),
    Evicted: (w, { metadata: { uid } }) => w.kubelet.end(uid, { exitCode: 137, podReason: "Evicted" }),
    deleted: (w, { metadata: { name } }) => w.client.delete(pods, "default", name, { gracePeriodSeconds: 0 }),
  };
  const how = Object.keys(losses).flatMap((loss) => [0, 1].map((exitCode) => ({ loss, exitCode })));

  it.each(how)("($loss; its submitter exits with $exitCode) leaks no cluster: the job has failed", async (given) => {
    const w = await living({ submitterConfig: { backoffLimit: 0 } });
    await running(w);
    await w.until("two workers", async () => (await workers(w)).length === 2);
    const head = await w.head();
    const [submitter] = await w.submitterPods();
    await losses[given.loss]!(w, head);
    await w.kubelet.end(submitter!.metadata.uid, { exitCode: given.exitCode });
    const job = await w.untilPhase("Failed", "demo", MINUTE);
    expect(job.status).toMatchObject({ reason: "AppFailed", jobStatus: "FAILED", failed: 1 });
    // Why it died stays readable when the Pod is gone.
    expect(job.status?.message).toContain(head.metadata.name);
    if (given.loss !== "deleted") expect(job.status?.message).toContain(given.loss);
    await w.until("nothing held", async () => (await ofCluster(w)).length === 0, MINUTE);
    expect(await w.list(rayClusters)).toEqual([]);
    expect((await w.job())?.status?.message).toBe(job.status?.message);
    expect(w.submissions).toHaveLength(1);
  });

  it.each(Object.keys(losses))("(%s) costs an attempt, and the next one has its own cluster", async (loss) => {
    const w = await living({ backoffLimit: 1 }, [runsForEver, succeeds()]);
    await running(w);
    await losses[loss]!(w, await w.head());
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ executionAttempt: 1, failed: 1, succeeded: 1 });
    const clusters = status!.attempts!.map(({ rayClusterName }) => rayClusterName);
    expect(new Set(clusters)).toHaveLength(2);
    expect(w.submissions).toHaveLength(2);
  });
});

it("an operator that sees everything 40 s late takes no success for a failure, and tries nothing again", async () => {
  const w = world({ job: () => succeeds(20_000) });
  w.start({ lag: () => 40_000 });
  await w.client.create(rayJobs, rayJob({ backoffLimit: 3 }));
  const { status } = await w.untilPhase("Complete");
  expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, failed: 0 });
  expect(w.submissions).toHaveLength(1);
});

describe("who goes by jobStatus alone, to give quota back, sees the end of a job", () => {
  it.each<[string, Partial<RayJobSpec>, (w: World) => Promise<unknown>, string]>([
    ["whose deadline passed", { activeDeadlineSeconds: 60 }, async () => {}, "STOPPED"],
    ["whose head is lost", {}, async (w) => w.kubelet.lose((await w.head()).metadata.uid), "FAILED"],
    [
      "whose dashboard stays silent",
      {},
      async (w) => {
        headOf(w, (await w.head()).metadata.uid).mood = "hang";
      },
      "FAILED",
    ],
    [
      "whose dashboard is silent when its deadline passes",
      { activeDeadlineSeconds: 60 },
      async (w) => {
        headOf(w, (await w.head()).metadata.uid).mood = "hang";
      },
      "FAILED",
    ],
  ])("%s", async (_, spec, happens, jobStatus) => {
    const w = await living(spec);
    await running(w);
    await happens(w);
    expect((await w.untilPhase("Failed")).status?.jobStatus).toBe(jobStatus);
  });
});

describe("trying again", () => {
  const early = { submitter: () => ({ ...diligent, failsEarly: true }) };
  const never: PodBehaviour = { ...prompt, ready: Number.POSITIVE_INFINITY };
  it.each<[string, Partial<RayJobSpec>, Scripts, ((w: World) => Promise<unknown>) | undefined, number]>([
    ["AppFailed", {}, { job: () => fails() }, undefined, 2],
    ["SubmissionFailed", { submitterConfig: { backoffLimit: 0 } }, early, undefined, 2],
    ["PreRunningDeadlineExceeded", { preRunningDeadlineSeconds: 30 }, { pod: () => never }, undefined, 2],
    ["DeadlineExceeded", { activeDeadlineSeconds: 60 }, {}, undefined, 1],
    [
      "JobStatusCheckTimeoutExceeded",
      {},
      {},
      async (w) => {
        await running(w);
        headOf(w, (await w.head()).metadata.uid).mood = 502;
      },
      1,
    ],
  ])("after %s is done or not, as documented", async (reason, spec, scripts, happens, attempts) => {
    const w = await living({ backoffLimit: 1, ...spec }, [runsForEver], scripts);
    await happens?.(w);
    const { status } = await w.untilPhase("Failed");
    expect(status).toMatchObject({ reason, failed: attempts, executionAttempt: attempts - 1 });
  });

  it("gives each attempt its own activeDeadlineSeconds: three of 50 s are no job of 150 s", async () => {
    const w = await living({ backoffLimit: 2, activeDeadlineSeconds: 60 }, [
      fails(40_000),
      fails(40_000),
      succeeds(40_000),
    ]);
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ executionAttempt: 2, failed: 2, succeeded: 1 });
    expect(status?.startTime).toBe(status?.attempts?.at(-1)?.startTime);
  });
});

it("a job whose tasks can never be placed is stopped at its deadline, and its cluster goes", async () => {
  const w = await living({ activeDeadlineSeconds: 120 });
  const { status } = await w.untilPhase("Failed", "demo", 3 * MINUTE);
  expect(status).toMatchObject({ reason: "DeadlineExceeded", jobStatus: "STOPPED" });
  await w.until("nothing held", async () => (await w.list(rayClusters)).length === 0, MINUTE);
});

describe("a RayJob that is evicted while its cluster comes up", () => {
  it("is Suspended, with nothing left, before it is deleted", async () => {
    const w = await living({}, [runsForEver], { pod: () => badImage });
    await w.until("a head", async () => Boolean(await w.head()));
    await edit(w, { suspend: true });
    await w.untilPhase("Suspended", "demo", MINUTE);
    expect([...(await w.list(rayClusters)), ...(await w.list(pods))]).toEqual([]);
    await w.client.delete(rayJobs, "default", "demo");
    await w.until("gone", async () => (await w.job()) === undefined, MINUTE);
  });

  it("and deleted in the same moment leaves nothing either", async () => {
    const w = await living({}, [runsForEver], { pod: () => badImage });
    await w.until("a head", async () => Boolean(await w.head()));
    await edit(w, { suspend: true });
    await w.client.delete(rayJobs, "default", "demo");
    await w.until("gone", async () => (await w.job()) === undefined, MINUTE);
    await w.until("nothing left", async () => (await w.list(pods)).length === 0, MINUTE);
    await w.clock.advance(MINUTE);
    expect([...(await w.list(rayClusters)), ...(await w.list(pods))]).toEqual([]);
  });
});

describe("a queue", () => {
  const QUEUE = { "kueue.x-k8s.io/queue-name": "q" };
  const queued = (spec: Partial<RayJobSpec>): RayJob => {
    const { metadata, ...rest } = rayJob(spec);
    return { ...rest, metadata: { ...metadata, labels: QUEUE } };
  };

  it("that has admitted a RayJob finds its RayCluster owned by that, and not suspended by itself", async () => {
    const w = world();
    const seen: Stored<RayCluster>[] = [];
    w.kube.storage.listen(({ object }) => {
      if (object.kind === "RayCluster") seen.push(object as unknown as Stored<RayCluster>);
    });
    w.start();
    await w.client.create(rayJobs, queued({ suspend: true }));
    const { metadata } = await w.untilPhase("Suspended");
    await edit(w, { suspend: false });
    await w.untilPhase("Complete");
    expect(seen.length).toBeGreaterThan(0);
    for (const cluster of seen) {
      const [owner] = cluster.metadata.ownerReferences ?? [];
      expect(owner).toMatchObject({ kind: "RayJob", uid: metadata.uid, controller: true });
      expect(cluster.spec.suspend ?? false).toBe(false);
    }
  });

  it("finds a RayJob on a shared cluster without a cluster of its own, and the shared one as it was", async () => {
    const w = world();
    w.start();
    await w.client.create(rayClusters, rayCluster("shared"));
    const shared = async () => (await w.get<RayCluster>(rayClusters, "shared"))!;
    await w.until("ready", async () => (await shared()).status?.state === "ready");
    const was = await shared();
    const spec = { clusterSelector: { [LABEL.cluster]: "shared" }, rayClusterSpec: undefined };
    await w.client.create(rayJobs, queued({ ...spec, shutdownAfterJobFinishes: undefined }));
    const job = await w.untilPhase("Complete");
    expect(job.spec).not.toHaveProperty("rayClusterSpec");
    await w.client.delete(rayJobs, "default", "demo");
    await w.until("gone", async () => (await w.job()) === undefined, MINUTE);
    const is = await shared();
    expect({ labels: is.metadata.labels, spec: is.spec }).toEqual({ labels: was.metadata.labels, spec: was.spec });
    expect(is.metadata.uid).toBe(was.metadata.uid);
  });

  it("that holds workers back by a scheduling gate has it kept: no Pod is ever changed, at whatever scale", async () => {
    const w = world({
      pod: (pod) => (isWorker(pod) ? { ...prompt, schedule: Number.POSITIVE_INFINITY } : prompt),
    });
    const { process } = w.start();
    const spec = clusterSpec(1);
    const gates = [{ name: "kueue.x-k8s.io/elastic-job" }];
    Object.assign(spec.workerGroupSpecs![0]!.template.spec!, { schedulingGates: gates });
    await w.client.create(rayClusters, { ...rayCluster("lone"), spec });
    await w.until("a worker", async () => (await workers(w)).length === 1);
    const [group] = spec.workerGroupSpecs!;
    await w.client.patch(rayClusters, "default", "lone", {
      spec: { workerGroupSpecs: [{ ...group, replicas: 3 }] },
    });
    await w.until("three workers", async () => (await workers(w)).length === 3);
    const [lost] = await workers(w);
    await w.client.delete(pods, "default", lost!.metadata.name, { gracePeriodSeconds: 0 });
    const replaced = async () => (await workers(w)).every(({ metadata }) => metadata.uid !== lost!.metadata.uid);
    await w.until("another worker", async () => (await replaced()) && (await workers(w)).length === 3);
    for (const { spec: is } of await workers(w)) expect(is).toMatchObject({ schedulingGates: gates });
    expect(process.writes.filter((write) => /^(PATCH|PUT) \S*\/pods\//.test(write))).toEqual([]);
  });

  it("that scales up and down within a second gets what it asked for last, and no Pod beyond what it asked for", async () => {
    const w = world();
    w.start();
    await w.client.create(rayClusters, rayCluster("lone", 1));
    const own = async () => (await w.get<RayCluster>(rayClusters, "lone"))!;
    await w.until("ready", async () => (await own()).status?.state === "ready");
    let [now, most] = [1, 1];
    w.kube.storage.listen(({ type, object }) => {
      if (object.kind !== "Pod" || !isWorker(object as unknown as Pod)) return;
      now += { ADDED: 1, MODIFIED: 0, DELETED: -1 }[type];
      most = Math.max(most, now);
    });
    const [group] = clusterSpec().workerGroupSpecs!;
    for (const replicas of [2, 3, 2]) {
      await w.client.patch(rayClusters, "default", "lone", { spec: { workerGroupSpecs: [{ ...group, replicas }] } });
      await w.clock.advance(300);
    }
    await w.until("two workers", async () => (await own()).status?.readyWorkerReplicas === 2);
    await w.clock.advance(MINUTE);
    expect(await workers(w)).toHaveLength(2);
    expect(most).toBeLessThanOrEqual(3);
    const { metadata, status } = await own();
    expect(status?.observedGeneration).toBe(metadata.generation);
  });
});

it("the longest name that a RayJob may have is not too long for anything that is made for it", async () => {
  const name = "n".repeat(47);
  const w = world();
  const long: string[] = [];
  w.kube.storage.listen(({ object: { kind, metadata } }) => {
    const { labels = {} } = metadata as Stored["metadata"];
    const values = [metadata.name, ...Object.values(labels)];
    for (const value of values) if (value.length > 63 && kind !== "Event") long.push(`${kind} ${value}`);
  });
  w.start();
  await w.client.create(rayJobs, rayJob({}, name));
  const { status } = await w.untilPhase("Complete", name);
  expect(status).toMatchObject({ jobStatus: "SUCCEEDED", failed: 0 });
  expect(long).toEqual([]);
});

describe.each<SubmissionMode>(["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"])(
  "in %s",
  (submissionMode) => {
    it("a job that succeeds and is cleaned up leaves nothing in the log that looks like an error", async () => {
      const lines: string[] = [];
      const into = (level: string) => (fields: object, message: string) => {
        lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
      };
      const log: Logger = { debug: into("debug"), info: into("info"), warn: into("warn"), error: into("error") };
      const w = world();
      w.start({ log });
      await w.client.create(rayJobs, rayJob({ submissionMode }));
      if (submissionMode === "InteractiveMode") {
        await w.untilPhase("Waiting");
        const head = headOf(w, (await w.head()).metadata.uid);
        w.ray.give(head, { entrypoint: "python mine.py", submission_id: "mine" });
        await edit(w, { jobId: "mine" });
      }
      await w.untilPhase("Complete");
      await w.until("nothing held", async () => (await w.list(rayClusters)).length === 0);
      await w.client.delete(rayJobs, "default", "demo");
      await w.until("gone", async () => (await w.job()) === undefined, MINUTE);
      await w.clock.advance(MINUTE);
      expect(lines.length).toBeGreaterThan(0);
      expect(lines.filter((line) => /^(warn|error)|error/i.test(line))).toEqual([]);
    });
  },
);

it("a stranger's Job of a RayJob's name outlives an InteractiveMode that is suspended, and deleted", async () => {
  const w = await living({ submissionMode: "InteractiveMode" });
  const container = { name: "c", image: "busybox" };
  const metadata = { name: "demo", namespace: "default" };
  const spec = { suspend: true, template: { spec: { restartPolicy: "Never", containers: [container] } } };
  await w.client.create(jobs, { apiVersion: "batch/v1", kind: "Job", metadata, spec } as Job & KubeObject);
  await w.untilPhase("Waiting");
  await edit(w, { suspend: true });
  await w.untilPhase("Suspended");
  await w.client.delete(rayJobs, "default", "demo");
  await w.until("gone", async () => (await w.job()) === undefined, MINUTE);
  await w.clock.advance(MINUTE);
  expect((await w.list(jobs)).map(({ metadata: { name } }) => name)).toEqual(["demo"]);
});

it("what an autoscaler, or its user, changes in the RayCluster of a running job is left as it is", async () => {
  const w = await living();
  await running(w);
  const [{ metadata, spec }] = (await w.list<RayCluster>(rayClusters)) as [Stored<RayCluster>];
  const [group] = spec.workerGroupSpecs!;
  const workerGroupSpecs = [
    { ...group, replicas: 4, minReplicas: 1 },
    { ...group, groupName: "added", replicas: 1 },
  ];
  await w.client.patch(rayClusters, "default", metadata.name, { spec: { workerGroupSpecs } });
  await w.until("five workers", async () => (await workers(w)).length === 5);
  await w.clock.advance(10 * MINUTE);
  const is = await w.get<RayCluster>(rayClusters, metadata.name);
  expect(is?.spec).toEqual({ ...spec, workerGroupSpecs });
  expect(await workers(w)).toHaveLength(5);
  expect((await w.job())?.status).toMatchObject({ jobDeploymentStatus: "Running", executionAttempt: 0 });
});

it("a RayJob with nothing but a clusterSelector stops no operator, which is started anew in each of its states", async () => {
  const w = world({ job: () => succeeds(60_000) });
  let operator = w.start();
  await w.client.create(rayClusters, rayCluster("shared"));
  const spec = { clusterSelector: { [LABEL.cluster]: "shared" }, rayClusterSpec: undefined };
  await w.client.create(rayJobs, rayJob({ ...spec, shutdownAfterJobFinishes: undefined }));
  for (const phase of ["Initializing", "Running", "Complete"]) {
    await w.untilPhase(phase);
    operator.process.kill();
    operator = w.start();
    await w.client.create(rayJobs, rayJob({}, `beside-${phase.toLowerCase()}`));
  }
  for (const beside of ["beside-initializing", "beside-running", "beside-complete"]) {
    await w.untilPhase("Complete", beside);
  }
  expect((await w.job())?.status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, failed: 0 });
  expect(operator.passes.filter(({ result }) => result === "failed")).toEqual([]);
});
