/**
 * Writes what is derived from the schemas: deploy/crds. Run by `npm run generate`; a test fails when it was forgotten.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { crdFiles } from "./files.ts";

const root = new URL("../../", import.meta.url);

for (const [path, content] of crdFiles()) {
  const file = new URL(path, root);
  mkdirSync(new URL(".", file), { recursive: true });
  writeFileSync(file, content);
  console.log(`${path}: ${Math.round(content.length / 1024)} KiB`);
}
