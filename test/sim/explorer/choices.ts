/**
 * Choice points and schedules: the one interface through which anything in an explored world goes wrong.
 *
 * A life asks at each of its choice points what happens there. Points are numbered as they are met; a schedule names the
 * few at which something other than the usual happens. As everything else is determined, a schedule replays exactly, and
 * fits into one word: its seed.
 */

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
  /** The world is in a new state: users, kubelets and other operators may act. */
  | "state";

export interface Point {
  readonly kind: PointKind;
  /** In words, for the timeline. */
  readonly what: () => string;
  /** What may happen instead of the usual. */
  readonly choices: readonly string[];
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
  readonly #deviations: ReadonlyMap<number, string>;
  readonly last: number;
  /** Called when something other than the usual happens. */
  onDeviation: (point: Point, choice: string) => void = () => {};

  constructor(deviations: readonly Deviation[]) {
    this.#deviations = new Map(deviations.map(({ at, choice }) => [at, choice]));
    this.last = Math.max(-1, ...this.#deviations.keys());
  }

  /** Whether every deviation of the schedule has happened. */
  get exhausted(): boolean {
    return this.points.length > this.last;
  }

  choose(kind: PointKind, what: () => string, choices: readonly string[]): string {
    const point = { kind, what, choices };
    const choice = this.#deviations.get(this.points.length);
    this.points.push(point);
    if (choice === undefined) return USUAL;
    if (!choices.includes(choice)) {
      throw new Error(`the schedule does not fit: point ${this.points.length - 1} (${what()}) has no choice ${choice}`);
    }
    this.onDeviation(point, choice);
    return choice;
  }
}
