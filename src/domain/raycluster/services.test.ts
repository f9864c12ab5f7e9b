import { describe, expect, it } from "vitest";
import { defaultSettings } from "../settings.ts";
import { headPod } from "./head.ts";
import { headService } from "./services.ts";
import { headGroup, rayCluster } from "./testing.ts";

const serviceOf = (group: Parameters<typeof headGroup>[0] = {}, settings = defaultSettings, spec = {}) =>
  headService(rayCluster({ headGroupSpec: headGroup(group), ...spec }), settings);

const ports = (service: ReturnType<typeof serviceOf>) =>
  Object.fromEntries(service.spec!.ports!.map(({ name, port }) => [name, port]));

const declaring = (...containerPorts: { name?: string; containerPort: number }[]) => ({
  template: { spec: { containers: [{ name: "ray", image: "i", ports: containerPorts }] } },
});

describe("the head Service", () => {
  it("is headless, reaches a head that is not ready, and has Ray's ports by name", () => {
    const service = serviceOf();
    expect(service.metadata).toMatchObject({
      name: "demo-head-svc",
      namespace: "ns1",
      ownerReferences: [{ uid: "cluster-uid" }],
    });
    expect(service.spec).toMatchObject({ clusterIP: "None", publishNotReadyAddresses: true });
    expect(service.spec!.ports).toEqual([
      { name: "client", port: 10001, appProtocol: "tcp" },
      { name: "dashboard", port: 8265, appProtocol: "tcp" },
      { name: "gcs-server", port: 6379, appProtocol: "tcp" },
      { name: "metrics", port: 8080, appProtocol: "tcp" },
      { name: "serve", port: 8000, appProtocol: "tcp" },
    ]);
  });

  it.each([
    ["the administrator wants it", {}, { ...defaultSettings, headClusterIPService: true }],
    ["the user wants another type", { serviceType: "NodePort" }, defaultSettings],
  ])("has an address of its own when %s, and still reaches a head that is not ready", (_, group, settings) => {
    const { spec } = serviceOf(group, settings);
    expect(spec!.clusterIP).toBeUndefined();
    expect(spec!.publishNotReadyAddresses).toBe(true);
  });

  it("has the ports that the head declares, and metrics", () => {
    expect(ports(serviceOf(declaring({ name: "gcs", containerPort: 6380 }, { containerPort: 9999 })))).toEqual({
      gcs: 6380,
      "9999-port": 9999,
      metrics: 8080,
    });
  });

  it.each([
    [
      "by its template",
      { template: { ...headGroup().template, metadata: { labels: { "app.kubernetes.io/created-by": "me" } } } },
    ],
    ["by its group", { labels: { "app.kubernetes.io/name": "mine" } }],
  ])("finds a head whose labels the user changed %s", (_, group) => {
    const cluster = rayCluster({ headGroupSpec: headGroup(group) });
    expect(headPod(cluster, defaultSettings).metadata.labels).toMatchObject(
      headService(cluster, defaultSettings).spec!.selector!,
    );
  });

  it("of the user's own keeps name, ports and annotations, and gets the selector and what is missing", () => {
    const service = serviceOf(
      {
        headService: {
          metadata: { name: "mine", labels: { a: "b", "ray.io/cluster": "x" }, annotations: { c: "d", e: "mine" } },
          spec: {
            selector: { wrong: "yes" },
            ports: [
              { name: "dashboard", port: 80, targetPort: 8265 },
              { name: "g", port: 6379 },
            ],
          },
        },
      },
      defaultSettings,
      { headServiceAnnotations: { e: "wins" } },
    );
    expect(service.metadata).toMatchObject({
      name: "mine",
      labels: { a: "b", "ray.io/cluster": "demo" },
      annotations: { c: "d", e: "wins" },
    });
    expect(service.spec!.selector).not.toHaveProperty("wrong");
    expect(ports(service)).toEqual({ dashboard: 80, g: 6379, client: 10001, metrics: 8080, serve: 8000 });
    expect(service.spec!.clusterIP).toBeUndefined();
  });
});
