/**
 * Whether, and how soon, an ended container runs again.
 */
import type { Container, Pod } from "../../api/kubernetes.ts";
import { type Duration, minutes, seconds } from "../../domain/time.ts";

export type ContainerKind = "init" | "sidecar" | "main";

export function kindOf(container: Container, isInit: boolean): ContainerKind {
  if (!isInit) return "main";
  return container.restartPolicy === "Always" ? "sidecar" : "init";
}

/** Whether a container that ended with `exitCode` is to run again; the container's own policy goes before the Pod's. */
export function restarts(pod: Pod, container: Container, kind: ContainerKind, exitCode: number): boolean {
  const rule = (container.restartPolicyRules ?? []).find(({ exitCodes }) => {
    const listed = exitCodes?.values?.includes(exitCode) ?? false;
    return exitCodes?.operator === "NotIn" ? !listed : listed;
  });
  if (rule) return rule.action.startsWith("Restart");
  const policy = container.restartPolicy ?? pod.spec?.restartPolicy ?? "Always";
  // An init container that succeeded is done, whatever the Pod's policy.
  if (kind === "init" && exitCode === 0) return false;
  return policy === "Always" || (policy === "OnFailure" && exitCode !== 0);
}

const FIRST: Duration = seconds(10);
const LONGEST: Duration = minutes(5);
/** A container that ran this long had recovered. */
const FORGET: Duration = 2 * LONGEST;

/**
 * How long to wait before the next start, given the restarts of late; kubelet's figures: none before the first, then
 * 10 s, doubling up to 5 min.
 */
export function backOff(restartsOfLate: number): Duration {
  return restartsOfLate === 0 ? 0 : Math.min(LONGEST, FIRST * 2 ** (restartsOfLate - 1));
}

/** Restarts that still count after a run of this length. */
export function countOfLate(restartsOfLate: number, ran: Duration): number {
  return ran > FORGET ? 0 : restartsOfLate + 1;
}
