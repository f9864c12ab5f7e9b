/** That the explorer can be relied on. What it explores is a step of its own: `npm run sim`. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type Point, scheduleOf, seedOf } from "./choices.ts";
import { Explorer } from "./explore.ts";
import { Life } from "./life.ts";
import { lifecycles } from "./lifecycles.ts";
import { mutants } from "./mutants.ts";

describe("a schedule", () => {
  it("is the same after a way through its seed", () => {
    for (const seed of ["success", "retry-http@12=timeout-done", "success@3=late-40+40=crash-after"]) {
      expect(seedOf(scheduleOf(seed))).toBe(seed);
    }
    expect(() => scheduleOf("success@twelve")).toThrow("is no choice");
  });

  it("replays to the same states and the same end", async () => {
    const live = () => new Life(scheduleOf("retry@60=crash-after")).run();
    const [once, again] = [await live(), await live()];
    expect(again.visits.map(({ state }) => state)).toEqual(once.visits.map(({ state }) => state));
    expect(again.end).toBe(once.end);
  });
});

describe("lives to its end when nothing is disturbed", () => {
  it.each(lifecycles.map(({ name, end }) => ({ name, end })))("$name", async ({ name, end }) => {
    const life = await new Life({ lifecycle: name, deviations: [] }).run();
    expect(life.violations).toEqual([]);
    expect(JSON.parse(life.end).phase).toBe(end);
  });
});

it("knows each point from all others, before the first state and while the script has something under way, too", async () => {
  for (const lifecycle of ["success", "suspend-in-running", "blocking-opened-by-an-edit"]) {
    const { points } = await new Life({ lifecycle, deviations: [] }).run();
    const situations = points.map(({ situation }) => situation);
    expect(situations, lifecycle).not.toContain(undefined);
    expect(new Set(situations).size, lifecycle).toBe(situations.length);
  }
});

describe("what is known is not lived again", { timeout: 120_000 }, () => {
  it("on a tour that tries one fault after the other, each where the one before has left no trace", async () => {
    const explorer = new Explorer();
    const faults = new Set(["reset-done", "timeout-done", "429"]);
    const isOne = ({ kind }: Point, choice: string) => kind === "write" && faults.has(choice);
    await explorer.singles("success", () => false, isOne);
    const { singles, singlesDone, schedules } = explorer.account("success");
    expect(explorer.violations).toEqual([]);
    expect(singlesDone).toBe(singles);
    expect(schedules).toBeLessThan(singles / 2);
  });

  it("in a lifecycle that begins like another, up to where they differ", async () => {
    const explorer = new Explorer();
    const isOne = ({ kind }: Point, choice: string) => kind === "write" && choice === "crash-after";
    await explorer.singles("success", () => false, isOne);
    await explorer.singles("delete-in-running", () => false, isOne);
    const { singles, singlesDone, shared } = explorer.account("delete-in-running");
    expect(singlesDone).toBe(singles);
    expect(shared).toBeGreaterThan(0);
    expect(shared).toBeLessThan(singles);
  });
});

it("every planted bug still has a place to be planted in", () => {
  expect(mutants.length).toBeGreaterThanOrEqual(30);
  for (const { name, file, replace } of mutants) {
    const source = readFileSync(new URL(`../../../src/${file}`, import.meta.url), "utf8");
    for (const [from] of replace) expect(source, name).toContain(from);
  }
});
