/**
 * The verbs, with the rules that hold for every kind: optimistic locking, generation, status beside specification,
 * finalizers, grace, preconditions.
 *
 * Answers: an object after a verb, or throws the ApiError that says why not.
 * May not: know HTTP; requests.ts calls it. Every verb runs to its end without a pause, so no two of them mix.
 * Next: storage.ts for the log, schema.ts for what a CRD says, kinds/ for what is special about a kind.
 */
import type { KubeObject } from "../api/object.ts";
import { toWire } from "../domain/time.ts";
import type { Clock } from "../machinery/clock.ts";
import {
  alreadyExists,
  badRequest,
  type Cause,
  conflict,
  deleted,
  fault,
  forbiddenRequest,
  invalid,
  notFound,
  type Status,
} from "./errors.ts";
import { equal, frozen, type Item, isFields, textAt, withField, withMeta } from "./json.ts";
import { cleanMetadata, metadataFaults } from "./names.ts";
import type { Random } from "./random.ts";
import type { Registry, Resource, ServedVersion, World } from "./registry.ts";
import { prune, type RuleTable, validate, withDefaults } from "./schema.ts";
import { keyOf, type Storage } from "./storage.ts";

export type Propagation = "Foreground" | "Background" | "Orphan";
export const FOREGROUND = "foregroundDeletion";
export const ORPHAN = "orphan";

/** One request, as far as the verbs care. */
export interface Call {
  readonly resource: Resource;
  readonly version: ServedVersion;
  readonly namespace?: string;
  readonly name?: string;
  readonly subresource?: string;
  readonly dryRun?: boolean;
  /** What happens to unknown fields: refused, warned of, or dropped in silence. */
  readonly fieldValidation?: "Strict" | "Warn" | "Ignore";
  /** Warnings for the answer's header. */
  readonly warnings: string[];
}

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: Propagation;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
}

/** What the admission hook is asked about; objects are as the request's version shows them. */
export interface Review {
  readonly verb: "create" | "update" | "delete";
  readonly resource: Resource;
  readonly subresource?: string;
  readonly object?: Item;
  readonly old?: Item;
  readonly dryRun: boolean;
}

/** Refuses by throwing (an ApiError, see errors.ts), or changes the object by returning another. */
export type Admit = (review: Review) => KubeObject | undefined;

export class Verbs {
  readonly #storage: Storage;
  readonly #registry: Registry;
  readonly #random: Random;
  readonly #clock: Clock;
  readonly #rules: RuleTable;
  readonly #admit: Admit | undefined;

  constructor(parts: {
    storage: Storage;
    registry: Registry;
    random: Random;
    clock: Clock;
    rules: RuleTable;
    admit?: Admit;
  }) {
    this.#storage = parts.storage;
    this.#registry = parts.registry;
    this.#random = parts.random;
    this.#clock = parts.clock;
    this.#rules = parts.rules;
    this.#admit = parts.admit;
  }

  /** The stored object. Throws 404. */
  get(call: Call): Item {
    const item = this.#storage.get(call.resource.id, keyOf(call.namespace, call.name!));
    if (!item) throw notFound(call.resource, call.name!);
    return item;
  }

  /** Creates an object; returns it as the call's version shows it. */
  create(call: Call, body: unknown): Item {
    const { resource, version } = call;
    const sent = this.#read(call, body, undefined);
    const { name: given, generateName } = sent.metadata;
    const name = given || (generateName ? this.#random.name(generateName) : "");
    if (!name) throw invalid(resource, "", [fault.required("metadata.name", "name or generateName is required")]);
    if (sent.metadata.resourceVersion) throw badRequest("resourceVersion should not be set on objects to be created");
    const key = keyOf(call.namespace, name);
    const taken = this.#storage.get(resource.id, key);
    if (taken && given) throw alreadyExists(resource, name);
    // A suffix that is taken already: the API server tries again, too.
    if (taken) return this.create(call, body);
    this.#inNamespace(call, name);

    let item: Item = withMeta(sent, {
      name,
      namespace: call.namespace,
      uid: this.#random.uid(),
      creationTimestamp: toWire(this.#clock.now()),
      generation: resource.hasGeneration ? 1 : undefined,
      deletionTimestamp: undefined,
      deletionGracePeriodSeconds: undefined,
    });
    if (resource.hasStatus) item = withField(item, "status", resource.firstStatus?.(item));
    item = this.#completed(call, item, undefined);
    item = this.#admitted(call, "create", item, undefined);
    this.#validate(call, item, undefined);
    if (call.dryRun) return frozen(withMeta(item, { resourceVersion: undefined }));
    return version.show(this.#storage.write(resource.id, key, version.store(frozen(item))));
  }

  /** Puts `body` in the place of what is stored. */
  update(call: Call, body: unknown): Item {
    return this.#change(call, (old) => {
      const sent = this.#read(call, body, old);
      const { uid } = sent.metadata;
      if (uid && uid !== old.metadata.uid) {
        throw conflict(call.resource, call.name!, precondition("UID", uid, old.metadata.uid));
      }
      if (sent.metadata.resourceVersion || call.resource.unconditionalUpdate) return sent;
      throw invalid(call.resource, call.name!, [
        fault.invalid("metadata.resourceVersion", 0, "must be specified for an update"),
      ]);
    });
  }

  /** Changes what is stored; `apply` makes the new object out of the one it is given. */
  patch(call: Call, apply: (old: Item) => unknown): Item {
    return this.#change(call, (old) => this.#read(call, apply(old), old));
  }

  /**
   * Deletes an object, or marks it as to be deleted when something holds it. Returns what the API server answers: the
   * object while it is still there, else a Status (or, for some kinds, the object as it was).
   */
  delete(call: Call, options: DeleteOptions = {}): Item | Status {
    const { resource, version } = call;
    const name = call.name!;
    const stored = this.get(call);
    const { uid, resourceVersion } = options.preconditions ?? {};
    if (uid && uid !== stored.metadata.uid) {
      throw conflict(resource, name, precondition("UID", uid, stored.metadata.uid));
    }
    if (resourceVersion && resourceVersion !== stored.metadata.resourceVersion) {
      throw conflict(resource, name, precondition("ResourceVersion", resourceVersion, stored.metadata.resourceVersion));
    }
    this.#admitted(call, "delete", undefined, version.show(stored));

    const marked = this.#marked(resource, stored, options);
    if (this.#goes(resource, marked)) {
      const last = call.dryRun ? stored : this.#forget(resource, marked);
      return resource.answersDeletionWithObject ? version.show(last) : deleted(resource, name, last.metadata.uid);
    }
    return version.show(call.dryRun ? frozen(marked) : this.#replace(resource, stored, marked));
  }

  /** The object with what the request to delete it sets. */
  #marked(resource: Resource, stored: Item, options: DeleteOptions): Item {
    const { metadata } = stored;
    const grace = resource.gracePeriod?.(stored, options.gracePeriodSeconds) ?? 0;
    const before = metadata.deletionGracePeriodSeconds;
    const told = propagated(metadata.finalizers ?? [], options.propagationPolicy);
    const finalizers = told.length > 0 ? told : undefined;
    // A second request may shorten the grace, never lengthen it; it is counted from the first.
    if (metadata.deletionTimestamp && before !== undefined && grace >= before) return withMeta(stored, { finalizers });
    const started = metadata.deletionTimestamp
      ? Date.parse(metadata.deletionTimestamp) - (before ?? 0) * 1000
      : this.#clock.now();
    const marked = withMeta(stored, {
      finalizers,
      deletionTimestamp: toWire(started + grace * 1000),
      deletionGracePeriodSeconds: grace,
      generation: metadata.generation && metadata.generation + (metadata.deletionTimestamp ? 0 : 1),
    });
    // A namespace says itself that it is going.
    return resource.held?.(marked)
      ? { ...marked, status: { ...(marked.status as object), phase: "Terminating" } }
      : marked;
  }

  #goes(resource: Resource, { metadata, ...item }: Item): boolean {
    return (
      metadata.deletionTimestamp !== undefined &&
      !metadata.finalizers?.length &&
      !metadata.deletionGracePeriodSeconds &&
      !resource.held?.({ metadata, ...item } as Item)
    );
  }

  #forget(resource: Resource, item: Item): Item {
    return this.#storage.write(resource.id, keyOf(item.metadata.namespace, item.metadata.name), undefined);
  }

  /** Stores `next`, unless it says the same as what is there: then nothing happens, as on the real server. */
  #replace(resource: Resource, stored: Item, next: Item): Item {
    if (equal(frozen(next), stored)) return stored;
    return this.#storage.write(resource.id, keyOf(stored.metadata.namespace, stored.metadata.name), next);
  }

  #change(call: Call, make: (old: Item) => Item): Item {
    const { resource, version } = call;
    const stored = this.get(call);
    const old = version.show(stored);
    const sent = make(old);
    const { metadata } = sent;
    if (metadata.resourceVersion && metadata.resourceVersion !== old.metadata.resourceVersion) {
      throw conflict(resource, call.name!);
    }
    if (metadata.uid && metadata.uid !== old.metadata.uid) {
      throw invalid(resource, call.name!, [fault.invalid("metadata.uid", metadata.uid, "field is immutable")]);
    }
    let next = parted(resource, call.subresource, sent, old);
    next = withMeta(next, systemMetadata(old));
    next = this.#completed(call, next, old);
    next = reused(next, old);
    if (resource.hasGeneration && specChanged(resource, next, old)) {
      next = withMeta(next, { generation: (old.metadata.generation ?? 0) + 1 });
    }
    next = this.#admitted(call, "update", next, old);
    this.#validate(call, next, old);
    if (call.dryRun) return frozen(next);
    const final = version.store(frozen(next));
    if (this.#goes(resource, final)) return version.show(this.#forget(resource, final));
    return version.show(this.#replace(resource, stored, final));
  }

  /** Reads a body: right kind, known fields only, nothing that cannot be read. */
  #read(call: Call, sent: unknown, old: Item | undefined): Item {
    const { resource, version } = call;
    const body = frozen(sent);
    if (!isFields(body)) throw badRequest(`the object provided is unrecognized (must be of type ${resource.kind})`);
    const apiVersion = version.group ? `${version.group}/${version.name}` : version.name;
    if (resource.custom && !body.kind) throw badRequest("Object 'Kind' is missing in the body");
    if (resource.custom && body.kind !== resource.kind) {
      const name = textAt(body, "metadata", "name") ?? "";
      throw invalid({ ...resource, kind: String(body.kind) }, name, [
        fault.invalid("kind", body.kind, `must be ${resource.kind}`),
      ]);
    }
    if (body.kind !== undefined && body.kind !== resource.kind) {
      throw badRequest(
        `${String(body.kind)} in version "${String(body.apiVersion)}" cannot be handled as a ${resource.kind}`,
      );
    }
    if (body.apiVersion !== undefined && body.apiVersion !== apiVersion) {
      throw badRequest(
        `the API version in the data (${String(body.apiVersion)}) does not match the expected API version (${apiVersion})`,
      );
    }
    const unknown: string[] = [];
    const unreadable: string[] = [];
    const metadata =
      body.metadata === old?.metadata ? old!.metadata : cleanMetadata(body.metadata, unknown, unreadable);
    if (unreadable.length > 0) {
      throw badRequest(
        `${resource.kind} in version "${version.name}" cannot be handled as a ${resource.kind}: json: cannot unmarshal ${unreadable.join(", ")}`,
      );
    }
    const { apiVersion: _, kind: __, ...rest } = body;
    const whole = frozen({ apiVersion, kind: resource.kind, ...rest, metadata }) as Item;
    const { namespace, name } = whole.metadata;
    if (namespace && namespace !== (call.namespace ?? "")) {
      throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
    }
    if (call.name && name && name !== call.name) {
      throw badRequest(`the name of the object (${name}) does not match the name on the URL (${call.name})`);
    }
    const pruned = version.schema ? (prune(version.schema, whole, old, unknown) as Item) : whole;
    this.#tellUnknown(call, unknown);
    return pruned;
  }

  #tellUnknown(call: Call, unknown: readonly string[]): void {
    if (unknown.length === 0) return;
    const told = unknown.map((path) => `unknown field ${JSON.stringify(path)}`);
    if (call.fieldValidation === "Strict") {
      const what = call.resource.custom
        ? "strict decoding error"
        : `${call.resource.kind} in version "${call.version.name}" cannot be handled as a ${call.resource.kind}: strict decoding error`;
      throw badRequest(`${what}: ${told.join(", ")}`);
    }
    if (call.fieldValidation !== "Ignore") call.warnings.push(...told);
  }

  /** The object with its defaults: those of its schema, then those of its kind. */
  #completed(call: Call, item: Item, old: Item | undefined): Item {
    const { resource, version } = call;
    const filled = version.schema ? (withDefaults(version.schema, item, old) as Item) : item;
    if (!resource.complete || call.subresource !== undefined) return filled;
    if (old && filled.spec === old.spec && filled.spec !== undefined) return filled;
    return frozen(resource.complete(filled, old, this.#world(call)));
  }

  #admitted(call: Call, verb: Review["verb"], object: Item | undefined, old: Item | undefined): Item {
    const { resource, subresource, dryRun = false } = call;
    const answer = this.#admit?.({ verb, resource, subresource, object: object && frozen(object), old, dryRun });
    return (answer ? frozen(answer) : object) as Item;
  }

  #validate(call: Call, item: Item, old: Item | undefined): void {
    const { resource, version, subresource } = call;
    const causes: Cause[] = [...metadataFaults(resource, item, old)];
    const part = subresource === undefined ? "main" : "subresource";
    if (version.schema) causes.push(...validate(version.schema, frozen(item), old, this.#rules));
    // A kind's own rules may rely on the shape that the schema has checked.
    if (causes.length === 0 && resource.validate) {
      const stored = version.store(frozen(item));
      causes.push(...resource.validate(stored, old && version.store(old), this.#world(call), part));
    }
    if (causes.length > 0) throw invalid(resource, item.metadata.name, causes);
  }

  #inNamespace(call: Call, name: string): void {
    if (call.namespace === undefined) return;
    const namespace = this.#storage.get("/namespaces", call.namespace);
    if (!namespace) throw notFound({ group: "", plural: "namespaces", kind: "Namespace" }, call.namespace);
    if (!namespace.metadata.deletionTimestamp) return;
    throw forbiddenRequest(
      call.resource,
      name,
      `unable to create new content in namespace ${call.namespace} because it is being terminated`,
      [
        {
          reason: "NamespaceTerminating",
          message: `namespace ${call.namespace} is being terminated`,
          field: "metadata.namespace",
        },
      ],
    );
  }

  #world({ version }: Call): World {
    return { version, storage: this.#storage, registry: this.#registry, random: this.#random, now: this.#clock.now() };
  }
}

const precondition = (what: string, wanted: string, found: string) =>
  `Precondition failed: ${what} in precondition: ${wanted}, ${what} in object meta: ${found}`;

/** The finalizers that carry a propagation policy to the garbage collector. Without a policy they stay as they are. */
function propagated(finalizers: readonly string[], policy: Propagation | undefined): string[] {
  if (!policy) return [...finalizers];
  const others = finalizers.filter((name) => name !== FOREGROUND && name !== ORPHAN);
  if (policy === "Background") return others;
  return [...others, policy === "Foreground" ? FOREGROUND : ORPHAN];
}

/** Takes from `sent` what the request may change, and the rest from `old`. */
function parted(resource: Resource, subresource: string | undefined, sent: Item, old: Item): Item {
  if (!resource.hasStatus || subresource === "binding") return sent;
  if (subresource !== "status") return withField(sent, "status", old.status);
  const changed = withField(old, "status", sent.status);
  if (!resource.metadataThroughStatus) return changed;
  return { ...changed, metadata: { ...sent.metadata, ownerReferences: old.metadata.ownerReferences } };
}

/** What nobody but the server changes. */
function systemMetadata({ metadata }: Item) {
  const { name, namespace, uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds } = metadata;
  const { generateName, generation, resourceVersion } = metadata;
  return {
    ...{ name, namespace, uid, creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds },
    ...{ generateName, generation, resourceVersion },
  };
}

/** `next` with the very parts of `old` where it says the same, so that later steps see at a glance what changed. */
function reused(next: Item, old: Item): Item {
  const entries = Object.entries(next).map(([field, value]) => [field, equal(value, old[field]) ? old[field] : value]);
  return Object.fromEntries(entries) as Item;
}

function specChanged(resource: Resource, next: Item, old: Item): boolean {
  const ignored = new Set(["metadata", "apiVersion", "kind", ...(resource.hasStatus ? ["status"] : [])]);
  return [...new Set([...Object.keys(next), ...Object.keys(old)])].some(
    (field) => !ignored.has(field) && next[field] !== old[field],
  );
}

/** What a DeleteOptions body and the query of a request ask for together. */
export function deleteOptions(body: unknown, query: Readonly<Record<string, string>>): DeleteOptions {
  const given = isFields(body) ? body : {};
  const grace = given.gracePeriodSeconds ?? query.gracePeriodSeconds;
  const orphan = given.orphanDependents ?? query.orphanDependents;
  const policy = given.propagationPolicy ?? query.propagationPolicy;
  if (policy != null && policy !== "Foreground" && policy !== "Background" && policy !== "Orphan") {
    throw invalid({ group: "meta.k8s.io", plural: "", kind: "DeleteOptions" }, "", [
      fault.unsupported("propagationPolicy", policy, ["Foreground", "Background", "Orphan"]),
    ]);
  }
  const byOrphan = orphan == null ? undefined : String(orphan) === "true" ? "Orphan" : "Background";
  return {
    gracePeriodSeconds: grace == null ? undefined : Number(grace),
    propagationPolicy: (policy ?? byOrphan) as Propagation | undefined,
    preconditions: isFields(given.preconditions)
      ? {
          uid: textAt(given.preconditions, "uid"),
          resourceVersion: textAt(given.preconditions, "resourceVersion"),
        }
      : undefined,
  };
}

/** A call by a part of the cluster itself, on a kind's preferred version. */
export const callOn = (resource: Resource, namespace?: string, name?: string, subresource?: string): Call => ({
  resource,
  version: resource.versions[0]!,
  namespace,
  name,
  subresource,
  fieldValidation: "Ignore",
  warnings: [],
});
