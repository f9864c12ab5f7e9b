/**
 * A queue of Kueue's with room for one small RayJob, and all that Kueue, kubelet and operator write in its namespace.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "vitest";
import { KUEUE_LABEL } from "../../hack/cluster/kueue.js";
import { LABEL } from "../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { isNotFound } from "../../src/machinery/kube/errors.ts";
import type { ResourceType } from "../../src/machinery/kube/resources.ts";
import { root } from "../e2e/command.ts";
import { History } from "../support/history.ts";
import { type Judgement, judgeQuota, type Workload, workloads } from "../support/quota.ts";
import { type NodeCluster, useCluster } from "./cluster.ts";
import { TEST_LABEL } from "./operator.ts";

const kueues = (kind: string, plural: string, namespaced = false): ResourceType => ({
  ...workloads,
  kind,
  plural,
  singular: kind.toLowerCase(),
  namespaced,
});
const clusterQueues = kueues("ClusterQueue", "clusterqueues");
const localQueues = kueues("LocalQueue", "localqueues", true);
const flavors = kueues("ResourceFlavor", "resourceflavors");
const priorities = kueues("WorkloadPriorityClass", "workloadpriorityclasses");

/** Two heads of 256Mi do not fit, one with its submitter (200Mi) does. */
export const ROOM = { cpu: "1", memory: "500Mi" } as const;
/** Each node of this cluster has it; Pods have to ask for it only where Kueue's flavor put it into their template. */
export const FLAVOR = { "kubernetes.io/os": "linux" } as const;
const QUEUE = "team";
const PRIORITY = "kueue.x-k8s.io/priority-class";

export class KueueCluster {
  readonly cluster: NodeCluster;
  #history = new History();

  constructor(cluster: NodeCluster) {
    this.cluster = cluster;
  }

  /** Names of what no namespace holds. */
  get #name(): string {
    return this.cluster.namespace;
  }

  get urgent(): string {
    return `${this.#name}-urgent`;
  }

  async open(): Promise<void> {
    await kueueUp();
    const { client, namespace } = this.cluster;
    const labels = { [TEST_LABEL]: "scenarios" };
    const make = (type: ResourceType, name: string, content: object) =>
      client.create(type, {
        apiVersion: `${type.group}/${type.version}`,
        kind: type.kind,
        metadata: { name, labels, ...(type.namespaced && { namespace }) },
        ...content,
      } as KubeObject);
    await make(flavors, this.#name, { spec: { nodeLabels: FLAVOR } });
    await make(priorities, this.urgent, { value: 1000 });
    const resources = Object.entries(ROOM).map(([name, nominalQuota]) => ({ name, nominalQuota }));
    await make(clusterQueues, this.#name, {
      spec: {
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
        preemption: { withinClusterQueue: "LowerPriority" },
        resourceGroups: [{ coveredResources: Object.keys(ROOM), flavors: [{ name: this.#name, resources }] }],
      },
    });
    await make(localQueues, QUEUE, { spec: { clusterQueue: this.#name } });
  }

  async close(): Promise<void> {
    for (const [type, name] of [
      [clusterQueues, this.#name],
      [flavors, this.#name],
      [priorities, this.urgent],
    ] as const) {
      await this.cluster.client.delete(type, undefined, name).catch((error: unknown) => {
        if (!isNotFound(error)) throw error;
      });
    }
  }

  /** As its user writes it; Kueue suspends it at once. */
  queued(job: RayJob, options: { urgent?: boolean; annotations?: Readonly<Record<string, string>> } = {}): RayJob {
    const labels = { [LABEL.kueueQueueName]: QUEUE, ...(options.urgent && { [PRIORITY]: this.urgent }) };
    return { ...job, metadata: { ...job.metadata, labels, annotations: options.annotations } } as RayJob;
  }

  workload(job: Stored<RayJob>): Stored<Workload> | undefined {
    return this.#history
      .of<Workload>(this.cluster.namespace, workloads)
      .find(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === job.metadata.uid));
  }

  untilWorkload(job: Stored<RayJob>, what: string, wanted: (workload: Stored<Workload>) => boolean) {
    const look = () => {
      const workload = this.workload(job);
      return workload && wanted(workload) && workload;
    };
    const describe = () => `${JSON.stringify(this.workload(job)?.status)}\n${this.cluster.describe()}`;
    return this.#history.until(`the Workload of ${job.metadata.name} ${what}`, look, describe);
  }

  /** What the queue has given away, by resource. */
  async usage(): Promise<Readonly<Record<string, string>>> {
    const queue = await this.cluster.client.get<KubeObject>(clusterQueues, undefined, this.#name);
    const { flavorsUsage = [] } =
      (queue as { status?: { flavorsUsage?: { resources: { name: string; total: string }[] }[] } }).status ?? {};
    return Object.fromEntries(
      flavorsUsage.flatMap(({ resources }) => resources.map(({ name, total }) => [name, total])),
    );
  }

  /** Notes from now on what is stored in the namespace, while `act` lasts. */
  async noting(act: () => Promise<void>): Promise<void> {
    const stop = new AbortController();
    this.#history = new History([workloads]);
    await this.#history.follow(this.cluster.client, stop.signal, this.cluster.namespace);
    try {
      await act();
    } finally {
      stop.abort();
    }
  }

  /** Of all that was noted. */
  async judge(): Promise<Judgement> {
    const { client, namespace } = this.cluster;
    const upTo = await this.#history.heard(client, namespace);
    const { violations, ...judgement } = judgeQuota(this.#history.versions(namespace, upTo), ROOM);
    return { ...judgement, violations: [...violations, ...this.#history.violations(namespace, [], upTo)] };
  }

  /** The versions of a RayJob, as `kubectl get --watch` would have shown them. */
  phases(name: string): string[] {
    const told = this.#history
      .versions(this.cluster.namespace)
      .flatMap(({ object }) =>
        object.kind === "RayJob" && object.metadata.name === name
          ? [(object as Stored<RayJob>).status?.jobDeploymentStatus ?? ""]
          : [],
      );
    return told.filter((phase, index) => phase !== told[index - 1]);
  }
}

/** A namespace that Kueue manages, for one file of scenarios. */
export function useKueue(name: string): KueueCluster {
  const cluster = useCluster(name, { [KUEUE_LABEL.key]: KUEUE_LABEL.value });
  const kueue = new KueueCluster(cluster);
  beforeAll(() => kueue.open());
  afterAll(() => kueue.close());
  return kueue;
}

/** On whichever cluster there is; that it is there already takes seconds. */
async function kueueUp(): Promise<void> {
  const script = join(root, "hack", "cluster", "kueue.js");
  const child = spawn("setpriv", ["--pdeathsig", "TERM", process.execPath, script], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  const [code] = await once(child, "exit");
  expect(code, script).toBe(0);
}
