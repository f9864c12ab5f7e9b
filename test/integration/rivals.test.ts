/** Two releases that watch the same namespace: nobody can refuse the second, so each says that the other is there. */
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import { events } from "../../src/machinery/kube/resources.ts";
import { World } from "./world.ts";

type Told = KubeObject & { readonly note?: string };

let world: World;
beforeAll(async () => {
  world = await World.open();
  await world.leader();
});
afterAll(() => world.close());

it("one operator for a namespace speaks of no other", async () => {
  const stage = await world.stage();
  await stage.create({});
  await stage.phase("Complete");
  expect((await stage.events()).join("\n")).not.toContain("AnotherOperator");
});

it("a second one is noticed by both, and the job is run once all the same", async () => {
  const stage = await world.stage();
  // Its lease is in another namespace, so it leads, too.
  world.startOperator({ kubeconfig: inject("controlPlane"), flags: ["--leader-election-namespace", stage.namespace] });
  await world.leader(stage.namespace);
  await stage.create({});
  await stage.phase("Complete");
  expect(stage.submissions).toHaveLength(1);
  const missing = new Set(["raykeeper-operator.default", `raykeeper-operator.${stage.namespace}`]);
  const signal = AbortSignal.timeout(600_000);
  for await (const { object } of await stage.client.watch<Told>(events, { namespace: stage.namespace, signal })) {
    const [, other = ""] = /is written by "([^"]+)", too/.exec((object as Stored<Told>).note ?? "") ?? [];
    missing.delete(other);
    if (missing.size === 0) break;
  }
  expect([...missing], stage.describe()).toEqual([]);
});
