/**
 * Whether a RayJob or RayCluster may be written: what the webhook answers.
 *
 * Answers: what is wrong, which refuses it, and what is worth a warning. Controller and `raykeeper validate` ask the same
 * rules.
 * May not: stand in the way of an end or of a suspension. An object that is being deleted, whose spec is as it was, or of
 * which nothing but `suspend` changes is always admitted: who set up the webhook may have been later than the object. So
 * is a suspension that makes nothing worse: a queue puts templates back with the same write, and needs its quota.
 */
import type { KubeObject } from "../api/object.ts";
import type { RayCluster } from "../api/raycluster.ts";
import type { RayJob } from "../api/rayjob.ts";
import { rayClusterCautions } from "./raycluster/cautions.ts";
import { isManagedElsewhere } from "./raycluster/observe.ts";
import { rayClusterViolations } from "./raycluster/validate.ts";
import { rayJobCautions, rayJobEditCautions } from "./rayjob/cautions.ts";
import { isElsewhere } from "./rayjob/observe.ts";
import { same } from "./rayjob/status.ts";
import { rayJobViolations } from "./rayjob/validate.ts";
import type { Settings } from "./settings.ts";
import type { Violation } from "./validation.ts";

export interface Admission {
  /** Empty when it is admitted. */
  readonly violations: readonly Violation[];
  readonly warnings: readonly Violation[];
}

interface Write<T extends KubeObject> {
  readonly object: T;
  /** What is stored; absent for what is being created. */
  readonly old?: T;
}

export function admitRayJob({ object, old }: Write<RayJob>, settings: Settings): Admission {
  if (isElsewhere(object)) return NOTHING;
  return admit({ object, old }, (job) => ({
    violations: rayJobViolations(job, settings),
    warnings: [...rayJobCautions(job, settings), ...(old ? rayJobEditCautions(job, old, settings) : [])],
  }));
}

export function admitRayCluster({ object, old }: Write<RayCluster>, settings: Settings): Admission {
  if (isManagedElsewhere(object)) return NOTHING;
  return admit({ object, old }, (cluster) => ({
    violations: rayClusterViolations(cluster, settings),
    warnings: rayClusterCautions(cluster, settings),
  }));
}

const NOTHING: Admission = { violations: [], warnings: [] };

type Specified = KubeObject & { readonly spec?: { readonly suspend?: boolean } };

function admit<T extends Specified>({ object, old }: Write<T>, judgeOne: (object: T) => Admission): Admission {
  if (object.metadata.deletionTimestamp || (old && same(object.spec, old.spec))) return NOTHING;
  const judged = judgeOne(object);
  if (!old) return judged;
  const suspends = object.spec?.suspend === true && !old.spec?.suspend;
  const known = suspends && judged.violations.length > 0 ? judgeOne(old).violations : [];
  const placeOf = ({ rule, at }: Violation): string => `${rule} ${at}`;
  const places = new Set(known.map(placeOf));
  const isNoWorse = judged.violations.every((one) => places.has(placeOf(one)));
  if (!same(withoutSuspend(object), withoutSuspend(old)) && !(known.length > 0 && isNoWorse)) return judged;
  // Admitted as it is; that it is not valid is said all the same.
  return { violations: [], warnings: judged.violations };
}

const withoutSuspend = ({ spec }: Specified) => ({ ...spec, suspend: undefined });
