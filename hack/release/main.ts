/**
 * `npm run release`: everything of a version in one folder, dist/release/VERSION, with checksums.
 *
 * The same commit gives the same files, so whoever doubts one builds it again. Refuses what could not be built again: a
 * tree with changes, versions that do not agree, a base that is not the locked one.
 * Next: versions.ts has the places that name the version; hack/image and chart.ts make the parts.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { crds } from "../../src/api/crds.ts";
import { crdText } from "../../src/cli/crds.ts";
import { CannotBuild, endInWords, saying } from "../console.ts";
import { sha256 } from "../image/oci.ts";
import { chartPackage } from "./chart.ts";
import { disagreements } from "./versions.ts";

const say = saying("release");
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

const HELP = `Usage: npm run release [-- options]

Builds the images, the Helm chart, the manifest and the CRDs of this version into dist/release/VERSION, with SHA256SUMS.

  --dirty          also from a tree with changes: to try things, since nobody can build that again
  --arch LIST      architectures; amd64,arm64 if not said
`;

function checkTree(): void {
  const { status, stdout, stderr } = spawnSync("git", ["status", "--porcelain"], { cwd: ROOT, encoding: "utf8" });
  if (status !== 0) throw new CannotBuild(`git cannot tell whether the tree is clean: ${stderr.trim()}`);
  if (stdout !== "") {
    throw new CannotBuild(`the tree has changes:\n${stdout.trimEnd()}`, "Commit them, or try things with --dirty.");
  }
}

/** Runs a script of the project's with this Node; answers its last line. */
function tool(script: string, ...args: string[]): string {
  const { status, stdout } = spawnSync(process.execPath, [join(ROOT, script), ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status !== 0) throw new CannotBuild(`${script} ${args.join(" ")} failed; its words are above`);
  return stdout.trim().split("\n").at(-1)!;
}

function release(): string {
  const { values } = parseArgs({
    options: {
      dirty: { type: "boolean", default: false },
      arch: { type: "string", default: "amd64,arm64" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return HELP.trimEnd();
  if (!values.dirty) checkTree();
  const read = (path: string) => readFileSync(join(ROOT, path), "utf8");
  const { version } = JSON.parse(read("package.json")) as { version: string };
  const wrong = disagreements(version, read);
  if (wrong.length > 0) {
    throw new CannotBuild(
      `the versions do not agree:\n${wrong.join("\n")}`,
      "Raise the version with `npm version --no-git-tag-version`, run `npm run generate`, and mend the rest by hand.",
    );
  }

  const folder = join(ROOT, "dist/release", version);
  const unfinished = `${folder}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  mkdirSync(unfinished, { recursive: true });
  const chart = chartPackage(
    join(tool("hack/kubernetes/build.js", "helm"), "helm"),
    join(ROOT, "deploy/helm/raykeeper"),
  );
  writeFileSync(join(unfinished, chart.name), chart.bytes);
  writeFileSync(join(unfinished, "raykeeper-crds.yaml"), crds().map(crdText).join(""));
  copyFileSync(join(ROOT, "deploy/raykeeper.yaml"), join(unfinished, "raykeeper.yaml"));
  for (const arch of values.arch.split(",")) {
    tool("hack/image/build.js", "--arch", arch, "--output", join(unfinished, `raykeeper-${version}-${arch}.oci.tar`));
  }
  const sums = readdirSync(unfinished)
    .sort()
    .map((name) => `${sha256(readFileSync(join(unfinished, name)))}  ${name}\n`);
  writeFileSync(join(unfinished, "SHA256SUMS"), sums.join(""));
  rmSync(folder, { recursive: true, force: true });
  renameSync(unfinished, folder);
  say(`release ${version} is in ${relative(process.cwd(), folder)}`);
  return sums.join("").trimEnd();
}

await endInWords(say, () => console.log(release()));
