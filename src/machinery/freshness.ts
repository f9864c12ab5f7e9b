/**
 * Has the cache seen what we ourselves wrote?
 *
 * After each write its version is remembered under the reconcile key; nothing is decided about that key until the cache
 * shows it. Otherwise a reconcile that looks at a lagging cache would do its work twice. Writes of unknown outcome are
 * resolved by a live read first, so that absence of what we may have made is not believed from the cache.
 * May not: stick. After PATIENCE the objects are read live and the barrier opens.
 */
import type { KubeObject, Stored } from "../api/object.ts";
import type { Clock } from "./clock.ts";
import type { KubeClient } from "./kube/client.ts";
import { isNotFound } from "./kube/errors.ts";
import { type ResourceType, resourceName } from "./kube/resources.ts";
import { reached, type Store } from "./kube/store.ts";
import { describe, type Logger, silent } from "./logger.ts";
import { type Metrics, noMetrics } from "./metrics.ts";

const PATIENCE = 30_000;

/** What freshness needs of an informer (kube/informer.ts). */
export interface Cache {
  readonly type: ResourceType;
  // biome-ignore lint/suspicious/noExplicitAny: caches of all kinds are kept in one table; only metadata is read.
  readonly store: Store<any>;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  absorb(object: Stored<any>): void;
  absorbAbsence(namespace: string | undefined, name: string): void;
  onProgress(listener: () => void): void;
}

interface Expectation {
  readonly cache: Cache;
  readonly namespace: string;
  /** Undefined: a create with a generated name whose outcome is unknown; found again by its labels. */
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly since: number;
  readonly seen: () => boolean;
}

interface Pending {
  readonly expectations: Expectation[];
  wake?: () => void;
}

/** "fresh", or the milliseconds after which to ask again at the latest. */
export type Freshly = "fresh" | number;

export class Freshness {
  readonly #clock: Clock;
  readonly #client: KubeClient;
  readonly #log: Logger;
  readonly #metrics: Metrics;
  readonly #caches = new Map<string, Cache>();
  readonly #pending = new Map<string, Pending>();

  constructor(options: {
    readonly clock: Clock;
    readonly client: KubeClient;
    /** One for each resource that is written; of two of the same resource the last counts. */
    readonly caches: readonly Cache[];
    readonly log?: Logger;
    readonly metrics?: Metrics;
  }) {
    this.#clock = options.clock;
    this.#client = options.client;
    this.#log = options.log ?? silent;
    this.#metrics = options.metrics ?? noMetrics;
    for (const cache of options.caches) {
      this.#caches.set(resourceName(cache.type), cache);
      cache.onProgress(() => this.#progress());
    }
  }

  /** The write under `key` left this version of the object. Kinds that no cache holds are not waited for. */
  wrote(key: string, type: ResourceType, object: Stored): void {
    const { name, namespace = "", uid, resourceVersion } = object.metadata;
    const cache = this.#caches.get(resourceName(type));
    if (!cache) return;
    const removed = lastHoldRemoved(object);
    const wasHere = cache.store.get(namespace, name)?.metadata.uid === uid;
    this.#expect(key, {
      cache,
      namespace,
      name,
      since: this.#clock.now(),
      seen() {
        const here: Stored | undefined = cache.store.get(namespace, name);
        if (removed) return here?.metadata.uid !== uid;
        if (here?.metadata.uid === uid && reached(here.metadata.resourceVersion, resourceVersion)) return true;
        // Here when we wrote and not any more: its deletion has been seen.
        if (wasHere && here?.metadata.uid !== uid) return true;
        return reached(cache.store.highWaterOf(namespace), resourceVersion);
      },
    });
  }

  /** The server has accepted the deletion. */
  deleted(key: string, type: ResourceType, namespace: string, name: string, uid: string): void {
    const cache = this.#caches.get(resourceName(type));
    if (!cache) return;
    this.#expect(key, {
      cache,
      namespace,
      name,
      since: this.#clock.now(),
      seen() {
        const here: Stored | undefined = cache.store.get(namespace, name);
        return here?.metadata.uid !== uid || here.metadata.deletionTimestamp !== undefined;
      },
    });
  }

  /** Nobody knows whether the write was done: only a live read settles it. */
  unknown(key: string, type: ResourceType, object: Pick<KubeObject, "metadata">): void {
    const cache = this.#caches.get(resourceName(type));
    if (!cache) return;
    const { name, namespace = "", labels } = object.metadata;
    this.#expect(key, { cache, namespace, name, labels, since: Number.NEGATIVE_INFINITY, seen: () => false });
  }

  /**
   * May a decision about `key` be taken? Makes the live reads that are due; throws when one fails (the barrier then
   * stays shut: ask again after a back-off). `wake` is called once when it may have opened meanwhile.
   */
  async check(key: string, wake: () => void): Promise<Freshly> {
    const pending = this.#pending.get(key);
    if (!pending) return "fresh";
    pending.wake = undefined;
    this.#dropSeen(pending);
    const now = this.#clock.now();
    for (const due of pending.expectations.filter(({ since }) => now - since >= PATIENCE || now < since)) {
      await this.#readLive(due);
      remove(pending.expectations, due);
    }
    if (pending.expectations.length === 0) {
      this.#pending.delete(key);
      return "fresh";
    }
    pending.wake = wake;
    return Math.max(1, PATIENCE - (now - Math.min(...pending.expectations.map(({ since }) => since))));
  }

  /** Nothing is known any more of what was written under `key`. */
  forget(key: string): void {
    this.#pending.delete(key);
  }

  #expect(key: string, expectation: Expectation): void {
    const pending = this.#pending.get(key);
    if (pending) pending.expectations.push(expectation);
    else this.#pending.set(key, { expectations: [expectation] });
  }

  #progress(): void {
    for (const pending of this.#pending.values()) {
      if (!pending.wake) continue;
      this.#dropSeen(pending);
      if (pending.expectations.length > 0) continue;
      const { wake } = pending;
      pending.wake = undefined;
      wake();
    }
  }

  #dropSeen(pending: Pending): void {
    for (const expectation of pending.expectations.filter(({ seen }) => seen())) {
      remove(pending.expectations, expectation);
    }
  }

  /** Asks the server and puts the answer into the cache, ahead of the watch. */
  async #readLive({ cache, namespace, name, labels, since }: Expectation): Promise<void> {
    const resource = resourceName(cache.type);
    this.#metrics.count("raykeeper_live_reads_total", { resource });
    if (Number.isFinite(since)) {
      this.#log.warn({ resource, namespace, name }, "the cache has not shown our own write for long; reading it live");
    }
    if (name === undefined) {
      const labelSelector = selector(labels ?? {});
      const { items } = await this.#client.listAll(cache.type, { namespace: namespace || undefined, labelSelector });
      for (const item of items) cache.absorb(item);
      return;
    }
    try {
      cache.absorb(await this.#client.get(cache.type, namespace || undefined, name));
    } catch (error) {
      if (!isNotFound(error)) throw error;
      this.#log.debug({ resource, namespace, name, error: describe(error) }, "a live read found nothing");
      cache.absorbAbsence(namespace, name);
    }
  }
}

/**
 * Whether this write took the last finalizer off an object that was to be deleted. The server then answers with the
 * version before, which the cache has seen already; only its absence there shows that we were heard.
 */
function lastHoldRemoved({ metadata }: Stored): boolean {
  const waitsForKubelet = (metadata.deletionGracePeriodSeconds ?? 0) > 0;
  return metadata.deletionTimestamp !== undefined && !metadata.finalizers?.length && !waitsForKubelet;
}

/** A selector that all of these labels must match. */
export function selector(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
}

function remove<T>(list: T[], item: T): void {
  const index = list.indexOf(item);
  if (index >= 0) list.splice(index, 1);
}
