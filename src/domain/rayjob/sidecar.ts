/**
 * SidecarMode's submitter: a container in the head Pod, which submits to its own head and follows the log.
 *
 * Answers: what it makes of the head's template; how it stands, from the status of its container.
 * May not: speak for the job, nor for the head: that it has ended says nothing about Ray's own container.
 *
 * It is in the RayCluster from the start, so the session it submits in cannot be told to it: it takes its own head's,
 * of which there is one only. A new head, under fault tolerance, brings a new sidecar, which asks Ray for the job first.
 */
import type { Pod, PodTemplateSpec } from "../../api/kubernetes.ts";
import { SUBMITTER_CONTAINER } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { RayClusterSpec } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJob } from "../../api/rayjob.ts";
import { lastWords } from "../lastWords.ts";
import { dashboardPort } from "../raycluster/names.ts";
import { hasEnded, rayContainerStatus } from "../raycluster/observe.ts";
import type { Settings } from "../settings.ts";
import { type Duration, endOfSecond, fromWire, type Instant, seconds } from "../time.ts";
import { submitterContainer } from "./program.ts";
import { buildRequest } from "./request.ts";
import type { Submitter } from "./submitter.ts";

/** More restarts than this are a failure. `submitterConfig`, which could say otherwise, is refused in SidecarMode. */
const RESTART_LIMIT = 2;
/** Up to the limit kubelet starts it again within this time; what stays down longer is not started again. */
const RESTART_PATIENCE: Duration = seconds(30);

export const isSidecar = ({ submissionMode }: AttemptRecord): boolean => submissionMode === "SidecarMode";

/** The cluster of spec, with the submitter in its head. The head is not started again in place: its job would be lost. */
export function withSidecar(job: RayJob, record: AttemptRecord, settings: Settings): RayClusterSpec {
  const spec = job.spec.rayClusterSpec!;
  const { template } = spec.headGroupSpec;
  const containers = template.spec?.containers ?? [];
  const to = {
    cluster: { metadata: { name: record.rayClusterName }, spec },
    dashboard: `127.0.0.1:${dashboardPort({ spec })}`,
  };
  const submitter = {
    ...submitterContainer(record, buildRequest(job.spec, record), to, settings),
    ...(settings.sidecarRestart && { restartPolicy: "OnFailure" }),
  };
  const withSubmitter: PodTemplateSpec = {
    ...template,
    spec: { ...template.spec, restartPolicy: "Never", containers: [...containers, submitter] },
  };
  return { ...spec, headGroupSpec: { ...spec.headGroupSpec, template: withSubmitter } };
}

const statusOf = (pod: Pod) => pod.status?.containerStatuses?.find(({ name }) => name === SUBMITTER_CONTAINER);

const isRestarted = (pod: Pod): boolean =>
  pod.spec?.containers.find(({ name }) => name === SUBMITTER_CONTAINER)?.restartPolicy === "OnFailure";

export function sidecarState(head: Stored<Pod> | undefined): Submitter {
  if (!head) return { is: "absent" };
  const { state, lastState, restartCount: restarts = 0 } = statusOf(head) ?? {};
  const now = state?.terminated;
  if (now?.exitCode === 0) return { is: "finished", at: endedBy(now, head) };
  const last = now ?? lastState?.terminated;
  if (last && restarts > RESTART_LIMIT) {
    const message = `Ray head pod submitter container ${SUBMITTER_CONTAINER} terminated after exceeding the maximum restart count (${RESTART_LIMIT}); it last ended with ${ending(last)}`;
    return { is: "failed", at: endedBy(last, head), why: "RestartLimit", message };
  }
  if (now) {
    const message = `Ray head pod container ${SUBMITTER_CONTAINER} terminated with ${ending(now)}`;
    const comesBack = isRestarted(head) && !hasEnded(head);
    return {
      is: "failed",
      at: endedBy(now, head) + (comesBack ? RESTART_PATIENCE : 0),
      why: "ContainerExited",
      message,
    };
  }
  return { is: "working", restarts, pausing: state?.waiting !== undefined && last !== undefined };
}

/** kubelet tells no time of a container that it has lost (`ContainerStatusUnknown`); its Pod changes when it sees that. */
function endedBy({ finishedAt }: { readonly finishedAt?: string }, { metadata, status }: Stored<Pod>): Instant {
  if (fromWire(finishedAt) !== undefined) return endOfSecond(finishedAt);
  const changes = (status?.conditions ?? []).map((condition) => endOfSecond(condition.lastTransitionTime));
  return Math.max(endOfSecond(metadata.creationTimestamp), ...changes) + RESTART_PATIENCE;
}

/** Whether it may yet hand its job to Ray; not where Ray itself has ended, which is not started again. */
export function maySubmitYet(head: Pod): boolean {
  if (hasEnded(head) || rayContainerStatus(head)?.state?.terminated) return false;
  const ended = statusOf(head)?.state?.terminated;
  return ended === undefined || (ended.exitCode !== 0 && isRestarted(head));
}

/** `exit code 1: Error`, and what it said last. */
function ending({ exitCode, reason, message }: { exitCode: number; reason?: string; message?: string }): string {
  const words = lastWords(message);
  return `exit code ${exitCode}: ${reason ?? "no reason"}${words ? ` (${words})` : ""}`;
}
