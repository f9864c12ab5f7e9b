/**
 * A RayJob's status as a value: made anew from the observed one, never changed in place.
 *
 * Unknown fields survive. A field set to undefined is taken away. What is equal to the observed status is no write.
 */
import type { AttemptRecord, RayJobStatus } from "../../api/rayjob.ts";

/** `metav1` would take more; a message this long has told what it had to. */
const RECORD_MESSAGE_LIMIT = 1024;

/** The status with these fields changed; undefined takes a field away. */
export function revise(status: RayJobStatus, changes: Partial<RayJobStatus>): RayJobStatus {
  return without({ ...status, ...changes });
}

/** The status with the current attempt's record changed (the last entry; `record` where there is none yet). */
export function reviseRecord(
  status: RayJobStatus,
  record: AttemptRecord,
  changes: Partial<AttemptRecord>,
): RayJobStatus {
  const earlier = (status.attempts ?? []).filter((attempt) => attempt.number !== record.number);
  const revised = without({ ...record, ...changes, message: cut(changes.message ?? record.message) });
  return { ...status, executionAttempt: record.number, attempts: [...earlier, revised] };
}

/** Whether two plain JSON values say the same; an absent field and an undefined one are the same. */
export function same(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const ones = one as Record<string, unknown>;
  const others = other as Record<string, unknown>;
  return [...new Set([...Object.keys(ones), ...Object.keys(others)])].every((key) => same(ones[key], others[key]));
}

/** What the flat fields say while no attempt is under way. Start time, end time and counters stay. */
export const nothingUnderWay: Partial<RayJobStatus> = {
  jobId: undefined,
  rayClusterName: undefined,
  dashboardURL: undefined,
  jobStatus: undefined,
  message: undefined,
  reason: undefined,
  rayJobInfo: undefined,
  rayClusterStatus: undefined,
  jobStatusCheckFailureStartTime: undefined,
};

function without<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as T;
}

function cut(message: string | undefined): string | undefined {
  if (message === undefined || new TextEncoder().encode(message).length <= RECORD_MESSAGE_LIMIT) return message;
  const bytes = new TextEncoder().encode(message).slice(0, RECORD_MESSAGE_LIMIT - 3);
  // A character cut in half decodes to the replacement character: it goes, too.
  return `${new TextDecoder().decode(bytes).replace(/\uFFFD+$/, "")}…`;
}
