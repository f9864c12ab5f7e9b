/**
 * Whether every part that must go on for ever still does.
 *
 * A part says by when it will have moved on; one that is overdue is stuck, and only a new process helps. A server that
 * is away makes no part overdue: each try is a move.
 * May not: run on the wall clock, which may be set; or keep timers, which a process that is stuck would not see fire.
 */
export class Vitals {
  readonly #now: () => number;
  readonly #due = new Map<string, number>();

  /** `now`: milliseconds that only ever grow. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** The part is alive, and will say so again within so many milliseconds. */
  beat(part: string, within: number): void {
    this.#due.set(part, this.#now() + within);
  }

  /** The part has ended as it should. */
  end(part: string): void {
    this.#due.delete(part);
  }

  /** The parts that are stuck, each with the seconds by which it is overdue. */
  overdue(): readonly { readonly part: string; readonly seconds: number }[] {
    const now = this.#now();
    return [...this.#due]
      .filter(([, due]) => due < now)
      .map(([part, due]) => ({ part, seconds: Math.round((now - due) / 1000) }));
  }
}
