// A selected RayCluster (clusterSelector): it is somebody else's, has run other jobs, and stays when this one goes.
import { describe, expect, it } from "vitest";
import { LABEL } from "../../api/labels.ts";
import type { AttemptRecord, RayJobSpec, RayJobStatus } from "../../api/rayjob.ts";
import { rayInterest } from "./interest.ts";
import type { ObservedRayJob } from "./observe.ts";
import type { RayAnswer, RayOutcome } from "./ray.ts";
import {
  askedAgain,
  at,
  CLUSTER,
  conditionOf,
  decide,
  doings,
  headPod,
  JOB_ID,
  messageOf,
  NAME,
  observed,
  rayCluster,
  rayJob,
  reasons,
  record,
  SESSION,
  says,
  seenRunning,
  silence,
  statusWith,
  submitted,
  submitterJob,
  UID,
  unknownToRay,
  wire,
  written,
} from "./testing.ts";

const selector = { [LABEL.cluster]: CLUSTER };
const spec = (changes: Partial<RayJobSpec> = {}): Partial<RayJobSpec> => ({
  rayClusterSpec: undefined,
  clusterSelector: selector,
  shutdownAfterJobFinishes: false,
  ...changes,
});
const theirs = { ownsCluster: false } as const;
/** Nobody's, or somebody else's: never the RayJob's. */
const shared = (metadata: object = {}) => rayCluster({ metadata: { labels: {}, ownerReferences: [], ...metadata } });
const sharedHead = () => headPod({ metadata: { labels: { [LABEL.cluster]: CLUSTER, [LABEL.nodeType]: "head" } } });

const NOW = at("12:10:01");
const statusOf = (decision: { status?: object }): RayJobStatus => (decision.status ?? {}) as RayJobStatus;

interface Scene extends Partial<ObservedRayJob> {
  readonly spec?: Partial<RayJobSpec>;
  readonly status?: Partial<RayJobStatus>;
  readonly record?: AttemptRecord;
  readonly deleted?: string;
}

function scene({ spec: edits, status, record: current = seenRunning(theirs), deleted, ...rest }: Scene = {}) {
  return observed({
    job: rayJob(
      spec(edits),
      statusWith(current, status),
      deleted === undefined ? {} : { deletionTimestamp: wire(deleted) },
    ),
    rayClusters: [shared()],
    pods: [sharedHead()],
    jobs: [submitterJob()],
    ray: { answer: says("RUNNING") },
    ...rest,
  });
}

const initializing = (changes: Scene = {}) =>
  scene({
    record: record(theirs),
    status: { jobDeploymentStatus: "Initializing", dashboardURL: undefined, ...changes.status },
    jobs: [],
    ray: { answer: unknownToRay() },
    ...changes,
  });

const stop = (finishedAt: string | undefined, result: RayOutcome["result"] = "done"): RayOutcome => ({
  startedAt: at(finishedAt ?? "12:10:00"),
  ...(finishedAt && { finishedAt: at(finishedAt), result }),
});

describe("starting on a selected cluster", () => {
  it("journals it as not the RayJob's own, and makes nothing", () => {
    const fresh = observed({ job: rayJob(spec()), rayClusters: [shared()] });
    const decision = decide(fresh, NOW);
    expect(statusOf(decision)).toMatchObject({
      rayClusterName: CLUSTER,
      attempts: [{ rayClusterName: CLUSTER, ownsCluster: false }],
    });
    expect(decision.effects).toEqual([]);
  });

  it("names the missing cluster with its namespace, once, after asking the API server", () => {
    const missing = initializing({ rayClusters: [], pods: [] });
    const lagging = decide(missing, NOW, { rayClusters: [shared()] });
    expect(reasons(lagging)).toEqual([]);
    const decision = decide(missing, NOW);
    expect(messageOf(decision.status, "Started")).toContain(`default/${CLUSTER}`);
    expect(reasons(decision)).toEqual(["RayClusterNotFound"]);
    expect(decision.effects).toEqual([]);
    const again = decide(written(missing, decision), NOW);
    expect([again.status, again.events, again.asked, again.wakeAt]).toEqual([undefined, [], [], undefined]);
  });

  it("waits for one that is being deleted to come again", () => {
    const decision = decide(initializing({ rayClusters: [shared({ deletionTimestamp: wire("12:09:00") })] }), NOW);
    expect(decision.effects).toEqual([]);
    expect(messageOf(decision.status, "Started")).toContain("is being deleted");
  });

  it("hands over where Ray says that it does not know the id", () => {
    const decision = decide(initializing(), NOW);
    expect(statusOf(decision)).toMatchObject({ jobDeploymentStatus: "Running", attempts: [{ raySession: SESSION }] });
  });

  it("does not hand over on silence about the job, though the dashboard tells its session", () => {
    const answer: RayAnswer = { ...silence(), session: SESSION };
    const decision = decide(initializing({ ray: { answer } }), NOW);
    expect(statusOf(decision).jobDeploymentStatus).not.toBe("Running");
  });
});

describe("a job id that Ray knows before anything was submitted", () => {
  const fixed = { jobId: JOB_ID };
  const earlier = { ...submitted(theirs), endTime: wire("12:05:00") };
  const resumed = (answer: RayAnswer, ray: Partial<ObservedRayJob["ray"]> = {}, changes: Partial<AttemptRecord> = {}) =>
    initializing({
      spec: fixed,
      status: {
        jobDeploymentStatus: "Initializing",
        attempts: [
          { ...earlier, ...changes },
          { ...record(theirs), number: 1 },
        ],
        executionAttempt: 1,
      },
      ray: { answer, ...ray },
    });

  it("is somebody else's: the attempt fails, and takes nothing over", () => {
    for (const state of ["RUNNING", "SUCCEEDED"] as const) {
      const decision = decide(initializing({ spec: fixed, ray: { answer: says(state) } }), NOW);
      expect(statusOf(decision)).toMatchObject({ jobDeploymentStatus: "Failed", reason: "SubmissionFailed" });
      expect(statusOf(decision).jobStatus).toBeUndefined();
      expect(statusOf(decision).message).toContain("did not submit");
    }
  });

  it("left by an earlier attempt of this RayJob has its ended record deleted first", () => {
    expect(doings(decide(resumed(says("STOPPED")), NOW))).toEqual(["forget"]);
    const underWay = resumed(says("STOPPED"), { forget: { startedAt: at("12:10:00") } });
    expect(doings(decide(underWay, NOW))).toEqual([]);
    const decision = decide(resumed(unknownToRay()), NOW);
    expect(statusOf(decision).jobDeploymentStatus).toBe("Running");
  });

  it("keeps its record while Ray may still watch it, lest Ray take the next job's supervisor for gone", () => {
    const soon = resumed(says("STOPPED"));
    const justBegun = { ...record(theirs), number: 1, startTime: wire("12:09:58") };
    const job = { ...soon.job, status: { ...soon.job.status, attempts: [earlier, justBegun] } };
    const decision = decide({ ...soon, job }, NOW);
    expect(doings(decision)).toEqual([]);
    expect(decision.wakeAt).toBe(at("12:10:08"));
  });

  it("that still runs is stopped, and its record is not deleted", () => {
    const decision = decide(resumed(says("RUNNING")), NOW);
    expect(doings(decision)).toEqual(["stop"]);
    expect(messageOf(decision.status, "Started")).toContain("still runs in Ray");
    const seen = written(resumed(says("RUNNING")), decision);
    const after = { ...seen, ray: { answer: says("RUNNING", { at: "12:20:00" }), stop: stop("12:10:02") } };
    expect(statusOf(decide(after, at("12:20:01")))).toMatchObject({
      jobDeploymentStatus: "Failed",
      reason: "SubmissionFailed",
    });
  });

  it("is left alone by an operator whose cache is behind: it may be the running job of a later attempt", () => {
    for (const state of ["RUNNING", "SUCCEEDED"] as const) {
      const stale = resumed(says(state));
      const gone = { ...stale.job, status: { ...stale.job.status, jobDeploymentStatus: "Running" as const } };
      expect(doings(decide(stale, NOW, { job: gone }))).toEqual([]);
    }
  });

  it.each([
    ["another session", { raySession: "session-0" }],
    ["another cluster", { rayClusterName: "other" }],
    ["an attempt that submitted nothing", { submissionStartTime: undefined }],
  ])("is not taken for an earlier attempt's of %s", (_, changes) => {
    const decision = decide(resumed(says("STOPPED"), {}, changes), NOW);
    expect(doings(decision)).toEqual([]);
    expect(statusOf(decision).reason).toBe("SubmissionFailed");
  });

  it.each([
    ["has begun to submit", { ...submitted(theirs), startTime: wire("12:00:01") }, "Failed"],
    ["started earlier", { ...record(theirs), startTime: wire("11:59:59") }, "Failed"],
    ["started later", { ...record(theirs), startTime: wire("12:00:01") }, "Running"],
    ["wants another id", { ...submitted(theirs), jobId: "theirs" }, "Running"],
  ])("and that another RayJob wants, which %s", (_, other, phase) => {
    const status = statusWith(other, { jobDeploymentStatus: "Initializing" });
    const neighbour = rayJob(spec(fixed), status, { name: "other", uid: "uid-other" });
    const decision = decide(initializing({ spec: fixed, neighbours: [neighbour] }), NOW);
    expect(statusOf(decision).jobDeploymentStatus).toBe(phase);
  });

  it("is ours, where KubeRay has made the submitter already", () => {
    const { attempts: _, executionAttempt: __, ...flat } = statusWith(record(theirs));
    const status = { ...flat, jobDeploymentStatus: "Initializing" as const };
    const seen = { ...initializing({ jobs: [submitterJob()], ray: { answer: says("RUNNING") } }) };
    const decision = decide({ ...seen, job: rayJob(spec(), status) }, NOW);
    expect(statusOf(decision).jobDeploymentStatus).toBe("Running");
  });
});

describe("stopping the job of a RayJob that is deleted", () => {
  const DELETED = "12:10:00";
  const leaving = (changes: Scene = {}) => scene({ deleted: DELETED, jobs: [], ...changes });
  const lettingGo = ["patch RayJob demo"];

  it("first deletes the submitter, and asks nothing of Ray while it or a Pod of it is there", () => {
    expect(doings(decide(leaving({ jobs: [submitterJob()] }), NOW))).toEqual(["delete Job demo"]);
    const pod = headPod({ metadata: { name: "demo-x", uid: "uid-x", labels: { [LABEL.rayJobUID]: UID } } });
    expect(doings(decide(leaving({ pods: [sharedHead(), pod] }), NOW))).toEqual([]);
    expect(doings(decide(leaving(), NOW, { pods: [pod] }))).toEqual([]);
    expect(doings(decide(leaving(), NOW))).toEqual(["stop"]);
  });

  it("waits for a submission of the operator's own that is under way", () => {
    const http = seenRunning({ ...theirs, submissionMode: "HTTPMode" });
    const ray = { answer: says("RUNNING"), submit: { startedAt: at("12:09:59") } };
    expect(doings(decide(leaving({ record: http, ray }), NOW))).toEqual([]);
    expect(doings(decide(leaving({ record: http }), NOW))).toEqual(["stop"]);
  });

  it.each<[string, Partial<ObservedRayJob["ray"]>, string, boolean]>([
    ["stop not answered yet", { stop: stop(undefined) }, "12:10:05", false],
    ["RUNNING, asked before the stop", { stop: stop("12:10:02"), answer: says("RUNNING") }, "12:10:05", false],
    ["STOPPED", { stop: stop("12:10:02"), answer: says("STOPPED", { at: "12:10:03" }) }, "12:10:05", true],
    ["not found, asked before the stop", { stop: stop("12:10:02"), answer: unknownToRay() }, "12:10:05", false],
    ["not found", { stop: stop("12:10:02"), answer: unknownToRay({ at: "12:10:03" }) }, "12:10:05", true],
    ["another session", { answer: says("RUNNING", { session: "session-2" }) }, "12:10:01", true],
    ["silence", { stop: stop("12:10:02", "unknown"), answer: silence({ at: "12:10:03" }) }, "12:10:59", false],
    ["silence for a minute", { stop: stop("12:10:02", "unknown"), answer: silence() }, "12:11:00", true],
    ["RUNNING for a minute", { stop: stop("12:10:02"), answer: says("RUNNING") }, "12:11:00", true],
  ])("with %s", (_, ray, time, over) => {
    const effects = doings(decide(leaving({ ray }), at(time)));
    expect(effects.includes("patch RayJob demo")).toBe(over);
  });

  it("does not believe a quick not found of a job that Ray has never told of: its submission may be under way", () => {
    const unseen = submitted(theirs);
    const ray = (time: string) => ({ stop: stop("12:10:02"), answer: unknownToRay({ at: time }) });
    expect(doings(decide(leaving({ record: unseen, ray: ray("12:10:05") }), at("12:10:06")))).toEqual([]);
    expect(doings(decide(leaving({ record: unseen, ray: ray("12:10:15") }), at("12:10:16")))).toEqual(lettingGo);
  });

  it("is not sent by an operator whose cache is behind: the id may be a later attempt's by now", () => {
    const suspendingSince = seenRunning({ ...theirs, endTime: wire("12:10:00") });
    const stale = scene({ record: suspendingSince, status: { jobDeploymentStatus: "Suspending" }, jobs: [] });
    expect(doings(decide(stale, NOW))).toEqual(["stop"]);
    const resumed = rayJob(spec(), statusWith(seenRunning({ ...theirs, number: 1 })));
    expect(doings(decide(stale, NOW, { job: resumed }))).toEqual([]);
    const recreated = { ...resumed, metadata: { ...resumed.metadata, uid: "uid-later" } };
    expect(doings(decide(leaving(), NOW, { job: recreated }))).toEqual([]);
  });

  it("sends the stop at the last moment, although the submitter is still there", () => {
    const jobs = [submitterJob("working", { metadata: { deletionTimestamp: wire(DELETED) } })];
    expect(doings(decide(leaving({ jobs }), at("12:10:44")))).toEqual([]);
    expect(doings(decide(leaving({ jobs }), at("12:10:45")))).toEqual(["stop"]);
  });

  it("found by an operator that comes an hour later is still stopped once, and waited for a little", () => {
    const late = at("13:30:00");
    expect(doings(decide(leaving({ ray: {} }), late))).toEqual(["stop"]);
    const asked = { stop: { startedAt: late } };
    expect(doings(decide(leaving({ ray: asked }), late + 14_000))).toEqual([]);
    const given = decide(leaving({ ray: asked }), late + 15_000);
    expect(doings(given)).toEqual(lettingGo);
    expect(given.effects[0]).toMatchObject({ event: { reason: "RayJobStopUnconfirmed" } });
  });

  it("repeats a stop that was not taken, or did nothing", () => {
    const refused = { stop: stop("12:10:02", "refused"), answer: silence() };
    expect(doings(decide(leaving({ ray: refused }), at("12:10:06")))).toEqual([]);
    expect(doings(decide(leaving({ ray: refused }), at("12:10:07")))).toEqual(["stop"]);
    const idle = (asked: string) => ({ stop: stop("12:10:02"), answer: says("RUNNING", { at: asked }) });
    expect(doings(decide(leaving({ ray: idle("12:10:06") }), at("12:10:08")))).toEqual([]);
    expect(doings(decide(leaving({ ray: idle("12:10:07") }), at("12:10:08")))).toEqual(["stop"]);
  });

  it("asks nothing where nothing can run: not submitted, ended by Ray's word, cluster gone", () => {
    expect(doings(decide(leaving({ record: record(theirs), ray: {} }), NOW))).toEqual(lettingGo);
    const ended = seenRunning({ ...theirs, jobStatus: "SUCCEEDED" });
    expect(doings(decide(leaving({ record: ended, ray: {} }), NOW))).toEqual(lettingGo);
    expect(doings(decide(leaving({ rayClusters: [], pods: [], ray: {} }), NOW))).toEqual(lettingGo);
    const lagging = (time: string) =>
      decide(leaving({ rayClusters: [], ray: {} }), at(time), { rayClusters: [shared()] });
    expect(doings(lagging("12:11:00"))).toEqual([]);
    expect(doings(lagging("12:11:15"))).toEqual(lettingGo);
  });

  it("keeps asking Ray about it, as soon as the stop was answered", () => {
    const interest = rayInterest(leaving({ ray: { stop: stop("12:10:02") } }), at("12:10:03"));
    expect(interest).toMatchObject({ pace: "quick", notBefore: at("12:10:02") });
  });
});

describe("suspending on a selected cluster", () => {
  it("is entered without shutdownAfterJobFinishes, says that the cluster stays, and deletes only the submitter", () => {
    const seen = askedAgain(scene({ spec: { suspend: true } }));
    const entering = decide(seen, NOW);
    expect(statusOf(entering).jobDeploymentStatus).toBe("Suspending");
    expect(messageOf(entering.status, "Suspended")).toContain("stays as it is");
    expect(doings(decide(written(seen, entering), NOW))).toEqual(["delete Job demo"]);
    const without = { ...written(seen, entering), jobs: [] };
    expect(doings(decide(without, NOW))).toEqual(["stop"]);
    const answered = { ...without, ray: { answer: says("STOPPED", { at: "12:10:04" }), stop: stop("12:10:03") } };
    const suspended = decide(answered, at("12:10:05"));
    expect(statusOf(suspended)).toMatchObject({
      jobDeploymentStatus: "Suspended",
      attempts: [{ number: 0, jobStatus: "STOPPED" }],
    });
    expect(reasons(suspended)).toEqual(["RayJobStopped", "Suspended"]);
  });

  it("is Suspended after a minute of silence, and says that Ray did not confirm", () => {
    const suspendingSince = seenRunning({ ...theirs, endTime: wire("12:10:00") });
    const seen = scene({ record: suspendingSince, status: { jobDeploymentStatus: "Suspending" }, jobs: [] });
    const silent = { ...seen, ray: { answer: silence(), stop: stop("12:10:02", "unknown") } };
    expect(statusOf(decide(silent, at("12:10:59"))).jobDeploymentStatus).toBeUndefined();
    const decision = decide(silent, at("12:11:00"));
    expect(statusOf(decision).jobDeploymentStatus).toBe("Suspended");
    expect(reasons(decision)).toEqual(["RayJobStopUnconfirmed", "Suspended"]);
  });
});

describe("the end on a selected cluster", () => {
  it("deletes nothing of it, whatever shutdownAfterJobFinishes says, and tells that it stays", () => {
    const seen = scene({
      spec: { shutdownAfterJobFinishes: true },
      ray: { answer: says("SUCCEEDED", { endTime: "12:09:59" }) },
      jobs: [submitterJob("complete")],
    });
    const decision = decide(seen, NOW);
    expect(statusOf(decision).jobDeploymentStatus).toBe("Complete");
    expect(messageOf(decision.status, "ResourcesReleased")).toContain("is not this RayJob's, and stays");
    const over = decide(written(seen, decision), at("13:00:00"));
    expect(over.effects).toEqual([]);
    expect(conditionOf(over.status, "ResourcesReleased")).toBe("True Released");
  });

  it("that Ray told before the submission was journalled is another job's", () => {
    const unseen = submitted(theirs);
    const told = (time: string) => scene({ record: unseen, ray: { answer: says("STOPPED", { at: time }) }, jobs: [] });
    expect(statusOf(decide(told("12:00:30"), at("12:00:31"))).jobDeploymentStatus).not.toBe("Complete");
    expect(statusOf(decide(told("12:00:31"), at("12:00:32"))).jobDeploymentStatus).toBe("Complete");
    const interest = rayInterest(told("12:00:30"), at("12:00:31"));
    expect(interest?.notBefore).toBe(at("12:00:31"));
  });

  it("of the cluster is told in words", () => {
    const decision = decide(scene({ rayClusters: [], pods: [], ray: { answer: silence() } }), NOW);
    expect(conditionOf(decision.status, "Failed")).toBe("True RayClusterLost");
    expect(statusOf(decision).message).toContain("which clusterSelector names, was deleted");
  });

  it("whether it is fault tolerant is learnt from the cluster: a lost head is waited for", () => {
    const ft = (spec: object) => ({
      ...shared(),
      spec: { ...shared().spec, ...spec },
      metadata: { ...shared().metadata },
    });
    const lost = (rayClusters: ObservedRayJob["rayClusters"]) =>
      decide(scene({ rayClusters, pods: [], ray: { answer: silence() } }), NOW);
    expect(conditionOf(lost([ft({})]).status, "Failed")).toBe("True HeadPodLost");
    expect(conditionOf(lost([ft({ gcsFaultToleranceOptions: {} })]).status, "Failed")).toBeUndefined();
  });

  it("failed attempts are not retried, whatever backoffLimit an edit asks for", () => {
    const decision = decide(scene({ spec: { backoffLimit: 3 }, ray: { answer: says("FAILED") }, jobs: [] }), NOW);
    expect(statusOf(decision).jobDeploymentStatus).toBe("Failed");
  });

  it(`the deadline deletes the submitter of ${NAME} first, then stops the Ray job`, () => {
    const noticed = seenRunning({ ...theirs, endTime: wire("12:10:00"), reason: "DeadlineExceeded" });
    const seen = scene({ record: noticed, spec: { activeDeadlineSeconds: 300 } });
    expect(doings(decide(seen, NOW))).toEqual(["delete Job demo"]);
    expect(doings(decide({ ...seen, jobs: [] }, NOW))).toEqual(["stop"]);
    const silent = { ...seen, jobs: [], ray: { answer: silence(), stop: stop("12:10:02", "unknown") } };
    // Longer than on a cluster of its own, which would take the job along.
    const early = { ...silent, ray: { ...silent.ray, answer: silence({ at: "12:10:50" }) } };
    expect(decide(early, at("12:10:59")).status).toBeUndefined();
    const decision = decide(silent, at("12:11:00"));
    expect(statusOf(decision)).toMatchObject({ jobDeploymentStatus: "Failed", reason: "DeadlineExceeded" });
    expect(reasons(decision)).toContain("RayJobStopUnconfirmed");
  });
});
