/**
 * How a command ends when it does not succeed.
 *
 * Exit codes: 0 it succeeded, 1 the job failed, 2 it could not be run (the message says what to do), 128 + n ended by
 * signal n.
 */

/** The command could not do its work: exit code 2. `remedy` tells what the user can do about it. */
export class CannotRun extends Error {
  override readonly name = "CannotRun";
  readonly remedy: string | undefined;

  constructor(message: string, remedy?: string, cause?: unknown) {
    super(message, { cause });
    this.remedy = remedy;
  }
}

/** What is printed on stderr for an error that ends a command. */
export function describeFailure(error: unknown): string {
  if (error instanceof CannotRun) {
    return `raykeeper: ${error.message}${error.remedy ? `\n  ${error.remedy.replaceAll("\n", "\n  ")}` : ""}`;
  }
  return `raykeeper: ${messageOf(error)}`;
}

/** The message of whatever was thrown, with its cause when that says more. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? error.cause.message : undefined;
  return cause && !error.message.includes(cause) ? `${error.message}: ${cause}` : error.message;
}
