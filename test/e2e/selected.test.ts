/**
 * RayJobs on a RayCluster that somebody else made, with a real Ray: they share it, and leave it as it was.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LABEL } from "../../src/api/labels.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { rayClusters, rayJobs } from "../../src/machinery/kube/resources.ts";
import { Gate, namespace, rayJob, useCluster } from "./cluster.ts";

const SHARED = "shared";
const cluster = useCluster();
const gate = new Gate();
const names: string[] = [];

const selecting = (name: string, spec: Partial<RayJobSpec>): RayJob => {
  names.push(name);
  return {
    apiVersion: "ray.io/v1",
    kind: "RayJob",
    metadata: { name, namespace },
    spec: { clusterSelector: { [LABEL.cluster]: SHARED }, ...spec },
  };
};
const shared = () => cluster.rayClusters.store.get(namespace, SHARED);
/** Notes that it ran, and that it was asked to end. */
const untilStopped = (name: string) =>
  `trap 'echo ${name} stopped >> /gate/runs; exit 1' TERM; echo ${name} run >> /gate/runs; while true; do sleep 0.1; done`;
const ray = async (job: RayJob & { metadata: { resourceVersion: string } }) =>
  (await cluster.ray(job as never, "/api/jobs/")) as { submission_id: string; status: string }[];

beforeAll(async () => {
  const { rayClusterSpec } = rayJob(SHARED, {}, gate).spec;
  const object: RayCluster = {
    apiVersion: "ray.io/v1",
    kind: "RayCluster",
    metadata: { name: SHARED, namespace },
    spec: rayClusterSpec!,
  };
  await cluster.client.create(rayClusters, object);
});

afterAll(async () => {
  gate.open();
  await Promise.all(names.map((name) => cluster.remove(name)));
  await cluster.client.delete(rayClusters, namespace, SHARED, {});
  gate.remove();
});

describe("two RayJobs that select one RayCluster", () => {
  it("run side by side; one is deleted, one suspended and resumed under its id; the cluster stays as it was", async () => {
    await cluster.apply(selecting("deleted-one", { entrypoint: untilStopped("deleted") }));
    await cluster.apply(
      selecting("suspended-one", {
        submissionMode: "HTTPMode",
        jobId: "suspended-one-id",
        entrypoint: `${gate.entrypoint("echo suspended ended >> /gate/runs")}`,
      }),
    );
    await cluster.until("the shared cluster to be ready", () => shared()?.status?.state === "ready", 400_000);
    const [one, two] = await Promise.all([cluster.running("deleted-one"), cluster.running("suspended-one")]);
    const before = shared()!;
    expect([one, two].map(({ status }) => status?.rayClusterName)).toEqual([SHARED, SHARED]);

    await cluster.client.delete(rayJobs, namespace, "deleted-one");
    await cluster.nothingLeft(one);
    const said = await ray(two);
    expect(said.find(({ submission_id }) => submission_id === one.status?.jobId)?.status).toBe("STOPPED");
    expect(said.find(({ submission_id }) => submission_id === "suspended-one-id")?.status).toBe("RUNNING");

    const suspend = (value: boolean) =>
      cluster.client.patch(rayJobs, namespace, "suspended-one", { spec: { suspend: value } });
    await suspend(true);
    const suspended = await cluster.phase("suspended-one", "Suspended");
    expect(suspended.status?.attempts).toMatchObject([{ number: 0, jobStatus: "STOPPED" }]);
    await suspend(false);
    await cluster.status(
      "suspended-one",
      "running again",
      ({ jobStatus, executionAttempt }) => jobStatus === "RUNNING" && executionAttempt === 1,
    );
    gate.open();
    const { status } = await cluster.ended("suspended-one");
    expect(status).toMatchObject({
      jobDeploymentStatus: "Complete",
      jobStatus: "SUCCEEDED",
      jobId: "suspended-one-id",
    });

    // Under an id that Ray has already, nobody is given another's end.
    await cluster.apply(selecting("again", { jobId: "suspended-one-id", entrypoint: "true" }));
    const again = await cluster.ended("again");
    expect(again.status).toMatchObject({ jobDeploymentStatus: "Failed", reason: "SubmissionFailed" });
    expect(again.status?.message).toContain("which this RayJob did not submit");

    const after = shared()!;
    expect(after.metadata).toEqual({ ...before.metadata, resourceVersion: after.metadata.resourceVersion });
    expect(after.status?.state).toBe("ready");
  }, 600_000);
});
