/**
 * What machinery tells whoever runs it: a log and numbers, through two narrow interfaces.
 *
 * pino's logger fits `Logger` as it is; serve/ maps `Metrics` to prom-client. Machinery imports neither.
 */

type Log = (fields: object, message: string) => void;

export interface Logger {
  readonly debug: Log;
  readonly info: Log;
  readonly warn: Log;
  readonly error: Log;
}

const nothing = () => {};

export const silent: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

export type Labels = Readonly<Record<string, string>>;

/** Names and labels are those of controller-runtime and client-go, so existing dashboards read them. */
export interface Metrics {
  /** Adds `by` (1 when absent) to a counter. */
  count(name: string, labels: Labels, by?: number): void;
  /** One observation of a histogram, in seconds. */
  observe(name: string, labels: Labels, value: number): void;
  /** Sets a gauge. */
  gauge(name: string, labels: Labels, value: number): void;
}

export const noMetrics: Metrics = { count: nothing, observe: nothing, gauge: nothing };

/** An error as one plain sentence, whatever was thrown. */
export function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
