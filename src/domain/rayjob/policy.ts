/**
 * What is deleted when a RayJob has ended, and when: `deletionStrategy` in both forms, and `shutdownAfterJobFinishes`.
 *
 * Answers: the stages that an outcome has before it, and why nothing follows where nothing does. Read from spec as it is
 * now, so an edit counts at once; times are counted from the end that status tells, so whoever leads next goes on from there.
 * May not: delete anything (finish.ts), or ask what is there.
 */
import type { DeletionPolicy, RayJobSpec, RayJobStatus } from "../../api/rayjob.ts";
import type { Settings } from "../settings.ts";
import { fromWire, type Instant, seconds } from "../time.ts";
import type { ConditionType } from "./conditions.ts";
import { selects } from "./records.ts";

/** How a RayJob ended, as rules ask for it. */
export type Outcome = Pick<RayJobStatus, "jobDeploymentStatus" | "jobStatus">;

/** Every way to end. A deadline leaves STOPPED; a job that Ray never knew has no status. */
export const OUTCOMES: readonly Outcome[] = [
  { jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" },
  { jobDeploymentStatus: "Complete", jobStatus: "STOPPED" },
  { jobDeploymentStatus: "Failed", jobStatus: "FAILED" },
  { jobDeploymentStatus: "Failed", jobStatus: "STOPPED" },
  { jobDeploymentStatus: "Failed", jobStatus: "" },
];

export const outcomeText = ({ jobDeploymentStatus, jobStatus }: Outcome): string =>
  `jobDeploymentStatus ${jobDeploymentStatus} with ${jobStatus ? `jobStatus ${jobStatus}` : "no jobStatus"}`;

/** The least first: what one deletes, those after it delete, too. */
const IMPACT = ["DeleteNone", "DeleteWorkers", "DeleteCluster", "DeleteSelf"] as const satisfies DeletionPolicy[];
const impact = ({ policy }: Stage): number => IMPACT.indexOf(policy);

export interface Stage {
  readonly policy: Exclude<DeletionPolicy, "DeleteNone">;
  /** Seconds after the end of the job. */
  readonly after: number;
  /** The field that says when. */
  readonly field: string;
}

export interface Disposal {
  /** In order of time. One that would come when more is deleted already is left out. */
  readonly stages: readonly Stage[];
  /** Where nothing is deleted: why, as a clause. */
  readonly kept: string;
  /** There are rules, and none of them is about this outcome. */
  readonly unmatched: boolean;
}

export const takesCluster = ({ policy }: Stage): boolean => policy !== "DeleteWorkers";

/** A selected cluster is never touched: there, only what is about the RayJob counts. `selected`: by default, what spec says. */
export function disposalOf(
  spec: RayJobSpec,
  outcome: Outcome,
  settings: Settings,
  selected: boolean = selects(spec),
): Disposal {
  const { policies, kept, unmatched = false } = wanted(spec, outcome, settings);
  const all = policies
    .flatMap(({ policy, ...when }) => (policy === undefined || policy === "DeleteNone" ? [] : [{ policy, ...when }]))
    .filter(({ policy }) => !selected || policy === "DeleteSelf")
    .sort((one, other) => one.after - other.after || impact(other) - impact(one));
  const stages = all.filter((stage, index) => all.slice(0, index).every((earlier) => impact(earlier) < impact(stage)));
  return { stages, kept, unmatched };
}

interface Wanted {
  readonly policies: readonly { policy: DeletionPolicy | undefined; after: number; field: string }[];
  readonly kept: string;
  readonly unmatched?: boolean;
}

/** Rules come before the older form, and either before `shutdownAfterJobFinishes`, as in KubeRay. */
function wanted(spec: RayJobSpec, outcome: Outcome, settings: Settings): Wanted {
  const { deletionRules, onSuccess, onFailure } = (settings.deletionPolicy && spec.deletionStrategy) || {};
  const TTL = "spec.ttlSecondsAfterFinished";
  const after = Math.max(0, spec.ttlSecondsAfterFinished ?? 0);
  if (deletionRules) {
    const matching = deletionRules.flatMap(({ policy, condition }, index) =>
      (condition.jobStatus !== undefined && condition.jobStatus === outcome.jobStatus) ||
      (condition.jobDeploymentStatus !== undefined && condition.jobDeploymentStatus === outcome.jobDeploymentStatus)
        ? [{ policy, after: Math.max(0, condition.ttlSeconds ?? 0), field: ruleField(index) }]
        : [],
    );
    return matching.length > 0
      ? { policies: matching, kept: "spec.deletionStrategy says DeleteNone" }
      : { policies: [], kept: `no rule of spec.deletionStrategy matches ${outcomeText(outcome)}`, unmatched: true };
  }
  if (onSuccess || onFailure) {
    const side = outcome.jobDeploymentStatus === "Complete" ? "onSuccess" : "onFailure";
    const { policy } = (side === "onSuccess" ? onSuccess : onFailure) ?? {};
    return {
      policies: [{ policy, after, field: TTL }],
      kept: `spec.deletionStrategy.${side} says ${policy ?? "nothing"}`,
    };
  }
  if (!spec.shutdownAfterJobFinishes) return { policies: [], kept: "shutdownAfterJobFinishes is not set" };
  const policy = settings.deleteRayJobAfterFinish ? "DeleteSelf" : "DeleteCluster";
  return { policies: [{ policy, after, field: TTL }], kept: "" };
}

const ruleField = (index: number): string => `spec.deletionStrategy.deletionRules[${index}].condition.ttlSeconds`;

/** When the RayJob ended; undefined where its status does not tell, as one that was put back by hand may not. */
export function endOf({ endTime, conditions }: RayJobStatus): Instant | undefined {
  const verdict = conditions?.find(({ type, status }) => ENDS.includes(type) && status === "True");
  return fromWire(endTime) ?? fromWire(verdict?.lastTransitionTime);
}

const ENDS: readonly string[] = ["Succeeded", "Failed"] satisfies ConditionType[];

/** When the stage comes. Where nothing tells when the RayJob ended, nobody knew of its end before `now`. */
export const dueAt = ({ after }: Stage, status: RayJobStatus, now: Instant): Instant =>
  (endOf(status) ?? now) + seconds(after);

/** The last stage that has come, and when the next one does. */
export function stageNow({ stages }: Disposal, status: RayJobStatus, now: Instant) {
  const pending = stages.find((stage) => dueAt(stage, status, now) > now);
  return {
    due: stages.findLast((stage) => dueAt(stage, status, now) <= now),
    nextAt: pending && dueAt(pending, status, now),
  };
}
