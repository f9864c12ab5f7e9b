/**
 * RayJob: one schema, from which its TypeScript types, its CRD and the check of manifests come.
 *
 * Fields, defaults and bounds are KubeRay's; `retryStrategy`, `attempts`, `executionAttempt` and `conditions` are added.
 * The older version is in v1alpha1.ts, the rules across fields in rules.ts, what the controller refuses in domain/.
 */
import Type, { type Static } from "typebox";
import type { KubeObject } from "./object.ts";
import { managedBy, podTemplate, rayClusterSpec, rayClusterStatus } from "./raycluster.ts";
import { celRules } from "./rules.ts";
import { atomicList, condition, flag, int32, int64, known, listMap, oneOf, text, textMap, time } from "./schema.ts";

const optional = Type.Optional;

const SUBMISSION_MODES = ["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"] as const;
const RETRY_STRATEGIES = ["Recreate", "BlockingRecreate"] as const;
const DELETION_POLICIES = ["DeleteCluster", "DeleteWorkers", "DeleteSelf", "DeleteNone"] as const;

export type SubmissionMode = (typeof SUBMISSION_MODES)[number];
export type RetryStrategyType = (typeof RETRY_STRATEGIES)[number];
export type DeletionPolicy = (typeof DELETION_POLICIES)[number];

/** Ray's word on the job; empty before Ray knew it. */
export type JobStatus = "" | "PENDING" | "RUNNING" | "STOPPED" | "SUCCEEDED" | "FAILED";

/** The RayJob's phase; empty while new. */
export type JobDeploymentStatus =
  | ""
  | "Initializing"
  | "Running"
  | "Complete"
  | "Failed"
  | "ValidationFailed"
  | "Suspending"
  | "Suspended"
  | "Retrying"
  | "Waiting";

/** Why it failed, in KubeRay's words and one of ours (the last); `FailureCause` is finer. */
export type JobFailedReason =
  | ""
  | "SubmissionFailed"
  | "DeadlineExceeded"
  | "PreRunningDeadlineExceeded"
  | "AppFailed"
  | "JobDeploymentStatusTransitionGracePeriodExceeded"
  | "JobStatusCheckTimeoutExceeded"
  | "ValidationFailed"
  | "RetryBlockedTimeoutExceeded";

/**
 * Why an attempt failed, in its record and in the condition `Failed`; finer than `status.reason`, so that a lost head, a lost
 * submission and a failed program can be told apart.
 */
export type FailureCause =
  | "ApplicationFailed"
  | "ApplicationStopped"
  | "SubmissionFailed"
  | "RayJobLost"
  | "HeadPodFailed"
  | "HeadPodLost"
  | "DriverNodeDead"
  | "RayClusterLost"
  | "DeadlineExceeded"
  | "PreRunningDeadlineExceeded"
  | "StatusCheckTimeout"
  | "RetryBlockedTimeout"
  | "ValidationFailed";

const legacyDeletion = () =>
  Type.Object({ policy: optional(oneOf(DELETION_POLICIES)) }, { description: "Deprecated: use deletionRules." });

const deletionStrategy = Type.Object(
  {
    deletionRules: optional(
      atomicList(
        Type.Object({
          condition: Type.Object(
            {
              jobDeploymentStatus: optional(oneOf(["Failed", "Complete"])),
              jobStatus: optional(oneOf(["SUCCEEDED", "FAILED"])),
              ttlSeconds: optional(
                int32({ default: 0, minimum: 0, description: "Seconds between the end of the job and the deletion." }),
              ),
            },
            celRules("deletionConditionExclusive", "deletionConditionPresent"),
          ),
          policy: oneOf(DELETION_POLICIES),
        }),
        { minItems: 1 },
      ),
    ),
    onFailure: optional(legacyDeletion()),
    onSuccess: optional(legacyDeletion()),
  },
  {
    description: "What is deleted when the job has ended, and when.",
    ...celRules("deletionFormsExclusive", "deletionFormComplete"),
  },
);

const retryStrategy = Type.Object(
  {
    blockingTimeoutSeconds: optional(
      int32({ minimum: 1, description: "How long a BlockingRecreate may wait before the job fails." }),
    ),
    type: optional(
      oneOf(RETRY_STRATEGIES, {
        default: "Recreate",
        description:
          "Recreate starts the next attempt when the last one has failed; BlockingRecreate only when nothing of the last one exists any more.",
      }),
    ),
  },
  { description: "How the next attempt follows a failed one.", ...celRules("blockingTimeoutNeedsBlocking") },
);

export const rayJobSpec = Type.Object(
  {
    activeDeadlineSeconds: optional(int32({ description: "How long an attempt may take from its start." })),
    backoffLimit: optional(
      int32({ default: 0, description: "Failed attempts after which the job is not tried again." }),
    ),
    clusterSelector: optional(
      textMap({ description: "Run on the RayCluster named by ray.io/cluster instead of an own one." }),
    ),
    deletionStrategy: optional(deletionStrategy),
    entrypoint: optional(text({ description: "Shell command that Ray runs as the job." })),
    entrypointNumCpus: optional(Type.Number({ description: "CPUs that Ray reserves for the entrypoint." })),
    entrypointNumGpus: optional(Type.Number({ description: "GPUs that Ray reserves for the entrypoint." })),
    entrypointResources: optional(
      text({ description: "Other resources that Ray reserves for the entrypoint, as a JSON object." }),
    ),
    jobId: optional(text({ description: "Submission id in Ray; made up when absent." })),
    managedBy: optional(managedBy()),
    metadata: optional(textMap({ description: "Metadata of the job in Ray." })),
    preRunningDeadlineSeconds: optional(
      int32({ minimum: 1, description: "How long it may take from the start of an attempt until it runs." }),
    ),
    rayClusterSpec: optional(rayClusterSpec),
    retryStrategy: optional(retryStrategy),
    runtimeEnvYAML: optional(text({ description: "Ray's runtime environment of the job, as a YAML mapping." })),
    shutdownAfterJobFinishes: optional(flag({ description: "Delete the RayCluster when the job has ended." })),
    submissionMode: optional(
      oneOf(SUBMISSION_MODES, { default: "K8sJobMode", description: "Who submits the job to Ray." }),
    ),
    submitterConfig: optional(
      Type.Object({ backoffLimit: optional(int32({ description: "Restarts of a failed submitter." })) }),
    ),
    submitterPodTemplate: optional(podTemplate("Pod of the submitter in K8sJobMode.")),
    suspend: optional(flag({ description: "Stop the job and free what it uses; unset it to start the next attempt." })),
    ttlSecondsAfterFinished: optional(
      int32({ default: 0, description: "Seconds between the end of the job and the deletion of its cluster." }),
    ),
  },
  { description: "What shall run, and on what.", ...celRules("blockingNeedsOwnCluster") },
);

const barrier = Type.Object(
  {
    blockedTime: optional(time({ description: "When it was first said to be blocked." })),
    releasedTime: optional(time({ description: "When it was blocked no more." })),
    suspendedSeconds: optional(
      int32({
        minimum: 0,
        description: "What blockingTimeoutSeconds does not count: suspensions, and waits for a valid spec.",
      }),
    ),
    suspendedTime: optional(time({ description: "Since when it has been suspended." })),
    toldTime: optional(time({ description: "When it was last said what is left." })),
  },
  { description: "How the retry after this attempt waited for it to be gone (BlockingRecreate)." },
);

export const attemptRecord = Type.Object({
  barrier: optional(barrier),
  driverNodeDeadTime: optional(
    time({ description: "Since when an operator has seen the driver's node dead or missing." }),
  ),
  endTime: optional(time()),
  headPodUID: optional(text({ description: "The head Pod that the job was submitted to." })),
  jobId: optional(text()),
  jobStatus: optional(known<JobStatus>({ description: "How it ended, in Ray's word." })),
  message: optional(text()),
  number: int32({ description: "0 for the first attempt." }),
  observedTime: optional(time({ description: "When Ray first knew the job." })),
  ownsCluster: optional(flag()),
  rayClusterName: optional(text()),
  raySession: optional(text({ description: "Ray's session that the job was submitted to." })),
  reason: optional(known<JobFailedReason | FailureCause>()),
  retryStrategy: optional(known<RetryStrategyType>()),
  runningTime: optional(time({ description: "When Ray first said RUNNING." })),
  startTime: optional(time()),
  submissionMode: optional(known<SubmissionMode>()),
  submissionStartTime: optional(time({ description: "Written before the submitter exists." })),
  submitterDeletions: optional(
    int32({
      minimum: 0,
      description:
        "How often the submitter was found deleted while Ray ran the job. After the first it is made once more.",
    }),
  ),
});

export const rayJobStatus = Type.Object({
  attempts: optional(
    atomicList(attemptRecord, { description: "The last attempts, ten at most; the last entry is the current one." }),
  ),
  conditions: optional(listMap("type", condition())),
  dashboardURL: optional(text()),
  endTime: optional(time()),
  executionAttempt: optional(
    int32({ minimum: 0, description: "Number of the current attempt, from 0; absent before the first." }),
  ),
  failed: optional(int32({ default: 0, description: "Failed attempts." })),
  jobDeploymentStatus: optional(known<JobDeploymentStatus>({ description: "Phase of the RayJob." })),
  jobId: optional(text()),
  jobStatus: optional(known<JobStatus>({ description: "Ray's word on the job." })),
  jobStatusCheckFailureStartTime: optional(time({ description: "Since when Ray has not answered." })),
  message: optional(text()),
  observedGeneration: optional(int64()),
  rayClusterName: optional(text()),
  rayClusterStatus: optional(rayClusterStatus),
  rayJobInfo: optional(Type.Object({ endTime: optional(time()), startTime: optional(time()) })),
  reason: optional(known<JobFailedReason>()),
  startTime: optional(time({ description: "Start of the current attempt." })),
  succeeded: optional(int32({ default: 0, description: "Attempts that succeeded." })),
});

export type DeletionStrategy = Static<typeof deletionStrategy>;
export type RetryStrategy = Static<typeof retryStrategy>;
export type RayJobSpec = Static<typeof rayJobSpec>;
export type AttemptRecord = Static<typeof attemptRecord>;
export type RayJobStatus = Static<typeof rayJobStatus>;

export interface RayJob extends KubeObject {
  spec: RayJobSpec;
  status?: RayJobStatus;
}
