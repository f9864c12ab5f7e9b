import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Probe } from "../../api/kubernetes.ts";
import { ask, count, initialTally, type ProbeKind, type Prober } from "./probe.ts";

const verdicts = (kind: ProbeKind, probe: Probe, answers: string) => {
  let tally = initialTally(kind);
  return [...answers].map((answer) => {
    tally = count(tally, answer === "+", probe);
    return tally.verdict ? "+" : "-";
  });
};

describe("what a probe's answers amount to", () => {
  it("turns only when a threshold is reached", () => {
    const probe = { successThreshold: 2, failureThreshold: 3 };
    expect(verdicts("readiness", probe, "+-++--+---+").join("")).toBe("---++++++--");
  });

  it("begins as alive for liveness, and as not ready for readiness", () => {
    expect(verdicts("liveness", {}, "--").join("")).toBe("++");
    expect(verdicts("readiness", {}, "-").join("")).toBe("-");
  });
});

describe("asking once", () => {
  const server = createServer((request, response) => {
    if (request.url === "/hang") return;
    response.writeHead(request.url === "/well" ? 204 : 503).end();
  });
  let port = 0;
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  const exec = (code: number | undefined, output = ""): Prober => ({
    podIP: "127.0.0.1",
    execute: async () => ({ code, output }),
  });
  const container = () => ({ name: "c", ports: [{ name: "web", containerPort: port }] });

  it("takes any 2xx or 3xx for well, and names another status", async () => {
    expect(await ask({ httpGet: { path: "/well", port } }, container(), exec(0))).toBeUndefined();
    expect(await ask({ httpGet: { path: "/ill", port: "web" } }, container(), exec(0))).toBe(
      "HTTP probe failed with statuscode: 503",
    );
  });

  it("gives up after the time-out", async () => {
    expect(await ask({ httpGet: { path: "/hang", port } }, container(), exec(0))).toBe(
      'Get "/hang": no answer within 1s',
    );
  });

  it("says so when the container has no such port", async () => {
    expect(await ask({ httpGet: { port: "nope" } }, container(), exec(0))).toBe(
      'the container has no port named "nope"',
    );
  });

  it("connects to a port", async () => {
    expect(await ask({ tcpSocket: { port } }, container(), exec(0))).toBeUndefined();
    expect(await ask({ tcpSocket: { port: 1 } }, container(), exec(0))).toContain("ECONNREFUSED");
  });

  it("goes by a command's exit code", async () => {
    expect(await ask({ exec: { command: ["x"] } }, container(), exec(0))).toBeUndefined();
    expect(await ask({ exec: { command: ["x"] } }, container(), exec(1, "it broke\n"))).toBe("it broke");
    expect(await ask({ exec: { command: ["x", "y"] } }, container(), exec(undefined))).toBe(
      "command timed out: x y after 1s",
    );
  });
});
