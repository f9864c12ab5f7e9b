/**
 * The RayJob is being deleted: Ray is asked once to stop the job, then the finalizer goes. On a selected cluster, which
 * stays, halt.ts sees to it that the job has stopped, as far as 60 s from the deletion allow.
 *
 * Nothing may keep the finalizer for ever: not a dashboard that is gone, not an operator that was restarted.
 * Children go by garbage collection.
 */
import type { Pod } from "../../api/kubernetes.ts";
import { FINALIZER } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import { type Decision, type EventSpec, type LiveQuestion, questionKey } from "../decision.ts";
import { headPodName } from "../raycluster/names.ts";
import { fromWire, type Instant, seconds } from "../time.ts";
import { findCluster } from "./children.ts";
import { headReadiness, targetOf } from "./cluster.ts";
import { halt } from "./halt.ts";
import type { ObservedRayJob } from "./observe.ts";
import { isTerminal, type RayCommand } from "./ray.ts";
import { currentRecord, isSelected, statusOf } from "./records.ts";
import { isSidecar } from "./sidecar.ts";

/** How long the answer to the one stop is waited for, from the request: the deletion may be old when somebody sees it. */
const PATIENCE = seconds(15);

export function removal(observed: ObservedRayJob, now: Instant): Decision<RayCommand> {
  const { job, ray } = observed;
  if (!job.metadata.finalizers?.includes(FINALIZER.rayJob)) {
    return { summary: "being deleted; the finalizer is gone", effects: [], events: [] };
  }
  const record = currentRecord(observed);
  if (record && isSelected(record)) {
    const since = fromWire(job.metadata.deletionTimestamp) ?? now;
    const halted = halt(observed, record, since, "the RayJob is being deleted", now);
    return halted.is === "over" ? letGo(observed, halted.why, halted.event) : halted.decision;
  }
  const found = record ? findCluster(observed, record) : undefined;
  const cluster = found?.is === "ours" ? (found.object as Stored<RayCluster>) : undefined;
  const target = record && cluster ? targetOf(observed, record, cluster) : undefined;
  const mayRun = record?.submissionStartTime !== undefined && !isTerminal(statusOf(job).jobStatus);
  if (!target || !mayRun) return letGo(observed, "nothing of it runs in Ray");

  const { stop } = ray;
  if (stop === undefined) {
    const head = isSidecar(record) ? headRuns(observed, cluster!) : true;
    if (typeof head === "object") return { summary: "does its head run?", effects: [], events: [], ask: [head] };
    if (!head) return letGo(observed, "its head does not run yet");
    return {
      summary: "asking Ray to stop the job before the finalizer goes",
      effects: [{ do: "stop", target, why: "the RayJob is being deleted" }],
      events: [],
      wakeAt: now + PATIENCE,
    };
  }
  if (stop.finishedAt !== undefined) {
    return stop.result === "done"
      ? letGo(
          observed,
          "Ray was asked to stop it",
          event("Normal", "RayJobStopped", `Ray was asked to stop job ${target.jobId}`),
        )
      : letGo(observed, "Ray did not take the stop", unconfirmed(target.jobId, stop.message));
  }
  const bound = stop.startedAt + PATIENCE;
  if (now >= bound)
    return letGo(observed, "Ray did not answer in time", unconfirmed(target.jobId, "no answer in time"));
  return { summary: "waiting for Ray to take the stop", effects: [], events: [], wakeAt: bound };
}

/** Before a sidecar's head runs there is nobody to ask; a cache that shows none is not believed. */
function headRuns({ pods, live }: ObservedRayJob, cluster: Stored<RayCluster>): boolean | LiveQuestion {
  if (headReadiness(cluster, pods).ready) return true;
  const { namespace = "", name } = cluster.metadata;
  const question: LiveQuestion = { ask: "get", kind: "Pod", namespace, name: headPodName(name) };
  const heads = live.get(questionKey(question)) as readonly Pod[] | undefined;
  return heads?.some(({ status }) => status?.phase === "Running") ?? question;
}

const event = (type: "Normal" | "Warning", reason: string, note: string): EventSpec => ({
  type,
  reason,
  action: "Stop",
  note,
});

const unconfirmed = (jobId: string, why: string | undefined): EventSpec =>
  event("Warning", "RayJobStopUnconfirmed", `Ray did not confirm that job ${jobId} stops: ${why ?? "no reason given"}`);

function letGo({ job }: ObservedRayJob, why: string, said?: EventSpec): Decision<RayCommand> {
  const { namespace = "", name, uid, resourceVersion, finalizers = [] } = job.metadata;
  return {
    summary: `being deleted: ${why}, so the finalizer goes`,
    effects: [
      {
        do: "patch",
        ref: { kind: "RayJob", namespace, name, uid },
        patch: { metadata: { finalizers: finalizers.filter((finalizer) => finalizer !== FINALIZER.rayJob) } },
        resourceVersion,
        why,
        event: said,
        failureEvent: {
          type: "Warning",
          reason: "FailedToRemoveFinalizer",
          action: "RemoveFinalizer",
          note: `Failed to remove the finalizer ${FINALIZER.rayJob} from RayJob ${namespace}/${name}: {error}`,
        },
      },
    ],
    events: [],
  };
}
