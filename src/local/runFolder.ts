/**
 * A folder in the cache for one cluster, named after the process that runs it, so that what a killed one left behind is
 * found and removed by the next.
 */
import { readFileSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder } from "./cache.ts";

let made = 0;

/** Makes a new one, after removing those whose processes are gone. */
export async function newRunFolder(cacheDir: string): Promise<string> {
  const all = await cacheFolder(cacheDir, "run");
  for (const name of await readdir(all)) {
    const [pid, ticks] = name.split("-");
    if (startedTicks(Number(pid)) !== ticks) await rm(join(all, name), { recursive: true, force: true });
  }
  return cacheFolder(all, `${process.pid}-${startedTicks(process.pid)}-${++made}`);
}

/** When a process was started, in the kernel's ticks; undefined when there is none. */
function startedTicks(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}
