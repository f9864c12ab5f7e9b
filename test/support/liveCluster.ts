/**
 * One namespace of a cluster with a real Ray, as scenarios see it: objects to apply, what is there now, and waiting for
 * it to change.
 */
import type { Job, Pod } from "../../src/api/kubernetes.ts";
import { LABEL } from "../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob, RayJobStatus } from "../../src/api/rayjob.ts";
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

export class LiveCluster {
  /** Milliseconds that a scenario waits for one thing; a Ray cluster takes its time on a small machine. */
  protected readonly patience: number = 300_000;
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly transport: HttpTransport;
  readonly client: KubeClient;
  readonly #stop = new AbortController();
  readonly #changed = new Set<() => void>();
  readonly rayJobs: Informer<RayJob>;
  readonly rayClusters: Informer<RayCluster>;
  readonly pods: Informer<Pod>;
  readonly jobs: Informer<Job>;

  constructor(kubeconfig: string, namespace: string) {
    this.kubeconfig = kubeconfig;
    this.namespace = namespace;
    this.transport = new HttpTransport(loadKubeconfig(kubeconfig));
    this.client = new KubeClient(this.transport);
    this.rayJobs = this.#informer(rayJobs);
    this.rayClusters = this.#informer(rayClusters);
    this.pods = this.#informer(pods);
    this.jobs = this.#informer(jobs);
  }

  #informer<T extends KubeObject>(type: ResourceType): Informer<T> {
    return this.observe(new Informer<T>({ client: this.client, type, clock: realClock, namespaces: [this.namespace] }));
  }

  /** Starts it; whoever waits looks again after each of its changes. */
  observe<T extends KubeObject>(informer: Informer<T>): Informer<T> {
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
  until<T>(what: string, look: () => T | undefined | false, patience = this.patience): Promise<T> {
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
        let found: T | undefined | false;
        try {
          found = look();
        } catch (error) {
          return end(() => reject(error));
        }
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
        const job = this.rayJobs.store.get(this.namespace, name);
        return job && wanted(job.status ?? {}) && job;
      },
      patience,
    );
  }

  phase(name: string, phase: RayJobStatus["jobDeploymentStatus"], patience?: number): Promise<Stored<RayJob>> {
    return this.status(name, `phase ${phase}`, ({ jobDeploymentStatus }) => jobDeploymentStatus === phase, patience);
  }

  running(name: string): Promise<Stored<RayJob>> {
    return this.status(name, "running in Ray", ({ jobStatus, jobDeploymentStatus: phase, message }) => {
      // It would be waited for in vain.
      if (phase === "Failed" || phase === "Complete") throw new Error(`RayJob ${name} is ${phase}: ${message}`);
      return jobStatus === "RUNNING";
    });
  }

  ended(name: string): Promise<Stored<RayJob>> {
    return this.status(name, "ended", ({ jobDeploymentStatus: phase }) => phase === "Complete" || phase === "Failed");
  }

  podsOf({ metadata: { uid } }: Stored<RayJob>): Stored<Pod>[] {
    return this.pods.store.list(this.namespace).filter(({ metadata }) => metadata.labels?.[LABEL.rayJobUID] === uid);
  }

  head(job: Stored<RayJob>): Stored<Pod> | undefined {
    return this.podsOf(job).find(({ metadata }) => metadata.labels?.[LABEL.nodeType] === "head");
  }

  submitter(job: Stored<RayJob>): Stored<Pod> | undefined {
    return this.podsOf(job).find(({ metadata }) => !metadata.labels?.[LABEL.nodeType]);
  }

  /** Kills a Pod without grace, as a lost node would. */
  kill({ metadata: { name, uid } }: Stored<Pod>): Promise<unknown> {
    return this.client.delete(pods, this.namespace, name, { uid, gracePeriodSeconds: 0 });
  }

  apply(job: RayJob): Promise<Stored<RayJob>> {
    return this.client.create<RayJob>(rayJobs, { ...job, metadata: { namespace: this.namespace, ...job.metadata } });
  }

  /** Deletes a RayJob and waits until nothing of it is left. */
  async remove(name: string): Promise<void> {
    const job = this.rayJobs.store.get(this.namespace, name);
    await this.client.delete(rayJobs, this.namespace, name, { propagation: "Background" }).catch((error: unknown) => {
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
    for (const { store } of [this.rayJobs, this.rayClusters, this.pods, this.jobs]) yield* store.list(this.namespace);
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
    const path = resourcePath(rayJobs, this.namespace, name);
    const { body } = await this.transport.request({ method: "GET", path, headers: { accept } });
    const table = body as { columnDefinitions: { name: string }[]; rows: { cells: unknown[] }[] };
    const cell = (name: string) =>
      table.rows[0]?.cells[table.columnDefinitions.findIndex((one) => one.name.toLowerCase() === name)];
    return `${cell("job status")} ${cell("deployment status")}`;
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
