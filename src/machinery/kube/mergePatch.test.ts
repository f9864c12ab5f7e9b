import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mergePatch } from "./mergePatch.ts";

/** RFC 7386, section 2, as it stands there. */
function apply(target: unknown, patch: unknown): unknown {
  if (typeof patch !== "object" || patch === null || Array.isArray(patch)) return patch;
  const result: Record<string, unknown> =
    typeof target === "object" && target !== null && !Array.isArray(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = apply(result[key], value);
  }
  return result;
}

describe("the difference as a merge patch", () => {
  it.each([
    ["nothing", { a: 1, b: { c: [1, { d: 2 }] } }, { a: 1, b: { c: [1, { d: 2 }] } }, undefined],
    ["a value", { a: 1, b: 2 }, { a: 1, b: 3 }, { b: 3 }],
    ["a key that is gone", { a: 1, b: { c: 1, d: 2 } }, { b: { d: 2 } }, { a: null, b: { c: null } }],
    ["an array, whole", { a: [{ x: 1 }, { y: 2 }] }, { a: [{ x: 1 }, { y: 3 }] }, { a: [{ x: 1 }, { y: 3 }] }],
    ["an object where there was none", { a: "text" }, { a: { b: null, c: 1 } }, { a: { c: 1 } }],
    ["an object that was emptied", { a: { b: 1 } }, { a: {} }, { a: { b: null } }],
    ["an undefined key: nothing", { a: 1 }, { a: 1, b: undefined, c: null }, undefined],
    ["an undefined key within an array: nothing", { a: [{ x: 1 }] }, { a: [{ x: 1, y: undefined }] }, undefined],
  ])("of %s", (_, from, to, expected) => {
    expect(mergePatch(from as Record<string, unknown>, to as Record<string, unknown>)).toEqual(expected);
  });

  it("turns any value into any other", () => {
    const leaf = fc.oneof(fc.integer({ max: 3, min: 0 }), fc.constantFrom("x", "y"), fc.boolean());
    const key = fc.constantFrom("a", "b", "c");
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof({ maxDepth: 3 }, leaf, fc.array(tie("value"), { maxLength: 2 }), tie("object")),
      object: fc.dictionary(key, tie("value"), { maxKeys: 3, noNullPrototype: true }),
    }));
    const object = fc.dictionary(key, value, { maxKeys: 3, noNullPrototype: true }) as fc.Arbitrary<
      Record<string, unknown>
    >;
    fc.assert(
      fc.property(object, object, (from, to) => {
        const patch = mergePatch(from, to);
        expect(apply(from, patch ?? {})).toEqual(to);
        // Nothing more to say afterwards, and nothing said when nothing is to change.
        expect(mergePatch(to, to)).toBeUndefined();
      }),
    );
  });
});
