// Where the one-node cluster keeps everything, for those who use it: a kubeconfig, sockets, programs.
//
// What runs is below RUN, what it stores below STATE; `npm run cluster:down` removes both. What was built is in the
// cache, and stays. There is one cluster a machine, so nothing here is a parameter.
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { builtOf } from "../kubernetes/build.js";

export const RUN = "/run/raykeeper-cluster";
export const STATE = "/var/lib/raykeeper-cluster";
export const root = fileURLToPath(new URL("../..", import.meta.url));
export const cache = resolve(process.env.RAYKEEPER_CACHE || join(root, ".cache"));

const program = (set, name) => join(builtOf(set), name);

export const paths = {
  run: RUN,
  state: STATE,
  /** Of an administrator; works from the host. */
  kubeconfig: join(RUN, "kubeconfig"),
  containerdSocket: join(RUN, "containerd.sock"),
  /** Of the API server, one JSON object a line, level Metadata. */
  auditLog: join(RUN, "audit.log"),
  /** What each program of the cluster prints. */
  logs: join(RUN, "logs"),
  kubectl: program("control-plane", "kubectl"),
  helm: program("helm", "helm"),
  /** containerd's own client; Kubernetes' images and containers are in its namespace k8s.io. */
  ctr: "/usr/bin/ctr",
};

/** The cluster's network. Of the host it has one end of a cable (a veth pair), and routes into it. */
export const network = {
  device: "raykeeper",
  host: "10.244.255.1",
  node: "10.244.255.2",
  prefix: 30,
  pods: "10.244.0.0/24",
  services: "10.96.0.0/16",
  /** The first of the services. */
  api: "10.96.0.1",
  all: ["10.244.0.0/16", "10.96.0.0/16"],
};

export const NODE = "raykeeper";
export { kubernetes } from "../kubernetes/build.js";
export const RAY = "2.56.0";
