import { describe, expect, it } from "vitest";
import { expand } from "./expand.ts";

const value = (name: string) => ({ A: "a", B: "$(A)", EMPTY: "" })[name];

describe("$(NAME) in commands, arguments and variables", () => {
  it.each([
    ["plain", "plain"],
    ["$(A)", "a"],
    ["x$(A)y$(EMPTY)z", "xayz"],
    ["$(B) is not looked at again", "$(A) is not looked at again"],
    ["$(UNKNOWN) stays", "$(UNKNOWN) stays"],
    ["$$(A)", "$(A)"],
    ["$$$(A)", "$a"],
    ["$$$$", "$$"],
    ["$A ${A} $", "$A ${A} $"],
    ["$(A", "$(A"],
    ["$(A$(B)", "$(A$(B)"],
    ["$()", "$()"],
    ["ümläut $(A) \\ ' \" `", "ümläut a \\ ' \" `"],
  ])("%j becomes %j", (text, expected) => {
    expect(expand(text, value)).toBe(expected);
  });
});
