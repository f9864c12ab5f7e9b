/**
 * Whether anything of this RayJob exists, and the wait until nothing does: before the next attempt, before `Suspended`
 * is said, and before `ResourcesReleased` is.
 *
 * What is left is deleted; then the cache must show nothing, and then the API server itself. What stays longer than
 * usual is named, with its node, so that a user can see to it: nothing is ever forced.
 */
import type { Pod } from "../../api/kubernetes.ts";
import type { Stored } from "../../api/object.ts";
import type { Decision, LiveQuestion } from "../decision.ts";
import { earliest, fromWire, type Instant, seconds, toWire } from "../time.ts";
import { cleanUp, type Extent, left, proof, proofOfAbsence, remains, spentOf } from "./children.ts";
import { findCondition, type Reasons, withCondition } from "./conditions.ts";
import type { ObservedRayJob } from "./observe.ts";
import type { RayCommand } from "./ray.ts";
import { currentRecord, isSelected, statusOf } from "./records.ts";

/** Pods usually go within their 30 s of grace. */
const SLOW = seconds(60);
export const NAMED = 5;

/** What is left of a RayJob, as far as can be told now. */
export type Absence =
  /** The cache shows these; or, `unseen`, the API server has them and the cache does not. */
  | { readonly is: "left"; readonly objects: readonly Stored[]; readonly unseen?: true }
  | { readonly is: "unasked"; readonly ask: readonly LiveQuestion[] }
  /** A reconcile of the RayCluster is under way, and may yet make a Pod. */
  | { readonly is: "inFlight" }
  | { readonly is: "proven" };

/**
 * Whether anything of this RayJob exists: the one predicate of the barrier, of `Suspended` and of `ResourcesReleased`.
 * The cache must show nothing, and then the API server itself.
 */
export function absence(observed: ObservedRayJob, extent: Extent): Absence {
  const objects = left(remains(observed, currentRecord(observed)), extent);
  return objects.length > 0 ? { is: "left", objects } : proveAbsence(observed, extent);
}

/** The same, from the API server alone. Asked anew in each round: a reconcile may have begun since the last answer. */
export function proveAbsence(observed: ObservedRayJob, extent: Extent): Absence {
  const record = currentRecord(observed);
  // What happens to a selected cluster is nobody's business here.
  if (observed.clusterInFlight && !isSelected(record)) return { is: "inFlight" };
  const spent = spentOf(remains(observed, record), extent);
  const said = proof(observed, proofOfAbsence(observed, record, extent), spent);
  if ("ask" in said) return { is: "unasked", ask: said.ask };
  return said.left.length > 0 ? { is: "left", objects: said.left, unseen: true } : { is: "proven" };
}

/** A pass that waits for the proof: it asks, or looks again soon. Undefined where there is more to say, or no need. */
export function unproven(found: Absence, now: Instant): Decision<RayCommand> | undefined {
  const wait = (summary: string) => ({ summary, effects: [], events: [], wakeAt: now + seconds(1) });
  switch (found.is) {
    case "unasked":
      return { summary: "is really nothing left?", effects: [], events: [], ask: found.ask };
    case "inFlight":
      return wait("a reconcile of the RayCluster is still under way");
    case "left":
      return found.unseen ? wait(`the cache lags: ${enumerate(found.objects)} left`) : undefined;
    case "proven":
      return undefined;
  }
}

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
    // An attempt that KubeRay ended has no end of its own in its record.
    const since = fromWire(record?.endTime) ?? earliest(...rest.map((object) => fromWire(leavingSince(object)))) ?? now;
    const slowAt = since + SLOW;
    if (!showIn || effects.length > 0 || now < slowAt) {
      return { summary: message, effects, events: [], wakeAt: showIn ? Math.max(slowAt, now + SLOW / 10) : undefined };
    }
    return { summary: message, effects, status: shown(observed, showIn, message, now), events: [] };
  }
  return unproven(proveAbsence(observed, extent), now);
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
