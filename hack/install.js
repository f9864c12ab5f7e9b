// Runs before `npm test` and `npm run quickstart`, so that a fresh clone needs nothing typed first. Installs only when
// the lock file differs from what is installed: a second run costs milliseconds and works without a network.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const stamp = join(root, "node_modules", ".raykeeper-installed");
const wanted = createHash("sha256")
  .update(readFileSync(join(root, "package-lock.json")))
  .digest("hex");
if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) process.exit(0);

console.log("Installing the project's dependencies (npm ci) …");
const result = spawnSync("npm", ["ci", "--no-fund", "--no-audit", "--loglevel=error"], { cwd: root, stdio: "inherit" });
if (result.status !== 0) {
  console.error(
    "raykeeper: npm could not install the dependencies; its message is above. " +
      "Check that this machine reaches the npm registry (or its mirror: `npm config get registry`), then run the command again.",
  );
  process.exit(2);
}
writeFileSync(stamp, wanted);
