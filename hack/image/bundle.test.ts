import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { SUBMITTER_PROGRAM, VERSION } from "../../src/shipped.ts";
import { bundle } from "./bundle.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "raykeeper-bundle-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The sources in another place. */
function elsewhere(name: string): string {
  const root = join(folder, name);
  for (const path of ["src", "package.json"]) {
    cpSync(join(ROOT, path), join(root, path), { recursive: true });
  }
  symlinkSync(join(ROOT, "node_modules"), join(root, "node_modules"));
  return root;
}

const ours = await bundle({ node: process.execPath });

describe("the program as one file", () => {
  it("has the same bytes wherever it is made", async () => {
    const theirs = await bundle({ root: elsewhere("a/deeper/place"), node: process.execPath });
    expect(theirs).toEqual(ours);
  });

  it("has its data with it", () => {
    expect(ours.program).toContain(SUBMITTER_PROGRAM.split("\n")[0]!.replaceAll('"', ""));
  });

  it("leaves the embedded cluster and all tests out", () => {
    expect(ours.inputs.filter((input) => /^src\/local\/|\.test\.|\/testing\//.test(input))).toEqual([]);
  });

  it("brings the licence of every package that is in it", () => {
    for (const name of ["commander", "pino", "prom-client", "typebox", "undici", "yaml"]) {
      expect(ours.licences).toMatch(new RegExp(`^${name} \\d`, "m"));
    }
  });

  it("is refused when something in it looks for a file beside itself", async () => {
    const root = elsewhere("b");
    writeFileSync(join(root, "src/cli/version.ts"), "export const version = () => console.log(import.meta.url);\n");
    await expect(bundle({ root, node: process.execPath })).rejects.toThrow(
      "src/cli/version.ts looks for files beside itself",
    );
  });

  describe("alone in a folder, started by its first line", () => {
    const home = join(folder, "alone");
    mkdirSync(home);
    // As in the image: /manager is a link to it.
    writeFileSync(join(home, "raykeeper.mjs"), ours.program, { mode: 0o755 });
    symlinkSync("raykeeper.mjs", join(home, "manager"));
    const run = (name: string, ...args: string[]) =>
      spawnSync(join(home, name), args, { cwd: home, encoding: "utf8", env: { HOME: home } });

    it("knows its version", () => {
      expect(run("manager", "--version")).toMatchObject({ status: 0, stdout: `${VERSION}\n`, stderr: "" });
    });

    it("is the operator when it is started as KubeRay's manifests start theirs", () => {
      const { status, stderr } = run("manager", "--enable-leader-election", "--metrics-addr=:0");
      expect([status, stderr]).toEqual([2, expect.stringContaining(`no kubeconfig at ${home}/.kube/config`)]);
    });

    it("says that the embedded cluster is not in it", () => {
      const { status, stderr } = run("raykeeper.mjs", "local", "up");
      expect([status, stderr]).toEqual([2, expect.stringContaining("the embedded cluster is not part of the image")]);
    });
  });
});
