/**
 * `raykeeper validate`: what an API server with our CRDs and our webhook would say about the RayJobs and RayClusters of a
 * file, without one.
 *
 * Answers: every mistake with file, line and field, and what is legal but surely wrong. Exit code 0 all are valid, warned of
 * or not; 1 one is not; 2 a file cannot be read or holds nothing to validate.
 * May not: know a rule itself. The schema, its rules and the controller's are in api/ and domain/.
 */
import { crds } from "../api/crds.ts";
import type { RayCluster } from "../api/raycluster.ts";
import type { RayJob } from "../api/rayjob.ts";
import { type Rule, rules, ruleTable } from "../api/rules.ts";
import { rayClusterCautions } from "../domain/raycluster/cautions.ts";
import { rayClusterViolations } from "../domain/raycluster/validate.ts";
import { rayJobCautions } from "../domain/rayjob/cautions.ts";
import { rayJobViolations } from "../domain/rayjob/validate.ts";
import { defaultSettings, type Settings } from "../domain/settings.ts";
import type { Violation } from "../domain/validation.ts";
import { prune, type Schema, validate, withDefaults } from "../simkube/schema.ts";
import { CannotRun } from "./failure.ts";
import { type ManifestDocument, parseDocuments, readText } from "./manifest.ts";

export interface ValidateOptions {
  readonly output?: "json";
}

/** One sentence about a field. */
interface Remark {
  readonly line: number;
  readonly field: string;
  /** Name of the rule; `schema` for the schema's own. */
  readonly rule: string;
  readonly message: string;
  readonly remedy?: string;
}

export interface Judged {
  readonly file: string;
  readonly line: number;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  readonly valid: boolean;
  readonly errors: readonly Remark[];
  readonly warnings: readonly Remark[];
}

export interface Judgement {
  readonly objects: readonly Judged[];
  /** Of other kinds, which are not looked at. */
  readonly skipped: readonly { readonly file: string; readonly line: number; readonly kind: string }[];
}

export async function validateCommand(files: readonly string[], { output }: ValidateOptions): Promise<number> {
  if (files.filter((file) => file === "-").length > 1) throw new CannotRun("stdin (-) can be read only once");
  const judgements = files.map((file) => judge(readText(file), file === "-" ? "stdin" : file));
  const objects = judgements.flatMap((one) => one.objects);
  const skipped = judgements.flatMap((one) => one.skipped);
  if (objects.length === 0) {
    const where = files.map((file) => (file === "-" ? "stdin" : file)).join(", ");
    const others = [...new Set(skipped.map(({ kind }) => kind))].join(", ");
    const found = others === "" ? "nor any other object" : `only ${others}`;
    throw new CannotRun(`there is no RayJob and no RayCluster in ${where}, ${found}`);
  }
  const valid = objects.every((one) => one.valid);
  process.stdout.write(
    output === "json" ? `${JSON.stringify({ valid, objects, skipped }, null, 2)}\n` : asText({ objects, skipped }),
  );
  return valid ? 0 : 1;
}

/** What is to be said of each object of a file. Throws CannotRun for what is no YAML. */
export function judge(text: string, file: string, settings: Settings = defaultSettings): Judgement {
  const objects: Judged[] = [];
  const skipped: Judgement["skipped"][number][] = [];
  for (const document of parseDocuments(text, file)) {
    const { apiVersion, kind } = (document.content ?? {}) as { apiVersion?: unknown; kind?: unknown };
    const ours = typeof kind === "string" && kind in KINDS && /^ray\.io\//.test(String(apiVersion));
    if (ours) objects.push(judgeObject(document, kind as Kind, String(apiVersion), file, settings));
    else
      skipped.push({ file, line: document.line(), kind: typeof kind === "string" ? kind : "an object without kind" });
  }
  return { objects, skipped };
}

/** The rule of what the schema itself refuses. */
const SCHEMA = "schema";

const KINDS = {
  RayJob: {
    violations: (object: object, settings: Settings) => rayJobViolations(object as RayJob, settings),
    cautions: (object: object, settings: Settings) => rayJobCautions(object as RayJob, settings),
  },
  RayCluster: {
    violations: (object: object, settings: Settings) => rayClusterViolations(object as RayCluster, settings),
    cautions: (object: object, settings: Settings) => rayClusterCautions(object as RayCluster, settings),
  },
} as const satisfies Record<string, Record<string, (object: object, settings: Settings) => Violation[]>>;
type Kind = keyof typeof KINDS;

interface Metadata {
  readonly name?: string;
  readonly generateName?: string;
  readonly namespace?: string;
}

function judgeObject(
  { content, line }: ManifestDocument,
  kind: Kind,
  apiVersion: string,
  file: string,
  settings: Settings,
): Judged {
  const metadata = ((content as { metadata?: unknown }).metadata ?? {}) as Metadata;
  const remark = ({ at, rule, text, remedy }: Violation): Remark => ({
    line: line(at),
    field: at,
    rule,
    message: text,
    remedy,
  });
  const definition = crds().find(({ spec }) => spec.names.kind === kind)!;
  const version = definition.spec.versions.find(({ name }) => `ray.io/${name}` === apiVersion);
  const errors: Remark[] = [];
  const warnings: Remark[] = [];
  if (!version) {
    const message = `${apiVersion} is not served`;
    errors.push({ line: line("apiVersion"), field: "apiVersion", rule: SCHEMA, message, remedy: "use ray.io/v1" });
  } else {
    if (version.deprecated) {
      const message = `${apiVersion} is deprecated`;
      warnings.push({
        line: line("apiVersion"),
        field: "apiVersion",
        rule: SCHEMA,
        message,
        remedy: "use ray.io/v1",
      });
    }
    const schema = version.schema!.openAPIV3Schema as Schema;
    const ofSchema = schemaErrors(schema, content, line);
    errors.push(...ofSchema.unknown);
    let found: Violation[] = [];
    // The rules trust the schema's shape: on another they would stumble, or say what only follows from it.
    if (ofSchema.wrong.every(({ rule }) => rule !== SCHEMA)) {
      const object = named(withDefaults(schema, content) as object, metadata);
      const { violations, cautions } = KINDS[kind];
      found = violations(object, settings);
      warnings.push(...cautions(object, settings).map(remark));
    }
    // Some of the schema's rules are the controller's, too, which names field and remedy.
    errors.push(...ofSchema.wrong.filter(({ message }) => !found.some(({ text }) => text.includes(message))));
    errors.push(...found.map(remark));
  }
  const { name = metadata.generateName ?? "", namespace } = metadata;
  const inOrder = (remarks: Remark[]) => remarks.sort((one, other) => one.line - other.line);
  return {
    file,
    line: line(),
    kind,
    name,
    ...(namespace !== undefined && { namespace }),
    valid: errors.length === 0,
    errors: inOrder(errors),
    warnings: inOrder(warnings),
  };
}

/** The name that the API server makes of a `generateName` has five characters more. */
const named = (object: object, { name, generateName }: Metadata): object =>
  name === undefined && generateName !== undefined
    ? { ...object, metadata: { ...(object as { metadata: object }).metadata, name: `${generateName}xxxxx` } }
    : object;

/** What the schema, and the rules in it, say. */
function schemaErrors(schema: Schema, content: unknown, line: (path: string) => number) {
  const paths: string[] = [];
  prune(schema, content, undefined, paths);
  const unknown = paths.map((field) => ({
    line: line(field),
    field,
    rule: "unknown-field",
    message: "there is no such field",
    remedy: "correct its name, or remove it",
  }));
  const wrong = validate(schema, withDefaults(schema, content), undefined, ruleTable).map(({ field, message }) => {
    const rule = Object.values<Rule>(rules).find((one) => message.endsWith(one.message));
    return { line: line(field), field, rule: rule?.id ?? SCHEMA, message: tidy(message, field) };
  });
  return { unknown, wrong };
}

/** The API server's words without the path, which stands before them anyway. */
const tidy = (message: string, field: string): string =>
  message.replace(`${field} in body `, "").replace(/^Invalid value: ("[^"]*": )?/, "");

function asText({ objects, skipped }: Judgement): string {
  const lines = objects.flatMap((object) => {
    const told = (word: string, { line, field, message, remedy }: Remark) =>
      `${object.file}:${line}: ${word}: ${field}: ${message}${remedy ? `: ${remedy}` : ""}`;
    return [
      ...object.errors.map((one) => told("error", one)),
      ...object.warnings.map((one) => told("warning", one)),
      `${object.file}:${object.line}: ${object.kind} ${object.namespace ? `${object.namespace}/` : ""}${object.name || "without a name"} is ${verdictOn(object)}`,
    ];
  });
  const others = skipped.map(({ file, line, kind }) => `${file}:${line}: ${kind} was not looked at`);
  return [...lines, ...others].map((line) => `${line}\n`).join("");
}

function verdictOn({ errors, warnings }: Judged): string {
  const count = (list: readonly unknown[], word: string) => `${list.length} ${word}${list.length === 1 ? "" : "s"}`;
  const said = [
    ...(errors.length > 0 ? [count(errors, "error")] : []),
    ...(warnings.length > 0 ? [count(warnings, "warning")] : []),
  ];
  return `${errors.length > 0 ? "invalid" : "valid"}${said.length > 0 ? ` (${said.join(", ")})` : ""}`;
}
