/** The API server has KubeRay's CRDs, and so would not keep the operator's journal. */
import { expect, it } from "vitest";
import { crds } from "../../src/api/crds.ts";
import type { CustomResourceDefinition } from "../../src/api/kubernetes.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { customResourceDefinitions, rayClusters, rayJobs } from "../../src/machinery/kube/resources.ts";
import { kuberayCrds } from "../support/kuberayCrds.ts";
import { rayJob } from "../support/manifests.ts";
import { succeeds } from "./fakeRay.ts";
import { World, withOpenTemplates } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

function newWorld(): World {
  const world = new World({ job: () => succeeds(60_000) });
  worlds.push(world);
  return world;
}

async function replaceCrds(w: World, definitions: readonly CustomResourceDefinition[]): Promise<void> {
  for (const crd of withOpenTemplates(definitions)) {
    const there = await w.client.get(customResourceDefinitions, undefined, crd.metadata.name!);
    const { resourceVersion } = there.metadata;
    await w.client.update(customResourceDefinitions, { ...crd, metadata: { ...crd.metadata, resourceVersion } });
  }
}

it("an operator that comes before its CRDs waits, saying what is missing, and begins when they are there", async () => {
  const w = newWorld();
  await replaceCrds(w, kuberayCrds());
  await w.client.create<RayJob>(rayJobs, rayJob());
  const { operator, journal, process } = w.start({ asks: true });
  await w.clock.advance(120_000);
  expect([operator.ready, process.writes]).toEqual([false, []]);
  expect(journal?.waitingFor).toBe(
    "not started: CRD rayclusters.ray.io does not keep status.head.podUID; " +
      "CRD rayjobs.ray.io does not keep status.attempts, status.conditions, status.executionAttempt, status.rayClusterStatus.head.podUID; " +
      "put Raykeeper's CRDs there: raykeeper crds --apply (the Helm chart's hook does it, too)",
  );
  await replaceCrds(w, crds());
  expect((await w.untilPhase("Complete", "demo", 300_000)).status?.executionAttempt).toBe(0);
  expect(journal?.waitingFor).toBeUndefined();
});

it("an operator that comes before any CRDs waits, too", async () => {
  const w = newWorld();
  for (const { metadata } of crds()) await w.client.delete(customResourceDefinitions, undefined, metadata.name!);
  await w.clock.advance(1_000);
  const { operator, journal } = w.start({ asks: true });
  await w.clock.advance(30_000);
  expect(operator.ready).toBe(false);
  expect(journal?.waitingFor).toContain("there is no CRD rayclusters.ray.io; there is no CRD rayjobs.ray.io");
  await operator.stop();
});

it.each([
  ["is new", 0],
  ["waits for its cluster", 1_500],
  ["runs", 30_000],
])(
  "when KubeRay's CRDs are put back while a job %s, the operator ends in words, and the job goes on with the CRDs",
  async (_, after) => {
    const w = newWorld();
    const made: string[] = [];
    w.kube.storage.listen(({ type, object }) => {
      if (object.kind === "Pod" && type === "ADDED") made.push(object.metadata.name);
    });
    const first = w.start({ asks: true });
    await w.clock.advance(1_000);
    if (after > 0) await w.client.create<RayJob>(rayJobs, rayJob());
    await w.clock.advance(after);
    await replaceCrds(w, kuberayCrds());
    if (after === 0) await w.client.create<RayJob>(rayJobs, rayJob());
    const submitted = [...w.submissions];
    let ended: unknown;
    first.operator.done.catch((error) => {
      ended = error;
    });
    await w.until("noticed", () => ended !== undefined, 120_000);
    expect(String(ended)).toContain("the journal is not kept any more: CRD rayclusters.ray.io does not keep");

    // Whoever starts it again meets a closed door: nothing is made, nothing is lost.
    const second = w.start({ asks: true });
    await w.clock.advance(30_000);
    expect([second.operator.ready, second.process.writes, w.submissions]).toEqual([false, [], submitted]);

    await replaceCrds(w, crds());
    const { status } = await w.untilPhase("Complete", "demo", 300_000);
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", succeeded: 1, failed: 0 });
    expect(w.submissions).toHaveLength(1);
    expect(made, "a head, two workers, a submitter").toHaveLength(4);
    await w.until("released", async () => (await w.list(rayClusters)).length === 0, 60_000);
    // What the one write that was pruned took along, and what follows from it.
    const { violations } = w.invariants;
    const others = violations
      .splice(0)
      .filter((each) => !/the attempt went from 0 to -1|before there were any/.test(each));
    expect(others).toEqual([]);
  },
);
