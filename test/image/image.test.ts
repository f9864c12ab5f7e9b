/**
 * The image as it is built, and what is in it run as a kubelet would: its own root, read-only, as its own user, without
 * privileges.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { imageConfig, USER } from "../../hack/image/layout.ts";
import { VERSION } from "../../src/shipped.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "raykeeper-image-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(program: string, args: readonly string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}) {
  return spawnSync(program, args, { encoding: "utf8", maxBuffer: 1 << 28, ...options });
}

function must(...call: Parameters<typeof run>): string {
  const { status, stdout, stderr, error } = run(...call);
  if (status !== 0) throw new Error(`${call[0]} ${call[1].join(" ")}: ${error?.message ?? stderr}`);
  return stdout;
}

/** Builds as a user does; a machine whose mirror has moved on since the lock was written still gets an image to test. */
function build(root: string, output: string): Buffer {
  const cache = process.env["RAYKEEPER_CACHE"] || join(ROOT, ".cache");
  const args = ["hack/image/build.js", "--allow-newer-base", "--output", output];
  expect(must(process.execPath, args, { cwd: root, env: { ...process.env, RAYKEEPER_CACHE: cache } })).toBe(
    `${output}\n`,
  );
  return readFileSync(output);
}

const archive = join(folder, "here.oci.tar");
let bytes: Buffer;
beforeAll(() => {
  bytes = build(ROOT, archive);
});

describe("the image", () => {
  it("has the same bytes when it is built from another folder", () => {
    const copy = join(folder, "another", "folder");
    for (const path of ["src", "bin", "hack", "package.json", "package-lock.json", "LICENSE", ".npmrc"]) {
      cpSync(join(ROOT, path), join(copy, path), { recursive: true });
    }
    symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
    expect(build(copy, join(folder, "there.oci.tar")).equals(bytes)).toBe(true);
  });

  it("starts /manager as a user that is not root", () => {
    const { config } = JSON.parse(blob(manifest().config.digest).toString());
    expect(config).toEqual(imageConfig(VERSION));
    expect(Number(config.User.split(":")[0])).toBeGreaterThan(0);
  });
});

const inArchive = (path: string) => spawnSync("tar", ["-xOf", archive, path], { maxBuffer: 1 << 28 }).stdout;
const blob = (digest: string) => inArchive(`blobs/${digest.replace(":", "/")}`);
const manifest = () =>
  JSON.parse(blob(JSON.parse(inArchive("index.json").toString()).manifests[0].digest).toString()) as {
    config: { digest: string };
    layers: { digest: string }[];
  };

const notRoot = process.getuid!() === 0 ? undefined : "a root of its own (chroot) takes root here";

describe("what is in the image", () => {
  const root = join(folder, "root");
  const home = join(folder, "home");
  const children: ChildProcess[] = [];

  beforeAll(() => {
    if (notRoot) return;
    mkdirSync(join(root, "proc"), { recursive: true });
    for (const { digest } of manifest().layers) {
      const { status, stderr } = spawnSync("tar", ["-xzC", root], { input: blob(digest) });
      if (status !== 0) throw new Error(String(stderr));
    }
    mkdirSync(home);
    writeFileSync(join(home, "config"), UNREACHABLE);
  });
  afterAll(() => {
    for (const child of children) child.kill("SIGKILL");
  });

  /** `$1` the root, `$2` what is mounted as its user's home, then the command. The mounts go with the process. */
  const AS_IN_A_POD = `set -e
root=$1 home=$2; shift 2
mount --bind "$root" "$root"
mount --bind "$home" "$root/home/nonroot"
mount --bind /proc "$root/proc"
mount -o remount,bind,ro,nosuid "$root"
exec setpriv --no-new-privs chroot --userspec=${USER}:${USER} "$root" "$@"`;
  const inside = (...command: string[]): [string, string[]] => [
    "unshare",
    ["--mount", "sh", "-c", AS_IN_A_POD, "sh", root, home, ...command],
  ];
  // As the image says, and what the shell that mounts needs.
  const env = Object.fromEntries([
    ...imageConfig(VERSION).Env.map((each) => each.split("=", 2)),
    ["PATH", "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
  ]) as Record<string, string>;

  it("tells its version under both of its names", ({ skip }) => {
    if (notRoot) skip(notRoot);
    for (const name of ["/manager", "/usr/local/bin/raykeeper"]) {
      const [program, args] = inside(name, "--version");
      expect(run(program, args, { env })).toMatchObject({ status: 0, stdout: `${VERSION}\n`, stderr: "" });
    }
  });

  it("has no shell", ({ skip }) => {
    if (notRoot) skip(notRoot);
    const [program, args] = inside("/bin/sh", "-c", "true");
    expect(run(program, args, { env }).stderr).toContain("No such file or directory");
  });

  it("finds the API server by name, with what /etc/hosts and the DNS say", ({ skip }) => {
    if (notRoot) skip(notRoot);
    const lookUp = "require('dns').lookup('name.invalid', (error) => console.log(error.code))";
    const [program, args] = inside("/usr/local/bin/node", "-e", lookUp);
    // Libc was able to ask, and nobody knows the name.
    expect(run(program, args, { env }).stdout).toMatch(/^(ENOTFOUND|EAI_AGAIN)\n$/);
  });

  it("runs the operator for KubeRay's flags: healthy, not ready while there is no API server, ended by SIGTERM", async ({
    skip,
  }) => {
    if (notRoot) skip(notRoot);
    const [program, args] = inside(
      "/manager",
      "--enable-leader-election=false",
      "--metrics-addr=0",
      `--health-probe-bind-address=127.0.0.1:${PROBES}`,
      "--kubeconfig=/home/nonroot/config",
    );
    const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "inherit"] });
    children.push(child);
    const ended = once(child, "exit");
    // It has looked for the API server once, so it serves.
    for await (const line of createInterface(child.stdout)) if (line.includes("ECONNREFUSED")) break;
    child.stdout.resume();
    const status = async (page: string) => (await fetch(`http://127.0.0.1:${PROBES}/${page}`)).status;
    expect([await status("healthz"), await status("readyz")]).toEqual([200, 503]);
    const about = readFileSync(`/proc/${child.pid}/status`, "utf8");
    expect(about).toMatch(new RegExp(`^Uid:\\s+${USER}\\s`, "m"));
    console.log(`resident: ${Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(about)![1]) / 1024)} MiB`);
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  });
});

const PROBES = 18_082;
const UNREACHABLE = `apiVersion: v1
kind: Config
clusters: [{ name: none, cluster: { server: "http://127.0.0.1:1" } }]
users: [{ name: none, user: {} }]
contexts: [{ name: none, context: { cluster: none, user: none } }]
current-context: none
`;
