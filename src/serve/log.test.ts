import { describe, expect, it } from "vitest";
import { makeLog } from "./log.ts";

function logged(encoder: "json" | "console") {
  const lines: string[] = [];
  const log = makeLog(
    { level: "info", stdoutEncoder: encoder, fileEncoder: "json" },
    { write: (line) => lines.push(line) },
  );
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
});
