/**
 * The lives that are explored, a line each: what the user asks for, what the job does, what the user does meanwhile.
 *
 * A further one is a further line; all faults are explored in it.
 */
import { LABEL } from "../../../src/api/labels.ts";
import type { RayJobSpec } from "../../../src/api/rayjob.ts";
import { clusterSpec } from "../../support/manifests.ts";
import { fails, type JobScript, runsForEver, succeeds } from "../fakeRay.ts";
import type { Queueing } from "./kueue.ts";
import { SHARED } from "./selected.ts";

/** What the user, or an accident, does once, when the RayJob's stored version is in this phase (of this attempt). */
export interface Scripted {
  readonly in: string;
  readonly act: string;
  /**
   * The act waits until Ray runs the job; until that is over, and only Ray knows; until a Pod of the present submitter
   * runs; until no worker is there any more.
   */
  readonly when?: "running" | "ended" | "submitter" | "workerless";
}

export interface Lifecycle {
  readonly name: string;
  readonly spec: Partial<RayJobSpec>;
  /** What the jobs do that Ray is given, in order; the last again and again. */
  readonly jobs: readonly JobScript[];
  readonly script: readonly Scripted[];
  /** How it ends when nothing else happens; `gone`: the RayJob is. */
  readonly end: "Complete" | "Failed" | "Suspended" | "gone";
  /**
   * Two operators from the start, of which the elected one leads. Explored are what may happen to leases and leaders,
   * and the ends of a process at its writes; the rest is explored where there is one operator.
   */
  readonly elected?: boolean;
  /** A RayCluster for the RayJob to select: there before it, or made by the script. */
  readonly cluster?: "there" | "later";
  /** Kueue has the RayJob in this queue (kueue.ts). */
  readonly kueue?: Queueing;
  /** With the feature gate SidecarSubmitterRestart. */
  readonly restarts?: boolean;
  /** No node takes a worker, ever. */
  readonly workerless?: boolean;
  /** Pairs of faults are explored here, too. */
  readonly core?: boolean;
}

const HTTP = { submissionMode: "HTTPMode" } as const;
/** Long enough that whatever happens to it happens while it runs. */
const long = succeeds(120_000);
const short = succeeds(3000);
const failing = fails(3000);

type Extra = Partial<Omit<Lifecycle, "name" | "end" | "spec">>;
function life(name: string, end: Lifecycle["end"], spec: Partial<RayJobSpec> = {}, extra: Extra = {}): Lifecycle {
  return { name, end, spec: { rayClusterSpec: clusterSpec(1), ...spec }, jobs: [short], script: [], ...extra };
}

/** On a RayCluster that somebody else made. */
function selecting(name: string, end: Lifecycle["end"], spec: Partial<RayJobSpec> = {}, extra: Extra = {}): Lifecycle {
  const selects = { rayClusterSpec: undefined, clusterSelector: { [LABEL.cluster]: SHARED } };
  return life(`selector-${name}`, end, { ...selects, ...spec }, { cluster: "there", ...extra });
}

/** With the submitter in the head Pod. */
const sidecar = (name: string, end: Lifecycle["end"], spec: Partial<RayJobSpec> = {}, extra: Extra = {}): Lifecycle =>
  life(`sidecar-${name}`, end, { submissionMode: "SidecarMode", ...spec }, extra);

const once = (phase: string, act: string, when?: Scripted["when"]): Scripted[] => [
  { in: phase, act, ...(when && { when }) },
];
const retryable = { backoffLimit: 1 };
/** Somebody holds every Pod of the attempt in Terminating, for two minutes. */
const held = once("Running", "stick", "running");

/** With rules about what is deleted at the end. */
const ruled = (...deletionRules: NonNullable<NonNullable<RayJobSpec["deletionStrategy"]>["deletionRules"]>) => ({
  shutdownAfterJobFinishes: false,
  deletionStrategy: { deletionRules },
});

const stages = ruled(
  { policy: "DeleteWorkers", condition: { jobStatus: "SUCCEEDED", ttlSeconds: 10 } },
  { policy: "DeleteCluster", condition: { jobStatus: "SUCCEEDED", ttlSeconds: 30 } },
  { policy: "DeleteSelf", condition: { jobDeploymentStatus: "Complete", ttlSeconds: 50 } },
);

/** Attempts that never overlap. */
function blocking(name: string, end: Lifecycle["end"], spec: Partial<RayJobSpec> = {}, extra: Extra = {}): Lifecycle {
  const retryStrategy = { type: "BlockingRecreate", ...spec.retryStrategy } as RayJobSpec["retryStrategy"];
  return life(`blocking-${name}`, end, { ...retryable, ...spec, retryStrategy }, { jobs: [failing, short], ...extra });
}

/** A template of the submitter's Pod that says it is of another attempt. */
const claiming = (container: object): RayJobSpec["submitterPodTemplate"] => ({
  metadata: { labels: { [LABEL.executionAttempt]: "7", [LABEL.rayJobUID]: "another" } },
  spec: { containers: [{ name: "mine", ...container }] },
});

/** Its user submits by hand, as soon as the cluster waits for him (life.ts). */
const byHand = (name: string, end: Lifecycle["end"], spec: Partial<RayJobSpec> = {}, extra: Extra = {}): Lifecycle =>
  life(`interactive-${name}`, end, { submissionMode: "InteractiveMode", ...spec }, extra);

/** In a queue of Kueue's. */
const kueue = (name: string, end: Lifecycle["end"], spec: Partial<RayJobSpec> = {}, extra: Extra = {}): Lifecycle =>
  life(`kueue-${name}`, end, spec, { kueue: {}, ...extra });

/** Rules that Kueue's books allow: at the end everything goes at once, and the quota with it. */
const atOnce = {
  shutdownAfterJobFinishes: true,
  deletionStrategy: {
    deletionRules: [
      { policy: "DeleteCluster", condition: { jobDeploymentStatus: "Complete", ttlSeconds: 0 } },
      { policy: "DeleteCluster", condition: { jobDeploymentStatus: "Failed", ttlSeconds: 0 } },
    ],
  },
} as const satisfies Partial<RayJobSpec>;
const SIDECAR = { submissionMode: "SidecarMode" } as const;
const BLOCKING = { retryStrategy: { type: "BlockingRecreate" } } as const;
const preempted = once("Running", "preempt", "running");

export const lifecycles: readonly Lifecycle[] = [
  life("success", "Complete", {}, { core: true }),
  life("success-http", "Complete", HTTP, { core: true }),
  life("failure", "Failed", {}, { jobs: [failing] }),
  life("failure-http", "Failed", HTTP, { jobs: [failing] }),
  life("retry", "Complete", retryable, { jobs: [failing, short], core: true }),
  life("retry-http", "Complete", { ...retryable, ...HTTP }, { jobs: [failing, short], core: true }),
  life("retries-exhausted", "Failed", retryable, { jobs: [failing] }),
  life("retries-exhausted-http", "Failed", { ...retryable, ...HTTP }, { jobs: [failing] }),
  life("suspend-in-initializing", "Complete", {}, { script: once("Initializing", "suspend-resume") }),
  life(
    "suspend-in-running",
    "Complete",
    {},
    { jobs: [long, short], script: once("Running", "suspend-resume", "running"), core: true },
  ),
  life("suspend-in-running-http", "Complete", HTTP, {
    jobs: [long, short],
    script: once("Running", "suspend-resume", "running"),
    core: true,
  }),
  life("suspend-before-submission", "Complete", {}, { script: once("Running", "suspend-resume") }),
  life("suspend-in-retrying", "Complete", retryable, {
    jobs: [failing, short],
    script: once("Retrying", "suspend-resume"),
  }),
  life("suspend-for-good", "Suspended", {}, { jobs: [long], script: once("Running", "suspend", "running") }),
  life("suspended-from-birth", "Complete", { suspend: true }, { script: once("Suspended", "resume") }),
  life("delete-in-initializing", "gone", {}, { script: once("Initializing", "delete") }),
  life("delete-before-submission", "gone", {}, { script: once("Running", "delete") }),
  life("delete-in-running", "gone", {}, { jobs: [long], script: once("Running", "delete", "running"), core: true }),
  life("delete-in-running-http", "gone", HTTP, {
    jobs: [long],
    script: once("Running", "delete", "running"),
    core: true,
  }),
  life("delete-in-retrying", "gone", retryable, { jobs: [failing, short], script: once("Retrying", "delete") }),
  life(
    "delete-in-suspending",
    "gone",
    {},
    { jobs: [long], script: [...once("Running", "suspend", "running"), ...once("Suspending", "delete")] },
  ),
  life(
    "delete-in-suspended",
    "gone",
    {},
    { jobs: [long], script: [...once("Running", "suspend", "running"), ...once("Suspended", "delete")] },
  ),
  life("delete-when-complete", "gone", {}, { script: once("Complete", "delete") }),
  life("deadline-in-initializing", "Failed", { activeDeadlineSeconds: 2 }),
  life("deadline-met", "Complete", { activeDeadlineSeconds: 120 }),
  life("deadline-in-running", "Failed", { activeDeadlineSeconds: 20, backoffLimit: 2 }, { jobs: [runsForEver] }),
  life("deadline-in-running-http", "Failed", { activeDeadlineSeconds: 20, ...HTTP }, { jobs: [runsForEver] }),
  life("deadline-before-running", "Failed", { preRunningDeadlineSeconds: 2 }),
  life(
    "deadline-in-second-attempt",
    "Failed",
    { activeDeadlineSeconds: 25, ...retryable },
    { jobs: [failing, runsForEver] },
  ),
  life("head-lost", "Complete", retryable, {
    jobs: [long, short],
    script: once("Running", "delete-head", "running"),
    core: true,
  }),
  life(
    "head-lost-http",
    "Complete",
    { ...retryable, ...HTTP },
    { jobs: [long, short], script: once("Running", "delete-head", "running"), core: true },
  ),
  life("head-lost-for-good", "Failed", {}, { jobs: [long], script: once("Running", "evict-head", "running") }),
  life("head-silent-for-a-minute", "Complete", retryable, {
    jobs: [long, short],
    script: once("Running", "hush-head", "running"),
  }),
  life("submitter-lost-early", "Complete", {}, { script: once("Running", "evict-submitter", "submitter"), core: true }),
  life(
    "submitter-lost-late",
    "Complete",
    { submitterConfig: { backoffLimit: 0 } },
    { jobs: [succeeds(15_000)], script: once("Running", "evict-submitter", "running"), core: true },
  ),
  life(
    "submitter-deleted-late",
    "Complete",
    {},
    { jobs: [succeeds(15_000)], script: once("Running", "delete-submitter", "running") },
  ),
  life(
    "submitter-deleted-twice",
    "Complete",
    {},
    {
      jobs: [succeeds(25_000)],
      script: [
        ...once("Running", "delete-submitter", "running"),
        ...once("Running", "delete-submitter", "submitter"),
        ...once("Running", "delete-submitter", "submitter"),
      ],
    },
  ),
  life("own-template", "Complete", { ...retryable, submitterPodTemplate: claiming({}) }, { jobs: [failing, short] }),
  life("cluster-deleted", "Complete", retryable, {
    jobs: [long, short],
    script: once("Running", "delete-cluster", "running"),
  }),
  life("cluster-deleted-early", "Complete", {}, { script: once("Initializing", "delete-cluster") }),
  life("recreated", "Complete", {}, { jobs: [long, short], script: once("Running", "recreate", "running") }),
  selecting("success", "Complete", {}, { core: true }),
  selecting("http", "Complete", HTTP),
  selecting("delete-mid-run", "gone", {}, { jobs: [long], script: once("Running", "delete", "running"), core: true }),
  selecting("delete-mid-run-http", "gone", HTTP, { jobs: [long], script: once("Running", "delete", "running") }),
  selecting("delete-before-submission", "gone", {}, { jobs: [long], script: once("Running", "delete") }),
  selecting(
    "suspend-resume",
    "Complete",
    { jobId: "mine" },
    {
      jobs: [long, short],
      script: [...once("Running", "suspend", "running"), ...once("Suspended", "resume")],
      core: true,
    },
  ),
  selecting(
    "suspend-resume-http",
    "Complete",
    { jobId: "mine", ...HTTP },
    { jobs: [long, short], script: [...once("Running", "suspend", "running"), ...once("Suspended", "resume")] },
  ),
  selecting(
    "recreated-with-its-id",
    "Failed",
    { jobId: "mine" },
    { jobs: [long], script: once("Running", "recreate", "running") },
  ),
  selecting(
    "delete-in-suspended",
    "gone",
    {},
    { jobs: [long], script: [...once("Running", "suspend", "running"), ...once("Suspended", "delete")] },
  ),
  selecting("deadline", "Failed", { activeDeadlineSeconds: 20 }, { jobs: [runsForEver] }),
  selecting("head-lost", "Failed", {}, { jobs: [long], script: once("Running", "delete-head", "running") }),
  selecting(
    "cluster-missing-then-created",
    "Complete",
    {},
    {
      cluster: "later",
      script: once("Initializing", "make-cluster"),
    },
  ),
  life("recreated-http", "Complete", HTTP, { jobs: [long, short], script: once("Running", "recreate", "running") }),
  life("rules-in-stages", "gone", stages),
  life("rules-in-stages-http", "gone", { ...HTTP, ...stages }),
  sidecar("rules-in-stages", "gone", stages),
  life(
    "rules-keep-the-head",
    "Failed",
    ruled(
      { policy: "DeleteWorkers", condition: { jobDeploymentStatus: "Failed", ttlSeconds: 10 } },
      { policy: "DeleteSelf", condition: { jobDeploymentStatus: "Complete" } },
    ),
    { jobs: [failing] },
  ),
  life(
    "rules-in-stages-after-failure",
    "gone",
    ruled(
      { policy: "DeleteWorkers", condition: { jobStatus: "FAILED", ttlSeconds: 10 } },
      { policy: "DeleteCluster", condition: { jobDeploymentStatus: "Failed", ttlSeconds: 30 } },
      { policy: "DeleteSelf", condition: { jobDeploymentStatus: "Failed", ttlSeconds: 50 } },
    ),
    { jobs: [failing] },
  ),
  // What is over is not suspended: its stages come all the same.
  life("rules-suspended-between-stages", "gone", stages, { script: once("Complete", "suspend", "workerless") }),
  life("rules-deleted-between-stages", "gone", stages, { script: once("Complete", "delete", "workerless") }),
  life("rules-cluster-deleted-between-stages", "gone", stages, {
    script: once("Complete", "delete-cluster", "workerless"),
  }),
  life("rules-match-nothing", "Failed", ruled({ policy: "DeleteSelf", condition: { jobStatus: "SUCCEEDED" } }), {
    jobs: [failing],
  }),
  selecting("deletes-itself", "gone", {
    shutdownAfterJobFinishes: false,
    deletionStrategy: { onSuccess: { policy: "DeleteSelf" }, onFailure: { policy: "DeleteNone" } },
  }),
  blocking("retry", "Complete", {}, { core: true }),
  blocking("retry-http", "Complete", HTTP),
  blocking("retries-exhausted", "Failed", {}, { jobs: [failing] }),
  blocking("held", "Complete", {}, { script: held }),
  blocking("suspend-at-barrier", "Complete", {}, { script: [...held, ...once("Retrying", "suspend-resume")] }),
  blocking(
    "suspended-for-longer-than-it-may-take",
    "Complete",
    { retryStrategy: { blockingTimeoutSeconds: 60 } },
    { script: [...held, ...once("Retrying", "suspend"), ...once("Suspended", "resume")] },
  ),
  blocking("timeout", "Failed", { retryStrategy: { blockingTimeoutSeconds: 60 } }, { script: held }),
  blocking("opened-by-an-edit", "Complete", {}, { script: [...held, ...once("Retrying", "open-barrier")] }),
  blocking(
    "head-lost",
    "Complete",
    {},
    { jobs: [long, short], script: once("Running", "delete-head", "running"), core: true },
  ),
  blocking("head-lost-http", "Complete", HTTP, {
    jobs: [long, short],
    script: once("Running", "evict-head", "running"),
  }),
  blocking("head-lost-early", "Complete", {}, { jobs: [short], script: once("Initializing", "delete-head") }),
  // A head that is replaced would be given the job by such a command again, which knows no session.
  blocking("own-command", "Complete", {
    submitterPodTemplate: claiming({ command: ["ray"], args: ["job", "submit"] }),
  }),
  blocking("delete-at-barrier", "gone", {}, { script: [...held, ...once("Retrying", "delete")] }),
  byHand("success", "Complete"),
  byHand("told-before", "Complete", { jobId: "raysubmit_1" }),
  byHand("failure", "Failed", {}, { jobs: [failing] }),
  byHand("suspend", "Complete", {}, { jobs: [long, short], script: once("Running", "suspend-resume", "running") }),
  byHand("suspend-in-waiting", "Complete", {}, { script: once("Waiting", "suspend-resume") }),
  byHand("delete", "gone", {}, { jobs: [long], script: once("Running", "delete", "running") }),
  byHand("delete-in-waiting", "gone", {}, { script: once("Waiting", "delete") }),
  byHand("deadline", "Failed", { activeDeadlineSeconds: 20 }, { jobs: [runsForEver] }),
  // He submits all the same, to what is on its way out.
  byHand("deadline-in-waiting", "Failed", { activeDeadlineSeconds: 6 }),
  byHand("pre-running-deadline-in-waiting", "Failed", { preRunningDeadlineSeconds: 6 }),
  byHand("suspend-in-initializing", "Complete", {}, { script: once("Initializing", "suspend-resume") }),
  byHand("suspend-in-waiting-for-good", "Suspended", {}, { script: once("Waiting", "suspend") }),
  byHand("cluster-deleted-in-waiting", "Failed", {}, { script: once("Waiting", "delete-cluster") }),
  byHand("head-lost-in-waiting", "Complete", {}, { script: once("Waiting", "delete-head") }),
  byHand("head-lost", "Failed", {}, { jobs: [long], script: once("Running", "delete-head", "running") }),
  selecting(
    "interactive",
    "gone",
    { submissionMode: "InteractiveMode" },
    {
      jobs: [long],
      script: once("Running", "delete", "running"),
    },
  ),
  sidecar("success", "Complete", {}, { core: true }),
  sidecar("failure", "Failed", {}, { jobs: [failing] }),
  sidecar("retry", "Complete", retryable, { jobs: [failing, short], core: true }),
  sidecar(
    "killed-mid-run",
    "Complete",
    {},
    { jobs: [succeeds(15_000)], script: once("Running", "kill-sidecar", "running"), core: true },
  ),
  // No pairs: a Ray that forgets a job within its session, as none does, would be given it by the sidecar's next start.
  sidecar(
    "killed-mid-run-restarts",
    "Complete",
    {},
    { jobs: [succeeds(15_000)], script: once("Running", "kill-sidecar", "running"), restarts: true },
  ),
  sidecar("killed-early", "Failed", {}, { script: once("Initializing", "kill-sidecar") }),
  sidecar("killed-early-restarts", "Complete", {}, { script: once("Initializing", "kill-sidecar"), restarts: true }),
  sidecar(
    "killed-too-often",
    "Complete",
    {},
    {
      jobs: [succeeds(40_000)],
      script: [1, 2, 3].flatMap(() => once("Running", "kill-sidecar", "running")),
      restarts: true,
    },
  ),
  sidecar(
    "suspend",
    "Complete",
    {},
    { jobs: [long, short], script: once("Running", "suspend-resume", "running"), core: true },
  ),
  sidecar("suspend-in-initializing", "Complete", {}, { script: once("Initializing", "suspend-resume") }),
  sidecar("delete", "gone", {}, { jobs: [long], script: once("Running", "delete", "running"), core: true }),
  sidecar("delete-in-initializing", "gone", {}, { jobs: [long], script: once("Initializing", "delete") }),
  sidecar("deadline", "Failed", { activeDeadlineSeconds: 20 }, { jobs: [runsForEver] }),
  sidecar("deadline-met", "Complete", { activeDeadlineSeconds: 8 }),
  sidecar("pre-running-deadline-met", "Complete", { preRunningDeadlineSeconds: 8, backoffLimit: 2 }),
  sidecar(
    "blocking",
    "Complete",
    { ...retryable, retryStrategy: { type: "BlockingRecreate" } },
    { jobs: [failing, short] },
  ),
  sidecar("deadline-in-initializing", "Failed", { activeDeadlineSeconds: 2 }),
  sidecar("head-lost", "Complete", retryable, {
    jobs: [long, short],
    script: once("Running", "delete-head", "running"),
    core: true,
  }),
  sidecar("head-vanishes-unseen", "Complete", retryable, {
    jobs: [long, short],
    script: once("Initializing", "head-vanishes-unseen"),
  }),
  sidecar("done-before-workers", "Complete", {}, { workerless: true }),
  kueue("admitted", "Complete", {}, { core: true }),
  kueue("admitted-http", "Complete", HTTP),
  kueue("admitted-sidecar", "Complete", SIDECAR),
  kueue("preempted", "Complete", {}, { jobs: [long, short], script: preempted, core: true }),
  kueue("preempted-http", "Complete", HTTP, { jobs: [long, short], script: preempted }),
  kueue("preempted-sidecar", "Complete", SIDECAR, { jobs: [long, short], script: preempted }),
  kueue("preempted-twice", "Complete", {}, { jobs: [long, long, short], script: [...preempted, ...preempted] }),
  kueue("preempted-in-initializing", "Complete", {}, { script: once("Initializing", "preempt") }),
  kueue("preempted-before-submission", "Complete", {}, { script: once("Running", "preempt") }),
  kueue("preempted-in-retrying", "Complete", retryable, {
    jobs: [failing, short],
    script: once("Retrying", "preempt"),
  }),
  kueue(
    "preempted-at-barrier",
    "Complete",
    { ...retryable, ...BLOCKING },
    { jobs: [failing, short], script: [...held, ...once("Retrying", "preempt")] },
  ),
  kueue("preempted-as-it-ends", "Complete", {}, { script: once("Running", "preempt", "ended") }),
  kueue("preempted-while-its-pods-hang", "Complete", {}, { jobs: [long, short], script: [...held, ...preempted] }),
  kueue(
    "preempted-in-waiting",
    "Complete",
    { submissionMode: "InteractiveMode" },
    { script: once("Waiting", "preempt") },
  ),
  kueue("pods-never-ready", "Suspended", {}, { workerless: true, kueue: { readyWithin: 30_000, requeues: 1 } }),
  // While the barrier stands, its Pods are not ready.
  kueue(
    "barrier-for-too-long",
    "Complete",
    { ...retryable, ...BLOCKING },
    { jobs: [failing, short], script: held, kueue: { readyWithin: 45_000 } },
  ),
  kueue("deactivated", "Suspended", {}, { jobs: [long], script: once("Running", "deactivate", "running") }),
  kueue(
    "workload-deleted",
    "Complete",
    {},
    {
      jobs: [long, short],
      script: once("Running", "delete-workload", "running"),
    },
  ),
  kueue("never-admitted", "Suspended", {}, { kueue: { full: true } }),
  kueue("deleted-in-queue", "gone", {}, { kueue: { full: true }, script: once("Suspended", "delete") }),
  kueue("deleted-mid-run", "gone", {}, { jobs: [long], script: once("Running", "delete", "running") }),
  kueue(
    "deleted-while-preempted",
    "gone",
    {},
    {
      jobs: [long],
      script: [...preempted, ...once("Suspending", "delete")],
    },
  ),
  kueue(
    "suspended-by-hand",
    "Complete",
    {},
    {
      jobs: [long, short],
      script: once("Running", "suspend", "running"),
    },
  ),
  kueue("resumed-by-hand", "Suspended", {}, { kueue: { full: true }, script: once("Suspended", "resume") }),
  kueue("retry", "Complete", retryable, { jobs: [failing, short], core: true }),
  kueue("retry-sidecar", "Complete", { ...retryable, ...SIDECAR }, { jobs: [failing, short] }),
  kueue("retries-exhausted", "Failed", retryable, { jobs: [failing] }),
  kueue("rules", "Complete", atOnce),
  kueue("rules-failure", "Failed", { ...atOnce, ...retryable }, { jobs: [failing] }),
  kueue("rules-preempted", "Complete", atOnce, { jobs: [long, short], script: preempted }),
  life("elected-success", "Complete", {}, { elected: true }),
  life("elected-success-http", "Complete", HTTP, { elected: true }),
  life("elected-retry", "Complete", retryable, { jobs: [failing, short], elected: true }),
  life(
    "elected-suspend",
    "Complete",
    {},
    { jobs: [long, short], script: once("Running", "suspend-resume", "running"), elected: true },
  ),
  life("elected-delete", "gone", {}, { jobs: [long], script: once("Running", "delete", "running"), elected: true }),
  life("elected-head-lost", "Complete", retryable, {
    jobs: [long, short],
    script: once("Running", "delete-head", "running"),
    elected: true,
  }),
];

/** Throws when there is none of that name. */
export function lifecycleOf(name: string): Lifecycle {
  const found = lifecycles.find((lifecycle) => lifecycle.name === name);
  if (!found) throw new Error(`there is no lifecycle "${name}"`);
  return found;
}
