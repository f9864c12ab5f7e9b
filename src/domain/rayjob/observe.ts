/**
 * All that is known about one RayJob, as a plain value.
 *
 * Answers: what `decide` may look at. Nothing else exists for it: no clock, no store, no connection.
 * May not: conclude. What the objects mean is told by children.ts (whose are they), cluster.ts (head, readiness) and
 * submitter.ts.
 * Next: decide.ts.
 */
import type { Job, Pod, Service } from "../../api/kubernetes.ts";
import { MANAGED_BY } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { RayJob } from "../../api/rayjob.ts";
import type { LiveAnswers, RefusedWrite } from "../decision.ts";
import type { Settings } from "../settings.ts";
import type { RayObservation } from "./ray.ts";

/**
 * Each list holds whatever the cache has that belongs to the RayJob by UID (controller owner, or label
 * `ray.io/rayjob-uid`) or bears a name that the RayJob uses, whoever owns it; duplicates do no harm. More than that does
 * none either.
 */
export interface ObservedRayJob {
  readonly job: Stored<RayJob>;
  readonly settings: Settings;
  /** By UID, and the one that `status.rayClusterName` names, or else the current attempt's record. */
  readonly rayClusters: readonly Stored<RayCluster>[];
  /** Kubernetes Jobs: by UID, and the one named as the RayJob. */
  readonly jobs: readonly Stored<Job>[];
  /** By UID, and the one named `<rayjob>-head-svc`. */
  readonly services: readonly Stored<Service>[];
  /** By UID, and all labelled `ray.io/cluster=<status.rayClusterName>`. */
  readonly pods: readonly Stored<Pod>[];
  /** Other RayJobs that name the same RayCluster in `status.rayClusterName`: it may be a selected one, which many share. */
  readonly neighbours?: readonly Stored<RayJob>[];
  /** A reconcile of that RayCluster is under way, and may yet make a Pod. */
  readonly clusterInFlight?: boolean;
  /** What Ray said about the current attempt (`status.executionAttempt`); `{}` when nothing is known. */
  readonly ray: RayObservation;
  /**
   * Creations that the API server has refused more than once, one after the other. Held in memory only, and a hint: it is
   * told to the user, and nothing else follows from it.
   */
  readonly refused?: readonly RefusedWrite[];
  /** Answers to the live questions of this pass. */
  readonly live: LiveAnswers;
}

/** Somebody else runs it: nothing of it is touched, not even its finalizers. */
export const isElsewhere = ({ spec }: RayJob): boolean =>
  Boolean(spec.managedBy) && spec.managedBy !== MANAGED_BY.operator;
