/**
 * `raykeeper run --local`: an embedded cluster for one job, and what is left of it however it ends.
 */
import { existsSync, readdirSync } from "node:fs";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { KubeClient } from "../../src/machinery/kube/client.ts";
import { HttpTransport } from "../../src/machinery/kube/http.ts";
import { loadKubeconfig } from "../../src/machinery/kube/kubeconfig.ts";
import { nodes } from "../../src/machinery/kube/resources.ts";
import { Gate, rayJob } from "./cluster.ts";
import { descendants, type ProcessInfo, processes, type Running, raykeeper, root, start } from "./command.ts";

const gates: Gate[] = [];
afterEach(() => {
  for (const gate of gates.splice(0)) gate.remove();
});

/** Starts a job on an embedded cluster of its own; resolves while the job runs. */
async function running(launch: (manifest: string) => Running): Promise<{ run: Running; started: ProcessInfo[] }> {
  const gate = new Gate();
  gates.push(gate);
  const run = launch(JSON.stringify(rayJob("local", { entrypoint: gate.entrypoint() }, gate)));
  await run.printed(/waiting at the gate/);
  const started = descendants(run.child.pid!);
  // Otherwise there is nothing whose absence means anything.
  expect(started.some(({ command }) => command.includes("raylet"))).toBe(true);
  expect(new Set(started.map(({ network }) => network)).size).toBeGreaterThan(1);
  return { run, started };
}

/** What a cluster could leave behind outside of the cache. */
const leftovers = () =>
  ["/tmp", "/dev/shm", "/run/netns", "/var/run"].flatMap((folder) =>
    existsSync(folder)
      ? readdirSync(folder)
          .filter((name) => /ray/i.test(name))
          .map((name) => `${folder}/${name}`)
      : [],
  );

async function nothingLeft(started: readonly ProcessInfo[], before: readonly string[]): Promise<void> {
  const pids = new Set(started.map(({ pid }) => pid));
  const networks = new Set(started.map(({ network }) => network));
  const own = processes().find(({ pid }) => pid === process.pid)!.network;
  networks.delete(own);
  const left = () => processes().filter(({ pid, network }) => pids.has(pid) || networks.has(network));
  await expect
    .poll(() => left().map(({ pid, command }) => `${pid} ${command.slice(0, 100)}`), { timeout: 30_000 })
    .toEqual([]);
  expect(leftovers().filter((path) => !before.includes(path))).toEqual([]);
}

describe("an embedded cluster", () => {
  const local = (manifest: string) => raykeeper(["run", "--local", "-"], { input: manifest });

  it.each([
    ["SIGKILL of the launcher", "SIGKILL", "launcher"],
    ["SIGKILL of the program", "SIGKILL", "program"],
    ["SIGTERM", "SIGTERM", "launcher"],
    ["Ctrl-C", "SIGINT", "program"],
  ] as const)("leaves nothing behind after %s", async (_, signal, whom) => {
    const before = leftovers();
    const { run, started } = await running(local);
    const program = started.find(({ parent }) => parent === run.child.pid)!;
    process.kill(whom === "launcher" ? run.child.pid! : program.pid, signal);
    const { code, signal: by } = await run.finished;
    const expected = { SIGKILL: whom === "launcher" ? "SIGKILL" : 137, SIGTERM: 143, SIGINT: 130 }[signal];
    expect(code ?? by).toBe(expected);
    await nothingLeft(started, before);
  });

  it("leaves nothing behind when npm, which started it, is killed", async () => {
    const before = leftovers();
    const { run, started } = await running((manifest) =>
      start("npm", ["exec", "--offline", "--", "raykeeper", "run", "--local", "-"], { input: manifest }),
    );
    run.child.kill("SIGKILL");
    await run.finished;
    await nothingLeft(started, before);
  });
});

describe("a cluster that is kept running", () => {
  const name = `kept-${process.pid}`;
  const local = (verb: string) => raykeeper(["local", verb, "--name", name]).finished;
  afterAll(() => local("down"));
  const up = async () => {
    const { code, stdout, stderr } = await local("up");
    expect(code, stderr).toBe(0);
    return /^export KUBECONFIG=(.+)\n$/.exec(stdout)![1]!;
  };

  it("goes up, tells where it is, and goes down without a trace", async () => {
    const before = leftovers();
    const kubeconfig = await up();
    expect(await up(), "up twice is up once").toBe(kubeconfig);
    const { stdout } = await local("status");
    const pid = Number(/process (\d+)/.exec(stdout)?.[1]);
    const started = [...processes().filter((each) => each.pid === pid), ...descendants(pid)];
    expect(started.length).toBeGreaterThan(2);
    const client = new KubeClient(new HttpTransport(loadKubeconfig(kubeconfig)));
    expect((await client.list(nodes)).items).toHaveLength(1);
    expect((await local("down")).code).toBe(0);
    await nothingLeft(started, before);
    expect(existsSync(kubeconfig)).toBe(false);
    expect((await local("status")).code).toBe(1);
  });

  it("is not taken to be up after SIGKILL, and can be started again", async () => {
    await up();
    process.kill(Number(/process (\d+)/.exec((await local("status")).stdout)?.[1]), "SIGKILL");
    expect((await local("status")).code).toBe(1);
    await up();
  });
});

describe("a job that cannot be run locally", () => {
  const exits = (manifest: string) => raykeeper(["run", "--local", "-"], { input: manifest }).finished;
  const withImage = (image: string) =>
    JSON.stringify(rayJob("unknown", { entrypoint: "true" })).replaceAll("rayproject/ray:2.56.0", image);

  it("for a version of Ray that does not exist exits with 2 and names the nearest", async () => {
    const { code, stderr } = await exits(withImage("rayproject/ray:2.55.99"));
    expect(code, stderr).toBe(2);
    expect(stderr).toMatch(/no Ray 2\.55\.99|PyPI cannot be reached/);
  });

  it("for an image that is none of Ray's exits with 2 and says what can be run", async () => {
    const { code, stderr } = await exits(withImage("busybox:1"));
    expect(code, stderr).toBe(2);
    expect(stderr).toContain("rayproject/ray:2.56.0");
  });

  it("for a file that is no YAML exits with 2, line and column", async () => {
    const { code, stderr } = await exits("kind: [RayJob\nmetadata: {}\n");
    expect(code, stderr).toBe(2);
    expect(stderr).toMatch(/-:\d+:\d+: not valid YAML/);
  });

  it("without Python exits with 2 and says what to install", async () => {
    const { code, stderr } = await raykeeper(["run", "--local", `${root}examples/rayjob.yaml`], {
      env: { RAYKEEPER_PYTHON: "no-such-python" },
    }).finished;
    expect(code, stderr).toBe(2);
    expect(stderr).toMatch(/no-such-python was not found\n.*Python 3/);
  });
});
