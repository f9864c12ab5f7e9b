/** What an administrator's dashboards see of jobs that come and go. */
import { describe, expect, it } from "vitest";
import { rayJobs } from "../../src/machinery/kube/resources.ts";
import { PrometheusMetrics } from "../../src/serve/metrics.ts";
import { rayJob } from "../support/manifests.ts";
import { fails, runsForEver } from "./fakeRay.ts";
import { diligent } from "./fakeSubmitter.ts";
import { World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

describe("the metrics of an operator", () => {
  it("tell of a job that ran, in numbers that add up", async () => {
    const w = new World();
    worlds.push(w);
    const metrics = new PrometheusMetrics();
    w.start({ metrics });
    await w.client.create(rayJobs, rayJob());
    await w.untilPhase("Complete");
    await w.clock.advance(60_000);
    const text = await metrics.registry.metrics();
    expect(text).toContain('raykeeper_rayjob_attempts_total{namespace="default",outcome="SUCCEEDED"} 1');
    expect(text).toContain("raykeeper_rayjob_verdict_lag_seconds_count 1");
    expect(text).toMatch(/^raykeeper_dashboard_polls_total\{result="ok"\} [1-9]/m);
    expect(text).toMatch(/^controller_runtime_reconcile_total\{controller="rayjob",result="success"\} [1-9]/m);
    expect(text).toContain('controller_runtime_reconcile_errors_total{controller="rayjob"} 0');
    expect(text).toContain('controller_runtime_active_workers{controller="rayjob"} 0');
    expect(text).toContain('workqueue_depth{name="rayjob",controller="rayjob"} 0');
    expect(text).toMatch(/^rest_client_requests_total\{code="201",method="POST",host=""\} [1-9]/m);
    const phases = /^raykeeper_rayjob_phase_seconds_count\{phase="(\w+)"\} 1$/gm;
    expect([...text.matchAll(phases)].map(([, phase]) => phase)).toEqual(["New", "Initializing", "Running"]);
  });

  it("tell a lost head, a lost submission and a failed program apart, also of attempts that were tried again", async () => {
    const programs = [runsForEver, fails()];
    const submitters = [diligent, diligent];
    const w = new World({
      job: () => programs.shift()!,
      submitter: () => submitters.shift() ?? { ...diligent, failsEarly: true },
    });
    worlds.push(w);
    const metrics = new PrometheusMetrics();
    w.start({ metrics });
    await w.client.create(rayJobs, rayJob({ backoffLimit: 2, submitterConfig: { backoffLimit: 0 } }));
    await w.until("RUNNING", async () => (await w.job())?.status?.jobStatus === "RUNNING");
    await w.kubelet.lose((await w.head()).metadata.uid);
    const { status } = await w.untilPhase("Failed", "demo", 600_000);
    expect(status?.attempts?.map(({ reason }) => reason)).toEqual([
      "HeadPodLost",
      "ApplicationFailed",
      "SubmissionFailed",
    ]);
    await w.clock.advance(1000);
    const text = await metrics.registry.metrics();
    const told = /^raykeeper_rayjob_attempts_total\{namespace="default",outcome="(\w+)"\} 1$/gm;
    expect([...text.matchAll(told)].map(([, outcome]) => outcome)).toEqual([
      "HeadPodLost",
      "ApplicationFailed",
      "SubmissionFailed",
    ]);
  });

  it("forget a job that was deleted: a cluster that runs a thousand a day does not grow them", async () => {
    const w = new World();
    worlds.push(w);
    const metrics = new PrometheusMetrics();
    w.start({ metrics });
    const series = async () =>
      (await metrics.registry.metrics())
        .split("\n")
        .filter((line) => line !== "" && !/^(#|nodejs_|process_)/.test(line))
        .map((line) => line.slice(0, line.lastIndexOf(" ")));
    let first: string[] | undefined;
    for (const name of ["one", "two", "three"]) {
      await w.client.create(rayJobs, { ...rayJob(), metadata: { name, namespace: "default" } });
      await w.untilPhase("Complete", name);
      expect((await series()).filter((line) => line.includes(`"${name}"`))).not.toEqual([]);
      await w.client.delete(rayJobs, "default", name);
      await w.until(`${name} gone`, async () => (await w.job(name)) === undefined);
      await w.clock.advance(300_000);
      const left = await series();
      expect(left.filter((line) => line.includes(`"${name}`))).toEqual([]);
      first ??= left;
      expect(left).toEqual(first);
    }
  });
});
