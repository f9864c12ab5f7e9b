import { describe, expect, it } from "vitest";
import { CannotRun } from "./failure.ts";
import { parseManifest, readManifest } from "./manifest.ts";

const job = `apiVersion: ray.io/v1
kind: RayJob
metadata:
  name: a
spec:
  entrypoint: python a.py
  rayClusterSpec:
    workerGroupSpecs:
      - groupName: small
        replicas: 2
`;
const configMap = `apiVersion: v1
kind: ConfigMap
metadata:
  name: code
data: {}
`;

const failure = (text: string): CannotRun => {
  try {
    parseManifest(text, "job.yaml");
  } catch (error) {
    if (error instanceof CannotRun) return error;
    throw error;
  }
  throw new Error("the manifest was accepted");
};

describe("a manifest", () => {
  it("has one RayJob and what stands beside it, in any order", () => {
    const manifest = parseManifest(`${configMap}---\n${job}---\n# nothing\n`, "job.yaml");
    expect(manifest.rayJob.object.metadata.name).toBe("a");
    expect(manifest.beside.map(({ object }) => object.kind)).toEqual(["ConfigMap"]);
  });

  it("knows the line of a field, and of the nearest parent of a missing one", () => {
    const { rayJob } = parseManifest(`${configMap}---\n${job}`, "job.yaml");
    expect(rayJob.line("spec.entrypoint")).toBe(12);
    expect(rayJob.line("spec.rayClusterSpec.workerGroupSpecs[0].replicas")).toBe(16);
    expect(rayJob.line("spec.nothing.here")).toBe(12);
  });

  it("may be a List", () => {
    const indented = (text: string) => `  - ${text.trimEnd().replaceAll("\n", "\n    ")}\n`;
    const manifest = parseManifest(
      `kind: List\napiVersion: v1\nitems:\n${indented(configMap)}${indented(job)}`,
      "job.yaml",
    );
    expect(manifest.rayJob.line("spec.entrypoint")).toBe(14);
  });

  it("may use anchors", () => {
    const { rayJob } = parseManifest(`${job}    headGroupSpec: &group {a: 1}\n    other: *group\n`, "job.yaml");
    expect(rayJob.object).toMatchObject({ spec: { rayClusterSpec: { other: { a: 1 } } } });
  });

  it("with an alias that leads nowhere, or to far too much, is refused with its place", () => {
    expect(failure(job.replace("name: a", "name: *b")).message).toBe(
      "job.yaml:4:9: not valid YAML: there is no anchor &b before this",
    );
    const lists = ["a: &a [1, 1]"];
    for (const [last, next] of ["ab", "bc", "cd", "de", "ef", "fg"]) {
      lists.push(`${next}: &${next} [${Array(6).fill(`*${last}`)}]`);
    }
    expect(failure(lists.join("\n")).message).toMatch(/^job\.yaml:2:\d+: not valid YAML: its aliases multiply/);
  });

  it("that is not YAML is refused with line, column and the line itself", () => {
    const error = failure("apiVersion: ray.io/v1\nkind: [RayJob\nmetadata: {}\n");
    expect(error.message).toMatch(/^job\.yaml:\d+:\d+: not valid YAML: /);
    expect(error.remedy).toContain("^");
  });

  it("with a key twice is refused at the second one", () => {
    expect(failure(job.replace("spec:", "kind: RayJob\nspec:")).message).toMatch(
      /^job\.yaml:5:1: not valid YAML: .*unique/,
    );
  });

  it.each([
    ["no RayJob", configMap, "job.yaml: there is no RayJob in it (it has ConfigMap)"],
    ["nothing", "# empty\n", "job.yaml: there is no RayJob in it (it is empty)"],
    ["two RayJobs", `${job}---\n${job}`, "job.yaml: there are 2 RayJobs in it: a (line 1), a (line 12)"],
    [
      "a Deployment",
      `${job}---\napiVersion: apps/v1\nkind: Deployment\n`,
      "job.yaml:13: raykeeper run does not apply a Deployment",
    ],
    [
      "a RayJob of another version",
      job.replace("ray.io/v1", "ray.io/v2"),
      "job.yaml:1: a RayJob has apiVersion ray.io/v1, not ray.io/v2",
    ],
    ["a RayJob without name", job.replace("name: a", "labels: {}"), "job.yaml:4: the RayJob has no metadata.name"],
    ["an object without kind", "apiVersion: v1\n", "job.yaml:1: the object has no kind"],
    ["a list", "- 1\n", "job.yaml:1: a Kubernetes object is a mapping with apiVersion, kind and metadata"],
  ])("with %s is refused", (_, text, message) => {
    expect(failure(text).message).toBe(message);
  });

  it("may bring along the RayCluster that the RayJob selects", () => {
    const cluster = "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: shared}\n";
    expect(parseManifest(`${cluster}---\n${job}`, "job.yaml").beside.map(({ object }) => object.kind)).toEqual([
      "RayCluster",
    ]);
  });

  it("that does not exist is named", () => {
    expect(() => readManifest("no/such.yaml")).toThrow("cannot read no/such.yaml: there is no such file");
  });
});
