// Attempts that must not overlap, or whose submitter lives in the head, have one head Pod in their life.
import { describe, expect, it } from "vitest";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJobSpec, RayJobStatus } from "../../api/rayjob.ts";
import { defaultSettings } from "../settings.ts";
import {
  at,
  conditionOf,
  decide,
  HEAD_UID,
  headPod,
  observed,
  rayCluster,
  rayJob,
  reasons,
  record,
  says,
  statusWith,
  wire,
} from "./testing.ts";
import { validateRayJob } from "./validate.ts";

const ONE = { "raykeeper.dev/one-head": "true" };
const BLOCKING = { retryStrategy: { type: "BlockingRecreate" } } as const;

function annotationsOf(attempt: Partial<AttemptRecord>, spec: Partial<RayJobSpec> = {}, metadata: object = {}) {
  const status = statusWith(record(attempt), { jobDeploymentStatus: "Initializing" });
  const [effect] = decide(observed({ job: rayJob(spec, status, metadata) }), at("12:00:01")).effects;
  return (effect as unknown as { object: RayCluster }).object.metadata.annotations;
}

describe("the RayCluster of an attempt", () => {
  it("is told so by what the attempt was started with, not by what spec says now", () => {
    expect(annotationsOf({ retryStrategy: "BlockingRecreate" })).toMatchObject(ONE);
    expect(annotationsOf({ submissionMode: "SidecarMode" })).toMatchObject(ONE);
    expect(annotationsOf({}, BLOCKING)).not.toHaveProperty("raykeeper.dev/one-head");
    expect(annotationsOf({}, {}, { annotations: ONE })).not.toHaveProperty("raykeeper.dev/one-head");
  });
});

const policy = (restartPolicy: string | undefined): RayJobSpec["rayClusterSpec"] => {
  const { rayClusterSpec } = rayJob().spec;
  const template = { spec: { ...rayClusterSpec!.headGroupSpec.template.spec!, restartPolicy } };
  return { ...rayClusterSpec!, headGroupSpec: { ...rayClusterSpec!.headGroupSpec, template } } as never;
};

it("another restartPolicy in the head's template is refused, and Never is not", () => {
  for (const restartPolicy of ["Always", "OnFailure"]) {
    expect(
      validateRayJob(rayJob({ ...BLOCKING, rayClusterSpec: policy(restartPolicy) }), defaultSettings)?.text,
    ).toContain(
      `rayClusterSpec.headGroupSpec.template.spec.restartPolicy: must be Never or absent with retryStrategy.type BlockingRecreate`,
    );
    expect(validateRayJob(rayJob({ rayClusterSpec: policy(restartPolicy) }), defaultSettings)).toBeUndefined();
  }
  for (const restartPolicy of ["Never", undefined]) {
    expect(
      validateRayJob(rayJob({ ...BLOCKING, rayClusterSpec: policy(restartPolicy) }), defaultSettings),
    ).toBeUndefined();
  }
});

describe("while the cluster comes up", () => {
  const initializing = (pods: ReturnType<typeof headPod>[], podUID: string | undefined = HEAD_UID, ready = false) => {
    const status = statusWith(record({ retryStrategy: "BlockingRecreate" }), {
      jobDeploymentStatus: "Initializing",
      dashboardURL: undefined,
    });
    const cluster = rayCluster({ ready, metadata: { annotations: ONE }, status: podUID ? { head: { podUID } } : {} });
    return observed({ job: rayJob({ ...BLOCKING, backoffLimit: 1 }, status), rayClusters: [cluster], pods });
  };
  const NOW = at("12:00:30");
  const phase = (decision: { status?: object }) => (decision.status as RayJobStatus | undefined)?.jobDeploymentStatus;

  it.each<[string, ReturnType<typeof headPod>[]]>([
    ["is gone", []],
    ["has failed", [headPod({ status: { phase: "Failed", reason: "Evicted" } })]],
    ["is being deleted", [headPod({ metadata: { deletionTimestamp: wire("12:01:00") } })]],
    ["is another", [headPod({ metadata: { uid: "another" } })]],
  ])("the attempt fails at once when its head %s, and counts", (_, pods) => {
    const decision = decide(initializing(pods), NOW);
    expect(decision.status).toMatchObject({ jobDeploymentStatus: "Retrying", failed: 1, reason: "AppFailed" });
    expect(reasons(decision)).toEqual(["HeadPodLost", "AttemptFailed"]);
    expect(decision.status).not.toHaveProperty("jobStatus");
    expect(conditionOf(decision.status, "Retrying")).toBe("True Deleting");
  });

  it("it does not, where the API server knows of the head, nor while its node is silent, nor before it is written down", () => {
    expect(phase(decide(initializing([]), NOW, { pods: [headPod()] })) ?? "Initializing").toBe("Initializing");
    const conditions = [{ type: "Ready", status: "Unknown", lastTransitionTime: wire("12:00:20") }];
    expect(phase(decide(initializing([headPod({ status: { conditions } })]), NOW))).toBe("Initializing");
    expect(phase(decide({ ...initializing([]), rayClusters: [rayCluster({ ready: false })] }, NOW))).toBe(
      "Initializing",
    );
  });

  it("hands the job over to the head that is written down, and to no other", () => {
    const ray = { answer: says("RUNNING", { at: "12:00:29" }) };
    expect(phase(decide({ ...initializing([headPod()], HEAD_UID, true), ray }, NOW))).toBe("Running");
    expect(phase(decide({ ...initializing([headPod()], "", true), ray }, NOW))).toBe("Initializing");
  });
});
