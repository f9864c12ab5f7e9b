/**
 * A small world to run a RayJob in to its end, in this process and on a virtual clock: simkube, every node's kubelet,
 * Ray in the head Pods, the submitter's program, and any number of operator processes.
 *
 * What each part does is asked of Scripts, what the operator's writes meet of a Fate: the choice points. The parts know
 * nothing of each other; they meet here.
 */
import { crds } from "../../src/api/crds.ts";
import type { Pod, Service } from "../../src/api/kubernetes.ts";
import { LABEL, NODE_TYPE, SUBMITTER_CONTAINER } from "../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { rules } from "../../src/api/rules.ts";
import { type Config, configFrom } from "../../src/config.ts";
import type { RayCommand, SubmitRequest } from "../../src/domain/rayjob/ray.ts";
import { Journal } from "../../src/journal.ts";
import type { PassTrace } from "../../src/machinery/controller.ts";
import { KubeClient } from "../../src/machinery/kube/client.ts";
import { isNotFound } from "../../src/machinery/kube/errors.ts";
import { Informer } from "../../src/machinery/kube/informer.ts";
import {
  events,
  jobs,
  pods,
  type ResourceType,
  rayClusters,
  rayJobs,
  services,
} from "../../src/machinery/kube/resources.ts";
import { type Logger, silent } from "../../src/machinery/logger.ts";
import { settle, VirtualClock } from "../../src/machinery/virtualClock.ts";
import type { RayTransport } from "../../src/ray/transport.ts";
import type { PrometheusMetrics } from "../../src/serve/metrics.ts";
import { measure } from "../../src/serve/rayMetrics.ts";
import { frozen } from "../../src/simkube/json.ts";
import { SimKube } from "../../src/simkube/simkube.ts";
import { type Operator, startOperator } from "../../src/wiring.ts";
import { FakeKubelet, type PodBehaviour, prompt } from "./fakeKubelet.ts";
import { type FakeHead, FakeRay, type JobScript, succeeds } from "./fakeRay.ts";
import {
  diligent,
  hasOwnCommand,
  runOwnCommand,
  runSubmitter,
  type SubmitterScript,
  showingToken,
  tokenOf,
} from "./fakeSubmitter.ts";
import { Invariants } from "./invariants.ts";
import { type Fate, type Lag, Process } from "./process.ts";

export interface Scripts {
  readonly pod?: (pod: Stored<Pod>) => PodBehaviour;
  readonly job?: (request: SubmitRequest, head: FakeHead) => JobScript;
  readonly submitter?: (pod: Stored<Pod>) => SubmitterScript;
  /** Milliseconds from a head's start until its dashboard serves. */
  readonly dashboard?: number;
}

/**
 * Our own definitions, save that Pod templates are taken as they come: their schema is nine tenths of the whole, and a
 * world is made several hundred times.
 */
export const CRDS = frozen(withOpenTemplates(crds()));
const WITHOUT_LEASE = configFrom({ flags: { "enable-leader-election": false } });

export interface Start {
  readonly fate?: Fate;
  readonly lag?: Lag;
  readonly config?: Config;
  readonly metrics?: PrometheusMetrics;
  readonly log?: Logger;
  /** Asks first whether the CRDs keep the journal, as the real program does. */
  readonly asks?: boolean;
}

/** An operator's process and what it runs. */
export interface Running {
  readonly process: Process;
  readonly operator: Operator;
  readonly journal: Journal | undefined;
  readonly passes: readonly PassTrace<RayCommand>[];
}

export class World {
  readonly clock = new VirtualClock();
  readonly kube: SimKube;
  readonly ray: FakeRay;
  readonly kubelet: FakeKubelet;
  /** The user's, and the tests', access. */
  readonly client: KubeClient;
  /** Every job that Ray was given, in order: `<head Pod's UID> <submission id>`. */
  readonly submissions: string[] = [];
  readonly invariants: Invariants;
  readonly #scripts: Scripts;
  readonly #services: Informer<Service>;
  readonly #submitters = new Map<string, AbortController>();
  readonly #end = new AbortController();
  readonly #started: Running[] = [];

  constructor(scripts: Scripts = {}) {
    this.#scripts = scripts;
    this.kube = new SimKube({ clock: this.clock, crds: CRDS, rules: Object.values(rules), seed: 1 });
    this.invariants = new Invariants(this.kube);
    const stop = this.kube.runControllers();
    this.#end.signal.addEventListener("abort", stop);
    this.client = new KubeClient(this.kube.transport, { clock: this.clock });
    this.#services = new Informer<Service>({ client: this.client, clock: this.clock, type: services });
    this.ray = new FakeRay({
      clock: this.clock,
      resolve: (dashboard) => this.#headBehind(dashboard),
      script: (request, head) => {
        const [uid] = [...this.ray.heads].find(([, candidate]) => candidate === head)!;
        this.submissions.push(`${uid} ${request.submission_id}`);
        this.invariants.submitted(uid, request.submission_id);
        return (scripts.job ?? (() => succeeds()))(request, head);
      },
    });
    this.kubelet = new FakeKubelet({
      transport: this.kube.transport,
      clock: this.clock,
      behave: scripts.pod ?? (() => prompt),
      onRunning: (pod) => this.#runs(pod),
      onEnded: (pod) => this.#ended(pod),
      onContainer: (pod, container, is) => this.#container(pod, container, is),
    });
    this.kubelet.start(this.#end.signal);
    this.#services.start(this.#end.signal);
  }

  /** Starts an operator's process. Without leader election unless `config` says otherwise: a successor starts at once. */
  start({ config = WITHOUT_LEASE, asks = false, metrics, log = silent, ...meets }: Start = {}): Running {
    const { transport } = this.kube;
    const process = new Process({ clock: this.clock, transport, ray: this.ray }, meets);
    const passes: PassTrace<RayCommand>[] = [];
    const client = new KubeClient(process.transport, { clock: process.clock });
    const journal = asks ? new Journal({ client, clock: process.clock, log: silent }) : undefined;
    const operator = startOperator({
      transport: process.transport,
      rayTransport: process.rayTransport,
      clock: process.clock,
      config,
      log,
      journal,
      metrics,
      identity: `operator-${this.#started.length}`,
      onPass: (trace) => passes.push(trace),
    });
    if (metrics) measure(metrics, operator, process.clock);
    const running = { process, operator, journal, passes };
    this.#started.push(running);
    return running;
  }

  /** Lets the clock run until `holds`, looking after each event. Throws, telling how things stand, when it never does. */
  async until(what: string, holds: () => Promise<boolean> | boolean, within = 3_600_000): Promise<void> {
    const deadline = this.clock.now() + within;
    await settle();
    while (!(await holds())) {
      const next = this.clock.next();
      if (next === undefined || next > deadline) throw new Error(`never ${what}: ${await this.describe()}`);
      await this.clock.step();
    }
  }

  /** The RayJob, or undefined when there is none. */
  async job(name = "demo"): Promise<Stored<RayJob> | undefined> {
    return this.get<RayJob>(rayJobs, name);
  }

  async untilPhase(phase: string, name = "demo", within?: number): Promise<Stored<RayJob>> {
    await this.until(phase, async () => (await this.job(name))?.status?.jobDeploymentStatus === phase, within);
    return (await this.job(name))!;
  }

  async get<T extends KubeObject>(type: ResourceType, name: string): Promise<Stored<T> | undefined> {
    try {
      return await this.client.get<T>(type, "default", name);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  list<T extends KubeObject>(type: ResourceType): Promise<Stored<T>[]> {
    return this.client.listAll<T>(type).then(({ items }) => items);
  }

  async head(): Promise<Stored<Pod>> {
    const all = await this.list<Pod>(pods);
    return all.find((pod) => pod.metadata.labels?.[LABEL.nodeType] === NODE_TYPE.head)!;
  }

  async submitterPods(): Promise<Stored<Pod>[]> {
    const all = await this.list<Pod>(pods);
    return all.filter((pod) => pod.metadata.labels?.[LABEL.nodeType] === undefined);
  }

  async events(): Promise<string[]> {
    const all = await this.list<KubeObject & { type: string; reason: string; note: string }>(events);
    return all.map(({ type, reason, note }) => `${type} ${reason}: ${note}`);
  }

  /** Everything there is, in a few lines: for the message of a test that fails. */
  async describe(): Promise<string> {
    const lines = [`at ${new Date(this.clock.now()).toISOString()}`];
    for (const job of await this.list<RayJob>(rayJobs))
      lines.push(`RayJob ${job.metadata.name} ${JSON.stringify(job.status)}`);
    for (const cluster of await this.list<RayCluster>(rayClusters)) {
      lines.push(
        `RayCluster ${cluster.metadata.name} ${cluster.status?.state} ${JSON.stringify(cluster.status?.conditions)}`,
      );
    }
    for (const type of [jobs, pods, services]) {
      for (const object of await this.list<KubeObject & { status?: { phase?: string } }>(type)) {
        const { name, deletionTimestamp } = object.metadata;
        lines.push(`${type.kind} ${name} ${object.status?.phase ?? ""} ${deletionTimestamp ? "terminating" : ""}`);
      }
    }
    for (const { process, passes } of this.#started) {
      lines.push(process.dead ? "operator, dead:" : "operator:");
      for (const { key, controller, result, decision, error, outcome } of passes.slice(-8)) {
        const failed = outcome?.failures.map(({ tried, error: why }) => `${tried}: ${why}`).join("; ") ?? "";
        lines.push(`  ${controller} ${key} ${result} ${decision?.summary ?? ""} ${error ?? ""} ${failed}`);
      }
    }
    return lines.join("\n");
  }

  /** Ends every part. Throws when something was not as it must be at every moment. */
  async close(): Promise<void> {
    for (const { process } of this.#started) process.kill();
    this.#end.abort();
    for (const submitter of this.#submitters.values()) submitter.abort();
    await settle();
    const { violations } = this.invariants;
    if (violations.length > 0) throw new Error(`this must never be:\n  ${violations.join("\n  ")}`);
  }

  #runs(pod: Stored<Pod>): void {
    const { uid, labels = {} } = pod.metadata;
    switch (labels[LABEL.nodeType]) {
      case NODE_TYPE.head:
        this.clock.after(this.#scripts.dashboard ?? 500, () => {
          if (!this.kubelet.running.some((running) => running.metadata.uid === uid)) return;
          const head = this.ray.start(uid);
          head.token = tokenOf(pod.spec?.containers[0]);
          for (const worker of this.#workersOf(labels[LABEL.cluster])) head.nodes.set(nodeId(worker), "ALIVE");
        });
        if (hasSidecar(pod)) this.#submit(pod);
        break;
      case NODE_TYPE.worker:
        this.#rayOf(labels[LABEL.cluster])?.nodes.set(nodeId(pod), "ALIVE");
        break;
      default:
        // Somebody else's Pod just runs.
        if (labels[LABEL.rayJobUID] !== undefined) this.#submit(pod);
    }
  }

  #ended(pod: Stored<Pod>): void {
    const { uid, labels = {} } = pod.metadata;
    this.#submitters.get(uid)?.abort();
    this.#submitters.delete(uid);
    if (labels[LABEL.nodeType] === NODE_TYPE.head) this.ray.stop(uid);
    if (labels[LABEL.nodeType] === NODE_TYPE.worker) this.#rayOf(labels[LABEL.cluster])?.nodes.set(nodeId(pod), "DEAD");
  }

  /** A container of a Pod that lives on: the sidecar, or Ray beside it. */
  #container(pod: Stored<Pod>, container: string, is: "ended" | "started"): void {
    const { uid } = pod.metadata;
    if (container !== SUBMITTER_CONTAINER) {
      if (is === "ended") this.ray.stop(uid);
      return;
    }
    this.#submitters.get(uid)?.abort();
    this.#submitters.delete(uid);
    if (is === "started") this.#submit(pod);
  }

  #submit(pod: Stored<Pod>): void {
    const { uid } = pod.metadata;
    // KubeRay's sidecar has done its work by the time anybody here looks at it.
    if (hasSidecar(pod) && hasOwnCommand(pod)) return;
    const gone = new AbortController();
    this.#submitters.set(uid, gone);
    const script = (this.#scripts.submitter ?? (() => diligent))(pod);
    const sidecar = hasSidecar(pod);
    // Within a Pod the dashboard's address is the same in all: it is this Pod's that is meant.
    const ray: RayTransport = {
      request: (request) => this.ray.request(sidecar ? { ...request, dashboard: `${POD_ITSELF}${uid}` } : request),
    };
    const run = hasOwnCommand(pod) ? runOwnCommand : runSubmitter;
    run(pod, script, { clock: this.clock, ray: showingToken(pod, ray), signal: gone.signal }).then(
      (end) => (sidecar ? this.kubelet.endContainer(uid, SUBMITTER_CONTAINER, end) : this.kubelet.end(uid, end)),
      (error) => {
        if (!gone.signal.aborted) throw error;
      },
    );
  }

  #workersOf(cluster: string | undefined): readonly Stored<Pod>[] {
    return this.kubelet.running.filter(
      ({ metadata: { labels = {} } }) =>
        labels[LABEL.cluster] === cluster && labels[LABEL.nodeType] === NODE_TYPE.worker,
    );
  }

  #rayOf(cluster: string | undefined): FakeHead | undefined {
    const head = this.kubelet.running.find(
      ({ metadata: { labels = {} } }) => labels[LABEL.cluster] === cluster && labels[LABEL.nodeType] === NODE_TYPE.head,
    );
    return head && this.ray.heads.get(head.metadata.uid);
  }

  /** Name resolution and the Service's selector: the UID of the running Pod that a dashboard's address leads to. */
  #headBehind(dashboard: string): string | undefined {
    if (dashboard.startsWith(POD_ITSELF)) return dashboard.slice(POD_ITSELF.length);
    const [name = "", namespace = ""] = dashboard.split(".");
    const selector = this.#services.store.get(namespace, name)?.spec?.selector;
    if (!selector) return undefined;
    const behind = this.kubelet.running.find(({ metadata }) =>
      Object.entries(selector).every(([key, value]) => metadata.labels?.[key] === value),
    );
    return behind?.metadata.uid;
  }
}

const POD_ITSELF = "pod:";

const hasSidecar = ({ metadata, spec }: Stored<Pod>): boolean =>
  metadata.labels?.[LABEL.nodeType] === NODE_TYPE.head &&
  (spec?.containers.some(({ name }) => name === SUBMITTER_CONTAINER) ?? false);

export function withOpenTemplates<T>(schema: T): T {
  if (Array.isArray(schema)) return schema.map(withOpenTemplates) as T;
  if (typeof schema !== "object" || schema === null) return schema;
  const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  const entries = Object.entries(schema).map(([key, value]) => [
    key,
    key === "template" ? open : withOpenTemplates(value),
  ]);
  return Object.fromEntries(entries) as T;
}

/** The hex id that Ray would give the node. */
export const nodeId = (pod: Stored): string => Buffer.from(pod.metadata.uid).toString("hex");
