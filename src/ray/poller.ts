/**
 * Asks Ray's dashboards in the background, and remembers what they said.
 *
 * Answers: what Ray last said about an attempt, and when it was asked. Tells the RayJob's controller when an answer
 * changed in a way decisions read, or when a fresh one that it waits for has come.
 * May not: run on a reconcile worker, or let one slow dashboard delay another: a dashboard has one round of questions
 * under way at a time, and rounds of different dashboards know nothing of each other but a bound on their number and rate.
 * Memory only: after a restart every answer is asked for anew.
 * Next: pace.ts for when, dashboard.ts for what counts as an answer.
 */
import type { RayAddress, RayAnswer, RayInterest, RayTarget } from "../domain/rayjob/ray.ts";
import { type Cancel, type Clock, sleep } from "../machinery/clock.ts";
import { RateLimit } from "../machinery/rateLimit.ts";
import type { Dashboard, NodeStates } from "./dashboard.ts";
import { ASK_BY_ID, FIRST_INTERVAL, GAP, GROWTH, jitter, LONGEST, NODES_INTERVAL } from "./pace.ts";

/** Dashboards being asked at one time. One that hangs holds its place until its time-out. */
export const DASHBOARDS_AT_A_TIME = 64;

export interface PollerOptions {
  readonly clock: Clock;
  readonly dashboard: Dashboard;
  /** Called when the RayJob should be looked at again. Must not throw. */
  readonly changed: (target: RayTarget) => void;
  /** For the jitter: operators with the same seed ask at the same times. */
  readonly seed?: string;
  /** Bound on all requests to all dashboards. */
  readonly requestsPerSecond?: number;
  /** DASHBOARDS_AT_A_TIME when absent. */
  readonly concurrency?: number;
  /** For metrics; `seconds` from the round's first request to its last answer. */
  readonly onRound?: (round: { dashboard: string; jobs: number; result: "ok" | "none"; seconds: number }) => void;
}

/** One attempt that somebody wants to know about. */
interface Watched {
  interest: RayInterest;
  answer?: RayAnswer;
  interval: number;
  dueAt: number;
  nudgedAt?: number;
  /** Since when its occasion is known. */
  occasionAt?: number;
}

/** One dashboard and its jobs. */
interface Head {
  readonly address: string;
  /** As the last of its jobs has it. */
  at: RayAddress;
  readonly jobs: Map<string, Watched>;
  busy: boolean;
  rounds: number;
  /** When the last round started. */
  askedAt: number;
  nodes?: { readonly askedAt: number; readonly session: string | undefined; readonly states: NodeStates };
  cancel?: Cancel;
}

export class Poller {
  readonly #options: PollerOptions;
  readonly #limit: RateLimit;
  readonly #heads = new Map<string, Head>();
  /** Which dashboard a RayJob is asked about at, by UID. */
  readonly #placed = new Map<string, Head>();
  /** Heads whose round waits for a place. */
  readonly #ready: Head[] = [];
  #running = 0;
  #stopped = false;

  constructor(options: PollerOptions) {
    this.#options = options;
    const rate = options.requestsPerSecond ?? 200;
    this.#limit = new RateLimit(options.clock, rate, rate);
  }

  /** Asks about this target from now on, instead of whatever was asked for the same RayJob before. Cheap to repeat. */
  watch(interest: RayInterest): void {
    if (this.#stopped) return;
    const { target } = interest;
    const known = this.#placed.get(target.uid)?.jobs.get(target.uid);
    if (known && sameTarget(known.interest.target, target)) {
      const isNews = interest.occasion !== undefined && interest.occasion !== known.interest.occasion;
      known.interest = interest;
      this.#placed.get(target.uid)!.at = target;
      known.interval = Math.min(known.interval, LONGEST[interest.pace]);
      known.dueAt = Math.min(known.dueAt, this.#freshAt(known) ?? this.#options.clock.now() + known.interval);
      if (isNews) {
        known.interval = FIRST_INTERVAL;
        known.occasionAt = this.#options.clock.now();
        known.dueAt = known.occasionAt;
      }
      this.#schedule(this.#placed.get(target.uid)!);
      return;
    }
    this.forget(target.uid);
    const head = this.#head(target);
    const now = this.#options.clock.now();
    head.jobs.set(target.uid, { interest, interval: FIRST_INTERVAL, dueAt: now, occasionAt: now });
    this.#placed.set(target.uid, head);
    this.#schedule(head);
  }

  /** What Ray last said about this attempt; another attempt's answer is none. */
  answer(uid: string, attempt: number): RayAnswer | undefined {
    const watched = this.#placed.get(uid)?.jobs.get(uid);
    return watched?.interest.target.attempt === attempt ? watched.answer : undefined;
  }

  /** Something happened that Ray may have an answer to: ask soon. Does nothing for a RayJob that is not watched. */
  nudge(uid: string): void {
    const head = this.#placed.get(uid);
    const watched = head?.jobs.get(uid);
    if (!head || !watched) return;
    watched.interval = FIRST_INTERVAL;
    watched.nudgedAt = this.#options.clock.now();
    watched.dueAt = Math.min(watched.dueAt, watched.nudgedAt);
    this.#schedule(head);
  }

  /** Stops asking and drops the answer. */
  forget(uid: string): void {
    const head = this.#placed.get(uid);
    if (!head) return;
    this.#placed.delete(uid);
    head.jobs.delete(uid);
    if (head.jobs.size > 0) return;
    head.cancel?.();
    this.#heads.delete(head.address);
  }

  /** Asks nothing more; questions under way are answered to nobody. */
  stop(): void {
    this.#stopped = true;
    for (const uid of [...this.#placed.keys()]) this.forget(uid);
  }

  #head(at: RayAddress): Head {
    const { dashboard: address } = at;
    let head = this.#heads.get(address);
    if (head) head.at = at;
    else {
      head = { address, at, jobs: new Map(), busy: false, rounds: 0, askedAt: Number.NEGATIVE_INFINITY };
      this.#heads.set(address, head);
    }
    return head;
  }

  /** When an answer that somebody waits for may be asked for; undefined when nobody waits. */
  #freshAt({ interest, answer }: Watched): number | undefined {
    const { notBefore } = interest;
    if (notBefore === undefined || (answer && answer.requestedAt >= notBefore)) return undefined;
    return Math.max(notBefore, this.#options.clock.now());
  }

  #schedule(head: Head): void {
    if (head.busy || this.#stopped) return;
    head.cancel?.();
    head.cancel = undefined;
    let due = Number.POSITIVE_INFINITY;
    for (const watched of head.jobs.values()) if (watched.interest.pace !== "off") due = Math.min(due, watched.dueAt);
    if (due === Number.POSITIVE_INFINITY) return;
    const { clock } = this.#options;
    head.cancel = clock.after(Math.max(due, head.askedAt + GAP) - clock.now(), () => {
      head.busy = true;
      this.#ready.push(head);
      this.#start();
    });
  }

  #start(): void {
    while (this.#running < (this.#options.concurrency ?? DASHBOARDS_AT_A_TIME)) {
      const head = this.#ready.shift();
      if (!head) return;
      this.#running++;
      // A round never rejects: what goes wrong in it is an answer of kind "none".
      void this.#round(head).finally(() => {
        this.#running--;
        head.busy = false;
        if (this.#heads.get(head.address) === head) this.#schedule(head);
        this.#start();
      });
    }
  }

  /** Resolves when that many requests may go out. */
  async #room(requests: number): Promise<void> {
    let wait = 0;
    for (let request = 0; request < requests; request++) wait = this.#limit.reserve();
    if (wait > 0) await sleep(this.#options.clock, wait);
  }

  async #round(head: Head): Promise<void> {
    const { clock, dashboard, onRound } = this.#options;
    const asked = this.#chosen(head);
    if (asked.length === 0) return;
    const byId = asked.length <= ASK_BY_ID;
    await this.#room(byId ? asked.length + 1 : 2);
    const requestedAt = clock.now();
    head.askedAt = requestedAt;
    head.rounds++;

    const jobs = await (byId ? this.#askEach(head.at, asked) : this.#askAll(head.at, asked));
    const heard = [...jobs.values()].some((job) => job.kind !== "none");
    // After the jobs, so that "not found" and this session belong together.
    const session = heard ? await dashboard.session(head.at) : undefined;
    await this.#lookAtNodes(head, asked, jobs, session, requestedAt);

    for (const watched of asked) {
      const job = jobs.get(watched);
      if (!job) continue;
      const { interest, occasionAt = 0 } = watched;
      const occasion = requestedAt >= occasionAt ? interest.occasion : undefined;
      const answer = { requestedAt, job, session, driverNode: driverNode(head, job, session) };
      this.#heard(head, watched, { ...answer, ...(occasion && { occasion }) });
    }
    onRound?.({
      dashboard: head.address,
      jobs: asked.length,
      result: heard ? "ok" : "none",
      seconds: (clock.now() - requestedAt) / 1000,
    });
  }

  /** The jobs of this round: those that are due or half-way there; all of them where a list serves them anyway. */
  #chosen(head: Head): Watched[] {
    const now = this.#options.clock.now();
    const live = [...head.jobs.values()].filter(({ interest }) => interest.pace !== "off");
    const due = live.filter((watched) => watched.dueAt - watched.interval / 2 <= now);
    return due.length > ASK_BY_ID ? live : due;
  }

  async #askEach(at: RayAddress, asked: readonly Watched[]): Promise<Map<Watched, RayAnswer["job"]>> {
    return new Map(
      await Promise.all(
        asked.map(async (watched) => {
          const answer = await this.#options.dashboard.job(at, watched.interest.target.jobId);
          return [watched, answer] as const;
        }),
      ),
    );
  }

  async #askAll(at: RayAddress, asked: readonly Watched[]): Promise<Map<Watched, RayAnswer["job"]>> {
    const listed = await this.#options.dashboard.jobs(at);
    const answers = new Map<Watched, RayAnswer["job"]>();
    const missing: Watched[] = [];
    for (const watched of asked) {
      if (typeof listed === "string") {
        answers.set(watched, { kind: "none", error: listed });
        continue;
      }
      const info = listed.get(watched.interest.target.jobId);
      if (info) answers.set(watched, { kind: "known", info });
      else missing.push(watched);
    }
    // The list alone never says "not found". A few at a time, so that the head is not swamped.
    for (let start = 0; start < missing.length; start += ASK_BY_ID) {
      const some = missing.slice(start, start + ASK_BY_ID);
      await this.#room(some.length);
      for (const [watched, answer] of await this.#askEach(at, some)) answers.set(watched, answer);
    }
    return answers;
  }

  /** Learns the nodes' states when a driver's node is not known to have been alive a short while ago. */
  async #lookAtNodes(
    head: Head,
    asked: readonly Watched[],
    jobs: ReadonlyMap<Watched, RayAnswer["job"]>,
    session: string | undefined,
    requestedAt: number,
  ): Promise<void> {
    const nodes = head.nodes;
    const recent = nodes && nodes.session === session && requestedAt - nodes.askedAt < NODES_INTERVAL;
    const needed = asked.some((watched) => {
      const job = jobs.get(watched);
      const node = job?.kind === "known" && job.info.status === "RUNNING" ? job.info.driverNodeId : undefined;
      if (node === undefined) return false;
      const waiting = this.#freshAt(watched) !== undefined;
      return !recent || waiting || nodes.states.get(node) !== "ALIVE";
    });
    if (!needed) return;
    await this.#room(1);
    const askedAt = this.#options.clock.now();
    const states = await this.#options.dashboard.nodes(head.at);
    head.nodes = states && { askedAt, session, states };
  }

  #heard(head: Head, watched: Watched, answer: RayAnswer): void {
    const { uid } = watched.interest.target;
    // Forgotten, or replaced by another attempt, while the question was under way.
    if (head.jobs.get(uid) !== watched) return;
    const { clock, changed, seed = "" } = this.#options;
    const isNew = digest(watched.answer) !== digest(answer);
    const { notBefore } = watched.interest;
    const wasStale = notBefore !== undefined && !(watched.answer && watched.answer.requestedAt >= notBefore);
    watched.answer = answer;
    const longest = LONGEST[watched.interest.pace];
    watched.interval = isNew ? FIRST_INTERVAL : Math.min(watched.interval * GROWTH, longest);
    watched.dueAt = clock.now() + watched.interval * jitter(`${seed}/${head.address}/${uid}/${head.rounds}`);
    watched.dueAt = Math.min(watched.dueAt, this.#freshAt(watched) ?? watched.dueAt);
    // The nudge, or the occasion, came while these questions were under way, so they may have been too early.
    const tooEarly = watched.nudgedAt !== undefined && watched.nudgedAt >= answer.requestedAt;
    if (tooEarly || watched.interest.occasion !== answer.occasion) watched.dueAt = clock.now();
    watched.nudgedAt = undefined;
    if (isNew || (wasStale && answer.requestedAt >= notBefore)) changed(watched.interest.target);
  }
}

function driverNode(head: Head, job: RayAnswer["job"], session: string | undefined): RayAnswer["driverNode"] {
  if (job.kind !== "known" || job.info.driverNodeId === undefined) return "UNKNOWN";
  if (!head.nodes || head.nodes.session !== session) return "UNKNOWN";
  return head.nodes.states.get(job.info.driverNodeId) ?? "MISSING";
}

/** What decisions read of an answer. Not when it was asked for, nor in which words there was none: those change each time. */
function digest(answer: RayAnswer | undefined): string {
  if (!answer) return "";
  const job = answer.job.kind === "none" ? { kind: "none" } : answer.job;
  return JSON.stringify([job, answer.session, answer.driverNode, answer.occasion]);
}

const sameTarget = (a: RayTarget, b: RayTarget): boolean =>
  a.uid === b.uid && a.attempt === b.attempt && a.jobId === b.jobId && a.dashboard === b.dashboard;
