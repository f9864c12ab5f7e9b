/**
 * What must hold of attempts that may not overlap: nothing of an earlier one is there when anything of the next one is, a
 * RayCluster has one head Pod in its life, and what is submitted is what the attempt was started with.
 *
 * Part of oracles.ts, which tells it what happens and takes its complaints. A Pod in Terminating is there. Which strategy
 * an attempt was begun with, its record says.
 */
import { ANNOTATION, LABEL, NODE_TYPE } from "../../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../../src/api/object.ts";
import type { RayCluster } from "../../../src/api/raycluster.ts";
import type { RayJob, RayJobSpec } from "../../../src/api/rayjob.ts";
import type { Change } from "../../../src/simkube/storage.ts";
import type { World } from "../world.ts";
import { GIVEN_UP_MARK } from "./replica.ts";

const CLUSTER = "ray.io/rayclusters";
const POD = "/pods";
const KINDS = [CLUSTER, "batch/jobs", POD];

export class Attempts {
  readonly #world: World;
  readonly #violated: (what: string) => void;
  /** UIDs of what a request made that had been given up long before, and of what that made: nobody can prevent it. */
  readonly #late = new Set<string>();

  constructor(world: World, violated: (what: string) => void) {
    this.#world = world;
    this.#violated = violated;
  }

  stored({ resource, type, ...change }: Change): void {
    const { object, old } = change as { object: Stored; old: KubeObject | undefined };
    if (resource === "ray.io/rayjobs" && type !== "DELETED") this.#begun(object as Stored<RayJob>, old as RayJob);
    if (resource === CLUSTER && type === "MODIFIED") this.#headStays(object as Stored<RayCluster>, old as RayCluster);
    if (!KINDS.includes(resource) || type !== "ADDED") return;
    if (this.#isLate(object)) {
      this.#late.add(object.metadata.uid);
      return;
    }
    if (object.metadata.labels?.[LABEL.nodeType] === NODE_TYPE.head) this.#headMade(object);
    const job = this.#all<RayJob>("ray.io/rayjobs").find(
      ({ metadata }) => metadata.uid === object.metadata.labels?.[LABEL.rayJobUID],
    );
    const attempt = Number(object.metadata.labels?.[LABEL.executionAttempt]);
    if (job) this.#mustBeAlone(job, attempt, `${object.kind} ${object.metadata.name} was made`);
  }

  /** Ray takes a job at this head. */
  asked(head: string, entrypoint: string): void {
    const pod = this.#all(POD).find(({ metadata }) => metadata.uid === head);
    const owner = pod?.metadata.ownerReferences?.find(({ controller }) => controller)?.uid;
    const cluster = this.#all(CLUSTER).find(({ metadata }) => metadata.uid === owner);
    if (cluster?.metadata.labels?.[LABEL.jobSubmissionMode] === "InteractiveMode") return;
    const frozen = cluster?.metadata.annotations?.[ANNOTATION.submission];
    const { entrypoint: asked, submitterPodTemplate } = JSON.parse(frozen ?? "{}") as Partial<RayJobSpec>;
    // A command of the user's own says itself what it runs.
    if (submitterPodTemplate?.spec?.containers[0]?.command) return;
    if (asked && asked !== entrypoint)
      this.#violated(`"${entrypoint}" was submitted, the attempt began with "${asked}"`);
  }

  #begun(job: Stored<RayJob>, old: RayJob | undefined): void {
    const { executionAttempt: attempt = -1 } = job.status ?? {};
    if (attempt > (old?.status?.executionAttempt ?? -1)) this.#mustBeAlone(job, attempt, `attempt ${attempt} began`);
  }

  #mustBeAlone({ metadata: { uid }, status }: Stored<RayJob>, attempt: number, what: string): void {
    const record = status?.attempts?.find(({ number }) => number === attempt);
    if (record?.retryStrategy !== "BlockingRecreate") return;
    for (const { kind, metadata } of KINDS.flatMap((resource) => this.#all(resource))) {
      const { [LABEL.rayJobUID]: owner, [LABEL.executionAttempt]: other } = metadata.labels ?? {};
      if (owner !== uid || Number(other) >= attempt || this.#late.has(metadata.uid)) continue;
      const how = metadata.deletionTimestamp ? "in Terminating" : "there";
      this.#violated(`${what}, and ${kind} ${metadata.name} of attempt ${other} is still ${how}`);
    }
  }

  #headMade({ metadata }: Stored): void {
    const cluster = this.#clusterOf(metadata);
    const first = cluster?.metadata.annotations?.[ANNOTATION.oneHead] && cluster.status?.head?.podUID;
    if (first && first !== metadata.uid) {
      this.#violated(`RayCluster ${cluster.metadata.name} got the head ${metadata.uid} after ${first}`);
    }
  }

  #headStays({ metadata, status }: Stored<RayCluster>, old: RayCluster): void {
    const before = old.status?.head?.podUID;
    if (before && status?.head?.podUID !== before) {
      this.#violated(`the head of RayCluster ${metadata.name} went from ${before} to ${status?.head?.podUID}`);
    }
  }

  #clusterOf({ ownerReferences = [] }: KubeObject["metadata"]): Stored<RayCluster> | undefined {
    return this.#all<RayCluster>(CLUSTER).find(({ metadata }) =>
      ownerReferences.some(({ controller, uid }) => controller && uid === metadata.uid),
    );
  }

  #isLate({ metadata }: KubeObject): boolean {
    const byOwner = metadata.ownerReferences?.some(({ uid }) => this.#late.has(uid)) ?? false;
    return byOwner || metadata.annotations?.[GIVEN_UP_MARK] !== undefined;
  }

  #all<T extends KubeObject = KubeObject>(resource: string): readonly Stored<T>[] {
    return this.#world.kube.storage.all(resource) as unknown as readonly Stored<T>[];
  }
}
