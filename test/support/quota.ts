/**
 * Whether Kueue's quota and the Pods agreed, at every moment of a history that both wrote: the judge of the scenarios in
 * which Kueue itself is on the cluster.
 *
 * What Kueue thinks of a RayJob is in its Workload's conditions. Where kueueView (kueue.ts) reads the same off the RayJob,
 * the two are held against each other: so what the simulator's books believe of Kueue is what Kueue does.
 */
import type { Pod } from "../../src/api/kubernetes.ts";
import { LABEL, NODE_TYPE, SUBMITTER_CONTAINER } from "../../src/api/labels.ts";
import type { Condition, KubeObject, Stored } from "../../src/api/object.ts";
import {
  addQuantities,
  compareQuantities,
  formatQuantity,
  parseQuantity,
  type Quantity,
} from "../../src/api/quantity.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import type { ResourceType } from "../../src/machinery/kube/resources.ts";
import type { Version } from "./history.ts";
import { kueueView } from "./kueue.ts";

/** What is read of Kueue's Workload. */
export interface Workload extends KubeObject {
  readonly spec?: { readonly priority?: number; readonly active?: boolean };
  readonly status?: {
    readonly conditions?: readonly Condition[];
    readonly admission?: {
      readonly podSetAssignments?: readonly {
        readonly name: string;
        readonly count?: number;
        readonly resourceUsage?: Readonly<Record<string, string>>;
      }[];
    };
  };
}

export const workloads: ResourceType = {
  group: "kueue.x-k8s.io",
  version: "v1beta2",
  plural: "workloads",
  singular: "workload",
  kind: "Workload",
  namespaced: true,
};

type Amounts = Readonly<Record<string, Quantity>>;

export const conditionOf = (workload: Workload | undefined, type: string): Condition | undefined =>
  workload?.status?.conditions?.find((condition) => condition.type === type);
const is = (workload: Workload | undefined, type: string) => conditionOf(workload, type)?.status === "True";
/** Kueue counts it. It leaves the reservation of one that has ended where it is, and counts it no longer. */
export const holdsQuota = (workload: Workload | undefined): boolean =>
  is(workload, "QuotaReserved") && !is(workload, "Finished");

export interface Judgement {
  /** What must never be, in sentences. */
  readonly violations: readonly string[];
  /** By RayJob: how long Pods of it were there after its end, in seconds; Kueue gives their quota away with the end. */
  readonly outlived: ReadonlyMap<string, number>;
  /** By RayJob: what Kueue did with it, in order. */
  readonly stories: ReadonlyMap<string, readonly string[]>;
}

/** Judges versions in the order in which they were stored. `nominal` is what the queue has, by resource. */
export function judgeQuota(versions: readonly Version[], nominal: Readonly<Record<string, string>>): Judgement {
  const books = new QuotaBooks(amounts(nominal));
  for (const version of versions) books.stored(version);
  return books.judgement();
}

class QuotaBooks {
  readonly #nominal: Amounts;
  /** Those that are deleted are remembered: their Pods may take a moment more. */
  readonly #jobs = new Map<string, Stored<RayJob>>();
  readonly #gone = new Set<string>();
  readonly #workloads = new Map<string, Stored<Workload>>();
  readonly #pods = new Map<string, Stored<Pod>>();
  readonly #violations = new Set<string>();
  readonly #outlived = new Map<string, number>();
  readonly #stories = new Map<string, string[]>();

  constructor(nominal: Amounts) {
    this.#nominal = nominal;
  }

  stored({ type, object }: Version): void {
    const { uid } = object.metadata;
    const there = type !== "DELETED";
    if (object.kind === "RayJob") {
      this.#jobs.set(uid, object as Stored<RayJob>);
      if (!there) this.#gone.add(uid);
    } else if (object.kind === "Pod") this.#pod(type, object as Stored<Pod>);
    else if (object.kind === "Workload") this.#workload(there, object as Stored<Workload>);
    else return;
    this.#sums();
  }

  #pod(type: Version["type"], pod: Stored<Pod>): void {
    const job = this.#jobOf(pod);
    if (!job) return;
    const { name, uid } = pod.metadata;
    const before = this.#pods.get(uid);
    if (before && !isOver(before) && (type === "DELETED" || isOver(pod))) this.#ended(pod, job);
    if (type === "DELETED") {
      this.#pods.delete(uid);
      return;
    }
    this.#pods.set(uid, pod);
    const workload = this.#workloadOf(job);
    if (type === "ADDED" && !(is(workload, "Admitted") && holdsQuota(workload))) {
      this.#violated(`Pod ${name} was made for ${job.metadata.name}, which Kueue has not admitted`);
    }
  }

  /** In whole seconds, as the end of both is stored. */
  #ended(pod: Stored<Pod>, { metadata: { name }, status }: Stored<RayJob>): void {
    const late = (Date.parse(lastMoment(pod)) - Date.parse(status?.endTime ?? "")) / 1000;
    if (late > 0) this.#outlived.set(name, Math.max(late, this.#outlived.get(name) ?? 0));
  }

  #workload(there: boolean, now: Stored<Workload>): void {
    const job = this.#ownerOf(now);
    const before = this.#workloads.get(now.metadata.uid);
    if (!there) {
      // Kueue gives its quota back, whatever there is.
      this.#workloads.delete(now.metadata.uid);
      if (job && !is(now, "Finished")) this.#tell(job, "Workload deleted");
      return;
    }
    this.#workloads.set(now.metadata.uid, now);
    if (!job) return;
    const view = kueueView(job);
    const { name } = job.metadata;
    for (const condition of now.status?.conditions ?? []) {
      const { type, status, reason } = condition;
      if ((conditionOf(before, type)?.status ?? "False") === status) continue;
      this.#tell(job, `${type}=${status} (${reason})`);
    }
    if (is(now, "Finished") && !is(before, "Finished")) {
      const { reason, message } = conditionOf(now, "Finished")!;
      if (!view.finished) this.#violated(`${name}: Kueue has it finished (${reason}), and it is not over: ${message}`);
      if ((reason === "Succeeded") !== view.succeeded) {
        this.#violated(`${name}: Kueue calls its end ${reason}, and it has ${view.succeeded ? "" : "not "}succeeded`);
      }
    }
    if (holdsQuota(before) && !holdsQuota(now) && !is(now, "Finished")) {
      if (!view.suspended || view.active) this.#violated(`${name}: lost its quota while Kueue saw it active`);
      for (const pod of this.#podsOf(job)) {
        this.#violated(`${name}: its quota went, and yet there was Pod ${pod.metadata.name}`);
      }
    }
    if (is(now, "PodsReady") && !is(before, "PodsReady") && !view.podsReady) {
      this.#violated(`${name}: Kueue has its Pods ready, and its RayCluster is not`);
    }
  }

  /** Each within what was admitted for it, all within the queue; what has ended is not counted any more. */
  #sums(): void {
    const counted: Amounts[] = [];
    for (const job of this.#jobs.values()) {
      const { name, uid } = job.metadata;
      if (this.#gone.has(uid) || kueueView(job).finished) continue;
      const used = total(
        this.#podsOf(job)
          .filter((pod) => counts(pod, job))
          .map(requestsOf),
      );
      const workload = this.#workloadOf(job);
      // Somebody deleted it: Kueue itself has let go of the quota, and stops the RayJob.
      if (workload)
        exceeds(used, holdsQuota(workload) ? usageOf(workload) : {}, (what) =>
          this.#violated(`${name}: its Pods request ${what} that Kueue has reserved for it`),
        );
      counted.push(used);
    }
    exceeds(total(counted), this.#nominal, (what) => this.#violated(`the Pods request ${what} that the queue has`));
  }

  judgement(): Judgement {
    for (const job of this.#jobs.values()) {
      if (!isManaged(job) || !kueueView(job).finished || this.#gone.has(job.metadata.uid)) continue;
      const workload = this.#workloadOf(job);
      if (!is(workload, "Finished")) this.#violated(`${job.metadata.name}: it is over, and Kueue does not know`);
    }
    return { violations: [...this.#violations], outlived: this.#outlived, stories: this.#stories };
  }

  #jobOf({ metadata }: Stored): Stored<RayJob> | undefined {
    const job = this.#jobs.get(metadata.labels?.[LABEL.rayJobUID] ?? "");
    return job && isManaged(job) ? job : undefined;
  }

  #ownerOf({ metadata }: Stored<Workload>): Stored<RayJob> | undefined {
    return this.#jobs.get(metadata.ownerReferences?.find(({ kind }) => kind === "RayJob")?.uid ?? "");
  }

  #workloadOf(job: Stored<RayJob>): Stored<Workload> | undefined {
    return [...this.#workloads.values()].find((one) => this.#ownerOf(one) === job);
  }

  #podsOf(job: Stored<RayJob>): Stored<Pod>[] {
    return [...this.#pods.values()].filter((pod) => this.#jobOf(pod) === job);
  }

  #tell({ metadata: { name } }: Stored<RayJob>, what: string): void {
    this.#stories.set(name, [...(this.#stories.get(name) ?? []), what]);
  }

  #violated(what: string): void {
    this.#violations.add(what);
  }
}

/** A RayJob without a queue is none of Kueue's business, nor is one that selects its RayCluster. */
const isManaged = ({ metadata, spec }: Stored<RayJob>): boolean =>
  Boolean(metadata.labels?.[LABEL.kueueQueueName]) && Object.keys(spec.clusterSelector ?? {}).length === 0;

/**
 * Whether what it requests has to be within the quota. A RayJob that lets its attempts overlap (Recreate) has the Pods of two
 * while those of the earlier one end.
 */
function counts(pod: Stored<Pod>, { spec, status }: Stored<RayJob>): boolean {
  const earlier = Number(pod.metadata.labels?.[LABEL.executionAttempt]) < (status?.executionAttempt ?? 0);
  const overlaps = earlier && pod.metadata.deletionTimestamp && spec.retryStrategy?.type !== "BlockingRecreate";
  return !isOver(pod) && !overlaps;
}

/** Its containers have ended: it holds nothing any more, and stays for its log. */
const isOver = ({ status }: Pod): boolean => status?.phase === "Succeeded" || status?.phase === "Failed";

function lastMoment({ metadata, status }: Stored<Pod>): string {
  const ends = (status?.containerStatuses ?? []).flatMap(({ state }) => state?.terminated?.finishedAt ?? []);
  return ends.sort().at(-1) ?? metadata.deletionTimestamp ?? metadata.creationTimestamp ?? "";
}

const amounts = (spelled: Readonly<Record<string, string | number>> = {}): Amounts =>
  Object.fromEntries(
    Object.entries(spelled).flatMap(([resource, spelling]) => {
      const quantity = parseQuantity(spelling as never);
      return quantity ? [[resource, quantity]] : [];
    }),
  );

/**
 * As the scheduler counts it, without init containers: nothing here has one that asks for more. Of a head not the submitter
 * beside it, which Kueue 0.17 does not count (SidecarMode).
 */
function requestsOf({ metadata, spec }: Stored<Pod>): Amounts {
  const isUncounted = (name: string) =>
    name === SUBMITTER_CONTAINER && metadata.labels?.[LABEL.nodeType] === NODE_TYPE.head;
  const counted = (spec?.containers ?? []).filter(({ name }) => !isUncounted(name));
  return total(counted.map(({ resources }) => amounts(resources?.requests as Record<string, string>)));
}

const usageOf = ({ status }: Workload): Amounts =>
  total((status?.admission?.podSetAssignments ?? []).map(({ resourceUsage }) => amounts(resourceUsage)));

function total(all: readonly Amounts[]): Amounts {
  const sums: Record<string, Quantity> = {};
  for (const [resource, quantity] of all.flatMap((each) => Object.entries(each))) {
    sums[resource] = addQuantities(...[sums[resource], quantity].filter((one) => one !== undefined));
  }
  return sums;
}

function exceeds(used: Amounts, allowed: Amounts, tell: (what: string) => void): void {
  for (const [resource, quantity] of Object.entries(used)) {
    const limit = allowed[resource] ?? { nano: 0n, format: "DecimalSI" };
    if (compareQuantities(quantity, limit) <= 0) continue;
    tell(`${formatQuantity(quantity)} of ${resource}, more than the ${formatQuantity(limit)}`);
  }
}
