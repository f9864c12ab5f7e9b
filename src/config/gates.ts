/**
 * KubeRay's feature gates, and which of their values can be had here.
 *
 * A gate may be named with every value that means what it says here; one that asks for what is not built, or switches
 * off what cannot be, is refused.
 */
import { didYouMean } from "./nearest.ts";

interface Gate {
  readonly on: boolean;
  /** What it gates. */
  readonly what: string;
  /** Why the value other than the default is refused. */
  readonly refused?: string;
  /** Why the value other than the default makes no difference. */
  readonly noEffect?: string;
}

const notBuilt = (what: string) => `${what} not supported yet; leave the gate off`;

export const GATES = {
  RayClusterStatusConditions: {
    on: true,
    what: "conditions in the status of a RayCluster",
    refused: "cannot be switched off: decisions read the conditions it gates; leave it on",
  },
  RayJobDeletionPolicy: {
    on: true,
    what: "`deletionStrategy`, and `suspend` of a worker group",
  },
  RayMultiHostIndexing: {
    on: true,
    what: "indices of multi-host workers",
    noEffect: "multi-host groups are not supported yet",
  },
  RayServiceIncrementalUpgrade: {
    on: true,
    what: "RayService, `NewClusterWithIncrementalUpgrade`",
    noEffect: "RayService is not supported yet",
  },
  SidecarSubmitterRestart: {
    on: false,
    what: "kubelet starts a submitter that failed again, in SidecarMode; needs Kubernetes 1.35, which is checked at start",
  },
  RayCronJob: { on: false, what: "RayCronJob", refused: notBuilt("RayCronJob is") },
  RayClusterNetworkPolicy: { on: false, what: "`networkPolicy`", refused: notBuilt("network policies are") },
  RayClusterMTLS: { on: false, what: "`tlsOptions`", refused: notBuilt("TLS is") },
  RayClusterHistoryServer: {
    on: false,
    what: "`historyServerOptions`",
    refused: notBuilt("the history server's collector is"),
  },
  GCSFaultToleranceEmbeddedStorage: {
    on: false,
    what: "fault tolerance of the GCS with RocksDB",
    refused: notBuilt("fault tolerance of the GCS is"),
  },
  KubernetesWAS: {
    on: false,
    what: "Kubernetes' workload-aware scheduling",
    refused: notBuilt("workload-aware scheduling is"),
  },
} as const satisfies Record<string, Gate>;

export type FeatureGate = keyof typeof GATES;
export type FeatureGates = Readonly<Record<FeatureGate, boolean>>;

/** Reads `A=true,B=false`. What is wrong is added to `problems`, what has no effect to `warnings`. */
export function readGates(text: string, problems: string[], warnings: string[]): FeatureGates {
  const all: [string, Gate][] = Object.entries(GATES);
  const chosen = Object.fromEntries(all.map(([name, { on }]) => [name, on])) as Record<FeatureGate, boolean>;
  for (const part of text.split(",").filter((part) => part.trim() !== "")) {
    const [name = "", value] = part.split("=").map((word) => word.trim());
    const gate = all.find(([known]) => known === name)?.[1];
    if (!gate) {
      const names = all.map(([known]) => known);
      const hint = didYouMean(name, names) || ` There are: ${names.join(", ")}.`;
      problems.push(`--feature-gates: there is no feature gate "${name}".${hint}`);
      continue;
    }
    if (value !== "true" && value !== "false") {
      problems.push(`--feature-gates: ${name} must be true or false, not ${JSON.stringify(value ?? "")}.`);
      continue;
    }
    const on = value === "true";
    chosen[name as FeatureGate] = on;
    if (on === gate.on) continue;
    if (gate.refused) problems.push(`--feature-gates: ${name}=${value}: ${gate.refused}.`);
    if (gate.noEffect) warnings.push(`--feature-gates: ${name}=${value} makes no difference: ${gate.noEffect}.`);
  }
  return chosen;
}
