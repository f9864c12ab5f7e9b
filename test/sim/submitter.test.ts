/** A submitter that its user, or a queue controller, has a say in: what its Pod is, and whose word its end is. */
import { describe, expect, it } from "vitest";
import type { Job, Pod } from "../../src/api/kubernetes.ts";
import type { RayJobSpec } from "../../src/api/rayjob.ts";
import { jobs, rayJobs } from "../../src/machinery/kube/resources.ts";
import { rayJob } from "../support/manifests.ts";
import { fails, succeeds } from "./fakeRay.ts";
import { diligent } from "./fakeSubmitter.ts";
import { type Scripts, World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

async function living(spec: Partial<RayJobSpec>, scripts: Scripts = {}): Promise<World> {
  const world = new World({ job: () => succeeds(3000), ...scripts });
  worlds.push(world);
  world.start();
  await world.client.create(rayJobs, rayJob(spec));
  return world;
}

/** `ray job submit`, which ends as its job did. */
const own: RayJobSpec["submitterPodTemplate"] = {
  spec: {
    restartPolicy: "Never",
    containers: [{ name: "cli", image: "ray", command: ["ray"], args: ["job", "submit", "--", "python train.py"] }],
  },
};
const ofSubmitter = async (world: World): Promise<Pod["spec"]> => (await world.submitterPods())[0]?.spec;

it("placement rules that a queue adds when it admits a job reach the submitter, though its user gave no template", async () => {
  const world = await living({ suspend: true });
  await world.untilPhase("Suspended");
  // As Kueue does: the default template written out, with its rules, and the suspension taken back, in one patch.
  const resources = { requests: { cpu: "500m", memory: "200Mi" } };
  const affinity = { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } };
  const submitterPodTemplate = {
    metadata: { labels: { "kueue.x-k8s.io/podset": "submitter" } },
    spec: {
      nodeSelector: { flavor: "spot" },
      affinity,
      restartPolicy: "Never",
      containers: [{ name: "ray-job-submitter", image: "rayproject/ray:2.56.0", resources }],
    },
  };
  await world.client.patch(rayJobs, "default", "demo", { spec: { suspend: false, submitterPodTemplate } });
  const { status } = await world.untilPhase("Complete");
  expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0 });
  expect(await ofSubmitter(world)).toMatchObject({ nodeSelector: { flavor: "spot" }, affinity });
  const [pod] = await world.submitterPods();
  expect(pod?.metadata.labels).toMatchObject({ "kueue.x-k8s.io/podset": "submitter", "ray.io/execution-attempt": "0" });
});

it("no queue holds the submitter Job: it has the RayJob for its controller, no queue label, and is not suspended", async () => {
  const world = new World();
  worlds.push(world);
  world.start();
  const { metadata, ...rest } = rayJob();
  await world.client.create(rayJobs, {
    ...rest,
    metadata: { ...metadata, labels: { "kueue.x-k8s.io/queue-name": "q" } },
  });
  await world.until("a submitter", async () => (await world.get<Job>(jobs, "demo")) !== undefined);
  const job = (await world.get<Job>(jobs, "demo"))!;
  expect(job.metadata.ownerReferences).toMatchObject([{ kind: "RayJob", name: "demo", controller: true }]);
  expect(Object.keys(job.metadata.labels ?? {}).filter((key) => key.startsWith("kueue"))).toEqual([]);
  expect(job.spec?.suspend ?? false).toBe(false);
});

describe("a user's own command", () => {
  it("submits, follows, and its job's success is the RayJob's", async () => {
    const world = await living({ submitterPodTemplate: own, entrypoint: undefined });
    const { status } = await world.untilPhase("Complete");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", succeeded: 1 });
    expect(world.submissions).toHaveLength(1);
  });

  it("that fails because its job did starts no second Pod (three submitter Pods for one failed job)", async () => {
    const world = await living({ submitterPodTemplate: own }, { job: () => fails(3000) });
    const { status } = await world.untilPhase("Failed");
    expect(status).toMatchObject({ jobStatus: "FAILED", reason: "AppFailed" });
    await world.clock.advance(120_000);
    expect(await world.submitterPods()).toHaveLength(1);
    expect(world.submissions).toHaveLength(1);
  });

  it("that fails before Ray had its job fails the RayJob when its tries are used up", async () => {
    const world = await living(
      { submitterPodTemplate: own, submitterConfig: { backoffLimit: 1 } },
      { submitter: () => ({ ...diligent, failsEarly: true }) },
    );
    const { status } = await world.untilPhase("Failed");
    expect(status).toMatchObject({ reason: "SubmissionFailed", failed: 1 });
    expect(status).not.toHaveProperty("jobStatus");
    expect(status?.message).toContain("Job submission has failed.");
    expect(await world.submitterPods()).toHaveLength(2);
  });

  it("that ends while its job runs is no verdict: the job runs on", async () => {
    const world = await living({ submitterPodTemplate: own, submitterConfig: { backoffLimit: 0 } });
    await world.until("RUNNING", async () => (await world.job())?.status?.jobStatus === "RUNNING");
    const [pod] = await world.submitterPods();
    await world.kubelet.end(pod!.metadata.uid, { exitCode: 137 });
    const { status } = await world.untilPhase("Complete");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED" });
  });
});
