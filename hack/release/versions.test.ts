import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { VERSION } from "../../src/shipped.ts";
import { disagreements } from "./versions.ts";

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const withChange = (path: string, from: string, to: string) => (asked: string) => {
  const text = read(asked);
  if (asked !== path) return text;
  expect(text).toContain(from);
  return text.replace(from, to);
};

describe("the version of a release", () => {
  it("is the same everywhere", () => {
    expect(disagreements(VERSION, read)).toEqual([]);
  });

  it("that is raised in package.json alone is refused, with every place that lags behind", () => {
    expect(disagreements("99.0.0", read)).toEqual([
      `package-lock.json: version is ${VERSION}, package.json's is 99.0.0`,
      `deploy/helm/raykeeper/Chart.yaml: version is ${VERSION}, package.json's is 99.0.0`,
      `deploy/helm/raykeeper/Chart.yaml: appVersion is ${VERSION}, package.json's is 99.0.0`,
      `deploy/raykeeper.yaml: the operator's image is ${VERSION}, package.json's is 99.0.0`,
      `hack/image/Dockerfile: the image's label is ${VERSION}, package.json's is 99.0.0`,
      `CHANGELOG.md: the newest version is ${VERSION}, package.json's is 99.0.0`,
    ]);
  });

  it("needs a date in the change log", () => {
    const undated = withChange("CHANGELOG.md", `## [${VERSION}] - `, `## [${VERSION}]\n`);
    expect(disagreements(VERSION, undated)).toEqual([
      `CHANGELOG.md: ${VERSION} has no date: ## [${VERSION}] - YYYY-MM-DD`,
    ]);
  });

  it("has what is not released above it in the change log", () => {
    const more = withChange("CHANGELOG.md", `## [${VERSION}]`, `## [Unreleased]\n\n- More.\n\n## [${VERSION}]`);
    expect(disagreements(VERSION, more)).toEqual([]);
  });
});
