/**
 * What a RayJob may say though it surely is a mistake: told when it is admitted, and by `raykeeper validate`.
 *
 * May not: refuse anything, nor speak of what only might be wrong: a warning that is often false is soon read by nobody.
 * To add one, add an entry to `rules`, as in validate.ts. Its whole sentence fits into 256 characters: the API server
 * cuts off what is longer.
 */
import { LABEL } from "../../api/labels.ts";
import type { RayJob, RayJobSpec } from "../../api/rayjob.ts";
import { clusterSpecCautions } from "../raycluster/cautions.ts";
import type { Settings } from "../settings.ts";
import { check, type Finding, type Rule, type Violation } from "../validation.ts";
import { disposalOf, OUTCOMES } from "./policy.ts";
import { selects } from "./records.ts";
import { same } from "./status.ts";
import { SUBMISSION_FIELDS } from "./submission.ts";

export function rayJobCautions(job: RayJob, settings: Settings): Violation[] {
  return check(rules, { ...job, spec: job.spec ?? {} }, settings);
}

/** What of an edit comes too late: for an update that is admitted. `old` is the object as it is stored. */
export function rayJobEditCautions(job: RayJob, old: RayJob, settings: Settings): Violation[] {
  return check(editRules, { spec: job.spec ?? {}, old }, settings);
}

/** Kueue's Workload has no room for more, and the submitter is one of them in K8sJobMode. */
const KUEUE_POD_SETS = 18;
const modeIs = (spec: RayJobSpec, ...modes: string[]): boolean => modes.includes(spec.submissionMode ?? "K8sJobMode");

const ignoredIn =
  (...modes: string[]) =>
  (field: "submitterPodTemplate" | "submitterConfig" | "entrypoint"): Rule<RayJob> => ({
    name: `${field}-ignored`,
    find: ({ spec }) =>
      spec[field] === undefined || !modeIs(spec, ...modes)
        ? []
        : [
            {
              at: `spec.${field}`,
              text: `has no effect with submissionMode ${spec.submissionMode}`,
              remedy: "remove it, or choose another spec.submissionMode",
            },
          ],
  });

const rules: readonly Rule<RayJob>[] = [
  {
    name: "cluster-spec-ignored",
    at: "spec.rayClusterSpec",
    broken: ({ spec }) => selects(spec) && spec.rayClusterSpec !== undefined,
    text: "has no effect with spec.clusterSelector",
    remedy: "keep one of the two",
  },
  {
    name: "shutdown-ignored",
    at: "spec.shutdownAfterJobFinishes",
    broken: ({ spec }, { deleteRayJobAfterFinish }) =>
      selects(spec) && spec.shutdownAfterJobFinishes === true && !deleteRayJobAfterFinish,
    text: "has no effect with spec.clusterSelector: a selected cluster is never deleted, and ttlSecondsAfterFinished waits for nothing",
    remedy: "remove both",
  },
  ignoredIn("HTTPMode", "InteractiveMode")("submitterPodTemplate"),
  ignoredIn("HTTPMode", "InteractiveMode")("submitterConfig"),
  ignoredIn("InteractiveMode")("entrypoint"),
  {
    name: "pre-running-deadline-reached",
    at: "spec.preRunningDeadlineSeconds",
    broken: ({ spec: { activeDeadlineSeconds, preRunningDeadlineSeconds } }) =>
      activeDeadlineSeconds !== undefined &&
      preRunningDeadlineSeconds !== undefined &&
      activeDeadlineSeconds <= preRunningDeadlineSeconds,
    text: "is never reached: spec.activeDeadlineSeconds, counted from the same moment, is not longer",
    remedy: "make it shorter than activeDeadlineSeconds",
  },
  { name: "every-end-has-a-deletion-rule", find: endsWithoutRule },
  { name: "kueue-takes-the-groups", find: tooManyGroupsForKueue },
  {
    name: "kueue-takes-no-selected-cluster",
    at: "metadata.labels",
    broken: ({ metadata: { labels }, spec }) => selects(spec) && Boolean(labels?.[LABEL.kueueQueueName]),
    text: `${LABEL.kueueQueueName} has Kueue suspend it, and never start it: Kueue manages no RayJob with spec.clusterSelector`,
    remedy: "remove the label",
  },
  {
    name: "cluster",
    find: ({ spec: { rayClusterSpec } }, settings) =>
      rayClusterSpec ? clusterSpecCautions(rayClusterSpec, "spec.rayClusterSpec", settings) : [],
  },
];

/** Such a RayJob keeps its Pods until somebody deletes it; what it costs is noticed weeks later. */
function endsWithoutRule({ spec }: RayJob, settings: Settings): Finding[] {
  const open = OUTCOMES.filter((outcome) => disposalOf(spec, outcome, settings).unmatched);
  if (open.length === 0) return [];
  const ends = open.map(
    ({ jobDeploymentStatus, jobStatus }) => `${jobDeploymentStatus} with ${jobStatus || "no"} jobStatus`,
  );
  const phases = [...new Set(open.map(({ jobDeploymentStatus }) => jobDeploymentStatus))];
  return [
    {
      at: "spec.deletionStrategy.deletionRules",
      text: `none is for ${ends.join(", ")}: everything is kept then`,
      remedy: `add one for jobDeploymentStatus ${phases.join(", and one for ")}`,
    },
  ];
}

function tooManyGroupsForKueue({ metadata: { labels }, spec }: RayJob): Finding[] {
  const groups = spec.rayClusterSpec?.workerGroupSpecs?.length ?? 0;
  const most = KUEUE_POD_SETS - 1 - (modeIs(spec, "K8sJobMode") ? 1 : 0);
  if (!labels?.[LABEL.kueueQueueName] || groups <= most) return [];
  const text = `are ${groups}, and Kueue admits no RayJob with more than ${most} in this submissionMode`;
  return [{ at: "spec.rayClusterSpec.workerGroupSpecs", text, remedy: "join groups of the same Pods" }];
}

interface Edit {
  readonly spec: RayJobSpec;
  readonly old: RayJob;
}

/** What an attempt takes from spec when it starts, so that an edit counts from the next one on. */
const TAKEN_AT_START = [
  "rayClusterSpec",
  "clusterSelector",
  "submissionMode",
  ...SUBMISSION_FIELDS,
  "jobId",
] as const satisfies readonly (keyof RayJobSpec)[];

const ENDED = ["Complete", "Failed"];

const editRules: readonly Rule<Edit>[] = [
  {
    name: "edit-comes-too-late",
    find: ({ spec, old }) => {
      const phase = old.status?.jobDeploymentStatus ?? "";
      const [when, remedy] = ENDED.includes(phase)
        ? ["the RayJob has ended, so this changes nothing", "create another RayJob to run it again"]
        : phase === "Running"
          ? ["the attempt that runs was started without this; it counts from the next one", LET_IT_START_ANEW]
          : [];
      if (!when || !remedy) return [];
      return TAKEN_AT_START.filter((field) => !same(spec[field], old.spec?.[field])).map((field) => ({
        at: `spec.${field}`,
        text: when,
        remedy,
      }));
    },
  },
];

const LET_IT_START_ANEW = "to start anew with it, suspend the RayJob and resume it";
