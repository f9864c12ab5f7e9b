/**
 * The log: every version of every object, in one order.
 *
 * Answers: what is stored now, what was stored at an earlier version, what has changed since one, and calls those who
 * want to know of each change.
 * May not: know any rule of any kind; whoever writes has settled what is to be written.
 * Next: verbs.ts writes here; watch.ts and the controllers listen.
 */
import { expired } from "./errors.ts";
import { frozen, type Item, withMeta } from "./json.ts";

/** `namespace/name`, or `name` for a kind without namespaces. */
export type Key = string;
export const keyOf = (namespace: string | undefined, name: string): Key => (namespace ? `${namespace}/${name}` : name);

/** One entry of the log. */
export interface Change {
  readonly version: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** The kind's place in the store (`Resource.id`). */
  readonly resource: string;
  readonly key: Key;
  /** The new state; of a deleted object its last state, under the deletion's version. */
  readonly object: Item;
  readonly old?: Item;
}

export type Listener = (change: Change) => void;

interface Shelf {
  readonly items: Map<Key, Item>;
  /** The objects by key; undefined when the list must be made anew. */
  sorted?: readonly Item[];
  readonly log: Change[];
}

export class Storage {
  /** The newest version; no two writes share one. */
  version = 1;
  /** Versions older than this are forgotten. */
  #oldest = 1;
  readonly #history: number;
  readonly #shelves = new Map<string, Shelf>();
  readonly #listeners = new Set<Listener>();

  /** Keeps the last `history` versions for lists and watches that start in the past. */
  constructor(history: number) {
    this.#history = history;
  }

  get(resource: string, key: Key): Item | undefined {
    return this.#shelves.get(resource)?.items.get(key);
  }

  /** All objects of a kind, by key. */
  all(resource: string): readonly Item[] {
    const shelf = this.#shelf(resource);
    shelf.sorted ??= [...shelf.items.keys()].sort().map((key) => shelf.items.get(key)!);
    return shelf.sorted;
  }

  /** All objects of a kind, by key, as they were at `version`. Throws 410 when that is forgotten. */
  allAt(resource: string, version: number): readonly Item[] {
    if (version >= this.version) return this.all(resource);
    const items = new Map(this.#shelf(resource).items);
    for (const change of [...this.since(resource, version)].reverse()) {
      if (change.old) items.set(change.key, change.old);
      else items.delete(change.key);
    }
    return [...items].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, item]) => item);
  }

  /** What happened to a kind after `version`. Throws 410 when that is forgotten. */
  since(resource: string, version: number): readonly Change[] {
    if (version < this.#oldest) throw expired(`too old resource version: ${version} (${this.#oldest})`);
    const { log } = this.#shelf(resource);
    let first = log.length;
    while (first > 0 && log[first - 1]!.version > version) first--;
    return log.slice(first);
  }

  /** Stores a new state, or forgets the object when there is none. Returns what is stored, or what it was at the end. */
  write(resource: string, key: Key, object: Item | undefined): Item {
    const shelf = this.#shelf(resource);
    const old = shelf.items.get(key);
    if (!object && !old) throw new Error(`nothing is stored at ${resource} ${key}`);
    this.version++;
    const item = frozen(withMeta((object ?? old)!, { resourceVersion: String(this.version) }));
    if (object) shelf.items.set(key, item);
    else shelf.items.delete(key);
    shelf.sorted = undefined;
    const type = !object ? "DELETED" : old ? "MODIFIED" : "ADDED";
    const change: Change = { version: this.version, type, resource, key, object: item, old };
    shelf.log.push(change);
    this.#forget(shelf);
    for (const listener of this.#listeners) listener(change);
    return item;
  }

  /** Forgets every version before `version` (the newest when not given), as etcd's compaction does. */
  compact(version: number = this.version): void {
    this.#oldest = Math.max(this.#oldest, Math.min(version, this.version));
    for (const shelf of this.#shelves.values()) this.#forget(shelf, true);
  }

  /** Calls `listener` after each change, in order, before the write returns. */
  listen(listener: Listener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Every object there is, by kind and key. */
  *everything(): Iterable<{ resource: string; key: Key; item: Item }> {
    for (const resource of [...this.#shelves.keys()].sort()) {
      const { items } = this.#shelf(resource);
      for (const key of [...items.keys()].sort()) yield { resource, key, item: items.get(key)! };
    }
  }

  #forget(shelf: Shelf, all = false): void {
    this.#oldest = Math.max(this.#oldest, this.version - this.#history);
    // In strides, because removing from the front of an array costs its whole length.
    const stale = shelf.log.findIndex((change) => change.version > this.#oldest);
    if (stale === -1) shelf.log.length = 0;
    else if (all || stale > 1000) shelf.log.splice(0, stale);
  }

  #shelf(resource: string): Shelf {
    let shelf = this.#shelves.get(resource);
    if (!shelf) {
      shelf = { items: new Map(), log: [] };
      this.#shelves.set(resource, shelf);
    }
    return shelf;
  }
}
