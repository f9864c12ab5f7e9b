/**
 * What the watch has shown so far: the objects of one resource, trimmed and indexed.
 *
 * Answers from memory. May lag behind the server, which is why it also says how far it has got (`highWater`): presence
 * here is a fact of a moment ago, absence is one only up to that version.
 * Next: informer.ts fills it; freshness.ts waits for it.
 */
import type { KubeObject, Stored } from "../../api/object.ts";

export interface Change<T extends KubeObject> {
  readonly old?: Stored<T>;
  readonly new?: Stored<T>;
}

/** Objects in the store are shared by all readers: never change one. */
export interface Store<T extends KubeObject> {
  get(namespace: string, name: string): Stored<T> | undefined;
  /** In the order of their keys, so that what is decided from a list does not depend on the order of arrival. */
  list(namespace?: string): Stored<T>[];
  /** Objects for which the index function returned `value`. Throws for an index that was not declared. */
  byIndex(index: string, value: string): Stored<T>[];
  /** Everything up to this version has been seen, in every namespace watched; empty before the first list. */
  readonly highWater: string;
  /** The same for one namespace. */
  highWaterOf(namespace: string): string;
  readonly hasSynced: boolean;
}

export interface StoreOptions<T extends KubeObject> {
  /** Returns what is worth keeping; must keep metadata's name, namespace, uid, resourceVersion, labels and owners. */
  readonly trim?: (object: Stored<T>) => Stored<T>;
  readonly indexes?: Readonly<Record<string, (object: Stored<T>) => string[]>>;
  /** The namespaces watched, or `[""]` for all at once. */
  readonly scopes?: readonly string[];
}

export const objectKey = (namespace: string | undefined, name: string): string => `${namespace ?? ""}/${name}`;

/**
 * Whether version `a` is `b` or newer. Versions of one resource are numbers that grow (KEP-5504, promised from
 * Kubernetes 1.35, true of every etcd-backed server before); of a server that spells them otherwise only equality is known.
 */
export function reached(a: string, b: string): boolean {
  if (a === b) return true;
  return isNumber(a) && isNumber(b) && BigInt(a) >= BigInt(b);
}

const isNumber = (version: string) => /^[0-9]+$/.test(version);
/** `a` is surely newer than `b`. */
const newer = (a: string, b: string) => a !== b && isNumber(a) && isNumber(b) && BigInt(a) > BigInt(b);

/** Leaves out what no decision reads, so that memory holds what decisions need. */
export function trimMetadata<T extends KubeObject>(object: Stored<T>): Stored<T> {
  const { managedFields, ...metadata } = object.metadata;
  const annotations = metadata.annotations;
  if (annotations && LAST_APPLIED in annotations) {
    const { [LAST_APPLIED]: _, ...kept } = annotations;
    metadata.annotations = kept;
  }
  return { ...object, metadata } as Stored<T>;
}

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/** The store with its writing side, which only the informer and freshness use. */
export class MutableStore<T extends KubeObject> implements Store<T> {
  readonly #objects = new Map<string, Stored<T>>();
  readonly #indexes: ReadonlyMap<string, Index<T>>;
  readonly #trim: (object: Stored<T>) => Stored<T>;
  /** By scope; absent until that scope's first list. */
  readonly #versions = new Map<string, string>();
  readonly #scopes: readonly string[];

  constructor(options: StoreOptions<T> = {}) {
    this.#trim = options.trim ?? trimMetadata;
    this.#scopes = options.scopes ?? [""];
    this.#indexes = new Map(Object.entries(options.indexes ?? {}).map(([name, of]) => [name, new Index(of)]));
  }

  get(namespace: string, name: string): Stored<T> | undefined {
    return this.#objects.get(objectKey(namespace, name));
  }

  list(namespace?: string): Stored<T>[] {
    const all = [...this.#objects.entries()].sort(byKey);
    const some = namespace === undefined ? all : all.filter(([, object]) => object.metadata.namespace === namespace);
    return some.map(([, object]) => object);
  }

  byIndex(name: string, value: string): Stored<T>[] {
    const index = this.#indexes.get(name);
    if (!index) throw new Error(`there is no index ${name}`);
    return [...index.keys(value)].sort().map((key) => this.#objects.get(key)!);
  }

  get highWater(): string {
    let lowest: string | undefined;
    for (const scope of this.#scopes) {
      const version = this.#versions.get(scope);
      if (version === undefined) return "";
      if (lowest === undefined || newer(lowest, version)) lowest = version;
    }
    return lowest ?? "";
  }

  highWaterOf(namespace: string): string {
    return this.#versions.get(this.#scopes.includes("") ? "" : namespace) ?? "";
  }

  get hasSynced(): boolean {
    return this.#scopes.every((scope) => this.#versions.has(scope));
  }

  /**
   * Takes over a whole list of one scope and returns what that changed; objects that are gone come as deletions. What
   * a live read has put in since, newer than the list, stays. A list older than what was seen already means that the
   * server's history went back (etcd restored from a backup): then only the list counts.
   */
  replace(scope: string, listed: readonly Stored<T>[], resourceVersion: string): Change<T>[] {
    const changes: Change<T>[] = [];
    const present = new Set<string>();
    const wentBack = newer(this.#versions.get(scope) ?? "", resourceVersion);
    for (const object of listed) {
      present.add(keyOf(object));
      const change = this.put(object, wentBack);
      if (change) changes.push(change);
    }
    for (const [key, old] of this.#objects) {
      const inScope = scope === "" || old.metadata.namespace === scope;
      if (!inScope || present.has(key)) continue;
      if (!wentBack && newer(old.metadata.resourceVersion, resourceVersion)) continue;
      this.#remove(key, old);
      changes.push({ old });
    }
    this.#versions.set(scope, resourceVersion);
    return changes;
  }

  /** Takes over one object; undefined when what is here is the same, or newer unless `evenOlder`. */
  put(object: Stored<T>, evenOlder = false): Change<T> | undefined {
    const key = keyOf(object);
    const old = this.#objects.get(key);
    if (old) {
      const known = old.metadata.resourceVersion;
      if (known === object.metadata.resourceVersion) return undefined;
      if (!evenOlder && newer(known, object.metadata.resourceVersion)) return undefined;
    }
    const kept = this.#trim(object);
    for (const index of this.#indexes.values()) index.replace(key, old, kept);
    this.#objects.set(key, kept);
    return old ? { old, new: kept } : { new: kept };
  }

  /** Takes an object out, seen as deleted at `resourceVersion` under `uid`. A namesake that came later stays. */
  drop(namespace: string | undefined, name: string, uid: string): Change<T> | undefined {
    const key = objectKey(namespace, name);
    const old = this.#objects.get(key);
    if (!old || old.metadata.uid !== uid) return undefined;
    this.#remove(key, old);
    return { old };
  }

  /** Everything of this scope up to the version has been seen. */
  advance(scope: string, resourceVersion: string): void {
    this.#versions.set(scope, resourceVersion);
  }

  #remove(key: string, old: Stored<T>): void {
    for (const index of this.#indexes.values()) index.replace(key, old, undefined);
    this.#objects.delete(key);
  }
}

const keyOf = (object: Stored) => objectKey(object.metadata.namespace, object.metadata.name);
const byKey = <V>([a]: [string, V], [b]: [string, V]) => (a < b ? -1 : a > b ? 1 : 0);

class Index<T extends KubeObject> {
  readonly #of: (object: Stored<T>) => string[];
  readonly #keys = new Map<string, Set<string>>();

  constructor(of: (object: Stored<T>) => string[]) {
    this.#of = of;
  }

  keys(value: string): ReadonlySet<string> {
    return this.#keys.get(value) ?? new Set();
  }

  replace(key: string, old: Stored<T> | undefined, next: Stored<T> | undefined): void {
    for (const value of old ? this.#of(old) : []) {
      const keys = this.#keys.get(value);
      keys?.delete(key);
      if (keys?.size === 0) this.#keys.delete(value);
    }
    for (const value of next ? this.#of(next) : []) {
      const keys = this.#keys.get(value);
      if (keys) keys.add(key);
      else this.#keys.set(value, new Set([key]));
    }
  }
}
