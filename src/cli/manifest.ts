/**
 * A manifest file as the objects in it: one RayJob and what stands beside it.
 *
 * Answers: which objects, and at which line a field stands, so that a server's complaint can be shown where it belongs.
 * May not: judge fields; the API server's schema does that (apply.ts asks for `fieldValidation=Strict`).
 */
import { readFileSync } from "node:fs";
import { type Document, isCollection, isMap, LineCounter, type Node, parseAllDocuments, visit } from "yaml";
import type { KubeObject } from "../api/object.ts";
import { CannotRun, messageOf } from "./failure.ts";

/** What may stand beside the RayJob. */
const RAY_JOB = "ray.io/v1";
const BESIDE: Readonly<Record<string, string>> = {
  ConfigMap: "v1",
  Secret: "v1",
  Service: "v1",
  // For a RayJob that selects it.
  RayCluster: "ray.io/v1",
};

export interface ManifestObject {
  readonly object: KubeObject & { apiVersion: string; kind: string };
  /** Line (from 1) of a field such as `spec.rayClusterSpec.workerGroupSpecs[0].replicas`, or of the nearest parent that exists. */
  line(path?: string): number;
}

export interface Manifest {
  readonly file: string;
  readonly rayJob: ManifestObject;
  /** In the order of the file. */
  readonly beside: readonly ManifestObject[];
}

/** Reads and parses a file; `-` is stdin. Throws CannotRun with file, line and column. */
export function readManifest(file: string): Manifest {
  return parseManifest(readText(file), file);
}

/** The text of a file; `-` is stdin. Throws CannotRun when it cannot be read. */
export function readText(file: string): string {
  try {
    return readFileSync(file === "-" ? 0 : file, "utf8");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const what =
      code === "ENOENT" ? "there is no such file" : code === "EISDIR" ? "it is a directory" : messageOf(error);
    throw new CannotRun(
      `cannot read ${file}: ${what}`,
      "Give the path of a YAML file with a RayJob, such as examples/rayjob.yaml.",
    );
  }
}

export function parseManifest(text: string, file: string): Manifest {
  const objects = parseDocuments(text, file).map((document) => toObject(document, file));
  return sort(objects, file);
}

/** What stands in a file, whatever it is; the items of a List one by one. */
export interface ManifestDocument {
  readonly content: unknown;
  readonly line: ManifestObject["line"];
}

/** Throws CannotRun with file, line and column for what is no YAML, or no mapping. */
export function parseDocuments(text: string, file: string): ManifestDocument[] {
  const counter = new LineCounter();
  const parsed = parseAllDocuments(text, { lineCounter: counter, prettyErrors: true, uniqueKeys: true });
  const at = (node: unknown) => counter.linePos((node as Node | undefined)?.range?.[0] ?? 0).line;
  const found: ManifestDocument[] = [];
  for (const document of "empty" in parsed ? [] : parsed) {
    const [problem] = document.errors;
    if (problem) {
      const { line, col } = problem.linePos?.[0] ?? counter.linePos(problem.pos[0]);
      const message = problem.message.replace(/ at line \d+, column \d+:?[\s\S]*$/, "");
      throw new CannotRun(`${file}:${line}:${col}: not valid YAML: ${message}`, excerpt(text, line, col));
    }
    const root = document.contents;
    if (!root) continue;
    const content: unknown = toValue(document, file, counter);
    if (content === null) continue;
    if (!isRecord(content)) throw new CannotRun(`${file}:${at(root)}: ${NO_OBJECT}`);
    if (content["kind"] === "List" && Array.isArray(content["items"]) && isMap(root)) {
      const items = root.get("items");
      content["items"].forEach((item: unknown, index) => {
        const node = isCollection(items) ? items.get(index, true) : undefined;
        found.push({ content: item, line: (path) => at(nodeAt(node, path)) });
      });
    } else {
      found.push({ content, line: (path) => at(nodeAt(root, path)) });
    }
  }
  return found;
}

const NO_OBJECT = "a Kubernetes object is a mapping with apiVersion, kind and metadata";

/** The node at a path such as `spec.containers[0].name`, or the nearest parent that exists. */
function nodeAt(root: unknown, path = ""): unknown {
  let here = root;
  for (const key of path.match(/[^.[\]]+/g) ?? []) {
    const next = isCollection(here) ? here.get(/^\d+$/.test(key) && !isMap(here) ? Number(key) : key, true) : undefined;
    if (next === undefined) break;
    here = next;
  }
  return here;
}

/** The document's value with its aliases resolved. Throws CannotRun for one that leads nowhere, or to far too much. */
function toValue(document: Document, file: string, counter: LineCounter): unknown {
  try {
    return document.toJS({ maxAliasCount: 1000 });
  } catch (error) {
    const [, lost] = /Unresolved alias .*: (.*)$/s.exec(messageOf(error)) ?? [];
    let at = document.range?.[0] ?? 0;
    visit(document, {
      Alias(_, { source, range }) {
        if (range && (lost === undefined || source === lost)) {
          at = range[0];
          return visit.BREAK;
        }
      },
    });
    const { line, col } = counter.linePos(at);
    const what =
      lost === undefined ? "its aliases multiply without measure" : `there is no anchor &${lost} before this`;
    throw new CannotRun(`${file}:${line}:${col}: not valid YAML: ${what}`, undefined, error);
  }
}

function toObject({ content, line }: ManifestDocument, file: string): ManifestObject {
  const wrong = (message: string, path = "") => new CannotRun(`${file}:${line(path)}: ${message}`);
  if (!isRecord(content)) throw wrong(NO_OBJECT);
  const { apiVersion, kind, metadata } = content;
  if (typeof kind !== "string") throw wrong("the object has no kind");
  if (typeof apiVersion !== "string") throw wrong(`the ${kind} has no apiVersion`);
  const wanted = kind === "RayJob" ? RAY_JOB : BESIDE[kind];
  if (!wanted) {
    throw new CannotRun(
      `${file}:${line("kind")}: raykeeper run does not apply a ${kind}`,
      `It applies one RayJob with the ${Object.keys(BESIDE).join("s, ")}s beside it. Create other objects with kubectl first.`,
    );
  }
  if (apiVersion !== wanted) throw wrong(`a ${kind} has apiVersion ${wanted}, not ${apiVersion}`, "apiVersion");
  const named = isRecord(metadata) && (metadata["name"] ?? (kind === "RayJob" ? metadata["generateName"] : undefined));
  if (typeof named !== "string" || named === "") throw wrong(`the ${kind} has no metadata.name`, "metadata");
  return { object: content as unknown as ManifestObject["object"], line };
}

function sort(objects: readonly ManifestObject[], file: string): Manifest {
  const jobs = objects.filter(({ object }) => object.kind === "RayJob");
  const [rayJob, second] = jobs;
  if (!rayJob) {
    const found = objects.length ? `it has ${objects.map(({ object }) => object.kind).join(", ")}` : "it is empty";
    throw new CannotRun(
      `${file}: there is no RayJob in it (${found})`,
      "Add an object of apiVersion ray.io/v1, kind RayJob.",
    );
  }
  if (second) {
    const names = jobs.map(
      ({ object, line }) => `${object.metadata.name ?? object.metadata.generateName} (line ${line()})`,
    );
    throw new CannotRun(
      `${file}: there are ${jobs.length} RayJobs in it: ${names.join(", ")}`,
      "raykeeper run follows one job: put each into a file of its own.",
    );
  }
  return { file, rayJob, beside: objects.filter(({ object }) => object.kind !== "RayJob") };
}

/** The line in question with a mark below the column. */
function excerpt(text: string, line: number, column: number): string {
  const source = (text.split("\n")[line - 1] ?? "").slice(0, 160);
  return `${source}\n${" ".repeat(Math.max(0, Math.min(column, 160) - 1))}^`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
