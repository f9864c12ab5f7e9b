import { expect, it } from "vitest";
import { clusterSpec, rayCluster, rayJob } from "../../test/support/manifests.ts";
import { crds } from "../api/crds.ts";
import type { RayCluster } from "../api/raycluster.ts";
import type { DeletionPolicy, RayJob, RayJobSpec, RayJobStatus } from "../api/rayjob.ts";
import { realClock } from "../machinery/clock.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { rayClusters, rayJobs } from "../machinery/kube/resources.ts";
import { SimKube } from "../simkube/simkube.ts";
import { prospectsOf } from "./migrate.ts";

const autoscaling: Partial<RayJobSpec> = { rayClusterSpec: { ...clusterSpec(1), enableInTreeAutoscaling: true } };

const both = (policy: DeletionPolicy): Partial<RayJobSpec> => ({
  shutdownAfterJobFinishes: false,
  deletionStrategy: { onSuccess: { policy }, onFailure: { policy } },
});

async function told(job: RayJob | undefined, status?: RayJobStatus, cluster?: RayCluster): Promise<string[]> {
  const simkube = new SimKube({ clock: realClock, crds: crds(), seed: 1 });
  const client = new KubeClient(simkube.transport);
  if (job) await client.create(rayJobs, job);
  if (status) await client.patch(rayJobs, "default", "demo", { status }, { subresource: "status" });
  if (cluster) await client.create(rayClusters, cluster);
  return (await prospectsOf(simkube.transport)).map(({ fine, what }) => `${fine} ${what}`);
}

it.each([
  ["a new job", {}, undefined, "true begins"],
  ["a running job", {}, "Running", "true runs on where it is, and gets the verdict that Ray gives"],
  [
    "a job that is managed elsewhere",
    { managedBy: "kueue.x-k8s.io/multikueue" },
    undefined,
    "true is not touched: managed by",
  ],
  [
    "a new job with a field that is not built",
    autoscaling,
    undefined,
    "false would be refused: spec.rayClusterSpec.enableInTreeAutoscaling",
  ],
  ["a suspended job with such a field", autoscaling, "Suspended", "false would be refused: "],
  [
    "a running job with such a field",
    autoscaling,
    "Running",
    "false runs on where it is, and gets the verdict that Ray gives; another attempt would be refused: ",
  ],
  ["a job that is over, with such a field", autoscaling, "Complete", "true is over"],
  [
    "a job that waits for its user",
    { submissionMode: "InteractiveMode" },
    "Waiting",
    "true goes on waiting for spec.jobId",
  ],
] as const)("%s", async (_, spec, phase, expected) => {
  const [line] = await told(rayJob(spec as Partial<RayJobSpec>), phase && { jobDeploymentStatus: phase });
  expect(line).toContain(expected);
});

it.each([
  ["nothing", { shutdownAfterJobFinishes: false }, "nothing of it is deleted"],
  ["its cluster", { shutdownAfterJobFinishes: true }, "its RayCluster goes when it is due"],
  ["itself", both("DeleteSelf"), "the RayJob itself is deleted when it is due"],
  ["workers", both("DeleteWorkers"), "the workers of its RayCluster go when it is due"],
] as const)("a job that is over, of which is deleted: %s", async (_, spec, expected) => {
  const [line] = await told(rayJob(spec), { jobDeploymentStatus: "Failed", jobStatus: "FAILED" });
  expect(line).toBe(`true is over; ${expected}`);
});

it("a RayCluster that goes on, and one that nobody would care for", async () => {
  expect(await told(undefined, undefined, rayCluster("a"))).toEqual(["true goes on with the Pods that it has"]);
  const plain = rayCluster("b");
  const scaling = { ...plain, spec: { ...plain.spec, enableInTreeAutoscaling: true } };
  expect((await told(undefined, undefined, scaling))[0]).toMatch(/^false its Pods are left alone.*autoscaling/);
});
