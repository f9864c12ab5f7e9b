/**
 * What a rule means to do in this pass: the pieces from which decide.ts makes the decision.
 */
import type { KubeEffect } from "../decision.ts";
import { earliest, type Instant } from "../time.ts";

export interface Plan {
  /** New Pods: made only after a live read, since a cache that lags would have us make them twice. */
  readonly creates?: readonly KubeEffect[];
  /** Safe at any time: they name the UID. */
  readonly deletes?: readonly KubeEffect[];
  readonly others?: readonly KubeEffect[];
  readonly wakeAt?: Instant;
}

export function together(plans: readonly Plan[]): Required<Omit<Plan, "wakeAt">> & Pick<Plan, "wakeAt"> {
  return {
    creates: plans.flatMap((plan) => plan.creates ?? []),
    deletes: plans.flatMap((plan) => plan.deletes ?? []),
    others: plans.flatMap((plan) => plan.others ?? []),
    wakeAt: earliest(...plans.map((plan) => plan.wakeAt)),
  };
}
