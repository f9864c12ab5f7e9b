/**
 * `raykeeper run FILE`: apply a manifest, follow the job, tell how it ended.
 *
 * Next: manifest.ts reads the file, apply.ts puts it on the server, follow.ts watches; local.ts provides the embedded
 * cluster.
 */

import type { Stored } from "../api/object.ts";
import type { RayJob } from "../api/rayjob.ts";
import { realClock } from "../machinery/clock.ts";
import type { Transport } from "../machinery/kube/transport.ts";
import { apply, serverTrouble } from "./apply.ts";
import { connect } from "./connect.ts";
import { CannotRun } from "./failure.ts";
import { type Followed, follow } from "./follow.ts";
import { type Manifest, readManifest } from "./manifest.ts";
import { rehearse } from "./rehearse.ts";
import { Screen, wantsColour } from "./screen.ts";
import type { Ending } from "./signals.ts";
import { failureAdvice, type Phase, summaryJson, summaryLines } from "./summary.ts";

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
  for (const flag of ["follow", "replace", "context", "kubeconfig"] as const) {
    // Taken silently, they would mean another cluster than the one the job then runs on.
    if (!options.local || options[flag] === undefined) continue;
    throw new CannotRun(
      `--local and --${flag} exclude each other`,
      "--local makes a cluster for the occasion, on which there is nothing yet; leave out one of the two.",
    );
  }
  const manifest = readManifest(file);
  const before: Phase[] = [];
  let applied: Stored<RayJob> | undefined;
  const onApplied = (rayJob: Stored<RayJob>) => {
    applied = rayJob;
  };
  let followed: Followed;
  try {
    if (options.local) await rehearse(manifest, options.namespace, ending.signal);
    followed = options.local
      ? await (await import("./embedded.ts")).embedded(
          manifest,
          { screen, signal: ending.signal, before },
          (transport) =>
            applyAndFollow(manifest, options, {
              transport,
              namespace: "default",
              makeNamespaces: true,
              server: "of the embedded cluster",
              screen,
              signal: ending.signal,
              onApplied,
            }),
        )
      : await onCluster(manifest, options, { screen, signal: ending.signal, onApplied });
  } catch (error) {
    if (!ending.signal.aborted) throw error;
    screen.live("");
    if (options.local) screen.line("raykeeper: stopped; nothing is left behind.");
    else screen.line(applied ? stillThere(applied) : "raykeeper: stopped before the RayJob was applied.");
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
    for (const line of failureAdvice(followed, options.local === true, process.stderr.columns)) screen.line(line);
  }
  return verdict.exitCode;
}

interface Target {
  readonly transport: Transport;
  readonly namespace: string;
  /** Namespaces that the manifest means but the server lacks are made. */
  readonly makeNamespaces?: boolean;
  /** Names the API server in messages. */
  readonly server: string;
  readonly screen: Screen;
  readonly signal: AbortSignal;
  readonly onApplied: (rayJob: Stored<RayJob>) => void;
}

async function onCluster(
  manifest: Manifest,
  options: RunOptions,
  from: Pick<Target, "screen" | "signal" | "onApplied">,
): Promise<Followed> {
  const { transport, server, namespace, close } = connect(options);
  try {
    return await applyAndFollow(manifest, options, { ...from, transport, namespace, server });
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
      makeNamespaces: target.makeNamespaces,
      onlyNamespace: options.namespace,
      existing: options.follow ? "follow" : options.replace ? "replace" : undefined,
      signal,
      say: (text) => screen.step(text),
    });
    target.onApplied(rayJob);
    return await follow({ transport, screen, rayJob, signal });
  } catch (error) {
    throw serverTrouble(error, server) ?? error;
  }
}

function stillThere({ metadata: { namespace, name } }: Stored<RayJob>): string {
  return (
    `raykeeper: stopped watching; RayJob ${namespace}/${name} goes on. ` +
    `To watch it again: raykeeper run --follow FILE. To end it: kubectl delete rayjob -n ${namespace} ${name}`
  );
}
