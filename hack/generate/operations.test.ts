import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));
const page = readFileSync(join(root, "docs/operations.md"), "utf8");
const events = page.slice(page.indexOf("\n## Events"), page.indexOf("\n## Upgrade"));

const sources = ["src", "src/domain", "src/domain/rayjob", "src/domain/raycluster", "src/machinery"]
  .flatMap((folder) => readdirSync(join(root, folder)).map((name) => join(root, folder, name)))
  .filter((path) => path.endsWith(".ts") && !/(\.test|testing)\.ts$/.test(path))
  .map((path) => readFileSync(path, "utf8"))
  .join("\n");

describe("the page about operating it", () => {
  it("names every event that a RayJob or RayCluster gets", () => {
    const told = [...sources.matchAll(/reason: "(\w+)",\s*action:/g)].map(([, reason]) => reason!);
    expect(told.length).toBeGreaterThan(25);
    const names = (reason: string) =>
      events.includes(`\`${reason}\``) ||
      // "the same with FailedTo…"
      (reason.startsWith("FailedTo") && events.includes(`\`${reason.replace(/FailedTo(Create|Delete)/, "$1d")}\``));
    expect([...new Set(told)].filter((reason) => !names(reason))).toEqual([]);
  });

  it("names no event that nobody tells", () => {
    const table = events.split("\n").filter((line) => line.startsWith("|"));
    const named = table.flatMap((line) => [...line.split("|")[1]!.matchAll(/`(\w+)`/g)].map(([, reason]) => reason!));
    expect(named.length).toBeGreaterThan(25);
    const composed = new Set(["InvalidRayJobMetadata", "InvalidRayJobSpec", "InvalidRayJobStatus"]);
    expect(sources).toContain("reason: `InvalidRayJob${");
    expect(named.filter((reason) => !composed.has(reason) && !sources.includes(`"${reason}"`))).toEqual([]);
  });

  it("explains every alert", () => {
    const rules = readFileSync(join(root, "deploy/prometheus/rules.yaml"), "utf8");
    for (const [, alert] of rules.matchAll(/- alert: (\w+)/g)) expect(page).toContain(`\`${alert}\``);
  });
});
