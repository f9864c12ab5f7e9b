import { describe, expect, test } from "vitest";
import { parseRuntimeEnv } from "./runtimeEnv.ts";

const value = (text: string) => {
  const parsed = parseRuntimeEnv(text);
  return parsed.ok ? parsed.value : expect.fail(parsed.error);
};
const error = (text: string) => {
  const parsed = parseRuntimeEnv(text);
  return parsed.ok ? expect.fail(`accepted as ${JSON.stringify(parsed.value)}`) : parsed.error;
};

describe("a runtime environment", () => {
  test("is the mapping that the text holds", () => {
    expect(value('working_dir: "https://example.com/x.zip"\npip:\n  - requests==2.26.0\nenv_vars: {A: "1"}\n')).toEqual(
      {
        working_dir: "https://example.com/x.zip",
        pip: ["requests==2.26.0"],
        env_vars: { A: "1" },
      },
    );
  });

  test.each(["", "\n", "# only a comment\n", "---\n", "null", "{}"])("%j is empty", (text) => {
    expect(value(text)).toEqual({});
  });

  test("may be JSON, which is YAML", () => {
    expect(value('{"env_vars": {"A": "\\u00e9"}}')).toEqual({ env_vars: { A: "é" } });
  });

  test.each([
    ";",
    "&&",
    "$HOME",
    "$(HOME)",
    "`id`",
    "'",
    '"',
    "a\nb",
    "back\\",
    "naïve – 走",
    "\t",
    "  padded  ",
    "#no",
  ])("keeps the text %j as it is", (text) => {
    expect(value(`env_vars: {A: ${JSON.stringify(text)}}`)).toEqual({ env_vars: { A: text } });
  });

  test("keeps a block of lines as it is", () => {
    expect(value("env_vars:\n  A: |\n    one\n      two\n\n    three \n")).toEqual({
      env_vars: { A: "one\n  two\n\nthree \n" },
    });
  });

  test("reads booleans and octal numbers as Go's reader does", () => {
    expect(value("a: yes\nb: off\nc: y\nd: 0777\ne: 0x1F\nf: 1_000\ng: 'yes'\n")).toEqual({
      a: true,
      b: false,
      c: true,
      d: 511,
      e: 31,
      f: 1000,
      g: "yes",
    });
  });

  test("leaves dates and times the text they are, as Go's reader does", () => {
    expect(value("a: 2026-01-02\nb: 12:30:45\nc: 2026-01-02T03:04:05Z\nd: 1:30.5\n")).toEqual({
      a: "2026-01-02",
      b: "12:30:45",
      c: "2026-01-02T03:04:05Z",
      d: "1:30.5",
    });
  });

  test("turns keys into text, takes merged mappings, and of a key given twice the last value", () => {
    expect(value("base: &b {x: 1}\nother: {<<: *b, 2: two}\na: 1\na: 2\n")).toEqual({
      base: { x: 1 },
      other: { x: 1, "2": "two" },
      a: 2,
    });
  });

  test("treats a key called __proto__ like any other", () => {
    const parsed = value('{"__proto__": {"a": 1}}');
    expect(Object.keys(parsed)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(parsed)).toBe(Object.prototype);
  });
});

describe("what is no runtime environment is refused in one line", () => {
  test.each([
    ["just text", "must be a mapping, not a text"],
    ["- a\n- b\n", "must be a mapping, not a list"],
    ["42", "must be a mapping, not a number"],
    ["yes", "must be a mapping, not a boolean"],
  ])("%j", (text, why) => {
    expect(error(text)).toBe(why);
  });

  test.each(["a: b: c", "a: [1, 2", 'a: "open', "a: 1\n---\nb: 2\n", "\ta: 1", "a: *nowhere"])("%j", (text) => {
    expect(error(text)).toMatch(/^\S.*[^:\n]$/);
  });

  test("naming the place of a mistake", () => {
    expect(error("pip:\n  - a\n b: [")).toContain("line 3");
  });

  test("when a number would arrive as another", () => {
    expect(error("config: {seed: 12345678901234567890}")).toContain("config.seed");
    expect(error("a: [.inf]")).toContain("a[0]");
  });

  test("when a value has no form that Ray could be sent", () => {
    expect(error("a: {b: !!binary aGk=}")).toContain("a.b");
    expect(error("a: !!set {x, y}")).toContain("a: only");
  });

  test("when aliases multiply without bound", () => {
    const levels = Array.from({ length: 9 }, (_, level) =>
      level === 0
        ? "l0: &l0 [x, x, x, x, x, x, x, x, x]"
        : `l${level}: &l${level} [${Array(9)
            .fill(`*l${level - 1}`)
            .join(", ")}]`,
    );
    expect(error(levels.join("\n"))).toContain("alias");
  });
});

describe("a text that is meant to take long: minutes, where each mistake or alias looks at all of the text", () => {
  test.each([
    ["of mistakes", `a: [${"]]".repeat(60_000)}`, /at line 1, column 6$/],
    [
      "of aliases",
      `a: [${Array.from({ length: 20_000 }, (_, i) => `&a${i} x, *a${i}`).join(", ")}]`,
      /more than 1000 aliases/,
    ],
    ["of anything", `a: ${"x".repeat(600_000)}`, /longer than 524288 characters/],
  ])("is given up in words, if it is one %s", (_, text, words) => {
    expect(parseRuntimeEnv(text)).toMatchObject({ ok: false, error: expect.stringMatching(words) });
  });

  test("is not one that has some aliases", () => {
    const some = Array.from({ length: 60 }, () => "*x").join(", ");
    expect(parseRuntimeEnv(`x: &x 1\na: [${some}]`)).toMatchObject({ ok: true });
  });
});
