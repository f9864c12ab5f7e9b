/**
 * Jobs: what is filled in and what is refused. jobs.ts carries them out.
 */
import structural from "../../api/generated/structural.json" with { type: "json" };
import type { Job, JobSpec } from "../../api/kubernetes.ts";
import { type Cause, fault } from "../errors.ts";
import { equal, type Item, thawed } from "../json.ts";
import { labelFaults } from "../names.ts";
import type { Resource } from "../registry.ts";
import type { Schema } from "../schema.ts";
import { builtIn, linked, open } from "./builtIn.ts";
import { jobColumns } from "./columns.ts";
import { completePodSpec, podSpecFaults } from "./pod.ts";

const whole: Schema = { type: "integer", format: "int32", minimum: 0 };
const wholeLong: Schema = { type: "integer", format: "int64", minimum: 0 };
const jobSpec: Schema = {
  type: "object",
  properties: {
    activeDeadlineSeconds: wholeLong,
    backoffLimit: whole,
    backoffLimitPerIndex: whole,
    completionMode: { type: "string" },
    completions: whole,
    managedBy: { type: "string" },
    manualSelector: { type: "boolean" },
    maxFailedIndexes: whole,
    parallelism: whole,
    podFailurePolicy: open,
    podReplacementPolicy: { type: "string", enum: ["TerminatingOrFailed", "Failed"] },
    selector: open,
    successPolicy: open,
    suspend: { type: "boolean" },
    template: {
      type: "object",
      properties: {
        metadata: {
          type: "object",
          properties: {
            labels: { type: "object", additionalProperties: { type: "string" } },
            annotations: { type: "object", additionalProperties: { type: "string" } },
            finalizers: { type: "array", items: { type: "string" } },
            name: { type: "string" },
            generateName: { type: "string" },
            namespace: { type: "string" },
            creationTimestamp: { type: "string", nullable: true },
          },
        },
        spec: linked(structural, "PodSpec"),
      },
    },
    ttlSecondsAfterFinished: whole,
  },
};

/** Rules of a Job that the Job controller here does not follow. */
const NOT_BUILT = [
  "podFailurePolicy",
  "successPolicy",
  "backoffLimitPerIndex",
  "maxFailedIndexes",
  "managedBy",
] as const;

export const jobs: Resource = builtIn({
  group: "batch",
  version: "v1",
  kind: "Job",
  plural: "jobs",
  categories: ["all"],
  hasStatus: true,
  hasGeneration: true,
  metadataThroughStatus: true,
  schema: { type: "object", required: ["spec"], properties: { spec: jobSpec, status: open } },
  columns: jobColumns,
  firstStatus: () => ({}),
  complete(item) {
    const job = thawed(item) as Item & Job;
    if (job.spec) completeJobSpec(job.spec, job.metadata);
    return job;
  },
  validate(item, old, _, part) {
    if (part === "subresource") return [];
    const { spec } = item as unknown as Job;
    if (old) return old.spec === item.spec ? [] : [...specFaults(spec!), ...unchanged(item, old)];
    return specFaults(spec!);
  },
  fields: { "status.successful": (item) => String((item as unknown as Job).status?.succeeded ?? 0) },
});

function completeJobSpec(spec: JobSpec, metadata: Job["metadata"]): void {
  if (spec.completions === undefined && spec.parallelism === undefined) spec.completions = 1;
  spec.parallelism ??= 1;
  spec.backoffLimit ??= 6;
  spec.completionMode ??= "NonIndexed";
  spec.suspend ??= false;
  spec.podReplacementPolicy ??= "TerminatingOrFailed";
  if (!spec.template) return;
  if (spec.template.spec) completePodSpec(spec.template.spec);
  if (spec.manualSelector) return;
  spec.selector ??= { matchLabels: { "batch.kubernetes.io/controller-uid": metadata.uid! } };
  const template = spec.template as { metadata?: { labels?: Record<string, string> } };
  template.metadata ??= {};
  const { uid, name } = metadata;
  template.metadata.labels = {
    ...template.metadata.labels,
    "batch.kubernetes.io/controller-uid": uid!,
    "batch.kubernetes.io/job-name": name!,
    "controller-uid": uid!,
    "job-name": name!,
  };
}

function specFaults(spec: JobSpec): readonly Cause[] {
  const causes: Cause[] = [];
  for (const field of NOT_BUILT) {
    if (spec[field] !== undefined)
      causes.push(fault.forbidden(`spec.${field}`, "is not available in the embedded cluster"));
  }
  if (spec.completionMode !== "NonIndexed") {
    causes.push(fault.unsupported("spec.completionMode", spec.completionMode, ["NonIndexed"]));
  }
  causes.push(...labelFaults("spec.template.labels", spec.template?.metadata?.labels));
  const podCauses = podSpecFaults(spec.template?.spec, "spec.template.spec");
  causes.push(...podCauses);
  const policy = spec.template?.spec?.restartPolicy;
  if (podCauses.length === 0 && policy === "Always") {
    causes.push({
      ...fault.unsupported("spec.template.spec.restartPolicy", policy, ["OnFailure", "Never"]),
      message: 'Required value: valid values: "OnFailure", "Never"',
      reason: "FieldValueRequired",
    });
  }
  return causes;
}

/** The template, the selector and the number of completions of a Job are fixed; a suspended one may change its template. */
function unchanged(item: Item, old: Item): readonly Cause[] {
  const [now, before] = [(item as unknown as Job).spec!, (old as unknown as Job).spec!];
  const causes: Cause[] = [];
  const immutable = (field: "selector" | "completionMode" | "completions" | "template") => {
    if (!equal(now[field], before[field])) {
      causes.push(fault.invalid(`spec.${field}`, now[field], "field is immutable"));
    }
  };
  immutable("selector");
  immutable("completionMode");
  immutable("completions");
  const neverStarted = before.suspend && (old as unknown as Job).status?.startTime === undefined;
  if (!neverStarted) immutable("template");
  return causes;
}
