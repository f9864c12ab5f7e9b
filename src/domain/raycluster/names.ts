/**
 * The names of what a RayCluster is made of, and the address of its head.
 *
 * Answers: what is a Pod or Service of this cluster called; under which host and port is its Ray to be found.
 * May not: look at what exists. One object at a time means a fixed name, so that two passes can never make two of it.
 */
import type { RayCluster } from "../../api/raycluster.ts";
import type { Settings } from "../settings.ts";

/** KubeRay cuts `<cluster>-<group>` here, so that a suffix and a Pod name's random end still fit a host name (63). */
const WORKER_PREFIX_LENGTH = 50;
const LABEL_LENGTH = 63;

export const DEFAULT_GCS_PORT = "6379";
export const DEFAULT_DASHBOARD_PORT = 8265;

/** Ports a head opens when its template names none, with the names that clients of KubeRay look them up by. */
export const DEFAULT_HEAD_PORTS: Readonly<Record<string, number>> = {
  client: 10001,
  "gcs-server": 6379,
  dashboard: DEFAULT_DASHBOARD_PORT,
  metrics: 8080,
  serve: 8000,
};

/**
 * The head Pod's name. KubeRay lets the API server invent it, unless told otherwise; fixed, the server itself refuses a
 * second head. A cluster's name has 53 characters at most, so it is never cut: a cut name could be another cluster's.
 */
export const headPodName = (clusterName: string): string => `${clusterName}-head`;

/** Prefix under which the API server names a worker. Characters that a label may have and a Pod's name may not become `-`. */
export function workerGenerateName(clusterName: string, groupName: string): string {
  const prefix = `${clusterName}-${groupName}`.toLowerCase().replace(/[^a-z0-9-]/g, "-");
  return `${prefix.slice(0, WORKER_PREFIX_LENGTH)}-worker-`;
}

/** What a Service may be called. A dot, or a slash, would make another host or path of the address. */
export const isServiceName = (name: string): boolean =>
  name.length <= LABEL_LENGTH && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name);

/** A name that no Service can have counts as none: a cluster that ran before it was written there is still spoken to. */
export function headServiceName(cluster: RayCluster): string {
  const own = cluster.spec.headGroupSpec.headService?.metadata?.name ?? "";
  return isServiceName(own) ? own : `${cluster.metadata.name}-head-svc`;
}

/** Whether `host:port` is that of a Service in this namespace: nobody else's Ray is spoken to on behalf of what is in it. */
export const isAddressIn = (namespace: string, address: string): boolean => {
  const [service = "", place, kind] = address.replace(/:\d+$/, "").split(".");
  return isServiceName(service) && place === namespace && kind === "svc";
};

/** DNS name of the head Service within the Kubernetes cluster. */
export function headServiceFQDN(cluster: RayCluster, settings: Settings): string {
  return `${headServiceName(cluster)}.${cluster.metadata.namespace}.svc.${settings.clusterDomain}`;
}

/** Port of the GCS, as text: it is the start parameter `port` as the user wrote it. */
export const gcsPort = (cluster: RayCluster): string =>
  cluster.spec.headGroupSpec.rayStartParams?.["port"] || DEFAULT_GCS_PORT;

/** Port under which the head Service offers the dashboard and its job API: the head's container port of that name. */
export function dashboardPort(cluster: Pick<RayCluster, "spec">): number {
  const ports = cluster.spec.headGroupSpec.template.spec?.containers?.[0]?.ports ?? [];
  return ports.find((port) => port.name === "dashboard")?.containerPort ?? DEFAULT_DASHBOARD_PORT;
}

/** `host:port` of the cluster's dashboard, without a scheme. */
export const dashboardAddress = (cluster: RayCluster, settings: Settings): string =>
  `${headServiceFQDN(cluster, settings)}:${dashboardPort(cluster)}`;

/** Value of `ray.io/identifier`: the end is kept when it is too long, since that tells head from worker. */
export function identifier(clusterName: string, nodeType: string): string {
  return `${clusterName}-${nodeType}`.slice(-LABEL_LENGTH).replace(/^[^a-zA-Z0-9]/, "r");
}
