/**
 * The API's verbs on plain JSON objects.
 *
 * Answers with what the server returned, or throws: KubeError when the server refused, TransportError when no answer
 * came, WriteRefused when this process may not write.
 * May not: send a write twice. After an unknown outcome the caller looks again (freshness.ts).
 */
import type { KubeObject, Stored } from "../../api/object.ts";
import { type Clock, realClock, sleep } from "../clock.ts";
import { type Metrics, noMetrics } from "../metrics.ts";
import { RateLimit } from "../rateLimit.ts";
import { errorFrom, errorFromStatus, isTooManyRequests } from "./errors.ts";
import { apiVersion, type ResourceType, resourcePath } from "./resources.ts";
import { type KubeRequest, type KubeResponse, type Transport, TransportError } from "./transport.ts";

export interface ClientOptions {
  readonly clock?: Clock;
  /** Milliseconds until a read is given up; 30 s when absent. */
  readonly readTimeout?: number;
  /** Milliseconds until a write is given up with an unknown outcome; WRITE_TIMEOUT when absent. */
  readonly writeTimeout?: number;
  /** Requests per second in the long run, and at once; no limit when absent. Watches are not counted. */
  readonly qps?: number;
  readonly burst?: number;
  /** Asked right before each write is sent; false refuses it. */
  readonly mayWrite?: () => boolean;
  readonly metrics?: Metrics;
  /** The name under which the API server notes in `managedFields` what is written. */
  readonly fieldManager?: string;
}

export interface ListOptions {
  /** All namespaces when absent. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly limit?: number;
  readonly continue?: string;
  /** Absent: the newest there is (a consistent read). */
  readonly resourceVersion?: string;
  /** Leave out everything but metadata. */
  readonly metadataOnly?: boolean;
  readonly signal?: AbortSignal;
}

export interface List<T extends KubeObject> {
  readonly items: Stored<T>[];
  readonly resourceVersion: string;
  /** Absent on the last page. */
  readonly continue?: string;
}

export interface WatchOptions {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly resourceVersion?: string;
  /** The server ends the watch after this long. */
  readonly timeoutSeconds?: number;
  readonly allowWatchBookmarks?: boolean;
  readonly signal?: AbortSignal;
}

export type WatchEvent<T extends KubeObject> =
  | { readonly type: "ADDED" | "MODIFIED" | "DELETED"; readonly object: Stored<T> }
  /** Only `metadata.resourceVersion` is set. */
  | { readonly type: "BOOKMARK"; readonly object: { readonly metadata: { readonly resourceVersion: string } } };

export interface DeleteOptions {
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly propagation?: "Background" | "Foreground" | "Orphan";
  readonly gracePeriodSeconds?: number;
}

/** This process does not surely hold the lease, so the write was not sent. */
export class WriteRefused extends Error {
  override readonly name = "WriteRefused";
}

/**
 * Longer than the 10 s for which the server waits for an admission webhook that is down: given up earlier, a write
 * that would be let through then could never succeed. Leader election's margin (leader.ts) counts on it, too.
 */
export const WRITE_TIMEOUT = 12_000;

const METADATA = {
  object: "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
  list: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
};
const PAGE = 500;
/** A read that is turned away with 429, or finds its connection closed, is repeated this often before the caller hears of it. */
const READ_ATTEMPTS = 4;

export class KubeClient {
  readonly #transport: Transport;
  readonly #clock: Clock;
  readonly #options: ClientOptions;
  readonly #metrics: Metrics;
  readonly #limit: RateLimit | undefined;

  constructor(transport: Transport, options: ClientOptions = {}) {
    this.#transport = transport;
    this.#clock = options.clock ?? realClock;
    this.#options = options;
    this.#metrics = options.metrics ?? noMetrics;
    if (options.qps) this.#limit = new RateLimit(this.#clock, options.qps, options.burst ?? options.qps);
  }

  /** The same, with other options; it has a rate limit of its own. */
  with(options: ClientOptions): KubeClient {
    return new KubeClient(this.#transport, { ...this.#options, ...options });
  }

  async get<T extends KubeObject>(
    type: ResourceType,
    namespace: string | undefined,
    name: string,
    options: { readonly metadataOnly?: boolean; readonly signal?: AbortSignal } = {},
  ): Promise<Stored<T>> {
    const path = resourcePath(type, namespace, name);
    const headers = { accept: options.metadataOnly ? METADATA.object : "application/json" };
    const body = await this.#read({ method: "GET", path, headers }, options.signal);
    return named(type, expectObject<T>(body, `GET ${path}`));
  }

  /** One page. */
  async list<T extends KubeObject>(type: ResourceType, options: ListOptions = {}): Promise<List<T>> {
    const path = resourcePath(type, options.namespace);
    const headers = { accept: options.metadataOnly ? METADATA.list : "application/json" };
    const query = parameters({
      labelSelector: options.labelSelector,
      fieldSelector: options.fieldSelector,
      limit: options.limit,
      continue: options.continue,
      resourceVersion: options.resourceVersion,
    });
    const body = await this.#read({ method: "GET", path, query, headers }, options.signal);
    const { items, metadata } = expectList<T>(body, `GET ${path}`);
    return {
      items: (items ?? []).map((item) => named(type, item)),
      resourceVersion: metadata.resourceVersion,
      continue: metadata.continue || undefined,
    };
  }

  /** All pages, as of one version. A history that was compacted in between surfaces as KubeError 410: begin again. */
  async listAll<T extends KubeObject>(type: ResourceType, options: ListOptions = {}): Promise<List<T>> {
    const items: Stored<T>[] = [];
    let page = await this.list<T>(type, { limit: PAGE, ...options });
    items.push(...page.items);
    while (page.continue) {
      // The continue token holds the version; the server refuses both together.
      page = await this.list<T>(type, { limit: PAGE, ...options, resourceVersion: undefined, continue: page.continue });
      items.push(...page.items);
    }
    return { items, resourceVersion: page.resourceVersion };
  }

  async create<T extends KubeObject>(type: ResourceType, object: T): Promise<Stored<T>> {
    const path = resourcePath(type, object.metadata.namespace);
    const body = { apiVersion: apiVersion(type), kind: type.kind, ...object };
    return expectObject<T>(await this.#write({ method: "POST", path, query: this.#signed(), body }), `POST ${path}`);
  }

  /** Replaces the object; with `metadata.resourceVersion` only if it is still that version. */
  async update<T extends KubeObject>(
    type: ResourceType,
    object: T,
    options: { readonly subresource?: string } = {},
  ): Promise<Stored<T>> {
    const { namespace, name } = object.metadata;
    const path = resourcePath(type, namespace, name, options.subresource);
    const body = { apiVersion: apiVersion(type), kind: type.kind, ...object };
    return expectObject<T>(await this.#write({ method: "PUT", path, query: this.#signed(), body }), `PUT ${path}`);
  }

  /** Changes parts of the object; a merge patch may carry `metadata.resourceVersion` and `metadata.uid` as preconditions. */
  async patch<T extends KubeObject>(
    type: ResourceType,
    namespace: string | undefined,
    name: string,
    patch: unknown,
    options: { readonly subresource?: string; readonly type?: "merge" | "json" } = {},
  ): Promise<Stored<T>> {
    const path = resourcePath(type, namespace, name, options.subresource);
    const contentType = options.type === "json" ? "application/json-patch+json" : "application/merge-patch+json";
    const headers = { "content-type": contentType };
    const query = this.#signed();
    return expectObject<T>(await this.#write({ method: "PATCH", path, query, headers, body: patch }), `PATCH ${path}`);
  }

  /** Returns the object as it lingers (finalizers, grace period), or undefined when it is gone at once. */
  async delete(
    type: ResourceType,
    namespace: string | undefined,
    name: string,
    options: DeleteOptions = {},
  ): Promise<Stored | undefined> {
    const body = await this.#write({
      method: "DELETE",
      path: resourcePath(type, namespace, name),
      body: deleteOptions(options),
    });
    const object = body as Partial<Stored> | undefined;
    return object?.kind !== "Status" && object?.metadata?.resourceVersion ? (object as Stored) : undefined;
  }

  async deleteCollection(
    type: ResourceType,
    options: DeleteOptions & Pick<ListOptions, "namespace" | "labelSelector" | "fieldSelector"> = {},
  ): Promise<void> {
    await this.#write({
      method: "DELETE",
      path: resourcePath(type, options.namespace),
      query: parameters({ labelSelector: options.labelSelector, fieldSelector: options.fieldSelector }),
      body: deleteOptions(options),
    });
  }

  /**
   * Changes as they happen. Resolves once the server has accepted the watch; the iteration ends when the server ends
   * it, throws KubeError for an ERROR event (410: list again) and TransportError when the connection breaks or a line
   * is no event. Reading the iteration to its end, leaving it, or `signal` closes the connection.
   */
  async watch<T extends KubeObject>(
    type: ResourceType,
    options: WatchOptions = {},
  ): Promise<AsyncIterable<WatchEvent<T>>> {
    const path = resourcePath(type, options.namespace);
    const query = parameters({
      watch: "true",
      labelSelector: options.labelSelector,
      fieldSelector: options.fieldSelector,
      resourceVersion: options.resourceVersion,
      timeoutSeconds: options.timeoutSeconds,
      allowWatchBookmarks: options.allowWatchBookmarks,
    });
    const request: KubeRequest = { method: "GET", path, query, headers: { accept: "application/json" } };
    const stream = await this.#transport.stream(request, { signal: options.signal }).catch((error) => {
      if (!options.signal?.aborted) this.#counted("GET", "<error>");
      throw error;
    });
    this.#counted("GET", String(stream.status));
    if (stream.status < 200 || stream.status > 299) {
      throw errorFrom({ status: stream.status, headers: stream.headers, body: stream.body }, `WATCH ${path}`);
    }
    return watchEvents<T>(type, stream.lines, `WATCH ${path}`);
  }

  /** Any other GET: `/version`, `/readyz`, a Pod's log as one text. */
  raw(path: string, query?: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<unknown> {
    return this.#read({ method: "GET", path, query }, signal);
  }

  /** A long text line by line, such as a Pod's log that is followed. Throws KubeError when the server refuses. */
  async rawLines(
    path: string,
    query?: Readonly<Record<string, string>>,
    signal?: AbortSignal,
  ): Promise<AsyncIterable<string>> {
    const stream = await this.#transport.stream({ method: "GET", path, query }, { signal });
    if (stream.status < 200 || stream.status > 299) {
      throw errorFrom({ status: stream.status, headers: stream.headers, body: stream.body }, `GET ${path}`);
    }
    return stream.lines;
  }

  #signed(): KubeRequest["query"] {
    const { fieldManager } = this.#options;
    return fieldManager === undefined ? undefined : { fieldManager };
  }

  async #read(request: KubeRequest, signal?: AbortSignal): Promise<unknown> {
    const timeout = this.#options.readTimeout ?? 30_000;
    for (let attempt = 1; ; attempt++) {
      await this.#pace(signal);
      try {
        return await this.#send(request, timeout, signal);
      } catch (error) {
        const last = attempt >= READ_ATTEMPTS || signal?.aborted;
        if (!last && isTooManyRequests(error)) await sleep(this.#clock, error.retryAfter ?? 1000, signal);
        // Reading twice does no harm, and a kept connection that the server has just closed is no news. Once is enough:
        // whoever reads has a back-off of his own.
        else if (!last && attempt === 1 && error instanceof TransportError) continue;
        else throw error;
      }
    }
  }

  async #write(request: KubeRequest): Promise<unknown> {
    await this.#pace();
    // After the wait, not before: the lease may have run out meanwhile.
    if (this.#options.mayWrite?.() === false) {
      throw new WriteRefused(`${request.method} ${request.path} was not sent: this process may not write now`);
    }
    return this.#send(request, this.#options.writeTimeout ?? WRITE_TIMEOUT);
  }

  async #pace(signal?: AbortSignal): Promise<void> {
    const wait = this.#limit?.reserve() ?? 0;
    if (wait > 0) await sleep(this.#clock, wait, signal);
  }

  async #send(request: KubeRequest, timeout: number, signal?: AbortSignal): Promise<unknown> {
    let response: KubeResponse;
    const startedAt = this.#clock.now();
    try {
      response = await this.#transport.request(request, { timeout, signal });
    } catch (error) {
      this.#counted(request.method, "<error>");
      throw error;
    }
    this.#counted(request.method, String(response.status));
    this.#metrics.observe(
      "rest_client_request_duration_seconds",
      { verb: request.method },
      (this.#clock.now() - startedAt) / 1000,
    );
    if (response.status < 200 || response.status > 299) {
      throw errorFrom(response, `${request.method} ${request.path}`);
    }
    return response.body;
  }

  #counted(method: string, code: string): void {
    this.#metrics.count("rest_client_requests_total", { code, method });
  }
}

async function* watchEvents<T extends KubeObject>(
  type: ResourceType,
  lines: AsyncIterable<string>,
  request: string,
): AsyncGenerator<WatchEvent<T>> {
  for await (const line of lines) {
    if (line.trim() === "") continue;
    const event = parseEvent(line, request);
    if (event.type === "ERROR") throw errorFromStatus(event.object, { status: 500, request });
    else if (event.type === "BOOKMARK") yield { type: "BOOKMARK", object: event.object as Stored };
    else if (event.type === "ADDED" || event.type === "MODIFIED" || event.type === "DELETED") {
      yield { type: event.type, object: named(type, event.object as Stored<T>) };
    }
    // Other types belong to a later protocol; what they announce is in the next list.
  }
}

function parseEvent(line: string, request: string): { type: unknown; object: unknown } {
  let event: { type?: unknown; object?: { kind?: unknown; metadata?: { resourceVersion?: unknown } } } | null = null;
  try {
    event = JSON.parse(line);
  } catch (cause) {
    throw garbled(request, line, cause);
  }
  const complete = event?.type === "ERROR" || typeof event?.object?.metadata?.resourceVersion === "string";
  if (!complete) throw garbled(request, line);
  return { type: event?.type, object: event?.object };
}

const garbled = (request: string, line: string, cause?: unknown) =>
  new TransportError(`${request}: a line is no watch event: ${line.slice(0, 100)}`, { maybeSent: true, cause });

/** What comes with a 2xx from something that is no API server (a proxy's login page) must not pass for an object. */
function expectObject<T extends KubeObject>(body: unknown, request: string): Stored<T> {
  const { metadata } = (body ?? {}) as Partial<Stored<T>>;
  if (typeof metadata?.resourceVersion !== "string") throw foreign(request, body);
  return body as Stored<T>;
}

/** Nor for a list: an empty one would say that everything is gone. */
function expectList<T extends KubeObject>(body: unknown, request: string) {
  const { metadata } = (body ?? {}) as { metadata?: { resourceVersion?: unknown } };
  if (typeof metadata?.resourceVersion !== "string" || metadata.resourceVersion === "") throw foreign(request, body);
  return body as { items: Stored<T>[] | null; metadata: { resourceVersion: string; continue?: string } };
}

const foreign = (request: string, body: unknown) =>
  new TransportError(`${request} was answered with something else: ${outline(body)}`, { maybeSent: true });

/** Of an object its fields' names only: what looks like no Secret may yet be one, and this goes into logs and statuses. */
function outline(body: unknown): string {
  if (typeof body !== "object" || body === null) return String(JSON.stringify(body)).slice(0, 100);
  return `an object with ${Object.keys(body).slice(0, 10).join(", ") || "nothing in it"}`;
}

/** Lists leave out kind and apiVersion of built-in items, and metadata-only reads put their own; readers want the real ones. */
function named<T extends KubeObject>(type: ResourceType, object: T): T {
  return { ...object, apiVersion: apiVersion(type), kind: type.kind };
}

function deleteOptions(options: DeleteOptions): unknown {
  const { uid, resourceVersion, propagation, gracePeriodSeconds } = options;
  return {
    apiVersion: "v1",
    kind: "DeleteOptions",
    ...(uid || resourceVersion ? { preconditions: { uid, resourceVersion } } : {}),
    ...(propagation ? { propagationPolicy: propagation } : {}),
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
  };
}

function parameters(values: Record<string, string | number | boolean | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values)
      .filter(([, value]) => value !== undefined && value !== "")
      .map(([key, value]) => [key, String(value)]),
  );
}
