/**
 * SidecarSubmitterRestart on a real Ray: a cluster of its own, whose operator has the feature gate on.
 */
import { afterAll, expect, it } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import { LABEL, NODE_TYPE, SUBMITTER_CONTAINER } from "../../src/api/labels.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { type LocalCluster, startLocalCluster } from "../../src/local/cluster.ts";
import { KubeClient } from "../../src/machinery/kube/client.ts";
import { pods, rayJobs } from "../../src/machinery/kube/resources.ts";
import { Gate, rayJob } from "./cluster.ts";
import { descendants } from "./command.ts";

let local: LocalCluster | undefined;
const gate = new Gate();
afterAll(async () => {
  gate.open();
  await local?.close();
  gate.remove();
});

it("a sidecar that is killed mid-run is started again, follows on, and the job is run once", async () => {
  local = await startLocalCluster({ operatorArguments: ["--feature-gates", "SidecarSubmitterRestart=true"] });
  const client = new KubeClient(local.transport);
  const spec = {
    submissionMode: "SidecarMode",
    entrypoint: gate.entrypoint(),
    shutdownAfterJobFinishes: false,
  } as const;
  await client.create(rayJobs, rayJob("again", spec, gate));
  const status = async () => (await client.get<RayJob>(rayJobs, "default", "again")).status;
  const submitter = async () => {
    const all = (await client.list<Pod>(pods, { namespace: "default" })).items;
    const head = all.find(({ metadata }) => metadata.labels?.[LABEL.nodeType] === NODE_TYPE.head);
    return head?.status?.containerStatuses?.find(({ name }) => name === SUBMITTER_CONTAINER);
  };
  const patient = { timeout: 300_000, interval: 500 };
  await expect.poll(async () => (await status())?.jobStatus, patient).toBe("RUNNING");
  const { jobId } = (await status())!;

  const sidecars = descendants(process.pid).filter(({ command }) => /^\S*python\S* .*Hands a Ray job/s.test(command));
  expect(sidecars.length).toBeGreaterThan(0);
  for (const { pid } of sidecars) process.kill(pid, "SIGKILL");
  await expect.poll(submitter, patient).toMatchObject({ restartCount: 1, state: { running: {} } });
  expect(await status()).toMatchObject({ jobDeploymentStatus: "Running", jobStatus: "RUNNING", jobId });

  gate.open();
  await expect.poll(async () => (await status())?.jobDeploymentStatus, patient).toBe("Complete");
  expect(await status()).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, jobId });
  expect(await submitter()).toMatchObject({ restartCount: 1, state: { terminated: { exitCode: 0 } } });
  expect((await status())?.conditions).toContainEqual(
    expect.objectContaining({ type: "SubmitterHealthy", status: "True", reason: "Finished" }),
  );
  expect(gate.runs()).toBe(1);
});
