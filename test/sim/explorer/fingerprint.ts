/**
 * The state of a world in a few characters, so that a state seen before is recognised.
 *
 * Two states are the same when the world's objects, the operator's caches, what Ray and the processes know, and what the
 * RayJob asks for are the same, save for times, versions and random names. That is an abstraction: how long something has
 * lasted is left out, except where a deadline is set. So a state only says something of a life that did not pass it
 * before its last fault: it must have gone on. What is laid down for later (script and jobs) is left out, too, because
 * it may not matter for long: who goes by a state compares it as far as it did (future.ts).
 */
import type { Job, Pod } from "../../../src/api/kubernetes.ts";
import { ANNOTATION } from "../../../src/api/labels.ts";
import type { Stored } from "../../../src/api/object.ts";
import type { RayCluster } from "../../../src/api/raycluster.ts";
import type { RayJob } from "../../../src/api/rayjob.ts";
import type { Store } from "../../../src/machinery/kube/store.ts";
import type { Operator } from "../../../src/wiring.ts";
import type { World } from "../world.ts";
import { shortened } from "./future.ts";
import type { Replica } from "./replica.ts";

const RESOURCES = ["ray.io/rayjobs", "ray.io/rayclusters", "/pods", "batch/jobs", "/services"] as const;
const UID_OR_SESSION = /([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|session_\d+)/;

export interface Running {
  readonly replica: Replica;
  readonly operator: Operator;
}

export function fingerprint(world: World, replicas: readonly Running[], toCome: string): string {
  const { storage } = world.kube;
  const lines: string[] = [];
  const current = new Map<string, string>();
  /** What stands for a name that is drawn at random. */
  const roles = new Map<string, string>();
  const named = (view: View): string =>
    view.map((part, index) => (index % 2 === 0 ? part : (roles.get(part) ?? "gone"))).join("");
  const views: Stored[] = [];
  for (const resource of RESOURCES) {
    for (const item of storage.all(resource)) {
      const { uid, resourceVersion } = item.metadata;
      current.set(uid, resourceVersion);
      roles.set(uid, `${item.kind}${roles.size}`);
      views.push(item);
    }
  }
  for (const [uid, head] of world.ray.heads) {
    const jobs = [...head.jobs.values()]
      .map(({ status, message, script }) => `${status} ${message} ${script.running} ${script.end}`)
      .join();
    lines.push(
      `ray ${roles.get(uid) ?? "gone"} ${JSON.stringify(head.mood)} ${[...head.nodes.values()].join()} ${jobs}`,
    );
    roles.set(head.session, `session of ${roles.get(uid) ?? "gone"}`);
  }
  lines.push(named(parts(toCome)));
  for (const [index, item] of views.entries()) lines.push(`${index} ${named(viewOf(item))}`);
  for (const { replica, operator } of replicas) {
    if (replica.dead) continue;
    lines.push(
      named(
        parts(
          `operator ${operator.ready} ${replica.held} ${[...replica.heard]
            .map(([what, said]) => `${what}: ${said}`)
            .sort()
            .join()}`,
        ),
      ),
    );
    // What a cache shows differently from what is stored.
    for (const [name, cache] of Object.entries(operator.caches as Record<string, { store: Store<Stored> }>)) {
      const shown = cache.store.list();
      for (const object of shown) {
        if (current.get(object.metadata.uid) !== object.metadata.resourceVersion)
          lines.push(`${name} shows ${named(viewOf(object))}`);
      }
      lines.push(`${name} ${shown.length}`);
    }
  }
  return shortened(lines.join("\n"));
}

/** Text, and UIDs and sessions in it, in turn. */
type View = readonly string[];

/** Made once of each version of an object. */
const known = new WeakMap<object, View>();
function viewOf(object: Stored): View {
  let view = known.get(object);
  if (view === undefined) {
    view = parts(JSON.stringify(shape(object)).replace(/-[a-z0-9]{5}\b/g, "-*"));
    known.set(object, view);
  }
  return view;
}

const parts = (text: string): View => text.split(UID_OR_SESSION);

/** Seconds on the wire, and everything that is only a time, as whether it is there. */
const timeless = (_: string, value: unknown): unknown =>
  typeof value === "string"
    ? value.replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000 UTC)?/g, "time")
    : value;

function shape(object: Stored): unknown {
  const { name, labels, ownerReferences, finalizers, deletionTimestamp, generation } = object.metadata;
  const attempt = labels?.["ray.io/execution-attempt"];
  const meta = [object.kind, name, attempt, ownerReferences?.[0]?.uid, finalizers, deletionTimestamp !== undefined];
  switch (object.kind) {
    case "RayJob": {
      const { status, spec } = object as Stored<RayJob>;
      const stale = status?.observedGeneration !== undefined && status.observedGeneration !== generation;
      const { rayClusterStatus: _, observedGeneration: __, ...rest } = status ?? {};
      const { rayClusterSpec: ___, ...wanted } = spec;
      return JSON.parse(JSON.stringify([...meta, object.metadata.uid, wanted, rest, stale], timeless));
    }
    case "RayCluster": {
      const { status } = object as Stored<RayCluster>;
      const conditions = status?.conditions?.map(({ type, status, reason }) => `${type}=${status} ${reason}`);
      const annotations = object.metadata.annotations ?? {};
      const asked = annotations[ANNOTATION.submission];
      return [...meta, status?.state, status?.head?.podUID, conditions, Object.keys(annotations), asked];
    }
    case "Pod": {
      const { status } = object as Stored<Pod>;
      const conditions = status?.conditions?.map(({ type, status }) => `${type}=${status}`);
      const states = status?.containerStatuses?.map(({ state, restartCount }) => [
        Object.keys(state ?? {}),
        state?.terminated?.exitCode,
        restartCount,
      ]);
      return [...meta, status?.phase, status?.reason, conditions, states];
    }
    case "Job": {
      const { status, spec } = object as Stored<Job>;
      const conditions = status?.conditions?.map(({ type, status }) => `${type}=${status}`);
      return [...meta, status?.active, status?.failed, status?.succeeded, conditions, spec?.backoffLimit];
    }
    default:
      return meta;
  }
}
