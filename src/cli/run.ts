/**
 * `raykeeper run FILE`: apply a manifest, follow the job, tell how it ended.
 *
 * Next: manifest.ts reads the file, apply.ts puts it on the server, follow.ts watches; local.ts provides the embedded
 * cluster.
 */

import { realClock } from "../machinery/clock.ts";
import type { Transport } from "../machinery/kube/transport.ts";
import { apply, serverTrouble } from "./apply.ts";
import { connect } from "./connect.ts";
import { CannotRun } from "./failure.ts";
import { type Followed, follow } from "./follow.ts";
import { type Manifest, readManifest } from "./manifest.ts";
import { Screen, wantsColour } from "./screen.ts";
import type { Ending } from "./signals.ts";
import { type Phase, summaryJson, summaryLines } from "./summary.ts";

export interface RunOptions {
  readonly local?: boolean;
  readonly follow?: boolean;
  readonly replace?: boolean;
  readonly namespace?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly output?: "json";
  readonly color: boolean;
}

/** Returns the exit code. Throws CannotRun when the job could not be run. */
export async function run(file: string, options: RunOptions, ending: Ending): Promise<number> {
  const screen = new Screen({
    stdout: process.stdout,
    stderr: process.stderr,
    colour: wantsColour(options.color, process.env),
    now: Date.now,
    logTo: options.output === "json" ? "stderr" : "stdout",
  });
  if (options.follow && options.replace) throw new CannotRun("--follow and --replace exclude each other");
  const manifest = readManifest(file);
  const before: Phase[] = [];
  let followed: Followed;
  try {
    followed = options.local
      ? await (await import("./embedded.ts")).embedded(
          manifest,
          { screen, signal: ending.signal, before },
          (transport) =>
            applyAndFollow(manifest, options, {
              transport,
              namespace: "default",
              server: "of the embedded cluster",
              screen,
              signal: ending.signal,
            }),
        )
      : await onCluster(manifest, options, screen, ending.signal);
  } catch (error) {
    if (!ending.signal.aborted) throw error;
    screen.live("");
    screen.line(options.local ? "raykeeper: stopped; nothing is left behind." : stillThere(manifest));
    return ending.code()!;
  }
  const total = screen.elapsed();
  const { rayJob, verdict } = followed;
  if (options.output === "json") {
    process.stdout.write(`${JSON.stringify(summaryJson(rayJob, verdict, before, total), undefined, 2)}\n`);
  } else {
    screen.line("");
    const [first, ...rest] = summaryLines(rayJob, verdict, Date.now(), before, total);
    screen.line(screen.paint(verdict.exitCode === 0 ? "good" : "bad", first!));
    for (const line of rest) screen.line(line);
  }
  return verdict.exitCode;
}

interface Target {
  readonly transport: Transport;
  readonly namespace: string;
  /** Names the API server in messages. */
  readonly server: string;
  readonly screen: Screen;
  readonly signal: AbortSignal;
}

async function onCluster(
  manifest: Manifest,
  options: RunOptions,
  screen: Screen,
  signal: AbortSignal,
): Promise<Followed> {
  const { transport, server, namespace, close } = connect(options);
  try {
    return await applyAndFollow(manifest, options, { transport, namespace, server, screen, signal });
  } finally {
    await close();
  }
}

async function applyAndFollow(manifest: Manifest, options: RunOptions, target: Target): Promise<Followed> {
  const { transport, screen, signal, server } = target;
  try {
    const rayJob = await apply(manifest, {
      transport,
      clock: realClock,
      namespace: options.namespace ?? target.namespace,
      onlyNamespace: options.namespace,
      existing: options.follow ? "follow" : options.replace ? "replace" : undefined,
      signal,
      say: (text) => screen.step(text),
    });
    return await follow({ transport, screen, rayJob, signal });
  } catch (error) {
    throw serverTrouble(error, server) ?? error;
  }
}

function stillThere(manifest: Manifest): string {
  const { name, generateName } = manifest.rayJob.object.metadata;
  return (
    `raykeeper: stopped watching; RayJob ${name ?? `${generateName}…`} goes on where it is. ` +
    "To watch it again: raykeeper run --follow FILE. To end it: kubectl delete rayjob NAME."
  );
}
