import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { network, paths } from "./paths.js";
import { overlap } from "./place.js";
import { Failure, identity, processOf, run, until } from "./process.js";
import { commands } from "./programs.js";

const folder = mkdtempSync(join(tmpdir(), "raykeeper-cluster-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("the network of the one-node cluster", () => {
  it("is refused where the machine uses any of its addresses itself", () => {
    expect(overlap("10.244.7.0/24", "10.244.0.0/16")).toBe(true);
    expect(overlap("10.0.0.0/8", "10.244.0.0/16")).toBe(true);
    expect(overlap("10.96.0.1", "10.96.0.0/16")).toBe(true);
  });

  it("has room beside the machine's own networks", () => {
    expect(overlap("192.168.1.0/24", "10.244.0.0/16")).toBe(false);
    expect(overlap("10.245.0.0/16", "10.244.0.0/16")).toBe(false);
    expect(overlap("172.17.0.0/16", "10.96.0.0/16")).toBe(false);
  });

  it("keeps Pods, node and Services apart, within the ranges that it asks for", () => {
    const { pods, services, node, host, all } = network;
    for (const range of [pods, services, node, host])
      expect(all.filter((each) => overlap(each, range))).toHaveLength(1);
    expect(overlap(pods, node)).toBe(false);
    expect(overlap(pods, host)).toBe(false);
  });
});

describe("the programs of the one-node cluster", () => {
  it("authorise as a real cluster does, and write the audit log where tests look for it", () => {
    expect(commands["kube-apiserver"]).toContain("--authorization-mode=Node,RBAC");
    expect(commands["kube-apiserver"]).toContain(`--audit-log-path=${paths.auditLog}`);
  });
});

describe("a program that cluster:up runs", () => {
  it("gives what it printed", async () => {
    expect(await run("cat", [], { input: "as given" })).toBe("as given");
  });

  it("fails with its command, its exit code and the last it said", async () => {
    const failed = run("sh", ["-c", "echo the disk is full >&2; exit 7"]);
    await expect(failed).rejects.toThrow(/^sh -c .* ended with 7:\nthe disk is full$/);
    await expect(failed).rejects.toBeInstanceOf(Failure);
  });
});

describe("waiting for a part of the cluster", () => {
  it("ends with what has failed, not with a time-out, when the part's program has ended", async () => {
    const ended = () => {
      throw new Failure("etcd has ended");
    };
    await expect(until("etcd does not answer", 60, async () => false, ended)).rejects.toThrow("etcd has ended");
  });
});

describe("a process that a file names", () => {
  it("is found while it lives, and not mistaken for a later one of its number", async () => {
    const child = spawn("sleep", ["1000"], { stdio: "ignore" });
    const file = join(folder, "pid");
    writeFileSync(file, identity(child.pid) ?? "");
    expect(processOf(file)).toBe(child.pid);
    writeFileSync(file, `${child.pid} 1`);
    expect(processOf(file)).toBeUndefined();
    writeFileSync(file, identity(child.pid) ?? "");
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(processOf(file)).toBeUndefined();
    expect(processOf(join(folder, "none"))).toBeUndefined();
  });
});

describe("npm run cluster:up and cluster:down", () => {
  it("tell an ordinary user that they take root", async () => {
    for (const name of ["up", "down"]) {
      const script = fileURLToPath(new URL(`${name}.js`, import.meta.url));
      // What an ordinary user would be told, whoever runs the tests.
      const ordinary = `process.getuid = () => 1000; await import(${JSON.stringify(script)});`;
      const child = spawn(process.execPath, ["--input-type=module", "--eval", ordinary], {
        stdio: ["ignore", "ignore", "pipe"],
      });
      let told = "";
      child.stderr.on("data", (data) => {
        told += data;
      });
      const [code] = await once(child, "close");
      expect(told).toContain("sudo");
      expect(code).toBe(1);
    }
  });
});
