/**
 * The command line. Next: src/cli/program.ts has the commands, a file each beside it.
 */
import { constants } from "node:os";
import { basename } from "node:path";
import { asCalled } from "./cli/calledAs.ts";
import { main } from "./cli/program.ts";

// Whoever reads has left (`… | head`): there is nobody to tell, and what belongs to this process ends with it.
for (const output of [process.stdout, process.stderr]) {
  output.on("error", () => process.exit(128 + constants.signals.SIGPIPE));
}
// A mistake of ours must not look like a job that failed (1).
process.on("uncaughtException", (error) => {
  process.stderr.write(`raykeeper: internal error: ${error instanceof Error ? error.stack : error}\n`);
  process.exit(2);
});

const code = await main(asCalled(basename(process.argv[1] ?? ""), process.argv.slice(2)));
// What is still open (an idle connection, a timer) must not keep a finished command alive. Output to a pipe is
// asynchronous, so its end is waited for.
await Promise.all(
  [process.stdout, process.stderr].map((output) => new Promise((resolve) => output.write("", resolve))),
);
process.exit(code);
