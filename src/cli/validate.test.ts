// What `raykeeper validate` says about a file, with what exit code.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it, vi } from "vitest";
import { describeFailure } from "./failure.ts";
import { type Judged, judge, validateCommand } from "./validate.ts";

const template = (image = "rayproject/ray:2.56.0") => `
      template:
        spec:
          containers:
            - {name: ray, image: "${image}"}`;

const rayJob = (spec: string, metadata = "name: demo") => `apiVersion: ray.io/v1
kind: RayJob
metadata:
  ${metadata}
spec:
${spec
  .trim()
  .split("\n")
  .map((line) => `  ${line}`)
  .join("\n")}
  rayClusterSpec:
    rayVersion: "2.56.0"
    headGroupSpec:${template()}
`;

const one = (text: string): Judged => judge(text, "job.yaml").objects[0]!;
const told = ({ errors }: Judged) => errors.map(({ line, field, rule }) => `${line} ${field} ${rule}`);

describe("of a RayJob it tells", () => {
  it("nothing when it is valid", () => {
    expect(one(rayJob("entrypoint: python x.py"))).toMatchObject({ valid: true, errors: [], warnings: [], line: 1 });
  });

  it("every mistake at once, in the order of the file, each with its line: fields that do not exist, bounds, rules", () => {
    const text = rayJob(
      "entrypoint: x\nentrypont: y\nsuspend: true\npreRunningDeadlineSeconds: 0\nbackoffLimit: 1\njobId: a/b",
    );
    expect(told(one(text))).toEqual(["7 spec.entrypont unknown-field", "9 spec.preRunningDeadlineSeconds schema"]);
    expect(told(one(text.replace("Seconds: 0", "Seconds: 1")))).toEqual([
      "7 spec.entrypont unknown-field",
      "8 spec.suspend suspend-needs-shutdown",
      "11 spec.jobId job-id-in-url",
    ]);
  });

  it("a wrong type, which keeps the rules from being asked", () => {
    const [error] = one(rayJob('backoffLimit: "1"')).errors;
    expect(error).toMatchObject({ field: "spec.backoffLimit", message: 'must be of type integer: "string"', line: 6 });
    expect(one(rayJob('backoffLimit: "1"')).errors).toHaveLength(1);
  });

  it("a rule of the schema once, though the controller has it, too", () => {
    const job = one(rayJob("entrypoint: x\nretryStrategy: {blockingTimeoutSeconds: 4}"));
    expect(told(job)).toEqual(["7 spec.retryStrategy.blockingTimeoutSeconds blocking-timeout-needs-blocking-recreate"]);
  });

  it("a rule that only the schema has", () => {
    const job = one(rayJob("entrypoint: x\nmanagedBy: me"));
    expect(told(job)).toContain("7 spec.managedBy managedByKnown");
  });

  it("that a mistake is in a Pod's template, at its place", () => {
    const text = rayJob("entrypoint: x").replace("{name: ray, ", "{nme: ray, ");
    expect(told(one(text))).toEqual([
      "13 spec.rayClusterSpec.headGroupSpec.template.spec.containers[0].nme unknown-field",
      "13 spec.rayClusterSpec.headGroupSpec.template.spec.containers[0].name schema",
    ]);
  });

  it("nothing about a name that the API server will make, unless it will be too long", () => {
    expect(one(rayJob("entrypoint: x", "generateName: demo-")).valid).toBe(true);
    const long = one(rayJob("entrypoint: x", `generateName: ${"a".repeat(43)}`));
    expect(told(long)).toEqual(["4 metadata.name name-length"]);
  });

  it("that an old version is deprecated, and one that never was, unknown", () => {
    const old = rayJob("entrypoint: x")
      .replace("ray.io/v1", "ray.io/v1alpha1")
      .replace("template:", "rayStartParams: {}\n      template:");
    expect(one(old)).toMatchObject({ valid: true, warnings: [{ field: "apiVersion" }] });
    expect(one(rayJob("entrypoint: x").replace("ray.io/v1", "ray.io/v2"))).toMatchObject({
      valid: false,
      errors: [{ field: "apiVersion", message: "ray.io/v2 is not served" }],
    });
  });

  it("what is allowed and surely a mistake, as a warning", () => {
    const job = one(rayJob("entrypoint: x").replace('"2.56.0"', '"2.9.0"'));
    expect(job.valid).toBe(true);
    expect(job.warnings).toMatchObject([{ field: "spec.rayClusterSpec.rayVersion", line: 8 }]);
  });
});

it("looks at RayClusters, at each item of a List, and passes over what is of another kind", () => {
  const cluster = `{apiVersion: ray.io/v1, kind: RayCluster, metadata: {name: 1a}, spec: {headGroupSpec: {template: {spec: {containers: []}}}}}`;
  const { objects, skipped } = judge(
    `apiVersion: v1\nkind: List\nitems:\n- ${cluster}\n- {apiVersion: v1, kind: Secret}\n---\napiVersion: apps/v1\nkind: RayJob\n`,
    "x.yaml",
  );
  expect(objects.map(told)).toEqual([
    ["4 metadata.name name-dns-1035", "4 spec.headGroupSpec.template.spec.containers group-has-container"],
  ]);
  expect(skipped.map(({ kind, line }) => `${kind} ${line}`)).toEqual(["Secret 5", "RayJob 7"]);
});

it("finds nothing wrong, and nothing to warn of, in the examples", () => {
  for (const file of readdirSync("examples").filter((name) => name.endsWith(".yaml"))) {
    for (const object of judge(readFileSync(join("examples", file), "utf8"), file).objects) {
      expect([...object.errors, ...object.warnings], `${file} ${object.name}`).toEqual([]);
    }
  }
});

describe("the command", () => {
  const folder = mkdtempSync(join(tmpdir(), "validate-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  async function typed(files: string[], output?: "json") {
    const out = vi.spyOn(process.stdout, "write").mockReturnValue(true);
    try {
      const code = await validateCommand(files, output ? { output } : {});
      return { code, text: out.mock.calls.map(([piece]) => String(piece)).join("") };
    } catch (error) {
      return { code: 2, text: describeFailure(error) };
    } finally {
      out.mockRestore();
    }
  }
  const good = write("good.yaml", rayJob("entrypoint: x"));
  const bad = write("bad.yaml", rayJob("entrypoint: ''"));

  it("exits 0 when all are valid, and says so of each", async () => {
    expect(await typed([good])).toEqual({ code: 0, text: `${good}:1: RayJob demo is valid\n` });
  });

  it("exits 1 when one is not, with file, line, field, mistake and remedy", async () => {
    const { code, text } = await typed([good, bad]);
    expect(code).toBe(1);
    expect(text).toContain(
      `${bad}:6: error: spec.entrypoint: must not be empty: give the shell command that Ray runs as the job\n`,
    );
    expect(text).toContain(`${bad}:1: RayJob demo is invalid (1 error)\n`);
  });

  it("tells programs the same as JSON", async () => {
    const { code, text } = await typed([bad], "json");
    expect(code).toBe(1);
    expect(JSON.parse(text)).toMatchObject({
      valid: false,
      skipped: [],
      objects: [{ kind: "RayJob", name: "demo", errors: [{ rule: "entrypoint-present", field: "spec.entrypoint" }] }],
    });
  });

  it.each([
    ["a file that is not there", () => [join(folder, "none.yaml")], "there is no such file"],
    ["a file that is no YAML", () => [write("no.yaml", "a: [")], "not valid YAML"],
    ["files with nothing to check", () => [write("other.yaml", "kind: Secret")], "no RayJob and no RayCluster in"],
    ["other kinds, which it names", () => [write("other.yaml", "kind: Secret")], "other.yaml, only Secret"],
    ["a list of nothing", () => [write("none.yaml", "kind: List\nitems: []")], "none.yaml, nor any other object"],
    ["stdin twice", () => ["-", "-"], "only once"],
  ])("exits 2 for %s", async (_, files, words) => {
    const { code, text } = await typed(files());
    expect(code).toBe(2);
    expect(text).toContain(words);
  });
});
