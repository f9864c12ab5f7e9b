/** KubeRay has run a RayJob so far; from now on this operator does: what it takes over, and how it goes on. */
import { describe, expect, it } from "vitest";
import type { Job, Pod, Service } from "../../src/api/kubernetes.ts";
import { CREATED_BY, LABEL, NODE_TYPE } from "../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob, RayJobSpec, RayJobStatus } from "../../src/api/rayjob.ts";
import { jobs, pods, rayClusters, rayJobs, services } from "../../src/machinery/kube/resources.ts";
import { rayJob } from "../support/manifests.ts";
import { fails, type JobScript, runsForEver, succeeds } from "./fakeRay.ts";
import { World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

const CLUSTER = "demo-abcde";
const ID = "demo-x7f2k";

function owned(owner: Stored, kind: string) {
  const { name, uid } = owner.metadata;
  const apiVersion = kind === "Job" ? "batch/v1" : "ray.io/v1";
  return [{ apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }];
}

/** All that KubeRay has made by the time a job is RUNNING, as KubeRay writes it: no attempt, no record, no UID label. */
async function underKubeRay(
  script: JobScript | JobScript[],
  spec: Partial<RayJobSpec> = {},
  told: Partial<RayJobStatus> = {},
): Promise<World> {
  const lives = [script].flat();
  const w = new World({ job: () => lives.shift() ?? succeeds(5000) });
  worlds.push(w);
  const manifest = rayJob(spec);
  const finalizers = ["ray.io/rayjob-finalizer"];
  const job = await w.client.create<RayJob>(rayJobs, { ...manifest, metadata: { ...manifest.metadata, finalizers } });
  const at = { namespace: "default" };
  const origin = { [LABEL.originatedFromName]: "demo", [LABEL.originatedFromCRD]: "RayJob" };
  const cluster = await w.client.create<RayCluster>(rayClusters, {
    apiVersion: "ray.io/v1",
    kind: "RayCluster",
    metadata: { ...at, name: CLUSTER, labels: origin, ownerReferences: owned(job, "RayJob") },
    spec: job.spec.rayClusterSpec!,
  } as RayCluster & KubeObject);
  const node = (nodeType: "head" | "worker", group: string) => ({
    [LABEL.cluster]: CLUSTER,
    [LABEL.nodeType]: nodeType,
    [LABEL.group]: group,
    [LABEL.identifier]: `${CLUSTER}-${nodeType}`,
    [LABEL.isRayNode]: "yes",
    [LABEL.applicationName]: "kuberay",
    [LABEL.createdBy]: CREATED_BY,
  });
  const ofCluster = { ...at, ownerReferences: owned(cluster, "RayCluster") };
  const selector = node(NODE_TYPE.head, "headgroup");
  const { [LABEL.isRayNode]: _, [LABEL.group]: __, ...serviceLabels } = selector;
  await w.client.create<Service & KubeObject>(services, {
    apiVersion: "v1",
    kind: "Service",
    metadata: { ...ofCluster, name: `${CLUSTER}-head-svc`, labels: serviceLabels },
    spec: { selector: serviceLabels, ports: [{ name: "dashboard", port: 8265 }] },
  });
  const { headGroupSpec, workerGroupSpecs } = job.spec.rayClusterSpec!;
  const template = { head: headGroupSpec.template, worker: workerGroupSpecs![0]!.template };
  for (const nodeType of ["head", "worker", "worker"] as const) {
    await w.client.create<Pod & KubeObject>(pods, {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        ...ofCluster,
        generateName: `${CLUSTER}-${nodeType === "head" ? "head" : "small-worker"}-`,
        labels: node(nodeType, nodeType === "head" ? "headgroup" : "small"),
      },
      spec: template[nodeType].spec!,
    });
  }
  await w.clock.advance(5000);
  if (manifest.spec.submissionMode !== "HTTPMode") {
    await w.client.create<Job & KubeObject>(jobs, {
      apiVersion: "batch/v1",
      kind: "Job",
      metadata: {
        ...at,
        name: "demo",
        labels: { ...origin, [LABEL.createdBy]: CREATED_BY },
        ownerReferences: owned(job, "RayJob"),
      },
      spec: { template: { spec: { restartPolicy: "Never", containers: [{ name: "s", image: "ray" }] } } },
    });
  }
  const [head] = [...w.ray.heads.values()];
  w.ray.give(head!, { entrypoint: job.spec.entrypoint!, submission_id: ID });
  await w.clock.advance(2000);
  const status: RayJobStatus = {
    jobId: ID,
    rayClusterName: CLUSTER,
    dashboardURL: `${CLUSTER}-head-svc.default.svc.cluster.local:8265`,
    jobStatus: "RUNNING",
    jobDeploymentStatus: "Running",
    startTime: "2026-01-01T00:00:00Z",
    rayJobInfo: { startTime: "2026-01-01T00:00:05Z" },
    succeeded: 0,
    failed: 0,
    ...told,
  };
  await w.client.patch(rayJobs, "default", "demo", { status }, { subresource: "status" });
  const fine = { state: "ready", conditions: [] };
  await w.client.patch(rayClusters, "default", CLUSTER, { status: fine }, { subresource: "status" });
  return w;
}

describe.each(["K8sJobMode", "HTTPMode"] as const)("a RayJob that runs under KubeRay, in %s", (submissionMode) => {
  it("runs to its end under this operator as attempt 0, on the Pods it has", async () => {
    const w = await underKubeRay(succeeds(60_000), { submissionMode });
    const before = (await w.list(pods)).map(({ metadata }) => metadata.name);
    const { process } = w.start();
    await w.clock.advance(30_000);
    expect((await w.list(pods)).map(({ metadata }) => metadata.name)).toEqual(before);
    expect(process.writes.filter((write) => write.startsWith("POST"))).toEqual([
      "POST /api/v1/namespaces/default/services",
    ]);
    const { status } = await w.untilPhase("Complete", "demo", 400_000);
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, succeeded: 1, failed: 0 });
    expect(status?.attempts).toMatchObject([{ number: 0, jobId: ID, rayClusterName: CLUSTER }]);
    expect(w.submissions).toHaveLength(1);
    await w.until("released", async () => (await w.list(rayClusters)).length === 0, 60_000);
  });

  it("that was tried before goes on counting where KubeRay was", async () => {
    const lives = [fails(30_000), succeeds(5000)];
    const w = await underKubeRay(lives, { submissionMode, backoffLimit: 3 }, { failed: 2 });
    w.start();
    const { status } = await w.untilPhase("Complete", "demo", 900_000);
    expect(status).toMatchObject({ executionAttempt: 3, failed: 3, succeeded: 1 });
    expect(status?.attempts?.map(({ number }) => number)).toEqual([2, 3]);
    expect(w.submissions).toHaveLength(2);
  });

  it("is suspended with all that KubeRay made, and resumed as another attempt", async () => {
    const w = await underKubeRay([runsForEver, succeeds(5000)], { submissionMode });
    w.start();
    await w.clock.advance(5000);
    await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
    await w.untilPhase("Suspended", "demo", 60_000);
    expect([...(await w.list(pods)), ...(await w.list(jobs)), ...(await w.list(rayClusters))]).toEqual([]);
    await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: false } });
    expect((await w.untilPhase("Complete")).status).toMatchObject({ executionAttempt: 1, succeeded: 1 });
  });

  it("whose head is lost fails, and is not run again there", async () => {
    const w = await underKubeRay(runsForEver, { submissionMode });
    w.start();
    await w.clock.advance(5000);
    await w.client.delete(pods, "default", (await w.head()).metadata.name, { gracePeriodSeconds: 0 });
    const { status } = await w.untilPhase("Failed", "demo", 60_000);
    expect(status).toMatchObject({ reason: "AppFailed", jobStatus: "FAILED", failed: 1 });
    expect(w.submissions).toHaveLength(1);
  });

  it("that is deleted is stopped in Ray, and leaves nothing", async () => {
    const w = await underKubeRay(runsForEver, { submissionMode });
    await w.client.delete(rayJobs, "default", "demo");
    w.start();
    await w.until("gone", async () => (await w.job()) === undefined, 30_000);
    expect(w.ray.requests.filter((request) => request.endsWith("/stop"))).toHaveLength(1);
    await w.until("cleaned up", async () => (await w.list(pods)).length + (await w.list(jobs)).length === 0, 60_000);
  });
});

it.each([
  ["is being tried again", { jobDeploymentStatus: "Retrying", jobStatus: "FAILED", failed: 1 }],
  ["has just begun anew", { jobDeploymentStatus: "", jobStatus: "", failed: 1, jobId: "", rayClusterName: "" }],
] as const)("a RayJob that %s under KubeRay gets its next attempt, once all of the last is gone", async (_, told) => {
  const w = await underKubeRay([runsForEver, succeeds(5000)], { backoffLimit: 2 }, told);
  w.start();
  const { status } = await w.untilPhase("Complete", "demo", 120_000);
  expect(status).toMatchObject({ executionAttempt: 1, failed: 1, succeeded: 1 });
  expect(await w.get(pods, `${CLUSTER}-head`)).toBeUndefined();
  expect(w.submissions).toHaveLength(2);
});

it.each<[string, RayJobStatus, number]>([
  ["is being tried again", { jobDeploymentStatus: "Retrying", jobStatus: "FAILED", failed: 1 }, 2],
  ["has just begun anew", { jobDeploymentStatus: "", jobStatus: "", failed: 1, jobId: "", rayClusterName: "" }, 2],
  ["was tried more often meanwhile", { jobDeploymentStatus: "Retrying", jobStatus: "FAILED", failed: 5 }, 5],
])("a RayJob that went back to KubeRay, and %s when it comes again, has no number twice", async (_, told, next) => {
  const w = new World({ job: () => runsForEver });
  worlds.push(w);
  const first = w.start();
  await w.client.create(rayJobs, rayJob({ backoffLimit: 6 }));
  await w.untilPhase("Running");
  await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
  await w.untilPhase("Suspended");
  await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: false } });
  await w.untilPhase("Running");
  expect((await w.job())?.status?.executionAttempt).toBe(1);
  await first.operator.stop();
  const lost = { attempts: null, executionAttempt: null, conditions: null };
  await w.client.patch(rayJobs, "default", "demo", { status: { ...lost, ...told } }, { subresource: "status" });
  w.invariants.violations.splice(0);
  w.start();
  const { status } = await w.untilPhase("Running", "demo", 120_000);
  expect(status).toMatchObject({ executionAttempt: next, attempts: [{ number: next }] });
  const { violations } = w.invariants;
  violations.push(...violations.splice(0).filter((each) => !each.includes("Kueue saw the Pods")));
});

it("a RayJob that went back to KubeRay and comes again is known by the label of its cluster, and nothing of it is touched", async () => {
  const w = new World({ job: () => succeeds(60_000) });
  worlds.push(w);
  const first = w.start();
  await w.client.create(rayJobs, rayJob());
  await w.untilPhase("Running");
  await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
  await w.untilPhase("Suspended");
  await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: false } });
  await w.untilPhase("Running");
  await w.clock.advance(3000);
  await first.operator.stop();
  // KubeRay writes the whole status, and knows no such fields.
  const lost = { attempts: null, executionAttempt: null, conditions: null };
  await w.client.patch(rayJobs, "default", "demo", { status: lost }, { subresource: "status" });
  w.invariants.violations.splice(0);
  const before = (await w.list(pods)).map(({ metadata }) => metadata.uid);
  const submitted = w.submissions.length;
  w.start();
  await w.clock.advance(20_000);
  expect((await w.list(pods)).map(({ metadata }) => metadata.uid)).toEqual(before);
  const { status } = await w.untilPhase("Complete", "demo", 400_000);
  expect(status).toMatchObject({ executionAttempt: 1, succeeded: 1, failed: 0 });
  expect(status?.attempts?.map(({ number }) => number)).toEqual([1]);
  expect(w.submissions).toHaveLength(submitted);
  // The model of Kueue has not seen the number come back.
  const { violations } = w.invariants;
  violations.push(...violations.splice(0).filter((each) => !each.includes("Kueue saw the Pods")));
});
