/**
 * `raykeeper local up | down | status`: an embedded cluster that is kept running, for kubectl and `raykeeper run`.
 *
 * In the background it is this same program with `local up --foreground`; a file in the cache says which process that is.
 * Next: src/local has the cluster itself.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { cacheFolder, defaultCacheDir } from "../local/cache.ts";
import { startLocalCluster } from "../local/cluster.ts";
import { CannotRun } from "./failure.ts";
import { showProgress } from "./longWork.ts";
import { Screen, wantsColour } from "./screen.ts";
import type { Ending } from "./signals.ts";

export interface LocalOptions {
  /** Several clusters may run side by side, each under its name. */
  readonly name: string;
}

/** What the running cluster tells about itself. */
interface State {
  readonly pid: number;
  /** Of the process, in the kernel's ticks: a later process with the same pid has another. */
  readonly startedTicks: string;
  readonly kubeconfig: string;
  readonly server: string;
}

const POLL_MS = 100;
const DOWN_PATIENCE_MS = 20_000;

export async function up(options: LocalOptions & { readonly foreground?: boolean }, ending: Ending): Promise<number> {
  const files = await filesOf(options.name);
  const present = running(files.state);
  if (present) {
    process.stderr.write("raykeeper: the embedded cluster is up already\n");
    tellKubeconfig(present);
    return 0;
  }
  return options.foreground ? foreground(files, ending) : background(files, options.name, ending);
}

async function foreground(files: Files, ending: Ending): Promise<number> {
  const screen = newScreen();
  const cluster = await startLocalCluster({
    signal: ending.signal,
    progress: showProgress(screen),
    kubeconfig: files.kubeconfig,
  });
  const { server } = cluster;
  const state: State = {
    pid: process.pid,
    startedTicks: startedTicks(process.pid)!,
    kubeconfig: files.kubeconfig,
    server,
  };
  try {
    writeFileSync(files.state, JSON.stringify(state), { mode: 0o600 });
    screen.live("");
    screen.step(`the embedded cluster is up; ${exportLine(files.kubeconfig)}`);
    if (!ending.signal.aborted) await Promise.race([once(ending.signal, "abort"), cluster.ended]);
    screen.step("taking it down …");
  } finally {
    await cluster.close();
    rmSync(files.state, { force: true });
    rmSync(files.kubeconfig, { force: true });
  }
  // Asked to end, it has done what it was asked to.
  if (ending.signal.aborted) return 0;
  throw new CannotRun("the embedded cluster ended by itself", `Its log: ${files.log}`);
}

async function background(files: Files, name: string, ending: Ending): Promise<number> {
  const screen = newScreen();
  screen.step("starting the embedded cluster …");
  const log = openSync(files.log, "w", 0o600);
  const main = fileURLToPath(new URL("../main.ts", import.meta.url));
  const child = spawn(process.execPath, [main, "local", "up", "--foreground", "--name", name], {
    detached: true,
    stdio: ["ignore", log, log],
    // Not npm's child any more: it stays when npm ends.
    env: { ...process.env, npm_lifecycle_event: undefined },
  });
  let exit: number | undefined;
  child.once("exit", (code) => {
    exit = code ?? 1;
  });
  for (;;) {
    const state = running(files.state);
    if (state) {
      child.unref();
      screen.live("");
      screen.step("the embedded cluster is up");
      tellKubeconfig(state);
      return 0;
    }
    if (exit !== undefined) {
      process.stderr.write(readFileSync(files.log, "utf8"));
      return exit || 1;
    }
    if (ending.signal.aborted) {
      child.kill("SIGTERM");
      return ending.code()!;
    }
    screen.live(lastLine(files.log));
    await pause(POLL_MS);
  }
}

export async function down({ name }: LocalOptions): Promise<number> {
  const files = await filesOf(name);
  const state = running(files.state);
  if (!state) {
    process.stderr.write("raykeeper: the embedded cluster is not up\n");
    return 0;
  }
  process.kill(state.pid, "SIGTERM");
  for (let waited = 0; isSame(state); waited += POLL_MS) {
    // Everything of the cluster dies with this process, so the harsh way leaves nothing either.
    if (waited >= DOWN_PATIENCE_MS) process.kill(state.pid, "SIGKILL");
    await pause(POLL_MS);
  }
  rmSync(files.state, { force: true });
  rmSync(files.kubeconfig, { force: true });
  process.stderr.write("raykeeper: the embedded cluster is down\n");
  return 0;
}

export async function status({ name }: LocalOptions): Promise<number> {
  const state = running((await filesOf(name)).state);
  if (!state) {
    process.stdout.write("The embedded cluster is not up. Start it: raykeeper local up\n");
    return 1;
  }
  process.stdout.write(`The embedded cluster is up: process ${state.pid}, API server ${state.server}.\n`);
  tellKubeconfig(state);
  return 0;
}

/** The kubeconfig of the cluster that `local up` keeps running. */
export async function kubeconfigOfLocal(name = "default"): Promise<string> {
  const state = running((await filesOf(name)).state);
  if (!state) throw new CannotRun("the embedded cluster is not up", "Start it: raykeeper local up");
  return state.kubeconfig;
}

/** On stdout, alone there when the cluster comes up: `eval "$(raykeeper local up)"`. */
function tellKubeconfig({ kubeconfig }: State): void {
  process.stdout.write(`${exportLine(kubeconfig)}\n`);
}

/** For a shell, which must not take a path apart at its blanks. */
export function exportLine(kubeconfig: string): string {
  const plain = /^[\w@%+=:,./-]+$/.test(kubeconfig);
  return `export KUBECONFIG=${plain ? kubeconfig : `'${kubeconfig.replaceAll("'", "'\\''")}'`}`;
}

type Files = Awaited<ReturnType<typeof filesOf>>;

async function filesOf(name: string) {
  if (!/^[a-z0-9-]{1,40}$/.test(name)) throw new CannotRun(`"${name}" is no name for a cluster: use a-z, 0-9 and -`);
  const folder = await cacheFolder(defaultCacheDir(), "local", name);
  return {
    state: join(folder, "state.json"),
    kubeconfig: join(folder, "kubeconfig"),
    log: join(folder, "cluster.log"),
  };
}

/** The state of a cluster whose process lives; a state left over by SIGKILL is none. */
function running(file: string): State | undefined {
  try {
    const state = JSON.parse(readFileSync(file, "utf8")) as State;
    return isSame(state) ? state : undefined;
  } catch {
    return undefined;
  }
}

const isSame = ({ pid, startedTicks: ticks }: State): boolean => startedTicks(pid) === ticks;

/** When a process was started; undefined when there is none, or only its zombie. */
function startedTicks(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

const newScreen = () =>
  new Screen({
    stdout: process.stdout,
    stderr: process.stderr,
    colour: wantsColour(true, process.env),
    now: Date.now,
  });

const lastLine = (file: string): string => readFileSync(file, "utf8").trimEnd().split("\n").at(-1)?.trim() ?? "";
