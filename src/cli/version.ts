/** `raykeeper version`: the program's version, and the Node it runs on. */
import { VERSION } from "../shipped.ts";

export function version(): void {
  process.stdout.write(`raykeeper ${VERSION} (node ${process.versions.node}, ${process.platform}/${process.arch})\n`);
}
