/**
 * The Job controller: Pods for Jobs, their count, their retries, and how a Job ends.
 *
 * Answers: for one Job at each step, the one write that is due next: a Pod created or deleted, or the status.
 * May not: run a Pod. Indexed Jobs, Pod failure policies and success policies are refused before they get here
 * (kinds/job.ts).
 */

import type { Job, JobCondition, JobStatus, Pod } from "../api/kubernetes.ts";
import type { OwnerReference } from "../api/object.ts";
import { earliest, fromWire, type Instant, minutes, seconds, toWire } from "../domain/time.ts";
import type { Clock } from "../machinery/clock.ts";
import { attempt, Dirty, type SimController } from "./controllers.ts";
import { equal, type Item } from "./json.ts";
import { events } from "./kinds/event.ts";
import { jobs } from "./kinds/job.ts";
import { pods } from "./kinds/pod.ts";
import { type Key, keyOf, type Storage } from "./storage.ts";
import { callOn, type Propagation, type Verbs } from "./verbs.ts";

/** Before the first retry; doubled for each failure after it. */
const FIRST_DELAY = seconds(10);
const LONGEST_DELAY = minutes(10);
/** Until the next try when a Pod could not be created. */
const CREATE_AGAIN = seconds(1);

/** What a Job's Pods have come to. Kept beside the status, since a Pod counts once, also after it is gone. */
interface Tally {
  readonly succeeded: Set<string>;
  readonly failed: Set<string>;
  /** Pods that the controller itself removed, which is no failure of theirs. */
  readonly excused: Set<string>;
  /** Failures since the last success, and when the last of them was noticed. */
  failures: number;
  lastFailure: Instant;
}

type JobItem = Job & Item;
type PodItem = Pod & Item;
type Verdict = { readonly type: "Complete" | "Failed"; readonly reason: string; readonly message: string };

export class JobController implements SimController {
  readonly name = "jobs";
  readonly #storage: Storage;
  readonly #verbs: Verbs;
  readonly #clock: Clock;
  readonly #dirty = new Dirty<Key>();
  readonly #tallies = new Map<string, Tally>();
  readonly #due = new Map<Key, Instant>();

  constructor(parts: { storage: Storage; verbs: Verbs; clock: Clock }) {
    this.#storage = parts.storage;
    this.#verbs = parts.verbs;
    this.#clock = parts.clock;
    this.#storage.listen(({ resource, key, type, object }) => {
      if (resource === jobs.id) {
        this.#dirty.add(key, key);
        if (type === "DELETED") this.#tallies.delete(object.metadata.uid);
      }
      const owner = resource === pods.id ? jobOf(object) : undefined;
      if (!owner) return;
      if (type === "DELETED") this.#count(owner.uid, object as PodItem, true);
      const job = keyOf(object.metadata.namespace, owner.name);
      this.#dirty.add(job, job);
    });
  }

  step(): boolean {
    const key = this.#dirty.take() ?? this.#takeDue();
    if (key === undefined) return false;
    this.#due.delete(key);
    const job = this.#storage.get(jobs.id, key) as JobItem | undefined;
    if (job && !job.metadata.deletionTimestamp) this.#sync(key, job);
    return true;
  }

  wakeAt(): Instant | undefined {
    return earliest(...this.#due.values());
  }

  #takeDue(): Key | undefined {
    const now = this.#clock.now();
    for (const [key, at] of this.#due) if (at <= now) return key;
    return undefined;
  }

  #wake(key: Key, at: Instant): void {
    this.#due.set(key, earliest(at, this.#due.get(key))!);
  }

  #tally(uid: string): Tally {
    let tally = this.#tallies.get(uid);
    if (!tally) {
      tally = { succeeded: new Set(), failed: new Set(), excused: new Set(), failures: 0, lastFailure: 0 };
      this.#tallies.set(uid, tally);
    }
    return tally;
  }

  /** Takes note of a Pod that has ended. One on its way out counts as failed at once: its place is to be filled. */
  #count(jobUid: string, { metadata, status }: PodItem, gone: boolean): void {
    const tally = this.#tally(jobUid);
    const { uid } = metadata;
    if (tally.succeeded.has(uid) || tally.failed.has(uid) || tally.excused.has(uid)) return;
    if (status?.phase === "Succeeded") {
      tally.succeeded.add(uid);
      tally.failures = 0;
    } else if (status?.phase === "Failed" || gone || metadata.deletionTimestamp) {
      tally.failed.add(uid);
      tally.failures++;
      tally.lastFailure = this.#clock.now();
    }
  }

  #sync(key: Key, job: JobItem): void {
    const now = this.#clock.now();
    const over = job.status?.conditions?.find(
      ({ type, status }) => (type === "Complete" || type === "Failed") && status === "True",
    );
    if (over) {
      this.#expire(key, job, over, now);
      return;
    }

    const own = (this.#storage.all(pods.id) as readonly PodItem[]).filter(
      (pod) => pod.metadata.namespace === job.metadata.namespace && jobOf(pod)?.uid === job.metadata.uid,
    );
    for (const pod of own) this.#count(job.metadata.uid, pod, false);
    const alive = own.filter(({ status }) => status?.phase !== "Succeeded" && status?.phase !== "Failed");
    const active = alive.filter(({ metadata }) => !metadata.deletionTimestamp);
    const verdict = this.#verdict(key, job, active, now);
    // The verdict is written down before the Pods go that it was read from.
    if (verdict && this.#writeStatus(job, alive, active, verdict, now)) return;
    if (this.#manage(key, job, active, verdict, now)) return;
    this.#writeStatus(job, alive, active, verdict, now);
  }

  /** Deletes a finished Job when its time is up. */
  #expire(key: Key, job: JobItem, over: JobCondition, now: Instant): void {
    const ttl = job.spec?.ttlSecondsAfterFinished;
    if (ttl === undefined) return;
    const end = (fromWire(over.lastTransitionTime) ?? now) + seconds(ttl);
    if (now < end) this.#wake(key, end);
    else this.#delete(jobs, job, "Foreground");
  }

  /** Whether the Job is to end, and how. A word once written into its status stands. */
  #verdict(
    key: Key,
    { metadata, spec, status }: JobItem,
    active: readonly PodItem[],
    now: Instant,
  ): Verdict | undefined {
    for (const { type, status: holds, reason = "", message = "" } of status?.conditions ?? []) {
      if (type === "FailureTarget" && holds === "True") return { type: "Failed", reason, message };
      if (type === "SuccessCriteriaMet" && holds === "True") return { type: "Complete", reason, message };
    }
    const { succeeded, failed } = this.#tally(metadata.uid);
    const limit = spec?.backoffLimit ?? 6;
    if (failed.size > limit || restartedTooOften(spec, active, limit)) {
      return { type: "Failed", reason: "BackoffLimitExceeded", message: "Job has reached the specified backoff limit" };
    }
    const start = fromWire(status?.startTime);
    if (spec?.activeDeadlineSeconds !== undefined && start !== undefined && !spec.suspend) {
      const deadline = start + seconds(spec.activeDeadlineSeconds);
      if (now >= deadline) {
        return {
          type: "Failed",
          reason: "DeadlineExceeded",
          message: "Job was active longer than specified deadline",
        };
      }
      this.#wake(key, deadline);
    }
    const enough =
      spec?.completions === undefined ? succeeded.size > 0 && active.length === 0 : succeeded.size >= spec.completions;
    return enough
      ? { type: "Complete", reason: "CompletionsReached", message: "Reached expected number of succeeded pods" }
      : undefined;
  }

  /** Creates or deletes one Pod, if one is missing or too many. True when it did. */
  #manage(key: Key, job: JobItem, active: readonly PodItem[], verdict: Verdict | undefined, now: Instant): boolean {
    const spec = job.spec!;
    const tally = this.#tally(job.metadata.uid);
    const parallelism = spec.parallelism ?? 1;
    const left = spec.completions === undefined ? undefined : spec.completions - tally.succeeded.size;
    // Without a number of completions, the first success means that no more Pods are wanted.
    const wanted =
      verdict || spec.suspend
        ? 0
        : left === undefined
          ? tally.succeeded.size > 0
            ? active.length
            : parallelism
          : Math.min(parallelism, left);
    const surplus = active.length > wanted ? active.at(-1) : undefined;
    if (surplus) {
      // What the Job's own failure takes down counts as failed, as upstream.
      if (verdict?.type !== "Failed") tally.excused.add(surplus.metadata.uid);
      this.#tell(job, "Normal", "SuccessfulDelete", `Deleted pod: ${surplus.metadata.name}`);
      return this.#delete(pods, surplus, "Background");
    }
    if (active.length >= wanted) return false;
    const again = tally.lastFailure + delayAfter(tally.failures);
    if (tally.failures > 0 && now < again) {
      this.#wake(key, again);
      return false;
    }
    return this.#createPod(key, job);
  }

  #createPod(key: Key, { metadata, spec }: JobItem): boolean {
    const { name, namespace, uid } = metadata;
    const template = spec!.template;
    let made: Item | undefined;
    const refused = attempt(() => {
      made = this.#verbs.create(callOn(pods, namespace), {
        metadata: {
          labels: template.metadata?.labels,
          annotations: template.metadata?.annotations,
          finalizers: template.metadata?.finalizers,
          generateName: `${name}-`,
          ownerReferences: [
            { apiVersion: "batch/v1", kind: "Job", name, uid, controller: true, blockOwnerDeletion: true },
          ],
        },
        spec: template.spec,
      });
    });
    const job = { metadata } as JobItem;
    if (refused) {
      this.#tell(job, "Warning", "FailedCreate", `Error creating: ${refused.message}`);
      this.#wake(key, this.#clock.now() + CREATE_AGAIN);
      return false;
    }
    this.#tell(job, "Normal", "SuccessfulCreate", `Created pod: ${made!.metadata.name}`);
    return true;
  }

  /** Brings the status up to date. True when that took a write. */
  #writeStatus(
    job: JobItem,
    alive: readonly PodItem[],
    active: readonly PodItem[],
    verdict: Verdict | undefined,
    now: Instant,
  ): boolean {
    const tally = this.#tally(job.metadata.uid);
    const before = job.status ?? {};
    const suspended = job.spec?.suspend && !verdict;
    const conditions = new Conditions(before.conditions ?? [], toWire(now));
    if (suspended) conditions.set("Suspended", "True", "JobSuspended", "Job suspended");
    else if (conditions.holds("Suspended")) conditions.set("Suspended", "False", "JobResumed", "Job resumed");
    if (verdict) {
      const { type, reason, message } = verdict;
      conditions.set(type === "Failed" ? "FailureTarget" : "SuccessCriteriaMet", "True", reason, message);
      // The last word is spoken when the last Pod has ended.
      if (alive.length === 0) conditions.set(type, "True", reason, message);
    }
    const completed = conditions.holds("Complete");
    const status: JobStatus = {
      ...(conditions.list.length > 0 && { conditions: conditions.list }),
      ...(!suspended && { startTime: before.startTime ?? toWire(now) }),
      ...(completed && { completionTime: before.completionTime ?? toWire(now) }),
      ...(active.length > 0 && { active: active.length }),
      ...(tally.succeeded.size > 0 && { succeeded: tally.succeeded.size }),
      ...(tally.failed.size > 0 && { failed: tally.failed.size }),
      ready: active.filter(isReady).length,
      terminating: alive.length - active.length,
      uncountedTerminatedPods: {},
    };
    if (equal(status, before)) return false;
    attempt(() =>
      this.#verbs.patch(callOn(jobs, job.metadata.namespace, job.metadata.name, "status"), (old) => ({
        ...old,
        status,
      })),
    );
    if (completed) this.#tell(job, "Normal", "Completed", "Job completed");
    else if (conditions.holds("Failed")) this.#tell(job, "Warning", verdict!.reason, verdict!.message);
    if (suspended && !before.conditions?.some(({ type, status }) => type === "Suspended" && status === "True")) {
      this.#tell(job, "Normal", "Suspended", "Job suspended");
    }
    return true;
  }

  #delete(resource: typeof jobs, { metadata }: Item, propagationPolicy: Propagation): boolean {
    const { namespace, name, uid } = metadata;
    return !attempt(() =>
      this.#verbs.delete(callOn(resource, namespace, name), { propagationPolicy, preconditions: { uid } }),
    );
  }

  #tell({ metadata }: JobItem, type: "Normal" | "Warning", reason: string, message: string): void {
    const { namespace, name, uid } = metadata;
    const time = toWire(this.#clock.now());
    attempt(() =>
      this.#verbs.create(callOn(events, namespace), {
        metadata: { generateName: `${name}.` },
        involvedObject: { apiVersion: "batch/v1", kind: "Job", namespace, name, uid },
        type,
        reason,
        message,
        source: { component: "job-controller" },
        reportingComponent: "job-controller",
        firstTimestamp: time,
        lastTimestamp: time,
        count: 1,
      }),
    );
  }
}

const jobOf = ({ metadata }: Item): OwnerReference | undefined =>
  metadata.ownerReferences?.find(({ controller, kind }) => controller && kind === "Job");

const isReady = ({ status }: Pod): boolean =>
  status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;

const delayAfter = (failures: number) => Math.min(FIRST_DELAY * 2 ** (failures - 1), LONGEST_DELAY);

/** With `OnFailure` containers restart in place; their restarts count against the limit instead of failed Pods. */
function restartedTooOften(spec: Job["spec"], active: readonly Pod[], limit: number): boolean {
  if (spec?.template.spec?.restartPolicy !== "OnFailure") return false;
  const restarts = active
    .flatMap(({ status }) => [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])])
    .reduce((sum, { restartCount }) => sum + restartCount, 0);
  return limit === 0 ? restarts > 0 : restarts >= limit;
}

class Conditions {
  readonly list: JobCondition[];
  readonly #now: string;

  constructor(list: readonly JobCondition[], now: string) {
    this.list = [...list];
    this.#now = now;
  }

  holds(type: string): boolean {
    return this.list.some((one) => one.type === type && one.status === "True");
  }

  set(type: string, status: "True" | "False", reason: string, message: string): void {
    const index = this.list.findIndex((one) => one.type === type);
    if (index !== -1 && this.list[index]!.status === status) return;
    const next = { type, status, reason, message, lastProbeTime: this.#now, lastTransitionTime: this.#now };
    if (index === -1) this.list.push(next);
    else this.list[index] = next;
  }
}
