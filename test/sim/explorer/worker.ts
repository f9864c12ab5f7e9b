/**
 * A thread that explores: some lifecycles (singles, then pairs), or one planted bug.
 *
 * The source tree is not touched for a planted bug: a hook changes the file as this thread loads it, so the explorer is
 * loaded only after that.
 */
import { once } from "node:events";
import { enableCompileCache, registerHooks } from "node:module";
import { parentPort, workerData } from "node:worker_threads";
import type { Account, Violation } from "./explore.ts";
import { type Mutant, mutants } from "./mutants.ts";

interface Exploration {
  /** Lifecycles are asked for, a group at a time. */
  readonly explore: true;
  /** Milliseconds since the epoch at which single faults end, and everything. */
  readonly singlesUntil: number;
  readonly until: number;
  /** Random walks from this seed for what is left of the time. */
  readonly walk?: number;
}

export type Task = Exploration | { readonly mutant: string; readonly until: number };

export type Told =
  | { readonly violation: Violation }
  | { readonly accounts: readonly Account[] }
  /** What is next? The answer is a `Share`. */
  | { readonly free: true }
  | { readonly mutant: string; readonly foundBy?: string; readonly sentence?: string; readonly schedules: number };

/** Lifecycles that begin alike, and until when they are explored at first; none when all are taken. */
export interface Share {
  readonly names: readonly string[];
  readonly until: number;
}

// Each planted bug has a thread that loads all of it, and few of them live for longer than that takes.
enableCompileCache();

const task = workerData as Task;
const tell = (told: Told) => parentPort?.postMessage(told);

if ("mutant" in task) await findMutant(mutants.find(({ name }) => name === task.mutant)!, task.until);
else await explore(task);

async function explore({ singlesUntil, until, walk }: Exploration): Promise<void> {
  const { Explorer } = await import("./explore.ts");
  const explorer = new Explorer((violation) => tell({ violation }));
  const over = (time: number) => () => Date.now() >= time;
  const mine: string[] = [];
  for (let share = await next(); share.names.length > 0; share = await next()) {
    for (const [index, name] of share.names.entries()) {
      mine.push(name);
      // What one does not need of its time is left to the others.
      const own = Date.now() + (share.until - Date.now()) / (share.names.length - index);
      await explorer.singles(name, over(own));
      tell({ accounts: explorer.accounts });
    }
  }
  for (const name of mine) await explorer.singles(name, over(singlesUntil));
  await explorer.pairs(over(until));
  if (walk !== undefined) await explorer.walks(mine, walk, over(until));
  tell({ accounts: explorer.accounts });
}

async function next(): Promise<Share> {
  tell({ free: true });
  const [share] = (await once(parentPort!, "message")) as [Share];
  return share;
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
