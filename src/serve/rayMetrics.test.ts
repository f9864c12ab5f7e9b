import { describe, expect, it } from "vitest";
import type { Pod } from "../api/kubernetes.ts";
import type { Stored } from "../api/object.ts";
import type { RayCluster } from "../api/raycluster.ts";
import type { RayJob } from "../api/rayjob.ts";
import { PrometheusMetrics } from "./metrics.ts";
import { listRayObjects, RayJobMetrics } from "./rayMetrics.ts";

const T0 = Date.UTC(2026, 0, 1);
const startTime = "2026-01-01T00:00:00Z";
const job = (status: Record<string, unknown>, { uid = "u", namespace = "ns" } = {}) =>
  ({
    metadata: { name: "a", namespace, uid, creationTimestamp: startTime },
    status,
  }) as unknown as Stored<RayJob>;
const initializing = job({ jobDeploymentStatus: "Initializing", startTime });
const running = job({ jobDeploymentStatus: "Running", startTime });
const complete = job({
  jobDeploymentStatus: "Complete",
  startTime,
  attempts: [{ number: 0, jobStatus: "SUCCEEDED" }],
  rayJobInfo: { endTime: "2026-01-01T00:00:38Z" },
});
const retrying = job({
  jobDeploymentStatus: "Retrying",
  startTime,
  failed: 1,
  reason: "AppFailed",
  attempts: [{ number: 0, reason: "HeadPodLost", barrier: { blockedTime: "2026-01-01T00:00:40Z" } }],
});
const failed = job({ ...retrying.status, jobDeploymentStatus: "Failed" });

type Step = readonly [Stored<RayJob> | undefined, number];

function follow(steps: readonly Step[], leading: () => boolean = () => true) {
  const metrics = new PrometheusMetrics();
  const ray = new RayJobMetrics(metrics, leading);
  let old: Stored<RayJob> | undefined;
  for (const [now, second] of steps) {
    ray.changed({ old, new: now }, T0 + second * 1000);
    old = now;
  }
  return metrics.registry.metrics();
}

describe("a RayJob's numbers", () => {
  it("tell how long the attempt took, under KubeRay's name, and how it ended", async () => {
    const text = await follow([
      [initializing, 0],
      [running, 30],
      [complete, 40],
    ]);
    expect(text).toContain(
      'kuberay_job_execution_duration_seconds{name="a",namespace="ns",uid="u",job_deployment_status="Complete",retry_count="0"} 40',
    );
    expect(text).toContain('raykeeper_rayjob_attempts_total{namespace="ns",outcome="SUCCEEDED"} 1');
    expect(text).toContain('raykeeper_rayjob_phase_seconds_sum{phase="Running"} 10');
    expect(text).toContain("raykeeper_rayjob_verdict_lag_seconds_sum 2");
  });

  it("count an attempt that failed once, though its retry is given up later", async () => {
    const text = await follow([
      [running, 0],
      [retrying, 40],
      [failed, 70],
    ]);
    expect(text).toContain('raykeeper_rayjob_attempts_total{namespace="ns",outcome="HeadPodLost"} 1');
    expect(text).toContain("raykeeper_rayjob_retry_blocked_seconds_sum 30");
    expect(text).toContain('job_deployment_status="Retrying",retry_count="0"} 40');
  });

  it("count a suspended attempt as one that ended", async () => {
    const suspended = job({ jobDeploymentStatus: "Suspended", attempts: [{ number: 0 }] });
    const text = await follow([
      [running, 0],
      [suspended, 5],
    ]);
    expect(text).toContain('raykeeper_rayjob_attempts_total{namespace="ns",outcome="Suspended"} 1');
  });

  it.each(["", "ValidationFailed"])(
    "count no attempt of a RayJob that is suspended before it began (%j)",
    async (phase) => {
      const text = await follow([
        [job({ jobDeploymentStatus: phase }), 0],
        [job({ jobDeploymentStatus: "Suspended" }), 1],
      ]);
      expect(text).not.toContain("raykeeper_rayjob_attempts_total{");
    },
  );

  it("leave no series of a deleted RayJob, also where a namesake takes its place unseen", async () => {
    const lived: Step[] = [
      [initializing, 0],
      [running, 30],
      [complete, 40],
    ];
    expect(await follow([...lived, [undefined, 50]])).not.toContain("kuberay_job_execution_duration_seconds{");
    const namesake = job({ jobDeploymentStatus: "Initializing", startTime }, { uid: "v" });
    expect(await follow([...lived, [namesake, 50]])).not.toContain("kuberay_job_execution_duration_seconds{");
  });

  it("do not count again what had happened before this process started", async () => {
    const text = await follow([
      [complete, 0],
      [complete, 10],
    ]);
    expect(text).not.toContain("raykeeper_rayjob_attempts_total{");
  });

  it("are the leader's alone, and a standby that takes over knows since when", async () => {
    let leading = false;
    const steps: Step[] = [
      [initializing, 0],
      [running, 30],
    ];
    expect(await follow([...steps, [complete, 40]], () => leading)).not.toContain('_seconds_sum{phase="');
    const metrics = new PrometheusMetrics();
    const ray = new RayJobMetrics(metrics, () => leading);
    ray.changed({ new: initializing }, T0);
    ray.changed({ old: initializing, new: running }, T0 + 30_000);
    leading = true;
    ray.changed({ old: running, new: complete }, T0 + 40_000);
    const text = await metrics.registry.metrics();
    expect(text).toContain('raykeeper_rayjob_phase_seconds_sum{phase="Running"} 10');
    expect(text).not.toContain('raykeeper_rayjob_phase_seconds_sum{phase="Initializing"}');
  });

  it("do not grow with namespaces that come and go: the one that was quiet longest goes", async () => {
    const metrics = new PrometheusMetrics();
    const ray = new RayJobMetrics(metrics, () => true);
    for (let number = 0; number < 1100; number++) {
      const of = { uid: `u${number}`, namespace: `pr-${number}` };
      const [before, after] = [job({ ...running.status }, of), job({ ...complete.status }, of)];
      ray.changed({ new: before }, T0);
      ray.changed({ old: before, new: after }, T0);
      ray.changed({ old: after }, T0);
    }
    const text = await metrics.registry.metrics();
    expect(text.match(/^raykeeper_rayjob_attempts_total\{/gm)).toHaveLength(1000);
    expect(text).toContain('namespace="pr-1099"');
    expect(text).not.toContain('namespace="pr-0"');
    expect(text).not.toContain("kuberay_job_execution_duration_seconds{");
  });
});

describe("objects listed at a scrape", () => {
  const cluster = {
    metadata: {
      name: "c",
      namespace: "ns",
      uid: "v",
      creationTimestamp: startTime,
      ownerReferences: [{ kind: "RayJob", controller: true }],
    },
    status: {
      conditions: [{ type: "RayClusterProvisioned", status: "True", lastTransitionTime: "2026-01-01T00:00:12Z" }],
    },
  } as unknown as Stored<RayCluster>;
  const pod = (phase: string) => ({ metadata: {}, status: { phase } }) as unknown as Stored<Pod>;

  function world({ leading = true } = {}) {
    const jobs: Stored<RayJob>[] = [running];
    const clusters = [cluster];
    const metrics = new PrometheusMetrics();
    const rayPods = {
      byIndex: (index: string, uid: string) =>
        index === "rayJob" && uid === "u" ? [pod("Running"), pod("Pending"), pod("Succeeded")] : [],
    };
    const stores = { rayJobs: { list: () => jobs }, rayClusters: { list: () => clusters }, rayPods };
    listRayObjects(metrics, stores, () => leading);
    return { jobs, clusters, text: () => metrics.registry.metrics() };
  }

  it("show RayJobs and RayClusters as they are then, and nothing of those that are gone", async () => {
    const { jobs, clusters, text } = world();
    const first = await text();
    expect(first).toContain(
      'kuberay_job_deployment_status{name="a",namespace="ns",uid="u",deployment_status="Running"} 1',
    );
    expect(first).toContain('kuberay_job_info{name="a",namespace="ns",uid="u"} 1');
    expect(first).toContain('kuberay_cluster_info{name="c",namespace="ns",uid="v",owner_kind="RayJob"} 1');
    expect(first).toContain(
      'kuberay_cluster_condition_provisioned{name="c",namespace="ns",uid="v",condition="true"} 1',
    );
    expect(first).toContain('kuberay_cluster_provisioned_duration_seconds{name="c",namespace="ns",uid="v"} 12');
    jobs.length = 0;
    clusters.length = 0;
    expect(await text()).not.toMatch(/^kuberay_\w+\{/m);
  });

  it("count the Pods that are kept and alive", async () => {
    const { jobs, text } = world();
    expect(await text()).not.toContain("raykeeper_rayjob_kept_pods{");
    jobs[0] = job({ conditions: [{ type: "ResourcesReleased", status: "False", reason: "KeptByPolicy" }] });
    expect(await text()).toContain('raykeeper_rayjob_kept_pods{namespace="ns"} 2');
  });

  it("are shown by the leader alone, so that the sum over replicas is right", async () => {
    expect(await world({ leading: false }).text()).not.toMatch(/^kuberay_\w+\{|^raykeeper_rayjob_kept_pods\{/m);
  });
});
