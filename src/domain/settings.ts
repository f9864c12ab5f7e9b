/**
 * What the operator's administrator chose, as plain values. Read once at start (config.ts) and frozen.
 * Names and defaults of flags and environment variables are KubeRay's.
 */
import type { Container, EnvVar } from "../api/kubernetes.ts";
import type { Duration } from "./time.ts";
import { seconds } from "./time.ts";

export interface Settings {
  /** `CLUSTER_DOMAIN`. */
  readonly clusterDomain: string;
  /** `RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS`: how long a finished job waits for its submitter's log. */
  readonly transitionGrace: Duration;
  /** `RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS`: how long Ray may be silent while its head looks well. */
  readonly statusCheckTimeout: Duration;
  /** `ENABLE_LOGIN_SHELL`. */
  readonly loginShell: boolean;
  /** `ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE`. */
  readonly headClusterIPService: boolean;
  /** `ENABLE_PROBES_INJECTION`. */
  readonly probesInjection: boolean;
  /** `ENABLE_INIT_CONTAINER_INJECTION`. */
  readonly initContainerInjection: boolean;
  /** `DELETE_RAYJOB_CR_AFTER_JOB_FINISHES`. */
  readonly deleteRayJobAfterFinish: boolean;
  /** Gate `RayJobDeletionPolicy`: `deletionStrategy` may be used. */
  readonly deletionPolicy: boolean;
  /** Gate `SidecarSubmitterRestart`: kubelet starts a sidecar that failed again. */
  readonly sidecarRestart: boolean;
  /** What every head and worker Pod gets beside what its user wrote; where both say something, the user does. */
  readonly podDefaults: PodDefaults;
  /** The generated submitter: a Python program, passed to its container as an argument. */
  readonly submitterProgram: string;
  /** Reported to Ray's usage statistics as `kuberay_version`, and stamped on head Pods. */
  readonly version: string;
}

/** Of the configuration file, where each name begins with `default`, `head` or `worker`. */
export interface PodDefaults {
  /** Of the Ray container. */
  readonly containerEnv: readonly EnvVar[];
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly headSidecars: readonly Container[];
  readonly workerSidecars: readonly Container[];
}

export const defaultSettings: Settings = {
  clusterDomain: "cluster.local",
  transitionGrace: seconds(300),
  statusCheckTimeout: seconds(300),
  loginShell: false,
  headClusterIPService: false,
  probesInjection: true,
  initContainerInjection: true,
  deleteRayJobAfterFinish: false,
  deletionPolicy: true,
  sidecarRestart: false,
  podDefaults: { containerEnv: [], annotations: {}, labels: {}, headSidecars: [], workerSidecars: [] },
  submitterProgram: "",
  version: "raykeeper-v0.1.0",
};
