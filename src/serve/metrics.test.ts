import { describe, expect, it } from "vitest";
import type { Pod } from "../api/kubernetes.ts";
import type { Stored } from "../api/object.ts";
import type { RayCluster } from "../api/raycluster.ts";
import type { RayJob } from "../api/rayjob.ts";
import { PrometheusMetrics } from "./metrics.ts";
import { RayJobMetrics, registerRayObjects } from "./rayMetrics.ts";

const T0 = Date.UTC(2026, 0, 1);
const job = (status: Record<string, unknown>, uid = "u") =>
  ({
    metadata: { name: "a", namespace: "ns", uid, creationTimestamp: "2026-01-01T00:00:00Z" },
    status,
  }) as unknown as Stored<RayJob>;
const initializing = job({ jobDeploymentStatus: "Initializing", startTime: "2026-01-01T00:00:00Z" });
const running = job({ jobDeploymentStatus: "Running", startTime: "2026-01-01T00:00:00Z" });
const complete = job({
  jobDeploymentStatus: "Complete",
  startTime: "2026-01-01T00:00:00Z",
  attempts: [{ number: 0, jobStatus: "SUCCEEDED" }],
  rayJobInfo: { endTime: "2026-01-01T00:00:38Z" },
});

describe("the machinery's numbers", () => {
  it("are served under their names, with their labels", async () => {
    const metrics = new PrometheusMetrics();
    metrics.count("rest_client_requests_total", { method: "GET", code: "200" });
    metrics.count("rest_client_requests_total", { method: "GET", code: "200" }, 2);
    metrics.gauge("workqueue_depth", { name: "rayjob" }, 4);
    metrics.observe("workqueue_queue_duration_seconds", { name: "rayjob" }, 0.2);
    const text = await metrics.registry.metrics();
    expect(text).toContain('rest_client_requests_total{method="GET",code="200"} 3');
    expect(text).toContain('workqueue_depth{name="rayjob"} 4');
    expect(text).toContain('workqueue_queue_duration_seconds_bucket{le="0.25",name="rayjob"} 1');
    expect(text).toContain("process_resident_memory_bytes");
  });
});

describe("a RayJob's numbers", () => {
  const follow = (...changes: [Stored<RayJob> | undefined, number][]) => {
    const metrics = new PrometheusMetrics();
    const ray = new RayJobMetrics(metrics.registry, metrics);
    let old: Stored<RayJob> | undefined;
    for (const [now, second] of changes) {
      ray.changed({ old, new: now }, T0 + second * 1000);
      old = now;
    }
    return metrics.registry.metrics();
  };

  it("tell how long the attempt took, under KubeRay's name, and how it ended", async () => {
    const text = await follow([initializing, 0], [running, 30], [complete, 40]);
    expect(text).toContain(
      'kuberay_job_execution_duration_seconds{name="a",namespace="ns",uid="u",job_deployment_status="Complete",retry_count="0"} 40',
    );
    expect(text).toContain('raykeeper_rayjob_attempts_total{namespace="ns",outcome="SUCCEEDED"} 1');
    expect(text).toContain('raykeeper_rayjob_phase_seconds_sum{phase="Running"} 10');
    expect(text).toContain("raykeeper_rayjob_verdict_lag_seconds_sum 2");
  });

  it("leave no series of a deleted RayJob", async () => {
    const text = await follow([initializing, 0], [running, 30], [complete, 40], [undefined, 50]);
    expect(text).not.toContain("kuberay_job_execution_duration_seconds{");
  });

  it("do not count again what had happened before this process started", async () => {
    const text = await follow([complete, 0], [complete, 10]);
    expect(text).not.toContain("raykeeper_rayjob_attempts_total{");
  });
});

describe("objects listed at a scrape", () => {
  it("show RayJobs and RayClusters as they are then", async () => {
    const metrics = new PrometheusMetrics();
    const jobs: Stored<RayJob>[] = [running];
    const pods = ["u", "u", "another"].map(
      (uid) => ({ metadata: { labels: { "ray.io/rayjob-uid": uid } } }) as unknown as Stored<Pod>,
    );
    const cluster = {
      metadata: {
        name: "c",
        namespace: "ns",
        uid: "v",
        creationTimestamp: "2026-01-01T00:00:00Z",
        ownerReferences: [{ kind: "RayJob", controller: true }],
      },
      status: {
        conditions: [{ type: "RayClusterProvisioned", status: "True", lastTransitionTime: "2026-01-01T00:00:12Z" }],
      },
    } as unknown as Stored<RayCluster>;
    registerRayObjects(metrics.registry, {
      rayJobs: { list: () => jobs },
      rayClusters: { list: () => [cluster] },
      rayPods: { list: () => pods },
    });
    const text = await metrics.registry.metrics();
    expect(text).toContain(
      'kuberay_job_deployment_status{name="a",namespace="ns",uid="u",deployment_status="Running"} 1',
    );
    expect(text).toContain('kuberay_cluster_info{name="c",namespace="ns",uid="v",owner_kind="RayJob"} 1');
    expect(text).toContain('kuberay_cluster_condition_provisioned{name="c",namespace="ns",uid="v",condition="true"} 1');
    expect(text).toContain('kuberay_cluster_provisioned_duration_seconds{name="c",namespace="ns",uid="v"} 12');
    expect(text).not.toContain("raykeeper_rayjob_kept_pods{");
    jobs[0] = job({ conditions: [{ type: "ResourcesReleased", status: "False", reason: "KeptByPolicy" }] });
    expect(await metrics.registry.metrics()).toContain('raykeeper_rayjob_kept_pods{namespace="ns"} 2');
    jobs.length = 0;
    expect(await metrics.registry.metrics()).not.toContain("kuberay_job_info{");
  });
});
