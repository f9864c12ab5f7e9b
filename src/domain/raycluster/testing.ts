/**
 * For tests only: a RayCluster and what belongs to it as values, and a small model of an API server and kubelet that
 * carries decisions out.
 */
import type { ContainerState, Event, Pod, PodStatus, Service } from "../../api/kubernetes.ts";
import { LABEL } from "../../api/labels.ts";
import type { KubeObject, Stored } from "../../api/object.ts";
import type { HeadGroupSpec, RayCluster, RayClusterSpec, WorkerGroupSpec } from "../../api/raycluster.ts";
import { type Decision, type EventSpec, type LiveQuestion, questionKey, type RefusedWrite } from "../decision.ts";
import { defaultSettings, type Settings } from "../settings.ts";
import { type Instant, seconds, toWire } from "../time.ts";
import { decideRayCluster } from "./decide.ts";
import type { ObservedRayCluster } from "./observe.ts";

export const NOON: Instant = Date.parse("2026-03-01T12:00:00Z");

export function headGroup(more: Partial<HeadGroupSpec> = {}): HeadGroupSpec {
  return { template: { spec: { containers: [{ name: "ray-head", image: "rayproject/ray:2.56.0" }] } }, ...more };
}

export function workerGroup(more: Partial<WorkerGroupSpec> = {}): WorkerGroupSpec {
  return {
    groupName: "small",
    replicas: 2,
    minReplicas: 0,
    maxReplicas: 2_147_483_647,
    template: { spec: { containers: [{ name: "ray-worker", image: "rayproject/ray:2.56.0" }] } },
    ...more,
  };
}

export function rayCluster(
  spec: Partial<RayClusterSpec> = {},
  metadata: Partial<RayCluster["metadata"]> = {},
): Stored<RayCluster> {
  return {
    apiVersion: "ray.io/v1",
    kind: "RayCluster",
    metadata: {
      name: "demo",
      namespace: "ns1",
      uid: "cluster-uid",
      resourceVersion: "1",
      generation: 1,
      creationTimestamp: toWire(NOON),
      ...metadata,
    },
    spec: { rayVersion: "2.56.0", headGroupSpec: headGroup(), workerGroupSpecs: [workerGroup()], ...spec },
  };
}

/** A cluster with everything that was made for it, and the time. `pass` and `settle` are the operator. */
export class World {
  cluster: Stored<RayCluster>;
  pods: Stored<Pod>[] = [];
  services: Stored<Service>[] = [];
  /** Those of the name that the cluster's would have. */
  secrets: Stored[] = [];
  now: Instant = NOON;
  settings: Settings = defaultSettings;
  refused: RefusedWrite[] = [];
  /** Pods that the API server has and the cache does not show yet. */
  hidden: Stored<Pod>[] = [];
  /** The API server has no such cluster any more, and the cache does not know yet. */
  deleted = false;
  /** The cluster as the API server has it, where the cache lags behind. */
  newer: Stored<RayCluster> | undefined;
  /** One line for each write, in order. */
  readonly writes: string[] = [];
  readonly events: EventSpec[] = [];
  /** What others say in events. */
  warnings: Event[] = [];
  readonly asked: LiveQuestion[] = [];
  #count = 0;

  constructor(cluster: Stored<RayCluster> = rayCluster()) {
    this.cluster = cluster;
  }

  observed(): ObservedRayCluster {
    const { cluster, pods, services, settings, refused } = this;
    return { cluster, pods, services, settings, refused, live: new Map() };
  }

  /** Decides, with live questions answered. */
  decide(): Decision {
    const observed = this.observed();
    const reply = (question: LiveQuestion): readonly KubeObject[] => {
      if (question.ask === "warnings") return this.warnings.filter(({ reason }) => reason === question.reason);
      if (question.kind === "Secret") return this.secrets;
      if (question.ask === "said") return [];
      return question.kind === "Pod"
        ? [...this.pods, ...this.hidden]
        : this.deleted
          ? []
          : [this.newer ?? observed.cluster];
    };
    const live = new Map(observed.live);
    for (let rounds = 0; rounds < 5; rounds++) {
      const decision = decideRayCluster({ ...observed, live }, this.now);
      if (!decision.ask) return decision;
      this.asked.push(...decision.ask);
      for (const question of decision.ask) live.set(questionKey(question), reply(question));
    }
    throw new Error("the decision goes on asking");
  }

  /** One pass: decides and carries the decision out. */
  pass(): Decision {
    const decision = this.decide();
    for (const effect of decision.effects) {
      if (effect.event) this.events.push(effect.event);
      if (effect.do === "create") this.#create(effect.object);
      if (effect.do === "delete") this.#delete(effect.ref.kind, effect.ref.uid);
      if (effect.do === "patch") {
        const { annotations } = (effect.patch as { metadata: { annotations: Record<string, string> } }).metadata;
        const metadata = { ...this.cluster.metadata, resourceVersion: this.#next() };
        this.cluster = {
          ...this.cluster,
          metadata: { ...metadata, annotations: { ...metadata.annotations, ...annotations } },
        };
        this.writes.push("patch RayCluster");
      }
    }
    if (decision.status) {
      if (decision.effects.some(({ do: what }) => what === "patch"))
        throw new Error("409: the status is of an older version");
      this.cluster = { ...this.cluster, status: structuredClone(decision.status) as RayCluster["status"] };
      this.writes.push(`status ${this.cluster.status?.state || "provisioning"}`);
    }
    this.events.push(...decision.events);
    return decision;
  }

  /** Passes until one has nothing to write; fails the test when there is no end. */
  settle(): Decision {
    for (let passes = 0; passes < 50; passes++) {
      const before = this.writes.length;
      const decision = this.pass();
      if (this.writes.length === before) return decision;
    }
    throw new Error(`The decisions never become quiet: ${this.writes.slice(-10).join(", ")}`);
  }

  /** Time goes by, in passes where a decision asked to be woken. */
  wait(duration: number): void {
    const end = this.now + duration;
    for (let rounds = 0; ; rounds++) {
      if (rounds > 1000) throw new Error("The decisions ask to be woken without end.");
      const wakeAt = this.settle().wakeAt;
      if (wakeAt === undefined || wakeAt > end) break;
      this.now = Math.max(this.now, wakeAt);
    }
    this.now = end;
    this.settle();
  }

  spec(change: Partial<RayClusterSpec>): void {
    const { generation = 0 } = this.cluster.metadata;
    const metadata = { ...this.cluster.metadata, generation: generation + 1 };
    this.cluster = { ...this.cluster, metadata, spec: { ...this.cluster.spec, ...change } };
  }

  /** kubelet brings up every Pod that is not on its way out, all in one step. */
  allReady(): void {
    for (const pod of this.pods) if (!pod.metadata.deletionTimestamp) this.set(pod.metadata.name, ready());
  }

  set(name: string, status: PodStatus): void {
    this.#change(name, (pod) => ({ ...pod, status }));
  }

  /** Terminating Pods are gone, as when their containers have ended. */
  reap(): void {
    this.pods = this.pods.filter((pod) => !pod.metadata.deletionTimestamp);
  }

  remove(name: string): void {
    this.pods = this.pods.filter((pod) => pod.metadata.name !== name);
  }

  /** Somebody asks for the Pod's deletion; it terminates until `reap`. */
  terminate(name: string, grace = seconds(30)): void {
    this.#change(name, (pod) => ({
      ...pod,
      metadata: { ...pod.metadata, deletionTimestamp: toWire(this.now + grace) },
    }));
  }

  pod(part: string): Stored<Pod> {
    const pod = this.pods.find(({ metadata }) => metadata.name.includes(part));
    if (!pod) throw new Error(`There is no Pod ${part} among ${this.names().join(", ")}`);
    return pod;
  }

  names(): string[] {
    return this.pods.map(({ metadata }) => metadata.name);
  }

  workers(group?: string): Stored<Pod>[] {
    return this.pods.filter(
      ({ metadata: { labels } }) =>
        labels?.[LABEL.nodeType] === "worker" && (group === undefined || labels[LABEL.group] === group),
    );
  }

  condition(type: string) {
    return this.cluster.status?.conditions?.find((condition) => condition.type === type);
  }

  #create(object: KubeObject): void {
    const number = ++this.#count;
    const { generateName, ...metadata } = object.metadata;
    const name = metadata.name ?? `${generateName}${String(number).padStart(5, "0")}`;
    const kind = object.kind;
    if (kind === "Pod" && this.pods.some((pod) => pod.metadata.name === name))
      throw new Error(`Pod ${name} exists already`);
    const stored = {
      ...object,
      metadata: {
        ...metadata,
        name,
        uid: `uid-${number}`,
        resourceVersion: this.#next(),
        creationTimestamp: toWire(this.now),
      },
    };
    if (kind === "Pod") this.pods.push({ ...(stored as Stored<Pod>), status: { phase: "Pending" } });
    else if (kind === "Secret") this.secrets.push(stored as Stored);
    else this.services.push(stored as Stored<Service>);
    this.writes.push(`create ${kind} ${name}`);
  }

  #delete(kind: string, uid: string): void {
    if (kind === "Service") this.services = this.services.filter((service) => service.metadata.uid !== uid);
    const pod = this.pods.find((candidate) => candidate.metadata.uid === uid);
    const ended = pod?.status?.phase === "Failed" || pod?.status?.phase === "Succeeded";
    if (pod && ended) this.remove(pod.metadata.name);
    else if (pod) this.terminate(pod.metadata.name);
    this.writes.push(`delete ${kind} ${pod?.metadata.name ?? ""}`.trim());
  }

  #change(name: string, change: (pod: Stored<Pod>) => Stored<Pod>): void {
    this.pods = this.pods.map((pod) => (pod.metadata.name === name ? change(pod) : pod));
  }

  #next(): string {
    return String(1000 + this.writes.length);
  }
}

export const ready = (): PodStatus => ({
  phase: "Running",
  podIP: "10.0.0.1",
  conditions: [{ type: "Ready", status: "True" }],
});

/** A Pod whose only container is in the given state. */
export function withContainer(
  phase: string,
  state: ContainerState,
  more: Partial<PodStatus> = {},
  name = "ray-worker",
): PodStatus {
  return {
    phase,
    conditions: [
      { type: "Ready", status: "False", reason: "ContainersNotReady", message: "containers with unready status" },
    ],
    containerStatuses: [{ name, state, ready: false, restartCount: 0, image: "", imageID: "" }],
    ...more,
  };
}

export const exited = (exitCode: number, reason = exitCode === 0 ? "Completed" : "Error"): ContainerState => ({
  terminated: { exitCode, reason },
});

export const waiting = (reason: string, message?: string): ContainerState => ({ waiting: { reason, message } });
