// The images that the cluster brings along, as archives in the cache: Ray, as upstream's image has it (user, paths,
// tags), the container that holds a Pod's network, and Kueue for those who want it.
//
// They are made on the spot, since there need not be a registry: Debian by debootstrap from the mirror that this machine
// uses, Ray from the package index that its pip uses.
import { createHash } from "node:crypto";
import {
  copyFileSync,
  cpSync,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { builtOf, kueue } from "../kubernetes/build.js";
import { cache, RAY } from "./paths.js";
import { run } from "./process.js";
import { PAUSE } from "./programs.js";

/** Goes up when what is below makes another image than before. */
const RECIPE = 2;
const DEBIAN = "bookworm";
/** Where upstream's image has Python. */
const PYTHON = "/home/ray/anaconda3";
const USELESS = [
  "var/cache/apt",
  "var/lib/apt/lists",
  "usr/share/doc",
  "usr/share/man",
  "usr/share/locale",
  "root/.cache",
];
const PACKAGES = ["python3", "python3-venv", "wget", "procps", "ca-certificates"];
const architecture = { x64: "amd64", arm64: "arm64" }[process.arch] ?? process.arch;

export const rayImage = {
  /** Upstream's samples name many versions. Here it is the same Ray below each of the names. */
  names: [RAY, "2.9.0", "2.41.0", "2.46.0", "2.52.0"].map((tag) => `docker.io/rayproject/ray:${tag}`),
  archive: join(cache, "cluster", `ray-${RAY}-${DEBIAN}-${architecture}-${RECIPE}.tar`),
};
export const pauseImage = { names: [PAUSE], archive: join(cache, "cluster", `pause-${architecture}.tar`) };
export const kueueImage = {
  names: [`docker.io/raykeeper/kueue:${kueue}`],
  archive: join(cache, "cluster", `kueue-${kueue}-${architecture}.tar`),
};

export async function makePause() {
  if (existsSync(pauseImage.archive)) return;
  await withFolder(async (folder) => {
    const rootfs = join(folder, "rootfs");
    mkdirSync(join(rootfs, "bin"), { recursive: true });
    copyFileSync("/bin/busybox", join(rootfs, "bin", "busybox"));
    await pack(folder, pauseImage, { Entrypoint: ["/bin/busybox", "sleep", "2147483647"] });
  });
}

/** The manager alone: it is static. As in its own image, its user is a number other than root's. */
export async function makeKueue() {
  if (existsSync(kueueImage.archive)) return;
  await withFolder(async (folder) => {
    const rootfs = join(folder, "rootfs");
    mkdirSync(rootfs);
    copyFileSync(join(builtOf("kueue"), "manager"), join(rootfs, "manager"));
    await pack(folder, kueueImage, { User: "65532:65532", Entrypoint: ["/manager"] });
  });
}

/** `tell` hears of each step. */
export async function makeRay(tell) {
  if (existsSync(rayImage.archive)) return;
  await withFolder(async (folder) => {
    const rootfs = join(folder, "rootfs");
    tell(`Debian ${DEBIAN} by debootstrap`);
    const options = ["--variant=minbase", `--include=${PACKAGES.join()}`];
    await confined("debootstrap", ...options, DEBIAN, rootfs, await mirror());
    tell(`Ray ${RAY} from the package index`);
    const inRoot = (...command) => confined("chroot", rootfs, ...command);
    const lent = lend(rootfs);
    await inRoot("useradd", "--create-home", "--uid", "1000", "--gid", "100", "--shell", "/bin/bash", "ray");
    await inRoot("python3", "-m", "venv", PYTHON);
    const pip = [join(PYTHON, "bin", "pip"), "install", "--no-cache-dir", "--progress-bar", "off", "--no-input"];
    await inRoot(...pip, `ray[default]==${RAY}`);
    keepPath(join(rootfs, "etc/profile"));
    await inRoot("chown", "--recursive", "ray:users", "/home/ray");
    for (const path of [...lent, ...USELESS]) rmSync(join(rootfs, path), { recursive: true, force: true });
    tell("its archive");
    await pack(folder, rayImage, {
      User: "1000",
      WorkingDir: "/home/ray",
      Cmd: ["/bin/bash"],
      Env: [
        `PATH=${PYTHON}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
        "HOME=/home/ray",
        "LANG=C.UTF-8",
        // Nobody is to be told of test runs.
        "RAY_USAGE_STATS_ENABLED=0",
      ],
    });
  });
}

/**
 * Upstream's image is an Ubuntu, whose login shells leave PATH as the image has it; Debian's set it anew, and would not
 * find Ray.
 */
function keepPath(profile) {
  const text = readFileSync(profile, "utf8");
  const kept = text.replace(/^if .*?^export PATH$/ms, "");
  if (kept === text) throw new Error(`${profile} sets PATH in another way than this expects`);
  writeFileSync(profile, kept);
}

/** A folder beside the archives, which goes in any case; those of killed processes go with the next. */
async function withFolder(make) {
  const parent = join(cache, "cluster");
  mkdirSync(parent, { recursive: true });
  for (const name of readdirSync(parent)) {
    if (name.startsWith(".unfinished-")) rmSync(join(parent, name), { recursive: true, force: true });
  }
  const folder = mkdtempSync(join(parent, ".unfinished-"));
  try {
    await make(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** In namespaces of its own, so that no mount and no process of it is left, however it ends. */
const confined = (...command) =>
  run(
    "unshare",
    ["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc", ...command],
    {
      env: surroundings(),
    },
  );

/** What a root folder needs for as long as packages are installed into it: this machine's way to them. */
function lend(rootfs) {
  const certificates = process.env.PIP_CERT || process.env.SSL_CERT_FILE || "/etc/ssl/certs/ca-certificates.crt";
  // This one stays: what this machine trusts, Pods shall trust.
  if (existsSync(certificates))
    cpSync(certificates, join(rootfs, "etc/ssl/certs/ca-certificates.crt"), { dereference: true });
  const files = ["etc/resolv.conf", "etc/pip.conf"].filter((file) => existsSync(join("/", file)));
  for (const file of files) cpSync(join("/", file), join(rootfs, file), { dereference: true });
  return files;
}

function surroundings() {
  const kept = Object.entries(process.env).filter(
    ([name]) => /_proxy$/i.test(name) || /^PIP_(INDEX_URL|EXTRA_INDEX_URL|TRUSTED_HOST|DEFAULT_TIMEOUT)$/.test(name),
  );
  const certificates = { PIP_CERT: "/etc/ssl/certs/ca-certificates.crt" };
  return {
    ...Object.fromEntries(kept),
    ...certificates,
    PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: "/root",
    LANG: "C.UTF-8",
  };
}

/** The one that apt uses. */
async function mirror() {
  const sites = await run("apt-get", ["indextargets", "--format", "$(SITE)"]).catch(() => "");
  const site = sites.split("\n").find((each) => /\/debian\/?$/.test(each));
  if (site === undefined) {
    throw new Error("apt names no mirror of Debian on this machine, and the Ray image is made from Debian's packages");
  }
  return site;
}

/**
 * rootfs below the folder becomes an archive: one layer, and for each name an image of it with an identity of its own, since
 * the kubelet reports any name of an image that has many.
 */
async function pack(folder, { names, archive }, config) {
  // Times stay: by them Python knows that what it has compiled is still right.
  const tar = ["--sort=name", "--numeric-owner"];
  await run("tar", [...tar, "-C", join(folder, "rootfs"), "-cf", join(folder, "layer.tar"), "."]);
  const layer = `sha256:${await sha256(join(folder, "layer.tar"))}`;
  const images = names.map((name) => {
    const image = JSON.stringify({
      architecture,
      os: "linux",
      config: { ...config, Labels: { "org.opencontainers.image.ref.name": name } },
      rootfs: { type: "layers", diff_ids: [layer] },
      history: [{ created: "1970-01-01T00:00:00Z" }],
    });
    const file = `${createHash("sha256").update(image).digest("hex")}.json`;
    writeFileSync(join(folder, file), image);
    return { Config: file, RepoTags: [name], Layers: ["layer.tar"] };
  });
  writeFileSync(join(folder, "manifest.json"), JSON.stringify(images));
  const unfinished = join(folder, "image.tar");
  const files = ["manifest.json", ...images.map(({ Config }) => Config), "layer.tar"];
  await run("tar", [...tar, "-C", folder, "-cf", unfinished, ...files]);
  renameSync(unfinished, archive);
}

async function sha256(file) {
  const hash = createHash("sha256");
  for await (const data of createReadStream(file)) hash.update(data);
  return hash.digest("hex");
}
