/**
 * What must hold at every moment of every world, whatever happens in it: the oracles of the simulator.
 *
 * Looks at each version of each object as it is stored. A violation is a sentence; a world that has any fails its test
 * when it is closed.
 */
import { LABEL } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJob, RayJobStatus } from "../../src/api/rayjob.ts";
import type { Item } from "../../src/simkube/json.ts";
import { KueueBooks } from "../support/kueue.ts";

/** It tells of an attempt, without a record of it. */
const isKubeRays = ({ attempts, rayClusterName, failed }: RayJobStatus): boolean =>
  attempts === undefined && (Boolean(rayClusterName) || (failed ?? 0) > 0);
const ENDS = new Set(["Complete", "Failed"]);

/** Where versions come from: simkube, or the history that a real API server told. */
export interface Observable {
  readonly storage: {
    listen(listener: (change: { type: "ADDED" | "MODIFIED" | "DELETED"; object: Item; old?: Item }) => void): unknown;
    all(resource: string): readonly Item[];
  };
}

export class Invariants {
  readonly violations: string[] = [];
  /** Pods that are nobody's mistake: made from what a server carried out after it had been given up. */
  isExcused: (pod: Stored) => boolean = () => false;
  readonly #kube: Observable;
  readonly #submitted = new Map<string, string>();

  constructor(kube: Observable) {
    this.#kube = kube;
    const kueue = new KueueBooks(
      (what) => this.#violated(what),
      (object) => this.isExcused(object),
    );
    kube.storage.listen(({ type, object, old }) => {
      kueue.stored(type, object as unknown as Stored, old as unknown as Stored | undefined);
      if (object.kind === "RayJob" && type !== "DELETED") {
        this.#rayJob(object as unknown as Stored<RayJob>, old as Stored<RayJob> | undefined);
      }
      if (object.kind === "Pod" && type === "ADDED") this.#pod(object);
      if (object.kind === "Secret" && type === "ADDED") this.#secret(object);
    });
  }

  /** Ray has taken a job. A generated id is an attempt's own, so it is never taken twice; a user's own may be. */
  submitted(head: string, id: string): void {
    if (!/-[a-z0-9]{5}$/.test(id)) return;
    const before = this.#submitted.get(id);
    if (before !== undefined) this.#violated(`Ray was given ${id} twice: by head ${before}, then by head ${head}`);
    this.#submitted.set(id, head);
  }

  #rayJob({ metadata: { name }, status: now = {} }: Stored<RayJob>, old: Stored<RayJob> | undefined): void {
    const before = old?.status ?? {};
    // What another operator wrote is not for ours to answer for.
    if (before.attempts === undefined && isKubeRays(now)) return;
    const from = before.executionAttempt ?? -1;
    const to = now.executionAttempt ?? -1;
    const adopted = isKubeRays(before);
    if (to < from || (to > from + 1 && !adopted)) this.#violated(`${name}: the attempt went from ${from} to ${to}`);
    const numbers = now.attempts?.map(({ number }) => number) ?? [];
    if (numbers.some((number, index) => index > 0 && number !== numbers[index - 1]! + 1)) {
      this.#violated(`${name}: the attempts are ${numbers.join()}`);
    }
    const phase = now.jobDeploymentStatus ?? "";
    const wasAt = before.jobDeploymentStatus ?? "";
    if (ENDS.has(wasAt) && phase !== wasAt) this.#violated(`${name}: ${wasAt} became ${phase || "nothing"}`);
    if (ENDS.has(phase) && ["PENDING", "RUNNING"].includes(now.jobStatus ?? "")) {
      this.#violated(`${name}: ${phase}, and yet ${now.jobStatus}`);
    }
    if (to > from && phase !== "Initializing" && !adopted) this.#violated(`${name}: attempt ${to} began in ${phase}`);
    for (const count of ["failed", "succeeded"] as const) {
      const step = (now[count] ?? 0) - (before[count] ?? 0);
      if (step < 0 || step > 1) this.#violated(`${name}: ${count} went from ${before[count]} to ${now[count]}`);
    }
    // What the journal says of an attempt is never unsaid.
    for (const told of before.attempts ?? []) {
      const tells = now.attempts?.find(({ number }) => number === told.number);
      for (const field of [
        "jobId",
        "rayClusterName",
        "submissionStartTime",
        "observedTime",
        "endTime",
        "raySession",
      ] as const) {
        if (tells && told[field] !== undefined && tells[field] !== told[field]) {
          this.#violated(`${name}: attempt ${told.number} forgot its ${field}`);
        }
      }
      if (!tells && numbers.length > 0 && told.number >= numbers[0]!) {
        this.#violated(`${name}: attempt ${told.number} was forgotten`);
      }
    }
  }

  #pod(pod: Stored): void {
    const { name, labels = {} } = pod.metadata;
    const uid = labels[LABEL.rayJobUID];
    if (uid === undefined) return;
    const jobs = this.#kube.storage.all("ray.io/rayjobs") as unknown as readonly Stored<RayJob>[];
    const job = jobs.find(({ metadata }) => metadata.uid === uid);
    const suspended = job?.status?.jobDeploymentStatus === "Suspended";
    if (suspended && !this.isExcused(pod)) this.#violated(`Pod ${name} was made for a suspended RayJob`);
    const attempt = Number(labels[LABEL.executionAttempt]);
    if (job && attempt > (job.status?.executionAttempt ?? -1)) {
      this.#violated(`Pod ${name} was made for attempt ${attempt} before that was journalled`);
    }
  }

  /** The Pods of a cluster know its token by the Secret's name: another one would divide them. */
  #secret({ metadata: { name, ownerReferences } }: Stored): void {
    const cluster = ownerReferences?.find(({ controller, kind }) => controller && kind === "RayCluster");
    if (!cluster) return;
    const pods = this.#kube.storage.all("pods") as unknown as readonly Stored[];
    const own = pods.filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === cluster.uid));
    if (own.length > 0) this.#violated(`Secret ${name} was made with a token that ${own.length} Pods do not know`);
  }

  #violated(what: string): void {
    this.violations.push(what);
  }
}
