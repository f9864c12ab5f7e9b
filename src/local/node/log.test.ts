import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ContainerLog, type ReadOptions } from "./log.ts";

let folder: string;
let log: ContainerLog;
let now: number;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "log-"));
  now = Date.parse("2030-01-01T00:00:00Z");
  log = new ContainerLog(join(folder, "log"), () => now);
});
afterEach(async () => {
  await log.close();
  await rm(folder, { recursive: true });
});

const print = (text: string, stream: "stdout" | "stderr" = "stdout") => log.write(stream, Buffer.from(text));
const read = async (options?: ReadOptions) => {
  const pieces: Buffer[] = [];
  for await (const piece of log.read(options)) pieces.push(piece);
  return Buffer.concat(pieces).toString();
};

describe("a container's log", () => {
  it("gives back what was printed, whatever the pieces it came in", async () => {
    for (const piece of ["on", "e\ntw", "o\n\nthr", "ee ü"]) print(piece);
    await log.end();
    expect(await read()).toBe("one\ntwo\n\nthree ü");
  });

  it("keeps the lines of both streams whole", async () => {
    print("out ");
    print("err\n", "stderr");
    print("put\n");
    expect(await read()).toBe("err\nout put\n");
  });

  it("shows the last lines, and none when none are wanted", async () => {
    print("1\n2\n3\n");
    expect(await read({ tailLines: 2 })).toBe("2\n3\n");
    expect(await read({ tailLines: 0 })).toBe("");
    expect(await read({ tailLines: 9 })).toBe("1\n2\n3\n");
  });

  it("shows the time of each line, and only lines since then", async () => {
    print("old\n");
    now += 5000;
    print("new\n");
    expect(await read({ since: now - 1000, timestamps: true })).toBe("2030-01-01T00:00:05.000Z new\n");
  });

  it("keeps a very long line in one", async () => {
    const long = "x".repeat(50_000);
    print(`${long}\nnext\n`);
    expect(await read()).toBe(`${long}\nnext\n`);
    expect(await read({ timestamps: true })).toMatch(/^\S+ x{50000}\n\S+ next\n$/);
    expect(await read({ tailLines: 2 })).toBe(`${long}\nnext\n`);
  });

  it("stops after as many bytes as wanted", async () => {
    print("12345\n67890\n");
    expect(await read({ limitBytes: 8 })).toBe("12345\n67");
  });

  it("is followed until the container has ended", async () => {
    print("first\n");
    const seen: string[] = [];
    const reading = (async () => {
      for await (const piece of log.read({ follow: true })) {
        seen.push(piece.toString());
        if (seen.length === 1) print("second\n");
        if (seen.length === 2) void log.end();
      }
    })();
    await reading;
    expect(seen).toEqual(["first\n", "second\n"]);
  });

  it("stops following when its reader leaves", async () => {
    print("first\n");
    const leaving = new AbortController();
    for await (const _ of log.read({ follow: true, signal: leaving.signal })) leaving.abort();
  });

  it("lets go of the oldest part of a very large log", async () => {
    const small = new ContainerLog(join(folder, "small"), () => now, 10_000);
    for (let kilobyte = 0; kilobyte < 25; kilobyte++) small.write("stdout", Buffer.from(`${"x".repeat(1023)}\n`));
    small.write("stdout", Buffer.from("the end\n"));
    const text = await small.tail(100, 100_000);
    expect(text.endsWith("the end\n")).toBe(true);
    expect(text.length).toBeLessThan(25_000);
    expect(text.length).toBeGreaterThan(10_000);
    await small.close();
  });
});
