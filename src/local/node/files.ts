/**
 * What a container finds in its file system besides its Pod's volumes: what an image of Ray would bring, and private
 * folders to write in.
 */
import { mkdir, open, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { MOUNTED_AT, type RayEnvironment } from "../rayEnvironment.ts";
import type { Environment } from "./environment.ts";
import type { Mount } from "./runtime.ts";
import type { VolumeContent, VolumeFile } from "./volumes.ts";

export const HOME = "/home/ray";

/** What an image of Ray defines; a Pod's own variables go before it. `memory` is the machine's, in bytes. */
export function imageEnvironment(memory: number): Environment {
  return {
    PATH: `${MOUNTED_AT}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`,
    HOME,
    LANG: "C.UTF-8",
    LC_ALL: "C.UTF-8",
    // Pods have no way out of the machine: reporting would only wait for time-outs.
    RAY_USAGE_STATS_ENABLED: "0",
    RAY_DISABLE_DOCKER_CPU_WARNING: "1",
    // All nodes start at once on one machine's cores. Ray's own patience (30 s and 60 s) is for a node with cores of its own.
    RAY_DASHBOARD_STARTUP_TIMEOUT_S: "300",
    RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT: "240",
    // Ray's default of 30 % is per node, and here all nodes share one machine.
    RAY_DEFAULT_OBJECT_STORE_MAX_MEMORY_BYTES: String(Math.max(100 * 2 ** 20, Math.floor(memory / 8))),
  };
}

/** Folders of the machine that containers do not see, so that an interpreter below one has to be mounted. */
const UNSEEN = ["/home/", "/root/", "/tmp/", "/var/tmp/", "/run/"];

/** The files that make a container's user and names; `etc` is a folder made by `writeEtc`. */
export function imageMounts(environment: RayEnvironment, etc: string, shm: string): Mount[] {
  const { root, basePrefix } = environment;
  const base = UNSEEN.some((folder) => `${basePrefix}/`.startsWith(folder));
  return [
    { target: "/tmp", options: "mode=1777" },
    { target: "/var/tmp", options: "mode=1777" },
    { target: "/run", options: "mode=755" },
    { target: HOME, options: "mode=755" },
    { source: shm, target: "/dev/shm" },
    { source: root, target: MOUNTED_AT, readOnly: true },
    ...(base ? [{ source: basePrefix, target: basePrefix, readOnly: true }] : []),
    ...ETC.map((name) => ({ source: join(etc, name), target: `/etc/${name}`, readOnly: true })),
  ];
}

const ETC = ["hosts", "hostname", "resolv.conf", "nsswitch.conf", "passwd", "group"] as const;

/** Names come from the hosts file alone; a name server on the loopback, where none listens, fails at once. */
export const RESOLV = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n";
export const NSSWITCH =
  "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\nservices: files\nprotocols: files\n";

/** Makes the Pod's part of /etc. In the namespaces its user is root; it goes by the name of the image's user. */
export async function writeEtc(folder: string, hostname: string, hosts: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const texts: Record<(typeof ETC)[number], string> = {
    hosts,
    hostname: `${hostname}\n`,
    "resolv.conf": RESOLV,
    "nsswitch.conf": NSSWITCH,
    passwd: `ray:x:0:0:ray:${HOME}:/bin/bash\nroot:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n`,
    group: "root:x:0:\nusers:x:100:ray\nnogroup:x:65534:\n",
  };
  for (const [name, text] of Object.entries(texts)) await writeFile(join(folder, name), text, { mode: 0o644 });
}

/** Replaces a file's text in place: it is mounted in containers, which hold on to this very file. */
export async function overwrite(path: string, text: string): Promise<void> {
  const data = Buffer.from(text);
  const file = await open(path, "r+");
  try {
    await file.write(data, 0, data.length, 0);
    await file.truncate(data.length);
  } finally {
    await file.close();
  }
}

/** Puts a volume's content at `folder`. */
export async function writeVolume(folder: string, content: VolumeContent): Promise<void> {
  await mkdir(folder, { recursive: true });
  if (content.kind === "files") for (const file of content.files) await writeVolumeFile(folder, file);
}

async function writeVolumeFile(folder: string, { path, data, mode }: VolumeFile): Promise<void> {
  const target = join(folder, path);
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, data);
  const file = await open(target, "r");
  try {
    await file.chmod(mode & 0o777);
  } finally {
    await file.close();
  }
}
