// The two ways to speak to the cluster: to its API server, and to its container runtime behind the kubelet's back.
import { paths } from "./paths.js";
import { run } from "./process.js";

export const ctr = (...args) => run(paths.ctr, ["--address", paths.containerdSocket, "--namespace", "k8s.io", ...args]);
export const kubectl = (args, options) => run(paths.kubectl, ["--kubeconfig", paths.kubeconfig, ...args], options);

/** Gives the node the images of an archive, OCI's or Docker's. */
export const loadImage = (archive) => ctr("images", "import", archive);
