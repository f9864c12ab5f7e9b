import { describe, expect, it } from "vitest";
import { showProgress } from "./longWork.ts";
import { duration, Screen, wantsColour } from "./screen.ts";

function screen(options: { isTTY?: boolean; colour?: boolean; logTo?: "stdout" | "stderr" } = {}) {
  const written = { stdout: "", stderr: "", now: 0 };
  const { isTTY = false, colour = false, logTo } = options;
  const output = (name: "stdout" | "stderr") => ({
    isTTY,
    columns: 40,
    write: (text: string) => {
      written[name] += text;
    },
  });
  return {
    written,
    screen: new Screen({ stdout: output("stdout"), stderr: output("stderr"), colour, logTo, now: () => written.now }),
  };
}

describe("without a terminal", () => {
  it("there are plain lines with their time, no live line and no control character", () => {
    const { screen: plain, written } = screen({ colour: true });
    plain.live("working …");
    written.now = 12_340;
    plain.step("running", "good");
    expect(written.stderr).toBe("   12.3s  running\n");
  });

  it("what a message has a terminal do is left out", () => {
    const { screen: plain, written } = screen();
    plain.step("Failed: \u001b[2J\u001b]52;c;cm0=\u0007\rfine\u009b1A");
    expect(written.stderr).toBe("    0.0s  Failed: [2J]52;c;cm0=fine1A\n");
  });

  it("the job's log goes to stdout and nothing else does", () => {
    const { screen: plain, written } = screen();
    plain.step("running");
    plain.log("one\ntw");
    plain.log("o\n");
    expect(written.stdout).toBe("one\ntwo\n");
  });

  it("the log gives way to the JSON summary", () => {
    const { screen: plain, written } = screen({ logTo: "stderr" });
    plain.log("one\n");
    expect(written).toMatchObject({ stdout: "", stderr: "one\n" });
  });

  it("a log that ends in the middle of a line is ended before the next step", () => {
    const { screen: plain, written } = screen();
    plain.log("no newline");
    plain.step("done");
    expect(written.stdout).toBe("no newline\n");
  });

  it("long work is told now and then", () => {
    const { screen: plain, written } = screen();
    const show = showProgress(plain);
    for (let second = 0; second < 12; second++) {
      written.now = second * 1000;
      show({ step: "Ray 2.56.0", detail: "downloading ray", done: second * 1e6, total: 20e6 });
    }
    expect(written.stderr.trim().split("\n")).toEqual([
      "0.0s  Ray 2.56.0: downloading ray, 0% of 20 MB",
      "    5.0s  Ray 2.56.0: downloading ray, 25% of 20 MB",
      "   10.0s  Ray 2.56.0: downloading ray, 50% of 20 MB",
    ]);
  });
});

describe("on a terminal", () => {
  it("the live line is replaced, and gives way to what is written above it", () => {
    const { screen: live, written } = screen({ isTTY: true });
    live.live("one");
    live.live("two");
    live.step("step");
    live.live("");
    const clear = "\r\u001b[2K";
    expect(written.stderr).toBe(
      `${clear}      0s  one${clear}      0s  two${clear}    0.0s  step\n      0s  two${clear}`,
    );
  });

  it("is never wider than the terminal", () => {
    const { screen: live, written } = screen({ isTTY: true });
    live.live("x".repeat(100));
    expect(written.stderr.length - "\r\u001b[2K".length).toBe(39);
  });
});

describe("colours", () => {
  it.each([
    [true, {}, true],
    [false, {}, false],
    [true, { NO_COLOR: "1" }, false],
    [true, { NO_COLOR: "" }, true],
    [true, { TERM: "dumb" }, false],
  ])("flag %j, environment %j: %j", (flag, env, wanted) => expect(wantsColour(flag, env)).toBe(wanted));
});

describe("a duration", () => {
  it.each([
    [850, "850ms"],
    [4200, "4.2s"],
    [59_990, "60.0s"],
    [185_000, "3m05s"],
    [7_620_000, "2h07m"],
  ])("of %i ms is %s", (milliseconds, text) => expect(duration(milliseconds)).toBe(text));
});
