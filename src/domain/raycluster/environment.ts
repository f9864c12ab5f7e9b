/**
 * The environment of a Ray container, after the user's own entries.
 *
 * Answers: what must a Ray process know of its cluster, and under which variable.
 * May not: replace an entry of the user's or the administrator's, save those that Ray and its tools are told by the
 * operator alone.
 */
import type { Container, EnvVar } from "../../api/kubernetes.ts";
import { LABEL } from "../../api/labels.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { Settings } from "../settings.ts";
import { tokenVariables } from "./auth.ts";
import { gcsPort, headServiceFQDN } from "./names.ts";

type NodeType = "head" | "worker";

/** In KubeRay's order. `always` entries are appended even where the user has one: the last of a name wins. */
export function rayEnvironment(
  cluster: RayCluster,
  nodeType: NodeType,
  container: Container,
  startText: string,
  settings: Settings,
): EnvVar[] {
  const port = gcsPort(cluster);
  const host = nodeType === "head" ? "127.0.0.1" : headServiceFQDN(cluster, settings);
  const { containerEnv } = settings.podDefaults;
  const rows: readonly { on?: NodeType; always: boolean; entry: EnvVar }[] = [
    ...headAddress(cluster, settings).map((entry) => ({ on: "worker" as const, always: true, entry })),
    { always: true, entry: fromField("RAY_CLUSTER_NAME", `metadata.labels['${LABEL.cluster}']`) },
    { always: true, entry: fromField("RAY_CLUSTER_NAMESPACE", "metadata.namespace") },
    { always: true, entry: fromField("RAY_CLOUD_INSTANCE_ID", "metadata.name") },
    { always: true, entry: fromField("RAY_NODE_TYPE_NAME", `metadata.labels['${LABEL.group}']`) },
    { always: true, entry: { name: "KUBERAY_GEN_RAY_START_CMD", value: startText } },
    { always: false, entry: { name: "RAY_PORT", value: port } },
    { always: false, entry: { name: "RAY_ADDRESS", value: `${host}:${port}` } },
    { always: false, entry: { name: "RAY_USAGE_STATS_KUBERAY_IN_USE", value: "1" } },
    { on: "head", always: true, entry: { name: "RAY_USAGE_STATS_EXTRA_TAGS", value: usageTags(cluster, settings) } },
    { always: false, entry: { name: "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", value: "1" } },
  ];
  const auth = tokenVariables(cluster, container);
  const own = new Set([...(container.env ?? []), ...auth].map((entry) => entry.name));
  const defaults = containerEnv.filter((entry) => !own.has(entry.name));
  for (const { name } of defaults) own.add(name);
  const added = rows
    .filter(({ on, always, entry }) => (on === undefined || on === nodeType) && (always || !own.has(entry.name)))
    .map(({ entry }) => entry);
  return [...auth, ...defaults, ...added];
}

/** Where the head is, for workers and for init containers of every node. */
export function headAddress(cluster: RayCluster, settings: Settings): EnvVar[] {
  const name = headServiceFQDN(cluster, settings);
  return [
    { name: "FQ_RAY_IP", value: name },
    { name: "RAY_IP", value: name.split(".")[0]! },
  ];
}

function usageTags(cluster: RayCluster, settings: Settings): string {
  const origin = cluster.metadata.labels?.[LABEL.originatedFromCRD];
  const kind = origin === "RayJob" || origin === "RayService" ? origin : "RayCluster";
  return `kuberay_version=${settings.version};kuberay_crd=${kind}`;
}

const fromField = (name: string, fieldPath: string): EnvVar => ({ name, valueFrom: { fieldRef: { fieldPath } } });
