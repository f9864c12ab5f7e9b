/**
 * `raykeeper migrate check`: what would become of each RayJob and RayCluster of a cluster that KubeRay runs on, if Raykeeper
 * took over now.
 *
 * Only reads; the CRDs may still be KubeRay's. Exit code 0 nothing is in the way, 1 something would be refused, left alone
 * or cared for by nobody, 2 it could not be read.
 * Next: docs/migrate.md tells the same by phase; domain/rayjob/validate.ts has the rules.
 */
import type { KubeObject, Stored } from "../api/object.ts";
import type { RayCluster } from "../api/raycluster.ts";
import type { JobDeploymentStatus, RayJob } from "../api/rayjob.ts";
import { rayClusterViolations } from "../domain/raycluster/validate.ts";
import { isElsewhere } from "../domain/rayjob/observe.ts";
import { disposalOf } from "../domain/rayjob/policy.ts";
import { rayJobViolations } from "../domain/rayjob/validate.ts";
import { defaultSettings } from "../domain/settings.ts";
import { sentence, type Violation } from "../domain/validation.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { isNotFound } from "../machinery/kube/errors.ts";
import { type ResourceType, rayClusters, rayJobs } from "../machinery/kube/resources.ts";
import type { Transport } from "../machinery/kube/transport.ts";
import { serverTrouble } from "./apply.ts";
import { connect } from "./connect.ts";

export interface MigrateOptions {
  readonly namespace?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly output?: "json";
}

export interface Prospect {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  /** `jobDeploymentStatus` or `state`; empty for what is new. */
  readonly phase: string;
  /** Whether all is as it would be under KubeRay. */
  readonly fine: boolean;
  readonly what: string;
}

export async function migrateCheck(options: MigrateOptions): Promise<number> {
  const { transport, server, close } = connect(options);
  try {
    const prospects = await prospectsOf(transport, options.namespace);
    const text = options.output === "json" ? `${JSON.stringify({ objects: prospects }, null, 2)}\n` : asText(prospects);
    process.stdout.write(text);
    return prospects.every(({ fine }) => fine) ? 0 : 1;
  } catch (error) {
    throw serverTrouble(error, server) ?? error;
  } finally {
    await close();
  }
}

/** What is there, in the order of kinds, namespaces and names. Kinds that the cluster does not know are empty. */
export async function prospectsOf(transport: Transport, namespace?: string): Promise<readonly Prospect[]> {
  const client = new KubeClient(transport);
  const list = async <T extends KubeObject>(type: ResourceType): Promise<readonly Stored<T>[]> => {
    try {
      return (await client.listAll<T>(type, { namespace })).items;
    } catch (error) {
      if (isNotFound(error)) return [];
      throw error;
    }
  };
  const jobs = await list<RayJob>(rayJobs);
  const clusters = await list<RayCluster>(rayClusters);
  const others = [...(await list(notOurs("RayService"))), ...(await list(notOurs("RayCronJob")))];
  return [
    ...jobs.map(jobProspect),
    ...clusters.map((cluster) => clusterProspect(cluster, jobs)),
    ...others.map((object) => ({
      ...named(object),
      phase: "",
      fine: false,
      what: "nobody cares for it any more: keep KubeRay for it (docs/migrate.md)",
    })),
  ];
}

const notOurs = (kind: string): ResourceType => ({
  ...rayJobs,
  kind,
  singular: kind.toLowerCase(),
  plural: `${kind.toLowerCase()}s`,
});

const named = ({ kind = "", metadata: { namespace = "", name } }: Stored) => ({ kind, namespace, name });

/** What happens to a RayJob that can be run; the tests of test/takeover hold it against recordings of KubeRay's. */
const BY_PHASE: Readonly<Record<JobDeploymentStatus, string>> = {
  "": "begins",
  Initializing: "goes on with the RayCluster and the names that it has",
  Running: "runs on where it is, and gets the verdict that Ray gives",
  Waiting: "goes on waiting for spec.jobId",
  Suspending: "the suspension is carried through",
  Suspended: "stays suspended",
  Retrying: "the next attempt begins when the last one is gone",
  Complete: "is over",
  Failed: "is over",
  ValidationFailed: "starts, since its spec is valid here",
};
const OVER: readonly string[] = ["Complete", "Failed"];
/** There is no attempt: an invalid spec is refused at once. */
const NOT_BEGUN: readonly string[] = ["", "ValidationFailed", "Suspended"];

function jobProspect(job: Stored<RayJob>): Prospect {
  const phase = job.status?.jobDeploymentStatus ?? "";
  const about = { ...named(job), phase };
  if (isElsewhere(job)) return { ...about, fine: true, what: `is not touched: managed by ${job.spec.managedBy}` };
  if (job.metadata.deletionTimestamp) return { ...about, fine: true, what: "the deletion is carried through" };
  const what = OVER.includes(phase) ? `${BY_PHASE[phase]}; ${afterwards(job)}` : BY_PHASE[phase];
  const wrong = rayJobViolations(job, defaultSettings);
  if (wrong.length === 0 || OVER.includes(phase)) return { ...about, fine: true, what };
  if (phase === "ValidationFailed") return { ...about, fine: true, what: "stays refused" };
  if (NOT_BEGUN.includes(phase)) return { ...about, fine: false, what: `would be refused: ${words(wrong)}` };
  return { ...about, fine: false, what: `${what}; another attempt would be refused: ${words(wrong)}` };
}

/** What is deleted of a RayJob that is over: at once, where KubeRay kept it and its time has passed. */
function afterwards({ spec, status = {} }: RayJob): string {
  const policies = disposalOf(spec, status, defaultSettings).stages.map(({ policy }) => policy);
  const goes = policies.includes("DeleteSelf")
    ? "the RayJob itself is deleted"
    : policies.includes("DeleteCluster")
      ? "its RayCluster goes"
      : policies.includes("DeleteWorkers")
        ? "the workers of its RayCluster go"
        : undefined;
  return goes ? `${goes} when it is due` : "nothing of it is deleted";
}

function clusterProspect(cluster: Stored<RayCluster>, jobs: readonly Stored<RayJob>[]): Prospect {
  const about = { ...named(cluster), phase: cluster.status?.state ?? "" };
  const { managedBy } = cluster.spec;
  if (isElsewhere(cluster as unknown as RayJob)) {
    return { ...about, fine: true, what: `is not touched: managed by ${managedBy}` };
  }
  if (cluster.metadata.deletionTimestamp) return { ...about, fine: true, what: "the deletion is carried through" };
  const wrong = rayClusterViolations(cluster, defaultSettings);
  if (wrong.length === 0) return { ...about, fine: true, what: "goes on with the Pods that it has" };
  const owner = cluster.metadata.ownerReferences?.find(({ controller }) => controller);
  const isJobs = jobs.some(({ metadata }) => metadata.uid === owner?.uid);
  const left = "its Pods are left alone: none is replaced, added or taken away";
  return { ...about, fine: false, what: `${left}${isJobs ? " before its RayJob is over" : ""}: ${words(wrong)}` };
}

const words = (wrong: readonly Violation[]): string => wrong.map(sentence).join("; ");

function asText(prospects: readonly Prospect[]): string {
  if (prospects.length === 0) return "There is no RayJob and no RayCluster.\n";
  const lines = prospects.map(({ kind, namespace, name, phase, fine, what }) => {
    return `${fine ? "ok  " : "LOOK"}  ${kind} ${namespace}/${name}${phase && ` (${phase})`}: ${what}`;
  });
  const look = prospects.filter(({ fine }) => !fine).length;
  const sum = look === 0 ? "nothing is in the way" : `${look} of ${prospects.length} to look at`;
  return `${lines.join("\n")}\n${sum}\n`;
}
