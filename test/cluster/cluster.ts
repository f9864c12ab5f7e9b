/**
 * A namespace of the one-node cluster as scenarios see it: what ../support/liveCluster.ts has, and what only real parts
 * have: a container runtime, a kubelet's logs, an operator in Pods of its own.
 */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import type { Event, Pod } from "../../src/api/kubernetes.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { realClock } from "../../src/machinery/clock.ts";
import { isNotFound } from "../../src/machinery/kube/errors.ts";
import { Informer } from "../../src/machinery/kube/informer.ts";
import { events, namespaces, pods, resourcePath } from "../../src/machinery/kube/resources.ts";
import { type Finished, run, type StartOptions } from "../e2e/command.ts";
import { type Gate, gatedRayJob } from "../support/gate.ts";
import { LiveCluster } from "../support/liveCluster.ts";
import { OPERATOR, TEST_LABEL } from "./operator.ts";

const execute = promisify(execFile);

export class NodeCluster extends LiveCluster {
  /** The operator's own Pods. */
  readonly operators: Informer<Pod>;

  constructor(namespace: string) {
    super(inject("kubeconfig"), namespace);
    this.operators = this.observe(
      new Informer<Pod>({
        client: this.client,
        type: pods,
        clock: realClock,
        namespaces: [OPERATOR.namespace],
        labelSelector: OPERATOR.selector,
      }),
    );
  }

  async open(labels: Readonly<Record<string, string>> = {}): Promise<void> {
    const metadata = { name: this.namespace, labels: { [TEST_LABEL]: "scenarios", ...labels } };
    await this.client.create(namespaces, { metadata } as KubeObject);
  }

  kubectl(args: readonly string[], options?: StartOptions): Promise<Finished> {
    return run(inject("tools").kubectl, ["--kubeconfig", this.kubeconfig, "-n", this.namespace, ...args], options);
  }

  /** What kubectl printed; it must have worked. */
  async kubectlSays(args: readonly string[], options?: StartOptions): Promise<string> {
    const { code, stdout, stderr } = await this.kubectl(args, options);
    expect(code, `kubectl ${args.join(" ")}: ${stderr}`).toBe(0);
    return stdout;
  }

  /** SIGKILL to a container's first process, by the container runtime, behind the kubelet's back. */
  async killContainer(pod: Stored<Pod>, container: string): Promise<void> {
    const { ctr, socket } = inject("tools");
    const args = ["--address", socket, "--namespace", "k8s.io", "tasks", "kill", "--signal", "SIGKILL"];
    await execute(ctr, [...args, containerId(pod, container)]);
  }

  /** SIGKILL to processes in a Pod, by what their command line says, as the kernel does when memory runs out. */
  killProcesses(pod: Stored<Pod>, command: RegExp): number {
    const found = this.processes(pod).filter((each) => command.test(each.command));
    for (const { pid } of found) process.kill(pid, "SIGKILL");
    return found.length;
  }

  /** What runs in a Pod's containers, as the host sees it. */
  processes(pod: Stored<Pod>): { readonly pid: number; readonly command: string }[] {
    const ids = (pod.status?.containerStatuses ?? []).map(({ name }) => containerId(pod, name));
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid) => {
        try {
          const groups = readFileSync(`/proc/${pid}/cgroup`, "utf8");
          if (!ids.some((id) => groups.includes(id))) return [];
          const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
          return [{ pid: Number(pid), command }];
        } catch {
          // It ended while we looked.
          return [];
        }
      });
  }

  /** Of a Pod that there is. */
  async log(pod: Stored<Pod>, query: Readonly<Record<string, string>> = {}): Promise<string> {
    const { namespace, name } = pod.metadata;
    return String(await this.client.raw(resourcePath(pods, namespace, name, "log"), query));
  }

  /** The lines of a container until it ends, even if its Pod is taken away then. */
  async followLog({ metadata: { namespace, name } }: Stored<Pod>): Promise<string[]> {
    const lines: string[] = [];
    for await (const line of await this.client.rawLines(resourcePath(pods, namespace, name, "log"), {
      follow: "true",
    })) {
      lines.push(line);
    }
    return lines;
  }

  /** `Warning HeadPodLost: …`, of everything in the namespace or of one object, oldest first. */
  async events(about?: Stored): Promise<string[]> {
    const { items } = await this.client.listAll<Event>(events, { namespace: this.namespace });
    return items
      .filter(({ regarding }) => !about || regarding?.uid === about.metadata.uid)
      .sort((one, other) => timeOf(one).localeCompare(timeOf(other)))
      .map(
        (event) =>
          `${timeOf(event)} ${event.type} ${event.reason} ${about ? "" : `${event.regarding?.kind}/${event.regarding?.name} `}${event.note}`,
      );
  }

  /** All that could tell why a scenario failed: objects with their conditions, events, what the operator logged. */
  async story(): Promise<string> {
    const told = async (what: Promise<readonly string[]>) =>
      what.catch((error: unknown) => [`cannot be read: ${error}`]);
    const conditions = this.rayJobs.store
      .list(this.namespace)
      .flatMap(({ metadata, status }) => [
        ...(status?.conditions ?? []).map(
          ({ type, status: is, reason, message, lastTransitionTime: at }) =>
            `  RayJob ${metadata.name} ${type}=${is} since ${at}: ${reason}: ${message}`,
        ),
        ...(status?.attempts ?? []).map((record) => `  RayJob ${metadata.name} attempt ${JSON.stringify(record)}`),
      ]);
    const podLines = this.pods.store
      .list(this.namespace)
      .map(({ metadata, status }) => `  Pod ${metadata.name} ${JSON.stringify(status?.containerStatuses)}`);
    const lastWords = await Promise.all(this.pods.store.list(this.namespace).map((pod) => this.#lastWords(pod)));
    return [
      `The story of namespace ${this.namespace}:`,
      this.describe(),
      ...conditions,
      ...podLines,
      ...lastWords.flat().map((line) => `  ${line}`),
      "Events:",
      ...(await told(this.events())).map((line) => `  ${line}`),
      "The operator:",
      ...(await told(this.operatorLog())).map((line) => `  ${line}`),
    ].join("\n");
  }

  /** Of containers that ended badly. */
  async #lastWords(pod: Stored<Pod>): Promise<string[]> {
    const ends = (pod.status?.containerStatuses ?? []).filter(
      ({ state, lastState }) => (state?.terminated ?? lastState?.terminated)?.exitCode,
    );
    const words = ends.map(async ({ name, state }) => {
      const query = { container: name, tailLines: "15", previous: String(!state?.terminated) };
      const text = await this.log(pod, query).catch((error: unknown) => String(error));
      return text.split("\n").map((line) => `${pod.metadata.name}/${name}: ${line}`);
    });
    return (await Promise.all(words)).flat();
  }

  /** What the operator's replicas logged about this namespace, and their errors. */
  async operatorLog(): Promise<string[]> {
    const lines = await Promise.all(
      this.operators.store.list().map(async (pod) => {
        const text = await this.log(pod, { sinceSeconds: "900" }).catch((error: unknown) => String(error));
        const concerns = (line: string) =>
          line.includes(`${this.namespace}/`) || /"level":"?(error|warn|50|40)/.test(line);
        return text
          .split("\n")
          .filter(concerns)
          .slice(-80)
          .map((line) => `${pod.metadata.name}: ${line.slice(0, 600)}`);
      }),
    );
    return lines.flat();
  }

  /** What the user of an interactive RayJob does once its cluster waits for him, from the head for want of a Ray here. */
  async submitByHand(name: string, id: string, ...program: string[]): Promise<void> {
    const waiting = await this.phase(name, "Waiting");
    const there = ["--address", "http://127.0.0.1:8265", "--submission-id", id, "--no-wait"];
    await this.rayOnHead(waiting, "job", "submit", ...there, "--", ...program);
    const patch = JSON.stringify({ spec: { jobId: id } });
    await this.kubectlSays(["patch", "rayjob", name, "--type", "merge", "-p", patch]);
  }

  /** Ray's command line, in the head's container. */
  rayOnHead(job: Stored<RayJob>, ...args: string[]): Promise<string> {
    return this.kubectlSays(["exec", this.head(job)!.metadata.name, "-c", "ray-head", "--", "ray", ...args]);
  }
}

export const isReady = ({ metadata, status }: Stored<Pod>): boolean =>
  !metadata.deletionTimestamp &&
  (status?.conditions ?? []).some((condition) => condition.type === "Ready" && condition.status === "True");

const timeOf = ({ eventTime, deprecatedFirstTimestamp, metadata }: Event): string =>
  (eventTime ?? deprecatedFirstTimestamp ?? metadata.creationTimestamp ?? "").slice(0, 19);

/** As the runtime knows it. */
function containerId({ metadata, status }: Stored<Pod>, container: string): string {
  const id = status?.containerStatuses?.find(({ name }) => name === container)?.containerID;
  if (!id) throw new Error(`Pod ${metadata.name} has no container ${container} that ever ran`);
  return id.slice(id.indexOf("://") + 3);
}

/** A namespace for one file of scenarios, with labels of its own; it goes with all in it. */
export function useCluster(name: string, labels?: Readonly<Record<string, string>>): NodeCluster {
  const cluster = new NodeCluster(`${name}-${process.pid}`);
  beforeAll(() => cluster.open(labels));
  afterAll(async () => {
    await cluster.client.delete(namespaces, undefined, cluster.namespace).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
    await cluster.close();
  });
  return cluster;
}

/** A test that tells the story of what it has seen when it fails, before anything is cleared away. */
export function scenario(cluster: NodeCluster, title: string, act: (seen: (what: string) => void) => Promise<void>) {
  it(title, async () => {
    try {
      await act((what) => console.log(`[cluster] ${title}: ${what}`));
    } catch (error) {
      // A second try may be the one that the summary tells of.
      console.log(`[cluster] ${title}: failed: ${error}\n${await cluster.story()}`);
      throw error;
    }
  });
}

/** Since a moment, for what a scenario tells that it has seen. */
export function stopwatch(): () => string {
  const started = performance.now();
  return () => `${((performance.now() - started) / 1000).toFixed(1)} s`;
}

/** A job on one small head: two cores have to do for all that runs. */
export function smallRayJob(name: string, spec: Partial<RayJobSpec>, gate?: Gate): RayJob {
  return small(gatedRayJob(name, spec, gate));
}

/** The same with requests so small that two scenarios fit on one node, whatever it was written for. */
export function small<T extends RayJob | KubeObject>(object: T): T {
  const copy = structuredClone(object) as T & { spec?: Record<string, unknown> };
  const cluster = (copy.kind === "RayCluster" ? copy.spec : copy.spec?.["rayClusterSpec"]) as
    | RayJobSpec["rayClusterSpec"]
    | undefined;
  for (const group of cluster ? [cluster.headGroupSpec, ...(cluster.workerGroupSpecs ?? [])] : []) {
    for (const container of group.template.spec?.containers ?? []) {
      const { cpu: _, ...limits } = container.resources?.limits ?? {};
      container.resources = { requests: { cpu: "50m", memory: "256Mi" }, limits };
      container.imagePullPolicy = "IfNotPresent";
    }
  }
  return copy;
}
