/** Brings a scenario about under whichever operator runs, and answers with its namespace. */
import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { isNotFound } from "../../src/machinery/kube/errors.ts";
import { namespaces, pods, rayClusters, rayJobs } from "../../src/machinery/kube/resources.ts";
import { prompt } from "../sim/fakeKubelet.ts";
import { rayCluster, rayJob } from "../support/manifests.ts";
import type { Scenario } from "./scenarios.ts";
import { type Stagehand, until } from "./stagehand.ts";

export const HOLD = "test.raykeeper.dev/hold";

export async function play(hand: Stagehand, scenario: Scenario, log: string): Promise<string> {
  const { client } = hand;
  const namespace = scenario.name;
  const at = { namespace };
  await client.create(namespaces, { metadata: { name: namespace } } as KubeObject);
  hand.parts.set(namespace, {
    jobs: scenario.jobs?.() ?? [],
    ...(scenario.noWorkers && {
      pod: ({ metadata }) =>
        metadata.labels?.["ray.io/node-type"] === "worker" ? { ...prompt, schedule: Number.POSITIVE_INFINITY } : prompt,
    }),
  });
  const finalizers = scenario.held ? [HOLD] : [];
  if (scenario.cluster) {
    const object = rayCluster("shared", 1);
    await client.create(rayClusters, { ...object, metadata: { ...object.metadata, ...at, finalizers } });
    await until(`${namespace}: ready`, async () => (await clusterIn()).status?.state === "ready", log);
  }
  if (scenario.job) {
    const object = rayJob(scenario.job);
    await client.create(rayJobs, {
      ...object,
      metadata: { ...object.metadata, ...at, ...(scenario.act === "delete" && { finalizers }) },
    });
  }
  async function clusterIn(): Promise<Stored<RayCluster>> {
    const { items } = await client.listAll<RayCluster>(rayClusters, at);
    return items[0] ?? ({ metadata: {}, spec: {} } as Stored<RayCluster>);
  }
  const jobIn = () =>
    client.get<RayJob>(rayJobs, namespace, "demo").catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
  const come = (to: Scenario["at"]) =>
    until(
      `${namespace}: ${JSON.stringify(to)}`,
      async () => {
        const job = scenario.job ? await jobIn() : undefined;
        if (scenario.job && scenario.held && scenario.act !== "delete") await hold();
        if (to.phase !== undefined && job?.status?.jobDeploymentStatus !== to.phase) return false;
        if (to.jobStatus !== undefined && job?.status?.jobStatus !== to.jobStatus) return false;
        if (to.failed !== undefined && job?.status?.failed !== to.failed) return false;
        if (to.workers !== undefined && (await clusterIn()).status?.desiredWorkerReplicas !== to.workers) return false;
        return to.state === undefined || (await clusterIn()).status?.state === to.state;
      },
      log,
    );
  /** The RayCluster that the operator made is to stay when it is deleted. */
  async function hold(): Promise<void> {
    const { metadata } = await clusterIn();
    if (!metadata.name || metadata.deletionTimestamp || metadata.finalizers?.includes(HOLD)) return;
    await client.patch(rayClusters, namespace, metadata.name, { metadata: { finalizers: [HOLD] } }).catch(() => {});
  }

  if (scenario.first) await come(scenario.first);
  const cluster = (await clusterIn()).metadata.name;
  switch (scenario.act) {
    case "suspend":
      await client.patch(rayJobs, namespace, "demo", { spec: { suspend: true } });
      break;
    case "delete":
      await client.delete(rayJobs, namespace, "demo");
      break;
    case "suspend the cluster":
      await client.patch(rayClusters, namespace, cluster, { spec: { suspend: true } });
      break;
    case "delete the cluster":
      await client.delete(rayClusters, namespace, cluster);
      break;
    case "delete a worker": {
      const { items } = await client.listAll(pods, { ...at, labelSelector: "ray.io/node-type=worker" });
      await client.delete(pods, namespace, items[0]!.metadata.name);
      break;
    }
    case undefined:
  }
  await come(scenario.at);
  return namespace;
}
