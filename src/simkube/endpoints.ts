/**
 * The endpoints controller: which Pods are behind a Service.
 *
 * Answers: one EndpointSlice `<service>-<5 characters>` for each Service with a selector: Pods that have an address and
 * are not on their way out, ready ones only as ready (all of them, where the Service publishes not-ready addresses).
 */
import type { Endpoint, Pod, Service } from "../api/kubernetes.ts";
import { attempt, Dirty, type SimController } from "./controllers.ts";
import { equal, type Item } from "./json.ts";
import { endpointSlices } from "./kinds/core.ts";
import { pods } from "./kinds/pod.ts";
import { services } from "./kinds/service.ts";
import { matchesSelector } from "./selectors.ts";
import { type Key, keyOf, type Storage } from "./storage.ts";
import { callOn, type Verbs } from "./verbs.ts";

const SERVICE_NAME = "kubernetes.io/service-name";
const MANAGED_BY = "endpointslice.kubernetes.io/managed-by";
const MANAGER = "endpointslice-controller.k8s.io";

export class EndpointsController implements SimController {
  readonly name = "endpoints";
  readonly #storage: Storage;
  readonly #verbs: Verbs;
  readonly #dirty = new Dirty<Key>();

  constructor(parts: { storage: Storage; verbs: Verbs }) {
    this.#storage = parts.storage;
    this.#verbs = parts.verbs;
    this.#storage.listen(({ resource, key, object, old }) => {
      if (resource === services.id) this.#dirty.add(key, key);
      if (resource === pods.id) {
        // A Pod may leave one Service and join another by a change of its labels.
        for (const pod of [object, old]) if (pod) this.#markServicesOf(pod);
      }
      if (resource === endpointSlices.id) {
        const name = object.metadata.labels?.[SERVICE_NAME];
        if (name) this.#dirty.add(keyOf(object.metadata.namespace, name), keyOf(object.metadata.namespace, name));
      }
    });
  }

  step(): boolean {
    const key = this.#dirty.take();
    if (key === undefined) return false;
    const service = this.#storage.get(services.id, key) as unknown as Service | undefined;
    // A Service's slices go with it: they name it as their owner.
    if (service?.spec?.selector && !service.metadata.deletionTimestamp) this.#sync(service);
    return true;
  }

  wakeAt(): undefined {
    return undefined;
  }

  #markServicesOf(pod: Item): void {
    for (const item of this.#storage.all(services.id)) {
      if (item.metadata.namespace !== pod.metadata.namespace) continue;
      const selector = (item as unknown as Service).spec?.selector;
      const key = keyOf(item.metadata.namespace, item.metadata.name);
      if (selector && matchesSelector({ matchLabels: selector }, pod.metadata.labels ?? {})) this.#dirty.add(key, key);
    }
  }

  #sync(service: Service): void {
    const { namespace, name, uid } = service.metadata;
    const behind = this.#storage
      .all(pods.id)
      .filter(({ metadata }) => metadata.namespace === namespace)
      .filter(({ metadata }) => matchesSelector({ matchLabels: service.spec!.selector }, metadata.labels ?? {}))
      .map((item) => item as unknown as Pod);
    const endpoints = behind.filter(hasAddress).map((pod) => endpoint(pod, service));
    const ports = (service.spec!.ports ?? []).map(({ name = "", port, protocol, targetPort, appProtocol }) => ({
      name,
      protocol,
      port: number(targetPort ?? port, behind) ?? port,
      ...(appProtocol && { appProtocol }),
    }));
    const [slice] = this.#storage
      .all(endpointSlices.id)
      .filter(
        ({ metadata }) =>
          metadata.namespace === namespace &&
          metadata.labels?.[SERVICE_NAME] === name &&
          metadata.labels?.[MANAGED_BY] === MANAGER &&
          metadata.ownerReferences?.[0]?.uid === uid,
      );
    if (slice && equal(slice.endpoints, endpoints) && equal(slice.ports, ports)) return;
    attempt(() => {
      if (slice) {
        this.#verbs.patch(callOn(endpointSlices, namespace, slice.metadata.name), (old) => ({
          ...old,
          endpoints,
          ports,
        }));
        return;
      }
      const headless = service.spec!.clusterIP === "None";
      this.#verbs.create(callOn(endpointSlices, namespace), {
        metadata: {
          generateName: `${name}-`,
          labels: {
            ...service.metadata.labels,
            [SERVICE_NAME]: name,
            [MANAGED_BY]: MANAGER,
            ...(headless && { "service.kubernetes.io/headless": "" }),
          },
          ownerReferences: [
            { apiVersion: "v1", kind: "Service", name, uid, controller: true, blockOwnerDeletion: true },
          ],
        },
        addressType: "IPv4",
        endpoints,
        ports,
      });
    });
  }
}

const hasAddress = ({ metadata, status }: Pod): boolean =>
  status?.podIP !== undefined &&
  metadata.deletionTimestamp === undefined &&
  status.phase !== "Succeeded" &&
  status.phase !== "Failed";

function endpoint({ metadata, spec, status }: Pod, service: Service): Endpoint {
  const serving = status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
  const { name, namespace, uid } = metadata;
  return {
    addresses: [status!.podIP!],
    conditions: { ready: serving || service.spec?.publishNotReadyAddresses === true, serving, terminating: false },
    ...(spec?.hostname && spec.subdomain === service.metadata.name && { hostname: spec.hostname }),
    ...(spec?.nodeName && { nodeName: spec.nodeName }),
    targetRef: { kind: "Pod", name, namespace, uid },
  };
}

/** The number of a port that may be given by the name it has in the Pods' containers. */
function number(port: number | string, behind: readonly Pod[]): number | undefined {
  if (typeof port === "number") return port;
  for (const { spec } of behind) {
    for (const { ports } of spec?.containers ?? []) {
      const found = ports?.find(({ name }) => name === port);
      if (found) return found.containerPort;
    }
  }
  return undefined;
}
