/** What the API server does not let the operator make (a quota, Pod security, somebody's webhook): the RayJob says so. */
import { describe, expect, it } from "vitest";
import { jobs, rayClusters, rayJobs } from "../../src/machinery/kube/resources.ts";
import { rayJob } from "../support/manifests.ts";
import { runsForEver, succeeds } from "./fakeRay.ts";
import type { Fate } from "./process.ts";
import { World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

const started = async (w: World) => (await w.job())?.status?.conditions?.find(({ type }) => type === "Started");

/** An operator that may not create what lies under this path, as long as `isShut`. */
function world(path: string, times = Number.POSITIVE_INFINITY) {
  const w = new World({ job: () => succeeds(5000) });
  worlds.push(w);
  const gate = { isShut: true, tries: 0 };
  const fate: Fate = (write) => {
    if (!gate.isShut || write.method !== "POST" || !write.path.endsWith(path)) return "answer";
    return ++gate.tries > times ? "answer" : { status: 403 };
  };
  return { w, gate, running: w.start({ fate }) };
}

describe.each([
  ["its RayCluster", "/rayclusters", rayClusters, /^RayCluster demo-\w+ is refused by the API server: .*403/],
  ["its submitter", "/jobs", jobs, /Its submitter cannot start: Job demo is refused by the API server: .*403/],
] as const)("a RayJob of which the API server refuses %s", (_, path, kind, words) => {
  it("says so in its condition, and goes on by itself when that is allowed", async () => {
    const { w, gate } = world(path);
    await w.client.create(rayJobs, rayJob({ submissionMode: "K8sJobMode" }));
    await w.until("told", async () => words.test((await started(w))?.message ?? ""), 60_000);
    expect(await started(w)).toMatchObject({ status: "False" });
    gate.isShut = false;
    const { status } = await w.untilPhase("Complete", "demo", 600_000);
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, failed: 0 });
    expect((await started(w))?.message).not.toContain("refused");
  });

  it("is told once, however often it is tried", async () => {
    const { w, running } = world(path);
    await w.client.create(rayJobs, rayJob({ submissionMode: "K8sJobMode" }));
    await w.until("told", async () => words.test((await started(w))?.message ?? ""), 60_000);
    const before = running.process.writes.length;
    await w.clock.advance(600_000);
    expect(running.process.writes.length).toBe(before);
    expect(await w.list(kind)).toEqual([]);
  });

  it("says nothing of a refusal that is over at once", async () => {
    const { w } = world(path, 1);
    const told: string[] = [];
    w.kube.storage.listen(({ object }) => {
      if (JSON.stringify(object).includes("refused by the API server")) told.push(String(object.kind));
    });
    await w.client.create(rayJobs, rayJob({ submissionMode: "K8sJobMode" }));
    await w.untilPhase("Complete");
    expect(told).toEqual([]);
  });
});

it("a submitter's Job that gets no Pod is told of after a while, with where to look", async () => {
  const w = new World({ job: () => runsForEver });
  worlds.push(w);
  w.start();
  // Whoever suspends a Job keeps it from having Pods, as a quota does.
  w.kube.storage.listen(({ type, object }) => {
    if (type === "ADDED" && object.kind === "Job") {
      void w.client.patch(jobs, "default", "demo", { spec: { suspend: true } });
    }
  });
  await w.client.create(rayJobs, rayJob({ submissionMode: "K8sJobMode" }));
  await w.until("told", async () => /Job demo is suspended/.test((await started(w))?.message ?? ""), 60_000);
});
