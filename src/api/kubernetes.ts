/**
 * The Kubernetes kinds that the operator reads and writes, as types, by their usual names.
 *
 * They come from the API server's OpenAPI (see hack/openapi); what is optional on the way to the server is optional
 * here. Only `metadata` differs: it is always there, so that every kind is a `KubeObject`.
 */
import type { components } from "./generated/kubernetes.ts";
import type { KubeObject } from "./object.ts";

type Schemas = components["schemas"];
/** The names below a package, so that a misspelt one does not compile. */
type In<Package extends string> = keyof Schemas extends infer Name
  ? Name extends `${Package}.${infer Short}`
    ? Short
    : never
  : never;
type Core<Name extends In<"io.k8s.api.core.v1">> = Schemas[`io.k8s.api.core.v1.${Name}`];
type Batch<Name extends In<"io.k8s.api.batch.v1">> = Schemas[`io.k8s.api.batch.v1.${Name}`];
type Discovery<Name extends In<"io.k8s.api.discovery.v1">> = Schemas[`io.k8s.api.discovery.v1.${Name}`];
type Networking<Name extends In<"io.k8s.api.networking.v1">> = Schemas[`io.k8s.api.networking.v1.${Name}`];
type Extensions<Name extends In<"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1">> =
  Schemas[`io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.${Name}`];

/** A generated kind with `metadata` made certain. */
type Kind<T> = Omit<T, "metadata"> & KubeObject;

export type Pod = Kind<Core<"Pod">>;
export type PodSpec = Core<"PodSpec">;
export type PodStatus = Core<"PodStatus">;
export type PodCondition = Core<"PodCondition">;
export type PodTemplateSpec = Core<"PodTemplateSpec">;
export type Container = Core<"Container">;
export type ContainerPort = Core<"ContainerPort">;
export type ContainerStatus = Core<"ContainerStatus">;
export type ContainerState = Core<"ContainerState">;
export type EnvVar = Core<"EnvVar">;
export type EnvVarSource = Core<"EnvVarSource">;
export type EnvFromSource = Core<"EnvFromSource">;
export type Probe = Core<"Probe">;
export type Lifecycle = Core<"Lifecycle">;
export type ResourceRequirements = Core<"ResourceRequirements">;
export type SecurityContext = Core<"SecurityContext">;
export type Volume = Core<"Volume">;
export type VolumeMount = Core<"VolumeMount">;
export type Toleration = Core<"Toleration">;
export type ConfigMap = Kind<Core<"ConfigMap">>;
export type Secret = Kind<Core<"Secret">>;
export type Namespace = Kind<Core<"Namespace">>;
export type Node = Kind<Core<"Node">>;
export type Service = Kind<Core<"Service">>;
export type ServiceSpec = Core<"ServiceSpec">;
export type ServicePort = Core<"ServicePort">;
export type ServiceAccount = Kind<Core<"ServiceAccount">>;

export type Job = Kind<Batch<"Job">>;
export type JobSpec = Batch<"JobSpec">;
export type JobStatus = Batch<"JobStatus">;
export type JobCondition = Batch<"JobCondition">;

export type Lease = Kind<Schemas["io.k8s.api.coordination.v1.Lease"]>;
export type LeaseSpec = Schemas["io.k8s.api.coordination.v1.LeaseSpec"];

export type EndpointSlice = Kind<Discovery<"EndpointSlice">>;
export type Endpoint = Discovery<"Endpoint">;

/** events.k8s.io/v1, not the older kind of the core group. */
export type Event = Kind<Schemas["io.k8s.api.events.v1.Event"]>;
export type EventSeries = Schemas["io.k8s.api.events.v1.EventSeries"];

export type IngressTLS = Networking<"IngressTLS">;
export type NetworkPolicyIngressRule = Networking<"NetworkPolicyIngressRule">;
export type NetworkPolicyEgressRule = Networking<"NetworkPolicyEgressRule">;

export type CustomResourceDefinition = Kind<Extensions<"CustomResourceDefinition">>;
export type CustomResourceDefinitionVersion = Extensions<"CustomResourceDefinitionVersion">;
export type JSONSchemaProps = Extensions<"JSONSchemaProps">;

/** A resource amount as the wire spells it (`500m`, `1Gi`, or a bare number); quantity.ts computes with it. */
export type Quantity = Schemas["io.k8s.apimachinery.pkg.api.resource.Quantity"];
export type ObjectReference = Core<"ObjectReference">;
