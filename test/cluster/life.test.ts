/**
 * What a user and a cluster do to a job on real containers: suspend and resume it, drain its node, take its cluster away
 * after a time, let it run out of memory.
 */
import { afterEach, expect, vi } from "vitest";
import type { Node } from "../../src/api/kubernetes.ts";
import { LABEL } from "../../src/api/labels.ts";
import { findCondition } from "../../src/domain/rayjob/conditions.ts";
import { nodes, pods, rayJobs } from "../../src/machinery/kube/resources.ts";
import { Gate } from "../support/gate.ts";
import { scenario, smallRayJob, stopwatch, useCluster } from "./cluster.ts";

const cluster = useCluster("life");
const gates: Gate[] = [];
const newGate = () => {
  const gate = new Gate();
  gates.push(gate);
  return gate;
};
afterEach(async () => {
  for (const gate of gates) gate.open();
  await Promise.all(cluster.rayJobs.store.list().map(({ metadata }) => cluster.remove(metadata.name)));
  for (const gate of gates.splice(0)) gate.remove();
});

scenario(
  cluster,
  "a job is suspended and resumed: no Pod meanwhile, a new attempt after; its RayCluster goes when its time to live is over",
  async (seen) => {
    const gate = newGate();
    const spec = { entrypoint: gate.entrypoint(), ttlSecondsAfterFinished: 8 };
    const created = await cluster.apply(smallRayJob("paused", spec, gate));
    await cluster.running("paused");
    await expect.poll(() => gate.runs(), { timeout: 60_000 }).toBe(1);

    const suspend = (value: boolean) =>
      cluster.client.patch(rayJobs, cluster.namespace, "paused", { spec: { suspend: value } });
    const since = stopwatch();
    await suspend(true);
    await cluster.phase("paused", "Suspended");
    seen(`Suspended ${since()} after the patch`);
    const live = await cluster.client.list(pods, {
      namespace: cluster.namespace,
      labelSelector: `${LABEL.rayJobUID}=${created.metadata.uid}`,
    });
    expect(live.items.map(({ metadata }) => metadata.name)).toEqual([]);

    await suspend(false);
    await cluster.status(
      "paused",
      "running again",
      ({ jobStatus, executionAttempt }) => jobStatus === "RUNNING" && executionAttempt === 1,
    );
    gate.open();
    const { status } = await cluster.ended("paused");
    expect(status).toMatchObject({ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED", executionAttempt: 1 });
    expect(status!.failed ?? 0).toBe(0);
    expect(gate.runs()).toBe(2);

    const name = status!.rayClusterName!;
    await cluster.until("its RayCluster to be gone", () => !cluster.rayClusters.store.get(cluster.namespace, name));
    // Told after the deletion.
    const told = await vi.waitUntil(
      async () =>
        (await cluster.events(created)).find((event) => event.endsWith(`Deleted cluster ${cluster.namespace}/${name}`)),
      { timeout: 30_000, interval: 500 },
    );
    const left = await cluster.until("only the submitter to be left", () => {
      const rest = cluster.podsOf(created);
      return rest.every(({ metadata }) => !metadata.labels?.[LABEL.nodeType]) && rest;
    });
    expect(left.map(({ status: is }) => is?.phase)).toEqual(["Succeeded"]);
    const lived = (Date.parse(`${told.slice(0, 19)}Z`) - Date.parse(status!.endTime!)) / 1000;
    expect(lived).toBeGreaterThanOrEqual(8);
    seen(`the RayCluster was deleted ${lived} s after the end; the submitter's Pod is kept for its log`);
    expect(await cluster.log(left[0]!)).toContain("through the gate");
  },
);

scenario(
  cluster,
  "the node is drained under a running job: the attempt has failed in seconds, the next says why it cannot start, and runs when there is a node",
  async (seen) => {
    const gate = newGate();
    const entrypoint = `echo run >> /gate/runs; if [ "$ATTEMPT" = 0 ]; then while true; do sleep 0.2; done; fi`;
    await cluster.apply(smallRayJob("drained", { entrypoint, backoffLimit: 1 }, gate));
    const job = await cluster.running("drained");
    await expect.poll(() => gate.runs(), { timeout: 60_000 }).toBe(1);
    const head = cluster.head(job)!;
    const node = head.spec!.nodeName!;
    const began = Date.now();
    try {
      // The operator, which a real drain would take along, has scenarios of its own.
      const which = ["--pod-selector", `${LABEL.rayJobUID}=${job.metadata.uid}`];
      const how = ["--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout", "120s"];
      await cluster.kubectlSays(["drain", node, ...which, ...how]);
      const failed = await cluster.status("drained", "attempt 0 to have failed", ({ attempts }) =>
        Boolean(attempts?.[0]?.endTime),
      );
      const [record] = failed.status!.attempts!;
      expect(record).toMatchObject({
        number: 0,
        jobStatus: "FAILED",
        reason: expect.stringMatching(/^(RayJob|HeadPod)Lost$/),
      });
      // Ray may answer until the Pod is gone; then nobody tells any more who had it end.
      expect(record!.message).toMatch(
        new RegExp(`${head.metadata.name} is (being deleted \\(EvictionByEvictionAPI|gone)`),
      );
      const seconds = Math.ceil((Date.parse(record!.endTime!) - began) / 1000);
      seen(`attempt 0 failed within ${seconds} s of the drain: ${record!.message}`);
      const waiting = await cluster.status("drained", "attempt 1 to say what it waits for", (status) => {
        const message = findCondition(status, "Started")?.message ?? "";
        return status.executionAttempt === 1 && /cannot be scheduled/.test(message);
      });
      const { message } = findCondition(waiting.status!, "Started")!;
      expect(message).toMatch(/unschedulable/i);
      seen(`attempt 1 says: ${message}`);
    } finally {
      await cluster.kubectlSays(["uncordon", node]);
    }
    const { status } = await cluster.ended("drained");
    expect(status).toMatchObject({ jobDeploymentStatus: "Complete", executionAttempt: 1, failed: 1, succeeded: 1 });
    expect(gate.runs()).toBe(2);
    expect((await cluster.client.get<Node>(nodes, undefined, node)).spec?.unschedulable ?? false).toBe(false);
  },
);

scenario(cluster, "a program uses more memory than its Pod may have: Failed, and told so", async (seen) => {
  const gate = newGate();
  const eats = `python -c "block = []; [block.append(b'x' * (64 << 20)) for _ in range(100)]"`;
  const wanted = smallRayJob("greedy", { entrypoint: `echo run >> /gate/runs; ${eats}` }, gate);
  // Else Ray itself sees it coming, kills the program before the kernel does, and says so.
  const [head] = wanted.spec.rayClusterSpec!.headGroupSpec.template.spec!.containers;
  head!.env!.push({ name: "RAY_memory_monitor_refresh_ms", value: "0" });
  await cluster.apply(wanted);
  const { status } = await cluster.ended("greedy");
  expect(status).toMatchObject({ jobDeploymentStatus: "Failed", reason: "AppFailed", executionAttempt: 0, failed: 1 });
  const failed = findCondition(status!, "Failed")!;
  seen(`${failed.reason}: ${failed.message}`);
  // The kernel kills the program (exit code or signal 9), or the whole container with it (OOMKilled).
  expect(failed.message).toMatch(/OOMKilled|SIGKILL|signal 9|-9|137/);
  expect(gate.runs()).toBe(1);
});
