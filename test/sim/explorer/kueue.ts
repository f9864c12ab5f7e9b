/**
 * Kueue as one of those who act in an explored life: it has the RayJob in a queue, admits it, takes its quota back.
 *
 * It knows the RayJob by its own view, which may lag and never sees what came in between, and writes what Kueue writes
 * (test/support/kueueWrites.ts). When it looks and when it writes are choice points; what happens to its Workload (a
 * preemption, a deactivation, a deletion) are acts (acts.ts). It decides as Kueue's reconciler does, in that order: gone,
 * on hold, finished, without a Workload, evicted, to be started, to be stopped.
 * May not: mend what the operator does. What must hold is in quota.ts.
 */
import type { Job } from "../../../src/api/kubernetes.ts";
import type { KubeObject, Stored } from "../../../src/api/object.ts";
import type { RayCluster } from "../../../src/api/raycluster.ts";
import type { RayJob } from "../../../src/api/rayjob.ts";
import { sleep } from "../../../src/machinery/clock.ts";
import { isConflict, isNotFound } from "../../../src/machinery/kube/errors.ts";
import { jobs, type ResourceType, rayClusters, rayJobs } from "../../../src/machinery/kube/resources.ts";
import { type KueueView, kueueView } from "../../support/kueue.ts";
import { FLAVOR, type PodSets, podSetsOf, startPatch, stopPatch } from "../../support/kueueWrites.ts";
import type { World } from "../world.ts";
import { type PointKind, USUAL } from "./choices.ts";

/** How the lifecycle's queue is. */
export interface Queueing {
  /** Nothing in it is ever admitted. */
  readonly full?: boolean;
  /** `waitForPodsReady`, in milliseconds: it is evicted when its Pods are not ready for so long. */
  readonly readyWithin?: number;
  /** So often it is put back into the queue after that; then it is deactivated. */
  readonly requeues?: number;
}

/** What the life it acts in is to it. */
export interface Around {
  readonly world: World;
  choose(kind: PointKind, what: () => string, choices: readonly string[], site: string): string;
  begin(): () => void;
  /** Something is different that no object tells of. */
  changed(): void;
  tell(what: () => string): void;
  /** The RayJob is started, and has had an attempt before. */
  resumed(): void;
}

export interface Workload {
  /** Of the RayJob. */
  readonly uid: string;
  readonly podSets: PodSets;
  /** The flavour of its admission; without one it waits in the queue. */
  flavor?: string;
  /** Why its quota is to be taken back; until then it counts as admitted. */
  evicted?: "Preempted" | "PodsReadyTimeout" | "Deactivated";
  active: boolean;
  finished?: "succeeded" | "failed";
  requeues: number;
  /** Since when its Pods are not ready, while it is admitted. */
  waitsSince?: number;
}

/** From a place in the queue to the admission. */
const IN_QUEUE = 500;
/** The same for one that was evicted: others were waiting, too. */
const BACK_IN_QUEUE = 15_000;
const LATENCY = 3;
const LATE = ["late-3", "late-40"];
const DELAYS = { "late-3": 3000, "late-40": 40_000 } as Readonly<Record<string, number>>;

export class Kueue {
  workload: Workload | undefined;
  /** The quota was taken back and the RayJob stopped: from then on nothing of it may run. */
  onReleased: (uid: string) => void = () => {};
  readonly #around: Around;
  readonly #queueing: Queueing;
  #view: Stored<RayJob> | undefined;
  #news = false;
  #isLooking = false;
  #late = "";
  #admissions = 0;
  /** Children about which there was an event that was not looked at. */
  readonly #children = new Set<string>();

  constructor(queueing: Queueing, around: Around) {
    this.#queueing = queueing;
    this.#around = around;
    around.world.kube.storage.listen(({ resource, type, object }) => {
      if (resource === "ray.io/rayclusters" || resource === "batch/jobs") {
        if (type !== "DELETED") this.#children.add(object.metadata.uid);
      } else if (resource !== "ray.io/rayjobs") return;
      this.#look();
    });
  }

  /** Its quota is somebody's: of this RayJob. */
  get isAdmitted(): boolean {
    return this.workload?.flavor !== undefined && !this.workload.finished;
  }

  get mayEvict(): boolean {
    return this.isAdmitted && !this.workload?.evicted;
  }

  evict(why: NonNullable<Workload["evicted"]>): void {
    const { workload } = this;
    if (!workload || workload.finished) return;
    if (why === "Deactivated") workload.active = false;
    this.#around.tell(() => `Workload: ${why}`);
    if (workload.flavor !== undefined) workload.evicted = why;
    this.#around.changed();
    this.#look();
  }

  /** An administrator deletes the Workload: the RayJob is stopped, and the quota given away, whatever is left of it. */
  async deleteWorkload(): Promise<void> {
    this.#around.tell(() => "Workload: deleted");
    const { workload } = this;
    if (this.#view && workload && !kueueView(this.#view).suspended) await this.#stop(this.#view, workload);
    this.workload = undefined;
    this.#around.changed();
    this.#look();
  }

  /** What a state of the world does not show of it. */
  get state(): string {
    const { storage } = this.#around.world.kube;
    const [job] = storage.all("ray.io/rayjobs") as unknown as readonly Stored<RayJob>[];
    const { flavor, evicted, active, finished, requeues, waitsSince } = this.workload ?? {};
    const clusters = storage.all("ray.io/rayclusters") as unknown as readonly Stored<RayCluster>[];
    const flavors = [flavorOf(job?.spec), ...clusters.map(({ spec }) => flavorOf({ rayClusterSpec: spec }))];
    const waits = waitsSince === undefined ? "" : Math.floor((this.#around.world.clock.now() - waitsSince) / 1000);
    const isUpToDate = this.#view?.metadata.resourceVersion === job?.metadata.resourceVersion;
    const sees = isUpToDate || !this.#view ? isUpToDate : kueueView(this.#view);
    return JSON.stringify([
      [flavor !== undefined, evicted, active, finished, this.workload && requeues],
      this.#queueing.readyWithin === undefined ? "" : waits,
      flavors.map((one) => (one === undefined ? "none" : one === flavor)),
      clusters.map(({ spec }) => spec.suspend),
      [sees, this.#late, this.#isLooking],
    ]);
  }

  #look(): void {
    this.#news = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    void this.#follow();
  }

  async #follow(): Promise<void> {
    while (this.#news) {
      this.#news = false;
      await sleep(this.#around.world.clock, LATENCY);
      const [newest] = this.#jobs();
      await this.#mayBeLate("sees", () => `Kueue sees ${inWords(newest)}`);
      // By then there may be a newer one.
      this.#view = this.#jobs()[0];
      await this.#reconcile(this.#view).catch((error) => {
        if (!isConflict(error) && !isNotFound(error)) throw error;
        // Somebody was quicker: it looks again.
        this.#news = true;
      });
    }
    this.#isLooking = false;
    this.#around.changed();
  }

  async #reconcile(job: Stored<RayJob> | undefined): Promise<void> {
    if (!job || job.metadata.deletionTimestamp || (this.workload && this.workload.uid !== job.metadata.uid)) {
      this.workload = undefined;
      if (!job || job.metadata.deletionTimestamp) return;
    }
    await this.#own(job, kueueView(job));
    await this.#suspendChildren(job);
  }

  async #own(job: Stored<RayJob>, sees: KueueView): Promise<void> {
    const { workload } = this;
    if (workload?.finished) return;
    if (sees.onHold) return this.#release("on hold");
    if (sees.finished) {
      if (!workload) return;
      workload.finished = sees.succeeded ? "succeeded" : "failed";
      this.#around.tell(() => `Workload: ${workload.finished}`);
      this.#around.changed();
      return;
    }
    if (!workload) {
      if (!sees.suspended) await this.#stop(job, undefined);
      else if (!sees.active) this.#enqueue(job);
      return;
    }
    this.#arePodsReady(workload, sees);
    if (workload.evicted) {
      // What the patch answers is what it goes on with.
      const now = sees.suspended ? job : await this.#stop(job, workload);
      if (!kueueView(now).active) this.#release(workload.evicted);
      return;
    }
    const { flavor } = workload;
    if (sees.suspended && flavor !== undefined) {
      await this.#write(`starts it on ${flavor}`, rayJobs, job, startPatch(job, workload.podSets, flavor));
      workload.waitsSince = this.#around.world.clock.now();
      if (job.status?.executionAttempt !== undefined) this.#around.resumed();
    } else if (!sees.suspended && flavor === undefined) await this.#stop(job, workload);
  }

  #enqueue({ metadata: { uid }, ...job }: Stored<RayJob>): void {
    const workload = { uid, podSets: podSetsOf(job as RayJob), active: true, requeues: 0 };
    this.workload = workload;
    this.#around.changed();
    this.#wait(workload, IN_QUEUE);
  }

  /** In the queue, until it is its turn. */
  #wait(workload: Workload, milliseconds: number): void {
    if (this.#queueing.full) return;
    this.#around.world.clock.after(milliseconds, () => {
      if (this.workload !== workload || !workload.active || workload.flavor !== undefined) return;
      workload.flavor = `flavor-${++this.#admissions}`;
      this.#around.tell(() => `Workload: admitted to ${workload.flavor}`);
      this.#around.changed();
      this.#look();
    });
  }

  /** Somebody else gets the quota now. */
  #release(why: string): void {
    const { workload } = this;
    if (workload?.flavor === undefined) return;
    this.#around.tell(() => `Workload: quota taken back, ${why}`);
    workload.flavor = undefined;
    workload.evicted = undefined;
    workload.waitsSince = undefined;
    this.onReleased(workload.uid);
    this.#around.changed();
    this.#wait(workload, BACK_IN_QUEUE);
  }

  #arePodsReady(workload: Workload, { podsReady, suspended }: KueueView): void {
    const { readyWithin, requeues = Number.POSITIVE_INFINITY } = this.#queueing;
    const { clock } = this.#around.world;
    if (readyWithin === undefined || suspended || workload.flavor === undefined) return;
    if (podsReady) workload.waitsSince = undefined;
    else workload.waitsSince ??= clock.now();
    const since = workload.waitsSince;
    if (since === undefined || workload.evicted) return;
    if (clock.now() < since + readyWithin) {
      clock.after(since + readyWithin - clock.now(), () => workload.waitsSince === since && this.#look());
      return;
    }
    this.#around.tell(() => `Workload: its Pods are not ready for ${readyWithin / 1000} s`);
    workload.evicted = "PodsReadyTimeout";
    if (++workload.requeues > requeues) workload.active = false;
  }

  /** Without a Workload nothing is known that could be restored. */
  #stop(job: Stored<RayJob>, workload: Workload | undefined): Promise<Stored<RayJob>> {
    return this.#write("stops it", rayJobs, job, stopPatch(job, workload?.podSets ?? {}));
  }

  /** A child of a RayJob that holds no quota: it is told so at its next event. */
  async #suspendChildren({ metadata: { uid } }: Stored<RayJob>): Promise<void> {
    if (this.isAdmitted) return;
    const { storage } = this.#around.world.kube;
    for (const [type, resource] of [
      [rayClusters, "ray.io/rayclusters"],
      [jobs, "batch/jobs"],
    ] as const) {
      for (const child of storage.all(resource) as unknown as readonly Stored<RayCluster | Job>[]) {
        const { metadata, spec } = child;
        if (!this.#children.delete(metadata.uid) || metadata.deletionTimestamp || spec?.suspend || isOver(child))
          continue;
        if (!metadata.ownerReferences?.some((owner) => owner.controller && owner.uid === uid)) continue;
        await this.#write(`suspends ${child.kind}`, type, child, { spec: { suspend: true } });
      }
    }
  }

  async #write<T extends KubeObject>(
    what: string,
    type: ResourceType,
    object: Stored<T>,
    patch: object,
  ): Promise<Stored<T>> {
    const { metadata } = object;
    await this.#mayBeLate(what, () => `Kueue ${what}`);
    this.#around.tell(() => what);
    return this.#around.world.client.patch<T>(type, metadata.namespace, metadata.name, patch);
  }

  async #mayBeLate(site: string, what: () => string): Promise<void> {
    const choice = this.#around.choose("kueue", what, LATE, site);
    if (choice === USUAL) return;
    const done = this.#around.begin();
    this.#late = site;
    await sleep(this.#around.world.clock, DELAYS[choice]!);
    this.#late = "";
    done();
  }

  #jobs(): readonly Stored<RayJob>[] {
    return this.#around.world.kube.storage.all("ray.io/rayjobs") as unknown as readonly Stored<RayJob>[];
  }
}

/** The nodes that an admission gave. */
export const flavorOf = (spec: Pick<RayJob["spec"], "rayClusterSpec"> | undefined): string | undefined =>
  spec?.rayClusterSpec?.headGroupSpec.template.spec?.nodeSelector?.[FLAVOR];

const isOver = (child: KubeObject): boolean =>
  ((child as Job).status?.conditions ?? []).some(
    ({ type, status }) => child.kind === "Job" && ["Complete", "Failed"].includes(type) && status === "True",
  );

function inWords(job: Stored<RayJob> | undefined): string {
  if (!job) return "that the RayJob is gone";
  const { jobDeploymentStatus = "new" } = job.status ?? {};
  return `the RayJob ${jobDeploymentStatus}${job.spec.suspend ? ", suspended" : ""}`;
}
