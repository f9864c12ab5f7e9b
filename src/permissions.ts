/**
 * What the operator may do on the API server, right by right, with the reason: the one table from which the chart's,
 * kustomize's and the plain manifest's roles are made (`npm run generate`).
 *
 * The tests on a real API server run the operator with exactly these. A request that is denied fails them, and so does a
 * right that is never used, unless `unseen` says why no test can see it used.
 */

import { crds } from "./api/crds.ts";
import { LOCK_NAME } from "./machinery/leader.ts";
import { configurationName } from "./webhook/keeper.ts";

export interface Permission {
  /** Empty for the core group. */
  readonly group: string;
  readonly resource: string;
  readonly verbs: readonly string[];
  /** Only objects of these names. */
  readonly names?: readonly string[];
  readonly why: string;
  /** Granted only where this is chosen. */
  readonly when?: "useKubernetesProxy";
  /** Why nobody sees it used. */
  readonly unseen?: string;
}

const OWNED =
  "objects are made with blockOwnerDeletion, for which the admission plug-in OwnerReferencesPermissionEnforcement (on in OpenShift) asks this right";
const ASKED_BY_ADMISSION = "the admission plug-in asks the authorizer itself, which is not in the audit log";

/** In each namespace whose RayJobs and RayClusters it cares for. */
export const operatorPermissions: readonly Permission[] = [
  {
    group: "ray.io",
    resource: "rayjobs",
    verbs: ["get", "list", "watch", "patch", "delete"],
    why: "watched; patched for the finalizer; deleted where a RayJob is to go when it has ended",
  },
  { group: "ray.io", resource: "rayjobs/status", verbs: ["patch"], why: "the journal, and all that users read" },
  { group: "ray.io", resource: "rayjobs/finalizers", verbs: ["update"], why: OWNED, unseen: ASKED_BY_ADMISSION },
  {
    group: "ray.io",
    resource: "rayclusters",
    verbs: ["get", "list", "watch", "create", "patch", "delete"],
    why: "one is made for each attempt, and deleted after it; patched for the count of failed Pods",
  },
  { group: "ray.io", resource: "rayclusters/status", verbs: ["patch"], why: "as with RayJobs" },
  { group: "ray.io", resource: "rayclusters/finalizers", verbs: ["update"], why: OWNED, unseen: ASKED_BY_ADMISSION },
  {
    group: "",
    resource: "pods",
    verbs: ["get", "list", "watch", "create", "delete"],
    why: "heads and workers; what is left of an attempt",
  },
  {
    group: "",
    resource: "services",
    verbs: ["get", "list", "watch", "create", "delete"],
    why: "head Services; deleted while a RayCluster is suspended",
  },
  {
    group: "",
    resource: "services/proxy",
    verbs: ["get", "create", "delete"],
    when: "useKubernetesProxy",
    why: "Ray's dashboards through the API server: asked, given a job or told to stop it, told to forget one",
    unseen: "no Pod of these tests can be reached by the API server",
  },
  {
    group: "",
    resource: "secrets",
    verbs: ["get", "create"],
    why: "token authentication: made for a RayCluster that names none; read, one by its name, where a Ray wants a token. Never listed, watched or changed",
  },
  {
    group: "batch",
    resource: "jobs",
    verbs: ["get", "list", "watch", "create", "patch", "delete"],
    why: "submitters; patched so that an ended job's submitter is not started again",
  },
  {
    group: "events.k8s.io",
    resource: "events",
    verbs: ["create", "patch", "list"],
    why: "told; patched to count repetitions; listed to tell why a volume cannot be mounted, and whether a head that is gone had been there",
  },
];

/** In the operator's own namespace. A right to create cannot be bound to a name. */
export const leaderElectionPermissions: readonly Permission[] = [
  { group: "coordination.k8s.io", resource: "leases", verbs: ["create"], why: "the first leader makes the lease" },
  {
    group: "coordination.k8s.io",
    resource: "leases",
    verbs: ["get", "update"],
    names: [LOCK_NAME],
    why: "who leads",
  },
];

/** Name of the webhook's objects, as the environment variable RAYKEEPER_WEBHOOK_NAME has it; the chart has one of its own. */
export const WEBHOOK = "kuberay-operator-webhook";

/** In the operator's own namespace, with the webhook: its certificates, where nobody else makes them. */
export const webhookPermissions: readonly Permission[] = [
  { group: "", resource: "secrets", verbs: ["create"], why: "the first replica makes the Secret" },
  { group: "", resource: "secrets", verbs: ["get", "update"], names: [WEBHOOK], why: "certificates and their renewal" },
];

/** Cluster-wide, as the object is: whom the API server is to trust. */
export const webhookConfigurationPermissions = (namespace: string): readonly Permission[] => [
  {
    group: "admissionregistration.k8s.io",
    resource: "validatingwebhookconfigurations",
    verbs: ["get", "patch"],
    names: [configurationName(WEBHOOK, namespace)],
    why: "`caBundle`, and nothing else",
  },
];

/** Of `raykeeper crds --apply`, which the chart's hook runs; the operator itself has none of them. */
export const crdPermissions: readonly Permission[] = [
  {
    group: "apiextensions.k8s.io",
    resource: "customresourcedefinitions",
    verbs: ["create"],
    why: "a cluster that has none yet; a right to create cannot be bound to a name",
  },
  {
    group: "apiextensions.k8s.io",
    resource: "customresourcedefinitions",
    verbs: ["get", "patch"],
    names: crds().map(({ metadata }) => metadata.name!),
    why: "server-side apply, and waiting until they are served",
  },
];

/** For people: what KubeRay's roles of the same names give. */
export const userPermissions = {
  "rayjob-editor-role": [
    {
      group: "ray.io",
      resource: "rayjobs",
      verbs: ["create", "delete", "get", "list", "patch", "update", "watch"],
      why: "who runs jobs",
    },
    { group: "ray.io", resource: "rayjobs/status", verbs: ["get"], why: "who runs jobs" },
  ],
  "rayjob-viewer-role": [
    { group: "ray.io", resource: "rayjobs", verbs: ["get", "list", "watch"], why: "who looks" },
    { group: "ray.io", resource: "rayjobs/status", verbs: ["get"], why: "who looks" },
  ],
} as const satisfies Record<string, readonly Permission[]>;

export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

/** As a Role has it. */
export const rule = ({ group, resource, verbs, names }: Permission): PolicyRule => ({
  apiGroups: [group],
  resources: [resource],
  ...(names ? { resourceNames: names } : {}),
  verbs,
});
