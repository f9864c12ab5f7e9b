/** A real API server takes our CRDs, explains them, and refuses what the controller's own validation refuses. */
import { execFile } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { placed, ruleCases } from "../../src/api/testdata/rules.ts";
import { HttpTransport } from "../../src/machinery/kube/http.ts";
import { loadKubeconfig } from "../../src/machinery/kube/kubeconfig.ts";
import { rayClusters, rayJobs, resourcePath } from "../../src/machinery/kube/resources.ts";
import { rayCluster, rayJob } from "../support/manifests.ts";
import { temporaryFolder } from "./controlPlane.ts";

const transport = new HttpTransport(loadKubeconfig(inject("controlPlane")));
afterAll(() => transport.close());

it("the API server takes our CRDs without a word of warning", () => {
  expect(inject("crdWarnings")).toEqual([]);
});

describe("a rule refuses on the API server what it refuses in the controller", () => {
  const namespace = "cel";
  beforeAll(async () => {
    await transport.request({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: namespace } } });
  });

  it.each(ruleCases)("$rule.id at $path, of $self before $old", async (one) => {
    const { rule, kind, self, old, holds } = one;
    const type = kind === "RayJob" ? rayJobs : rayClusters;
    const whole = (value: unknown) => placed<object>(kind === "RayJob" ? rayJob() : rayCluster("demo"), one, value);
    const name = `case-${ruleCases.indexOf(one)}`;
    const metadata = { name, namespace };
    if (old !== undefined) {
      // Under a rule that a value never changes, the one before is any other; it must be stored, so that it counts.
      const stored = { ...whole(old), metadata };
      const made = await transport.request({ method: "POST", path: resourcePath(type, namespace), body: stored });
      expect(made.status, JSON.stringify(made.body)).toBe(201);
    }
    const answer = await transport.request({
      method: old === undefined ? "POST" : "PATCH",
      path: resourcePath(type, namespace, old === undefined ? undefined : name),
      query: { dryRun: "All" },
      headers: { "content-type": old === undefined ? "application/json" : "application/merge-patch+json" },
      body: { ...whole(self), metadata },
    });
    const said = JSON.stringify(answer.body);
    // Another rule may refuse the same value; whether this one does is told by its message. The server asks no rule
    // about a value that has not the schema's shape, and a test must not pass for that.
    expect(said).not.toContain("some validation rules were not checked");
    expect(answer.status === 422 && said.includes(JSON.stringify(rule.message).slice(1, -1)), said).toBe(!holds);
  });
});

describe("kubectl", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await temporaryFolder("kubectl");
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const run = async (...args: string[]) => {
    const env = { ...process.env, KUBECONFIG: inject("controlPlane"), KUBECACHEDIR: join(folder, "cache") };
    return promisify(execFile)(join(inject("programs"), "kubectl"), args, { env });
  };

  it("applies the CRDs on the server's side, without a warning, and changes nothing", async () => {
    const crds = fileURLToPath(new URL("../../deploy/crds", import.meta.url));
    const { stdout, stderr } = await run("apply", "--server-side", "--force-conflicts", "-f", crds);
    expect(stderr).toBe("");
    expect(stdout.trim().split("\n")).toEqual([
      "customresourcedefinition.apiextensions.k8s.io/rayclusters.ray.io serverside-applied",
      "customresourcedefinition.apiextensions.k8s.io/rayjobs.ray.io serverside-applied",
    ]);
  });

  it("explains a RayJob down to the Pod template of its head", async () => {
    const { stdout } = await run("explain", "rayjob.spec.rayClusterSpec.headGroupSpec.template.spec");
    expect(stdout).toMatch(/^KIND: +RayJob$/m);
    expect(stdout).toMatch(/^ +containers\t<\[\]Object>/m);
  });

  it("applies a RayJob on the server's side, twice, and then changes one field of it", async () => {
    const file = join(folder, "job.json");
    const apply = async (entrypoint: string) => {
      writeFileSync(file, JSON.stringify(rayJob({ entrypoint }, "applied")));
      await run("apply", "--server-side", "-f", file);
      return (await run("get", "rayjob", "applied", "-o", "jsonpath={.metadata.generation} {.spec.entrypoint}")).stdout;
    };
    expect(await apply("echo one")).toBe("1 echo one");
    expect(await apply("echo one")).toBe("1 echo one");
    expect(await apply("echo two")).toBe("2 echo two");
    await run("delete", "rayjob", "applied");
  });
});
