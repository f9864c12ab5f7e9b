// The place where the cluster runs: namespaces of its own (mounts, processes, network), held open by one process that
// does nothing else, control groups of its own, and a cable to the host's network.
//
// What a kubelet strews over a machine (mounts, iptables rules, files in /run and /var/lib, sysctls) is only in there, so
// that it all goes when the holder is killed. What is left on the host is few, and `remove` takes it back.
import { spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { NODE, network, paths, RUN, STATE } from "./paths.js";
import { Failure, identity, processOf, run, succeeds, until } from "./process.js";

const holderFile = join(RUN, "holder.pid");
const forwardingFile = join(RUN, "ip_forward");
const FORWARDING = "/proc/sys/net/ipv4/ip_forward";
const GROUP = "raykeeper-cluster";

/**
 * The kubelet wants these so and sets them, for the whole machine, panic on a kernel's oops among them. It finds files in
 * their place that say what it wants to read.
 */
const SYSCTLS = {
  "vm/overcommit_memory": "1",
  "vm/panic_on_oom": "0",
  "kernel/panic": "10",
  "kernel/panic_on_oops": "1",
  "kernel/keys/root_maxkeys": "1000000",
  "kernel/keys/root_maxbytes": "25000000",
};

/** Of the processor, as much as eight processes: in version 1 of control groups, and in 2. */
const SHARE = { "cpu.shares": "8192", "cpu.weight": "800" };

/** The holder's process number, if there is a place. */
export const holder = () => processOf(holderFile);

/** Makes namespaces and control groups. */
export async function make() {
  for (const folder of [RUN, STATE, paths.logs, join(RUN, "pids")]) mkdirSync(folder, { recursive: true, mode: 0o755 });
  makeGroups();
  const files = Object.entries(SYSCTLS).map(([key, value]) => {
    const file = join(RUN, "sysctl", key);
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, `${value}\n`);
    return `mount --bind ${file} /proc/sys/${key}`;
  });
  const hosts = join(RUN, "hosts");
  writeFileSync(hosts, `127.0.0.1 localhost\n${network.node} ${NODE}\n`);
  const ready = join(RUN, "holder.ready");
  const script = `
    set -e
    # Whatever is written to /run, /var/lib or /var/log in here is in memory, save for our own two folders.
    over() {
      mkdir -p ${STATE}/over/$2
      mount -t tmpfs -o mode=755 $2 ${STATE}/over/$2
      mkdir ${STATE}/over/$2/upper ${STATE}/over/$2/work ${STATE}/over/$2/merged
      mount -t overlay -o lowerdir=$1,upperdir=${STATE}/over/$2/upper,workdir=${STATE}/over/$2/work $2 ${STATE}/over/$2/merged
    }
    over /var/lib lib
    over /var/log log
    mount --bind ${STATE} ${STATE}/over/lib/merged/${GROUP}
    mkdir -p ${RUN}/over
    mount -t tmpfs -o mode=755 run ${RUN}/over
    mkdir ${RUN}/over/${GROUP}
    mount --bind ${RUN} ${RUN}/over/${GROUP}
    mount --bind ${STATE}/over/log/merged /var/log
    mount --rbind ${STATE}/over/lib/merged /var/lib
    mount --rbind ${RUN}/over /run
    ${files.join("\n")}
    mount --bind ${hosts} /etc/hosts
    hostname ${NODE}
    ip link set lo up
    mount --make-rshared /
    touch ${ready}
    # Waits for ever, without a child of its own. A shell buries whoever becomes its child, so nobody stays a zombie.
    mkfifo ${RUN}/never
    while :; do read -r <> ${RUN}/never; done`;
  rmSync(ready, { force: true });
  const namespaces = [
    "--mount",
    "--propagation",
    "private",
    "--pid",
    "--fork",
    "--mount-proc",
    "--net",
    "--uts",
    "--ipc",
  ];
  const unshare = start("holder", ["unshare", ...namespaces, "bash", "-c", script]);
  await until(
    "no namespaces",
    20,
    () => existsSync(ready),
    () => check("holder", unshare),
  );
  const [pid] = readFileSync(`/proc/${unshare}/task/${unshare}/children`, "utf8").trim().split(" ");
  writeFileSync(holderFile, identity(Number(pid)) ?? "");
}

/** Starts a program in the place, detached from us; its output goes to a log of its own. */
export function startInside(name, command) {
  const pid = start(name, ["nsenter", ...enter(), ...command]);
  writeFileSync(join(RUN, "pids", name), identity(pid) ?? "");
}

/** Whether a program that was started in the place still runs. */
export const runs = (name) => processOf(join(RUN, "pids", name)) !== undefined;

/** Throws, with the last that it said, when a program has ended. */
export function check(name, pid = processOf(join(RUN, "pids", name))) {
  if (pid !== undefined && identity(pid)) return;
  const log = join(paths.logs, `${name}.log`);
  throw new Failure(`${name} has ended; the last it said (${log}):\n${readFileSync(log, "utf8").slice(-2000)}`);
}

/** Ends one program. */
export async function end(name) {
  const pid = processOf(join(RUN, "pids", name));
  if (pid === undefined) return;
  for (const child of readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ")) {
    process.kill(Number(child), "SIGKILL");
  }
  await until(`${name} does not end`, 10, () => identity(pid) === undefined);
}

/** Runs a program in the place and answers what it printed. */
export const inside = (command, options) => run("nsenter", [...enter(), ...command], options);

const enter = () => ["--target", String(holder()), "--mount", "--pid", "--net", "--uts", "--ipc", "--"];

function start(name, command) {
  const log = openSync(join(paths.logs, `${name}.log`), "a", 0o600);
  // Into our groups first: it must neither count as, nor go with, whoever happens to start the cluster.
  const moves = groups("system").map((group) => `echo 0 > ${group}/cgroup.procs`);
  const child = spawn("sh", ["-c", [...moves, 'exec "$@"'].join("\n"), "sh", ...command], {
    cwd: "/",
    detached: true,
    stdio: ["ignore", log, log],
    // Not what the caller's shell happens to set.
    env: { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/root", LANG: "C.UTF-8" },
  });
  closeSync(log);
  child.unref();
  return child.pid;
}

/** One folder in cgroup v2, one for each controller in v1. */
function groups(...below) {
  const top = "/sys/fs/cgroup";
  const hierarchies = existsSync(join(top, "cgroup.procs"))
    ? [top]
    : readdirSync(top)
        .map((name) => join(top, name))
        .filter((folder) => existsSync(join(folder, "cgroup.procs")));
  return hierarchies.map((folder) => join(folder, GROUP, ...below));
}

function makeGroups() {
  for (const group of [...groups(), ...groups("system")]) {
    mkdirSync(group, { recursive: true });
    const parent = join(group, "..");
    for (const set of ["cpuset.cpus", "cpuset.mems"]) {
      // Version 1: nothing may be in a group before these are set.
      if (!existsSync(join(parent, "cgroup.controllers")) && existsSync(join(group, set))) {
        writeFileSync(join(group, set), readFileSync(join(parent, set)));
      }
    }
    const offered = join(parent, "cgroup.controllers");
    if (!existsSync(offered) || group.endsWith("system")) continue;
    // Version 2: a controller reaches Pods only if each group above hands it on.
    for (const handing of [parent, group]) {
      for (const controller of readFileSync(offered, "utf8").trim().split(" ").filter(Boolean)) {
        writeFileSync(join(handing, "cgroup.subtree_control"), `+${controller}`);
      }
    }
  }
  // To the host's scheduler a group is one among its processes, however many run in it: Ray would hardly start beside them.
  for (const [name, share] of Object.entries(SHARE)) {
    const files = groups().map((group) => join(group, name));
    for (const file of files.filter((each) => existsSync(each))) writeFileSync(file, share);
  }
}

/** Connects the place to the host's network. True if Pods reach what the host reaches. */
export async function connect() {
  const { device, host, node, prefix, pods, services, all } = network;
  if (existsSync(`/sys/class/net/${device}`)) return;
  const routes = JSON.parse(await run("ip", ["-json", "-4", "route", "show", "table", "all"]));
  const taken = routes.find(({ dst }) => dst !== "default" && all.some((ours) => overlap(dst, ours)));
  if (taken) {
    throw new Failure(
      `this machine uses ${taken.dst} (device ${taken.dev}) itself, and the cluster needs ${all.join(" and ")}. ` +
        "Free them, or change `network` in hack/cluster/paths.js.",
    );
  }
  const gateway = routes.find(({ dst }) => dst === "default")?.dev;
  const mtu = gateway ? readFileSync(`/sys/class/net/${gateway}/mtu`, "utf8").trim() : "1500";
  const ip = (...args) => run("ip", args);
  const cable = ["link", "add", device, "mtu", mtu, "type", "veth"];
  await ip(...cable, "peer", "name", "eth0", "mtu", mtu, "netns", String(holder()));
  await ip("address", "add", `${host}/${prefix}`, "dev", device);
  await ip("link", "set", device, "up");
  await inside(["ip", "address", "add", `${node}/${prefix}`, "dev", "eth0"]);
  await inside(["ip", "link", "set", "eth0", "up"]);
  await inside(["ip", "route", "add", "default", "via", host]);
  await inside(["sysctl", "-qw", "net.ipv4.ip_forward=1"]);
  for (const range of [pods, services]) await ip("route", "add", range, "via", node);
  writeFileSync(forwardingFile, readFileSync(FORWARDING));
  writeFileSync(FORWARDING, "1");
  for (const [table, chain, ...rule] of rules()) await run("iptables", ["-w", "-t", table, "-I", chain, ...rule]);
}

/** On the host, so that Pods get out of the machine: Ray installs packages that a job asks for. */
function rules() {
  const ours = ["-m", "comment", "--comment", GROUP];
  return [
    ["nat", "POSTROUTING", "-s", network.all[0], "!", "-o", network.device, ...ours, "-j", "MASQUERADE"],
    ["filter", "FORWARD", "-i", network.device, ...ours, "-j", "ACCEPT"],
    ["filter", "FORWARD", "-o", network.device, ...ours, "-j", "ACCEPT"],
  ];
}

/** Whether two ranges of addresses (`10.0.0.0/8`, or one address) have any in common. */
export function overlap(one, other) {
  const [a, b] = [one, other].map((range) => {
    const [address, prefix = "32"] = range.split("/");
    const number = address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
    return { number, prefix: Number(prefix) };
  });
  const size = 2 ** (32 - Math.min(a.prefix, b.prefix));
  return Math.floor(a.number / size) === Math.floor(b.number / size);
}

/** Removes the place and all that runs in it. Answers whether there was anything. */
export async function remove() {
  let found = existsSync(RUN) || existsSync(STATE);
  const pid = holder();
  if (pid !== undefined) {
    // All but the holder first, and the files before the mounts: else the kernel writes to the disk, for half a minute,
    // what is to be removed.
    await until("the cluster's processes do not end", 30, () => !groups().some((group) => kill(group, pid)));
    rmSync(STATE, { recursive: true, force: true });
    process.kill(pid, "SIGKILL");
  }
  for (const group of groups().filter(existsSync)) {
    found = true;
    await until(`there is still something in ${group}`, 30, () => !kill(group) && removeGroup(group));
  }
  if (existsSync(`/sys/class/net/${network.device}`)) await succeeds("ip", ["link", "delete", network.device]);
  if (await succeeds("iptables", ["--version"])) {
    for (const [table, chain, ...rule] of rules()) {
      while (await succeeds("iptables", ["-w", "-t", table, "-D", chain, ...rule])) found = true;
    }
  }
  if (existsSync(forwardingFile)) writeFileSync(FORWARDING, readFileSync(forwardingFile));
  for (const folder of [STATE, RUN]) {
    const mounted = readFileSync("/proc/self/mountinfo", "utf8").includes(` ${folder}`);
    if (mounted) throw new Failure(`something is mounted below ${folder}: unmount it, then run this again`);
    rmSync(folder, { recursive: true, force: true });
  }
  return found;
}

/** Kills what runs in a group and below, save for the holder and its parent. Answers whether there was anything. */
function kill(group, spared) {
  if (!existsSync(group)) return false;
  const parent = spared && Number(readFileSync(`/proc/${spared}/stat`, "utf8").split(") ").at(-1).split(" ")[1]);
  const below = subgroups(group).map((each) => kill(each, spared));
  const pids = readFileSync(join(group, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
  const doomed = pids.filter((pid) => pid !== spared && pid !== parent);
  for (const pid of doomed) {
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It has ended.
    }
  }
  return doomed.length > 0 || below.some(Boolean);
}

/** From the leaves up; false while the kernel is not done with what was in it. */
function removeGroup(group) {
  if (!subgroups(group).map(removeGroup).every(Boolean)) return false;
  try {
    rmdirSync(group);
    return true;
  } catch {
    return false;
  }
}

const subgroups = (group) =>
  readdirSync(group, { withFileTypes: true })
    .filter((each) => each.isDirectory())
    .map(({ name }) => join(group, name));
