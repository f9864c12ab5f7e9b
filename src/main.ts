/**
 * The command line. Next: src/cli/program.ts has the commands, a file each beside it.
 */
import { main } from "./cli/program.ts";

process.exitCode = await main(process.argv.slice(2));
// What is still open (an idle connection, a timer) must not keep a finished command alive.
process.exit();
