/**
 * A manifest tried on an API server in this process, before anything is downloaded or started for it.
 *
 * Answers: would the embedded cluster and its operator take it? What they would refuse costs milliseconds to learn here,
 * and minutes after a Ray has been downloaded.
 * Next: run.ts applies it for real.
 */
import { crds } from "../api/crds.ts";
import { LABEL } from "../api/labels.ts";
import { validateRayJob } from "../domain/rayjob/validate.ts";
import { defaultSettings } from "../domain/settings.ts";
import { realClock } from "../machinery/clock.ts";
import { SimKube } from "../simkube/simkube.ts";
import { apply } from "./apply.ts";
import { CannotRun } from "./failure.ts";
import type { Manifest } from "./manifest.ts";

/** Throws CannotRun, naming the field, when the manifest would be refused. */
export async function rehearse(manifest: Manifest, namespace: string | undefined, signal: AbortSignal): Promise<void> {
  const server = new SimKube({ clock: realClock, crds: crds() });
  const rayJob = await apply(manifest, {
    transport: server.transport,
    clock: realClock,
    namespace: namespace ?? "default",
    onlyNamespace: namespace,
    makeNamespaces: true,
    signal,
    say: () => {},
  });
  const problem = validateRayJob(rayJob, defaultSettings);
  if (problem) {
    throw new CannotRun(`${manifest.file}: ${problem.text}`, "Correct the manifest. Nothing was started for it.");
  }
  // On a cluster made for the occasion there is nothing but what the manifest brings along.
  const selected = rayJob.spec.clusterSelector?.[LABEL.cluster];
  const brought = manifest.beside.some(
    ({ object }) => object.kind === "RayCluster" && object.metadata.name === selected,
  );
  if (selected !== undefined && !brought) {
    throw new CannotRun(
      `${manifest.file}:${manifest.rayJob.line("spec.clusterSelector")}: clusterSelector names RayCluster ${selected}, which is not in the manifest`,
      "Add that RayCluster to the file, or run the job on the cluster that has it (without --local).",
    );
  }
}
