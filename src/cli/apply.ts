/**
 * Puts a manifest's objects on the API server.
 *
 * What is there already is changed by a merge patch, so this works where server-side apply is not to be had (the
 * embedded cluster). The server checks every field (`fieldValidation=Strict`), and its complaint is shown with the line
 * of the manifest it is about.
 */
import type { KubeObject, Stored } from "../api/object.ts";
import type { RayJob } from "../api/rayjob.ts";
import { type Clock, sleep } from "../machinery/clock.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { errorFrom, isAlreadyExists, isNotFound, KubeError } from "../machinery/kube/errors.ts";
import { byKind, namespaces, rayJobs, resourcePath } from "../machinery/kube/resources.ts";
import { type KubeRequest, type Transport, TransportError } from "../machinery/kube/transport.ts";
import { CannotRun } from "./failure.ts";
import type { Manifest, ManifestObject } from "./manifest.ts";

export interface ApplyOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  /** For objects that name none. */
  readonly namespace: string;
  /** Objects that name another namespace than this one are refused. */
  readonly onlyNamespace?: string;
  /** Namespaces that the objects are meant for but the server lacks are made. */
  readonly makeNamespaces?: boolean;
  /** What to do about a RayJob of the name that exists already; absent: refuse. */
  readonly existing?: "follow" | "replace";
  readonly signal: AbortSignal;
  /** Says what was done, a line each. */
  readonly say: (text: string) => void;
}

const WRITE_TIMEOUT_MS = 30_000;
const FIELD_MANAGER = { fieldManager: "raykeeper", fieldValidation: "Strict" };

/** Applies everything and returns the RayJob to follow. Throws CannotRun with the remedy. */
export async function apply(manifest: Manifest, options: ApplyOptions): Promise<Stored<RayJob>> {
  const { transport, clock, existing, say } = options;
  const client = new KubeClient(transport, { clock });
  for (const { object, line } of [manifest.rayJob, ...manifest.beside]) {
    const { namespace } = object.metadata;
    if (options.onlyNamespace && namespace && namespace !== options.onlyNamespace) {
      throw new CannotRun(
        `${manifest.file}:${line("metadata.namespace")}: the ${object.kind} is meant for namespace ${namespace}, not ${options.onlyNamespace}`,
        "Leave out --namespace, or the namespace in the manifest.",
      );
    }
  }
  const place = ({ object }: ManifestObject) => object.metadata.namespace ?? options.namespace;
  const namespace = place(manifest.rayJob);
  if (options.makeNamespaces) {
    for (const needed of new Set([manifest.rayJob, ...manifest.beside].map(place))) {
      await client.create(namespaces, { metadata: { name: needed } }).catch((error: unknown) => {
        if (!isAlreadyExists(error)) throw error;
      });
    }
  }
  const { name } = manifest.rayJob.object.metadata;
  const present = name === undefined ? undefined : await findRayJob(client, namespace, name, options.signal);
  if (present && existing === undefined) {
    const stage = present.status?.jobDeploymentStatus || "new";
    throw new CannotRun(
      `RayJob ${namespace}/${name} exists already (${stage})`,
      "Give --follow to watch it, or --replace to delete it and run it anew.",
    );
  }
  if (existing === "follow") {
    if (present) {
      say(`following RayJob ${namespace}/${name} as it is`);
      return present;
    }
    // It may have run already and been cleared away: whoever only wants to watch must not run it a second time.
    throw new CannotRun(
      name === undefined
        ? `${manifest.file}:${manifest.rayJob.line("metadata.generateName")}: a RayJob with a generateName is a new one each time`
        : `there is no RayJob ${namespace}/${name} to follow`,
      "Leave out --follow to run it.",
    );
  }
  if (present) {
    say(`deleting RayJob ${namespace}/${name} …`);
    await deleteAndWait(client, present, options);
  }
  for (const item of manifest.beside) {
    const done = await put(transport, manifest.file, item, place(item));
    say(`${item.object.kind} ${place(item)}/${item.object.metadata.name} ${done}`);
  }
  const created = await create<RayJob>(transport, manifest.file, manifest.rayJob, namespace);
  say(`RayJob ${namespace}/${created.metadata.name} created`);
  return created;
}

/** The RayJob, or undefined when there is none. Throws CannotRun on a cluster that has no RayJobs at all. */
export async function findRayJob(client: KubeClient, namespace: string, name: string, signal?: AbortSignal) {
  try {
    return await client.get<RayJob>(rayJobs, namespace, name, { signal });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    // 404 means either that there is no such RayJob, or that the cluster has no RayJobs at all: only the list can tell.
    const served = await client.list(rayJobs, { namespace, limit: 1, signal }).catch((reason: unknown) => reason);
    if (isNotFound(served)) {
      throw new CannotRun(
        "this cluster does not know the kind RayJob",
        "Install Raykeeper on it first (deploy/), or run the job on an embedded cluster: raykeeper run --local FILE",
      );
    }
    return undefined;
  }
}

async function deleteAndWait(
  client: KubeClient,
  rayJob: Stored<RayJob>,
  { clock, signal, say }: ApplyOptions,
): Promise<void> {
  const { namespace, name, uid } = rayJob.metadata;
  // Foreground: the name is free only when nothing of the old job is left to get in the way of the new one.
  await client.delete(rayJobs, namespace, name, { uid, propagation: "Foreground" }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
  for (let waited = 0; ; waited++) {
    const now = await client.get<RayJob>(rayJobs, namespace, name, { signal }).catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
    if (now?.metadata.uid !== uid) return;
    if (waited > 0 && waited % 60 === 0) {
      say(
        `still waiting for RayJob ${namespace}/${name} to go; its finalizers: ${now.metadata.finalizers?.join(", ") || "none"}`,
      );
    }
    await sleep(clock, 500, signal);
  }
}

/** Creates the object or, when it is there, patches it to what the manifest says. */
async function put(
  transport: Transport,
  file: string,
  item: ManifestObject,
  namespace: string,
): Promise<"created" | "configured"> {
  try {
    await create(transport, file, item, namespace);
    return "created";
  } catch (error) {
    if (!(error instanceof CannotRun && isAlreadyExists(error.cause))) throw error;
  }
  const type = byKind(item.object.kind);
  await send(transport, file, item, {
    method: "PATCH",
    path: resourcePath(type, namespace, item.object.metadata.name),
    headers: { "content-type": "application/merge-patch+json" },
    body: item.object,
  });
  return "configured";
}

function create<T extends KubeObject>(transport: Transport, file: string, item: ManifestObject, namespace: string) {
  const path = resourcePath(byKind(item.object.kind), namespace);
  const metadata = { ...item.object.metadata, namespace };
  return send<T>(transport, file, item, { method: "POST", path, body: { ...item.object, metadata } });
}

async function send<T extends KubeObject>(
  transport: Transport,
  file: string,
  item: ManifestObject,
  request: KubeRequest,
): Promise<Stored<T>> {
  const response = await transport.request({ ...request, query: FIELD_MANAGER }, { timeout: WRITE_TIMEOUT_MS });
  if (response.status >= 200 && response.status < 300) return response.body as Stored<T>;
  const error = errorFrom(response, `${request.method} ${request.path}`);
  const { kind, metadata } = item.object;
  const [line, ...more] = complaints(error, file, item);
  throw new CannotRun(
    `the server does not accept the ${kind} ${metadata.name ?? metadata.generateName}: ${line ?? error.message}`,
    more.join("\n") || undefined,
    error,
  );
}

/** What a refusal is about, a field at a time, with the line of the manifest where it stands. */
function complaints(error: KubeError, file: string, item: ManifestObject): string[] {
  const unknown = [...error.message.matchAll(/unknown field "([^"]+)"/g)].map(
    ([, field]) => `unknown field ${field} (${file}:${item.line(field)})`,
  );
  if (unknown.length) return unknown;
  return (error.details.causes ?? []).map(({ field, message = "" }) => {
    // A cause without a usable path, such as `<nil>` or the whole object, is shown with the object's line.
    const path = field && /^[A-Za-z]/.test(field) ? field : "";
    const named = path && !message.startsWith(path) ? `${path}: ${message}` : message;
    return `${named} (${file}:${item.line(path)})`;
  });
}

/** What a user can do when the API server itself is the trouble; undefined for an error that is about something else. */
export function serverTrouble(error: unknown, server: string): CannotRun | undefined {
  if (error instanceof TransportError) {
    return new CannotRun(
      `the API server ${server} does not answer: ${error.message}`,
      // A machine whose network was taken away may have no loopback, either; no kubeconfig helps there.
      /ENETUNREACH 127\./.test(error.message)
        ? "This machine's loopback is down: ip link set lo up"
        : "Check the kubeconfig's context (kubectl config current-context), or run on an embedded cluster: raykeeper run --local FILE",
      error,
    );
  }
  if (error instanceof KubeError && (error.status === 401 || error.status === 403)) {
    return new CannotRun(
      `the API server ${server} refuses: ${error.message}`,
      "Log in again, or ask for the rights that are missing.",
      error,
    );
  }
  return undefined;
}
