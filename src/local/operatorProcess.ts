/**
 * The operator as a process in the sandbox: the same program as in production, started anew when it dies.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Logger } from "../machinery/logger.ts";

export interface OperatorProcessOptions {
  readonly folder: string;
  /** Of the API server, as seen in the sandbox. */
  readonly server: string;
  readonly arguments: readonly string[];
  readonly log: Logger;
}

const FIRST_DELAY = 1_000;
const LONGEST_DELAY = 30_000;

export class OperatorProcess {
  readonly #options: OperatorProcessOptions;
  #child: ChildProcess | undefined;
  #wanted = false;
  #delay = 0;

  constructor(options: OperatorProcessOptions) {
    this.#options = options;
  }

  /** Starts it, and starts it again whenever it ends by itself. */
  start(): void {
    this.#wanted = true;
    if (!this.#child) this.#spawn();
  }

  /** Sends a signal; when the operator has ended, it is not started again by itself. */
  async signal(name: NodeJS.Signals): Promise<void> {
    this.#wanted = false;
    const child = this.#child;
    if (!child) return;
    const ended = once(child, "exit");
    child.kill(name);
    await ended;
  }

  #spawn(): void {
    const { folder, server, log } = this.#options;
    const kubeconfig = join(folder, "operator.kubeconfig");
    writeFileSync(kubeconfig, plainKubeconfig(server), { mode: 0o600 });
    const main = fileURLToPath(new URL("../main.ts", import.meta.url));
    const output = openSync(join(folder, "operator.log"), "a", 0o600);
    const args = [main, "operator", "--kubeconfig", kubeconfig, ...this.#options.arguments];
    const child = spawn(process.execPath, args, { stdio: ["ignore", output, output] });
    closeSync(output);
    this.#child = child;
    const startedAt = Date.now();
    child.once("exit", (code, signal) => {
      this.#child = undefined;
      if (!this.#wanted) return;
      this.#delay =
        Date.now() - startedAt > LONGEST_DELAY
          ? FIRST_DELAY
          : Math.min(LONGEST_DELAY, Math.max(FIRST_DELAY, this.#delay * 2));
      log.warn({ code, signal, again: this.#delay }, "the operator ended by itself; its words are in operator.log");
      setTimeout(() => this.#wanted && this.start(), this.#delay);
    });
  }
}

const plainKubeconfig = (server: string) =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "local", cluster: { server } }],
    users: [{ name: "local", user: {} }],
    contexts: [{ name: "local", context: { cluster: "local", user: "local" } }],
    "current-context": "local",
  });
