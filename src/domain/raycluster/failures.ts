/**
 * Pods that fail, and how long to wait before the next is made.
 *
 * Answers: has this Pod failed for good; how often in a row has its group failed; when may it be replaced.
 * May not: remember anything. The count is kept in an annotation of the RayCluster, written before the failed Pod is
 * removed; until its replacement is due the failed Pod stays, to be looked at.
 *
 * Why not in the Pods: a head's name is fixed, so the failed one is gone before its successor could carry the count.
 */
import type { Pod } from "../../api/kubernetes.ts";
import { GROUP } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import { type Duration, fromWire, type Instant, minutes, seconds, since, toWire } from "../time.ts";
import { podProblem } from "./explain.ts";
import { hasEnded, isTerminating, rayContainerStatus, silenceOf } from "./observe.ts";

export const FAILURES_ANNOTATION = "raykeeper.dev/pod-failures";

const FIRST_DELAY = seconds(5);
const LONGEST_DELAY = minutes(5);
/** A Pod that lived this long was well: its failure starts the count anew. */
const HEALTHY_AFTER = minutes(10);
/** How long a Pod's node may be silent. Kubernetes evicts Pods of a silent node after the same time, by default. */
const NODE_SILENCE = minutes(5);
/** So many failed heads in a row, and whoever waits for one waits in vain. As often as a Kubernetes Job tries, by default. */
const HEADS_IN_VAIN = 6;

/** Failures in a row of one group, as kept in the annotation. */
export interface FailureRecord {
  readonly count: number;
  /** When the last was seen, by the operator's clock. */
  readonly at: string;
  /** When the youngest Pod of the group was created then, by the API server's clock: only Pods made later count anew. */
  readonly youngest: string;
  /** Of the spec that failed: a changed spec is tried at once. */
  readonly generation: number;
}

/** By group name; the head's is `headgroup`. */
export type FailureJournal = Readonly<Record<string, FailureRecord>>;

/** What a group's record means now. */
export interface Patience {
  /** Replacements wait until then; 0 when they need not wait. */
  readonly retryAt: Instant;
  /** To be journalled before anything else is done about the group: a failure that is not counted yet. */
  readonly record?: FailureRecord;
}

export type Failure =
  | { readonly kind: "failed" }
  /** `lookAgainAt`: when it will have failed, should nothing change. */
  | { readonly kind: "none"; readonly lookAgainAt?: Instant };

/** Whether the Pod will not come back by itself. A Pod that is being deleted is not judged. */
export function failureOf(pod: Pod, now: Instant): Failure {
  if (isTerminating(pod)) return { kind: "none" };
  if (hasEnded(pod)) return { kind: "failed" };
  const rayEnded = rayContainerStatus(pod)?.state?.terminated !== undefined;
  if (pod.status?.phase === "Running" && rayEnded && pod.spec?.restartPolicy === "Never") return { kind: "failed" };

  const silentSince = fromWire(silenceOf(pod)?.lastTransitionTime);
  if (silentSince === undefined) return { kind: "none" };
  const givenUpAt = silentSince + NODE_SILENCE;
  return now >= givenUpAt ? { kind: "failed" } : { kind: "none", lookAgainAt: givenUpAt };
}

/** The journal as the cluster carries it. Unreadable text counts as empty: the cost is one replacement without delay. */
export function readJournal(cluster: RayCluster): FailureJournal {
  try {
    const parsed: unknown = JSON.parse(cluster.metadata.annotations?.[FAILURES_ANNOTATION] ?? "{}");
    return typeof parsed === "object" && parsed !== null ? (parsed as FailureJournal) : {};
  } catch {
    return {};
  }
}

/**
 * Counts a group's failures. Pods that were made together and fail one after the other count once: what they share is
 * what failed.
 */
export function patience(
  known: FailureRecord | undefined,
  pods: readonly Stored<Pod>[],
  generation: number,
  now: Instant,
): Patience {
  const counted = fromWire(known?.youngest) ?? Number.NEGATIVE_INFINITY;
  const news = pods.filter((pod) => failureOf(pod, now).kind === "failed" && createdAt(pod) > counted);
  const current = known?.generation === generation ? known : undefined;
  if (news.length === 0) return { retryAt: current ? retryAt(current) : 0 };

  const wasWell = news.some((pod) => since(createdAt(pod), now) >= HEALTHY_AFTER);
  const record: FailureRecord = {
    count: wasWell ? 1 : (current?.count ?? 0) + 1,
    at: toWire(now),
    youngest: toWire(Math.max(...pods.map(createdAt))),
    generation,
  };
  return { retryAt: retryAt(record), record };
}

/**
 * Why waiting for this cluster's head is in vain, in words; undefined while it is not. `heads` are its head Pods.
 *
 * The last head must be there to be looked at: its successor is judged by its own fate.
 */
export function headInVain(
  cluster: Stored<RayCluster>,
  heads: readonly Stored<Pod>[],
  now: Instant,
): string | undefined {
  const record = readJournal(cluster)[GROUP.head];
  if (record === undefined || record.count < HEADS_IN_VAIN || record.generation !== cluster.metadata.generation) return;
  const last = heads.find((pod) => failureOf(pod, now).kind === "failed");
  return (
    last && `its head has failed ${record.count} times in a row; Pod ${last.metadata.name} ${describeFailure(last)}`
  );
}

/** In words: what became of a failed Pod. */
export const describeFailure = (pod: Pod): string => podProblem(pod)?.message ?? `it is ${pod.status?.phase}`;

const createdAt = (pod: Stored<Pod>): Instant => fromWire(pod.metadata.creationTimestamp) ?? 0;

/** When the next try is due after the failures of this record. */
export const retryAt = ({ at, count }: FailureRecord): Instant => (fromWire(at) ?? 0) + delay(count);

/** 5 s after the first failure, doubled with each further one, 5 min at most. */
export const delay = (count: number): Duration => Math.min(FIRST_DELAY * 2 ** (count - 1), LONGEST_DELAY);
