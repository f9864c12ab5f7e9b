/**
 * What a RayJob and its objects show, told as lines of progress.
 *
 * Answers: which facts are visible now, and in which order they belong. A fact has a key and is told once, so it does
 * not matter how many versions of an object the follower missed: what the journal (`status.attempts`) keeps is told.
 * May not: fetch, print, read a clock.
 * Next: follow.ts gathers what is seen; summary.ts tells the end.
 */
import type { Container, ContainerStatus, Event, Pod } from "../api/kubernetes.ts";
import { LABEL, NODE_TYPE, SUBMITTER_CONTAINER } from "../api/labels.ts";
import type { Stored } from "../api/object.ts";
import type { RayCluster } from "../api/raycluster.ts";
import type { AttemptRecord, RayJob } from "../api/rayjob.ts";
import { isTerminal } from "../domain/rayjob/ray.ts";
import type { Tone } from "./screen.ts";

/** Everything the follower knows at one moment. */
export interface Seen {
  /** Absent: it is gone. */
  readonly rayJob?: Stored<RayJob>;
  /** The current attempt's cluster. */
  readonly rayCluster?: Stored<RayCluster>;
  /** Pods of this RayJob, of any attempt, and of a RayCluster that it selects. */
  readonly pods: readonly Stored<Pod>[];
  /** Events about the RayJob, its RayCluster and its Pods. */
  readonly events: readonly Stored<Event>[];
  /** Whether the last words of this container are on their way: how it ended is told with them. */
  readonly isAsking?: (pod: Stored<Pod>, status: ContainerStatus) => boolean;
}

export interface Fact {
  /** The same key is the same fact. */
  readonly key: string;
  readonly text: string;
  readonly tone: Tone;
}

/** All facts visible now, oldest first. */
export function facts(seen: Seen): Fact[] {
  const { rayJob } = seen;
  if (!rayJob) return [fact("gone", "the RayJob was deleted", "warn")];
  const status = rayJob.status ?? {};
  const attempts = status.attempts ?? [];
  const number = status.executionAttempt;
  const record = attempts.at(-1);
  const label = number === undefined ? "" : number === 0 ? "" : `attempt ${number}: `;
  const told: Fact[] = [];
  const tell = (key: string, text: string, tone: Tone = "plain") =>
    told.push(fact(`${number}/${key}`, label + text, tone));

  for (const earlier of attempts.slice(0, -1)) {
    told.push(fact(`${earlier.number}/ended`, ended(earlier), "warn"));
  }
  if (status.rayClusterName) {
    const what = record?.ownsCluster === false ? "selected by clusterSelector, and left as it is" : "creating";
    tell("cluster", `RayCluster ${status.rayClusterName}: ${what}`);
  }
  const readiness = podsReady(seen);
  if (readiness) tell(`ready/${readiness.key}`, readiness.text);
  // Of an object, and so told once, whichever attempt is under way when it is seen again.
  for (const { key, text, isOfJob } of problems(seen)) told.push(fact(key, isOfJob ? text : label + text, "warn"));
  if (seen.rayCluster?.status?.state === "ready") tell("provisioned", `RayCluster ${status.rayClusterName}: ready`);
  if (record && isSubmitting(record)) tell("submitting", `submitting the job as ${record.jobId}`);
  if (record?.observedTime && !record.runningTime) tell("observed", "submitted: Ray has the job");
  if (record?.runningTime) tell("running", "running");
  for (const { type, status: is, message, reason, lastTransitionTime } of status.conditions ?? []) {
    const at = `${type}/${reason}/${lastTransitionTime}`;
    if (type === "SubmitterHealthy" && is === "False") tell(at, `the submitter: ${message}`, "warn");
    if (type === "SpecValid" && is === "False" && status.jobDeploymentStatus !== "ValidationFailed")
      tell(at, message, "warn");
    if (type === "Retrying" && is === "True") tell(at, `retrying: ${withoutEnd(message, record)}`, "warn");
  }
  if (isTerminal(status.jobStatus)) {
    tell("verdict", `Ray says ${status.jobStatus}`, status.jobStatus === "SUCCEEDED" ? "good" : "bad");
  }
  const stage = STAGES[status.jobDeploymentStatus ?? ""];
  if (stage) tell(`stage/${status.jobDeploymentStatus}`, stage);
  if (record && status.jobDeploymentStatus === "Retrying") told.push(fact(`${number}/ended`, ended(record), "warn"));
  return told;
}

/** Stages that no other fact tells. */
const STAGES: Readonly<Record<string, string>> = {
  Suspending: "suspending: what runs is being deleted",
  Suspended: "suspended: set spec.suspend to false to go on",
  Waiting: "waiting for a job to be submitted by hand",
};

const fact = (key: string, text: string, tone: Tone): Fact => ({ key, text, tone });

function ended(record: { number?: number; reason?: string; message?: string; jobStatus?: string }): string {
  const how = [record.jobStatus, record.reason].filter(Boolean).join(", ");
  return `attempt ${record.number} failed${how ? ` (${how})` : ""}${record.message ? `: ${firstLine(record.message)}` : ""}`;
}

/** How a message of an attempt's end begins, wherever it is quoted; quotations are cut at different lengths. */
const beginning = ({ message = "" }: { readonly message?: string }): string => firstLine(message).slice(0, 60);

/** What the message says besides the attempt's end, which is a fact of its own. */
function withoutEnd(message: string, record: AttemptRecord | undefined): string {
  const end = record ? beginning(record) : "";
  const start = end ? message.indexOf(end) : -1;
  return start > 0 ? message.slice(0, start).replace(/:? *$/, "") : message;
}

/** What other facts tell, so that an event about the RayJob need not say it again. */
function toldElsewhere({ rayJob }: Seen): readonly string[] {
  const { attempts = [], conditions = [], jobDeploymentStatus } = rayJob?.status ?? {};
  const ends = attempts.map((attempt) => beginning(attempt));
  const invalid = conditions
    .filter(({ type, status }) => type === "SpecValid" && status === "False")
    .map(({ message }) => message);
  return [...ends, ...(jobDeploymentStatus === "ValidationFailed" ? [] : invalid)].filter(Boolean);
}

/** A sidecar is told of as submitting when its head has answered; it is journalled as doing so from the start. */
const isSubmitting = ({ submissionMode, submissionStartTime, raySession }: AttemptRecord): boolean =>
  (submissionMode === "SidecarMode" ? raySession : submissionStartTime) !== undefined;

/** What is going on, for the live line of a terminal. */
export function activity(seen: Seen): string {
  const { rayJob } = seen;
  const status = rayJob?.status;
  const record = status?.attempts?.at(-1);
  if (!rayJob || !status?.jobDeploymentStatus) return "waiting for the operator to take up the RayJob …";
  if (STAGES[status.jobDeploymentStatus]) return STAGES[status.jobDeploymentStatus]!;
  if (status.jobDeploymentStatus === "Retrying") return "clearing away the failed attempt …";
  if (isTerminal(status.jobStatus)) return `Ray says ${status.jobStatus}; finishing …`;
  if (record?.runningTime) return "running …";
  if (record && isSubmitting(record)) return "submitted; waiting for Ray to run it …";
  const waiting = rayPods(seen).filter((pod) => !isReady(pod));
  const names = waiting.map((pod) => `${nameOf(pod, status.rayClusterName)} ${podState(pod)}`).join(", ");
  return names ? `waiting for ${names} …` : "waiting for the RayCluster …";
}

/** The Pods that belong to the current attempt's Ray cluster, head first. */
export function rayPods({ pods, rayJob }: Seen): Stored<Pod>[] {
  const cluster = rayJob?.status?.rayClusterName;
  const order = (pod: Pod) => (pod.metadata.labels?.[LABEL.nodeType] === NODE_TYPE.head ? 0 : 1);
  return pods
    .filter(
      ({ metadata: { labels } }) =>
        cluster !== undefined && labels?.[LABEL.cluster] === cluster && labels[LABEL.nodeType],
    )
    .sort((a, b) => order(a) - order(b) || a.metadata.name.localeCompare(b.metadata.name));
}

function podsReady(seen: Seen): { key: string; text: string } | undefined {
  const cluster = seen.rayJob?.status?.rayClusterName;
  const wanted = desiredPods(seen);
  const ready = rayPods(seen).filter(isReady);
  if (!wanted || ready.length === 0 || seen.rayJob?.status?.jobDeploymentStatus !== "Initializing") return undefined;
  const names = ready.map((pod) => nameOf(pod, cluster));
  return {
    key: ready.map((pod) => `${pod.metadata.uid}@${readyCondition(pod)?.lastTransitionTime}`).join(),
    text: `Pods ready ${ready.length}/${wanted}: ${shorten(names)}`,
  };
}

/** Pods the attempt's cluster means to have, the head included; undefined while it is not known. */
function desiredPods({ rayCluster }: Seen): number | undefined {
  const groups = rayCluster?.spec?.workerGroupSpecs;
  if (!rayCluster) return undefined;
  return 1 + (groups ?? []).reduce((sum, group) => sum + (group.replicas ?? 0) * (group.numOfHosts ?? 1), 0);
}

/** Reasons a container may wait for that are no problem. */
const ON_THE_WAY = new Set(["ContainerCreating", "PodInitializing"]);
/** Probes fail while Ray starts; a Pod that stays unready shows in the count. The other two say what its status says, too. */
const NOISE = new Set(["Unhealthy", "Failed", "BackOff"]);

interface Problem {
  readonly key: string;
  readonly text: string;
  /** About the RayJob itself, whose events name the attempt where they mean one. */
  readonly isOfJob: boolean;
}

function problems(seen: Seen): readonly Problem[] {
  const cluster = seen.rayJob?.status?.rayClusterName;
  const found: Problem[] = [];
  const add = (key: string, text: string, isOfJob = false) =>
    found.push({ key: `problem/${key}`, text: firstLine(text), isOfJob });
  const told = toldElsewhere(seen);
  for (const pod of seen.pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined)) {
    const name = `Pod ${nameOf(pod, cluster)}`;
    const { uid } = pod.metadata;
    const scheduled = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
    if (scheduled?.status === "False")
      add(`${uid}/unschedulable`, `${name}: ${scheduled.reason}: ${scheduled.message ?? ""}`);
    for (const status of [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]) {
      if (seen.isAsking?.(pod, status)) continue;
      const { name: container, state, lastState } = status;
      const { waiting, terminated } = state ?? {};
      const last = lastState?.terminated?.message;
      if (waiting?.reason && !ON_THE_WAY.has(waiting.reason)) {
        add(
          `${uid}/${container}/${waiting.reason}`,
          `${name}, container ${container}: ${waiting.reason}${waiting.message ? `: ${waiting.message}` : ""}${last ? `; its last words: ${last}` : ""}`,
        );
      } else if (terminated && terminated.exitCode !== 0) {
        const why = [terminated.reason, `exit code ${terminated.exitCode}`].filter(Boolean).join(", ");
        add(
          `${uid}/${container}/${terminated.finishedAt}`,
          `${name}, container ${container} ended: ${why}${terminated.message ? `: ${terminated.message}` : ""}`,
        );
      }
    }
    if (pod.status?.phase === "Failed" && pod.status.reason)
      add(`${uid}/${pod.status.reason}`, `${name}: ${pod.status.reason}: ${pod.status.message ?? ""}`);
  }
  for (const event of seen.events) {
    if (event.type !== "Warning" || NOISE.has(event.reason ?? "")) continue;
    const about = event.regarding?.name ?? "";
    const isOfJob = event.regarding?.kind === "RayJob";
    if (isOfJob && told.some((text) => event.note?.includes(text))) continue;
    add(
      `event/${event.metadata.uid}`,
      `${event.regarding?.kind} ${shortName(about, cluster)}: ${event.reason}: ${event.note ?? ""}`,
      isOfJob,
    );
  }
  return found;
}

const readyCondition = (pod: Pod) => pod.status?.conditions?.find(({ type }) => type === "Ready");
const isReady = (pod: Pod): boolean => readyCondition(pod)?.status === "True" && !pod.metadata.deletionTimestamp;

/** What keeps a Pod from being ready, in a word. */
function podState(pod: Pod): string {
  if (pod.metadata.deletionTimestamp) return "Terminating";
  const init = pod.status?.initContainerStatuses?.find(({ state }) => state?.running);
  if (init) return `(${init.name})`;
  const waiting = pod.status?.containerStatuses?.find(({ state }) => state?.waiting)?.state?.waiting?.reason;
  return waiting ?? (pod.status?.phase === "Running" ? "not ready" : (pod.status?.phase ?? "Pending"));
}

/** A Pod's name without that of its cluster: `head`, `small-group-worker-x7k2p`. */
function nameOf(pod: Stored<Pod>, cluster: string | undefined): string {
  if (pod.metadata.labels?.[LABEL.nodeType] === NODE_TYPE.head) return "head";
  return shortName(pod.metadata.name, cluster);
}

const shortName = (name: string, cluster: string | undefined): string =>
  cluster && name.startsWith(`${cluster}-`) ? name.slice(cluster.length + 1) : name;

const shorten = (names: readonly string[]): string =>
  names.length <= 5 ? names.join(", ") : `${names.slice(0, 4).join(", ")} and ${names.length - 4} more`;

const firstLine = (text: string): string => {
  const line = text.trim().split("\n", 1)[0]!;
  return line.length > 400 ? `${line.slice(0, 400)}…` : line;
};

/**
 * The Pod that carries the job's log: in K8sJobMode the current attempt's newest that is no Ray node, in SidecarMode the
 * head.
 */
export function submitterPod(
  { pods, rayJob }: Seen,
  attempt = rayJob?.status?.executionAttempt,
): Stored<Pod> | undefined {
  return pods
    .filter(
      ({ metadata: { labels }, spec }) =>
        labels?.[LABEL.executionAttempt] === String(attempt) &&
        (!labels[LABEL.nodeType] || spec?.containers.some(({ name }) => name === SUBMITTER_CONTAINER)),
    )
    .sort((a, b) => b.metadata.creationTimestamp.localeCompare(a.metadata.creationTimestamp))
    .find((pod) => hasStarted(pod));
}

const hasStarted = (pod: Pod): boolean =>
  (pod.status?.containerStatuses ?? []).some(
    ({ name, state, lastState }) =>
      (pod.spec!.containers.length === 1 || name === submitterContainer(pod)) &&
      (state?.running || state?.terminated || lastState?.terminated),
  );

/** Name of the container whose log is the job's. */
export function submitterContainer(pod: Pod): Container["name"] {
  const { containers } = pod.spec!;
  return (containers.find(({ name }) => name === SUBMITTER_CONTAINER) ?? containers[0]!).name;
}

/** Whether that container has written its last line; one that kubelet starts again has not. */
export function submitterEnded(pod: Pod): boolean {
  const container = submitterContainer(pod);
  const ended = pod.status?.containerStatuses?.find(({ name }) => name === container)?.state?.terminated;
  const { restartPolicy } = pod.spec!.containers.find(({ name }) => name === container)!;
  const comesBack = restartPolicy === "OnFailure" && ended?.exitCode !== 0 && pod.status?.phase === "Running";
  return ended !== undefined && !comesBack;
}
