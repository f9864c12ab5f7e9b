/**
 * What machinery tells whoever runs it in words; in numbers: metrics.ts. pino's logger fits `Logger` as it is.
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

/** An error as one plain sentence, whatever was thrown. */
export function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
