/**
 * Writes what is derived: CRDs from the schemas, and what installs the operator from hack/generate/deploy.ts. Run by `npm run generate`; a test fails when it was forgotten.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { generatedFiles } from "./files.ts";

const root = new URL("../../", import.meta.url);

for (const [path, content] of generatedFiles()) {
  const file = new URL(path, root);
  mkdirSync(new URL(".", file), { recursive: true });
  writeFileSync(file, content);
  console.log(`${path}: ${Math.round(content.length / 1024)} KiB`);
}
