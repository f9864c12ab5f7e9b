import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { crds } from "../api/crds.ts";
import type { Pod } from "../api/kubernetes.ts";
import { LABEL } from "../api/labels.ts";
import type { KubeObject, Stored } from "../api/object.ts";
import type { RayCluster } from "../api/raycluster.ts";
import type { RayJob } from "../api/rayjob.ts";
import { realClock } from "../machinery/clock.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { events, namespaces, pods, rayClusters, rayJobs } from "../machinery/kube/resources.ts";
import { type Served, serve } from "../simkube/http.ts";
import { SimKube } from "../simkube/simkube.ts";
import { explainCommand, rayJobNamed } from "./explain.ts";
import { main } from "./program.ts";

const shared = crds();
let simkube: SimKube;
let client: KubeClient;
let served: Served;
let folder: string;
let kubeconfig: string;

beforeEach(async () => {
  simkube = new SimKube({ clock: realClock, crds: shared, seed: 1 });
  client = new KubeClient(simkube.transport);
  served = await serve(simkube);
  folder = mkdtempSync(join(tmpdir(), "explain-"));
  kubeconfig = join(folder, "kubeconfig");
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      "current-context": "here",
      contexts: [{ name: "here", context: { cluster: "sim", user: "me" } }],
      clusters: [{ name: "sim", cluster: { server: served.address } }],
      users: [{ name: "me", user: {} }],
    }),
  );
});
afterEach(async () => {
  await served.close();
  rmSync(folder, { recursive: true });
});

/** As typed: exit code, stdout, stderr. */
async function typed(...args: string[]) {
  const out = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const err = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  try {
    const code = await main(["explain", "--kubeconfig", kubeconfig, ...args]);
    const text = (spy: typeof out) => spy.mock.calls.map(([piece]) => String(piece)).join("");
    return { code, stdout: text(out), stderr: text(err as typeof out) };
  } finally {
    out.mockRestore();
    err.mockRestore();
  }
}

const create = (name: string, namespace = "default", status?: object): Promise<Stored<RayJob>> =>
  client
    .create<RayJob>(rayJobs, { metadata: { name, namespace }, spec: { entrypoint: "x" } })
    .then((job) =>
      status ? client.patch<RayJob>(rayJobs, namespace, name, { status }, { subresource: "status" }) : job,
    );

describe("raykeeper explain", () => {
  it("explains a RayJob that has just been made, by either spelling", async () => {
    await create("demo");
    const one = await typed("rayjob", "demo");
    expect(one).toMatchObject({ code: 0, stderr: "" });
    expect(one.stdout).toMatch(/^RayJob default\/demo: New for \d+s\n/);
    expect((await typed("rayjob/demo")).code).toBe(0);
  });

  it("finds the Pod that cannot get its volume, from the events", async () => {
    const job = await create("demo", "default", {
      jobDeploymentStatus: "Initializing",
      executionAttempt: 0,
      rayClusterName: "demo-abc",
      startTime: "2026-01-01T00:00:00Z",
      attempts: [
        {
          number: 0,
          jobId: "demo-1",
          rayClusterName: "demo-abc",
          ownsCluster: true,
          submissionMode: "K8sJobMode",
          startTime: "2026-01-01T00:00:00Z",
        },
      ],
    });
    const labels = { [LABEL.rayJobUID]: job.metadata.uid, [LABEL.executionAttempt]: "0" };
    const ownedBy = (kind: string, owner: Stored<KubeObject>) => [
      { apiVersion: "ray.io/v1", kind, name: owner.metadata.name, uid: owner.metadata.uid, controller: true },
    ];
    const containers = [{ name: "ray-head", image: "rayproject/ray:2.56.0" }];
    const cluster = await client.create<RayCluster>(rayClusters, {
      metadata: { name: "demo-abc", namespace: "default", labels, ownerReferences: ownedBy("RayJob", job) },
      spec: { headGroupSpec: { template: { spec: { containers } } } } as RayCluster["spec"],
    });
    const pod = await client.create<Pod>(pods, {
      metadata: {
        name: "demo-abc-head",
        namespace: "default",
        labels: { ...labels, [LABEL.cluster]: "demo-abc", [LABEL.nodeType]: "head" },
        ownerReferences: ownedBy("RayCluster", cluster),
      },
      spec: { nodeName: "node-1", containers },
    });
    await client.patch(
      pods,
      "default",
      "demo-abc-head",
      {
        status: {
          phase: "Pending",
          conditions: [{ type: "Ready", status: "False", reason: "ContainersNotReady" }],
          containerStatuses: [{ name: "ray-head", ready: false, state: { waiting: { reason: "ContainerCreating" } } }],
        },
      },
      { subresource: "status" },
    );
    await client.create(events, {
      metadata: { name: "e1", namespace: "default" },
      eventTime: "2026-01-01T00:00:01.000000Z",
      reportingController: "kubelet",
      reportingInstance: "node-1",
      action: "Mount",
      type: "Warning",
      reason: "FailedMount",
      note: 'MountVolume.SetUp failed for volume "code" : configmap "code" not found',
      regarding: { kind: "Pod", namespace: "default", name: "demo-abc-head", uid: pod.metadata.uid },
    } as KubeObject);
    const { code, stdout } = await typed("rayjob/demo");
    expect(code).toBe(0);
    expect(stdout).toContain('configmap "code" not found');
    expect(stdout).toContain("Create the ConfigMap code in namespace default");
    const json = JSON.parse((await typed("rayjob/demo", "-o", "json")).stdout);
    expect(json).toMatchObject({
      state: "Initializing",
      waits: [{ kind: "Pod", name: "demo-abc-head", node: "node-1", reason: "FailedMount" }],
      attempts: [{ number: 0, outcome: "under way" }],
    });
  });

  it("prints neither colours nor control characters into a pipe", async () => {
    await create("demo", "default", {
      jobDeploymentStatus: "Failed",
      reason: "AppFailed",
      message: "bo\u001b]0;x\u0007om",
    });
    const { stdout } = await typed("rayjob", "demo");
    expect(stdout).toContain("bo]0;xom");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not be there
    expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/);
  });

  it("wraps to the terminal's width, with colours, unless NO_COLOR is set", async () => {
    await create("demo", "default", { jobDeploymentStatus: "Failed", message: "word ".repeat(40).trim() });
    const screen = async (env: object) => {
      const before = { ...process.env };
      Object.assign(process.env, { TERM: "xterm", NO_COLOR: "" }, env);
      let written = "";
      const stdout = { isTTY: true, columns: 50, write: (text: string) => (written += text) };
      try {
        await explainCommand(["rayjob", "demo"], { kubeconfig, color: true }, { stdout });
      } finally {
        process.env = before;
      }
      return written;
    };
    expect(await screen({})).toContain("\u001b[31mFailed");
    const plain = await screen({ NO_COLOR: "1" });
    expect(plain).not.toContain("\u001b");
    for (const line of plain.split("\n").filter((text) => text.includes("word"))) {
      expect(line.length).toBeLessThanOrEqual(50);
    }
  });

  it("exits 1 when there is none of that name, and says in which namespace there is one", async () => {
    await client.create(namespaces, { metadata: { name: "team" } });
    await create("demo", "team");
    expect(await typed("rayjob", "demo")).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "raykeeper: there is no RayJob demo in namespace default\n  There is one in namespace team: give -n team\n",
    });
    expect((await typed("rayjob", "demo", "-n", "team")).code).toBe(0);
    expect((await typed("rayjob", "other")).stderr).toContain("kubectl get rayjobs -n default");
  });

  it("exits 1 when the API server does not answer", async () => {
    await served.close();
    const { code, stderr } = await typed("rayjob", "demo");
    expect(code).toBe(1);
    expect(stderr).toContain("does not answer");
    served = await serve(simkube);
  });

  it.each([
    ["no name", ["rayjob"], "the RayJob's name is missing"],
    ["an empty name", ["rayjob/"], "the RayJob's name is missing"],
    ["another kind", ["pod", "x"], "cannot explain a pod: only RayJobs are explained"],
    ["a name without its kind", ["demo"], "Write: raykeeper explain rayjob demo"],
    ["two names", ["rayjob", "a", "b"], "one RayJob is explained at a time"],
    ["two names, the first with its kind", ["rayjob/a", "b"], "one RayJob is explained at a time"],
    ["a path for a name", ["rayjob", "../x"], '"../x" is no name of a RayJob'],
    ["a path for a name, with its kind", ["rayjob/a/b"], '"a/b" is no name of a RayJob'],
    ["two clusters at once", ["rayjob", "a", "--local"], "--local and --kubeconfig exclude each other"],
    ["an unknown format", ["rayjob", "a", "-o", "yaml"], "Allowed choices are json"],
  ])("exits 2 for %s", async (_, args, message) => {
    const { code, stderr } = await typed(...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});

describe("the kind", () => {
  it.each(["rayjob", "rayjobs", "RayJob", "rayjobs.ray.io", "rayjobs.v1.ray.io"])("may be spelt %s", (kind) => {
    expect(rayJobNamed([kind, "a"])).toBe("a");
    expect(rayJobNamed([`${kind}/a`])).toBe("a");
  });
});
