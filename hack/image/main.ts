/**
 * `node hack/image/build.js`: the container image as an OCI archive, made without a container engine.
 *
 * Prints the archive's path. The same sources, package-lock.json and debian.lock.json give the same bytes.
 * Next: layout.ts says what is in it; bundle.ts, node.ts and debian.ts get the parts; oci.ts packs them.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { CannotBuild, endInWords, saying } from "../console.ts";
import { bundle } from "./bundle.ts";
import { basePackages, renewLock } from "./debian.ts";
import { baseLayer, imageConfig, imageName, NODE, nodeLayer, programLayer } from "./layout.ts";
import { nodeFor } from "./node.ts";
import { type Architecture, imageArchive, type Layer, sha256 } from "./oci.ts";
import { withFolders } from "./tar.ts";

const say = saying("image");
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const CACHE = join(resolve(process.env["RAYKEEPER_CACHE"] || join(ROOT, ".cache")), "image");

const HELP = `Usage: node hack/image/build.js [options]

Makes the container image and prints the path of its archive.

  --arch amd64|arm64   for which machines; this one's if not said
  --output FILE        the archive; .cache/image/raykeeper-VERSION-ARCH.oci.tar if not said
  --rootfs FOLDER      no archive, but the image's files, in a new folder
  --allow-newer-base   where the mirror no longer has a package of hack/image/debian.lock.json, take its successor
  --renew-lock         only write hack/image/debian.lock.json anew, from what the mirror has now
`;

async function layersFor(architecture: Architecture, version: string, newerAllowed: boolean): Promise<Layer[]> {
  const { program, licences } = await bundle({ root: ROOT, node: NODE });
  const licence = readFileSync(join(ROOT, "LICENSE"), "utf8");
  return [
    baseLayer(architecture, basePackages(architecture, CACHE, newerAllowed)),
    nodeLayer(nodeFor(architecture, ROOT, CACHE)),
    programLayer(version, { program, licence, licences }),
  ];
}

/** Compressing Node takes seconds, and gives the same for the same version: it is remembered. */
function compressed(bytes: Buffer, digest: string): Buffer {
  const file = join(CACHE, "layers", `${digest}-zlib-${process.versions.zlib}.gz`);
  if (existsSync(file)) return readFileSync(file);
  const result = gzipSync(bytes, { level: 9 });
  // The program changes with every build; only what is large is worth its place.
  if (bytes.length > 32 << 20) write(file, result);
  return result;
}

function write(file: string, bytes: Uint8Array): void {
  mkdirSync(dirname(file), { recursive: true });
  // In one step: another build, or who reads it, never sees half of it.
  writeFileSync(`${file}.${process.pid}`, bytes);
  renameSync(`${file}.${process.pid}`, file);
}

function writeFolder(folder: string, layers: readonly Layer[]): void {
  if (existsSync(folder)) throw new CannotBuild(`${folder} is there already`, "Name a new folder.");
  mkdirSync(folder, { recursive: true });
  const umask = process.umask(0);
  for (const entry of withFolders(layers.flatMap(({ entries }) => entries))) {
    const path = join(folder, entry.path);
    if ("file" in entry) writeFileSync(path, entry.file, { mode: entry.mode });
    else if ("folder" in entry) mkdirSync(path, { mode: entry.mode });
    else symlinkSync(entry.link, path);
  }
  process.umask(umask);
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      arch: { type: "string", default: process.arch === "arm64" ? "arm64" : "amd64" },
      output: { type: "string" },
      rootfs: { type: "string" },
      "allow-newer-base": { type: "boolean", default: false },
      "renew-lock": { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return;
  }
  if (values["renew-lock"]) return renewLock(CACHE);
  const { arch } = values;
  if (arch !== "amd64" && arch !== "arm64")
    throw new CannotBuild(`there is no image for ${arch}`, "--arch amd64 or arm64");

  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
  const layers = await layersFor(arch, version, values["allow-newer-base"]);
  if (values.rootfs !== undefined) {
    writeFolder(values.rootfs, layers);
    console.log(values.rootfs);
    return;
  }
  const name = imageName(version);
  const image = { name, architecture: arch, config: imageConfig(version), layers } as const;
  const { archive, digest } = imageArchive(image, compressed);
  const output = values.output ?? join(CACHE, `raykeeper-${version}-${arch}.oci.tar`);
  write(output, archive);
  say(
    `${name} for ${arch}: ${(archive.length / 1e6).toFixed(1)} MB, digest ${digest}, sha256 of the archive ${sha256(archive)}`,
  );
  console.log(output);
}

await endInWords(say, main);
