/**
 * The labels, annotations and finalizers that the operator and its users agree on, with the fixed values they take.
 *
 * These are KubeRay's, so that dashboards, selectors and NetworkPolicies of its users go on working; what is ours is
 * marked.
 */

export const LABEL = {
  /** Name of the RayCluster, on everything made for it. */
  cluster: "ray.io/cluster",
  nodeType: "ray.io/node-type",
  group: "ray.io/group",
  isRayNode: "ray.io/is-ray-node",
  /** `<cluster>-<node type>`. */
  identifier: "ray.io/identifier",
  serve: "ray.io/serve",
  headlessWorkerService: "ray.io/headless-worker-svc",
  workerGroupReplicaIndex: "ray.io/worker-group-replica-index",
  workerGroupReplicaName: "ray.io/worker-group-replica-name",
  replicaHostIndex: "ray.io/replica-host-index",
  applicationName: "app.kubernetes.io/name",
  createdBy: "app.kubernetes.io/created-by",
  originatedFromName: "ray.io/originated-from-cr-name",
  originatedFromCRD: "ray.io/originated-from-crd",
  jobSubmissionMode: "ray.io/job-submission-mode",
  gangSchedulingEnabled: "ray.io/gang-scheduling-enabled",
  priorityClassName: "ray.io/priority-class-name",
  /** Ours, also an annotation: which attempt of its RayJob an object belongs to, as a decimal number. */
  executionAttempt: "ray.io/execution-attempt",
  /** Ours: the UID of the RayJob an object belongs to; names come back, UIDs do not. */
  rayJobUID: "ray.io/rayjob-uid",
  /** Kubernetes': the Job that a Pod belongs to. */
  jobName: "batch.kubernetes.io/job-name",
  /** Kueue manages an object that carries it. */
  kueueQueueName: "kueue.x-k8s.io/queue-name",
} as const;

export const ANNOTATION = {
  /** Ours, as the label of the same name. */
  executionAttempt: "ray.io/execution-attempt",
  ftEnabled: "ray.io/ft-enabled",
  externalStorageNamespace: "ray.io/external-storage-namespace",
  gcsFTDeletionTimeout: "ray.io/gcs-ft-deletion-timeout",
  overwriteContainerCommand: "ray.io/overwrite-container-cmd",
  enableServeService: "ray.io/enable-serve-service",
  disableProvisionedHeadRestart: "ray.io/disable-provisioned-head-restart",
  ingressClass: "kubernetes.io/ingress.class",
  upgradeStrategyRecreateHash: "ray.io/upgrade-strategy-recreate-hash",
  kubeRayVersion: "ray.io/kuberay-version",
  /** Ours, on a RayJob's RayCluster: `true` where it may have one head Pod in its life. */
  oneHead: "raykeeper.dev/one-head",
  /** Ours, on a RayJob's RayCluster: what its attempt was asked to run, as JSON. */
  submission: "raykeeper.dev/submission",
  /** Ours: its user accepts Pods that outlive the quota which Kueue gave the job. */
  allowPodsOutsideQuota: "raykeeper.dev/allow-pods-outside-quota",
} as const;

export const FINALIZER = {
  rayJob: "ray.io/rayjob-finalizer",
  redisCleanup: "ray.io/gcs-ft-redis-cleanup-finalizer",
  /** The garbage collector's, while it deletes dependents first. */
  foregroundDeletion: "foregroundDeletion",
} as const;

/** Values of `ray.io/node-type`. */
export const NODE_TYPE = { head: "head", worker: "worker", redisCleanup: "redis-cleanup" } as const;

/** Values of `ray.io/group` that no worker group may take. */
export const GROUP = { head: "headgroup", submitter: "submittergroup" } as const;

/** The container that carries a job to Ray, in whichever Pod it is; Kueue accounts for it by this name. */
export const SUBMITTER_CONTAINER = "ray-job-submitter";

/** Values of `app.kubernetes.io/name` and `…/created-by`: KubeRay's, because selectors of its users name them. */
export const APPLICATION_NAME = "kuberay";
export const CREATED_BY = "kuberay-operator";

/** Values of `spec.managedBy`; any other value, or `multikueue`, means: leave the object alone. */
export const MANAGED_BY = { operator: "ray.io/kuberay-operator", multiKueue: "kueue.x-k8s.io/multikueue" } as const;
