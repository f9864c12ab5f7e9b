/**
 * What an attempt was asked to run, kept with it: an annotation of its RayCluster, made together with it.
 *
 * Answers: the fields of spec that a submission is built from, as they were when the attempt's RayCluster was made. An
 * edit counts from the next attempt, though the submission may come minutes later.
 * May not: keep what does not fit; annotations of an object may have 256 KiB together. Then, and on a RayCluster that
 * somebody else made (a selected one, or one of KubeRay's), spec counts as it is when the job is submitted.
 * Next: request.ts for what Ray is sent.
 */
import { ANNOTATION } from "../../api/labels.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import type { AttemptRecord, RayJobSpec } from "../../api/rayjob.ts";
import { isSelected } from "./records.ts";

/** What of spec is the submission itself. */
export const SUBMISSION_FIELDS = [
  "entrypoint",
  "runtimeEnvYAML",
  "metadata",
  "entrypointNumCpus",
  "entrypointNumGpus",
  "entrypointResources",
  "submitterConfig",
  "submitterPodTemplate",
] as const;

export type Submission = Pick<RayJobSpec, (typeof SUBMISSION_FIELDS)[number]>;

/** Kubernetes' own limit is 256 KiB; what is left is for annotations that come later. */
const MOST_BYTES = 240 * 1024;

/** The annotation for a RayCluster that gets `others`, too; nothing where it does not fit. */
export function submissionAnnotation(
  spec: RayJobSpec,
  others: Readonly<Record<string, string>>,
): Record<string, string> {
  const present = SUBMISSION_FIELDS.filter((field) => spec[field] !== undefined).map((field) => [field, spec[field]]);
  const text = JSON.stringify(Object.fromEntries(present));
  const size = bytes(ANNOTATION.submission, text, ...Object.entries(others).flat());
  return size <= MOST_BYTES ? { [ANNOTATION.submission]: text } : {};
}

/** What the attempt submits. */
export function submissionOf(spec: RayJobSpec, record: AttemptRecord, cluster: RayCluster | undefined): Submission {
  const text = isSelected(record) ? undefined : cluster?.metadata.annotations?.[ANNOTATION.submission];
  return (text === undefined ? undefined : read(text)) ?? spec;
}

function read(text: string): Submission | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    // Somebody wrote something else there.
    return undefined;
  }
}

const bytes = (...texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + new TextEncoder().encode(text).length, 0);
