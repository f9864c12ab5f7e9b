/**
 * The head Pod: what it looks like, and when it is made or removed.
 *
 * Answers: must the head be created or deleted now.
 * May not: make a second head. Its name is fixed, a predecessor must be gone from the API server, not merely Terminating.
 */
import type { Pod, PodTemplateSpec } from "../../api/kubernetes.ts";
import { ANNOTATION, GROUP, NODE_TYPE } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { Settings } from "../settings.ts";
import type { Instant } from "../time.ts";
import { createPod, deletePod } from "./effects.ts";
import { describeFailure, failureOf, type Patience } from "./failures.ts";
import { headPodName } from "./names.ts";
import type { ClusterPods, ObservedRayCluster } from "./observe.ts";
import { awaitsOneHead, hasOneHead } from "./oneHead.ts";
import type { Plan } from "./plan.ts";
import { type NewPod, nodePod } from "./pod.ts";
import { headStartParams } from "./start.ts";

export function headPod(cluster: Stored<RayCluster>, settings: Settings): NewPod {
  const group = cluster.spec.headGroupSpec;
  return nodePod(
    cluster,
    {
      nodeType: NODE_TYPE.head,
      groupName: GROUP.head,
      template: hasOneHead(cluster) ? neverRestarted(group.template) : group.template,
      labels: group.labels ?? {},
      params: headStartParams(cluster),
      name: { name: headPodName(cluster.metadata.name) },
      // KubeRay's Recreate strategy compares this version with its own first, so that going back to KubeRay recreates nothing.
      annotations: { [ANNOTATION.ftEnabled]: "false", [ANNOTATION.kubeRayVersion]: settings.version },
    },
    settings,
  );
}

const neverRestarted = (template: PodTemplateSpec): PodTemplateSpec => ({
  ...template,
  spec: { ...template.spec!, restartPolicy: "Never" },
});

/** Whether the cluster, once provisioned, must do without a head that it lost: its job would be run again by a new one. */
export const keepsLostHead = ({ metadata, status }: RayCluster): boolean =>
  metadata.annotations?.[ANNOTATION.disableProvisionedHeadRestart] === "true" &&
  (status?.conditions?.some(({ type, status }) => type === "RayClusterProvisioned" && status === "True") ?? false);

export function planHead(observed: ObservedRayCluster, pods: ClusterPods, patience: Patience, now: Instant): Plan {
  const { cluster, settings } = observed;
  if (keepsLostHead(cluster)) return {};
  // Two heads cannot come from here; which of them is in use nobody can tell, so neither is touched.
  if (pods.heads.length > 1) return {};

  const [head] = pods.heads;
  if (hasOneHead(cluster) && (head || !awaitsOneHead(cluster))) return {};
  if (head) return replaceFailed(cluster, head, patience, now);
  if (namesake(pods, cluster)) return {};
  if (now < patience.retryAt) return { wakeAt: patience.retryAt };
  return { creates: [createPod(cluster, headPod(cluster, settings), "head", "The cluster has no head Pod.")] };
}

/** A Pod that has the head's name and is not this cluster's: of a deleted cluster of the same name, or somebody else's. */
export const namesake = (pods: ClusterPods, cluster: Stored<RayCluster>): Stored<Pod> | undefined =>
  pods.strangers.find((pod) => pod.metadata.name === headPodName(cluster.metadata.name));

function replaceFailed(cluster: Stored<RayCluster>, head: Stored<Pod>, patience: Patience, now: Instant): Plan {
  const failure = failureOf(head, now);
  if (failure.kind === "none") return { wakeAt: failure.lookAgainAt };
  if (now < patience.retryAt) return { wakeAt: patience.retryAt };
  return { deletes: [deletePod(cluster, head, "head", describeFailure(head))] };
}
