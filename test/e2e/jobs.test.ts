/**
 * What becomes of a job on a real Ray: it succeeds, fails, is retried, suspended or deleted.
 */
import { afterEach, describe, expect, it } from "vitest";
import type { Event } from "../../src/api/kubernetes.ts";
import { events, rayJobs } from "../../src/machinery/kube/resources.ts";
import { Gate, namespace, rayJob, useCluster } from "./cluster.ts";

const cluster = useCluster();
const gates: Gate[] = [];
const names: string[] = [];

/** A job of this test, taken away after it. */
async function applied(name: string, spec: (gate: Gate) => Parameters<typeof rayJob>[1]) {
  const gate = new Gate();
  gates.push(gate);
  names.push(name);
  return { gate, job: await cluster.apply(rayJob(name, spec(gate), gate)) };
}

afterEach(async () => {
  for (const gate of gates) gate.open();
  await Promise.all(names.splice(0).map((name) => cluster.remove(name)));
  for (const gate of gates.splice(0)) gate.remove();
});

describe("a job that fails at first", () => {
  it("is run again on a new cluster, knows its attempt, and succeeds", async () => {
    const { gate } = await applied("retried", () => ({
      backoffLimit: 2,
      entrypoint: 'echo run >> /gate/runs; echo "this is attempt $ATTEMPT"; [ "$ATTEMPT" = 1 ]',
    }));
    const { status } = await cluster.ended("retried");
    expect(status).toMatchObject({
      jobDeploymentStatus: "Complete",
      jobStatus: "SUCCEEDED",
      executionAttempt: 1,
      failed: 1,
      succeeded: 1,
    });
    expect(status!.attempts).toMatchObject([
      { number: 0, jobStatus: "FAILED", reason: "ApplicationFailed" },
      { number: 1 },
    ]);
    const [first, second] = status!.attempts!;
    expect(first!.rayClusterName).not.toBe(second!.rayClusterName);
    expect(first!.jobId).not.toBe(second!.jobId);
    expect(gate.runs()).toBe(2);
  });

  it("ends as Failed when its retries are used up", async () => {
    const { gate } = await applied("exhausted", () => ({
      backoffLimit: 1,
      entrypoint: "echo run >> /gate/runs; exit 3",
    }));
    const { status } = await cluster.ended("exhausted");
    expect(status).toMatchObject({
      jobDeploymentStatus: "Failed",
      jobStatus: "FAILED",
      reason: "AppFailed",
      executionAttempt: 1,
      failed: 2,
    });
    expect(status!.message).toContain("exit code 3");
    expect(gate.runs()).toBe(2);
  });
});

describe("two jobs at once", () => {
  it("run side by side, each on its own cluster", async () => {
    const [one, two] = await Promise.all([
      applied("side-a", (gate) => ({ entrypoint: gate.entrypoint() })),
      applied("side-b", (gate) => ({ entrypoint: gate.entrypoint() })),
    ]);
    await Promise.all([cluster.running("side-a"), cluster.running("side-b")]);
    one.gate.open();
    two.gate.open();
    const ended = await Promise.all([cluster.ended("side-a"), cluster.ended("side-b")]);
    expect(ended.map(({ status }) => status?.jobStatus)).toEqual(["SUCCEEDED", "SUCCEEDED"]);
    expect([one.gate.runs(), two.gate.runs()]).toEqual([1, 1]);
  });
});

describe("while a job runs", () => {
  it("it may be deleted: Ray is asked to stop it, and nothing is left", async () => {
    const { gate, job } = await applied("deleted", () => ({
      // The program notes that it was asked to end; a Pod that is torn down would not give it the time.
      entrypoint:
        "trap 'echo stopped >> /gate/runs; exit 1' TERM; echo run >> /gate/runs; while true; do sleep 0.1; done",
    }));
    await cluster.running("deleted");
    await cluster.client.delete(rayJobs, namespace, "deleted");
    await cluster.nothingLeft(job);
    expect(gate.runs(), "the program's own note that it was stopped").toBe(2);
    const about = (await cluster.client.list<Event>(events, { namespace })).items.filter(
      ({ regarding }) => regarding?.uid === job.metadata.uid,
    );
    expect(about.map(({ reason }) => reason)).toContain("RayJobStopped");
  });

  it("it may be suspended and resumed: nothing is left meanwhile, and a new attempt follows", async () => {
    const { gate, job } = await applied("suspended", (gate) => ({ entrypoint: gate.entrypoint() }));
    await cluster.running("suspended");
    const suspend = (value: boolean) =>
      cluster.client.patch(rayJobs, namespace, "suspended", { spec: { suspend: value } });
    await suspend(true);
    await cluster.phase("suspended", "Suspended");
    expect(cluster.podsOf(job)).toEqual([]);
    await suspend(false);
    await cluster.status(
      "suspended",
      "running again",
      ({ jobStatus, executionAttempt }) => jobStatus === "RUNNING" && executionAttempt === 1,
    );
    gate.open();
    const { status } = await cluster.ended("suspended");
    expect(status).toMatchObject({ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED", executionAttempt: 1 });
    expect(status!.failed ?? 0).toBe(0);
    expect(gate.runs()).toBe(2);
  });
});
