/**
 * The submitter: the Kubernetes Job that carries the request to Ray and follows the log.
 *
 * Answers: how it is built; how it stands.
 * May not: speak for the job. That the submitter failed is no verdict (verdict.ts).
 * The program it runs is src/submitter/submit.py. All it needs reaches it as data: the request as JSON in environment
 * variables, the program as one argument. No shell reads any of it.
 */
import type { EnvVar, Job, Pod, PodSpec } from "../../api/kubernetes.ts";
import { CREATED_BY, LABEL } from "../../api/labels.ts";
import type { KubeObject, Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJob } from "../../api/rayjob.ts";
import type { KubeEffect } from "../decision.ts";
import { lastWords } from "../lastWords.ts";
import { podProblem } from "../raycluster/explain.ts";
import type { Settings } from "../settings.ts";
import { fromWire, type Instant, seconds } from "../time.ts";
import { type Found, isLeaving, ownerUID } from "./children.ts";
import { attemptAnnotations, attemptLabels, ownedBy } from "./cluster.ts";
import type { SubmitRequest } from "./ray.ts";
import { submissionOf } from "./submission.ts";

/** Kueue accounts for the submitter by this container's name and these amounts. */
export const SUBMITTER_CONTAINER = "ray-job-submitter";
const RESOURCES = { requests: { cpu: "500m", memory: "200Mi" }, limits: { cpu: "1", memory: "1Gi" } };
const DEFAULT_BACKOFF_LIMIT = 2;

/** Linux takes 128 KiB in one argument or variable. */
const CHUNK = 96 * 1024;

/** How the submitter stands. */
export type Submitter =
  | { readonly is: "absent" }
  /** Of an earlier attempt or a namesake, or being deleted. */
  | { readonly is: "leftover"; readonly object: Stored<Job> }
  | { readonly is: "stranger"; readonly object: Stored<Job> }
  | { readonly is: "working"; readonly object: Stored<Job> }
  | { readonly is: "finished"; readonly object: Stored<Job>; readonly at: Instant }
  | { readonly is: "failed"; readonly object: Stored<Job>; readonly at: Instant; readonly message: string };

export function submitterState(found: Found<Job>, pods: readonly Stored<Pod>[]): Submitter {
  if (found.is === "absent") return found;
  const object = found.object as Stored<Job>;
  if (found.is !== "ours") return { is: found.is, object };
  const condition = (type: string) =>
    object.status?.conditions?.find((candidate) => candidate.type === type && candidate.status === "True");
  const complete = condition("Complete");
  if (complete) return { is: "finished", object, at: endOf(complete.lastTransitionTime) };
  const failed = condition("Failed");
  if (failed) {
    const said = `Job submission has failed. Reason: ${failed.reason ?? ""}. Message: ${failed.message ?? ""}`;
    const pod = lastWordsOf(object, pods);
    return { is: "failed", object, at: endOf(failed.lastTransitionTime), message: pod ? `${said}. ${pod}` : said };
  }
  return { is: "working", object };
}

/** Wire times are rounded down; the end of that second is surely not before the fact. */
const endOf = (wire: string | undefined): Instant => (fromWire(wire) ?? 0) + seconds(1);

/** The Job's condition tells only of its limit; the Pods tell why (a program that is not there, memory, an exit code). */
function lastWordsOf(job: Stored<Job>, pods: readonly Stored<Pod>[]): string | undefined {
  const words = pods
    .filter((pod) => ownerUID(pod) === job.metadata.uid)
    .sort((one, other) => one.metadata.creationTimestamp.localeCompare(other.metadata.creationTimestamp))
    .flatMap((pod) => {
      const status = pod.status?.containerStatuses?.[0];
      const end = status?.state?.terminated ?? status?.lastState?.terminated ?? status?.state?.waiting;
      if (!end) return [];
      const exit = "exitCode" in end && end.exitCode !== undefined ? `, exit code ${end.exitCode}` : "";
      const words = lastWords(end.message);
      return [`Pod ${pod.metadata.name}: ${end.reason ?? "ended"}${exit}${words ? `: ${words}` : ""}`];
    });
  return words.at(-1);
}

/** Why the submitter's Pod cannot even start: an image, a node, a quota; undefined while it may. */
export function submitterTrouble(submitter: Submitter, pods: readonly Stored<Pod>[]): string | undefined {
  if (submitter.is !== "working") return undefined;
  for (const pod of pods) {
    if (ownerUID(pod) !== submitter.object.metadata.uid || isLeaving(pod)) continue;
    const problem = podProblem(pod);
    // How one ended is for the Job to count; the next is made.
    if (problem && !problem.ended && pod.status?.phase === "Pending") {
      return `Pod ${pod.metadata.name} ${problem.message}.`;
    }
  }
  return undefined;
}

/** Whether nothing more is to be expected from it: no log line, no submission. */
export const isDone = (submitter: Submitter): boolean => submitter.is !== "working";

/** Creates the submitter of the current attempt. */
export function createSubmitter(
  job: Stored<RayJob>,
  record: AttemptRecord,
  cluster: RayCluster,
  request: SubmitRequest,
  dashboard: string,
  settings: Settings,
): KubeEffect {
  const { name, namespace } = job.metadata;
  const labels = {
    [LABEL.originatedFromName]: name,
    [LABEL.originatedFromCRD]: "RayJob",
    [LABEL.createdBy]: CREATED_BY,
    ...attemptLabels(job, record),
  };
  const object: Job & KubeObject & { kind: "Job"; apiVersion: string } = {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: { name, namespace, labels, annotations: attemptAnnotations(record), ownerReferences: [ownedBy(job)] },
    spec: {
      backoffLimit: submissionOf(job.spec, record, cluster).submitterConfig?.backoffLimit ?? DEFAULT_BACKOFF_LIMIT,
      template: {
        metadata: { labels, annotations: attemptAnnotations(record) },
        spec: podSpec(cluster, record, request, dashboard, settings),
      },
    },
  };
  const place = `${namespace}/${name}`;
  return {
    do: "create",
    object,
    why: `attempt ${record.number} needs its submitter`,
    event: {
      type: "Normal",
      reason: "CreatedRayJobSubmitter",
      action: "Create",
      note: `Created Kubernetes Job ${place}`,
    },
    failureEvent: {
      type: "Warning",
      reason: "FailedToCreateRayJobSubmitter",
      action: "Create",
      note: `Failed to create new Kubernetes Job ${place}: {error}`,
    },
  };
}

/**
 * From the head's template come the image, what pulls it and the account; not its GPUs, selectors or mounts: the
 * submitter is small and may run anywhere.
 */
function podSpec(
  cluster: RayCluster,
  record: AttemptRecord,
  request: SubmitRequest,
  dashboard: string,
  settings: Settings,
): PodSpec {
  const head = cluster.spec.headGroupSpec.template.spec;
  return {
    restartPolicy: "Never",
    ...(head?.imagePullSecrets ? { imagePullSecrets: head.imagePullSecrets } : {}),
    ...(head?.serviceAccountName ? { serviceAccountName: head.serviceAccountName } : {}),
    containers: [
      {
        name: SUBMITTER_CONTAINER,
        image: head?.containers?.[0]?.image,
        ...(head?.containers?.[0]?.imagePullPolicy ? { imagePullPolicy: head.containers[0].imagePullPolicy } : {}),
        ...command(settings),
        env: environment(record, request, dashboard),
        resources: RESOURCES,
        // What it said last is then in its Pod's status, and so in the RayJob's, when its log is gone.
        terminationMessagePolicy: "FallbackToLogsOnError",
      },
    ],
  };
}

/** A login shell only finds `python` (some images set PATH in a profile); the program stays an argument of its own. */
function command(settings: Settings): { command: string[]; args: string[] } {
  const program = literally(settings.submitterProgram);
  return settings.loginShell
    ? { command: ["/bin/bash", "-lc", `exec python -u -c "$0"`], args: [program] }
    : { command: ["python", "-u", "-c"], args: [program] };
}

function environment(record: AttemptRecord, request: SubmitRequest, dashboard: string): EnvVar[] {
  const submission = asciiJSON({ ...request, session: record.raySession });
  const chunks = submission.match(new RegExp(`.{1,${CHUNK}}`, "gs")) ?? [];
  return [
    { name: "PYTHONUNBUFFERED", value: "1" },
    { name: "RAY_DASHBOARD_ADDRESS", value: literally(dashboard) },
    { name: "RAY_JOB_SUBMISSION_ID", value: literally(record.jobId ?? "") },
    ...chunks.map((value, index) => ({ name: index === 0 ? "RAYKEEPER_SUBMIT" : `RAYKEEPER_SUBMIT_${index}`, value })),
  ];
}

/** kubelet expands `$(NAME)` in arguments and variables, and makes `$` of `$$`. */
const literally = (text: string): string => text.replaceAll("$", "$$$$");

/**
 * JSON without a dollar, for kubelet, and without a character that the container's locale might read differently, or
 * that a cut could halve.
 */
function asciiJSON(value: unknown): string {
  return JSON.stringify(value).replace(
    /[$\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** A submitter that outlives its job gets no further try: the first failure of a Pod ends it. */
export function lastTry(job: Stored<Job>): KubeEffect | undefined {
  if (isLeaving(job) || job.spec?.backoffLimit === 0) return undefined;
  return {
    do: "patch",
    ref: { kind: "Job", namespace: job.metadata.namespace ?? "", name: job.metadata.name, uid: job.metadata.uid },
    patch: { spec: { backoffLimit: 0 } },
    resourceVersion: job.metadata.resourceVersion,
    why: "the Ray job has ended, so its submitter is not to be started again",
  };
}
