/**
 * Starts the one embedded cluster that the end-to-end scenarios share, before the first, and takes it down after the last.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { defaultCacheDir } from "../../src/local/cache.ts";
import { prepareRay } from "../../src/local/rayEnvironment.ts";
import { RAY_VERSION } from "../support/gate.ts";
import { launcher } from "./command.ts";

declare module "vitest" {
  export interface ProvidedContext {
    kubeconfig: string;
    /** Process that holds the shared cluster. */
    clusterPid: number;
  }
}

interface Project {
  provide(key: "kubeconfig", value: string): void;
  provide(key: "clusterPid", value: number): void;
}

export default async function setup(project: Project): Promise<() => Promise<void>> {
  let said = "";
  await prepareRay({
    version: RAY_VERSION,
    cacheDir: defaultCacheDir(),
    progress: ({ step, detail }) => {
      const text = `${step}: ${detail ?? ""}`;
      if (text !== said) console.log(`[e2e] ${text}`);
      said = text;
    },
  });
  const name = `e2e-${process.pid}`;
  const child = spawn(launcher[0], [launcher[1], "local", "up", "--foreground", "--name", name], {
    stdio: ["ignore", "inherit", "pipe"],
    // Makes the launcher watch us (bin/parentWatch.js): a killed test run takes its cluster along.
    env: { ...process.env, npm_lifecycle_event: "e2e" },
  });
  const kubeconfig = await whenUp(child);
  project.provide("kubeconfig", kubeconfig);
  project.provide("clusterPid", child.pid!);
  return async () => {
    if (child.exitCode !== null)
      throw new Error(`the shared cluster had ended before its end, with code ${child.exitCode}`);
    const ended = once(child, "exit");
    child.kill("SIGTERM");
    await ended;
  };
}

/** Resolves with the path of the kubeconfig; rejects with what the cluster said when it did not come up. */
function whenUp(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let said = "";
    createInterface({ input: child.stderr! }).on("line", (line) => {
      said += `${line}\n`;
      console.log(`[cluster] ${line}`);
      const path = /export KUBECONFIG=(\S+)/.exec(line)?.[1];
      if (path) resolve(path);
    });
    child.once("exit", (code) => reject(new Error(`the shared cluster did not come up (exit code ${code}):\n${said}`)));
  });
}
