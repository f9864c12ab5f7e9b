/**
 * RayJobs in a queue of Kueue's, with Kueue itself on the cluster: queued, admitted, preempted, tried again, ended.
 *
 * After each scenario all that was ever stored is judged: the Pods against the quota that Kueue counted for them at that
 * moment, and what Kueue made of a RayJob against what test/support/kueue.ts says that it reads there.
 */
import { afterEach, expect } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import { LABEL } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { findCondition } from "../../src/domain/rayjob/conditions.ts";
import { pods, rayClusters } from "../../src/machinery/kube/resources.ts";
import { launcher, run } from "../e2e/command.ts";
import { Gate } from "../support/gate.ts";
import { conditionOf, holdsQuota, workloads } from "../support/quota.ts";
import { scenario, smallRayJob, stopwatch } from "./cluster.ts";
import { FLAVOR, useKueue } from "./queues.ts";

const kueue = useKueue("kueue");
const { cluster } = kueue;
const PODSET = "kueue.x-k8s.io/podset";

const gates: Gate[] = [];
const newGate = () => {
  const gate = new Gate();
  gates.push(gate);
  return gate;
};
afterEach(async () => {
  for (const gate of gates) gate.open();
  await Promise.all(cluster.rayJobs.store.list().map(({ metadata }) => cluster.remove(metadata.name)));
  for (const gate of gates.splice(0)) gate.remove();
});

/** A scenario whose whole history is judged at its end, before anything is cleared away. */
function underKueue(title: string, act: (seen: (what: string) => void) => Promise<void>): void {
  scenario(cluster, title, (seen) =>
    kueue.noting(async () => {
      await act(seen);
      const { violations, outlived, stories } = await kueue.judge();
      for (const [name, story] of stories) seen(`Kueue on ${name}: ${story.join(", ")}`);
      for (const [name, seconds] of outlived) seen(`a Pod of ${name} went ${seconds} s after its end`);
      expect(violations.join("\n")).toBe("");
    }),
  );
}

const queue = (name: string, spec: Partial<RayJobSpec>, gate: Gate, options?: Parameters<typeof kueue.queued>[1]) =>
  cluster.apply(kueue.queued(smallRayJob(name, { entrypoint: gate.entrypoint(), ...spec }, gate), options));
const ran = (gate: Gate, times = 1) => expect.poll(() => gate.runs(), { timeout: 60_000 }).toBe(times);
const priorityOf = (job: Stored<RayJob>) => kueue.workload(job)?.spec?.priority;

/** By the API server, not by what we have heard so far. */
async function podsOf(job: Stored<RayJob>): Promise<string[]> {
  const labelSelector = `${LABEL.rayJobUID}=${job.metadata.uid}`;
  const { items } = await cluster.client.list<Pod>(pods, { namespace: cluster.namespace, labelSelector });
  return items.map(({ metadata }) => metadata.name);
}

const untilFinished = (job: Stored<RayJob>) =>
  kueue.untilWorkload(job, "to be finished", (workload) => conditionOf(workload, "Finished")?.status === "True");

underKueue(
  "two RayJobs and room for one: the second waits without a Pod, and is admitted when the first has ended",
  async (seen) => {
    const [one, other] = [newGate(), newGate()];
    const first = await queue("first", { submissionMode: "K8sJobMode" }, one);
    expect(first.spec.suspend).toBe(true);
    await cluster.running("first");
    const second = await queue("second", { submissionMode: "HTTPMode" }, other);
    const waiting = await kueue.untilWorkload(
      second,
      "to wait",
      (workload) => conditionOf(workload, "QuotaReserved") !== undefined,
    );
    expect(holdsQuota(waiting)).toBe(false);
    seen(`the second waits: ${conditionOf(waiting, "QuotaReserved")?.message}`);
    expect((await cluster.phase("second", "Suspended")).status?.executionAttempt).toBeUndefined();
    expect(await podsOf(second)).toEqual([]);
    await ran(one);

    const since = stopwatch();
    one.open();
    expect((await cluster.ended("first")).status).toMatchObject({
      jobDeploymentStatus: "Complete",
      jobStatus: "SUCCEEDED",
    });
    await untilFinished(first);
    // Kueue suspends a submitter that is not over by then, and its log would be gone.
    expect(await cluster.log(cluster.submitter(first)!)).toContain("through the gate");
    await kueue.untilWorkload(second, "to be admitted", holdsQuota);
    seen(`the second is admitted ${since()} after the first was let go`);
    const running = await cluster.running("second");
    const head = cluster.head(running)!;
    expect(head.spec?.nodeSelector).toMatchObject(FLAVOR);
    expect(head.metadata.labels).toMatchObject({ [PODSET]: "head" });
    await ran(other);
    other.open();
    const { status } = await cluster.ended("second");
    expect(status).toMatchObject({ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED", executionAttempt: 0 });
    await untilFinished(second);
    await expect.poll(async () => Object.values(await kueue.usage()), { timeout: 60_000 }).toEqual(["0", "0"]);
    expect([one.runs(), other.runs()]).toEqual([1, 1]);
  },
);

underKueue(
  "a running RayJob is preempted: it is Suspended when its Pods are gone, and comes back as an attempt of its own",
  async (seen) => {
    const [patient, hasty] = [newGate(), newGate()];
    // As a user writes it who wants a say in the submitter's resources; without a command it is the operator's to run.
    const submitterPodTemplate = {
      spec: {
        restartPolicy: "Never",
        containers: [
          {
            name: "ray-job-submitter",
            image: "rayproject/ray:2.56.0",
            resources: { requests: { cpu: "100m", memory: "128Mi" } },
          },
        ],
      },
    } as NonNullable<RayJobSpec["submitterPodTemplate"]>;
    const low = await queue("low", { submissionMode: "K8sJobMode", submitterPodTemplate }, patient);
    const before = await cluster.running("low");
    await ran(patient);
    const submitter = cluster.submitter(before)!;
    expect(submitter.metadata.labels).toMatchObject({ [PODSET]: "submitter" });
    expect(submitter.spec?.nodeSelector).toMatchObject(FLAVOR);
    expect(submitter.spec?.containers[0]?.resources?.requests).toEqual({ cpu: "100m", memory: "128Mi" });

    const since = stopwatch();
    const high = await queue("high", { submissionMode: "HTTPMode" }, hasty, { urgent: true });
    await cluster.phase("low", "Suspended");
    seen(
      `Suspended ${since()} after the other was made; by then ${conditionOf(kueue.workload(low), "Evicted")?.message}`,
    );
    expect(await podsOf(low)).toEqual([]);
    await cluster.running("high");
    expect([priorityOf(low), priorityOf(high)]).toEqual([0, 1000]);
    await ran(hasty);
    hasty.open();
    expect((await cluster.ended("high")).status).toMatchObject({
      jobDeploymentStatus: "Complete",
      executionAttempt: 0,
    });

    const again = await cluster.running("low");
    expect(again.status).toMatchObject({ executionAttempt: 1, failed: 0 });
    expect(again.status!.jobId).not.toBe(before.status!.jobId);
    expect(again.status!.rayClusterName).not.toBe(before.status!.rayClusterName);
    patient.open();
    const { status } = await cluster.ended("low");
    expect(status).toMatchObject({ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED", executionAttempt: 1 });
    expect(status!.failed ?? 0).toBe(0);
    await untilFinished(low);
    expect([patient.runs(), hasty.runs()]).toEqual([2, 1]);
  },
);

/** The program of an attempt: the first fails, the next does not. */
const failsOnce = `echo run >> /gate/runs; [ "$ATTEMPT" != 0 ] || exit 1`;

const retries: readonly [how: string, spec: Partial<RayJobSpec>][] = [
  ["", { submissionMode: "K8sJobMode" }],
  [
    ", also where the attempts never overlap",
    { submissionMode: "SidecarMode", retryStrategy: { type: "BlockingRecreate" } },
  ],
];
for (const [how, spec] of retries) {
  underKueue(`a failed attempt is tried again on the same quota${how}: Kueue hears of no failure`, async (seen) => {
    const gate = newGate();
    const job = await queue("retried", { entrypoint: failsOnce, backoffLimit: 1, ...spec }, gate);
    const { status } = await cluster.ended("retried");
    expect(status).toMatchObject({ jobDeploymentStatus: "Complete", executionAttempt: 1, failed: 1, succeeded: 1 });
    expect(gate.runs()).toBe(2);
    const finished = await untilFinished(job);
    expect(conditionOf(finished, "Finished")?.reason).toBe("Succeeded");
    seen(kueue.phases("retried").join(" → "));
    expect(kueue.phases("retried")).not.toContain("Failed");
    const { stories } = await kueue.judge();
    const reserved = stories.get("retried")!.filter((told) => told.startsWith("QuotaReserved"));
    expect(reserved).toEqual(["QuotaReserved=True (QuotaReserved)"]);
  });
}

const everyEnd = (policy: "DeleteCluster" | "DeleteWorkers", ttlSeconds: number) =>
  (["Complete", "Failed"] as const).map((jobDeploymentStatus) => ({
    policy,
    condition: { jobDeploymentStatus, ttlSeconds },
  }));

underKueue(
  "deletion rules that take the cluster at once go together with a queue: quota and Pods are gone with the end",
  async (seen) => {
    const gate = newGate();
    const deletionStrategy = { deletionRules: everyEnd("DeleteCluster", 0) };
    const job = await queue("ruled", { deletionStrategy, submissionMode: "K8sJobMode" }, gate);
    await cluster.running("ruled");
    expect(kueue.workload(job) && holdsQuota(kueue.workload(job))).toBe(true);
    await ran(gate);
    gate.open();
    await cluster.ended("ruled");
    await untilFinished(job);
    const { status } = await cluster.status(
      "ruled",
      "resources released",
      (now) => findCondition(now, "ResourcesReleased")?.status === "True",
    );
    seen(`ResourcesReleased: ${findCondition(status!, "ResourcesReleased")?.message}`);
    await expect.poll(async () => Object.values(await kueue.usage()), { timeout: 60_000 }).toEqual(["0", "0"]);
    const left = cluster.podsOf(job).map(({ status: is }) => is?.phase);
    expect(left).toEqual(["Succeeded"]);
  },
);

underKueue(
  "deletion rules that keep the cluster are refused in a queue, and taken where somebody accepts Pods outside the quota: these are told of",
  async (seen) => {
    const gate = newGate();
    const deletionStrategy = { deletionRules: everyEnd("DeleteCluster", 20) };
    const wanted = kueue.queued(
      smallRayJob("kept", { entrypoint: gate.entrypoint(), submissionMode: "HTTPMode", deletionStrategy }, gate),
    );
    const words = await cluster.apply(wanted).then(() => "not at all", String);
    seen(`refused: ${words}`);
    expect(words).toContain("the queue takes the quota back when the job ends");
    expect(words).toContain("raykeeper.dev/allow-pods-outside-quota");

    const annotations = { "raykeeper.dev/allow-pods-outside-quota": "true" };
    const job = await cluster.apply({ ...wanted, metadata: { ...wanted.metadata, annotations } } as RayJob);
    await cluster.running("kept");
    await ran(gate);
    gate.open();
    const { status } = await cluster.ended("kept");
    const { reason, message } = findCondition(status!, "ResourcesReleased")!;
    expect(reason).toBe("KeptByPolicy");
    seen(`ResourcesReleased=False: ${message}`);
    await untilFinished(job);
    await expect
      .poll(async () => (await cluster.events(job)).join("\n"), { timeout: 30_000 })
      .toContain("PodsKeptOutsideQuota");
    const since = stopwatch();
    await cluster.status(
      "kept",
      "resources released",
      (now) => findCondition(now, "ResourcesReleased")?.status === "True",
    );
    seen(`released ${since()} later`);
    expect(await podsOf(job)).toEqual([]);
  },
);

underKueue(
  "once the workers of a RayJob that has ended are deleted, Kueue suspends what was kept of its cluster, and that is left so",
  async (seen) => {
    const gate = newGate();
    const stages = [...everyEnd("DeleteWorkers", 0), ...everyEnd("DeleteCluster", 60)];
    const wanted = smallRayJob("staged", { entrypoint: gate.entrypoint(), submissionMode: "HTTPMode" }, gate);
    const made = wanted.spec.rayClusterSpec!;
    const [head] = made.headGroupSpec.template.spec!.containers;
    const requests = { cpu: "50m", memory: "128Mi" };
    const worker = { name: "ray-worker", image: head!.image, resources: { requests, limits: { memory: "1Gi" } } };
    const workers = {
      ...{ groupName: "small", replicas: 1, minReplicas: 1, maxReplicas: 1, rayStartParams: { "num-cpus": "1" } },
      template: { spec: { containers: [worker] } },
    };
    const job = await cluster.apply(
      kueue.queued(
        {
          ...wanted,
          spec: {
            ...wanted.spec,
            rayClusterSpec: { ...made, workerGroupSpecs: [workers] },
            deletionStrategy: { deletionRules: stages },
          },
        } as RayJob,
        { annotations: { "raykeeper.dev/allow-pods-outside-quota": "true" } },
      ),
    );
    await cluster.running("staged");
    expect(await podsOf(job)).toHaveLength(2);
    await ran(gate);
    gate.open();
    const { status } = await cluster.ended("staged");
    const since = stopwatch();
    const name = status!.rayClusterName!;
    await cluster.until("Kueue to suspend the RayCluster", () =>
      Boolean(cluster.rayClusters.store.get(cluster.namespace, name)?.spec.suspend),
    );
    const told = await cluster.status("staged", "no Pod to be left", (now) =>
      / with 0 Pods /.test(findCondition(now, "ResourcesReleased")?.message ?? ""),
    );
    seen(`${since()} after the end: ${findCondition(told.status!, "ResourcesReleased")?.message}`);
    await cluster.until("its Pods to be gone", () => cluster.podsOf(job).length === 0);
    const later = await cluster.client.get<RayCluster>(rayClusters, cluster.namespace, name);
    expect(later.spec.suspend).toBe(true);
  },
);

underKueue(
  "a Workload is deleted while its RayJob waits for its user: suspended, admitted anew, and it ends",
  async () => {
    const job = await cluster.apply(kueue.queued(smallRayJob("interactive", { submissionMode: "InteractiveMode" })));
    const waiting = await cluster.phase("interactive", "Waiting");
    const { name, uid } = kueue.workload(job)!.metadata;
    await cluster.client.delete(workloads, cluster.namespace, name, { uid });
    await cluster.phase("interactive", "Suspended");
    const again = await cluster.status(
      "interactive",
      "waiting again",
      (now) => now.jobDeploymentStatus === "Waiting" && now.executionAttempt === 1,
    );
    expect(again.status!.rayClusterName).not.toBe(waiting.status!.rayClusterName);
    expect(kueue.workload(job)?.metadata.uid).not.toBe(uid);
    await cluster.submitByHand("interactive", "by-hand", "true");
    expect((await cluster.ended("interactive")).status).toMatchObject({
      jobDeploymentStatus: "Complete",
      jobId: "by-hand",
    });
    await untilFinished(job);
  },
);

underKueue(
  "a RayJob without a queue runs as ever; one that selects its cluster is suspended by Kueue for good if it has a queue, and explain tells how to get it going",
  async (seen) => {
    const [gate, other] = [newGate(), newGate()];
    await cluster.apply(smallRayJob("free", { entrypoint: gate.entrypoint(), submissionMode: "HTTPMode" }, gate));
    const free = await cluster.running("free");
    expect(kueue.workload(free)).toBeUndefined();

    const { spec, ...rest } = smallRayJob(
      "selecting",
      { entrypoint: "echo selected", submissionMode: "HTTPMode" },
      other,
    );
    const { rayClusterSpec: _, shutdownAfterJobFinishes: __, ...own } = spec;
    const clusterSelector = { "ray.io/cluster": free.status!.rayClusterName! };
    const selecting = await cluster.apply(kueue.queued({ ...rest, spec: { ...own, clusterSelector } }));
    expect(selecting.spec.suspend).toBe(true);
    await cluster.phase("selecting", "Suspended");
    expect(kueue.workload(selecting)).toBeUndefined();

    const where = ["-n", cluster.namespace, "--kubeconfig", cluster.kubeconfig];
    const explained = await run(launcher[0], [launcher[1], "explain", "rayjob", "selecting", ...where]);
    seen(explained.stdout);
    expect(explained.stdout).toContain("starts none that selects a RayCluster");
    await cluster.kubectlSays(["label", "rayjob", "selecting", `${LABEL.kueueQueueName}-`]);
    await cluster.kubectlSays(["patch", "rayjob", "selecting", "--type", "merge", "-p", `{"spec":{"suspend":false}}`]);
    expect((await cluster.ended("selecting")).status).toMatchObject({ jobDeploymentStatus: "Complete" });
    await ran(gate);
    gate.open();
    expect((await cluster.ended("free")).status).toMatchObject({ jobDeploymentStatus: "Complete" });
  },
);
