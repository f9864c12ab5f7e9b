/**
 * The webhook on the one-node cluster as those see it that ask: the API server by writes that store nothing, and a replica
 * itself at its Pod's address.
 */
import { request } from "node:https";
import type { TLSSocket } from "node:tls";
import { vi } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJobSpec } from "../../src/api/rayjob.ts";
import { realClock, sleep } from "../../src/machinery/clock.ts";
import {
  validatingWebhookConfigurations as configurations,
  type ResourceType,
  rayJobs,
  resourcePath,
} from "../../src/machinery/kube/resources.ts";
import { WEBHOOK_PORT } from "../../src/webhook/configuration.ts";
import { configurationName } from "../../src/webhook/keeper.ts";
import { certificatesOf } from "../../src/webhook/keyRing.ts";
import { isReady, type NodeCluster, smallRayJob } from "./cluster.ts";
import { OPERATOR } from "./operator.ts";

const deployments: ResourceType = {
  group: "apps",
  version: "v1",
  kind: "Deployment",
  plural: "deployments",
  singular: "deployment",
  namespaced: true,
};

/** Two mistakes. */
export const INVALID: Partial<RayJobSpec> = { backoffLimit: -1, jobId: "a b" };

/** Where an operator's webhook is. */
export interface Place {
  readonly namespace: string;
  readonly webhook: string;
}

export type Configuration = Stored & {
  readonly webhooks: readonly { readonly clientConfig: { readonly caBundle?: string } }[];
};

export const configurationOf = (cluster: NodeCluster, { namespace, webhook }: Place): Promise<Configuration> =>
  cluster.client.get(configurations, undefined, configurationName(webhook, namespace)) as Promise<Configuration>;

/** Whom the API server is told to trust. */
export async function bundleOf(cluster: NodeCluster, place: Place): Promise<string[]> {
  const { webhooks } = await configurationOf(cluster, place);
  return certificatesOf(Buffer.from(webhooks[0]!.clientConfig.caBundle ?? "", "base64").toString());
}

export async function trust(cluster: NodeCluster, place: Place, certificates: readonly string[]): Promise<void> {
  const { metadata, webhooks } = await configurationOf(cluster, place);
  const caBundle = Buffer.from(certificates.join("")).toString("base64");
  const told = webhooks.map((one) => ({ ...one, clientConfig: { ...one.clientConfig, caBundle } }));
  await cluster.client.patch(configurations, undefined, metadata.name, { webhooks: told });
}

let count = 0;
const job = (spec: Partial<RayJobSpec>) => smallRayJob(`asked-${++count}`, { entrypoint: "true", ...spec });

/** What the API server answers to a RayJob, `<code> <message>`; it stores none. */
export async function verdict(cluster: NodeCluster, spec: Partial<RayJobSpec> = {}): Promise<string> {
  const { status, body } = await cluster.transport.request({
    method: "POST",
    path: resourcePath(rayJobs, cluster.namespace),
    query: { dryRun: "All" },
    body: job(spec),
  });
  return `${status} ${(body as { message?: string }).message ?? ""}`.trim();
}

/** Has that many operators, and waits until they are there and ready and no other is, and RayJobs are judged. */
export async function operatorReplicas(cluster: NodeCluster, replicas: number): Promise<Stored<Pod>[]> {
  await cluster.client.patch(deployments, OPERATOR.namespace, OPERATOR.name, { spec: { replicas } });
  const found = await cluster.until(`${replicas} operators`, () => {
    const all = cluster.operators.store.list();
    return all.length === replicas && all.every(isReady) && all;
  });
  // The node's rules for the Service follow a moment later.
  const judges = async () => (await verdict(cluster)) === "201";
  if (replicas > 0) await vi.waitUntil(judges, { timeout: 30_000, interval: 200 });
  return found;
}

/** Milliseconds. */
const PAUSE = 20;

export interface Judged {
  readonly times: number;
  /** What was neither admitted nor refused as it should have been, and, of the last times, how many all were. */
  readonly wrong: readonly string[];
  readonly rightAtLast: number;
}

/** While something goes on, has a valid and an invalid RayJob judged again and again. */
export async function judgedMeanwhile(cluster: NodeCluster, act: () => Promise<unknown>): Promise<Judged> {
  const ending = new AbortController();
  const acting = act().finally(() => ending.abort());
  // It is awaited only when the loop has ended.
  acting.catch(() => {});
  let times = 0;
  let rightAtLast = 0;
  const wrong: string[] = [];
  while (!ending.signal.aborted) {
    const [valid, invalid] = await Promise.all([verdict(cluster), verdict(cluster, INVALID)]);
    const bad = [valid === "201" ? [] : valid, /^422 .*denied the request/.test(invalid) ? [] : invalid].flat();
    times += 2;
    rightAtLast = bad.length > 0 ? 0 : rightAtLast + 2;
    wrong.push(...bad);
    // Others have need of the machine, too.
    await sleep(realClock, PAUSE);
  }
  await acting;
  return { times, wrong, rightAtLast };
}

export interface Answer {
  readonly allowed: boolean;
  readonly status?: { readonly message: string };
  /** What it showed: PEM. */
  readonly certificate: string;
}

/** Asks one replica as the API server does, which trusts `authorities` alone. */
export function askReplica(
  cluster: NodeCluster,
  { status }: Stored<Pod>,
  { namespace, webhook }: Place,
  authorities: readonly string[],
  spec: Partial<RayJobSpec> = {},
): Promise<Answer> {
  const object = job(spec);
  const review = {
    apiVersion: "admission.k8s.io/v1",
    kind: "AdmissionReview",
    request: {
      uid: "asked-by-hand",
      operation: "CREATE",
      namespace: cluster.namespace,
      name: object.metadata.name,
      object,
    },
  };
  return new Promise((resolve, reject) => {
    const asking = request(
      {
        host: status!.podIP!,
        port: WEBHOOK_PORT,
        servername: `${webhook}.${namespace}.svc`,
        ca: [...authorities],
        path: "/validate-ray-io-v1-rayjob?timeout=10s",
        method: "POST",
        agent: false,
      },
      (response) => {
        const certificate = (response.socket as TLSSocket).getPeerX509Certificate()!.toString();
        let text = "";
        response.setEncoding("utf8").on("data", (piece: string) => {
          text += piece;
        });
        response.on("end", () => resolve({ ...JSON.parse(text).response, certificate }));
      },
    );
    asking.on("error", reject);
    asking.end(JSON.stringify(review));
  });
}

/** How often a replica was asked about RayJobs, and how often the time that it took was noted, as its metrics have it. */
export async function timesAsked({ status }: Stored<Pod>): Promise<{ readonly asked: number; readonly timed: number }> {
  const text = await (await fetch(`http://${status!.podIP}:8080/metrics`)).text();
  const number = (name: string) =>
    Number(
      new RegExp(`^controller_runtime_webhook_${name}\\{webhook="/validate-ray-io-v1-rayjob".*\\} (\\d+)$`, "m").exec(
        text,
      )?.[1] ?? 0,
    );
  return { asked: number("requests_total"), timed: number("latency_seconds_count") };
}
