import { describe, expect, it } from "vitest";
import type { Node, Pod } from "../../api/kubernetes.ts";
import { requests, whyUnschedulable } from "./schedule.ts";

const node: Node = {
  metadata: { name: "local", labels: { "kubernetes.io/os": "linux" } },
  status: { allocatable: { cpu: "2", memory: "8Gi", pods: "250" } },
};
const pod = (spec: object): Pod => ({ metadata: {}, spec: { containers: [], ...spec } }) as unknown as Pod;
const asking = (resources: object) => ({ name: "c", resources });

describe("placing a Pod on the one node", () => {
  it("takes what the machine could run alone", () => {
    expect(whyUnschedulable(pod({ containers: [asking({ requests: { cpu: "2" } })] }), node)).toBeUndefined();
  });

  it("says what the machine has not", () => {
    const greedy = pod({
      containers: [asking({ requests: { cpu: "1500m" } }), asking({ requests: { cpu: 1, memory: "9Gi" } })],
    });
    expect(whyUnschedulable(greedy, node)).toContain("1 Insufficient cpu, 1 Insufficient memory");
    const gpu = pod({ containers: [asking({ limits: { "nvidia.com/gpu": 1 } })] });
    expect(whyUnschedulable(gpu, node)).toContain("Insufficient nvidia.com/gpu");
  });

  it("says that no node has the labels asked for", () => {
    expect(whyUnschedulable(pod({ nodeSelector: { zone: "a" } }), node)).toContain(
      "didn't match Pod's node affinity/selector",
    );
    expect(whyUnschedulable(pod({ nodeSelector: { "kubernetes.io/os": "linux" } }), node)).toBeUndefined();
  });

  it("counts containers together and init containers one at a time", () => {
    const cpu = (value: string) => asking({ requests: { cpu: value } });
    expect(requests(pod({ initContainers: [cpu("3"), cpu("1")], containers: [cpu("500m"), cpu("500m")] }))).toEqual({
      cpu: 3,
    });
  });
});
