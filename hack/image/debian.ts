/**
 * The Debian packages of the base, of exactly the versions that debian.lock.json names.
 *
 * The lock has a checksum for each package, so it matters to nobody where the bytes come from: the cache, the mirrors
 * that apt of this machine uses, or those of $RAYKEEPER_DEBIAN_MIRROR, separated by spaces. A mirror keeps a package
 * until a newer one takes its place, and not much longer; then building says so, and names what helps: a new lock
 * (`--renew-lock`), a mirror that keeps what was, or, where it need not be the very same image, `--allow-newer-base`.
 * Next: layout.ts says which files of them the image has.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { CannotBuild, saying } from "../console.ts";
import { whyNot } from "./build.js";
import { type Architecture, sha256 } from "./oci.ts";

const say = saying("image");
/** Debian's release that the base is made of, and what of it. gcc-12-base has the licence of the two before it. */
const SUITE = "bookworm";
const PACKAGES = ["libc6", "libgcc-s1", "libstdc++6", "gcc-12-base"];
const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
const LOCK = fileURLToPath(new URL("debian.lock.json", import.meta.url));
const HELPER = "/usr/lib/apt/apt-helper";
/** For root, apt downloads as a user of its own, who may not write where these files go. */
const SAME_USER = ["-o", "APT::Sandbox::User="];

export interface Package {
  readonly name: string;
  readonly version: string;
  /** Below the mirror's address. */
  readonly path: string;
  readonly sha256: string;
}
export type Lock = { readonly suite: string } & Readonly<Record<Architecture, readonly Package[]>>;

/** A package that is no longer to be had. */
class Gone extends CannotBuild {}

export interface Unpacked extends Package {
  /** The folder that has its files. */
  readonly folder: string;
  /** Its entry in the list of what is installed, which scanners read. */
  readonly control: string;
}

/** The base's packages, downloaded and unpacked under `cache`. Throws CannotBuild. */
export function basePackages(
  architecture: Architecture,
  cache: string,
  newerAllowed: boolean,
  lock: Lock = readLock(),
): Unpacked[] {
  const obstacle = whyNot();
  if (obstacle) throw new CannotBuild(obstacle, "On another system build with hack/image/Dockerfile.");
  try {
    return lock[architecture].map((each) => unpack(each, cache));
  } catch (error) {
    if (!newerAllowed || !(error instanceof Gone)) throw error;
    say(`${error.message}; --allow-newer-base: taking what the mirror has now, so this image is NOT the locked one`);
    return newest(architecture, cache).map((each) => unpack(each, cache));
  }
}

function readLock(): Lock {
  return JSON.parse(readFileSync(LOCK, "utf8"));
}

/** Writes the lock anew from what the mirror has now; apt checks its signatures. */
export function renewLock(cache: string): void {
  const lock: Lock = { suite: SUITE, amd64: newest("amd64", cache), arm64: newest("arm64", cache) };
  writeFileSync(LOCK, `${JSON.stringify(lock, undefined, 2)}\n`);
  say(`wrote ${LOCK}`);
}

function unpack(each: Package, cache: string): Unpacked {
  const folder = join(cache, "debian", each.sha256);
  const archive = `${folder}.deb`;
  if (!existsSync(archive) || sha256(readFileSync(archive)) !== each.sha256) {
    mkdirSync(join(cache, "debian"), { recursive: true });
    download(each, archive, cache);
  }
  if (!existsSync(folder)) {
    const unfinished = `${folder}.${process.pid}`;
    run("dpkg-deb", ["--extract", archive, unfinished]);
    replace(unfinished, folder);
  }
  return { ...each, folder, control: run("dpkg-deb", ["--field", archive]) };
}

function download({ name, version, path, sha256: digest }: Package, archive: string, cache: string): void {
  const chosen = process.env["RAYKEEPER_DEBIAN_MIRROR"]?.split(" ").filter((site) => site !== "");
  const sites = chosen?.length ? chosen : mirrorsOf(cache).map(({ site }) => site);
  const unfinished = `${archive}.${process.pid}`;
  const answers: string[] = [];
  say(`downloading ${name} ${version}`);
  for (const site of sites) {
    // apt's own downloader: with the proxies that apt was told of, and it checks the digest.
    const { status, stderr } = spawnSync(
      HELPER,
      [...SAME_USER, "download-file", `${site.replace(/\/$/, "")}/${path}`, unfinished, `SHA256:${digest}`],
      { encoding: "utf8" },
    );
    if (status === 0) {
      renameSync(unfinished, archive);
      return;
    }
    for (const rest of [unfinished, `${unfinished}.FAILED`]) rmSync(rest, { force: true });
    answers.push(stderr.trim());
  }
  if (answers.some((answer) => !/404|No such file/.test(answer))) {
    throw new CannotBuild(
      `cannot download ${name} ${version}:\n${answers.join("\n")}`,
      "Try again when the mirror answers.",
    );
  }
  throw new Gone(
    `${sites.join(" and ")} ${sites.length > 1 ? "have" : "has"} no ${name} ${version} any more`,
    "A newer version has taken its place. `node hack/image/build.js --renew-lock` writes what the mirror has now into " +
      "hack/image/debian.lock.json, to be committed. To build the image as it was, set RAYKEEPER_DEBIAN_MIRROR to the " +
      "addresses of mirrors that keep old versions. For an image to try things with, --allow-newer-base.",
  );
}

interface Mirror {
  readonly site: string;
  readonly release: string;
}

/** Where apt gets packages here. The lists need not be there: then they are fetched, into the cache. */
function mirrorsOf(cache: string): Mirror[] {
  const format = ["indextargets", "--format", "$(SITE) $(RELEASE)", "Created-By: Packages"];
  const targets = (options: readonly string[]) => run("apt-get", [...options, ...format]).trim();
  let known = targets([]);
  if (known === "") {
    const options = ownState(join(cache, "apt", "system"), []);
    run("apt-get", [...options, "update"]);
    known = targets(options);
  }
  const mirrors = known.split("\n").flatMap((line): Mirror[] => {
    const [site, release] = line.split(" ");
    return site && release ? [{ site: site.replace(/\/$/, ""), release }] : [];
  });
  const sites = new Map(mirrors.map((mirror) => [mirror.site, mirror]));
  if (sites.size === 0) {
    throw new CannotBuild("apt on this machine has no mirror to download from", "Set RAYKEEPER_DEBIAN_MIRROR to one.");
  }
  return [...sites.values()];
}

/** What the mirror has now, by apt with a state of its own: the machine's is neither needed nor touched. */
function newest(architecture: Architecture, cache: string): Package[] {
  if (!existsSync(KEYRING)) {
    throw new CannotBuild(`${KEYRING} is not there to check the mirror with`, "Install debian-archive-keyring.");
  }
  const mirrors = mirrorsOf(cache);
  const ordinary = mirrors.find(({ release }) => !release.endsWith("-security"));
  const security = mirrors.find(({ release }) => release.endsWith("-security"));
  const state = join(cache, "apt", architecture);
  mkdirSync(state, { recursive: true });
  const source = (mirror: Mirror, suite: string) => `deb [signed-by=${KEYRING}] ${mirror.site} ${suite} main\n`;
  if (!ordinary || !security) {
    throw new CannotBuild(
      "apt on this machine does not use both Debian and its security updates",
      "Renew the lock on a Debian that does.",
    );
  }
  writeFileSync(join(state, "sources.list"), source(ordinary, SUITE) + source(security, `${SUITE}-security`));
  const options = ownState(state, [
    `Dir::Etc::SourceList=${join(state, "sources.list")}`,
    "Dir::Etc::SourceParts=-",
    `APT::Architecture=${architecture}`,
    `APT::Architectures=${architecture}`,
  ]);
  say(`asking the mirror what it has for ${architecture}`);
  run("apt-get", [...options, "update", "--error-on=any"]);
  return PACKAGES.map((name) => {
    const shown = run("apt-cache", [...options, "show", "--no-all-versions", name]);
    const field = (key: string) => new RegExp(`^${key}: (.*)$`, "m").exec(shown)?.[1] ?? "";
    return { name, version: field("Version"), path: field("Filename"), sha256: field("SHA256") };
  });
}

function ownState(folder: string, more: readonly string[]): string[] {
  mkdirSync(join(folder, "lists", "partial"), { recursive: true });
  mkdirSync(join(folder, "cache", "archives", "partial"), { recursive: true });
  return [
    `Dir::State=${folder}`,
    `Dir::State::Lists=${join(folder, "lists")}`,
    "Dir::State::Status=/dev/null",
    `Dir::Cache=${join(folder, "cache")}`,
    "Acquire::Languages=none",
    ...more,
  ]
    .flatMap((option) => ["-o", option])
    .concat(SAME_USER);
}

function run(program: string, args: readonly string[]): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: "utf8", maxBuffer: 1 << 26 });
  if (error) throw new CannotBuild(`${program} cannot be started: ${error.message}`);
  if (status !== 0) throw new CannotBuild(`${program} ${args.join(" ")} failed:\n${stderr.trim()}`);
  return stdout;
}

/** Renames; where another build was quicker, its result stays. */
function replace(from: string, to: string): void {
  try {
    renameSync(from, to);
  } catch (error) {
    if (!existsSync(to) || readdirSync(to).length === 0) throw error;
    rmSync(from, { recursive: true });
  }
}
