/**
 * The embedded cluster that the scenarios share, and the processes behind it. What every cluster with a real Ray has is
 * in ../support/liveCluster.ts.
 */
import { afterAll, beforeEach, inject } from "vitest";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { type Gate, gatedRayJob } from "../support/gate.ts";
import { LiveCluster } from "../support/liveCluster.ts";
import { descendants } from "./command.ts";

export { Gate } from "../support/gate.ts";

export const namespace = "default";

export class Cluster extends LiveCluster {
  constructor() {
    super(inject("kubeconfig"), namespace);
  }

  /** The operator's process. */
  operatorPid(): number | undefined {
    return descendants(inject("clusterPid")).find(
      ({ command }) => /main\.ts operator\b/.test(command) && !/^(sh|setpriv|unshare) /.test(command),
    )?.pid;
  }

  /** Kills processes of Pods with SIGKILL, by what their command line says, and tells how many there were. */
  killProcesses(command: RegExp): number {
    const found = descendants(inject("clusterPid")).filter(
      (each) => command.test(each.command) && !/^(sh|setpriv|unshare|timeout) /.test(each.command),
    );
    for (const { pid } of found) process.kill(pid, "SIGKILL");
    return found.length;
  }
}

/** The shared cluster, for one test file. */
export function useCluster(): Cluster {
  const cluster = new Cluster();
  beforeEach(({ task }) => console.log(`[e2e] ${task.name} …`));
  afterAll(() => cluster.close());
  return cluster;
}

export function rayJob(name: string, spec: Partial<RayJobSpec>, gate?: Gate): RayJob {
  const job = gatedRayJob(name, spec, gate);
  return { ...job, metadata: { ...job.metadata, namespace } };
}
