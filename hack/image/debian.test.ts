import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { CannotBuild } from "../console.ts";
import { whyNot } from "./build.js";
import { basePackages, type Lock } from "./debian.ts";
import { sha256 } from "./oci.ts";

const obstacle = whyNot();

describe("the packages of the base", () => {
  let folder: string;
  const mirror = () => join(folder, "mirror");
  const cache = () => join(folder, "cache");

  beforeEach(({ skip }) => {
    if (obstacle) skip(obstacle);
    folder = mkdtempSync(join(tmpdir(), "raykeeper-debian-"));
    mkdirSync(join(mirror(), "pool"), { recursive: true });
    // apt's downloader copies from a folder as it does from a server.
    vi.stubEnv("RAYKEEPER_DEBIAN_MIRROR", `copy:${mirror()}`);
    vi.spyOn(console, "error").mockImplementation(() => {});
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
    if (folder) rmSync(folder, { recursive: true });
  });

  /** A mirror that has `tool`, and the lock that asks for it. */
  function publish(version: string): Lock {
    const root = join(folder, "package");
    mkdirSync(join(root, "DEBIAN"), { recursive: true });
    const control = `Package: tool\nVersion: ${version}\nArchitecture: all\nMaintainer: nobody <nobody@example.com>\nDescription: a tool\n`;
    writeFileSync(join(root, "DEBIAN/control"), control);
    writeFileSync(join(root, "tool"), `tool ${version}`);
    const path = `pool/tool_${version}_all.deb`;
    const built = spawnSync("dpkg-deb", ["--build", "--root-owner-group", root, join(mirror(), path)]);
    expect(built.status).toBe(0);
    const tool = { name: "tool", version, path, sha256: sha256(readFileSync(join(mirror(), path))) };
    return { suite: "bookworm", amd64: [tool], arm64: [] };
  }
  const failure = (lock: Lock): CannotBuild => {
    try {
      basePackages("amd64", cache(), false, lock);
    } catch (error) {
      return error as CannotBuild;
    }
    throw new Error("it did not fail");
  };

  it("are those of the lock, unpacked", () => {
    const [tool] = basePackages("amd64", cache(), false, publish("1.0"));
    expect(readFileSync(join(tool!.folder, "tool"), "utf8")).toBe("tool 1.0");
    expect(tool!.control).toContain("Package: tool\nVersion: 1.0\n");
  });

  it("need no mirror a second time", () => {
    const lock = publish("1.0");
    const once = basePackages("amd64", cache(), false, lock);
    rmSync(mirror(), { recursive: true });
    expect(basePackages("amd64", cache(), false, lock)).toEqual(once);
  });

  it("that the mirror has a successor for are named, with the command that renews the lock", () => {
    const lock = publish("1.0");
    rmSync(join(mirror(), lock.amd64[0]!.path));
    publish("1.1");
    const { message, remedy } = failure(lock);
    expect(message).toContain("has no tool 1.0 any more");
    for (const way of ["hack/image/build.js --renew-lock", "RAYKEEPER_DEBIAN_MIRROR", "--allow-newer-base"]) {
      expect(remedy).toContain(way);
    }
  });

  it("with other bytes than the lock's are refused, and nothing of them stays", () => {
    const lock = publish("1.0");
    writeFileSync(join(mirror(), lock.amd64[0]!.path), "something else");
    const { message } = failure(lock);
    expect(message).toContain("Hash Sum mismatch");
    expect(readdirSync(join(cache(), "debian"))).toEqual([]);
  });

  it("that went bad in the cache are downloaded again", () => {
    const lock = publish("1.0");
    const [tool] = basePackages("amd64", cache(), false, lock);
    rmSync(tool!.folder, { recursive: true });
    writeFileSync(`${tool!.folder}.deb`, "half of i");
    expect(existsSync(join(basePackages("amd64", cache(), false, lock)[0]!.folder, "tool"))).toBe(true);
  });
});
