/**
 * The operator on the one-node cluster, as its users install it: its own image, its own chart, one command.
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { root } from "../e2e/command.ts";

/** Marks namespaces that scenarios made; what a killed run has left is removed by the next. */
export const TEST_LABEL = "raykeeper.dev/test";

export const OPERATOR = {
  namespace: "raykeeper-system",
  /** The chart's release, its Deployment, and its ServiceAccount. */
  name: "kuberay-operator",
  selector: "app.kubernetes.io/component=kuberay-operator",
  /** Its Service and its Secret; the configuration's name has the namespace after it. */
  webhook: "kuberay-operator-webhook",
} as const;

/** As the API server and its audit log know it. */
export const OPERATOR_USER = `system:serviceaccount:${OPERATOR.namespace}:${OPERATOR.name}`;

export interface Programs {
  readonly kubectl: string;
  readonly helm: string;
  readonly ctr: string;
  /** Of containerd. */
  readonly socket: string;
}

export const SOON_READY = "readinessProbe.initialDelaySeconds=1";

export const CHART = join(root, "deploy", "helm", "raykeeper");

/** Builds the image where it is not built yet, and gives it to the node. */
export function loadImage({ ctr, socket }: Programs): void {
  const build = [join(root, "hack", "image", "build.js"), "--allow-newer-base"];
  const archive = run("the operator's image", process.execPath, build).trim();
  const images = ["--address", socket, "--namespace", "k8s.io", "images", "import"];
  run("the operator's image, given to the node", ctr, [...images, archive]);
}

/**
 * `helm upgrade --install` with the chart's own values, save for the webhook and the gate that some scenarios are about, and
 * for how soon kubelet first asks whether an operator is ready: scenarios take operators away, and wait for others.
 */
export function install({ helm }: Programs, kubeconfig: string): void {
  // A list replaces the chart's own as a whole.
  const gates = ["RayClusterStatusConditions", "RayJobDeletionPolicy", "SidecarSubmitterRestart"];
  const set = gates.flatMap((gate, index) => [
    ...["--set", `featureGates[${index}].name=${gate}`],
    ...["--set", `featureGates[${index}].enabled=true`],
  ]);
  const where = ["--kubeconfig", kubeconfig, "--namespace", OPERATOR.namespace, "--create-namespace"];
  set.push("--set", "webhook.enabled=true", "--set", SOON_READY);
  run("the chart", helm, ["upgrade", "--install", OPERATOR.name, CHART, ...where, ...set, "--wait", "--timeout", "3m"]);
}

export const uninstallCommand = ({ helm }: Programs, kubeconfig: string): readonly string[] => [
  ...[helm, "--kubeconfig", kubeconfig, "--namespace", OPERATOR.namespace],
  ...["uninstall", OPERATOR.name, "--ignore-not-found", "--wait"],
];

/** Says how long it took, and answers what the program printed; that is shown when it fails. */
export function run(what: string, program: string, args: readonly string[]): string {
  const started = Date.now();
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: "utf8", maxBuffer: 64 << 20 });
  if (error) throw error;
  if (status !== 0) throw new Error(`${what}: ${program} ${args.join(" ")} ended with ${status}:\n${stdout}${stderr}`);
  console.log(`[cluster] ${what}: ${((Date.now() - started) / 1000).toFixed(1)} s`);
  return stdout;
}
