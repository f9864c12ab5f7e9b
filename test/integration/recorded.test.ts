/** What a real KubeRay had made (test/takeover/recorded), on a real API server: the operator comes, and goes on with it. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import type { SubmitRequest } from "../../src/domain/rayjob/ray.ts";
import { realClock, sleep } from "../../src/machinery/clock.ts";
import { pods, rayClusters, rayJobs } from "../../src/machinery/kube/resources.ts";
import { succeeds } from "../sim/fakeRay.ts";
import { type Recording, recorded, restore } from "../takeover/restore.ts";
import { DOMAIN, type Stage, swift, World } from "./world.ts";

const RUNNING = ["running-k8s-job", "running-http", "running-own-id", "running-selected", "running-second-attempt"];
const AT_REST = ["suspended", "complete-kept", "failed-deadline", "cluster-ready", "waiting"];

let world: World;
const stages = new Map<string, Stage>();
const before = new Map<string, unknown>();
beforeAll(async () => {
  world = await World.open({ operators: 0 });
  await Promise.all([...RUNNING, ...AT_REST].map(underKubeRay));
  world.startOperator();
  await world.leader();
});
afterAll(() => world?.close());

async function underKubeRay(name: string): Promise<void> {
  const jobs = RUNNING.includes(name) ? [succeeds(Number.POSITIVE_INFINITY, 0)] : [succeeds(0, 0)];
  const stage = await world.stage({ jobs: [...jobs, ...jobs], pod: () => swift });
  const text = JSON.stringify(recorded(name, stage.namespace, Date.now()));
  const recording = JSON.parse(text.replaceAll(".svc.cluster.local", `.svc.${DOMAIN}`)) as Recording;
  const count = recording.objects.filter(({ kind }) => kind === "Pod").length;
  const made = await restore(world.client, recording, () =>
    stage.until("KubeRay's Pods run", () => {
      const ready = world.kubelet.running.filter(({ metadata }) => metadata.namespace === stage.namespace);
      return ready.length >= count;
    }),
  );
  for (const { head, id } of recording.ray) {
    const uid = made.get(head)?.metadata.uid;
    if (uid === undefined) continue;
    await stage.until("its head's Ray is up", () => world.ray.heads.has(uid));
    world.ray.give(world.ray.heads.get(uid)!, { entrypoint: "kuberay's", submission_id: id } as SubmitRequest);
  }
  stages.set(name, stage);
  before.set(name, await snapshot(stage));
}

async function snapshot({ namespace, submissions }: Stage) {
  const list = async (type: typeof pods) => (await world.client.listAll<RayCluster & Pod>(type, { namespace })).items;
  return {
    pods: (await list(pods)).map(({ metadata }) => metadata.uid).sort(),
    clusters: (await list(rayClusters)).map(({ metadata: { uid, generation } }) => [uid, generation]),
    submissions: [...submissions],
  };
}

const statusOf = async ({ namespace }: Stage) => (await world.client.get<RayJob>(rayJobs, namespace, "demo")).status;

describe.concurrent("what KubeRay has made", () => {
  it.each(RUNNING)("%s: no Pod is touched, nothing is submitted, and the verdict is Ray's", async (name) => {
    const stage = stages.get(name)!;
    const taken = () => world.history.of<RayJob>(stage.namespace, rayJobs).some(({ status }) => status?.attempts);
    await stage.until("taken over", taken);
    // What it must not do it would do now.
    await sleep(realClock, 5000);
    expect(await snapshot(stage)).toEqual(before.get(name));
    expect((await statusOf(stage))?.executionAttempt).toBe(name === "running-second-attempt" ? 1 : 0);
    for (const [uid, head] of world.ray.heads) {
      if (!(before.get(name) as { pods: string[] }).pods.includes(uid)) continue;
      for (const job of head.jobs.values()) head.end(job, "SUCCEEDED");
    }
    // KubeRay's submitter ends with the job.
    const { items } = await world.client.listAll<Pod>(pods, { namespace: stage.namespace, labelSelector: "job-name" });
    for (const { metadata } of items) await world.kubelet.end(metadata.uid, { exitCode: 0 });
    const over = () =>
      world.history
        .of<RayJob>(stage.namespace, rayJobs)
        .some(({ status }) => status?.jobDeploymentStatus === "Complete");
    await stage.until("Complete", over);
    expect(await statusOf(stage)).toMatchObject({ jobStatus: "SUCCEEDED", succeeded: 1 });
    expect(stage.submissions).toEqual((before.get(name) as { submissions: string[] }).submissions);
  });

  it.each(AT_REST)("%s: is left as it is", async (name) => {
    const stage = stages.get(name)!;
    await sleep(realClock, 15_000);
    expect(await snapshot(stage)).toEqual(before.get(name));
  });
});
