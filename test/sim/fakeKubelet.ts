/**
 * Every node's kubelet and the scheduler, as far as the operator sees them: Pods go from Pending to Running to Ready,
 * end, and go away when they are deleted.
 *
 * Works through the API like the real ones. What a Pod does is asked of `behave`, once, when it is first seen; whoever
 * runs programs in Pods (test/sim/world.ts) is told when containers start and end.
 * May not: use real time.
 */
import type { ContainerState, Pod, PodStatus, Secret } from "../../src/api/kubernetes.ts";
import { LABEL, NODE_TYPE } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import { toWire } from "../../src/domain/time.ts";
import type { Clock } from "../../src/machinery/clock.ts";
import { KubeClient } from "../../src/machinery/kube/client.ts";
import { isConflict, isNotFound } from "../../src/machinery/kube/errors.ts";
import { Informer } from "../../src/machinery/kube/informer.ts";
import { pods, secrets } from "../../src/machinery/kube/resources.ts";
import type { Transport } from "../../src/machinery/kube/transport.ts";

/** What becomes of a Pod. Milliseconds; `Infinity` never. */
export interface PodBehaviour {
  /** Until a node takes it. */
  readonly schedule: number;
  /** From there until its containers run. */
  readonly start: number;
  /** From there until it is Ready. */
  readonly ready: number;
  /** From the request to delete it until it is gone. */
  readonly terminate: number;
  /** From the end of its containers, which is told, until the Pod is called ended; at once where absent. */
  readonly lingers?: number;
  /** Its image cannot be pulled: it stays Pending, saying so. */
  readonly imageError?: string;
  /** Instead of running it fails (`restartPolicy: Never`): its first container ends so, or an init container that it has. */
  readonly dies?: ContainerEnd & { readonly initContainer?: string };
}

export const prompt: PodBehaviour = { schedule: 100, start: 900, ready: 2000, terminate: 1000 };
export const badImage: PodBehaviour = { ...prompt, start: Number.POSITIVE_INFINITY, imageError: "ErrImagePull" };
export const stuckTerminating: PodBehaviour = { ...prompt, terminate: Number.POSITIVE_INFINITY };

export interface ContainerEnd {
  readonly exitCode: number;
  /** kubelet's word: `Error`, `OOMKilled`, `Completed`. */
  readonly reason?: string;
  /** The Pod's own reason: `Evicted`, `NodeShutdown`. */
  readonly podReason?: string;
}

export interface KubeletOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly behave?: (pod: Stored<Pod>) => PodBehaviour;
  readonly onRunning?: (pod: Stored<Pod>) => void;
  /** The containers of this Pod do not run any more, whatever the reason. */
  readonly onEnded?: (pod: Stored<Pod>) => void;
  /** One container of a Pod has ended, or runs again, while the Pod lives on. */
  readonly onContainer?: (pod: Stored<Pod>, container: string, is: "ended" | "started") => void;
}

/** The node's controller waits so long before it evicts. */
const EVICTION = 300_000;

interface Run {
  pod: Stored<Pod>;
  /** As its containers see it, where that is another. */
  inside?: Stored<Pod>;
  readonly behaviour: PodBehaviour;
  phase: "pending" | "running" | "ended" | "gone";
  terminating: boolean;
  startedAt?: number;
  /** Its last write so far. */
  written: Promise<unknown>;
  readyAt?: number;
  /** Its node does not report, and what it would have told. */
  isSilent?: boolean;
  untold?: Partial<PodStatus>;
  /** Containers that went another way than the Pod, by name. */
  readonly own: Map<string, Own>;
}

interface Own {
  readonly state: ContainerState;
  readonly lastState?: ContainerState;
  readonly restartCount: number;
}

/** Until kubelet looks again for a Secret that was not there. */
const SECRET_AGAIN = 1000;

/** kubelet's back-off grows from here; one figure is enough for a model. */
const RESTART_DELAY = 1000;

export class FakeKubelet {
  readonly #options: KubeletOptions;
  readonly #client: KubeClient;
  readonly #runs = new Map<string, Run>();
  #addresses = 0;
  #nodes = 0;

  constructor(options: KubeletOptions) {
    this.#options = options;
    this.#client = new KubeClient(options.transport, { clock: options.clock });
  }

  start(signal: AbortSignal): void {
    const informer = new Informer<Pod>({ client: this.#client, clock: this.#options.clock, type: pods });
    informer.onChange(({ old, new: now }) => {
      if (now) this.#see(now);
      else this.#vanished(old!.metadata.uid);
    });
    informer.start(signal);
  }

  /** Pods whose containers run. */
  get running(): readonly Stored<Pod>[] {
    return [...this.#runs.values()].filter(({ phase }) => phase === "running").map(({ pod }) => pod);
  }

  /** The containers of a Pod end, and so does the Pod (`restartPolicy: Never`). Nothing happens to one that does not run. */
  async end(uid: string, end: ContainerEnd): Promise<void> {
    const run = this.#runs.get(uid);
    if (run?.phase !== "running") return;
    this.#stopContainers(run);
    const phase = end.exitCode === 0 ? "Succeeded" : "Failed";
    const conditions = this.#conditions(run, false, phase === "Succeeded" ? "PodCompleted" : "PodFailed");
    const containerStatuses = this.#containers(run, this.#terminated(run, end), false);
    const ended = () =>
      this.#write(run, {
        phase,
        ...(end.podReason && { reason: end.podReason, message: `The Pod was ${end.podReason.toLowerCase()}.` }),
        conditions,
        containerStatuses,
      });
    const { lingers } = run.behaviour;
    if (!lingers) return ended();
    await this.#write(run, { conditions, containerStatuses });
    this.#after(lingers, run, "ended", ended);
  }

  /** One container ends. The others go on, and so does the Pod, as long as one of them runs or is started again. */
  async endContainer(uid: string, name: string, end: ContainerEnd): Promise<void> {
    const run = this.#runs.get(uid);
    const container = run?.pod.spec?.containers.find((one) => one.name === name);
    const { state: was, restartCount = 0 } = run?.own.get(name) ?? {};
    if (run?.phase !== "running" || !container || was?.terminated) return;
    const ended = this.#terminated(run, end);
    run.own.set(name, { state: ended, restartCount });
    this.#options.onContainer?.(run.pod, name, "ended");
    const policy = container.restartPolicy ?? run.pod.spec?.restartPolicy ?? "Always";
    const again = policy === "Always" || (policy === "OnFailure" && end.exitCode !== 0);
    if (!again && run.pod.spec!.containers.every((one) => run.own.get(one.name)?.state.terminated)) {
      return this.end(uid, end);
    }
    if (again) {
      this.#after(RESTART_DELAY, run, "running", () => this.#startAgain(run, name, { ended, restartCount }));
    }
    await this.#write(run, {
      conditions: this.#conditions(run, false, "ContainersNotReady"),
      containerStatuses: this.#containers(run, this.#runningState(run), this.#isReady(run)),
    });
  }

  async #startAgain(
    run: Run,
    name: string,
    { ended, restartCount }: { ended: ContainerState; restartCount: number },
  ): Promise<void> {
    const state = { running: { startedAt: toWire(this.#options.clock.now()) } };
    run.own.set(name, { state, lastState: ended, restartCount: restartCount + 1 });
    this.#options.onContainer?.(run.inside ?? run.pod, name, "started");
    await this.#write(run, {
      conditions: this.#conditions(run, this.#isReady(run)),
      containerStatuses: this.#containers(run, this.#runningState(run), this.#isReady(run)),
    });
  }

  /** Whether what went no way of its own is ready: the Pod's readiness, but for containers that have ended. */
  #isReady(run: Run): boolean {
    return run.readyAt !== undefined;
  }

  /** The containers of a Pod end and kubelet starts them again in place, if their policy has it so. */
  async restart(uid: string, end: ContainerEnd): Promise<void> {
    const run = this.#runs.get(uid);
    if (run?.phase !== "running") return;
    if (run.pod.spec?.restartPolicy === "Never") {
      // The first is the one that the Pod is there for.
      return this.endContainer(uid, run.pod.spec.containers[0]!.name, end);
    }
    run.readyAt = undefined;
    this.#options.onEnded?.(run.pod);
    const before = this.#terminated(run, end);
    run.startedAt = this.#options.clock.now();
    this.#options.onRunning?.(run.inside ?? run.pod);
    await this.#write(run, {
      conditions: this.#conditions(run, false, "ContainersNotReady"),
      containerStatuses: this.#containers(run, this.#runningState(run), false, before),
    });
    this.#after(run.behaviour.ready, run, "running", () => this.#beReady(run));
  }

  /**
   * The Pod's node is lost. No kubelet tells of it any more; the node's controller takes Ready away (`unknown`: in the
   * form of long ago), and after five minutes it evicts: the Pod is to be deleted, and stays in Terminating, since nobody
   * is there to confirm its end. That ends with `comesBack`, or when an administrator removes the Pod by force.
   */
  async lose(uid: string, form: "taken away" | "unknown" = "taken away"): Promise<void> {
    const run = this.#runs.get(uid);
    if (run?.phase !== "running") return;
    this.#stopContainers(run);
    run.terminating = true;
    run.isSilent = false;
    await this.#write(run, { conditions: this.#unheardOf(run, form) });
    this.#after(EVICTION, run, undefined, async () => {
      const { namespace, name } = run.pod.metadata;
      await this.#client.delete(pods, namespace, name, { uid }).catch(ignoreGone);
    });
  }

  /**
   * The Pod's node does not report for a while, and all that runs on it runs on: the node's controller takes Ready away.
   * That ends with `reportsAgain`, which tells what has happened meanwhile.
   */
  async hush(uid: string): Promise<void> {
    const run = this.#runs.get(uid);
    if (run?.phase !== "running" || run.terminating || run.isSilent) return;
    await this.#write(run, { conditions: this.#unheardOf(run, "taken away") });
    run.isSilent = true;
  }

  async reportsAgain(uid: string): Promise<void> {
    const run = this.#runs.get(uid);
    if (!run?.isSilent) return;
    run.isSilent = false;
    if (run.pod.metadata.deletionTimestamp) return this.#terminate(run);
    const all = this.#isReady(run) && [...run.own.values()].every(({ state }) => state.running);
    await this.#write(run, run.untold ?? { conditions: this.#conditions(run, all) });
    run.untold = undefined;
  }

  #unheardOf(run: Run, form: "taken away" | "unknown"): PodStatus["conditions"] {
    const { conditions = [] } = run.pod.status ?? {};
    const lastTransitionTime = toWire(this.#options.clock.now());
    return conditions.map((condition) => {
      if (condition.type !== "Ready") return condition;
      const { reason: _, message: __, ...rest } = condition;
      return form === "unknown"
        ? ({ ...rest, status: "Unknown", reason: "NodeStatusUnknown", lastTransitionTime } as const)
        : ({ ...rest, status: "False", lastTransitionTime } as const);
    });
  }

  /** The lost node of this Pod reports again, after a restart: whatever was to be deleted there is gone. */
  async comesBack(uid: string): Promise<void> {
    const run = this.#runs.get(uid);
    if (run) await this.#terminate(run);
  }

  #see(pod: Stored<Pod>): void {
    const known = this.#runs.get(pod.metadata.uid);
    if (!known) {
      const behaviour = (this.#options.behave ?? (() => prompt))(pod);
      const run: Run = {
        pod,
        behaviour,
        phase: "pending",
        terminating: false,
        written: Promise.resolve(),
        own: new Map(),
      };
      this.#runs.set(pod.metadata.uid, run);
      if (!pod.metadata.deletionTimestamp) this.#after(behaviour.schedule, run, "pending", () => this.#bePlaced(run));
    } else known.pod = pod;
    const run = this.#runs.get(pod.metadata.uid)!;
    if (pod.metadata.deletionTimestamp && !run.terminating && !run.isSilent) {
      run.terminating = true;
      const left = Date.parse(pod.metadata.deletionTimestamp) - this.#options.clock.now();
      const takes = run.phase === "running" ? run.behaviour.terminate : Math.min(run.behaviour.terminate, 100);
      const lasts = Number.isFinite(takes) ? Math.min(takes, Math.max(left, 0)) : takes;
      this.#after(lasts, run, undefined, () => this.#terminate(run));
    }
  }

  async #bePlaced(run: Run): Promise<void> {
    const { namespace, name } = run.pod.metadata;
    const target = { apiVersion: "v1", kind: "Node", name: `node-${++this.#nodes}` };
    const body = { apiVersion: "v1", kind: "Binding", metadata: { name, namespace }, target };
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/binding`;
    const { status } = await this.#options.transport.request({ method: "POST", path, body });
    // Deleted meanwhile.
    if (status >= 300) return;
    this.#tellScheduled(run);
    const { imageError } = run.behaviour;
    const waiting: ContainerState = imageError
      ? { waiting: { reason: imageError, message: `Back-off pulling image` } }
      : { waiting: { reason: "ContainerCreating" } };
    await this.#write(run, {
      conditions: this.#conditions(run, false, "ContainersNotReady"),
      containerStatuses: this.#containers(run, waiting, false),
    });
    this.#after(run.behaviour.start, run, "pending", () => this.#beRunning(run));
  }

  /** The scheduler's event. Only a head's is read by anybody. */
  #tellScheduled({ pod: { metadata } }: Run): void {
    const { name, namespace = "default", uid, labels = {} } = metadata;
    if (labels[LABEL.nodeType] !== NODE_TYPE.head) return;
    const body = {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name: `${name}.${uid}`, namespace },
      eventTime: new Date(this.#options.clock.now()).toISOString().replace("Z", "000Z"),
      type: "Normal",
      reason: "Scheduled",
      action: "Binding",
      note: `Successfully assigned ${namespace}/${name}`,
      reportingController: "default-scheduler",
      reportingInstance: "default-scheduler-1",
      regarding: { apiVersion: "v1", kind: "Pod", namespace, name, uid },
    };
    const path = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
    void this.#options.transport.request({ method: "POST", path, body });
  }

  async #beRunning(run: Run): Promise<void> {
    if (namesSecrets(run.pod)) {
      const told = await this.#withSecrets(run.pod);
      if (run.phase !== "pending" || run.terminating) return;
      if (typeof told === "string") return this.#lackSecret(run, told);
      run.inside = told;
    }
    run.startedAt = this.#options.clock.now();
    if (run.behaviour.dies) return this.#die(run, run.behaviour.dies);
    run.phase = "running";
    this.#options.onRunning?.(run.inside ?? run.pod);
    await this.#write(run, {
      phase: "Running",
      podIP: `10.0.0.${++this.#addresses}`,
      startTime: toWire(this.#options.clock.now()),
      conditions: this.#conditions(run, false, "ContainersNotReady"),
      containerStatuses: this.#containers(run, this.#runningState(run), false),
    });
    this.#after(run.behaviour.ready, run, "running", () => this.#beReady(run));
  }

  /** kubelet looks again and again. */
  async #lackSecret(run: Run, message: string): Promise<void> {
    const waiting: ContainerState = { waiting: { reason: "CreateContainerConfigError", message } };
    const known = run.pod.status?.containerStatuses?.[0]?.state?.waiting?.message;
    if (known !== message) {
      await this.#write(run, {
        conditions: this.#conditions(run, false, "ContainersNotReady"),
        containerStatuses: this.#containers(run, waiting, false),
      });
    }
    this.#after(SECRET_AGAIN, run, "pending", () => this.#beRunning(run));
  }

  /** The Pod as its containers see it, variables out of Secrets put in; or which one is missing, in kubelet's words. */
  async #withSecrets(pod: Stored<Pod>): Promise<Stored<Pod> | string> {
    const { namespace } = pod.metadata;
    const seen = structuredClone(pod);
    for (const variable of seen.spec!.containers.flatMap(({ env = [] }) => env)) {
      const { name = "", key } = variable.valueFrom?.secretKeyRef ?? {};
      if (key === undefined) continue;
      const secret = await this.#client.get<Secret>(secrets, namespace, name).catch(ignoreGone);
      if (!secret) return `secret "${name}" not found`;
      const value = secret.data?.[key];
      if (value === undefined) return `couldn't find key ${key} in Secret ${namespace}/${name}`;
      variable.value = Buffer.from(value, "base64").toString();
    }
    return seen;
  }

  async #die(run: Run, end: NonNullable<PodBehaviour["dies"]>): Promise<void> {
    run.phase = "ended";
    const state = this.#terminated(run, end);
    const { initContainer: name } = end;
    const init = name && { name, image: "", imageID: "", ready: false, restartCount: 0, state };
    const waiting: ContainerState = { waiting: { reason: "PodInitializing" } };
    await this.#write(run, {
      phase: "Failed",
      conditions: this.#conditions(run, false, "PodFailed"),
      ...(init && { initContainerStatuses: [init] }),
      containerStatuses: this.#containers(run, init ? waiting : state, false),
    });
  }

  async #beReady(run: Run): Promise<void> {
    run.readyAt = this.#options.clock.now();
    const all = [...run.own.values()].every(({ state }) => state.running);
    await this.#write(run, {
      conditions: this.#conditions(run, all, all ? undefined : "ContainersNotReady"),
      containerStatuses: this.#containers(run, this.#runningState(run), true),
    });
  }

  async #terminate(run: Run): Promise<void> {
    this.#stopContainers(run);
    const { namespace, name, uid } = run.pod.metadata;
    await this.#client.delete(pods, namespace, name, { uid, gracePeriodSeconds: 0 }).catch(ignoreGone);
  }

  /** Force-deleted, or the end of `#terminate`. */
  #vanished(uid: string): void {
    const run = this.#runs.get(uid);
    if (!run) return;
    this.#stopContainers(run);
    run.phase = "gone";
    this.#runs.delete(uid);
  }

  #stopContainers(run: Run): void {
    if (run.phase !== "running") return;
    run.phase = "ended";
    this.#options.onEnded?.(run.pod);
  }

  #after(delay: number, run: Run, phase: Run["phase"] | undefined, act: () => Promise<void> | void): void {
    if (!Number.isFinite(delay)) return;
    this.#options.clock.after(delay, () => {
      if (run.phase === "gone" || (phase !== undefined && (run.phase !== phase || run.terminating))) return;
      void act();
    });
  }

  #conditions(run: Run, ready: boolean, reason?: string): PodStatus["conditions"] {
    const status = ready ? "True" : "False";
    const old = run.pod.status?.conditions?.find(({ type }) => type === "Ready");
    const lastTransitionTime = old?.status === status ? old.lastTransitionTime : toWire(this.#options.clock.now());
    const why = reason && { reason };
    return [
      { type: "PodScheduled", status: "True", lastTransitionTime: run.pod.metadata.creationTimestamp },
      { type: "ContainersReady", status, lastTransitionTime, ...why },
      { type: "Ready", status, lastTransitionTime, ...why },
    ];
  }

  #runningState(run: Run): ContainerState {
    return { running: { startedAt: toWire(run.startedAt!) } };
  }

  #terminated(run: Run, { exitCode, reason }: ContainerEnd): ContainerState {
    const word = reason ?? (exitCode === 0 ? "Completed" : "Error");
    const [startedAt, finishedAt] = [run.startedAt!, this.#options.clock.now()].map(toWire);
    return { terminated: { exitCode, reason: word, startedAt, finishedAt } };
  }

  #containers(
    run: Run,
    state: ContainerState,
    ready: boolean,
    lastState?: ContainerState,
  ): PodStatus["containerStatuses"] {
    return run.pod.spec!.containers.map(({ name, image }) => {
      const own = run.own.get(name);
      if (own && (run.phase === "running" || own.state.terminated)) {
        return { name, image: image ?? "", imageID: "", ready: own.state.running !== undefined, ...own };
      }
      const before = run.pod.status?.containerStatuses?.find((status) => status.name === name)?.restartCount ?? 0;
      const restartCount = before + (lastState ? 1 : 0);
      return { name, image: image ?? "", imageID: "", ready, restartCount, state, ...(lastState && { lastState }) };
    });
  }

  /** One at a time and in order, as a kubelet does: a Pod that has ended must not be called Ready by an older word. */
  #write(run: Run, status: Partial<PodStatus>): Promise<void> {
    if (run.isSilent) {
      run.untold = { ...run.untold, ...status };
      return Promise.resolve();
    }
    const write = run.written.then(() => this.#send(run, status));
    run.written = write.catch(() => {});
    return write;
  }

  async #send(run: Run, status: Partial<PodStatus>): Promise<void> {
    const { namespace, name, uid } = run.pod.metadata;
    const patch = { metadata: { uid }, status };
    try {
      run.pod = await this.#client.patch<Pod>(pods, namespace, name, patch, { subresource: "status" });
    } catch (error) {
      ignoreGone(error);
    }
  }
}

const namesSecrets = ({ spec }: Pod): boolean =>
  spec?.containers.some(({ env }) => env?.some(({ valueFrom }) => valueFrom?.secretKeyRef)) ?? false;

function ignoreGone(error: unknown): undefined {
  if (isNotFound(error) || isConflict(error)) return undefined;
  throw error;
}
