/**
 * Empties what is being deleted together with what is in it: a namespace, a CustomResourceDefinition.
 *
 * Answers: one object deleted, or the empty container released, at each step.
 */
import type { Namespace } from "../api/kubernetes.ts";
import { attempt, Dirty, type SimController } from "./controllers.ts";
import type { Item } from "./json.ts";
import { namespaces } from "./kinds/core.ts";
import { CLEANUP, customResourceDefinitions, defined } from "./kinds/definition.ts";
import type { Registry, Resource } from "./registry.ts";
import type { Key, Storage } from "./storage.ts";
import { callOn, type Verbs } from "./verbs.ts";

export class Cleanup implements SimController {
  readonly name = "cleanup";
  readonly #storage: Storage;
  readonly #registry: Registry;
  readonly #verbs: Verbs;
  readonly #dirty = new Dirty<{ resource: string; key: Key }>();

  constructor(parts: { storage: Storage; registry: Registry; verbs: Verbs }) {
    this.#storage = parts.storage;
    this.#registry = parts.registry;
    this.#verbs = parts.verbs;
    this.#storage.listen(({ resource, key, type, object }) => {
      const container = resource === namespaces.id || resource === customResourceDefinitions.id;
      if (container && object.metadata.deletionTimestamp) this.#dirty.add(`${resource} ${key}`, { resource, key });
      // Something that held its container up is gone.
      if (type === "DELETED") this.#lookAtContainersOf(resource, object);
    });
  }

  step(): boolean {
    const place = this.#dirty.take();
    if (!place) return false;
    const item = this.#storage.get(place.resource, place.key);
    if (!item?.metadata.deletionTimestamp) return true;
    const content = place.resource === namespaces.id ? this.#inNamespace(item) : this.#ofKind(item);
    const next = content.find(([, one]) => !one.metadata.deletionTimestamp);
    if (next) {
      this.#delete(...next);
      this.#dirty.add(`${place.resource} ${place.key}`, place);
    } else if (content.length === 0) this.#release(place.resource, item);
    return true;
  }

  wakeAt(): undefined {
    return undefined;
  }

  #lookAtContainersOf(resource: string, { metadata: { namespace } }: Item): void {
    if (namespace !== undefined)
      this.#dirty.add(`${namespaces.id} ${namespace}`, { resource: namespaces.id, key: namespace });
    const own = this.#registry.byId(resource);
    if (!own?.custom) return;
    const key = `${own.plural}.${own.group}`;
    this.#dirty.add(`${customResourceDefinitions.id} ${key}`, { resource: customResourceDefinitions.id, key });
  }

  #inNamespace({ metadata: { name } }: Item): readonly [Resource, Item][] {
    return this.#registry
      .all()
      .filter(({ namespaced }) => namespaced)
      .flatMap((resource) =>
        this.#storage
          .all(resource.id)
          .filter(({ metadata }) => metadata.namespace === name)
          .map((item): [Resource, Item] => [resource, item]),
      );
  }

  #ofKind(definition: Item): readonly [Resource, Item][] {
    const resource = defined(definition);
    return this.#storage.all(resource.id).map((item) => [resource, item]);
  }

  #delete(resource: Resource, { metadata: { namespace, name } }: Item): void {
    attempt(() => this.#verbs.delete(callOn(resource, namespace, name), { propagationPolicy: "Background" }));
  }

  #release(id: string, item: Item): void {
    const resource = id === namespaces.id ? namespaces : customResourceDefinitions;
    attempt(() =>
      this.#verbs.patch(callOn(resource, undefined, item.metadata.name), (old) =>
        resource === namespaces
          ? { ...old, spec: { ...(old as unknown as Namespace).spec, finalizers: [] } }
          : {
              ...old,
              metadata: { ...old.metadata, finalizers: old.metadata.finalizers?.filter((one) => one !== CLEANUP) },
            },
      ),
    );
  }
}
