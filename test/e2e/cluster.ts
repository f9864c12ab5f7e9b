/**
 * The shared cluster as the scenarios see it: objects to apply, what is there now, and waiting for it to change.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, inject } from "vitest";
import type { Job, Pod } from "../../src/api/kubernetes.ts";
import { LABEL } from "../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob, RayJobSpec, RayJobStatus } from "../../src/api/rayjob.ts";
import { defaultCacheDir } from "../../src/local/cache.ts";
import { realClock } from "../../src/machinery/clock.ts";
import { KubeClient } from "../../src/machinery/kube/client.ts";
import { isNotFound } from "../../src/machinery/kube/errors.ts";
import { HttpTransport } from "../../src/machinery/kube/http.ts";
import { Informer } from "../../src/machinery/kube/informer.ts";
import { loadKubeconfig } from "../../src/machinery/kube/kubeconfig.ts";
import {
  jobs,
  pods,
  type ResourceType,
  rayClusters,
  rayJobs,
  resourcePath,
} from "../../src/machinery/kube/resources.ts";
import { proxyRayTransport } from "../../src/ray/proxy.ts";
import { descendants, RAY_VERSION } from "./command.ts";

export const namespace = "default";

/** How long a scenario waits for one thing; a Ray cluster takes its time on a small machine. */
const PATIENCE_MS = 180_000;

export class Cluster {
  readonly kubeconfig: string = inject("kubeconfig");
  readonly transport = new HttpTransport(loadKubeconfig(this.kubeconfig));
  readonly client = new KubeClient(this.transport);
  readonly #stop = new AbortController();
  readonly #changed = new Set<() => void>();
  readonly rayJobs = this.#informer<RayJob>(rayJobs);
  readonly rayClusters = this.#informer<RayCluster>(rayClusters);
  readonly pods = this.#informer<Pod>(pods);
  readonly jobs = this.#informer<Job>(jobs);

  #informer<T extends KubeObject>(type: ResourceType): Informer<T> {
    const informer = new Informer<T>({ client: this.client, type, clock: realClock, namespaces: [namespace] });
    informer.onProgress(() => {
      for (const look of this.#changed) look();
    });
    informer.start(this.#stop.signal);
    return informer;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.transport.close();
  }

  /** Waits until `look` finds something in the caches; says what was there when it does not in time. */
  until<T>(what: string, look: () => T | undefined | false, patience = PATIENCE_MS): Promise<T> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        clearTimeout(timer);
        this.#changed.delete(check);
        settle();
      };
      const timer = setTimeout(
        () => end(() => reject(new Error(`waited ${patience / 1000} s for ${what}; there is\n${this.describe()}`))),
        patience,
      );
      const check = () => {
        const found = look();
        if (found !== undefined && found !== false) end(() => resolve(found));
      };
      this.#changed.add(check);
      check();
    });
  }

  /** The RayJob once its status is as wanted. */
  status(
    name: string,
    what: string,
    wanted: (status: RayJobStatus) => boolean,
    patience?: number,
  ): Promise<Stored<RayJob>> {
    return this.until(
      `RayJob ${name}: ${what}`,
      () => {
        const job = this.rayJobs.store.get(namespace, name);
        return job && wanted(job.status ?? {}) && job;
      },
      patience,
    );
  }

  phase(name: string, phase: RayJobStatus["jobDeploymentStatus"], patience?: number): Promise<Stored<RayJob>> {
    return this.status(name, `phase ${phase}`, ({ jobDeploymentStatus }) => jobDeploymentStatus === phase, patience);
  }

  running(name: string): Promise<Stored<RayJob>> {
    return this.status(name, "running in Ray", ({ jobStatus }) => jobStatus === "RUNNING");
  }

  ended(name: string): Promise<Stored<RayJob>> {
    return this.status(name, "ended", ({ jobDeploymentStatus: phase }) => phase === "Complete" || phase === "Failed");
  }

  podsOf({ metadata: { uid } }: Stored<RayJob>): Stored<Pod>[] {
    return this.pods.store.list(namespace).filter(({ metadata }) => metadata.labels?.[LABEL.rayJobUID] === uid);
  }

  head(job: Stored<RayJob>): Stored<Pod> | undefined {
    return this.podsOf(job).find(({ metadata }) => metadata.labels?.[LABEL.nodeType] === "head");
  }

  submitter(job: Stored<RayJob>): Stored<Pod> | undefined {
    return this.podsOf(job).find(({ metadata }) => !metadata.labels?.[LABEL.nodeType]);
  }

  /** Kills a Pod without grace, as a lost node would. */
  kill({ metadata: { name, uid } }: Stored<Pod>): Promise<unknown> {
    return this.client.delete(pods, namespace, name, { uid, gracePeriodSeconds: 0 });
  }

  apply(job: RayJob): Promise<Stored<RayJob>> {
    return this.client.create<RayJob>(rayJobs, { ...job, metadata: { namespace, ...job.metadata } });
  }

  /** Deletes a RayJob and waits until nothing of it is left. */
  async remove(name: string): Promise<void> {
    const job = this.rayJobs.store.get(namespace, name);
    await this.client.delete(rayJobs, namespace, name, { propagation: "Background" }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    if (job) await this.nothingLeft(job);
  }

  nothingLeft(job: Stored<RayJob>): Promise<true> {
    const { name, uid } = job.metadata;
    const mine = ({ metadata }: Stored) =>
      metadata.uid === uid ||
      metadata.labels?.[LABEL.rayJobUID] === uid ||
      metadata.ownerReferences?.some((owner) => owner.uid === uid);
    return this.until(`nothing to be left of RayJob ${name}`, () => ![...this.#all()].some(mine));
  }

  *#all(): Generator<Stored> {
    for (const { store } of [this.rayJobs, this.rayClusters, this.pods, this.jobs]) yield* store.list(namespace);
  }

  /** What Ray's own job server says, asked through the API server. */
  async ray(job: Stored<RayJob>, path: string): Promise<unknown> {
    const { dashboardURL: dashboard = "" } = job.status ?? {};
    const answer = await proxyRayTransport(this.transport).request({ method: "GET", dashboard, path, timeout: 15_000 });
    if (answer.status !== 200) throw new Error(`Ray answered GET ${path} with ${answer.status}: ${answer.body}`);
    return JSON.parse(answer.body);
  }

  /** The story that Ray tells: each job that it was given, as `<submission id> <status>`. */
  async rayTells(job: Stored<RayJob>): Promise<string[]> {
    const jobs = (await this.ray(job, "/api/jobs/")) as { type: string; submission_id: string; status: string }[];
    return jobs.filter(({ type }) => type === "SUBMISSION").map(({ submission_id: id, status }) => `${id} ${status}`);
  }

  /** The story that `kubectl get rayjob` tells: `<job status> <deployment status>`. */
  async kubectlTells({ metadata: { name } }: Stored<RayJob>): Promise<string> {
    const accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    const path = resourcePath(rayJobs, namespace, name);
    const { body } = await this.transport.request({ method: "GET", path, headers: { accept } });
    const table = body as { columnDefinitions: { name: string }[]; rows: { cells: unknown[] }[] };
    const cell = (name: string) =>
      table.rows[0]?.cells[table.columnDefinitions.findIndex((one) => one.name.toLowerCase() === name)];
    return `${cell("job status")} ${cell("deployment status")}`;
  }

  /** The operator's process. */
  operatorPid(): number | undefined {
    return descendants(inject("clusterPid")).find(
      ({ command }) => /main\.ts operator\b/.test(command) && !/^(sh|setpriv|unshare) /.test(command),
    )?.pid;
  }

  /** Kills processes of Pods with SIGKILL, by what their command line says, and tells how many there were. */
  killProcesses(command: RegExp): number {
    const found = descendants(inject("clusterPid")).filter(
      (each) => command.test(each.command) && !/^(sh|setpriv|unshare|timeout) /.test(each.command),
    );
    for (const { pid } of found) process.kill(pid, "SIGKILL");
    return found.length;
  }

  describe(): string {
    const lines = [...this.#all()].map((object) => {
      const status = (object as { status?: Record<string, unknown> }).status ?? {};
      const { phase, state, jobStatus, jobDeploymentStatus, reason, message, executionAttempt } = status;
      const shown = { phase, state, jobDeploymentStatus, jobStatus, executionAttempt, reason, message };
      const deleting = object.metadata.deletionTimestamp ? " (being deleted)" : "";
      return `  ${object.kind} ${object.metadata.name}${deleting} ${JSON.stringify(shown)}`;
    });
    return lines.join("\n") || "  nothing";
  }
}

/** The shared cluster, for one test file. */
export function useCluster(): Cluster {
  const cluster = new Cluster();
  beforeEach(({ task }) => console.log(`[e2e] ${task.name} …`));
  afterAll(() => cluster.close());
  return cluster;
}

/**
 * A folder that a job's program and its test both see: the program writes down that it ran, and waits until it is let go.
 * So a test knows how often a program really ran, whatever any status says.
 */
export class Gate {
  readonly folder: string;

  constructor() {
    const parent = join(defaultCacheDir(), "e2e");
    mkdirSync(parent, { recursive: true });
    this.folder = mkdtempSync(join(parent, "gate-"));
    writeFileSync(join(this.folder, "runs"), "");
  }

  /** Shell: notes the run, waits for the gate, then does the rest. */
  entrypoint(then = "echo through the gate"): string {
    return `echo run >> /gate/runs; echo waiting at the gate; while [ ! -e /gate/open ]; do sleep 0.2; done; ${then}`;
  }

  open(): void {
    writeFileSync(join(this.folder, "open"), "");
  }

  /** How often the program was started. */
  runs(): number {
    return readFileSync(join(this.folder, "runs"), "utf8").split("\n").length - 1;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A RayJob on one head and no worker: what most scenarios need. With a gate, its program sees it at /gate. */
export function rayJob(name: string, spec: Partial<RayJobSpec>, gate?: Gate): RayJob {
  const mounts = gate ? [{ name: "gate", mountPath: "/gate" }] : [];
  const volumes = gate ? [{ name: "gate", hostPath: { path: gate.folder } }] : [];
  const attempt = {
    name: "ATTEMPT",
    valueFrom: { fieldRef: { fieldPath: "metadata.labels['ray.io/execution-attempt']" } },
  };
  return {
    apiVersion: "ray.io/v1",
    kind: "RayJob",
    metadata: { name, namespace },
    spec: {
      shutdownAfterJobFinishes: true,
      ...spec,
      rayClusterSpec: {
        rayVersion: RAY_VERSION,
        headGroupSpec: {
          rayStartParams: { "num-cpus": "1" },
          template: {
            spec: {
              containers: [
                {
                  name: "ray-head",
                  image: `rayproject/ray:${RAY_VERSION}`,
                  env: [attempt],
                  resources: { requests: { cpu: "250m", memory: "1Gi" }, limits: { cpu: "1", memory: "2Gi" } },
                  volumeMounts: mounts,
                },
              ],
              volumes,
            },
          },
        },
      },
    } as RayJobSpec,
  };
}
