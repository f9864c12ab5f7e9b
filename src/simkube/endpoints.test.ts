/** Who is found behind a Service. */
import { beforeEach, describe, expect, it } from "vitest";
import type { EndpointSlice, Pod, Service, ServiceSpec } from "../api/kubernetes.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { endpointSlices, pods, services } from "../machinery/kube/resources.ts";
import { VirtualClock } from "../machinery/virtualClock.ts";
import { SimKube } from "./simkube.ts";

let simkube: SimKube;
let client: KubeClient;
beforeEach(() => {
  const clock = new VirtualClock();
  simkube = new SimKube({ clock, seed: 1 });
  client = new KubeClient(simkube.transport, { clock });
});

const serve = (spec: Partial<ServiceSpec> = {}) =>
  client.create<Service>(services, {
    metadata: { name: "s", namespace: "default" },
    spec: { selector: { app: "x" }, ports: [{ port: 80, targetPort: 8080 }], ...spec },
  });
async function run(name: string, ready: "True" | "False", labels: Record<string, string> = { app: "x" }) {
  await client.create<Pod>(pods, {
    metadata: { name, namespace: "default", labels },
    spec: { nodeName: "n", containers: [{ name: "main", image: "busybox" }] },
  });
  await report(name, { phase: "Running", podIP: `10.0.0.${name}`, conditions: [{ type: "Ready", status: ready }] });
}
const report = (name: string, status: object) =>
  client.patch(pods, "default", name, { status }, { subresource: "status" });
async function found() {
  simkube.settleControllers();
  const { items } = await client.list<EndpointSlice>(endpointSlices);
  return items.flatMap(({ endpoints }) =>
    (endpoints ?? []).map(
      ({ addresses, conditions }) => `${addresses[0]} ${conditions?.ready ? "ready" : "not ready"}`,
    ),
  );
}

describe("behind a Service", () => {
  it("are the Pods with its labels, as ready as they are", async () => {
    await serve();
    await run("1", "True");
    await run("2", "False");
    await run("3", "True", { app: "y" });
    expect(await found()).toEqual(["10.0.0.1 ready", "10.0.0.2 not ready"]);
  });
  it("that publishes not-ready addresses all are ready", async () => {
    await serve({ publishNotReadyAddresses: true });
    await run("2", "False");
    expect(await found()).toEqual(["10.0.0.2 ready"]);
  });
  it("are none that have no address yet, have ended, or are on their way out", async () => {
    await serve();
    for (const name of ["1", "2", "3"]) await run(name, "True");
    expect(await found()).toHaveLength(3);
    await report("1", { podIP: null });
    await report("2", { phase: "Succeeded" });
    await client.delete(pods, "default", "3");
    expect(await found()).toEqual([]);
  });
  it("comes and goes who changes his labels", async () => {
    await serve();
    await run("1", "True");
    await client.patch(pods, "default", "1", { metadata: { labels: { app: "y" } } });
    expect(await found()).toEqual([]);
    await client.patch(pods, "default", "1", { metadata: { labels: { app: "x" } } });
    expect(await found()).toEqual(["10.0.0.1 ready"]);
  });
  it("is nobody when it is gone, or another of its name has come", async () => {
    await serve();
    await run("1", "True");
    expect(await found()).toHaveLength(1);
    await client.delete(services, "default", "s");
    expect(await found()).toEqual([]);
    await serve();
    expect(await found()).toHaveLength(1);
  });
});
