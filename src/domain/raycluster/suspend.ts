/**
 * Suspension: all Pods go, and none comes until the cluster is resumed.
 *
 * Answers: where in being suspended is the cluster, and what is the next step.
 * May not: stop half-way. Once begun, a suspension ends in Suspended even when `spec.suspend` is taken back meanwhile, so
 * that a queue that gave the cluster's quota away is right to believe that nothing of it is left.
 */
import type { RayCluster } from "../../api/raycluster.ts";
import { deleteAllPods } from "./effects.ts";
import { type ClusterPods, isTerminating, type ObservedRayCluster } from "./observe.ts";
import type { Plan } from "./plan.ts";
import { removeHeadService } from "./services.ts";

export type SuspendPhase = "running" | "suspending" | "suspended";

/** What the conditions say; both at once cannot be written by us and counts as suspending, which is safe. */
export function suspendPhase({ status }: RayCluster): SuspendPhase {
  const isTrue = (type: string) =>
    status?.conditions?.some((condition) => condition.type === type && condition.status === "True") ?? false;
  if (isTrue("RayClusterSuspending")) return "suspending";
  return isTrue("RayClusterSuspended") ? "suspended" : "running";
}

export interface SuspendStep {
  readonly summary: string;
  /** The phase the status shall say after this pass. */
  readonly next: SuspendPhase;
  readonly plan?: Plan;
  /** "Nothing is left" must be heard from the API server itself before the status says so. */
  readonly needsLiveAbsence?: boolean;
}

/** The step to take, or undefined when suspension has nothing to say and the cluster runs. */
export function suspendStep(observed: ObservedRayCluster, pods: ClusterPods): SuspendStep | undefined {
  const { cluster } = observed;
  const wanted = cluster.spec.suspend === true;
  switch (suspendPhase(cluster)) {
    case "running":
      return wanted ? { summary: "Begins to suspend the cluster.", next: "suspending" } : undefined;
    case "suspending":
      if (pods.all.length > 0) {
        return {
          summary: `Suspends the cluster: ${pods.all.length} Pods are left.`,
          next: "suspending",
          plan: {
            deletes: deleteAllPods(
              cluster,
              pods.all.filter((pod) => !isTerminating(pod)),
            ),
          },
        };
      }
      return { summary: "The cluster is suspended: nothing is left.", next: "suspended", needsLiveAbsence: true };
    case "suspended":
      // KubeRay resumes on an explicit false only; a field taken away means the same here.
      if (!wanted) return { summary: "Resumes the cluster.", next: "running" };
      return { summary: "The cluster is suspended.", next: "suspended", plan: removeHeadService(observed) };
  }
}
