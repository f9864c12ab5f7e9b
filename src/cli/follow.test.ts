import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { crds } from "../api/crds.ts";
import type { Pod } from "../api/kubernetes.ts";
import type { Stored } from "../api/object.ts";
import type { RayJob } from "../api/rayjob.ts";
import { realClock } from "../machinery/clock.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { pods, rayJobs } from "../machinery/kube/resources.ts";
import { SimKube } from "../simkube/simkube.ts";
import { follow } from "./follow.ts";
import { Screen } from "./screen.ts";

const shared = crds();
let simkube: SimKube;
let client: KubeClient;
let rayJob: Stored<RayJob>;
let stop: AbortController;
/** The submitter's log, which its container writes piece by piece. */
let log: TransformStream<string, string>;
let writer: WritableStreamDefaultWriter<string>;

beforeEach(async () => {
  log = new TransformStream();
  writer = log.writable.getWriter();
  stop = new AbortController();
  simkube = new SimKube({ clock: realClock, crds: shared, seed: 1, podLogs: () => log.readable });
  client = new KubeClient(simkube.transport);
  rayJob = await client.create<RayJob>(rayJobs, {
    metadata: { name: "a", namespace: "default" },
    spec: { entrypoint: "x" },
  });
});
afterEach(() => stop.abort());

function followed() {
  const seen = { stdout: "", stderr: "" };
  const waiting: (() => void)[] = [];
  const output = (name: "stdout" | "stderr") => ({
    write(text: string) {
      seen[name] += text;
      for (const look of waiting) look();
    },
  });
  const screen = new Screen({ stdout: output("stdout"), stderr: output("stderr"), colour: false, now: Date.now });
  /** Resolves when the text has been printed. */
  const printed = (text: string) =>
    new Promise<void>((resolve) => {
      const look = () => (seen.stdout + seen.stderr).includes(text) && resolve();
      waiting.push(look);
      look();
    });
  return { seen, printed, result: follow({ transport: simkube.transport, screen, rayJob, signal: stop.signal }) };
}

const status = (value: Record<string, unknown>) =>
  client.patch<RayJob>(rayJobs, "default", "a", { status: value }, { subresource: "status" });

async function submitter(state: Record<string, unknown>): Promise<void> {
  const name = "a-submitter";
  const labels = { "ray.io/rayjob-uid": rayJob.metadata.uid, "ray.io/execution-attempt": "0" };
  const spec = { containers: [{ name: "s", image: "i" }] };
  await client.create<Pod>(pods, { metadata: { name, namespace: "default", labels }, spec }).catch(() => {});
  await client.patch(
    pods,
    "default",
    name,
    { status: { containerStatuses: [{ name: "s", state }] } },
    { subresource: "status" },
  );
}

describe("following a RayJob", () => {
  it("shows its steps and its submitter's log, and ends with the verdict once the log is complete", async () => {
    const { seen, printed, result } = followed();
    await status({
      jobDeploymentStatus: "Initializing",
      executionAttempt: 0,
      rayClusterName: "a-xyz",
      attempts: [{ number: 0, jobId: "a-1" }],
    });
    await printed("RayCluster a-xyz: creating");
    await submitter({ running: { startedAt: "2026-01-01T00:00:00Z" } });
    await writer.write("2026-01-01T00:00:01Z hello\n");
    await printed("hello");
    await submitter({ terminated: { exitCode: 0 } });
    await status({ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" });
    await printed("Ray says SUCCEEDED");
    await writer.write("2026-01-01T00:00:02Z bye\n");
    await writer.close();
    expect((await result).verdict).toMatchObject({ exitCode: 0, word: "SUCCEEDED" });
    expect(seen.stdout).toBe("hello\nbye\n");
  });

  it("tells how a container ended with the last words of its log", async () => {
    const { printed, result, seen } = followed();
    await status({ jobDeploymentStatus: "Initializing", executionAttempt: 0, rayClusterName: "a-xyz" });
    const labels = { "ray.io/rayjob-uid": rayJob.metadata.uid, "ray.io/cluster": "a-xyz", "ray.io/node-type": "head" };
    const spec = { containers: [{ name: "ray-head", image: "i" }] };
    await client.create<Pod>(pods, { metadata: { name: "a-xyz-head", namespace: "default", labels }, spec });
    const state = { terminated: { exitCode: 1, reason: "Error", finishedAt: "2026-01-01T00:00:00Z" } };
    const containerStatuses = [{ name: "ray-head", state }];
    await client.patch(pods, "default", "a-xyz-head", { status: { containerStatuses } }, { subresource: "status" });
    await writer.write("starting\nValueError: no such plasma directory\n");
    await writer.close();
    await printed("no such plasma directory");
    expect(seen.stderr).toContain(
      "Pod head, container ray-head ended: Error, exit code 1: ValueError: no such plasma directory",
    );
    expect(seen.stderr.match(/container ray-head ended/g)).toHaveLength(1);
    await status({ jobDeploymentStatus: "Failed", reason: "AppFailed" });
    await result;
  });

  it("sees that it was deleted, and does not take a namesake for it", async () => {
    const { result, printed } = followed();
    await status({ jobDeploymentStatus: "Suspended" });
    await printed("suspended");
    await client.delete(rayJobs, "default", "a");
    await client.create<RayJob>(rayJobs, { metadata: { name: "a", namespace: "default" }, spec: { entrypoint: "y" } });
    expect((await result).verdict).toMatchObject({ exitCode: 1, word: "DELETED" });
    expect((await result).rayJob.metadata.uid).toBe(rayJob.metadata.uid);
  });

  it("ends when it is told to", async () => {
    const { result } = followed();
    stop.abort(new Error("enough"));
    await expect(result).rejects.toThrow("enough");
  });

  it("goes on after its connections broke", async () => {
    const { result, printed } = followed();
    await status({ jobDeploymentStatus: "Suspended" });
    await printed("suspended");
    simkube.endWatches("broken");
    await status({ jobDeploymentStatus: "Failed", jobStatus: "FAILED", reason: "AppFailed", message: "boom" });
    expect((await result).verdict).toEqual({ exitCode: 1, word: "FAILED, AppFailed", message: "boom" });
  });
});
