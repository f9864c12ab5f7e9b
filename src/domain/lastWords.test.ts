import { describe, expect, it } from "vitest";
import { lastWords, tellingLine } from "./lastWords.ts";

const TRACEBACK = `Traceback (most recent call last):
  File "services.py", line 649, in get_node_with_retry
    raise RuntimeError(
RuntimeError: Timed out waiting for node info.
\u001b[39m
2026-11-30 07:13:29,554	ERR scripts.py:127 -- \u001b[31m----- END ray_client_server.err tail (exit code(s)=1) -----\u001b[39m
2026-11-30 07:13:29,554	ERR scripts.py:1312 -- Remaining processes will be killed.`;

describe("the line that tells", () => {
  it.each([
    ["a traceback, whatever is printed after it", TRACEBACK, "RuntimeError: Timed out waiting for node info."],
    ["a shell", "starting\nsh: train: not found\n", "sh: train: not found"],
    ["the submitter", "raykeeper: submitted\nraykeeper: Ray refuses the job: x\n", "raykeeper: Ray refuses the job: x"],
    ["a program that names no error", "one\ntwo\n\n", "two"],
    ["nothing", "\n", ""],
  ])("of %s", (_, text, line) => expect(tellingLine(text)).toBe(line));
});

describe("last words", () => {
  it("that are short are taken as they are, on one line", () => {
    expect(lastWords("no such bucket:\n  data\n")).toBe("no such bucket: data");
    expect(lastWords("  ")).toBeUndefined();
  });
  it("that are the end of a log are cut to the line that tells", () => {
    expect(lastWords(TRACEBACK)).toBe("RuntimeError: Timed out waiting for node info");
  });
});
