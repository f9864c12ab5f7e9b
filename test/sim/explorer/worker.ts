/**
 * A thread that explores: some lifecycles (singles, then pairs), or one planted bug.
 *
 * The source tree is not touched for a planted bug: a hook changes the file as this thread loads it, so the explorer is
 * loaded only after that.
 */
import { registerHooks } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import type { Account, Violation } from "./explore.ts";
import { type Mutant, mutants } from "./mutants.ts";

interface Exploration {
  readonly explore: readonly string[];
  /** Milliseconds since the epoch at which single faults end at the latest, and everything. */
  readonly singlesUntil: number;
  readonly until: number;
  /** Random walks from this seed for what is left of the time. */
  readonly walk?: number;
}

export type Task = Exploration | { readonly mutant: string; readonly until: number };

export type Told =
  | { readonly violation: Violation }
  | { readonly accounts: readonly Account[]; readonly over?: boolean }
  | { readonly mutant: string; readonly foundBy?: string; readonly sentence?: string; readonly schedules: number };

const task = workerData as Task;
const tell = (told: Told) => parentPort?.postMessage(told);

if ("mutant" in task) await findMutant(mutants.find(({ name }) => name === task.mutant)!, task.until);
else await explore(task);

async function explore({ explore: names, singlesUntil, until, walk }: Exploration): Promise<void> {
  const { Explorer } = await import("./explore.ts");
  const explorer = new Explorer((violation) => tell({ violation }));
  for (const [index, name] of names.entries()) {
    // Each gets its share of what time is left, so that all have something when it is short.
    const share = Date.now() + (singlesUntil - Date.now()) / (names.length - index);
    await explorer.singles(name, () => Date.now() >= share);
    tell({ accounts: explorer.accounts });
  }
  await explorer.pairs(() => Date.now() >= until);
  if (walk !== undefined) await explorer.walks(names, walk, () => Date.now() >= until);
  tell({ accounts: explorer.accounts, over: true });
}

async function findMutant(mutant: Mutant, until: number): Promise<void> {
  let applied = 0;
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      if (!url.endsWith(`/src/${mutant.file}`)) return loaded;
      let source = String(loaded.source);
      for (const [from, to] of mutant.replace) {
        if (!source.includes(from)) throw new Error(`mutant "${mutant.name}": ${mutant.file} does not contain ${from}`);
        source = source.replace(from, to);
        applied++;
      }
      return { ...loaded, source };
    },
  });
  const { Explorer } = await import("./explore.ts");
  if (applied !== mutant.replace.length) throw new Error(`mutant "${mutant.name}": ${mutant.file} was not loaded`);
  const explorer = new Explorer();
  const isOver = () => explorer.violations.length > 0 || Date.now() >= until;
  for (const name of mutant.in) {
    if (isOver()) break;
    await explorer.singles(name, isOver, (_, choice) => mutant.faults === undefined || mutant.faults.includes(choice));
  }
  const [first] = explorer.violations;
  tell({
    mutant: mutant.name,
    foundBy: first?.seed,
    sentence: first?.sentences[0],
    schedules: explorer.accounts.reduce((sum, { schedules }) => sum + schedules, 0),
  });
}
