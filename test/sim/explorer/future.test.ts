import { expect, it } from "vitest";
import { type Laxity, Memory, type Tail, type Way } from "./future.ts";
import type { Lifecycle } from "./lifecycles.ts";

const quick = { pending: 1, running: 1, end: "SUCCEEDED" } as const;
const failing = { ...quick, end: "FAILED" } as const;
const lifecycle = (name: string, parts: Partial<Lifecycle> = {}): Lifecycle => ({
  ...{ name, spec: {}, jobs: [quick], script: [], end: "Complete" },
  ...parts,
});
const success = lifecycle("success");
const tail = (of: Lifecycle, acted = 0, drawn = 0): Tail => ({ lifecycle: of, acted, drawn });
const strict: Laxity = { disturbed: false, told: false, allowed: 0 };
const way = (to: string | undefined, parts: Partial<Way> = {}): Way => ({
  ...{ to, end: "the end", alternatives: 1, points: 1, phases: new Set<string>() },
  ...{ from: tail(success), until: tail(success), laxity: strict, laxityThen: strict },
  ...parts,
});

/** What is known of state `a` by one who has this still to come. */
const future = (ways: Record<string, Way>, of: Lifecycle, laxity: Laxity = strict) => {
  const memory = new Memory();
  for (const [state, one] of Object.entries(ways)) memory.learnState(state, one);
  return memory.ofState({ state: "a", tail: tail(of), laxity });
};

it("knows a state whose ways lead to an end, and what is on them", () => {
  expect(future({ a: way("b"), b: way(undefined) }, success)).toEqual({ end: "the end", alternatives: 2 });
  expect(future({ a: way("b") }, success)).toBeUndefined();
  expect(future({ a: way("b"), b: way("a") }, success)).toBeUndefined();
});

it("holds for another lifecycle while its user would not have acted on the way", () => {
  const ways = { a: way("b", { phases: new Set(["Running"]) }), b: way(undefined) };
  const acting = (phase: string) => lifecycle(phase, { script: [{ in: phase, act: "delete" }] });
  expect(future(ways, acting("Running"))).toBeUndefined();
  expect(future(ways, acting("Complete"))).toBeDefined();
});

it("holds for another lifecycle where Ray would have been given the same jobs", () => {
  const ways = { a: way(undefined, { until: tail(success, 0, 1) }) };
  expect(future(ways, lifecycle("failure", { jobs: [failing] }))).toBeUndefined();
  expect(future(ways, lifecycle("retry", { jobs: [quick, failing] }))).toBeDefined();
});

it("does not take the way of a user who acted for that of one who does not", () => {
  const deleted = lifecycle("delete", { script: [{ in: "Running", act: "delete" }] });
  const ways = { a: way(undefined, { from: tail(deleted), until: tail(deleted, 1) }) };
  expect(future(ways, success)).toBeUndefined();
  expect(future(ways, deleted)).toBeDefined();
});

it("takes the word of who watched as strictly, never of who watched less", () => {
  const disturbed = { ...strict, disturbed: true };
  expect(future({ a: way(undefined, { laxity: disturbed, laxityThen: disturbed }) }, success)).toBeUndefined();
  expect(future({ a: way(undefined) }, success, disturbed)).toBeDefined();
});
