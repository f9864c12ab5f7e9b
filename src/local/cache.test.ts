import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { cacheFolder } from "./cache.ts";

const folder = mkdtempSync(join(tmpdir(), "raykeeper-cache-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("a folder of the cache", () => {
  it("is made for its owner's eyes only", async () => {
    expect(statSync(await cacheFolder(folder, "a", "b")).mode & 0o777).toBe(0o700);
  });

  it("that cannot be made is told with the way out", async () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    await expect(cacheFolder(file, "ray")).rejects.toMatchObject({
      message: expect.stringContaining(`the cache folder ${file}/ray cannot be written`),
      remedy: expect.stringContaining("RAYKEEPER_CACHE"),
    });
  });
});
