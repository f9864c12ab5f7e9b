/** What building says to people: on standard error, since standard output is what was built. */

/** Building is not possible here; `remedy` says what to do about it. */
export class CannotBuild extends Error {
  override readonly name = "CannotBuild";
  readonly remedy: string | undefined;

  constructor(message: string, remedy?: string) {
    super(message);
    this.remedy = remedy;
  }
}

/** `part` is what is being built. */
export const saying =
  (part: string) =>
  (line: string): void =>
    console.error(`[${part}] ${line}`);

/** Does the work; what it could not do, and what was asked wrongly, ends the process with 2 and in words. */
export async function endInWords(say: (line: string) => void, work: () => Promise<void> | void): Promise<void> {
  try {
    await work();
  } catch (error) {
    const misspelt = (error as { code?: string }).code?.startsWith("ERR_PARSE_ARGS");
    if (!misspelt && !(error instanceof CannotBuild)) throw error;
    say((error as Error).message);
    if (error instanceof CannotBuild && error.remedy) say(`  ${error.remedy}`);
    process.exitCode = 2;
  }
}
