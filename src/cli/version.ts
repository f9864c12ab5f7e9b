/** `raykeeper version`: the program's version, and the Node it runs on. */
import { readFileSync } from "node:fs";

export const VERSION: string = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")).version;

export function version(): void {
  process.stdout.write(`raykeeper ${VERSION} (node ${process.versions.node}, ${process.platform}/${process.arch})\n`);
}
