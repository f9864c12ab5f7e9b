/**
 * The jobs of scenarios on a real Ray: one head, no worker, and a program that waits until its test lets it go.
 */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { defaultCacheDir } from "../../src/local/cache.ts";

export const RAY_VERSION = "2.56.0";

/**
 * A folder that a job's program and its test both see: the program writes down that it ran, and waits until it is let go.
 * So a test knows how often a program really ran, whatever any status says.
 */
export class Gate {
  readonly folder: string;

  constructor() {
    const parent = join(defaultCacheDir(), "e2e");
    mkdirSync(parent, { recursive: true });
    this.folder = mkdtempSync(join(parent, "gate-"));
    writeFileSync(join(this.folder, "runs"), "");
    // Whoever the container's user is.
    chmodSync(this.folder, 0o777);
    chmodSync(join(this.folder, "runs"), 0o666);
  }

  /** Shell: notes the run, waits for the gate, then does the rest. */
  entrypoint(then = "echo through the gate"): string {
    return `echo run >> /gate/runs; echo waiting at the gate; while [ ! -e /gate/open ]; do sleep 0.2; done; ${then}`;
  }

  open(): void {
    writeFileSync(join(this.folder, "open"), "");
  }

  /** How often the program was started. */
  runs(): number {
    return readFileSync(join(this.folder, "runs"), "utf8").split("\n").length - 1;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A RayJob on one head and no worker: what most scenarios need. With a gate, its program sees it at /gate. */
export function gatedRayJob(name: string, spec: Partial<RayJobSpec>, gate?: Gate): RayJob {
  const mounts = gate ? [{ name: "gate", mountPath: "/gate" }] : [];
  const volumes = gate ? [{ name: "gate", hostPath: { path: gate.folder } }] : [];
  const attempt = {
    name: "ATTEMPT",
    valueFrom: { fieldRef: { fieldPath: "metadata.labels['ray.io/execution-attempt']" } },
  };
  return {
    apiVersion: "ray.io/v1",
    kind: "RayJob",
    metadata: { name },
    spec: {
      shutdownAfterJobFinishes: true,
      ...spec,
      rayClusterSpec: {
        rayVersion: RAY_VERSION,
        headGroupSpec: {
          rayStartParams: { "num-cpus": "1" },
          template: {
            spec: {
              containers: [
                {
                  name: "ray-head",
                  image: `rayproject/ray:${RAY_VERSION}`,
                  env: [attempt],
                  resources: { requests: { cpu: "250m", memory: "1Gi" }, limits: { cpu: "1", memory: "2Gi" } },
                  volumeMounts: mounts,
                },
              ],
              volumes,
            },
          },
        },
      },
    } as RayJobSpec,
  };
}
