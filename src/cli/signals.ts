/**
 * The end from outside: Ctrl-C, SIGTERM, a closed terminal, or a launcher that was killed.
 *
 * The first sign asks the command to end well; the second ends the process where it stands.
 */
import { constants } from "node:os";

/** One Ctrl-C arrives several times: from the terminal, from npm and from the launcher. */
const SAME_SIGN_MS = 700;

export interface Ending {
  /** Aborted at the first sign. */
  readonly signal: AbortSignal;
  /** Exit code that names the sign (128 + signal number); undefined while there was none. */
  code(): number | undefined;
}

/** Starts to listen; once a process. The loss of the launcher (its channel closes) counts as SIGTERM. */
export function listenForEnd(): Ending {
  const controller = new AbortController();
  let first: { code: number; at: number } | undefined;
  const sign = (name: "SIGINT" | "SIGTERM" | "SIGHUP") => {
    const code = 128 + constants.signals[name];
    if (!first) {
      first = { code, at: Date.now() };
      controller.abort(new Error(`ended by ${name}`));
    } else if (Date.now() - first.at > SAME_SIGN_MS) {
      process.exit(code);
    }
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => sign(name));
  process.on("disconnect", () => sign("SIGTERM"));
  return { signal: controller.signal, code: () => first?.code };
}
