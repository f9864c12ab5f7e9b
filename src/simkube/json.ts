/**
 * Values as the API server holds them: plain JSON that nobody can change any more.
 *
 * Answers: a frozen copy of a value, whether two values are equal, a canonical text of one.
 * May not: know what a Kubernetes object is, beyond its type.
 *
 * Everything stored is frozen all the way down, so reads hand out the stored value itself instead of a copy, and a
 * change shares all it does not touch with its predecessor. A caller who writes to what it was given gets a TypeError
 * at that line, which is better than a world that changes behind the log's back.
 */
import type { ObjectMeta, Stored } from "../api/object.ts";

export type Fields = { readonly [field: string]: unknown };

/** An object in the store. */
export type Item = Stored<{ apiVersion: string; kind: string; metadata: ObjectMeta }> & Fields;

/** What frozen() made: sharing these is safe, copying them again would be waste. */
const ours = new WeakSet<object>();

/**
 * A copy of `value` as JSON would carry it (undefined members dropped, dates as text), frozen all the way down. Parts
 * that are frozen copies already are shared.
 */
export function frozen<T>(value: T): T {
  return freeze(value) as T;
}

function freeze(value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) return null;
  if (typeof value !== "object" || value === null || ours.has(value)) return value;
  if ("toJSON" in value && typeof value.toJSON === "function") return freeze(value.toJSON());
  let copy: object;
  if (Array.isArray(value)) {
    copy = value.map((element) => (element === undefined ? null : freeze(element)));
  } else {
    const fields: Record<string, unknown> = {};
    for (const key of Object.keys(value)) {
      const member = (value as Fields)[key];
      // A key that JSON may carry but that would change the copy's prototype.
      if (member !== undefined && key !== "__proto__") fields[key] = freeze(member);
    }
    copy = fields;
  }
  Object.freeze(copy);
  ours.add(copy);
  return copy;
}

/** A copy that may be changed: for filling in defaults. */
export function thawed<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(thawed) as T;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, thawed(member)])) as T;
}

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Whether two JSON values say the same; the order of members does not matter. */
export function equal(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((element, index) => equal(element, b[index]));
  }
  if (!isFields(a) || !isFields(b)) return false;
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && equal(a[key], b[key]));
}

/** A text that is the same for equal values. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!isFields(value)) return JSON.stringify(value) ?? "null";
  const keys = Object.keys(value).filter((key) => value[key] !== undefined);
  return `{${keys
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(value[key])}`)
    .join()}}`;
}

/** The value at a path of member names, or undefined. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let here = value;
  for (const key of path) here = isFields(here) && Object.hasOwn(here, key) ? here[key] : undefined;
  return here;
}

/** The text at a path, or undefined when there is none or something else. */
export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  const found = at(value, ...path);
  return typeof found === "string" ? found : undefined;
}

/** The list at a path, empty when there is none. */
export function listAt(value: unknown, ...path: readonly string[]): readonly Fields[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** `object` with `field` set, or without it when `value` is undefined. */
export function withField<T extends object>(object: T, field: string, value: unknown): T {
  if (value !== undefined) return { ...object, [field]: value };
  const { [field]: _, ...rest } = object as Fields;
  return rest as T;
}

/** `object` with some of its metadata changed; undefined removes a field. */
export function withMeta<T extends { readonly metadata: ObjectMeta }>(object: T, change: Partial<ObjectMeta>): T {
  return { ...object, metadata: { ...object.metadata, ...change } };
}
