/**
 * Attempts that must not overlap, on a real Ray: examples/rayjob-retry.yaml, whose workers take 20 s to end, seen by the
 * history of its Pods.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { parseAllDocuments, stringify } from "yaml";
import type { Pod } from "../../src/api/kubernetes.ts";
import { LABEL } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { pods } from "../../src/machinery/kube/resources.ts";
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

interface Life {
  readonly name: string;
  readonly attempt: string | undefined;
  /** Places in the one order that the API server gives to all that happens. */
  readonly made: number;
  gone: number;
  /** When somebody asked for its deletion. */
  told?: number;
  last: Stored<Pod>;
}

/** The life of each Pod that bears an attempt's number, from now on. */
async function follow(): Promise<readonly Life[]> {
  const lives: Life[] = [];
  const { resourceVersion } = await cluster.client.list<Pod>(pods, { namespace });
  const options = { namespace, resourceVersion, timeoutSeconds: 3600, signal: watching.signal };
  const events = await cluster.client.watch<Pod>(pods, options);
  const read = async () => {
    for await (const { type, object } of events) {
      if (type === "BOOKMARK" || !object.metadata.labels?.[LABEL.rayJobUID]) continue;
      const { uid, name, labels, resourceVersion, deletionTimestamp, deletionGracePeriodSeconds = 0 } = object.metadata;
      const place = Number(resourceVersion);
      let life = lives.find(({ last }) => last.metadata.uid === uid);
      if (!life) {
        const attempt = labels?.[LABEL.executionAttempt];
        life = { name, attempt, made: place, gone: Number.POSITIVE_INFINITY, last: object };
        lives.push(life);
      }
      life.last = object;
      if (deletionTimestamp) life.told ??= Date.parse(deletionTimestamp) - 1000 * deletionGracePeriodSeconds;
      if (type === "DELETED") life.gone = place;
    }
    throw new Error("the watch of the Pods has ended");
  };
  read().catch((error: unknown) => {
    if (!watching.signal.aborted) throw error;
  });
  return lives;
}

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

/** When the node says that the first of its containers started, and the last of them ended. */
const started = ({ last }: Life) =>
  Math.min(...containers(last).map(({ state }) => Date.parse((state?.terminated ?? state?.running)!.startedAt!)));
const ended = ({ last }: Life) =>
  Math.max(...containers(last).map(({ state }) => Date.parse(state!.terminated!.finishedAt!)));
const containers = ({ status }: Stored<Pod>) => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
];

it("a job that fails at attempts 0 and 1 and succeeds at 2 never has Pods of two attempts, though its workers take 20 s to end", async () => {
  const lives = await follow();
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
    { number: 0, jobStatus: "FAILED", reason: "AppFailed", retryStrategy: "BlockingRecreate" },
    { number: 1, jobStatus: "FAILED", reason: "AppFailed", retryStrategy: "BlockingRecreate" },
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
