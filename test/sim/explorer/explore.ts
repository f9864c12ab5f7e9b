/**
 * Which lives are lived: every single fault of a lifecycle, pairs of faults on the core ones, and beyond.
 *
 * A tree: the undisturbed life is its root; a child has one more fault, at a point after its parent's last. A life is cut
 * short where it comes to a state from which another life has gone on (fingerprint.ts), and so are all its children
 * beyond: what could happen to them is explored from there. What is not reached within the time is told, not left out.
 * May not: look at the machine's clock for anything but when to stop.
 */
import { acts } from "./acts.ts";
import { type Deviation, type Point, type Schedule, seedOf, USUAL } from "./choices.ts";
import { type Future, Life, type Outcome } from "./life.ts";
import { type Lifecycle, lifecycleOf } from "./lifecycles.ts";

export interface Violation {
  readonly seed: string;
  readonly sentences: readonly string[];
}

/** What was done in one lifecycle. */
export interface Account {
  readonly lifecycle: string;
  /** Points of the undisturbed life, and what may happen at them instead of the usual. */
  choicePoints: number;
  singles: number;
  singlesDone: number;
  schedules: number;
  states: number;
  /** Pairs there are; of them, those that were lived or end in a state whose future was. */
  pairs: number;
  pairsDone: number;
  violations: number;
}

interface Branch {
  readonly deviations: readonly Deviation[];
  readonly points: readonly Point[];
}

/** Lives on though its state is known: every so many-th one, to check that the cutting hides nothing. */
const WHOLE = 50;

const changing = new Set([...acts.filter(({ changesEnd }) => changesEnd).map(({ name }) => name), "gone"]);

export class Explorer {
  readonly violations: Violation[] = [];
  readonly #seen = new Map<string, Future>();
  readonly #accounts = new Map<string, Account>();
  readonly #ends = new Map<string, string>();
  /** Lives with one fault, whose children are the pairs. */
  readonly #branches = new Map<string, Branch[]>();
  readonly #onViolation: (violation: Violation) => void;
  #lived = 0;

  constructor(onViolation: (violation: Violation) => void = () => {}) {
    this.#onViolation = onViolation;
  }

  get accounts(): readonly Account[] {
    return [...this.#accounts.values()];
  }

  /** The undisturbed life and every single fault in it. False when the time was over before. */
  async singles(
    name: string,
    isTimeUp: () => boolean,
    only: (point: Point, choice: string) => boolean = () => true,
  ): Promise<boolean> {
    const lifecycle = lifecycleOf(name);
    const root = await this.#live({ lifecycle: name, deviations: [] });
    const account = this.account(name);
    this.#ends.set(name, root.end);
    const { phase } = JSON.parse(root.end) as { phase: string };
    // A life that was broken off at a violation has no end to speak of.
    if (root.violations.length === 0 && phase !== lifecycle.end) {
      this.#report({ seed: name, sentences: [`it ends as ${phase}, not as ${lifecycle.end}`] });
    }
    account.choicePoints = root.points.length;
    const all = alternatives(root.points, 0).filter(({ at, choice }) => only(root.points[at]!, choice));
    account.singles = all.length;
    const branches: Branch[] = [];
    this.#branches.set(name, branches);
    for (const deviation of spread(all)) {
      if (isTimeUp()) return false;
      const outcome = await this.#live({ lifecycle: name, deviations: [deviation] });
      account.singlesDone++;
      if (!lifecycle.core) continue;
      account.pairs += count(outcome.points, deviation.at + 1) + outcome.alternativesAfter;
      account.pairsDone += outcome.alternativesAfter;
      branches.push({ deviations: [deviation], points: outcome.points });
    }
    return true;
  }

  /** Pairs of faults of the lifecycles explored so far, a share of each in turn, until the time is up. */
  async pairs(isTimeUp: () => boolean): Promise<void> {
    const queues = [...this.#branches].flatMap(([lifecycle, branches]) => {
      const children = branches.flatMap(({ deviations, points }) =>
        alternatives(points, deviations.at(-1)!.at + 1).map((deviation) => [...deviations, deviation]),
      );
      return children.length > 0 ? [{ lifecycle, children: spread(children)[Symbol.iterator]() }] : [];
    });
    while (queues.length > 0) {
      for (const queue of [...queues]) {
        if (isTimeUp()) return;
        const { value, done } = queue.children.next();
        if (done) {
          queues.splice(queues.indexOf(queue), 1);
          continue;
        }
        await this.#live({ lifecycle: queue.lifecycle, deviations: value });
        this.account(queue.lifecycle).pairsDone++;
      }
    }
  }

  /** Lives with several faults, drawn at random from a seed, in any of the lifecycles. */
  async walks(names: readonly string[], seed: number, isTimeUp: () => boolean): Promise<number> {
    const random = generator(seed);
    let walks = 0;
    for (; !isTimeUp(); walks++) {
      const lifecycle = names[Math.floor(random() * names.length)]!;
      let deviations: Deviation[] = [];
      const faults = 3 + Math.floor(random() * 3);
      let outcome = await this.#live({ lifecycle, deviations });
      while (deviations.length < faults && !isTimeUp()) {
        const next = alternatives(outcome.points, (deviations.at(-1)?.at ?? -1) + 1);
        if (next.length === 0) break;
        deviations = [...deviations, next[Math.floor(random() * next.length)]!];
        outcome = await this.#live({ lifecycle, deviations });
        if (outcome.violations.length > 0) break;
      }
    }
    return walks;
  }

  account(lifecycle: string): Account {
    let account = this.#accounts.get(lifecycle);
    if (!account) {
      account = {
        lifecycle,
        choicePoints: 0,
        singles: 0,
        singlesDone: 0,
        schedules: 0,
        states: 0,
        pairs: 0,
        pairsDone: 0,
        violations: 0,
      };
      this.#accounts.set(lifecycle, account);
    }
    return account;
  }

  async #live(schedule: Schedule): Promise<Outcome> {
    const whole = schedule.deviations.length === 0 || this.#lived++ % WHOLE === 0;
    let outcome: Outcome;
    try {
      outcome = await new Life(schedule, whole ? {} : { seen: this.#seen }).run();
    } catch (error) {
      const sentence = `the life could not be lived: ${error instanceof Error ? error.stack : error}`;
      outcome = { points: [], alternativesAfter: 0, states: [], end: "{}", cut: false, violations: [sentence] };
    }
    const account = this.account(schedule.lifecycle);
    account.schedules++;
    const wrong = outcome.violations.length > 0 ? outcome.violations : this.#wrongEnd(schedule, outcome);
    if (wrong.length > 0) {
      account.violations++;
      this.#report({ seed: seedOf(schedule), sentences: wrong });
      return outcome;
    }
    for (const [state, points] of outcome.states) {
      if (this.#seen.has(state)) continue;
      account.states++;
      this.#seen.set(state, {
        end: outcome.end,
        alternatives: count(outcome.points, points) + outcome.alternativesAfter,
      });
    }
    return outcome;
  }

  /** What heals leaves no trace; and what does not, comes to some end, too. */
  #wrongEnd({ lifecycle, deviations }: Schedule, { end }: Outcome): string[] {
    const usual = this.#ends.get(lifecycle);
    if (usual === undefined || usual === end) return [];
    if (deviations.some(({ choice }) => changing.has(choice))) return [];
    if (!endsTheSame(lifecycleOf(lifecycle), deviations)) return [];
    return [`it ends otherwise than undisturbed: ${end} instead of ${usual}`];
  }

  #report(violation: Violation): void {
    this.violations.push(violation);
    this.#onViolation(violation);
  }
}

/** Where the user or a clock acts at a time of his own, a delay may bring him to act in another phase. */
function endsTheSame({ script, spec }: Lifecycle, deviations: readonly Deviation[]): boolean {
  const timed = spec.activeDeadlineSeconds !== undefined || spec.preRunningDeadlineSeconds !== undefined;
  if (!timed && script.length === 0) return true;
  const delays = new Set([
    "outage",
    "dashboard-hangs",
    "dashboard-500",
    "stick",
    "edit-badly",
    "evict-worker",
    "rival",
    "rival-late",
  ]);
  return !deviations.some(({ choice }) => delays.has(choice)) && !timed && script.length === 0;
}

/** All that could happen at these points, from the `from`-th on. */
function alternatives(points: readonly Point[], from: number): Deviation[] {
  const all: Deviation[] = [];
  for (let at = from; at < points.length; at++) for (const choice of points[at]!.choices) all.push({ at, choice });
  return all;
}

function count(points: readonly Point[], from: number): number {
  let sum = 0;
  for (let at = from; at < points.length; at++) sum += points[at]!.choices.length;
  return sum;
}

/** The same in an order that goes through all of it coarsely first, so that a part is a fair sample of the whole. */
function* spread<T>(all: readonly T[]): Generator<T> {
  const stride = 61;
  for (let offset = 0; offset < stride; offset++) {
    for (let index = (offset * 23) % stride; index < all.length; index += stride) yield all[index]!;
  }
}

/** A small generator of numbers in [0, 1): the same for the same seed. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const isFault = (choice: string): boolean => choice !== USUAL;
