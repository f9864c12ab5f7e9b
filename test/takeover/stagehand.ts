/**
 * A real control plane on which a real KubeRay, or Raykeeper, can be started and stopped, with kubelet and Ray played.
 *
 * For making the recordings (record.ts) and for watching the way back (back.ts): both take a KubeRay program, which no
 * test can count on. KubeRay finds the dashboards through HTTP_PROXY: whatever it asks for ends at the fake Ray.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { Pod, Service } from "../../src/api/kubernetes.ts";
import { LABEL, NODE_TYPE, SUBMITTER_CONTAINER } from "../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import { isTerminal, type SubmitRequest } from "../../src/domain/rayjob/ray.ts";
import { realClock, sleep } from "../../src/machinery/clock.ts";
import { KubeClient } from "../../src/machinery/kube/client.ts";
import { HttpTransport } from "../../src/machinery/kube/http.ts";
import { Informer } from "../../src/machinery/kube/informer.ts";
import { loadKubeconfig } from "../../src/machinery/kube/kubeconfig.ts";
import { leases, services } from "../../src/machinery/kube/resources.ts";
import type { Transport } from "../../src/machinery/kube/transport.ts";
import type { RayTransport } from "../../src/ray/transport.ts";
import { type ControlPlane, startControlPlane } from "../integration/controlPlane.ts";
import { FakeKubelet, type PodBehaviour } from "../sim/fakeKubelet.ts";
import { FakeRay, type JobScript, runsForEver } from "../sim/fakeRay.ts";
import { hasOwnCommand, runSubmitter } from "../sim/fakeSubmitter.ts";

const swift: PodBehaviour = { schedule: 20, start: 50, ready: 150, terminate: 200 };
const POD_ITSELF = "pod:";
const DOMAIN = "cluster.local";

/** What is played in a namespace. */
export interface Part {
  /** What the jobs given to Ray do, in order; then they run for ever. */
  readonly jobs?: JobScript[];
  readonly pod?: (pod: Stored<Pod>) => PodBehaviour;
}

export class Stagehand {
  readonly client: KubeClient;
  readonly transport: HttpTransport;
  readonly ray: FakeRay;
  readonly kubelet: FakeKubelet;
  readonly parts = new Map<string, Part>();
  /** `<namespace> <submission id>`, in order. */
  readonly submissions: string[] = [];
  readonly controlPlane: ControlPlane;
  readonly #services: Informer<Service>;
  readonly #server = createServer((request, response) => void this.#serve(request, response));
  readonly #end = new AbortController();
  readonly #programs = new Set<ChildProcess>();

  private constructor(controlPlane: ControlPlane) {
    this.controlPlane = controlPlane;
    this.transport = new HttpTransport(loadKubeconfig(controlPlane.kubeconfig));
    // On a machine that does much else an answer takes its time; nobody here may give up.
    const patient: Transport = {
      request: (request, options) => this.transport.request(request, { ...options, timeout: 300_000 }),
      stream: (request, options) => this.transport.stream(request, options),
    };
    this.client = new KubeClient(patient);
    this.#services = new Informer<Service>({ client: this.client, clock: realClock, type: services });
    this.ray = new FakeRay({
      clock: realClock,
      resolve: (dashboard) => this.#headBehind(dashboard),
      script: (request, head) => {
        const [uid] = [...this.ray.heads].find(([, candidate]) => candidate === head)!;
        const namespace = this.kubelet.running.find(({ metadata }) => metadata.uid === uid)?.metadata.namespace ?? "";
        this.submissions.push(`${namespace} ${request.submission_id}`);
        return this.parts.get(namespace)?.jobs?.shift() ?? runsForEver;
      },
    });
    this.kubelet = new FakeKubelet({
      transport: patient,
      clock: realClock,
      behave: (pod) => (this.parts.get(pod.metadata.namespace ?? "")?.pod ?? (() => swift))(pod),
      onRunning: (pod) => this.#runs(pod),
      onEnded: ({ metadata }) => this.ray.stop(metadata.uid),
    });
  }

  static async come(): Promise<Stagehand> {
    const hand = new Stagehand(await startControlPlane());
    await once(hand.#server.listen(0, "127.0.0.1"), "listening");
    hand.#services.start(hand.#end.signal);
    hand.kubelet.start(hand.#end.signal);
    return hand;
  }

  get #port(): number {
    return (this.#server.address() as { port: number }).port;
  }

  kuberay(program: string, log: string): ChildProcess {
    const proxy = `http://127.0.0.1:${this.#port}`;
    return this.#start(program, log, ["--enable-leader-election=false", "--feature-gates=RayJobDeletionPolicy=true"], {
      HTTP_PROXY: proxy,
      http_proxy: proxy,
    });
  }

  raykeeper(log: string): ChildProcess {
    const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
    const hook = new URL("../integration/dashboards.js", import.meta.url).href;
    const env = { CLUSTER_DOMAIN: DOMAIN, RAYKEEPER_TEST_DASHBOARDS: String(this.#port) };
    return this.#start(process.execPath, log, [], env, ["--import", hook, main, "operator"]);
  }

  #start(
    program: string,
    log: string,
    args: readonly string[],
    env: NodeJS.ProcessEnv,
    before: readonly string[] = [],
  ): ChildProcess {
    const output = openSync(log, "a", 0o600);
    const common = [
      "--kubeconfig",
      this.controlPlane.kubeconfig,
      "--metrics-addr",
      "0",
      "--reconcile-concurrency",
      "4",
    ];
    const all = ["--pdeathsig", "KILL", program, ...before, ...common, "--health-probe-bind-address", "0", ...args];
    const child = spawn("setpriv", all, { stdio: ["ignore", output, output], env: { ...process.env, ...env } });
    closeSync(output);
    this.#programs.add(child);
    child.once("exit", () => this.#programs.delete(child));
    return child;
  }

  /** Ends a program, and frees its lease. */
  async stop(child: ChildProcess): Promise<void> {
    if (child.exitCode === null) {
      const dead = once(child, "exit");
      child.kill("SIGKILL");
      await dead;
    }
    await this.client.delete(leases, "default", "ray-operator-leader").catch(() => {});
  }

  async leave(): Promise<void> {
    for (const child of this.#programs) child.kill("SIGKILL");
    this.#end.abort(new Error("the stagehand leaves"));
    this.#server.closeAllConnections();
    this.#server.close();
    await this.transport.close();
    await this.controlPlane.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // A proxy is asked for whole URLs, a server for paths.
    const url = new URL(request.url ?? "/", `http://${request.headers.host}`);
    const method = request.method as "GET";
    const asked = { method, dashboard: url.host, path: url.pathname + url.search, timeout: 60_000 };
    try {
      const { status, body } = await this.ray.request({ ...asked, body: await text(request) });
      response.writeHead(status, { "content-type": "application/json" }).end(body);
    } catch {
      response.destroy();
    }
  }

  #runs(pod: Stored<Pod>): void {
    const { uid, labels = {} } = pod.metadata;
    const isHead = labels[LABEL.nodeType] === NODE_TYPE.head;
    if (isHead) {
      realClock.after(50, () => {
        this.ray.start(uid);
        if (pod.spec?.containers.some(({ name }) => name === SUBMITTER_CONTAINER)) void this.#submits(pod);
      });
    } else if (labels[LABEL.nodeType] === undefined) void this.#submits(pod);
  }

  /** Raykeeper's submitter is told all by its environment; of KubeRay's shell script only the id matters here. */
  async #submits(pod: Stored<Pod>): Promise<void> {
    const { signal } = this.#end;
    const sidecar = pod.metadata.labels?.[LABEL.nodeType] === NODE_TYPE.head;
    const end = (exitCode: number) =>
      sidecar
        ? this.kubelet.endContainer(pod.metadata.uid, SUBMITTER_CONTAINER, { exitCode })
        : this.kubelet.end(pod.metadata.uid, { exitCode });
    // Within a Pod the dashboard's address is the same in all: it is this Pod's that is meant.
    const within: RayTransport = {
      request: (request) =>
        this.ray.request(sidecar ? { ...request, dashboard: `${POD_ITSELF}${pod.metadata.uid}` } : request),
    };
    try {
      if (!hasOwnCommand(pod)) {
        await end((await runSubmitter(pod, { boot: 50 }, { clock: realClock, ray: within, signal })).exitCode);
        return;
      }
      const container =
        pod.spec!.containers.find(({ name }) => name === SUBMITTER_CONTAINER) ?? pod.spec!.containers[0]!;
      const value = (name: string) => container.env?.find((each) => each.name === name)?.value ?? "";
      const head = sidecar
        ? this.ray.heads.get(pod.metadata.uid)
        : this.ray.heads.get(this.#headBehind(value("RAY_DASHBOARD_ADDRESS")) ?? "");
      if (!head) return await end(1);
      const id = value("RAY_JOB_SUBMISSION_ID");
      if (!head.jobs.has(id)) this.ray.give(head, { entrypoint: "played", submission_id: id } as SubmitRequest);
      while (!isTerminal(head.jobs.get(id)!.status)) await sleep(realClock, 100, signal);
      await end(0);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  #headBehind(dashboard: string): string | undefined {
    if (dashboard.startsWith(POD_ITSELF)) return dashboard.slice(POD_ITSELF.length);
    const [name = "", namespace = ""] = dashboard.split(".");
    const selector = this.#services.store.get(namespace, name)?.spec?.selector;
    if (!selector) return undefined;
    return this.kubelet.running.find(
      ({ metadata }) =>
        metadata.namespace === namespace &&
        Object.entries(selector).every(([key, value]) => metadata.labels?.[key] === value),
    )?.metadata.uid;
  }
}

/** Asks until it is so; throws with `what` and the end of the log when it never is. */
export async function until(
  what: string,
  holds: () => Promise<boolean>,
  log?: string,
  patience = 180_000,
): Promise<void> {
  const deadline = Date.now() + patience;
  while (!(await holds())) {
    if (Date.now() > deadline) {
      throw new Error(`never ${what}\n${log ? readFileSync(log, "utf8").split("\n").slice(-12).join("\n") : ""}`);
    }
    await sleep(realClock, 200);
  }
}

export const logIn = (folder: string, name: string): string => join(folder, `${name}.log`);
export type Any = Stored<KubeObject & { spec?: Record<string, unknown>; status?: Record<string, unknown> }>;
