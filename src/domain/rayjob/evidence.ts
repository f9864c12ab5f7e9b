/**
 * What a pass over a running attempt goes by: the record, the cluster, the address of Ray, and the evidence for the
 * verdict.
 *
 * May not: conclude. Where the cache shows no RayCluster, the API server is asked before that is evidence.
 * Next: verdict.ts.
 */
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJobStatus } from "../../api/rayjob.ts";
import { type LiveQuestion, questionKey } from "../decision.ts";
import { isFaultTolerant } from "../raycluster/oneHead.ts";
import { fromWire, type Instant } from "../time.ts";
import { clusterStanding, findCluster, isLeaving } from "./children.ts";
import { headFacts, headQuestion, targetOf } from "./cluster.ts";
import type { ObservedRayJob } from "./observe.ts";
import type { RayTarget } from "./ray.ts";
import { isSelected, statusOf } from "./records.ts";
import { reviseRecord } from "./status.ts";
import { submitterOf } from "./submitter.ts";
import type { Evidence } from "./verdict.ts";

interface Gathered {
  readonly record: AttemptRecord;
  /** As observed, with the record in it. */
  readonly status: RayJobStatus;
  readonly cluster: Stored<RayCluster> | undefined;
  readonly target: RayTarget | undefined;
  readonly evidence: Evidence;
}

export interface Pass extends Gathered {
  readonly observed: ObservedRayJob;
  readonly now: Instant;
}

/** What the verdict is given from; or the question whether the RayCluster is really gone. */
export function gather(
  observed: ObservedRayJob,
  record: AttemptRecord,
): Gathered | { readonly ask: readonly LiveQuestion[]; readonly why: string } {
  const { job, ray, settings } = observed;
  const status = job.status?.attempts?.length ? statusOf(job) : reviseRecord(statusOf(job), record, {});
  const namespace = job.metadata.namespace ?? "";
  let found = findCluster(observed, record);
  if (found.is === "absent") {
    const question: LiveQuestion = { ask: "get", kind: "RayCluster", namespace, name: record.rayClusterName ?? "" };
    const answer = observed.live.get(questionKey(question));
    if (answer === undefined) return { ask: [question], why: "is the RayCluster really gone?" };
    const object = answer[0] as Stored<RayCluster> | undefined;
    if (object) found = { is: clusterStanding(object, observed, record), object };
  }
  const cluster = found.is === "absent" || found.is === "stranger" ? undefined : (found.object as Stored<RayCluster>);
  const headQuestions = [headQuestion(namespace, record.rayClusterName ?? "")];
  const heads = observed.live.get(questionKey(headQuestions[0]!));
  const head = headFacts(cluster, observed.pods, record.headPodUID);
  const evidence: Evidence = {
    record,
    head,
    headAbsence: heads === undefined ? "unasked" : heads.some((pod) => !isLeaving(pod)) ? "refuted" : "confirmed",
    headQuestions,
    clusterLost: lossOf(found.is, record),
    submitter: submitterOf(observed, record, head.pod),
    answer: ray.answer,
    submit: ray.submit,
    faultTolerant: isFaultTolerant(cluster?.spec, cluster?.metadata.annotations),
    silentSince: fromWire(status.jobStatusCheckFailureStartTime),
    settings,
  };
  return { record, status, cluster, target: targetOf(observed, record, cluster), evidence };
}

function lossOf(is: ReturnType<typeof findCluster>["is"], record: AttemptRecord): string | undefined {
  if (is === "ours") return undefined;
  if (isSelected(record)) return `RayCluster ${record.rayClusterName}, which clusterSelector names, was deleted`;
  return is === "stranger"
    ? `RayCluster ${record.rayClusterName} was replaced by one that does not belong to this RayJob`
    : `RayCluster ${record.rayClusterName} was deleted`;
}
