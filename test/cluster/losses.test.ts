/**
 * A job in K8sJobMode, on real containers, loses what stands between it and the operator, or what it runs on. Each time
 * `kubectl get rayjob` and Ray itself must tell the same story, and the program has run once.
 */
import { afterEach, expect } from "vitest";
import type { Stored } from "../../src/api/object.ts";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { findCondition } from "../../src/domain/rayjob/conditions.ts";
import { Gate } from "../support/gate.ts";
import { scenario, smallRayJob, stopwatch, useCluster } from "./cluster.ts";
import { isLost, newJobServer, rayTells } from "./losses.ts";

const cluster = useCluster("losses");
const NAME = "loser";
let gate: Gate;
afterEach(async () => {
  gate.open();
  await cluster.remove(NAME);
  gate.remove();
});

/** A job that runs, on a cluster that stays, so that Ray can be asked afterwards. */
async function running(spec: Partial<RayJobSpec> = {}): Promise<Stored<RayJob>> {
  gate = new Gate();
  await cluster.apply(
    smallRayJob(NAME, { shutdownAfterJobFinishes: false, entrypoint: gate.entrypoint(), ...spec }, gate),
  );
  const job = await cluster.running(NAME);
  await expect.poll(() => gate.runs(), { timeout: 60_000 }).toBe(1);
  return job;
}

const submitterIsMissed = (reason: string) =>
  cluster.status(NAME, `SubmitterHealthy=False, ${reason}`, (status) => {
    const condition = findCondition(status, "SubmitterHealthy");
    return condition?.status === "False" && condition.reason === reason;
  });

const loses =
  "a job loses its submitter's Pod, then the submitter's Job, then the dashboard's job head: it runs on, and is Complete";
scenario(cluster, loses, async (seen) => {
  const job = await running({ submitterConfig: { backoffLimit: 1 } });
  const id = job.status?.jobId;
  const head = cluster.head(job)!;

  const first = await cluster.until("the submitter", () => cluster.submitter(job));
  let since = stopwatch();
  await cluster.kill(first);
  const second = await cluster.until("another submitter", () => {
    const pod = cluster.submitter(job);
    return pod?.metadata.uid !== first.metadata.uid && pod?.status?.phase === "Running" && pod;
  });
  seen(`submitter Pod deleted: another follows ${since()} later, the RayJob stays Running`);
  expect(await rayTells(cluster, job)).toEqual([`${id} RUNNING`]);
  expect(await cluster.kubectlTells(job)).toBe("RUNNING Running");

  since = stopwatch();
  await cluster.killContainer(second, "ray-job-submitter");
  const missed = await submitterIsMissed("JobFailed");
  const { message } = findCondition(missed.status!, "SubmitterHealthy")!;
  expect(message).toContain("BackoffLimitExceeded");
  seen(`submitter at its backoff limit: told ${since()} later (${message}), the RayJob stays Running`);
  expect(await rayTells(cluster, job)).toEqual([`${id} RUNNING`]);
  expect(await cluster.kubectlTells(job)).toBe("RUNNING Running");

  since = stopwatch();
  expect(cluster.killProcesses(head, /^ray-dashboard-JobHead-0/)).toBe(1);
  await newJobServer(cluster, head);
  expect(await rayTells(cluster, job)).toEqual([`${id} RUNNING`]);
  seen(`dashboard's job head killed: another answers ${since()} later`);

  gate.open();
  const ended = await cluster.ended(NAME);
  expect(ended.status).toMatchObject({ executionAttempt: 0, failed: 0, succeeded: 1, jobId: id });
  expect(await cluster.kubectlTells(ended)).toBe("SUCCEEDED Complete");
  expect(await rayTells(cluster, ended)).toEqual([`${id} SUCCEEDED`]);
  expect(cluster.head(ended)?.metadata.uid).toBe(head.metadata.uid);
  expect(gate.runs()).toBe(1);
});

scenario(
  cluster,
  "its head Pod is deleted by force: Failed in seconds, and the next head is not given it",
  async (seen) => {
    const job = await running();
    const head = cluster.head(job)!;
    const since = stopwatch();
    await cluster.kill(head);
    const failed = await isLost(cluster, NAME, "HeadPodLost", "RayJobLost");
    expect(failed.message).toContain(head.metadata.name);
    seen(`Failed ${since()} later: ${failed.message}`);
    // Whoever could submit it again has ended, or is gone; and the next head has nothing.
    await cluster.until("the submitter to be done", () => {
      const phase = cluster.submitter(job)?.status?.phase;
      return phase === undefined || phase === "Failed" || phase === "Succeeded";
    });
    const told = () => cluster.rayTells(job).catch(() => "no answer yet");
    await expect.poll(told, { timeout: 120_000, interval: 1000, message: "what the next head has" }).toEqual([]);
    expect(gate.runs()).toBe(1);
  },
);

const agentKilled = "the head's dashboard agent is killed, which takes Ray along: it has failed, and is not stranded";
scenario(cluster, agentKilled, async (seen) => {
  const job = await running();
  const since = stopwatch();
  expect(cluster.killProcesses(cluster.head(job)!, /^ray::DashboardAgent/)).toBe(1);
  // By the dead node, or by the head that ends with it, whichever is seen first.
  const failed = await isLost(cluster, NAME, "DriverNodeDead", "HeadPodLost", "RayJobLost");
  seen(`Failed ${since()} later: ${failed.message}`);
  expect(gate.runs()).toBe(1);
});
