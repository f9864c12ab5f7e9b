/**
 * What must hold of what is deleted at the end: nothing before its time, everything when it has come, and what is said to be
 * held is there.
 *
 * Part of oracles.ts, which tells it what happens and takes its complaints. It reads the rules once more, by itself.
 */
import { LABEL, NODE_TYPE } from "../../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../../src/api/object.ts";
import type { RayCluster } from "../../../src/api/raycluster.ts";
import type { RayJob } from "../../../src/api/rayjob.ts";
import type { KubeRequest } from "../../../src/machinery/kube/transport.ts";
import type { World } from "../world.ts";

const ENDS = new Set(["Complete", "Failed"]);

export class Disposal {
  readonly #world: World;
  readonly #violated: (what: string) => void;

  constructor(world: World, violated: (what: string) => void) {
    this.#world = world;
    this.#violated = violated;
  }

  /** A replica sends a write. */
  sends({ method, path, body }: KubeRequest): void {
    const job = this.#all<RayJob>("ray.io/rayjobs")[0];
    if (!job || !this.#ruled(job) || !ENDS.has(job.status?.jobDeploymentStatus ?? "")) return;
    const target = (body as { preconditions?: { uid?: string } } | undefined)?.preconditions?.uid;
    const isCurrent = this.#all<RayCluster>("ray.io/rayclusters").some(
      ({ metadata }) => metadata.uid === target && metadata.name === job.status?.rayClusterName,
    );
    const does =
      method === "DELETE" && path.includes("/rayclusters/") && isCurrent
        ? "DeleteCluster"
        : method === "DELETE" && path.includes("/rayjobs/")
          ? "DeleteSelf"
          : method === "PATCH" &&
              /\/rayclusters\/[^/]+$/.test(path) &&
              JSON.stringify(body).includes("workerGroupSpecs")
            ? "DeleteWorkers"
            : undefined;
    if (does === undefined) return;
    const from = this.#due(job, does);
    const now = this.#world.clock.now();
    if (from === undefined) this.#violated(`${does} is done, and no rule says so`);
    else if (now < from) this.#violated(`${does} is done ${(from - now) / 1000} s before its time`);
  }

  /** At the end, when nothing moves any more. */
  settled(): void {
    const job = this.#all<RayJob>("ray.io/rayjobs")[0];
    if (!job || !this.#ruled(job) || !ENDS.has(job.status?.jobDeploymentStatus ?? "")) return;
    const { rayClusterName: name = "" } = job.status ?? {};
    const cluster = this.#all<RayCluster>("ray.io/rayclusters").find(({ metadata }) => metadata.name === name);
    const pods = this.#all("/pods").filter(({ metadata }) => metadata.labels?.[LABEL.cluster] === name);
    const workers = pods.filter(({ metadata }) => metadata.labels?.[LABEL.nodeType] === NODE_TYPE.worker);
    if (this.#due(job, "DeleteSelf") !== undefined) this.#violated("DeleteSelf has come, and the RayJob is there");
    if (this.#due(job, "DeleteCluster") !== undefined && cluster)
      this.#violated("DeleteCluster has come, and it is there");
    if (this.#due(job, "DeleteWorkers") !== undefined && workers.length > 0) {
      this.#violated(`DeleteWorkers has come, and ${workers.length} are there`);
    }
    const told = job.status?.conditions?.find(({ type }) => type === "ResourcesReleased");
    const count = Number(/with (\d+) Pods?/.exec(told?.message ?? "")?.[1]);
    if (told?.reason === "KeptByPolicy" && cluster && count !== pods.length) {
      this.#violated(`${count} Pods are said to be kept, and there are ${pods.length}`);
    }
  }

  #ruled({ spec }: RayJob): boolean {
    return spec.deletionStrategy?.deletionRules !== undefined;
  }

  /** From when on a rule says so. */
  #due({ spec, status = {} }: RayJob, policy: string): number | undefined {
    const matching = (spec.deletionStrategy?.deletionRules ?? []).filter(
      (rule) =>
        rule.policy === policy &&
        (rule.condition.jobDeploymentStatus === undefined
          ? rule.condition.jobStatus === status.jobStatus
          : rule.condition.jobDeploymentStatus === status.jobDeploymentStatus),
    );
    const from = matching.map(({ condition }) => Date.parse(status.endTime ?? "") + (condition.ttlSeconds ?? 0) * 1000);
    return from.length > 0 ? Math.min(...from) : undefined;
  }

  #all<T extends KubeObject = KubeObject>(resource: string): readonly Stored<T>[] {
    return this.#world.kube.storage.all(resource) as unknown as readonly Stored<T>[];
  }
}
