/**
 * RayCluster: one schema, from which its TypeScript types, its CRD and the check of manifests come.
 *
 * Fields, defaults and bounds are KubeRay's, with `status.head.podUID` added. A Pod template is Kubernetes' own, in full.
 * The older version is in v1alpha1.ts, the rules across fields in rules.ts, what the controller refuses in domain/.
 */
import Type, { type Static } from "typebox";
import type {
  EnvFromSource,
  EnvVar,
  EnvVarSource,
  IngressTLS,
  NetworkPolicyEgressRule,
  NetworkPolicyIngressRule,
  PodTemplateSpec,
  ResourceRequirements,
  SecurityContext,
  Service,
  VolumeMount,
} from "./kubernetes.ts";
import type { KubeObject } from "./object.ts";
import { celRules } from "./rules.ts";
import {
  condition,
  flag,
  int32,
  int64,
  known,
  kubernetes,
  list,
  listMap,
  mapOf,
  oneOf,
  quantity,
  text,
  textMap,
  time,
} from "./schema.ts";

const optional = Type.Optional;

const envVars = () => list(kubernetes<EnvVar>("EnvVar"));

export const managedBy = () =>
  text({
    description:
      "Which controller acts on the object. With any value but ray.io/kuberay-operator this operator leaves it alone.",
    ...celRules("managedByImmutable", "managedByKnown"),
  });

export const podTemplate = (description: string) => kubernetes<PodTemplateSpec>("PodTemplateSpec", { description });

export const headGroupSpec = Type.Object(
  {
    enableIngress: optional(flag({ description: "Make an Ingress for the dashboard." })),
    headService: optional(
      kubernetes<Omit<Service, "metadata"> & Partial<KubeObject>>("Service", {
        description: "The head Service as the user wants it; names, selector and ports are completed.",
      }),
    ),
    ingressOptions: optional(
      Type.Object({
        host: optional(text()),
        path: optional(text()),
        pathType: optional(oneOf(["Exact", "Prefix", "ImplementationSpecific"])),
        tls: optional(list(kubernetes<IngressTLS>("IngressTLS"))),
      }),
    ),
    labels: optional(textMap({ description: "Labels of the Pod and of the Ray node." })),
    rayStartParams: optional(textMap({ description: "Options of `ray start`, without their dashes." })),
    resources: optional(textMap({ description: "Logical resources of the Ray node; they win over rayStartParams." })),
    serviceType: optional(text({ description: "Type of the head Service." })),
    template: podTemplate("Pod of the head; its first container runs Ray."),
  },
  { description: "The head: one Pod." },
);

export const workerGroupSpec = Type.Object({
  groupName: text({ description: "Name of the group, unique within the cluster." }),
  idleTimeoutSeconds: optional(int32({ description: "Idle time after which the autoscaler removes a worker." })),
  labels: optional(textMap({ description: "Labels of the Pods and of the Ray nodes." })),
  maxReplicas: int32({ default: 2147483647, description: "Upper bound of replicas." }),
  minReplicas: int32({ default: 0, description: "Lower bound of replicas." }),
  numOfHosts: optional(int32({ default: 1, description: "Pods per replica." })),
  priority: optional(int32({ default: 0, description: "Which group the autoscaler prefers." })),
  rayStartParams: optional(textMap({ description: "Options of `ray start`, without their dashes." })),
  replicas: optional(int32({ default: 0, description: "Desired replicas, kept within the bounds." })),
  resources: optional(textMap({ description: "Logical resources of the Ray nodes; they win over rayStartParams." })),
  scaleStrategy: optional(
    Type.Object({
      workersToDelete: optional(list(text(), { description: "Names of Pods to remove; the autoscaler writes them." })),
    }),
  ),
  suspend: optional(flag({ description: "Delete the Pods of the group." })),
  template: podTemplate("Pod of a worker; its first container runs Ray."),
});

export const autoscalerOptions = Type.Object({
  args: optional(list(text())),
  command: optional(list(text())),
  env: optional(envVars()),
  envFrom: optional(list(kubernetes<EnvFromSource>("EnvFromSource"))),
  idleTimeoutSeconds: optional(int32()),
  image: optional(text()),
  imagePullPolicy: optional(text()),
  resources: optional(kubernetes<ResourceRequirements>("ResourceRequirements")),
  securityContext: optional(kubernetes<SecurityContext>("SecurityContext")),
  upscalingMode: optional(oneOf(["Default", "Aggressive", "Conservative"])),
  version: optional(oneOf(["v1", "v2"])),
  volumeMounts: optional(list(kubernetes<VolumeMount>("VolumeMount"))),
});

const redisCredential = () =>
  Type.Object({
    value: optional(text()),
    valueFrom: optional(kubernetes<EnvVarSource>("EnvVarSource")),
  });

export const gcsFaultToleranceOptions = Type.Object(
  {
    backend: optional(oneOf(["redis", "rocksdb"], celRules("gcsBackendImmutable"))),
    externalStorageNamespace: optional(text()),
    redisAddress: optional(text()),
    redisPassword: optional(redisCredential()),
    redisUsername: optional(redisCredential()),
    storage: optional(
      Type.Object({
        accessModes: optional(list(text())),
        claimName: optional(text()),
        deletionPolicy: optional(oneOf(["DeleteWithCluster", "Retain"])),
        size: optional(quantity()),
        storageClassName: optional(text()),
        subPath: optional(text()),
      }),
    ),
  },
  { description: "Where the head keeps its state, so that a new head can go on with it." },
);

const networkRules = () => ({
  egressRules: optional(list(kubernetes<NetworkPolicyEgressRule>("NetworkPolicyEgressRule"))),
  ingressRules: optional(list(kubernetes<NetworkPolicyIngressRule>("NetworkPolicyIngressRule"))),
});

const networkPolicy = Type.Object({
  head: optional(Type.Object(networkRules())),
  mode: optional(oneOf(["DenyAll", "DenyAllIngress", "DenyAllEgress"], { default: "DenyAll" })),
  worker: optional(Type.Object(networkRules())),
  workerGroups: optional(listMap("groupName", Type.Object({ groupName: text(), ...networkRules() }))),
});

export const rayClusterSpec = Type.Object(
  {
    authOptions: optional(
      Type.Object(
        {
          enableK8sTokenAuth: optional(
            flag({ description: "Have Ray ask Kubernetes about tokens; not supported yet." }),
          ),
          mode: optional(oneOf(["disabled", "token"], { description: "Absent means token." })),
          secretName: optional(
            text({ description: "Secret whose key auth_token has the token; one is made where none is named." }),
          ),
        },
        { description: "Whether Ray asks for a token." },
      ),
    ),
    autoscalerOptions: optional(autoscalerOptions),
    enableInTreeAutoscaling: optional(flag({ description: "Run Ray's autoscaler beside the head." })),
    gcsFaultToleranceOptions: optional(gcsFaultToleranceOptions),
    headGroupSpec,
    headServiceAnnotations: optional(textMap({ description: "Annotations of the head Service." })),
    historyServerOptions: optional(
      Type.Object({
        collectorOptions: optional(
          Type.Object({
            env: optional(envVars()),
            image: optional(text()),
            imagePullPolicy: optional(text()),
            resources: optional(kubernetes<ResourceRequirements>("ResourceRequirements")),
          }),
        ),
      }),
    ),
    managedBy: optional(managedBy()),
    networkPolicy: optional(networkPolicy),
    rayVersion: optional(
      text({ description: "Version of Ray in the images, which decides what the operator may ask of it." }),
    ),
    suspend: optional(flag({ description: "Delete all Pods, and make none." })),
    tlsOptions: optional(Type.Object({ enabled: optional(flag()) })),
    upgradeStrategy: optional(Type.Object({ type: optional(oneOf(["Recreate", "None"])) })),
    workerGroupSpecs: optional(list(workerGroupSpec, { description: "The groups of workers." })),
  },
  { description: "What the cluster shall be." },
);

export type RayClusterState = "" | "ready" | "suspended" | "failed";

export const rayClusterStatus = Type.Object({
  availableWorkerReplicas: optional(int32({ description: "Worker Pods that are running and ready." })),
  conditions: optional(listMap("type", condition())),
  desiredCPU: optional(quantity()),
  desiredGPU: optional(quantity()),
  desiredMemory: optional(quantity()),
  desiredTPU: optional(quantity()),
  desiredWorkerReplicas: optional(int32({ description: "Worker Pods that shall exist." })),
  endpoints: optional(textMap({ description: "Port of the head Service by its name." })),
  head: optional(
    Type.Object({
      podIP: optional(text()),
      podName: optional(text()),
      podUID: optional(text({ description: "The one head Pod, where the cluster may have only one in its life." })),
      serviceIP: optional(text()),
      serviceName: optional(text()),
    }),
  ),
  lastUpdateTime: optional(time({ nullable: true })),
  maxWorkerReplicas: optional(int32()),
  minWorkerReplicas: optional(int32()),
  observedGeneration: optional(int64()),
  readyWorkerReplicas: optional(int32()),
  reason: optional(text()),
  state: optional(known<RayClusterState>()),
  stateTransitionTimes: optional(mapOf(time(), { description: "When each state was last entered." })),
});

export type HeadGroupSpec = Static<typeof headGroupSpec>;
export type WorkerGroupSpec = Static<typeof workerGroupSpec>;
export type AutoscalerOptions = Static<typeof autoscalerOptions>;
export type GCSFaultToleranceOptions = Static<typeof gcsFaultToleranceOptions>;
export type RayClusterSpec = Static<typeof rayClusterSpec>;
export type RayClusterStatus = Static<typeof rayClusterStatus>;

export interface RayCluster extends KubeObject {
  /** Absent only in an object that never passed the API server's validation. */
  spec: RayClusterSpec;
  status?: RayClusterStatus;
}
