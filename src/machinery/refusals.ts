/**
 * What the API server refused a controller, as its next decision is shown it.
 *
 * May not: decide whether a user is told; domain/ does. Held in memory only: after a restart the next refusal brings it back.
 */
import type { RefusedWrite } from "../domain/decision.ts";
import { wordsStand } from "../domain/rewording.ts";
import type { Clock } from "./clock.ts";
import type { PassTrace } from "./controller.ts";
import { describe } from "./logger.ts";

type Refusable = Pick<
  PassTrace<{ readonly do: string; readonly why: string }>,
  "key" | "result" | "decision" | "outcome"
>;

/** The writes of a pass that the API server refused, under the reasons their effects announce. */
export function refusedWrites({ decision, outcome }: Refusable): readonly RefusedWrite[] {
  return (outcome?.failures ?? [])
    .filter(({ kind }) => kind === "refused")
    .flatMap(({ tried, error }) => {
      const effect = decision?.effects.find(({ why }) => why === tried);
      if (!effect || !("failureEvent" in effect) || !effect.failureEvent) return [];
      return [{ reason: effect.failureEvent.reason, message: describe(error) }];
    });
}

/** What the API server refuses again and again: once is no news, since it is tried again at once. */
export class RepeatedRefusals {
  readonly #reasons: readonly string[];
  readonly #clock: Clock;
  readonly #last = new Map<
    string,
    {
      readonly writes: readonly RefusedWrite[];
      readonly since: number;
      readonly toldAt: number;
      readonly repeated: boolean;
    }
  >();

  /** `reasons`: of the failure events that count. */
  constructor(reasons: readonly string[], clock: Clock) {
    this.#reasons = reasons;
    this.#clock = clock;
  }

  of(key: string): readonly RefusedWrite[] {
    const last = this.#last.get(key);
    return last?.repeated ? last.writes : [];
  }

  heard(trace: Refusable): void {
    const { key, result, decision, outcome } = trace;
    // A pass that did nothing but tell of it, or ended early, tried nothing.
    const tried = decision && (decision.effects.length > 0 || !decision.status);
    if (result !== "gone" && !(outcome && tried)) return;
    const writes = refusedWrites(trace).filter(({ reason }) => this.#reasons.includes(reason));
    const last = this.#last.get(key);
    const now = this.#clock.now();
    if (writes.length === 0) this.#last.delete(key);
    else if (!last) this.#last.set(key, { writes, since: now, toldAt: now, repeated: false });
    // Words that differ each time (a number of the request, a time) would be a write at each try.
    else if (last.repeated && now < last.toldAt + wordsStand(last.since, last.toldAt)) return;
    else this.#last.set(key, { writes, since: last.since, toldAt: now, repeated: true });
  }
}
