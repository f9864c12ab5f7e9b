/**
 * The operator's log: a JSON object a line on stdout with KubeRay's keys (`level`, `ts`, `logger`, `msg`), or text for
 * people (`console`), and the same into a file when one is asked for.
 */
import { pino } from "pino";
import type { Config } from "../config.ts";
import type { Logger } from "../machinery/logger.ts";

interface Sink {
  write(line: string): unknown;
}

/** Every line goes out before the next begins, so that the last words of a process that dies are not lost. */
export function makeLog(config: Config["log"], stdout: Sink = pino.destination({ dest: 1, sync: true })): Logger {
  const streams = [{ level: config.level, stream: encoded(stdout, config.stdoutEncoder) }];
  if (config.file) {
    const file = pino.destination({ dest: config.file, mkdir: true, append: true, sync: true });
    streams.push({ level: config.level, stream: encoded(file, config.fileEncoder) });
  }
  return pino(
    {
      level: config.level,
      base: { logger: "raykeeper" },
      timestamp: () => `,"ts":"${new Date().toISOString()}"`,
      formatters: { level: (level) => ({ level }) },
      serializers: { error: (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : error) },
    },
    pino.multistream(streams),
  );
}

function encoded(sink: Sink, encoder: "json" | "console"): Sink {
  return encoder === "json" ? sink : { write: (line) => sink.write(asText(line)) };
}

/** `2026-01-01T00:00:00.000Z  INFO  message  {"key":"value"}` */
function asText(line: string): string {
  const { level, ts, logger: _, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const rest = Object.keys(fields).length > 0 ? `  ${JSON.stringify(fields)}` : "";
  return `${ts}  ${String(level).toUpperCase().padEnd(5)}  ${msg}${rest}\n`;
}
