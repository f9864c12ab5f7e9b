/**
 * The namespaces around an embedded cluster: user, mount, network and pid, for root and for an ordinary user alike.
 *
 * All that a cluster starts lives in one pid namespace whose first process dies with its starter, even by SIGKILL, and
 * takes everything with it; networks and mounts go with the last process.
 * There is no fallback without namespaces: Ray nodes of one machine would bind the same ports (docs/local-mode.md).
 */
import { spawn } from "node:child_process";
import { access } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { CannotRun } from "../cli/failure.ts";

/** `sbin` as well: an ordinary user's PATH often lacks it, and `ip` is there. */
export const toolPath = [process.env["PATH"], "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/bin", "/bin"]
  .filter(Boolean)
  .join(delimiter);

const TOOLS: Readonly<Record<string, string>> = {
  setpriv: "util-linux",
  unshare: "util-linux",
  nsenter: "util-linux",
  mount: "util-linux",
  flock: "util-linux",
  ip: "iproute2",
};

/** The command that runs `command` as the first process of namespaces of its own, to die with the process that starts it. */
export function sandboxed(command: readonly string[]): string[] {
  const namespaces = process.getuid?.() === 0 ? ["-mnp"] : ["-Urmnp"];
  return [
    "setpriv",
    "--pdeathsig",
    "KILL",
    "unshare",
    ...namespaces,
    "--fork",
    "--kill-child",
    "--mount-proc",
    ...command,
  ];
}

/** What each Pod will need, tried once. */
const PROBE = [
  "mount -t tmpfs tmpfs /tmp",
  "ip link add probe type bridge",
  "ip link set probe up",
  "unshare -n ip link add eth0 type veth peer name probe1 netns 1",
  "unshare -mp --fork --mount-proc true",
].join(" && ");

/** Throws CannotRun, with the remedy, on a machine where an embedded cluster cannot run. */
export async function checkSandbox(): Promise<void> {
  if (process.platform !== "linux") {
    throw new CannotRun(
      "the embedded cluster needs Linux",
      "Use a Linux machine or virtual machine, or a real cluster.",
    );
  }
  const missing: string[] = [];
  for (const tool of Object.keys(TOOLS)) if (!(await onPath(tool))) missing.push(tool);
  if (missing.length > 0) {
    const packages = [...new Set(missing.map((tool) => TOOLS[tool]))].join(" ");
    throw new CannotRun(
      `${missing.join(", ")} not found`,
      `Install it: apt install ${packages} (or your distribution's like).`,
    );
  }
  const [command, ...args] = sandboxed(["sh", "-c", PROBE]);
  const child = spawn(command!, args, { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, PATH: toolPath } });
  let output = "";
  child.stderr!.on("data", (chunk) => {
    output += chunk;
  });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code !== 0) throw notPermitted(output.trim().split("\n").at(-1) ?? "");
}

/** The likeliest reason why this machine refuses, from what it said. */
export function notPermitted(said: string): CannotRun {
  if (/Unknown device type|not supported/i.test(said)) {
    return new CannotRun(
      `this kernel lacks virtual networks (${said})`,
      "Load the modules: sudo modprobe -a bridge veth",
    );
  }
  return new CannotRun(
    `this machine does not permit namespaces (${said || "no reason given"})`,
    [
      "The embedded cluster gives every Pod a network and files of its own. Permit it with one of:",
      "  sudo sysctl kernel.unprivileged_userns_clone=1                  (Debian)",
      "  sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0      (Ubuntu 23.10 and newer)",
      "  sudo sysctl user.max_user_namespaces=10000                      (where it is 0)",
      "  docker run --privileged …                                       (inside a container)",
      "or use a real cluster.",
    ].join("\n"),
  );
}

async function onPath(tool: string): Promise<boolean> {
  for (const folder of toolPath.split(delimiter)) {
    const found = await access(join(folder, tool)).then(
      () => true,
      () => false,
    );
    if (found) return true;
  }
  return false;
}
