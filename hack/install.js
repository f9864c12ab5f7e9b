// Runs before `npm test` and `npm run quickstart`, so that a fresh clone needs nothing typed first. Installs only when
// the lock file differs from what is installed: a second run costs milliseconds and works without a network.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { watchParent } from "../bin/parentWatch.js";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const stamp = join(root, "node_modules", ".raykeeper-installed");
const wanted = createHash("sha256")
  .update(readFileSync(join(root, "package-lock.json")))
  .digest("hex");
if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) process.exit(0);

console.error("Installing the project's dependencies (npm ci) …");
const npm = ["npm", "ci", "--no-fund", "--no-audit", "--loglevel=error"];
// Where util-linux is at hand, a SIGKILL of this process takes npm along.
const tied = spawnSync("setpriv", ["--pdeathsig", "keep", "true"], { stdio: "ignore" }).status === 0;
const [command, ...args] = tied ? ["setpriv", "--pdeathsig", "TERM", ...npm] : npm;
const started = Date.now();
const child = spawn(command, args, { cwd: root, stdio: ["ignore", "inherit", "inherit"] });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
watchParent(() => child.kill("SIGTERM"));
const ticking = setInterval(() => console.error(`Installing … ${Math.round((Date.now() - started) / 1000)} s`), 15_000);

const fail = (message) => {
  console.error(
    `raykeeper: ${message} Check that this machine reaches the npm registry (or its mirror: \`npm config get registry\`), ` +
      "then run the command again.",
  );
  process.exit(2);
};
child.on("error", (error) => fail(`npm could not be started: ${error.message}.`));
child.on("exit", (code, signal) => {
  clearInterval(ticking);
  if (signal) process.exit(130);
  if (code !== 0) fail("npm could not install the dependencies; its message is above.");
  writeFileSync(stamp, wanted);
});
