/**
 * The timers that run for a RayJob: which, until when, and what follows.
 *
 * Every end is computed by the function that the decision goes by; nothing is timed here.
 * May not: assume that the operator's settings are the defaults without saying so (`setting`).
 */
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJobStatus } from "../../api/rayjob.ts";
import { failureOf, readJournal, retryAt } from "../raycluster/failures.ts";
import { fromWire, type Instant, toWire } from "../time.ts";
import { blockingDeadline } from "./barrier.ts";
import { isLeaving } from "./children.ts";
import { activeDeadline, isBeingStopped, preRunningDeadline, STOP_PATIENCE } from "./deadlines.ts";
import { HALT_PATIENCE, mayRunOn } from "./halt.ts";
import type { ObservedRayJob } from "./observe.ts";
import { disposalOf, dueAt, type Stage } from "./policy.ts";
import { isTerminal } from "./ray.ts";
import { isSelected } from "./records.ts";
import { REFUSED } from "./run.ts";
import { DEAD_NODE_PATIENCE } from "./verdict.ts";

export type TimerName =
  | "activeDeadline"
  | "preRunningDeadline"
  | "statusCheck"
  | "deadNode"
  | "stop"
  | "logGrace"
  | "blockingTimeout"
  | "timeToLive"
  | "podReplacement"
  | "silentNode";

export interface Timer {
  readonly name: TimerName;
  /** The field, or the name by which users know it. */
  readonly label: string;
  /** RFC 3339. */
  readonly endsAt: string;
  /** What follows, as a clause. */
  readonly follows: string;
  /** The operator's own setting that sets its length; absent where a field of the RayJob does, or nothing. */
  readonly setting?: string;
}

interface Running {
  readonly observed: ObservedRayJob;
  readonly status: RayJobStatus;
  readonly record: AttemptRecord | undefined;
  readonly cluster: Stored<RayCluster> | undefined;
  readonly now: Instant;
}

interface TimerRule {
  readonly name: TimerName;
  readonly label: string | ((running: Running) => string);
  readonly setting?: string;
  readonly phases: readonly RayJobStatus["jobDeploymentStatus"][];
  readonly at: (running: Running) => Instant | undefined;
  readonly follows: string | ((running: Running) => string);
}

const STARTING = ["Initializing", "Waiting"] as const;
const UNDER_WAY = [...STARTING, "Running"] as const;

const rules: readonly TimerRule[] = [
  {
    name: "activeDeadline",
    label: "activeDeadlineSeconds",
    phases: UNDER_WAY,
    at: ({ observed, status, record }) =>
      isTerminal(status.jobStatus) || (record && isBeingStopped(record)) ? undefined : activeDeadline(observed.job)?.at,
    follows: "the job is stopped: DeadlineExceeded, which is not retried",
  },
  {
    name: "preRunningDeadline",
    label: "preRunningDeadlineSeconds",
    phases: STARTING,
    at: ({ observed }) => preRunningDeadline(observed.job)?.at,
    follows: "the attempt fails: PreRunningDeadlineExceeded",
  },
  {
    name: "statusCheck",
    label: "status check",
    setting: "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS",
    phases: UNDER_WAY,
    at: ({ observed, status }) => ending(status.jobStatusCheckFailureStartTime, observed.settings.statusCheckTimeout),
    follows: ({ status }) =>
      status.message?.startsWith(REFUSED)
        ? "the attempt fails: SubmissionFailed"
        : "the job fails: JobStatusCheckTimeoutExceeded, which is not retried",
  },
  {
    name: "deadNode",
    label: "driver's node",
    phases: ["Running"],
    at: ({ record }) => ending(record?.driverNodeDeadTime, DEAD_NODE_PATIENCE),
    follows: "the attempt fails (DriverNodeDead), unless the node comes back",
  },
  {
    name: "stop",
    label: "stopping",
    phases: ["Running"],
    at: ({ record }) =>
      record && isBeingStopped(record)
        ? ending(record.endTime, isSelected(record) ? HALT_PATIENCE : STOP_PATIENCE)
        : undefined,
    follows: "the job fails, whether or not Ray has confirmed the stop",
  },
  {
    name: "stop",
    label: "stopping",
    phases: ["Suspending"],
    // On a cluster of its own the job goes with the cluster.
    at: ({ observed, record }) => (mayRunOn(observed, record) ? ending(record.endTime, HALT_PATIENCE) : undefined),
    follows: "it is suspended, whether or not Ray has confirmed the stop",
  },
  {
    name: "logGrace",
    label: "grace",
    setting: "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS",
    phases: ["Running"],
    at: ({ observed, status }) =>
      isTerminal(status.jobStatus) ? ending(status.rayJobInfo?.endTime, observed.settings.transitionGrace) : undefined,
    follows: "the submitter's log is not waited for any longer",
  },
  {
    name: "blockingTimeout",
    label: "blockingTimeoutSeconds",
    phases: ["Retrying"],
    at: ({ observed, status, record }) => blockingDeadline(observed.job, status, record),
    follows: "the job fails: RetryBlockedTimeoutExceeded; attempts never overlap",
  },
  {
    name: "timeToLive",
    label: (running) => stageOf(running)?.field.replace(/^spec\./, "") ?? "",
    phases: ["Complete", "Failed"],
    at: (running) => {
      const stage = stageOf(running);
      return stage && dueAt(stage, running.status, running.now);
    },
    follows: (running) => STAGES[stageOf(running)?.policy ?? "DeleteCluster"],
  },
];

const STAGES: Readonly<Record<Stage["policy"], string>> = {
  DeleteWorkers: "the RayCluster's workers are deleted, its head stays",
  DeleteCluster: "the RayCluster is deleted",
  DeleteSelf: "the RayJob is deleted, and all that is left of it",
};

/** The next stage of what is deleted after the end; the last one, while its time is over and it has not shown yet. */
function stageOf({ observed: { job, settings }, status, cluster, record, now }: Running): Stage | undefined {
  const { stages } = disposalOf(job.spec, status, settings, isSelected(record));
  const later = stages.filter(({ after }) => after > 0);
  const next = later.find((stage) => dueAt(stage, status, now) > now) ?? later.at(-1);
  const isThere = cluster !== undefined && !isLeaving(cluster) && !isSelected(record);
  return next && (isThere || next.policy === "DeleteSelf") ? next : undefined;
}

const ending = (wire: string | undefined, length: number): Instant | undefined => {
  const start = fromWire(wire);
  return start === undefined ? undefined : start + length;
};

/** The timers that run, the one that ends first at the head. One that has ended and is being acted upon is among them. */
export function timersOf(running: Running): readonly Timer[] {
  const phase = running.status.jobDeploymentStatus;
  const ofJob = rules
    .filter(({ phases }) => phases.includes(phase))
    .flatMap(({ name, label, setting, at, follows }) => {
      const end = at(running);
      if (end === undefined) return [];
      const text = typeof follows === "string" ? follows : follows(running);
      return [timer(name, typeof label === "string" ? label : label(running), end, text, setting)];
    });
  const ofPods = UNDER_WAY.some((under) => under === phase) ? podTimers(running) : [];
  return [...ofJob, ...ofPods].sort((one, other) => one.endsAt.localeCompare(other.endsAt));
}

function timer(name: TimerName, label: string, end: Instant, follows: string, setting?: string): Timer {
  return { name, label, endsAt: toWire(end), follows, ...(setting && { setting }) };
}

/** When failed Pods are replaced, and when Pods of a silent node count as failed. */
function podTimers({ observed, cluster, now }: Running): readonly Timer[] {
  if (!cluster) return [];
  const { generation } = cluster.metadata;
  const replacements = Object.entries(readJournal(cluster))
    .filter(([, record]) => record.generation === generation && retryAt(record) > now)
    .map(([group, record]) =>
      timer(
        "podReplacement",
        `Pods of ${group}`,
        retryAt(record),
        `what failed is replaced (${record.count} ${record.count === 1 ? "failure" : "failures"} in a row)`,
      ),
    );
  const silent = observed.pods.flatMap((pod) => {
    const failure = failureOf(pod, now);
    if (failure.kind !== "none" || failure.lookAgainAt === undefined) return [];
    return [
      timer(
        "silentNode",
        `Pod ${pod.metadata.name}`,
        failure.lookAgainAt,
        "it counts as failed, unless its node reports",
      ),
    ];
  });
  return [...replacements, ...silent];
}
