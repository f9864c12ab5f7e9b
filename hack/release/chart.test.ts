import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { chartPackage } from "./chart.ts";

const CHART = fileURLToPath(new URL("../../deploy/helm/raykeeper", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "raykeeper-release-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Packs as Helm does, the time of day included; or refuses. */
const helm = join(folder, "helm");
writeFileSync(
  helm,
  `#!/bin/sh
test "$1 $3" = "package --destination" || exit 9
test -f "$2/Chart.yaml" || { echo "Chart.yaml file is missing" >&2; exit 1; }
tar -czf "$4/raykeeper-1.tgz" -C "$(dirname "$2")" "$(basename "$2")"
`,
  { mode: 0o755 },
);

function copyOf(name: string, time: Date): string {
  const copy = join(folder, name, "raykeeper");
  cpSync(CHART, copy, { recursive: true });
  for (const path of readdirSync(copy, { recursive: true, encoding: "utf8" })) utimesSync(join(copy, path), time, time);
  return copy;
}

describe("the package of the chart", () => {
  it("has the same bytes at any time, in any folder", () => {
    const one = chartPackage(helm, copyOf("one", new Date(0)));
    const other = chartPackage(helm, copyOf("other", new Date(1_700_000_000_000)));
    expect(one.name).toBe("raykeeper-1.tgz");
    expect(one.bytes.equals(other.bytes)).toBe(true);
  });

  it("has every file of the chart", () => {
    const { bytes } = chartPackage(helm, CHART);
    const files = readdirSync(CHART, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
    const listed = spawnSync("tar", ["-tz"], { input: bytes, encoding: "utf8" }).stdout.trim().split("\n");
    expect(listed.filter((path) => !path.endsWith("/"))).toHaveLength(files.length);
    expect(listed).toContain("raykeeper/Chart.yaml");
  });

  it("is refused with Helm's words when Helm refuses it", () => {
    mkdirSync(join(folder, "empty"));
    expect(() => chartPackage(helm, join(folder, "empty"))).toThrow("Chart.yaml file is missing");
  });
});
