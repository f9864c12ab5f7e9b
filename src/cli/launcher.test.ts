import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { descendants, processes, type Running, raykeeper } from "../../test/e2e/command.ts";

const folder = mkdtempSync(join(tmpdir(), "raykeeper-launcher-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const kubeconfig = join(folder, "kubeconfig");
// Nobody listens there, so the operator waits for its API server until it is told to end.
writeFileSync(
  kubeconfig,
  JSON.stringify({
    clusters: [{ name: "a", cluster: { server: "http://127.0.0.1:9" } }],
    users: [{ name: "a", user: {} }],
    contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
    "current-context": "a",
  }),
);

/** An operator that has started, and the pid of its process behind the launcher. */
async function started(...flags: string[]): Promise<{ running: Running; pid: number }> {
  const addresses = ["--metrics-addr", "0", "--health-probe-bind-address", "0"];
  const running = raykeeper(["operator", "--kubeconfig", kubeconfig, ...addresses, ...flags]);
  await running.printed(/the operator starts/);
  return { running, pid: descendants(running.child.pid!)[0]!.pid };
}

const lives = (pid: number) => processes().some((each) => each.pid === pid);

describe("the launcher", () => {
  it("takes the program along when it is killed", async () => {
    const { running, pid } = await started();
    running.child.kill("SIGKILL");
    await expect.poll(() => lives(pid), { timeout: 10_000 }).toBe(false);
  });

  it("passes SIGTERM on, and ends as the program did", async () => {
    const { running } = await started();
    running.child.kill("SIGTERM");
    const { code, stdout } = await running.finished;
    expect(code).toBe(0);
    expect(stdout).toContain("the operator has ended in good order");
  });

  it("tells by its exit code that the program was killed", async () => {
    const { running, pid } = await started();
    process.kill(pid, "SIGKILL");
    expect((await running.finished).code).toBe(137);
  });
});

describe("the operator", () => {
  it("exits 2 for a flag that is wrong, and names it", async () => {
    const { code, stderr } = await raykeeper([
      "operator",
      "--kubeconfig",
      kubeconfig,
      "--qps",
      "many",
      "--feature-gates",
      "Nope=true",
    ]).finished;
    expect(code).toBe(2);
    expect(stderr).toMatch(/--qps must be a number above 0.*\n.*no feature gate "Nope"/);
  });

  it("takes Go's spelling of a boolean", async () => {
    const { running } = await started("--enable-leader-election=false", "--enable-metrics");
    running.child.kill("SIGTERM");
    expect((await running.finished).code).toBe(0);
  });
});
