/** A cluster that KubeRay was on: its CRDs are there, and ours take their place. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { CustomResourceDefinition } from "../../src/api/kubernetes.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { realClock, sleep } from "../../src/machinery/clock.ts";
import { KubeClient } from "../../src/machinery/kube/client.ts";
import { isConflict } from "../../src/machinery/kube/errors.ts";
import { HttpTransport } from "../../src/machinery/kube/http.ts";
import { loadKubeconfig } from "../../src/machinery/kube/kubeconfig.ts";
import { customResourceDefinitions, rayClusters, rayJobs } from "../../src/machinery/kube/resources.ts";
import { kuberayCrds } from "../support/kuberayCrds.ts";
import { rayJob } from "../support/manifests.ts";
import { type ControlPlane, freePorts, startControlPlane } from "./controlPlane.ts";

// One of its own: other tests need their CRDs.
let controlPlane: ControlPlane;
let transport: HttpTransport;
let client: KubeClient;
beforeAll(async () => {
  controlPlane = await startControlPlane();
  transport = new HttpTransport(loadKubeconfig(controlPlane.kubeconfig));
  // The server takes its time over definitions of this size where the machine does much else.
  client = new KubeClient(transport, { writeTimeout: 120_000, readTimeout: 120_000 });
});
afterAll(async () => {
  await transport?.close();
  await controlPlane?.close();
});

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
const apply = async () =>
  (await promisify(execFile)(process.execPath, [main, "crds", "--apply", "--kubeconfig", controlPlane.kubeconfig]))
    .stdout;

/** KubeRay's CRDs in place of what is there, as `kubectl replace` puts them. */
async function kuberayComes(): Promise<void> {
  for (const crd of kuberayCrds()) {
    const name = crd.metadata.name!;
    for (;;) {
      const there = await client.get<CustomResourceDefinition>(customResourceDefinitions, undefined, name);
      const { resourceVersion } = there.metadata;
      try {
        await client.update(customResourceDefinitions, { ...crd, metadata: { ...crd.metadata, resourceVersion } });
        break;
      } catch (error) {
        // The server writes conditions beside us.
        if (!isConflict(error)) throw error;
      }
    }
  }
}

it("crds --apply puts the CRDs on an empty cluster, and does nothing the second time", async () => {
  expect(await apply()).toBe("CRD rayclusters.ray.io created\nCRD rayjobs.ray.io created\n");
  expect(await apply()).toBe("CRD rayclusters.ray.io unchanged\nCRD rayjobs.ray.io unchanged\n");
});

it("crds --apply changes KubeRay's CRDs, says what is new, and from then on the journal is kept", async () => {
  await kuberayComes();
  expect(await apply()).toBe(
    "CRD rayclusters.ray.io changed (new: status.head.podUID)\n" +
      "CRD rayjobs.ray.io changed (new: spec.retryStrategy, status.attempts, status.conditions, status.executionAttempt, status.rayClusterStatus.head.podUID)\n",
  );
  const job = await client.create<RayJob>(rayJobs, rayJob());
  const status = { executionAttempt: 0, attempts: [{ number: 0, jobId: "a" }] };
  const write = () =>
    client.patch<RayJob>(rayJobs, "default", job.metadata.name, { status }, { subresource: "status" });
  // The server takes a moment to go by a definition that has changed.
  for (let tries = 0; (await write()).status?.attempts === undefined; tries++) {
    expect(tries).toBeLessThan(50);
    await sleep(realClock, 100);
  }
  expect((await client.get<RayJob>(rayJobs, "default", job.metadata.name)).status).toMatchObject(status);
  await client.delete(rayJobs, "default", job.metadata.name);
});

it("an operator waits for its CRDs, tells so in its log and /readyz, and ends when KubeRay's are put back under it", async () => {
  await kuberayComes();
  const [port] = await freePorts(1);
  const at = `127.0.0.1:${port}`;
  const flags = ["--kubeconfig", controlPlane.kubeconfig, "--health-probe-bind-address", at, "--metrics-addr", "0"];
  const operator = spawn("setpriv", ["--pdeathsig", "KILL", process.execPath, main, "operator", ...flags]);
  let log = "";
  for (const output of [operator.stdout, operator.stderr]) output.on("data", (piece) => (log += piece));
  const exit = once(operator, "exit");
  const readyz = () =>
    fetch(`http://${at}/readyz`).then(
      async (answer) => `${answer.status} ${await answer.text()}`,
      () => "no answer",
    );
  const until = async (what: string, holds: () => Promise<boolean>) => {
    for (let tries = 0; !(await holds()); tries++) {
      if (tries > 600 || operator.exitCode !== null) throw new Error(`never ${what}:\n${log}\n${await readyz()}`);
      await sleep(realClock, 200);
    }
  };
  await until("waiting", async () =>
    (await readyz()).startsWith("503 [-] crds: not started: CRD rayclusters.ray.io does not keep"),
  );
  expect(log).toContain("CRD rayjobs.ray.io does not keep status.attempts");
  await apply();
  await until("ready", async () => (await readyz()).startsWith("200 "));
  expect(log).toContain("the CRDs keep the journal now");

  await client.create<RayJob>(rayJobs, rayJob({}, "under-way"));
  // There is no kubelet: when the Pods are made and that is told, nothing is written any more.
  await until("under way", async () => {
    const { items } = await client.listAll<RayCluster>(rayClusters, { namespace: "default" });
    return items.some(({ status }) => status?.desiredWorkerReplicas === 2);
  });
  expect((await statusOf("under-way"))?.attempts).toHaveLength(1);
  await kuberayComes();
  // It learns of it by the answer to its next write.
  await client.create<RayJob>(rayJobs, rayJob({}, "later"));
  expect(await exit).toEqual([1, null]);
  expect(log).toContain("the journal is not kept any more: CRD rayclusters.ray.io does not keep status.head.podUID");
  const made = await client.listAll(rayClusters, { namespace: "default" });
  expect(made.items.map(({ metadata }) => metadata.labels?.["ray.io/originated-from-cr-name"])).toEqual(["under-way"]);
  // What nobody has written meanwhile was there all the time.
  expect((await statusOf("under-way"))?.attempts).toBeUndefined();
  await apply();
  for (let tries = 0; (await statusOf("under-way"))?.attempts === undefined; tries++) {
    expect(tries).toBeLessThan(50);
    await sleep(realClock, 100);
  }
}, 600_000);

const statusOf = async (name: string) => (await client.get<RayJob>(rayJobs, "default", name)).status;
