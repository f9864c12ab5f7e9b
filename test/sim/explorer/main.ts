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

import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import type { Account, Violation } from "./explore.ts";
import { lifecycles } from "./lifecycles.ts";
import { mutants } from "./mutants.ts";
import { replay } from "./timeline.ts";
import type { Task, Told } from "./worker.ts";

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

/** What planted bugs may take of the time. */
const MUTANTS_SHARE = 0.25;
/** What one planted bug may take; most show within a second. */
const MUTANT_SECONDS = 30;
/** What singles may take of the rest, when they are many. */
const SINGLES_SHARE = 0.85;
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
  const end = startedAt + seconds * 1000;
  const chosen = lifecycles.filter(({ name }) => values.lifecycle === undefined || name === values.lifecycle);
  if (chosen.length === 0) throw new Error(`there is no lifecycle ${values.lifecycle}`);
  const plants = values.lifecycle === undefined ? mutants.filter(({ name }) => name.includes(values.only)) : [];

  const found = await plant(
    plants.map(({ name }) => name),
    threads,
    values.mutants ? end : startedAt + seconds * 1000 * MUTANTS_SHARE,
  );
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
  const sum = (field: "choicePoints" | "schedules" | "states" | "pairs" | "pairsDone" | "singles" | "singlesDone") =>
    accounts.reduce((total, account) => total + account[field], 0);
  const line = {
    lifecycles: accounts.length,
    choicePoints: sum("choicePoints"),
    schedules: sum("schedules"),
    states: sum("states"),
    singles: sum("singles"),
    singleShare: share(sum("singlesDone"), sum("singles")),
    pairs: sum("pairsDone"),
    pairShare: share(sum("pairsDone"), sum("pairs")),
    seconds: Math.round((Date.now() - startedAt) / 1000),
    violations: violations.length,
    mutants: { planted: plants.length, found: found.size },
  };
  process.exitCode = violations.length > 0 || found.size < plants.length ? 1 : 0;
  console.log(JSON.stringify(line));
}

function share(part: number, whole: number): number {
  return whole === 0 ? 1 : Math.round((part / whole) * 1000) / 1000;
}

async function explore(names: readonly string[], threads: number, until: number) {
  const violations: Violation[] = [];
  const accounts = new Map<string, Account>();
  // Core lifecycles first: what is explored from their states has its pairs explored, too.
  const isCore = new Set(lifecycles.filter(({ core }) => core).map(({ name }) => name));
  const ordered = [...names].sort((a, b) => Number(isCore.has(b)) - Number(isCore.has(a)));
  const singlesUntil = Date.now() + (until - Date.now()) * SINGLES_SHARE;
  const shares = Array.from({ length: threads }, (_, thread) =>
    ordered.filter((_, index) => index % threads === thread),
  );
  await Promise.all(
    shares
      .filter((share) => share.length > 0)
      .map((share, thread) =>
        run({ explore: share, singlesUntil, until, ...(values.deep && { walk: thread + 1 }) }, (told) => {
          if ("violation" in told) violations.push(told.violation);
          if ("accounts" in told) for (const account of told.accounts) accounts.set(account.lifecycle, account);
        }),
      ),
  );
  return { violations, accounts: names.flatMap((name) => accounts.get(name) ?? []) };
}

/** Looks for each planted bug; those that were found. */
async function plant(names: readonly string[], threads: number, until: number): Promise<Set<string>> {
  const found = new Set<string>();
  const waiting = [...names];
  const work = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const own = Math.min(until, Date.now() + MUTANT_SECONDS * 1000);
      await run({ mutant: name, until: own }, (told) => {
        if (!("mutant" in told)) return;
        if (told.foundBy !== undefined) found.add(told.mutant);
        const how =
          told.foundBy === undefined ? "NOT FOUND" : `found by ${told.foundBy}: ${told.sentence?.slice(0, 110)}`;
        console.log(`planted: ${told.mutant}: ${how} (${told.schedules} schedules)`);
      });
    }
  };
  await Promise.all(Array.from({ length: threads }, work));
  return found;
}

function run(task: Task, hear: (told: Told) => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { workerData: task });
  worker.on("message", hear);
  worker.on("error", reject);
  worker.on("exit", () => resolve());
  return promise;
}

function report(accounts: readonly Account[]): void {
  for (const a of accounts) {
    const pairs = a.pairs > 0 ? `, pairs ${a.pairsDone} of ${a.pairs}` : "";
    console.log(
      `${a.lifecycle}: ${a.choicePoints} choice points, single faults ${a.singlesDone} of ${a.singles}, ${a.schedules} schedules, ${a.states} states${pairs}${a.violations ? `, ${a.violations} VIOLATIONS` : ""}`,
    );
  }
}
