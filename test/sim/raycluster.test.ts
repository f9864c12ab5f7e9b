/** A RayCluster of its own, without a RayJob: what a user does with it, and what becomes of its Pods. */
import { describe, expect, it } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import { LABEL, NODE_TYPE } from "../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { RayCluster, RayClusterSpec } from "../../src/api/raycluster.ts";
import { pods, rayClusters, services } from "../../src/machinery/kube/resources.ts";
import { clusterSpec } from "../support/manifests.ts";
import { badImage, prompt } from "./fakeKubelet.ts";
import type { Fate, Meets } from "./process.ts";
import { type Scripts, World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

const NAME = "lone";
const cluster = async (w: World) => (await w.get<RayCluster>(rayClusters, NAME))!;
const edit = (w: World, spec: object) => w.client.patch(rayClusters, "default", NAME, { spec });
const condition = (object: Stored<RayCluster>, type: string) =>
  object.status?.conditions?.find((one) => one.type === type);
const of = (w: World, nodeType: string) =>
  w.list<Pod>(pods).then((all) => all.filter(({ metadata }) => metadata.labels?.[LABEL.nodeType] === nodeType));
const workers = (w: World) => of(w, NODE_TYPE.worker);

function create(w: World, spec: Partial<RayClusterSpec> = {}) {
  const metadata = { name: NAME, namespace: "default" };
  return w.client.create(rayClusters, {
    apiVersion: "ray.io/v1",
    kind: "RayCluster",
    metadata,
    spec: { ...clusterSpec(), ...spec },
  } as RayCluster & KubeObject);
}

/** Until as many workers as wanted are ready, with their head. */
const untilWorkers = (w: World, count: number) =>
  w.until(`${count} workers`, async () => {
    const { status } = await cluster(w);
    return status?.readyWorkerReplicas === count && (await workers(w)).length === count && status.state === "ready";
  });

async function world(scripts?: Scripts, spec?: Partial<RayClusterSpec>): Promise<World> {
  const w = new World(scripts);
  worlds.push(w);
  w.start();
  await create(w, spec);
  return w;
}

const group = (changes: object) => ({ workerGroupSpecs: [{ ...clusterSpec().workerGroupSpecs![0]!, ...changes }] });

describe("a RayCluster", () => {
  it("comes up, settles, and bears no attempt's marks", async () => {
    const w = new World();
    worlds.push(w);
    const { process } = w.start();
    await create(w);
    await untilWorkers(w, 2);
    await w.clock.advance(60_000);
    const writes = process.writes.length;
    expect(writes).toBeLessThanOrEqual(7);
    await w.clock.advance(3_600_000);
    expect(process.writes.slice(writes)).toEqual([]);
    for (const { metadata } of await w.list<Pod>(pods)) {
      expect(metadata.labels).not.toHaveProperty([LABEL.executionAttempt]);
      expect(metadata.annotations ?? {}).not.toHaveProperty([LABEL.executionAttempt]);
    }
    expect((await w.events()).filter((event) => event.startsWith("Warning"))).toEqual([]);
  });

  it("is suspended to nothing and resumed to all", async () => {
    const w = await world();
    await untilWorkers(w, 2);
    await edit(w, { suspend: true });
    await w.until("suspended", async () => (await cluster(w)).status?.state === "suspended");
    await w.clock.advance(60_000);
    expect([...(await w.list(pods)), ...(await w.list(services))]).toEqual([]);
    expect(condition(await cluster(w), "RayClusterSuspended")?.status).toBe("True");
    await edit(w, { suspend: false });
    await untilWorkers(w, 2);
    expect(condition(await cluster(w), "RayClusterSuspended")?.status).toBe("False");
    expect(await w.list(services)).toHaveLength(1);
  });

  it("has as many workers as its user wants now", async () => {
    const w = await world();
    await untilWorkers(w, 2);
    const first = (await workers(w)).map(({ metadata }) => metadata.name);
    await edit(w, group({ replicas: 4 }));
    await untilWorkers(w, 4);
    await edit(w, group({ replicas: 9 }));
    await untilWorkers(w, 5);
    await edit(w, group({ replicas: 2 }));
    await untilWorkers(w, 2);
    expect((await workers(w)).map(({ metadata }) => metadata.name)).toEqual(first);
    await edit(w, group({ replicas: 0 }));
    await untilWorkers(w, 0);
  });

  it("loses the worker that is named and no other", async () => {
    const w = await world();
    await untilWorkers(w, 2);
    const [gone, kept] = (await workers(w)).map(({ metadata }) => metadata.name);
    await edit(w, group({ replicas: 1, scaleStrategy: { workersToDelete: [gone] } }));
    await untilWorkers(w, 1);
    expect((await workers(w)).map(({ metadata }) => metadata.name)).toEqual([kept]);
    await w.clock.advance(120_000);
    await untilWorkers(w, 1);
  });

  it("loses the workers of a group that is taken out", async () => {
    const w = await world(undefined, {
      workerGroupSpecs: [
        ...clusterSpec(1).workerGroupSpecs!,
        { ...clusterSpec(1).workerGroupSpecs![0]!, groupName: "b" },
      ],
    });
    await untilWorkers(w, 2);
    await edit(w, { workerGroupSpecs: clusterSpec(1).workerGroupSpecs });
    await untilWorkers(w, 1);
    expect((await workers(w))[0]!.metadata.labels?.[LABEL.group]).toBe("small");
  });

  it("says which Pod cannot start, and why", async () => {
    const w = await world({ pod: (pod) => (pod.metadata.labels?.[LABEL.nodeType] === "worker" ? badImage : prompt) });
    await w.until(
      "told",
      async () => condition(await cluster(w), "RayClusterProvisioned")?.message.includes("ErrImagePull") === true,
    );
    await w.clock.advance(600_000);
    expect((await cluster(w)).status?.state).not.toBe("ready");
    expect(await workers(w)).toHaveLength(2);
    expect(condition(await cluster(w), "HeadPodReady")?.status).toBe("True");
  });

  it("gets another head when it lost its own, and keeps its workers", async () => {
    const w = await world();
    await untilWorkers(w, 2);
    const before = (await workers(w)).map(({ metadata }) => metadata.name);
    const { uid, name } = (await w.head()).metadata;
    await w.client.delete(pods, "default", name, { gracePeriodSeconds: 0 });
    await w.until("a new head", async () => {
      const head = await w.head();
      return (
        head !== undefined &&
        head.metadata.uid !== uid &&
        condition(await cluster(w), "HeadPodReady")?.status === "True"
      );
    });
    expect((await workers(w)).map(({ metadata }) => metadata.name)).toEqual(before);
  });

  it("deleted at any moment leaves nothing, and a namesake made at once is whole", async () => {
    for (const moment of [0, 10, 100, 500, 1500, 3000, 5000]) {
      const w = await world();
      await w.clock.advance(moment);
      await w.client.delete(rayClusters, "default", NAME);
      await create(w, clusterSpec(1));
      await untilWorkers(w, 1);
      await w.clock.advance(60_000);
      const { uid } = (await cluster(w)).metadata;
      const owners = [...(await w.list(pods)), ...(await w.list(services))].map(
        ({ metadata }) => metadata.ownerReferences?.[0]?.uid,
      );
      expect(owners).toEqual([uid, uid, uid]);
      await w.client.delete(rayClusters, "default", NAME);
      await w.clock.advance(60_000);
      expect([...(await w.list(pods)), ...(await w.list(services))]).toEqual([]);
    }
  });
});

/** Up, more workers, fewer, suspended, resumed: with one accident at one write. */
async function live(at: number | undefined, meets: Meets) {
  const w = new World();
  worlds.push(w);
  let met = false;
  const fate: Fate = ({ method }, number) => {
    if (number !== at) return "answer";
    met = true;
    return typeof meets === "object" && meets.status === 409 && method === "POST" ? "answer" : meets;
  };
  const first = w.start({ fate });
  let succeeded = false;
  const succeed = () => {
    if (!first.process.dead || succeeded) return;
    succeeded = true;
    w.start();
  };
  const until = async (what: string, holds: () => Promise<boolean>) =>
    w.until(what, async () => {
      succeed();
      return holds();
    });
  const settled = (count: number) =>
    until(`${count} workers`, async () => {
      const { status } = await cluster(w);
      return status?.state === "ready" && status.readyWorkerReplicas === count && (await workers(w)).length === count;
    });
  await create(w);
  await settled(2);
  await edit(w, group({ replicas: 3 }));
  await settled(3);
  await edit(w, group({ replicas: 1 }));
  await settled(1);
  await edit(w, { suspend: true });
  await until("suspended", async () => (await cluster(w)).status?.state === "suspended");
  expect(await w.list(pods)).toEqual([]);
  await edit(w, { suspend: false });
  await settled(1);
  await w.clock.advance(60_000);
  succeed();
  await w.clock.advance(60_000);
  const names = (await w.list(pods)).map(({ metadata }) => metadata.name.replace(/-[a-z0-9]{5}$/, "")).sort();
  expect(names, `write ${at}`).toEqual([`${NAME}-head`, `${NAME}-small-worker`]);
  expect(await w.list(services), `write ${at}`).toHaveLength(1);
  await w.close();
  return met;
}

it.each<Meets>(["death after", "lost after", { status: 409 }])(
  "a RayCluster's life is the same when any one write meets %s",
  async (meets) => {
    let number = 0;
    while (await live(number, meets)) number++;
    expect(number).toBeGreaterThan(12);
  },
);
