/**
 * Puts a recording into a cluster: the objects as KubeRay left them, save for what a server gives (UIDs, versions).
 *
 * Works through the API, on simkube as on a real server. Pods of Jobs are left to the Job controller. A status goes in
 * when all is there, and what was being deleted is deleted last.
 */
import { readdirSync, readFileSync } from "node:fs";
import { parse } from "yaml";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import { toWire } from "../../src/domain/time.ts";
import type { KubeClient } from "../../src/machinery/kube/client.ts";
import { allResources } from "../../src/machinery/kube/resources.ts";

export interface Recording {
  readonly objects: readonly Any[];
  /** The jobs that Ray knew: the UID of the head Pod, in the recording's own terms, and the status. */
  readonly ray: readonly { readonly head: string; readonly id: string; readonly status: string }[];
  readonly events: readonly string[];
}

export type Any = Stored<KubeObject & { spec?: Record<string, unknown>; status?: Record<string, unknown> }>;

const folder = new URL("./recorded/", import.meta.url);

export const recordings: readonly string[] = readdirSync(folder)
  .map((file) => file.replace(/\.yaml$/, ""))
  .sort();

const TIME = /\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g;

/** A recording as if it had been made in `namespace`, just before `now`. */
export function recorded(name: string, namespace: string, now: number): Recording {
  const original = readFileSync(new URL(`${name}.yaml`, folder), "utf8");
  const latest = Math.max(...[...original.matchAll(TIME)].map(([time]) => Date.parse(time)));
  const text = original.replaceAll(TIME, (time) => toWire(Date.parse(time) - latest + now));
  const whole = parse(
    text
      .replaceAll(`namespace: ${name}\n`, `namespace: ${namespace}\n`)
      .replaceAll(`.${name}.svc.`, `.${namespace}.svc.`),
  ) as Recording;
  // What was about to be collected, its owner gone, would be so at once.
  const uids = new Set(whole.objects.map(({ metadata }) => metadata.uid));
  const isOwned = ({ metadata: { ownerReferences = [] } }: Any) => ownerReferences.every(({ uid }) => uids.has(uid));
  return { ...whole, objects: whole.objects.filter(isOwned) };
}

/** Owners before what they own. */
const ORDER = ["ServiceAccount", "RayJob", "RayCluster", "Service", "Job", "Pod"];

/** What is there afterwards, by the UIDs of the recording. `settled` lets kubelets bring the Pods up before the statuses are told. */
export async function restore(
  client: KubeClient,
  { objects }: Recording,
  settled: () => Promise<unknown>,
): Promise<ReadonlyMap<string, Stored>> {
  const known = objects
    .filter(({ kind = "" }) => ORDER.includes(kind))
    .filter(({ kind, metadata }) => kind !== "Pod" || metadata.ownerReferences?.[0]?.kind !== "Job")
    .sort((a, b) => ORDER.indexOf(a.kind!) - ORDER.indexOf(b.kind!));
  const typeOf = ({ kind }: Any) => allResources.find((type) => type.kind === kind)!;
  const made = new Map<string, Stored>();
  for (const object of known) {
    const { name, namespace, labels, annotations, finalizers, ownerReferences = [], uid } = object.metadata;
    const owners = ownerReferences.map((owner) => ({ ...owner, uid: made.get(owner.uid)?.metadata.uid ?? owner.uid }));
    made.set(
      uid,
      await client.create(typeOf(object), {
        ...withoutServersOwn(object),
        metadata: { name, namespace, labels, annotations, finalizers, ownerReferences: owners },
      } as KubeObject),
    );
  }
  await settled();
  for (const object of known) {
    if (object.status === undefined || !object.kind?.startsWith("Ray")) continue;
    const { name, namespace } = object.metadata;
    await client.patch(typeOf(object), namespace, name, { status: object.status }, { subresource: "status" });
  }
  for (const object of known) {
    const { name, namespace, deletionTimestamp } = object.metadata;
    if (deletionTimestamp) await client.delete(typeOf(object), namespace, name, { propagation: "Background" });
  }
  return made;
}

/** What a server refuses to be given, or gives by itself. */
function withoutServersOwn({ apiVersion, kind, spec, ...rest }: Any): object {
  const { status: _, metadata: __, ...data } = rest;
  if (spec === undefined) return { apiVersion, kind, ...data };
  type Kept = { nodeName?: string; clusterIPs?: unknown; selector?: unknown; template?: { metadata?: Labelled } };
  type Labelled = { labels?: Record<string, string> };
  const { nodeName: _1, clusterIPs: _2, selector, template, ...kept } = spec as Kept;
  if (kind !== "Job")
    return {
      apiVersion,
      kind,
      ...data,
      spec: { ...kept, ...(selector !== undefined && { selector }), ...(template && { template }) },
    };
  const labels = Object.entries(template?.metadata?.labels ?? {}).filter(
    ([key]) => !/controller-uid|job-name/.test(key),
  );
  const own = { ...template, metadata: { ...template?.metadata, labels: Object.fromEntries(labels) } };
  return { apiVersion, kind, ...data, spec: { ...kept, template: own } };
}
