/**
 * Structural schemas: what a CustomResourceDefinition says about the values of its kind.
 *
 * Answers: a value without what the schema does not know, a value with its defaults, and what is wrong with a value, in
 * the API server's words.
 * May not: run CEL. A rule is looked up by its text in a table (RuleTable) whose entries are plain functions; a rule
 * that is not in the table is not enforced here, and `unknownRules` names it.
 *
 * Parts of a value that are the very same as before a change are taken as they are: they have been through this already.
 */
import { type Cause, fault } from "./errors.ts";
import { canonical, equal, type Fields, isFields } from "./json.ts";

export interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly nullable?: boolean;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly default?: unknown;
  readonly enum?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly not?: Schema;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean;
  readonly "x-kubernetes-embedded-resource"?: boolean;
  readonly "x-kubernetes-int-or-string"?: boolean;
  readonly "x-kubernetes-list-type"?: "atomic" | "set" | "map";
  readonly "x-kubernetes-list-map-keys"?: readonly string[];
  readonly "x-kubernetes-validations"?: readonly { readonly rule: string; readonly message?: string }[];
}

/** Rules of CEL, known by their text. */
export interface Rule {
  readonly rule: string;
  readonly message?: string;
  /** `oldSelf` is undefined when there was no value before; rules that read it are asked on updates only. */
  readonly holds: (self: unknown, oldSelf?: unknown) => boolean;
}
export type RuleTable = ReadonlyMap<string, Rule>;

const join = (path: string, field: string) =>
  /^[A-Za-z_][\w-]*$/.test(field) ? (path ? `${path}.${field}` : field) : `${path}[${field}]`;

/**
 * `value` without fields that the schema does not name. Their paths are added to `unknown`. The root of an object and
 * of an embedded one keeps `apiVersion`, `kind` and `metadata` in any case.
 */
export function prune(
  schema: Schema,
  value: unknown,
  old: unknown,
  unknown: string[],
  path = "",
  root = true,
): unknown {
  if (value === old) return value;
  if (Array.isArray(value)) {
    const items = schema.items;
    return items
      ? mapped(value, (element, index) => prune(items, element, at(old, index), unknown, `${path}[${index}]`, false))
      : value;
  }
  if (!isFields(value)) return value;
  const isObject = root || schema["x-kubernetes-embedded-resource"];
  const pruned = new Edited(value);
  for (const [key, member] of Object.entries(value)) {
    if (isObject && (key === "apiVersion" || key === "kind" || key === "metadata")) continue;
    const inner = memberSchema(schema, key);
    if (inner) {
      pruned.set(key, prune(inner, member, isFields(old) ? old[key] : undefined, unknown, join(path, key), false));
    } else if (!schema["x-kubernetes-preserve-unknown-fields"] && schema.additionalProperties !== true) {
      unknown.push(join(path, key));
      pruned.drop(key);
    }
  }
  return pruned.result;
}

/** `value` with the schema's defaults where nothing stands. A null that may not be counts as nothing. */
export function withDefaults(schema: Schema, value: unknown, old?: unknown): unknown {
  if (value === old && value !== undefined) return value;
  if (Array.isArray(value)) {
    const items = schema.items;
    return items ? mapped(value, (element, index) => withDefaults(items, element, at(old, index))) : value;
  }
  if (!isFields(value)) return value;
  const filled = new Edited(value);
  for (const [key, inner] of Object.entries(schema.properties ?? {})) {
    const given = value[key];
    const absent = !Object.hasOwn(value, key) || (given === null && !inner.nullable);
    if (!absent) filled.set(key, withDefaults(inner, given, isFields(old) ? old[key] : undefined));
    else if (inner.default !== undefined) filled.set(key, withDefaults(inner, inner.default));
    else if (given === null) filled.drop(key);
  }
  if (isFields(schema.additionalProperties)) {
    for (const [key, given] of Object.entries(value)) {
      if (schema.properties && Object.hasOwn(schema.properties, key)) continue;
      if (given === null && !schema.additionalProperties.nullable) filled.drop(key);
      else filled.set(key, withDefaults(schema.additionalProperties, given, isFields(old) ? old[key] : undefined));
    }
  }
  return filled.result;
}

/** What is wrong with `value`; on an update `old` is what stood there before. */
export function validate(
  schema: Schema,
  value: unknown,
  old: unknown,
  rules: RuleTable = new Map(),
  path = "",
): readonly Cause[] {
  const causes: Cause[] = [];
  check(schema, value, old, path, causes, rules);
  return causes;
}

/** The texts of the rules below `schema` that the table does not hold. */
export function unknownRules(schema: Schema, rules: RuleTable): readonly string[] {
  const missing = (schema["x-kubernetes-validations"] ?? []).map(({ rule }) => rule).filter((rule) => !rules.has(rule));
  const inner = [
    ...Object.values(schema.properties ?? {}),
    ...(isFields(schema.additionalProperties) ? [schema.additionalProperties] : []),
    ...(schema.items ? [schema.items] : []),
  ];
  return [...new Set([...missing, ...inner.flatMap((part) => unknownRules(part, rules))])];
}

const typeOf = (value: unknown): string =>
  value === null
    ? "null"
    : Array.isArray(value)
      ? "array"
      : typeof value === "number"
        ? Number.isInteger(value)
          ? "integer"
          : "number"
        : typeof value;

function hasType(wanted: string, found: string): boolean {
  return found === wanted || (wanted === "number" && found === "integer");
}

type Check = (schema: Schema, value: never, path: string) => Cause | undefined;

const stringChecks: readonly Check[] = [
  ({ maxLength }, value: string, path) =>
    maxLength !== undefined && [...value].length > maxLength ? fault.tooLong(path, maxLength) : undefined,
  ({ minLength }, value: string, path) =>
    minLength !== undefined && [...value].length < minLength
      ? fault.invalid(path, value, `${path} in body should be at least ${minLength} chars long`)
      : undefined,
  ({ pattern }, value: string, path) =>
    pattern !== undefined && !regex(pattern).test(value)
      ? fault.invalid(path, value, `${path} in body should match '${pattern}'`)
      : undefined,
  ({ format }, value: string, path) =>
    format !== undefined && formats[format] && !formats[format](value)
      ? fault.invalid(path, value, `${path} in body must be of type ${format}: ${JSON.stringify(value)}`)
      : undefined,
];

const numberChecks: readonly Check[] = [
  ({ minimum, exclusiveMinimum }, value: number, path) =>
    minimum !== undefined && (exclusiveMinimum ? value <= minimum : value < minimum)
      ? fault.invalid(
          path,
          value,
          `${path} in body should be greater than ${exclusiveMinimum ? "" : "or equal to "}${minimum}`,
        )
      : undefined,
  ({ maximum, exclusiveMaximum }, value: number, path) =>
    maximum !== undefined && (exclusiveMaximum ? value >= maximum : value > maximum)
      ? fault.invalid(
          path,
          value,
          `${path} in body should be less than ${exclusiveMaximum ? "" : "or equal to "}${maximum}`,
        )
      : undefined,
  ({ multipleOf }, value: number, path) =>
    multipleOf !== undefined && value % multipleOf !== 0
      ? fault.invalid(path, value, `${path} in body should be a multiple of ${multipleOf}`)
      : undefined,
  ({ format }, value: number, path) =>
    (format === "int32" && Math.abs(value) > 2 ** 31) || (format === "int64" && Math.abs(value) > 2 ** 63)
      ? fault.invalid(path, value, `${path} in body must be of type ${format}: ${JSON.stringify(value)}`)
      : undefined,
];

const listChecks: readonly Check[] = [
  ({ maxItems }, value: readonly unknown[], path) =>
    maxItems !== undefined && value.length > maxItems ? fault.tooMany(path, value.length, maxItems) : undefined,
  ({ minItems }, value: readonly unknown[], path) =>
    minItems !== undefined && value.length < minItems
      ? fault.invalid(path, value.length, `${path} in body should have at least ${minItems} items`)
      : undefined,
];

const fieldsChecks: readonly Check[] = [
  ({ maxProperties }, value: Fields, path) =>
    maxProperties !== undefined && Object.keys(value).length > maxProperties
      ? fault.tooMany(path, Object.keys(value).length, maxProperties)
      : undefined,
  ({ minProperties }, value: Fields, path) =>
    minProperties !== undefined && Object.keys(value).length < minProperties
      ? fault.invalid(
          path,
          Object.keys(value).length,
          `${path} in body should have at least ${minProperties} properties`,
        )
      : undefined,
];

/** Formats of text that are checked; others are words to the reader. */
const formats: Readonly<Record<string, (text: string) => boolean>> = {
  "date-time": (text) =>
    /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text)),
  date: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)),
  byte: (text) => /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text),
  uuid: (text) => /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(text),
};

const regexes = new Map<string, RegExp>();
function regex(pattern: string): RegExp {
  let compiled = regexes.get(pattern);
  if (!compiled) {
    compiled = new RegExp(pattern, "u");
    regexes.set(pattern, compiled);
  }
  return compiled;
}

function check(schema: Schema, value: unknown, old: unknown, path: string, causes: Cause[], rules: RuleTable): void {
  if (value === old && value !== undefined && typeof value === "object") return;
  if (value === null && schema.nullable) return;
  const found = typeOf(value);
  if (schema["x-kubernetes-int-or-string"]) {
    if (found !== "integer" && found !== "string") {
      causes.push(fault.type(path, found, "integer,string"));
      return;
    }
  } else if (schema.type && !hasType(schema.type, found)) {
    causes.push(fault.type(path, found, schema.type));
    return;
  }
  if (schema.enum && !schema.enum.some((allowed) => equal(allowed, value))) {
    causes.push(fault.unsupported(path, value, schema.enum));
  }
  const before = causes.length;
  const checks =
    found === "string"
      ? stringChecks
      : Array.isArray(value)
        ? listChecks
        : isFields(value)
          ? fieldsChecks
          : numberChecks;
  if (found !== "boolean" && found !== "null") {
    for (const one of checks) {
      const cause = one(schema, value as never, path);
      if (cause) causes.push(cause);
    }
  }
  if (Array.isArray(value)) checkList(schema, value, old, path, causes, rules);
  else if (isFields(value)) checkFields(schema, value, old, path, causes, rules);
  checkAlternatives(schema, value, path, causes);
  // Rules are asked about values of the right shape only, so that they need not defend themselves.
  if (causes.length === before) checkRules(schema, value, old, path, causes, rules);
}

function checkFields(
  schema: Schema,
  value: Fields,
  old: unknown,
  path: string,
  causes: Cause[],
  rules: RuleTable,
): void {
  for (const field of schema.required ?? []) {
    if (!Object.hasOwn(value, field)) causes.push(fault.required(join(path, field)));
  }
  for (const [key, member] of Object.entries(value)) {
    const inner = memberSchema(schema, key);
    if (inner) check(inner, member, isFields(old) ? old[key] : undefined, join(path, key), causes, rules);
  }
}

function checkList(
  schema: Schema,
  value: readonly unknown[],
  old: unknown,
  path: string,
  causes: Cause[],
  rules: RuleTable,
): void {
  const keys = schema["x-kubernetes-list-map-keys"];
  const type = schema["x-kubernetes-list-type"];
  if (type === "set" || type === "map") {
    const seen = new Set<string>();
    for (const [index, element] of value.entries()) {
      const identity = type === "map" ? identityOf(element, keys) : element;
      const text = canonical(identity);
      if (seen.has(text)) causes.push(fault.duplicate(`${path}[${index}]`, identity));
      seen.add(text);
    }
  }
  const items = schema.items;
  if (!items) return;
  for (const [index, element] of value.entries()) {
    check(items, element, counterpart(schema, element, index, old), `${path}[${index}]`, causes, rules);
  }
}

const identityOf = (element: unknown, keys: readonly string[] = []) =>
  Object.fromEntries(keys.map((key) => [key, isFields(element) ? element[key] : undefined]));

/** The element of the old list that this one continues. */
function counterpart(schema: Schema, element: unknown, index: number, old: unknown): unknown {
  if (!Array.isArray(old)) return undefined;
  if (old[index] === element) return element;
  if (schema["x-kubernetes-list-type"] !== "map") return undefined;
  const keys = schema["x-kubernetes-list-map-keys"];
  return old.find((candidate) => equal(identityOf(candidate, keys), identityOf(element, keys)));
}

function checkAlternatives(schema: Schema, value: unknown, path: string, causes: Cause[]): void {
  const fits = (part: Schema) => validate(part, value, undefined, undefined, path).length === 0;
  for (const part of schema.allOf ?? []) causes.push(...validate(part, value, undefined, undefined, path));
  if (schema.anyOf && !schema["x-kubernetes-int-or-string"] && !schema.anyOf.some(fits)) {
    causes.push(fault.invalid(path, "", `${path} in body must validate at least one schema (anyOf)`));
  }
  if (schema.oneOf && schema.oneOf.filter(fits).length !== 1) {
    causes.push(fault.invalid(path, "", `${path} in body must validate one and only one schema (oneOf)`));
  }
  if (schema.not && fits(schema.not)) {
    causes.push(fault.invalid(path, "", `${path} in body must not validate the schema (not)`));
  }
}

function checkRules(
  schema: Schema,
  value: unknown,
  old: unknown,
  path: string,
  causes: Cause[],
  rules: RuleTable,
): void {
  for (const { rule, message } of schema["x-kubernetes-validations"] ?? []) {
    const known = rules.get(rule);
    if (!known || (old === undefined && /\boldSelf\b/.test(rule))) continue;
    if (!known.holds(value, old)) {
      causes.push(
        fault.invalid(
          path || "<nil>",
          typeof value === "object" ? undefined : value,
          message ?? `failed rule: ${rule}`,
        ),
      );
    }
  }
}

function memberSchema(schema: Schema, key: string): Schema | undefined {
  if (schema.properties && Object.hasOwn(schema.properties, key)) return schema.properties[key];
  return isFields(schema.additionalProperties) ? (schema.additionalProperties as Schema) : undefined;
}

const at = (list: unknown, index: number): unknown => (Array.isArray(list) ? list[index] : undefined);

/** Array.map that returns the array itself when nothing changed. */
function mapped(list: readonly unknown[], change: (element: unknown, index: number) => unknown): readonly unknown[] {
  const result = list.map(change);
  return result.every((element, index) => element === list[index]) ? list : result;
}

/** Fields that are copied when the first of them changes. */
class Edited {
  result: Fields;
  readonly #original: Fields;

  constructor(original: Fields) {
    this.#original = original;
    this.result = original;
  }

  set(key: string, value: unknown): void {
    if (value !== this.result[key]) this.#copy()[key] = value;
  }

  drop(key: string): void {
    delete this.#copy()[key];
  }

  #copy(): Record<string, unknown> {
    if (this.result === this.#original) this.result = { ...this.#original };
    return this.result as Record<string, unknown>;
  }
}
