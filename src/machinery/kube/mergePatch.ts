/**
 * The difference between two JSON values as a merge patch (RFC 7386): what is gone becomes null, objects are compared
 * key by key, anything else, arrays included, is replaced whole.
 */

type JsonObject = Readonly<Record<string, unknown>>;

/** The smallest patch that turns `from` into `to`; undefined when there is nothing to change. Null and undefined mean absent. */
export function mergePatch(from: JsonObject, to: JsonObject): JsonObject | undefined {
  const patch: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const [old, wanted] = [from[key] ?? undefined, to[key] ?? undefined];
    if (wanted === undefined) {
      if (old !== undefined) patch[key] = null;
    } else if (isObject(old) && isObject(wanted)) {
      const nested = mergePatch(old, wanted);
      if (nested) patch[key] = nested;
    } else if (!same(old, wanted)) patch[key] = present(wanted);
  }
  return Object.keys(patch).length > 0 ? patch : undefined;
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Leaves out keys that mean absent: inside a patch a null would be an instruction, in an array it would stay. */
function present(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(present);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, inner]) => inner !== null && inner !== undefined)
      .map(([key, inner]) => [key, present(inner)]),
  );
}

function same(a: unknown, b: unknown): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, at) => same(item, b[at]));
  if (isObject(a) && isObject(b)) return mergePatch(a, b) === undefined;
  return a === b;
}
