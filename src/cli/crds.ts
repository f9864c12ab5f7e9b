/**
 * `raykeeper crds`: the CustomResourceDefinitions that this version needs, as YAML, or put on a cluster.
 *
 * Helm installs CRDs once and never changes them, and KubeRay's own would prune the journal (`status.attempts`); so the
 * chart's hook calls this, and whoever installs without Helm may, too.
 * May not: touch anything else, or delete. `get`, `create` and `patch` on the two definitions are all the rights it needs.
 */
import { stringify } from "yaml";
import { crds } from "../api/crds.ts";
import type { CustomResourceDefinition, JSONSchemaProps } from "../api/kubernetes.ts";
import type { Stored } from "../api/object.ts";
import { type Clock, realClock, sleep } from "../machinery/clock.ts";
import { errorFrom, isForbidden } from "../machinery/kube/errors.ts";
import { customResourceDefinitions, resourcePath } from "../machinery/kube/resources.ts";
import type { KubeResponse, Transport } from "../machinery/kube/transport.ts";
import { serverTrouble } from "./apply.ts";
import { connect } from "./connect.ts";
import { CannotRun } from "./failure.ts";
import type { Ending } from "./signals.ts";

export interface CrdsOptions {
  readonly apply?: boolean;
  readonly kubeconfig?: string;
  readonly context?: string;
}

const TIMEOUT = 30_000;
/** Milliseconds until a definition must be served; usually it is at once. */
const PATIENCE = 60_000;
const AGAIN = 500;
/** Fields that a definition no longer has are told one by one up to here. */
const TOLD = 8;

export async function crdsCommand(options: CrdsOptions, ending: Ending): Promise<number> {
  if (!options.apply) {
    process.stdout.write(crds().map(crdText).join(""));
    return 0;
  }
  const { transport, server, close } = connect({ ...options, inClusterFirst: true });
  const say = (line: string) => process.stdout.write(`${line}\n`);
  // The real clock keeps no process alive.
  const alive = setInterval(() => {}, PATIENCE);
  try {
    await applyCrds({ transport, clock: realClock, signal: ending.signal, say });
    return 0;
  } catch (error) {
    const signalled = ending.code();
    if (signalled !== undefined) return signalled;
    throw serverTrouble(error, server) ?? error;
  } finally {
    clearInterval(alive);
    await close();
  }
}

/** One definition as a document of its own. */
export const crdText = (crd: CustomResourceDefinition): string =>
  `---\n${stringify(crd, { aliasDuplicateObjects: false, lineWidth: 120 })}`;

export interface ApplyCrds {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Says what was done, a line each. */
  readonly say: (line: string) => void;
}

/**
 * Applies each definition on the server's side, whoever made it, and waits until it is served. Throws CannotRun when the
 * server refuses, or does not come to serve it.
 */
export async function applyCrds({ transport, clock, signal, say }: ApplyCrds): Promise<void> {
  for (const crd of crds()) {
    const { name } = crd.metadata;
    const path = resourcePath(customResourceDefinitions, undefined, name);
    const read = async () => {
      const response = await transport.request({ method: "GET", path }, { timeout: TIMEOUT, signal });
      return response.status === 404 ? undefined : granted(response, `GET ${path}`);
    };
    const before = await read();
    const applied = granted(
      await transport.request(
        {
          method: "PATCH",
          path,
          query: { fieldManager: "raykeeper", force: "true" },
          headers: { "content-type": "application/apply-patch+yaml" },
          body: crd,
        },
        { timeout: TIMEOUT, signal },
      ),
      `PATCH ${path}`,
    );
    const deadline = clock.now() + PATIENCE;
    let now: Stored<CustomResourceDefinition> | undefined = applied;
    // Asked again and again rather than watched: a watch takes rights on all definitions.
    for (; !isServed(now); now = await read()) {
      if (clock.now() > deadline) throw new CannotRun(`CRD ${name} is not served: ${whyNotServed(now)}`);
      await sleep(clock, AGAIN, signal);
    }
    say(`CRD ${name} ${before === undefined ? "created" : changed(before, applied)}`);
  }
}

function granted(response: KubeResponse, request: string): Stored<CustomResourceDefinition> {
  if (response.status >= 200 && response.status < 300) return response.body as Stored<CustomResourceDefinition>;
  const error = errorFrom(response, request);
  if (response.status === 415) {
    throw new CannotRun(`the server cannot apply CRDs: ${error.message}`, undefined, error);
  }
  if (isForbidden(error)) {
    throw new CannotRun(
      error.message,
      "Applying CRDs takes get, create and patch on customresourcedefinitions: ask an administrator to run this command, or kubectl apply --server-side --force-conflicts -f with its output.",
      error,
    );
  }
  throw error;
}

const conditionOf = (crd: CustomResourceDefinition | undefined, type: string) =>
  crd?.status?.conditions?.find((condition) => condition.type === type);

const isServed = (crd: CustomResourceDefinition | undefined): boolean =>
  conditionOf(crd, "Established")?.status === "True";

function whyNotServed(crd: CustomResourceDefinition | undefined): string {
  if (crd === undefined) return "it was deleted";
  const said = conditionOf(crd, "NamesAccepted") ?? conditionOf(crd, "Established");
  return said?.message ?? "the server does not say why";
}

/** What became of the fields of `v1`: that is what a reader can act on. */
function changed(before: Stored<CustomResourceDefinition>, after: Stored<CustomResourceDefinition>): string {
  if (before.metadata.generation === after.metadata.generation) return "unchanged";
  const [old, now] = [before, after].map(fieldsOf) as [Set<string>, Set<string>];
  const added = [...now].filter((field) => !old.has(field));
  const removed = outermost([...old].filter((field) => !now.has(field)));
  const told = [
    ...(added.length > 0 ? [`new: ${outermost(added).slice(0, TOLD).join(", ")}${more(outermost(added))}`] : []),
    ...(removed.length > 0 ? [`no longer there: ${removed.slice(0, TOLD).join(", ")}${more(removed)}`] : []),
  ];
  return `changed${told.length > 0 ? ` (${told.join("; ")})` : ""}`;
}

const more = (all: readonly string[]): string => (all.length > TOLD ? ` and ${all.length - TOLD} more` : "");

/** Of fields and the fields within them, the former. */
function outermost(fields: readonly string[]): string[] {
  const all = new Set(fields);
  return fields.filter((field) => {
    const parts = field.split(".");
    return !parts.some((_, at) => at > 0 && all.has(parts.slice(0, at).join(".")));
  });
}

function fieldsOf(crd: CustomResourceDefinition): Set<string> {
  const found = new Set<string>();
  const walk = (schema: JSONSchemaProps | undefined, path: string): void => {
    for (const [name, property] of Object.entries(schema?.properties ?? {})) {
      const field = path ? `${path}.${name}` : name;
      found.add(field);
      walk(property, field);
    }
    const { items, additionalProperties } = (schema ?? {}) as { items?: unknown; additionalProperties?: unknown };
    for (const inner of [items, additionalProperties]) if (typeof inner === "object") walk(inner as object, path);
  };
  walk(crd.spec.versions.find(({ name }) => name === "v1")?.schema?.openAPIV3Schema, "");
  return found;
}
