/**
 * A RayJob explained: what state it is in, since when and why; what it waits for, and until when; what became of earlier
 * attempts; what its user can do.
 *
 * Answers: one plain value, from what anybody who may read the objects can see. It asks the functions that the decisions
 * ask (readiness, remains, deadlines, troubles of Pods), and takes the conditions' words: there is no second truth.
 * May not: fetch, read a clock, or know anything that only the operator's process knows, such as Ray's last answer.
 * Next: advice.ts for what can be done, timers.ts for what runs out; src/cli/explain.ts gathers and prints.
 */
import type { Event, Job, Pod } from "../../api/kubernetes.ts";
import { LABEL, NODE_TYPE, SUBMITTER_CONTAINER } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, JobDeploymentStatus, RayJobStatus } from "../../api/rayjob.ts";
import { lastSeen, podProblem } from "../raycluster/explain.ts";
import { isReady } from "../raycluster/observe.ts";
import { fromWire, type Instant, minutes, since } from "../time.ts";
import { enumerate, leavingSince, NAMED, nameOnNode } from "./absence.ts";
import {
  type Advice,
  adviceFor,
  causeOf,
  distinct,
  phaseAdvice,
  type Subject,
  type Trouble,
  troubleAdvice,
} from "./advice.ts";
import { inOrder, isBlocking } from "./barrier.ts";
import { type Found, findCluster, isLeaving, left, ownerUID, remains } from "./children.ts";
import { headFacts, readiness, readinessFor, upText, waitingFor } from "./cluster.ts";
import { findCondition } from "./conditions.ts";
import { isBeingStopped } from "./deadlines.ts";
import { isElsewhere, type ObservedRayJob } from "./observe.ts";
import { isTerminal } from "./ray.ts";
import { currentRecord, isSelected, queueOf, statusOf } from "./records.ts";
import { type Submitter, submitterOf } from "./submitter.ts";
import { WAS_SUSPENDED, wantsSuspension } from "./suspend.ts";
import { type Timer, timersOf } from "./timers.ts";
import { validateRayJob } from "./validate.ts";

export type { Advice } from "./advice.ts";
export type { Timer } from "./timers.ts";

/** The phase; a RayJob that nobody runs, or that is going, has a word of its own. */
export type State = Exclude<JobDeploymentStatus, ""> | "New" | "Deleting" | "ManagedElsewhere";

/** Something that must happen, or go, before the job goes on. */
export interface Wait {
  readonly kind: string;
  readonly name: string;
  readonly node?: string;
  /** RFC 3339. */
  readonly since?: string;
  /** CamelCase, where somebody names one. */
  readonly reason?: string;
  /** The whole sentence. */
  readonly text: string;
}

export type Outcome = "succeeded" | "failed" | "stopped" | "suspended" | "under way";

export interface AttemptStory {
  readonly number: number;
  readonly jobId?: string;
  readonly rayClusterName?: string;
  readonly outcome: Outcome;
  readonly reason?: string;
  readonly message?: string;
  readonly startTime?: string;
  readonly endTime?: string;
  /** From its start to its end, or to now. */
  readonly seconds?: number;
}

export interface Explanation {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly state: State;
  /** RFC 3339. */
  readonly since?: string;
  readonly why: string;
  /** Finer than the state: `status.reason`, or the failure's cause. */
  readonly reason?: string;
  readonly jobStatus?: string;
  readonly attempt?: number;
  /** How many attempts may fail: `backoffLimit` and one. */
  readonly attemptsAllowed: number;
  readonly jobId?: string;
  readonly rayClusterName?: string;
  readonly waits: readonly Wait[];
  readonly timers: readonly Timer[];
  /** Oldest first; the last is the current one. */
  readonly attempts: readonly AttemptStory[];
  /** What else one should know: an edit that is ignored, a submitter that is lost, what an ended job still holds. */
  readonly notes: readonly string[];
  readonly advice: readonly Advice[];
}

/** All that explain looks at. `ray` and `live` are the operator's alone, and empty elsewhere. */
export interface Explained extends ObservedRayJob {
  /** Warnings about Pods of this RayJob. */
  readonly events: readonly Stored<Event>[];
}

export function explain(observed: Explained, now: Instant): Explanation {
  const seen = see(observed, now);
  const { job, status, record, state } = seen;
  const story = stories[state](seen);
  const notes = notesOf(seen);
  const troubles = story.troubles ?? [];
  const advice = [
    ...troubleAdvice([...troubles, ...(story.silence ?? [])], seen.subject("")),
    ...(story.conditions ?? []).flatMap((type) => conditionAdvice(seen, type)),
    ...notes.flatMap((note) => note.advice),
    ...phaseAdvice[state](seen.subject(story.why)),
  ];
  return {
    namespace: job.metadata.namespace ?? "",
    name: job.metadata.name,
    uid: job.metadata.uid,
    state,
    ...given("since", story.since),
    why: story.why,
    ...given("reason", reasonOf(seen)),
    ...given("jobStatus", status.jobStatus),
    ...given("attempt", status.executionAttempt ?? record?.number),
    attemptsAllowed: (job.spec.backoffLimit ?? 0) + 1,
    ...given("jobId", status.jobId),
    ...given("rayClusterName", status.rayClusterName),
    waits: story.waits ?? [],
    timers: isTimed(state) ? timersOf({ ...seen, observed }) : [],
    attempts: attemptsOf(seen),
    notes: notes.map(({ text }) => text),
    advice: distinct(advice),
  };
}

interface Story {
  readonly since: string | undefined;
  readonly why: string;
  readonly waits?: readonly Wait[];
  readonly troubles?: readonly Trouble[];
  /** Why Ray gives no answer: told among what is waited for already, and met by advice. */
  readonly silence?: readonly Trouble[];
  /** Conditions whose reason has advice here. */
  readonly conditions?: readonly ("SpecValid" | "Started" | "Retrying" | "Suspended" | "Failed")[];
}

/** A phase added to the API does not compile until it is told here. */
const stories: Readonly<Record<State, (seen: Seen) => Story>> = {
  ManagedElsewhere: ({ job }) => ({
    since: job.metadata.creationTimestamp,
    why: `It is managed by ${job.spec.managedBy}; Raykeeper leaves it alone.`,
  }),
  Deleting: deleting,
  New: fresh,
  ValidationFailed: ({ status }) => ({
    since: timeOf(status, "SpecValid") ?? status.endTime,
    why: status.message || "The spec cannot be run.",
    conditions: [],
  }),
  Initializing: starting,
  Waiting: ({ record, status }) => ({
    since: timeOf(status, "Started") ?? record?.startTime,
    why: findCondition(status, "Started")?.message || "It waits for a job that is submitted by hand (InteractiveMode).",
    conditions: [],
  }),
  Running: running,
  Retrying: retrying,
  Suspending: suspending,
  Suspended: suspended,
  Complete: ({ status }) => ({
    since: status.endTime,
    why: status.message || `Ray says ${status.jobStatus ?? "that the job has ended"}.`,
    conditions: status.jobStatus === "SUCCEEDED" ? [] : ["Failed"],
  }),
  Failed: ({ status }) => ({
    since: status.endTime,
    why: findCondition(status, "Failed")?.message || status.message || "It failed; no message tells why.",
    conditions: ["Failed"],
  }),
};

const isTimed = (state: State): boolean => state !== "ManagedElsewhere" && state !== "Deleting";

type Seen = ReturnType<typeof see>;

/** Names the facts that the stories speak of. */
function see(observed: Explained, now: Instant) {
  const { job, pods } = observed;
  const status = statusOf(job);
  const record = currentRecord(observed);
  const found = record ? findCluster(observed, record) : ({ is: "absent" } as Found<RayCluster>);
  const cluster = clusterOf(observed, found, record);
  const head = headFacts(cluster, pods, record?.headPodUID);
  const submitter: Submitter = record ? submitterOf(observed, record, head.pod) : { is: "absent" };
  const some = remains(observed, record);
  const everything = isBlocking(job) || wantsSuspension(job);
  const remnants = left(some, status.jobDeploymentStatus === "Retrying" && !everything ? "owners" : "everything");
  const subject = (message: string): Subject => ({
    job,
    record,
    message,
    head: head.pod && !isLeaving(head.pod) ? head.pod : undefined,
    hasSubmitter: record?.submissionMode === "K8sJobMode" && submitter.is !== "absent",
    remnants,
  });
  return {
    ...observed,
    now,
    status,
    record,
    found,
    cluster,
    head,
    submitter,
    remnants,
    subject,
    state: stateOf(observed),
  };
}

function stateOf({ job }: ObservedRayJob): State {
  if (isElsewhere(job)) return "ManagedElsewhere";
  if (job.metadata.deletionTimestamp) return "Deleting";
  const phase = statusOf(job).jobDeploymentStatus || "New";
  return phase in stories ? phase : "New";
}

/** The cluster that the attempt runs on: its own, or the selected one. */
function clusterOf(
  { rayClusters }: ObservedRayJob,
  found: Found<RayCluster>,
  record: AttemptRecord | undefined,
): Stored<RayCluster> | undefined {
  if (isSelected(record)) return rayClusters.find(({ metadata }) => metadata.name === record?.rayClusterName);
  return found.is === "ours" || found.is === "leftover" ? (found.object as Stored<RayCluster>) : undefined;
}

function deleting({ job, record, remnants }: Seen): Story {
  const mayRun = record?.submissionStartTime !== undefined && !isTerminal(job.status?.jobStatus);
  return {
    since: leavingSince(job),
    why: mayRun
      ? "It is being deleted; Ray is asked to stop its job first."
      : "It is being deleted; what it has made goes with it.",
    waits: remnantWaits(remnants),
  };
}

function fresh({ job, remnants, settings, status, now }: Seen): Story {
  const problem = validateRayJob(job, settings);
  const age = since(fromWire(job.metadata.creationTimestamp) ?? now, now);
  const unknown = status.jobDeploymentStatus ? `Its phase, ${status.jobDeploymentStatus}, is of another version. ` : "";
  return {
    since: job.metadata.creationTimestamp,
    why: `${unknown}The operator has not taken it up ${age > 10_000 ? "yet: is it running?" : "yet."}${problem ? ` It will be refused: ${problem.text}` : ""}`,
    waits: remnantWaits(remnants),
  };
}

function starting(seen: Seen): Story {
  const { status, record, found, cluster, pods } = seen;
  const started = findCondition(status, "Started");
  const base = { since: record?.startTime, conditions: ["Started"] as const };
  const name = record?.rayClusterName;
  const told = started?.status === "False" && started.message ? started.message : waitingFor(name);
  if (isSelected(record)) {
    if (!cluster) {
      const text = `The RayCluster ${name ?? "that clusterSelector selects"} does not exist.`;
      const missing: Wait = { kind: "RayCluster", name: name ?? "", reason: "NotFound", text };
      return { ...base, why: told, waits: [missing], troubles: [{ reason: "RayClusterNotFound", message: text }] };
    }
  } else if (found.is === "stranger" || found.is === "leftover") {
    const text =
      found.is === "stranger"
        ? `RayCluster ${name} exists and does not belong to this RayJob.`
        : `RayCluster ${name} of an earlier attempt, or of a RayJob that is gone, must go first.`;
    return { ...base, why: told, waits: [{ kind: "RayCluster", name: name ?? "", ...going(found.object), text }] };
  }
  if (!cluster) return { ...base, why: told };
  const ready = record ? readinessFor(record, cluster, pods) : readiness(cluster, pods);
  if (ready.ready) {
    const silent = status.jobStatusCheckFailureStartTime;
    return {
      ...base,
      why: silent ? told : `${upText(record, name)}; Ray's dashboard is being asked for its session.`,
      ...(silent && { silence: [{ reason: "RaySilent", message: told }] }),
      waits: [
        {
          kind: "Ray",
          name: status.dashboardURL || name || "",
          ...given("since", silent),
          text: silent ? "Ray's dashboard does not answer." : "Ray's dashboard has not told its session yet.",
        },
      ],
    };
  }
  const troubles = [...podTroubles(seen), ...clusterTroubles(cluster)];
  // The operator's words may be seconds old, or of an operator that did not look at events.
  const why =
    troubles.length > 0 && ready.why === waitingFor(name)
      ? `${ready.why.slice(0, -1)}: ${telling(troubles[0]!)}`
      : ready.why;
  return { ...base, why, waits: podWaits(seen, troubles), troubles };
}

function running(seen: Seen): Story {
  const { status, record, head } = seen;
  const silent = status.jobStatusCheckFailureStartTime;
  const troubles = [...podTroubles(seen), ...(record?.observedTime ? [] : submitterTroubles(seen))];
  const silence = silent ? [{ reason: "RaySilent", message: status.message ?? "" }] : [];
  const base = { troubles, silence, conditions: ["Started"] as const };
  if (record && isBeingStopped(record)) {
    return {
      ...base,
      since: record.endTime,
      why: `${record.message ?? "Its deadline has passed."} The job is being stopped.`,
      waits: [{ kind: "Ray", name: record.jobId ?? "", text: "Ray must say that the job has stopped." }],
    };
  }
  if (isTerminal(status.jobStatus)) {
    const { kind, name } =
      record?.submissionMode === "SidecarMode"
        ? ({ kind: "Container", name: SUBMITTER_CONTAINER } as const)
        : ({ kind: "Job", name: seen.job.metadata.name } as const);
    return {
      ...base,
      since: status.rayJobInfo?.endTime,
      why: `Ray says ${status.jobStatus}; the submitter finishes the log.`,
      waits: [{ kind, name, text: `The submitter, ${kind} ${name}, has not written the whole log yet.` }],
    };
  }
  const waits: Wait[] = troubles.map(asWait);
  if (silent) {
    const text = status.message || "Ray does not answer.";
    waits.unshift({ kind: "Ray", name: status.dashboardURL ?? "", since: silent, text });
  }
  if (record?.driverNodeDeadTime) {
    const text = "The node of the job's driver is dead, or not in Ray's node list any more.";
    waits.push({ kind: "Node", name: "", since: record.driverNodeDeadTime, reason: "DriverNodeDead", text });
  }
  if (seen.cluster && head.lost && record?.submissionStartTime) {
    waits.push({ kind: "Pod", name: head.pod?.metadata.name ?? "", reason: "HeadPodLost", text: `The ${head.lost}.` });
  }
  const since = record?.runningTime ?? record?.observedTime ?? record?.submissionStartTime ?? status.startTime;
  if (record?.runningTime)
    return { ...base, since, why: `Ray says RUNNING: ${status.message || "the job runs"}`, waits };
  if (record?.observedTime)
    return { ...base, since, why: `Ray has job ${record.jobId}, and has not started it yet.`, waits };
  return {
    ...base,
    since,
    why: findCondition(status, "Started")?.message || `Job ${record?.jobId} is being submitted.`,
    waits: waits.length > 0 ? waits : submissionWait(seen),
  };
}

function submissionWait({ record, job, submitter }: Seen): readonly Wait[] {
  switch (record?.submissionMode) {
    case "HTTPMode":
      return [{ kind: "Ray", name: record.jobId ?? "", text: "The operator submits the job to Ray." }];
    case "SidecarMode":
      return [{ kind: "Container", name: SUBMITTER_CONTAINER, text: "The submitter in the head Pod submits the job." }];
    default: {
      const { name } = job.metadata;
      const text =
        submitter.is === "absent"
          ? `The submitter, Job ${name}, is made.`
          : `The submitter, Job ${name}, submits the job.`;
      return [{ kind: "Job", name, text }];
    }
  }
}

function retrying({ job, status, record, remnants }: Seen): Story {
  const condition = findCondition(status, "Retrying");
  if (wantsSuspension(job)) {
    const clock =
      isBlocking(job) && job.spec.retryStrategy?.blockingTimeoutSeconds !== undefined
        ? " Meanwhile the clock of blockingTimeoutSeconds stands still."
        : "";
    return {
      since: condition?.lastTransitionTime ?? record?.endTime,
      why: `The attempt failed, and spec.suspend is set: what is left of it goes on being deleted, and no attempt follows until the RayJob is resumed.${clock}`,
      waits: remnantWaits(remnants),
      conditions: ["Retrying"],
    };
  }
  return {
    since: condition?.lastTransitionTime ?? record?.endTime,
    why: condition?.message || status.message || "The attempt failed; the next one follows.",
    waits: remnantWaits(remnants),
    conditions: ["Retrying"],
  };
}

function suspending({ status, record, remnants }: Seen): Story {
  return {
    since: record?.endTime,
    why: findCondition(status, "Suspended")?.message || "Everything of it is being deleted.",
    waits: remnantWaits(remnants),
    conditions: ["Suspended"],
  };
}

function suspended({ job, status, remnants }: Seen): Story {
  const queue = queueOf(job);
  const since = timeOf(status, "Suspended") ?? status.endTime;
  const invalid = findCondition(status, "SpecValid");
  if (!wantsSuspension(job) && invalid?.status === "False") {
    const why = `It has been resumed, and stays suspended until its spec is valid. ${invalid.message}`;
    return { since, why, waits: remnantWaits(remnants), conditions: ["SpecValid"] };
  }
  if (!wantsSuspension(job)) {
    return { since, why: "It has been resumed; the next attempt is about to start.", waits: remnantWaits(remnants) };
  }
  return {
    since,
    why: queue
      ? `It waits for quota: Kueue holds it in queue ${queue}.`
      : "spec.suspend is set. Nothing of it is left.",
    waits: queue
      ? [{ kind: "LocalQueue", name: queue, ...given("since", since), text: `Kueue must admit it to queue ${queue}.` }]
      : [],
    conditions: ["Suspended"],
  };
}

const timeOf = (status: RayJobStatus, type: Parameters<typeof findCondition>[1]) =>
  findCondition(status, type)?.lastTransitionTime;

/** What the API server or the cluster says that no Pod can show. */
function clusterTroubles({ status }: RayCluster): readonly Trouble[] {
  return (status?.conditions ?? [])
    .filter(
      ({ type, status: value, reason }) => type === "ReplicaFailure" && value === "True" && !/PodFailed$/.test(reason),
    )
    .map(({ reason, message }) => ({ reason, message }));
}

/** Ray's Pods that do not work, head first. */
function podTroubles({ cluster, pods, events }: Seen): readonly Trouble[] {
  if (!cluster) return [];
  return rayPods(cluster, pods).flatMap((pod) => {
    const problem = isLeaving(pod) ? undefined : podProblem(pod, events);
    return problem ? [{ ...problem, pod }] : [];
  });
}

function submitterTroubles(seen: Seen): readonly Trouble[] {
  const { submitter, pods, events } = seen;
  const object = "object" in submitter ? submitter.object : undefined;
  const own = pods.filter((pod) => object && ownerUID(pod) === object.metadata.uid && !isLeaving(pod));
  if (own.length === 0) return submitterRefused(seen, object);
  return own.flatMap((pod) => {
    const problem = podProblem(pod, events);
    return problem ? [{ ...problem, pod }] : [];
  });
}

/** The API server refused the submitter's Job, or the Job's Pod: that is told by events alone. */
function submitterRefused({ job, record, submitter, events }: Seen, made: Stored<Job> | undefined): readonly Trouble[] {
  const start = fromWire(record?.submissionStartTime);
  if (start === undefined || record?.submissionMode !== "K8sJobMode") return [];
  if (submitter.is !== "absent" && submitter.is !== "working") return [];
  const [uid, reason] = made
    ? [made.metadata.uid, "FailedCreate"]
    : [job.metadata.uid, "FailedToCreateRayJobSubmitter"];
  const newest = newestOf(events, [uid], reason, start);
  return newest ? [{ reason, message: newest.note ?? "", object: { kind: "Job", name: job.metadata.name } }] : [];
}

/** The newest event of that reason about one of these objects, not older than `from`. */
const newestOf = (
  events: readonly Stored<Event>[],
  uids: readonly (string | undefined)[],
  reason: string,
  from: Instant,
): Stored<Event> | undefined =>
  events
    .filter((event) => uids.includes(event.regarding?.uid) && event.reason === reason)
    .filter((event) => (fromWire(lastSeen(event)) ?? 0) >= from)
    .sort((one, other) => lastSeen(one).localeCompare(lastSeen(other)))
    .at(-1);

function rayPods(cluster: Stored<RayCluster>, pods: readonly Stored<Pod>[]): readonly Stored<Pod>[] {
  const order = (pod: Pod) => (pod.metadata.labels?.[LABEL.nodeType] === NODE_TYPE.head ? 0 : 1);
  return pods
    .filter((pod) => ownerUID(pod) === cluster.metadata.uid)
    .sort((one, other) => order(one) - order(other) || one.metadata.name.localeCompare(other.metadata.name));
}

/** What stands in the way first, then what is merely not ready yet. */
function podWaits({ cluster, pods }: Seen, troubles: readonly Trouble[]): readonly Wait[] {
  const troubled = new Set(troubles.map(({ pod }) => pod?.metadata.uid));
  const onTheWay = (cluster ? rayPods(cluster, pods) : [])
    .filter((pod) => !isReady(pod) && !troubled.has(pod.metadata.uid))
    .map((pod): Wait => {
      const since = isLeaving(pod) ? leavingSince(pod) : pod.metadata.creationTimestamp;
      const doing = isLeaving(pod) ? "is being deleted" : step(pod);
      return {
        kind: "Pod",
        name: pod.metadata.name,
        ...onNode(pod),
        ...given("since", since),
        text: `${nameOnNode(pod)} ${doing}.`,
      };
    });
  return [...troubles.map(asWait), ...onTheWay];
}

/** Where a Pod is on its way up. */
function step(pod: Pod): string {
  if (!pod.spec?.nodeName) return "has no node yet";
  const init = pod.status?.initContainerStatuses?.find(({ state }) => state?.running);
  if (init) return `runs its init container ${init.name}`;
  const waiting = pod.status?.containerStatuses?.find(({ state }) => state?.waiting);
  if (waiting) return `is being started (${waiting.state?.waiting?.reason ?? "waiting"})`;
  return pod.status?.phase === "Running" ? "runs, and is not ready yet" : "is being started";
}

function asWait(trouble: Trouble): Wait {
  const { pod, reason } = trouble;
  return pod
    ? {
        kind: "Pod",
        name: pod.metadata.name,
        ...onNode(pod),
        ...given("since", pod.metadata.creationTimestamp),
        reason,
        text: telling(trouble),
      }
    : { kind: "RayCluster", name: "", ...trouble.object, reason, text: telling(trouble) };
}

const telling = ({ pod, message }: Trouble): string => (pod ? `Pod ${pod.metadata.name} ${message}.` : message);

/** What is left of an attempt; five by name, then a count. */
function remnantWaits(remnants: readonly Stored[]): readonly Wait[] {
  const ordered = inOrder(remnants);
  const named = ordered.slice(0, NAMED).map(
    (object): Wait => ({
      kind: object.kind ?? "",
      name: object.metadata.name,
      ...onNode(object as Stored<Pod>),
      ...going(object),
      text: `${enumerate([object])} must be gone.`,
    }),
  );
  const more = ordered.length - named.length;
  return more > 0 ? [...named, { kind: "", name: "", text: `${more} more must be gone.` }] : named;
}

const onNode = (pod: Pod): { node?: string } => given("node", pod.spec?.nodeName);
const going = (object: Stored): { since?: string; reason?: string } => {
  const since = leavingSince(object);
  return since ? { since, reason: "Terminating" } : {};
};

/** A rival that has not been heard of for so long may be gone. */
const RECENT = minutes(15);

interface NoteWithAdvice {
  readonly text: string;
  readonly advice: readonly Advice[];
}

function notesOf(seen: Seen): readonly NoteWithAdvice[] {
  const { status, state, job, record } = seen;
  const notes: NoteWithAdvice[] = [];
  const add = (text: string, type?: "SpecValid" | "SubmitterHealthy" | "ResourcesReleased") =>
    notes.push({ text, advice: type ? conditionAdvice(seen, type) : [] });
  const isOver = state === "Complete" || state === "Failed";
  const invalid = findCondition(status, "SpecValid");
  const isTold =
    state === "ValidationFailed" || state === "Retrying" || (state === "Suspended" && !wantsSuspension(job));
  if (invalid?.status === "False" && !isTold) {
    add(`An edit is not valid, and is ignored until it is corrected: ${invalid.message}`, "SpecValid");
  }
  const health = findCondition(status, "SubmitterHealthy");
  if (health?.status === "False" && !isOver) add(`The submitter: ${health.message}`, "SubmitterHealthy");
  const held = findCondition(status, "ResourcesReleased");
  if (isOver && held?.status === "False" && held.message) add(held.message, "ResourcesReleased");
  if (isOver && held?.status === "True") add("Nothing of it holds a machine any more.");
  if (status.jobDeploymentStatus && (status.conditions?.length ?? 0) === 0) {
    const failed = status.failed ?? 0;
    const before =
      record && !status.attempts?.length && failed > 0
        ? ` ${failed} failed ${failed === 1 ? "attempt is" : "attempts are"} counted.`
        : "";
    add(`It was run by KubeRay, which keeps no conditions and no list of attempts.${before}`);
  }
  const rival = newestOf(
    seen.events,
    [job.metadata.uid, seen.cluster?.metadata.uid],
    "AnotherOperator",
    seen.now - RECENT,
  );
  if (rival?.note) add(rival.note);
  if (state !== "Suspended" && state !== "Suspending" && !isOver && job.spec.suspend && !wantsSuspension(job)) {
    add("spec.suspend has no effect without shutdownAfterJobFinishes.");
  }
  return notes;
}

function conditionAdvice(seen: Seen, type: keyof typeof CONDITIONS): readonly Advice[] {
  const { status } = seen;
  const condition = findCondition(status, type);
  // KubeRay's objects have no conditions; their reason tells the cause, if not as finely.
  const reason = condition?.reason ?? (type === "Failed" && status.reason ? causeOf[status.reason] : undefined);
  const adviceHolds = reason && CONDITIONS[type](condition?.status ?? "True");
  return adviceHolds ? adviceFor(type, reason, seen.subject(condition?.message ?? status.message ?? "")) : [];
}

/** For which value a condition's reason is something to act upon. */
const CONDITIONS = {
  SpecValid: (value: string) => value === "False",
  Started: (value: string) => value === "False",
  SubmitterHealthy: (value: string) => value === "False",
  Retrying: (value: string) => value === "True",
  Suspended: () => true,
  ResourcesReleased: (value: string) => value === "False",
  Failed: (value: string) => value === "True",
} as const;

function reasonOf({ status, state }: Seen): string | undefined {
  const failed = findCondition(status, "Failed");
  const retrying = findCondition(status, "Retrying");
  if (state === "Failed" && failed?.status === "True") return failed.reason;
  if (state === "Complete" && failed?.status === "True") return failed.reason;
  if (state === "Retrying" && retrying?.status === "True") return retrying.reason;
  return status.reason || undefined;
}

function attemptsOf({ status, record, now, state }: Seen): readonly AttemptStory[] {
  const records = status.attempts?.length ? status.attempts : record ? [record] : [];
  return records.map((each) => {
    const end =
      each.endTime ?? (each === record && (state === "Complete" || state === "Failed") ? status.endTime : undefined);
    const start = fromWire(each.startTime);
    const until = fromWire(end) ?? now;
    return {
      number: each.number,
      ...given("jobId", each.jobId),
      ...given("rayClusterName", each.rayClusterName),
      outcome: outcomeOf(each, each === records.at(-1) ? status : undefined),
      ...given("reason", each.reason || (each === record && !status.attempts?.length ? status.reason : undefined)),
      ...given("message", each.message),
      ...given("startTime", each.startTime),
      ...given("endTime", end),
      ...given("seconds", start === undefined ? undefined : Math.max(0, Math.round((until - start) / 1000))),
    };
  });
}

/** `current`: the status, of the attempt that it is about. */
function outcomeOf(record: AttemptRecord, current: RayJobStatus | undefined): Outcome {
  const phase = current?.jobDeploymentStatus;
  if (phase === "Running" || phase === "Initializing" || phase === "Waiting") return "under way";
  if (record.message === WAS_SUSPENDED) return "suspended";
  const jobStatus = record.jobStatus ?? current?.jobStatus;
  if (record.reason && jobStatus !== "STOPPED") return "failed";
  if (jobStatus === "SUCCEEDED") return "succeeded";
  if (jobStatus === "STOPPED") return phase === "Failed" ? "failed" : "stopped";
  return jobStatus === "FAILED" || phase === "Failed" || phase === "Retrying" || record.endTime
    ? "failed"
    : "under way";
}

function given<K extends string, V>(key: K, value: V | undefined | ""): { [P in K]?: V } {
  return (value === undefined || value === "" ? {} : { [key]: value }) as { [P in K]?: V };
}
