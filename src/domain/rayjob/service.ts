/**
 * The RayJob's own head Service, `<rayjob>-head-svc`: the same name for every attempt's head.
 *
 * It belongs to the RayCluster, so that it goes when the cluster goes. Nothing of ours connects through it.
 */
import type { Service, ServicePort } from "../../api/kubernetes.ts";
import { APPLICATION_NAME, CREATED_BY, LABEL, NODE_TYPE } from "../../api/labels.ts";
import type { KubeObject, Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJob } from "../../api/rayjob.ts";
import type { KubeEffect } from "../decision.ts";
import { DEFAULT_HEAD_PORTS } from "../raycluster/names.ts";
import type { Settings } from "../settings.ts";
import { attemptLabels } from "./cluster.ts";
import { headServiceName } from "./names.ts";

export function createHeadService(
  job: Stored<RayJob>,
  record: AttemptRecord,
  cluster: Stored<RayCluster>,
  settings: Settings,
): KubeEffect {
  const name = headServiceName(job.metadata.name);
  const object: Service & KubeObject & { kind: "Service"; apiVersion: string } = {
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      name,
      namespace: job.metadata.namespace,
      labels: {
        [LABEL.originatedFromName]: job.metadata.name,
        [LABEL.originatedFromCRD]: "RayJob",
        [LABEL.nodeType]: NODE_TYPE.head,
        [LABEL.identifier]: `${job.metadata.name}-head`,
        ...attemptLabels(job, record),
      },
      ownerReferences: [
        {
          apiVersion: "ray.io/v1",
          kind: "RayCluster",
          name: cluster.metadata.name,
          uid: cluster.metadata.uid,
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: serviceSpec(cluster, settings),
  };
  const place = `${job.metadata.namespace}/${name}`;
  return {
    do: "create",
    object,
    why: "the head of the current attempt is to be found under the RayJob's name",
    event: { type: "Normal", reason: "CreatedService", action: "Create", note: `Created the service ${place}` },
    failureEvent: {
      type: "Warning",
      reason: "FailedToCreateService",
      action: "Create",
      note: `Failed to create the service ${place}, {error}`,
    },
  };
}

function serviceSpec(cluster: Stored<RayCluster>, settings: Settings): Service["spec"] {
  const head = cluster.spec.headGroupSpec;
  const custom = head.headService?.spec;
  const selector = {
    [LABEL.cluster]: cluster.metadata.name,
    [LABEL.nodeType]: NODE_TYPE.head,
    [LABEL.identifier]: `${cluster.metadata.name}-head`,
    [LABEL.applicationName]: APPLICATION_NAME,
    [LABEL.createdBy]: CREATED_BY,
  };
  if (custom)
    return { ...custom, selector, ports: [...(custom.ports ?? []), ...missing(custom.ports, ports(cluster))] };
  const headless = (!head.serviceType || head.serviceType === "ClusterIP") && !settings.headClusterIPService;
  return {
    ...(head.serviceType ? { type: head.serviceType } : {}),
    ...(headless ? { clusterIP: "None", publishNotReadyAddresses: true } : {}),
    selector,
    ports: ports(cluster),
  };
}

const missing = (have: readonly ServicePort[] | undefined, wanted: readonly ServicePort[]): ServicePort[] =>
  wanted.filter((port) => !have?.some(({ name }) => name === port.name));

function ports(cluster: RayCluster): ServicePort[] {
  const declared = cluster.spec.headGroupSpec.template.spec?.containers?.[0]?.ports ?? [];
  const named = declared.length
    ? Object.fromEntries(declared.map((port) => [port.name || `${port.containerPort}-port`, port.containerPort]))
    : DEFAULT_HEAD_PORTS;
  return Object.entries({ metrics: DEFAULT_HEAD_PORTS["metrics"]!, ...named })
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, port]) => ({ name, port, appProtocol: "tcp" }));
}
