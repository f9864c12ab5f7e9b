import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { configFrom } from "../config.ts";
import { makeLog } from "./log.ts";

function logged(encoder: "json" | "console", flags: Record<string, unknown> = {}) {
  const lines: string[] = [];
  const { log: chosen } = configFrom({ flags: { "log-stdout-encoder": encoder, ...flags } });
  const log = makeLog(chosen, { write: (line) => lines.push(line) });
  log.debug({}, "too fine");
  log.warn({ name: "a", error: new Error("boom") }, "it failed");
  return lines;
}

describe("the operator's log", () => {
  it("is a JSON object a line, with KubeRay's keys", () => {
    const [line, ...more] = logged("json");
    expect(more).toEqual([]);
    expect(JSON.parse(line!)).toMatchObject({
      level: "warn",
      ts: expect.stringMatching(/^\d{4}-.*Z$/),
      msg: "it failed",
      name: "a",
      error: expect.stringContaining("Error: boom\n"),
    });
  });

  it("is text for people on demand", () => {
    expect(logged("console")).toEqual([
      expect.stringMatching(/^\S+Z {2}WARN {3}it failed {2}\{"name":"a","error":"Error: boom/),
    ]);
  });

  it.each([
    ["iso8601", /^"\d{4}-\d\d-\d\dT[\d:]+\.\d{3}Z"$/],
    ["rfc3339", /^"\d{4}-\d\d-\d\dT[\d:]+Z"$/],
    ["rfc3339nano", /^"\d{4}-\d\d-\d\dT[\d:]+(\.\d{1,3})?Z"$/],
    ["epoch", /^\d{10}(\.\d{1,3})?$/],
    ["millis", /^\d{13}$/],
    ["nano", /^\d{19}$/],
  ])("tells the time as %s on demand", (encoding, shape) => {
    const [line] = logged("json", { "zap-time-encoding": encoding });
    expect(/"ts":([^,]+),/.exec(line!)![1]).toMatch(shape);
  });

  it("goes into a file as well on demand, in an encoding of its own", () => {
    const folder = mkdtempSync(join(tmpdir(), "log-"));
    const file = join(folder, "operator.log");
    const lines = logged("json", { "log-file-path": file, "log-file-encoder": "console" });
    expect(lines).toHaveLength(1);
    expect(readFileSync(file, "utf8")).toMatch(/^\S+Z {2}WARN {3}it failed/);
    rmSync(folder, { recursive: true });
  });
});
