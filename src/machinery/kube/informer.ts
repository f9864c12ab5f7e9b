/**
 * Lists a resource, then follows its changes for good, keeping a store and telling its handlers.
 *
 * May not: stop. Whatever the server or the network does, it looks again: with what it has after a broken watch, from
 * a new list after 410. Only `signal` ends it.
 * Next: store.ts holds what it saw; controller.ts is fed by its handlers.
 */
import type { KubeObject, Stored } from "../../api/object.ts";
import { type Clock, sleep } from "../clock.ts";
import { describe, type Logger, silent } from "../logger.ts";
import { type Metrics, noMetrics } from "../metrics.ts";
import type { Vitals } from "../vitals.ts";
import type { KubeClient, List } from "./client.ts";
import { isGone, KubeError } from "./errors.ts";
import { type ResourceType, resourceName } from "./resources.ts";
import { type Change, MutableStore, type Store, type StoreOptions } from "./store.ts";
import { TransportError } from "./transport.ts";

export interface InformerOptions<T extends KubeObject> extends Omit<StoreOptions<T>, "scopes"> {
  readonly client: KubeClient;
  readonly type: ResourceType;
  readonly clock: Clock;
  /** Each gets a list and a watch of its own; absent or empty: all namespaces in one. */
  readonly namespaces?: readonly string[];
  readonly labelSelector?: string;
  readonly log?: Logger;
  readonly metrics?: Metrics;
  readonly vitals?: Vitals;
}

type Handler<T extends KubeObject> = (change: Change<T>) => void;

/** The server is asked to end a watch after this long, so that none lives on by accident. */
const WATCH_SECONDS = 290;
/** A server sends a bookmark about every minute; a connection without one byte for this long is taken for dead. */
const SILENCE = 150_000;
/** A watch that lived this long is renewed without delay. */
const LONG_ENOUGH = 5_000;
const FIRST_DELAY = 500;
const LONGEST_DELAY = 30_000;
/** After this many watches in a row that ended with an error and brought nothing, what we resume from is suspected. */
const PATIENCE = 3;
/** A list is many pages, each of which may be slow; and how long anything may take beyond the time-outs it has. */
const LONGEST_LIST = 15 * 60_000;
const GRACE = 5 * 60_000;

export class Informer<T extends KubeObject> {
  readonly type: ResourceType;
  readonly #options: InformerOptions<T>;
  readonly #log: Logger;
  readonly #metrics: Metrics;
  readonly #scopes: readonly string[];
  readonly #store: MutableStore<T>;
  readonly #handlers: Handler<T>[] = [];
  readonly #progress: (() => void)[] = [];
  readonly #synced = Promise.withResolvers<void>();
  #trouble: string | undefined;

  constructor(options: InformerOptions<T>) {
    this.#options = options;
    this.type = options.type;
    this.#log = options.log ?? silent;
    this.#metrics = options.metrics ?? noMetrics;
    this.#scopes = options.namespaces?.length ? options.namespaces : [""];
    this.#store = new MutableStore({ trim: options.trim, indexes: options.indexes, scopes: this.#scopes });
    // Whoever does not wait for it must not see an unhandled rejection at the end.
    this.#synced.promise.catch(() => {});
  }

  /** Why the last try failed; undefined when it did not. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  get store(): Store<T> {
    return this.#store;
  }

  /** Called after the store has changed; for what is there already, at once. A handler that throws is logged, no more. */
  onChange(handler: Handler<T>): void {
    this.#handlers.push(handler);
    for (const object of this.#store.list()) this.#tell(handler, { new: object });
  }

  /** Called whenever the store's high-water version may have moved. */
  onProgress(listener: () => void): void {
    this.#progress.push(listener);
  }

  /** Begins in the background and goes on until `signal` is aborted. */
  start(signal: AbortSignal): void {
    for (const scope of this.#scopes) void this.#follow(scope, signal);
    signal.addEventListener("abort", () => this.#synced.reject(signal.reason), { once: true });
  }

  /** Resolves after the first complete list; rejects when stopped before. */
  synced(): Promise<void> {
    return this.#synced.promise;
  }

  /** Puts in what a live read has found, ahead of the watch; older than what is here, it is ignored. */
  absorb(object: Stored<T>): void {
    this.#announce(this.#store.put(object));
  }

  /** Takes out what a live read has found gone, ahead of the watch. */
  absorbAbsence(namespace: string | undefined, name: string): void {
    const known = this.#store.get(namespace ?? "", name);
    if (known) this.#announce(this.#store.drop(namespace, name, known.metadata.uid));
  }

  async #follow(scope: string, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const context = { resource: resourceName(this.type), namespace: scope || undefined };
    const alive = this.#pulse(scope, signal);
    let version: string | undefined;
    let delay = 0;
    let fruitless = 0;
    let gone = 0;
    // What lasts, such as a right that is missing, is warned of once.
    let told: string | undefined;
    while (!signal.aborted) {
      let startedAt = clock.now();
      try {
        alive(delay + GRACE);
        if (delay > 0) await sleep(clock, delay, signal);
        alive(LONGEST_LIST);
        if (version === undefined) version = await this.#list(scope, signal);
        startedAt = clock.now();
        alive(SILENCE + GRACE);
        await this.#watch(scope, version, signal, (seen) => {
          alive(SILENCE + GRACE);
          this.#trouble = undefined;
          told = undefined;
          version = seen;
          delay = 0;
          fruitless = 0;
          gone = 0;
        });
        // Ended by the server in good order. One that ends at once, again and again, must not become a busy loop.
        delay = clock.now() - startedAt >= LONG_ENOUGH ? 0 : this.#longer(delay);
      } catch (error) {
        if (signal.aborted) break;
        this.#metrics.count("raykeeper_watch_errors_total", { resource: context.resource });
        if (isGone(error)) {
          this.#log.info(context, "the version watched from is gone from history; listing again");
          // At once, except where a version just listed is said to be gone, again and again.
          if (clock.now() - startedAt >= LONG_ENOUGH) gone = 0;
          delay = gone++ === 0 ? 0 : this.#longer(delay);
          version = undefined;
          continue;
        }
        this.#trouble = describe(error);
        const level = this.#trouble === told ? "debug" : "warn";
        this.#log[level]({ ...context, error: this.#trouble }, "watch interrupted; looking again");
        told = this.#trouble;
        if (version !== undefined && isSuspicious(error) && ++fruitless >= PATIENCE) version = undefined;
        const asked = error instanceof KubeError ? error.retryAfter : undefined;
        delay = Math.max(asked ?? 0, this.#longer(delay));
      }
    }
  }

  /** Says that the loop moves, until `signal` is aborted. */
  #pulse(scope: string, signal: AbortSignal): (within: number) => void {
    const { vitals, labelSelector, type } = this.#options;
    const part = ["watch of", resourceName(type), labelSelector, scope && `in ${scope}`].filter(Boolean).join(" ");
    signal.addEventListener("abort", () => vitals?.end(part), { once: true });
    return (within) => {
      if (!signal.aborted) vitals?.beat(part, within);
    };
  }

  #longer(delay: number): number {
    return Math.min(LONGEST_DELAY, Math.max(FIRST_DELAY, delay * 2));
  }

  async #list(scope: string, signal: AbortSignal): Promise<string> {
    const { client, labelSelector } = this.#options;
    const options = { namespace: scope || undefined, labelSelector, signal };
    let list: List<T>;
    try {
      list = await client.listAll<T>(this.type, options);
    } catch (error) {
      if (!isGone(error)) throw error;
      // History is compacted faster than we turn pages: take it in one piece.
      list = await client.list<T>(this.type, options);
    }
    this.#trouble = undefined;
    const changes = this.#store.replace(scope, list.items, list.resourceVersion);
    this.#log.debug({ resource: resourceName(this.type), objects: list.items.length }, "listed");
    if (this.#store.hasSynced) this.#synced.resolve();
    for (const change of changes) this.#announce(change);
    this.#moved();
    return list.resourceVersion;
  }

  async #watch(scope: string, from: string, signal: AbortSignal, onVersion: (version: string) => void): Promise<void> {
    const { client, clock, labelSelector } = this.#options;
    const silence = new AbortController();
    const expire = () =>
      silence.abort(new TransportError("nothing was heard on the watch for too long", { maybeSent: true }));
    let cancel = clock.after(SILENCE, expire);
    try {
      const events = await client.watch<T>(this.type, {
        namespace: scope || undefined,
        labelSelector,
        resourceVersion: from,
        timeoutSeconds: WATCH_SECONDS,
        allowWatchBookmarks: true,
        signal: AbortSignal.any([signal, silence.signal]),
      });
      for await (const event of events) {
        cancel();
        cancel = clock.after(SILENCE, expire);
        if (event.type === "DELETED") {
          const { namespace, name, uid } = event.object.metadata;
          this.#announce(this.#store.drop(namespace, name, uid));
        } else if (event.type !== "BOOKMARK") this.#announce(this.#store.put(event.object));
        const version = event.object.metadata.resourceVersion;
        this.#store.advance(scope, version);
        this.#moved();
        onVersion(version);
      }
    } finally {
      cancel();
    }
  }

  #announce(change: Change<T> | undefined): void {
    if (change) for (const handler of this.#handlers) this.#tell(handler, change);
  }

  #tell(handler: Handler<T>, change: Change<T>): void {
    try {
      handler(change);
    } catch (error) {
      const { namespace, name } = (change.new ?? change.old)!.metadata;
      this.#log.error(
        { resource: resourceName(this.type), namespace, name, err: error },
        "a handler of changes failed",
      );
    }
  }

  #moved(): void {
    for (const listener of this.#progress) listener();
  }
}

/** Errors that may come from what we resume from, or from what the server holds of it; a busy server is none. */
const isSuspicious = (error: unknown) =>
  !(error instanceof KubeError && (error.status === 429 || error.status === 401));
