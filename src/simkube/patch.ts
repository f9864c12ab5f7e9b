/**
 * Changes to a value, sent as a difference: JSON merge patch (RFC 7386) and JSON patch (RFC 6902).
 *
 * Answers: the value after the patch; what the patch does not touch is shared with the value before it.
 * May not: change the value it is given.
 */
import { badRequest, patchDoesNotApply } from "./errors.ts";
import { equal, type Fields, isFields } from "./json.ts";

/** RFC 7386: null removes, an object merges, anything else replaces. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch;
  const result: Record<string, unknown> = isFields(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = mergePatch(result[key], value);
  }
  return result;
}

/** RFC 6902. Throws 400 for what is no patch and 422 for one that does not apply (a failed `test` among them). */
export function jsonPatch(target: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw badRequest("json: cannot unmarshal object into Go value of type jsonpatch.Patch");
  return patch.reduce<unknown>((value, step) => {
    if (!isFields(step)) throw badRequest("a JSON patch is a list of operations");
    const operation = operations[String(step.op)];
    if (!operation) throw patchDoesNotApply(`Unexpected kind: ${String(step.op)}`);
    return operation(value, step);
  }, target);
}

const operations: Readonly<Record<string, (value: unknown, step: Fields) => unknown>> = {
  add: (value, step) => put(value, pointer(step.path), step.value, "add"),
  remove: (value, step) => take(value, pointer(step.path), "remove"),
  replace: (value, step) => {
    const path = pointer(step.path);
    read(value, path, "replace");
    return path.length === 0 ? step.value : edit(value, path, "replace", (parent, key) => replaced(parent, key, step));
  },
  move: (value, step) => {
    const from = pointer(step.from);
    return put(take(value, from, "move"), pointer(step.path), read(value, from, "move"), "move");
  },
  copy: (value, step) => put(value, pointer(step.path), read(value, pointer(step.from), "copy"), "copy"),
  test: (value, step) => {
    // A test for null also holds where there is nothing, as the server's library has it.
    const path = pointer(step.path);
    const found = step.value == null ? lenient(value, path) : read(value, path, "test");
    if (equal(found ?? null, step.value ?? null)) return value;
    throw patchDoesNotApply(`testing value ${String(step.path)} failed: test failed`);
  },
};

function replaced(parent: unknown[] | Record<string, unknown>, key: string, step: Fields): void {
  if (Array.isArray(parent)) parent[Number(key)] = step.value;
  else parent[key] = step.value;
}

type Pointer = readonly string[];

function pointer(text: unknown): Pointer {
  if (typeof text !== "string" || (text !== "" && !text.startsWith("/"))) {
    throw patchDoesNotApply(`invalid JSON pointer: ${JSON.stringify(text)}`);
  }
  const keys = text
    .split("/")
    .slice(1)
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
  if (keys.includes("__proto__")) throw patchDoesNotApply("__proto__ is no field");
  return keys;
}

const missing = (operation: string, path: Pointer) =>
  patchDoesNotApply(`${operation} operation does not apply: doc is missing path: "/${path.join("/")}": missing value`);

function child(value: unknown, key: string): unknown {
  if (Array.isArray(value)) return /^(0|[1-9]\d*)$/.test(key) ? value[Number(key)] : undefined;
  return isFields(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

const lenient = (value: unknown, path: Pointer): unknown => path.reduce(child, value);

function read(value: unknown, path: Pointer, operation: string): unknown {
  const found = lenient(value, path);
  if (found === undefined) throw missing(operation, path);
  return found;
}

/** Copies the way down to the parent of what `path` names, and lets `change` work on the copy of that parent. */
function edit(
  value: unknown,
  path: Pointer,
  operation: string,
  change: (parent: unknown[] | Record<string, unknown>, key: string) => void,
): unknown {
  const [key, ...rest] = path as [string, ...string[]];
  if (!Array.isArray(value) && !isFields(value)) throw missing(operation, path);
  const copy: unknown[] | Record<string, unknown> = Array.isArray(value) ? [...value] : { ...value };
  if (rest.length === 0) change(copy, key);
  else {
    const inner = child(value, key);
    if (inner === undefined) throw missing(operation, path);
    const next = edit(inner, rest, operation, change);
    if (Array.isArray(copy)) copy[Number(key)] = next;
    else copy[key] = next;
  }
  return copy;
}

function put(value: unknown, path: Pointer, added: unknown, operation: string): unknown {
  if (path.length === 0) return added;
  return edit(value, path, operation, (parent, key) => {
    if (!Array.isArray(parent)) {
      parent[key] = added;
      return;
    }
    const index = key === "-" ? parent.length : /^(0|[1-9]\d*)$/.test(key) ? Number(key) : -1;
    if (index < 0 || index > parent.length) {
      throw patchDoesNotApply(`add operation does not apply: Unable to access invalid index: ${key}`);
    }
    parent.splice(index, 0, added);
  });
}

function take(value: unknown, path: Pointer, operation: string): unknown {
  read(value, path, operation);
  if (path.length === 0) return null;
  return edit(value, path, operation, (parent, key) => {
    if (Array.isArray(parent)) parent.splice(Number(key), 1);
    else delete parent[key];
  });
}
