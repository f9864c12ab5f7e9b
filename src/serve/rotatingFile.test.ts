import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { KUBERAY_ROTATION, RotatingFile } from "./rotatingFile.ts";

const NOON = Date.UTC(2026, 0, 31, 12);
const DAY = 24 * 3600_000;
let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rotating-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const content = (name: string) => readFileSync(join(folder, name), "utf8");

describe("a log file", () => {
  it("has every line as soon as it is written, in a folder that is made for it", () => {
    const file = new RotatingFile(join(folder, "deep/er/operator.log"));
    file.write("one\n");
    file.write("two\n");
    expect(content("deep/er/operator.log")).toBe("one\ntwo\n");
    file.close();
  });

  it("is rotated before it grows too large, and the newest lines are always under its own name", () => {
    const file = new RotatingFile(join(folder, "o.log"), {
      rotation: { bytes: 8, files: 10, age: DAY },
      now: () => NOON,
    });
    for (const line of ["one\n", "two\n", "three\n", "four\n", "a line longer than all of them\n", "end\n"]) {
      file.write(line);
    }
    file.close();
    expect(content("o.log")).toBe("end\n");
    expect(content("o-2026-01-31T12-00-00.000.log")).toBe("one\ntwo\n");
    const all = readdirSync(folder).sort();
    expect(all).toEqual([
      "o-2026-01-31T12-00-00.000.log",
      "o-2026-01-31T12-00-00.001.log",
      "o-2026-01-31T12-00-00.002.log",
      "o-2026-01-31T12-00-00.003.log",
      "o.log",
    ]);
  });

  it("goes on where the last process stopped", () => {
    const rotation = { bytes: 8, files: 10, age: DAY };
    writeFileSync(join(folder, "o.log"), "before\n");
    const file = new RotatingFile(join(folder, "o.log"), { rotation, now: () => NOON });
    file.write("now\n");
    file.close();
    expect([content("o.log"), content("o-2026-01-31T12-00-00.000.log")]).toEqual(["now\n", "before\n"]);
  });

  it("keeps only so many old ones, for so long, and touches no other file", () => {
    const names = ["o-2025-12-01T00-00-00.000.log", "o-2026-01-30T00-00-00.000.log", "o-2026-01-29T00-00-00.000.log"];
    for (const name of [...names, "other.log", "o-mine.log"]) writeFileSync(join(folder, name), "x");
    let now = NOON;
    const file = new RotatingFile(join(folder, "o.log"), {
      rotation: { bytes: 4, files: 2, age: 30 * DAY },
      now: () => now,
    });
    expect(readdirSync(folder)).not.toContain("o-2025-12-01T00-00-00.000.log");
    file.write("one\n");
    file.write("two\n");
    file.close();
    expect(readdirSync(folder).sort()).toEqual([
      "o-2026-01-30T00-00-00.000.log",
      "o-2026-01-31T12-00-00.000.log",
      "o-mine.log",
      "o.log",
      "other.log",
    ]);
    now += 40 * DAY;
    new RotatingFile(join(folder, "o.log"), {
      rotation: { bytes: 4, files: 2, age: 30 * DAY },
      now: () => now,
    }).close();
    expect(readdirSync(folder).sort()).toEqual(["o-mine.log", "o.log", "other.log"]);
  });

  it("that cannot be written for a while is told of, loses those lines, and goes on afterwards", () => {
    const failures: unknown[] = [];
    let now = NOON;
    const file = new RotatingFile(join(folder, "a/o.log"), {
      rotation: { bytes: 4, files: 2, age: DAY },
      now: () => now,
      failed: (error) => failures.push(error),
    });
    file.write("one\n");
    rmSync(join(folder, "a"), { recursive: true });
    // The rename that rotation begins with finds nothing.
    file.write("two\n");
    file.write("three\n");
    expect(failures).toHaveLength(1);
    now += 10_000;
    mkdirSync(join(folder, "a"));
    file.write("four\n");
    file.close();
    expect(content("a/o.log")).toBe("four\n");
  });

  it("that cannot be opened at all is an error at the start", () => {
    writeFileSync(join(folder, "file"), "");
    expect(() => new RotatingFile(join(folder, "file/o.log"))).toThrow();
  });

  it("is rotated at KubeRay's figures", () => {
    expect(KUBERAY_ROTATION).toEqual({ bytes: 524_288_000, files: 10, age: 2_592_000_000 });
  });
});
