/**
 * What Ray is asked to run: the body of the submission, from what the attempt was started with, for whichever mode sends it.
 *
 * Text goes through as it is: nothing is trimmed, quoted or expanded on the way, so what Ray reports equals what the
 * manifest says after YAML parsing.
 */
import type { AttemptRecord } from "../../api/rayjob.ts";
import { parseRuntimeEnv } from "../../api/runtimeEnv.ts";
import type { SubmitRequest } from "./ray.ts";
import type { Submission } from "./submission.ts";

/** @throws an Error whose message names the field, when it cannot be read; validation says the same earlier. */
export function buildRequest(spec: Submission, record: AttemptRecord): SubmitRequest {
  const parsed = parseRuntimeEnv(spec.runtimeEnvYAML ?? "");
  if (!parsed.ok) throw new Error(`runtimeEnvYAML: ${parsed.error}`);
  const runtimeEnv = parsed.value;
  const resources = spec.entrypointResources ? parseResources(spec.entrypointResources) : {};
  return {
    entrypoint: spec.entrypoint ?? "",
    submission_id: record.jobId ?? "",
    ...(Object.keys(runtimeEnv).length > 0 ? { runtime_env: runtimeEnv } : {}),
    ...(Object.keys(spec.metadata ?? {}).length > 0 ? { metadata: spec.metadata } : {}),
    ...(positive(spec.entrypointNumCpus) ? { entrypoint_num_cpus: spec.entrypointNumCpus } : {}),
    ...(positive(spec.entrypointNumGpus) ? { entrypoint_num_gpus: spec.entrypointNumGpus } : {}),
    ...(Object.keys(resources).length > 0 ? { entrypoint_resources: resources } : {}),
  };
}

const positive = (amount: number | undefined): boolean => amount !== undefined && amount > 0;

/** @throws an Error that names the field and the remedy. */
export function parseResources(text: string): Record<string, number> {
  const remedy = `entrypointResources must be a JSON object of numbers, such as {"R1": 2}`;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(`${remedy}: ${(error as Error).message}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`${remedy}, but is ${text}`);
  for (const [name, amount] of Object.entries(value)) {
    if (typeof amount !== "number")
      throw new Error(`${remedy}, but ${JSON.stringify(name)} is ${JSON.stringify(amount)}`);
  }
  return value as Record<string, number>;
}
