import { describe, expect, it } from "vitest";
import type { EndpointSlice } from "../../api/kubernetes.ts";
import { hostsFile, serviceLines } from "./names.ts";

const slice = (namespace: string, service: string, ...endpoints: [string, boolean][]) =>
  ({
    metadata: { namespace, labels: { "kubernetes.io/service-name": service } },
    addressType: "IPv4",
    endpoints: endpoints.map(([address, ready]) => ({ addresses: [address], conditions: { ready } })),
  }) as EndpointSlice;

describe("names of Services in a hosts file", () => {
  it("are all their usual forms, the short one only within the namespace", () => {
    const slices = [slice("team", "head-svc", ["10.244.0.5", true])];
    expect(serviceLines(slices, { namespace: "team", domain: "cluster.local" })).toEqual([
      "10.244.0.5\thead-svc.team.svc.cluster.local head-svc.team.svc head-svc.team head-svc",
    ]);
    expect(serviceLines(slices, { namespace: "other", domain: "cluster.local" })[0]).not.toMatch(/head-svc$/);
  });

  it("do not lead to a Pod that its Service does not publish", () => {
    expect(serviceLines([slice("a", "s", ["10.244.0.5", false])], { domain: "x" })).toEqual([]);
  });

  it("come after the Pod's own", () => {
    expect(hostsFile(["10.244.0.9\tpod"], ["10.244.0.5\ts"]).split("\n")).toEqual([
      "127.0.0.1\tlocalhost",
      "::1\tlocalhost ip6-localhost ip6-loopback",
      "10.244.0.9\tpod",
      "10.244.0.5\ts",
      "",
    ]);
  });
});
