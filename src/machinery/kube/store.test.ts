import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { KubeObject } from "../../api/object.ts";
import { stored } from "../testing/scriptedServer.ts";
import { MutableStore, reached } from "./store.ts";

type PodLike = KubeObject & { spec?: { nodeName?: string } };
const byNode = { node: (pod: PodLike) => (pod.spec?.nodeName ? [pod.spec.nodeName] : []) };
const pod = (name: string, version: number, nodeName?: string) => stored(name, version, { spec: { nodeName } });

describe("versions", () => {
  it.each([
    ["9", "10", false],
    ["10", "9", true],
    ["18446744073709551616", "18446744073709551615", true],
    ["abc", "abc", true],
    ["abd", "abc", false],
    ["", "1", false],
  ])("%s has reached %s: %s", (a, b, expected) => expect(reached(a, b)).toBe(expected));
});

describe("the store", () => {
  it("finds objects by index, through every change", () => {
    const store = new MutableStore<PodLike>({ indexes: byNode });
    store.replace("", [pod("a", 1, "n1"), pod("b", 2, "n1")], "5");
    store.put(pod("a", 6, "n2"));
    store.put(pod("c", 7));
    store.drop("default", "b", "uid-b");
    const names = (node: string) => store.byIndex("node", node).map(({ metadata }) => metadata.name);
    expect([names("n1"), names("n2")]).toEqual([[], ["a"]]);
    expect(() => store.byIndex("zone", "x")).toThrow("no index zone");
  });

  it("is not set back by an older version, but by a list from a server that was itself set back", () => {
    const store = new MutableStore();
    store.replace("", [pod("a", 90)], "100");
    expect(store.put(pod("a", 80))).toBeUndefined();
    expect(store.replace("", [pod("a", 30), pod("b", 40)], "50")).toHaveLength(2);
    expect(store.list().map(({ metadata }) => metadata.resourceVersion)).toEqual(["30", "40"]);
  });

  it("keeps what a live read put in while an older list was under way", () => {
    const store = new MutableStore();
    store.replace("", [], "100");
    store.put(pod("a", 110));
    store.replace("", [], "105");
    expect(store.get("default", "a")).toBeDefined();
    store.replace("", [], "115");
    expect(store.get("default", "a")).toBeUndefined();
  });

  it("does not take a namesake for the object that was deleted", () => {
    const store = new MutableStore();
    store.put(stored("a", 20, { metadata: { uid: "second" } }));
    expect(store.drop("default", "a", "first")).toBeUndefined();
    expect(store.get("default", "a")).toBeDefined();
  });

  it("answers from its indexes what a search through all objects would", () => {
    const change = fc.record({
      name: fc.constantFrom("a", "b", "c"),
      node: fc.option(fc.constantFrom("n1", "n2"), { nil: undefined }),
      gone: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
        const store = new MutableStore<PodLike>({ indexes: byNode });
        let version = 1;
        for (const { name, node, gone } of changes) {
          if (gone) store.drop("default", name, `uid-${name}`);
          else store.put(pod(name, version++, node));
        }
        for (const node of ["n1", "n2"]) {
          const searched = store.list().filter((object) => object.spec?.nodeName === node);
          expect(store.byIndex("node", node)).toEqual(searched);
        }
      }),
    );
  });
});
