/**
 * A job on a real Ray, in K8sJobMode, loses what stands between it and the operator, or what it runs on. Each time
 * `kubectl get rayjob` and Ray itself must tell the same story, and the program has run once.
 */
import { afterEach, describe, expect, inject, it } from "vitest";
import type { Stored } from "../../src/api/object.ts";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { findCondition } from "../../src/domain/rayjob/conditions.ts";
import { Gate, rayJob, useCluster } from "./cluster.ts";
import { descendants } from "./command.ts";

const cluster = useCluster();
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
  await cluster.apply(rayJob(NAME, { shutdownAfterJobFinishes: false, entrypoint: gate.entrypoint(), ...spec }, gate));
  const job = await cluster.running(NAME);
  await expect.poll(() => gate.runs(), { timeout: 60_000 }).toBe(1);
  return job;
}

/** SIGKILL, as the kernel does when memory runs out. */
function kill(command: RegExp): void {
  expect(cluster.killProcesses(command), `processes like ${command}`).toBeGreaterThan(0);
}

/** It still runs, to its own end, once; and everybody says so. */
async function runsOn(job: Stored<RayJob>): Promise<void> {
  const id = job.status?.jobId;
  expect(await cluster.rayTells(job)).toEqual([`${id} RUNNING`]);
  expect(await cluster.kubectlTells(job)).toBe("RUNNING Running");
  gate.open();
  const ended = await cluster.ended(NAME);
  expect(ended.status).toMatchObject({ executionAttempt: 0, failed: 0, succeeded: 1, jobId: id });
  expect(await cluster.rayTells(ended)).toEqual([`${id} SUCCEEDED`]);
  expect(await cluster.kubectlTells(ended)).toBe("SUCCEEDED Complete");
  expect(gate.runs()).toBe(1);
}

/** It has failed for such a reason. Seconds, where KubeRay takes minutes: no long timer has to run out. */
async function isLost(...reasons: string[]): Promise<void> {
  const failed = ({ jobDeploymentStatus }: NonNullable<RayJob["status"]>) => jobDeploymentStatus === "Failed";
  const job = await cluster.status(NAME, "Failed", failed, 100_000);
  expect(job.status).toMatchObject({ reason: "AppFailed", executionAttempt: 0, failed: 1 });
  const { reason, message } = findCondition(job.status!, "Failed") ?? {};
  expect(reasons).toContain(reason);
  expect(message).toMatch(/head|node/i);
  expect(await cluster.kubectlTells(job)).toBe("FAILED Failed");
}

/** Ray's own story of what is lost: its only node is dead, or it is another Ray, and was given nothing. */
async function rayKnowsItLost(before: Stored<RayJob>): Promise<void> {
  const told = async () => {
    try {
      const { session_name: session } = (await cluster.ray(before, "/api/version")) as Record<string, string>;
      if (session !== before.status?.attempts?.[0]?.raySession) return await cluster.rayTells(before);
      const { data } = (await cluster.ray(before, "/nodes?view=summary&nocache=1")) as {
        data: { summary: { raylet: { state: string } }[] };
      };
      return data.summary.filter(({ raylet }) => raylet.state !== "DEAD");
    } catch {
      return "no answer yet";
    }
  };
  const hasNothing = () =>
    expect.poll(told, { timeout: 120_000, interval: 1000, message: "what Ray still has" }).toEqual([]);
  await hasNothing();
  // Whoever could submit it again has ended, or is gone.
  await cluster.until("the submitter to be done", () => {
    const phase = cluster.submitter(before)?.status?.phase;
    return phase === undefined || phase === "Failed" || phase === "Succeeded";
  });
  await hasNothing();
  expect(gate.runs()).toBe(1);
}

describe("while a job runs", () => {
  it("its submitter Pod may be deleted: another one follows the log, and submits nothing", async () => {
    const job = await running();
    const pod = await cluster.until("the submitter", () => cluster.submitter(job));
    await cluster.kill(pod);
    await cluster.until("another submitter", () => {
      const { metadata, status } = cluster.submitter(job) ?? {};
      return metadata?.uid !== pod.metadata.uid && status?.phase === "Running";
    });
    await runsOn(job);
  });

  it("its submitter's Job may reach its backoff limit", async () => {
    const job = await running({ submitterConfig: { backoffLimit: 0 } });
    kill(/Hands a Ray job to its cluster/);
    await cluster.status(NAME, "the submitter to be missed", (status) => {
      const { status: is, reason } = findCondition(status, "SubmitterHealthy") ?? {};
      return is === "False" && reason === "JobFailed";
    });
    await runsOn(job);
  });

  it("the dashboard's job head may be killed", async () => {
    const job = await running();
    kill(/^ray-dashboard-JobHead-0/);
    const next = () =>
      descendants(inject("clusterPid")).some(({ command }) => /^ray-dashboard-JobHead-1/.test(command));
    await expect.poll(next, { timeout: 120_000 }).toBe(true);
    const tells = () => cluster.rayTells(job).catch(() => "no answer yet");
    await expect.poll(tells, { timeout: 60_000, interval: 1000 }).toEqual([`${job.status?.jobId} RUNNING`]);
    await runsOn(job);
  });

  it("its head Pod may be deleted by force: it has failed within seconds, and the next head is not given it", async () => {
    const job = await running();
    await cluster.kill(cluster.head(job)!);
    await isLost("HeadPodLost", "RayJobLost");
    await rayKnowsItLost(job);
  });

  it("the head's dashboard agent may be killed, which takes Ray along: it has failed, and is not stranded", async () => {
    const job = await running();
    kill(/^ray::DashboardAgent/);
    // By the dead node, or by the head that ends with it, whichever is seen first.
    await isLost("DriverNodeDead", "HeadPodLost", "RayJobLost");
    await rayKnowsItLost(job);
  });
});
