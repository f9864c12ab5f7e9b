/**
 * Which keys to look at, and when.
 *
 * A key is in here once, however often it is added, and never with two workers at a time: added while it is worked on,
 * it comes again afterwards. Failing keys come back with growing delays of their own, so one that fails for ever does
 * not hold up the others.
 */
import type { Cancel, Clock } from "./clock.ts";
import { type Metrics, noMetrics } from "./metrics.ts";

const FIRST_DELAY = 5;
/** controller-runtime goes up to 1000 s. A minute is bearable for whoever waits for his job, and light enough for the server. */
const LONGEST_DELAY = 60_000;

export class Queue {
  readonly #clock: Clock;
  readonly #labels: { readonly name: string; readonly controller: string };
  readonly #metrics: Metrics;
  /** Ready to be taken, in order, each with the time it became so. */
  readonly #ready = new Map<string, number>();
  /** Taken, each with the time it was. */
  readonly #working = new Map<string, number>();
  /** Added while worked on. */
  readonly #again = new Set<string>();
  readonly #later = new Map<string, { readonly at: number; readonly cancel: Cancel }>();
  readonly #failures = new Map<string, number>();
  readonly #waiting: ((key: string | undefined) => void)[] = [];
  #closed = false;

  constructor(options: { readonly clock: Clock; readonly name?: string; readonly metrics?: Metrics }) {
    this.#clock = options.clock;
    const { name = "" } = options;
    // controller-runtime calls a queue as its controller.
    this.#labels = { name, controller: name };
    this.#metrics = options.metrics ?? noMetrics;
    this.#metrics.count("workqueue_adds_total", this.#labels, 0);
    this.#metrics.count("workqueue_retries_total", this.#labels, 0);
    this.#showDepth();
    const since = () => [...this.#working.values()].map((at) => (this.#clock.now() - at) / 1000);
    this.#metrics.computed("workqueue_unfinished_work_seconds", this.#labels, () => since().reduce((a, b) => a + b, 0));
    this.#metrics.computed("workqueue_longest_running_processor_seconds", this.#labels, () => Math.max(0, ...since()));
  }

  /** Makes `key` ready in `delay` milliseconds; an earlier time already set stands, a later one is replaced. */
  add(key: string, delay = 0): void {
    if (this.#closed) return;
    const at = this.#clock.now() + delay;
    const planned = this.#later.get(key);
    if (delay <= 0) {
      this.#unplan(key);
      this.#makeReady(key);
    } else if (!this.#ready.has(key) && !this.#again.has(key) && !(planned && planned.at <= at)) {
      planned?.cancel();
      const cancel = this.#clock.after(delay, () => {
        this.#later.delete(key);
        this.#makeReady(key);
      });
      this.#later.set(key, { at, cancel });
    }
  }

  /** Adds `key` after its own next back-off delay, or `atLeast` milliseconds when that is longer. Returns the delay. */
  retry(key: string, atLeast = 0): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    this.#metrics.count("workqueue_retries_total", this.#labels);
    const delay = Math.max(atLeast, Math.min(FIRST_DELAY * 2 ** Math.min(failures, 30), LONGEST_DELAY));
    this.add(key, delay);
    return delay;
  }

  /** The next failure of `key` starts from the shortest delay again. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** The next key to work on, waiting for one; undefined when the queue is closed. Call `done` with it afterwards. */
  next(): Promise<string | undefined> {
    if (this.#closed) return Promise.resolve(undefined);
    const first = this.#ready.keys().next();
    if (!first.done) return Promise.resolve(this.#take(first.value));
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  isWorkedOn(key: string): boolean {
    return this.#working.has(key);
  }

  done(key: string): void {
    const since = this.#working.get(key);
    this.#working.delete(key);
    if (since !== undefined) {
      const took = (this.#clock.now() - since) / 1000;
      this.#metrics.observe("workqueue_work_duration_seconds", this.#labels, took);
    }
    if (this.#again.delete(key)) this.#makeReady(key);
  }

  /** Drops everything; workers that wait get undefined. */
  close(): void {
    this.#closed = true;
    for (const { cancel } of this.#later.values()) cancel();
    this.#later.clear();
    this.#ready.clear();
    this.#again.clear();
    for (const give of this.#waiting.splice(0)) give(undefined);
  }

  /** Keys that are taken. */
  get underWay(): number {
    return this.#working.size;
  }

  /** Keys that are ready and not taken. */
  get depth(): number {
    return this.#ready.size;
  }

  #makeReady(key: string): void {
    if (this.#closed || this.#ready.has(key)) return;
    this.#metrics.count("workqueue_adds_total", this.#labels);
    if (this.#working.has(key)) {
      this.#again.add(key);
      return;
    }
    this.#ready.set(key, this.#clock.now());
    const give = this.#waiting.shift();
    if (give) give(this.#take(key));
    else this.#showDepth();
  }

  #take(key: string): string {
    const since = this.#ready.get(key)!;
    this.#ready.delete(key);
    // Whoever comes to look now need not come again for what was planned; the pass plans anew.
    this.#unplan(key);
    this.#working.set(key, this.#clock.now());
    this.#metrics.observe("workqueue_queue_duration_seconds", this.#labels, (this.#clock.now() - since) / 1000);
    this.#showDepth();
    return key;
  }

  #unplan(key: string): void {
    this.#later.get(key)?.cancel();
    this.#later.delete(key);
  }

  #showDepth(): void {
    this.#metrics.gauge("workqueue_depth", this.#labels, this.#ready.size);
  }
}
