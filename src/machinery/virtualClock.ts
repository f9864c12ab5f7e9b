/**
 * A clock that stands still until it is told to move: for tests and the simulator.
 *
 * Timers fire in the order of their times (then of their making), one at a time, and everything a timer set off
 * through promises has run before the next one fires.
 */
import type { Cancel, Clock } from "./clock.ts";

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

export class VirtualClock implements Clock {
  #now: number;
  #order = 0;
  readonly #timers = new Set<Timer>();

  constructor(start: number = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  after(milliseconds: number, run: () => void): Cancel {
    // Whole milliseconds, as a real clock tells them.
    const timer = { at: Math.ceil(this.#now + Math.max(milliseconds, 0)), order: this.#order++, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** When the next timer is due (milliseconds since the epoch), or undefined when none is set. */
  next(): number | undefined {
    return this.#first()?.at;
  }

  /** Fires the next timer, moving time to it. False when there is none. */
  async step(): Promise<boolean> {
    const timer = this.#first();
    if (!timer) return false;
    this.#now = Math.max(this.#now, timer.at);
    this.#timers.delete(timer);
    timer.run();
    await settle();
    return true;
  }

  /** Moves time on by `milliseconds`, firing every timer that falls due on the way. */
  async advance(milliseconds: number): Promise<void> {
    const until = this.#now + milliseconds;
    await settle();
    for (let next = this.next(); next !== undefined && next <= until; next = this.next()) await this.step();
    this.#now = until;
  }

  #first(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (!first || timer.at < first.at || (timer.at === first.at && timer.order < first.order)) first = timer;
    }
    return first;
  }
}

/**
 * Lets everything that waits on a resolved promise run, however long the chain: setImmediate comes after all microtasks.
 * Twice, because a stream's machinery may hand over through one macrotask of its own.
 */
export async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
}
