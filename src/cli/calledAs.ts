/**
 * What a call means whose first word is no command.
 *
 * Manifests and charts made for KubeRay start `/manager --flag …`, or `/manager` alone: that is the operator. The image
 * has the program under that name too.
 */

/** The words that ask about the program as a whole, whatever its name. */
const ABOUT = new Set(["--version", "-V"]);
const HELP = new Set(["--help", "-h"]);

/** The arguments with the command they mean in front. `name` is what the program was started as, without its folder. */
export function asCalled(name: string, args: readonly string[]): readonly string[] {
  const [first] = args;
  const manager = name === "manager";
  if (first === undefined) return manager ? ["operator"] : args;
  if (!first.startsWith("-") || ABOUT.has(first)) return args;
  if (HELP.has(first)) return manager ? ["operator", ...args] : args;
  return ["operator", ...args];
}
