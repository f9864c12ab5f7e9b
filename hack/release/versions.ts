/**
 * Every place that names the version, and whether they agree with package.json.
 *
 * May not: read files itself; `read` gives a file's text by its path in the repository.
 */
import { parse, parseAllDocuments } from "yaml";

type Read = (path: string) => string;

const PLACES: readonly { readonly path: string; readonly what: string; readonly find: (text: string) => unknown }[] = [
  { path: "package-lock.json", what: "version", find: (text) => JSON.parse(text).packages[""].version },
  { path: "deploy/helm/raykeeper/Chart.yaml", what: "version", find: (text) => parse(text).version },
  { path: "deploy/helm/raykeeper/Chart.yaml", what: "appVersion", find: (text) => parse(text).appVersion },
  { path: "deploy/raykeeper.yaml", what: "the operator's image", find: imageTag },
  { path: "hack/image/Dockerfile", what: "the image's label", find: (text) => /image\.version="(.*)"/.exec(text)?.[1] },
  { path: "CHANGELOG.md", what: "the newest version", find: (text) => newest(text)?.version },
];

/** What is wrong, a line each; empty when all agree. */
export function disagreements(version: string, read: Read): string[] {
  const wrong = PLACES.flatMap(({ path, what, find }) => {
    const found = find(read(path));
    return found === version ? [] : [`${path}: ${what} is ${found ?? "missing"}, package.json's is ${version}`];
  });
  const entry = newest(read("CHANGELOG.md"));
  if (entry?.version === version && entry.date === undefined) {
    wrong.push(`CHANGELOG.md: ${version} has no date: ## [${version}] - YYYY-MM-DD`);
  }
  return wrong;
}

/** The first heading of a version; `Unreleased` above it does not count. */
function newest(changelog: string): { version: string; date: string | undefined } | undefined {
  const match = /^## \[?(\d[^\]\s]*)\]?(?: - (\d{4}-\d\d-\d\d))?\s*$/m.exec(changelog);
  return match ? { version: match[1]!, date: match[2] } : undefined;
}

interface Deployment {
  readonly kind?: string;
  readonly spec?: { readonly template?: { readonly spec?: { readonly containers?: readonly { image?: string }[] } } };
}

function imageTag(manifest: string): string | undefined {
  const objects = parseAllDocuments(manifest).map((document) => document.toJS() as Deployment | null);
  const deployment = objects.find((object) => object?.kind === "Deployment");
  return deployment?.spec?.template?.spec?.containers?.[0]?.image?.split(":").at(-1);
}
