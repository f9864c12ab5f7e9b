/**
 * Observations for tests: one small RayJob, and the objects around it as they look at each stage of its life.
 *
 * Everything has a default; a test names only what it is about. Times are given as `at("12:00:05")` on one day.
 */
import type { Job, Pod, Service } from "../../api/kubernetes.ts";
import { LABEL } from "../../api/labels.ts";
import type { KubeObject, Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJob, RayJobSpec, RayJobStatus } from "../../api/rayjob.ts";
import { type Decision, type LiveQuestion, questionKey } from "../decision.ts";
import { defaultSettings } from "../settings.ts";
import { fromWire, type Instant, toWire } from "../time.ts";
import { decideRayJob } from "./decide.ts";
import type { ObservedRayJob } from "./observe.ts";
import type { RayAnswer, RayCommand, RayJobStatus as RaysStatus } from "./ray.ts";

const DAY = "2026-01-01";

/** The instant of that time on the day of the tests. */
export const at = (time: string): Instant => fromWire(`${DAY}T${time}Z`)!;
export const wire = (time: string): string => toWire(at(time));

/** When attempts of the tests start. */
export const START = at("12:00:00");
export const NAME = "demo";
export const UID = "uid-demo";
export const CLUSTER = "demo-c0000";
export const JOB_ID = "demo-j0000";
export const SESSION = "session-1";
export const HEAD_UID = "uid-head";

export function rayJob(
  spec: Partial<RayJobSpec> = {},
  status?: RayJobStatus,
  metadata: Partial<KubeObject["metadata"]> = {},
) {
  const job: Stored<RayJob> = {
    apiVersion: "ray.io/v1",
    kind: "RayJob",
    metadata: {
      name: NAME,
      namespace: "default",
      uid: UID,
      resourceVersion: "1",
      generation: 1,
      creationTimestamp: wire("11:59:59"),
      finalizers: ["ray.io/rayjob-finalizer"],
      ...metadata,
    },
    spec: {
      entrypoint: "python train.py",
      submissionMode: "K8sJobMode",
      shutdownAfterJobFinishes: true,
      backoffLimit: 0,
      rayClusterSpec: {
        rayVersion: "2.56.0",
        headGroupSpec: {
          rayStartParams: {},
          template: { spec: { containers: [{ name: "ray-head", image: "rayproject/ray:2.56.0" }] } },
        },
      } as RayCluster["spec"],
      ...spec,
    },
    ...(status ? { status } : {}),
  };
  return job;
}

export function record(changes: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    number: 0,
    jobId: JOB_ID,
    rayClusterName: CLUSTER,
    submissionMode: "K8sJobMode",
    retryStrategy: "Recreate",
    ownsCluster: true,
    startTime: toWire(START),
    ...changes,
  };
}

/** The record of a job that was handed over 30 s after its start. */
export const submitted = (changes: Partial<AttemptRecord> = {}): AttemptRecord =>
  record({ headPodUID: HEAD_UID, raySession: SESSION, submissionStartTime: wire("12:00:30"), ...changes });

/** And that Ray said RUNNING of, 10 s later. */
export const seenRunning = (changes: Partial<AttemptRecord> = {}): AttemptRecord =>
  submitted({ observedTime: wire("12:00:40"), runningTime: wire("12:00:40"), ...changes });

export function statusWith(current: AttemptRecord, changes: Partial<RayJobStatus> = {}): RayJobStatus {
  return {
    jobDeploymentStatus: "Running",
    jobId: current.jobId,
    rayClusterName: current.rayClusterName,
    executionAttempt: current.number,
    attempts: [current],
    startTime: current.startTime,
    dashboardURL: `${CLUSTER}-head-svc.default.svc.cluster.local:8265`,
    ...(current.runningTime ? { jobStatus: "RUNNING", message: "Job is currently running." } : {}),
    failed: 0,
    succeeded: 0,
    observedGeneration: 1,
    conditions: [
      { type: "SpecValid", status: "True", reason: "Valid", message: "", lastTransitionTime: toWire(START) },
      { type: "ResourcesReleased", status: "False", reason: "InUse", message: "", lastTransitionTime: toWire(START) },
    ],
    ...changes,
  };
}

const owner = (kind: string, name: string, uid: string) => [
  { apiVersion: kind === "Job" ? "batch/v1" : "ray.io/v1", kind, name, uid, controller: true },
];

export const labels = (attempt: number) => ({ [LABEL.executionAttempt]: String(attempt), [LABEL.rayJobUID]: UID });

export function rayCluster(changes: { ready?: boolean; metadata?: object; status?: object; spec?: object } = {}) {
  const { ready = true, metadata = {}, status = {}, spec = {} } = changes;
  return {
    apiVersion: "ray.io/v1",
    kind: "RayCluster",
    metadata: {
      name: CLUSTER,
      namespace: "default",
      uid: "uid-cluster",
      resourceVersion: "1",
      creationTimestamp: wire("12:00:01"),
      labels: labels(0),
      ownerReferences: owner("RayJob", NAME, UID),
      ...metadata,
    },
    spec: { ...rayJob().spec.rayClusterSpec, ...spec },
    status: {
      ...(ready ? { state: "ready" } : {}),
      conditions: [
        {
          type: "HeadPodReady",
          status: ready ? "True" : "False",
          reason: ready ? "HeadPodRunningAndReady" : "ContainersNotReady",
          message: "",
          lastTransitionTime: wire("12:00:20"),
        },
      ],
      ...status,
    },
  } as Stored<RayCluster>;
}

export function headPod(changes: { metadata?: object; status?: object } = {}) {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: `${CLUSTER}-head`,
      namespace: "default",
      uid: HEAD_UID,
      resourceVersion: "1",
      creationTimestamp: wire("12:00:02"),
      labels: { ...labels(0), [LABEL.cluster]: CLUSTER, [LABEL.nodeType]: "head" },
      ownerReferences: owner("RayCluster", CLUSTER, "uid-cluster"),
      ...changes.metadata,
    },
    spec: { nodeName: "node-1", containers: [{ name: "ray-head" }] },
    status: {
      phase: "Running",
      conditions: [{ type: "Ready", status: "True", lastTransitionTime: wire("12:00:20") }],
      containerStatuses: [{ name: "ray-head", state: { running: { startedAt: wire("12:00:10") } } }],
      ...changes.status,
    },
  } as unknown as Stored<Pod>;
}

type SubmitterStage = "working" | "complete" | "failed";

export function submitterJob(
  stage: SubmitterStage = "working",
  changes: { metadata?: object; at?: string; status?: object } = {},
) {
  const ended = { status: "True", lastTransitionTime: wire(changes.at ?? "12:05:00") };
  const conditions = {
    working: [],
    complete: [{ type: "Complete", ...ended }],
    failed: [
      {
        type: "Failed",
        reason: "BackoffLimitExceeded",
        message: "Job has reached the specified backoff limit",
        ...ended,
      },
    ],
  };
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      name: NAME,
      namespace: "default",
      uid: "uid-submitter",
      resourceVersion: "1",
      creationTimestamp: wire("12:00:31"),
      labels: labels(0),
      ownerReferences: owner("RayJob", NAME, UID),
      ...changes.metadata,
    },
    spec: { backoffLimit: 2, template: {} },
    status: { active: stage === "working" ? 1 : 0, conditions: conditions[stage], ...changes.status },
  } as Stored<Job>;
}

export function headService(changes: { metadata?: object; cluster?: string } = {}) {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      name: `${NAME}-head-svc`,
      namespace: "default",
      uid: "uid-service",
      resourceVersion: "1",
      creationTimestamp: wire("12:00:31"),
      labels: labels(0),
      ownerReferences: owner("RayCluster", CLUSTER, "uid-cluster"),
      ...changes.metadata,
    },
    spec: { selector: { [LABEL.cluster]: changes.cluster ?? CLUSTER } },
  } as Stored<Service>;
}

type Said = { at?: string; session?: string; node?: RayAnswer["driverNode"]; message?: string; endTime?: string };

export function says(
  status: RaysStatus,
  { at: when = "12:10:00", session = SESSION, node = "ALIVE", message, endTime }: Said = {},
): RayAnswer {
  const info = {
    status,
    message: message ?? `Job is ${status}`,
    ...(endTime ? { endTime: at(endTime) } : {}),
    driverNodeId: "node-abc",
  };
  return { requestedAt: at(when), job: { kind: "known", info }, session, driverNode: node };
}

export const unknownToRay = ({ at: when = "12:10:00", session = SESSION }: Said = {}): RayAnswer => ({
  requestedAt: at(when),
  job: { kind: "notFound" },
  session,
  driverNode: "UNKNOWN",
});

export const silence = ({ at: when = "12:10:00" }: Said = {}): RayAnswer => ({
  requestedAt: at(when),
  job: { kind: "none", error: "connect ECONNREFUSED" },
  driverNode: "UNKNOWN",
});

export function observed(changes: Partial<ObservedRayJob> = {}): ObservedRayJob {
  return {
    job: rayJob(),
    settings: { ...defaultSettings, submitterProgram: "print('submit')" },
    rayClusters: [],
    jobs: [],
    services: [],
    pods: [],
    ray: {},
    live: new Map(),
    ...changes,
  };
}

/** A job that is with Ray and well; a test changes what it is about. */
export function whileRunning(
  changes: Partial<ObservedRayJob> & { spec?: Partial<RayJobSpec>; status?: RayJobStatus; answer?: RayAnswer } = {},
): ObservedRayJob {
  const { spec, status = statusWith(seenRunning()), answer = says("RUNNING"), ...rest } = changes;
  return observed({
    job: rayJob(spec, status),
    rayClusters: [rayCluster()],
    pods: [headPod()],
    jobs: [submitterJob()],
    services: [headService()],
    ray: { answer },
    ...rest,
  });
}

/** The answer was asked for because the RayJob is to be suspended. */
export const askedAgain = (seen: ObservedRayJob): ObservedRayJob => ({
  ...seen,
  ray: { ...seen.ray, answer: { ...(seen.ray.answer ?? silence()), occasion: "suspension" } },
});

/** The decision after its live questions were answered from `truth`: by default the cache is right. */
export function decide(
  seen: ObservedRayJob,
  now: Instant,
  truth: Partial<Pick<ObservedRayJob, "job" | "rayClusters" | "jobs" | "services" | "pods">> = {},
): Decision<RayCommand> & { readonly asked: readonly LiveQuestion[] } {
  const world = { ...seen, ...truth };
  const asked: LiveQuestion[] = [];
  const live = new Map(seen.live);
  for (let round = 0; round < 5; round++) {
    const decision = decideRayJob({ ...seen, live }, now);
    if (!decision.ask) return { ...decision, asked };
    for (const question of decision.ask) {
      asked.push(question);
      live.set(questionKey(question), reply(question, world));
    }
  }
  throw new Error("the decision goes on asking");
}

function reply(question: LiveQuestion, world: ObservedRayJob): readonly KubeObject[] {
  const all: Partial<Record<LiveQuestion["kind"], readonly KubeObject[]>> = {
    RayJob: [world.job],
    RayCluster: world.rayClusters,
    Job: world.jobs,
    Service: world.services,
    Pod: world.pods,
  };
  const objects = all[question.kind] ?? [];
  if (question.ask === "warnings" || question.ask === "said") return [];
  return question.ask === "get"
    ? objects.filter((object) => object.metadata.name === question.name)
    : objects.filter((object) =>
        Object.entries(question.labels).every(([key, value]) => object.metadata.labels?.[key] === value),
      );
}

/** The observation after the decision's status was written and nothing else happened. */
export function written(seen: ObservedRayJob, decision: Decision<RayCommand>): ObservedRayJob {
  if (!decision.status) return seen;
  return { ...seen, job: { ...seen.job, status: decision.status as RayJobStatus } };
}

/** For expectations: a condition as `status reason`. */
export function conditionOf(status: object | undefined, type: string): string | undefined {
  const found = (status as RayJobStatus | undefined)?.conditions?.find((condition) => condition.type === type);
  return found && `${found.status} ${found.reason}`;
}

export const messageOf = (status: object | undefined, type: string): string | undefined =>
  (status as RayJobStatus | undefined)?.conditions?.find((condition) => condition.type === type)?.message;

/** For expectations: effects as `do Kind name`, commands as `do`. */
export const doings = (decision: Decision<RayCommand>): string[] =>
  decision.effects.map((effect) => {
    if (effect.do === "create") return `create ${effect.object.kind} ${effect.object.metadata.name}`;
    if ("ref" in effect) return `${effect.do} ${effect.ref.kind} ${effect.ref.name}`;
    return effect.do;
  });

export const reasons = (decision: Decision<RayCommand>): string[] => decision.events.map(({ reason }) => reason);
