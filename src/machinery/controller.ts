/**
 * The reconcile loop: take a key, wait until the caches have seen our own writes, observe, decide, perform, plan the
 * next look.
 *
 * May not: know what it is about, or end because a pass failed.
 * Next: perform.ts carries decisions out; wiring.ts says which changes enqueue which keys.
 */
import type { KubeObject, Stored } from "../api/object.ts";
import { type Decision, type LiveAnswers, type LiveQuestion, questionKey } from "../domain/decision.ts";
import type { Clock } from "./clock.ts";
import type { Events } from "./events.ts";
import { type Freshness, selector } from "./freshness.ts";
import type { KubeClient } from "./kube/client.ts";
import { isForbidden, isNotFound, KubeError } from "./kube/errors.ts";
import { byKind } from "./kube/resources.ts";
import { describe, type Logger, silent } from "./logger.ts";
import { type Metrics, noMetrics } from "./metrics.ts";
import { type Adoptable, adoptByOwner, type Outcome, perform } from "./perform.ts";
import { Queue } from "./queue.ts";
import type { Vitals } from "./vitals.ts";

export interface ControllerOptions<Observed, External extends { do: string; why: string }> {
  readonly name: string;
  readonly clock: Clock;
  readonly client: KubeClient;
  readonly freshness: Freshness;
  readonly events: Events;
  /** Passes at a time; 1 when absent. */
  readonly workers?: number;
  /** All that is known about the object `key` (`namespace/name`) names; undefined when there is none. */
  observe(key: string, live: LiveAnswers): Observed | undefined;
  decide(observed: Observed, now: number): Decision<External>;
  /** The object decided about: owner of the status and of the events. */
  primary(observed: Observed): Stored<KubeObject>;
  /** Hands over what is no write to the API server; must not block. */
  external?(command: External, observed: Observed): void;
  /** Absent: adopts what has the same controller UID and is not being deleted. */
  readonly adoptable?: Adoptable;
  /** Asked before `external`; the client asks for its own writes. */
  readonly mayWrite?: () => boolean;
  /** For the simulator, `explain`, and tests. */
  onPass?(trace: PassTrace<External>): void;
  readonly log?: Logger;
  readonly metrics?: Metrics;
  readonly vitals?: Vitals;
}

export interface PassTrace<External> {
  readonly controller: string;
  readonly key: string;
  readonly startedAt: number;
  /**
   * `gone`: there is no such object. `waiting`: the caches have not seen our own writes. `done`. `again`: something was
   * refused, overtaken or left unknown. `failed`: an exception, or a question that got no answer.
   */
  readonly result: "gone" | "waiting" | "done" | "again" | "failed";
  /** Times decided; more than one when live questions were asked. */
  readonly rounds: number;
  readonly decision?: Decision<External>;
  readonly outcome?: Outcome;
  readonly error?: unknown;
}

const READ_REFUSED = { type: "Warning", reason: "FailedToRead", action: "Read" } as const;

/** A decision that goes on asking is a mistake; it must not ask the server for ever. */
const MOST_ROUNDS = 5;
/** Milliseconds for which warnings that were read are good enough, and for which they are not asked for after a failure. */
const WARNINGS_KEPT = 20_000;
const WARNINGS_MISSED = 300_000;
const WARNINGS_TIMEOUT = 5_000;
/** A decision that wants to be woken at once, always, must not become a busy loop. */
const SOONEST = 100;
const SOONEST_AFTER_FAILURE = 1_000;
/** Timers do not notice a wall clock that is set forward; looking this often bounds how late a deadline can be. */
const LATEST = 10 * 60_000;
/** A pass may be long, but no step of it: every request has a time-out and few repetitions. */
const LONGEST_STEP = 10 * 60_000;

export class Controller<Observed, External extends { do: string; why: string } = never> {
  readonly #options: ControllerOptions<Observed, External>;
  readonly #queue: Queue;
  readonly #log: Logger;
  readonly #metrics: Metrics;
  /** For what nothing may wait for. */
  readonly #hurried: KubeClient;
  /** Warnings read lately. A hint: lost with the process, and asked for again. */
  readonly #heard = new Map<string, { readonly until: number; readonly said: readonly KubeObject[] }>();

  constructor(options: ControllerOptions<Observed, External>) {
    this.#options = options;
    this.#hurried = options.client.with({ readTimeout: WARNINGS_TIMEOUT });
    this.#log = options.log ?? silent;
    this.#metrics = options.metrics ?? noMetrics;
    this.#queue = new Queue({ clock: options.clock, name: options.name, metrics: options.metrics });
    const { name: controller, workers = 1 } = options;
    for (const result of RESULTS) this.#metrics.count("controller_runtime_reconcile_total", { controller, result }, 0);
    this.#metrics.count("controller_runtime_reconcile_errors_total", { controller }, 0);
    this.#metrics.gauge("controller_runtime_max_concurrent_reconciles", { controller }, workers);
    this.#metrics.computed("controller_runtime_active_workers", { controller }, () => this.#queue.underWay);
  }

  /** Looks at `key` (`namespace/name`) soon, or `delay` milliseconds from now at the latest. */
  enqueue(key: string, delay = 0): void {
    this.#queue.add(key, delay);
  }

  /** Whether a pass over `key` is under way: it may go by what was true when it began. */
  isWorkingOn(key: string): boolean {
    return this.#queue.isWorkedOn(key);
  }

  /** Works until `signal` is aborted; resolves when the passes under way have ended. */
  async run(signal: AbortSignal): Promise<void> {
    const close = () => this.#queue.close();
    if (signal.aborted) close();
    else signal.addEventListener("abort", close, { once: true });
    await Promise.all(Array.from({ length: this.#options.workers ?? 1 }, () => this.#work()));
  }

  async #work(): Promise<void> {
    for (let key = await this.#queue.next(); key !== undefined; key = await this.#queue.next()) {
      const { clock, name } = this.#options;
      const startedAt = clock.now();
      let trace: Omit<PassTrace<External>, "controller" | "key" | "startedAt">;
      try {
        trace = await this.#pass(key);
      } catch (error) {
        const atLeast = error instanceof KubeError ? error.retryAfter : undefined;
        const delay = this.#queue.retry(key, atLeast);
        this.#log.error({ controller: name, key, err: error, delay }, `a pass failed: ${describe(error)}`);
        trace = { result: "failed", rounds: 0, error };
      } finally {
        this.#options.vitals?.end(`pass ${name} ${key}`);
        this.#queue.done(key);
      }
      this.#report({ controller: name, key, startedAt, ...trace });
    }
  }

  async #pass(key: string): Promise<Omit<PassTrace<External>, "controller" | "key" | "startedAt">> {
    const { name, clock, client, freshness, events, observe, decide, primary, external } = this.#options;
    // Two controllers may share one freshness; their keys are of different things.
    const scoped = `${name} ${key}`;
    const alive = () => this.#options.vitals?.beat(`pass ${scoped}`, LONGEST_STEP);
    alive();
    const fresh = await freshness.check(scoped, () => this.#queue.add(key));
    if (fresh !== "fresh") {
      this.#queue.add(key, fresh);
      return { result: "waiting", rounds: 0 };
    }

    const answers = new Map<string, readonly KubeObject[]>();
    for (let rounds = 1; rounds <= MOST_ROUNDS; rounds++) {
      const observed = observe(key, answers);
      if (observed === undefined) {
        this.#queue.forget(key);
        return { result: "gone", rounds };
      }
      const decision = decide(observed, clock.now());
      if (decision.ask?.length) {
        for (const question of decision.ask) {
          alive();
          try {
            answers.set(questionKey(question), await this.#ask(question));
          } catch (error) {
            // Nothing goes on until somebody gives the right; without this event the object would not say why.
            if (isForbidden(error)) events.record(primary(observed), { ...READ_REFUSED, note: describe(error) });
            throw error;
          }
        }
        continue;
      }
      const tools = {
        client,
        freshness,
        events,
        adoptable: this.#options.adoptable ?? adoptByOwner(),
        mayWrite: this.#options.mayWrite,
        alive,
      };
      const outcome = await perform(decision, primary(observed), scoped, tools, (command) => {
        if (!external) throw new Error(`${name} has nobody to hand "${command.do}" to`);
        external(command, observed);
      });
      const result = this.#planNext(key, decision, outcome);
      return { result, rounds, decision, outcome };
    }
    throw new Error(`the decision still asks live questions after ${MOST_ROUNDS} rounds`);
  }

  #planNext(key: string, decision: Decision<External>, outcome: Outcome): "done" | "again" {
    const { clock, name } = this.#options;
    const wakeIn = decision.wakeAt === undefined ? undefined : Math.min(decision.wakeAt - clock.now(), LATEST);
    const acted = decision.effects.length > 0 || outcome.status === "written";
    this.#log[acted ? "info" : "debug"]({ controller: name, key, writes: outcome.writes }, decision.summary);
    if (outcome.failures.length === 0) {
      this.#queue.forget(key);
      if (wakeIn !== undefined) this.#queue.add(key, Math.max(wakeIn, SOONEST));
      return "done";
    }
    const asked = outcome.failures.map(({ error }) => (error instanceof KubeError ? (error.retryAfter ?? 0) : 0));
    const delay = this.#queue.retry(key, Math.max(...asked));
    // A deadline that falls within the back-off is still met.
    if (wakeIn !== undefined) this.#queue.add(key, Math.max(wakeIn, SOONEST_AFTER_FAILURE));
    for (const { tried, kind, error } of outcome.failures) {
      const level = kind === "again" ? "debug" : "warn";
      this.#log[level](
        { controller: name, key, tried, kind, error: describe(error), delay },
        "not done; looking again",
      );
    }
    return "again";
  }

  async #ask(question: LiveQuestion): Promise<readonly KubeObject[]> {
    const { client } = this.#options;
    const type = byKind(question.kind);
    if (question.ask === "list") {
      const { namespace, labels } = question;
      return (await client.listAll(type, { namespace, labelSelector: selector(labels), metadataOnly: true })).items;
    }
    if (question.ask === "warnings") return this.#warnings(question.namespace, question.reason);
    if (question.ask === "said") return this.#said(question.namespace, question.pod);
    try {
      const metadataOnly = question.kind === "Secret";
      return [await client.get(type, question.namespace, question.name, { metadataOnly })];
    } catch (error) {
      if (isNotFound(error)) return [];
      throw error;
    }
  }

  /**
   * A cluster of a thousand Pods that start is looked at a thousand times; its namespace's warnings are not. Events may
   * be kept in a store of their own, which may be slow or down: that holds up nothing here.
   */
  async #warnings(namespace: string, reason: string): Promise<readonly KubeObject[]> {
    const { clock, name } = this.#options;
    for (const [key, { until }] of this.#heard) if (clock.now() >= until) this.#heard.delete(key);
    const key = `${namespace} ${reason}`;
    const known = this.#heard.get(key);
    if (known) return known.said;
    const fieldSelector = `reason=${reason},type=Warning`;
    try {
      const said = (await this.#hurried.listAll(byKind("Event"), { namespace, fieldSelector })).items;
      this.#heard.set(key, { until: clock.now() + WARNINGS_KEPT, said });
      return said;
    } catch (error) {
      this.#log.debug({ controller: name, namespace, reason, error: describe(error) }, "warnings cannot be read");
      this.#heard.set(key, { until: clock.now() + WARNINGS_MISSED, said: [] });
      return [];
    }
  }

  /** Something irreversible depends on it: a store of events that is down is asked again. */
  async #said(namespace: string, pod: string): Promise<readonly KubeObject[]> {
    const fieldSelector = `regarding.kind=Pod,regarding.name=${pod}`;
    try {
      return (await this.#hurried.listAll(byKind("Event"), { namespace, fieldSelector })).items;
    } catch (error) {
      if (isForbidden(error) || isNotFound(error)) return [];
      throw error;
    }
  }

  #report(trace: PassTrace<External>): void {
    const { clock, onPass } = this.#options;
    const { controller, key } = trace;
    const result = resultOf(trace);
    this.#metrics.count("controller_runtime_reconcile_total", { controller, result });
    this.#metrics.observe(
      "controller_runtime_reconcile_time_seconds",
      { controller },
      (clock.now() - trace.startedAt) / 1000,
    );
    if (result === "error") this.#metrics.count("controller_runtime_reconcile_errors_total", { controller });
    try {
      onPass?.(trace);
    } catch (error) {
      this.#log.error({ controller, key, err: error }, "a listener of passes failed");
    }
  }
}

/** As controller-runtime counts them. */
const RESULTS = ["success", "requeue_after", "requeue", "error"] as const;

function resultOf({ result, decision, outcome }: PassTrace<unknown>): (typeof RESULTS)[number] {
  switch (result) {
    case "failed":
      return "error";
    case "again":
      return outcome?.failures.every(({ kind }) => kind === "again") ? "requeue" : "error";
    case "waiting":
      return "requeue_after";
    case "done":
    case "gone":
      return decision?.wakeAt === undefined ? "success" : "requeue_after";
  }
}
