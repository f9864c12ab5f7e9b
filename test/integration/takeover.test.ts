/** A cluster that KubeRay was on: its CRDs are there, and ours take their place. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { CustomResourceDefinition } from "../../src/api/kubernetes.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { realClock, sleep } from "../../src/machinery/clock.ts";
import { KubeClient } from "../../src/machinery/kube/client.ts";
import { isConflict } from "../../src/machinery/kube/errors.ts";
import { HttpTransport } from "../../src/machinery/kube/http.ts";
import { loadKubeconfig } from "../../src/machinery/kube/kubeconfig.ts";
import { customResourceDefinitions, rayJobs } from "../../src/machinery/kube/resources.ts";
import { kuberayCrds } from "../support/kuberayCrds.ts";
import { rayJob } from "../support/manifests.ts";
import { type ControlPlane, startControlPlane } from "./controlPlane.ts";

// One of its own: other tests need their CRDs.
let controlPlane: ControlPlane;
let transport: HttpTransport;
let client: KubeClient;
beforeAll(async () => {
  controlPlane = await startControlPlane();
  transport = new HttpTransport(loadKubeconfig(controlPlane.kubeconfig));
  client = new KubeClient(transport);
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
});
