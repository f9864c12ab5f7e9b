/** Both patch formats, by the examples of their specifications. */
import { describe, expect, it } from "vitest";
import { frozen } from "./json.ts";
import { jsonPatch, mergePatch } from "./patch.ts";

describe("a merge patch", () => {
  // The table of RFC 7386, appendix A.
  it.each<[unknown, unknown, unknown]>([
    [{ a: "b" }, { a: "c" }, { a: "c" }],
    [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
    [{ a: "b" }, { a: null }, {}],
    [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
    [{ a: ["b"] }, { a: "c" }, { a: "c" }],
    [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
    [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
    [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
    [
      ["a", "b"],
      ["c", "d"],
      ["c", "d"],
    ],
    [{ a: "b" }, ["c"], ["c"]],
    [{ a: "foo" }, null, null],
    [{ a: "foo" }, "bar", "bar"],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: "b", c: null }, { a: "b" }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])("of %j by %j makes %j", (target, patch, result) => {
    expect(mergePatch(frozen(target), patch)).toEqual(result);
  });
  it("shares what it does not touch", () => {
    const target = frozen({ spec: { big: true }, status: {} });
    expect((mergePatch(target, { status: { a: 1 } }) as typeof target).spec).toBe(target.spec);
  });
});

describe("a JSON patch", () => {
  // From RFC 6902, appendix A.
  it.each<[string, unknown, object[], unknown]>([
    ["adds a member", { foo: "bar" }, [{ op: "add", path: "/baz", value: "qux" }], { baz: "qux", foo: "bar" }],
    ["adds an element", { foo: [1, 3] }, [{ op: "add", path: "/foo/1", value: 2 }], { foo: [1, 2, 3] }],
    ["appends an element", { foo: [1] }, [{ op: "add", path: "/foo/-", value: [2] }], { foo: [1, [2]] }],
    ["removes a member", { baz: "qux", foo: "bar" }, [{ op: "remove", path: "/baz" }], { foo: "bar" }],
    ["removes an element", { foo: [1, 2, 3] }, [{ op: "remove", path: "/foo/1" }], { foo: [1, 3] }],
    ["replaces a value", { baz: 1 }, [{ op: "replace", path: "/baz", value: 2 }], { baz: 2 }],
    ["replaces all", { a: 1 }, [{ op: "replace", path: "", value: { b: 2 } }], { b: 2 }],
    ["moves a value", { a: { b: 1 }, c: {} }, [{ op: "move", from: "/a/b", path: "/c/d" }], { a: {}, c: { d: 1 } }],
    ["moves an element", { a: [1, 2, 3] }, [{ op: "move", from: "/a/0", path: "/a/2" }], { a: [2, 3, 1] }],
    ["copies a value", { a: { b: 1 } }, [{ op: "copy", from: "/a", path: "/c" }], { a: { b: 1 }, c: { b: 1 } }],
    [
      "reads escaped names",
      { "a/b": 1, "m~n": 2 },
      [
        { op: "remove", path: "/a~1b" },
        { op: "remove", path: "/m~0n" },
      ],
      {},
    ],
    ["adds null", {}, [{ op: "add", path: "/a", value: null }], { a: null }],
    ["tests deeply", { a: [{ b: 1 }] }, [{ op: "test", path: "/a", value: [{ b: 1 }] }], { a: [{ b: 1 }] }],
  ])("%s", (_, target, patch, result) => {
    expect(jsonPatch(frozen(target), patch)).toEqual(result);
  });
  it.each<[string, unknown, object]>([
    ["a test that fails", { a: 1 }, { op: "test", path: "/a", value: "1" }],
    ["a member of nothing", {}, { op: "add", path: "/a/b", value: 1 }],
    ["a place that is not there", {}, { op: "remove", path: "/a" }],
    ["a replacement of nothing", {}, { op: "replace", path: "/a", value: 1 }],
    ["an index beyond the end", { a: [1] }, { op: "add", path: "/a/2", value: 1 }],
    ["an index that is none", { a: [1] }, { op: "add", path: "/a/01", value: 1 }],
    ["a pointer without a slash", { a: 1 }, { op: "remove", path: "a" }],
    ["an operation that is none", { a: 1 }, { op: "swap", path: "/a" }],
    ["a prototype", {}, { op: "add", path: "/__proto__/polluted", value: 1 }],
  ])("with %s does not apply", (_, target, step) => {
    expect(() => jsonPatch(frozen(target), [step])).toThrow();
  });
});
