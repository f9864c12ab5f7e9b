/**
 * A bound on a rate: so many requests a second, and some saved up for a burst. First come, first served.
 */
import type { Clock } from "../machinery/clock.ts";

export class TokenBucket {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #filledAt: number;
  readonly #waiting: { count: number; go: () => void }[] = [];
  #timerSet = false;

  constructor(clock: Clock, perSecond: number, burst: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
    this.#filledAt = clock.now();
  }

  /** Resolves when `count` requests may go out. More than the burst at once is let through as a full burst. */
  take(count: number): Promise<void> {
    return new Promise((go) => {
      this.#waiting.push({ count: Math.min(count, this.#burst), go });
      this.#serve();
    });
  }

  #serve(): void {
    const now = this.#clock.now();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#filledAt) / 1000) * this.#perSecond);
    this.#filledAt = now;
    // A whisker of tolerance: the sum of many small refills may fall short of a whole token by rounding.
    while (this.#waiting[0] && this.#tokens + 1e-6 >= this.#waiting[0].count) {
      const { count, go } = this.#waiting.shift()!;
      this.#tokens -= count;
      go();
    }
    const next = this.#waiting[0];
    if (!next || this.#timerSet) return;
    this.#timerSet = true;
    this.#clock.after(Math.ceil(((next.count - this.#tokens) / this.#perSecond) * 1000), () => {
      this.#timerSet = false;
      this.#serve();
    });
  }
}
