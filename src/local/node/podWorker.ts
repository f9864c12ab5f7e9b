/**
 * One Pod from its binding to its end: volumes, network, init containers, containers, probes, restarts, deletion.
 *
 * A worker tells the API server what has become of the Pod, and finishes the Pod's deletion once everything of it has
 * ended. What is decided from plain values is in restart.ts, status.ts and probe.ts; this is the order of things.
 * May not: end because the API server does not answer, or leave a process behind.
 */
import { randomBytes } from "node:crypto";
import { chmod, mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Container, Pod, PodStatus, Probe } from "../../api/kubernetes.ts";
import type { Stored } from "../../api/object.ts";
import { type Duration, type Instant, seconds, toWire } from "../../domain/time.ts";
import { type Cancel, type Clock, sleep } from "../../machinery/clock.ts";
import type { KubeClient } from "../../machinery/kube/client.ts";
import { isConflict, isNotFound } from "../../machinery/kube/errors.ts";
import { pods } from "../../machinery/kube/resources.ts";
import type { Logger } from "../../machinery/logger.ts";
import type { RayEnvironment } from "../rayEnvironment.ts";
import { ConfigError, type ConfigSource } from "./configError.ts";
import { commandLine, containerEnvironment, type Environment } from "./environment.ts";
import type { PodFacts } from "./fields.ts";
import { HOME, imageEnvironment, imageMounts, overwrite, writeEtc, writeVolume } from "./files.ts";
import { meaningOf } from "./image.ts";
import { ContainerLog } from "./log.ts";
import { ask, count, initialTally, type ProbeKind, timing } from "./probe.ts";
import { backOff, countOfLate, kindOf, restarts } from "./restart.ts";
import { type Mount, type RunningContainer, type Runtime, StartError } from "./runtime.ts";
import { type ContainerRecord, newRecord, podStatus } from "./status.ts";
import { type PlacedVolume, volumeContent, volumeMounts } from "./volumes.ts";

/** What a Pod's worker takes from its node. */
export interface NodeContext {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly nodeName: string;
  readonly hostIP: string;
  /** Bytes. */
  readonly memory: number;
  readonly allocatable: Readonly<Record<string, string>>;
  /** Where everything of Pods is kept while they live. */
  readonly folder: string;
  /** Folders that Pods must not see. */
  readonly hide: readonly string[];
  readonly network: { readonly prefix: number; readonly gateway: string; readonly bridge: string };
  readonly addresses: { take(): string; giveBack(address: string): void };
  /** The Ray of this version, downloaded when it is not there yet. Rejects with words for the user. */
  pull(version: string): Promise<RayEnvironment>;
  configSource(namespace: string): ConfigSource;
  /** The text of a Pod's hosts file. */
  hosts(pod: Pod, address: string): string;
  event(pod: Stored<Pod>, type: "Normal" | "Warning", reason: string, note: string): void;
}

/** Thrown where the Pod's end interrupts what it was doing. */
class Ending extends Error {}

const FIRST_RETRY = seconds(2);
const LONGEST_RETRY = seconds(20);
const FIRST_PULL_RETRY = seconds(10);
const LONGEST_PULL_RETRY = seconds(300);
const LONGEST_MESSAGE = 4096;

export class PodWorker {
  /** Resolves when nothing of the Pod is left on the node and the API server knows it. */
  readonly done: Promise<void>;

  readonly #node: NodeContext;
  readonly #folder: string;
  readonly #records: ContainerRecord[];
  readonly #running = new Map<ContainerRecord, RunningContainer>();
  /** The variables each container was started with; its probes and hooks get the same. */
  readonly #environments = new Map<ContainerRecord, Environment>();
  readonly #logs = new Map<string, { current?: ContainerLog; previous?: ContainerLog }>();
  readonly #volumes = new Map<string, PlacedVolume>();
  readonly #mountedFolders: string[] = [];
  readonly #startTime: Instant;
  /** Aborted when the Pod as a whole must end. */
  readonly #end = new AbortController();
  /** Resolved when the grace period is over. */
  readonly #kill = Promise.withResolvers<void>();
  readonly #mainOver = Promise.withResolvers<void>();
  readonly #deleted = Promise.withResolvers<void>();
  #pod: Stored<Pod>;
  #killAt: Instant | undefined;
  #killTimer: Cancel | undefined;
  #vanished = false;
  #address: string | undefined;
  #failure: { reason: string; message: string } | undefined;
  #published: PodStatus | undefined;
  #dirty = false;
  #publishing: Promise<void> | undefined;

  constructor(pod: Stored<Pod>, node: NodeContext) {
    this.#pod = pod;
    this.#node = node;
    this.#folder = join(node.folder, "pods", pod.metadata.uid);
    this.#startTime = node.clock.now();
    const init = pod.spec?.initContainers ?? [];
    this.#records = [
      ...init.map((container) => newRecord(container, kindOf(container, true), true)),
      ...(pod.spec?.containers ?? []).map((container) => newRecord(container, "main", init.length > 0)),
    ];
    this.done = this.#live();
    this.update(pod);
  }

  get pod(): Stored<Pod> {
    return this.#pod;
  }

  get address(): string | undefined {
    return this.#address;
  }

  /** The Pod as the API server now has it. */
  update(pod: Stored<Pod>): void {
    this.#pod = pod;
    if (!pod.metadata.deletionTimestamp) return;
    this.#deleted.resolve();
    this.#finish(seconds(pod.metadata.deletionGracePeriodSeconds ?? pod.spec?.terminationGracePeriodSeconds ?? 30));
  }

  /** The API server has it no longer: end at once. */
  gone(): void {
    this.#vanished = true;
    this.#deleted.resolve();
    this.#finish(0);
  }

  /** Brings the hosts file up to date with the cluster's Services. */
  async refreshHosts(): Promise<void> {
    if (this.#address === undefined) return;
    const text = this.#node.hosts(this.#pod, this.#address);
    await overwrite(join(this.#folder, "etc", "hosts"), text).catch(() => {});
  }

  /** The log of a container's current or previous run; undefined when there is none. */
  log(container: string, previous: boolean): ContainerLog | undefined {
    const logs = this.#logs.get(container);
    return previous ? logs?.previous : logs?.current;
  }

  // ------------------------------------------------------------------------------------------------ the Pod as a whole

  async #live(): Promise<void> {
    try {
      await this.#work();
    } catch (error) {
      if (!(error instanceof Ending)) this.#failed("NodeError", `the local node failed: ${wordsOf(error)}`);
    }
    for (const running of this.#running.values()) running.signal("SIGKILL");
    await Promise.all([...this.#running.values()].map((running) => running.ended));
    for (const record of this.#records) if (this.#end.signal.aborted || this.#failure) record.over ||= hasRun(record);
    await this.#releaseNetwork();
    this.#changed();
    await this.#publishing;

    await this.#deleted.promise;
    this.#killTimer?.();
    await this.#cleanUp();
    await this.#confirmDeletion();
  }

  async #work(): Promise<void> {
    const deadline = this.#pod.spec?.activeDeadlineSeconds;
    const cancelDeadline = deadline
      ? this.#node.clock.after(seconds(deadline), () => {
          this.#failed("DeadlineExceeded", "Pod was active on the node longer than the specified deadline");
          this.#finish(seconds(this.#pod.spec?.terminationGracePeriodSeconds ?? 30));
        })
      : undefined;
    const sidecars: Promise<void>[] = [];
    try {
      this.#changed();
      await this.#insist("FailedMount", () => this.#prepareVolumes());
      await this.#insist("FailedCreatePodSandBox", () => this.#prepareNetwork());
      this.#changed();
      for (const record of this.#records.filter(({ kind }) => kind !== "main")) {
        if (record.kind === "sidecar") {
          const started = Promise.withResolvers<void>();
          sidecars.push(this.#supervise(record, started.resolve).finally(() => started.resolve()));
          await Promise.race([started.promise, endOf(this.#end.signal)]);
        } else {
          await this.#supervise(record);
          if (record.state.terminated?.exitCode !== 0) return;
        }
        if (this.#end.signal.aborted) throw new Ending();
      }
      const main = this.#records.filter(({ kind }) => kind === "main");
      await Promise.all(main.map((record) => this.#supervise(record)));
    } finally {
      cancelDeadline?.();
      this.#mainOver.resolve();
      await Promise.all(sidecars);
    }
  }

  #failed(reason: string, message: string): void {
    this.#failure ??= { reason, message };
    this.#changed();
  }

  /** Ends the Pod within `grace`; called again, the shorter time counts. */
  #finish(grace: Duration): void {
    const { clock } = this.#node;
    const at = clock.now() + grace;
    if (this.#killAt === undefined || at < this.#killAt) {
      this.#killAt = at;
      this.#killTimer?.();
      if (grace <= 0) this.#kill.resolve();
      else this.#killTimer = clock.after(grace, () => this.#kill.resolve());
    }
    this.#end.abort();
  }

  /** Tries until it works, telling the user why it does not. */
  async #insist(reason: string, step: () => Promise<void>): Promise<void> {
    for (let delay = FIRST_RETRY; ; delay = Math.min(LONGEST_RETRY, delay * 2)) {
      if (this.#end.signal.aborted) throw new Ending();
      try {
        return await step();
      } catch (error) {
        this.#event("Warning", reason, wordsOf(error));
        await this.#pause(delay);
      }
    }
  }

  async #pause(delay: Duration): Promise<void> {
    await sleep(this.#node.clock, delay, this.#end.signal).catch(() => {
      throw new Ending();
    });
  }

  async #prepareVolumes(): Promise<void> {
    const source = this.#node.configSource(this.#pod.metadata.namespace ?? "default");
    for (const volume of this.#pod.spec?.volumes ?? []) {
      if (this.#volumes.has(volume.name)) continue;
      const content = await volumeContent(volume, this.#pod, this.#facts(), source);
      if (content.kind === "host") {
        await this.#checkHostPath(content.path, content.type);
        this.#volumes.set(volume.name, { folder: content.path, readOnly: false });
        continue;
      }
      const folder = join(this.#folder, "volumes", volume.name);
      await writeVolume(folder, content);
      if (content.kind === "empty") {
        await chmod(folder, 0o777);
        if (content.inMemory || content.sizeLimit) await this.#mountMemory(folder, content.sizeLimit);
      }
      this.#volumes.set(volume.name, { folder, readOnly: content.kind === "files" });
    }
    await mkdir(join(this.#folder, "shm"), { recursive: true });
    await chmod(join(this.#folder, "shm"), 0o1777);
  }

  async #mountMemory(folder: string, limit: number | undefined): Promise<void> {
    await this.#node.runtime.mountMemory(folder, limit);
    this.#mountedFolders.push(folder);
  }

  async #checkHostPath(path: string, type: string): Promise<void> {
    if (type.endsWith("OrCreate")) {
      throw new ConfigError(
        `hostPath ${path}: type ${type} is not supported, the local node makes nothing on the machine`,
      );
    }
    await stat(path).catch(() => {
      throw new ConfigError(`hostPath type check failed: ${path} does not exist`);
    });
  }

  async #prepareNetwork(): Promise<void> {
    const { network, addresses, runtime } = this.#node;
    const address = addresses.take();
    try {
      await writeEtc(join(this.#folder, "etc"), this.#hostname(), this.#node.hosts(this.#pod, address));
      const veth = `veth${this.#pod.metadata.uid.replaceAll("-", "").slice(0, 10)}`;
      await runtime.createNetwork({ file: this.#networkFile(), address, veth, ...network });
      this.#address = address;
    } catch (error) {
      await runtime.removeNetwork(this.#networkFile()).catch(() => {});
      addresses.giveBack(address);
      throw error;
    }
  }

  async #releaseNetwork(): Promise<void> {
    if (this.#address === undefined) return;
    await this.#node.runtime.removeNetwork(this.#networkFile()).catch(() => {});
    this.#node.addresses.giveBack(this.#address);
  }

  async #cleanUp(): Promise<void> {
    for (const logs of this.#logs.values()) {
      await logs.previous?.close();
      await logs.current?.close();
    }
    for (const folder of this.#mountedFolders) await this.#node.runtime.unmount(folder).catch(() => {});
    await rm(this.#folder, { recursive: true, force: true }).catch(() => {});
  }

  /** Tells the API server that nothing is left. */
  async #confirmDeletion(): Promise<void> {
    const { namespace, name, uid } = this.#pod.metadata;
    while (!this.#vanished) {
      try {
        await this.#node.client.delete(pods, namespace, name, { uid, gracePeriodSeconds: 0 });
        return;
      } catch (error) {
        if (isNotFound(error) || isConflict(error)) return;
        await sleep(this.#node.clock, seconds(1));
      }
    }
  }

  // ------------------------------------------------------------------------------------------------------- a container

  /** Runs a container, again and again as its policy says, until it is over or the Pod ends. */
  async #supervise(record: ContainerRecord, onStarted?: () => void): Promise<void> {
    const { clock } = this.#node;
    let restartsOfLate = 0;
    for (;;) {
      const startedAt = clock.now();
      let exitCode: number;
      try {
        const running = await this.#start(record);
        exitCode = await this.#watchOver(record, running, onStarted);
      } catch (error) {
        if (error instanceof Ending) return;
        if (!(error instanceof StartError)) throw error;
        exitCode = 128;
        this.#ended(record, startedAt, exitCode, "StartError", error.message);
        this.#event(
          "Warning",
          "Failed",
          `Error: failed to start container "${record.container.name}": ${error.message}`,
        );
      }
      const ending = this.#end.signal.aborted || (record.kind === "sidecar" && this.#mainIsOver());
      if (ending || !restarts(this.#pod, record.container, record.kind, exitCode)) {
        record.over = true;
        return this.#changed();
      }
      const delay = backOff(restartsOfLate);
      restartsOfLate = countOfLate(restartsOfLate, clock.now() - startedAt);
      this.#changed();
      if (delay > 0) {
        const pod = `${this.#pod.metadata.name}_${this.#pod.metadata.namespace}(${this.#pod.metadata.uid})`;
        const what = `restarting failed container=${record.container.name} pod=${pod}`;
        this.#wait(record, "CrashLoopBackOff", `back-off ${delay / 1000}s ${what}`);
        this.#event("Warning", "BackOff", `Back-off ${what}`);
        try {
          await this.#pause(delay);
        } catch {
          record.over = true;
          return;
        }
      }
      record.restartCount++;
    }
  }

  #mainIsOver(): boolean {
    return this.#records.every((record) => record.kind !== "main" || record.over);
  }

  /** Starts it, waiting for whatever it needs. Throws StartError when its program cannot run, Ending when the Pod ends. */
  async #start(record: ContainerRecord): Promise<RunningContainer> {
    const { container } = record;
    const ray = await this.#pull(record);
    let refused = "";
    for (let delay = FIRST_RETRY; ; delay = Math.min(LONGEST_RETRY, delay * 2)) {
      if (this.#end.signal.aborted) throw new Ending();
      try {
        return await this.#launch(record, ray);
      } catch (error) {
        if (!(error instanceof ConfigError)) throw error;
        if (error.message !== refused) this.#event("Warning", "Failed", `Error: ${error.message}`);
        refused = error.message;
        this.#wait(record, "CreateContainerConfigError", `container "${container.name}": ${error.message}`);
        await this.#pause(delay);
      }
    }
  }

  /** "Pulls" the image: refusals and failures are told like kubelet's, and tried again ever more slowly. */
  async #pull(record: ContainerRecord): Promise<RayEnvironment> {
    const image = record.container.image ?? "";
    for (let delay = FIRST_PULL_RETRY; ; delay = Math.min(LONGEST_PULL_RETRY, delay * 2)) {
      const failure = await this.#tryPull(record, image);
      if (typeof failure !== "string") return failure;
      this.#event("Warning", "Failed", `Failed to pull image "${image}": ${failure}`);
      this.#event("Warning", "Failed", "Error: ErrImagePull");
      this.#wait(record, "ErrImagePull", failure);
      await this.#pause(FIRST_RETRY);
      this.#event("Normal", "BackOff", `Back-off pulling image "${image}"`);
      this.#wait(record, "ImagePullBackOff", `Back-off pulling image "${image}": ErrImagePull: ${failure}`);
      await this.#pause(delay);
    }
  }

  async #tryPull(record: ContainerRecord, image: string): Promise<RayEnvironment | string> {
    const meaning = meaningOf(image);
    if ("refused" in meaning) return meaning.refused;
    const pulled = this.#node.pull(meaning.rayVersion);
    const ending = new Promise<never>((_, reject) => {
      if (this.#end.signal.aborted) reject(new Ending());
      this.#end.signal.addEventListener("abort", () => reject(new Ending()), { once: true });
    });
    const quick = await Promise.race([pulled.catch(() => undefined), sleep(this.#node.clock, seconds(1)), ending]);
    if (quick === undefined) this.#event("Normal", "Pulling", `Pulling image "${image}"`);
    try {
      const ray = await Promise.race([pulled, ending]);
      record.imageID = `pypi://ray@${ray.version}`;
      this.#event("Normal", "Pulled", `Ray ${ray.version} stands in for image "${image}" on this machine`);
      return ray;
    } catch (error) {
      if (error instanceof Ending) throw error;
      return wordsOf(error);
    }
  }

  async #launch(record: ContainerRecord, ray: RayEnvironment): Promise<RunningContainer> {
    const { container } = record;
    const { clock, runtime, hide, memory } = this.#node;
    const source = this.#node.configSource(this.#pod.metadata.namespace ?? "default");
    const environment = await containerEnvironment(
      container,
      this.#pod,
      this.#facts(),
      source,
      imageEnvironment(memory),
    );
    this.#environments.set(record, environment);
    const own = await this.#ownMounts(container, environment);
    const image = imageMounts(ray, join(this.#folder, "etc"), join(this.#folder, "shm"));
    const covered = new Set(own.map(({ target }) => target));
    const log = await this.#newLog(record);
    this.#event("Normal", "Created", `Created container: ${container.name}`);

    const startedAt = clock.now();
    const orders = {
      network: this.#networkFile(),
      hostname: this.#hostname(),
      mounts: [...image.filter(({ target }) => !covered.has(target)), ...own],
      hide,
      argv: commandLine(container, environment),
      environment,
      directory: container.workingDir || HOME,
      // An init container mostly waits for others (a worker's for the head), who share its processors here.
      nice: record.kind === "init" ? 10 : 0,
    };
    const running = await runtime.start(orders, (stream, chunk) => log.write(stream, chunk));
    if (record.state.terminated) record.last = record.state;
    record.containerID = `process://${randomBytes(32).toString("hex")}`;
    record.state = { running: { startedAt: toWire(startedAt) } };
    this.#running.set(record, running);
    this.#event("Normal", "Started", `Started container ${container.name}`);
    return running;
  }

  async #newLog(record: ContainerRecord): Promise<ContainerLog> {
    const { name } = record.container;
    const folder = join(this.#folder, "logs");
    await mkdir(folder, { recursive: true });
    const logs = this.#logs.get(name) ?? {};
    await logs.previous?.close();
    const log = new ContainerLog(join(folder, `${name}.${record.restartCount}`), () => this.#node.clock.now());
    this.#logs.set(name, { previous: logs.current, current: log });
    return log;
  }

  /** Mounts of the Pod's volumes, and the file for the container's last words. */
  async #ownMounts(container: Container, environment: Environment): Promise<Mount[]> {
    const views = volumeMounts(container, this.#volumes, environment);
    for (const view of views) {
      const exists = await stat(view.source).then(
        () => true,
        () => false,
      );
      if (!exists && view.subPath) await mkdir(view.source, { recursive: true });
    }
    const words = this.#lastWordsFile(container);
    await mkdir(join(this.#folder, "words"), { recursive: true });
    await writeFile(words, "");
    return [...views, { source: words, target: container.terminationMessagePath || "/dev/termination-log" }];
  }

  /** Sees a running container to its end: probes, the Pod's end, and what it leaves. Answers its exit code. */
  async #watchOver(record: ContainerRecord, running: RunningContainer, onStarted?: () => void): Promise<number> {
    const { clock } = this.#node;
    const { container } = record;
    const startedAt = clock.now();
    const over = new AbortController();
    const { postStart } = container.lifecycle ?? {};
    if (postStart) await this.#hook(record, running, postStart, Promise.race([running.ended, this.#kill.promise]));
    const probing = this.#probe(record, running, startedAt, over.signal, onStarted);
    const called = record.kind === "sidecar" ? this.#mainOver.promise : endOf(this.#end.signal);
    void called.then(() => {
      if (over.signal.aborted) return;
      this.#event("Normal", "Killing", `Stopping container ${container.name}`);
      const grace =
        this.#killAt === undefined ? seconds(this.#pod.spec?.terminationGracePeriodSeconds ?? 30) : undefined;
      void this.#stop(record, running, grace === undefined ? this.#kill.promise : after(clock, grace));
    });
    const exitCode = await running.ended;
    over.abort();
    this.#running.delete(record);
    await this.#logs.get(container.name)?.current?.end();
    const reason = exitCode === 0 ? "Completed" : "Error";
    this.#ended(record, startedAt, exitCode, reason, await this.#lastWords(record, exitCode));
    await probing;
    return exitCode;
  }

  /** Asks a container to end, and ends it when `patience` is over. */
  async #stop(record: ContainerRecord, running: RunningContainer, patience: Promise<void>): Promise<void> {
    const { preStop } = record.container.lifecycle ?? {};
    const killed = patience.then(() => running.signal("SIGKILL"));
    if (preStop) await this.#hook(record, running, preStop, Promise.race([running.ended, killed]));
    running.signal("SIGTERM");
    await Promise.race([running.ended, killed]);
  }

  async #hook(
    record: ContainerRecord,
    running: RunningContainer,
    hook: NonNullable<NonNullable<Container["lifecycle"]>["preStop"]>,
    until: Promise<unknown>,
  ): Promise<void> {
    const work = async () => {
      if (hook.sleep) return void (await sleep(this.#node.clock, seconds(hook.sleep.seconds)));
      const answer = await this.#ask(
        { exec: hook.exec, httpGet: hook.httpGet, timeoutSeconds: 86_400 },
        record,
        running,
      );
      if (answer !== undefined) this.#event("Warning", "FailedLifecycleHook", answer);
    };
    await Promise.race([work(), until]);
  }

  #ended(record: ContainerRecord, startedAt: Instant, exitCode: number, reason: string, message: string): void {
    const terminated = {
      exitCode,
      reason,
      ...(message ? { message } : {}),
      startedAt: toWire(startedAt),
      finishedAt: toWire(this.#node.clock.now()),
      ...(record.containerID ? { containerID: record.containerID } : {}),
    };
    record.state = { terminated };
    record.started = record.ready = false;
    this.#changed();
  }

  /** State `waiting`; what ended before stays visible as the last state. */
  #wait(record: ContainerRecord, reason: string, message: string): void {
    if (record.state.terminated) record.last = record.state;
    record.state = { waiting: { reason, message } };
    this.#changed();
  }

  #lastWordsFile(container: Container): string {
    return join(this.#folder, "words", container.name);
  }

  async #lastWords({ container }: ContainerRecord, exitCode: number): Promise<string> {
    const words = await readFile(this.#lastWordsFile(container), "utf8").catch(() => "");
    if (words || exitCode === 0 || container.terminationMessagePolicy !== "FallbackToLogsOnError") {
      return words.slice(0, LONGEST_MESSAGE);
    }
    return (await this.#logs.get(container.name)?.current?.tail(80, 2048)) ?? "";
  }

  // ------------------------------------------------------------------------------------------------------------ probes

  async #probe(
    record: ContainerRecord,
    running: RunningContainer,
    startedAt: Instant,
    over: AbortSignal,
    onStarted?: () => void,
  ): Promise<void> {
    const { startupProbe, livenessProbe, readinessProbe } = record.container;
    if (startupProbe) {
      this.#changed();
      const up = Promise.withResolvers<void>();
      const watched = AbortSignal.any([over]);
      void this.#repeat("startup", startupProbe, record, running, startedAt, watched, (well) => {
        if (well) up.resolve();
        return well;
      });
      await Promise.race([up.promise, endOf(over)]);
    }
    if (over.aborted) return;
    record.started = true;
    record.ready = readinessProbe === undefined;
    onStarted?.();
    this.#changed();
    if (livenessProbe) void this.#repeat("liveness", livenessProbe, record, running, startedAt, over, () => false);
    if (readinessProbe) {
      void this.#repeat("readiness", readinessProbe, record, running, startedAt, over, (well) => {
        if (record.ready !== well && !over.aborted) {
          record.ready = well;
          this.#changed();
        }
        return false;
      });
    }
  }

  /** Asks at the probe's pace until `settle` says that it is enough, or the container is over. */
  async #repeat(
    kind: ProbeKind,
    probe: Probe,
    record: ContainerRecord,
    running: RunningContainer,
    startedAt: Instant,
    over: AbortSignal,
    settle: (well: boolean) => boolean,
  ): Promise<void> {
    const { clock } = this.#node;
    const { initialDelay, period } = timing(probe);
    let tally = initialTally(kind);
    let next = startedAt + initialDelay;
    for (;;) {
      try {
        await sleep(clock, next - clock.now(), over);
      } catch {
        return;
      }
      next = clock.now() + period;
      // An ending Pod is not restarted; its readiness still counts.
      if (this.#end.signal.aborted && kind !== "readiness") return;
      const answer = await this.#ask(probe, record, running);
      if (over.aborted) return;
      tally = count(tally, answer === undefined, probe);
      const title = kind[0]!.toUpperCase() + kind.slice(1);
      if (answer !== undefined) this.#event("Warning", "Unhealthy", `${title} probe failed: ${answer}`);
      if (kind !== "readiness" && tally.failures >= (probe.failureThreshold ?? 3)) {
        this.#event("Normal", "Killing", `Container ${record.container.name} failed ${kind} probe, will be restarted`);
        const grace = probe.terminationGracePeriodSeconds ?? this.#pod.spec?.terminationGracePeriodSeconds ?? 30;
        void this.#stop(record, running, after(clock, seconds(grace)));
        return;
      }
      if (settle(tally.verdict)) return;
    }
  }

  #ask(probe: Probe, record: ContainerRecord, running: RunningContainer): Promise<string | undefined> {
    return ask(probe, record.container, {
      podIP: this.#address ?? "127.0.0.1",
      execute: (argv, timeout) => {
        const environment = this.#environments.get(record) ?? {};
        const directory = record.container.workingDir || HOME;
        return this.#node.runtime.execute(running.pid, argv, { environment, directory, timeout });
      },
    });
  }

  // ------------------------------------------------------------------------------------------------------------ status

  #changed(): void {
    this.#dirty = true;
    this.#publishing ??= this.#publish().finally(() => {
      this.#publishing = undefined;
      if (this.#dirty && !this.#vanished) this.#changed();
    });
  }

  /** Writes the status until it says what is. What changes in one go is written once. */
  async #publish(): Promise<void> {
    const { client, clock, log } = this.#node;
    await Promise.resolve();
    while (this.#dirty && !this.#vanished) {
      this.#dirty = false;
      const facts = {
        hostIP: this.#node.hostIP,
        startTime: this.#startTime,
        podIP: this.#address,
        failure: this.#failure,
      };
      const before = this.#published ?? this.#pod.status;
      const status = podStatus({ ...this.#pod, status: before }, this.#records, facts, clock.now());
      if (JSON.stringify(status) === JSON.stringify(this.#published)) continue;
      const { namespace, name, uid } = this.#pod.metadata;
      try {
        await client.patch(pods, namespace, name, { metadata: { uid }, status }, { subresource: "status" });
        this.#published = status;
      } catch (error) {
        // A namesake has its own worker.
        if (isNotFound(error) || isConflict(error)) return;
        log.warn(
          { pod: name, namespace, error: wordsOf(error) },
          "the Pod's status could not be written; trying again",
        );
        this.#dirty = true;
        await sleep(clock, seconds(1));
      }
    }
  }

  #event(type: "Normal" | "Warning", reason: string, note: string): void {
    this.#node.event(this.#pod, type, reason, note);
  }

  #facts(): PodFacts {
    const { hostIP, nodeName, allocatable } = this.#node;
    return { podIP: this.#address ?? "", hostIP, nodeName, allocatable };
  }

  #hostname(): string {
    return (this.#pod.spec?.hostname ?? this.#pod.metadata.name).slice(0, 63);
  }

  #networkFile(): string {
    return join(this.#folder, "network");
  }
}

const hasRun = (record: ContainerRecord) => record.state.terminated !== undefined || record.last !== undefined;

const endOf = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });

const after = (clock: Clock, delay: Duration) => new Promise<void>((resolve) => void clock.after(delay, resolve));

const wordsOf = (error: unknown) => {
  if (!(error instanceof Error)) return String(error);
  const { remedy } = error as { remedy?: unknown };
  return typeof remedy === "string" ? `${error.message}. ${remedy}` : error.message;
};
