/**
 * Why a Pod does not work, in words.
 *
 * Answers: what does kubelet or the scheduler say about this Pod that its user can act on.
 * May not: contain anything that changes while the cause stays the same (ages, counters): the text goes into conditions,
 * and each change of it is a write.
 */
import type { ContainerState, ContainerStatus, Event, Pod } from "../../api/kubernetes.ts";
import { SUBMITTER_CONTAINER } from "../../api/labels.ts";
import { lastWords } from "../lastWords.ts";
import { hasEnded, hasRun, isTerminating, silenceOf } from "./observe.ts";

export interface PodProblem {
  /** CamelCase, as kubelet or the scheduler has it where they name one. */
  readonly reason: string;
  /** A clause that goes on after "Pod x": names container and node. */
  readonly message: string;
  /** The container that is meant, where one is. */
  readonly container?: string;
  /** It has ended: its log is that of the container as it is, or of the one before. */
  readonly ended?: "now" | "before";
}

type Terminated = NonNullable<ContainerState["terminated"]>;

/** Ordinary steps on the way up, not problems. */
export const STARTING: ReadonlySet<string> = new Set(["ContainerCreating", "PodInitializing"]);

interface Row {
  readonly find: (pod: Pod, warnings: readonly Event[]) => PodProblem | undefined;
}

/** First match wins: the cause before its consequences. */
const rows: readonly Row[] = [
  { find: wholePodFailed },
  { find: unschedulable },
  { find: containerCannotStart },
  { find: containerEnded },
  { find: volumeMissing },
  { find: nodeSilent },
];

/**
 * The cause of the Pod's trouble, or undefined when it works or is on its way up. `warnings`: events about this or other
 * Pods, where somebody has looked; without them a volume that cannot be mounted looks like being on the way up.
 */
export function podProblem(pod: Pod, warnings: readonly Event[] = []): PodProblem | undefined {
  for (const row of rows) {
    const problem = row.find(pod, warnings);
    if (problem) return { ...problem, message: problem.message + onNode(pod) };
  }
  return undefined;
}

/** Evicted, preempted, deadline: kubelet's word about the Pod as a whole. */
function wholePodFailed({ status }: Pod): PodProblem | undefined {
  if (status?.phase !== "Failed" || !status.reason) return undefined;
  return { reason: status.reason, message: `has failed: ${sentence(status.reason, status.message)}` };
}

function unschedulable({ status }: Pod): PodProblem | undefined {
  const scheduled = status?.conditions?.find((condition) => condition.type === "PodScheduled");
  if (scheduled?.status !== "False") return undefined;
  const reason = scheduled.reason || "Unschedulable";
  return { reason, message: `cannot be scheduled: ${sentence(reason, scheduled.message)}` };
}

function containerCannotStart(pod: Pod): PodProblem | undefined {
  for (const { word, status } of containers(pod)) {
    const { reason, message } = status.state?.waiting ?? {};
    if (!reason || STARTING.has(reason)) continue;
    // kubelet's text of a crash loop grows with the back-off; how the container ended is what the user needs.
    const ended = status.lastState?.terminated;
    const why = ended ? `${reason}, it last ${ending(ended)}` : sentence(reason, message);
    return {
      reason,
      message: `is not starting: ${word} ${status.name}: ${why}`,
      container: status.name,
      ...(ended && { ended: "before" }),
    };
  }
  return undefined;
}

function containerEnded(pod: Pod): PodProblem | undefined {
  for (const { word, status, lives } of containers(pod)) {
    const now = status.state?.terminated;
    const last = status.ready ? undefined : status.lastState?.terminated;
    const ended = now && (lives || now.exitCode !== 0) ? now : last;
    if (!ended || (ended === last && ended.exitCode === 0)) continue;
    return {
      reason: ended.reason || "Error",
      message: `${hasEnded(pod) ? "has failed" : "is not working"}: ${word} ${status.name} ${ending(ended)}`,
      container: status.name,
      ended: ended === now ? "now" : "before",
    };
  }
  return undefined;
}

/** Reasons of kubelet's and the attach controller's events about volumes; the Pod's status says nothing of them. */
export const VOLUME_EVENTS: ReadonlySet<string> = new Set(["FailedMount", "FailedAttachVolume", "FailedMapVolume"]);

function volumeMissing(pod: Pod, warnings: readonly Event[]): PodProblem | undefined {
  if (!mayLackVolume(pod)) return undefined;
  const about = warnings.filter(
    ({ regarding, reason, note }) =>
      regarding?.uid === pod.metadata.uid && VOLUME_EVENTS.has(reason ?? "") && !SUMMARY.test(note ?? ""),
  );
  const newest = about.sort((one, other) => lastSeen(one).localeCompare(lastSeen(other))).at(-1);
  if (!newest) return undefined;
  const reason = newest.reason ?? "FailedMount";
  return { reason, message: `cannot get a volume: ${sentence(reason, newest.note)}` };
}

/** kubelet's summary after a time: the event before it says why. */
const SUMMARY = /^Unable to attach or mount volumes/;

export const lastSeen = ({ series, deprecatedLastTimestamp, eventTime, metadata }: Event): string =>
  series?.lastObservedTime ?? deprecatedLastTimestamp ?? eventTime ?? metadata.creationTimestamp ?? "";

/**
 * It has a node, and yet no container has begun: an image is being pulled, or a volume is not to be had. Of the newer
 * kubelets' condition only True tells anything: volumes are there.
 */
export function mayLackVolume(pod: Pod): boolean {
  const conditions = pod.status?.conditions ?? [];
  if (conditions.some(({ type, status }) => type === "PodReadyToStartContainers" && status === "True")) return false;
  const statuses = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
  const waits = ({ state, lastState }: ContainerStatus) =>
    !lastState?.terminated && STARTING.has(state?.waiting?.reason ?? "");
  const { phase } = pod.status ?? {};
  return (
    pod.spec?.nodeName !== undefined &&
    !isTerminating(pod) &&
    (phase ?? "Pending") === "Pending" &&
    statuses.every(waits)
  );
}

function nodeSilent(pod: Pod): PodProblem | undefined {
  if (!silenceOf(pod)) return undefined;
  return { reason: "NodeSilent", message: "is out of reach: its node does not report" };
}

/**
 * Init containers first: as long as one fails, the others only wait. `lives`: it is meant to run on. A submitter that has
 * run is left out: its end, good or bad, is no trouble of the Pod's, and its RayJob tells of it.
 */
function containers({ status }: Pod): { word: string; status: ContainerStatus; lives: boolean }[] {
  return [
    ...(status?.initContainerStatuses ?? []).map((status) => ({ word: "init container", status, lives: false })),
    ...(status?.containerStatuses ?? [])
      .filter((one) => one.name !== SUBMITTER_CONTAINER || !hasRun(one))
      .map((status) => ({ word: "container", status, lives: true })),
  ];
}

function ending({ exitCode, reason, message, signal }: Terminated): string {
  if (reason === "OOMKilled")
    return `was killed for using more memory than its limit (OOMKilled, exit code ${exitCode})`;
  const words = lastWords(message);
  const how = signal ? `signal ${signal}` : `exit code ${exitCode}`;
  return `ended with ${how}${reason ? ` (${reason})` : ""}${words ? `: ${shorten(words)}` : ""}`;
}

const onNode = ({ spec }: Pod): string => (spec?.nodeName ? ` (node ${spec.nodeName})` : "");

const sentence = (reason: string, message: string | undefined): string =>
  message ? `${reason}: ${shorten(message)}` : reason;

/** One line of bounded length: kubelet hands on whatever a runtime or a program said. */
const shorten = (text: string): string => {
  const line = text.trim().replace(/\s+/g, " ");
  return line.length > 500 ? `${line.slice(0, 500)}…` : line;
};
