/**
 * Warnings about volumes: the one trouble of a Pod that its status does not tell, only events do.
 *
 * Answers: when the API server is asked for them, and what it said.
 * May not: have events watched. There are more of them than of anything else; so they are read, and only while a Pod has
 * had a node for longer than a start without a large image takes.
 */
import type { Event, Pod } from "../../api/kubernetes.ts";
import type { Stored } from "../../api/object.ts";
import { type LiveQuestion, questionKey } from "../decision.ts";
import { fromWire, type Instant, minutes, seconds, since } from "../time.ts";
import { lastSeen, mayLackVolume, VOLUME_EVENTS } from "./explain.ts";
import type { ObservedRayCluster } from "./observe.ts";

/** Volumes are mounted within a few seconds; what is late by its nature is tried again by then. */
const PATIENCE = seconds(30);
/** Nothing tells when a new event comes, so they are looked for again. */
const LOOK_AGAIN = minutes(1);
/** kubelet tries, and warns, every two minutes at the least: what is older has been overcome. */
const OUTDATED = minutes(5);

export interface VolumeWatch {
  /** Asked before anything is reported; empty when no Pod has waited long. */
  readonly questions: readonly LiveQuestion[];
  /** When it is time to ask, or to ask again. */
  readonly wakeAt?: Instant;
}

export function volumeWatch(namespace: string, pods: readonly Stored<Pod>[], now: Instant): VolumeWatch {
  const dues = pods.filter(mayLackVolume).map((pod) => scheduledAt(pod) + PATIENCE);
  if (dues.length === 0) return { questions: [] };
  const first = Math.min(...dues);
  if (now < first) return { questions: [], wakeAt: first };
  return { questions: questionsIn(namespace), wakeAt: now + LOOK_AGAIN };
}

/** What was answered in this pass. */
export function volumeWarnings({ cluster, live }: Pick<ObservedRayCluster, "cluster" | "live">, now: Instant): Event[] {
  const answers = questionsIn(cluster.metadata.namespace ?? "").flatMap(
    (question) => live.get(questionKey(question)) ?? [],
  );
  return (answers as Event[]).filter((event) => (since(fromWire(lastSeen(event)), now) ?? 0) < OUTDATED);
}

const questionsIn = (namespace: string): readonly LiveQuestion[] =>
  [...VOLUME_EVENTS].map((reason) => ({ ask: "warnings", kind: "Event", namespace, reason }));

const scheduledAt = (pod: Stored<Pod>): Instant =>
  fromWire(
    pod.status?.conditions?.find(({ type, status }) => type === "PodScheduled" && status === "True")
      ?.lastTransitionTime ?? pod.metadata.creationTimestamp,
  ) ?? 0;
