/**
 * A token bucket: at most `burst` at once and `perSecond` in the long run, in the order of asking.
 */
import type { Clock } from "./clock.ts";

export class RateLimit {
  readonly #clock: Clock;
  readonly #perSecond: number;
  readonly #burst: number;
  #tokens: number;
  #filledAt: number;

  constructor(clock: Clock, perSecond: number, burst: number) {
    this.#clock = clock;
    this.#perSecond = perSecond;
    this.#burst = burst;
    this.#tokens = burst;
    this.#filledAt = clock.now();
  }

  /** Takes a token at once, or says that there is none. */
  tryTake(): boolean {
    this.#fill();
    if (this.#tokens < 1) return false;
    this.#tokens--;
    return true;
  }

  /** Takes the next token, be it one that is yet to come: the milliseconds to wait until it may be used. */
  reserve(): number {
    this.#fill();
    this.#tokens--;
    return this.#tokens >= 0 ? 0 : Math.ceil((-this.#tokens / this.#perSecond) * 1000);
  }

  #fill(): void {
    const now = this.#clock.now();
    // A clock set back adds nothing, and must not stop the bucket from filling until it has caught up.
    const passed = Math.max(0, now - this.#filledAt);
    this.#filledAt = now;
    this.#tokens = Math.min(this.#burst, this.#tokens + (passed / 1000) * this.#perSecond);
  }
}
