/**
 * Writes to Pods, with the events that KubeRay's users know: their reasons and actions are matched by alerts.
 */
import type { Pod } from "../../api/kubernetes.ts";
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { KubeEffect } from "../decision.ts";
import type { NewPod } from "./pod.ts";

type NodeType = "head" | "worker";
const WORD = { head: "Head", worker: "Worker" } as const;

export function createPod(cluster: Stored<RayCluster>, pod: NewPod, nodeType: NodeType, why: string): KubeEffect {
  const { namespace, name } = cluster.metadata;
  return {
    do: "create",
    object: pod,
    why,
    event: {
      type: "Normal",
      reason: `Created${WORD[nodeType]}Pod`,
      action: "Create",
      note: `Created ${nodeType} Pod ${namespace}/{name}`,
    },
    failureEvent: {
      type: "Warning",
      reason: `FailedToCreate${WORD[nodeType]}Pod`,
      action: "Create",
      note: `Failed to create ${nodeType} Pod for the RayCluster ${namespace}/${name}: {error}`,
    },
  };
}

export function deletePod(cluster: Stored<RayCluster>, pod: Stored<Pod>, nodeType: NodeType, why: string): KubeEffect {
  const where = `${cluster.metadata.namespace}/${pod.metadata.name}`;
  return {
    ...bareDelete(pod, why),
    event: {
      type: "Normal",
      reason: `Deleted${WORD[nodeType]}Pod`,
      action: "Delete",
      note: `Deleted ${nodeType} Pod ${where}: ${why}`,
    },
    failureEvent: {
      type: "Warning",
      reason: `FailedToDelete${WORD[nodeType]}Pod`,
      action: "Delete",
      note: `Failed to delete ${nodeType} Pod ${where}: {error}`,
    },
  };
}

/** All Pods of a suspended cluster, announced once: one event tells as much as a hundred. */
export function deleteAllPods(cluster: Stored<RayCluster>, pods: readonly Stored[]): KubeEffect[] {
  const where = `${cluster.metadata.namespace}/${cluster.metadata.name}`;
  return pods.map((pod, index) => ({
    ...bareDelete(pod, "The RayCluster is being suspended."),
    ...(index === 0 && {
      event: {
        type: "Normal" as const,
        reason: "DeletedPod",
        action: "Delete",
        note: `Deleted the Pods of RayCluster ${where} due to suspension`,
      },
    }),
    failureEvent: {
      type: "Warning" as const,
      reason: "FailedToDeletePodCollection",
      action: "Delete",
      note: `Failed to delete the Pods of RayCluster ${where} due to suspension: {error}`,
    },
  }));
}

function bareDelete(pod: Stored, why: string) {
  const { namespace, name, uid } = pod.metadata;
  return {
    do: "delete" as const,
    ref: { kind: "Pod" as const, namespace: namespace!, name, uid },
    propagation: "Background" as const,
    why,
  };
}
