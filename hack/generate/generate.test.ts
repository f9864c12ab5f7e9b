import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { generatedFiles } from "./files.ts";

test("what installs the operator is committed as it is generated: run `npm run generate`", () => {
  for (const [path, content] of generatedFiles()) {
    const committed = readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
    // Not toBe: nobody reads a difference of a megabyte.
    expect(committed === content, path).toBe(true);
  }
});
