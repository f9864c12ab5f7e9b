/**
 * One life under one schedule: a world, an operator, a RayJob, and whatever the schedule has happen to them.
 *
 * Answers: at which points what could have happened, through which states it went, what must never be and was, and how
 * it ended. A life stops early at a state that another life has gone on from.
 * Next: acts.ts and replica.ts for what can happen, oracles.ts for what must not, explore.ts for which lives are lived.
 */
import type { Pod } from "../../../src/api/kubernetes.ts";
import { LABEL, NODE_TYPE } from "../../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../../src/api/object.ts";
import type { RayJob, RayJobSpec } from "../../../src/api/rayjob.ts";
import { configFrom } from "../../../src/config.ts";
import type { RayCommand } from "../../../src/domain/rayjob/ray.ts";
import { sleep } from "../../../src/machinery/clock.ts";
import type { PassTrace } from "../../../src/machinery/controller.ts";
import { rayClusters, rayJobs } from "../../../src/machinery/kube/resources.ts";
import type { KubeRequest, Transport } from "../../../src/machinery/kube/transport.ts";
import { silent } from "../../../src/machinery/logger.ts";
import { settle } from "../../../src/machinery/virtualClock.ts";
import type { RayRequest } from "../../../src/ray/transport.ts";
import { startOperator } from "../../../src/wiring.ts";
import { queued } from "../../support/kueueWrites.ts";
import { clusterSpec, rayCluster, rayJob } from "../../support/manifests.ts";
import { type PodBehaviour, prompt } from "../fakeKubelet.ts";
import { World } from "../world.ts";
import { actOf, acts, quietly } from "./acts.ts";
import { Chooser, type Deviation, type Point, type PointKind, type Schedule, USUAL } from "./choices.ts";
import { fingerprint, type Running } from "./fingerprint.ts";
import { type Future, type Laxity, type Memory, shortened, situationOf, type Tail } from "./future.ts";
import { Kueue } from "./kueue.ts";
import { type Lifecycle, lifecycleOf } from "./lifecycles.ts";
import { Oracles } from "./oracles.ts";
import { Replica, type Surroundings } from "./replica.ts";
import { SHARED } from "./selected.ts";

/** A state that was passed. */
export interface Visit {
  readonly state: string;
  /** Points that were met before. */
  readonly points: number;
  readonly phase: string;
  readonly tail: Tail;
  readonly laxity: Laxity;
  /** It came to this since the last fault, and nothing of that is under way: how it goes on, it does by itself. */
  readonly isCalm: boolean;
}

/** A part of a life: from something that happened in it (or from its beginning) to a state whose future was known. */
export interface Stretch {
  /** The point at which it happened, by its number; of the beginning none. */
  readonly at: number | undefined;
  readonly choice: string;
  /** The first of its visits, and the one after its last. */
  readonly from: number;
  readonly to: number;
  readonly points: number;
  readonly tail: Tail;
  readonly laxity: Laxity;
  /** Of the state it came to; undefined when it went on to the end of the life. */
  readonly joined: Future | undefined;
}

export interface Outcome {
  /** All points that were met. */
  readonly points: readonly Point[];
  readonly visits: readonly Visit[];
  /** What is new in it: the stretches after the last deviation of the schedule and after each that the guide chose. */
  readonly stretches: readonly Stretch[];
  /** What happened instead of the usual. */
  readonly deviations: readonly Deviation[];
  /** The end in one text; of a life cut short, the end of the one it joined last. */
  readonly end: string;
  readonly cut: boolean;
  readonly violations: readonly string[];
}

/** What a user does, so many milliseconds after his last act (or the creation). */
export type Move = { readonly after: number } & (
  | { readonly edit: Partial<Record<keyof RayJobSpec, unknown>> }
  | { readonly act: string }
);

export interface LifeOptions {
  /** Done beside whatever the schedule has happen; the life is not over before. */
  readonly user?: readonly Move[];
  /** Instead of the lifecycle's. */
  readonly jobs?: Lifecycle["jobs"];
  /** States whose future is known: there a life is cut. */
  readonly memory?: Memory;
  /** What happens, if anything, at a point beyond the schedule that a life comes to when all that was is over. */
  readonly guide?: (point: Point) => string | undefined;
  /** Whether the life goes on from a known state all the same, because its guide still has something for it. */
  readonly goesOn?: (visit: Visit) => boolean;
  /** Told of everything that happens, for a timeline. */
  readonly tell?: (time: number, who: string, what: string) => void;
}

const MINUTE = 60_000;
/** A successor takes over so long after an operator has died. */
const SUCCESSION = 2000;
/** So long after its last renewal an operator may believe that it leads; and so long what it has sent is on its way. */
const RIVALRY = 10_000;
const ON_THE_WAY = 1000;
/** From when he sees that a cluster waits for him until its user has submitted. */
const HAND_OVER = 4000;
/** Longer than the longest back-off: what does nothing for so long does nothing any more. */
const QUIET = 70_000;
/** From the last fault to the end of the life. */
const PATIENCE = 40 * MINUTE;
const MOST_STEPS = 30_000;
const MOST_PASSES = 5000;
/** Longer than the controllers' longest sleep. */
const LONG = 11 * MINUTE;
const ALONE = configFrom({ flags: { "enable-leader-election": false } });
const ELECTED = configFrom({ flags: { "enable-leader-election": true } });
const WITH_RESTARTS = configFrom({
  flags: { "enable-leader-election": false, "feature-gates": "SidecarSubmitterRestart=true" },
});
/** What a process may meet at these points where operators are elected. */
const WHILE_ELECTED: Partial<Record<PointKind, ReadonlySet<string>>> = {
  write: new Set(["crash-before", "crash-after", "timeout-done", "late"]),
  command: new Set(["crash-before", "crash-after", "late"]),
};

export class Life implements Surroundings {
  readonly lifecycle: Lifecycle;
  readonly world: World;
  readonly oracles: Oracles;
  /** Where the lifecycle has a queue. */
  readonly kueue: Kueue | undefined;
  /** What Pods do, by UID: an accident changes it. */
  readonly behaviours = new Map<string, { -readonly [K in keyof PodBehaviour]: PodBehaviour[K] }>();
  readonly clock: World["clock"];
  readonly kubernetes: Transport;
  readonly ray: World["ray"];
  /** Operators there are that believe they lead. */
  rivals = 0;
  /** What operators asked to be made that makes Pods: RayClusters and submitters. */
  readonly asked: KubeRequest[] = [];
  readonly #chooser: Chooser;
  /** What is asked for, and of what kind the world is, in one text. */
  readonly #asked: string;
  readonly #options: LifeOptions;
  readonly #replicas: Running[] = [];
  readonly #stopping = new Map<Replica, () => void>();
  #chief: Replica | undefined;
  #succession = SUCCESSION;
  /** What goes on over a time, because of a fault; and what the lifecycle lays down, by name. */
  #underWay = 0;
  readonly #laidDown: string[] = [];
  /** The act of the script that is being done. */
  #scripted: string | undefined;
  /** Jobs that Ray had taken when this RayJob was made: they are a namesake's. */
  #namesakes = 0;
  #passes = 0;
  /** Acts of the script that are done, and jobs that Ray has drawn. */
  #acted = 0;
  #drawn = 0;
  readonly #visits: Visit[] = [];
  readonly #stretches: Stretch[] = [];
  /** The stretch under way; undefined where life goes as it is known to. */
  #open: Pick<Stretch, "at" | "choice" | "from"> | undefined = { at: undefined, choice: USUAL, from: 0 };
  /** States that were passed before the last deviation, or while it was under way. */
  readonly #before = new Set<string>();
  /** Whether the oracles let more pass already when the last fault came. */
  #wasDisturbed = false;
  #joined: Future | undefined;
  #last = 0;
  #changed = true;
  #changedAt: number;
  /** Nothing goes wrong any more. */
  #settled = false;
  /** The user of an InteractiveMode is about to submit. */
  #isSubmitting = false;
  #ended = false;

  constructor({ lifecycle, deviations }: Schedule, options: LifeOptions = {}) {
    this.lifecycle = lifecycleOf(lifecycle);
    this.#options = options;
    const { spec, elected, cluster, restarts, workerless, kueue: queue } = this.lifecycle;
    this.#asked = shortened(JSON.stringify([spec, { elected, cluster, restarts, workerless, queue }]));
    this.#chooser = new Chooser(deviations, () => ({ tail: this.#tail(), laxity: this.#laxity() }));
    this.world = new World({
      pod: (pod) => {
        // A submitter takes its time to go, as one that ends a connection does.
        const isRays = pod.metadata.labels?.[LABEL.nodeType] !== undefined;
        const isWorker = pod.metadata.labels?.[LABEL.nodeType] === NODE_TYPE.worker;
        const behaviour = {
          ...prompt,
          terminate: isRays ? 1000 : 8000,
          ...(isWorker && this.lifecycle.workerless && { schedule: Number.POSITIVE_INFINITY }),
        };
        this.behaviours.set(pod.metadata.uid, behaviour);
        return behaviour;
      },
      job: (request, head) => {
        const [uid] = [...this.world.ray.heads].find(([, candidate]) => candidate === head)!;
        this.oracles.submitted(uid, request.submission_id, request.entrypoint);
        this.#tell("Ray", () => `takes job ${request.submission_id}`);
        const { jobs } = this.lifecycle;
        const script = jobs[Math.min(this.#drawn++, jobs.length - 1)]!;
        return script;
      },
    });
    const { clock, kube, ray } = this.world;
    this.clock = clock;
    this.kubernetes = kube.transport;
    this.ray = ray;
    this.#changedAt = clock.now();
    this.kueue = this.lifecycle.kueue && new Kueue(this.lifecycle.kueue, this);
    this.oracles = new Oracles(this.world, this.kueue);
    this.oracles.isUnheard = (id) =>
      this.#replicas.some(({ replica }) =>
        [...replica.heard].some(([what, said]) => said === "none" && what.includes(id)),
      );
    this.#chooser.onDeviation = (point, choice) => {
      this.#deviates(choice);
      this.#tell("FAULT", () => `${choice} at ${point.what()}`);
    };
    const { guide } = options;
    if (guide) this.#chooser.guide = (point) => (this.#isAsKnown ? guide(point) : undefined);
    kube.storage.listen(({ resource, type, object, old }) => {
      if (resource.endsWith("events") || resource.endsWith("endpointslices")) return;
      if (resource.endsWith("leases") && holderOf(object) === holderOf(old)) return;
      this.#changed = true;
      this.#changedAt = clock.now();
      if (type === "DELETED") this.behaviours.delete(object.metadata.uid);
      this.#tell("stored", () => changeInWords(type, object, old));
    });
    ray.onChange(() => {
      this.#changed = true;
    });
  }

  /** What has happened instead of the usual. */
  get deviations(): readonly Deviation[] {
    return this.#chooser.taken;
  }

  /** The operator that leads; where they are elected, the one that holds the lease, or held it last. */
  get chief(): Replica {
    if (this.lifecycle.elected) {
      const holder = holderOf(this.world.kube.storage.all(LEASES)[0]);
      const holding = this.#replicas.find(({ replica }) => replica.name === holder);
      this.#chief = holding?.replica ?? this.#chief;
    }
    return this.#chief!;
  }

  async run(): Promise<Outcome> {
    const violations: string[] = [];
    let cut = false;
    try {
      this.#begins();
      this.#startChief();
      if (this.lifecycle.elected) this.#startChief();
      if (this.lifecycle.cluster === "there") await this.createCluster();
      await this.create();
      await settle();
      if (this.#options.user) void this.#followUser(this.#options.user);
      let exhaustedAt: number | undefined;
      let [steps, passes, last] = [0, 0, -1];
      for (; ; steps++) {
        if (this.#changed) {
          this.#changed = false;
          cut = !this.#arrive();
          if (cut) break;
          await this.#followScript();
          this.#submitByHand();
          await this.#chooseAct();
        }
        if (this.#isOver()) break;
        if (this.#chooser.taken.length !== last) {
          [steps, passes, last] = [0, this.#passes, this.#chooser.taken.length];
          exhaustedAt = undefined;
        }
        const free = this.#chooser.exhausted && !this.#isBusy;
        exhaustedAt = free ? (exhaustedAt ?? this.clock.now()) : undefined;
        const overdue = exhaustedAt !== undefined && this.clock.now() - exhaustedAt > PATIENCE;
        if (overdue || steps > MOST_STEPS || this.#passes - passes > MOST_PASSES || !(await this.clock.step())) {
          violations.push(`it does not settle: ${this.#describe()}`);
          break;
        }
        if (this.oracles.violations.length > 0 && this.#options.tell === undefined) break;
      }
      if (!cut && violations.length === 0 && this.oracles.all().length === 0) {
        this.#settled = true;
        this.oracles.settled();
        violations.push(...(await this.#isQuiet()));
      }
    } finally {
      this.#settled = true;
      this.#ended = true;
      for (const { replica, operator } of this.#replicas) {
        replica.kill();
        void operator.stop();
      }
      await this.world.close().catch(() => {
        // Its complaint is the invariants', which are reported below.
      });
    }
    this.#close(this.#visits.length, undefined);
    const { points, taken } = this.#chooser;
    return {
      points,
      visits: this.#visits,
      stretches: this.#stretches,
      deviations: taken,
      end: cut ? this.#joined!.end : this.#end(),
      cut,
      violations: [...this.oracles.all(), ...violations],
    };
  }

  /** What comes before the first state. */
  #begins(): void {
    this.#chooser.arrive(situationOf({ state: shortened(this.#toCome()), laxity: this.#laxity() }));
  }

  /** Comes to a state; false when it need not be gone on from. */
  #arrive(): boolean {
    const { memory, goesOn } = this.#options;
    const { points, exhausted, taken } = this.#chooser;
    const state = fingerprint(this.world, this.#replicas, this.#toCome());
    const phase = this.#job?.status?.jobDeploymentStatus ?? "";
    if (this.#underWay > 0) this.#before.add(state);
    if (state === this.#visits.at(-1)?.state) {
      // It is there yet, after something that leaves no trace.
      this.#chooser.passes("still");
      return true;
    }
    const isCalm = !this.#before.has(state);
    let visit = { state, points: points.length, phase, tail: this.#tail(), laxity: this.#laxity(), isCalm };
    const mayJoin = isCalm && memory && exhausted && taken.length > 0;
    // Back in a state that was watched in full, what was let pass because of the fault need not be any more.
    const inFull = { ...visit, laxity: { ...visit.laxity, disturbed: this.#wasDisturbed } };
    if (mayJoin && visit.laxity.disturbed && memory.ofState(inFull) && this.oracles.disturbanceIsOver()) visit = inFull;
    this.#visits.push(visit);
    this.#chooser.arrive(isCalm ? situationOf(visit) : undefined);
    const future = mayJoin && memory.ofState(visit);
    if (!future) return true;
    this.#close(this.#visits.length - 1, future);
    this.#joined = future;
    return goesOn?.(visit) ?? false;
  }

  #deviates(choice: string): void {
    this.#wasDisturbed = this.oracles.laxity.disturbed;
    for (const { state } of this.#visits.slice(this.#last)) this.#before.add(state);
    this.#last = this.#visits.length;
    this.#open = { at: this.#chooser.points.length - 1, choice, from: this.#visits.length };
  }

  #close(to: number, joined: Future | undefined): void {
    if (!this.#open) return;
    const stretch = { ...this.#open, to, joined, points: this.#chooser.points.length };
    this.#stretches.push({ ...stretch, tail: this.#tail(), laxity: this.#laxity() });
    this.#open = undefined;
  }

  /** Nothing has happened yet, or all that did has led back to what is known. */
  get #isAsKnown(): boolean {
    return this.#open === undefined || this.#open.at === undefined;
  }

  #laxity(): Laxity {
    return this.oracles.laxity;
  }

  #tail(): Tail {
    return { lifecycle: this.lifecycle, acted: this.#acted, drawn: this.#drawn };
  }

  /** The user applies the RayJob. */
  create(): Promise<unknown> {
    const job = rayJob(this.lifecycle.spec);
    this.#namesakes = this.world.submissions.length;
    return this.world.client.create(rayJobs, this.kueue ? queued(job) : job);
  }

  /** Somebody makes the RayCluster that the RayJob selects. */
  createCluster(): Promise<unknown> {
    return this.world.client.create(rayClusters, rayCluster(SHARED, 1));
  }

  changed(): void {
    this.#changed = true;
    this.#changedAt = this.clock.now();
  }

  resumed(): void {
    this.oracles.resumed();
  }

  tell(what: () => string): void {
    this.#tell("Kueue", what);
  }

  rival(lag: number): void {
    this.rivals++;
    const rival = new Replica(`rival${lag > 0 ? " (late)" : ""}`, this, { lag, chooses: false });
    this.#start(rival);
    const done = this.begin();
    this.clock.after(RIVALRY, () => rival.kill());
    this.clock.after(RIVALRY + ON_THE_WAY, () => {
      this.rivals--;
      done();
    });
  }

  outage(milliseconds: number): void {
    this.#succession = milliseconds;
    this.chief.kill();
  }

  /** It is told to end, and ends in good order. */
  stop(replica: Replica): void {
    const running = this.#replicas.find((candidate) => candidate.replica === replica)!;
    // One that is killed meanwhile never comes to the end of it.
    const done = this.begin();
    this.#stopping.set(replica, done);
    void running.operator.stop().finally(() => {
      replica.kill();
      done();
    });
  }

  /** Something that goes on over a time because of a fault, until the function that is returned is called. */
  begin(): () => void {
    this.#underWay++;
    return this.#once(() => this.#underWay--);
  }

  /** The same of an act, which may be a fault or the script's. */
  beginAct(): () => void {
    return this.#scripted === undefined ? this.begin() : this.#layDown(this.#scripted);
  }

  #layDown(name: string): () => void {
    this.#laidDown.push(name);
    return this.#once(() => this.#laidDown.splice(this.#laidDown.indexOf(name), 1));
  }

  #once(end: () => unknown): () => void {
    let done = false;
    return () => {
      if (!done) end();
      done = true;
      // Whoever was held up has something to do now.
      this.changed();
    };
  }

  get #isBusy(): boolean {
    return this.#underWay > 0 || this.#laidDown.length > 0;
  }

  choose(kind: PointKind, what: () => string, choices: readonly string[], site: string): string {
    if (this.#settled) return USUAL;
    if (!this.lifecycle.elected || kind === "lease" || kind === "state")
      return this.#chooser.choose(kind, what, choices, site);
    const those = choices.filter((choice) => WHILE_ELECTED[kind]?.has(choice));
    return those.length > 0 ? this.#chooser.choose(kind, what, those, site) : USUAL;
  }

  died(replica: Replica): void {
    this.#stopping.get(replica)?.();
    if (this.#ended || (!this.lifecycle.elected && replica !== this.#chief)) return;
    this.#tell(replica.name, () => "is killed");
    const done = this.begin();
    this.clock.after(this.#succession, () => {
      this.#startChief();
      done();
    });
    this.#succession = SUCCESSION;
  }

  sends(replica: Replica, request: KubeRequest): void {
    this.oracles.sends(request);
    if (request.method === "POST" && /\/(rayclusters|jobs)$/.test(request.path)) this.asked.push(request);
    if (this.lifecycle.elected) this.oracles.isCovered(replica.name);
    this.#tell(replica.name, () => `sends ${request.method} ${request.path.replace(/^.*namespaces\/default\//, "")}`);
  }

  forgetPast(): void {
    this.world.kube.compact();
  }

  commands(replica: Replica, { method, path }: RayRequest): void {
    if (this.lifecycle.elected) this.oracles.isCovered(replica.name);
    const stop = /^\/api\/jobs\/([^/]+)\/stop$/.exec(path)?.[1];
    if (stop !== undefined) this.oracles.stopAsked(decodeURIComponent(stop));
    this.#tell(replica.name, () => `sends ${method} ${path} to Ray`);
  }

  submits(request: RayRequest): void {
    // Between another operator's question and its POST, and for one that is late on the way, Ray may have got it: Ray
    // keeps the ids of a session apart.
    if (this.#underWay > 0) return;
    this.oracles.submits(request, this.world.ray.at(request.dashboard));
  }

  async forestall({ path, body }: KubeRequest, how: "touch" | "delete" | "same" | "stranger"): Promise<void> {
    const { request } = this.kubernetes;
    const object = path.replace(/\/status$/, "");
    switch (how) {
      case "touch": {
        const headers = { "content-type": "application/merge-patch+json" };
        const annotations = { touched: String(this.clock.now()) };
        await request({ method: "PATCH", path: object, headers, body: { metadata: { annotations } } });
        return;
      }
      case "delete":
        await request({ method: "DELETE", path: object, body: {} });
        // Who deletes a cluster that RayJobs select makes it again, sooner or later.
        if (object.endsWith(`/rayclusters/${SHARED}`)) {
          const made = this.begin();
          this.clock.after(
            20_000,
            () =>
              void this.createCluster()
                .catch(() => "it is there")
                .finally(made),
          );
        }
        return;
      case "same":
        await request({ method: "POST", path, body });
        return;
      case "stranger": {
        const { metadata, ...rest } = body as KubeObject;
        const { ownerReferences: _, labels: __, ...others } = metadata;
        const spec = (rest as { spec?: object }).spec;
        // A Job of somebody else does not do our submitter's work.
        const own = path.endsWith("/jobs")
          ? { ...rest, spec: { template: STRANGERS } }
          : // Nor is there a sidecar of ours in a RayCluster of somebody else.
            { ...rest, spec: path.endsWith("/rayclusters") ? clusterSpec(1) : spec };
        const { status } = await request({ method: "POST", path, body: { ...own, metadata: others } });
        const taken = status < 300;
        const done = this.begin();
        this.clock.after(20_000, () => {
          const query = { propagationPolicy: "Background", gracePeriodSeconds: "0" };
          void request({ method: "DELETE", path: `${path}/${metadata.name}`, query }).finally(done);
          if (taken) this.oracles.strangerLeft();
        });
      }
    }
  }

  #startChief(): void {
    this.#chief = new Replica(`operator-${this.#replicas.length}`, this);
    this.#start(this.#chief);
  }

  #start(replica: Replica): Running {
    const operator = startOperator({
      transport: replica.transport,
      rayTransport: replica.rayTransport,
      clock: replica.clock,
      config: this.lifecycle.elected ? ELECTED : this.lifecycle.restarts ? WITH_RESTARTS : ALONE,
      log: silent,
      identity: replica.name,
      onPass: (trace) => {
        this.#passes++;
        this.#tell(replica.name, () => passInWords(trace));
      },
    });
    const running = { replica, operator };
    this.#replicas.push(running);
    // It could not go on, because its lease was lost: the process ends, and is started anew.
    operator.done.catch(() => replica.kill());
    this.#tell(replica.name, () => "starts");
    return running;
  }

  get #job(): Stored<RayJob> | undefined {
    return this.world.kube.storage.all("ray.io/rayjobs")[0] as Stored<RayJob> | undefined;
  }

  async #followUser(moves: readonly Move[]): Promise<void> {
    const done = this.begin();
    for (const move of moves) {
      await sleep(this.clock, move.after);
      this.#tell("user", () => JSON.stringify(move));
      if ("act" in move) {
        if (actOf(move.act).can(this)) await actOf(move.act).act(this);
        continue;
      }
      if (move.edit.suspend === false && this.#job?.spec.suspend) this.oracles.resumed();
      // What the API server refuses was worth a try.
      await this.world.client.patch(rayJobs, "default", "demo", { spec: move.edit }).catch(() => {});
    }
    done();
  }

  async #followScript(): Promise<void> {
    const next = this.lifecycle.script[this.#acted];
    if (next === undefined || this.#job?.status?.jobDeploymentStatus !== next.in) return;
    const status = this.#job.status;
    if (next.when === "running" && status.jobStatus !== "RUNNING") return;
    if (next.when === "submitter" && !this.#submitterRuns()) return;
    if (next.when === "ended" && !this.#hasEnded()) return;
    if (next.when === "workerless" && this.#hasWorkers()) return;
    if (!actOf(next.act).can(this)) return;
    this.#acted++;
    this.#chooser.passes(next.act);
    this.#tell("script", () => next.act);
    this.#scripted = next.act;
    await actOf(next.act).act(this);
    this.#scripted = undefined;
    await settle();
  }

  /**
   * InteractiveMode: its user submits when the cluster has waited for him a little, and tells the id; anew in each attempt.
   * Whatever has become of the RayJob by then: nobody looks twice before he submits.
   */
  #submitByHand(): void {
    const { spec, status } = this.#job ?? {};
    if (this.#isSubmitting || spec?.submissionMode !== "InteractiveMode") return;
    if (status?.jobDeploymentStatus !== "Waiting" || !this.#handOver(false)) return;
    this.#isSubmitting = true;
    const done = this.#layDown("by hand");
    this.clock.after(HAND_OVER, () => {
      this.#isSubmitting = false;
      const { status: now } = this.#job ?? {};
      const tell = now?.executionAttempt === status.executionAttempt ? this.#handOver(true) : undefined;
      void (tell?.() ?? Promise.resolve()).finally(done);
    });
  }

  /** What is left to do, to tell the id, once Ray has the job (given to it if `really`); undefined where there is nobody. */
  #handOver(really: boolean): (() => Promise<void>) | undefined {
    const { spec, status, metadata } = this.#job ?? {};
    const head = this.ray.at(status?.dashboardURL ?? "");
    if (!head || !spec || metadata?.deletionTimestamp) return undefined;
    const attempt = status?.executionAttempt ?? 0;
    const former = status?.attempts?.some(({ number, jobId }) => number !== attempt && jobId === spec.jobId);
    const told = former ? undefined : spec.jobId;
    if (told !== undefined && head.jobs.has(told)) return undefined;
    const id = told ?? `mine-${attempt}`;
    if (really) {
      this.#tell("user", () => `submits ${id} by hand`);
      this.ray.give(head, { entrypoint: "python by_hand.py", submission_id: id });
    }
    return async () => {
      if (id !== told) await quietly(this.world.client.patch(rayJobs, "default", "demo", { spec: { jobId: id } }));
    };
  }

  /** A Pod of the submitter that is there now; one that is on its way out belongs to an earlier one. */
  #submitterRuns(): boolean {
    const jobs = this.world.kube.storage.all("batch/jobs").map(({ metadata }) => metadata.uid);
    return this.world.kubelet.running.some(({ metadata: { ownerReferences = [], deletionTimestamp } }) =>
      ownerReferences.some(({ uid }) => jobs.includes(uid) && !deletionTimestamp),
    );
  }

  /** Ray's job is over, and the operator has not written it down. */
  #hasEnded(): boolean {
    const id = this.#job?.status?.jobId ?? "";
    const is = [...this.ray.heads.values()].map(({ jobs }) => jobs.get(id)?.status ?? "RUNNING");
    return (
      is.some((status) => status !== "RUNNING" && status !== "PENDING") && this.#job?.status?.jobStatus === "RUNNING"
    );
  }

  #hasWorkers(): boolean {
    const pods = this.world.kube.storage.all("/pods");
    return pods.some(({ metadata }) => metadata.labels?.[LABEL.nodeType] === NODE_TYPE.worker);
  }

  async #chooseAct(): Promise<void> {
    const ours = acts.filter(({ elected = false }) => elected === (this.lifecycle.elected ?? false));
    const possible = ours.filter((act) => act.can(this)).map(({ name }) => name);
    const choice = this.choose("state", () => `users, nodes and others at ${this.#describe()}`, possible, "");
    if (choice === USUAL) return;
    await actOf(choice).act(this);
    await settle();
  }

  /** What the fingerprint would not know; of what is laid down only what is so from the beginning (future.ts). */
  #toCome(): string {
    const { spec, elected } = this.lifecycle;
    const timed = spec.activeDeadlineSeconds !== undefined || spec.preRunningDeadlineSeconds !== undefined;
    const started = this.#job?.status?.startTime;
    const age = timed && started ? Math.floor((this.clock.now() - Date.parse(started)) / 1000) : "";
    const alive = this.#replicas.filter(({ replica }) => !replica.dead);
    const replicas = elected
      ? [...alive.map(({ replica }) => `${replica.mood} ${replica === this.chief}`), this.chief?.dead]
      : alive.length;
    return JSON.stringify([
      this.#asked,
      this.kueue?.state,
      age,
      replicas,
      this.#underWay,
      this.#laidDown,
      this.oracles.all().length,
    ]);
  }

  #isOver(): boolean {
    if (this.#isBusy || !this.#chooser.exhausted || this.clock.now() - this.#changedAt < QUIET) return false;
    const phase = this.#job?.status?.jobDeploymentStatus;
    const suspended = phase === "Suspended" && this.#job?.spec.suspend === true;
    return this.#job === undefined || phase === "Complete" || phase === "Failed" || suspended;
  }

  /** Nothing is left to do: neither for those who are there, nor for one who looks at all of it anew. */
  async #isQuiet(): Promise<string[]> {
    const writes = () => this.#replicas.reduce((sum, { replica }) => sum + replica.writes, 0);
    const before = writes();
    // Renewals cost time, and what wakes up late is seen where nobody is elected.
    await this.clock.advance(this.lifecycle.elected ? QUIET : LONG);
    if (writes() > before) return [`after all was settled it wrote ${writes() - before} times more`];
    // Where operators are elected, the newcomer is the one that takes over.
    if (this.lifecycle.elected) this.chief.kill();
    else this.#start(new Replica("newcomer", this, { chooses: false }));
    await this.clock.advance(40_000);
    return writes() > before ? [`an operator that came when all was settled wrote ${writes() - before} times`] : [];
  }

  #end(): string {
    const storage = this.world.kube.storage;
    const { status } = this.#job ?? {};
    const left = ["ray.io/rayclusters", "/pods", "/services", "batch/jobs"].flatMap((resource) =>
      storage
        .all(resource)
        // A convenience while the job runs: one that could not be made by its end is not made any more.
        .filter(({ metadata }) => metadata.name !== "demo-head-svc")
        .map(({ kind, metadata }) => `${kind} ${nameless(metadata.name)}`),
    );
    return JSON.stringify({
      phase: this.#job ? (status?.jobDeploymentStatus ?? "") : "gone",
      jobStatus: status?.jobStatus,
      attempt: status?.executionAttempt,
      succeeded: status?.succeeded,
      failed: status?.failed,
      attempts: status?.attempts?.map(({ number, jobStatus, reason }) => [number, jobStatus, reason]),
      conditions: status?.conditions?.map(({ type, status: holds }) => `${type}=${holds}`).sort(),
      left: left.sort(),
      // When all is gone, it is the same whatever came before: no state tells of it.
      submissions: this.#job && this.world.submissions.length - this.#namesakes,
    });
  }

  #describe(): string {
    const job = this.#job;
    const pods = this.world.kube.storage.all("/pods") as unknown as readonly Stored<Pod>[];
    const { jobDeploymentStatus = "new", jobStatus = "", executionAttempt = "-" } = job?.status ?? {};
    const shown = pods.map(({ metadata, status }) => `${metadata.name} ${status?.phase}`).join(", ");
    return `${job ? `${jobDeploymentStatus} ${jobStatus} (attempt ${executionAttempt})` : "no RayJob"}; ${shown}`;
  }

  #tell(who: string, what: () => string): void {
    this.#options.tell?.(this.clock.now(), who, what());
  }
}

const LEASES = "coordination.k8s.io/leases";
const holderOf = (lease: KubeObject | undefined) =>
  (lease as { spec?: { holderIdentity?: string } } | undefined)?.spec?.holderIdentity;

const STRANGERS = { spec: { restartPolicy: "Never", containers: [{ name: "other", image: "other" }] } };

const nameless = (name: string) => name.replace(/-[a-z0-9]{5}(?=-|$)/g, "");

function passInWords({ controller, result, decision, outcome, error }: PassTrace<RayCommand>): string {
  const does = decision?.effects.map((effect) => ("why" in effect ? `${effect.do}: ${effect.why}` : "")).join("; ");
  const failed = outcome?.failures.map((failure) => `${failure.tried}: ${failure.error} (${failure.kind})`).join("; ");
  return [
    `${controller}: ${decision?.summary ?? result}`,
    does && `does [${does}]`,
    outcome && outcome.status !== "unchanged" && `status ${outcome.status}`,
    failed && `NOT DONE ${failed}`,
    error !== undefined && `FAILED ${error}`,
  ]
    .filter(Boolean)
    .join(", ");
}

function changeInWords(type: string, object: KubeObject, old: KubeObject | undefined): string {
  const look = (one: KubeObject | undefined) => {
    const status = (one as { status?: Record<string, unknown> } | undefined)?.status ?? {};
    const words = ["jobDeploymentStatus", "jobStatus", "executionAttempt", "state", "phase", "failed", "reason"]
      .filter((field) => status[field] !== undefined)
      .map((field) => `${field}=${status[field]}`);
    const ready = (status["conditions"] as { type: string; status: string }[] | undefined)
      ?.filter(({ status }) => status === "True")
      .map(({ type }) => type);
    return [...words, ready?.length ? `[${ready.join()}]` : "", one?.metadata.deletionTimestamp ? "leaving" : ""]
      .filter(Boolean)
      .join(" ");
  };
  const now = look(object);
  return `${object.kind} ${object.metadata.name} ${type === "MODIFIED" ? `${look(old)} -> ${now}` : `${type} ${now}`}`;
}
