import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import { parseAllDocuments, parseDocument } from "yaml";
import { main } from "./program.ts";

async function typed(...args: string[]) {
  const out = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const err = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  try {
    const code = await main(args);
    const text = (spy: typeof out) => spy.mock.calls.map(([piece]) => String(piece)).join("");
    return { code, stdout: text(out), stderr: text(err as typeof out) };
  } finally {
    out.mockRestore();
    err.mockRestore();
  }
}

describe("the command line", () => {
  it("shows its commands with --help and exits 0", async () => {
    const { code, stdout } = await typed("--help");
    expect(code).toBe(0);
    for (const command of ["run", "explain", "validate", "local", "operator", "crds", "version"])
      expect(stdout).toContain(`  ${command}`);
  });

  it("explains the exit codes of run", async () => {
    expect((await typed("run", "--help")).stdout).toContain("Exit code: 0 the job succeeded");
  });

  it("knows the operator's flags by KubeRay's names", async () => {
    const { stdout } = await typed("operator", "--help");
    for (const flag of ["--metrics-addr", "--watch-namespace", "--feature-gates", "--config", "--kubeconfig"]) {
      expect(stdout).toContain(flag);
    }
  });

  it.each([
    ["an unknown option", ["run", "--lokal", "x.yaml"], "Did you mean --local?"],
    ["an unknown command", ["runn"], "Did you mean run?"],
    ["a missing file", ["run"], "missing required argument 'file'"],
    ["an unknown format", ["run", "-o", "xml", "x.yaml"], "Allowed choices are json"],
    ["an unknown flag of the operator", ["operator", "--metric-addr=:1"], "Did you mean --metrics-addr?"],
    ["the same with one dash, as Go reads flags", ["operator", "-metric-addr=:1"], "Did you mean --metrics-addr?"],
    ["an unknown feature gate", ["operator", "-feature-gates=RayCronJobs=true"], "Did you mean RayCronJob?"],
    ["an unknown option of a nested command", ["local", "up", "--x"], "unknown option '--x'"],
    ["a cluster to be made that is there already", ["run", "--local", "--follow", "x.yaml"], "--local and --follow"],
    [
      "two clusters at once",
      ["run", "--local", "--context", "a", "x.yaml"],
      "--local and --context exclude each other",
    ],
  ])("exits 2 for %s and says so on stderr", async (_, args, message) => {
    const { code, stderr, stdout } = await typed(...args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
    expect(stdout).toBe("");
  });

  it("exits 2 for a manifest that cannot be read, with the remedy", async () => {
    const { code, stderr } = await typed("run", "no/such.yaml");
    expect([code, stderr]).toEqual([
      2,
      "raykeeper: cannot read no/such.yaml: there is no such file\n  Give the path of a YAML file with a RayJob, such as examples/rayjob.yaml.\n",
    ]);
  });

  it("prints the CRDs, as they are in the repository", async () => {
    const { code, stdout } = await typed("crds");
    const folder = new URL("../../deploy/crds/", import.meta.url);
    const files = readdirSync(folder)
      .filter((file) => file.startsWith("ray.io_"))
      .map((file) => readFileSync(new URL(file, folder), "utf8"));
    expect([code, parseAllDocuments(stdout).map((each) => each.toJS())]).toEqual([
      0,
      files.map((text) => parseDocument(text).toJS()),
    ]);
  });

  it("prints its version", async () => {
    expect((await typed("version")).stdout).toMatch(/^raykeeper \d+\.\d+\.\d+ \(node /);
    expect((await typed("--version")).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});
