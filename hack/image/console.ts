/** What building says to people: on standard error, since standard output is the path of what was built. */

/** Building is not possible here; `remedy` says what to do about it. */
export class CannotBuild extends Error {
  override readonly name = "CannotBuild";
  readonly remedy: string | undefined;

  constructor(message: string, remedy?: string) {
    super(message);
    this.remedy = remedy;
  }
}

export const say = (line: string): void => console.error(`[image] ${line}`);
