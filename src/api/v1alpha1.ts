/**
 * The deprecated version `v1alpha1` of both kinds: served because old clients (Ray's autoscaler of old) still ask for it,
 * never stored. It knows fewer fields, wants `rayStartParams`, and checks of a Pod template only its skeleton.
 *
 * Fields are named one by one, so that a field added to the current version does not appear here.
 */
import Type from "typebox";
import { autoscalerOptions, headGroupSpec, rayClusterSpec, rayClusterStatus, workerGroupSpec } from "./raycluster.ts";
import { rayJobSpec, rayJobStatus } from "./rayjob.ts";
import { list, looseTemplate, subset, textMap } from "./schema.ts";

const template = looseTemplate();
const rayStartParams = textMap();

const clusterSpec = subset(
  rayClusterSpec,
  ["enableInTreeAutoscaling", "headServiceAnnotations", "rayVersion", "suspend"],
  {
    autoscalerOptions: Type.Optional(
      subset(autoscalerOptions, [
        "env",
        "envFrom",
        "idleTimeoutSeconds",
        "image",
        "imagePullPolicy",
        "resources",
        "securityContext",
        "upscalingMode",
        "volumeMounts",
      ]),
    ),
    headGroupSpec: subset(headGroupSpec, ["enableIngress", "headService", "serviceType"], { rayStartParams, template }),
    workerGroupSpecs: Type.Optional(
      list(
        subset(workerGroupSpec, ["groupName", "maxReplicas", "minReplicas", "replicas", "scaleStrategy"], {
          rayStartParams,
          template,
        }),
      ),
    ),
  },
);

const clusterStatus = subset(
  rayClusterStatus,
  [
    "availableWorkerReplicas",
    "desiredCPU",
    "desiredGPU",
    "desiredMemory",
    "desiredTPU",
    "desiredWorkerReplicas",
    "endpoints",
    "lastUpdateTime",
    "maxWorkerReplicas",
    "minWorkerReplicas",
    "observedGeneration",
    "readyWorkerReplicas",
    "reason",
    "state",
  ],
  { head: Type.Optional(subset(rayClusterStatus.properties.head, ["podIP", "serviceIP"])) },
);

const jobSpec = subset(
  rayJobSpec,
  [
    "clusterSelector",
    "entrypointNumCpus",
    "entrypointNumGpus",
    "entrypointResources",
    "jobId",
    "metadata",
    "runtimeEnvYAML",
    "shutdownAfterJobFinishes",
    "suspend",
    "ttlSecondsAfterFinished",
  ],
  {
    entrypoint: Type.String(),
    rayClusterSpec: Type.Optional(clusterSpec),
    submitterPodTemplate: Type.Optional(template),
  },
);

const jobStatus = subset(
  rayJobStatus,
  [
    "dashboardURL",
    "endTime",
    "jobDeploymentStatus",
    "jobId",
    "jobStatus",
    "message",
    "observedGeneration",
    "rayClusterName",
    "startTime",
  ],
  { rayClusterStatus: Type.Optional(clusterStatus) },
);

export const v1alpha1 = {
  RayJob: { spec: jobSpec, status: jobStatus },
  RayCluster: { spec: clusterSpec, status: clusterStatus },
} as const;
