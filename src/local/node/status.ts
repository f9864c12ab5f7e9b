/**
 * A Pod's status, from what has become of its containers.
 *
 * May not: read a clock or start anything. podWorker.ts keeps the records and writes what is worked out here.
 */
import type { Container, ContainerState, ContainerStatus, Pod, PodCondition, PodStatus } from "../../api/kubernetes.ts";
import { type Instant, toWire } from "../../domain/time.ts";
import type { ContainerKind } from "./restart.ts";

export interface ContainerRecord {
  readonly container: Container;
  readonly kind: ContainerKind;
  state: ContainerState;
  /** How the run before this one ended. */
  last: ContainerState | undefined;
  restartCount: number;
  started: boolean;
  ready: boolean;
  containerID: string;
  imageID: string;
  /** It has ended and will not run again. */
  over: boolean;
}

export function newRecord(container: Container, kind: ContainerKind, hasInit: boolean): ContainerRecord {
  return {
    container,
    kind,
    state: { waiting: { reason: hasInit ? "PodInitializing" : "ContainerCreating" } },
    last: undefined,
    restartCount: 0,
    started: false,
    ready: false,
    containerID: "",
    imageID: "",
    over: false,
  };
}

export interface StatusFacts {
  readonly hostIP: string;
  readonly startTime: Instant;
  /** Absent until the Pod's network is made. */
  readonly podIP: string | undefined;
  /** The node ended the Pod as a whole: why. */
  readonly failure: { readonly reason: string; readonly message: string } | undefined;
}

export type Phase = "Pending" | "Running" | "Succeeded" | "Failed";

export function phaseOf(records: readonly ContainerRecord[], failed: boolean): Phase {
  const settled = records.every((record) => record.over || record.state.terminated !== undefined || !hasRun(record));
  if (failed && settled) return "Failed";
  const init = records.filter((record) => record.kind === "init");
  if (init.some((record) => record.over && !succeeded(record)) && settled) return "Failed";
  if (records.some((record) => record.kind !== "main" && !initialized(record))) return "Pending";
  const main = records.filter((record) => record.kind === "main");
  if (main.some((record) => record.state.waiting && !record.last)) return "Pending";
  if (!main.every((record) => record.over)) return "Running";
  // Sidecars still end after the last container; until then the Pod has not.
  if (records.some((record) => record.state.running)) return "Running";
  return main.every(succeeded) ? "Succeeded" : "Failed";
}

const hasRun = (record: ContainerRecord) => record.state.running !== undefined || record.last !== undefined;
const succeeded = (record: ContainerRecord) => record.state.terminated?.exitCode === 0;
const initialized = (record: ContainerRecord) =>
  record.kind === "sidecar" ? record.started || record.over : succeeded(record);

/** The whole status; `previous` lends the times of conditions that have not changed. */
export function podStatus(pod: Pod, records: readonly ContainerRecord[], facts: StatusFacts, now: Instant): PodStatus {
  const previous = pod.status;
  const phase = phaseOf(records, facts.failure !== undefined);
  const ended = phase === "Succeeded" || phase === "Failed";
  const init = records.filter((record) => record.kind !== "main");
  const status: PodStatus = {
    phase,
    hostIP: facts.hostIP,
    hostIPs: [{ ip: facts.hostIP }],
    startTime: toWire(facts.startTime),
    qosClass: previous?.qosClass ?? "BestEffort",
    conditions: conditions(records, facts, phase, previous?.conditions ?? [], now),
    containerStatuses: records
      .filter((record) => record.kind === "main")
      .map((record) => containerStatus(record, ended)),
  };
  if (facts.podIP) Object.assign(status, { podIP: facts.podIP, podIPs: [{ ip: facts.podIP }] });
  if (init.length > 0) status.initContainerStatuses = init.map((record) => containerStatus(record, ended));
  if (facts.failure) Object.assign(status, facts.failure);
  return status;
}

function containerStatus(record: ContainerRecord, ended: boolean): ContainerStatus {
  return {
    name: record.container.name,
    image: record.container.image ?? "",
    imageID: record.imageID,
    ...(record.containerID ? { containerID: record.containerID } : {}),
    state: record.state,
    lastState: record.last ?? {},
    ready: record.kind === "init" ? succeeded(record) : record.ready && !ended,
    started: record.started && record.state.running !== undefined,
    restartCount: record.restartCount,
  };
}

function conditions(
  records: readonly ContainerRecord[],
  facts: StatusFacts,
  phase: Phase,
  previous: readonly PodCondition[],
  now: Instant,
): PodCondition[] {
  const ended = phase === "Succeeded" ? "PodCompleted" : phase === "Failed" ? "PodFailed" : undefined;
  const waitingInit = records.filter((record) => record.kind !== "main" && !initialized(record)).map(nameOf);
  const unready = records.filter((record) => record.kind !== "init" && !record.ready).map(nameOf);
  const initializedOnes = waitingInit.length === 0 || phase === "Succeeded";
  const ready = ended === undefined && waitingInit.length === 0 && unready.length === 0;
  const notReady = ended
    ? { reason: ended }
    : { reason: "ContainersNotReady", message: `containers with unready status: [${unready.join(" ")}]` };

  const found: Omit<PodCondition, "lastTransitionTime">[] = [
    { type: "PodReadyToStartContainers", ...truth(facts.podIP !== undefined && ended === undefined) },
    {
      type: "Initialized",
      ...truth(initializedOnes, {
        reason: "ContainersNotInitialized",
        message: `containers with incomplete status: [${waitingInit.join(" ")}]`,
      }),
      ...(initializedOnes && phase === "Succeeded" ? { reason: "PodCompleted" } : {}),
    },
    { type: "Ready", ...truth(ready, notReady) },
    { type: "ContainersReady", ...truth(ready, notReady) },
    { type: "PodScheduled", ...truth(true) },
  ];
  const ours = new Set(found.map((condition) => condition.type));
  return [
    ...found.map((condition): PodCondition => {
      const before = previous.find((old) => old.type === condition.type && old.status === condition.status);
      return { ...condition, lastTransitionTime: before?.lastTransitionTime ?? toWire(now) };
    }),
    ...previous.filter((condition) => !ours.has(condition.type)),
  ];
}

const nameOf = (record: ContainerRecord) => record.container.name;
const truth = (is: boolean, otherwise: { reason?: string; message?: string } = {}) =>
  is ? { status: "True" } : { status: "False", ...otherwise };
