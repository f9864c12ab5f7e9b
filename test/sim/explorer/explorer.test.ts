/** A slice of what `npm run sim` explores, small enough for every run of the tests; and that the explorer can be relied on. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { scheduleOf, seedOf } from "./choices.ts";
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
    expect(again.states).toEqual(once.states);
    expect(again.end).toBe(once.end);
  });
});

it("lives every lifecycle to its end when nothing is disturbed", { timeout: 120_000 }, async () => {
  for (const { name, end } of lifecycles) {
    const life = await new Life({ lifecycle: name, deviations: [] }).run();
    expect(life.violations, name).toEqual([]);
    expect(JSON.parse(life.end).phase, name).toBe(end);
  }
});

describe("nothing is lost and nothing runs twice", () => {
  it.each(["success", "success-http"])(
    "in the life %s, whatever single write it is that goes wrong",
    { timeout: 240_000 },
    async (lifecycle) => {
      const explorer = new Explorer();
      const faults = new Set(["crash-before", "crash-after", "timeout-done", "late", "conflict", "exists-ours"]);
      await explorer.singles(
        lifecycle,
        () => false,
        ({ kind }, choice) => kind === "write" && faults.has(choice),
      );
      expect(explorer.violations).toEqual([]);
      expect(explorer.account(lifecycle).singlesDone).toBe(explorer.account(lifecycle).singles);
    },
  );

  it("when a job that is tried again is suspended, deleted, or loses its head at any moment", {
    timeout: 240_000,
  }, async () => {
    const explorer = new Explorer();
    const faults = new Set(["suspend-resume", "delete", "delete-head"]);
    await explorer.singles(
      "retry",
      () => false,
      (_, choice) => faults.has(choice),
    );
    expect(explorer.violations).toEqual([]);
  });
});

it("every planted bug still has a place to be planted in", () => {
  expect(mutants.length).toBeGreaterThanOrEqual(30);
  for (const { name, file, replace } of mutants) {
    const source = readFileSync(new URL(`../../../src/${file}`, import.meta.url), "utf8");
    for (const [from] of replace) expect(source, name).toContain(from);
  }
});
