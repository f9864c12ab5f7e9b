import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { type JobStatus, rayJobSpec, rayJobStatus } from "../../src/api/rayjob.ts";
import { causeOf, conditionAdvice, phaseAdvice } from "../../src/domain/rayjob/advice.ts";

const file = fileURLToPath(new URL("../../docs/rayjob.md", import.meta.url));
const page = readFileSync(file, "utf8");

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly default?: unknown;
}

/** Explained elsewhere: by KubeRay, by Kubernetes, and in a section of the page. */
const whole = ["rayClusterSpec", "submitterPodTemplate", "rayClusterStatus", "conditions"];

/** Every field that has no fields: `retryStrategy.type`, `attempts[].number`. */
function leaves(schema: Schema, path = ""): [string, Schema][] {
  if (whole.includes(path)) return [[path, schema]];
  if (schema.items?.properties) return leaves(schema.items, `${path}[]`);
  if (!schema.properties) return [[path, schema]];
  return Object.entries(schema.properties).flatMap(([name, inner]) => leaves(inner, path ? `${path}.${name}` : name));
}

/** The tables under a heading, up to the next one of any level, as rows of cells; headers and rules left out. */
function rows(heading: string): string[][] {
  const [, section] = page.split(new RegExp(`^#+ ${heading}$`, "m"));
  const lines = (section ?? "").split(/^#+ /m)[0]!.split("\n");
  const isRow = (line: string | undefined) => line?.startsWith("|") === true;
  return lines
    .filter((line, index) => isRow(line) && !line.startsWith("|---") && !lines[index + 1]?.startsWith("|---"))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
}
const names = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);
const firsts = (heading: string): string[] => rows(heading).flatMap(([cell]) => names(cell!));
const heading = { phases: "Phases: `jobDeploymentStatus`", jobStatus: "Ray's word: `jobStatus`" };

describe("the user's guide to a RayJob", () => {
  it("explains every field of spec and no other, with its default", () => {
    const fields = leaves(rayJobSpec as Schema);
    expect(firsts("The fields of spec").sort()).toEqual(fields.map(([path]) => path).sort());
    const told = rows("The fields of spec").flatMap(([cell, value]) => names(cell!).map((name) => [name, value]));
    expect(Object.fromEntries(told)).toEqual(
      Object.fromEntries(fields.map(([path, { default: value }]) => [path, value === undefined ? "" : `${value}`])),
    );
  });

  it("explains every field of status and no other", () => {
    expect(firsts("The fields of status").sort()).toEqual(
      leaves(rayJobStatus as Schema)
        .map(([path]) => path)
        .sort(),
    );
  });

  it("explains every phase", () => {
    const { New: _, Deleting: __, ManagedElsewhere: ___, ...phases } = phaseAdvice;
    expect(firsts(heading.phases).filter((name) => name in phaseAdvice)).toEqual(
      expect.arrayContaining(Object.keys(phases)),
    );
  });

  it("explains every word of Ray's", () => {
    const words: Record<Exclude<JobStatus, "">, true> = {
      PENDING: true,
      RUNNING: true,
      SUCCEEDED: true,
      FAILED: true,
      STOPPED: true,
    };
    expect(firsts(heading.jobStatus)).toEqual(Object.keys(words));
  });

  it("explains every reason, and every cause beside the reason that it comes with", () => {
    let reason = "";
    const told = rows("Reasons").flatMap(([first, second]) => {
      reason = names(first!)[0] ?? reason;
      return names(second!).map((cause) => [reason, cause]);
    });
    expect(firsts("Reasons").sort()).toEqual(Object.keys(causeOf).sort());
    const { JobSucceeded: _, ...causes } = conditionAdvice.Failed;
    expect([...new Set(told.map(([, cause]) => cause))].sort()).toEqual(Object.keys(causes).sort());
    for (const [of, cause] of Object.entries(causeOf)) if (cause) expect(told).toContainEqual([of, cause]);
  });

  it("explains every condition, with each of its reasons", () => {
    expect(firsts("Conditions").sort()).toEqual(Object.keys(conditionAdvice).sort());
    for (const [type, , reasons] of rows("Conditions")) {
      const of = names(type!)[0] as keyof typeof conditionAdvice;
      // The causes of a failure have a table of their own.
      const all = of === "Failed" ? ["JobSucceeded"] : Object.keys(conditionAdvice[of]);
      expect(names(reasons!), of).toEqual(expect.arrayContaining(all));
    }
  });

  it("leads nowhere that does not exist", () => {
    const anchorsOf = (text: string): string[] =>
      [...text.matchAll(/^#+ (.+)$/gm)].map(([, title]) =>
        title!
          .toLowerCase()
          .replace(/[^\w\s-]/g, "")
          .replaceAll(" ", "-"),
      );
    const links = [...page.matchAll(/\]\(([^)#]*)(?:#([^)]*))?\)/g)];
    expect(links.length).toBeGreaterThan(20);
    for (const [link, path, anchor] of links) {
      const target = path ? join(dirname(file), path) : file;
      expect(existsSync(target), link).toBe(true);
      if (anchor) expect(anchorsOf(readFileSync(target, "utf8")), link).toContain(anchor);
    }
  });
});
