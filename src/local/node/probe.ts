/**
 * Probes: when to ask, what the answers mean together, and how one is asked.
 */
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { connect } from "node:net";
import type { Container, Probe } from "../../api/kubernetes.ts";
import { type Duration, seconds } from "../../domain/time.ts";

export type ProbeKind = "startup" | "liveness" | "readiness";

/** Answers in a row, and what they amounted to last. */
export interface Tally {
  readonly successes: number;
  readonly failures: number;
  readonly verdict: boolean;
}

/** Before any answer a container is alive, but neither started nor ready. */
export const initialTally = (kind: ProbeKind): Tally => ({ successes: 0, failures: 0, verdict: kind === "liveness" });

/** The tally after one more answer: the verdict turns only when a threshold is reached. */
export function count(tally: Tally, success: boolean, probe: Probe): Tally {
  const successes = success ? tally.successes + 1 : 0;
  const failures = success ? 0 : tally.failures + 1;
  const verdict =
    successes >= (probe.successThreshold ?? 1)
      ? true
      : failures >= (probe.failureThreshold ?? 3)
        ? false
        : tally.verdict;
  return { successes, failures, verdict };
}

export interface Timing {
  readonly initialDelay: Duration;
  readonly period: Duration;
  readonly timeout: Duration;
}

export function timing(probe: Probe): Timing {
  return {
    initialDelay: seconds(probe.initialDelaySeconds ?? 0),
    period: seconds(Math.max(1, probe.periodSeconds ?? 10)),
    timeout: seconds(Math.max(1, probe.timeoutSeconds ?? 1)),
  };
}

/** Undefined: it is well. Otherwise what is wrong, in kubelet's words. */
export type Answer = string | undefined;

export interface Prober {
  readonly podIP: string;
  /** Runs a command in the container. */
  execute(argv: readonly string[], timeout: Duration): Promise<{ code: number | undefined; output: string }>;
}

/** Asks once. Never throws. */
export async function ask(probe: Probe, container: Container, prober: Prober): Promise<Answer> {
  const { timeout } = timing(probe);
  try {
    if (probe.exec) {
      const { code, output } = await prober.execute(probe.exec.command ?? [], timeout);
      if (code === 0) return undefined;
      return code === undefined
        ? `command timed out: ${probe.exec.command?.join(" ")} after ${timeout / 1000}s`
        : output.trim() || `exit code ${code}`;
    }
    if (probe.httpGet) return await askHttp(probe.httpGet, container, prober.podIP, timeout);
    if (probe.tcpSocket) {
      const { host = prober.podIP, port } = probe.tcpSocket;
      return await askTcp(host, portNumber(port, container), timeout);
    }
    return "the local node knows exec, httpGet and tcpSocket probes only";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function portNumber(port: string | number, container: Container): number {
  const named = container.ports?.find((candidate) => candidate.name === port)?.containerPort;
  const number = named ?? Number(port);
  if (!Number.isInteger(number)) throw new Error(`the container has no port named "${port}"`);
  return number;
}

function askHttp(
  get: NonNullable<Probe["httpGet"]>,
  container: Container,
  podIP: string,
  timeout: Duration,
): Promise<Answer> {
  const request = get.scheme === "HTTPS" ? httpsRequest : httpRequest;
  return new Promise((resolve) => {
    const asked = request(
      {
        host: get.host ?? podIP,
        port: portNumber(get.port, container),
        path: get.path ?? "/",
        headers: {
          "user-agent": "kube-probe/1.35",
          ...Object.fromEntries((get.httpHeaders ?? []).map(({ name, value }) => [name, value])),
        },
        agent: false,
        rejectUnauthorized: false,
        signal: AbortSignal.timeout(timeout),
      },
      (response) => {
        response.destroy();
        const { statusCode = 0 } = response;
        const well = statusCode >= 200 && statusCode < 400;
        resolve(well ? undefined : `HTTP probe failed with statuscode: ${statusCode}`);
      },
    );
    asked.once("error", (error) => {
      const late = error.name === "AbortError" || error.name === "TimeoutError";
      resolve(`Get "${get.path ?? "/"}": ${late ? `no answer within ${timeout / 1000}s` : error.message}`);
    });
    asked.end();
  });
}

function askTcp(host: string, port: number, timeout: Duration): Promise<Answer> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout });
    const done = (answer: Answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => done(undefined));
    socket.once("timeout", () => done(`dial tcp ${host}:${port}: i/o timeout`));
    socket.once("error", (error) => done(`dial tcp ${host}:${port}: ${error.message}`));
  });
}
