/**
 * The RayJob's own head Service, `<rayjob>-head-svc`: the same name for every attempt's head.
 *
 * It belongs to the RayCluster, so that it goes when the cluster goes. Nothing of ours connects through it.
 */
import type { Service } from "../../api/kubernetes.ts";
import { LABEL, NODE_TYPE } from "../../api/labels.ts";
import type { KubeObject, Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJob } from "../../api/rayjob.ts";
import type { KubeEffect } from "../decision.ts";
import { headService as headServiceOf } from "../raycluster/services.ts";
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
  const annotations = cluster.spec.headGroupSpec.headService?.metadata?.annotations;
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
      ...(annotations && { annotations }),
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

/**
 * As the RayCluster's own, so that both lead to the same Pod; what only one Service can have stays with that one.
 */
function serviceSpec(cluster: Stored<RayCluster>, settings: Settings): Service["spec"] {
  const {
    clusterIP,
    clusterIPs: _,
    loadBalancerIP: __,
    healthCheckNodePort: ___,
    ports,
    ...spec
  } = headServiceOf(cluster, settings).spec!;
  return {
    ...spec,
    ...(clusterIP === "None" && { clusterIP }),
    ports: ports?.map(({ nodePort: _, ...port }) => port),
  };
}
