import { describe, expect, it } from "vitest";
import { rayVersions } from "./embedded.ts";
import { parseManifest } from "./manifest.ts";
import { rehearse } from "./rehearse.ts";

const signal = new AbortController().signal;
const manifest = (more: string) =>
  parseManifest(
    `apiVersion: ray.io/v1
kind: RayJob
metadata: {name: a}
spec:
  entrypoint: python a.py
  rayClusterSpec:
    headGroupSpec:
      template: {spec: {containers: [{name: ray-head, image: "rayproject/ray:2.56.0"}]}}
${more}
`,
    "a.yaml",
  );

describe("a manifest that is tried before anything is started for it", () => {
  it("is taken when it can be run", async () => {
    await expect(rehearse(manifest("  backoffLimit: 1"), undefined, signal)).resolves.toBeUndefined();
  });

  it.each([
    ["an unknown field", "  backofLimit: 1", "spec.backofLimit"],
    ["a value of the wrong type", "  backoffLimit: two", "spec.backoffLimit"],
    ["what the operator does not do yet", "    enableInTreeAutoscaling: true", "enableInTreeAutoscaling"],
    ["what the operator's own rules refuse", "  backoffLimit: -1", "backoffLimit"],
  ])("is refused with the name of the field for %s", async (_, more, field) => {
    await expect(rehearse(manifest(more), undefined, signal)).rejects.toThrow(field);
  });

  it("must bring along the RayCluster that it selects, since there is no other", async () => {
    const selecting = `apiVersion: ray.io/v1
kind: RayJob
metadata: {name: a}
spec:
  entrypoint: python a.py
  clusterSelector: {ray.io/cluster: shared}
`;
    const cluster = `---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: shared}
spec:
  headGroupSpec:
    template: {spec: {containers: [{name: ray-head, image: "rayproject/ray:2.56.0"}]}}
`;
    await expect(rehearse(parseManifest(selecting, "a.yaml"), undefined, signal)).rejects.toThrow(
      "a.yaml:6: clusterSelector names RayCluster shared, which is not in the manifest",
    );
    const both = parseManifest(selecting + cluster, "a.yaml");
    await expect(rehearse(both, undefined, signal)).resolves.toBeUndefined();
    expect(rayVersions(both)).toEqual(["2.56.0"]);
  });

  it("may bring along the namespace it is for", async () => {
    const elsewhere = manifest("");
    await expect(rehearse(elsewhere, "team-a", signal)).resolves.toBeUndefined();
  });
});
