/**
 * The operator's log: a JSON object a line on stdout with KubeRay's keys (`level`, `ts`, `logger`, `msg`), or text for
 * people (`console`), and the same into a file when one is asked for.
 */
import { pino } from "pino";
import type { TimeEncoding } from "../config/options.ts";
import type { Config } from "../config.ts";
import type { Logger } from "../machinery/logger.ts";
import { RotatingFile } from "./rotatingFile.ts";

export interface Sink {
  write(line: string): unknown;
}

/** How zap spells the time; epoch is seconds with a fraction. */
const TIME: Readonly<Record<TimeEncoding, (now: Date) => string>> = {
  iso8601: (now) => `"${now.toISOString()}"`,
  rfc3339: (now) => `"${now.toISOString().replace(/\.\d+Z$/, "Z")}"`,
  rfc3339nano: (now) => `"${now.toISOString().replace(/\.?0*Z$/, "Z")}"`,
  epoch: (now) => String(now.getTime() / 1000),
  millis: (now) => String(now.getTime()),
  nano: (now) => `${now.getTime()}000000`,
};

/**
 * Every line goes out before the next begins, so that the last words of a process that dies are not lost. Throws when the
 * file cannot be opened.
 */
export function makeLog(config: Config["log"], stdout: Sink = pino.destination({ dest: 1, sync: true })): Logger {
  const { level, stdoutEncoder, fileEncoder, timeEncoding, file } = config;
  const streams = [{ level, stream: encoded(stdout, stdoutEncoder) }];
  // Said on standard output alone: the file is what does not work.
  const complain = (error: unknown) => onStdout.warn({ file, error }, "the log file cannot be written for now");
  const onStdout = logger([streams[0]!]);
  if (file) streams.push({ level, stream: encoded(new RotatingFile(file, { failed: complain }), fileEncoder) });
  return logger(streams);

  function logger(to: typeof streams) {
    return pino(
      {
        level,
        base: { logger: "raykeeper" },
        timestamp: () => `,"ts":${TIME[timeEncoding](new Date())}`,
        formatters: { level: (name) => ({ level: name }) },
        serializers: { error: (error: unknown) => (error instanceof Error ? (error.stack ?? error.message) : error) },
      },
      pino.multistream(to),
    );
  }
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
