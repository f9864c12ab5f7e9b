/**
 * Whether a Pod can be placed on the one node there is.
 *
 * Over-commitment is fine here: what Pods ask for together may exceed the machine, since they mostly wait. A single
 * Pod that asks for more than the machine has would never fit anywhere, and is told so in the scheduler's words.
 */
import type { Node, Pod } from "../../api/kubernetes.ts";
import { amount } from "./fields.ts";

/** The resources a Pod asks for: its containers' sum, or its largest init container if that is more. */
export function requests(pod: Pod): Record<string, number> {
  const total: Record<string, number> = {};
  const asked = (resources: { requests?: object; limits?: object } | undefined) =>
    Object.entries({ ...resources?.limits, ...resources?.requests } as Record<string, string | number>);
  for (const container of pod.spec?.containers ?? []) {
    for (const [name, value] of asked(container.resources)) total[name] = (total[name] ?? 0) + amount(value);
  }
  for (const container of pod.spec?.initContainers ?? []) {
    for (const [name, value] of asked(container.resources)) total[name] = Math.max(total[name] ?? 0, amount(value));
  }
  return total;
}

/** Undefined when the Pod fits, else why not. */
export function whyUnschedulable(pod: Pod, node: Node): string | undefined {
  const allocatable = node.status?.allocatable ?? {};
  const lacking = Object.entries(requests(pod))
    .filter(([name, value]) => value > amount(allocatable[name] ?? "0"))
    .map(([name]) => `Insufficient ${name}`);
  const labels = node.metadata.labels ?? {};
  const selector = Object.entries(pod.spec?.nodeSelector ?? {});
  if (selector.some(([key, value]) => labels[key] !== value)) {
    lacking.unshift("node(s) didn't match Pod's node affinity/selector");
  }
  if (lacking.length === 0) return undefined;
  return `0/1 nodes are available: 1 ${lacking.join(", 1 ")}. The local node is this machine: ${describeMachine(allocatable)}.`;
}

const describeMachine = (allocatable: Readonly<Record<string, string | number>>) =>
  `cpu ${allocatable["cpu"]}, memory ${Math.floor(amount(allocatable["memory"] ?? "0") / 2 ** 20)}Mi`;
