/**
 * What scenarios of losses ask, whatever carried the job to Ray.
 */
import { expect } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { findCondition } from "../../src/domain/rayjob/conditions.ts";
import type { NodeCluster } from "./cluster.ts";

/** Ray's own story; while one of its servers is being replaced it may take a moment. */
export async function rayTells(cluster: NodeCluster, job: Stored<RayJob>): Promise<string[]> {
  let told: string[] | undefined;
  const ask = async () => {
    told = await cluster.rayTells(job).catch(() => undefined);
    return told;
  };
  await expect.poll(ask, { timeout: 60_000, interval: 500, message: "Ray's answer" }).toBeDefined();
  return told!;
}

/** Once the dashboard has replaced its killed job server. */
export async function newJobServer(cluster: NodeCluster, head: Stored<Pod>): Promise<void> {
  const next = () => cluster.processes(head).some(({ command }) => /^ray-dashboard-JobHead-1/.test(command));
  await expect.poll(next, { timeout: 120_000, message: "another job server" }).toBe(true);
}

/** The RayJob has failed for one of these reasons. Seconds, where KubeRay takes minutes: no long timer has to run out. */
export async function isLost(
  cluster: NodeCluster,
  name: string,
  ...reasons: string[]
): Promise<{ reason: string; message: string }> {
  const failed = ({ jobDeploymentStatus }: NonNullable<RayJob["status"]>) => jobDeploymentStatus === "Failed";
  const job = await cluster.status(name, "Failed", failed, 100_000);
  expect(job.status).toMatchObject({ reason: "AppFailed", executionAttempt: 0, failed: 1 });
  const { reason = "", message = "" } = findCondition(job.status!, "Failed") ?? {};
  expect(reasons).toContain(reason);
  expect(message).toMatch(/head|node/i);
  expect(await cluster.kubectlTells(job)).toBe("FAILED Failed");
  return { reason, message };
}
