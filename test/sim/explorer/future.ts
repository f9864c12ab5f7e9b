/**
 * What is known of states: how life goes on from one, and what a fault in one leads to.
 *
 * A state says nothing of what is laid down for later (which jobs fail, when the user acts), because most lives go on for
 * long before that matters, and many lifecycles begin alike. So a way from a state to the next says what it relied on:
 * the phases it passed (in none of them may another script act), the jobs that were drawn (they must be those that would
 * be drawn here), what was left of the script when it acted; and how strict the oracles were that watched it. A way holds
 * for whoever that fits, and a state is known to him whom ways that fit lead from it to an end.
 */
import { hash } from "node:crypto";
import type { Lifecycle } from "./lifecycles.ts";

/** To which end it goes on, and past how many alternatives on the undisturbed life's way. */
export interface Future {
  readonly end: string;
  readonly alternatives: number;
}

/** From a state, or from what happened in one, to the next known state, or to the end of the life. */
export interface Way {
  readonly to: string | undefined;
  readonly end: string;
  readonly alternatives: number;
  /** How many points long it is. */
  readonly points: number;
  readonly phases: ReadonlySet<string>;
  readonly from: Tail;
  readonly until: Tail;
  readonly laxity: Laxity;
  readonly laxityThen: Laxity;
}

/** Where a life is, as far as what follows depends on it. */
export interface Stand {
  readonly state: string;
  readonly tail: Tail;
  readonly laxity: Laxity;
}

/** A state and how strictly it is watched, in one text. */
export const situationOf = ({ state, laxity: { disturbed, told, allowed } }: Omit<Stand, "tail">): string =>
  `${state} ${disturbed ? "disturbed" : ""} ${told ? "told" : ""} ${allowed}`;

/** What is still to come of what a lifecycle lays down. */
export interface Tail {
  readonly lifecycle: Lifecycle;
  /** Acts of the script that are done, and jobs that were drawn. */
  readonly acted: number;
  readonly drawn: number;
}

/** What the oracles let pass by now: a way that was watched less strictly says nothing to one that is watched more. */
export interface Laxity {
  readonly disturbed: boolean;
  readonly told: boolean;
  /** Attempts and submitters beyond the limits. */
  readonly allowed: number;
}

const asStrict = (one: Laxity, other: Laxity): boolean =>
  (!one.disturbed || other.disturbed) && (!one.told || other.told) && one.allowed <= other.allowed;

const texts = new WeakMap<object, string>();
function textOf(value: object): string {
  let text = texts.get(value);
  if (text === undefined) {
    text = JSON.stringify(value);
    texts.set(value, text);
  }
  return text;
}

const scriptOf = ({ lifecycle: { script }, acted }: Tail): string => script.slice(acted).map(textOf).join();
/** The job that Ray is given as its `index`-th from here; the last of a lifecycle is given again and again. */
const jobOf = ({ lifecycle: { jobs }, drawn }: Tail, index: number): string =>
  textOf(jobs[Math.min(drawn + index, jobs.length - 1)]!);

/** Whether one who is at the way's beginning, with this still to come, goes it, too. */
function fits({ from, until, phases }: Way, tail: Tail): boolean {
  for (let index = 0; index < until.drawn - from.drawn; index++) {
    if (jobOf(from, index) !== jobOf(tail, index)) return false;
  }
  if (from.lifecycle === tail.lifecycle && from.acted === tail.acted) return true;
  if (until.acted > from.acted) return scriptOf(from) === scriptOf(tail);
  const next = tail.lifecycle.script[tail.acted];
  return next === undefined || !phases.has(next.in) || scriptOf(from) === scriptOf(tail);
}

export class Memory {
  readonly #states = new Map<string, Way[]>();
  readonly #faults = new Map<string, Way[]>();
  readonly #futures = new Map<string, Future>();
  /** Where a search is just now: a way that leads back there leads nowhere. */
  readonly #searching = new Set<string>();

  /** How life goes on from here when nothing more happens; undefined when that is not known. */
  ofState(here: Stand): Future | undefined {
    const ways = this.#states.get(here.state);
    if (!ways) return undefined;
    const { lifecycle, acted, drawn } = here.tail;
    const key = `${situationOf(here)} ${lifecycle.name} ${acted} ${drawn}`;
    const known = this.#futures.get(key);
    if (known) return known;
    if (this.#searching.has(key)) return undefined;
    this.#searching.add(key);
    const future = this.#first(ways, here)?.future;
    this.#searching.delete(key);
    if (future) this.#futures.set(key, future);
    return future;
  }

  /** How it goes on after this happened in this situation. */
  ofFault(situation: string, choice: string, here: Omit<Stand, "state">): Future | undefined {
    const ways = this.#faults.get(shortened(`${choice} ${situation}`));
    return ways && this.#first(ways, here)?.future;
  }

  /** The next known state after this, and how many points it is away. */
  after(here: Stand): (Stand & { readonly points: number }) | undefined {
    const found = this.#first(this.#states.get(here.state) ?? [], here);
    return found?.to && { ...found.to, points: found.way.points };
  }

  /** False when a way from the state was known already, for whomever. */
  learnState(state: string, way: Way): boolean {
    return add(this.#states, state, way);
  }

  learnFault(situation: string, choice: string, way: Way): void {
    add(this.#faults, shortened(`${choice} ${situation}`), way);
  }

  #first(ways: readonly Way[], { tail, laxity }: Omit<Stand, "state">) {
    for (const way of ways) {
      if (!asStrict(way.laxity, laxity) || !fits(way, tail)) continue;
      const { from, until, laxity: before, laxityThen: then, end, alternatives } = way;
      if (way.to === undefined) return { way, future: { end, alternatives } };
      const to: Stand = {
        state: way.to,
        tail: {
          lifecycle: tail.lifecycle,
          acted: tail.acted + until.acted - from.acted,
          drawn: tail.drawn + until.drawn - from.drawn,
        },
        laxity: {
          disturbed: laxity.disturbed || then.disturbed,
          told: laxity.told || then.told,
          allowed: laxity.allowed + then.allowed - before.allowed,
        },
      };
      const onward = this.ofState(to);
      if (onward) return { way, to, future: { end: onward.end, alternatives: alternatives + onward.alternatives } };
    }
    return undefined;
  }
}

/** A few characters that stand for a long text. */
export const shortened = (text: string): string => hash("sha1", text, "base64").slice(0, 16);

function add(ways: Map<string, Way[]>, key: string, way: Way): boolean {
  const known = ways.get(key);
  if (known) known.push(way);
  else ways.set(key, [way]);
  return known === undefined;
}
