/**
 * What users of KubeRay reported and takes minutes to see, on a virtual clock; each in the words of what they would have
 * liked to see. The other reports are told on a real API server (test/integration/reports.test.ts).
 */
import { afterEach, describe, expect, it } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import { LABEL, NODE_TYPE } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { pods, rayClusters, rayJobs } from "../../src/machinery/kube/resources.ts";
import { clusterSpec, rayCluster, rayJob } from "../support/manifests.ts";
import { type PodBehaviour, prompt, stuckTerminating } from "./fakeKubelet.ts";
import { runsForEver, succeeds } from "./fakeRay.ts";
import { type Scripts, World } from "./world.ts";

const MINUTE = 60_000;
const worlds: World[] = [];
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});

function world(scripts?: Scripts): World {
  const made = new World(scripts);
  worlds.push(made);
  return made;
}

const condition = (job: RayJob, type: string) => job.status?.conditions?.find((one) => one.type === type);
const isHead = (pod: Pod) => pod.metadata.labels?.[LABEL.nodeType] === NODE_TYPE.head;
const isWorker = (pod: Pod) => pod.metadata.labels?.[LABEL.nodeType] === NODE_TYPE.worker;
const workers = async (w: World) => (await w.list<Pod>(pods)).filter(isWorker);
const running = (w: World) => w.until("RUNNING", async () => (await w.job())?.status?.jobStatus === "RUNNING");

/** A head of `restartPolicy: Never`, as Kueue's users write it. */
function headThatIsNotRestarted() {
  const spec = clusterSpec();
  spec.headGroupSpec.template.spec!.restartPolicy = "Never";
  return spec;
}

describe("a head that can never live", () => {
  /** A RayJob whose heads all end so; the seconds at which they were made. */
  async function withHeadsThat(dies: NonNullable<PodBehaviour["dies"]>, spec: Partial<RayJob["spec"]> = {}) {
    const made: number[] = [];
    const w = world({
      pod(pod) {
        if (!isHead(pod)) return prompt;
        made.push(w.clock.now() / 1000);
        return { ...prompt, dies };
      },
    });
    w.start();
    await w.client.create(rayJobs, rayJob({ rayClusterSpec: headThatIsNotRestarted(), ...spec }));
    const job = await w.untilPhase("Failed");
    await w.until("nothing held", async () => (await w.list(rayClusters)).length === 0);
    return { w, job, made };
  }
  const pauses = (made: readonly number[]) => made.slice(1).map((at, index) => at - made[index]!);

  it("because its image has no Ray is made anew with growing pauses, and then the job says so", async () => {
    const { w, job, made } = await withHeadsThat({ exitCode: 127 });
    expect(pauses(made)).toEqual(pauses(made).toSorted((one, other) => one - other));
    expect(made.filter((at) => at < made[0]! + 60).length).toBeLessThan(6);
    expect(job.status).toMatchObject({ reason: "SubmissionFailed", failed: 1, executionAttempt: 0 });
    expect(job.status?.jobStatus).toBeUndefined();
    expect(job.status?.message).toMatch(/failed 6 times in a row; Pod \S+-head has failed: container ray-head .*127/);
    expect(condition(job, "Failed")?.reason).toBe("HeadPodFailed");
    expect(made).toHaveLength(6);
    expect(w.submissions).toEqual([]);
  });

  it("because its init container fails for sure is not churned, and the job names container and code", async () => {
    const { job, made } = await withHeadsThat({ exitCode: 42, initContainer: "fetch-data" });
    expect(made.filter((at) => at < made[0]! + 60).length).toBeLessThan(6);
    expect(job.status?.message).toMatch(/init container fetch-data ended with exit code 42/);
  });

  it("is tried on another cluster when the job may be tried again, and no oftener than that", async () => {
    const { job, made } = await withHeadsThat({ exitCode: 127 }, { backoffLimit: 1 });
    expect(job.status).toMatchObject({ failed: 2, executionAttempt: 1 });
    expect(made).toHaveLength(12);
  });

  it("but comes to itself at the fifth try has cost nothing but time", async () => {
    let heads = 0;
    const w = world({
      pod: (pod) => (isHead(pod) && heads++ < 4 ? { ...prompt, dies: { exitCode: 1, podReason: "Evicted" } } : prompt),
    });
    w.start();
    await w.client.create(rayJobs, rayJob());
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ executionAttempt: 0, failed: 0 });
    expect(heads).toBe(5);
  });
});

describe("a node that dies", () => {
  it("loses its worker to another node, and keeps the Pod that cannot end", async () => {
    const w = world({ pod: (pod) => (isWorker(pod) ? stuckTerminating : prompt) });
    w.start();
    await w.client.create(rayClusters, rayCluster("lone"));
    const ready = async () => (await w.get<ReturnType<typeof rayCluster> & Stored>(rayClusters, "lone"))?.status;
    await w.until("two workers", async () => (await ready())?.readyWorkerReplicas === 2);
    const lost = (await workers(w))[0]!;
    await w.kubelet.lose(lost.metadata.uid);
    await w.until("one worker left", async () => (await ready())?.readyWorkerReplicas === 1);
    await w.until("two workers again", async () => (await ready())?.readyWorkerReplicas === 2, 7 * MINUTE);
    const still = (await workers(w)).find(({ metadata }) => metadata.uid === lost.metadata.uid);
    expect(still?.metadata.deletionTimestamp).toBeDefined();
    expect(await workers(w)).toHaveLength(3);
  });

  it.each(["K8sJobMode", "HTTPMode"] as const)(
    "takes the head along: the job in %s is failed, not left",
    async (submissionMode) => {
      const w = world({ job: () => runsForEver });
      w.start();
      await w.client.create(rayJobs, rayJob({ submissionMode }));
      await running(w);
      await w.kubelet.lose((await w.head()).metadata.uid);
      const job = await w.untilPhase("Failed", "demo", MINUTE);
      expect(condition(job, "Failed")?.reason).toBe("HeadPodLost");
      expect(job.status?.message).toContain("does not report");
      expect(w.submissions).toHaveLength(1);
    },
  );
});

describe("a dashboard in HTTPMode", () => {
  it("that fails, comes to itself, and fails again for less than the limit each time ends no job", async () => {
    const w = world({ job: () => succeeds(500_000) });
    w.start();
    await w.client.create(rayJobs, rayJob({ submissionMode: "HTTPMode" }));
    await running(w);
    const dashboard = w.ray.heads.get((await w.head()).metadata.uid)!;
    for (const _ of ["once", "again"]) {
      dashboard.mood = 500;
      await w.clock.advance(200_000);
      dashboard.mood = "well";
      await w.clock.advance(30_000);
      expect((await w.job())?.status?.jobDeploymentStatus).toBe("Running");
    }
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", failed: 0 });
    expect(w.submissions).toHaveLength(1);
  });
});
