/**
 * Where local mode keeps what it may keep: everything it writes is below one folder of the project.
 */
import { constants } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { CannotRun, messageOf } from "../cli/failure.ts";

/** `.cache` of the project, or what `RAYKEEPER_CACHE` names. Absolute. */
export function defaultCacheDir(environment: NodeJS.ProcessEnv = process.env): string {
  return resolve(environment["RAYKEEPER_CACHE"] || fileURLToPath(new URL("../../.cache", import.meta.url)));
}

/** Makes a folder below the cache, readable by its owner only, and answers its path. Throws CannotRun. */
export async function cacheFolder(cacheDir: string, ...parts: string[]): Promise<string> {
  const folder = join(cacheDir, ...parts);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await access(folder, constants.W_OK);
  } catch (error) {
    throw new CannotRun(
      `the cache folder ${folder} cannot be written (${messageOf(error)})`,
      "Make it writable, or name another folder in RAYKEEPER_CACHE.",
      error,
    );
  }
  return folder;
}
