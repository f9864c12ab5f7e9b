/**
 * The chart as one file.
 *
 * Helm packs it, and refuses what is wrong with it; what Helm packed is packed again, since it writes the time of day
 * into the archive.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { CannotBuild } from "../console.ts";
import { type Entry, tar } from "../image/tar.ts";

/** `helm` is the program; answers the package's name and bytes. Throws CannotBuild. */
export function chartPackage(helm: string, chart: string): { name: string; bytes: Buffer } {
  const folder = mkdtempSync(join(tmpdir(), "raykeeper-chart-"));
  try {
    must(helm, ["package", chart, "--destination", folder]);
    const [name] = readdirSync(folder);
    const bytes = gzipSync(tar(entriesOf(join(folder, name!))), { level: 9 });
    return { name: name!, bytes };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** The files in a compressed archive. */
function entriesOf(archive: string): Entry[] {
  const unpacked = mkdtempSync(join(tmpdir(), "raykeeper-chart-"));
  try {
    must("tar", ["-xzf", archive, "-C", unpacked]);
    return readdirSync(unpacked, { recursive: true, withFileTypes: true })
      .filter((each) => each.isFile())
      .map((each) => join(each.parentPath, each.name))
      .map((path) => ({ path: path.slice(unpacked.length + 1), file: readFileSync(path), mode: 0o644 }));
  } finally {
    rmSync(unpacked, { recursive: true });
  }
}

function must(program: string, args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(program, args, { encoding: "utf8" });
  if (status !== 0) throw new CannotBuild(`${program} ${args.join(" ")}: ${error?.message ?? stderr.trim()}`);
}
