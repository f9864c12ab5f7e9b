/**
 * What kubelet is told: `/healthz`, whether a new process would help; `/readyz`, whether this one can do its part.
 *
 * Alive is whoever answers (an event loop that is blocked does not) and has no part that is stuck. An API server that is
 * away is no reason to restart every replica. Ready is whoever has its caches filled, also while it stands by.
 */
import type { Logger } from "../machinery/logger.ts";
import type { Vitals } from "../machinery/vitals.ts";
import type { Page } from "./http.ts";

/** One thing that must be so before the operator can do its part, and how it stands. */
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  readonly note: string;
}

export function liveness(vitals: Vitals, log: Logger): Page {
  const stuck = vitals.overdue();
  if (stuck.length === 0) return { body: "ok\n" };
  log.error({ stuck }, "parts of the operator are stuck; it should be restarted");
  const lines = stuck.map(({ part, seconds }) => `[-] ${part}: no sign of life for ${seconds} s more than it may take`);
  return { status: 500, body: `${lines.join("\n")}\n` };
}

/** Says how everything stands, so that whoever asks by hand need not ask again. */
export function readiness(checks: readonly Check[]): Page {
  const lines = checks.map(({ name, ok, note }) => `[${ok ? "+" : "-"}] ${name}: ${note}`);
  const ready = checks.every(({ ok }) => ok);
  return { status: ready ? 200 : 503, body: `${[...lines, ready ? "ok" : "not ready"].join("\n")}\n` };
}
