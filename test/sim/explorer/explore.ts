/**
 * Which lives are lived: every single fault of a lifecycle, pairs of faults on the core ones, and beyond.
 *
 * A life is long and most faults are soon overcome, so single faults are not each lived from the beginning. A life is a
 * tour: where a fault has led back to a known state, the future of that need not be lived again, and so the next fault is
 * tried from there. Of what is known already nothing is lived twice: not the way on from a state, nor a fault in a
 * situation that another lifecycle has had (future.ts says when that holds here, too).
 * What is not reached within the time is told, not left out.
 * May not: look at the machine's clock for anything but when to stop.
 */
import { acts } from "./acts.ts";
import { type Deviation, type Point, type PointKind, type Schedule, type Standing, seedOf } from "./choices.ts";
import { Memory, type Stand, situationOf, type Way } from "./future.ts";
import { Life, type LifeOptions, type Outcome, type Stretch, type Visit } from "./life.ts";
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
  /** Of these, those that another lifecycle has lived already. */
  shared: number;
  schedules: number;
  states: number;
  /** Pairs there are (those of a shared single fault are its owner's); of them, those that are known. */
  pairs: number;
  pairsDone: number;
  violations: number;
}

/** A point of a life at which faults are to be tried, and those of them that were not yet. */
interface Place {
  readonly point: Point;
  readonly at: number;
  readonly choices: Set<string>;
}

/** What is to be tried after the faults of `base`. */
interface Frontier {
  readonly lifecycle: Lifecycle;
  readonly base: readonly Deviation[];
  /** By situation. */
  readonly places: Map<string, Place>;
  /** Where there is no situation, or one that comes twice. */
  readonly alone: { readonly deviation: Deviation; readonly whole: boolean }[];
  /** How far the life of `base` was at a state, by number of points. */
  readonly positions: ReadonlyMap<string, number>;
  /** Children in all, and those known already. */
  readonly size: number;
  readonly known: number;
}

/** `stretch` is what came of the fault; absent where that went wrong. */
type OnDone = (fault: Deviation, outcome: Outcome, stretch: Stretch | undefined) => void;

/** A single fault of a core lifecycle; its children are pairs. */
interface Branch {
  readonly deviation: Deviation;
  size: number;
  known: number;
  /** Children that are lived by number, and were. */
  alone: number;
}

/** Every so many-th single fault is lived alone and to its end, to check that the cutting hides nothing. */
const WHOLE = 50;
/** A fault that led back this often, of all times it was tried, may begin a tour; others end one. */
const HEALING = 0.5;

/** States that a tour goes by, at most, to come back to where something is left to be tried. */
const FAR = 60;

const changing = new Set([...acts.filter(({ changesEnd }) => changesEnd).map(({ name }) => name), "gone"]);

export class Explorer {
  readonly violations: Violation[] = [];
  readonly #memory = new Memory();
  readonly #cutting: LifeOptions = { memory: this.#memory };
  readonly #accounts = new Map<string, Account>();
  readonly #ends = new Map<string, string>();
  readonly #branches = new Map<string, Branch[]>();
  readonly #begun = new Map<string, { readonly frontier: Frontier; readonly onDone: OnDone }>();
  /** How often a fault was tried on a tour, and how often the tour could go on after it. */
  readonly #healing = new Map<PointKind, Map<string, { tried: number; healed: number }>>();
  readonly #onViolation: (violation: Violation) => void;
  #tried = 0;

  constructor(onViolation: (violation: Violation) => void = () => {}) {
    this.#onViolation = onViolation;
  }

  get accounts(): readonly Account[] {
    return [...this.#accounts.values()];
  }

  /**
   * The undisturbed life and every single fault in it. False when the time was over before; called again, it goes on where
   * it left off.
   */
  async singles(
    name: string,
    isTimeUp: () => boolean,
    only: (point: Point, choice: string) => boolean = () => true,
  ): Promise<boolean> {
    const { frontier, onDone } = this.#begun.get(name) ?? (await this.#begin(lifecycleOf(name), only));
    while (frontier.places.size > 0 || frontier.alone.length > 0) {
      if (isTimeUp()) return false;
      await this.#step(frontier, onDone);
    }
    return true;
  }

  async #begin(lifecycle: Lifecycle, only: (point: Point, choice: string) => boolean) {
    const { name } = lifecycle;
    const outcome = await this.#live({ lifecycle: name, deviations: [] });
    const account = this.account(name);
    this.#ends.set(name, outcome.end);
    const { phase } = JSON.parse(outcome.end) as { phase: string };
    // A life that was broken off at a violation has no end to speak of.
    if (outcome.violations.length === 0 && phase !== lifecycle.end) {
      this.#report({ seed: name, sentences: [`it ends as ${phase}, not as ${lifecycle.end}`] });
    }
    const branches: Branch[] = [];
    this.#branches.set(name, branches);
    const frontier = this.#frontier(lifecycle, [], outcome.points, only);
    account.choicePoints = outcome.points.length;
    account.singles = frontier.size;
    account.shared = frontier.known;
    account.singlesDone = frontier.known;
    const onDone = (deviation: Deviation, outcome: Outcome, stretch: Stretch | undefined) => {
      account.singlesDone++;
      if (!lifecycle.core || !stretch) return;
      const size = count(outcome.points, stretch.at! + 1, stretch.points);
      const after = stretch.joined?.alternatives ?? 0;
      account.pairs += size + after;
      account.pairsDone += after;
      branches.push({ deviation, size, known: 0, alone: 0 });
    };
    const begun = { frontier, onDone };
    this.#begun.set(name, begun);
    return begun;
  }

  /** Pairs of faults of the lifecycles explored so far, some of each in turn, until the time is up. */
  async pairs(isTimeUp: () => boolean): Promise<void> {
    // A few tours from each single fault, so that what there is time for is a fair sample; then more.
    for (let tours = 1; ; tours *= 4) {
      const queues = [...this.#branches].flatMap(([name, branches]) =>
        branches.length > 0 ? [{ lifecycle: lifecycleOf(name), branches: spread(branches)[Symbol.iterator]() }] : [],
      );
      let left = 0;
      while (queues.length > 0) {
        for (const queue of [...queues]) {
          if (isTimeUp()) return;
          const { value: branch, done } = queue.branches.next();
          if (done) queues.splice(queues.indexOf(queue), 1);
          else if (branch.known < branch.size) left += await this.#branch(queue.lifecycle, branch, tours, isTimeUp);
        }
      }
      if (left === 0) return;
    }
  }

  /** Some of the pairs that begin with one fault; how many are left. */
  async #branch(lifecycle: Lifecycle, branch: Branch, tours: number, isTimeUp: () => boolean): Promise<number> {
    const account = this.account(lifecycle.name);
    const base = [branch.deviation];
    const outcome = await this.#live({ lifecycle: lifecycle.name, deviations: base }, this.#cutting);
    const frontier = this.#frontier(lifecycle, base, outcome.points);
    frontier.alone.splice(0, branch.alone);
    const known = frontier.known + branch.alone;
    account.pairs += frontier.size - branch.size;
    account.pairsDone += known - branch.known;
    branch.size = frontier.size;
    branch.known = known;
    const onDone = () => {
      account.pairsDone++;
      branch.known++;
    };
    for (let tour = 0; tour < tours && branch.known < branch.size && !isTimeUp(); tour++) {
      const before = frontier.alone.length;
      await this.#step(frontier, onDone);
      branch.alone += Math.max(0, before - frontier.alone.length);
    }
    return branch.size - branch.known;
  }

  /** Lives with several faults, drawn at random from a seed, in any of the lifecycles. */
  async walks(names: readonly string[], seed: number, isTimeUp: () => boolean): Promise<number> {
    const random = generator(seed);
    let walks = 0;
    for (; !isTimeUp(); walks++) {
      const lifecycle = names[Math.floor(random() * names.length)]!;
      let deviations: Deviation[] = [];
      const faults = 3 + Math.floor(random() * 3);
      let outcome = await this.#live({ lifecycle, deviations }, this.#cutting);
      while (deviations.length < faults && !isTimeUp()) {
        const next = alternatives(outcome.points, (deviations.at(-1)?.at ?? -1) + 1);
        if (next.length === 0) break;
        deviations = [...deviations, next[Math.floor(random() * next.length)]!];
        outcome = await this.#live({ lifecycle, deviations }, this.#cutting);
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
        shared: 0,
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

  /** The faults that may follow those of `base`, save for those that are known. */
  #frontier(
    lifecycle: Lifecycle,
    base: readonly Deviation[],
    points: readonly Point[],
    only: (point: Point, choice: string) => boolean = () => true,
  ): Frontier {
    const places = new Map<string, Place>();
    const alone: Frontier["alone"] = [];
    const positions = new Map<string, number>();
    const met = new Map<string, number>();
    let [size, known] = [0, 0];
    for (const { situation } of points) if (situation) met.set(situation, (met.get(situation) ?? 0) + 1);
    for (let at = (base.at(-1)?.at ?? -1) + 1; at < points.length; at++) {
      const point = points[at]!;
      const { situation } = point;
      const choices = new Set(point.choices.filter((choice) => only(point, choice)));
      size += choices.size;
      if (situation === undefined || met.get(situation)! > 1) {
        for (const choice of choices) alone.push({ deviation: { at, choice }, whole: false });
        continue;
      }
      for (const choice of choices) {
        const future = this.#memory.ofFault(situation, choice, point);
        const isKnown = future && !this.#wrongEnd(lifecycle, [...base, { at, choice }], future.end);
        if (isKnown) known++;
        else if (base.length === 0 && ++this.#tried % WHOLE === 0)
          alone.push({ deviation: { at, choice }, whole: true });
        else continue;
        choices.delete(choice);
      }
      const [state] = situation.split("\n", 1);
      if (!positions.has(state!)) positions.set(state!, at);
      if (choices.size > 0) places.set(situation, { point, at, choices });
    }
    return { lifecycle, base, places, alone, positions, size, known };
  }

  /** One life: a tour past as many places as it can, or a fault alone. */
  async #step(frontier: Frontier, onDone: OnDone): Promise<void> {
    const { lifecycle, base, places, alone } = frontier;
    const single = places.size === 0 ? alone.shift() : undefined;
    if (single) {
      const schedule = { lifecycle: lifecycle.name, deviations: [...base, single.deviation] };
      const outcome = await this.#live(schedule, single.whole ? {} : this.#cutting);
      return onDone(single.deviation, outcome, outcome.stretches[0]);
    }
    const last = Math.max(...[...places.values()].map(({ at }) => at));
    const tried: { readonly deviation: Deviation; readonly kind: PointKind; healed: boolean }[] = [];
    const guide = (point: Point): string | undefined => {
      const place = places.get(point.situation ?? "");
      const choice = place && this.#choose(place, point, places);
      if (!choice) return undefined;
      place.choices.delete(choice);
      if (place.choices.size === 0) places.delete(point.situation!);
      tried.push({ deviation: { at: place.at, choice }, kind: point.kind, healed: false });
      return choice;
    };
    const goesOn = (visit: Visit): boolean => {
      const position = this.#leadsTo(visit, frontier.positions);
      if (position === undefined) return false;
      if (tried.length > 0) tried.at(-1)!.healed = true;
      return position <= last;
    };
    const tour = { lifecycle: lifecycle.name, deviations: base };
    const outcome = await this.#live(tour, { ...this.#cutting, guide, goesOn }, () => tried.at(-1)?.deviation);
    if (tried.length === 0) this.#leave(frontier);
    for (const [index, { deviation, kind, healed }] of tried.entries()) {
      const ofKind = this.#healing.get(kind) ?? new Map();
      const known = ofKind.get(deviation.choice) ?? { tried: 1, healed: 1 };
      ofKind.set(deviation.choice, { tried: known.tried + 1, healed: known.healed + (healed ? 1 : 0) });
      this.#healing.set(kind, ofKind);
      const { at } = outcome.deviations[base.length + index] ?? {};
      onDone(
        deviation,
        outcome,
        outcome.stretches.find((stretch) => stretch.at !== undefined && stretch.at === at),
      );
    }
  }

  /** To which position life comes by itself from a known state, when that is nearer than the beginning. */
  #leadsTo(from: Visit, positions: ReadonlyMap<string, number>): number | undefined {
    let points = 0;
    for (let here: Stand | undefined = from, steps = 0; here && steps < FAR; steps++) {
      const position = positions.get(situationOf(here));
      if (position !== undefined) return points <= position ? position : undefined;
      const next = this.#memory.after(here);
      points += next?.points ?? 0;
      here = next;
    }
    return undefined;
  }

  /** What is tried at a place of a tour: what most likely lets it go on; what ends it, when all ahead does. */
  #choose({ choices, at }: Place, { kind, choices: possible }: Point, places: Frontier["places"]): string | undefined {
    let best: string | undefined;
    let rate = -1;
    for (const choice of choices) {
      if (!possible.includes(choice) || this.#rate(kind, choice) <= rate) continue;
      best = choice;
      rate = this.#rate(kind, choice);
    }
    if (rate >= HEALING) return best;
    for (const other of places.values()) {
      if (other.at <= at) continue;
      for (const choice of other.choices) if (this.#rate(other.point.kind, choice) >= HEALING) return undefined;
    }
    return best;
  }

  #rate(kind: PointKind, choice: string): number {
    const known = this.#healing.get(kind)?.get(choice);
    return known ? known.healed / known.tried : 1;
  }

  /** Tours do not come to the places any more: what is left is lived alone. */
  #leave({ places, alone }: Frontier): void {
    for (const { at, choices } of places.values()) {
      for (const choice of choices) alone.push({ deviation: { at, choice }, whole: false });
    }
    places.clear();
  }

  /** Lives it, reports what is wrong in it, and learns from the rest. `suspect` is what a tour tried last. */
  async #live(
    schedule: Schedule,
    options: LifeOptions = {},
    suspect: () => Deviation | undefined = () => undefined,
  ): Promise<Outcome> {
    const account = this.account(schedule.lifecycle);
    const life = new Life(schedule, options);
    let outcome: Outcome;
    try {
      outcome = await life.run();
    } catch (error) {
      const sentence = `the life could not be lived: ${error instanceof Error ? error.stack : error}`;
      const { deviations } = life;
      outcome = { points: [], visits: [], stretches: [], deviations, end: "{}", cut: false, violations: [sentence] };
    }
    account.schedules++;
    const sentences = [...outcome.violations, ...this.#learn(schedule, outcome)];
    if (sentences.length === 0) return outcome;
    // Most of what a tour runs into is its last fault's doing, and easier to understand alone.
    const alone = suspect();
    if (alone && outcome.deviations.length > schedule.deviations.length + 1) {
      const before = account.violations;
      await this.#live({ ...schedule, deviations: [...schedule.deviations, alone] });
      if (account.violations > before) return outcome;
    }
    account.violations++;
    this.#report({ seed: seedOf({ ...schedule, deviations: outcome.deviations }), sentences });
    return outcome;
  }

  /** Takes in which future its states and faults have; returns what is wrong with their ends. */
  #learn(schedule: Schedule, outcome: Outcome): string[] {
    const lifecycle = lifecycleOf(schedule.lifecycle);
    const { visits, deviations } = outcome;
    const wrong: string[] = [];
    for (const { at, choice, from, to: last, joined, points: reached, ...closed } of outcome.stretches) {
      if (!joined && outcome.violations.length > 0) continue;
      const end = joined?.end ?? outcome.end;
      const isTour = joined !== undefined || outcome.stretches.length > 1;
      const sentence = this.#wrongEnd(
        lifecycle,
        isTour && at !== undefined ? [...schedule.deviations, { at, choice }] : deviations,
        end,
      );
      if (sentence !== undefined) {
        wrong.push(sentence);
        continue;
      }
      const own = at === undefined;
      let to = joined ? visits[last]!.state : undefined;
      let then = { points: reached, ...closed };
      const way = (phases: ReadonlySet<string>, { tail, laxity }: Standing, points: number): Way => ({
        ...{ to, end, phases, laxity, from: tail, until: then.tail, laxityThen: then.laxity },
        alternatives: own ? count(outcome.points, points, then.points) : 0,
        points: then.points - points,
      });
      let phases: string[] = [];
      for (let index = last - 1; index >= from; index--) {
        const visit = visits[index]!;
        const { state, points, phase, isCalm } = visit;
        phases.push(phase);
        if (!isCalm) continue;
        if (!this.#memory.ofState(visit)) {
          const isNew = this.#memory.learnState(state, way(new Set(phases), visit, points));
          if (isNew) this.account(lifecycle.name).states++;
        }
        to = state;
        then = visit;
        phases = [];
      }
      if (own) continue;
      const point = outcome.points[at]!;
      if (point.situation !== undefined) {
        this.#memory.learnFault(point.situation, choice, way(new Set(phases), point, at));
      }
    }
    return wrong;
  }

  /** What heals leaves no trace; and what does not, comes to some end, too. */
  #wrongEnd(lifecycle: Lifecycle, deviations: readonly Deviation[], end: string): string | undefined {
    const usual = this.#ends.get(lifecycle.name);
    if (usual === undefined || usual === end) return undefined;
    if (deviations.some(({ choice }) => changing.has(choice))) return undefined;
    if (!endsTheSame(lifecycle, deviations)) return undefined;
    return `it ends otherwise than undisturbed: ${end} instead of ${usual}`;
  }

  #report(violation: Violation): void {
    this.violations.push(violation);
    this.#onViolation(violation);
  }
}

/** Where the user or a clock acts at a time of his own, a delay may bring him to act in another phase. */
function endsTheSame({ script, spec, kueue }: Lifecycle, deviations: readonly Deviation[]): boolean {
  const limits = [spec.activeDeadlineSeconds, spec.preRunningDeadlineSeconds, kueue?.readyWithin];
  const timed = limits.some((limit) => limit !== undefined);
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

function count(points: readonly Point[], from: number, to: number): number {
  let sum = 0;
  for (let at = from; at < to; at++) sum += points[at]!.choices.length;
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
