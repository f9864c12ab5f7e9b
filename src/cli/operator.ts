/**
 * `raykeeper operator`: the operator as a process of its own, the same in production and in the embedded cluster.
 *
 * Reads what the administrator chose, opens log, health and metrics, starts the operator, and tells by its exit code how
 * it ended: 0 in good order, 1 when it could not go on (the lease was lost), 2 when it could not start.
 * Next: wiring.ts has the operator itself; config.ts the choices.
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { type Config, ConfigError, configFlags, configFrom } from "../config.ts";
import { Journal } from "../journal.ts";
import { realClock } from "../machinery/clock.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { noMetrics } from "../machinery/metrics.ts";
import { Vitals } from "../machinery/vitals.ts";
import { httpRayTransport } from "../ray/http.ts";
import { DASHBOARDS_AT_A_TIME } from "../ray/poller.ts";
import { proxyRayTransport } from "../ray/proxy.ts";
import type { RayTransport } from "../ray/transport.ts";
import { liveness, readiness } from "../serve/health.ts";
import { servePages } from "../serve/http.ts";
import { makeLog, type Sink } from "../serve/log.ts";
import { PrometheusMetrics } from "../serve/metrics.ts";
import { measure } from "../serve/rayMetrics.ts";
import { SUBMITTER_PROGRAM, VERSION } from "../shipped.ts";
import { startWebhook } from "../webhook/start.ts";
import { startOperator } from "../wiring.ts";
import { connect } from "./connect.ts";
import { CannotRun, messageOf } from "./failure.ts";
import { checkServerVersion } from "./serverVersion.ts";
import type { Ending } from "./signals.ts";

/** As commander spells them: flags of config.ts in camel case, and the two that say which cluster. */
export type OperatorOptions = Readonly<Record<string, string | undefined>> & {
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly config?: string;
};

/** Milliseconds in which every API server hears that this replica leaves, and asks it no more. */
const WEBHOOK_LINGERS = 5_000;

/** `stdout`: where the log goes instead of standard output. */
export async function operator(options: OperatorOptions, ending: Ending, stdout?: Sink): Promise<number> {
  const config = readConfig(options);
  const log = openLog(config, stdout);
  for (const warning of config.warnings) log.warn({}, warning);
  const { transport, server, namespace, close } = connect({ ...options, inClusterFirst: true });
  const identity = `${hostname()}_${randomUUID()}`;
  log.info({ version: VERSION, server, identity, node: process.versions.node }, "the operator starts");

  try {
    await checkServerVersion(config, transport);
  } catch (error) {
    await close();
    throw error;
  }

  const metrics = config.enableMetrics ? new PrometheusMetrics({ host: new URL(server).host }) : undefined;
  const vitals = new Vitals();
  const journal = new Journal({ client: new KubeClient(transport), clock: realClock, log });
  const ray = config.useKubernetesProxy ? throughApiServer(options) : httpRayTransport();
  const running = startOperator({
    transport,
    clock: realClock,
    config,
    rayTransport: ray,
    log,
    metrics: metrics ?? noMetrics,
    vitals,
    identity,
    namespace,
    journal,
    signal: ending.signal,
  });
  if (metrics) measure(metrics, running, realClock);
  const webhook = startWebhook({ config, transport, clock: realClock, log, metrics: metrics ?? noMetrics, namespace });
  ending.signal.addEventListener("abort", () => log.info({}, "asked to end; finishing what is under way"));

  const serving = await Promise.all([
    serve("--health-probe-bind-address", config.probeAddress, {
      "/healthz": () => liveness(vitals, log),
      "/readyz": () => readiness([...running.checks, ...(webhook ? [webhook.check] : [])]),
    }),
    serve("--metrics-addr", config.metricsAddress, {
      "/metrics": async () =>
        metrics
          ? { type: metrics.registry.contentType, body: await metrics.registry.metrics() }
          : { body: "# Metrics are off; start the operator with --enable-metrics.\n" },
    }),
  ]);
  // The real clock keeps no process alive, and an operator whose watches are all broken must live on.
  const alive = setInterval(() => {}, 60_000);
  try {
    await running.done;
    log.info({}, "the operator has ended in good order");
    return 0;
  } catch (error) {
    log.error({ error }, "the operator could not go on");
    return 1;
  } finally {
    // The lease is given back by now, so that nobody waits for this.
    await webhook?.close(ending.signal.aborted ? WEBHOOK_LINGERS : 0);
    clearInterval(alive);
    await Promise.allSettled([...serving.map((each) => each?.close()), ray.close(), close()]);
  }
}

/** Has connections of its own: a dashboard that hangs must not hold up a write, or the lease. */
function throughApiServer(options: OperatorOptions): RayTransport & { close(): Promise<void> } {
  const { transport, close } = connect({ ...options, inClusterFirst: true, connections: DASHBOARDS_AT_A_TIME });
  return { ...proxyRayTransport(transport), close };
}

function readConfig(options: OperatorOptions) {
  const flags: Record<string, string> = {};
  for (const { name } of configFlags) {
    const value = options[name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase())];
    if (value !== undefined) flags[name] = value;
  }
  let file: string | undefined;
  try {
    file = options.config === undefined ? undefined : readFileSync(options.config, "utf8");
  } catch (error) {
    throw new CannotRun(`cannot read the configuration file ${options.config}: ${messageOf(error)}`);
  }
  try {
    return configFrom({ flags, file, env: process.env, submitterProgram: SUBMITTER_PROGRAM });
  } catch (error) {
    if (error instanceof ConfigError)
      throw new CannotRun(`the configuration is wrong:\n  ${error.problems.join("\n  ")}`);
    throw error;
  }
}

function openLog({ log }: Config, stdout: Sink | undefined) {
  try {
    return makeLog(log, stdout);
  } catch (error) {
    throw new CannotRun(`cannot write the log file ${log.file}: ${messageOf(error)}`, "Give another --log-file-path.");
  }
}

async function serve(flag: string, address: string, pages: Parameters<typeof servePages>[1]) {
  try {
    return await servePages(address, pages);
  } catch (error) {
    throw new CannotRun(
      `cannot serve on ${address}: ${messageOf(error)}`,
      `Give another address with ${flag}, or 0 for none.`,
    );
  }
}
