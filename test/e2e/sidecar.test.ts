/**
 * SidecarMode on a real Ray: whatever becomes of the submitter, of the head and of Ray's own helpers while a job runs,
 * `kubectl get rayjob` and Ray tell the same story, and the program is run once.
 */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import { SUBMITTER_CONTAINER } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { Gate, namespace, rayJob, useCluster } from "./cluster.ts";

const cluster = useCluster();
const NAME = "sidecar";
let gate: Gate;
let job: Stored<RayJob>;

beforeEach(() => {
  gate = new Gate();
});
afterEach(async () => {
  gate.open();
  await cluster.remove(NAME);
  gate.remove();
});

const now = () => cluster.rayJobs.store.get(namespace, NAME)!;
const condition = (type: string) => now().status?.conditions?.find((one) => one.type === type);
const sidecar = (pod: Stored<Pod> | undefined) =>
  pod?.status?.containerStatuses?.find(({ name }) => name === SUBMITTER_CONTAINER);

/** The job goes on, its gate opens, and it is Complete; Ray says the same. */
async function completes(): Promise<void> {
  const id = job.status?.jobId;
  const ray = () => cluster.rayTells(job).catch(() => "no answer yet");
  await expect.poll(ray, { timeout: 120_000, interval: 1000 }).toEqual([`${id} RUNNING`]);
  expect(await cluster.kubectlTells(job)).toBe("RUNNING Running");
  gate.open();
  const { status } = await cluster.ended(NAME);
  expect(await cluster.rayTells(job)).toEqual([`${id} SUCCEEDED`]);
  expect(await cluster.kubectlTells(job)).toBe("SUCCEEDED Complete");
  expect(status).toMatchObject({ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED", executionAttempt: 0 });
  expect(status!.failed ?? 0).toBe(0);
  expect(gate.runs()).toBe(1);
}

const inSidecarMode = (entrypoint: string) => rayJob(NAME, { submissionMode: "SidecarMode", entrypoint }, gate);

describe("while a job runs", () => {
  beforeEach(async () => {
    // The cluster stays, so that Ray can be asked afterwards.
    const wanted = inSidecarMode(gate.entrypoint());
    await cluster.apply({ ...wanted, spec: { ...wanted.spec, shutdownAfterJobFinishes: false } });
    job = await cluster.running(NAME);
  });

  it("its sidecar may be killed: the job goes on and completes, run once", async () => {
    const head = cluster.head(job)!;
    expect(cluster.killProcesses(/Hands a Ray job to its cluster/)).toBeGreaterThan(0);
    await cluster.status(NAME, "the sidecar to be missed", () => condition("SubmitterHealthy")?.status === "False");
    expect(condition("SubmitterHealthy")).toMatchObject({ reason: "ContainerExited" });
    expect(condition("SubmitterHealthy")?.message).toContain("exit code 137");
    expect(now().status).toMatchObject({ jobDeploymentStatus: "Running", jobStatus: "RUNNING" });
    const after = cluster.head(job);
    expect([after?.metadata.uid, after?.status?.phase]).toEqual([head.metadata.uid, "Running"]);
    expect(sidecar(after)).toMatchObject({ restartCount: 0, state: { terminated: { exitCode: 137 } } });
    await completes();
  });

  it("its head may be killed: the job fails within seconds, and no head comes after it", async () => {
    const head = cluster.head(job)!;
    await cluster.kill(head);
    const ended = await cluster.status(NAME, "ended", ({ jobDeploymentStatus: is }) => is === "Failed", 60_000);
    expect(ended.status).toMatchObject({ reason: "AppFailed", jobStatus: "FAILED", executionAttempt: 0 });
    expect(["HeadPodLost", "RayJobLost"]).toContain(condition("Failed")?.reason);
    expect([undefined, head.metadata.uid]).toContain(cluster.head(job)?.metadata.uid);
    expect(await cluster.kubectlTells(job)).toBe("FAILED Failed");
    expect(gate.runs()).toBe(1);
  });

  it("the dashboard's job server may be killed: the job goes on", async () => {
    expect(cluster.killProcesses(/JobHead/)).toBeGreaterThan(0);
    await completes();
  });

  it("the head's dashboard agent may be killed: the job ends, and is not stranded", async () => {
    expect(cluster.killProcesses(/dashboard\/agent\.py|DashboardAgent/)).toBeGreaterThan(0);
    gate.open();
    const { status } = await cluster.ended(NAME);
    expect(["SUCCEEDED", "FAILED"]).toContain(status?.jobStatus);
    expect(status?.jobDeploymentStatus).toBe(status?.jobStatus === "SUCCEEDED" ? "Complete" : "Failed");
    expect(gate.runs()).toBe(1);
  });
});

describe("while no node takes the workers", () => {
  it.each([
    ["Complete", "SUCCEEDED", "exit 0"],
    ["Failed", "FAILED", "exit 3"],
  ])("a job that ends makes the RayJob %s", async (phase, jobStatus, entrypoint) => {
    const wanted = inSidecarMode(`echo run >> /gate/runs; ${entrypoint}`);
    const { template } = wanted.spec.rayClusterSpec!.headGroupSpec;
    const [ray] = template.spec!.containers;
    const greedy = { ...ray!, name: "ray-worker", resources: { requests: { cpu: "10000" } } };
    wanted.spec.rayClusterSpec!.workerGroupSpecs = [
      {
        groupName: "greedy",
        replicas: 1,
        minReplicas: 1,
        maxReplicas: 1,
        rayStartParams: {},
        template: { spec: { ...template.spec, containers: [greedy] } },
      },
    ];
    await cluster.apply(wanted);
    const { status } = await cluster.ended(NAME);
    expect(status).toMatchObject({ jobDeploymentStatus: phase, jobStatus, executionAttempt: 0 });
    expect(status?.rayClusterStatus?.state).not.toBe("ready");
    expect(gate.runs()).toBe(1);
  });
});
