/**
 * What Kueue would read off a RayJob, and what must hold for its books to agree with the Pods.
 *
 * Kueue looks at five fields of the status and at `spec.suspend`, version by version: a single version that says too much
 * ends the Workload for good. So this hears each version of each object, as one would who watches everything.
 */
import { LABEL } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJob } from "../../src/api/rayjob.ts";

export interface KueueView {
  /** Kueue or a user wants nothing of it to run. */
  readonly suspended: boolean;
  /** Its Pods may exist. */
  readonly active: boolean;
  /** Its quota goes back for good. */
  readonly finished: boolean;
  readonly succeeded: boolean;
  /** Neither finished nor allowed to hold quota. */
  readonly onHold: boolean;
  readonly podsReady: boolean;
}

export function kueueView({ spec, status = {} }: Pick<RayJob, "spec" | "status">): KueueView {
  const phase = status.jobDeploymentStatus ?? "";
  return {
    suspended: spec.suspend === true,
    active: phase !== "" && phase !== "Suspended",
    finished: phase === "Complete" || phase === "Failed",
    succeeded: status.jobStatus === "SUCCEEDED",
    onHold: phase === "ValidationFailed",
    podsReady: status.rayClusterStatus?.state === "ready",
  };
}

/** A RayCluster that a selector names is not Kueue's business; it manages no such RayJob. */
const isManaged = ({ spec }: RayJob): boolean => Object.keys(spec.clusterSelector ?? {}).length === 0;

/** UID of the RayJob that an object was made for. */
const rayJobUID = ({ metadata }: Stored): string | undefined => metadata.labels?.[LABEL.rayJobUID];

export class KueueBooks {
  readonly #violated: (what: string) => void;
  /** Everything there is that was made for some RayJob, by UID. */
  readonly #children = new Map<string, Stored>();
  readonly #isExcused: (object: Stored) => boolean;

  /** `isExcused`: what a server carried out after it had been given up is nobody's mistake. */
  constructor(violated: (what: string) => void, isExcused: (object: Stored) => boolean) {
    this.#violated = violated;
    this.#isExcused = isExcused;
  }

  /** A version was stored; `old` is the one before it. */
  stored(type: "ADDED" | "MODIFIED" | "DELETED", object: Stored, old: Stored | undefined): void {
    if (object.kind === "RayJob") {
      if (type !== "DELETED") this.#rayJob(object as Stored<RayJob>, old as Stored<RayJob> | undefined);
    } else if (["RayCluster", "Pod", "Job"].includes(object.kind ?? "") && rayJobUID(object) !== undefined) {
      if (type === "DELETED") this.#children.delete(object.metadata.uid);
      else this.#children.set(object.metadata.uid, object);
      if (type === "ADDED" && object.kind === "RayCluster") this.#rayCluster(object);
    }
  }

  #rayJob(job: Stored<RayJob>, old: Stored<RayJob> | undefined): void {
    // What another operator made bears no label of ours, and it waits for less.
    if (!isManaged(job) || job.status?.attempts === undefined) return;
    const { name, uid } = job.metadata;
    const now = kueueView(job);
    const before = old && kueueView(old);
    if (before?.finished && !now.finished) this.#violated(`${name}: Kueue saw its end, and then it was not over`);
    if (before?.finished && before.succeeded !== now.succeeded) {
      this.#violated(`${name}: Kueue booked ${before.succeeded ? "a success" : "a failure"}, and then the other`);
    }
    if (old && old.status?.executionAttempt !== job.status.executionAttempt && now.podsReady) {
      this.#violated(
        `${name}: Kueue saw the Pods of attempt ${job.status.executionAttempt} ready before there were any`,
      );
    }
    // With this version Kueue would give the quota to somebody else.
    const isFreed = now.suspended && !now.active;
    if (!isFreed || (before?.suspended && !before.active)) return;
    const holding = [...this.#children.values()].filter((child) => rayJobUID(child) === uid && !this.#isExcused(child));
    for (const { kind, metadata } of holding) {
      this.#violated(`${name}: Kueue would give its quota away, and yet there is ${kind} ${metadata.name}`);
    }
  }

  /** Kueue finds the RayJob by the controller reference alone; without it, it would ask for the quota a second time. */
  #rayCluster({ metadata }: Stored): void {
    const owner = metadata.ownerReferences?.find(({ controller }) => controller);
    const uid = metadata.labels?.[LABEL.rayJobUID];
    if (owner?.apiVersion !== "ray.io/v1" || owner.kind !== "RayJob" || owner.uid !== uid) {
      this.#violated(`RayCluster ${metadata.name}: Kueue does not see that RayJob ${uid} controls it`);
    }
  }
}
