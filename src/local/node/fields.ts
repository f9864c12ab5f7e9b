/**
 * The Downward API: what a Pod may know of itself, as variables and files.
 */
import type { Container, Pod } from "../../api/kubernetes.ts";
import { ConfigError } from "./configError.ts";

export interface PodFacts {
  readonly podIP: string;
  readonly hostIP: string;
  readonly nodeName: string;
  /** What a container without a limit may use. */
  readonly allocatable: Readonly<Record<string, string>>;
}

type Field = (pod: Pod, facts: PodFacts) => string;

const fields: Readonly<Record<string, Field>> = {
  "metadata.name": (pod) => pod.metadata.name ?? "",
  "metadata.namespace": (pod) => pod.metadata.namespace ?? "",
  "metadata.uid": (pod) => pod.metadata.uid ?? "",
  "metadata.labels": (pod) => mapAsText(pod.metadata.labels),
  "metadata.annotations": (pod) => mapAsText(pod.metadata.annotations),
  "spec.nodeName": (_, facts) => facts.nodeName,
  "spec.serviceAccountName": (pod) => pod.spec?.serviceAccountName ?? "default",
  "status.hostIP": (_, facts) => facts.hostIP,
  "status.hostIPs": (_, facts) => facts.hostIP,
  "status.podIP": (_, facts) => facts.podIP,
  "status.podIPs": (_, facts) => facts.podIP,
};

/** The value of a `fieldRef`. Throws ConfigError for a path that Kubernetes has not. */
export function fieldValue(path: string, pod: Pod, facts: PodFacts): string {
  const subscript = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(path);
  if (subscript) return pod.metadata[subscript[1] as "labels" | "annotations"]?.[subscript[2]!] ?? "";
  const field = fields[path];
  if (!field) throw new ConfigError(`fieldRef "${path}" is not supported`);
  return field(pod, facts);
}

/** As the files of a downwardAPI volume spell a map. */
function mapAsText(map: Readonly<Record<string, string>> = {}): string {
  const lines = Object.keys(map)
    .sort()
    .map((key) => `${key}=${JSON.stringify(map[key])}`);
  return lines.join("\n");
}

/** The value of a `resourceFieldRef`, in units of the divisor, rounded up. */
export function resourceValue(
  reference: { resource: string; divisor?: string | number },
  container: Container | undefined,
  facts: PodFacts,
): string {
  const [kind, ...rest] = reference.resource.split(".");
  const name = rest.join(".");
  if (kind !== "limits" && kind !== "requests") {
    throw new ConfigError(`resourceFieldRef "${reference.resource}" is not supported`);
  }
  const resources = container?.resources;
  const given =
    kind === "limits"
      ? (resources?.limits?.[name] ?? facts.allocatable[name])
      : (resources?.requests?.[name] ?? resources?.limits?.[name]);
  const divisor = amount(reference.divisor ?? "1") || 1;
  return String(Math.ceil(rounded(amount(given ?? "0") / divisor)));
}

const UNITS: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** A quantity as a number; 0 for one that cannot be read, which the API server would have refused. */
export function amount(quantity: string | number): number {
  const [, digits, unit = ""] = /^([+-]?[\d.]+(?:[eE][+-]?\d+)?)([a-zA-Z]*)$/.exec(String(quantity)) ?? [];
  return digits === undefined ? 0 : Number(digits) * (UNITS[unit] ?? 0);
}

/** 0.3 / 0.1 must not be rounded up to 4. */
const rounded = (value: number) => Number(value.toFixed(9));
