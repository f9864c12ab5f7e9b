// What the machine must have, and what to type where it has not.
import { existsSync } from "node:fs";
import { whyNot } from "../kubernetes/build.js";
import { Failure } from "./process.js";

/** A file that is there if the Debian package is. */
const PACKAGES = {
  containerd: ["/usr/bin/containerd", "/usr/bin/ctr"],
  runc: ["/usr/sbin/runc", "/usr/bin/runc"],
  "containernetworking-plugins": ["/usr/lib/cni/ptp", "/opt/cni/bin/ptp"],
  iptables: ["/usr/sbin/iptables"],
  "busybox-static": ["/bin/busybox"],
  debootstrap: ["/usr/sbin/debootstrap"],
  openssl: ["/usr/bin/openssl"],
  iproute2: ["/usr/sbin/ip", "/sbin/ip", "/bin/ip"],
  procps: ["/usr/sbin/sysctl", "/sbin/sysctl"],
  "util-linux": ["/usr/bin/nsenter"],
};

export const missingPackages = () =>
  Object.entries(PACKAGES)
    .filter(([, files]) => !files.some((file) => existsSync(file)))
    .map(([name]) => name);

/** Why this machine cannot have a cluster, with the remedy; undefined if it can. */
export function whyNoCluster() {
  if (process.platform !== "linux") return "a cluster takes Linux: its containers share this machine's kernel";
  if (process.getuid?.() !== 0)
    return "a cluster takes root, for namespaces, mounts and control groups: run this with sudo";
  const missing = missingPackages();
  if (missing.length > 0) {
    return `this machine lacks ${missing.join(", ")}: apt-get install --no-install-recommends ${missing.join(" ")}`;
  }
  return whyNot("node");
}

export function requirements() {
  const reason = whyNoCluster();
  if (reason) throw new Failure(reason);
}
