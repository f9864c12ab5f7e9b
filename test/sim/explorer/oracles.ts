/**
 * What must hold in every explored life, beyond test/sim/invariants.ts: looked at with each version that is stored, each
 * request that is sent, and each job that Ray takes.
 *
 * A violation is a sentence. To add an oracle: a method that hears of one thing, and calls `#violated`.
 */
import type { Pod } from "../../../src/api/kubernetes.ts";
import { LABEL } from "../../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../../src/api/object.ts";
import type { RayJob, RayJobStatus } from "../../../src/api/rayjob.ts";
import { WRITE_TIMEOUT } from "../../../src/machinery/kube/client.ts";
import type { KubeRequest } from "../../../src/machinery/kube/transport.ts";
import type { RayRequest } from "../../../src/ray/transport.ts";
import type { Change } from "../../../src/simkube/storage.ts";
import type { FakeHead } from "../fakeRay.ts";
import type { World } from "../world.ts";
import { Attempts } from "./attempts.ts";
import { Disposal } from "./disposal.ts";
import type { Laxity } from "./future.ts";
import type { Kueue } from "./kueue.ts";
import { Quota } from "./quota.ts";
import { GIVEN_UP_MARK } from "./replica.ts";
import { SelectedCluster } from "./selected.ts";

const POD = "/pods";
const JOB = "batch/jobs";
const CLUSTER = "ray.io/rayclusters";
const RAYJOB = "ray.io/rayjobs";
const SERVICE = "/services";
const LEASE = "coordination.k8s.io/leases";
/** What came late is gone so soon, though a watch were late. */
const STRAY_PATIENCE = 90_000;
/** More writes of one kind, of one object, within so long are a flood. */
const FLOOD = 40;
const FLOOD_SECONDS = 10;
const ENDS = new Set(["Complete", "Failed"]);

interface Lease extends KubeObject {
  readonly spec?: { holderIdentity?: string; renewTime?: string; leaseDurationSeconds?: number };
}

export class Oracles {
  readonly violations: string[] = [];
  readonly #world: World;
  /** Jobs that Ray took, by RayJob and attempt. */
  readonly #submissions = new Map<string, number>();
  /** Submitters that are not counted yet, by UID; `again`: Ray had been seen with the job when it was made. */
  readonly #made = new Map<string, { readonly of: string; readonly attempt?: string; readonly again: boolean }>();
  /** How many there were, by RayJob and attempt. */
  readonly #submitters = new Map<string, number>();
  /** Submitters that the operator asked to be deleted, by UID. */
  readonly #dismissed = new Set<string>();
  /** Submitters that others deleted, by RayJob and attempt. */
  readonly #takenAway = new Map<string, number>();
  /** What arrived late where nothing may be made any more, by UID, and when. */
  readonly #strays = new Map<string, { readonly what: string; readonly since: number }>();
  /** Phases and attempts that were ever stored, by RayJob: what an event may tell of. */
  readonly #told = new Map<string, Set<string>>();
  readonly #cameLate = new Set<string>();
  /** Ray was asked to stop this job, by its id. */
  readonly #stopped = new Set<string>();
  /** Who holds the lease, and until when it is nobody else's. */
  #lease = { holder: "", until: 0 };
  /** When which write was sent. */
  readonly #recent = new Map<string, readonly number[]>();
  readonly #selected: SelectedCluster;
  readonly #attempts: Attempts;
  readonly #disposal: Disposal;
  readonly #quota: Quota | undefined;
  #resumes = 0;
  /** The highest `backoffLimit` that a RayJob ever had. */
  readonly #limits = new Map<string, number>();
  #complained = false;
  /** Nobody led for long: what had to be done within a time was not. */
  leaderless = false;
  /** Ray could not be asked, or the job was disturbed: then a verdict may differ from what Ray would say. */
  rayDisturbed = false;
  /** Whether an operator that asked Ray about this job was given no answer. */
  isUnheard: (id: string) => boolean = () => false;
  #suspendedAt = 0;

  constructor(world: World, kueue?: Kueue) {
    this.#world = world;
    world.invariants.isExcused = ({ metadata }) =>
      metadata.ownerReferences?.some(({ uid }) => this.#cameLate.has(uid)) ?? false;
    this.#selected = new SelectedCluster(world, (what) => this.#violated(what));
    this.#attempts = new Attempts(world, (what) => this.#violated(what));
    this.#disposal = new Disposal(world, (what) => this.#violated(what));
    this.#quota = kueue && new Quota(world, kueue, (what) => this.#violated(what));
    world.kube.storage.listen((change) => this.#stored(change));
  }

  all(): readonly string[] {
    return [...this.#world.invariants.violations, ...this.violations];
  }

  /** What would pass now, and would not have at the beginning. */
  get laxity(): Laxity {
    const takenAway = [...this.#takenAway.values()].reduce((sum, count) => sum + count, 0);
    return {
      disturbed: this.rayDisturbed || this.leaderless,
      told: this.#complained,
      allowed: this.#resumes + takenAway,
    };
  }

  /**
   * All is as it would be had Ray and the operators been at hand all the time, so from here on everything is held against
   * that again; false where something is still late because of it.
   */
  disturbanceIsOver(): boolean {
    const isLate = this.leaderless && this.#all<RayJob>(RAYJOB).some(({ metadata }) => metadata.deletionTimestamp);
    if (isLate || this.#strays.size > 0) return false;
    this.rayDisturbed = false;
    this.leaderless = false;
    return true;
  }

  /** A user resumed the RayJob, which makes an attempt that no limit counts. */
  resumed(): void {
    this.#resumes++;
  }

  /** A stranger bore a name that was wanted, for a while: the user must have been told. */
  strangerLeft(): void {
    if (!this.#complained) this.#violated("a stranger bore the name of what was to be made, and nobody was told");
  }

  /** A replica sends a write. */
  sends({ method, path, body }: KubeRequest): void {
    this.#floods(method, path);
    this.#selected.sends({ method, path, body });
    this.#disposal.sends({ method, path, body });
    if (path.includes("/events")) this.#event(body);
    if (method === "DELETE") {
      const { preconditions } = (body ?? {}) as { preconditions?: { uid?: string } };
      if (!preconditions?.uid) this.#violated(`DELETE ${path} was sent without a UID`);
      else this.#dismissed.add(preconditions.uid);
    }
    if ((method === "PATCH" || method === "PUT") && !path.includes("/events")) {
      const { metadata, spec } = (body ?? {}) as KubeObject & { spec?: unknown };
      if (!metadata?.resourceVersion) this.#violated(`${method} ${path} was sent without the version it is based on`);
      if (path.includes("/rayjobs/") && spec !== undefined) this.#violated("an operator writes the spec of a RayJob");
    }
  }

  /** No object is written again and again, as fast as the API server takes it; leases are, by design. */
  #floods(method: string, path: string): void {
    if (/\/(events|leases)(\/|$)/.test(path)) return;
    const now = this.#world.clock.now();
    const what = `${method} ${path}`;
    const recent = (this.#recent.get(what) ?? []).filter((time) => now - time < FLOOD_SECONDS * 1000);
    this.#recent.set(what, [...recent, now]);
    if (recent.length === FLOOD) {
      this.#violated(`${what} was sent more than ${FLOOD} times within ${FLOOD_SECONDS} s`);
    }
  }

  /**
   * A replica of those that are elected sends a write, or a command to Ray: it holds the lease, and will hold it until
   * the request has ended one way or the other.
   */
  isCovered(name: string): void {
    const now = this.#world.clock.now();
    const { holder, until } = this.#lease;
    if (holder !== name) this.#violated(`${name} wrote, and ${holder || "nobody"} held the lease`);
    else if (now + WRITE_TIMEOUT > until) {
      this.#violated(
        `${name} wrote ${(until - now) / 1000} s before its lease ran out, and waits up to 12 s for an answer`,
      );
    }
  }

  /** Nobody takes a lease from its holder before it has run out: no renewal has been stored for as long as it lasts. */
  #leaseStored({ spec = {} }: Lease, old: Lease | undefined): void {
    const now = this.#world.clock.now();
    const { holderIdentity: holder = "", renewTime, leaseDurationSeconds = 0 } = spec;
    const before = old?.spec?.holderIdentity;
    if (before && holder && holder !== before && now < this.#lease.until) {
      this.#violated(`${holder} took the lease from ${before} ${(this.#lease.until - now) / 1000} s before it ran out`);
    }
    if (holder !== before || renewTime !== old?.spec?.renewTime) {
      this.#lease = { holder, until: now + leaseDurationSeconds * 1000 };
    }
  }

  /** Ray has taken a job of this id at this head (a Pod's UID). */
  submitted(head: string, id: string, entrypoint: string): void {
    this.#attempts.asked(head, entrypoint);
    const pod = this.#all<Pod>(POD).find(({ metadata }) => metadata.uid === head);
    this.#selected.submitted(id);
    const selecting = this.#selected.attemptOf(id);
    const { [LABEL.rayJobUID]: uid = selecting?.job.metadata.uid } = pod?.metadata.labels ?? {};
    const { [LABEL.executionAttempt]: attempt = String(selecting?.record.number) } = pod?.metadata.labels ?? {};
    // What a user submits by hand, and when, is up to him.
    if (uid === undefined || this.#job(uid)?.spec.submissionMode === "InteractiveMode") return;
    const count = add(this.#submissions, `${uid} ${attempt}`);
    if (count > 1) this.#violated(`attempt ${attempt} was submitted ${count} times (${id})`);
    const job = this.#job(uid);
    const record = job?.status?.attempts?.at(-1);
    // Each submitter is told the session it is for, so one that comes late submits to no later attempt's head.
    const own = job?.status?.attempts?.find(({ number }) => String(number) === attempt);
    if (own && own.jobId !== id)
      this.#violated(`${id} was submitted to the head of attempt ${attempt}, which is not its`);
    // The record is written before anything is submitted. A sidecar is there before its head has a session.
    const session = record?.submissionMode === "SidecarMode" || record?.raySession !== undefined;
    if (job && record && (record.submissionStartTime === undefined || !session)) {
      this.#violated(`${id} was submitted before attempt ${attempt} was journalled as being submitted`);
    }
    if (job?.status?.jobDeploymentStatus === "Suspended") this.#violated(`${id} was submitted for a suspended RayJob`);
  }

  /** A job that Ray has is not submitted again: it is asked for first. */
  submits({ body = "{}" }: RayRequest, head: FakeHead | undefined): void {
    const { submission_id: id } = JSON.parse(body) as { submission_id: string };
    if (head?.jobs.has(id)) this.#violated(`${id} was submitted though Ray has it`);
  }

  stopAsked(id: string): void {
    this.#selected.stopAsked(id);
    this.#stopped.add(id);
  }

  /** At the end, when nothing moves any more. */
  settled(): void {
    if (!this.rayDisturbed && !this.leaderless) this.#selected.settled();
    this.#disposal.settled();
    if (!this.leaderless) this.#quota?.settled();
    const alive = new Set(this.#all<RayJob>(RAYJOB).map(({ metadata }) => metadata.uid));
    for (const resource of [CLUSTER, JOB, POD, SERVICE]) {
      for (const object of this.#all(resource)) {
        const uid = rayJobOf(object);
        if (uid !== undefined && !alive.has(uid)) {
          this.#violated(`${object.kind} ${object.metadata.name} outlived its RayJob`);
        }
      }
    }
    for (const job of this.#all<RayJob>(RAYJOB)) {
      const { status = {} } = job;
      for (const { what } of this.#strays.values()) this.#violated(`${what} came late, and stays`);
      const clusters = this.#all(CLUSTER).filter((cluster) => rayJobOf(cluster) === job.metadata.uid);
      const stray = clusters.filter(({ metadata }) => metadata.name !== status.rayClusterName);
      for (const { metadata } of stray) this.#violated(`RayCluster ${metadata.name} is nobody's, and stays`);
      // A reason is written with the end, and what was suspended before its end has none.
      const counted = status.attempts?.filter(({ jobStatus, reason }) => {
        const stoppedInTime = jobStatus === "STOPPED" && reason?.startsWith("JobDeploymentStatus") === true;
        return reason !== undefined && jobStatus !== "SUCCEEDED" && !stoppedInTime;
      }).length;
      if (counted !== undefined && (status.failed ?? 0) !== counted) {
        this.#violated(`failed is ${status.failed}, and ${counted} of the attempts have failed`);
      }
    }
  }

  #stored(change: Change): void {
    const { resource, type, object, old } = change;
    if (resource === LEASE && type !== "DELETED") this.#leaseStored(object as Lease, old as Lease | undefined);
    this.#selected.stored(change, this.leaderless);
    this.#attempts.stored(change);
    this.#quota?.stored(change);
    if (resource === RAYJOB) this.#rayJob(object as unknown as Stored<RayJob>, old as Stored<RayJob> | undefined, type);
    if (type === "DELETED" || object.metadata.deletionTimestamp) this.#leaves(object.metadata.uid);
    if (resource === POD) this.#submitterRuns(object as unknown as Stored<Pod>);
    const uid = rayJobOf(object);
    if (uid === undefined) return;
    const attempt = object.metadata.labels?.[LABEL.executionAttempt];
    if (resource === JOB && type === "DELETED" && !this.#dismissed.has(object.metadata.uid)) {
      add(this.#takenAway, `${uid} ${attempt}`);
    }
    if (type !== "ADDED") return;
    if (resource === JOB) {
      const record = this.#job(uid)?.status?.attempts?.find(({ number }) => String(number) === attempt);
      const again = record?.observedTime !== undefined;
      // One that comes late, in its own attempt, is as good as any; the operator made it before it gave it up.
      const late = object.metadata.annotations?.[GIVEN_UP_MARK] !== undefined;
      if (!late) this.#made.set(object.metadata.uid, { of: `${uid} ${attempt}`, attempt, again });
      this.#isExpected(uid, attempt, `submitter ${object.metadata.name}`, object);
    }
    if (resource === CLUSTER) {
      this.#isExpected(uid, attempt, `RayCluster ${object.metadata.name}`, object);
      if (this.#strays.has(object.metadata.uid)) return;
      const others = this.#all(CLUSTER).filter(
        (other) =>
          rayJobOf(other) === uid &&
          other.metadata.uid !== object.metadata.uid &&
          !other.metadata.deletionTimestamp &&
          !this.#strays.has(other.metadata.uid),
      );
      for (const { metadata } of others) {
        this.#violated(`RayCluster ${object.metadata.name} was made while ${metadata.name} was there`);
      }
    }
  }

  /**
   * What is made is made for the attempt that is journalled, in a phase that makes something. The server may carry out a
   * request that was given up long before, which nobody can prevent: that is to be cleaned up soon, and to be nobody's
   * meanwhile.
   */
  #isExpected(uid: string, attempt: string | undefined, what: string, { metadata }: Stored): void {
    const job = this.#job(uid);
    if (!job) return;
    const { executionAttempt, jobDeploymentStatus } = job.status ?? {};
    const wrong = [
      String(executionAttempt) !== attempt && `${what} of attempt ${attempt} was made in attempt ${executionAttempt}`,
      ["Suspended", "Complete", "Failed", "Retrying", ""].includes(jobDeploymentStatus ?? "") &&
        `${what} was made in phase ${jobDeploymentStatus}`,
    ].filter((sentence) => sentence !== false);
    if (wrong.length > 0 && metadata.annotations?.[GIVEN_UP_MARK]) {
      this.#cameLate.add(metadata.uid);
      this.#strays.set(metadata.uid, { what: wrong[0]!, since: this.#world.clock.now() });
    } else for (const sentence of wrong) this.#violated(sentence);
  }

  /** An object is gone, or on its way out. */
  #leaves(uid: string): void {
    const stray = this.#strays.get(uid);
    if (!stray) return;
    this.#strays.delete(uid);
    const after = this.#world.clock.now() - stray.since;
    if (after > STRAY_PATIENCE && !this.leaderless) this.#violated(`${stray.what}, and stayed for ${after / 1000} s`);
  }

  /**
   * An attempt's submitter is made anew where somebody else took it away: as often as it takes until Ray has been seen
   * with the job, and once after that. Counted are those that came to run, of the latter those of which the journal
   * says that they work: what is deleted before anybody could write it down, nobody can count.
   */
  #submitterRuns({ metadata, status }: Stored<Pod>): void {
    const owner = metadata.ownerReferences?.find(({ controller }) => controller)?.uid ?? "";
    const made = this.#made.get(owner);
    if (!made || made.again || status?.phase !== "Running") return;
    this.#made.delete(owner);
    const count = add(this.#submitters, made.of);
    if (count > 1 + (this.#takenAway.get(made.of) ?? 0))
      this.#violated(`attempt ${made.attempt} got ${count} submitters`);
  }

  #submitterIsSeen({ conditions }: RayJobStatus): void {
    if (!conditions?.some(({ type, status }) => type === "SubmitterHealthy" && status === "True")) return;
    for (const { metadata } of this.#all(JOB)) {
      const made = this.#made.get(metadata.uid);
      if (!made?.again) continue;
      this.#made.delete(metadata.uid);
      const count = add(this.#submitters, `${made.of} again`);
      if (count > 1) this.#violated(`attempt ${made.attempt} got a submitter ${count} times after Ray had the job`);
    }
  }

  #rayJob(job: Stored<RayJob>, old: Stored<RayJob> | undefined, type: Change["type"]): void {
    const { uid, name } = job.metadata;
    const { status: now = {}, spec } = job;
    const before = old?.status ?? {};
    if (type === "DELETED") {
      this.#gone(job);
      return;
    }
    const told = this.#told.get(uid) ?? new Set();
    this.#told.set(uid, told);
    this.#submitterIsSeen(now);
    const phase = now.jobDeploymentStatus ?? "";
    told.add(phase);
    // At the barrier of a retry it is suspended without a phase of its own.
    if (now.conditions?.some(({ type, reason }) => type === "Suspended" && reason === "Suspending"))
      told.add("Suspending");
    if (now.executionAttempt !== undefined) told.add(`attempt ${now.executionAttempt}`);
    for (const record of now.attempts ?? []) if (record.endTime) told.add(`end of attempt ${record.number}`);
    const from = before.executionAttempt ?? -1;
    const to = now.executionAttempt ?? -1;
    // A limit that is lowered when a further attempt has been promised comes too late for that one.
    const retries = Math.max(spec.backoffLimit ?? 0, this.#limits.get(uid) ?? 0);
    this.#limits.set(uid, retries);
    const limit = retries + this.#resumes;
    if (to > limit) this.#violated(`${name}: attempt ${to}, with ${limit} further ones allowed`);
    if ((now.failed ?? 0) > retries + 1) this.#violated(`${name}: failed ${now.failed} times`);
    if (to > from) {
      for (const resource of [CLUSTER, JOB]) {
        for (const left of this.#all(resource).filter((object) => rayJobOf(object) === uid)) {
          if (this.#strays.has(left.metadata.uid)) continue;
          this.#violated(`attempt ${to} began while ${left.kind} ${left.metadata.name} was there`);
        }
      }
    }
    if (phase === "Retrying" && ["DeadlineExceeded", "JobStatusCheckTimeoutExceeded"].includes(now.reason ?? "")) {
      this.#violated(`${name}: tried again after ${now.reason}`);
    }
    const ended = ["SUCCEEDED", "FAILED", "STOPPED"].includes(before.jobStatus ?? "");
    if (ended && to === from && now.jobStatus && now.jobStatus !== before.jobStatus) {
      this.#violated(`${name}: jobStatus ${before.jobStatus} of attempt ${to} became ${now.jobStatus}`);
    }
    if (ENDS.has(before.jobDeploymentStatus ?? "")) {
      for (const field of ["jobStatus", "endTime", "reason", "failed", "succeeded", "executionAttempt"] as const) {
        if (now[field] !== before[field]) {
          this.#violated(`${name}: ${field} of a job that is over went from ${before[field]} to ${now[field]}`);
        }
      }
    }
    const released = (status: typeof now) =>
      status.conditions?.some(({ type, status }) => type === "ResourcesReleased" && status === "True") === true;
    if ((phase === "Suspended" && before.jobDeploymentStatus !== "Suspended") || (released(now) && !released(before))) {
      const holding = this.#all<Pod>(POD).filter(
        (pod) =>
          rayJobOf(pod) === uid &&
          (phase === "Suspended" || !["Succeeded", "Failed"].includes(pod.status?.phase ?? "")),
      );
      const kept = [...this.#all(CLUSTER).filter((cluster) => rayJobOf(cluster) === uid), ...holding];
      for (const { kind, metadata } of kept) {
        this.#violated(`${name}: ${phase}, nothing held, and yet ${kind} ${metadata.name} is there`);
      }
    }
    if (spec.suspend && !old?.spec.suspend) this.#suspendedAt = this.#world.clock.now();
    if (phase !== before.jobDeploymentStatus && ["Complete", "Failed", "Retrying", "Suspending"].includes(phase)) {
      this.#verdict(job, phase);
    }
  }

  /** The verdict is held against what Ray would have said in that moment. */
  #verdict({ metadata: { name, uid }, status = {} }: Stored<RayJob>, phase: string): void {
    const record = status.attempts?.at(-1);
    const heads = [...this.#world.ray.heads].filter(([, head]) => head.jobs.has(record?.jobId ?? ""));
    const jobs = heads.map(([pod, head]) => ({ pod, head, job: head.jobs.get(record?.jobId ?? "")! }));
    const mine = jobs.find(({ pod, head }) => {
      const object = this.#all<Pod>(POD).find(({ metadata }) => metadata.uid === pod);
      const well = object && !object.metadata.deletionTimestamp && object.status?.phase === "Running";
      const cluster = this.#all(CLUSTER).find(({ metadata }) => metadata.name === record?.rayClusterName);
      const clusterWell = cluster && !cluster.metadata.deletionTimestamp;
      const own = record?.ownsCluster === false ? cluster : rayJobOf(object as KubeObject) === uid;
      return (
        well && clusterWell && own && head.mood === "well" && head.session === (record?.raySession ?? head.session)
      );
    });
    if (phase === "Complete" && status.jobStatus !== "SUCCEEDED" && status.jobStatus !== "STOPPED") {
      this.#violated(`${name}: Complete with jobStatus ${status.jobStatus}`);
    }
    if (!mine || this.rayDisturbed) return;
    // Under an id that spec.jobId fixes, a shared cluster may have a job that is none of this RayJob's.
    if (record?.ownsCluster === false && record.submissionStartTime === undefined) return;
    const says = mine.job.status;
    if (phase === "Suspending") {
      // What ends between the question and the deletion is lost; what had ended before is not.
      const wasOver = mine.job.endTime !== undefined && mine.job.endTime <= this.#suspendedAt;
      if (wasOver && !this.isUnheard(record?.jobId ?? "")) {
        this.#violated(`${name}: suspended, and before that Ray's job had ${says}`);
      }
      return;
    }
    const stopped = this.#stopped.has(record?.jobId ?? "");
    const overdue = status.reason === "DeadlineExceeded" && stopped;
    if (phase !== "Complete" && (says === "SUCCEEDED" || (says === "RUNNING" && !overdue))) {
      this.#violated(`${name}: ${phase} (${status.reason}), and Ray says ${says}`);
    }
    if (phase === "Complete" && (says === "RUNNING" || says === "PENDING" || says === "FAILED")) {
      this.#violated(`${name}: Complete, and Ray says ${says}`);
    }
  }

  /** Ray was asked to stop the job before the finalizer went. */
  #gone({ metadata, status = {} }: Stored<RayJob>): void {
    const record = status.attempts?.at(-1);
    const id = record?.jobId ?? status.jobId;
    if (id === undefined || this.rayDisturbed || this.#stopped.has(id)) return;
    for (const [uid, head] of this.#world.ray.heads) {
      const job = head.jobs.get(id);
      const pod = this.#all(POD).find((candidate) => candidate.metadata.uid === uid);
      const cluster = this.#all(CLUSTER).find((candidate) => candidate.metadata.name === record?.rayClusterName);
      // What is on its way out ends the job by itself.
      if (!pod || !cluster || pod.metadata.deletionTimestamp || cluster.metadata.deletionTimestamp) continue;
      if (job && head.mood === "well" && job.status === "RUNNING") {
        this.#violated(`${metadata.name} is gone, and Ray was never asked to stop its job`);
      }
    }
  }

  /** What is announced has happened. */
  #event(body: unknown): void {
    const {
      regarding,
      reason,
      note = "",
    } = (body ?? {}) as {
      regarding?: { uid?: string };
      reason?: string;
      note?: string;
    };
    if (reason?.startsWith("FailedToCreate")) this.#complained = true;
    const told = this.#told.get(regarding?.uid ?? "");
    if (!told || reason === undefined) return;
    const attempt = /[Aa]ttempt (\d+)/.exec(note)?.[1];
    const needs: Readonly<Record<string, string>> = {
      AttemptStarted: `attempt ${attempt}`,
      AttemptFailed: `end of attempt ${attempt}`,
      AttemptSucceeded: `end of attempt ${attempt}`,
      Suspended: "Suspended",
      Suspending: "Suspending",
      Resumed: `attempt ${attempt}`,
    };
    const needed = needs[reason];
    if (needed !== undefined && !told.has(needed)) this.#violated(`event ${reason} ("${note}") tells what is not so`);
  }

  #job(uid: string): Stored<RayJob> | undefined {
    return this.#all<RayJob>(RAYJOB).find(({ metadata }) => metadata.uid === uid);
  }

  #all<T extends KubeObject = KubeObject>(resource: string): readonly Stored<T>[] {
    return this.#world.kube.storage.all(resource) as unknown as readonly Stored<T>[];
  }

  #violated(what: string): void {
    if (!this.violations.includes(what)) this.violations.push(what);
  }
}

/** The RayJob an object belongs to, by its label or owner. */
export function rayJobOf(object: KubeObject): string | undefined {
  const owner = object.metadata.ownerReferences?.find(({ controller }) => controller);
  return object.metadata.labels?.[LABEL.rayJobUID] ?? (owner?.kind === "RayJob" ? owner.uid : undefined);
}

function add(counts: Map<string, number>, key: string): number {
  const count = (counts.get(key) ?? 0) + 1;
  counts.set(key, count);
  return count;
}
