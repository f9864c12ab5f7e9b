/**
 * Attempts that must not overlap, on a real Ray: examples/rayjob-retry.yaml, whose workers take 20 s to end, seen by the
 * history of its Pods.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { parseAllDocuments, stringify } from "yaml";
import { LABEL } from "../../src/api/labels.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { ended, followPods, started } from "../support/podLives.ts";
import { Gate, namespace, useCluster } from "./cluster.ts";
import { raykeeper, root } from "./command.ts";

const cluster = useCluster();
const gate = new Gate();
const watching = new AbortController();
afterAll(async () => {
  watching.abort();
  await cluster.remove("retry");
  gate.remove();
});

/** The sample, writing its results where this test sees them, too. */
function sample(): string {
  const documents = parseAllDocuments(readFileSync(`${root}examples/rayjob-retry.yaml`, "utf8"));
  const [job, ...others] = documents.map((document) => document.toJS()) as [RayJob, ...unknown[]];
  const { spec } = job.spec.rayClusterSpec!.headGroupSpec.template;
  const [head] = spec!.containers!;
  head!.env!.push({ name: "RESULTS", value: "/gate" });
  head!.volumeMounts!.push({ name: "gate", mountPath: "/gate" });
  spec!.volumes!.push({ name: "gate", hostPath: { path: gate.folder } });
  return [job, ...others].map((object) => stringify(object)).join("---\n");
}

it("a job that fails at attempts 0 and 1 and succeeds at 2 never has Pods of two attempts, though its workers take 20 s to end", async () => {
  const lives = await followPods(cluster.client, namespace, watching.signal);
  const run = raykeeper(["run", "--kubeconfig", cluster.kubeconfig, "-"], { input: sample() });
  const { code, stdout, stderr } = await run.finished;
  expect(code, stderr).toBe(0);
  // What the job itself says, and what it wrote.
  expect([...stdout.matchAll(/^attempt (\d) begins$/gm)].map(([, number]) => number)).toEqual(["0", "1", "2"]);
  for (const attempt of [0, 1, 2]) {
    expect(readFileSync(join(gate.folder, `attempt-${attempt}`, "result.txt"), "utf8")).toBe(
      `written by attempt ${attempt}\n`,
    );
  }

  const { status, metadata } = await cluster.ended("retry");
  expect(status).toMatchObject({ jobDeploymentStatus: "Complete", executionAttempt: 2, failed: 2, succeeded: 1 });
  expect(status?.attempts).toMatchObject([
    { number: 0, jobStatus: "FAILED", reason: "ApplicationFailed", retryStrategy: "BlockingRecreate" },
    { number: 1, jobStatus: "FAILED", reason: "ApplicationFailed", retryStrategy: "BlockingRecreate" },
    { number: 2, jobStatus: "SUCCEEDED", retryStrategy: "BlockingRecreate" },
  ]);
  for (const key of ["jobId", "rayClusterName", "raySession", "headPodUID"] as const) {
    expect(new Set(status?.attempts?.map((record) => record[key])).size, key).toBe(3);
  }

  const of = (attempt: number) => lives.filter((life) => life.attempt === String(attempt));
  expect(lives.map(({ attempt }) => attempt).sort()).toEqual([0, 0, 0, 1, 1, 1, 2, 2, 2].map(String));
  for (const { name, last, attempt } of lives) {
    expect(last.metadata.labels?.[LABEL.rayJobUID], name).toBe(metadata.uid);
    expect(last.metadata.annotations?.[LABEL.executionAttempt], name).toBe(attempt);
  }
  for (const attempt of [0, 1]) {
    const before = of(attempt);
    const after = of(attempt + 1);
    // Nothing of the next one is even created before the last Pod is gone; so no container runs, either.
    expect(Math.max(...before.map(({ gone }) => gone))).toBeLessThan(Math.min(...after.map(({ made }) => made)));
    expect(Math.max(...before.map(ended))).toBeLessThanOrEqual(Math.min(...after.map(started)));
    // There was something to wait for: the worker was given its time, and took it.
    const worker = before.find(({ last }) => last.metadata.labels?.[LABEL.nodeType] === "worker")!;
    // Both times are cut to seconds.
    expect(ended(worker) - Number(worker.told)).toBeGreaterThanOrEqual(19_000);
    expect(worker.last.status?.containerStatuses?.map(({ state }) => state?.terminated?.exitCode)).toEqual([0]);
  }
});
