/**
 * What a RayJob that has ended still holds, for how long, and who is told: `ResourcesReleased`, and the events of the end.
 *
 * Answers: the condition and events for an outcome; whether what was told has to be told anew.
 * May not: follow every Pod that comes and goes in a cluster that is kept: each change would be a write. It is told anew
 * when all the Pods that the cluster shall have are there, and no other.
 */
import type { Pod } from "../../api/kubernetes.ts";
import { LABEL } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import { addQuantities, formatQuantity, parseQuantity } from "../../api/quantity.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJobStatus } from "../../api/rayjob.ts";
import type { EventSpec } from "../decision.ts";
import { desiredReplicas } from "../raycluster/observe.ts";
import type { Instant } from "../time.ts";
import { findCluster, isLeaving } from "./children.ts";
import { findCondition, withCondition } from "./conditions.ts";
import { mayYetBeSubmitted } from "./givenUp.ts";
import type { ObservedRayJob } from "./observe.ts";
import { type Disposal, disposalOf, outcomeText, type Stage, takesCluster } from "./policy.ts";
import { isSelected, queueOf } from "./records.ts";

/** The status of a RayJob that ends now, with what it still holds. */
export function withHoldings(
  status: RayJobStatus,
  observed: ObservedRayJob,
  record: AttemptRecord,
  now: Instant,
): RayJobStatus {
  const { rayClusterName: name } = status;
  if (!name) return status;
  if (isSelected(record)) {
    const message = `RayCluster ${name} is not this RayJob's, and stays; its submitter is being waited for.`;
    return withCondition(status, now, "ResourcesReleased", false, "InUse", message);
  }
  const { reason, message } = holdings(status, observed, record, name);
  return withCondition(status, now, "ResourcesReleased", false, reason, message);
}

/** What is told to somebody who has to do something about it. */
export function endEvents(status: RayJobStatus, observed: ObservedRayJob, record: AttemptRecord): readonly EventSpec[] {
  const { rayClusterName: name = "" } = status;
  const { unmatched } = disposal(status, observed, record);
  const kept = isSelected(record) || !name ? undefined : holdings(status, observed, record, name);
  const managed = queueOf(observed.job) !== undefined;
  const warn = (reason: string, note: string): EventSpec => ({ type: "Warning", reason, action: "CleanUp", note });
  const goes = isSelected(record) || goesAnyway(status, observed, record) !== undefined;
  const stays = goes ? "The RayJob" : `RayCluster ${name}`;
  return [
    ...(unmatched
      ? [
          warn(
            "NoDeletionRuleMatched",
            `No rule of spec.deletionStrategy.deletionRules matches ${outcomeText(status)}: ${stays} stays until somebody deletes it, or adds a rule that does`,
          ),
        ]
      : []),
    ...(managed && kept?.reason === "KeptByPolicy"
      ? [
          warn(
            "PodsKeptOutsideQuota",
            `The queue takes the quota of a job back when it ends, and its Pods go on: ${kept.message}`,
          ),
        ]
      : []),
  ];
}

/** The status with what is held now, where that is news worth a write; undefined where it is none. */
export function holdingsNews(
  status: RayJobStatus,
  observed: ObservedRayJob,
  record: AttemptRecord,
  now: Instant,
): RayJobStatus | undefined {
  const found = findCluster(observed, record);
  if (isSelected(record) || found.is !== "ours") return undefined;
  const cluster = found.object as Stored<RayCluster>;
  const pods = podsOf(observed, cluster.metadata.name);
  if (pods.length !== wantedPods(cluster) || pods.some(isLeaving)) return undefined;
  const told = findCondition(status, "ResourcesReleased");
  const { reason, message } = holdings(status, observed, record, cluster.metadata.name);
  if (told?.reason === reason && told.message === message) return undefined;
  return withCondition(status, now, "ResourcesReleased", false, reason, message);
}

const wantedPods = ({ spec }: RayCluster): number =>
  spec.suspend ? 0 : (spec.workerGroupSpecs ?? []).reduce((sum, group) => sum + desiredReplicas(group), 1);

const disposal = (status: RayJobStatus, { job, settings }: ObservedRayJob, record?: AttemptRecord): Disposal =>
  disposalOf(job.spec, status, settings, isSelected(record));

function holdings(status: RayJobStatus, observed: ObservedRayJob, record: AttemptRecord, name: string) {
  const sum = sumOf(podsOf(observed, name));
  const what = `RayCluster ${name} with ${sum}`;
  const anyway = goesAnyway(status, observed, record);
  if (anyway) {
    const message = anyway === GONE ? `RayCluster ${name} ${GONE}; left of it: ${sum}.` : `${what} ${anyway}.`;
    return { reason: "InUse", message } as const;
  }
  const { stages, kept } = disposal(status, observed);
  const last = stages.find(takesCluster);
  // What goes at once is not kept, though it takes its time to go.
  const reason = last?.after === 0 ? "InUse" : "KeptByPolicy";
  return { reason, message: `${what} ${fateOf(stages, kept)}.` } as const;
}

const GONE = "is not there";

/** Why no policy keeps the cluster, as the end of a sentence about it; undefined where one may. */
function goesAnyway(status: RayJobStatus, observed: ObservedRayJob, record: AttemptRecord): string | undefined {
  const found = findCluster(observed, record);
  if (found.is === "absent" || found.is === "stranger") return GONE;
  if (isLeaving(found.object)) return "is being deleted";
  return mayYetBeSubmitted(observed, status, record)
    ? "is left: it is deleted now, because its sidecar might still submit the job"
    : undefined;
}

/** As the end of a sentence about the cluster. */
function fateOf(stages: readonly Stage[], kept: string): string {
  const [first, ...later] = stages;
  if (!first) return `is kept, because ${kept}`;
  const goes: Record<Stage["policy"], string> = {
    DeleteWorkers: "its workers are deleted",
    DeleteCluster: "it is deleted",
    DeleteSelf: "it is deleted with the RayJob",
  };
  const clauses = [first, ...later].map(({ policy, after }) => `${goes[policy]} ${afterText(after)}`);
  const rest = stages.some(takesCluster) ? [] : ["the rest is kept"];
  return `is left: ${[...clauses, ...rest].join(", ")}`;
}

const afterText = (after: number): string => (after === 0 ? "now" : `${after} s after the end of the job`);

const isOver = ({ status }: Pod): boolean => status?.phase === "Succeeded" || status?.phase === "Failed";

const podsOf = ({ pods }: ObservedRayJob, cluster: string): readonly Stored<Pod>[] =>
  pods.filter((pod) => pod.metadata.labels?.[LABEL.cluster] === cluster && !isOver(pod) && isRays(pod));

/** A submitter's template may name the cluster, too. */
const isRays = (pod: Pod): boolean => pod.metadata?.labels?.[LABEL.nodeType] !== undefined;

/** `3 Pods (cpu 3, memory 4Gi)`: what they ask for, since that is what a quota would have to cover. */
function sumOf(pods: readonly Pod[]): string {
  const requests = pods.flatMap((pod) => pod.spec?.containers ?? []).map(({ resources }) => resources?.requests ?? {});
  const sums = [...new Set(requests.flatMap((amounts) => Object.keys(amounts)))].sort().map((name) => {
    const amounts = requests.map((request) => parseQuantity(request[name])).filter((amount) => amount !== undefined);
    return `${name} ${formatQuantity(addQuantities(...amounts))}`;
  });
  const count = pods.length === 1 ? "1 Pod" : `${pods.length} Pods`;
  return `${count}${sums.length > 0 ? ` (${sums.join(", ")})` : ""}`;
}
