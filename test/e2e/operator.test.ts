/**
 * The operator is killed with SIGKILL and started again in every phase of a job: the job is run once, its attempts are
 * counted right, and it ends as if nothing had happened.
 */
import { afterEach, describe, expect, it } from "vitest";
import { Gate, rayJob, useCluster } from "./cluster.ts";

const cluster = useCluster();
let gate: Gate;
afterEach(async () => {
  gate.open();
  await cluster.remove("survivor");
  gate.remove();
});

/** Kills the operator, and waits until another process has taken its place. */
async function killOperator(phase: string): Promise<void> {
  const pid = cluster.operatorPid();
  if (pid === undefined) throw new Error(`no operator is running in ${phase}`);
  process.kill(pid, "SIGKILL");
  console.log(`[e2e] killed the operator (${phase})`);
  await expect.poll(() => cluster.operatorPid() ?? pid, { timeout: 60_000, message: "a new operator" }).not.toBe(pid);
}

describe("an operator that is killed again and again", () => {
  it("loses nothing and does nothing twice, from the RayJob's creation to its end", async () => {
    gate = new Gate();
    const created = await cluster.apply(rayJob("survivor", { entrypoint: gate.entrypoint(), backoffLimit: 2 }, gate));
    await killOperator("new");
    await cluster.phase("survivor", "Initializing");
    await cluster.until("the head Pod", () => cluster.head(created));
    await killOperator("Initializing");
    await cluster.status(
      "survivor",
      "about to be submitted",
      ({ attempts }) => attempts?.at(-1)?.submissionStartTime !== undefined,
    );
    await killOperator("submitting");
    await cluster.running("survivor");
    await killOperator("Running");
    gate.open();
    await killOperator("finishing");
    const { status } = await cluster.ended("survivor");
    expect(status).toMatchObject({
      jobDeploymentStatus: "Complete",
      jobStatus: "SUCCEEDED",
      executionAttempt: 0,
      succeeded: 1,
    });
    expect(status!.failed ?? 0).toBe(0);
    expect(gate.runs()).toBe(1);
    await killOperator("cleaning up");
    await cluster.until("the RayCluster to be gone", () =>
      cluster.rayClusters.store.list().every(({ metadata }) => metadata.name !== status!.rayClusterName),
    );
  });

  it("counts a failed attempt once, killed while it clears that away", async () => {
    gate = new Gate();
    await cluster.apply(
      rayJob("survivor", { backoffLimit: 1, entrypoint: 'echo run >> /gate/runs; [ "$ATTEMPT" = 1 ]' }, gate),
    );
    await cluster.phase("survivor", "Retrying");
    await killOperator("Retrying");
    const { status } = await cluster.ended("survivor");
    expect(status).toMatchObject({ jobDeploymentStatus: "Complete", executionAttempt: 1, failed: 1, succeeded: 1 });
    expect(status!.attempts).toHaveLength(2);
    expect(gate.runs()).toBe(2);
  });
});
