/**
 * RayJobs for tests: small, valid, and changed where a test says so.
 */
import type { RayClusterSpec } from "../../src/api/raycluster.ts";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";

const template = (name: string) => ({
  spec: {
    containers: [{ name, image: "rayproject/ray:2.56.0", resources: { requests: { cpu: "1", memory: "1Gi" } } }],
  },
});

/** A head and two workers. */
export const clusterSpec = (workers = 2): RayClusterSpec =>
  ({
    rayVersion: "2.56.0",
    headGroupSpec: { rayStartParams: {}, template: template("ray-head") },
    workerGroupSpecs: [
      {
        groupName: "small",
        replicas: workers,
        minReplicas: 0,
        maxReplicas: 5,
        rayStartParams: {},
        template: template("ray-worker"),
      },
    ],
  }) as RayClusterSpec;

export const rayJob = (spec: Partial<RayJobSpec> = {}, name = "demo"): RayJob =>
  ({
    apiVersion: "ray.io/v1",
    kind: "RayJob",
    metadata: { name, namespace: "default" },
    spec: {
      entrypoint: "python -c 'import ray; ray.init()'",
      rayClusterSpec: clusterSpec(),
      shutdownAfterJobFinishes: true,
      ...spec,
    },
  }) as RayJob;
