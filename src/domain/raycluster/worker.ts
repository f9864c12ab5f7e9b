/**
 * A worker Pod: what it looks like.
 *
 * Answers: the Pod of one group, ready to be created. How many of them there shall be is scale.ts's.
 * May not: look at the Pods that exist.
 */
import type { Container, PodTemplateSpec, ResourceRequirements } from "../../api/kubernetes.ts";
import { NODE_TYPE } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import { quantityValue } from "../../api/quantity.ts";
import type { RayCluster, WorkerGroupSpec } from "../../api/raycluster.ts";
import type { Settings } from "../settings.ts";
import { tokenVariables } from "./auth.ts";
import { gcsPort, headServiceFQDN, workerGenerateName } from "./names.ts";
import { type NewPod, nodePod } from "./pod.ts";
import { shell, workerStartParams } from "./start.ts";

/** Importing Ray alone takes more than 256 MiB in some images. */
const LEAST_WAIT_MEMORY = "512Mi";

export function workerPod(cluster: Stored<RayCluster>, group: WorkerGroupSpec, settings: Settings): NewPod {
  return nodePod(
    cluster,
    {
      nodeType: NODE_TYPE.worker,
      groupName: group.groupName,
      template: settings.initContainerInjection ? withWait(cluster, group.template, settings) : group.template,
      labels: group.labels ?? {},
      params: workerStartParams(cluster, group, settings),
      name: { generateName: workerGenerateName(cluster.metadata.name, group.groupName) },
    },
    settings,
  );
}

function withWait(cluster: RayCluster, template: PodTemplateSpec, settings: Settings): PodTemplateSpec {
  const spec = template.spec!;
  const wait = waitForGCS(cluster, spec.containers[0]!, settings);
  return { ...template, spec: { ...spec, initContainers: [...(spec.initContainers ?? []), wait] } };
}

/** Without it every worker would restart until the head is up, and count as failing. */
function waitForGCS(cluster: RayCluster, ray: Container, settings: Settings): Container {
  const { image, imagePullPolicy, securityContext, env, volumeMounts } = ray;
  const auth = tokenVariables(cluster, ray);
  return {
    name: "wait-gcs-ready",
    image,
    ...(imagePullPolicy && { imagePullPolicy }),
    command: shell(settings),
    args: [waitScript(`${headServiceFQDN(cluster, settings)}:${gcsPort(cluster)}`)],
    ...((env || auth.length > 0) && { env: [...(env ?? []), ...auth] }),
    ...(volumeMounts && { volumeMounts }),
    ...(securityContext && { securityContext }),
    resources: waitResources(ray.resources ?? {}),
  };
}

/**
 * CPU and memory of the Ray container: that costs nothing, since a Pod reserves the larger of its init containers and its
 * containers, and a small share (KubeRay's is 200m and 256Mi) has Ray's import take a minute, or be killed.
 */
function waitResources({ limits = {}, requests = {} }: ResourceRequirements): ResourceRequirements {
  const computeOnly = (amounts: Readonly<Record<string, string | number>>) =>
    Object.fromEntries(["cpu", "memory"].flatMap((name) => (name in amounts ? [[name, amounts[name]!]] : [])));
  const limit = computeOnly(limits);
  if ("memory" in limit && (quantityValue(limit["memory"]!) ?? 0) < quantityValue(LEAST_WAIT_MEMORY)!) {
    limit["memory"] = LEAST_WAIT_MEMORY;
  }
  const request = computeOnly(requests);
  return {
    ...(Object.keys(limit).length > 0 && { limits: limit }),
    ...(Object.keys(request).length > 0 && { requests: request }),
  } as ResourceRequirements;
}

/** Quiet for two minutes, since a head that starts refuses connections; then Ray's own words are shown. No `$(`: kubelet reads it. */
const waitScript = (address: string): string => `
SECONDS=0
while true; do
  if [ "$SECONDS" -le 120 ]; then
    ray health-check --address ${address} > /dev/null 2>&1 && break
    echo "$SECONDS seconds elapsed: waiting for the head's GCS at ${address}."
  else
    ray health-check --address ${address} && break
    echo "$SECONDS seconds elapsed: still waiting for the head's GCS at ${address}. Is the head Pod running and ready, and does the name of its Service resolve?"
  fi
  sleep 5
done
echo "The head's GCS is ready."
`;
