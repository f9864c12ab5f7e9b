/**
 * Whether somebody else works on the same objects: another installation of this operator, or KubeRay's.
 *
 * Leases keep apart the replicas of one installation; those of two have different ones. But the API server notes in
 * `managedFields` who has written a status, and when. A status that is written by another hand than ours while we lead tells
 * of a rival; it costs no request, and no right. What somebody wrote before we came is no news, as after a takeover.
 * May not: stop anything. Who may write into one namespace must not be able to stop the operator of all.
 */

import { MANAGED_BY } from "./api/labels.ts";
import type { KubeObject, Stored } from "./api/object.ts";
import type { Clock } from "./machinery/clock.ts";
import type { Events } from "./machinery/events.ts";
import { type Change, trimMetadata } from "./machinery/kube/store.ts";
import type { Logger } from "./machinery/logger.ts";

/** The name under which the API server notes our writes; one for each installation, since that has one namespace. */
export const fieldManager = (namespace: string): string => `raykeeper-operator.${namespace}`;

interface Writer {
  readonly manager: string;
  readonly time?: string;
}

/** Who else than `ours` has written the object's status, and when last. */
function othersOf({ metadata }: KubeObject, ours: string): readonly Writer[] {
  const entries = (metadata.managedFields ?? []) as readonly (Partial<Writer> & { readonly subresource?: string })[];
  return entries.flatMap(({ manager, time, subresource }) =>
    subresource === "status" && manager !== undefined && manager !== ours ? [{ manager, time }] : [],
  );
}

/** What is kept of `managedFields`: of the others, and of the status only. As a rule there are none. */
export const trimKeepingOthers =
  (ours: string) =>
  <T extends KubeObject>(object: Stored<T>): Stored<T> => {
    const trimmed = trimMetadata(object);
    const managedFields = othersOf(object, ours).map((writer) => ({ ...writer, subresource: "status" }));
    return managedFields.length > 0 ? { ...trimmed, metadata: { ...trimmed.metadata, managedFields } } : trimmed;
  };

/** Who has written the status between these two states of one object, other than we. */
export function foreignWriters({ old, new: now }: Change<KubeObject>, ours: string): readonly string[] {
  if (!old || !now || old.metadata.uid !== now.metadata.uid) return [];
  const before = new Map(othersOf(old, ours).map(({ manager, time }) => [manager, time]));
  return othersOf(now, ours).flatMap(({ manager, time }) =>
    before.has(manager) && before.get(manager) === time ? [] : [manager],
  );
}

/** The log hears of the same rival once in this time. */
const REMIND = 10 * 60_000;

export interface RivalsOptions {
  readonly ours: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly counted: (kind: string) => void;
}

export class Rivals {
  readonly #options: RivalsOptions;
  readonly #logged = new Map<string, number>();

  constructor(options: RivalsOptions) {
    this.#options = options;
  }

  /** A change of an object that we work on, as its informer tells it. */
  changed(kind: "RayJob" | "RayCluster", change: Change<KubeObject>, events: Pick<Events, "record">): void {
    const { ours, counted } = this.#options;
    const { managedBy } = (change.new as { spec?: { managedBy?: string } } | undefined)?.spec ?? {};
    if (managedBy && managedBy !== MANAGED_BY.operator) return;
    for (const manager of foreignWriters(change, ours)) {
      const { namespace, name } = change.new!.metadata;
      counted(kind);
      events.record(change.new!, {
        type: "Warning",
        reason: "AnotherOperator",
        action: "Observe",
        note: `The status of this ${kind} is written by "${manager}", too, not by this operator (${ours}) alone. Two operators undo each other's work: stop one, or have each watch other namespaces (watchNamespace).`,
      });
      this.#log(manager, `${kind} ${namespace}/${name}`);
    }
  }

  #log(manager: string, object: string): void {
    const { clock, log, ours } = this.#options;
    if (clock.now() < (this.#logged.get(manager) ?? Number.NEGATIVE_INFINITY) + REMIND) return;
    this.#logged.set(manager, clock.now());
    log.error(
      { manager, object, ours },
      "somebody else writes the status of objects that this operator works on: another installation of it, or KubeRay's; stop one, or have each watch other namespaces",
    );
  }
}
