/** What is deleted when a job has ended, stage by stage, and what is told meanwhile; restarts of the operator included. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import { LABEL } from "../../src/api/labels.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { jobs, namespaces, pods, rayClusters, rayJobs } from "../../src/machinery/kube/resources.ts";
import { silent } from "../../src/machinery/logger.ts";
import { rayCluster, rayJob } from "../support/manifests.ts";
import { fails, runsForEver, succeeds } from "./fakeRay.ts";
import { type Scripts, World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

async function living(spec: Partial<RayJobSpec>, scripts: Scripts = {}, labels: Record<string, string> = {}) {
  const world = new World({ job: () => succeeds(3000), ...scripts });
  worlds.push(world);
  const running = world.start();
  const { metadata, ...rest } = rayJob({ shutdownAfterJobFinishes: false, ...spec });
  await world.client.create(rayJobs, { ...rest, metadata: { ...metadata, labels } });
  return { world, running };
}

type Rules = NonNullable<RayJobSpec["deletionStrategy"]>["deletionRules"];
const STAGED: Rules = (["DeleteWorkers", "DeleteCluster", "DeleteSelf"] as const).map((policy, index) => ({
  policy,
  condition: { jobStatus: "SUCCEEDED", ttlSeconds: [15, 35, 55][index]! },
}));
const SECOND = 1000;

/** `cluster`, `head`, `2 workers`, `job`: what there is of the RayJob. */
async function thereIs(world: World): Promise<string[]> {
  const ofType = async (type: string) =>
    (await world.list<Pod>(pods)).filter(({ metadata }) => metadata.labels?.[LABEL.nodeType] === type).length;
  const workers = await ofType("worker");
  return [
    (await world.job()) ? "job" : "",
    (await world.list(rayClusters)).length > 0 ? "cluster" : "",
    (await ofType("head")) > 0 ? "head" : "",
    workers > 0 ? `${workers} workers` : "",
  ].filter(Boolean);
}

const condition = async (world: World) =>
  (await world.job())?.status?.conditions?.find(({ type }) => type === "ResourcesReleased");

it("stages come one after the other, though the operator is started anew before each", async () => {
  const { world, running } = await living({ deletionStrategy: { deletionRules: STAGED } });
  const { status } = await world.untilPhase("Complete");
  const end = Date.parse(status!.endTime!);
  let last = running;
  const at = async (after: number) => {
    last.process.kill();
    last = world.start();
    await world.clock.advance(end + after * SECOND - world.clock.now());
    return thereIs(world);
  };
  expect(await at(14)).toEqual(["job", "cluster", "head", "2 workers"]);
  expect(await at(20)).toEqual(["job", "cluster", "head"]);
  expect((await condition(world))?.message).toContain("with 1 Pod (cpu 1, memory 1Gi)");
  expect(await at(34)).toEqual(["job", "cluster", "head"]);
  expect(await at(45)).toEqual(["job"]);
  expect(await condition(world)).toMatchObject({ status: "True", reason: "Released" });
  expect(await at(54)).toEqual(["job"]);
  await at(65);
  expect([await thereIs(world), await world.list(jobs)]).toEqual([[], []]);
});

describe.each(["deletionRules", "the older form"])("by %s,", (form) => {
  const strategy = (policy: "DeleteWorkers" | "DeleteCluster" | "DeleteSelf" | "DeleteNone") =>
    form === "deletionRules"
      ? {
          deletionRules: (["Complete", "Failed"] as const).map((jobDeploymentStatus) => ({
            policy,
            condition: { jobDeploymentStatus },
          })),
        }
      : { onSuccess: { policy }, onFailure: { policy } };

  it.each([
    ["DeleteNone", ["job", "cluster", "head", "2 workers"]],
    ["DeleteWorkers", ["job", "cluster", "head"]],
    ["DeleteCluster", ["job"]],
    ["DeleteSelf", []],
  ] as const)("%s leaves %j, however the job ends", async (policy, rest) => {
    for (const [phase, job] of [
      ["Complete", succeeds(3000)],
      ["Failed", fails(3000)],
    ] as const) {
      const { world } = await living({ deletionStrategy: strategy(policy) }, { job: () => job });
      const over = policy === "DeleteSelf" ? undefined : await world.untilPhase(phase);
      await world.until(`only ${rest.join()}`, async () => (await thereIs(world)).join() === rest.join());
      await world.clock.advance(120 * SECOND);
      expect(await thereIs(world)).toEqual(rest);
      // The submitter's log stays readable as long as the RayJob does.
      expect(await world.list(jobs)).toHaveLength(over ? 1 : 0);
    }
  });
});

it("kept Pods are never said to be released, and a queue's user is told that they go on", async () => {
  const { world } = await living(
    { shutdownAfterJobFinishes: true, ttlSecondsAfterFinished: 60 },
    {},
    { "kueue.x-k8s.io/queue-name": "q" },
  );
  await world.untilPhase("Complete");
  expect(await condition(world)).toMatchObject({ status: "False", reason: "KeptByPolicy" });
  expect((await condition(world))?.message).toContain("with 3 Pods (cpu 3, memory 3Gi)");
  await world.until("told", async () => (await world.events()).some((event) => event.includes("PodsKeptOutsideQuota")));
  await world.until("released", async () => (await condition(world))?.status === "True");
  expect(await thereIs(world)).toEqual(["job"]);
});

it("a queue's RayJob may have rules beside shutdownAfterJobFinishes, if its Pods go when its quota does", async () => {
  const deletionRules: Rules = [
    { policy: "DeleteCluster", condition: { jobDeploymentStatus: "Complete" } },
    { policy: "DeleteSelf", condition: { jobDeploymentStatus: "Failed" } },
  ];
  const spec = { shutdownAfterJobFinishes: true, deletionStrategy: { deletionRules } };
  const { world } = await living(spec, {}, { "kueue.x-k8s.io/queue-name": "q" });
  await world.untilPhase("Complete");
  await world.until("released", async () => (await condition(world))?.status === "True");
  expect(await thereIs(world)).toEqual(["job"]);
  const other = await living(spec);
  expect((await other.world.untilPhase("ValidationFailed")).status?.message).toContain("are mutually exclusive");
});

it("a RayJob with rules and without shutdownAfterJobFinishes is born suspended, resumed, and suspended again", async () => {
  const { world } = await living(
    { suspend: true, deletionStrategy: { deletionRules: STAGED } },
    { job: () => succeeds(60 * SECOND) },
  );
  await world.untilPhase("Suspended");
  await world.client.patch(rayJobs, "default", "demo", { spec: { suspend: false } });
  await world.until("RUNNING", async () => (await world.job())?.status?.jobStatus === "RUNNING");
  await world.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
  await world.untilPhase("Suspended");
  expect(await thereIs(world)).toEqual(["job"]);
});

it("quota is not returned while the Pods are still there: Suspended waits for the last one", async () => {
  const { world } = await living(
    { shutdownAfterJobFinishes: true },
    {
      job: () => succeeds(600 * SECOND),
      pod: (pod) => ({
        schedule: 100,
        start: 900,
        ready: 2000,
        terminate: pod.metadata.labels?.[LABEL.nodeType] === "worker" ? 25 * SECOND : SECOND,
      }),
    },
  );
  await world.until("RUNNING", async () => (await world.job())?.status?.jobStatus === "RUNNING");
  await world.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
  const terminating = async () =>
    (await world.list<Pod>(pods)).filter(({ metadata }) => metadata.deletionTimestamp).length;
  await world.until(
    "Pods are all there is",
    async () => (await world.list(rayClusters)).length === 0 && (await terminating()) > 0,
  );
  expect((await world.job())?.status?.jobDeploymentStatus).toBe("Suspending");
  await world.untilPhase("Suspended");
  expect(await world.list<Pod>(pods)).toEqual([]);
});

it("a selected cluster outlives DeleteSelf", async () => {
  const world = new World({ job: () => succeeds(3000) });
  worlds.push(world);
  world.start();
  await world.client.create(rayClusters, rayCluster("shared"));
  const deletionStrategy = { onSuccess: { policy: "DeleteSelf" }, onFailure: { policy: "DeleteNone" } } as const;
  await world.client.create(
    rayJobs,
    rayJob({
      clusterSelector: { [LABEL.cluster]: "shared" },
      rayClusterSpec: undefined,
      deletionStrategy,
      shutdownAfterJobFinishes: false,
    }),
  );
  await world.until("deleted", async () => world.submissions.length > 0 && (await world.job()) === undefined);
  await world.clock.advance(60 * SECOND);
  expect(await thereIs(world)).toEqual(["cluster", "head", "2 workers"]);
});

it.each<[string, Partial<RayJobSpec>]>([
  ["a RayJob that may be tried again", { backoffLimit: 3 }],
  ["a RayJob whose attempts must not overlap", { backoffLimit: 3, retryStrategy: { type: "BlockingRecreate" } }],
  ["a RayJob in HTTPMode", { backoffLimit: 3, submissionMode: "HTTPMode" }],
])("a namespace that is deleted with %s in it goes without a warning in the operator's log", async (_, spec) => {
  const world = new World({ job: () => runsForEver });
  worlds.push(world);
  const loud: string[] = [];
  const say = (fields: object, message: string) => loud.push(`${message} ${JSON.stringify(fields)}`);
  const { passes } = world.start({ log: { ...silent, warn: say, error: say } });
  await world.client.create(namespaces, { metadata: { name: "team" } });
  const { metadata, ...rest } = rayJob(spec);
  const team = { ...metadata, namespace: "team" };
  await world.client.create<RayJob>(rayJobs, { ...rest, metadata: { ...team, finalizers: ["example.com/hold"] } });
  const job = () => world.client.get<RayJob>(rayJobs, "team", "demo");
  await world.until("RUNNING", async () => (await job()).status?.jobStatus === "RUNNING");
  // Its Pods and RayCluster go first, as they may: whoever deletes a namespace deletes in no order.
  await world.client.delete(namespaces, undefined, "team");
  const [cluster] = (await world.client.list<RayCluster>(rayClusters, { namespace: "team" })).items;
  if (cluster) await world.client.delete(rayClusters, "team", cluster.metadata.name).catch(() => {});
  await world.clock.advance(30_000);
  const { finalizers = [] } = (await job()).metadata;
  await world.client.patch(rayJobs, "team", "demo", {
    metadata: { finalizers: finalizers.filter((each) => each !== "example.com/hold") },
  });
  const gone = async () =>
    (await world.client.list(namespaces)).items.every(({ metadata }) => metadata.name !== "team");
  await world.until("the namespace gone", gone, 20_000);
  expect(loud).toEqual([]);
  expect(passes.some(({ outcome }) => outcome?.failures.some(({ kind }) => kind === "refused"))).toBe(false);
});
