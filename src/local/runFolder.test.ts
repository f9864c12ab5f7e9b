import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { expect, it } from "vitest";
import { newRunFolder } from "./runFolder.ts";

it("a cluster's folder stays while its process lives; what a killed one left is removed by the next", async () => {
  const cache = await mkdtemp(join(tmpdir(), "cache-"));
  try {
    const first = await newRunFolder(cache);
    // Same pid as ours, but a process that was started at another time.
    for (const stale of [`${process.pid}-1-1`, "4194304-77-1"]) await mkdir(join(cache, "run", stale));
    const second = await newRunFolder(cache);
    expect((await readdir(join(cache, "run"))).sort()).toEqual([basename(first), basename(second)].sort());
  } finally {
    await rm(cache, { recursive: true });
  }
});
