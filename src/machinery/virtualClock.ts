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
  /** The next one last. */
  readonly #timers: Timer[] = [];

  constructor(start: number = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  after(milliseconds: number, run: () => void): Cancel {
    // Whole milliseconds, as a real clock tells them.
    const timer = { at: Math.ceil(this.#now + Math.max(milliseconds, 0)), order: this.#order++, run };
    this.#timers.splice(this.#place(timer), 0, timer);
    return () => {
      const place = this.#place(timer);
      if (this.#timers[place] === timer) this.#timers.splice(place, 1);
    };
  }

  /** When the next timer is due (milliseconds since the epoch), or undefined when none is set. */
  next(): number | undefined {
    return this.#timers.at(-1)?.at;
  }

  /** Fires the next timer, moving time to it. False when there is none. */
  async step(): Promise<boolean> {
    const timer = this.#timers.pop();
    if (!timer) return false;
    this.#now = Math.max(this.#now, timer.at);
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

  /** Where a timer is, or is to be put: after all that fire later. */
  #place({ at, order }: Timer): number {
    let [from, to] = [0, this.#timers.length];
    while (from < to) {
      const middle = (from + to) >> 1;
      const other = this.#timers[middle]!;
      if (other.at > at || (other.at === at && other.order > order)) from = middle + 1;
      else to = middle;
    }
    return from;
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
