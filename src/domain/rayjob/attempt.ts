/**
 * The one status write that makes an attempt: its record, its number, its phase.
 *
 * Before it nothing of the attempt exists, after it everything is named. Who calls it has seen to it that nothing of an
 * earlier attempt is in the way.
 * Next: start.ts makes what was named here.
 */
import type { Decision, EventSpec } from "../decision.ts";
import { atLeastVersion } from "../raycluster/version.ts";
import type { Instant } from "../time.ts";
import { waitingFor } from "./cluster.ts";
import { withCondition, withoutConditions } from "./conditions.ts";
import type { ObservedRayJob } from "./observe.ts";
import type { RayCommand } from "./ray.ts";
import { append, newRecord, nextNumber, statusOf } from "./records.ts";
import { isSidecar } from "./sidecar.ts";
import { nothingUnderWay, revise } from "./status.ts";

const SIDECAR_RESTART_RAY = "2.54";

export function beginAttempt({ job, settings }: ObservedRayJob, now: Instant): Decision<RayCommand> {
  const before = statusOf(job);
  const number = nextNumber({ job });
  const record = newRecord(job, number, now);
  const resumed = before.jobDeploymentStatus === "Suspended";
  let status = revise(before, {
    ...nothingUnderWay,
    jobDeploymentStatus: "Initializing",
    jobId: record.jobId,
    rayClusterName: record.rayClusterName,
    startTime: record.startTime,
    endTime: undefined,
    executionAttempt: number,
    attempts: append(before.attempts, record),
    succeeded: before.succeeded ?? 0,
    failed: before.failed ?? 0,
  });
  status = withoutConditions(status, "Succeeded", "Failed", "SubmitterHealthy");
  status = withCondition(status, now, "SpecValid", true, "Valid");
  status = withCondition(status, now, "Started", false, "WaitingForCluster", waitingFor(record.rayClusterName));
  status = withCondition(status, now, "Retrying", false, "NotRetrying");
  status = withCondition(status, now, "Suspended", false, "NotSuspended");
  status = withCondition(status, now, "ResourcesReleased", false, "InUse", "An attempt is under way.");
  const names = `RayCluster ${record.rayClusterName}${record.jobId ? `, Ray job ${record.jobId}` : ""}`;
  return {
    summary: `attempt ${number} begins: ${names}`,
    effects: [],
    status,
    events: [
      ...(resumed
        ? [{ type: "Normal", reason: "Resumed", action: "Resume", note: `Resumed with attempt ${number}` } as const]
        : []),
      { type: "Normal", reason: "AttemptStarted", action: "Start", note: `Attempt ${number} started: ${names}` },
      ...(settings.sidecarRestart && isSidecar(record) ? oldRay(job.spec.rayClusterSpec?.rayVersion) : []),
    ],
  };
}

/** An older Ray closes a log's stream as if the log were complete. A version that is not told is taken for a new one. */
function oldRay(version: string | undefined): readonly EventSpec[] {
  if (!version || atLeastVersion(version, SIDECAR_RESTART_RAY)) return [];
  const note = `The feature gate SidecarSubmitterRestart is meant for Ray ${SIDECAR_RESTART_RAY} or newer, and rayVersion is ${version}: a submitter that is started again may not follow the job's log to its end`;
  return [{ type: "Warning", reason: "OldRayVersion", action: "Validate", note }];
}
