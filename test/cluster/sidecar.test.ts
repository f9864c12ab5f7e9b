/**
 * SidecarMode with SidecarSubmitterRestart, on a real kubelet: it starts the killed submitter again, in the head Pod that
 * goes on running; and whatever else is lost, `kubectl get rayjob` and Ray tell the same story.
 */
import { afterEach, expect } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import { SUBMITTER_CONTAINER } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { findCondition } from "../../src/domain/rayjob/conditions.ts";
import { Gate } from "../support/gate.ts";
import { scenario, smallRayJob, stopwatch, useCluster } from "./cluster.ts";
import { isLost, newJobServer, rayTells } from "./losses.ts";

const cluster = useCluster("sidecar");
const NAME = "sidecar";
let gate: Gate;
afterEach(async () => {
  gate.open();
  await cluster.remove(NAME);
  gate.remove();
});

const container = (pod: Stored<Pod> | undefined, called: string) =>
  pod?.status?.containerStatuses?.find(({ name }) => name === called);
const submitterHealthy = () =>
  findCondition(cluster.rayJobs.store.get(cluster.namespace, NAME)!.status!, "SubmitterHealthy");

/** A job that runs, on a cluster that stays, so that Ray can be asked afterwards. */
async function running(): Promise<Stored<RayJob>> {
  gate = new Gate();
  const entrypoint = gate.entrypoint();
  const spec = { submissionMode: "SidecarMode", shutdownAfterJobFinishes: false, entrypoint } as const;
  await cluster.apply(smallRayJob(NAME, spec, gate));
  const job = await cluster.running(NAME);
  await expect.poll(() => gate.runs(), { timeout: 60_000 }).toBe(1);
  return job;
}

/** Kills the submitter in the runtime, and waits until the kubelet has it running for the next time. */
async function killSubmitter(job: Stored<RayJob>): Promise<Stored<Pod>> {
  const before = await cluster.until("the submitter to run", () => {
    const head = cluster.head(job);
    return container(head, SUBMITTER_CONTAINER)?.state?.running && head;
  });
  const { restartCount } = container(before, SUBMITTER_CONTAINER)!;
  await cluster.killContainer(before, SUBMITTER_CONTAINER);
  return cluster.until("the submitter to be started again", () => {
    const head = cluster.head(job);
    const now = container(head, SUBMITTER_CONTAINER);
    return now?.restartCount === restartCount + 1 && now.state?.running && head;
  });
}

scenario(
  cluster,
  "its sidecar is killed mid-run: the kubelet starts it again, it follows on, and the job is Complete",
  async (seen) => {
    const job = await running();
    const { jobId } = job.status!;
    const head = cluster.head(job)!;
    const since = stopwatch();
    const after = await killSubmitter(job);
    seen(`ray-job-submitter runs again ${since()} later`);
    expect(after.metadata.uid).toBe(head.metadata.uid);
    expect(container(after, SUBMITTER_CONTAINER)).toMatchObject({
      restartCount: 1,
      lastState: { terminated: { exitCode: 137 } },
    });
    expect(container(after, "ray-head")).toMatchObject({ restartCount: 0, state: { running: {} } });
    const now = cluster.rayJobs.store.get(cluster.namespace, NAME)!;
    expect(now.status).toMatchObject({ jobDeploymentStatus: "Running", jobStatus: "RUNNING", jobId });
    expect(await rayTells(cluster, job)).toEqual([`${jobId} RUNNING`]);

    const server = stopwatch();
    expect(cluster.killProcesses(head, /^ray-dashboard-JobHead-0/)).toBe(1);
    await newJobServer(cluster, head);
    expect(await rayTells(cluster, job)).toEqual([`${jobId} RUNNING`]);
    seen(`dashboard's job head killed: another answers ${server()} later`);

    gate.open();
    const ended = await cluster.ended(NAME);
    expect(ended.status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, jobId });
    expect(await cluster.kubectlTells(ended)).toBe("SUCCEEDED Complete");
    expect(await rayTells(cluster, ended)).toEqual([`${jobId} SUCCEEDED`]);
    const last = cluster.head(ended);
    expect(container(last, SUBMITTER_CONTAINER)).toMatchObject({
      restartCount: 1,
      state: { terminated: { exitCode: 0 } },
    });
    expect(container(last, "ray-head")?.restartCount).toBe(0);
    expect(submitterHealthy()).toMatchObject({ status: "True", reason: "Finished" });
    expect(gate.runs()).toBe(1);
    seen(`Complete; ray-job-submitter restartCount 1, ray-head 0, the same Ray job ${jobId}`);
  },
);

scenario(
  cluster,
  "its sidecar is over its restart limit, and the job runs on; when the dashboard agent is killed, it has failed",
  async (seen) => {
    const job = await running();
    const { jobId } = job.status!;
    for (const _ of [1, 2]) await killSubmitter(job);
    const since = stopwatch();
    await killSubmitter(job);
    await cluster.status(NAME, "the limit to be told", (status) => {
      const condition = findCondition(status, "SubmitterHealthy");
      return condition?.status === "False" && condition.reason === "RestartLimit";
    });
    seen(`the third restart, ${since()} after the kill: ${submitterHealthy()?.message}`);
    expect(await cluster.kubectlTells(job)).toBe("RUNNING Running");
    expect(await rayTells(cluster, job)).toEqual([`${jobId} RUNNING`]);

    const agent = stopwatch();
    expect(cluster.killProcesses(cluster.head(job)!, /^ray::DashboardAgent/)).toBe(1);
    const failed = await isLost(cluster, NAME, "DriverNodeDead", "HeadPodLost", "RayJobLost");
    seen(`dashboard agent killed: Failed ${agent()} later: ${failed.message}`);
    expect(gate.runs()).toBe(1);
  },
);

scenario(cluster, "its head Pod is deleted by force: Failed in seconds, and no head comes after it", async (seen) => {
  const job = await running();
  const head = cluster.head(job)!;
  const since = stopwatch();
  await cluster.kill(head);
  const failed = await isLost(cluster, NAME, "HeadPodLost", "RayJobLost");
  expect(failed.message).toContain(head.metadata.name);
  seen(`Failed ${since()} later: ${failed.message}`);
  expect(cluster.head(job)).toBeUndefined();
  expect(gate.runs()).toBe(1);
});
