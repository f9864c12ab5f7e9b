/**
 * Before the first scenario: a one-node cluster (brought up where there is none, and then taken down after the last), the
 * operator's image on its node, and the operator by its chart.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { paths } from "../../hack/cluster/paths.js";
import { LOCK_NAME } from "../../src/machinery/leader.ts";
import { root } from "../e2e/command.ts";
import { install, loadImage, OPERATOR, type Programs, run, TEST_LABEL, uninstallCommand } from "./operator.ts";

declare module "vitest" {
  export interface ProvidedContext {
    kubeconfig: string;
    tools: Programs;
  }
}

interface Project {
  provide(key: "kubeconfig", value: string): void;
  provide(key: "tools", value: Programs): void;
}

const script = (...path: string[]) => [process.execPath, join(root, "hack", ...path)] as const;

/** One for all projects that have this as their setup, each of which imports it anew. */
const shared = globalThis as { raykeeperCluster?: Promise<Shared> };

interface Shared {
  readonly kubeconfig: string;
  readonly programs: Programs;
  readonly end: () => Promise<void>;
}

export default async function setup(project: Project): Promise<() => Promise<void>> {
  shared.raykeeperCluster ??= begin();
  const { kubeconfig, programs, end } = await shared.raykeeperCluster;
  project.provide("tools", programs);
  project.provide("kubeconfig", kubeconfig);
  return end;
}

async function begin(): Promise<Shared> {
  const { kubeconfig } = paths;
  const mine = !existsSync(kubeconfig);
  // One that is up is left as it is, one that is broken is repaired.
  long(...script("cluster", "up.js"));
  const helm = join(long(...script("kubernetes", "build.js"), "helm"), "helm");
  buildKueue();
  const programs: Programs = { kubectl: paths.kubectl, helm, ctr: paths.ctr, socket: paths.containerdSocket };
  const end = whateverHappens(mine ? script("cluster", "down.js") : uninstallCommand(programs, kubeconfig));
  const began = Date.now();
  try {
    const left = ["delete", "namespace", "--wait=false", "--ignore-not-found", "-l", TEST_LABEL];
    run("namespaces of an earlier run", paths.kubectl, ["--kubeconfig", kubeconfig, ...left]);
    // The first leader on a cluster makes it.
    const lease = ["delete", "lease", LOCK_NAME, "--namespace", OPERATOR.namespace, "--ignore-not-found"];
    run("the lease of an earlier run", paths.kubectl, ["--kubeconfig", kubeconfig, ...lease]);
    loadImage(programs);
    install(programs, kubeconfig);
  } catch (error) {
    await end();
    throw error;
  }
  // For a project without a setup of its own: rights.test.ts.
  process.env["RAYKEEPER_CLUSTER_BEGAN"] = String(began);
  let ended: Promise<void> | undefined;
  return {
    kubeconfig,
    programs,
    end() {
      ended ??= end();
      return ended;
    },
  };
}

/** Before the first scenario, so that none shares the cores with a compiler. If it fails, kueue.test.ts will, too. */
function buildKueue(): void {
  try {
    long(...script("kubernetes", "build.js"), "kueue");
  } catch (error) {
    console.error(`[cluster] ${error}`);
  }
}

/** Runs a program that may take minutes and tells its progress itself; answers what it printed. It does not outlive us. */
function long(command: string, ...args: string[]): string {
  const { status, stdout } = spawnSync("setpriv", ["--pdeathsig", "TERM", command, ...args], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}`);
  return stdout.trim();
}

/** Runs the command when what it answers is called, or when this process has ended otherwise: then the pipe breaks. */
function whateverHappens(command: readonly string[]): () => Promise<void> {
  const guard = spawn("sh", ["-c", 'read -r _; exec "$@"', "sh", ...command], {
    detached: true,
    stdio: ["pipe", "inherit", "inherit"],
  });
  guard.unref();
  return async () => {
    const ended = once(guard, "exit");
    guard.ref();
    guard.stdin.end();
    const [code] = await ended;
    if (code !== 0) throw new Error(`${command.join(" ")} ended with ${code}`);
  };
}
