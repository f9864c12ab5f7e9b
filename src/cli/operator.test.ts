/** The operator's process as its administrator and kubelet meet it, on a cluster in memory behind HTTP. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { crds } from "../api/crds.ts";
import { realClock, sleep } from "../machinery/clock.ts";
import { type Served, serve } from "../simkube/http.ts";
import { SimKube } from "../simkube/simkube.ts";
import { operator } from "./operator.ts";

let folder = "";
let served: Served;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "operator-"));
  served = await serve(new SimKube({ clock: realClock, crds: crds() }));
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "here",
    clusters: [{ name: "here", cluster: { server: served.address } }],
    users: [{ name: "me", user: {} }],
    contexts: [{ name: "here", context: { cluster: "here", user: "me" } }],
  };
  writeFileSync(join(folder, "kubeconfig"), JSON.stringify(kubeconfig));
});
afterEach(async () => {
  await served.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Of a port that was free a moment ago. */
async function freeAddress(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return `127.0.0.1:${port}`;
}

/** The file has it all. */
const nowhere = { write: () => true };
const log = () => readFileSync(join(folder, "log/operator.log"), "utf8");
const options = (more: Record<string, string>) => ({
  kubeconfig: join(folder, "kubeconfig"),
  metricsAddr: "0",
  healthProbeBindAddress: "0",
  logFilePath: join(folder, "log/operator.log"),
  ...more,
});

describe("the operator's process", () => {
  it("serves health and metrics, and its last words are in the log when it ends", async () => {
    const [health, metrics] = [await freeAddress(), await freeAddress()];
    const ending = new AbortController();
    const ended = operator(
      options({ healthProbeBindAddress: health, metricsAddr: metrics, enableMetrics: "true", zapLogLevel: "info" }),
      { signal: ending.signal, code: () => undefined },
      nowhere,
    );
    const page = async (address: string, path: string) => {
      const answer = await fetch(`http://${address}${path}`);
      return { status: answer.status, text: await answer.text() };
    };
    // Asked until it serves: the way kubelet does.
    let ready = await page(health, "/readyz").catch(() => undefined);
    while (!ready?.text.includes("this replica leads")) {
      await sleep(realClock, 20);
      ready = await page(health, "/readyz").catch(() => undefined);
    }
    expect(ready).toEqual({
      status: 200,
      text: "[+] crds: they keep the journal\n[+] caches: filled\n[+] leadership: this replica leads\nok\n",
    });
    expect(await page(health, "/healthz")).toEqual({ status: 200, text: "ok\n" });
    const { text } = await page(metrics, "/metrics");
    expect(text).toContain('leader_election_master_status{name="ray-operator-leader"} 1');
    expect(text).toContain(`host="${new URL(served.address).host}"`);

    ending.abort(new Error("SIGTERM"));
    expect(await ended).toBe(0);
    expect(log().trim().split("\n").at(-1)).toContain("the operator has ended in good order");
    await expect(page(health, "/healthz")).rejects.toThrow();
  });

  it("ends soon when it is asked to, though the API server takes connections and answers nothing", async () => {
    const connections: Socket[] = [];
    const asked = Promise.withResolvers<void>();
    const mute = createServer((socket) => {
      connections.push(socket);
      // By the webhook, whom the API server trusts.
      socket.on("data", (data) => data.includes("validatingwebhookconfigurations") && asked.resolve());
    });
    await new Promise<void>((resolve) => mute.listen(0, "127.0.0.1", resolve));
    const { port } = mute.address() as { port: number };
    const kubeconfig = readFileSync(join(folder, "kubeconfig"), "utf8").replace(
      new URL(served.address).host,
      `127.0.0.1:${port}`,
    );
    writeFileSync(join(folder, "kubeconfig"), kubeconfig);
    process.env["ENABLE_WEBHOOKS"] = "true";
    const ending = new AbortController();
    try {
      const ended = operator(options({}), { signal: ending.signal, code: () => undefined }, nowhere);
      await asked.promise;
      ending.abort(new Error("SIGTERM"));
      expect(await ended).toBe(0);
      expect(log()).not.toContain("not in order");
    } finally {
      delete process.env["ENABLE_WEBHOOKS"];
      for (const socket of connections) socket.destroy();
      await new Promise((resolve) => mute.close(resolve));
    }
  });

  it.each([
    ["a flag's value", { qps: "fast" }, "--qps must be a number above 0"],
    ["a gate", { featureGates: "RayCronJobs=true" }, "Did you mean RayCronJob?"],
    ["a log file that cannot be", { logFilePath: "/dev/null/operator.log" }, "cannot write the log file"],
    ["an address", { metricsAddr: "8080" }, "cannot serve on 8080"],
    ["a configuration file that is not there", { config: "/no/such.yaml" }, "cannot read the configuration file"],
  ])("does not start with a mistake in %s, and names it", async (_, mistake, message) => {
    const ending = new AbortController();
    const started = operator(options(mistake), { signal: ending.signal, code: () => undefined }, nowhere);
    await expect(started).rejects.toThrow(message);
    ending.abort(new Error("SIGTERM"));
  });
});
