/**
 * An embedded cluster, from inside its sandbox: the program that runs as its first process.
 *
 * API server and node share this process; the operator is one of its own, as in production. When this process ends, so
 * does everything in the sandbox.
 * Next: node/node.ts runs Pods; ../simkube is the API server; cluster.ts is the half outside.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import type { Server } from "node:net";
import { dirname, join } from "node:path";
import { pino } from "pino";
import { crds } from "../api/crds.ts";
import { realClock } from "../machinery/clock.ts";
import { badRequest } from "../simkube/errors.ts";
import { serve } from "../simkube/http.ts";
import type { LogOptions } from "../simkube/requests.ts";
import { SimKube } from "../simkube/simkube.ts";
import type { Begin, ToInside, ToOutside } from "./messages.ts";
import { NSSWITCH, RESOLV } from "./node/files.ts";
import { hostsFile } from "./node/names.ts";
import { LocalNode } from "./node/node.ts";
import { processRuntime } from "./node/runtime.ts";
import { OperatorProcess } from "./operatorProcess.ts";
import type { RayEnvironment } from "./rayEnvironment.ts";
import { relay } from "./relay.ts";
import { throughService } from "./serviceProxy.ts";

const SUBNET = "10.244";
const BRIDGE = "raykeeper0";
const API_PORT = 6443;
const DOMAIN = "cluster.local";

const log = pino({ level: process.env["RAYKEEPER_LOG_LEVEL"] ?? "info", base: { part: "local" } });
const tell = (message: ToOutside) => void process.send?.(message);

const pulls = new Map<
  string,
  { promise: Promise<RayEnvironment>; resolve(ray: RayEnvironment): void; reject(error: Error): void }
>();
let operator: OperatorProcess | undefined;

process.on("message", (message: ToInside, handle) => {
  hear(message, handle as Server | undefined).catch((error: Error & { remedy?: string }) => {
    log.error({ error: error.stack }, "the embedded cluster failed");
    tell({ kind: "failed", message: `the embedded cluster could not start: ${error.message}`, remedy: error.remedy });
  });
});
// Whoever started this is gone.
process.on("disconnect", () => process.exit(0));
for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(name, () => process.exit(0));
tell({ kind: "here" });

async function hear(message: ToInside, entrance: Server | undefined): Promise<void> {
  switch (message.kind) {
    case "begin":
      await begin(message, entrance!);
      return tell({ kind: "ready" });
    case "pulled": {
      const waiting = pulls.get(message.version);
      if (message.ray) waiting?.resolve(message.ray);
      else {
        // The next Pod may have more luck.
        pulls.delete(message.version);
        waiting?.reject(new Error(message.error ?? "no reason given"));
      }
      return;
    }
    case "signalOperator":
      await operator?.signal(message.signal);
      return tell({ kind: "answer", id: message.id });
    case "startOperator":
      operator?.start();
      return tell({ kind: "answer", id: message.id });
    case "stop":
      process.exit(0);
  }
}

async function begin({ folder, python, certificate, ...options }: Begin, entrance: Server): Promise<void> {
  const state = join(folder, "state");
  furnish(state);
  const runtime = processRuntime(python);
  let node: LocalNode | undefined;
  const simkube = new SimKube({
    clock: realClock,
    crds: crds(),
    podLogs: (namespace, name, wanted) => podLog(node, namespace, name, wanted),
    serviceProxy: (to, request) => throughService(simkube.transport, DOMAIN)(to, request),
  });
  simkube.runControllers();
  await serve(simkube, { host: `${SUBNET}.0.1`, port: API_PORT });
  relay(entrance, certificate, { host: `${SUBNET}.0.1`, port: API_PORT });
  node = new LocalNode({
    transport: simkube.transport,
    clock: realClock,
    runtime,
    log,
    folder: state,
    // The cache as a whole: other clusters' kubeconfigs are in it too.
    hide: [dirname(dirname(folder))],
    subnet: SUBNET,
    bridge: BRIDGE,
    domain: DOMAIN,
    hostsFile: join(state, "hosts"),
    pull,
  });
  await node.start(new AbortController().signal);
  if (options.operator) {
    operator = new OperatorProcess({
      folder,
      server: `http://${SUBNET}.0.1:${API_PORT}`,
      arguments: options.operatorArguments,
      log,
    });
    operator.start();
  }
}

/** Makes the sandbox a place for Pods: files in memory, a network, and names of the cluster's own. */
function furnish(state: string): void {
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { stdio: ["ignore", "ignore", "pipe"] });
  mkdirSync(state, { recursive: true });
  run("mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", state);
  const own = { hosts: hostsFile([], []), "resolv.conf": RESOLV, "nsswitch.conf": NSSWITCH };
  for (const [name, text] of Object.entries(own)) {
    writeFileSync(join(state, name), text);
    try {
      run("mount", "--bind", join(state, name), `/etc/${name}`);
    } catch (error) {
      // Only the hosts file is needed; the others merely keep a question from waiting for an answer.
      if (name === "hosts") throw error;
    }
  }
  run("ip", "link", "set", "lo", "up");
  run("ip", "link", "add", BRIDGE, "type", "bridge");
  run("ip", "address", "add", `${SUBNET}.0.1/16`, "dev", BRIDGE);
  run("ip", "link", "set", BRIDGE, "up");
}

/** Asks outside for a Ray: only there is a way to PyPI. */
function pull(version: string): Promise<RayEnvironment> {
  const known = pulls.get(version);
  if (known) return known.promise;
  const asked = Promise.withResolvers<RayEnvironment>();
  pulls.set(version, asked);
  tell({ kind: "pull", version });
  return asked.promise;
}

function podLog(node: LocalNode | undefined, namespace: string, name: string, wanted: LogOptions) {
  const container = wanted.container ?? "";
  const found = node?.log(namespace, name, container, wanted.previous);
  if (!found) {
    const what = wanted.previous ? "previous terminated container" : "container";
    const why = wanted.previous ? "not found" : "is waiting to start";
    throw badRequest(`${what} "${container}" in pod "${name}" ${why}`);
  }
  return found.read(wanted);
}
