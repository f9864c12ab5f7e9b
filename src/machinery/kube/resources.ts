/**
 * Where each kind lives in the API: the one table of resources that the operator reads or writes.
 */
import { KubeError } from "./errors.ts";

export interface ResourceType {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

const namespaced = (group: string, version: string, kind: string, plural: string): ResourceType => ({
  group,
  version,
  plural,
  singular: kind.toLowerCase(),
  kind,
  namespaced: true,
});
const clusterWide = (group: string, version: string, kind: string, plural: string): ResourceType => ({
  ...namespaced(group, version, kind, plural),
  namespaced: false,
});

export const pods = namespaced("", "v1", "Pod", "pods");
export const services = namespaced("", "v1", "Service", "services");
export const configMaps = namespaced("", "v1", "ConfigMap", "configmaps");
export const secrets = namespaced("", "v1", "Secret", "secrets");
export const serviceAccounts = namespaced("", "v1", "ServiceAccount", "serviceaccounts");
export const namespaces = clusterWide("", "v1", "Namespace", "namespaces");
export const nodes = clusterWide("", "v1", "Node", "nodes");
export const events = namespaced("events.k8s.io", "v1", "Event", "events");
export const jobs = namespaced("batch", "v1", "Job", "jobs");
export const leases = namespaced("coordination.k8s.io", "v1", "Lease", "leases");
export const endpointSlices = namespaced("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices");
export const customResourceDefinitions = clusterWide(
  "apiextensions.k8s.io",
  "v1",
  "CustomResourceDefinition",
  "customresourcedefinitions",
);
export const validatingWebhookConfigurations = clusterWide(
  "admissionregistration.k8s.io",
  "v1",
  "ValidatingWebhookConfiguration",
  "validatingwebhookconfigurations",
);
export const rayJobs = namespaced("ray.io", "v1", "RayJob", "rayjobs");
export const rayClusters = namespaced("ray.io", "v1", "RayCluster", "rayclusters");

export const allResources: readonly ResourceType[] = [
  pods,
  services,
  configMaps,
  secrets,
  serviceAccounts,
  namespaces,
  nodes,
  events,
  jobs,
  leases,
  endpointSlices,
  customResourceDefinitions,
  validatingWebhookConfigurations,
  rayJobs,
  rayClusters,
];

const kinds = new Map(allResources.map((type) => [type.kind, type]));

/** The resource of a kind. Throws for a kind that is not in the table: that is a mistake in the program, not in a manifest. */
export function byKind(kind: string): ResourceType {
  const type = kinds.get(kind);
  if (!type) throw new Error(`no resource is known for kind ${kind}`);
  return type;
}

/** `v1`, `ray.io/v1`: what objects of this type carry as `apiVersion`. */
export function apiVersion(type: ResourceType): string {
  return type.group ? `${type.group}/${type.version}` : type.version;
}

/** Names a resource within one API server: `pods`, `rayjobs.ray.io`. */
export function resourceName(type: ResourceType): string {
  return type.group ? `${type.plural}.${type.group}` : type.plural;
}

/** The request path of a collection, an object or a subresource; without a namespace, a collection spans all of them. */
export function resourcePath(type: ResourceType, namespace?: string, name?: string, subresource?: string): string {
  const segments = [
    ...(type.group ? ["apis", type.group, type.version] : ["api", type.version]),
    ...(type.namespaced && namespace ? ["namespaces", namespace] : []),
    type.plural,
    ...(name ? [name] : []),
    ...(subresource ? [subresource] : []),
  ];
  // No object is called so, and what stands before an API server may take such a path for another one.
  const odd = segments.find((segment) => /[/%]|^\.\.?$/.test(segment));
  if (odd !== undefined) throw new KubeError(404, "NotFound", `nothing can be named ${JSON.stringify(odd)}`);
  return `/${segments.map(encodeURIComponent).join("/")}`;
}
