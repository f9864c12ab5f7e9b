/**
 * The conditions of a RayJob: a fixed vocabulary, and the rule by which a condition changes.
 *
 * The order and the reasons are documented; alerts and `kubectl wait` stand on them.
 */
import type { Condition } from "../../api/object.ts";
import type { FailureCause, RayJobStatus } from "../../api/rayjob.ts";
import { type Instant, toWire } from "../time.ts";

/** Every condition with the reasons it may give. */
export interface Reasons {
  SpecValid: "Valid" | "Invalid";
  Started: "WaitingForCluster" | "WaitingForSubmission" | "Submitted";
  SubmitterHealthy: "Following" | "Finished" | "JobFailed" | "Deleted" | "ContainerExited" | "RestartLimit";
  Retrying: "Deleting" | "Blocked" | "SpecInvalid" | "NotRetrying";
  Suspended: "Suspending" | "Suspended" | "NotSuspended";
  Succeeded: "JobSucceeded" | "JobFailed";
  Failed: FailureCause | "JobSucceeded";
  ResourcesReleased: "Released" | "InUse" | "KeptByPolicy";
}

/** The schema takes eight times as much; what Ray says of a failure may be a whole traceback, and is in `message` in full. */
const LONGEST_MESSAGE = 4096;

export type ConditionType = keyof Reasons;

export function findCondition(status: RayJobStatus, type: ConditionType): Condition | undefined {
  return status.conditions?.find((condition) => condition.type === type) as Condition | undefined;
}

export const isTrue = (status: RayJobStatus, type: ConditionType): boolean =>
  findCondition(status, type)?.status === "True";

/**
 * The status with this condition set. The time moves only when True, False or Unknown changes, as `metav1.Condition`
 * asks: so it tells since when, whatever the wording did meanwhile.
 */
export function withCondition<T extends ConditionType>(
  status: RayJobStatus,
  now: Instant,
  type: T,
  value: boolean,
  reason: Reasons[T],
  message = "",
): RayJobStatus {
  const before = findCondition(status, type);
  const word = value ? "True" : "False";
  const after: Condition = {
    type,
    status: word,
    reason,
    message: message.slice(0, LONGEST_MESSAGE),
    lastTransitionTime: before?.status === word ? before.lastTransitionTime : toWire(now),
  };
  const list = status.conditions ?? [];
  const conditions = before
    ? list.map((condition) => (condition.type === type ? { ...condition, ...after } : condition))
    : [...list, after];
  return { ...status, conditions };
}

/** The status without these conditions: they say nothing about the attempt that begins. */
export function withoutConditions(status: RayJobStatus, ...types: ConditionType[]): RayJobStatus {
  const conditions = (status.conditions ?? []).filter(({ type }) => !types.includes(type as ConditionType));
  return { ...status, conditions };
}
