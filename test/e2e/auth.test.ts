/**
 * A real Ray that asks for a token: in every mode the job is handed over, followed and judged, and who has no token is
 * turned away.
 */
import { afterEach, describe, expect, it } from "vitest";
import type { Secret } from "../../src/api/kubernetes.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { secrets } from "../../src/machinery/kube/resources.ts";
import { proxyRayTransport } from "../../src/ray/proxy.ts";
import { Gate, namespace, rayJob, useCluster } from "./cluster.ts";

const cluster = useCluster();
const NAME = "token";
let gate: Gate;
afterEach(async () => {
  gate.open();
  await cluster.remove(NAME);
  gate.remove();
});

/** The job runs, on a Ray that asks for a token. */
async function running(spec: Partial<RayJobSpec>, authOptions: object = { mode: "token" }): Promise<Stored<RayJob>> {
  gate = new Gate();
  const wanted = rayJob(NAME, { entrypoint: gate.entrypoint("echo the log came too"), ...spec }, gate);
  const rayClusterSpec = { ...wanted.spec.rayClusterSpec!, authOptions };
  await cluster.apply({ ...wanted, spec: { ...wanted.spec, rayClusterSpec } });
  return cluster.running(NAME);
}

const token = async (name: string): Promise<string> => {
  const { data } = await cluster.client.get<Secret>(secrets, namespace, name);
  return Buffer.from(data!["auth_token"]!, "base64").toString();
};

/** What Ray answers through the API server, which hands a header of Ray's own on. */
async function asked(job: Stored<RayJob>, headers: Record<string, string>): Promise<string> {
  const { dashboardURL: dashboard = "" } = job.status ?? {};
  const request = { method: "GET", dashboard, path: "/api/jobs/", headers, timeout: 15_000 } as const;
  const { status, body } = await proxyRayTransport(cluster.transport).request(request);
  return `${status} ${status === 200 ? "" : body}`.trim();
}

describe.each(["K8sJobMode", "HTTPMode", "SidecarMode"] as const)(
  "a job in %s on a Ray that asks for a token",
  (submissionMode) => {
    it("succeeds, and whoever has no token, or a wrong one, is turned away", async () => {
      const job = await running({ submissionMode });
      const secret = job.status!.rayClusterName!;
      const known = await token(secret);
      expect(await asked(job, {})).toBe("401 Unauthorized: Missing authentication token");
      expect(await asked(job, { "x-ray-authorization": "Bearer nonsense" })).toBe(
        "403 Forbidden: Invalid authentication token",
      );
      expect(await asked(job, { "x-ray-authorization": `Bearer ${known}` })).toBe("200");
      gate.open();
      const { status } = await cluster.ended(NAME);
      expect(status).toMatchObject({ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED", executionAttempt: 0 });
      expect(JSON.stringify(status)).not.toContain(known);
      expect(gate.runs()).toBe(1);
      const gone = () =>
        cluster.client.get(secrets, namespace, secret).then(
          () => "there",
          () => "gone",
        );
      await expect.poll(gone, { timeout: 60_000 }).toBe("gone");
    });
  },
);

describe("a token of the user's own", () => {
  const own = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "own-token", namespace },
    data: { auth_token: btoa("open-sesame\n") },
  } as KubeObject;

  it("is waited for, and used by a command of the user's own: Ray's own CLI, which follows the log", async () => {
    gate = new Gate();
    const command = ["/bin/bash", "-c"];
    const args = [
      'ray job submit --address "http://$RAY_DASHBOARD_ADDRESS" --submission-id "$RAY_JOB_SUBMISSION_ID" -- echo it runs',
    ];
    const image = "rayproject/ray:2.56.0";
    const wanted = rayJob(NAME, {
      submitterPodTemplate: { spec: { containers: [{ name: "mine", image, command, args }] } },
    } as Partial<RayJobSpec>);
    const rayClusterSpec = {
      ...wanted.spec.rayClusterSpec!,
      authOptions: { mode: "token" as const, secretName: "own-token" },
    };
    await cluster.apply({ ...wanted, spec: { ...wanted.spec, rayClusterSpec } });
    await cluster.status(NAME, "the Secret to be missed", ({ conditions = [] }) =>
      conditions.some(({ type, message }) => type === "Started" && message.includes('secret "own-token" not found')),
    );
    await cluster.client.create(secrets, own);
    try {
      const { status } = await cluster.ended(NAME);
      expect(status).toMatchObject({ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" });
    } finally {
      await cluster.client.delete(secrets, namespace, "own-token");
    }
  });
});
