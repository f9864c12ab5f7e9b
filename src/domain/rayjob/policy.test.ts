// What is deleted when a RayJob is over, and when; and what is told of what stays.
import { describe, expect, it } from "vitest";
import { LABEL } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { AttemptRecord, DeletionPolicy, DeletionStrategy, RayJobSpec, RayJobStatus } from "../../api/rayjob.ts";
import { workerGroup } from "../raycluster/testing.ts";
import { defaultSettings } from "../settings.ts";
import type { ObservedRayJob } from "./observe.ts";
import { disposalOf, type Outcome } from "./policy.ts";
import type { RayAnswer } from "./ray.ts";
import {
  askedAgain,
  at,
  CLUSTER,
  conditionOf,
  decide,
  doings,
  headPod,
  messageOf,
  observed,
  rayCluster,
  rayJob,
  reasons,
  record,
  says,
  seenRunning,
  statusWith,
  submitterJob,
  whileRunning,
  wire,
  written,
} from "./testing.ts";

type Rule = NonNullable<DeletionStrategy["deletionRules"]>[number];
const on = (condition: Rule["condition"], policy: DeletionPolicy, ttlSeconds = 0): Rule => ({
  policy,
  condition: { ...condition, ttlSeconds },
});
const SUCCEEDED = { jobStatus: "SUCCEEDED" } as const;
const COMPLETE = { jobDeploymentStatus: "Complete" } as const;
const FAILED = { jobDeploymentStatus: "Failed" } as const;
const rules = (...deletionRules: Rule[]): Partial<RayJobSpec> => ({
  shutdownAfterJobFinishes: false,
  deletionStrategy: { deletionRules },
});
const legacy = (success: DeletionPolicy, failure: DeletionPolicy): Partial<RayJobSpec> => ({
  shutdownAfterJobFinishes: false,
  deletionStrategy: { onSuccess: { policy: success }, onFailure: { policy: failure } },
});

const outcome = (jobDeploymentStatus: "Complete" | "Failed", jobStatus: Outcome["jobStatus"]): Outcome => ({
  jobDeploymentStatus,
  jobStatus,
});
const stages = (spec: Partial<RayJobSpec>, how: Outcome, settings = defaultSettings) =>
  disposalOf(rayJob(spec).spec, how, settings).stages.map(({ policy, after }) => `${policy} ${after}`);

describe("what is deleted", () => {
  it.each<[string, Partial<RayJobSpec>, Outcome, string[]]>([
    [
      "the cluster, with shutdownAfterJobFinishes",
      { ttlSecondsAfterFinished: 7 },
      outcome("Failed", ""),
      ["DeleteCluster 7"],
    ],
    ["nothing without it", { shutdownAfterJobFinishes: false }, outcome("Complete", "SUCCEEDED"), []],
    [
      "onSuccess of a job that succeeded",
      legacy("DeleteCluster", "DeleteNone"),
      outcome("Complete", "SUCCEEDED"),
      ["DeleteCluster 0"],
    ],
    [
      "onSuccess of one that was stopped",
      legacy("DeleteSelf", "DeleteNone"),
      outcome("Complete", "STOPPED"),
      ["DeleteSelf 0"],
    ],
    [
      "onFailure, whatever jobStatus says",
      legacy("DeleteNone", "DeleteWorkers"),
      outcome("Failed", ""),
      ["DeleteWorkers 0"],
    ],
    [
      "onFailure of a deadline",
      legacy("DeleteNone", "DeleteCluster"),
      outcome("Failed", "STOPPED"),
      ["DeleteCluster 0"],
    ],
    [
      "by the older form, ttlSecondsAfterFinished after the end",
      { ...legacy("DeleteCluster", "DeleteSelf"), shutdownAfterJobFinishes: true, ttlSecondsAfterFinished: 30 },
      outcome("Failed", "FAILED"),
      ["DeleteSelf 30"],
    ],
    [
      "in stages, whatever their order in the list",
      rules(on(SUCCEEDED, "DeleteSelf", 55), on(SUCCEEDED, "DeleteWorkers", 15), on(SUCCEEDED, "DeleteCluster", 35)),
      outcome("Complete", "SUCCEEDED"),
      ["DeleteWorkers 15", "DeleteCluster 35", "DeleteSelf 55"],
    ],
    [
      "the most, where several come at once",
      rules(on(SUCCEEDED, "DeleteWorkers"), on(SUCCEEDED, "DeleteSelf"), on(SUCCEEDED, "DeleteCluster")),
      outcome("Complete", "SUCCEEDED"),
      ["DeleteSelf 0"],
    ],
    [
      "by rules about jobStatus and jobDeploymentStatus together",
      rules(
        on({ jobStatus: "FAILED" }, "DeleteWorkers", 5),
        on(FAILED, "DeleteCluster", 10),
        on(SUCCEEDED, "DeleteSelf"),
      ),
      outcome("Failed", "FAILED"),
      ["DeleteWorkers 5", "DeleteCluster 10"],
    ],
    [
      "Complete of a job that was stopped",
      rules(on(COMPLETE, "DeleteCluster")),
      outcome("Complete", "STOPPED"),
      ["DeleteCluster 0"],
    ],
    ["nothing by DeleteNone", rules(on(FAILED, "DeleteNone")), outcome("Failed", ""), []],
    ["nothing where no rule is about it", rules(on(SUCCEEDED, "DeleteSelf")), outcome("Failed", "FAILED"), []],
  ])("is %s", (_, spec, how, expected) => {
    expect(stages(spec, how)).toEqual(expected);
  });

  it("is the RayJob itself where the administrator said so, and deletionStrategy says nothing else", () => {
    const settings = { ...defaultSettings, deleteRayJobAfterFinish: true };
    expect(stages({ ttlSecondsAfterFinished: 5 }, outcome("Complete", "SUCCEEDED"), settings)).toEqual([
      "DeleteSelf 5",
    ]);
    expect(stages(legacy("DeleteCluster", "DeleteNone"), outcome("Complete", "SUCCEEDED"), settings)).toEqual([
      "DeleteCluster 0",
    ]);
  });

  it("is what shutdownAfterJobFinishes says while the feature gate is off", () => {
    const settings = { ...defaultSettings, deletionPolicy: false };
    const spec = { ...legacy("DeleteNone", "DeleteNone"), shutdownAfterJobFinishes: true };
    expect(stages(spec, outcome("Complete", "SUCCEEDED"), settings)).toEqual(["DeleteCluster 0"]);
  });
});

const GROUP = workerGroup({ groupName: "small", replicas: 1, minReplicas: 0, maxReplicas: 3 });
const cluster = (changes: Parameters<typeof rayCluster>[0] = {}) =>
  rayCluster({ ...changes, spec: { workerGroupSpecs: [GROUP], ...changes.spec } });
const worker = (metadata: object = {}) =>
  headPod({
    metadata: {
      name: "worker-1",
      uid: "uid-worker",
      labels: { ...headPod().metadata.labels, [LABEL.nodeType]: "worker" },
      ...metadata,
    },
  });

/** A RayJob that ended at 12:10:00. */
function over(
  spec: Partial<RayJobSpec>,
  changes: Partial<ObservedRayJob> = {},
  status: RayJobStatus = {},
): ObservedRayJob {
  const ended = seenRunning({ endTime: wire("12:10:00"), jobStatus: "SUCCEEDED" });
  const full = statusWith(ended, {
    jobDeploymentStatus: "Complete",
    jobStatus: "SUCCEEDED",
    endTime: wire("12:10:00"),
    ...status,
  });
  return observed({
    job: rayJob(spec, full),
    rayClusters: [cluster()],
    pods: [headPod(), worker()],
    jobs: [submitterJob("complete")],
    ...changes,
  });
}

describe("a RayJob that is over", () => {
  const STAGED = rules(
    on(SUCCEEDED, "DeleteWorkers", 10),
    on(SUCCEEDED, "DeleteCluster", 60),
    on(SUCCEEDED, "DeleteSelf", 90),
  );
  const suspended = (metadata: object = {}) =>
    cluster({ metadata, spec: { workerGroupSpecs: [{ ...GROUP, suspend: true }] } });

  it("waits for its first stage, and for each that follows", () => {
    expect(decide(over(STAGED), at("12:10:09"))).toMatchObject({ effects: [], wakeAt: at("12:10:10") });
    const headOnly = { rayClusters: [suspended()], pods: [headPod()] };
    expect(decide(over(STAGED, headOnly), at("12:10:30"))).toMatchObject({ effects: [], wakeAt: at("12:11:00") });
  });

  it("has its workers deleted by the RayCluster, all groups in one write that carries the version it saw", () => {
    const { effects } = decide(over(STAGED), at("12:10:10"));
    expect(effects).toMatchObject([
      {
        do: "patch",
        ref: { kind: "RayCluster", name: CLUSTER },
        resourceVersion: "1",
        patch: { spec: { workerGroupSpecs: [{ groupName: "small", replicas: 1, suspend: true }] } },
        event: { reason: "UpdatedRayCluster", note: expect.stringContaining("Set the `suspend` field to true") },
      },
    ]);
  });

  it("has its cluster deleted, then itself; what came while nobody looked is made up for in one step", () => {
    expect(doings(decide(over(STAGED), at("12:11:00")))).toEqual([`delete RayCluster ${CLUSTER}`]);
    expect(doings(decide(over(STAGED), at("12:11:30")))).toEqual(["delete RayJob demo"]);
    expect(doings(decide(over(STAGED, { rayClusters: [], pods: [] }), at("12:11:29")))).toEqual([]);
  });

  it("leaves alone what is gone, on its way, or suspended as a whole (by a queue, when the job is over)", () => {
    const workersOnly = rules(on(SUCCEEDED, "DeleteWorkers"));
    for (const one of [
      suspended(),
      cluster({ metadata: { deletionTimestamp: wire("12:10:01") } }),
      cluster({ spec: { suspend: true } }),
    ]) {
      expect(doings(decide(over(workersOnly, { rayClusters: [one] }), at("12:10:05")))).toEqual([]);
    }
  });

  it("obeys an edit of what is deleted, also after its end", () => {
    expect(doings(decide(over(rules(on(FAILED, "DeleteSelf"))), at("18:00:00")))).toEqual([]);
    expect(doings(decide(over(rules(on(COMPLETE, "DeleteCluster", 60))), at("18:00:00")))).toEqual([
      `delete RayCluster ${CLUSTER}`,
    ]);
  });
});

describe("a RayJob that is over, without an end time in its status (put back from a backup, or taken over)", () => {
  const TIMED = rules(on(SUCCEEDED, "DeleteCluster", 60), on(SUCCEEDED, "DeleteSelf", 90));
  const ended = { type: "Succeeded", status: "True", reason: "JobSucceeded", message: "" } as const;

  it("ended, as far as its time is concerned, when its condition came to say so", () => {
    const conditions = [{ ...ended, lastTransitionTime: wire("12:20:00") }];
    const seen = over(TIMED, {}, { endTime: undefined, conditions });
    expect(decide(seen, at("12:20:59"))).toMatchObject({ effects: [], wakeAt: at("12:21:00") });
    expect(doings(decide(seen, at("12:21:00")))).toEqual([`delete RayCluster ${CLUSTER}`]);
  });

  it.each([undefined, "yesterday"])("ends now where nothing tells (%s), which is written once", (endTime) => {
    const seen = over(TIMED, {}, { endTime, conditions: [] });
    const first = decide(seen, at("15:00:00"));
    expect(first).toMatchObject({ effects: [], status: { endTime: wire("15:00:00") } });
    const after = written(seen, first);
    expect(decide(after, at("15:00:59"))).toMatchObject({ effects: [], wakeAt: at("15:01:00") });
    expect(decide(after, at("15:00:59")).status).toBeUndefined();
    expect(doings(decide(after, at("15:01:00")))).toEqual([`delete RayCluster ${CLUSTER}`]);
  });

  it("loses at once what is due at the end, without a write", () => {
    const now = decide(over({}, {}, { endTime: undefined, conditions: [] }), at("15:00:00"));
    expect([now.status, doings(now)]).toEqual([undefined, [`delete RayCluster ${CLUSTER}`]]);
  });

  it("is not written where nothing is to go by time", () => {
    const kept = over({ shutdownAfterJobFinishes: false }, {}, { endTime: undefined, conditions: [] });
    const decision = decide(kept, at("15:00:00"));
    expect([decision.status, decision.effects]).toEqual([undefined, []]);
  });
});

describe("deletionStrategy deletes a shared cluster in spite of DeleteNone: a selected cluster is untouched", () => {
  const selecting = (spec: Partial<RayJobSpec>, phase: "Complete" | "Failed") => {
    const record = seenRunning({ endTime: wire("12:10:00"), jobStatus: "FAILED", ownsCluster: false });
    const status = statusWith(record, { jobDeploymentStatus: phase, jobStatus: "FAILED", endTime: wire("12:10:00") });
    const shared = cluster({ metadata: { ownerReferences: [], labels: {} } });
    return observed({
      job: rayJob({ clusterSelector: { [LABEL.cluster]: CLUSTER }, rayClusterSpec: undefined, ...spec }, status),
      rayClusters: [shared],
    });
  };
  const doesWith = (policy: DeletionPolicy, phase: "Complete" | "Failed") =>
    [legacy(policy, policy), rules(on(COMPLETE, policy), on(FAILED, policy))].map((spec) =>
      doings(decide(selecting(spec, phase), at("18:00:00"))),
    );

  it.each(["Complete", "Failed"] as const)("when the job is %s", (phase) => {
    for (const policy of ["DeleteCluster", "DeleteWorkers", "DeleteNone"] as const) {
      expect(doesWith(policy, phase)).toEqual([[], []]);
    }
    expect(doesWith("DeleteSelf", phase)).toEqual([["delete RayJob demo"], ["delete RayJob demo"]]);
  });
});

describe("what an ended job holds", () => {
  const requests = { requests: { cpu: "2", memory: "1Gi" } };
  const withRequests = (pod: ReturnType<typeof headPod>) =>
    ({ ...pod, spec: { ...pod.spec, containers: [{ name: "ray", resources: requests }] } }) as typeof pod;
  const PODS = [withRequests(headPod()), withRequests(worker())];
  const ending = (spec: Partial<RayJobSpec>, labels = {}) => {
    const seen = whileRunning({
      spec,
      rayClusters: [cluster()],
      pods: PODS,
      jobs: [submitterJob("complete")],
      answer: says("SUCCEEDED", { endTime: "12:09:59" }),
    });
    return decide({ ...seen, job: { ...seen.job, metadata: { ...seen.job.metadata, labels } } }, at("12:10:01"));
  };
  const held = ({ status }: { status?: object }) => [
    conditionOf(status, "ResourcesReleased"),
    messageOf(status, "ResourcesReleased"),
  ];
  const WHAT = `RayCluster ${CLUSTER} with 2 Pods (cpu 4, memory 2Gi)`;

  it.each<[string, Partial<RayJobSpec>, string, string]>([
    ["is in use while it goes", {}, "False InUse", "is left: it is deleted now."],
    [
      "is kept until it goes",
      { ttlSecondsAfterFinished: 60 },
      "False KeptByPolicy",
      "is left: it is deleted 60 s after the end of the job.",
    ],
    [
      "is kept for good",
      { shutdownAfterJobFinishes: false },
      "False KeptByPolicy",
      "is kept, because shutdownAfterJobFinishes is not set.",
    ],
    [
      "is kept by DeleteNone",
      legacy("DeleteNone", "DeleteCluster"),
      "False KeptByPolicy",
      "is kept, because spec.deletionStrategy.onSuccess says DeleteNone.",
    ],
    [
      "goes in stages",
      rules(on(SUCCEEDED, "DeleteWorkers", 10), on(SUCCEEDED, "DeleteCluster", 60)),
      "False KeptByPolicy",
      "is left: its workers are deleted 10 s after the end of the job, it is deleted 60 s after the end of the job.",
    ],
    [
      "goes in part",
      rules(on(COMPLETE, "DeleteWorkers")),
      "False KeptByPolicy",
      "is left: its workers are deleted now, the rest is kept.",
    ],
    [
      "is kept where no rule matches",
      rules(on(FAILED, "DeleteCluster")),
      "False KeptByPolicy",
      "is kept, because no rule of spec.deletionStrategy matches jobDeploymentStatus Complete with jobStatus SUCCEEDED.",
    ],
  ])("%s, and status says so with count and requests", (_, spec, condition, fate) => {
    expect(held(ending(spec))).toEqual([condition, `${WHAT} ${fate}`]);
  });

  describe("is not said to be kept", () => {
    const keeping = { ...rules(on(COMPLETE, "DeleteCluster")), preRunningDeadlineSeconds: 60 };
    const queue = { [LABEL.kueueQueueName]: "q" };
    const late = (attempt: AttemptRecord, more: Partial<ObservedRayJob>) =>
      decide(
        observed({
          job: rayJob(keeping, statusWith(attempt, { jobDeploymentStatus: "Initializing" }), { labels: queue }),
          ...more,
        }),
        at("12:10:01"),
      );
    const noteOf = (decision: ReturnType<typeof late>) =>
      decision.events.find(({ reason }) => reason === "NoDeletionRuleMatched")?.note;

    it.each<[string, Partial<ObservedRayJob>, string]>([
      ["where the cluster is gone, or never was", {}, "is not there; left of it: 0 Pods."],
      [
        "where it is being deleted",
        {
          rayClusters: [
            { ...rayCluster(), metadata: { ...rayCluster().metadata, deletionTimestamp: wire("12:09:00") } },
          ],
        },
        "with 0 Pods is being deleted.",
      ],
    ])("%s", (_, more, fate) => {
      const decision = late(record(), more);
      expect(held(decision)).toEqual(["False InUse", `RayCluster ${CLUSTER} ${fate}`]);
      expect(noteOf(decision)).toContain("The RayJob stays");
      expect(reasons(decision)).not.toContain("PodsKeptOutsideQuota");
    });

    it("where it goes so that its sidecar does not submit any more, whatever the policy", () => {
      const seen: Partial<ObservedRayJob> = {
        rayClusters: [rayCluster()],
        ray: { answer: { requestedAt: at("12:10:00"), job: { kind: "none", error: "refused" } } as RayAnswer },
      };
      const attempt = record({ submissionMode: "SidecarMode", submissionStartTime: wire("12:00:10") });
      const decision = late(attempt, seen);
      expect(held(decision)).toEqual([
        "False InUse",
        `RayCluster ${CLUSTER} with 0 Pods is left: it is deleted now, because its sidecar might still submit the job.`,
      ]);
      expect(noteOf(decision)).toContain("The RayJob stays");
      expect(reasons(decision)).not.toContain("PodsKeptOutsideQuota");
    });
  });

  it("is told by an event where no rule matches, so the cluster would stay for ever", () => {
    const none = ending(rules(on(FAILED, "DeleteCluster")));
    expect(none.events).toContainEqual(
      expect.objectContaining({
        type: "Warning",
        reason: "NoDeletionRuleMatched",
        note: expect.stringContaining("jobDeploymentStatus Complete with jobStatus SUCCEEDED"),
      }),
    );
    expect(reasons(ending(rules(on(COMPLETE, "DeleteNone"))))).not.toContain("NoDeletionRuleMatched");
  });

  it.each<[RayJobStatus["jobStatus"]]>([["RUNNING"], [""], ["PENDING"]])(
    "is told, too, when a deadline ends a job that Ray called %j and the rules are KubeRay's sample's",
    (jobStatus) => {
      const sample = rules(on(SUCCEEDED, "DeleteCluster"), on({ jobStatus: "FAILED" }, "DeleteCluster"));
      const record = seenRunning({ reason: "DeadlineExceeded", endTime: wire("12:09:00"), message: "late" });
      const seen = whileRunning({
        spec: { ...sample, activeDeadlineSeconds: 60 },
        status: statusWith(record, { jobStatus }),
        answer: says("STOPPED"),
      });
      const decision = decide(seen, at("12:10:01"));
      expect(decision.status).toMatchObject({ jobDeploymentStatus: "Failed", jobStatus: "STOPPED" });
      expect(reasons(decision)).toContain("NoDeletionRuleMatched");
    },
  );

  it("is told to whoever the queue's quota is taken from while its Pods go on", () => {
    const queue = { [LABEL.kueueQueueName]: "q" };
    expect(ending({ ttlSecondsAfterFinished: 60 }, queue).events).toContainEqual(
      expect.objectContaining({ type: "Warning", reason: "PodsKeptOutsideQuota", note: expect.stringContaining(WHAT) }),
    );
    expect(reasons(ending(legacy("DeleteNone", "DeleteNone"), queue))).toContain("PodsKeptOutsideQuota");
    expect(reasons(ending({}, queue))).not.toContain("PodsKeptOutsideQuota");
    expect(reasons(ending({ ttlSecondsAfterFinished: 60 }))).not.toContain("PodsKeptOutsideQuota");
  });

  describe("is told anew, once,", () => {
    const STAGED = rules(on(SUCCEEDED, "DeleteWorkers", 10), on(SUCCEEDED, "DeleteCluster", 60));
    const suspended = cluster({ spec: { workerGroupSpecs: [{ ...GROUP, suspend: true }] } });

    it("when the workers are gone, and not while they go (quota can be freed in steps)", () => {
      const told = { conditions: (ending(STAGED).status as RayJobStatus).conditions! };
      const leaving = over(
        STAGED,
        { rayClusters: [suspended], pods: [PODS[0]!, withRequests(worker({ deletionTimestamp: wire("12:10:12") }))] },
        told,
      );
      expect(decide(leaving, at("12:10:12")).status).toBeUndefined();
      const headOnly = { ...leaving, pods: [PODS[0]!] };
      const decision = decide(headOnly, at("12:10:14"));
      expect(held(decision)).toEqual([
        "False KeptByPolicy",
        `RayCluster ${CLUSTER} with 1 Pod (cpu 2, memory 1Gi) is left: its workers are deleted 10 s after the end of the job, it is deleted 60 s after the end of the job.`,
      ]);
      expect(decide(written(headOnly, decision), at("12:10:14"))).toMatchObject({ effects: [], events: [] });
      expect(decide(written(headOnly, decision), at("12:10:14")).status).toBeUndefined();
    });

    it("not for a worker that fails in a cluster that is kept, and comes back", () => {
      const kept = rules(on(COMPLETE, "DeleteNone"));
      const told = { conditions: (ending(kept).status as RayJobStatus).conditions! };
      const failed = withRequests(worker());
      const pods = [PODS[0]!, { ...failed, status: { ...failed.status, phase: "Failed" } } as Stored<never>];
      expect(decide(over(kept, { pods }, told), at("12:12:00")).status).toBeUndefined();
      expect(decide(over(kept, { pods: PODS }, told), at("12:12:00")).status).toBeUndefined();
    });
  });

  it("is not told of to a RayJob that ended under KubeRay", () => {
    expect(
      decide(over({ shutdownAfterJobFinishes: false }, {}, { conditions: [] }), at("18:00:00")).status,
    ).toBeUndefined();
  });
});

it("a RayJob with rules and no shutdown flag is suspended as any other", () => {
  const seen = askedAgain(whileRunning({ spec: { ...rules(on(COMPLETE, "DeleteCluster")), suspend: true } }));
  expect(decide(seen, at("12:10:01")).status).toMatchObject({ jobDeploymentStatus: "Suspending" });
});
