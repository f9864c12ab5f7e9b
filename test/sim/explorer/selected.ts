/**
 * What must hold where a RayJob runs on a RayCluster that it does not own: nobody touches the cluster, and what is stopped
 * there stays stopped.
 *
 * Part of oracles.ts, which tells it what happens and takes its complaints.
 */
import type { Pod } from "../../../src/api/kubernetes.ts";
import { LABEL } from "../../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../../src/api/object.ts";
import type { AttemptRecord, RayJob } from "../../../src/api/rayjob.ts";
import type { KubeRequest } from "../../../src/machinery/kube/transport.ts";
import type { Change } from "../../../src/simkube/storage.ts";
import type { FakeHead } from "../fakeRay.ts";
import type { World } from "../world.ts";
import { GIVEN_UP_MARK } from "./replica.ts";

/** The RayCluster that lifecycles select. */
export const SHARED = "shared";
/** From here on a stop is sent, whatever is still there; 60 s are promised for all of it. */
const LAST_MOMENT = 45_000;
/** So soon a RayJob that is deleted is gone, though a watch were late and a request slow. */
const GONE_BY = 150_000;
/** Annotations that the RayCluster's own controller writes. */
const OWN_ANNOTATIONS = new Set(["raykeeper.dev/pod-failures"]);

interface Attempt {
  readonly job: Stored<RayJob>;
  readonly record: AttemptRecord;
}

export class SelectedCluster {
  readonly #world: World;
  readonly #violated: (what: string) => void;
  /** Attempts that Ray was asked to stop, by RayJob and number. */
  readonly #stopped = new Set<string>();
  /** Which attempt's record it was that Ray took a job for, by the job's id. */
  readonly #taken = new Map<string, string>();
  /** Jobs that nobody may leave running: of RayJobs that are gone. */
  readonly #abandoned = new Set<string>();
  /** A request that had been given up made a submitter after all: what it submits, nobody can prevent. */
  #hasStray = false;

  constructor(world: World, violated: (what: string) => void) {
    this.#world = world;
    this.#violated = violated;
  }

  /** A replica sends a write. */
  sends({ method, path, body }: KubeRequest): void {
    if (!path.endsWith(`/rayclusters/${SHARED}`)) return;
    if (method === "DELETE") this.#violated("an operator deletes the selected RayCluster");
    const { metadata = {}, ...rest } = (body ?? {}) as { metadata?: Partial<KubeObject["metadata"]> };
    const { resourceVersion: _, uid: __, annotations = {}, ...others } = metadata;
    const foreign = Object.keys(annotations).filter((key) => !OWN_ANNOTATIONS.has(key));
    const changes = [...Object.keys(others), ...foreign, ...Object.keys("spec" in rest ? { spec: 0 } : {})];
    if (method !== "DELETE" && changes.length > 0) {
      this.#violated(`an operator changes ${changes.join()} of the selected RayCluster`);
    }
  }

  /** `leaderless`: nobody led for long, so nothing was done in time. */
  stored({ resource, type, object }: Change, leaderless: boolean): void {
    if (resource === "batch/jobs" && type === "ADDED" && object.metadata.annotations?.[GIVEN_UP_MARK]) {
      this.#hasStray = true;
    }
    if (resource === "ray.io/rayjobs") this.#rayJob(object as unknown as Stored<RayJob>, type, leaderless);
    const named = object.metadata.labels?.[LABEL.cluster] === SHARED || object.metadata.name === SHARED;
    if (named && object.metadata.labels?.[LABEL.rayJobUID] !== undefined) {
      this.#violated(`${object.kind} ${object.metadata.name} of the selected cluster is labelled as a RayJob's`);
    }
  }

  #rayJob(job: Stored<RayJob>, type: Change["type"], leaderless: boolean): void {
    const record = job.status?.attempts?.at(-1);
    if (record?.ownsCluster !== false || !record.jobId) return;
    const { jobId } = record;
    if (type === "DELETED") {
      this.#abandoned.add(jobId);
      const took = this.#world.clock.now() - Date.parse(job.metadata.deletionTimestamp ?? "");
      if (took > GONE_BY && !leaderless) this.#violated(`a deleted RayJob was kept for ${took / 1000} s`);
    }
    // What its user submits by hand, he may have submitted before he told of it.
    if (record.submissionMode === "InteractiveMode") return;
    if (record.observedTime !== undefined && this.#taken.get(jobId) !== nameOf({ job, record })) {
      this.#violated(`attempt ${record.number} takes ${jobId} for its own, which it did not submit`);
    }
  }

  /** Whose job of this id is on a selected cluster. */
  attemptOf(id: string): Attempt | undefined {
    for (const job of this.#all<RayJob>("ray.io/rayjobs")) {
      const record = job.status?.attempts?.at(-1);
      if (record?.jobId === id && record.ownsCluster === false) return { job, record };
    }
    return undefined;
  }

  /** Ray has taken the job. */
  submitted(id: string): void {
    const found = this.attemptOf(id);
    if (found) this.#taken.set(id, nameOf(found));
    if (this.#hasStray || found?.record.submissionMode === "HTTPMode") return;
    if (!found) {
      if (this.#abandoned.has(id)) this.#violated(`${id} was submitted, and its RayJob is gone`);
    } else if (this.#stopped.has(nameOf(found))) {
      this.#violated(`${id} was submitted after Ray had been asked to stop it`);
    }
  }

  stopAsked(id: string): void {
    const found = this.attemptOf(id);
    if (!found) return;
    const { job, record } = found;
    // An earlier attempt's job is stopped before anything of this one exists.
    if (record.submissionStartTime === undefined) return;
    this.#stopped.add(nameOf(found));
    const since = Date.parse(job.metadata.deletionTimestamp ?? record.endTime ?? "");
    if (this.#hasStray || this.#world.clock.now() >= since + LAST_MOMENT) return;
    const left = [
      ...this.#all("batch/jobs").filter((object) => object.metadata.labels?.[LABEL.rayJobUID] === job.metadata.uid),
      ...this.#all<Pod>("/pods").filter(
        ({ metadata: { labels = {} } }) => labels[LABEL.rayJobUID] === job.metadata.uid,
      ),
    ];
    for (const { kind, metadata } of left) {
      this.#violated(`Ray was asked to stop ${id} while ${kind} ${metadata.name} might still submit it`);
    }
  }

  /** At the end, with Ray at hand all the time. */
  settled(): void {
    const over = this.#all<RayJob>("ray.io/rayjobs").flatMap(({ status = {} }) => {
      const record = status.attempts?.at(-1);
      const halted = status.jobDeploymentStatus === "Suspended" || status.reason === "DeadlineExceeded";
      return halted && record?.ownsCluster === false ? [record.jobId ?? ""] : [];
    });
    for (const head of this.#world.ray.heads.values()) {
      for (const id of [...over, ...this.#abandoned]) this.#isStopped(head, id);
    }
  }

  #isStopped(head: FakeHead, id: string): void {
    const job = head.jobs.get(id);
    if (job?.status !== "RUNNING" && job?.status !== "PENDING") return;
    // Another RayJob's of the same id is not meant.
    const current = this.attemptOf(id)?.job.status?.jobDeploymentStatus;
    if (current !== undefined && current !== "Suspended" && current !== "Failed") return;
    this.#violated(`${id} still runs in the selected cluster`);
  }

  #all<T extends KubeObject = KubeObject>(resource: string): readonly Stored<T>[] {
    return this.#world.kube.storage.all(resource) as unknown as readonly Stored<T>[];
  }
}

const nameOf = ({ job, record }: Attempt): string => `${job.metadata.uid} ${record.number}`;
