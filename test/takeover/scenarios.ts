/**
 * The states in which KubeRay may be when it is replaced: what a user asked for, what has happened since, and when it is
 * looked at. Used to make the recordings, and to make the same states under Raykeeper for the way back.
 */
import type { RayJobSpec } from "../../src/api/rayjob.ts";
import type { JobScript } from "../sim/fakeRay.ts";
import { fails, succeeds } from "../sim/fakeRay.ts";
import { clusterSpec } from "../support/manifests.ts";

export interface Scenario {
  readonly name: string;
  /** Absent: a RayCluster alone. */
  readonly job?: Partial<RayJobSpec>;
  /** A RayCluster named `shared` is there, too. */
  readonly cluster?: boolean;
  readonly jobs?: () => JobScript[];
  /** Workers never get a node. */
  readonly noWorkers?: boolean;
  /** A finalizer that nobody removes, so that what is deleted stays for a while. */
  readonly held?: boolean;
  /** Looked at when the RayJob (or RayCluster) has come there. */
  readonly at: {
    readonly phase?: string;
    readonly jobStatus?: string;
    readonly failed?: number;
    readonly state?: string;
    /** That the RayCluster is to have, as its status says. */
    readonly workers?: number;
  };
  /** Done when it has come to `first`, before `at` is waited for. */
  readonly first?: Scenario["at"];
  readonly act?: "suspend" | "delete" | "delete a worker" | "suspend the cluster" | "delete the cluster";
}

const own = { rayClusterSpec: clusterSpec(1), shutdownAfterJobFinishes: true } as const;
const RUNNING = { phase: "Running", jobStatus: "RUNNING" } as const;

export const scenarios: readonly Scenario[] = [
  { name: "initializing", job: own, noWorkers: true, at: { phase: "Initializing" } },
  { name: "initializing-cluster", job: own, noWorkers: true, at: { phase: "Initializing", workers: 1 } },
  { name: "running-k8s-job", job: own, at: RUNNING },
  { name: "running-http", job: { ...own, submissionMode: "HTTPMode" }, at: RUNNING },
  { name: "running-sidecar", job: { ...own, submissionMode: "SidecarMode" }, at: RUNNING },
  {
    name: "running-second-attempt",
    job: { ...own, backoffLimit: 2 },
    jobs: () => [fails(200)],
    at: { ...RUNNING, failed: 1 },
  },
  { name: "running-own-id", job: { ...own, jobId: "my-own-id" }, at: RUNNING },
  {
    name: "running-selected",
    cluster: true,
    job: {
      clusterSelector: { "ray.io/cluster": "shared" },
      rayClusterSpec: undefined,
      shutdownAfterJobFinishes: false,
    },
    at: RUNNING,
  },
  {
    name: "running-autoscaling",
    job: { ...own, rayClusterSpec: { ...clusterSpec(1), enableInTreeAutoscaling: true } },
    at: RUNNING,
  },
  {
    name: "running-submitter-template",
    job: {
      ...own,
      submitterPodTemplate: { spec: { restartPolicy: "Never", containers: [{ name: "mine", image: "ray:mine" }] } },
    },
    at: RUNNING,
  },
  {
    name: "running-deletion-rules",
    job: {
      rayClusterSpec: clusterSpec(1),
      shutdownAfterJobFinishes: false,
      deletionStrategy: {
        deletionRules: [{ policy: "DeleteCluster", condition: { jobStatus: "SUCCEEDED", ttlSeconds: 60 } }],
      },
    },
    at: RUNNING,
  },
  { name: "waiting", job: { ...own, submissionMode: "InteractiveMode" }, at: { phase: "Waiting" } },
  { name: "suspending", job: own, held: true, first: RUNNING, act: "suspend", at: { phase: "Suspending" } },
  { name: "suspended", job: own, first: RUNNING, act: "suspend", at: { phase: "Suspended" } },
  {
    name: "retrying",
    job: { ...own, backoffLimit: 1 },
    jobs: () => [fails(200)],
    held: true,
    at: { phase: "Retrying" },
  },
  { name: "complete-shut-down", job: own, jobs: () => [succeeds(200, 100)], at: { phase: "Complete" } },
  {
    name: "complete-with-ttl",
    job: { ...own, ttlSecondsAfterFinished: 30 },
    jobs: () => [succeeds(200, 100)],
    at: { phase: "Complete" },
  },
  {
    name: "complete-kept",
    job: { ...own, shutdownAfterJobFinishes: false },
    jobs: () => [succeeds(200, 100)],
    at: { phase: "Complete" },
  },
  { name: "failed", job: own, jobs: () => [fails(200)], at: { phase: "Failed" } },
  {
    name: "failed-deadline",
    job: { ...own, shutdownAfterJobFinishes: false, activeDeadlineSeconds: 20 },
    first: RUNNING,
    at: { phase: "Failed" },
  },
  { name: "validation-failed", job: { ...own, backoffLimit: -1 }, at: { phase: "ValidationFailed" } },
  { name: "deleting", job: own, held: true, first: RUNNING, act: "delete", at: {} },
  { name: "cluster-ready", cluster: true, at: { state: "ready" } },
  {
    name: "cluster-suspended",
    cluster: true,
    first: { state: "ready" },
    act: "suspend the cluster",
    at: { state: "suspended" },
  },
  { name: "cluster-worker-deleted", cluster: true, first: { state: "ready" }, act: "delete a worker", at: {} },
  {
    name: "cluster-deleting",
    cluster: true,
    held: true,
    first: { state: "ready" },
    act: "delete the cluster",
    at: {},
  },
];
