/**
 * The operator as a process on a real API server, in a world that is played: kubelet by test/sim/fakeKubelet.ts through
 * the API, Ray by test/sim/fakeRay.ts behind HTTP, the submitter's program by test/sim/fakeSubmitter.ts, on real time.
 *
 * One world serves many tests at once, each on a Stage of its own: a namespace and what happens in it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect, inject } from "vitest";
import type { Job, Pod, Service } from "../../src/api/kubernetes.ts";
import { LABEL, NODE_TYPE } from "../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob, RayJobSpec, RayJobStatus } from "../../src/api/rayjob.ts";
import { realClock } from "../../src/machinery/clock.ts";
import { KubeClient } from "../../src/machinery/kube/client.ts";
import { isNotFound } from "../../src/machinery/kube/errors.ts";
import { HttpTransport } from "../../src/machinery/kube/http.ts";
import { loadKubeconfig } from "../../src/machinery/kube/kubeconfig.ts";
import {
  events,
  jobs,
  leases,
  namespaces,
  pods,
  type ResourceType,
  rayClusters,
  rayJobs,
  services,
} from "../../src/machinery/kube/resources.ts";
import type { Transport } from "../../src/machinery/kube/transport.ts";
import { LOCK_NAME } from "../../src/machinery/leader.ts";
import type { RayRequest, RayResponse } from "../../src/ray/transport.ts";
import { Random } from "../../src/simkube/random.ts";
import { FakeKubelet, type PodBehaviour } from "../sim/fakeKubelet.ts";
import { type FakeHead, FakeRay, type JobScript, succeeds } from "../sim/fakeRay.ts";
import { diligent, runSubmitter, type SubmitterScript, showingToken, tokenOf } from "../sim/fakeSubmitter.ts";
import { History } from "../support/history.ts";
import { clusterSpec, rayCluster, rayJob } from "../support/manifests.ts";
import { temporaryFolder } from "./controlPlane.ts";
import { denied, endOf, type Request, requestsIn } from "./identity.ts";

/** No name server knows it: test/integration/dashboards.js leads there. */
export const DOMAIN = "cluster.test";
/** Where the lease is, as the kubeconfig names no namespace. */
const OPERATORS_NAMESPACE = "default";

/** As fast as it goes: what is tried here does not depend on how long it takes. */
export const swift: PodBehaviour = { schedule: 20, start: 50, ready: 150, terminate: 200 };
/** Jobs that take long enough to be seen running. */
export const soon = (): JobScript => succeeds(1500, 200);

export interface OperatorChoices {
  readonly kubeconfig?: string;
  readonly flags?: readonly string[];
}

export interface Scripts {
  /** Of the jobs that Ray is given, in order; then `soon`. */
  readonly jobs?: readonly JobScript[];
  readonly pod?: (pod: Stored<Pod>) => PodBehaviour;
  readonly submitter?: (pod: Stored<Pod>) => SubmitterScript;
  /** Milliseconds from a head's start until its dashboard serves. */
  readonly dashboard?: number;
  /** Stands before Ray; `pass` asks it, `hungUp` resolves when whoever asked waits no longer. */
  readonly gateway?: (
    request: RayRequest,
    pass: () => Promise<RayResponse>,
    hungUp: Promise<unknown>,
  ) => Promise<RayResponse>;
}

type Lease = KubeObject & { spec?: { holderIdentity?: string } };

export class World {
  readonly client: KubeClient;
  readonly history = new History();
  readonly ray: FakeRay;
  readonly kubelet: FakeKubelet;
  readonly stages = new Map<string, Stage>();
  readonly #connection = new HttpTransport(loadKubeconfig(inject("controlPlane")));
  /** Where the audit log was when this world was opened. */
  readonly #opened = endOf(inject("auditLog"));
  #forgiven: (request: Request) => boolean = () => false;
  readonly #server: Server;
  readonly #end = new AbortController();
  /** What runs, oldest first, and where it logs. */
  readonly #operators = new Map<ChildProcess, string>();
  readonly #submitters = new Map<string, AbortController>();
  #folder = "";
  #env: NodeJS.ProcessEnv = {};
  #logs = 0;
  /** Operators that were killed. */
  kills = 0;

  constructor() {
    const transport = whileOpen(this.#connection, this.#end.signal);
    this.client = new KubeClient(transport);
    this.ray = new FakeRay({
      clock: realClock,
      resolve: (dashboard) => this.#headBehind(dashboard),
      script: (request, head) => {
        const [uid] = [...this.ray.heads].find(([, candidate]) => candidate === head)!;
        const stage = this.#stageOf(this.kubelet.running.find(({ metadata }) => metadata.uid === uid));
        stage?.submissions.push(`${uid} ${request.submission_id}`);
        return stage?.nextJob() ?? soon();
      },
    });
    this.ray.onChange(() => this.history.changed());
    this.kubelet = new FakeKubelet({
      transport,
      clock: realClock,
      behave: (pod) => (this.#stageOf(pod)?.scripts.pod ?? (() => swift))(pod),
      onRunning: (pod) => this.#runs(pod),
      onEnded: (pod) => this.#ended(pod),
    });
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  /** Opens the world, and starts an operator unless `operators` says otherwise. */
  static async open({ operators = 1, env = {} }: { operators?: number; env?: NodeJS.ProcessEnv } = {}): Promise<World> {
    const world = new World();
    world.#env = env;
    world.#folder = await temporaryFolder("world");
    await once(world.#server.listen(0, "127.0.0.1"), "listening");
    await world.history.follow(world.client, world.#end.signal);
    world.kubelet.start(world.#end.signal);
    await world.releaseLease();
    for (let count = 0; count < operators; count++) world.startOperator();
    return world;
  }

  /** A namespace of its own. */
  async stage(scripts: Scripts = {}): Promise<Stage> {
    const object = { metadata: { generateName: "stage-" } } as KubeObject;
    const { metadata } = await this.client.create(namespaces, object);
    const stage = new Stage(this, metadata.name, scripts);
    this.stages.set(metadata.name, stage);
    return stage;
  }

  /** `kubeconfig` and `flags` instead of the manifest's identity, and beside the tests' own flags. */
  startOperator({ kubeconfig = inject("operator"), flags: chosen = [] }: OperatorChoices = {}): void {
    const log = this.#log(this.#logs++);
    const output = openSync(log, "a", 0o600);
    const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
    const hook = new URL("./dashboards.js", import.meta.url).href;
    const { port } = this.#server.address() as { port: number };
    const flags = ["--metrics-addr", "0", "--health-probe-bind-address", "0", "--reconcile-concurrency", "4"];
    const child = spawn(
      "setpriv",
      [
        ...["--pdeathsig", "KILL", process.execPath, "--import", hook],
        ...[main, "operator", "--kubeconfig", kubeconfig, ...flags, ...chosen],
      ],
      {
        stdio: ["ignore", output, output],
        env: { ...process.env, ...this.#env, CLUSTER_DOMAIN: DOMAIN, RAYKEEPER_TEST_DASHBOARDS: String(port) },
      },
    );
    closeSync(output);
    this.#operators.set(child, log);
    child.once("exit", () => this.#operators.delete(child));
  }

  /** The identity of the operator that holds the lease, once one does. */
  async leader(namespace = OPERATORS_NAMESPACE): Promise<string> {
    const signal = AbortSignal.timeout(600_000);
    for await (const { type, object } of await this.client.watch<Lease>(leases, { namespace, signal })) {
      if (type !== "BOOKMARK" && object.metadata.name === LOCK_NAME && object.spec?.holderIdentity) {
        return object.spec.holderIdentity;
      }
    }
    throw new Error("the watch of leases has ended");
  }

  /** SIGKILL to the operator of this identity, or to the oldest; resolves when it is dead. Its lease stays. */
  async killOperator(identity?: string): Promise<void> {
    // Its own first words; the others speak of it, too, as the one they wait for.
    const isIt = (log: string) =>
      readFileSync(log, "utf8")
        .split("\n")[0]!
        .includes(identity ?? "");
    const [child] = [...this.#operators].find(([, log]) => isIt(log)) ?? [];
    if (!child) throw new Error(`no operator runs\n${this.describeOperators()}`);
    const dead = once(child, "exit");
    child.kill("SIGKILL");
    await dead;
    this.kills++;
  }

  /** Nobody waits for the lease of an operator that is surely dead to run out. */
  async releaseLease(): Promise<void> {
    await this.client.delete(leases, OPERATORS_NAMESPACE, LOCK_NAME).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }

  /** Kills the operator at `count` moments, each some versions after the one before, and starts another each time. */
  async killAtRandom(seed: number, count: number, signal: AbortSignal): Promise<void> {
    const random = new Random(seed);
    try {
      for (let kill = 0; kill < count; kill++) {
        const moment = this.history.length + 1 + random.below(40);
        await this.history.until(
          `version ${moment}`,
          () => this.history.length >= moment,
          () => "",
          signal,
        );
        await this.killOperator();
        await this.releaseLease();
        this.startOperator();
      }
    } catch (error) {
      // What was to be disturbed has ended.
      if (!signal.aborted) throw error;
    }
  }

  /** What the operators said of a namespace, and the newest one in general: for the message of a test that fails. */
  describeOperators(namespace?: string): string {
    const lines = Array.from({ length: this.#logs }, (_, number) =>
      readFileSync(this.#log(number), "utf8")
        .split("\n")
        .filter((line) => (namespace ? line.includes(`"${namespace}/`) : true) || line.includes("the operator starts"))
        .map((line) => line.slice(0, 400)),
    );
    return lines.flat().slice(-60).join("\n");
  }

  #log(number: number): string {
    return join(this.#folder, `operator-${number}.log`);
  }

  async close(): Promise<void> {
    this.#end.abort(new Error("the world is closed"));
    for (const submitter of this.#submitters.values()) submitter.abort();
    for (const child of [...this.#operators.keys()]) {
      const dead = once(child, "exit");
      child.kill("SIGKILL");
      await dead;
    }
    this.#server.closeAllConnections();
    this.#server.close();
    // What the tests of one file made must not keep the operator of the next one busy.
    const client = new KubeClient(this.#connection);
    for (const { namespace } of this.stages.values()) {
      for (const { metadata } of (await client.listAll<RayJob>(rayJobs, { namespace })).items) {
        await client.patch(rayJobs, namespace, metadata.name, { metadata: { finalizers: null } });
      }
      await client.delete(namespaces, undefined, namespace);
    }
    await this.#connection.close();
    rmSync(this.#folder, { recursive: true, force: true });
    const refused = denied(this.requests.filter((request) => !this.#forgiven(request)));
    if (refused.length > 0) throw new Error(`the operator was denied what it asked for:\n${refused.join("\n")}`);
  }

  /** Requests that a test makes itself with an operator's identity, and wants to be denied. */
  forgive(which: (request: Request) => boolean): void {
    this.#forgiven = which;
  }

  /** What operators asked of the API server since this world was opened. */
  get requests(): Request[] {
    return requestsIn(inject("auditLog"), this.#opened);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const dashboard = request.headers.host ?? "";
    const asked: RayRequest = {
      method: request.method as RayRequest["method"],
      dashboard,
      path: request.url ?? "/",
      headers: request.headers as Record<string, string>,
      body: await text(request),
      timeout: 600_000,
    };
    const pass = () => this.ray.request(asked);
    const hungUp = new Promise<void>((resolve) => response.once("close", resolve));
    void hungUp.then(() => setImmediate(() => this.history.changed()));
    const gateway = this.stages.get(dashboard.split(".")[1] ?? "")?.scripts.gateway;
    // Once it is counted: somebody may wait for Ray to be asked again.
    setImmediate(() => this.history.changed());
    try {
      const { status, body } = await (gateway ? gateway(asked, pass, hungUp) : pass());
      response.writeHead(status, { "content-type": "application/json" }).end(body);
    } catch {
      // No answer came.
      response.destroy();
    }
  }

  #stageOf(pod: Stored<Pod> | undefined): Stage | undefined {
    return this.stages.get(pod?.metadata.namespace ?? "");
  }

  #runs(pod: Stored<Pod>): void {
    const { uid, labels = {} } = pod.metadata;
    const stage = this.#stageOf(pod);
    if (labels[LABEL.nodeType] === NODE_TYPE.head) {
      realClock.after(stage?.scripts.dashboard ?? 50, () => {
        if (!this.kubelet.running.some((running) => running.metadata.uid === uid)) return;
        this.ray.start(uid).token = tokenOf(pod.spec?.containers[0]);
      });
    } else if (labels[LABEL.nodeType] === undefined && labels[LABEL.rayJobUID] !== undefined) {
      const gone = new AbortController();
      this.#submitters.set(uid, gone);
      const script = (stage?.scripts.submitter ?? (() => ({ ...diligent, boot: 100 })))(pod);
      runSubmitter(pod, script, { clock: realClock, ray: showingToken(pod, this.ray), signal: gone.signal }).then(
        (end) => this.kubelet.end(uid, end),
        (error) => {
          if (!gone.signal.aborted) throw error;
        },
      );
    }
  }

  #ended(pod: Stored<Pod>): void {
    const { uid } = pod.metadata;
    this.#submitters.get(uid)?.abort();
    this.#submitters.delete(uid);
    this.ray.stop(uid);
  }

  /** Name resolution and the Service's selector: the UID of the running Pod that a dashboard's address leads to. */
  #headBehind(dashboard: string): string | undefined {
    const [name = "", namespace = ""] = dashboard.split(".");
    const selector = this.history.get<Service>(services.kind, namespace, name)?.spec?.selector;
    if (!selector) return undefined;
    const behind = this.kubelet.running.find(
      ({ metadata }) =>
        metadata.namespace === namespace &&
        Object.entries(selector).every(([key, value]) => metadata.labels?.[key] === value),
    );
    return behind?.metadata.uid;
  }
}

export class Stage {
  readonly namespace: string;
  readonly scripts: Scripts;
  /** Every job that Ray took here, in order: `<head Pod's UID> <submission id>`. */
  readonly submissions: string[] = [];
  readonly #world: World;
  readonly #jobs: JobScript[];

  constructor(world: World, namespace: string, scripts: Scripts) {
    this.#world = world;
    this.namespace = namespace;
    this.scripts = scripts;
    this.#jobs = [...(scripts.jobs ?? [])];
  }

  nextJob(): JobScript {
    return this.#jobs.shift() ?? soon();
  }

  /** Creates the RayJob `demo`: a head, a worker, and the cluster is deleted at the end. */
  create(spec: Partial<RayJobSpec> = {}): Promise<Stored<RayJob>> {
    const object = rayJob({ rayClusterSpec: clusterSpec(1), ...spec });
    return this.client.create(rayJobs, { ...object, metadata: { name: "demo", namespace: this.namespace } });
  }

  /** A RayCluster of somebody else's, `shared`, with a worker; resolves once it is ready. */
  async share(): Promise<void> {
    const object = rayCluster("shared", 1) as RayCluster & KubeObject;
    await this.client.create(rayClusters, { ...object, metadata: { name: "shared", namespace: this.namespace } });
    const isReady = () =>
      this.#world.history.of<RayCluster>(this.namespace, rayClusters).some(({ status }) => status?.state === "ready");
    // Each kind has a watch of its own: the one of the Pods may be behind.
    await this.until("the shared cluster to be ready", () => isReady() && this.shared.length === 3);
  }

  /** Creates the RayJob `demo` on the cluster `shared`. */
  select(spec: Partial<RayJobSpec> = {}): Promise<Stored<RayJob>> {
    const clusterSelector = { [LABEL.cluster]: "shared" };
    return this.create({ rayClusterSpec: undefined, shutdownAfterJobFinishes: false, clusterSelector, ...spec });
  }

  /** What the owner of `shared` would miss or find changed: UIDs of cluster and Pods, and the spec's generation. */
  get shared(): readonly unknown[] {
    const ofRay = this.pods.filter(({ metadata }) => metadata.labels?.[LABEL.cluster] === "shared");
    return [...this.of(rayClusters), ...ofRay].map(({ metadata: { name, uid, generation, deletionTimestamp } }) => ({
      name,
      uid,
      generation,
      deletionTimestamp,
    }));
  }

  get client(): KubeClient {
    return this.#world.client;
  }

  get kubelet(): FakeKubelet {
    return this.#world.kubelet;
  }

  get job(): Stored<RayJob> | undefined {
    return this.#world.history.get<RayJob>("RayJob", this.namespace, "demo");
  }

  change(spec: Partial<RayJobSpec>): Promise<unknown> {
    return this.client.patch(rayJobs, this.namespace, "demo", { spec });
  }

  delete(): Promise<unknown> {
    return this.client.delete(rayJobs, this.namespace, "demo");
  }

  of(type: ResourceType): Stored[] {
    return this.#world.history.of(this.namespace, type);
  }

  get pods(): Stored<Pod>[] {
    return this.#world.history.of<Pod>(this.namespace, pods);
  }

  get head(): Stored<Pod> | undefined {
    return this.pods.find(({ metadata }) => metadata.labels?.[LABEL.nodeType] === NODE_TYPE.head);
  }

  get submitters(): Stored<Pod>[] {
    return this.pods.filter(({ metadata }) => metadata.labels?.[LABEL.nodeType] === undefined);
  }

  /** Ray in the head Pod that there is. */
  get ray(): FakeHead | undefined {
    return this.head && this.#world.ray.heads.get(this.head.metadata.uid);
  }

  /** Kills a Pod without grace, as a lost node would. */
  kill({ metadata: { name, uid } }: Stored<Pod>): Promise<unknown> {
    return this.client.delete(pods, this.namespace, name, { uid, gracePeriodSeconds: 0 });
  }

  /** Requests that Ray's dashboards here were asked, of one kind: `POST /api/jobs/`. */
  asked(method: string, path: RegExp): number {
    return this.#world.ray.requests.filter((request) => {
      const [how, dashboard = "", where = ""] = request.split(" ");
      return how === method && dashboard.split(".")[1] === this.namespace && path.test(where);
    }).length;
  }

  /** The job that Ray has here ends so. */
  end(status: "SUCCEEDED" | "FAILED", message?: string): void {
    for (const job of this.ray?.jobs.values() ?? []) this.ray?.end(job, status, message);
  }

  /** Ray was asked about its jobs a few times more: whatever the operator concludes from what is now, it has. */
  async askedAgain(times = 3): Promise<void> {
    const enough = this.asked("GET", /^\/api\/jobs\//) + times;
    await this.until("Ray to be asked again", () => this.asked("GET", /^\/api\/jobs\//) >= enough);
  }

  until<T>(what: string, look: () => T | undefined | false): Promise<T> {
    return this.#world.history.until(what, look, () => this.describe());
  }

  status(what: string, wanted: (status: RayJobStatus, job: Stored<RayJob>) => boolean): Promise<Stored<RayJob>> {
    return this.until(what, () => this.job && wanted(this.job.status ?? {}, this.job) && this.job);
  }

  phase(phase: RayJobStatus["jobDeploymentStatus"]): Promise<Stored<RayJob>> {
    return this.status(`phase ${phase}`, ({ jobDeploymentStatus }) => jobDeploymentStatus === phase);
  }

  running(): Promise<Stored<RayJob>> {
    return this.status("running in Ray", ({ jobStatus }) => jobStatus === "RUNNING");
  }

  condition(type: string, wanted: "True" | "False"): Promise<Stored<RayJob>> {
    return this.status(`condition ${type} to be ${wanted}`, ({ conditions }) =>
      Boolean(conditions?.some((condition) => condition.type === type && condition.status === wanted)),
    );
  }

  /** The submitter's Kubernetes Job is over. */
  async submitterJob(type: "Complete" | "Failed"): Promise<void> {
    await this.until(`the submitter's Job to be ${type}`, () =>
      this.#world.history
        .of<Job>(this.namespace, jobs)
        .some(({ status }) => status?.conditions?.some((one) => one.type === type && one.status === "True")),
    );
  }

  /** The RayCluster and all that is of it is gone; RayJob and submitter stay. */
  async released(): Promise<void> {
    await this.condition("ResourcesReleased", "True");
    await this.until("nothing of the cluster to be left", () =>
      this.#world.history
        .list(this.namespace)
        .every(({ kind, metadata }) => kind === "RayJob" || kind === "Job" || this.#isSubmitter(metadata.labels)),
    );
  }

  /** Nothing at all is left. */
  nothingLeft(): Promise<true> {
    return this.until("nothing to be left", () => this.#world.history.list(this.namespace).length === 0);
  }

  #isSubmitter(labels: Readonly<Record<string, string>> | undefined): boolean {
    return labels?.[LABEL.nodeType] === undefined && labels?.[LABEL.rayJobUID] !== undefined;
  }

  /** Events about the RayJob: `Warning HeadPodLost: …`. */
  async events(): Promise<string[]> {
    type Told = KubeObject & { type: string; reason: string; note: string; regarding: { kind: string } };
    const { items } = await this.client.listAll<Told>(events, { namespace: this.namespace });
    const about = items.filter(({ regarding }) => regarding.kind === "RayJob");
    return about.map(({ type, reason, note }) => `${type} ${reason}: ${note}`);
  }

  /** The values that the RayJob's status ever had, without repetition. */
  past<T>(value: (job: Stored<RayJob>) => T): T[] {
    const all = this.#world.history
      .versions(this.namespace)
      .filter(({ object }) => object.kind === "RayJob")
      .map(({ object }) => value(object as unknown as Stored<RayJob>));
    return all.filter((each, index) => index === 0 || each !== all[index - 1]);
  }

  /** What must have held at every moment. To be asked at the end of each test. */
  judge(): void {
    expect(this.#world.history.violations(this.namespace, this.submissions), this.describe()).toEqual([]);
  }

  describe(): string {
    const lines = this.#world.history.list(this.namespace).map((object) => {
      const { status = {} } = object as { status?: object };
      const deleting = object.metadata.deletionTimestamp ? " (being deleted)" : "";
      return `  ${object.kind} ${object.metadata.name}${deleting} ${JSON.stringify(status).slice(0, 1500)}`;
    });
    return [...lines, "  Ray was given:", ...this.submissions, this.#world.describeOperators(this.namespace)].join(
      "\n",
    );
  }
}

/** Once the world is closed, whatever is asked stays unanswered: nobody is there to hear. */
function whileOpen(transport: Transport, signal: AbortSignal): Transport {
  const guard = async <T>(act: () => Promise<T>): Promise<T> => {
    const never = () => new Promise<T>(() => {});
    if (signal.aborted) return never();
    try {
      const answer = await act();
      return signal.aborted ? never() : answer;
    } catch (error) {
      if (signal.aborted) return never();
      throw error;
    }
  };
  return {
    request: (request, options) => guard(() => transport.request(request, options)),
    stream: (request, options) => guard(() => transport.stream(request, options)),
  };
}
