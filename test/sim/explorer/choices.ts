/**
 * Choice points and schedules: the one interface through which anything in an explored world goes wrong.
 *
 * A life asks at each of its choice points what happens there. Points are numbered as they are met; a schedule names the
 * few at which something other than the usual happens. As everything else is determined, a schedule replays exactly, and
 * fits into one word: its seed.
 */

import type { Laxity, Tail } from "./future.ts";

/** Who may do something at a point. */
export type PointKind =
  /** A write of the operator to the API server, a read, an event it announces. */
  | "write"
  | "read"
  | "event"
  /** Its lease is read, taken, renewed or given back. */
  | "lease"
  /** A line of one of its watches. */
  | "watch"
  /** A question to Ray, a command to Ray. */
  | "ask"
  | "command"
  /** Kueue looks at the RayJob, or writes to it. */
  | "kueue"
  /** The world is in a new state: users, kubelets and other operators may act. */
  | "state";

export type Point = {
  readonly kind: PointKind;
  /** In words, for the timeline. */
  readonly what: () => string;
  /** What may happen instead of the usual. */
  readonly choices: readonly string[];
  /**
   * The last state, and every point since then: the same in all lives that may be taken for one another here. Absent
   * while a fault is under way, or where life has not gone on since.
   */
  readonly situation: string | undefined;
} & Standing;

export interface Standing {
  /** What is still to come. */
  readonly tail: Tail;
  readonly laxity: Laxity;
}

export const USUAL = "usual";

export interface Deviation {
  readonly at: number;
  readonly choice: string;
}

export interface Schedule {
  readonly lifecycle: string;
  /** In the order of their points. */
  readonly deviations: readonly Deviation[];
}

/** The schedule in one word that a shell takes as it is: `success@12=timeout-done+40=crash-after`. */
export const seedOf = ({ lifecycle, deviations }: Schedule): string =>
  deviations.length === 0 ? lifecycle : `${lifecycle}@${deviations.map((d) => `${d.at}=${d.choice}`).join("+")}`;

/** Throws when the text is no seed. */
export function scheduleOf(seed: string): Schedule {
  const [, lifecycle, rest] = /^([\w-]+)(?:@(.+))?$/.exec(seed) ?? [];
  if (lifecycle === undefined) throw new Error(`"${seed}" is no seed`);
  const deviations = (rest?.split("+") ?? []).map((part) => {
    const [, at, choice] = /^(\d+)=([\w-]+)$/.exec(part) ?? [];
    if (at === undefined || choice === undefined) throw new Error(`"${part}" in "${seed}" is no choice`);
    return { at: Number(at), choice };
  });
  return { lifecycle, deviations };
}

/** Asked at each point of a life; remembers the points. */
export class Chooser {
  readonly points: Point[] = [];
  /** What happened so far instead of the usual. */
  readonly taken: Deviation[] = [];
  readonly #standing: () => Standing;
  readonly #deviations: ReadonlyMap<number, string>;
  readonly #last: number;
  #situation: string | undefined;
  /** Asked at points beyond the schedule. */
  guide: (point: Point) => string | undefined = () => undefined;
  /** Called when something other than the usual happens. */
  onDeviation: (point: Point, choice: string) => void = () => {};

  constructor(deviations: readonly Deviation[], standing: () => Standing) {
    this.#deviations = new Map(deviations.map(({ at, choice }) => [at, choice]));
    this.#last = Math.max(-1, ...this.#deviations.keys());
    this.#standing = standing;
  }

  /** Whether every deviation of the schedule has happened. */
  get exhausted(): boolean {
    return this.points.length > this.#last;
  }

  /** From here on the situation is this; unknown when undefined. */
  arrive(situation: string | undefined): void {
    this.#situation = situation;
  }

  /** Something that is no choice, but tells this situation from one without it. */
  passes(what: string): void {
    if (this.#situation !== undefined) this.#situation += `\n${what}`;
  }

  /** `site` tells points of a situation apart, as `what` does, but costs less. */
  choose(kind: PointKind, what: () => string, choices: readonly string[], site: string): string {
    this.passes(`${kind} ${site}`);
    const point = { kind, what, choices, situation: this.#situation, ...this.#standing() };
    const choice = this.exhausted ? this.guide(point) : this.#deviations.get(this.points.length);
    const at = this.points.push(point) - 1;
    if (choice === undefined) return USUAL;
    if (!choices.includes(choice)) {
      throw new Error(`the schedule does not fit: point ${at} (${what()}) has no choice ${choice}`);
    }
    this.taken.push({ at, choice });
    this.#situation = undefined;
    this.onDeviation(point, choice);
    return choice;
  }
}
