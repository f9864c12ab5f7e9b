import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { type Entry, tar } from "./tar.ts";

const entries: readonly Entry[] = [
  { path: "usr/bin/tool", file: Buffer.from("#!/bin/true\n"), mode: 0o755 },
  { path: "tool", link: "usr/bin/tool" },
  { path: "tmp", folder: true, mode: 0o1777 },
  { path: "empty", file: Buffer.alloc(0), mode: 0o644 },
];

const shown = (archive: Buffer) => {
  const { stdout, stderr, status } = spawnSync("tar", ["--list", "--verbose", "--numeric-owner", "--utc"], {
    input: archive,
    encoding: "utf8",
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout
    .trim()
    .split("\n")
    .map((line) => line.replace(/ +/g, " "));
};

describe("an archive", () => {
  it("is read by tar as what went in, with the folders in between, owned by root, without a time", () => {
    expect(shown(tar(entries))).toEqual([
      "-rw-r--r-- 0/0 0 1970-01-01 00:00 empty",
      "drwxrwxrwt 0/0 0 1970-01-01 00:00 tmp/",
      "lrwxrwxrwx 0/0 0 1970-01-01 00:00 tool -> usr/bin/tool",
      "drwxr-xr-x 0/0 0 1970-01-01 00:00 usr/",
      "drwxr-xr-x 0/0 0 1970-01-01 00:00 usr/bin/",
      "-rwxr-xr-x 0/0 12 1970-01-01 00:00 usr/bin/tool",
    ]);
  });

  it("has the same bytes in whichever order its entries come", () => {
    expect(tar([...entries].reverse()).equals(tar(entries))).toBe(true);
  });

  it("has each path once", () => {
    expect(() => tar([...entries, { path: "tmp", link: "elsewhere" }])).toThrow("tmp is there twice");
  });

  it("does not cut a name that does not fit", () => {
    expect(() => tar([{ path: "x".repeat(100), file: Buffer.alloc(1), mode: 0o644 }])).toThrow("too long a name");
  });
});
