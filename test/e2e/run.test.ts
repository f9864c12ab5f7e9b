/**
 * `raykeeper run` against a running cluster, as a user types it.
 */
import { readFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { Gate, namespace, rayJob, useCluster } from "./cluster.ts";
import { raykeeper, root } from "./command.ts";

const cluster = useCluster();
const names = ["quickstart", "fails", "http", "watched", "wrong"];
afterAll(() => Promise.all(names.map((name) => cluster.remove(name))));

const run = (...args: string[]) => raykeeper(["run", "--kubeconfig", cluster.kubeconfig, ...args]);
const piped = (manifest: string, ...args: string[]) =>
  raykeeper(["run", "--kubeconfig", cluster.kubeconfig, "-", ...args], { input: manifest }).finished;
const example = (name: string) => readFileSync(`${root}examples/${name}`, "utf8");

describe("a job that succeeds", () => {
  it("runs its tasks on both workers; its log is on stdout, the way there on stderr, and the exit code is 0", async () => {
    const { code, stdout, stderr } = await run("examples/rayjob.yaml").finished;
    expect(code, stderr).toBe(0);
    expect(stdout).toMatch(/4 tasks on 2 workers/);
    const workers = new Set([...stdout.matchAll(/^task \d: Hello from (\S+)/gm)].map(([, host]) => host));
    expect(workers.size).toBe(2);
    // Each line of the log is there once.
    for (const number of [0, 1, 2, 3]) expect(stdout.match(new RegExp(`^task ${number}:`, "gm"))).toHaveLength(1);
    for (const step of [
      /RayCluster quickstart-\w+: creating/,
      /Pods ready 3\/3: head/,
      /submitting the job as/,
      /running/,
      /Ray says SUCCEEDED/,
    ]) {
      expect(stderr).toMatch(step);
    }
    expect(stderr).toMatch(/RayJob default\/quickstart: SUCCEEDED, attempt 0/);
    expect(stderr).toMatch(/NAME +JOB STATUS +DEPLOYMENT STATUS +RAY CLUSTER NAME +START TIME +END TIME +AGE/);
    expect(stderr).not.toContain("\u001b");
  });

  it("in HTTPMode needs no submitter, and its log is shown all the same", async () => {
    const { code, stdout, stderr } = await run("examples/rayjob-http.yaml", "-o", "json").finished;
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ verdict: "SUCCEEDED", attempt: 0, jobDeploymentStatus: "Complete" });
    expect(stderr).toContain("squares: [0, 1, 4, 9, 16]");
    expect(cluster.jobs.store.get(namespace, "http")).toBeUndefined();
  });
});

describe("a job that fails", () => {
  it("exits with 1 and Ray's message", async () => {
    const { code, stdout, stderr } = await run("examples/rayjob-fails.yaml").finished;
    expect(code, stderr).toBe(1);
    expect(stdout).toContain("this program always fails");
    expect(stderr).toMatch(/RayJob default\/fails: FAILED, ApplicationFailed, attempt 0/);
    expect(stderr).toMatch(/exit code 1/);
  });
});

describe("a RayJob that exists already", () => {
  it("is refused, can be watched and replaced; Ctrl-C stops watching, not the job", async () => {
    const gate = new Gate();
    const manifest = JSON.stringify(rayJob("watched", { entrypoint: gate.entrypoint() }, gate));
    await cluster.apply(JSON.parse(manifest));
    const refused = await piped(manifest);
    expect([refused.code, refused.stderr]).toEqual([
      2,
      expect.stringMatching(/RayJob default\/watched exists already .*\n.*--follow .*--replace/),
    ]);

    const first = await cluster.running("watched");
    const watching = raykeeper(["run", "--kubeconfig", cluster.kubeconfig, "-", "--follow"], { input: manifest });
    await watching.printed(/waiting at the gate/);
    watching.child.kill("SIGINT");
    const stopped = await watching.finished;
    expect([stopped.code, stopped.stderr]).toEqual([130, expect.stringContaining("RayJob default/watched goes on")]);
    expect(cluster.rayJobs.store.get(namespace, "watched")?.status?.jobStatus).toBe("RUNNING");

    const replacing = raykeeper(["run", "--kubeconfig", cluster.kubeconfig, "-", "--replace"], { input: manifest });
    await cluster.until("another RayJob", () => {
      const now = cluster.rayJobs.store.get(namespace, "watched");
      return now && now.metadata.uid !== first.metadata.uid;
    });
    gate.open();
    const replaced = await replacing.finished;
    expect(replaced.code, replaced.stderr).toBe(0);
    expect(replaced.stdout).toContain("through the gate");
    gate.remove();
  });
});

describe("a manifest that is wrong", () => {
  it("in a field's name exits with 2 and says which and where", async () => {
    const { code, stderr } = await piped(
      example("rayjob-fails.yaml").replace("name: fails", "name: wrong").replace("  entrypoint:", "  entrypointt:"),
    );
    expect(code, stderr).toBe(2);
    expect(stderr).toMatch(/unknown field spec\.entrypointt \(-:\d+\)/);
  });

  it("in a field's value exits with 2 and the server's message", async () => {
    const { code, stderr } = await piped(
      example("rayjob-fails.yaml")
        .replace("name: fails", "name: wrong")
        .replace("spec:\n", "spec:\n  backoffLimit: many\n"),
    );
    expect(code, stderr).toBe(2);
    expect(stderr).toMatch(/spec\.backoffLimit.*integer/);
  });

  it("for the operator exits with 2 and its reason", async () => {
    const { code, stderr } = await piped(
      example("rayjob-fails.yaml")
        .replace("name: fails", "name: wrong")
        .replace("  rayClusterSpec:\n", "  rayClusterSpec:\n    enableInTreeAutoscaling: true\n"),
    );
    expect(code, stderr).toBe(2);
    expect(stderr).toMatch(/ValidationFailed/);
    expect(stderr).toMatch(/enableInTreeAutoscaling/);
  });
});
