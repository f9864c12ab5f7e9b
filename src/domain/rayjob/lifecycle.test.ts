// A RayJob's phases other than Running: how an attempt starts, is retried, suspended, ended, deleted.
import { describe, expect, it } from "vitest";
import type { Service } from "../../api/kubernetes.ts";
import type { RayJobStatus } from "../../api/rayjob.ts";
import { seconds } from "../time.ts";
import { rayInterest } from "./interest.ts";
import type { ObservedRayJob } from "./observe.ts";
import {
  askedAgain,
  at,
  CLUSTER,
  conditionOf,
  decide,
  doings,
  HEAD_UID,
  headPod,
  headService,
  JOB_ID,
  labels,
  messageOf,
  observed,
  rayCluster,
  rayJob,
  reasons,
  record,
  SESSION,
  START,
  says,
  seenRunning,
  silence,
  statusWith,
  submitted,
  submitterJob,
  unknownToRay,
  whileRunning,
  wire,
  written,
} from "./testing.ts";

const NOW = at("12:10:01");
const phase = (decision: { status?: object }) => (decision.status as RayJobStatus | undefined)?.jobDeploymentStatus;
const statusOf = (decision: { status?: object }) => decision.status as RayJobStatus;

describe("a new RayJob", () => {
  it("gets its finalizer first, in a pass of its own", () => {
    const decision = decide(observed({ job: rayJob({}, undefined, { finalizers: ["user/own"] }) }), START);
    expect(doings(decision)).toEqual(["patch RayJob demo"]);
    expect(decision.effects[0]).toMatchObject({
      patch: { metadata: { finalizers: ["user/own", "ray.io/rayjob-finalizer"] } },
      resourceVersion: "1",
      // A policy that refuses it keeps the job from beginning: the user must read of it.
      failureEvent: { type: "Warning", reason: "FailedToAddFinalizer", note: expect.stringContaining("{error}") },
    });
    expect(decision.status).toBeUndefined();
  });

  it("then its attempt is written down, before anything of it exists", () => {
    const decision = decide(observed(), START);
    expect(decision.effects).toEqual([]);
    expect(statusOf(decision)).toMatchObject({
      jobDeploymentStatus: "Initializing",
      executionAttempt: 0,
      startTime: wire("12:00:00"),
      observedGeneration: 1,
    });
    expect(statusOf(decision).jobId).toMatch(/^demo-[a-z0-9]{5}$/);
    expect(statusOf(decision).rayClusterName).toMatch(/^demo-[a-z0-9]{5}$/);
    expect(statusOf(decision).attempts).toEqual([
      {
        number: 0,
        jobId: statusOf(decision).jobId,
        rayClusterName: statusOf(decision).rayClusterName,
        submissionMode: "K8sJobMode",
        retryStrategy: "Recreate",
        ownsCluster: true,
        startTime: wire("12:00:00"),
      },
    ]);
    expect(reasons(decision)).toEqual(["AttemptStarted"]);
  });

  it("keeps the submission id that its user chose", () => {
    expect(statusOf(decide(observed({ job: rayJob({ jobId: "mine" }) }), START)).jobId).toBe("mine");
  });

  it("born suspended is Suspended and nothing else: no attempt, no name, no finalizer", () => {
    const decision = decide(observed({ job: rayJob({ suspend: true }, undefined, { finalizers: [] }) }), START);
    expect(phase(decision)).toBe("Suspended");
    expect(decision.status).not.toHaveProperty("rayClusterName");
    expect(decision.status).not.toHaveProperty("executionAttempt");
    expect(decision.effects).toEqual([]);
    expect(conditionOf(decision.status, "Suspended")).toBe("True Suspended");
  });

  it.each(["kueue.x-k8s.io/multikueue", "somebody"])(
    "managed by %s is never touched, not even its finalizers",
    (managedBy) => {
      for (const metadata of [{ finalizers: [] }, { deletionTimestamp: wire("12:00:00") }]) {
        const decision = decide(observed({ job: rayJob({ managedBy } as object, undefined, metadata) }), START);
        expect(decision).toMatchObject({ effects: [], events: [] });
        expect(decision.status).toBeUndefined();
      }
    },
  );
});

describe("a spec that cannot be run", () => {
  const invalid = observed({ job: rayJob({ runtimeEnvYAML: "[a, b]" }) });

  it("is refused before any cluster exists, with reason, event and end time", () => {
    const decision = decide(invalid, START);
    expect(statusOf(decision)).toMatchObject({
      jobDeploymentStatus: "ValidationFailed",
      reason: "ValidationFailed",
      endTime: wire("12:00:00"),
    });
    expect(conditionOf(decision.status, "SpecValid")).toBe("False Invalid");
    expect(conditionOf(decision.status, "Failed")).toBe("True ValidationFailed");
    expect(reasons(decision)).toEqual(["InvalidRayJobSpec"]);
  });

  it("is reported once; a second, different mistake is reported, too", () => {
    const told = written(invalid, decide(invalid, START));
    expect(decide(told, at("12:00:01"))).toMatchObject({ effects: [], events: [] });
    const other = { ...told, job: { ...told.job, spec: { ...told.job.spec, runtimeEnvYAML: "", backoffLimit: -1 } } };
    const decision = decide(other, at("12:00:02"));
    expect(statusOf(decision).message).toContain("backoffLimit");
    expect(reasons(decision)).toEqual(["InvalidRayJobSpec"]);
  });

  it("starts afresh when it is corrected", () => {
    const told = written(invalid, decide(invalid, START));
    const corrected = { ...told, job: { ...told.job, spec: rayJob().spec } };
    const decision = decide(corrected, at("12:01:00"));
    expect(statusOf(decision)).toMatchObject({ jobDeploymentStatus: "Initializing", executionAttempt: 0 });
    expect(decision.status).not.toHaveProperty("endTime");
    expect(conditionOf(decision.status, "SpecValid")).toBe("True Valid");
    expect(conditionOf(decision.status, "Failed")).toBeUndefined();
  });

  it("corrected and suspended is no failure any more", () => {
    const told = written(invalid, decide(invalid, START));
    const corrected = { ...told, job: { ...told.job, spec: rayJob({ suspend: true }).spec } };
    const decision = decide(corrected, at("12:01:00"));
    expect(phase(decision)).toBe("Suspended");
    expect(conditionOf(decision.status, "Failed")).toBeUndefined();
    expect(decision.status).not.toHaveProperty("endTime");
  });

  it("is no failure of a suspended job that has run: resumed with it, the job stays suspended until it is corrected", () => {
    const status = statusWith(seenRunning({ endTime: wire("12:01:00") }), {
      jobDeploymentStatus: "Suspended",
      conditions: [
        { type: "SpecValid", status: "True", reason: "Valid", message: "", lastTransitionTime: wire("12:00:00") },
        { type: "Suspended", status: "True", reason: "Suspended", message: "", lastTransitionTime: wire("12:01:00") },
      ],
    });
    const edited = (spec: object, from: ObservedRayJob, generation: number) => ({
      ...from,
      job: rayJob(spec, from.job.status, { generation }),
    });
    const broken = { clusterSelector: { "ray.io/cluster": "c" }, backoffLimit: 3 };
    const resumed = edited(broken, observed({ job: rayJob({ suspend: true }, status) }), 2);
    const refused = decide(resumed, at("12:02:00"));
    expect(phase(refused)).toBe("Suspended");
    expect(conditionOf(refused.status, "SpecValid")).toBe("False Invalid");
    expect(conditionOf(refused.status, "Suspended")).toBe("True Suspended");
    expect(conditionOf(refused.status, "Failed")).toBeUndefined();
    expect(refused.status).not.toHaveProperty("endTime");
    expect(reasons(refused)).toEqual(["InvalidRayJobSpec"]);
    const told = written(resumed, refused);
    expect(decide(told, at("12:02:01"))).toMatchObject({ effects: [], events: [] });
    expect(decide(told, at("12:02:01")).status).toBeUndefined();

    const corrected = decide(edited({}, told, 3), at("12:03:00"));
    expect(statusOf(corrected)).toMatchObject({ jobDeploymentStatus: "Initializing", executionAttempt: 1 });
    expect(conditionOf(corrected.status, "SpecValid")).toBe("True Valid");
    expect(reasons(corrected)).toContain("Resumed");

    const takenBack = decide(edited({ suspend: true }, told, 3), at("12:03:00"));
    expect(phase(takenBack)).toBe("Suspended");
    expect(conditionOf(takenBack.status, "SpecValid")).toBe("True Valid");
  });

  it("refuses a job that was born suspended and never ran, which is suspended no more", () => {
    const born = observed({ job: rayJob({ suspend: true }) });
    const asleep = written(born, decide(born, START));
    const decision = decide(
      { ...asleep, job: rayJob({ backoffLimit: -1 }, asleep.job.status, { generation: 2 }) },
      at("12:01:00"),
    );
    expect(phase(decision)).toBe("ValidationFailed");
    expect(conditionOf(decision.status, "Suspended")).toBe("False NotSuspended");
  });

  it("does not disturb a job that runs: it is said, once, and otherwise ignored", () => {
    const seen = whileRunning();
    const edited = {
      ...seen,
      job: {
        ...seen.job,
        metadata: { ...seen.job.metadata, generation: 2 },
        spec: { ...seen.job.spec, runtimeEnvYAML: "[a]" },
      },
    };
    const decision = decide(edited, NOW);
    expect(phase(decision)).toBe("Running");
    expect(conditionOf(decision.status, "SpecValid")).toBe("False Invalid");
    expect(reasons(decision)).toContain("InvalidRayJobSpec");
    expect(reasons(decide(written(edited, decision), NOW))).not.toContain("InvalidRayJobSpec");
  });
});

const initializing = (changes: Partial<ObservedRayJob> & { spec?: object } = {}) => {
  const { spec, ...rest } = changes;
  const status = statusWith(record(), { jobDeploymentStatus: "Initializing", dashboardURL: undefined });
  return observed({ job: rayJob(spec, status, { labels: { team: "a" }, annotations: { note: "b" } }), ...rest });
};

describe("Initializing", () => {
  it("makes the RayCluster that the record names, after asking whether it is really missing", () => {
    const decision = decide(initializing(), at("12:00:01"));
    expect(doings(decision)).toEqual([`create RayCluster ${CLUSTER}`]);
    expect(decision.asked.map(({ kind }) => kind)).toEqual(["RayJob", "RayCluster"]);
    expect(decision.effects[0]).toMatchObject({
      object: {
        metadata: {
          labels: {
            team: "a",
            "ray.io/originated-from-cr-name": "demo",
            "ray.io/originated-from-crd": "RayJob",
            "ray.io/job-submission-mode": "K8sJobMode",
            "ray.io/execution-attempt": "0",
            "ray.io/rayjob-uid": "uid-demo",
          },
          annotations: { note: "b", "ray.io/execution-attempt": "0" },
          ownerReferences: [{ kind: "RayJob", uid: "uid-demo", controller: true, blockOwnerDeletion: true }],
        },
      },
    });
  });

  it("waits, and says so, when the description of its cluster was taken away before anything was made from it", () => {
    const spec = { rayClusterSpec: undefined, clusterSelector: { "ray.io/cluster": "other" } };
    const decision = decide(initializing({ spec }), at("12:00:01"));
    expect(decision.effects).toEqual([]);
    expect(messageOf(decision.status, "Started")).toContain("spec.rayClusterSpec is gone");
  });

  it("makes none when the cache lags behind a cluster that exists, or behind the RayJob", () => {
    const seen = initializing();
    expect(decide(seen, at("12:00:01"), { rayClusters: [rayCluster()] }).effects).toEqual([]);
    const running = { ...seen.job, status: { ...seen.job.status, jobDeploymentStatus: "Running" as const } };
    expect(decide(seen, at("12:00:01"), { job: running }).effects).toEqual([]);
  });

  it("waits for a leftover of that name, and shows a stranger to the user", () => {
    const leaving = rayCluster({ metadata: { deletionTimestamp: wire("12:00:00") } });
    expect(decide(initializing({ rayClusters: [leaving] }), at("12:00:01")).effects).toEqual([]);
    const stranger = rayCluster({ metadata: { ownerReferences: [] } });
    const decision = decide(initializing({ rayClusters: [stranger] }), at("12:00:01"));
    expect(decision.effects).toEqual([]);
    expect(messageOf(decision.status, "Started")).toContain("does not belong to this RayJob");
    expect(reasons(decision)).toEqual(["FailedToCreateRayCluster"]);
  });

  it("says why a cluster cannot start, and copies its status then", () => {
    const rayClusters = [
      rayCluster({
        ready: false,
        status: {
          conditions: [
            {
              type: "HeadPodReady",
              status: "False",
              reason: "ErrImagePull",
              message: "no such image",
              lastTransitionTime: wire("12:00:05"),
            },
          ],
        },
      }),
    ];
    const decision = decide(initializing({ rayClusters }), at("12:00:06"));
    expect(messageOf(decision.status, "Started")).toBe(
      `Waiting for RayCluster ${CLUSTER}: ErrImagePull: no such image`,
    );
    expect(statusOf(decision).rayClusterStatus).toBeDefined();
  });

  it("writes nothing while the cluster is on its way", () => {
    const seen = initializing({ rayClusters: [rayCluster({ ready: false })] });
    const first = written(seen, decide(seen, at("12:00:02")));
    expect(decide(first, at("12:00:05")).status).toBeUndefined();
  });

  it("waits for a head that is not ready any more, whatever the cluster's state still says", () => {
    const pods = [
      headPod({ status: { conditions: [{ type: "Ready", status: "False", lastTransitionTime: wire("12:01:00") }] } }),
    ];
    const seen = initializing({ rayClusters: [rayCluster()], pods, ray: { answer: unknownToRay({ at: "12:02:00" }) } });
    expect(phase(decide(seen, at("12:02:01")))).not.toBe("Running");
  });

  it("hands over when the cluster is ready and Ray has told its session: both journalled with the phase", () => {
    const seen = initializing({
      rayClusters: [rayCluster()],
      pods: [headPod()],
      ray: { answer: unknownToRay({ at: "12:00:29" }) },
    });
    const decision = decide(seen, at("12:00:30"));
    expect(decision.effects).toEqual([]);
    expect(statusOf(decision)).toMatchObject({
      jobDeploymentStatus: "Running",
      dashboardURL: `${CLUSTER}-head-svc.default.svc.cluster.local:8265`,
      rayClusterStatus: { state: "ready" },
      attempts: [{ headPodUID: HEAD_UID, raySession: SESSION, submissionStartTime: wire("12:00:30") }],
    });
    expect(conditionOf(decision.status, "Started")).toBe("False WaitingForSubmission");
  });

  it("does not take a session that was told before this head's container started", () => {
    const seen = initializing({
      rayClusters: [rayCluster()],
      pods: [headPod()],
      ray: { answer: unknownToRay({ at: "12:00:10" }) },
    });
    expect(phase(decide(seen, at("12:00:30")))).not.toBe("Running");
  });

  it("asks Ray as soon as the cluster is ready, not before", () => {
    const ready = initializing({ rayClusters: [rayCluster()], pods: [headPod()] });
    expect(rayInterest(ready, at("12:00:21"))).toMatchObject({
      pace: "quick",
      target: { attempt: 0, jobId: JOB_ID, dashboard: `${CLUSTER}-head-svc.default.svc.cluster.local:8265` },
    });
    expect(rayInterest(initializing({ rayClusters: [rayCluster({ ready: false })] }), at("12:00:21"))).toBeUndefined();
  });

  it("ends, too, when the dashboard never answers although the cluster is ready", () => {
    let seen = initializing({
      rayClusters: [rayCluster()],
      pods: [headPod()],
      ray: { answer: silence({ at: "12:00:40" }) },
    });
    seen = written(seen, decide(seen, at("12:00:41")));
    expect(messageOf(seen.job.status, "Started")).toContain("does not answer");
    const decision = decide({ ...seen, ray: { answer: silence({ at: "12:05:41" }) } }, at("12:05:42"));
    expect(statusOf(decision)).toMatchObject({
      jobDeploymentStatus: "Failed",
      reason: "JobStatusCheckTimeoutExceeded",
    });
    expect(decision.status).not.toHaveProperty("jobStatus");
  });

  it("a head that is lost and replaced meanwhile has its own time to answer", () => {
    const silent = initializing({
      rayClusters: [rayCluster()],
      pods: [headPod()],
      ray: { answer: silence({ at: "12:00:40" }) },
    });
    let seen = written(silent, decide(silent, at("12:00:41")));
    seen = { ...seen, rayClusters: [rayCluster({ ready: false })], pods: [], ray: {} };
    seen = written(seen, decide(seen, at("12:01:00")));
    const since = (time: string) => [{ type: "Ready", status: "True", lastTransitionTime: wire(time) }];
    const late = headPod({
      metadata: { uid: "uid-head-2", creationTimestamp: wire("12:09:00") },
      status: { conditions: since("12:09:40"), containerStatuses: [] },
    });
    seen = { ...seen, rayClusters: [rayCluster()], pods: [late], ray: { answer: silence({ at: "12:09:55" }) } };
    expect(phase(decide(seen, at("12:09:56")))).not.toBe("Failed");
  });

  it("ends at its preRunningDeadlineSeconds, says what it waited for, and may be retried", () => {
    const seen = initializing({ spec: { preRunningDeadlineSeconds: 10 }, rayClusters: [rayCluster({ ready: false })] });
    expect(decide(seen, at("12:00:09")).wakeAt).toBe(at("12:00:10"));
    const decision = decide(seen, at("12:00:10"));
    expect(statusOf(decision)).toMatchObject({ jobDeploymentStatus: "Failed", reason: "PreRunningDeadlineExceeded" });
    expect(statusOf(decision).message).toContain(
      "The RayJob has passed the preRunningDeadlineSeconds. StartTime: 2026-01-01 12:00:00 +0000 UTC. PreRunningDeadlineSeconds: 10",
    );
    expect(reasons(decision)).toEqual(["DeadlineExceeded", "AttemptFailed"]);
    const again = initializing({ spec: { preRunningDeadlineSeconds: 10, backoffLimit: 1 } });
    expect(phase(decide(again, at("12:00:10")))).toBe("Retrying");
  });

  const failedHeads = (count: number) => {
    const journal = { headgroup: { count, at: wire("12:03:00"), youngest: wire("12:02:50"), generation: 1 } };
    const annotations = { "raykeeper.dev/pod-failures": JSON.stringify(journal) };
    return [rayCluster({ ready: false, metadata: { generation: 1, annotations } })];
  };
  const dead = headPod({
    status: {
      phase: "Failed",
      conditions: [],
      containerStatuses: [{ name: "ray-head", state: { terminated: { exitCode: 127, reason: "Error" } } }],
    },
  });

  it("waits for a head that has failed five times, and no longer when it has six times", () => {
    const seen = (count: number) => initializing({ rayClusters: failedHeads(count), pods: [dead] });
    expect(phase(decide(seen(5), at("12:03:01")))).toBe("Initializing");
    const decision = decide(seen(6), at("12:03:01"));
    expect(statusOf(decision)).toMatchObject({
      jobDeploymentStatus: "Failed",
      reason: "SubmissionFailed",
      message: `RayCluster ${CLUSTER} does not start: its head has failed 6 times in a row; Pod ${CLUSTER}-head has failed: container ray-head ended with exit code 127 (Error) (node node-1).`,
    });
    expect(conditionOf(statusOf(decision), "Failed")).toBe("True HeadPodFailed");
    expect(reasons(decision)).toEqual(["AttemptFailed"]);
  });

  it("gives the seventh head its chance, whatever became of the six before", () => {
    const seen = initializing({ rayClusters: failedHeads(6), pods: [headPod({ status: { phase: "Pending" } })] });
    expect(phase(decide(seen, at("12:06:00")))).toBe("Initializing");
  });

  it("may be tried again on another cluster when its head cannot live", () => {
    const seen = initializing({ spec: { backoffLimit: 1 }, rayClusters: failedHeads(6), pods: [dead] });
    expect(phase(decide(seen, at("12:03:01")))).toBe("Retrying");
  });

  it("a deadline before Running does not touch a job that runs", () => {
    expect(phase(decide(whileRunning({ spec: { preRunningDeadlineSeconds: 1 } }), NOW))).toBe("Running");
  });

  it("is suspended when asked to", () => {
    expect(phase(decide(initializing({ spec: { suspend: true } }), at("12:00:01")))).toBe("Suspending");
  });
});

describe("HTTPMode", () => {
  const http = (changes: Parameters<typeof whileRunning>[0] = {}) =>
    whileRunning({
      status: statusWith(submitted({ submissionMode: "HTTPMode" })),
      jobs: [],
      answer: unknownToRay(),
      ...changes,
    });

  it("asks before it submits, and submits into the record's session only", () => {
    const decision = decide(http(), NOW);
    expect(decision.effects).toMatchObject([
      { do: "submit", session: SESSION, request: { entrypoint: "python train.py", submission_id: JOB_ID } },
    ]);
    expect(decide({ ...http(), ray: {} }, NOW).effects).toEqual([]);
    expect(decide(http({ answer: silence() }), NOW).effects).toEqual([]);
  });

  it("needs an answer from after the last POST's end before it posts again", () => {
    const posted = (submit: object, when: string) => {
      const seen = http();
      const failing = { ...seen.job, status: { ...seen.job.status, jobStatusCheckFailureStartTime: wire("12:09:00") } };
      return {
        ...seen,
        job: failing,
        ray: { answer: unknownToRay({ at: when }), submit: { startedAt: at("12:09:50"), ...submit } },
      };
    };
    const doing = (submit: object, when: string, now = "12:10:01") => doings(decide(posted(submit, when), at(now)));
    expect(doing({}, "12:10:00")).toEqual([]);
    expect(doing({ finishedAt: at("12:09:55"), result: "unknown" }, "12:09:55")).toEqual([]);
    expect(doing({ finishedAt: at("12:09:55"), result: "unknown" }, "12:09:56")).toEqual(["submit"]);
    expect(doing({ finishedAt: at("12:10:00"), result: "refused" }, "12:10:01")).toEqual([]);
    expect(doing({ finishedAt: at("12:10:00"), result: "refused" }, "12:10:04", "12:10:05")).toEqual(["submit"]);
  });

  it("says at once why Ray does not take the job, and fails after 300 s of it", () => {
    const submit = {
      startedAt: at("12:09:50"),
      finishedAt: at("12:09:51"),
      result: "refused" as const,
      message: "HTTP 500",
    };
    let seen: ObservedRayJob = { ...http(), ray: { answer: unknownToRay(), submit } };
    const first = decide(seen, NOW);
    expect(statusOf(first)).toMatchObject({
      message: "Ray did not take the job: HTTP 500",
      jobStatusCheckFailureStartTime: wire("12:10:01"),
    });
    seen = written(seen, first);
    const decision = decide({ ...seen, ray: { answer: unknownToRay({ at: "12:15:00" }), submit } }, at("12:15:01"));
    expect(statusOf(decision)).toMatchObject({ jobDeploymentStatus: "Failed", reason: "SubmissionFailed" });
  });

  it("writes an accepted submission down when Ray tells nothing more of it", () => {
    const submit = { startedAt: at("12:10:00"), finishedAt: at("12:10:01"), result: "done" as const };
    const seen = { ...http(), ray: { answer: unknownToRay(), submit } };
    expect(decide(seen, at("12:10:02"))).toMatchObject({ effects: [], wakeAt: at("12:10:04") });
    expect(statusOf(decide(seen, at("12:10:04")))).toMatchObject({ jobStatus: "PENDING" });
  });

  it("makes no Kubernetes Job, and does not wait for one", () => {
    const decision = decide(http({ answer: says("SUCCEEDED") }), NOW);
    expect(statusOf(decision)).toMatchObject({ jobDeploymentStatus: "Complete" });
    expect(decision.asked).toEqual([]);
  });

  it.each([{}, { rayJobInfo: { startTime: wire("12:00:40") } }])(
    "never submits a job again that Ray has once known by KubeRay's word (%j)",
    (told) => {
      const { attempts, executionAttempt, ...flat } = statusWith(seenRunning({ submissionMode: "HTTPMode" }), told);
      const seen = whileRunning({
        spec: { submissionMode: "HTTPMode" },
        status: { ...flat, conditions: [] },
        jobs: [],
        answer: unknownToRay(),
      });
      const decision = decide(seen, NOW);
      expect(doings(decision)).not.toContain("submit");
      expect(statusOf(decision)).toMatchObject({ jobDeploymentStatus: "Failed", jobStatus: "FAILED" });
      expect(conditionOf(decision.status, "Failed")).toBe("True RayJobLost");
    },
  );

  it("never submits a job again that Ray has once known", () => {
    const seen = http({ status: statusWith(seenRunning({ submissionMode: "HTTPMode" })) });
    expect(decide(seen, NOW).effects).toEqual([]);
  });
});

describe("the RayJob's head Service", () => {
  it("is made with the submitter and belongs to the RayCluster, so that it goes with it", () => {
    const decision = decide(whileRunning({ services: [] }), NOW);
    const told = written(whileRunning({ services: [] }), decision);
    const made = decide(told, NOW);
    expect(doings(made)).toEqual(["create Service demo-head-svc"]);
    expect(made.effects[0]).toMatchObject({
      object: {
        metadata: { ownerReferences: [{ kind: "RayCluster", uid: "uid-cluster" }] },
        spec: { selector: { "ray.io/cluster": CLUSTER } },
      },
    });
  });

  it("leads to the Pod that the RayCluster's own leads to, and takes no address or port from it", () => {
    const head = rayJob().spec.rayClusterSpec!.headGroupSpec;
    const cluster = rayCluster({
      spec: {
        headGroupSpec: {
          ...head,
          template: { ...head.template, metadata: { labels: { "app.kubernetes.io/name": "mine" } } },
          headService: {
            metadata: { annotations: { note: "b" } },
            spec: {
              type: "NodePort",
              clusterIP: "10.0.0.7",
              ports: [{ name: "web", port: 8265, nodePort: 30001 }],
            },
          },
        },
      },
    });
    const seen = whileRunning({ services: [], rayClusters: [cluster] });
    const [effect] = decide(written(seen, decide(seen, NOW)), NOW).effects;
    const { metadata, spec } = (effect as { object: Service }).object;
    expect(metadata.annotations).toEqual({ note: "b" });
    expect(spec).toMatchObject({ type: "NodePort", selector: { "app.kubernetes.io/name": "mine" } });
    expect(spec).not.toHaveProperty("clusterIP");
    expect(spec?.ports?.filter(({ port }) => port === 8265)).toEqual([{ name: "web", port: 8265 }]);
  });

  it("of that name but a stranger's is left alone, and the job runs on", () => {
    const told = written(whileRunning({ services: [] }), decide(whileRunning({ services: [] }), NOW));
    const decision = decide(told, NOW, { services: [headService({ metadata: { ownerReferences: [] } })] });
    expect(decision.effects).toEqual([]);
  });

  it.each([
    ["is gone", []],
    ["goes", [rayCluster({ metadata: { deletionTimestamp: wire("12:10:00") } })]],
    ["is another of its name by now", [rayCluster({ metadata: { uid: "uid-namesake" } })]],
  ])("is not made again and again while the cache does not know yet that the RayCluster %s", (_, rayClusters) => {
    const told = written(whileRunning({ services: [] }), decide(whileRunning({ services: [] }), NOW));
    const decision = decide(told, NOW, { rayClusters });
    expect(decision).toMatchObject({ effects: [], wakeAt: NOW + seconds(2) });
  });

  it.each([
    ["and leading elsewhere is replaced", "demo-older", ["delete Service demo-head-svc"]],
    ["and leading to the attempt's own head is kept", CLUSTER, []],
  ])("left over from KubeRay %s", (_, cluster, expected) => {
    const ownerReferences = [
      { apiVersion: "ray.io/v1", kind: "RayJob", name: "demo", uid: "uid-demo", controller: true },
    ];
    const services = [headService({ cluster, metadata: { ownerReferences } })];
    const told = written(whileRunning({ services }), decide(whileRunning({ services }), NOW));
    expect(doings(decide(told, NOW))).toEqual(expected);
  });
});

describe("Retrying", () => {
  const failedOnce = (changes: Partial<ObservedRayJob> & { spec?: object } = {}) => {
    const { spec = { backoffLimit: 1 }, ...rest } = changes;
    const ended = seenRunning({ endTime: wire("12:09:00"), jobStatus: "FAILED", reason: "AppFailed" });
    const status = statusWith(ended, {
      jobDeploymentStatus: "Retrying",
      failed: 1,
      jobStatus: "FAILED",
      reason: "AppFailed",
    });
    return observed({ job: rayJob(spec, status), ...rest });
  };

  it("deletes cluster and submitter and waits for both to be gone", () => {
    const decision = decide(failedOnce({ rayClusters: [rayCluster()], jobs: [submitterJob("complete")] }), NOW);
    expect(doings(decision)).toEqual([`delete RayCluster ${CLUSTER}`, "delete Job demo"]);
    expect(decision.effects).toMatchObject([{ ref: { uid: "uid-cluster" } }, { ref: { uid: "uid-submitter" } }]);
    const leaving = [rayCluster({ metadata: { deletionTimestamp: wire("12:10:00") } })];
    expect(decide(failedOnce({ rayClusters: leaving }), NOW)).toMatchObject({ effects: [], events: [] });
  });

  it("begins the next attempt only when the API server says that nothing is left", () => {
    expect(decide(failedOnce(), NOW, { rayClusters: [rayCluster()] }).status).toBeUndefined();
    const decision = decide(failedOnce(), NOW);
    expect(statusOf(decision)).toMatchObject({
      jobDeploymentStatus: "Initializing",
      executionAttempt: 1,
      failed: 1,
      startTime: wire("12:10:01"),
    });
    expect(statusOf(decision).attempts?.map(({ number }) => number)).toEqual([0, 1]);
    expect(statusOf(decision).rayClusterName).not.toBe(CLUSTER);
    expect(statusOf(decision).jobId).not.toBe(JOB_ID);
    expect(decision.status).not.toHaveProperty("jobStatus");
    expect(conditionOf(decision.status, "Retrying")).toBe("False NotRetrying");
  });

  it("names what does not go, and on which node, once that takes longer than usual", () => {
    const rayClusters = [rayCluster({ metadata: { deletionTimestamp: wire("12:09:01") } })];
    expect(decide(failedOnce({ rayClusters }), at("12:09:59")).status).toBeUndefined();
    const slow = decide(failedOnce({ rayClusters }), at("12:10:00"));
    expect(messageOf(slow.status, "Retrying")).toBe(
      `Waiting for RayCluster ${CLUSTER} (terminating since ${wire("12:09:01")}) to be gone.`,
    );
  });

  it("names it, too, after an attempt that KubeRay ended, whose record tells no end", () => {
    const rayClusters = [rayCluster({ metadata: { deletionTimestamp: wire("12:09:00") } })];
    const seen = failedOnce({ rayClusters });
    const { attempts, ...status } = seen.job.status!;
    const underKubeRay = { ...seen, job: { ...seen.job, status: { ...status, conditions: [] } } };
    expect(messageOf(decide(underKubeRay, at("12:09:59")).status, "Retrying")).toBeUndefined();
    expect(messageOf(decide(underKubeRay, at("12:10:00")).status, "Retrying")).toContain(`RayCluster ${CLUSTER}`);
  });

  it("never deletes a cluster of somebody else", () => {
    const others = [rayCluster({ metadata: { ownerReferences: [], labels: {} } })];
    expect(decide(failedOnce({ rayClusters: others }), NOW).effects).toEqual([]);
  });

  it("with suspend set ends in Suspended, when the Pods are gone, too; the number stays", () => {
    const suspended = { backoffLimit: 1, suspend: true };
    expect(phase(decide(failedOnce({ spec: suspended, pods: [headPod()] }), NOW))).toBe("Retrying");
    const decision = decide(failedOnce({ spec: suspended }), NOW);
    expect(statusOf(decision)).toMatchObject({ jobDeploymentStatus: "Suspended", executionAttempt: 0, failed: 1 });
  });

  it("waits, and says so, when the spec has become invalid", () => {
    const seen = failedOnce({ spec: { backoffLimit: 1, runtimeEnvYAML: "[a]" } });
    const edited = { ...seen, job: { ...seen.job, metadata: { ...seen.job.metadata, generation: 2 } } };
    const decision = decide(edited, NOW);
    expect(conditionOf(decision.status, "Retrying")).toBe("True SpecInvalid");
    expect(conditionOf(decision.status, "SpecValid")).toBe("False Invalid");
    expect(phase(decision)).toBe("Retrying");
  });

  it.each([
    [0, "Failed"],
    [1, "Retrying"],
  ])("with backoffLimit %i the first failure leads to %s", (backoffLimit, expected) => {
    expect(phase(decide(whileRunning({ spec: { backoffLimit }, answer: unknownToRay() }), NOW))).toBe(expected);
  });

  it("a retryable failure is never shown as Failed, and the last one counts every attempt", () => {
    const status = statusWith(seenRunning({ number: 2 }), { failed: 2, executionAttempt: 2 });
    const labels = { "ray.io/execution-attempt": "2", "ray.io/rayjob-uid": "uid-demo" };
    const decision = decide(
      whileRunning({
        status,
        spec: { backoffLimit: 2 },
        answer: unknownToRay(),
        rayClusters: [rayCluster({ metadata: { labels } })],
      }),
      NOW,
    );
    expect(statusOf(decision)).toMatchObject({ jobDeploymentStatus: "Failed", failed: 3 });
  });
});

describe("suspending and resuming", () => {
  it("deletes everything, and says Suspended only when no Pod is left", () => {
    let seen = askedAgain(whileRunning({ spec: { suspend: true } }));
    const entering = decide(seen, NOW);
    expect(phase(entering)).toBe("Suspending");
    expect(entering.effects).toEqual([]);
    seen = written(seen, entering);
    expect(doings(decide(seen, NOW))).toEqual([`delete RayCluster ${CLUSTER}`, "delete Job demo"]);
    const podsLeft = { ...seen, rayClusters: [], jobs: [], services: [] };
    expect(decide(podsLeft, NOW)).toMatchObject({ effects: [] });
    expect(decide(podsLeft, NOW).status).toBeUndefined();
    const empty = { ...podsLeft, pods: [] };
    expect(decide(empty, NOW, { pods: [headPod()] }).status).toBeUndefined();
    const suspended = decide(empty, NOW);
    expect(statusOf(suspended)).toMatchObject({ jobDeploymentStatus: "Suspended", executionAttempt: 0, failed: 0 });
    for (const field of ["jobId", "rayClusterName", "dashboardURL", "jobStatus", "message", "rayJobInfo"]) {
      expect(suspended.status).not.toHaveProperty(field);
    }
    expect(conditionOf(suspended.status, "ResourcesReleased")).toBe("True Released");
    const still = written(empty, suspended);
    expect(decide(still, NOW)).toMatchObject({ effects: [], events: [] });
  });

  it("waits for a reconcile of the RayCluster that is under way and may yet make a Pod", () => {
    const seen = askedAgain(whileRunning({ spec: { suspend: true } }));
    const empty = { ...written(seen, decide(seen, NOW)), rayClusters: [], jobs: [], services: [], pods: [] };
    expect(decide({ ...empty, clusterInFlight: true }, NOW).status).toBeUndefined();
    expect(phase(decide({ ...empty, clusterInFlight: false }, NOW))).toBe("Suspended");
  });

  it("waits for the Pods of a submitter that KubeRay made, which bear no label of ours, and for nobody else's", () => {
    const seen = askedAgain(whileRunning({ spec: { suspend: true } }));
    const empty = { ...written(seen, decide(seen, NOW)), rayClusters: [], jobs: [], services: [], pods: [] };
    const pod = headPod({
      metadata: {
        name: "demo-x2c4v",
        labels: { "batch.kubernetes.io/job-name": "demo" },
        ownerReferences: [
          { apiVersion: "batch/v1", kind: "Job", name: "demo", uid: "uid-submitter", controller: true },
        ],
      },
    });
    expect(decide(empty, NOW, { pods: [pod] }).status).toBeUndefined();
    const stranger = submitterJob("working", { metadata: { ownerReferences: [], labels: {} } });
    expect(phase(decide(empty, NOW, { pods: [pod], jobs: [stranger] }))).toBe("Suspended");
  });

  it("is carried through when suspend is taken back meanwhile", () => {
    const suspended = askedAgain(whileRunning({ spec: { suspend: true } }));
    const seen = written(suspended, decide(suspended, NOW));
    const back = { ...seen, job: { ...seen.job, spec: { ...seen.job.spec, suspend: false } } };
    expect(doings(decide(back, NOW))).toContain(`delete RayCluster ${CLUSTER}`);
  });

  it("resumed, it runs again from the start: new names, next number, counters untouched", () => {
    const status = statusWith(seenRunning({ endTime: wire("12:05:00") }), {
      jobDeploymentStatus: "Suspended",
      jobId: undefined,
      rayClusterName: undefined,
      failed: 1,
    });
    const decision = decide(observed({ job: rayJob({}, status) }), NOW);
    expect(statusOf(decision)).toMatchObject({
      jobDeploymentStatus: "Initializing",
      executionAttempt: 1,
      failed: 1,
      startTime: wire("12:10:01"),
    });
    expect(reasons(decision)).toEqual(["Resumed", "AttemptStarted"]);
  });

  it("a job that has just ended is not suspended: its end counts", () => {
    const decision = decide(whileRunning({ spec: { suspend: true }, answer: says("SUCCEEDED") }), NOW);
    expect(phase(decision)).toBe("Complete");
  });

  it("a job of which Ray said before the suspension that it runs may have ended since: Ray is asked once more", () => {
    const seen = whileRunning({ spec: { suspend: true } });
    expect(rayInterest(seen, NOW)?.occasion).toBe("suspension");
    expect(decide(seen, NOW).status).toBeUndefined();
    expect(phase(decide(askedAgain(seen), NOW))).toBe("Suspending");
    expect(phase(decide(askedAgain(whileRunning({ spec: { suspend: true }, answer: silence() })), NOW))).toBe(
      "Suspending",
    );
    expect(rayInterest(whileRunning(), NOW)?.occasion).toBeUndefined();
  });

  it("an edit to suspend that validation refuses does not suspend", () => {
    const decision = decide(whileRunning({ spec: { suspend: true, shutdownAfterJobFinishes: false } }), NOW);
    expect(phase(decision)).toBe("Running");
  });
});

describe("activeDeadlineSeconds", () => {
  const late = (changes: Parameters<typeof whileRunning>[0] = {}) =>
    whileRunning({
      spec: { activeDeadlineSeconds: 300, backoffLimit: 3 },
      answer: says("RUNNING", { at: "12:05:00" }),
      ...changes,
    });
  const PASSED = at("12:05:00");

  it("is noticed after Ray was asked, and written down before anything is stopped", () => {
    expect(phase(decide(late({ answer: says("RUNNING", { at: "12:04:59" }) }), PASSED))).toBe("Running");
    const asking = decide(late({ answer: says("RUNNING", { at: "12:04:59" }) }), PASSED);
    expect(statusOf(asking).reason).toBeUndefined();
    const noticed = decide(late(), PASSED);
    expect(statusOf(noticed)).toMatchObject({
      jobDeploymentStatus: "Running",
      reason: "DeadlineExceeded",
      message:
        "The RayJob has passed the activeDeadlineSeconds. StartTime: 2026-01-01 12:00:00 +0000 UTC. ActiveDeadlineSeconds: 300",
    });
    expect(noticed.effects).toEqual([]);
    expect(reasons(noticed)).toEqual(["DeadlineExceeded"]);
  });

  it("a job that succeeded in time is Complete, however late the operator looks", () => {
    const decision = decide(
      late({ answer: says("SUCCEEDED", { at: "18:00:00" }), jobs: [submitterJob("complete")] }),
      at("18:00:01"),
    );
    expect(phase(decision)).toBe("Complete");
  });

  const stopping = () => written(late(), decide(late(), PASSED));

  it("stops submitter and Ray job, and stays with it though the deadline is extended", () => {
    expect(doings(decide(stopping(), at("12:05:01")))).toEqual(["delete Job demo", "stop"]);
    const seen = stopping();
    const extended = { ...seen, job: { ...seen.job, spec: { ...seen.job.spec, activeDeadlineSeconds: 9000 } } };
    expect(doings(decide(extended, at("12:05:01")))).toEqual(["delete Job demo", "stop"]);
  });

  it("ends with Ray's word, and is not retried", () => {
    const decision = decide({ ...stopping(), ray: { answer: says("STOPPED", { at: "12:05:04" }) } }, at("12:05:05"));
    expect(statusOf(decision)).toMatchObject({
      jobDeploymentStatus: "Failed",
      reason: "DeadlineExceeded",
      jobStatus: "STOPPED",
      failed: 1,
    });
    expect(conditionOf(decision.status, "Failed")).toBe("True DeadlineExceeded");
    expect(reasons(decision)).toEqual(["RayJobStopped", "AttemptFailed"]);
    const gone = { ...stopping(), jobs: [], ray: { answer: says("STOPPED", { at: "12:05:04" }) } };
    expect(messageOf(decide(gone, at("12:05:05")).status, "SubmitterHealthy")).toContain("is being stopped");
  });

  it("a stop that did nothing is sent again", () => {
    const stop = { startedAt: at("12:05:01"), finishedAt: at("12:05:02"), result: "refused" as const };
    const seen = { ...stopping(), jobs: [] };
    expect(
      doings(decide({ ...seen, ray: { answer: says("RUNNING", { at: "12:05:03" }), stop } }, at("12:05:04"))),
    ).toEqual([]);
    expect(
      doings(decide({ ...seen, ray: { answer: says("RUNNING", { at: "12:05:07" }), stop } }, at("12:05:08"))),
    ).toEqual(["stop"]);
  });

  it("waits 30 s for Ray's word and no longer; the status is a terminal pair then, too", () => {
    const stop = { startedAt: at("12:05:01"), finishedAt: at("12:05:13"), result: "unknown" as const };
    const silent = { ...stopping(), ray: { answer: silence({ at: "12:05:29" }), stop } };
    expect(phase(decide(silent, at("12:05:29")))).not.toBe("Failed");
    const decision = decide(silent, at("12:05:30"));
    expect(statusOf(decision)).toMatchObject({
      jobDeploymentStatus: "Failed",
      jobStatus: "FAILED",
      reason: "DeadlineExceeded",
    });
    expect(reasons(decision)).toEqual(["RayJobStopUnconfirmed", "AttemptFailed"]);
  });

  it("that was noticed before an outage is no end yet: Ray is told to stop, and asked, by whoever looks next", () => {
    const seen = stopping();
    const later = (ray: ObservedRayJob["ray"]) => decide({ ...seen, jobs: [], ray }, at("13:00:10"));
    expect(doings(later({}))).toEqual(["stop"]);
    const stop = { startedAt: at("13:00:01"), finishedAt: at("13:00:02"), result: "done" as const };
    expect(phase(later({ answer: says("RUNNING", { at: "13:00:03" }), stop }))).not.toBe("Failed");
    expect(phase(later({ answer: says("RUNNING", { at: "13:00:08" }), stop }))).toBe("Failed");
    expect(phase(later({ answer: says("SUCCEEDED", { at: "13:00:00" }) }))).toBe("Complete");
  });

  it("a job that succeeded before the stop reached it has succeeded", () => {
    const decision = decide({ ...stopping(), ray: { answer: says("SUCCEEDED", { at: "12:05:04" }) } }, at("12:05:05"));
    expect(statusOf(decision)).toMatchObject({ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" });
  });

  it("that passes before the job was submitted ends without a Ray status", () => {
    const seen = late({ status: statusWith(submitted()), answer: unknownToRay({ at: "12:05:00" }) });
    const noticed = written(seen, decide(seen, PASSED));
    const gone = { ...noticed, jobs: [], ray: { answer: unknownToRay({ at: "12:05:05" }) } };
    const decision = decide(gone, at("12:05:06"));
    expect(statusOf(decision)).toMatchObject({ jobDeploymentStatus: "Failed", reason: "DeadlineExceeded" });
    expect(decision.status).not.toHaveProperty("jobStatus");
  });

  it("is added or extended while the job runs", () => {
    const decision = decide(whileRunning({ spec: { activeDeadlineSeconds: 900 } }), NOW);
    expect(decision.wakeAt).toBe(at("12:15:00"));
  });
});

describe("what arrives late of an attempt that is over, from a request that had been given up", () => {
  const second = (changes: Partial<ObservedRayJob>) =>
    whileRunning({
      status: statusWith(seenRunning({ number: 1, rayClusterName: "demo-c1111" })),
      rayClusters: [rayCluster({ metadata: { name: "demo-c1111", labels: labels(1) } })],
      jobs: [submitterJob("working", { metadata: { labels: labels(1) } })],
      services: [headService({ cluster: "demo-c1111" })],
      ...changes,
    });

  it("is deleted while the next attempt runs, which goes on as if it were not there", () => {
    const seen = second({});
    const settled = written(seen, decide(seen, NOW));
    expect(doings(decide(settled, NOW))).toEqual([]);
    const late = { ...settled, rayClusters: [...settled.rayClusters, rayCluster()] };
    const decision = decide(late, NOW);
    expect(doings(decision)).toEqual([`delete RayCluster ${CLUSTER}`]);
    expect(decision.status).toBeUndefined();
    const alone = { ...settled, jobs: [submitterJob()] };
    expect(doings(decide(written(alone, decide(alone, NOW)), NOW))).toEqual(["delete Job demo"]);
  });

  it("is deleted, too, where KubeRay made it, which labels nothing; the cluster that status names is not", () => {
    const ofKubeRay = (name: string) => rayCluster({ metadata: { name, labels: {} } });
    const seen = second({ rayClusters: [ofKubeRay("demo-c1111")] });
    const settled = written(seen, decide(seen, NOW));
    expect(doings(decide(settled, NOW))).toEqual([]);
    const late = { ...settled, rayClusters: [...settled.rayClusters, ofKubeRay("demo-abcde")] };
    expect(doings(decide(late, NOW))).toEqual(["delete RayCluster demo-abcde"]);
    const another = {
      ...late,
      rayClusters: [...settled.rayClusters, rayCluster({ metadata: { labels: {}, ownerReferences: [] } })],
    };
    expect(doings(decide(another, NOW))).toEqual([]);
  });

  it("is deleted while the next attempt waits for its cluster", () => {
    const status = statusWith(record({ number: 1, rayClusterName: "demo-c1111" }), {
      jobDeploymentStatus: "Initializing",
    });
    const rayClusters = [rayCluster({ ready: false, metadata: { name: "demo-c1111", labels: labels(1) } })];
    const seen = observed({ job: rayJob({}, status), rayClusters, jobs: [submitterJob()] });
    expect(doings(decide(written(seen, decide(seen, NOW)), NOW))).toEqual(["delete Job demo"]);
  });

  it("is deleted when the RayJob is over, though its own cluster is kept", () => {
    const status = statusWith(seenRunning({ number: 1, endTime: wire("12:10:00") }), {
      jobDeploymentStatus: "Failed",
      jobStatus: "FAILED",
      endTime: wire("12:10:00"),
    });
    const seen = observed({ job: rayJob({ shutdownAfterJobFinishes: false }, status), jobs: [submitterJob()] });
    const kept = rayCluster({ metadata: { labels: labels(1) } });
    expect(doings(decide({ ...seen, rayClusters: [kept] }, NOW))).toEqual(["delete Job demo"]);
  });

  it("is deleted while the RayJob is suspended", () => {
    const status = statusWith(submitted({ endTime: wire("12:01:00") }), { jobDeploymentStatus: "Suspended" });
    const seen = observed({
      job: rayJob({ suspend: true }, status),
      rayClusters: [rayCluster()],
      jobs: [submitterJob()],
    });
    expect(doings(decide(seen, NOW))).toEqual([`delete RayCluster ${CLUSTER}`, "delete Job demo"]);
    expect(doings(decide({ ...seen, rayClusters: [], jobs: [] }, NOW))).toEqual([]);
  });
});

describe("a RayJob that is over", () => {
  const over = (changes: Partial<ObservedRayJob> & { spec?: object; status?: object } = {}) => {
    const { spec, status = {}, ...rest } = changes;
    const ended = seenRunning({ endTime: wire("12:10:00"), jobStatus: "SUCCEEDED" });
    const full = statusWith(ended, {
      jobDeploymentStatus: "Complete",
      jobStatus: "SUCCEEDED",
      endTime: wire("12:10:00"),
      ...status,
    });
    return observed({
      job: rayJob(spec, full),
      rayClusters: [rayCluster()],
      pods: [headPod()],
      jobs: [submitterJob("complete")],
      ...rest,
    });
  };

  it("has its cluster deleted, and keeps its submitter Job for the log", () => {
    expect(doings(decide(over(), NOW))).toEqual([`delete RayCluster ${CLUSTER}`]);
  });

  it("keeps it until ttlSecondsAfterFinished has passed", () => {
    const seen = over({ spec: { ttlSecondsAfterFinished: 60 } });
    expect(decide(seen, at("12:10:59"))).toMatchObject({ effects: [], wakeAt: at("12:11:00") });
    expect(doings(decide(seen, at("12:11:00")))).toEqual([`delete RayCluster ${CLUSTER}`]);
  });

  it("keeps it for good without shutdownAfterJobFinishes", () => {
    expect(decide(over({ spec: { shutdownAfterJobFinishes: false } }), at("18:00:00"))).toMatchObject({ effects: [] });
  });

  it("is deleted itself where the administrator said so", () => {
    const seen = over();
    const decision = decide({ ...seen, settings: { ...seen.settings, deleteRayJobAfterFinish: true } }, NOW);
    expect(doings(decision)).toEqual(["delete RayJob demo"]);
  });

  it("says that its resources are released when no Pod runs any more, once, and after asking", () => {
    const gone = over({ rayClusters: [], pods: [] });
    expect(decide(gone, NOW, { pods: [headPod()] }).status).toBeUndefined();
    const decision = decide(gone, NOW);
    expect(conditionOf(decision.status, "ResourcesReleased")).toBe("True Released");
    const told = decide(written(gone, decision), NOW);
    expect(told).toMatchObject({ effects: [], events: [], asked: [] });
    expect(decide(over({ rayClusters: [] }), NOW).status).toBeUndefined();
  });

  it("does not say so while a submitter runs that the cache does not show; one that has ended holds nothing", () => {
    const pod = (phase: string) =>
      headPod({
        metadata: { name: "demo-x", uid: "uid-x", labels: submitterJob().metadata.labels },
        status: { phase },
      });
    const gone = over({ rayClusters: [], pods: [] });
    expect(decide(gone, NOW, { pods: [pod("Running")] }).status).toBeUndefined();
    const told = decide({ ...gone, pods: [pod("Succeeded")] }, NOW);
    expect(conditionOf(told.status, "ResourcesReleased")).toBe("True Released");
  });

  it("takes away a submitter that came after the end, from a request that had been given up", () => {
    const late = submitterJob("working", { metadata: { creationTimestamp: wire("12:10:02") } });
    expect(doings(decide(over({ rayClusters: [], pods: [], jobs: [late] }), NOW))).toEqual(["delete Job demo"]);
  });

  it("given up by the operator, takes away a submitter that might yet submit", () => {
    const status = {
      jobDeploymentStatus: "Failed",
      jobStatus: "FAILED",
      conditions: [
        {
          type: "Failed",
          status: "True",
          reason: "StatusCheckTimeout",
          message: "",
          lastTransitionTime: wire("12:10:00"),
        },
      ],
    };
    const decision = decide(over({ status, jobs: [submitterJob()], spec: { shutdownAfterJobFinishes: false } }), NOW);
    expect(doings(decision)).toEqual(["delete Job demo"]);
  });

  it("under KubeRay is left as it is: an upgrade rewrites nothing", () => {
    const seen = over({
      status: {
        conditions: undefined,
        attempts: undefined,
        executionAttempt: undefined,
        observedGeneration: undefined,
      },
      rayClusters: [],
      pods: [],
    });
    expect(decide(seen, NOW)).toMatchObject({ effects: [], events: [] });
    expect(decide(seen, NOW).status).toBeUndefined();
  });
});

describe("deletion", () => {
  const deleted = (changes: Parameters<typeof whileRunning>[0] = {}) => {
    const seen = whileRunning(changes);
    return { ...seen, job: { ...seen.job, metadata: { ...seen.job.metadata, deletionTimestamp: wire("12:10:00") } } };
  };

  it("asks Ray once to stop, then the finalizer goes", () => {
    expect(doings(decide(deleted(), NOW))).toEqual(["stop"]);
    const asked = { startedAt: at("12:10:01") };
    expect(decide({ ...deleted(), ray: { stop: asked } }, NOW)).toMatchObject({ effects: [], wakeAt: at("12:10:16") });
    const done = { ...asked, finishedAt: at("12:10:02"), result: "done" as const };
    const decision = decide({ ...deleted(), ray: { stop: done } }, at("12:10:03"));
    expect(doings(decision)).toEqual(["patch RayJob demo"]);
    expect(decision.effects[0]).toMatchObject({
      patch: { metadata: { finalizers: [] } },
      event: { reason: "RayJobStopped" },
      failureEvent: { type: "Warning", reason: "FailedToRemoveFinalizer", note: expect.stringContaining("{error}") },
    });
  });

  it.each([
    ["Ray refuses", { startedAt: at("12:10:01"), finishedAt: at("12:10:02"), result: "refused" as const }, "12:10:03"],
    ["nothing comes back", { startedAt: at("12:10:01") }, "12:10:16"],
  ])("the finalizer goes when %s, with an event", (_, stop, now) => {
    const decision = decide({ ...deleted(), ray: { stop } }, at(now));
    expect(decision.effects).toMatchObject([{ do: "patch", event: { reason: "RayJobStopUnconfirmed" } }]);
  });

  it.each([
    ["the job has ended", deleted({ status: statusWith(seenRunning(), { jobStatus: "SUCCEEDED" }) })],
    ["it was never submitted", deleted({ status: statusWith(record(), { jobDeploymentStatus: "Initializing" }) })],
    ["its cluster is gone", deleted({ rayClusters: [] })],
  ])("nobody is asked when %s", (_, seen) => {
    expect(doings(decide(seen, NOW))).toEqual(["patch RayJob demo"]);
  });

  it("does nothing more once the finalizer is gone", () => {
    const seen = deleted();
    const gone = { ...seen, job: { ...seen.job, metadata: { ...seen.job.metadata, finalizers: [] } } };
    expect(decide(gone, NOW)).toMatchObject({ effects: [], events: [] });
  });
});

describe("the undisturbed path", () => {
  it.each(["K8sJobMode", "HTTPMode"] as const)(
    "takes few writes in %s, and says where it is at each",
    (submissionMode) => {
      let seen = observed({ job: rayJob({ submissionMode }, undefined, { finalizers: [] }) });
      const writes: string[] = [];
      const events: string[] = [];
      const settle = (now: string) => {
        for (let pass = 0; pass < 10; pass++) {
          const decision = decide(seen, at(now));
          const doing = doings(decision);
          writes.push(
            ...doing.filter((one) => one !== "submit"),
            ...(decision.status ? [`status ${phase(decision)}`] : []),
          );
          events.push(...reasons(decision));
          seen = written(seen, decision);
          for (const effect of decision.effects) {
            if (effect.do === "patch")
              seen = {
                ...seen,
                job: { ...seen.job, metadata: { ...seen.job.metadata, finalizers: ["ray.io/rayjob-finalizer"] } },
              };
            if (effect.do === "create" && effect.object.kind === "RayCluster")
              seen = { ...seen, rayClusters: [rayCluster({ ready: false, metadata: effect.object.metadata })] };
            if (effect.do === "create" && effect.object.kind === "Job") seen = { ...seen, jobs: [submitterJob()] };
            if (effect.do === "create" && effect.object.kind === "Service")
              seen = { ...seen, services: [headService()] };
            if (effect.do === "delete") seen = { ...seen, rayClusters: [], pods: [], services: [] };
            if (effect.do === "submit")
              seen = {
                ...seen,
                ray: { ...seen.ray, submit: { startedAt: at(now), finishedAt: at(now) + 10, result: "done" } },
              };
          }
          if (!decision.status && doing.length === 0) return;
        }
        throw new Error("does not settle");
      };
      settle("12:00:00");
      const [cluster] = seen.rayClusters;
      const owned = [
        {
          apiVersion: "ray.io/v1",
          kind: "RayCluster",
          name: cluster!.metadata.name,
          uid: "uid-cluster",
          controller: true,
        },
      ];
      const labels = {
        "ray.io/node-type": "head",
        "ray.io/cluster": cluster!.metadata.name,
        "ray.io/rayjob-uid": "uid-demo",
      };
      const ready = rayCluster({ metadata: { ...cluster!.metadata, uid: "uid-cluster" } });
      seen = { ...seen, rayClusters: [ready], pods: [headPod({ metadata: { ownerReferences: owned, labels } })] };
      settle("12:00:21");
      seen = { ...seen, ray: { answer: unknownToRay({ at: "12:00:22" }) } };
      settle("12:00:23");
      seen = { ...seen, ray: { ...seen.ray, answer: says("RUNNING", { at: "12:00:30" }) } };
      settle("12:00:31");
      seen = { ...seen, ray: { ...seen.ray, answer: says("RUNNING", { at: "12:05:00" }) } };
      settle("12:05:01");
      seen = {
        ...seen,
        jobs: seen.jobs.length ? [submitterJob("complete")] : [],
        ray: { answer: says("SUCCEEDED", { at: "12:05:10" }) },
      };
      settle("12:05:11");
      settle("13:00:00");
      const name = seen.job.status?.rayClusterName;
      expect(writes).toEqual([
        "patch RayJob demo",
        "status Initializing",
        `create RayCluster ${name}`,
        "status Running",
        ...(submissionMode === "K8sJobMode" ? ["create Job demo"] : []),
        "create Service demo-head-svc",
        "status Running",
        "status Complete",
        `delete RayCluster ${name}`,
        "status Complete",
      ]);
      expect(events).toEqual(["AttemptStarted", "RayJobSubmitted", "AttemptSucceeded"]);
    },
  );
});

describe("a RayJob taken over from a running KubeRay", () => {
  const flat = (changes: Partial<RayJobStatus> = {}): RayJobStatus => ({
    jobDeploymentStatus: "Running",
    jobStatus: "RUNNING",
    jobId: JOB_ID,
    rayClusterName: CLUSTER,
    dashboardURL: `${CLUSTER}-head-svc.default.svc.cluster.local:8265`,
    startTime: wire("12:00:00"),
    failed: 1,
    succeeded: 0,
    ...changes,
  });
  const unlabelled = { labels: {} };
  const taken = (status: RayJobStatus) =>
    whileRunning({
      status,
      spec: { backoffLimit: 2 },
      rayClusters: [rayCluster({ metadata: unlabelled })],
      jobs: [submitterJob("working", { metadata: unlabelled })],
    });

  it("goes on: its record is read out of the flat fields, its number from the failures", () => {
    const decision = decide(taken(flat()), NOW);
    expect(statusOf(decision)).toMatchObject({
      jobDeploymentStatus: "Running",
      executionAttempt: 1,
      attempts: [{ number: 1, jobId: JOB_ID, rayClusterName: CLUSTER, raySession: SESSION, headPodUID: HEAD_UID }],
    });
    expect(decision.effects).toEqual([]);
  });

  it("is written down before Ray is asked, since answers belong to an attempt", () => {
    expect(statusOf(decide({ ...taken(flat()), ray: {} }, NOW)).executionAttempt).toBe(1);
  });

  it("in HTTPMode gets Ray's session into its record before anything is submitted", () => {
    const seen = taken(flat({ jobStatus: undefined }));
    const http = {
      ...seen,
      jobs: [],
      job: { ...seen.job, spec: { ...seen.job.spec, submissionMode: "HTTPMode" as const } },
      ray: { answer: unknownToRay() },
    };
    const first = decide(http, NOW);
    expect(first.effects).toEqual([]);
    expect(statusOf(first).attempts?.[0]).toMatchObject({ raySession: SESSION, headPodUID: HEAD_UID });
    const second = written(http, first);
    const third = written(second, decide(second, NOW));
    expect(doings(decide(third, NOW))).toContain("submit");
  });

  it("while Retrying or Suspended starts its next attempt with the next number", () => {
    for (const jobDeploymentStatus of ["Retrying", "Suspended"] as const) {
      const gone = { jobStatus: undefined, jobId: undefined, rayClusterName: undefined };
      const status = flat({ jobDeploymentStatus, ...(jobDeploymentStatus === "Suspended" ? gone : {}) });
      expect(statusOf(decide(observed({ job: rayJob({ backoffLimit: 2 }, status) }), NOW)).executionAttempt).toBe(1);
    }
  });

  it("Waiting for a user's submission obeys suspend and deadlines", () => {
    const waiting = (spec: object) =>
      observed({ job: rayJob(spec, flat({ jobDeploymentStatus: "Waiting", jobStatus: undefined })) });
    expect(phase(decide(waiting({ suspend: true }), NOW))).toBe("Suspending");
    expect(statusOf(decide(waiting({ activeDeadlineSeconds: 5 }), NOW))).toMatchObject({ reason: "DeadlineExceeded" });
    expect(statusOf(decide(waiting({ preRunningDeadlineSeconds: 5 }), NOW))).toMatchObject({
      reason: "PreRunningDeadlineExceeded",
    });
  });
});

describe("what is asked of Ray", () => {
  it("is asked calmly while all is well, and quickly when something happened", () => {
    expect(rayInterest(whileRunning(), NOW)?.pace).toBe("steady");
    const quick = [
      whileRunning({ status: statusWith(submitted()) }),
      whileRunning({ answer: silence() }),
      whileRunning({ jobs: [submitterJob("complete", { at: "12:10:00" })] }),
      whileRunning({ pods: [] }),
      whileRunning({ spec: { activeDeadlineSeconds: 610 } }),
    ];
    for (const seen of quick) expect(rayInterest(seen, NOW)?.pace).toBe("quick");
  });

  it("wants an answer from after the submitter's end, and from after a deadline", () => {
    const ended = whileRunning({ jobs: [submitterJob("complete", { at: "12:10:05" })], answer: says("RUNNING") });
    expect(rayInterest(ended, at("12:10:07"))?.notBefore).toBe(at("12:10:06"));
    const deadline = whileRunning({ spec: { activeDeadlineSeconds: 605 } });
    expect(rayInterest(deadline, NOW)?.notBefore).toBe(at("12:10:05"));
  });

  it("ends with the job, and keeps only the outcome of commands when the RayJob is deleted", () => {
    expect(
      rayInterest(whileRunning({ status: statusWith(seenRunning(), { jobStatus: "SUCCEEDED" }) }), NOW)?.pace,
    ).toBe("off");
    expect(rayInterest(observed(), NOW)).toBeUndefined();
  });
});
