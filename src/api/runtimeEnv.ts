/**
 * `spec.runtimeEnvYAML` as the value that Ray is given.
 *
 * Read as Go's YAML reader does, since manifests were written against it: `yes` and `on` are true, `0777` is octal, a key
 * given twice counts the last time; but a date or `12:30` stays the text it is.
 */
import { LineCounter, parseDocument, visit, type YAMLError } from "yaml";

export type RuntimeEnv =
  | { readonly ok: true; readonly value: Record<string, unknown> }
  | { readonly ok: false; readonly error: string };

/**
 * Characters, and aliases, that are read. While a text is read nothing else goes on, neither in the webhook nor in the
 * leader, which has its lease to renew; and whoever may make a RayJob may write any text.
 */
const LONGEST = 512 * 1024;
const MOST_ALIASES = 1000;

/** The mapping that the text holds, empty for an empty text; `error` is one line that names the place. */
export function parseRuntimeEnv(yamlText: string): RuntimeEnv {
  if (yamlText.length > LONGEST) {
    return { ok: false, error: `is longer than ${LONGEST} characters; what is long is better a file in working_dir` };
  }
  try {
    const lineCounter = new LineCounter();
    const document = parseDocument(yamlText, {
      version: "1.1",
      customTags: (tags) => tags.filter((tag) => typeof tag === "string" || !isTime(tag)),
      intAsBigInt: true,
      uniqueKeys: false,
      logLevel: "error",
      // Each error would quote its line: of a hundred thousand on one line that takes minutes, in which nothing else runs.
      prettyErrors: false,
      lineCounter,
    });
    const [problem] = document.errors;
    if (problem) return { ok: false, error: placed(problem, lineCounter) };
    let aliases = 0;
    visit(document, { Alias: () => (++aliases > MOST_ALIASES ? visit.BREAK : undefined) });
    if (aliases > MOST_ALIASES)
      return { ok: false, error: `has more than ${MOST_ALIASES} aliases; write out some of them` };
    const value: unknown = document.toJS();
    if (value === null || value === undefined) return { ok: true, value: {} };
    if (!isMapping(value)) return { ok: false, error: `must be a mapping, not ${describe(value)}` };
    return { ok: true, value: asJSON(value, "") as Record<string, unknown> };
  } catch (error) {
    return { ok: false, error: firstLine(error instanceof Error ? error.message : String(error)) };
  }
}

/** YAML 1.1 knows dates, and numbers to the base of sixty; Go's reader, to our good fortune, leaves both as text. */
function isTime(tag: { tag: string; format?: string }): boolean {
  return tag.tag === "tag:yaml.org,2002:timestamp" || tag.format === "TIME";
}

/** The value with numbers as JSON has them. Throws for a number that JSON or Ray would receive as another. */
function asJSON(value: unknown, path: string): unknown {
  if (typeof value === "bigint") {
    if (Number.isSafeInteger(Number(value))) return Number(value);
    throw new Error(`${path}: the number ${value} is too large to be passed on exactly; quote it`);
  }
  if (typeof value === "number" && !Number.isFinite(value))
    throw new Error(`${path}: ${value} cannot be passed on as JSON`);
  if (Array.isArray(value)) return value.map((item, index) => asJSON(item, `${path}[${index}]`));
  if (typeof value !== "object" || value === null) return value;
  if (!isMapping(value)) throw new Error(`${path}: only text, numbers, booleans, lists and mappings can be passed on`);
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, asJSON(item, path === "" ? key : `${path}.${key}`)]),
  );
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function describe(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") return "a text";
  return typeof value === "boolean" ? "a boolean" : "a number";
}

function placed({ message, pos: [at] }: YAMLError, lines: LineCounter): string {
  const { line, col } = lines.linePos(at);
  return `${firstLine(message)} at line ${line}, column ${col}`;
}

function firstLine(message: string): string {
  return message.split("\n", 1)[0]!.replace(/:$/, "");
}
