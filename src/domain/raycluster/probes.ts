/**
 * The probes a Ray container gets where its template has none.
 *
 * Answers: how does kubelet learn whether this Ray node lives and may be used.
 * May not: replace a probe of the user's.
 */
import type { Probe } from "../../api/kubernetes.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import { DEFAULT_DASHBOARD_PORT } from "./names.ts";
import { DEFAULT_AGENT_PORT, type StartParams } from "./start.ts";
import { atLeastVersion } from "./version.ts";

type NodeType = "head" | "worker";

export function probes(
  cluster: RayCluster,
  nodeType: NodeType,
  params: StartParams,
): { livenessProbe: Probe; readinessProbe: Probe } {
  const how = handler(cluster, nodeType, params);
  const common = { ...how, timeoutSeconds: nodeType === "head" ? 5 : 2, periodSeconds: 5, successThreshold: 1 };
  return {
    livenessProbe: { ...common, initialDelaySeconds: 30, failureThreshold: 120 },
    readinessProbe: { ...common, initialDelaySeconds: 10, failureThreshold: 10 },
  };
}

/** From 2.53 on Ray's agent answers for the whole node at one address; before, raylet and GCS are asked one by one. */
function handler(cluster: RayCluster, nodeType: NodeType, params: StartParams): Pick<Probe, "exec" | "httpGet"> {
  const agentPort = port(params["dashboard-agent-listen-port"], DEFAULT_AGENT_PORT);
  if (atLeastVersion(cluster.spec.rayVersion, "2.53.0")) return { httpGet: { path: "/api/healthz", port: agentPort } };

  const checks = [check(agentPort, "api/local_raylet_healthz")];
  if (nodeType === "head") {
    checks.push(check(port(params["dashboard-port"], DEFAULT_DASHBOARD_PORT), "api/gcs_healthz"));
  }
  return { exec: { command: ["bash", "-c", checks.join(" && ")] } };
}

/** Each check has 2 s, so that the head's two fit into its probe's time-out. */
const check = (at: number, path: string) => `wget --tries 1 -T 2 -q -O- http://localhost:${at}/${path} | grep success`;

function port(text: string | undefined, otherwise: number): number {
  return text !== undefined && /^\d{1,5}$/.test(text) ? Number(text) : otherwise;
}
