/**
 * What must hold where Kueue has the quota: nothing of the RayJob is there when it takes it back, nothing runs without it,
 * and every Pod of an attempt is where the admission of that attempt wants it.
 *
 * Part of oracles.ts, which tells it what happens and takes its complaints. What Kueue reads off single versions is
 * judged in test/support/kueue.ts, in every world.
 */
import type { Pod } from "../../../src/api/kubernetes.ts";
import { LABEL } from "../../../src/api/labels.ts";
import type { Stored } from "../../../src/api/object.ts";
import type { RayJob } from "../../../src/api/rayjob.ts";
import type { Change } from "../../../src/simkube/storage.ts";
import { FLAVOR } from "../../support/kueueWrites.ts";
import type { World } from "../world.ts";
import { flavorOf, type Kueue } from "./kueue.ts";
import { GIVEN_UP_MARK } from "./replica.ts";

export class Quota {
  readonly #world: World;
  readonly #kueue: Kueue;
  readonly #violated: (what: string) => void;
  /**
   * To which flavour an attempt was admitted, by RayJob and number. None for one that a user resumed by hand, or corrected
   * after Kueue had taken the quota back because it was on hold: that does not suspend it, and stops it only when it runs.
   */
  readonly #admissions = new Map<string, string | undefined>();

  constructor(world: World, kueue: Kueue, violated: (what: string) => void) {
    this.#world = world;
    this.#kueue = kueue;
    this.#violated = violated;
    kueue.onReleased = (uid) => this.#released(uid);
  }

  stored({ resource, type, ...change }: Change): void {
    const { object, old } = change as unknown as { object: Stored; old: Stored | undefined };
    if (resource === "ray.io/rayjobs" && type !== "DELETED") {
      this.#rayJob(object as Stored<RayJob>, old as Stored<RayJob> | undefined);
    }
    if (resource === "/pods" && type === "ADDED") this.#pod(object as Stored<Pod>);
  }

  /** At the end, when nothing moves any more: what has given its quota away has no Pods, unless it is to keep them. */
  settled(): void {
    const { finished, uid } = this.#kueue.workload ?? {};
    const [job] = this.#world.kube.storage.all("ray.io/rayjobs") as unknown as readonly Stored<RayJob>[];
    if (!finished || (job?.spec.ttlSecondsAfterFinished ?? 0) > 0) return;
    for (const { metadata } of this.#podsOf(uid)) {
      this.#violated(`the Workload has ${finished}, and Pod ${metadata.name} stays`);
    }
  }

  #rayJob({ metadata: { uid }, status, spec }: Stored<RayJob>, old: Stored<RayJob> | undefined): void {
    const { executionAttempt: attempt = -1 } = status ?? {};
    if (attempt <= (old?.status?.executionAttempt ?? -1)) return;
    this.#admissions.set(`${uid} ${attempt}`, this.#kueue.isAdmitted ? flavorOf(spec) : undefined);
  }

  #pod(pod: Stored<Pod>): void {
    const { name, labels = {} } = pod.metadata;
    const uid = labels[LABEL.rayJobUID];
    const attempt = labels[LABEL.executionAttempt];
    const admitted = this.#admissions.get(`${uid} ${attempt}`);
    if (admitted === undefined || this.#isStray(pod)) return;
    const runsOn = pod.spec?.nodeSelector?.[FLAVOR];
    if (runsOn !== admitted) {
      this.#violated(`Pod ${name} of attempt ${attempt} runs on ${runsOn}, and that was admitted to ${admitted}`);
    }
    const { workload } = this.#kueue;
    // Of one that was deleted the quota is gone at once, by Kueue's own will.
    if (workload?.uid === uid && workload?.flavor === undefined) {
      this.#violated(`Pod ${name} of attempt ${attempt} was made, and Kueue holds no quota for it`);
    }
  }

  #released(uid: string): void {
    for (const pod of this.#podsOf(uid)) {
      if (this.#isStray(pod)) continue;
      const attempt = pod.metadata.labels?.[LABEL.executionAttempt];
      if (this.#admissions.get(`${uid} ${attempt}`) === undefined) continue;
      this.#violated(`Kueue took the quota back, and Pod ${pod.metadata.name} is there`);
    }
  }

  /** Made by a request that had been given up long before: nobody can prevent it. */
  #isStray = (pod: Stored<Pod>): boolean =>
    this.#world.invariants.isExcused(pod) || pod.metadata.annotations?.[GIVEN_UP_MARK] !== undefined;

  /** Those that hold a machine, or may yet. */
  #podsOf(uid: string | undefined): readonly Stored<Pod>[] {
    const pods = this.#world.kube.storage.all("/pods") as unknown as readonly Stored<Pod>[];
    return pods.filter(
      ({ metadata, status }) =>
        metadata.labels?.[LABEL.rayJobUID] === uid && !["Succeeded", "Failed"].includes(status?.phase ?? ""),
    );
  }
}
