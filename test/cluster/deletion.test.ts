/**
 * What becomes of a RayJob's cluster, and of itself, when it has ended: both forms of `deletionStrategy`, with a real Ray.
 *
 * What the operator asked for, and when, is told by the API server's audit log: nothing goes sooner than its rule has it.
 * `shutdownAfterJobFinishes` with a TTL: life.test.ts.
 */
import { afterEach, expect } from "vitest";
import { LABEL, NODE_TYPE } from "../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { DeletionPolicy, RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { findCondition } from "../../src/domain/rayjob/conditions.ts";
import { jobs, pods, type ResourceType, rayClusters, rayJobs, services } from "../../src/machinery/kube/resources.ts";
import { audited } from "./audit.ts";
import { scenario, smallRayJob, useCluster } from "./cluster.ts";
import { OPERATOR_USER } from "./operator.ts";

const cluster = useCluster("deletion");

afterEach(() => Promise.all(cluster.rayJobs.store.list().map(({ metadata }) => cluster.remove(metadata.name))));

/** Seconds after the end of the job, which is told in whole ones, at which the operator first asked for something. */
function askedAfter({ metadata: { namespace }, status }: Stored<RayJob>, what: string, name: string): number {
  const end = Date.parse(status!.endTime!);
  const first = audited(OPERATOR_USER, end).find(
    ({ verb, objectRef: { resource, subresource = "", namespace: where, name: which } = {} }) =>
      `${verb} ${resource}${subresource}` === what && where === namespace && which === name,
  );
  return (Date.parse(first?.requestReceivedTimestamp ?? "") - end) / 1000;
}
const deletedAfter = (job: Stored<RayJob>): number => askedAfter(job, "delete rayjobs", job.metadata.name);

const nodesOf = (job: Stored<RayJob>, type: string) =>
  cluster.podsOf(job).filter(({ metadata }) => metadata.labels?.[LABEL.nodeType] === type);
const clusterOf = ({ status }: Stored<RayJob>) =>
  cluster.rayClusters.store.get(cluster.namespace, status!.rayClusterName!);

/** One head and one worker. */
function withWorker(name: string, spec: Partial<RayJobSpec>): RayJob {
  const job = smallRayJob(name, { shutdownAfterJobFinishes: false, ...spec });
  const ray = job.spec.rayClusterSpec!;
  const [{ env: _, ...container }] = structuredClone(ray.headGroupSpec.template.spec!.containers) as [
    { env?: unknown; name: string; image: string },
  ];
  const template = { spec: { containers: [{ ...container, name: "ray-worker" }] } };
  ray.workerGroupSpecs = [
    { groupName: "small", replicas: 1, minReplicas: 1, maxReplicas: 1, rayStartParams: { "num-cpus": "1" }, template },
  ];
  return job;
}

const rule = (policy: DeletionPolicy, jobStatus: "SUCCEEDED" | "FAILED", ttlSeconds = 0) => ({
  policy,
  condition: { jobStatus, ttlSeconds },
});

const released = (name: string, reason: string, said: RegExp) =>
  cluster.status(name, `${reason}: ${said}`, (status) => {
    const told = findCondition(status, "ResourcesReleased");
    return told?.reason === reason && said.test(told.message ?? "");
  });

/** Of this namespace, as the leader has it. */
async function keptPods(): Promise<number | undefined> {
  const pages = await Promise.all(
    cluster.operators.store.list().map(async ({ status }) => {
      const answer = await fetch(`http://${status?.podIP}:8080/metrics`).catch(() => undefined);
      return answer ? answer.text() : "";
    }),
  );
  const line = new RegExp(`^raykeeper_rayjob_kept_pods\\{namespace="${cluster.namespace}"\\} (\\d+)$`, "m");
  const [found] = pages.flatMap((page) => line.exec(page)?.[1] ?? []);
  return found === undefined ? undefined : Number(found);
}
const told = (count: number | undefined) => expect.poll(keptPods, { timeout: 30_000 }).toBe(count);

/** Nothing has its label or is owned by it, and it is gone itself: asked live, of all kinds that are ever made for one. */
async function nothingIsLeft(job: Stored<RayJob>): Promise<void> {
  await cluster.nothingLeft(job);
  const { uid } = job.metadata;
  const mine = ({ metadata }: Stored<KubeObject>) =>
    metadata.uid === uid ||
    metadata.labels?.[LABEL.rayJobUID] === uid ||
    metadata.labels?.[LABEL.cluster] === job.status!.rayClusterName;
  const all = await Promise.all(
    ([rayJobs, rayClusters, pods, services, jobs] satisfies ResourceType[]).map((type) =>
      cluster.client.listAll(type, { namespace: cluster.namespace }),
    ),
  );
  expect(
    all.flatMap(({ items }) => items.filter(mine).map(({ kind, metadata }) => `${kind} ${metadata.name}`)),
  ).toEqual([]);
}

scenario(
  cluster,
  "by rules the workers go at once, the cluster later, the RayJob last, none before its time; and nothing is left",
  async (seen) => {
    const stages = [
      rule("DeleteSelf", "SUCCEEDED", 18),
      rule("DeleteWorkers", "SUCCEEDED"),
      rule("DeleteCluster", "SUCCEEDED", 9),
    ];
    const deletionRules = [...stages, rule("DeleteCluster", "FAILED")];
    await cluster.apply(withWorker("staged", { entrypoint: "true", deletionStrategy: { deletionRules } }));
    const job = await cluster.ended("staged");
    expect(job.status).toMatchObject({ jobStatus: "SUCCEEDED", jobDeploymentStatus: "Complete" });

    await cluster.until("the worker to be gone", () => nodesOf(job, NODE_TYPE.worker).length === 0);
    expect(nodesOf(job, NODE_TYPE.head)).toHaveLength(1);
    const kept = await released("staged", "KeptByPolicy", /with 1 Pod \(cpu 50m, memory 256Mi\) is left: /);
    const { message } = findCondition(kept.status!, "ResourcesReleased")!;
    expect(message).toContain("it is deleted 9 s after the end of the job");
    await told(1);
    seen(message!);

    await cluster.until("its RayCluster to be gone", () => !clusterOf(job));
    await released("staged", "Released", /No Pod/);
    await told(undefined);
    await nothingIsLeft(job);
    const ray = job.status!.rayClusterName!;
    const suspended = askedAfter(job, "patch rayclusters", ray);
    const times = [suspended, askedAfter(job, "delete rayclusters", ray), deletedAfter(job)];
    seen(`deleted after the end: the worker ${times[0]} s, the RayCluster ${times[1]} s, the RayJob ${times[2]} s`);
    for (const [index, least] of [0, 9, 18].entries()) expect(times[index]).toBeGreaterThanOrEqual(least);
    expect([...times].sort((one, other) => one - other)).toEqual(times);
    const events = (await cluster.events()).filter((event) => event.includes("RayJob/staged"));
    expect(events.filter((event) => / (UpdatedRayCluster|DeletedRayCluster) /.test(event))).toHaveLength(2);
  },
);

scenario(
  cluster,
  "by the older form each policy does what it says, HTTPMode; an edit of a RayJob that is over counts at once",
  async (seen) => {
    const none = { policy: "DeleteNone" } as const;
    const spec = {
      entrypoint: "true",
      submissionMode: "HTTPMode",
      deletionStrategy: { onSuccess: none, onFailure: none },
    } as const;
    await cluster.apply(withWorker("kept", spec));
    const job = await cluster.ended("kept");
    expect(job.status).toMatchObject({ jobStatus: "SUCCEEDED", jobDeploymentStatus: "Complete" });
    const kept = await released(
      "kept",
      "KeptByPolicy",
      /with 2 Pods \(cpu 100m, memory 512Mi\) is kept, because spec\.deletionStrategy\.onSuccess says DeleteNone/,
    );
    seen(findCondition(kept.status!, "ResourcesReleased")!.message!);
    await told(2);

    const says = (policy: DeletionPolicy) =>
      cluster.client.patch(rayJobs, cluster.namespace, "kept", {
        spec: { deletionStrategy: { onSuccess: { policy } } },
      });
    await says("DeleteWorkers");
    await cluster.until("the worker to be gone", () => nodesOf(job, NODE_TYPE.worker).length === 0);
    await released(
      "kept",
      "KeptByPolicy",
      /with 1 Pod \(cpu 50m, memory 256Mi\) is left: its workers are deleted now, the rest is kept/,
    );
    expect(nodesOf(job, NODE_TYPE.head)).toHaveLength(1);
    await told(1);

    await says("DeleteCluster");
    await cluster.until("its RayCluster to be gone", () => !clusterOf(job));
    await released("kept", "Released", /No Pod/);
    expect(cluster.rayJobs.store.get(cluster.namespace, "kept")?.metadata.deletionTimestamp).toBeUndefined();
    await told(undefined);

    await says("DeleteSelf");
    await nothingIsLeft(job);
  },
);

scenario(cluster, "a job that fails follows onFailure, SidecarMode, no sooner than its TTL", async (seen) => {
  await cluster.apply(
    smallRayJob("failing", {
      entrypoint: "exit 3",
      submissionMode: "SidecarMode",
      shutdownAfterJobFinishes: true,
      ttlSecondsAfterFinished: 8,
      deletionStrategy: { onSuccess: { policy: "DeleteCluster" }, onFailure: { policy: "DeleteSelf" } },
    }),
  );
  const job = await cluster.ended("failing");
  expect(job.status).toMatchObject({ jobStatus: "FAILED", jobDeploymentStatus: "Failed" });
  await nothingIsLeft(job);
  seen(`the RayJob was deleted ${deletedAfter(job)} s after its end`);
  expect(deletedAfter(job)).toBeGreaterThanOrEqual(8);
});

scenario(
  cluster,
  "a way to end that no rule is for is warned of at once and told at the end; a RayJob that selected its cluster deletes itself alone",
  async (seen) => {
    const deletionStrategy = { deletionRules: [rule("DeleteSelf", "SUCCEEDED")] };
    const spec = {
      entrypoint: "exit 3",
      submissionMode: "HTTPMode",
      shutdownAfterJobFinishes: false,
      deletionStrategy,
    } as const;
    const input = JSON.stringify(smallRayJob("unmatched", spec));
    const { stderr } = await cluster.kubectl(["create", "-f", "-"], { input });
    seen(stderr.trim());
    expect(stderr).toContain("Warning: spec.deletionStrategy.deletionRules: ");
    const job = await cluster.ended("unmatched");
    expect(job.status).toMatchObject({ jobStatus: "FAILED", jobDeploymentStatus: "Failed" });
    await released(
      "unmatched",
      "KeptByPolicy",
      /with 1 Pod \(.*\) is kept, because no rule of spec\.deletionStrategy matches/,
    );
    const event = () => cluster.events(job).then((all) => all.find((one) => one.includes(" NoDeletionRuleMatched ")));
    await expect.poll(event, { timeout: 30_000 }).toContain("jobDeploymentStatus Failed with jobStatus FAILED");
    seen((await event())!);

    const name = job.status!.rayClusterName!;
    const { rayClusterSpec: _, ...bare } = smallRayJob("guest", { entrypoint: "true" }).spec;
    const guest = (policy: DeletionPolicy): RayJob => ({
      apiVersion: "ray.io/v1",
      kind: "RayJob",
      metadata: { name: "guest" },
      spec: {
        ...bare,
        shutdownAfterJobFinishes: false,
        clusterSelector: { [LABEL.cluster]: name },
        deletionStrategy: { deletionRules: [rule(policy, "SUCCEEDED", 4), rule("DeleteSelf", "FAILED")] },
      } as RayJobSpec,
    });
    const refused = await cluster.kubectl(["create", "-f", "-"], { input: JSON.stringify(guest("DeleteCluster")) });
    seen(refused.stderr.trim());
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining("DeletionPolicyType 'DeleteCluster' not supported when ClusterSelector is set"),
    ]);
    const before = clusterOf(job)!;
    await cluster.apply(guest("DeleteSelf"));
    const over = await cluster.ended("guest");
    expect(over.status).toMatchObject({
      jobStatus: "SUCCEEDED",
      jobDeploymentStatus: "Complete",
      rayClusterName: name,
    });
    await cluster.nothingLeft(over);
    expect(deletedAfter(over)).toBeGreaterThanOrEqual(4);
    const now = clusterOf(job)!;
    expect([now.metadata.uid, now.metadata.generation]).toEqual([before.metadata.uid, before.metadata.generation]);
    expect(now.metadata.deletionTimestamp).toBeUndefined();
    expect(nodesOf(job, NODE_TYPE.head).map(({ metadata }) => metadata.deletionTimestamp)).toEqual([undefined]);

    // What the event asks for.
    const deletionRules = [...deletionStrategy.deletionRules, rule("DeleteSelf", "FAILED")];
    await cluster.client.patch(rayJobs, cluster.namespace, "unmatched", {
      spec: { deletionStrategy: { deletionRules } },
    });
    await nothingIsLeft(job);
  },
);
