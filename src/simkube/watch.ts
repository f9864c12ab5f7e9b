/**
 * A watch: what happens to some objects, from a version on, as it happens.
 *
 * Answers: events in the order of the log, each as the selection sees it (an object that begins to match was ADDED, one
 * that ceases to match was DELETED), bookmarks, and an ERROR event 410 when the past asked for is forgotten.
 * May not: hold up a write. What a reader has not taken yet waits in this watch.
 */
import type { Cancel, Clock } from "../machinery/clock.ts";
import { TransportError } from "../machinery/kube/transport.ts";
import { ApiError } from "./errors.ts";
import { frozen, type Item } from "./json.ts";
import type { Resource, ServedVersion } from "./registry.ts";
import type { Matches } from "./selectors.ts";
import type { Change, Storage } from "./storage.ts";

export interface WatchQuery {
  readonly resource: Resource;
  readonly version: ServedVersion;
  readonly namespace?: string;
  readonly matches?: Matches;
  /** Undefined: first every object there is, then what changes. */
  readonly since?: number;
  readonly bookmarks?: boolean;
  /** First every object, then a bookmark that says so. */
  readonly initialEvents?: boolean;
  /** Seconds until the server ends the watch. */
  readonly timeoutSeconds?: number;
  /** How a stored object is shown: itself, its metadata only, a row of a table. */
  readonly shape: (item: Item) => unknown;
}

export interface WatchParts {
  readonly storage: Storage;
  readonly clock: Clock;
  /** Milliseconds without an event after which a bookmark tells how far the log has come; 0 for never. */
  readonly bookmarkInterval: number;
  /** The watches that are open, for those who would end them all. */
  readonly watches: Set<Watch>;
}

/** What a reader gets whose connection is gone; the same as the real transport (machinery/kube/http.ts) gives him. */
export function broken(cause?: unknown): TransportError {
  if (cause instanceof TransportError) return cause;
  return new TransportError("the connection was cut", { maybeSent: true, cause });
}

interface WatchEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: unknown;
}

/** Lines to be read once, by one reader; the writer ends them, or breaks them. */
export class Lines implements AsyncIterable<string> {
  readonly #waiting: string[] = [];
  #wake: (() => void) | undefined;
  #ended = false;
  #failure: unknown;
  readonly #onEnd: () => void;

  /** `onEnd` is called once, whoever ends it. */
  constructor(onEnd: () => void = () => {}) {
    this.#onEnd = onEnd;
  }

  get ended(): boolean {
    return this.#ended;
  }

  push(line: string): void {
    if (this.#ended) return;
    this.#waiting.push(line);
    this.#wake?.();
  }

  /** Ends the lines after those that wait; with a failure the reader gets that instead of an end. */
  end(failure?: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#failure = failure;
    this.#onEnd();
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<string> {
    try {
      while (true) {
        if (this.#waiting.length > 0) yield this.#waiting.shift()!;
        else if (this.#ended) break;
        else
          await new Promise<void>((resolve) => {
            this.#wake = resolve;
          });
      }
      if (this.#failure !== undefined) throw this.#failure;
    } finally {
      this.end();
    }
  }
}

export class Watch {
  readonly lines: Lines;
  readonly #query: WatchQuery;
  readonly #parts: WatchParts;
  #cancelBookmark: Cancel | undefined;
  #cancelTimeout: Cancel | undefined;
  #stopListening: () => void = () => {};
  /** Changes up to this version need not be told. */
  #from: number;

  constructor(query: WatchQuery, parts: WatchParts) {
    this.#query = query;
    this.#parts = parts;
    this.lines = new Lines(() => this.#close());
    this.#from = query.since ?? parts.storage.version;
    this.#start();
  }

  /** Breaks the connection, as a network would, or a reader who no longer wants to wait. */
  cut(cause?: unknown): void {
    this.lines.end(broken(cause));
  }

  #start(): void {
    const { storage, clock } = this.#parts;
    const { resource, since, initialEvents, timeoutSeconds } = this.#query;
    try {
      if (since === undefined || initialEvents) {
        for (const item of storage.all(resource.id)) {
          if (this.#wanted(item)) this.#send({ type: "ADDED", object: this.#query.shape(item) });
        }
        this.#from = storage.version;
        if (initialEvents) this.#bookmark({ "k8s.io/initial-events-end": "true" });
      } else {
        for (const change of storage.since(resource.id, since)) this.#tell(change);
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.#send({ type: "ERROR", object: error.status });
      this.lines.end();
      return;
    }
    this.#parts.watches.add(this);
    this.#stopListening = storage.listen((change) => this.#hear(change));
    if (timeoutSeconds) {
      this.#cancelTimeout = clock.after(timeoutSeconds * 1000, () => {
        this.#bookmark();
        this.lines.end();
      });
    }
  }

  #close(): void {
    this.#stopListening();
    this.#cancelBookmark?.();
    this.#cancelTimeout?.();
    this.#parts.watches.delete(this);
  }

  #hear(change: Change): void {
    if (change.resource === this.#query.resource.id && this.#tell(change)) return;
    // Only a watch that has fallen behind the log needs a bookmark, so a quiet world sets no timers.
    if (!this.#query.bookmarks || !this.#parts.bookmarkInterval || this.#cancelBookmark) return;
    this.#cancelBookmark = this.#parts.clock.after(this.#parts.bookmarkInterval, () => {
      this.#cancelBookmark = undefined;
      this.#bookmark();
    });
  }

  /** Tells of a change if it is one to this watch. */
  #tell(change: Change): boolean {
    if (change.version <= this.#from) return false;
    const { shape } = this.#query;
    const before = change.old !== undefined && this.#wanted(change.old);
    const after = change.type !== "DELETED" && this.#wanted(change.object);
    if (!before && !after) return false;
    const type = after ? (before ? "MODIFIED" : "ADDED") : "DELETED";
    // The object as it was when it last matched, under the version at which it ceased to.
    const item =
      type === "DELETED" && change.type !== "DELETED"
        ? frozen({
            ...change.old!,
            metadata: { ...change.old!.metadata, resourceVersion: change.object.metadata.resourceVersion },
          })
        : change.object;
    this.#send({ type, object: shape(item) });
    return true;
  }

  #wanted(item: Item): boolean {
    const { namespace, matches } = this.#query;
    return (namespace === undefined || item.metadata.namespace === namespace) && (!matches || matches(item));
  }

  #bookmark(annotations?: Record<string, string>): void {
    if (!this.#query.bookmarks && !annotations) return;
    const { resource, version } = this.#query;
    this.#send({
      type: "BOOKMARK",
      object: {
        kind: resource.kind,
        apiVersion: version.group ? `${version.group}/${version.name}` : version.name,
        metadata: { resourceVersion: String(this.#parts.storage.version), creationTimestamp: null, annotations },
      },
    });
  }

  #send(event: WatchEvent): void {
    this.lines.push(lineOf(event));
  }
}

/** Several watches are told of the same object; its text is made once. */
const texts = new WeakMap<object, string>();
function lineOf({ type, object }: WatchEvent): string {
  if (typeof object !== "object" || object === null) return JSON.stringify({ type, object });
  let text = texts.get(object);
  if (text === undefined) {
    text = JSON.stringify(object);
    texts.set(object, text);
  }
  return `{"type":"${type}","object":${text}}`;
}
