/**
 * The program as one JavaScript file, for the image.
 *
 * `node hack/image/bundle.ts` writes dist/raykeeper.js, and beside it the licences of what is in it. The file depends on
 * the sources and the lock file alone: not on the folder it is built in, the machine, or the time.
 * May not: have the embedded cluster in it (src/cli/notInBundle.ts speaks in its place), or look for files beside itself.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build, type Metafile, type Plugin } from "esbuild";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export interface Bundle {
  readonly program: string;
  /** The licences of the packages that are in the program, one after the other. */
  readonly licences: string;
  /** What went in, as paths in the repository. */
  readonly inputs: readonly string[];
}

/** `root` has src, package.json and node_modules. `node`: where the image has its Node. */
export async function bundle({ root = ROOT, node }: { root?: string; node: string }): Promise<Bundle> {
  const result = await build({
    absWorkingDir: root,
    entryPoints: ["src/main.ts"],
    // Else a linked node_modules would show in the file as the path that the link points to.
    preserveSymlinks: true,
    // Node runs the sources without one, too.
    tsconfigRaw: {},
    bundle: true,
    write: false,
    metafile: true,
    format: "esm",
    platform: "node",
    target: "node24",
    charset: "utf8",
    legalComments: "none",
    logLevel: "silent",
    // Names stay as they are written, so that a stack trace in a report can be read.
    banner: { js: `#!${node}\n${REQUIRE}` },
    plugins: [withoutEmbeddedCluster(root), withData(root)],
  });
  const [file] = result.outputFiles;
  const program = file!.text;
  const inputs = Object.keys(result.metafile.inputs).sort();
  const beside = inputs.find((input) => input.startsWith("src/") && looksBeside(join(root, input)));
  if (beside) {
    throw new Error(
      `${beside} looks for files beside itself (import.meta), which the image does not have: see src/shipped.ts`,
    );
  }
  return { program, licences: licencesOf(root, result.metafile), inputs };
}

/** Packages in CommonJS ask for Node's own modules with `require`, which a module has to make for itself. */
const REQUIRE =
  'import { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);';

const withoutEmbeddedCluster = (root: string): Plugin => ({
  name: "without the embedded cluster",
  setup(build) {
    build.onResolve({ filter: /^\.\/(local|embedded)\.ts$/ }, ({ resolveDir }) =>
      resolveDir === join(root, "src/cli") ? { path: join(root, "src/cli/notInBundle.ts") } : undefined,
    );
  },
});

const withData = (root: string): Plugin => ({
  name: "with its data",
  setup(build) {
    build.onLoad({ filter: /\/src\/shipped\.ts$/ }, async ({ path }) => {
      if (path !== join(root, "src/shipped.ts")) return undefined;
      const values = Object.entries(await import(pathToFileURL(path).href));
      const contents = values.map(([name, value]) => `export const ${name} = ${JSON.stringify(value)};`).join("\n");
      return { contents, loader: "js" };
    });
  },
});

const looksBeside = (path: string): boolean =>
  !path.endsWith("/src/shipped.ts") && /\bimport\.meta\b/.test(readFileSync(path, "utf8"));

function licencesOf(root: string, { inputs }: Metafile): string {
  const folders = new Set<string>();
  for (const input of Object.keys(inputs)) {
    const folder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input)?.[0];
    if (folder) folders.add(folder);
  }
  return [...folders]
    .sort()
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
      const file = readdirSync(join(root, folder)).find((each) => /^(licen[cs]e|copying)/i.test(each));
      const text = file ? readFileSync(join(root, folder, file), "utf8").trim() : `Licence: ${license}`;
      return `${name} ${version}\n\n${text}\n`;
    })
    .join(`\n${"-".repeat(80)}\n\n`);
}

if (import.meta.main) {
  const { program, licences } = await bundle({ node: "/usr/bin/env node" });
  const output = join(ROOT, "dist");
  mkdirSync(output, { recursive: true });
  writeFileSync(join(output, "raykeeper.js"), program, { mode: 0o755 });
  writeFileSync(join(output, "raykeeper.licences.txt"), licences);
  console.log(join(output, "raykeeper.js"));
}
