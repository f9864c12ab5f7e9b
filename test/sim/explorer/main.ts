/**
 * `npm run sim`: explores every lifecycle, looks for every planted bug, and tells what was covered.
 *
 *   --seconds N       the time it may take (360)
 *   --deep            goes on after the pairs, with random walks; an hour unless --seconds says otherwise
 *   --lifecycle NAME  this one only, and no planted bugs
 *   --replay SEED     lives one life again and tells all that happened in it
 *   --mutants         planted bugs only; with --only TEXT those whose name contains it
 *
 * The last line is JSON. Exit code 1 when something was violated, or a planted bug was not found.
 */

import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import type { Account, Violation } from "./explore.ts";
import { lifecycles } from "./lifecycles.ts";
import { mutants } from "./mutants.ts";
import { replay } from "./timeline.ts";
import type { Share, Task, Told } from "./worker.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string" },
    deep: { type: "boolean", default: false },
    lifecycle: { type: "string" },
    replay: { type: "string" },
    mutants: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    threads: { type: "string", default: "2" },
  },
});

/** What planted bugs take of the time, at most, before what they take on a busy machine is added to it. */
const MUTANTS_SHARE = 0.25;
/** What single faults may take of the rest, when they are many: some of the pairs are tried in any case. */
const SINGLES_SHARE = 0.93;
/** What one planted bug may take; most show within a second where the cores are quiet. */
const MUTANT_SECONDS = 60;
/** What a thread may hold, in MiB: what is known of states grows with the time. */
const MOST_MEMORY = 8192;
/** Timelines that are printed in full. */
const SHOWN = 3;

const startedAt = Date.now();
if (values.replay !== undefined) {
  const violations = await replay(values.replay, console.log);
  process.exitCode = violations.length > 0 ? 1 : 0;
} else {
  await everything();
}

async function everything(): Promise<void> {
  const seconds = Number(values.seconds ?? (values.deep ? 3600 : 360));
  const threads = Number(values.threads);
  const chosen = lifecycles.filter(({ name }) => values.lifecycle === undefined || name === values.lifecycle);
  if (chosen.length === 0) throw new Error(`there is no lifecycle ${values.lifecycle}`);
  const plants = values.lifecycle === undefined ? mutants.filter(({ name }) => name.includes(values.only)) : [];

  // Each is looked for, however busy the machine: that there was no time would look like a bug that nothing shows.
  const found = await plant(
    plants.map(({ name }) => name),
    threads,
  );
  const end = Math.max(startedAt + seconds * 1000, Date.now() + seconds * 1000 * (1 - MUTANTS_SHARE));
  const { accounts, violations } = values.mutants
    ? { accounts: [], violations: [] }
    : await explore(
        chosen.map(({ name }) => name),
        threads,
        end,
      );

  report(accounts);
  for (const violation of violations.slice(0, SHOWN)) {
    console.log(`\nVIOLATION, replay with: npm run sim -- --replay ${violation.seed}`);
    await replay(violation.seed, console.log);
  }
  for (const { seed, sentences } of violations)
    console.log(`violated: ${sentences[0]?.slice(0, 300)}\n  --replay ${seed}`);
  const sum = (field: keyof Omit<Account, "lifecycle">) =>
    accounts.reduce((total, account) => total + account[field], 0);
  const line = {
    lifecycles: accounts.length,
    choicePoints: sum("choicePoints"),
    schedules: sum("schedules"),
    states: sum("states"),
    pairs: sum("pairsDone"),
    pairShare: share(sum("pairsDone"), sum("pairs")),
    seconds: Math.round((Date.now() - startedAt) / 1000),
    violations: violations.length,
    mutants: { planted: plants.length, found: found.size },
    singles: sum("singles"),
    singleShare: share(sum("singlesDone"), sum("singles")),
  };
  process.exitCode = violations.length > 0 || found.size < plants.length ? 1 : 0;
  summarise(accounts, plants, found);
  console.log(JSON.stringify(line));
}

/** What hack/test.js sums up: a lifecycle, and a planted bug, is a test. */
function summarise(
  accounts: readonly Account[],
  plants: readonly { name: string }[],
  found: ReadonlySet<string>,
): void {
  const file = process.env["RAYKEEPER_TEST_REPORT"];
  if (file === undefined) return;
  const failures = [
    ...accounts.filter(({ violations }) => violations > 0).map(({ lifecycle }) => ({ name: `lifecycle ${lifecycle}` })),
    ...plants.filter(({ name }) => !found.has(name)).map(({ name }) => ({ name: `planted bug not found: ${name}` })),
  ];
  const passed = accounts.length + plants.length - failures.length;
  writeFileSync(file, JSON.stringify({ passed, failed: failures.length, failures, skipped: [] }));
}

function share(part: number, whole: number): number {
  return whole === 0 ? 1 : Math.round((part / whole) * 1000) / 1000;
}

async function explore(names: readonly string[], threads: number, until: number) {
  const violations: Violation[] = [];
  const accounts = new Map<string, Account>();
  const waiting = groups(names);
  const singlesUntil = Date.now() + (until - Date.now()) * SINGLES_SHARE;
  const next = (): Share => {
    const left = weight(waiting.flat());
    const group = waiting.shift() ?? [];
    const time = ((singlesUntil - Date.now()) * threads * weight(group)) / left;
    return { names: group, until: Math.min(Date.now() + time, singlesUntil) };
  };
  const explorer = (thread: number) =>
    run({ explore: true, singlesUntil, until, ...(values.deep && { walk: thread + 1 }) }, (told, worker) => {
      if ("free" in told) worker.postMessage(next());
      if ("violation" in told) violations.push(told.violation);
      if ("accounts" in told) for (const account of told.accounts) accounts.set(account.lifecycle, account);
    });
  await Promise.all(Array.from({ length: Math.min(threads, waiting.length) }, (_, thread) => explorer(thread)));
  return { violations, accounts: names.flatMap((name) => accounts.get(name) ?? []) };
}

/**
 * Lifecycles that ask for the same begin alike, so a thread that has one of them knows much of the others. Large groups
 * first, so that the threads end at about the same time; in a group the core ones, whose pairs are explored, too.
 */
function groups(names: readonly string[]): string[][] {
  const bySpec = new Map<string, string[]>();
  for (const { name, spec, elected, cluster, kueue } of lifecycles.toSorted(
    (a, b) => Number(b.core ?? false) - Number(a.core ?? false),
  )) {
    if (!names.includes(name)) continue;
    const key = JSON.stringify([spec, elected, cluster, kueue]);
    bySpec.set(key, [...(bySpec.get(key) ?? []), name]);
  }
  return [...bySpec.values()].sort((a, b) => b.length - a.length);
}

/** How long lifecycles take, roughly, as parts of a whole: a further attempt makes a life longer, and with it its faults. */
function weight(names: readonly string[]): number {
  const chosen = lifecycles.filter(({ name }) => names.includes(name));
  return chosen.reduce((sum, { jobs, script, spec }) => {
    const attempts = Math.max(jobs.length, (spec.backoffLimit ?? 0) + 1, script.length);
    return sum + attempts ** 2;
  }, 0);
}

/** Looks for each planted bug; those that were found. */
async function plant(names: readonly string[], threads: number): Promise<Set<string>> {
  const found = new Set<string>();
  const waiting = [...names];
  const work = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      await run({ mutant: name, until: Date.now() + MUTANT_SECONDS * 1000 }, (told) => {
        if (!("mutant" in told)) return;
        if (told.foundBy !== undefined) found.add(told.mutant);
        const how =
          told.foundBy === undefined ? "NOT FOUND" : `found by ${told.foundBy}: ${told.sentence?.slice(0, 110)}`;
        console.log(`planted: ${told.mutant}: ${how} (${told.schedules} schedules)`);
      }).catch((error: Error) => console.log(`NOT PLANTED: ${error.message}`));
    }
  };
  await Promise.all(Array.from({ length: threads }, work));
  return found;
}

function run(task: Task, hear: (told: Told, worker: Worker) => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const resourceLimits = { maxOldGenerationSizeMb: MOST_MEMORY };
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: task, resourceLimits });
  worker.on("message", (told: Told) => hear(told, worker));
  worker.on("error", reject);
  worker.on("exit", () => resolve());
  return promise;
}

function report(accounts: readonly Account[]): void {
  for (const a of accounts) {
    const pairs = a.pairs > 0 ? `, pairs ${a.pairsDone} of ${a.pairs}` : "";
    console.log(
      `${a.lifecycle}: ${a.choicePoints} choice points, single faults ${a.singlesDone} of ${a.singles} (${a.shared} as in others), ${a.schedules} schedules, ${a.states} states${pairs}${a.violations ? `, ${a.violations} VIOLATIONS` : ""}`,
    );
  }
}
