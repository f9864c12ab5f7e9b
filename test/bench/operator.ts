/**
 * What the operator costs: memory and CPU of its process with so many RayJobs.
 *
 *   node test/bench/operator.ts [--heap=MiB] 100 1000
 *
 * The operator is a process of its own, with metrics on, without a lease, --reconcile-concurrency 4, on a
 * simkube behind HTTP; kubelet, Ray and the submitters are the simulator's models and live in this process, whose own work
 * is not counted. CPU is the process's own seconds, so other work on the machine spoils it little; the times until
 * something is reached depend on the machine, and on this process.
 *
 * Each RayJob is in K8sJobMode, with a head and a worker, so a thousand are 3,000 Pods. They are made as fast as they
 * start, thirty at a time, run for the time measured, and end likewise. Then the operator is started anew with all of them
 * there. `--heap` is what Node takes for its heap: in a container, half of the memory limit by itself.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { Pod, Service } from "../../src/api/kubernetes.ts";
import { LABEL, NODE_TYPE } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { realClock, sleep } from "../../src/machinery/clock.ts";
import { KubeClient } from "../../src/machinery/kube/client.ts";
import { Informer } from "../../src/machinery/kube/informer.ts";
import { rayJobs, services } from "../../src/machinery/kube/resources.ts";
import type { RayRequest } from "../../src/ray/transport.ts";
import { serve } from "../../src/simkube/http.ts";
import { SimKube } from "../../src/simkube/simkube.ts";
import { FakeKubelet } from "../sim/fakeKubelet.ts";
import { FakeRay, runsForEver } from "../sim/fakeRay.ts";
import { diligent, runSubmitter } from "../sim/fakeSubmitter.ts";
import { CRDS } from "../sim/world.ts";
import { clusterSpec, rayJob } from "../support/manifests.ts";

const DOMAIN = "cluster.test";
/** How long jobs that run are watched running. */
const HEAP = process.argv.find((argument) => argument.startsWith("--heap="))?.slice("--heap=".length);
/** RayJobs that are starting, or ending, at a time: the models around the operator must keep up. */
const AT_A_TIME = 30;
const STEADY_SECONDS = Number(process.env["STEADY"] ?? 120);

class Operator {
  readonly #child: ChildProcess;
  readonly #port: number;
  readonly #log: string;

  private constructor(child: ChildProcess, port: number, log: string) {
    this.#child = child;
    this.#port = port;
    this.#log = log;
  }

  static start(folder: string, kubeconfig: string, dashboards: number): Operator {
    const port = 20_000 + Math.floor(Math.random() * 20_000);
    const log = join(folder, `operator-${port}.log`);
    const output = openSync(log, "a");
    const hook = new URL("../integration/dashboards.js", import.meta.url).href;
    const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
    const flags = [
      "--enable-metrics",
      `--metrics-addr=127.0.0.1:${port}`,
      `--health-probe-bind-address=127.0.0.1:${port + 1}`,
    ];
    const child = spawn(
      "setpriv",
      [
        ...["--pdeathsig", "KILL", process.execPath],
        ...(HEAP ? [`--max-old-space-size=${HEAP}`] : []),
        "--import",
        hook,
        main,
        "operator",
        "--kubeconfig",
        kubeconfig,
        "--reconcile-concurrency=4",
        ...flags,
        "--enable-leader-election=false",
      ],
      {
        stdio: ["ignore", output, output],
        env: { ...process.env, CLUSTER_DOMAIN: DOMAIN, RAYKEEPER_TEST_DASHBOARDS: String(dashboards) },
      },
    );
    return new Operator(child, port, log);
  }

  async ready(): Promise<void> {
    while (this.#child.exitCode === null) {
      const answer = await fetch(`http://127.0.0.1:${this.#port + 1}/readyz`).catch(() => undefined);
      if (answer?.ok) return;
      await sleep(realClock, 50);
    }
    throw new Error(`the operator ended:\n${readFileSync(this.#log, "utf8").slice(-2000)}`);
  }

  /** Sums of all series of a name, by name. */
  async metrics(): Promise<Map<string, number>> {
    const body = await (await fetch(`http://127.0.0.1:${this.#port}/metrics`)).text();
    const sums = new Map<string, number>();
    for (const line of body.split("\n")) {
      const [, name, value] = /^(\w+)(?:\{.*\})? (\S+)$/.exec(line) ?? [];
      if (name && value) sums.set(name, (sums.get(name) ?? 0) + Number(value));
    }
    sums.set("scrape_bytes", body.length);
    return sums;
  }

  /** Now, and at its most: MiB. */
  memory(): { now: number; peak: number } {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, "utf8");
    const read = (key: string) => Number(new RegExp(`^${key}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) / 1024;
    return { now: read("VmRSS"), peak: read("VmHWM") };
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGTERM");
    await ended;
  }
}

type IsSo = (job: Stored<RayJob>) => boolean;

/** The cluster around the operator. */
async function world(folder: string) {
  const kube = new SimKube({ clock: realClock, crds: CRDS, history: 200_000 });
  kube.runControllers();
  const served = await serve(kube);
  const client = new KubeClient(kube.transport);
  const end = new AbortController();
  const headServices = new Informer<Service>({ client, clock: realClock, type: services });
  const jobs = new Informer<RayJob>({ client, clock: realClock, type: rayJobs });
  const running = new Map<string, Stored<Pod>>();
  const headOf = (dashboard: string): string | undefined => {
    const [name = "", namespace = ""] = dashboard.split(".");
    const cluster = headServices.store.get(namespace, name)?.spec?.selector?.[LABEL.cluster];
    return cluster === undefined ? undefined : running.get(`${namespace}/${cluster}`)?.metadata.uid;
  };
  const ray = new FakeRay({ clock: realClock, resolve: headOf, script: () => runsForEver });
  const keyOf = ({ metadata: { namespace, labels } }: Stored<Pod>) => `${namespace}/${labels?.[LABEL.cluster]}`;
  const submitters = new Map<string, AbortController>();
  const kubelet = new FakeKubelet({
    transport: kube.transport,
    clock: realClock,
    onRunning(pod) {
      const { uid, labels = {} } = pod.metadata;
      if (labels[LABEL.nodeType] === NODE_TYPE.head) {
        running.set(keyOf(pod), pod);
        realClock.after(500, () => ray.start(uid));
      } else if (labels[LABEL.nodeType] === undefined) {
        const gone = new AbortController();
        submitters.set(uid, gone);
        runSubmitter(pod, { ...diligent, every: 5000 }, { clock: realClock, ray, signal: gone.signal }).then(
          (end) => kubelet.end(uid, end),
          () => {},
        );
      }
    },
    onEnded(pod) {
      const { uid } = pod.metadata;
      submitters.get(uid)?.abort();
      if (running.get(keyOf(pod))?.metadata.uid === uid) running.delete(keyOf(pod));
      ray.stop(uid);
    },
  });
  for (const part of [kubelet, headServices, jobs]) part.start(end.signal);
  const dashboards = createServer(async (request, response) => {
    const asked = { dashboard: request.headers.host ?? "", path: request.url ?? "/", method: request.method };
    try {
      const { status, body } = await ray.request({
        ...asked,
        body: await text(request),
        timeout: 60_000,
      } as RayRequest);
      response.writeHead(status, { "content-type": "application/json" }).end(body);
    } catch {
      response.destroy();
    }
  });
  // As Ray's.
  dashboards.keepAliveTimeout = 75_000;
  await once(dashboards.listen(0, "127.0.0.1"), "listening");
  const kubeconfig = join(folder, "kubeconfig");
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "bench",
      clusters: [{ name: "bench", cluster: { server: served.address } }],
      users: [{ name: "bench", user: {} }],
      contexts: [{ name: "bench", context: { cluster: "bench", user: "bench" } }],
    }),
  );
  return {
    kubeconfig,
    client,
    jobs,
    port: (dashboards.address() as { port: number }).port,
    jobsInRay: () => [...ray.heads.values()].flatMap((head) => [...head.jobs.values()].map((job) => ({ head, job }))),
    /** Does something to each of so many, a few at a time, and resolves when all RayJobs are so. */
    async each(count: number, act: (number: number) => Promise<void> | void, what: string, isSo: IsSo): Promise<void> {
      const so = new Set<string>();
      let wake = () => {};
      jobs.onChange(({ new: job }) => {
        if (!job || !isSo(job)) return;
        so.add(job.metadata.uid);
        wake();
      });
      for (let number = 0; so.size < count; ) {
        const more = Promise.withResolvers<void>();
        wake = more.resolve;
        if (number < count && number < so.size + AT_A_TIME) await act(number++);
        else if (so.size < count) await more.promise;
        if (number % 100 === 0) process.stderr.write(`\r${so.size} of ${count} ${what}   `);
      }
    },
    async close() {
      end.abort();
      dashboards.closeAllConnections();
      dashboards.close();
      await served.close();
    },
  };
}

interface Measured {
  readonly seconds: number;
  readonly cpu: number;
  readonly requests: number;
  readonly polls: number;
}

async function during(operator: Operator, act: () => Promise<unknown>): Promise<Measured> {
  const [before, from] = [await operator.metrics(), performance.now()];
  await act();
  const [after, to] = [await operator.metrics(), performance.now()];
  const grown = (name: string) => (after.get(name) ?? 0) - (before.get(name) ?? 0);
  return {
    seconds: (to - from) / 1000,
    cpu: grown("process_cpu_seconds_total"),
    requests: grown("rest_client_requests_total"),
    polls: grown("raykeeper_dashboard_polls_total"),
  };
}

async function measure(count: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "raykeeper-bench-"));
  const cluster = await world(folder);
  let operator = Operator.start(folder, cluster.kubeconfig, cluster.port);
  const row = (what: string, { seconds, cpu, requests, polls }: Measured, memory = operator.memory()) => {
    const cells = [
      `${count}`,
      what,
      `${seconds.toFixed(1)} s`,
      `${cpu.toFixed(1)} s (${((cpu / seconds) * 1000).toFixed(0)}m)`,
      `${memory.now.toFixed(0)} MiB, peak ${memory.peak.toFixed(0)}`,
      `${(requests / seconds).toFixed(1)}/s`,
      `${(polls / seconds).toFixed(1)}/s`,
    ];
    process.stdout.write(`| ${cells.join(" | ")} |\n`);
  };
  try {
    await operator.ready();
    await sleep(realClock, 5000);
    row("nothing there", await during(operator, () => sleep(realClock, 10_000)));
    const create = async (number: number) => {
      await cluster.client.create(rayJobs, rayJob({ rayClusterSpec: clusterSpec(1) }, `job-${number}`));
    };
    const running: IsSo = ({ status }) => status?.jobStatus === "RUNNING";
    row("made, until all run", await during(operator, () => cluster.each(count, create, "running", running)));
    await sleep(realClock, 30_000);
    row("all running", await during(operator, () => sleep(realClock, STEADY_SECONDS * 1000)));
    const released = ({ status }: Stored<RayJob>) =>
      status?.jobDeploymentStatus === "Complete" &&
      status.conditions?.find(({ type }) => type === "ResourcesReleased")?.status === "True";
    const inRay = cluster.jobsInRay();
    const end = (number: number) => inRay[number]!.head.end(inRay[number]!.job, "SUCCEEDED");
    row("ended, until all are released", await during(operator, () => cluster.each(count, end, "over", released)));
    await sleep(realClock, 10_000);
    row("all over", await during(operator, () => sleep(realClock, 60_000)));
    process.stdout.write(
      `${count}: a scrape has ${((await operator.metrics()).get("scrape_bytes")! / 1024).toFixed(0)} KiB\n`,
    );
    await operator.stop();
    const from = performance.now();
    operator = Operator.start(folder, cluster.kubeconfig, cluster.port);
    await operator.ready();
    await sleep(realClock, 10_000);
    const cpu = (await operator.metrics()).get("process_cpu_seconds_total")!;
    row("a new process with all of them there, 10 s after it is ready", {
      seconds: (performance.now() - from) / 1000,
      cpu,
      requests: (await operator.metrics()).get("rest_client_requests_total") ?? 0,
      polls: 0,
    });
  } finally {
    await operator.stop().catch(() => {});
    await cluster.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

// The real clock's timers keep no process alive.
const alive = setInterval(() => {}, 60_000);
process.stdout.write(
  "| RayJobs | | took | CPU of the operator | memory (RSS) | API requests | polls of Ray |\n|---|---|---|---|---|---|---|\n",
);
for (const count of process.argv.slice(2).map(Number).filter(Number.isInteger)) await measure(count);
clearInterval(alive);
process.exit(0);
