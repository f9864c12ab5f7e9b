/**
 * The one node of an embedded cluster: registers itself, takes the Pods, and gives each to a worker.
 *
 * It is scheduler and kubelet in one. For trying things and for tests: limits on CPU and memory are not enforced,
 * security contexts are not honoured, and Pods have no way out of the machine.
 * Next: podWorker.ts runs one Pod; names.ts is what stands in for DNS.
 */
import { availableParallelism, release, totalmem } from "node:os";
import type { ConfigMap, EndpointSlice, Node, Pod, Secret } from "../../api/kubernetes.ts";
import type { KubeObject, Stored } from "../../api/object.ts";
import { toWire } from "../../domain/time.ts";
import type { Clock } from "../../machinery/clock.ts";
import { Events } from "../../machinery/events.ts";
import { KubeClient } from "../../machinery/kube/client.ts";
import { errorFrom, isAlreadyExists, isConflict, isNotFound } from "../../machinery/kube/errors.ts";
import { Informer } from "../../machinery/kube/informer.ts";
import {
  configMaps,
  endpointSlices,
  nodes,
  pods,
  type ResourceType,
  resourcePath,
  secrets,
} from "../../machinery/kube/resources.ts";
import type { Transport } from "../../machinery/kube/transport.ts";
import { describe, type Logger } from "../../machinery/logger.ts";
import type { RayEnvironment } from "../rayEnvironment.ts";
import { Addresses } from "./addresses.ts";
import type { ConfigSource } from "./configError.ts";
import { overwrite } from "./files.ts";
import type { ContainerLog } from "./log.ts";
import { hostsFile, serviceLines } from "./names.ts";
import { type NodeContext, PodWorker } from "./podWorker.ts";
import type { Runtime } from "./runtime.ts";
import { whyUnschedulable } from "./schedule.ts";

export const NODE_NAME = "local";

export interface LocalNodeOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly runtime: Runtime;
  readonly log: Logger;
  /** Where Pods' files are kept; Pods do not see it. */
  readonly folder: string;
  readonly hide: readonly string[];
  /** First two numbers of the Pods' addresses: `10.244`. */
  readonly subnet: string;
  readonly bridge: string;
  /** The cluster's domain. */
  readonly domain: string;
  /** A hosts file for those in the sandbox that are no Pods, such as the operator; kept up to date. */
  readonly hostsFile: string;
  pull(version: string): Promise<RayEnvironment>;
}

export class LocalNode {
  readonly #options: LocalNodeOptions;
  readonly #client: KubeClient;
  readonly #events: Events;
  readonly #pods: Informer<Pod>;
  readonly #slices: Informer<EndpointSlice>;
  readonly #workers = new Map<string, PodWorker>();
  readonly #context: NodeContext;
  readonly #node: Node;
  #naming = false;
  #namingAgain = false;

  constructor(options: LocalNodeOptions) {
    const { transport, clock, subnet, bridge } = options;
    this.#options = options;
    this.#client = new KubeClient(transport, { clock });
    this.#events = new Events({
      client: this.#client,
      clock,
      controller: "kubelet",
      instance: NODE_NAME,
      log: options.log,
    });
    this.#pods = new Informer({ client: this.#client, type: pods, clock, log: options.log });
    this.#slices = new Informer({ client: this.#client, type: endpointSlices, clock, log: options.log });
    const hostIP = `${subnet}.0.1`;
    this.#node = describeNode(hostIP, clock.now());
    this.#context = {
      client: this.#client,
      clock,
      runtime: options.runtime,
      log: options.log,
      nodeName: NODE_NAME,
      hostIP,
      memory: totalmem(),
      allocatable: this.#node.status!.allocatable as Record<string, string>,
      folder: options.folder,
      hide: options.hide,
      network: { prefix: 16, gateway: hostIP, bridge },
      addresses: new Addresses(subnet),
      pull: options.pull,
      configSource: (namespace) => configSource(this.#client, namespace),
      hosts: (pod, address) => this.#hosts(pod, address),
      event: (pod, type, reason, note) => this.#events.record(pod, { type, reason, action: reason, note }),
    };
  }

  /** Registers the node and begins to take Pods; goes on until `signal` is aborted. */
  async start(signal: AbortSignal): Promise<void> {
    await this.#register();
    this.#slices.onChange(() => void this.#updateNames());
    this.#pods.onChange(({ old, new: now }) => {
      if (old && old.metadata.uid !== now?.metadata.uid) this.#drop(old.metadata.uid);
      if (now) this.#take(now);
    });
    this.#slices.start(signal);
    this.#pods.start(signal);
    await Promise.all([this.#slices.synced(), this.#pods.synced()]);
  }

  /** The log of a container's current or previous run, for the API's `pods/log`; undefined when there is none (yet). */
  log(namespace: string, pod: string, container: string, previous: boolean): ContainerLog | undefined {
    const worker = [...this.#workers.values()].findLast(
      (candidate) => candidate.pod.metadata.name === pod && candidate.pod.metadata.namespace === namespace,
    );
    return worker?.log(container, previous);
  }

  async #register(): Promise<void> {
    try {
      await this.#client.create(nodes, { ...this.#node, status: undefined } as KubeObject);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    await this.#client.patch(nodes, undefined, NODE_NAME, { status: this.#node.status }, { subresource: "status" });
  }

  #take(pod: Stored<Pod>): void {
    const known = this.#workers.get(pod.metadata.uid);
    const { nodeName } = pod.spec ?? {};
    const { name, namespace, uid, deletionTimestamp } = pod.metadata;
    const failed = (error: unknown) =>
      this.#options.log.error({ pod: name, namespace, error: describe(error) }, "the Pod could not be looked after");
    if (known) known.update(pod);
    else if (!nodeName && !deletionTimestamp) this.#schedule(pod).catch(failed);
    else if (nodeName === NODE_NAME) {
      const worker = new PodWorker(pod, this.#context);
      this.#workers.set(uid, worker);
      worker.done.catch(failed);
    }
  }

  /** The worker stays known as long as the Pod exists, if only for its finalizers: a Pod must never be begun twice. */
  #drop(uid: string): void {
    const worker = this.#workers.get(uid);
    worker?.gone();
    worker?.done.catch(() => {}).finally(() => this.#workers.delete(uid));
  }

  /** Binds the Pod to this node, or says why it cannot be. */
  async #schedule(pod: Stored<Pod>): Promise<void> {
    const { namespace, name, uid } = pod.metadata;
    const reason = whyUnschedulable(pod, this.#node);
    try {
      if (reason === undefined) {
        const body = {
          apiVersion: "v1",
          kind: "Binding",
          metadata: { name, namespace, uid },
          target: { apiVersion: "v1", kind: "Node", name: NODE_NAME },
        };
        const path = resourcePath(pods, namespace, name, "binding");
        const answer = await this.#options.transport.request({ method: "POST", path, body });
        if (answer.status >= 300) throw errorFrom(answer, `POST ${path}`);
        const note = `Successfully assigned ${namespace}/${name} to ${NODE_NAME}`;
        this.#events.record(pod, { type: "Normal", reason: "Scheduled", action: "Binding", note });
        return;
      }
      const old = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
      if (old?.status === "False" && old.message === reason) return;
      this.#events.record(pod, { type: "Warning", reason: "FailedScheduling", action: "Scheduling", note: reason });
      const unscheduled = {
        type: "PodScheduled",
        status: "False",
        reason: "Unschedulable",
        message: reason,
        lastTransitionTime: toWire(this.#options.clock.now()),
      };
      const others = (pod.status?.conditions ?? []).filter(({ type }) => type !== "PodScheduled");
      const status = { phase: "Pending", conditions: [...others, unscheduled] };
      await this.#client.patch(pods, namespace, name, { metadata: { uid }, status }, { subresource: "status" });
    } catch (error) {
      if (!isNotFound(error) && !isConflict(error)) throw error;
    }
  }

  #hosts(pod: Pod, address: string): string {
    const { domain } = this.#options;
    const lines = serviceLines(this.#slices.store.list(), { namespace: pod.metadata.namespace, domain });
    const { hostname = pod.metadata.name, subdomain } = pod.spec ?? {};
    const full = subdomain ? `${hostname}.${subdomain}.${pod.metadata.namespace}.svc.${domain} ` : "";
    return hostsFile([`${address}\t${full}${hostname}`], lines);
  }

  /** Writes the hosts files anew. Changes that come meanwhile are in the next round. */
  async #updateNames(): Promise<void> {
    this.#namingAgain = true;
    if (this.#naming) return;
    this.#naming = true;
    while (this.#namingAgain) {
      this.#namingAgain = false;
      const lines = serviceLines(this.#slices.store.list(), { domain: this.#options.domain });
      await overwrite(this.#options.hostsFile, hostsFile([], lines)).catch((error) =>
        this.#options.log.error({ error }, "the sandbox's hosts file could not be written"),
      );
      await Promise.all([...this.#workers.values()].map((worker) => worker.refreshHosts()));
    }
    this.#naming = false;
  }
}

function describeNode(address: string, now: number): Node {
  const cpu = String(availableParallelism());
  const memory = `${Math.floor(totalmem() / 1024)}Ki`;
  const resources = { cpu, memory, pods: "250", "ephemeral-storage": memory };
  const labels = {
    "kubernetes.io/hostname": NODE_NAME,
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": architecture(),
  };
  const time = toWire(now);
  const well = (type: string, reason: string, message: string) => ({
    type,
    status: "False",
    reason,
    message,
    lastHeartbeatTime: time,
    lastTransitionTime: time,
  });
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name: NODE_NAME, labels },
    spec: {},
    status: {
      capacity: resources,
      allocatable: resources,
      addresses: [
        { type: "InternalIP", address },
        { type: "Hostname", address: NODE_NAME },
      ],
      conditions: [
        well("MemoryPressure", "NotWatched", "the local node does not watch memory"),
        well("DiskPressure", "NotWatched", "the local node does not watch the disk"),
        well("PIDPressure", "NotWatched", "the local node does not watch processes"),
        {
          ...well(
            "Ready",
            "LocalNodeReady",
            "runs Pods as processes of this machine; limits are not enforced, and Pods may ask for more than there is",
          ),
          status: "True",
        },
      ],
      nodeInfo: {
        architecture: architecture(),
        bootID: "",
        containerRuntimeVersion: "process://1",
        kernelVersion: release(),
        kubeProxyVersion: "",
        kubeletVersion: "v1.35.4-raykeeper",
        machineID: "",
        operatingSystem: "linux",
        osImage: "this machine",
        systemUUID: "",
      },
    },
  };
}

const architecture = () => (process.arch === "x64" ? "amd64" : process.arch);

function configSource(client: KubeClient, namespace: string): ConfigSource {
  const found = async <T extends KubeObject>(type: ResourceType, name: string): Promise<T | undefined> => {
    try {
      return await client.get<T>(type, namespace, name);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  };
  const decoded = (data: Readonly<Record<string, string>> | undefined, encoding: BufferEncoding) =>
    Object.entries(data ?? {}).map(([key, value]) => [key, Buffer.from(value, encoding)] as const);
  return {
    async configMap(name) {
      const map = await found<ConfigMap>(configMaps, name);
      return map && Object.fromEntries([...decoded(map.data, "utf8"), ...decoded(map.binaryData, "base64")]);
    },
    async secret(name) {
      const secret = await found<Secret>(secrets, name);
      return secret && Object.fromEntries(decoded(secret.data, "base64"));
    },
  };
}
