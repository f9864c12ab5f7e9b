// `npm test`: lint, types, unit tests, faults explored, tests on a real API server, of the container image, with a real Ray,
// and on a real node; then one summary.
//
// Every step runs, whatever became of the one before, so that one run tells all that is wrong. The last line has always
// the form `tests: N passed, N failed, N skipped`; the exit code is 0 only when nothing failed.
// `node hack/test.js unit lint` runs only these steps. The tests on a real API server take a Go toolchain and, the first
// time, ten minutes of building; those on a one-node cluster take root, too, and as long again, with Kueue some more. Where
// that is missing the step is skipped. `RAYKEEPER_SIM_SECONDS` is how long faults are explored; what there was no time for
// is told.
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { watchParent } from "../bin/parentWatch.js";
import { whyNoCluster } from "./cluster/requirements.js";
import { whyNot as whyNoImage } from "./image/build.js";
import { found, whyNot } from "./kubernetes/build.js";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const bin = join(root, "node_modules", ".bin");
const reports = join(root, ".cache", "test");

const vitest = (project, reporter) => [
  "vitest",
  "run",
  "--project",
  project,
  "--reporter",
  reporter,
  "--reporter",
  "./hack/reporter.js",
];
const STEPS = {
  lint: ["biome", "check", "--error-on-warnings", "."],
  types: ["tsc", "--noEmit"],
  unit: vitest("unit", "default"),
  // Lifecycles and planted bugs count as tests.
  sim: ["node", "test/sim/explorer/main.ts", "--seconds", process.env.RAYKEEPER_SIM_SECONDS || "330"],
  // A line a test, as soon as it has ended: each takes a while.
  integration: vitest("integration", "verbose"),
  image: vitest("image", "verbose"),
  e2e: vitest("e2e", "verbose"),
  // The scenarios, then what the operator was seen asking the API server for meanwhile.
  cluster: vitest("cluster*", "verbose"),
};
/** Steps that not every machine can run, and what says why this one cannot. A step that is left out counts as skipped. */
const OBSTACLES = { integration: whyNot, image: whyNoImage, cluster: whyNoCluster };

/** Scenarios on the embedded cluster that the step `cluster` has as well, on a real node, file by file. */
const ALSO_ON_A_NODE = ["attempts", "losses", "operator", "sidecarRestart"].map((name) => `test/e2e/${name}.test.ts`);

const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(STEPS);
const unknown = wanted.filter((name) => !(name in STEPS));
if (unknown.length > 0) {
  console.error(`There is no step ${unknown.join(", ")}; there are ${Object.keys(STEPS).join(", ")}.`);
  process.exit(2);
}

let running;
let ended = false;
const end = (signal) => {
  ended = true;
  running?.kill(signal);
};
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => end(signal));
watchParent(() => end("SIGTERM"));

/** Where util-linux is at hand, a SIGKILL of this process takes the step along. */
const tie = ["setpriv", "--pdeathsig", "TERM"];
const tied = spawnSync(tie[0], [...tie.slice(1), "true"], { stdio: "ignore" }).status === 0 ? tie : [];

/** Runs one step to its end; its output passes through. */
function run(name, [command, ...args]) {
  const report = join(reports, `${name}.json`);
  rmSync(report, { force: true });
  const started = Date.now();
  console.log(`\n=== ${name}: ${command} ${args.join(" ")}`);
  return new Promise((resolve) => {
    const [program, ...rest] = [...tied, join(bin, command), ...args];
    running = spawn(program, rest, {
      cwd: root,
      // The project's own Node comes first, whatever Node runs this file; and last, for who has none, our kubectl.
      env: {
        ...process.env,
        PATH: [bin, process.env.PATH, found()].filter(Boolean).join(delimiter),
        RAYKEEPER_TEST_REPORT: report,
      },
      stdio: ["ignore", "inherit", "inherit"],
    });
    const finish = (code, problem) => {
      running = undefined;
      resolve({ name, ok: code === 0, problem, seconds: (Date.now() - started) / 1000, report: read(report) });
    };
    running.on("error", (error) => finish(1, `cannot be started: ${error.message}`));
    running.on("exit", (code, signal) => finish(code ?? 1, signal ? `ended by ${signal}` : undefined));
  });
}

/** What a real node shows is not looked at on the embedded one first; where there is no real node, it is. */
function leftToTheNode() {
  if (!wanted.includes("cluster") || whyNoCluster() !== undefined) return [];
  console.log(`\nOn the one-node cluster instead of the embedded one: ${ALSO_ON_A_NODE.join(", ")}`);
  return ALSO_ON_A_NODE.flatMap((file) => ["--exclude", file]);
}

function read(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}

mkdirSync(reports, { recursive: true });
const results = [];
for (const [name, command] of Object.entries(STEPS)) {
  if (ended) break;
  if (!wanted.includes(name)) continue;
  const reason = OBSTACLES[name]?.();
  if (reason === undefined) results.push(await run(name, name === "e2e" ? [...command, ...leftToTheNode()] : command));
  else {
    console.log(`\n=== ${name}: SKIPPED, because ${reason}`);
    results.push({ name, ok: true, seconds: 0, report: { passed: 0, failed: 0, skipped: [{ name, reason }] } });
  }
}

const total = { passed: 0, failed: 0, skipped: 0 };
console.log("\n=== summary");
for (const { name, ok, problem, seconds, report } of results) {
  const counts = report ? `${report.passed} passed, ${report.failed} failed, ${report.skipped.length} skipped` : "";
  console.log(
    `${name.padEnd(11)} ${ok ? "ok    " : "FAILED"} ${`${seconds.toFixed(1)} s`.padStart(9)}  ${problem ?? counts}`,
  );
  total.passed += report?.passed ?? 0;
  // A step that failed without a failed test (lint, types, a crash) counts as one.
  total.failed += report?.failed || (ok ? 0 : 1);
  total.skipped += report?.skipped.length ?? 0;
}
for (const { report } of results) {
  for (const { name } of report?.failures ?? []) console.log(`failed:  ${name}`);
  for (const { name, reason } of report?.unsteady ?? []) console.log(`passed at the second try: ${name}: ${reason}`);
  for (const { name, reason } of report?.skipped ?? []) console.log(`skipped: ${name}: ${reason}`);
}
if (ended) console.log("ended before all steps had run");
console.log(`tests: ${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exit(ended ? 130 : total.failed > 0 || results.some(({ ok }) => !ok) ? 1 : 0);
