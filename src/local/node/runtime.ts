/**
 * Starts containers as processes, by orders to runtime.py.
 *
 * Runs inside the sandbox (sandbox.ts), as its root. What a container is (its files, variables and command) is decided
 * elsewhere; here it is started, signalled, entered and seen to its end.
 */
import { spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { toolPath } from "../sandbox.ts";

const PROGRAM = fileURLToPath(new URL("runtime.py", import.meta.url));

export interface NetworkOrders {
  /** The file that keeps the namespace. */
  readonly file: string;
  readonly address: string;
  /** Bits of the Pods' network. */
  readonly prefix: number;
  readonly gateway: string;
  readonly bridge: string;
  /** Name of the node's end of the wire; at most 15 characters. */
  readonly veth: string;
}

/** A thing to be seen in a container: a folder or file of the machine, or an empty tmpfs when there is no source. */
export interface Mount {
  readonly source?: string;
  readonly target: string;
  readonly readOnly?: boolean;
  /** Of a tmpfs: `size=64m,mode=1777`. */
  readonly options?: string;
}

export interface ContainerOrders {
  /** A network namespace's file. */
  readonly network: string;
  readonly hostname: string;
  /** One of them on /tmp. */
  readonly mounts: readonly Mount[];
  /** Folders of the machine shown empty. */
  readonly hide: readonly string[];
  readonly argv: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Working directory. */
  readonly directory: string;
  /** How far it stands back when processors are short; 0 to 19. */
  readonly nice: number;
}

export interface Runtime {
  createNetwork(orders: NetworkOrders): Promise<void>;
  removeNetwork(file: string): Promise<void>;
  /** Puts an empty file system in memory on a folder; `limit` in bytes. */
  mountMemory(folder: string, limit: number | undefined): Promise<void>;
  unmount(path: string): Promise<void>;
  start(
    orders: ContainerOrders,
    onOutput: (stream: "stdout" | "stderr", chunk: Buffer) => void,
  ): Promise<RunningContainer>;
  execute(pid: number, argv: readonly string[], options: ExecuteOptions): Promise<Executed>;
}

export interface RunningContainer {
  /** Of the container's first process, as the node sees it. */
  readonly pid: number;
  /** Exit code; 128 + n after signal n. Resolves after the last line of output was handed over. */
  readonly ended: Promise<number>;
  /** Signals the first process, as kubelet does; the others in the container end with it. */
  signal(name: NodeJS.Signals): void;
}

export interface ExecuteOptions {
  readonly environment: Readonly<Record<string, string>>;
  readonly directory: string;
  /** Milliseconds; then it is killed, and the answer has no code. */
  readonly timeout: number;
}

export interface Executed {
  readonly code: number | undefined;
  readonly output: string;
}

/** The program could not be started; the message is the runtime's. */
export class StartError extends Error {
  override readonly name = "StartError";
}

/** The runtime of real processes. `python` is any Python 3.9 or newer of the machine. */
export function processRuntime(python: string): Runtime {
  const helper = (verb: string) => [python, "-I", "-S", "-B", PROGRAM, verb] as const;
  const env = { PATH: toolPath, LC_ALL: "C.UTF-8" };

  return {
    async createNetwork(orders) {
      const [command, ...args] = helper("network");
      const { code, output } = await collect(command, args, { input: JSON.stringify(orders), env });
      if (code !== 0) throw new Error(`the Pod's network could not be made: ${output.trim().split("\n").at(-1)}`);
    },

    async removeNetwork(file) {
      await collect("umount", ["--lazy", file], { env });
      await rm(file, { force: true });
    },

    async mountMemory(folder, limit) {
      const options = limit ? ["-o", `mode=1777,size=${Math.ceil(limit)}`] : ["-o", "mode=1777"];
      const { code, output } = await collect("mount", ["-t", "tmpfs", ...options, "tmpfs", folder], { env });
      if (code !== 0) throw new Error(output.trim());
    },

    async unmount(path) {
      await collect("umount", ["--lazy", path], { env });
    },

    async start(orders, onOutput) {
      const [command, ...args] = helper("run");
      const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe", "pipe"], env });
      child.stdin!.on("error", () => {});
      child.stdin!.end(JSON.stringify(orders));
      child.stdout!.on("data", (chunk) => onOutput("stdout", chunk));
      let complaint = "";
      let started = false;
      child.stderr!.on("data", (chunk) => {
        // Before the program runs, what is said there is the helper's.
        if (started) onOutput("stderr", chunk);
        else complaint += chunk;
      });
      const closed = new Promise<void>((resolve) => {
        child.once("close", () => resolve());
        child.once("error", (error) => {
          complaint += error.message;
          resolve();
        });
      });
      let exit = 137;
      return new Promise((resolve, reject) => {
        const ended = closed.then(() => exit);
        createInterface({ input: child.stdio[3] as NodeJS.ReadableStream }).on("line", (line) => {
          const report = JSON.parse(line) as { pid?: number; error?: string; exit?: number };
          if (report.error !== undefined) reject(new StartError(report.error));
          if (report.exit !== undefined) exit = report.exit;
          if (report.pid === undefined) return;
          const { pid } = report;
          started = true;
          if (complaint) onOutput("stderr", Buffer.from(complaint));
          let over = false;
          void ended.then(() => {
            over = true;
          });
          const signal = (name: NodeJS.Signals) => {
            if (over) return;
            try {
              process.kill(pid, name);
            } catch {
              // It has just ended by itself.
            }
          };
          resolve({ pid, ended, signal });
        });
        void closed.then(() => reject(new StartError(complaint.trim().split("\n").at(-1) || "the runtime failed")));
      });
    },

    async execute(pid, argv, { environment, directory, timeout }) {
      const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
      const args = ["--target", String(pid), "--mount", "--uts", "--ipc", "--net", "--pid"];
      // Killed when it is late; nsenter alone would leave what it started behind.
      const inside = [
        "setpriv",
        "--pdeathsig",
        "KILL",
        "env",
        "--ignore-environment",
        `--chdir=${directory}`,
        ...variables,
        ...argv,
      ];
      return collect("nsenter", [...args, "--", ...inside], { env, timeout });
    },
  };
}

/** Runs a short program of the node's own and gathers what it prints, 10 KiB at most. */
function collect(
  command: string,
  args: readonly string[],
  options: { input?: string; env: Record<string, string>; timeout?: number },
): Promise<Executed> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], env: options.env });
    let output = "";
    let late = false;
    const take = (chunk: Buffer) => {
      if (output.length < 10_240) output += chunk;
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.stdin.on("error", () => {});
    child.stdin.end(options.input ?? "");
    const timer =
      options.timeout === undefined
        ? undefined
        : setTimeout(() => {
            late = true;
            child.kill("SIGKILL");
            // Whoever inherited its pipes must not keep us waiting.
            child.stdout.destroy();
            child.stderr.destroy();
          }, options.timeout);
    child.once("error", (error) => {
      clearTimeout(timer);
      reject(error);
    });
    child.once("close", (code) => {
      clearTimeout(timer);
      resolve({ code: late || code === null ? undefined : code, output });
    });
  });
}
