/**
 * Which kinds there are, and what is special about each.
 *
 * Answers: the resource a path or an owner reference names.
 * May not: hold an object; the kinds' own rules are in kinds/, and those of a custom kind come from its definition
 * (kinds/definitions.ts).
 * Next: verbs.ts applies what a Resource says.
 */
import type { Cause } from "./errors.ts";
import type { Fields, Item } from "./json.ts";
import type { Random } from "./random.ts";
import type { Schema } from "./schema.ts";
import type { Storage } from "./storage.ts";

/** A column of `kubectl get`. */
export interface Column {
  readonly name: string;
  readonly type?: "string" | "integer" | "number" | "boolean" | "date";
  readonly format?: string;
  readonly description?: string;
  /** 0 is shown always, more only with `-o wide`. */
  readonly priority?: number;
  readonly cell: (item: Item, now: number) => unknown;
}

/** A version under which a kind is served. */
export interface ServedVersion {
  /** The kind's own group, save for events, which are served in two. */
  readonly group: string;
  readonly name: string;
  /** Of the whole object; what it does not name is dropped. Without one everything is kept. */
  readonly schema?: Schema;
  readonly columns: readonly Column[];
  /** The stored object as this version shows it, and back; the same object where nothing differs. */
  readonly show: (stored: Item) => Item;
  readonly store: (shown: Item) => Item;
}

/** What a kind's own rules may look at and draw from. */
export interface World {
  /** The version that the request is made in. */
  readonly version: ServedVersion;
  readonly storage: Storage;
  readonly registry: Registry;
  readonly random: Random;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface Resource {
  /** `group/plural`: the kind's place in the store. */
  readonly id: string;
  readonly group: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** Best first. */
  readonly versions: readonly ServedVersion[];
  /** `/status` exists, and the main verbs leave status alone. */
  readonly hasStatus: boolean;
  /** Counts changes of the specification in metadata.generation. */
  readonly hasGeneration: boolean;
  /** A custom kind: its lists tell kind and version of each item, an update must carry a resourceVersion. */
  readonly custom: boolean;
  /** An update without a resourceVersion is taken to mean the newest. */
  readonly unconditionalUpdate: boolean;
  /** `/status` also writes labels and annotations. */
  readonly metadataThroughStatus?: boolean;
  /** What a deletion answers when nothing is left: the object, not a Status. */
  readonly answersDeletionWithObject?: boolean;
  /** How a name must look. */
  readonly names: "subdomain" | "label" | "label1035";
  /** What `status` is at first; absent otherwise. */
  readonly firstStatus?: (item: Item) => Fields;
  /** The object with what was left out. On an update `old` is what was there; asked when more than status changed. */
  readonly complete?: (item: Item, old: Item | undefined, world: World) => Item;
  /** What is wrong with an object, whose main part or one of whose subresources is written. */
  readonly validate?: (
    item: Item,
    old: Item | undefined,
    world: World,
    part: "main" | "subresource",
  ) => readonly Cause[];
  /** Seconds an object has between the request to delete it and its end; undefined when it goes at once. */
  readonly gracePeriod?: (item: Item, requested: number | undefined) => number;
  /** Something besides finalizers that keeps a deleted object. */
  readonly held?: (item: Item) => boolean;
  /** Values of the fields that a field selector may name, besides metadata.name and metadata.namespace. */
  readonly fields?: Readonly<Record<string, (item: Item) => string>>;
}

export interface Served {
  readonly resource: Resource;
  readonly version: ServedVersion;
}

export class Registry {
  readonly #resources = new Map<string, Resource>();
  readonly #served = new Map<string, Served>();

  /** Adds a kind, or puts it in the place of its namesake. */
  add(resource: Resource): void {
    this.remove(resource.id);
    this.#resources.set(resource.id, resource);
    for (const version of resource.versions) {
      this.#served.set(`${version.group}/${version.name}/${resource.plural}`, { resource, version });
    }
  }

  remove(id: string): void {
    this.#resources.delete(id);
    for (const [key, { resource }] of this.#served) if (resource.id === id) this.#served.delete(key);
  }

  all(): readonly Resource[] {
    return [...this.#resources.values()];
  }

  byId(id: string): Resource | undefined {
    return this.#resources.get(id);
  }

  /** What a path names: group (empty for the core), version, plural. */
  find(group: string, version: string, plural: string): Served | undefined {
    return this.#served.get(`${group}/${version}/${plural}`);
  }

  /** The resource that an owner reference means; any version of its group will do. */
  byKind(apiVersion: string, kind: string): Resource | undefined {
    const group = apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
    return this.all().find((resource) => resource.kind === kind && resource.group === group);
  }

  /** Each group with its versions, best first, as discovery tells them. */
  groups(): ReadonlyMap<string, readonly string[]> {
    const groups = new Map<string, string[]>();
    for (const { version } of this.#served.values()) {
      const versions = groups.get(version.group) ?? [];
      if (!versions.includes(version.name)) versions.push(version.name);
      groups.set(version.group, versions);
    }
    return groups;
  }

  /** What is served under one version of a group. */
  inVersion(group: string, name: string): readonly Served[] {
    return [...this.#served.values()].filter(({ version }) => version.group === group && version.name === name);
  }
}
