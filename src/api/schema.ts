/**
 * The vocabulary of our schemas: TypeBox types that are structural schemas as they stand, so that the TypeScript type,
 * the CRD and the check of a manifest come from one text.
 *
 * A structural schema is JSON Schema with fewer words (no `$ref`, no `oneOf`, no `additionalProperties` beside
 * `properties`) and some more of its own (`x-kubernetes-*`, `nullable`), which TypeBox carries along.
 */
import Type, { type Static, type TSchema, type TSchemaOptions } from "typebox";
import definitions from "./generated/structural.json" with { type: "json" };
import type { PodTemplateSpec, Quantity } from "./kubernetes.ts";

const QUANTITY_PATTERN =
  "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$";

const INT_OR_STRING = { anyOf: [{ type: "integer" }, { type: "string" }], "x-kubernetes-int-or-string": true } as const;

export const int32 = (options: TSchemaOptions = {}) => Type.Integer({ format: "int32", ...options });
export const int64 = (options: TSchemaOptions = {}) => Type.Integer({ format: "int64", ...options });
export const text = (options: TSchemaOptions = {}) => Type.String(options);
export const flag = (options: TSchemaOptions = {}) => Type.Boolean(options);
export const time = (options: TSchemaOptions = {}) => Type.String({ format: "date-time", ...options });
export const quantity = (options: TSchemaOptions = {}) =>
  Type.Unsafe<Quantity>({ ...INT_OR_STRING, pattern: QUANTITY_PATTERN, ...options });

/** A string whose values the schema enforces. */
export const oneOf = <const Values extends readonly string[]>(values: Values, options: TSchemaOptions = {}) =>
  Type.Unsafe<Values[number]>({ type: "string", enum: [...values], ...options });

/** A string of which TypeScript knows the values, while the schema lets any pass: status fields may gain values. */
export const known = <Values extends string>(options: TSchemaOptions = {}) =>
  Type.Unsafe<Values>({ type: "string", ...options });

export const mapOf = <Item extends TSchema>(item: Item, options: TSchemaOptions = {}) =>
  Type.Unsafe<Record<string, Static<Item>>>({ type: "object", additionalProperties: item, ...options });
export const textMap = (options: TSchemaOptions = {}) => mapOf(text(), options);

export const list = <Item extends TSchema>(item: Item, options: TSchemaOptions = {}) => Type.Array(item, options);
export const atomicList = <Item extends TSchema>(item: Item, options: TSchemaOptions = {}) =>
  Type.Array(item, { "x-kubernetes-list-type": "atomic", ...options });
/** A list whose elements are known by the field `key`: server-side apply merges them one by one. */
export const listMap = <Item extends TSchema>(key: string, item: Item, options: TSchemaOptions = {}) =>
  Type.Array(item, { "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key], ...options });

/** `metav1.Condition`. */
export const condition = () =>
  Type.Object({
    type: text({
      maxLength: 316,
      pattern:
        "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
    }),
    status: oneOf(["True", "False", "Unknown"]),
    reason: text({ minLength: 1, maxLength: 1024, pattern: "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$" }),
    message: text({ maxLength: 32768 }),
    lastTransitionTime: time(),
    observedGeneration: Type.Optional(int64({ minimum: 0 })),
  });

type Definition = keyof typeof definitions;

/** What the generated definitions refer to, and a CRD spells in a way of its own. */
const special: Readonly<Record<string, object>> = {
  Quantity: { ...INT_OR_STRING, pattern: QUANTITY_PATTERN },
  IntOrString: INT_OR_STRING,
  /** Metadata inside a template: what a user may set there. Without properties it would be pruned. */
  ObjectMeta: {
    type: "object",
    properties: {
      annotations: { type: "object", additionalProperties: { type: "string" } },
      finalizers: { type: "array", items: { type: "string" } },
      labels: { type: "object", additionalProperties: { type: "string" } },
      name: { type: "string" },
      namespace: { type: "string" },
    },
  },
};

/** A part of Kubernetes' own API as a structural schema with every reference resolved; `T` is its generated type. */
export function kubernetes<T>(name: Definition, options: TSchemaOptions = {}) {
  return Type.Unsafe<T>({ ...(resolve({ $ref: name }) as object), ...options });
}

function resolve(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(resolve);
  if (typeof schema !== "object" || schema === null) return schema;
  const { $ref, ...rest } = schema as { $ref?: string };
  const here = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, resolve(value)]));
  if ($ref === undefined) return here;
  const definition = special[$ref] ?? resolve(definitions[$ref as Definition]);
  if (definition === undefined) throw new Error(`no schema is called ${$ref}`);
  return { ...definition, ...here };
}

/**
 * A Pod template of which only the skeleton is checked, and everything else kept. The deprecated versions use it: with
 * full templates in both versions, a definition no longer fits into the annotation that `kubectl apply` keeps on it.
 */
export function looseTemplate() {
  const keep = { "x-kubernetes-preserve-unknown-fields": true };
  const container = Type.Object({ name: text() }, keep);
  const spec = Type.Object({ containers: list(container) }, keep);
  return Type.Unsafe<PodTemplateSpec>({
    type: "object",
    properties: { metadata: special["ObjectMeta"], spec },
    ...keep,
  });
}

/** The fields `names` of an object's schema, and `others`: an older version of it, without its rules. */
export function subset<
  Properties extends Record<string, TSchema>,
  Names extends keyof Properties & string,
  Others extends Record<string, TSchema>,
>(object: { properties: Properties }, names: readonly Names[], others: Others = {} as Others) {
  const kept = Object.fromEntries(names.map((name) => [name, object.properties[name]])) as Pick<Properties, Names>;
  return Type.Object({ ...kept, ...others });
}
