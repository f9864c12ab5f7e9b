/**
 * RayJobs for tests: small, valid, and changed where a test says so.
 */
import type { RayCluster, RayClusterSpec } from "../../src/api/raycluster.ts";
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

/** A RayCluster of its own, for RayJobs that select one. */
export const rayCluster = (name: string, workers = 2): RayCluster => ({
  apiVersion: "ray.io/v1",
  kind: "RayCluster",
  metadata: { name, namespace: "default" },
  spec: clusterSpec(workers),
});

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
