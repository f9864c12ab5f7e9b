/**
 * The garbage collector: what happens to an object when its owner goes.
 *
 * Answers: deletes objects none of whose owners exist (an owner of that name with another UID is another owner), holds
 * an owner in foreground deletion until what blocks it is gone, and lets the dependents of an orphaning owner go free.
 * May not: act when it hears of a change; it acts in step().
 */
import type { OwnerReference } from "../api/object.ts";
import { attempt, Dirty, type SimController } from "./controllers.ts";
import type { Item } from "./json.ts";
import type { Registry } from "./registry.ts";
import { type Change, type Key, keyOf, type Storage } from "./storage.ts";
import { callOn, FOREGROUND, ORPHAN, type Propagation, type Verbs } from "./verbs.ts";

interface Place {
  readonly resource: string;
  readonly key: Key;
}

export class GarbageCollector implements SimController {
  readonly name = "garbage collector";
  readonly #storage: Storage;
  readonly #registry: Registry;
  readonly #verbs: Verbs;
  readonly #dirty = new Dirty<Place>();
  /** UID of an owner -> places of the objects that name it. */
  readonly #dependents = new Map<string, Map<string, Place>>();

  constructor(parts: { storage: Storage; registry: Registry; verbs: Verbs }) {
    this.#storage = parts.storage;
    this.#registry = parts.registry;
    this.#verbs = parts.verbs;
    this.#storage.listen((change) => this.#hear(change));
  }

  step(): boolean {
    const place = this.#dirty.take();
    if (!place) return false;
    const item = this.#storage.get(place.resource, place.key);
    if (item) this.#look(place, item);
    return true;
  }

  wakeAt(): undefined {
    return undefined;
  }

  #hear({ resource, key, type, object, old }: Change): void {
    const place = { resource, key };
    this.#index(place, old?.metadata.ownerReferences, type === "DELETED" ? undefined : object.metadata.ownerReferences);
    if (type === "DELETED") {
      this.#mark(...this.#dependentsOf(object.metadata.uid));
      // What waits for its dependents may now have waited enough.
      for (const owner of object.metadata.ownerReferences ?? []) this.#markOwner(owner, object);
      return;
    }
    if (object.metadata.ownerReferences !== old?.metadata.ownerReferences) {
      if (object.metadata.ownerReferences?.length) this.#mark(place);
      for (const owner of old?.metadata.ownerReferences ?? []) this.#markOwner(owner, object);
    }
    if (object.metadata.deletionTimestamp && hasFinalizer(object, FOREGROUND, ORPHAN)) {
      this.#mark(place, ...this.#dependentsOf(object.metadata.uid));
    }
  }

  #mark(...places: readonly Place[]): void {
    for (const place of places) this.#dirty.add(`${place.resource} ${place.key}`, place);
  }

  #markOwner(owner: OwnerReference, dependent: Item): void {
    const place = this.#placeOf(owner, dependent);
    const item = place && this.#storage.get(place.resource, place.key);
    if (item?.metadata.deletionTimestamp && hasFinalizer(item, FOREGROUND, ORPHAN)) this.#mark(place!);
  }

  #index(place: Place, before: readonly OwnerReference[] = [], after: readonly OwnerReference[] = []): void {
    if (before === after) return;
    const name = `${place.resource} ${place.key}`;
    for (const { uid } of before) {
      const dependents = this.#dependents.get(uid);
      dependents?.delete(name);
      if (dependents?.size === 0) this.#dependents.delete(uid);
    }
    for (const { uid } of after) {
      const dependents = this.#dependents.get(uid) ?? new Map<string, Place>();
      this.#dependents.set(uid, dependents.set(name, place));
    }
  }

  #dependentsOf(uid: string): readonly Place[] {
    return [...(this.#dependents.get(uid)?.values() ?? [])];
  }

  /** Does what is due for one object: one write at most. */
  #look(place: Place, item: Item): void {
    const { metadata } = item;
    if (metadata.deletionTimestamp) {
      if (hasFinalizer(item, ORPHAN)) this.#orphan(place, item);
      else if (hasFinalizer(item, FOREGROUND)) this.#finishForeground(place, item);
      return;
    }
    const owners = metadata.ownerReferences ?? [];
    if (owners.length > 0) this.#lookAtOwners(place, item, owners);
  }

  #lookAtOwners(place: Place, item: Item, owners: readonly OwnerReference[]): void {
    const states = owners.map((owner) => this.#stateOf(owner, item));
    if (states.includes("solid")) {
      // Somebody still needs it; only the references to those who do not are dropped.
      if (states.every((state) => state === "solid")) return;
      const kept = owners.filter((_, index) => states[index] === "solid");
      this.#write(place, item, { ownerReferences: kept });
      return;
    }
    const waited = states.includes("waiting") && this.#dependentsOf(item.metadata.uid).length > 0;
    const policy: Propagation | undefined = waited
      ? "Foreground"
      : hasFinalizer(item, ORPHAN, FOREGROUND)
        ? undefined
        : "Background";
    this.#delete(place, item, policy);
  }

  /** `solid`: exists; `waiting`: is being deleted and waits for its dependents; `absent`: does not exist (any more). */
  #stateOf(owner: OwnerReference, dependent: Item): "solid" | "waiting" | "absent" {
    const place = this.#placeOf(owner, dependent);
    // An owner of a kind that nobody knows cannot be judged; upstream leaves such an object alone, too.
    if (!place) return "solid";
    const item = this.#storage.get(place.resource, place.key);
    if (!item || item.metadata.uid !== owner.uid) return "absent";
    return item.metadata.deletionTimestamp && hasFinalizer(item, FOREGROUND) ? "waiting" : "solid";
  }

  #placeOf(owner: OwnerReference, dependent: Item): Place | undefined {
    const resource = this.#registry.byKind(owner.apiVersion, owner.kind);
    if (!resource) return undefined;
    const namespace = resource.namespaced ? dependent.metadata.namespace : undefined;
    return { resource: resource.id, key: keyOf(namespace, owner.name) };
  }

  /** Frees one dependent; the finalizer goes when there is none left. */
  #orphan(place: Place, item: Item): void {
    const { uid, finalizers = [] } = item.metadata;
    const [first] = this.#dependentsOf(uid);
    const dependent = first && this.#storage.get(first.resource, first.key);
    if (first && dependent) {
      const others = dependent.metadata.ownerReferences?.filter((owner) => owner.uid !== uid);
      this.#write(first, dependent, { ownerReferences: others });
      this.#mark(place);
      return;
    }
    this.#write(place, item, { finalizers: finalizers.filter((name) => name !== ORPHAN) });
  }

  /** Lets the owner go when nothing that blocks it is left; else sees to one that does. */
  #finishForeground(place: Place, item: Item): void {
    const { uid, finalizers = [] } = item.metadata;
    const blocking = this.#dependentsOf(uid).filter(({ resource, key }) =>
      this.#storage
        .get(resource, key)
        ?.metadata.ownerReferences?.some((owner) => owner.uid === uid && owner.blockOwnerDeletion),
    );
    if (blocking.length === 0) {
      this.#write(place, item, { finalizers: finalizers.filter((name) => name !== FOREGROUND) });
      return;
    }
    this.#mark(
      ...blocking.filter(({ resource, key }) => !this.#storage.get(resource, key)!.metadata.deletionTimestamp),
    );
  }

  #write({ resource }: Place, item: Item, metadata: object): void {
    attempt(() =>
      this.#verbs.patch(this.#call(resource, item), (old) => ({ ...old, metadata: { ...old.metadata, ...metadata } })),
    );
  }

  #delete({ resource }: Place, item: Item, propagationPolicy: Propagation | undefined): void {
    const { uid } = item.metadata;
    attempt(() => this.#verbs.delete(this.#call(resource, item), { propagationPolicy, preconditions: { uid } }));
  }

  #call(id: string, { metadata: { namespace, name } }: Item) {
    return callOn(this.#registry.byId(id)!, namespace, name);
  }
}

const hasFinalizer = ({ metadata }: Item, ...names: readonly string[]) =>
  metadata.finalizers?.some((name) => names.includes(name)) ?? false;
