/**
 * What head and worker Pods have in common: the user's template, completed.
 *
 * Answers: how does a group's template become a Pod of this cluster.
 * May not: change what the template says, save the few labels that decide whose Pod it is.
 * Next: head.ts and worker.ts, which say what differs.
 */
import type { Container, Pod, PodSpec, PodTemplateSpec } from "../../api/kubernetes.ts";
import { ANNOTATION, APPLICATION_NAME, CREATED_BY, LABEL } from "../../api/labels.ts";
import type { OwnerReference, Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { Settings } from "../settings.ts";
import { headAddress, rayEnvironment } from "./environment.ts";
import { identifier } from "./names.ts";
import { probes } from "./probes.ts";
import { type StartParams, startCommand, startText } from "./start.ts";

type NodeType = "head" | "worker";

export interface NodePod {
  readonly nodeType: NodeType;
  readonly groupName: string;
  readonly template: PodTemplateSpec;
  readonly labels: Readonly<Record<string, string>>;
  readonly params: StartParams;
  /** Either or: a fixed name, or a prefix under which the API server names it. */
  readonly name: { readonly name: string } | { readonly generateName: string };
  readonly annotations?: Readonly<Record<string, string>>;
}

export type NewPod = Pod & { apiVersion: string; kind: "Pod" };

const SHARED_MEMORY = { volume: "shared-mem", path: "/dev/shm" } as const;

/** The Pod of one node, to be created. Throws nothing on a template that validation accepts. */
export function nodePod(cluster: Stored<RayCluster>, node: NodePod, settings: Settings): NewPod {
  const { labels, annotations, finalizers } = node.template.metadata ?? {};
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      ...node.name,
      namespace: cluster.metadata.namespace,
      labels: { ...settings.podDefaults.labels, ...podLabels(cluster, node, labels ?? {}) },
      annotations: {
        ...settings.podDefaults.annotations,
        ...annotations,
        ...node.annotations,
        ...(overwritesCommand(cluster) && { [ANNOTATION.overwriteContainerCommand]: "true" }),
        ...attempt(cluster).annotations,
      },
      ...(finalizers && { finalizers }),
      ownerReferences: [ownerReference(cluster)],
    },
    spec: completeSpec(cluster, node, node.template.spec!, settings),
  };
}

/** The controller reference with which everything of a cluster is collected when it goes. */
export function ownerReference(cluster: Stored<RayCluster>): OwnerReference {
  return {
    apiVersion: cluster.apiVersion ?? "ray.io/v1",
    kind: "RayCluster",
    name: cluster.metadata.name,
    uid: cluster.metadata.uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** Labels of a node's Pod. The template may set all but those by which the Pod is found and its attempt known. */
export function podLabels(
  cluster: RayCluster,
  { nodeType, groupName, labels }: Pick<NodePod, "nodeType" | "groupName" | "labels">,
  templateLabels: Readonly<Record<string, string>>,
): Record<string, string> {
  const name = cluster.metadata.name!;
  return {
    [LABEL.isRayNode]: "yes",
    [LABEL.identifier]: identifier(name, nodeType),
    [LABEL.applicationName]: APPLICATION_NAME,
    [LABEL.createdBy]: CREATED_BY,
    ...templateLabels,
    ...labels,
    [LABEL.cluster]: name,
    [LABEL.nodeType]: nodeType,
    [LABEL.group]: groupName,
    ...attempt(cluster).labels,
  };
}

/** Which attempt of which RayJob the cluster serves, to be handed on to each of its Pods; empty for a cluster of its own. */
function attempt(cluster: RayCluster): { labels: Record<string, string>; annotations: Record<string, string> } {
  const number =
    cluster.metadata.labels?.[LABEL.executionAttempt] ?? cluster.metadata.annotations?.[ANNOTATION.executionAttempt];
  const uid = cluster.metadata.labels?.[LABEL.rayJobUID];
  return {
    labels: {
      ...(number !== undefined && { [LABEL.executionAttempt]: number }),
      ...(uid !== undefined && { [LABEL.rayJobUID]: uid }),
    },
    annotations: { ...(number !== undefined && { [ANNOTATION.executionAttempt]: number }) },
  };
}

const says = (value: string | undefined): boolean => value?.toLowerCase() === "true";

const overwritesCommand = (cluster: RayCluster): boolean =>
  says(cluster.metadata.annotations?.[ANNOTATION.overwriteContainerCommand]);

function completeSpec(cluster: RayCluster, node: NodePod, spec: PodSpec, settings: Settings): PodSpec {
  const [ray, ...others] = spec.containers;
  const shared = sharedMemory(spec, ray!, node.params);
  const address = headAddress(cluster, settings);
  const { headSidecars, workerSidecars } = settings.podDefaults;
  const sidecars = node.nodeType === "head" ? headSidecars : workerSidecars;
  return {
    ...spec,
    containers: [rayContainer(cluster, node, ray!, shared.mounts, settings), ...others, ...sidecars],
    ...(spec.initContainers && {
      initContainers: spec.initContainers.map((init) => ({ ...init, env: [...(init.env ?? []), ...address] })),
    }),
    ...(shared.volumes.length > 0 && { volumes: shared.volumes }),
  };
}

function rayContainer(
  cluster: RayCluster,
  node: NodePod,
  container: Container,
  mounts: Container["volumeMounts"],
  settings: Settings,
): Container {
  const text = startText(node.nodeType, node.params);
  const ports = container.ports ?? [];
  const keepsCommand =
    overwritesCommand(cluster) || says(node.template.metadata?.annotations?.[ANNOTATION.overwriteContainerCommand]);
  return {
    ...(settings.probesInjection && probes(cluster, node.nodeType, node.params)),
    ...container,
    ...(!keepsCommand && startCommand(container, text, settings)),
    env: [...(container.env ?? []), ...rayEnvironment(cluster, node.nodeType, container, text, settings)],
    ports: ports.some((port) => port.name === "metrics") ? ports : [...ports, { name: "metrics", containerPort: 8080 }],
    ...(mounts && mounts.length > 0 && { volumeMounts: mounts }),
  };
}

/**
 * Ray's object store lives in shared memory, of which a container has 64 MiB unless a volume gives it more. Left out when
 * the user has placed the store elsewhere or mounted something there.
 */
function sharedMemory(spec: PodSpec, ray: Container, params: StartParams) {
  const volumes = spec.volumes ?? [];
  const mounts = ray.volumeMounts ?? [];
  if ("plasma-directory" in params || mounts.some((mount) => mount.mountPath === SHARED_MEMORY.path)) {
    return { volumes, mounts };
  }
  const sizeLimit = ray.resources?.limits?.["memory"] ?? ray.resources?.requests?.["memory"];
  const volume = {
    name: SHARED_MEMORY.volume,
    emptyDir: { medium: "Memory", ...(sizeLimit !== undefined && { sizeLimit }) },
  };
  return {
    volumes: volumes.some(({ name }) => name === SHARED_MEMORY.volume) ? volumes : [...volumes, volume],
    mounts: [...mounts, { name: SHARED_MEMORY.volume, mountPath: SHARED_MEMORY.path }],
  };
}
