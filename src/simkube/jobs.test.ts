/** What a Job's user sees of the Job controller as time passes. */
import { beforeEach, describe, expect, it } from "vitest";
import type { Job, JobSpec, Pod } from "../api/kubernetes.ts";
import type { Stored } from "../api/object.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { jobs, pods } from "../machinery/kube/resources.ts";
import { VirtualClock } from "../machinery/virtualClock.ts";
import { SimKube } from "./simkube.ts";

let clock: VirtualClock;
let simkube: SimKube;
let client: KubeClient;

beforeEach(() => {
  clock = new VirtualClock();
  simkube = new SimKube({ clock, seed: 1 });
  simkube.runControllers();
  client = new KubeClient(simkube.transport, { clock });
});

async function run(spec: Partial<JobSpec> = {}): Promise<void> {
  const template = { spec: { restartPolicy: "Never", containers: [{ name: "main", image: "busybox" }] } };
  await client.create<Job>(jobs, { metadata: { name: "a", namespace: "default" }, spec: { template, ...spec } });
  await clock.advance(0);
}
const job = () => client.get<Job>(jobs, "default", "a");
const listed = async () => (await client.list<Pod>(pods)).items;
const alive = async () =>
  (await listed()).filter(
    ({ metadata, status }) =>
      !metadata.deletionTimestamp && status?.phase !== "Failed" && status?.phase !== "Succeeded",
  );
async function end(phase: "Succeeded" | "Failed"): Promise<void> {
  const [pod] = await alive();
  await client.patch(pods, "default", pod!.metadata.name, { status: { phase } }, { subresource: "status" });
  await clock.advance(0);
}
const holding = ({ status }: Stored<Job>) =>
  (status?.conditions ?? []).filter(({ status }) => status === "True").map(({ type, reason }) => `${type} ${reason}`);

describe("a Job", () => {
  it("tries again after 10, 20 and 40 seconds", async () => {
    await run();
    for (const delay of [10_000, 20_000, 40_000]) {
      await end("Failed");
      await clock.advance(delay - 1);
      expect(await alive()).toHaveLength(0);
      await clock.advance(1);
      expect(await alive()).toHaveLength(1);
    }
    expect((await job()).status).toMatchObject({ failed: 3, active: 1 });
  });
  it("is given up when more Pods have failed than its limit allows", async () => {
    await run({ backoffLimit: 1 });
    await end("Failed");
    await clock.advance(10_000);
    expect(holding(await job())).toEqual([]);
    await end("Failed");
    expect(holding(await job())).toEqual(["FailureTarget BackoffLimitExceeded", "Failed BackoffLimitExceeded"]);
    await clock.advance(600_000);
    expect(await alive()).toHaveLength(0);
  });
  it("counts a Pod that was deleted as failed, and fills its place", async () => {
    await run();
    const [pod] = await alive();
    await client.delete(pods, "default", pod!.metadata.name);
    await clock.advance(10_000);
    expect((await job()).status).toMatchObject({ failed: 1, active: 1 });
    expect((await alive())[0]!.metadata.name).not.toBe(pod!.metadata.name);
  });
  it("remembers what its Pods came to when they are gone", async () => {
    await run({ completions: 2 });
    await end("Succeeded");
    for (const { metadata, status } of await listed()) {
      if (status?.phase === "Succeeded") await client.delete(pods, "default", metadata.name);
    }
    await clock.advance(0);
    await end("Succeeded");
    expect((await job()).status).toMatchObject({ succeeded: 2 });
    expect(holding(await job())).toEqual(["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"]);
  });
  it("runs as many Pods at once as it may, and no more than it needs", async () => {
    await run({ parallelism: 3, completions: 4 });
    expect(await alive()).toHaveLength(3);
    await end("Succeeded");
    expect(await alive()).toHaveLength(3);
    await end("Succeeded");
    expect(await alive()).toHaveLength(2);
  });
  it("ends at its deadline, and takes its Pods along", async () => {
    await run({ activeDeadlineSeconds: 60 });
    await clock.advance(59_000);
    expect(await alive()).toHaveLength(1);
    await clock.advance(1000);
    expect(await listed()).toHaveLength(0);
    expect(holding(await job())).toEqual(["FailureTarget DeadlineExceeded", "Failed DeadlineExceeded"]);
  });
  it("is not over while a Pod of it is still ending", async () => {
    await run({ activeDeadlineSeconds: 60 });
    const [pod] = await alive();
    await simkube.transport.request({
      method: "POST",
      path: `/api/v1/namespaces/default/pods/${pod!.metadata.name}/binding`,
      body: { target: { kind: "Node", name: "n" } },
    });
    await clock.advance(60_000);
    expect(holding(await job())).toEqual(["FailureTarget DeadlineExceeded"]);
    await client.delete(pods, "default", pod!.metadata.name, { gracePeriodSeconds: 0 });
    await clock.advance(0);
    expect(holding(await job())).toContain("Failed DeadlineExceeded");
  });
  it("counts its deadline anew after it was suspended", async () => {
    await run({ activeDeadlineSeconds: 60 });
    await clock.advance(50_000);
    await client.patch(jobs, "default", "a", { spec: { suspend: true } });
    await clock.advance(50_000);
    expect(holding(await job())).toEqual(["Suspended JobSuspended"]);
    expect((await job()).status?.startTime).toBeUndefined();
    expect((await job()).status?.failed).toBeUndefined();
    await client.patch(jobs, "default", "a", { spec: { suspend: false } });
    await clock.advance(50_000);
    expect(await alive()).toHaveLength(1);
    expect(holding(await job())).toEqual([]);
  });
  it("goes some time after its end, if it was told so", async () => {
    await run({ ttlSecondsAfterFinished: 30 });
    await end("Succeeded");
    await clock.advance(29_000);
    await job();
    await clock.advance(1000);
    await expect(job()).rejects.toMatchObject({ status: 404 });
    expect(await listed()).toHaveLength(0);
  });
  it("whose containers restart in place is given up after so many restarts", async () => {
    const template = { spec: { restartPolicy: "OnFailure", containers: [{ name: "main", image: "busybox" }] } };
    await run({ template, backoffLimit: 2 });
    const [pod] = await alive();
    const status = (restartCount: number) => ({
      status: { phase: "Running", containerStatuses: [{ name: "main", restartCount }] },
    });
    await client.patch(pods, "default", pod!.metadata.name, status(1), { subresource: "status" });
    await clock.advance(0);
    expect(holding(await job())).toEqual([]);
    await client.patch(pods, "default", pod!.metadata.name, status(2), { subresource: "status" });
    await clock.advance(0);
    expect(holding(await job())).toContain("Failed BackoffLimitExceeded");
  });
  it("with rules that are not built here is refused, not half obeyed", async () => {
    await expect(run({ completionMode: "Indexed" })).rejects.toMatchObject({ status: 422 });
    await expect(run({ podFailurePolicy: { rules: [] } })).rejects.toMatchObject({ status: 422 });
  });
});
