/**
 * From a request to an answer: what a path names, what query and headers ask for, and how the result is shown.
 *
 * Answers: a response for every request; what goes wrong becomes a Status object with its code.
 * Next: verbs.ts for what a verb does, watch.ts for streams, discovery.ts for the documents beside the objects.
 */
import type { Clock } from "../machinery/clock.ts";
import type { KubeRequest, KubeResponse } from "../machinery/kube/transport.ts";
import { discover } from "./discovery.ts";
import {
  ApiError,
  badRequest,
  conflict,
  expired,
  fault,
  invalid,
  methodNotAllowed,
  noSuchPath,
  notImplemented,
  tooLargeVersion,
  unsupportedMediaType,
} from "./errors.ts";
import { at, frozen, type Item, isFields, textAt, withField } from "./json.ts";
import { bound } from "./kinds/pod.ts";
import { jsonPatch, mergePatch } from "./patch.ts";
import type { Registry, Resource } from "./registry.ts";
import { type Matches, selection } from "./selectors.ts";
import { keyOf, type Storage } from "./storage.ts";
import { acceptedShape, type Included, partialObjectMetadata, type Shape, table } from "./tables.ts";
import { type Call, deleteOptions, type Verbs } from "./verbs.ts";
import { type Lines, Watch } from "./watch.ts";

export interface LogOptions {
  readonly container?: string;
  readonly follow: boolean;
  readonly previous: boolean;
  readonly timestamps: boolean;
  readonly tailLines?: number;
  /** Only lines since then, milliseconds since the epoch. */
  readonly since?: number;
  readonly limitBytes?: number;
  /** Aborted when the reader goes away. */
  readonly signal: AbortSignal;
}

/** Gives a container's log in pieces, however they are cut. May reject with an ApiError. */
export type PodLogs = (
  namespace: string,
  name: string,
  options: LogOptions,
) => AsyncIterable<string | Uint8Array> | Promise<AsyncIterable<string | Uint8Array>>;

/** Passes a request on to what stands behind a Service, by a port's name or number; rejects when that does not answer. */
export type ServiceProxy = (
  to: { readonly namespace: string; readonly service: string; readonly port: string },
  request: KubeRequest,
) => Promise<KubeResponse>;

/** An answer that goes on: lines of a watch, or the raw pieces of a log. */
export type Streamed =
  | { readonly kind: "watch"; readonly watch: Watch; readonly headers: Readonly<Record<string, string>> }
  | {
      readonly kind: "log";
      readonly pieces: AsyncIterable<string | Uint8Array>;
      readonly headers: Readonly<Record<string, string>>;
    }
  | { readonly kind: "answer"; readonly response: KubeResponse };

export interface RequestParts {
  readonly storage: Storage;
  readonly registry: Registry;
  readonly verbs: Verbs;
  readonly clock: Clock;
  readonly bookmarkInterval: number;
  readonly podLogs: PodLogs;
  /** Absent: nothing stands behind Services. */
  readonly serviceProxy?: ServiceProxy;
  /** Open watches, so that they can be ended together. */
  readonly watches: Set<Watch>;
}

const NO_APPLY =
  "server-side apply and strategic merge are not available in the embedded cluster; use `kubectl create`, `kubectl patch --type merge` or `raykeeper run`";
const NO_STREAMS =
  "exec, attach, cp and port-forward are not available in the embedded cluster; `kubectl proxy` leads to its Services";
const REVIEW = /^\/apis\/authorization\.k8s\.io\/v1\/self(subject|subjectrules)(access)?reviews$/;

interface Target extends Call {
  readonly shape: Shape;
  readonly query: Readonly<Record<string, string>>;
}

/** Answers a request. A watch or a followed log goes on until the signal is aborted or its reader leaves. */
export async function respond(request: KubeRequest, parts: RequestParts, signal?: AbortSignal): Promise<Streamed> {
  try {
    return await answer(request, parts, signal);
  } catch (error) {
    if (error instanceof ApiError) return finished(error.status.code!, error.status);
    // A mistake of ours must look like one, and say where it was made.
    const where = error instanceof Error ? error.stack : String(error);
    const told = new ApiError(500, "InternalError", `Internal error occurred: ${where}`);
    return finished(500, told.status);
  }
}

const finished = (status: number, body: unknown, warnings: readonly string[] = []): Streamed => ({
  kind: "answer",
  response: {
    status,
    headers: {
      "content-type": "application/json",
      ...(warnings.length > 0 && {
        warning: warnings.map((text) => `299 - ${JSON.stringify(text)}`).join(", "),
      }),
    },
    body,
  },
});

async function answer(request: KubeRequest, parts: RequestParts, signal?: AbortSignal): Promise<Streamed> {
  const { method, query = {}, headers = {}, body } = request;
  if (REVIEW.test(request.path) && method === "POST") {
    return finished(201, { ...(isFields(body) ? body : {}), status: { allowed: true } });
  }
  const shape = acceptedShape(headers["accept"]);
  const path = request.path.replace(/\/+$/, "");
  const target = locate(path, parts.registry, query, shape ?? "object");
  if (!target) {
    if (/^\/(healthz|readyz|livez)(\/|$)/.test(path)) {
      return { kind: "answer", response: { status: 200, headers: { "content-type": "text/plain" }, body: "ok" } };
    }
    const document = method === "GET" ? discover(path, parts.registry) : undefined;
    if (document === undefined) throw noSuchPath();
    return finished(200, document);
  }
  if (!shape && !/^(log|proxy)\b/.test(target.subresource ?? "")) {
    throw new ApiError(406, "NotAcceptable", "only the following media types are accepted: application/json", {});
  }
  if (target.subresource !== undefined) return subresource(request, target, parts, signal);
  const status = method === "POST" ? 201 : 200;
  if (method === "GET") {
    if (target.name !== undefined && !isTrue(query.watch))
      return finished(200, shaped(target, parts.verbs.get(target), parts));
    if (isTrue(query.watch)) return watch(target, parts, signal);
    return finished(200, list(target, parts));
  }
  if (method === "POST" && target.name !== undefined) throw methodNotAllowed();
  if (method === "POST" && target.resource.namespaced && target.namespace === undefined) throw methodNotAllowed();
  if ((method === "PUT" || method === "PATCH") && target.name === undefined) throw methodNotAllowed();
  return finished(status, write(request, target, parts), target.warnings);
}

const isTrue = (text: string | undefined) => text === "true" || text === "1";

/** What a path names, or undefined when it is no path of an object. */
function locate(
  path: string,
  registry: Registry,
  query: Readonly<Record<string, string>>,
  shape: Shape,
): Target | undefined {
  const [, root, ...rest] = path.split("/").map(decoded);
  if (root !== "api" && root !== "apis") return undefined;
  const [group, version, ...segments] = root === "api" ? ["", ...rest] : rest;
  if (group === undefined || version === undefined || segments.length === 0) return undefined;
  // `namespaces/x` is an object itself; with more behind it, it says where.
  const scoped =
    segments[0] === "namespaces" && segments.length > 2 && segments[2] !== "status" && segments[2] !== "finalize";
  const [plural, name, ...subresource] = scoped ? segments.slice(2) : segments;
  const found = registry.find(group, version, plural!);
  if (!found || (scoped && !found.resource.namespaced)) throw noSuchPath();
  const { dryRun, fieldValidation = "Warn" } = query;
  if (dryRun !== undefined && dryRun !== "All") {
    throw invalid({ group: "meta.k8s.io", plural: "", kind: "CreateOptions" }, "", [
      fault.unsupported("dryRun", dryRun, ["All"]),
    ]);
  }
  if (fieldValidation !== "Strict" && fieldValidation !== "Warn" && fieldValidation !== "Ignore") {
    throw invalid({ group: "meta.k8s.io", plural: "", kind: "CreateOptions" }, "", [
      fault.unsupported("fieldValidation", fieldValidation, ["Ignore", "Strict", "Warn"]),
    ]);
  }
  return {
    ...found,
    namespace: scoped ? segments[1] : undefined,
    name,
    subresource: subresource.length > 0 ? subresource.join("/") : undefined,
    dryRun: dryRun === "All",
    fieldValidation,
    warnings: [],
    shape,
    query,
  };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw noSuchPath();
  }
}

function write(request: KubeRequest, target: Target, parts: RequestParts): unknown {
  const { verbs } = parts;
  const { body } = request;
  switch (request.method) {
    case "POST":
      return shown(target, verbs.create(target, body), parts);
    case "PUT":
      return shown(target, verbs.update(target, body), parts);
    case "PATCH":
      return shown(target, verbs.patch(target, patcher(request)), parts);
    case "DELETE": {
      const options = deleteOptions(body, target.query);
      if (target.name !== undefined) return shown(target, verbs.delete(target, options), parts);
      const gone = selected(target, parts.storage.all(target.resource.id));
      for (const { metadata } of gone) verbs.delete({ ...target, ...metadata }, options);
      return listOf(target, gone, parts, {});
    }
    default:
      throw methodNotAllowed();
  }
}

/** The function that a patch request asks to apply. */
function patcher({ headers = {}, body }: KubeRequest): (old: Item) => unknown {
  const type = (headers["content-type"] ?? "application/merge-patch+json").split(";")[0]!.trim();
  if (type === "application/merge-patch+json") {
    if (!isFields(body)) throw badRequest("a merge patch is an object");
    return (old) => mergePatch(old, body);
  }
  if (type === "application/json-patch+json") return (old) => jsonPatch(old, body);
  if (type === "application/apply-patch+yaml" || type === "application/strategic-merge-patch+json") {
    throw unsupportedMediaType(NO_APPLY);
  }
  throw unsupportedMediaType(
    `the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json`,
  );
}

async function subresource(
  request: KubeRequest,
  target: Target,
  parts: RequestParts,
  signal?: AbortSignal,
): Promise<Streamed> {
  const { resource, subresource: name } = target;
  const { verbs, clock } = parts;
  if (resource.hasStatus && name === "status") {
    if (request.method === "GET") return finished(200, shaped(target, verbs.get(target), parts));
    if (request.method !== "PUT" && request.method !== "PATCH") throw methodNotAllowed();
    return finished(200, write(request, target, parts), target.warnings);
  }
  if (resource.id === "/pods" && name === "log" && request.method === "GET") return log(target, parts, signal);
  if (resource.id === "/services" && /^proxy(\/|$)/.test(name ?? "")) return proxied(request, target, parts);
  if (resource.id === "/pods" && name === "binding" && request.method === "POST") {
    const node = textAt(request.body, "target", "name");
    if (!node)
      throw invalid({ group: "", plural: "bindings", kind: "Binding" }, target.name!, [fault.required("target.name")]);
    verbs.patch(target, (pod) => {
      const taken = textAt(pod, "spec", "nodeName");
      if (taken) {
        throw conflict(
          { ...resource, plural: "pods/binding" },
          target.name!,
          `pod ${target.name} is already assigned to node ${JSON.stringify(taken)}`,
        );
      }
      if (pod.metadata.deletionTimestamp) {
        throw conflict(
          { ...resource, plural: "pods/binding" },
          target.name!,
          `pod ${target.name} is being deleted, cannot be assigned to a host`,
        );
      }
      return bound(pod, node, clock.now());
    });
    return finished(201, { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 });
  }
  if (resource.id === "/pods" && /^(exec|attach|portforward)$/.test(name ?? "")) {
    verbs.get({ ...target, subresource: undefined });
    throw notImplemented(NO_STREAMS);
  }
  if (resource.id === "/namespaces" && name === "finalize" && request.method === "PUT") {
    return finished(200, verbs.update({ ...target, subresource: undefined }, request.body));
  }
  throw noSuchPath();
}

/** `services/<name>:<port>/proxy/<path>`. */
async function proxied(request: KubeRequest, target: Target, parts: RequestParts): Promise<Streamed> {
  const [service = "", port = ""] = target.name!.split(":");
  parts.verbs.get({ ...target, name: service, subresource: undefined });
  const path = request.path.replace(/^.*?\/services\/[^/]+\/proxy/, "") || "/";
  try {
    if (!parts.serviceProxy) throw new Error("there is no network here");
    const to = { namespace: target.namespace!, service, port };
    return { kind: "answer", response: await parts.serviceProxy(to, { ...request, path }) };
  } catch (error) {
    throw new ApiError(503, "ServiceUnavailable", `error trying to reach service: ${(error as Error).message}`);
  }
}

async function log(target: Target, parts: RequestParts, signal?: AbortSignal): Promise<Streamed> {
  const { query } = target;
  const pod = parts.verbs.get(target);
  const names = [...containerNames(pod, "containers"), ...containerNames(pod, "initContainers")];
  const container = query.container ?? (names.length === 1 ? names[0] : undefined);
  if (container === undefined) {
    throw badRequest(
      `a container name must be specified for pod ${target.name}, choose one of: [${containerNames(pod, "containers").join(" ")}]`,
    );
  }
  if (!names.includes(container)) throw badRequest(`container ${container} is not valid for pod ${target.name}`);
  const number = (field: string) => (query[field] === undefined ? undefined : Number(query[field]));
  const seconds = number("sinceSeconds");
  const pieces = await parts.podLogs(target.namespace!, target.name!, {
    container,
    follow: isTrue(query.follow),
    previous: isTrue(query.previous),
    timestamps: isTrue(query.timestamps),
    tailLines: number("tailLines"),
    since: query.sinceTime === undefined ? seconds && parts.clock.now() - seconds * 1000 : Date.parse(query.sinceTime),
    limitBytes: number("limitBytes"),
    signal: signal ?? new AbortController().signal,
  });
  return { kind: "log", pieces, headers: { "content-type": "text/plain" } };
}

const containerNames = (pod: Item, field: string): readonly string[] =>
  ((at(pod, "spec", field) ?? []) as { name: string }[]).map(({ name }) => name);

/** What the selectors of a query mean for a kind. */
function matching({ resource, query }: Target): Matches | undefined {
  const fields = resource.fields ?? {};
  const value = (item: Item, field: string) =>
    field === "metadata.name"
      ? item.metadata.name
      : field === "metadata.namespace"
        ? (item.metadata.namespace ?? "")
        : (fields[field]?.(item) ?? "");
  return selection(
    query,
    value,
    (field) => field === "metadata.name" || field === "metadata.namespace" || field in fields,
  );
}

function selected(target: Target, items: readonly Item[]): readonly Item[] {
  const matches = matching(target);
  const { namespace } = target;
  if (namespace === undefined && !matches) return items;
  return items.filter(
    (item) => (namespace === undefined || item.metadata.namespace === namespace) && (!matches || matches(item)),
  );
}

interface Continue {
  readonly version: number;
  readonly after: string;
}

function list(target: Target, parts: RequestParts): unknown {
  const { resource, query } = target;
  const { storage } = parts;
  const limit = query.limit ? Number(query.limit) : 0;
  const from = query.continue ? readContinue(query.continue) : undefined;
  const wanted = query.resourceVersion ? Number(query.resourceVersion) : 0;
  if (Number.isNaN(wanted)) throw badRequest(`invalid resource version ${JSON.stringify(query.resourceVersion)}`);
  if (wanted > storage.version) throw tooLargeVersion(wanted, storage.version);
  const exact = query.resourceVersionMatch === "Exact" ? wanted : undefined;
  const version = from?.version ?? exact ?? storage.version;
  let items = selected(target, itemsAt(resource, version, storage, from !== undefined));
  if (from) items = items.filter((item) => keyOf(item.metadata.namespace, item.metadata.name) > from.after);
  const page = limit > 0 ? items.slice(0, limit) : items;
  const left = items.length - page.length;
  const last = page.at(-1);
  return listOf(target, page, parts, {
    resourceVersion: String(version),
    ...(left > 0 && {
      continue: writeContinue({ version, after: keyOf(last!.metadata.namespace, last!.metadata.name) }),
      // As upstream, only where it is cheap and exact to tell.
      ...(!query.labelSelector && !query.fieldSelector && { remainingItemCount: left }),
    }),
  });
}

function itemsAt(resource: Resource, version: number, storage: Storage, continued: boolean): readonly Item[] {
  try {
    return storage.allAt(resource.id, version);
  } catch (error) {
    if (!continued || !(error instanceof ApiError)) throw error;
    throw expired(
      "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.",
    );
  }
}

const writeContinue = (token: Continue) => Buffer.from(JSON.stringify(token)).toString("base64url");

function readContinue(text: string): Continue {
  try {
    const token: unknown = JSON.parse(Buffer.from(text, "base64url").toString());
    if (typeof at(token, "version") === "number" && typeof at(token, "after") === "string") return token as Continue;
  } catch {
    // Told below, together with what parses but is no token.
  }
  throw badRequest("continue key is not valid");
}

function watch(target: Target, parts: RequestParts, signal?: AbortSignal): Streamed {
  const { resource, version, query, namespace, name } = target;
  const byName = name === undefined ? undefined : (item: Item) => item.metadata.name === name;
  const matches = matching(target);
  const since = query.resourceVersion && query.resourceVersion !== "0" ? Number(query.resourceVersion) : undefined;
  if (Number.isNaN(since)) throw badRequest(`invalid resource version ${JSON.stringify(query.resourceVersion)}`);
  const initialEvents = isTrue(query.sendInitialEvents);
  if (initialEvents && query.resourceVersionMatch !== "NotOlderThan") {
    throw invalid({ group: "meta.k8s.io", plural: "", kind: "ListOptions" }, "", [
      fault.forbidden(
        "resourceVersionMatch",
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
      ),
    ]);
  }
  let withColumns = true;
  const shape = (item: Item): unknown => {
    if (target.shape === "PartialObjectMetadata") return partialObjectMetadata(version.show(item));
    if (target.shape === "object") return version.show(item);
    const made = table([item], version, {
      now: parts.clock.now(),
      include: (query.includeObject as Included) ?? "Metadata",
      withColumns,
      metadata: { resourceVersion: item.metadata.resourceVersion },
    });
    withColumns = false;
    return made;
  };
  const started = new Watch(
    {
      resource,
      version,
      namespace,
      matches: byName ? (item) => byName(item) && (!matches || matches(item)) : matches,
      since,
      bookmarks: isTrue(query.allowWatchBookmarks),
      initialEvents,
      timeoutSeconds: query.timeoutSeconds ? Number(query.timeoutSeconds) : undefined,
      shape,
    },
    parts,
  );
  signal?.addEventListener("abort", () => started.cut(signal.reason), { once: true });
  return { kind: "watch", watch: started, headers: { "content-type": "application/json" } };
}

/** The result of a verb, which is in the request's version already, in the shape asked for. */
function shown(target: Target, result: object, parts: RequestParts): unknown {
  const isObject = (value: object): value is Item => "metadata" in value && at(value, "metadata", "uid") !== undefined;
  return isObject(result) ? shaped(target, target.version.store(result), parts) : result;
}

/** One stored object, in the shape asked for. */
function shaped(target: Target, stored: Item, parts: RequestParts): unknown {
  const { version, shape, query } = target;
  if (shape === "PartialObjectMetadata") return partialObjectMetadata(version.show(stored));
  if (shape === "object") return version.show(stored);
  return table([stored], version, {
    now: parts.clock.now(),
    include: (query.includeObject as Included) ?? "Metadata",
    withColumns: true,
    metadata: { resourceVersion: stored.metadata.resourceVersion },
  });
}

/** Items of lists of built-in kinds do not say what they are. Made once for each item. */
const bare = new WeakMap<Item, object>();
function withoutKind(item: Item): object {
  let made = bare.get(item);
  if (!made) {
    made = frozen(withField(withField(item, "kind", undefined), "apiVersion", undefined));
    bare.set(item, made);
  }
  return made;
}

function listOf(target: Target, items: readonly Item[], parts: RequestParts, metadata: object): unknown {
  const { resource, version, shape, query } = target;
  if (shape === "Table") {
    return table(items, version, {
      now: parts.clock.now(),
      include: (query.includeObject as Included) ?? "Metadata",
      withColumns: true,
      metadata,
    });
  }
  if (shape === "PartialObjectMetadata") {
    return {
      kind: "PartialObjectMetadataList",
      apiVersion: "meta.k8s.io/v1",
      metadata,
      items: items.map((item) => partialObjectMetadata(version.show(item))),
    };
  }
  return {
    kind: resource.listKind,
    apiVersion: version.group ? `${version.group}/${version.name}` : version.name,
    metadata,
    items: items.map((item) => (resource.custom ? version.show(item) : withoutKind(version.show(item)))),
  };
}

/** The lines of a log, cut where its line ends are. */
export async function copyLines(pieces: AsyncIterable<string | Uint8Array>, lines: Lines): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for await (const piece of pieces) {
      const texts = (rest + (typeof piece === "string" ? piece : decoder.decode(piece, { stream: true }))).split("\n");
      rest = texts.pop()!;
      for (const text of texts) lines.push(text);
      if (lines.ended) return;
    }
    if (rest !== "") lines.push(rest);
    lines.end();
  } catch (error) {
    lines.end(error);
  }
}
