/**
 * Waiting until nothing of an attempt is left: before the next attempt, and before `Suspended` is said.
 *
 * What is left is deleted; then the cache must show nothing, and then the API server itself. What stays longer than
 * usual is named, with its node, so that a user can see to it: nothing is ever forced.
 */
import type { Pod } from "../../api/kubernetes.ts";
import type { Stored } from "../../api/object.ts";
import type { Decision } from "../decision.ts";
import { fromWire, type Instant, seconds, toWire } from "../time.ts";
import { cleanUp, type Extent, left, proof, proofOfAbsence, remains } from "./children.ts";
import { findCondition, type Reasons, withCondition } from "./conditions.ts";
import type { ObservedRayJob } from "./observe.ts";
import type { RayCommand } from "./ray.ts";
import { currentRecord, isSelected, statusOf } from "./records.ts";

/** Pods usually go within their 30 s of grace. */
const SLOW = seconds(60);
export const NAMED = 5;

/** Undefined when surely nothing is left. `showIn`: the condition whose message names what does not go. */
export function awaitAbsence(
  observed: ObservedRayJob,
  extent: Extent,
  now: Instant,
  showIn?: "Retrying" | "Suspended",
): Decision<RayCommand> | undefined {
  const record = currentRecord(observed);
  const some = remains(observed, record);
  const rest = left(some, extent);
  const effects = cleanUp(some, "it belongs to an attempt that is over");
  if (rest.length > 0 || effects.length > 0) {
    const message = `Waiting for ${enumerate(rest)} to be gone.`;
    const slowAt = (fromWire(record?.endTime) ?? now) + SLOW;
    if (!showIn || effects.length > 0 || now < slowAt) {
      return { summary: message, effects, events: [], wakeAt: showIn ? Math.max(slowAt, now + SLOW / 10) : undefined };
    }
    return { summary: message, effects, status: shown(observed, showIn, message, now), events: [] };
  }
  if (observed.clusterInFlight && !isSelected(record)) {
    const summary = "a reconcile of the RayCluster is still under way";
    return { summary, effects: [], events: [], wakeAt: now + seconds(1) };
  }
  const questions = proofOfAbsence(observed, record, extent);
  const proven = proof(observed, questions);
  if (proven === "unasked") return { summary: "is really nothing left?", effects: [], events: [], ask: questions };
  if (proven.left > 0) {
    return { summary: "the cache lags: something is left", effects: [], events: [], wakeAt: now + seconds(1) };
  }
  return undefined;
}

function shown(observed: ObservedRayJob, type: "Retrying" | "Suspended", message: string, now: Instant) {
  const status = statusOf(observed.job);
  const before = findCondition(status, type);
  const usual = type === "Retrying" ? "Deleting" : "Suspending";
  const reason = (before?.reason ?? usual) as Reasons[typeof type];
  return withCondition(status, now, type, before?.status === "True", reason, message);
}

/** `Pod a on node n (terminating since …), RayCluster b and 3 more`. */
export function enumerate(objects: readonly Stored[]): string {
  const named = objects.slice(0, NAMED).map((object) => {
    const since = leavingSince(object);
    return `${nameOnNode(object)}${since ? ` (terminating since ${since})` : ""}`;
  });
  const more = objects.length - named.length;
  return named.join(", ") + (more > 0 ? ` and ${more} more` : "");
}

/** `Pod a on node n`. */
export function nameOnNode(object: Stored): string {
  const node = (object as Stored<Pod>).spec?.nodeName;
  return `${object.kind ?? "object"} ${object.metadata.name}${node ? ` on node ${node}` : ""}`;
}

/** When its deletion was asked for: Kubernetes sets deletionTimestamp to the end of the grace. */
export function leavingSince({ metadata }: Stored): string | undefined {
  const end = fromWire(metadata.deletionTimestamp);
  return end === undefined ? undefined : toWire(end - seconds(metadata.deletionGracePeriodSeconds ?? 0));
}
