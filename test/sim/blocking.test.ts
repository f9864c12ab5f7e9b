/** BlockingRecreate: attempts that never overlap, whoever holds what is left, and whoever restarts meanwhile. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import { LABEL } from "../../src/api/labels.ts";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { pods, rayJobs } from "../../src/machinery/kube/resources.ts";
import { rayJob } from "../support/manifests.ts";
import { prompt } from "./fakeKubelet.ts";
import { fails, type JobScript, runsForEver, succeeds } from "./fakeRay.ts";
import { type Scripts, World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

const HOLD = "example.com/hold";
const condition = (job: RayJob | undefined, type: string) => job?.status?.conditions?.find((one) => one.type === type);
const edit = (w: World, spec: object) => w.client.patch(rayJobs, "default", "demo", { spec });
const attemptOf = (w: World) => w.job().then((job) => job?.status?.executionAttempt);
const until = (w: World, attempt: number) =>
  w.until(`attempt ${attempt}`, async () => (await attemptOf(w)) === attempt);

/** A RayJob with BlockingRecreate, whose attempts do one after the other what `lives` say. */
async function blocking(spec: Partial<RayJobSpec>, lives: JobScript[], scripts: Scripts = {}) {
  const w = new World({ job: () => lives.shift() ?? succeeds(3000), ...scripts });
  worlds.push(w);
  const operator = w.start();
  const retryStrategy = { type: "BlockingRecreate", ...spec.retryStrategy } as RayJobSpec["retryStrategy"];
  await w.client.create(rayJobs, rayJob({ backoffLimit: 2, ...spec, retryStrategy }));
  return { w, operator };
}

/** Somebody holds the head with a finalizer: it stays in Terminating until it is let go. */
async function hold(w: World): Promise<() => Promise<unknown>> {
  await w.until("a head", async () => (await w.head()) !== undefined);
  const { name } = (await w.head()).metadata;
  await w.client.patch(pods, "default", name, { metadata: { finalizers: [HOLD] } });
  return () => w.client.patch(pods, "default", name, { metadata: { finalizers: null } });
}

const heldAt = (w: World) =>
  w.until("the head held in Terminating", async () =>
    (await w.list<Pod>(pods)).some(({ metadata }) => metadata.deletionTimestamp && metadata.finalizers?.includes(HOLD)),
  );

describe.each(["K8sJobMode", "HTTPMode"] as const)("in %s", (submissionMode) => {
  it("a job that fails twice and succeeds at the third try never has Pods of two attempts at a time", async () => {
    const slow = { pod: () => ({ ...prompt, terminate: 20_000 }) };
    const { w } = await blocking({ submissionMode }, [fails(3000), fails(3000), succeeds(3000)], slow);
    const overlaps: string[] = [];
    w.kube.storage.listen(({ resource, type }) => {
      if (resource !== "/pods" || type !== "ADDED") return;
      const all = w.kube.storage.all("/pods") as unknown as Pod[];
      const attempts = new Set(all.map(({ metadata }) => metadata.labels?.[LABEL.executionAttempt]));
      if (attempts.size > 1) overlaps.push([...attempts].join());
    });
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ executionAttempt: 2, failed: 2, succeeded: 1 });
    expect(overlaps).toEqual([]);
    expect(status?.attempts?.map(({ number, retryStrategy }) => [number, retryStrategy])).toEqual([
      [0, "BlockingRecreate"],
      [1, "BlockingRecreate"],
      [2, "BlockingRecreate"],
    ]);
    const told = await w.events();
    expect(told.filter((text) => text.includes("RetryBlocked"))).toHaveLength(2);
    expect(told.filter((text) => text.includes("RetryUnblocked"))).toHaveLength(2);
  });

  it("a job that succeeds costs no write more than with Recreate", async () => {
    const { w, operator } = await blocking({ submissionMode }, [succeeds(5000)]);
    await w.untilPhase("Complete");
    await w.clock.advance(120_000);
    const { writes } = operator.process;
    expect(writes.length, writes.join("\n")).toBeLessThanOrEqual(submissionMode === "HTTPMode" ? 15 : 16);
  });

  it("a Pod held in Terminating blocks for as long as it is held, over a restart, a suspension and a resume", async () => {
    const { w, operator } = await blocking({ submissionMode }, [fails(3000)]);
    const release = await hold(w);
    await heldAt(w);
    await w.clock.advance(60_000);
    const blocked = (await w.job())!;
    expect(blocked.status).toMatchObject({ jobDeploymentStatus: "Retrying", executionAttempt: 0 });
    expect(condition(blocked, "Retrying")).toMatchObject({ status: "True", reason: "Blocked" });
    expect(condition(blocked, "Retrying")?.message).toMatch(/Pod demo-\w+-head on node node-\d+ \(terminating since/);
    operator.process.kill();
    w.start();
    await w.clock.advance(60_000);
    await edit(w, { suspend: true });
    await w.clock.advance(60_000);
    expect((await w.job())?.status).toMatchObject({ jobDeploymentStatus: "Retrying", executionAttempt: 0 });
    await edit(w, { suspend: false });
    await w.clock.advance(600_000);
    expect((await w.job())?.status).toMatchObject({ jobDeploymentStatus: "Retrying", executionAttempt: 0 });
    const before = w.clock.now();
    await release();
    await until(w, 1);
    expect(w.clock.now() - before).toBeLessThan(3000);
    expect((await w.untilPhase("Complete")).status).toMatchObject({ executionAttempt: 1, failed: 1, succeeded: 1 });
  });
});

it("while it is blocked nothing is written but what changed, every ten seconds at most", async () => {
  const { w } = await blocking({}, [fails(3000)]);
  await hold(w);
  await heldAt(w);
  await w.clock.advance(30_000);
  const { resourceVersion } = (await w.job())!.metadata;
  await w.clock.advance(3_600_000);
  expect((await w.job())!.metadata.resourceVersion).toBe(resourceVersion);
});

it("suspended at the barrier it is Suspended when the last Pod is gone, and resumes with the next number", async () => {
  const { w } = await blocking({}, [fails(3000)]);
  const release = await hold(w);
  await heldAt(w);
  await edit(w, { suspend: true });
  await w.clock.advance(30_000);
  expect((await w.job())?.status?.jobDeploymentStatus).toBe("Retrying");
  await release();
  expect((await w.untilPhase("Suspended")).status).toMatchObject({ executionAttempt: 0, failed: 1 });
  expect(await w.list(pods)).toEqual([]);
  await edit(w, { suspend: false });
  expect((await w.untilPhase("Complete")).status).toMatchObject({ executionAttempt: 1, succeeded: 1 });
});

it("blockingTimeoutSeconds ends it, and no further attempt is made even when the Pod goes later", async () => {
  const { w } = await blocking({ retryStrategy: { blockingTimeoutSeconds: 120 } }, [fails(3000)]);
  const release = await hold(w);
  await w.untilPhase("Retrying");
  const since = Date.parse(condition(await w.job(), "Retrying")!.lastTransitionTime);
  const { status } = await w.untilPhase("Failed");
  expect(w.clock.now() - since).toBeGreaterThanOrEqual(120_000);
  expect(w.clock.now() - since).toBeLessThan(125_000);
  expect(status).toMatchObject({ reason: "RetryBlockedTimeoutExceeded", executionAttempt: 0, failed: 1 });
  // Not only the RayCluster, which is there because the Pod is: nobody can do anything about that.
  expect(status?.message).toMatch(
    /did not go: Pod demo-\w+-head on node node-\d+ \(terminating since .*\), RayCluster/,
  );
  expect(condition(await w.job(), "Failed")?.reason).toBe("RetryBlockedTimeout");
  await release();
  await w.until("released", async () => condition(await w.job(), "ResourcesReleased")?.status === "True");
  expect((await w.job())?.status).toMatchObject({ jobDeploymentStatus: "Failed", executionAttempt: 0 });
});

it("a restart neither loses nor lengthens the time; a suspension does not count", async () => {
  const { w, operator } = await blocking({ retryStrategy: { blockingTimeoutSeconds: 120 } }, [fails(3000)]);
  await hold(w);
  await heldAt(w);
  await w.until("Blocked", async () => condition(await w.job(), "Retrying")?.reason === "Blocked");
  const since = Date.parse(condition(await w.job(), "Retrying")!.lastTransitionTime);
  await w.clock.advance(30_000);
  operator.process.kill();
  await w.clock.advance(20_000);
  w.start();
  await edit(w, { suspend: true });
  await w.clock.advance(1_000_000);
  expect((await w.job())?.status?.jobDeploymentStatus).toBe("Retrying");
  await edit(w, { suspend: false });
  await w.untilPhase("Failed");
  const took = w.clock.now() - since - 1_000_000;
  expect(took).toBeGreaterThan(118_000);
  expect(took).toBeLessThan(125_000);
});

it("changed to Recreate while blocked, the next attempt begins though the Pod is still there", async () => {
  const { w } = await blocking({}, [fails(3000)]);
  await hold(w);
  await heldAt(w);
  await w.clock.advance(30_000);
  await edit(w, { retryStrategy: { type: "Recreate", blockingTimeoutSeconds: null } });
  await until(w, 1);
  expect((await w.untilPhase("Complete")).status).toMatchObject({ succeeded: 1 });
});

describe.each(["K8sJobMode", "HTTPMode"] as const)("the one head of an attempt in %s", (submissionMode) => {
  const headsMade = (w: World) => {
    const made: string[] = [];
    w.kube.storage.listen(({ resource, type, object }) => {
      if (resource !== "/pods" || type !== "ADDED" || object.metadata.labels?.[LABEL.nodeType] !== "head") return;
      made.push(object.metadata.labels[LABEL.cluster]!);
    });
    return made;
  };
  const endings: readonly [
    string,
    (w: World, head: Pod & { metadata: { uid: string; name: string } }) => Promise<unknown>,
  ][] = [
    [
      "deleted by force",
      (w, { metadata }) => w.client.delete(pods, "default", metadata.name, { gracePeriodSeconds: 0 }),
    ],
    ["evicted", (w, { metadata }) => w.kubelet.end(metadata.uid, { exitCode: 137, podReason: "Evicted" })],
    ["killed by memory", (w, { metadata }) => w.kubelet.end(metadata.uid, { exitCode: 137, reason: "OOMKilled" })],
  ];

  it.each(endings)("%s while the job runs ends the attempt, and no second head is made in it", async (_, end) => {
    const { w } = await blocking({ submissionMode }, [runsForEver, succeeds(3000)]);
    const made = headsMade(w);
    await w.until("RUNNING", async () => (await w.job())?.status?.jobStatus === "RUNNING");
    await end(w, await w.head());
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ executionAttempt: 1, failed: 1, succeeded: 1 });
    expect(made).toHaveLength(2);
    expect(new Set(made).size).toBe(2);
    expect(w.submissions).toHaveLength(2);
  });

  it("lost before the cluster is ready fails the attempt at once, and the next one has its own", async () => {
    const { w } = await blocking({ submissionMode }, [succeeds(3000)]);
    const made = headsMade(w);
    await w.until("a head", async () => (await w.head())?.status?.phase === "Running");
    await w.client.delete(pods, "default", (await w.head()).metadata.name, { gracePeriodSeconds: 0 });
    const before = w.clock.now();
    await w.untilPhase("Retrying");
    expect(w.clock.now() - before).toBeLessThan(5000);
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ executionAttempt: 1, failed: 1, succeeded: 1 });
    expect(status?.attempts?.[0]?.message).toContain("lost its only head before the job was submitted");
    expect(made).toHaveLength(2);
  });

  it("that has failed stays for diagnosis while the cluster is kept", async () => {
    const { w } = await blocking({ submissionMode, backoffLimit: 0, shutdownAfterJobFinishes: false }, [runsForEver]);
    await w.until("RUNNING", async () => (await w.job())?.status?.jobStatus === "RUNNING");
    const head = await w.head();
    await w.kubelet.end(head.metadata.uid, { exitCode: 1 });
    await w.untilPhase("Failed");
    await w.clock.advance(3_600_000);
    expect((await w.head()).metadata.uid).toBe(head.metadata.uid);
    expect((await w.head()).status?.phase).toBe("Failed");
  });
});

it("label and annotation tell the attempt on everything, replacements too, whatever the templates say", async () => {
  const spec = rayJob().spec.rayClusterSpec!;
  const lies = {
    labels: { [LABEL.executionAttempt]: "9", [LABEL.rayJobUID]: "x" },
    annotations: { [LABEL.executionAttempt]: "9" },
  };
  spec.headGroupSpec.template.metadata = lies;
  for (const group of spec.workerGroupSpecs ?? []) group.template.metadata = lies;
  const { w } = await blocking({ rayClusterSpec: spec }, [fails(3000), runsForEver]);
  const uid = (await w.job())!.metadata.uid;
  const wrong: string[] = [];
  const seen = new Set<string>();
  w.kube.storage.listen(({ type, object }) => {
    const kind = object.kind ?? "";
    if (type !== "ADDED" || !["RayCluster", "Job", "Pod"].includes(kind)) return;
    const { labels = {}, annotations = {}, name } = object.metadata;
    const current = (w.kube.storage.all("ray.io/rayjobs")[0] as unknown as RayJob).status?.executionAttempt;
    seen.add(`${kind} ${labels[LABEL.nodeType] ?? ""} ${current}`);
    const right =
      labels[LABEL.executionAttempt] === String(current) && annotations[LABEL.executionAttempt] === String(current);
    if (!right || labels[LABEL.rayJobUID] !== uid) wrong.push(`${kind} ${name}`);
  });
  await until(w, 1);
  await w.until("RUNNING", async () => (await w.job())?.status?.jobStatus === "RUNNING");
  const worker = (await w.list<Pod>(pods)).find(({ metadata }) => metadata.labels?.[LABEL.nodeType] === "worker")!;
  const before = w.kubelet.running.length;
  await w.kubelet.end(worker.metadata.uid, { exitCode: 1 });
  await w.until("a replacement", () => w.kubelet.running.length === before);
  expect(wrong).toEqual([]);
  expect([...seen].sort()).toEqual(
    ["0", "1"]
      .flatMap((n) => [`Job  ${n}`, `Pod  ${n}`, `Pod head ${n}`, `Pod worker ${n}`, `RayCluster  ${n}`])
      .sort(),
  );
});
