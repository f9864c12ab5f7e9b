/**
 * Today's kubectl, unmodified, on the embedded cluster.
 */
import { afterAll, describe, expect, it } from "vitest";
import { Gate, rayJob, useCluster } from "./cluster.ts";
import { run, start } from "./command.ts";

const cluster = useCluster();
const gate = new Gate();
const installed = await run("kubectl", ["version", "--client"]).then(
  ({ code }) => code === 0,
  () => false,
);
const kubectl = (...args: string[]) => run("kubectl", ["--kubeconfig", cluster.kubeconfig, ...args]);
const withInput = (input: string, ...args: string[]) =>
  run("kubectl", ["--kubeconfig", cluster.kubeconfig, ...args], { input });
const manifest = JSON.stringify(rayJob("kubectl", { entrypoint: gate.entrypoint() }, gate));

/** What it printed, once it has succeeded. */
async function ok(finished: ReturnType<typeof kubectl>): Promise<string> {
  const { code, stdout, stderr } = await finished;
  expect(code, stderr).toBe(0);
  return stdout;
}

// One by one and in this order: each verb needs what the one before has made.
describe("kubectl", () => {
  afterAll(async () => {
    gate.open();
    await cluster.remove("kubectl");
    gate.remove();
  });
  const verb = (name: string, work: () => Promise<void>) =>
    it(name, async ({ skip }) => {
      skip(!installed, "kubectl is not installed");
      await work();
    });

  verb("create makes a RayJob, and refuses an unknown field by its name", async () => {
    expect(await ok(withInput(manifest, "create", "-f", "-"))).toContain("rayjob.ray.io/kubectl created");
    const wrong = await withInput(
      manifest.replace('"entrypoint"', '"entrypointt"').replace('"kubectl"', '"other"'),
      "create",
      "-f",
      "-",
    );
    expect(wrong.code).not.toBe(0);
    expect(wrong.stderr).toContain('unknown field "spec.entrypointt"');
  });

  verb("get shows KubeRay's columns", async () => {
    await cluster.running("kubectl");
    const [header, row] = (await ok(kubectl("get", "rayjob", "kubectl"))).split("\n");
    expect(header!.split(/ {2,}/).map((cell) => cell.trim())).toEqual([
      "NAME",
      "JOB STATUS",
      "DEPLOYMENT STATUS",
      "RAY CLUSTER NAME",
      "START TIME",
      "END TIME",
      "AGE",
    ]);
    expect(row).toMatch(/^kubectl +RUNNING +Running +kubectl-\w+ /);
    expect(await ok(kubectl("get", "rayclusters,pods,services,jobs", "-o", "wide"))).toContain("pod/kubectl-");
  });

  verb("get -o yaml shows the object", async () => {
    expect(await ok(kubectl("get", "rayjob/kubectl", "-o", "yaml"))).toMatch(/jobDeploymentStatus: Running/);
  });

  verb("get -w shows changes as they come", async () => {
    const watching = start("kubectl", [
      "--kubeconfig",
      cluster.kubeconfig,
      "get",
      "rayjob",
      "kubectl",
      "-w",
      "-o",
      "jsonpath={.metadata.labels.seen}{'\\n'}",
    ]);
    await ok(kubectl("label", "rayjob", "kubectl", "seen=yes", "--overwrite"));
    await watching.printed(/yes/);
    watching.child.kill();
    await watching.finished;
  });

  verb("describe tells what happened", async () => {
    const text = await ok(kubectl("describe", "rayjob", "kubectl"));
    expect(text).toMatch(/Job Deployment Status: +Running/);
    expect(text).toMatch(/Events:[\s\S]*CreatedRayCluster/);
  });

  verb("events shows the RayJob's events", async () => {
    expect(await ok(kubectl("events", "--for", "rayjob/kubectl"))).toContain("CreatedRayCluster");
    expect(await ok(kubectl("get", "events"))).toContain("CreatedRayCluster");
  });

  verb("patch changes it by a merge patch and by a JSON patch", async () => {
    await ok(
      kubectl("patch", "rayjob", "kubectl", "--type", "merge", "-p", '{"metadata":{"annotations":{"a":"merge"}}}'),
    );
    await ok(
      kubectl(
        "patch",
        "rayjob",
        "kubectl",
        "--type",
        "json",
        "-p",
        '[{"op":"replace","path":"/metadata/annotations/a","value":"json"}]',
      ),
    );
    expect(await ok(kubectl("get", "rayjob", "kubectl", "-o", "jsonpath={.metadata.annotations.a}"))).toBe("json");
  });

  verb("apply on the server's side is refused with 415 and what to do instead", async () => {
    const refused = await withInput(manifest, "apply", "--server-side", "-f", "-");
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toMatch(/raykeeper run/);
    const strategic = await kubectl(
      "patch",
      "pod",
      cluster.head(cluster.rayJobs.store.get("default", "kubectl")!)!.metadata.name,
      "--type",
      "strategic",
      "-p",
      '{"metadata":{"labels":{"x":"y"}}}',
    );
    expect(strategic.code).not.toBe(0);
    expect(strategic.stderr).toMatch(/UnsupportedMediaType|merge/);
  });

  verb("logs -f -c follows a container, and wait sees the job succeed", async () => {
    const job = cluster.rayJobs.store.get("default", "kubectl")!;
    const submitter = cluster.submitter(job)!;
    const container = submitter.spec!.containers[0]!.name;
    const following = start("kubectl", [
      "--kubeconfig",
      cluster.kubeconfig,
      "logs",
      "-f",
      "-c",
      container,
      submitter.metadata.name,
    ]);
    await following.printed(/waiting at the gate/);
    const waiting = kubectl("wait", "--for=condition=Succeeded", "rayjob/kubectl", "--timeout=120s");
    gate.open();
    expect(await ok(waiting)).toContain("condition met");
    expect((await following.finished).stdout).toContain("through the gate");
  });

  verb("delete takes it away", async () => {
    await ok(kubectl("delete", "rayjob", "kubectl", "--timeout=120s"));
    expect((await kubectl("get", "rayjob", "kubectl")).stderr).toContain("NotFound");
  });
});
