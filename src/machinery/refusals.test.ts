import { describe, expect, it } from "vitest";
import { RepeatedRefusals } from "./refusals.ts";
import { VirtualClock } from "./virtualClock.ts";

type Trace = Parameters<RepeatedRefusals["heard"]>[0];

/** A pass that tried to make something, and was refused in these words, or not. */
const tried = (words?: string): Trace =>
  ({
    key: "default/demo",
    result: words ? "again" : "done",
    decision: { effects: [{ do: "create", why: "it is needed", failureEvent: { reason: "FailedToCreate" } }] },
    outcome: { failures: words ? [{ tried: "it is needed", kind: "refused", error: new Error(words) }] : [] },
  }) as unknown as Trace;
const told: Trace = {
  key: "default/demo",
  result: "done",
  decision: { effects: [], status: {} },
  outcome: { failures: [] },
} as unknown as Trace;

function refusals() {
  const clock = new VirtualClock();
  const heard = new RepeatedRefusals(["FailedToCreate"], clock);
  return { clock, heard, words: () => heard.of("default/demo").map(({ message }) => message) };
}

describe("a refusal", () => {
  it("is shown when it comes again, and no more once the write was done", () => {
    const { heard, words } = refusals();
    heard.heard(tried("quota"));
    expect(words()).toEqual([]);
    heard.heard(tried("quota"));
    expect(words()).toEqual(["quota"]);
    heard.heard(tried());
    expect(words()).toEqual([]);
  });

  it("is still shown after the pass that only told of it", () => {
    const { heard, words } = refusals();
    for (const trace of [tried("quota"), tried("quota"), told]) heard.heard(trace);
    expect(words()).toEqual(["quota"]);
  });

  it("keeps its words for a minute, though each try is answered in others", async () => {
    const { clock, heard, words } = refusals();
    for (const text of ["request 1", "request 2", "request 3"]) heard.heard(tried(text));
    expect(words()).toEqual(["request 2"]);
    await clock.advance(60_000);
    heard.heard(tried("request 4"));
    expect(words()).toEqual(["request 4"]);
  });

  it("that lasts keeps them ever longer, up to ten minutes: a day of them is no write a minute", async () => {
    const { clock, heard, words } = refusals();
    heard.heard(tried("request 0"));
    const told: number[] = [];
    for (let minute = 0; minute <= 60; minute++) {
      const [before] = words();
      heard.heard(tried(`request 0${minute}`));
      if (words()[0] !== before) told.push(minute);
      await clock.advance(60_000);
    }
    expect(told).toEqual([0, 1, 2, 4, 8, 16, 26, 36, 46, 56]);
  });
});
