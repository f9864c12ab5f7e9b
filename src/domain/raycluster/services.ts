/**
 * The head Service: the name under which workers, submitters and users reach the head.
 *
 * Answers: what does it look like, and must it be created or removed.
 * May not: change a Service that exists; its users may have.
 */
import type { Service, ServicePort, ServiceSpec } from "../../api/kubernetes.ts";
import { GROUP, LABEL, NODE_TYPE } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { KubeEffect } from "../decision.ts";
import type { Settings } from "../settings.ts";
import { DEFAULT_HEAD_PORTS, headServiceName } from "./names.ts";
import { isOwned, isTerminating, type ObservedRayCluster } from "./observe.ts";
import type { Plan } from "./plan.ts";
import { ownerReference, podLabels } from "./pod.ts";

type NewService = Service & { apiVersion: string; kind: "Service" };

const SELECTOR_LABELS = [
  LABEL.cluster,
  LABEL.nodeType,
  LABEL.identifier,
  LABEL.applicationName,
  LABEL.createdBy,
] as const;

/** The Service that serves as the head's: by its labels, as KubeRay finds it, so that one that KubeRay made is found too. */
export function findHeadService({ cluster, services }: Pick<ObservedRayCluster, "cluster" | "services">) {
  const { name } = cluster.metadata;
  return services.find(
    ({ metadata: { labels } }) =>
      labels?.[LABEL.cluster] === name &&
      labels[LABEL.nodeType] === NODE_TYPE.head &&
      labels[LABEL.identifier] === headSelector(cluster)[LABEL.identifier],
  );
}

export function planHeadService(observed: ObservedRayCluster): Plan {
  const { cluster, settings } = observed;
  // One that is going, or a deleted namesake's, is waited for too: its end is a change that brings the next pass.
  if (findHeadService(observed)) return {};
  return { others: [createService(cluster, headService(cluster, settings))] };
}

/** A suspended cluster keeps no Service of its own; it comes back with the Pods. */
export function removeHeadService(observed: ObservedRayCluster): Plan {
  const { cluster } = observed;
  const existing = findHeadService(observed);
  if (!existing || isTerminating(existing) || !isOwned(existing, cluster)) return {};
  const { namespace, name, uid } = existing.metadata;
  const ref = { kind: "Service" as const, namespace: namespace!, name, uid };
  return { others: [{ do: "delete", ref, propagation: "Background", why: "The RayCluster is suspended." }] };
}

export function headService(cluster: Stored<RayCluster>, settings: Settings): NewService {
  const custom = cluster.spec.headGroupSpec.headService;
  const selector = headSelector(cluster);
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      name: headServiceName(cluster),
      namespace: cluster.metadata.namespace,
      labels: { ...custom?.metadata?.labels, ...selector },
      annotations: { ...custom?.metadata?.annotations, ...cluster.spec.headServiceAnnotations },
      ownerReferences: [ownerReference(cluster)],
    },
    spec: custom ? customSpec(cluster, custom.spec ?? {}, selector) : generatedSpec(cluster, selector, settings),
  };
}

/** Taken from the head Pod's labels as they are, so that a template that overrides one of them does not hide the head. */
export function headSelector(cluster: RayCluster): Record<string, string> {
  const group = cluster.spec.headGroupSpec;
  const labels = podLabels(
    cluster,
    { nodeType: NODE_TYPE.head, groupName: GROUP.head, labels: group.labels ?? {} },
    group.template.metadata?.labels ?? {},
  );
  return Object.fromEntries(SELECTOR_LABELS.map((key) => [key, labels[key]!]));
}

function generatedSpec(cluster: RayCluster, selector: Record<string, string>, settings: Settings): ServiceSpec {
  const type = cluster.spec.headGroupSpec.serviceType;
  const headless = (!type || type === "ClusterIP") && !settings.headClusterIPService;
  return {
    ...(type && { type: type as ServiceSpec["type"] }),
    ...(headless && { clusterIP: "None" }),
    ...NOT_READY_TOO,
    selector,
    ports: headPorts(cluster).sort((a, b) => (a.name! < b.name! ? -1 : 1)),
  };
}

function customSpec(cluster: RayCluster, spec: ServiceSpec, selector: Record<string, string>): ServiceSpec {
  const own = spec.ports ?? [];
  const type = spec.type ?? cluster.spec.headGroupSpec.serviceType;
  // The API server refuses two ports of one name or number; the user's own wins.
  const added = headPorts(cluster).filter(
    ({ name, port }) => !own.some((taken) => taken.name === name || (taken.port === port && isTCP(taken))),
  );
  return {
    ...spec,
    ...(type && { type: type as ServiceSpec["type"] }),
    ...NOT_READY_TOO,
    selector,
    ports: [...own, ...added],
  };
}

/**
 * The head must be reachable while it is not ready: workers register before it is, and a finished sidecar makes its Pod
 * not ready for ever.
 */
const NOT_READY_TOO = { publishNotReadyAddresses: true } as const;

const isTCP = (port: ServicePort): boolean => (port.protocol ?? "TCP") === "TCP";

function headPorts(cluster: RayCluster): ServicePort[] {
  const declared = cluster.spec.headGroupSpec.template.spec?.containers[0]?.ports ?? [];
  const named: Record<string, number> =
    declared.length > 0
      ? Object.fromEntries(declared.map(({ name, containerPort }) => [name || `${containerPort}-port`, containerPort]))
      : { ...DEFAULT_HEAD_PORTS };
  named["metrics"] ??= DEFAULT_HEAD_PORTS["metrics"]!;
  return Object.entries(named).map(([name, port]) => ({ name, port, appProtocol: "tcp" }));
}

function createService(cluster: Stored<RayCluster>, service: NewService): KubeEffect {
  const { namespace, name } = cluster.metadata;
  return {
    do: "create",
    object: service,
    why: "The cluster has no head Service.",
    event: {
      type: "Normal",
      reason: "CreatedService",
      action: "Create",
      note: `Created Service ${namespace}/{name}`,
    },
    failureEvent: {
      type: "Warning",
      reason: "FailedToCreateService",
      action: "Create",
      note: `Failed to create Service ${service.metadata.name} for the RayCluster ${namespace}/${name}: {error}`,
    },
  };
}
