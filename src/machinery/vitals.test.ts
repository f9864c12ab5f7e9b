import { describe, expect, it } from "vitest";
import { Vitals } from "./vitals.ts";

describe("the vitals of a process", () => {
  it("tell of the parts that are overdue, and by how much", () => {
    let now = 0;
    const vitals = new Vitals(() => now);
    vitals.beat("watch", 10_000);
    vitals.beat("pass", 60_000);
    now = 10_000;
    expect(vitals.overdue()).toEqual([]);
    now = 15_000;
    expect(vitals.overdue()).toEqual([{ part: "watch", seconds: 5 }]);
  });

  it("are well again when the part moves on, and forget one that has ended", () => {
    let now = 0;
    const vitals = new Vitals(() => now);
    vitals.beat("watch", 10_000);
    vitals.beat("pass", 10_000);
    now = 20_000;
    vitals.beat("watch", 10_000);
    vitals.end("pass");
    expect(vitals.overdue()).toEqual([]);
  });
});
