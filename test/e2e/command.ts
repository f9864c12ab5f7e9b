/**
 * Runs `raykeeper` and other programs as a user would, and collects what they print.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const root: string = fileURLToPath(new URL("../..", import.meta.url));
/** Program and first argument of `raykeeper`. */
export const launcher: readonly [string, string] = [process.execPath, `${root}bin/raykeeper.js`];

export interface Finished {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  readonly finished: Promise<Finished>;
  /** Resolves once `pattern` stands in what was printed so far on either output; rejects when the program ends before. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
}

export interface StartOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly input?: string;
  readonly cwd?: string;
}

export function start(command: string, args: readonly string[], options: StartOptions = {}): Running {
  const child = spawn(command, args, {
    cwd: options.cwd ?? root,
    env: { ...process.env, ...options.env },
    stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
  });
  child.stdin?.end(options.input);
  const text = { stdout: "", stderr: "" };
  const waiting = new Set<() => void>();
  for (const name of ["stdout", "stderr"] as const) {
    child[name]!.setEncoding("utf8").on("data", (piece: string) => {
      text[name] += piece;
      for (const look of waiting) look();
    });
  }
  const finished = new Promise<Finished>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      resolve({ code, signal, ...text });
      for (const look of waiting) look();
    });
  });
  return {
    child,
    finished,
    printed(pattern) {
      return new Promise((resolve, reject) => {
        const look = () => {
          const found = pattern.exec(text.stdout) ?? pattern.exec(text.stderr);
          if (found) resolve(found);
          else if (child.exitCode !== null || child.signalCode !== null) {
            reject(
              new Error(
                `${command} ${args.join(" ")} ended without printing ${pattern}:\n${text.stdout}${text.stderr}`,
              ),
            );
          } else return;
          waiting.delete(look);
        };
        waiting.add(look);
        look();
      });
    },
  };
}

/** `raykeeper …` */
export const raykeeper = (args: readonly string[], options?: StartOptions): Running =>
  start(launcher[0], [launcher[1], ...args], options);

export const run = (command: string, args: readonly string[], options?: StartOptions): Promise<Finished> =>
  start(command, args, options).finished;

export interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
  /** Identifies the network namespace. */
  readonly network: string;
}

/** Every process this one may see. */
export function processes(): ProcessInfo[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
        const [state, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
        if (state === "Z") return [];
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
        return [{ pid: Number(pid), parent: Number(parent), command, network: readlinkSync(`/proc/${pid}/ns/net`) }];
      } catch {
        // It ended while we looked.
        return [];
      }
    });
}

/** The processes that `pid` started, directly or not. */
export function descendants(pid: number): ProcessInfo[] {
  const all = processes();
  const found: ProcessInfo[] = [];
  for (let parents = [pid]; parents.length > 0; ) {
    const children = all.filter(({ parent }) => parents.includes(parent));
    found.push(...children);
    parents = children.map((child) => child.pid);
  }
  return found;
}
