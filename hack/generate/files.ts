/** The generated files as text, by their path in the repository. */
import { crds } from "../../src/api/crds.ts";
import { crdText } from "../../src/cli/crds.ts";
import { deployFiles } from "./deploy.ts";
import { operationsPage } from "./operations.ts";

export function crdFiles(): Map<string, string> {
  return new Map(
    crds().map((crd) => [
      `deploy/crds/${crd.spec.group}_${crd.spec.names.plural}.yaml`,
      `# Made by \`npm run generate\` from src/api. Do not edit.\n${crdText(crd)}`,
    ]),
  );
}

/** All that `npm run generate` writes. */
export function generatedFiles(): Map<string, string> {
  const files = crdFiles();
  const byName = new Map([...files].map(([path, text]) => [path.slice(path.lastIndexOf("/") + 1), text]));
  return new Map([...files, ...deployFiles(byName), operationsPage()]);
}
