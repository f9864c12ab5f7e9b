/**
 * Whether a RayJob can be run, beyond what its schema says.
 *
 * Answers: the first thing that is wrong with it, in KubeRay's order and words where KubeRay refuses it, too: tools match
 * on these, so they stand first and exactly; the field and the remedy follow after a colon.
 * A field whose behaviour is not built is refused, in words that name the field and the remedy; nothing is silently
 * ignored.
 */
import { LABEL, SUBMITTER_CONTAINER } from "../../api/labels.ts";
import type { RayJob, RayJobSpec } from "../../api/rayjob.ts";
import { parseRuntimeEnv } from "../../api/runtimeEnv.ts";
import { isFaultTolerant } from "../raycluster/oneHead.ts";
import { clusterSpecProblems, inOneText, rayClusterProblems } from "../raycluster/validate.ts";
import { selects } from "./records.ts";
import { parseResources } from "./request.ts";

export interface Problem {
  readonly of: "Metadata" | "Spec" | "Status";
  readonly text: string;
}

/** So that the RayCluster's name, six characters longer, fits its own limit of 53. */
const LONGEST_NAME = 47;
const DNS_1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const DNS_1123 = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
const DNS_1035_TEXT =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name', or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const INVALID = "The RayJob spec is invalid: ";
const METADATA = "The RayJob metadata is invalid: ";

/** The first problem, in the order metadata, spec, status; undefined when there is none. */
export function validateRayJob(job: RayJob): Problem | undefined {
  const { name = "" } = job.metadata;
  if (name.length > LONGEST_NAME) {
    const text = `${METADATA}RayJob name should be no more than ${LONGEST_NAME} characters`;
    return { of: "Metadata", text: `${text}: shorten metadata.name, which has ${name.length}` };
  }
  if (!DNS_1035.test(name)) {
    const text = `${METADATA}RayJob name should be a valid DNS1035 label: [${DNS_1035_TEXT}]`;
    return { of: "Metadata", text: `${text}: choose another metadata.name` };
  }
  for (const rule of rules) {
    const text = rule(job.spec ?? {}, job);
    if (text !== undefined) return { of: "Spec", text };
  }
  return undefined;
}

/** Text of the problem, or undefined. */
type SpecRule = (spec: RayJobSpec, job: RayJob) => string | undefined;

const refuse =
  (wrong: (spec: RayJobSpec, job: RayJob) => boolean, text: string, remedy?: string): SpecRule =>
  (spec, job) =>
    wrong(spec, job) ? (remedy ? `${text}: ${remedy}` : text) : undefined;

const modeIs = (spec: RayJobSpec, mode: string): boolean => spec.submissionMode === mode;
const isBlocking = (spec: RayJobSpec): boolean => spec.retryStrategy?.type === "BlockingRecreate";
const STRATEGIES = ["Recreate", "BlockingRecreate"];
const headPod = (spec: RayJobSpec) => spec.rayClusterSpec?.headGroupSpec?.template?.spec;
const isSubmitter = ({ name }: { name: string }): boolean => name === SUBMITTER_CONTAINER;
const MODES = ["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"];

/** In KubeRay's order; ours stand where they belong by subject. */
const rules: readonly SpecRule[] = [
  (spec) =>
    spec.submissionMode && !MODES.includes(spec.submissionMode)
      ? `${INVALID}submissionMode ${JSON.stringify(spec.submissionMode)} is unknown; use one of K8sJobMode, HTTPMode, SidecarMode`
      : undefined,
  refuse(
    // On a selected cluster nothing is shut down at the end, and nothing but the job by a suspension.
    (spec) => spec.suspend === true && !spec.shutdownAfterJobFinishes && !selects(spec),
    `${INVALID}a RayJob with shutdownAfterJobFinishes set to false is not allowed to be suspended`,
    "set spec.shutdownAfterJobFinishes to true, or spec.suspend to false",
  ),
  refuse(
    (spec) => (spec.ttlSecondsAfterFinished ?? 0) < 0,
    `${INVALID}TTLSecondsAfterFinished must be a non-negative integer`,
    "set spec.ttlSecondsAfterFinished to 0 or more",
  ),
  refuse(
    (spec) => (spec.ttlSecondsAfterFinished ?? 0) > 0 && !spec.shutdownAfterJobFinishes,
    `${INVALID}a RayJob with shutdownAfterJobFinishes set to false cannot have TTLSecondsAfterFinished`,
    "set spec.shutdownAfterJobFinishes to true, or remove spec.ttlSecondsAfterFinished",
  ),
  refuse(
    (spec) => spec.deletionStrategy !== undefined,
    notBuilt(
      "deletionStrategy",
      "remove it; shutdownAfterJobFinishes with ttlSecondsAfterFinished deletes the RayCluster",
    ),
  ),
  refuse(
    (spec) => spec.rayClusterSpec === undefined && !selects(spec),
    `${INVALID}one of RayClusterSpec or ClusterSelector must be set`,
    "describe a cluster in spec.rayClusterSpec, or name one that runs in spec.clusterSelector",
  ),
  refuse(
    (spec) => selects(spec) && !spec.clusterSelector?.[LABEL.cluster],
    "cluster name in ClusterSelector should not be empty",
    `set spec.clusterSelector["${LABEL.cluster}"] to the RayCluster's name`,
  ),
  refuse(
    (spec) => selects(spec) && !DNS_1123.test(spec.clusterSelector?.[LABEL.cluster] ?? ""),
    `${INVALID}${LABEL.cluster} in clusterSelector must be the name of a RayCluster in the RayJob's namespace`,
  ),
  refuse(
    (spec) => selects(spec) && modeIs(spec, "SidecarMode"),
    "ClusterSelector is not supported in SidecarMode",
    "remove spec.clusterSelector, or set spec.submissionMode to K8sJobMode or HTTPMode",
  ),
  refuse(
    (spec) => selects(spec) && (spec.backoffLimit ?? 0) > 0,
    `${INVALID}BackoffLimit is incompatible with ClusterSelector mode`,
    "remove spec.backoffLimit, or give the job a cluster of its own in spec.rayClusterSpec instead of spec.clusterSelector",
  ),
  refuse(
    (spec) => modeIs(spec, "InteractiveMode") && (spec.backoffLimit ?? 0) > 0,
    `${INVALID}BackoffLimit is incompatible with InteractiveMode`,
    "remove spec.backoffLimit, or choose another spec.submissionMode",
  ),
  refuse(
    (spec) => modeIs(spec, "SidecarMode") && spec.submitterPodTemplate !== undefined,
    "Currently, SidecarMode doesn't support SubmitterPodTemplate",
    "remove spec.submitterPodTemplate, or choose another spec.submissionMode",
  ),
  refuse(
    (spec) => modeIs(spec, "SidecarMode") && spec.submitterConfig !== undefined,
    "Currently, SidecarMode doesn't support SubmitterConfig",
    "remove spec.submitterConfig, or choose another spec.submissionMode",
  ),
  refuse(
    (spec) => selects(spec) && isBlocking(spec),
    `${INVALID}retryStrategy.type BlockingRecreate is not supported with clusterSelector; remove spec.retryStrategy`,
  ),
  refuse(
    (spec) => modeIs(spec, "SidecarMode") && !["Never", "", undefined].includes(headPod(spec)?.restartPolicy),
    "restartPolicy for head Pod should be Never or unset when using SidecarMode",
    "remove spec.rayClusterSpec.headGroupSpec.template.spec.restartPolicy",
  ),
  refuse(
    // Names are unique among both lists together: the API server would refuse the Pod, again and again.
    (spec) =>
      modeIs(spec, "SidecarMode") &&
      [...(headPod(spec)?.containers ?? []), ...(headPod(spec)?.initContainers ?? [])].some(isSubmitter),
    `${INVALID}a container of the head Pod is named ${SUBMITTER_CONTAINER}, as SidecarMode names its own; name it otherwise`,
  ),
  refuse(
    (spec) => modeIs(spec, "InteractiveMode"),
    notBuilt("submissionMode InteractiveMode", "use K8sJobMode, HTTPMode or SidecarMode"),
  ),
  (spec) => {
    const { type } = spec.retryStrategy ?? {};
    return type && !STRATEGIES.includes(type)
      ? `${INVALID}retryStrategy.type ${JSON.stringify(type)} is unknown; use one of ${STRATEGIES.join(", ")}`
      : undefined;
  },
  refuse(
    (spec) => spec.retryStrategy?.blockingTimeoutSeconds !== undefined && !isBlocking(spec),
    `${INVALID}retryStrategy.blockingTimeoutSeconds requires type BlockingRecreate; set spec.retryStrategy.type to that, or remove blockingTimeoutSeconds`,
  ),
  refuse(
    (spec) => (spec.retryStrategy?.blockingTimeoutSeconds ?? 1) < 1,
    `${INVALID}retryStrategy.blockingTimeoutSeconds must be a positive integer`,
  ),
  refuse(
    (spec) => spec.submitterPodTemplate !== undefined,
    notBuilt(
      "submitterPodTemplate",
      "remove it; the submitter takes image, pull secrets and service account from the head's template",
    ),
  ),
  refuse(
    (spec) => (spec.submitterConfig?.backoffLimit ?? 0) < 0,
    `${INVALID}submitterConfig.backoffLimit must be a non-negative integer`,
  ),
  refuse(
    (spec) => spec.rayClusterSpec?.suspend === true,
    `${INVALID}rayClusterSpec.suspend cannot be set; set suspend of the RayJob, which starts no cluster at all`,
  ),
  refuse(
    (spec) => Boolean(spec.rayClusterSpec?.upgradeStrategy?.type),
    `${INVALID}rayClusterSpec.upgradeStrategy cannot be set for the RayCluster of a RayJob`,
  ),
  cluster,
  restartedHead,
  (spec) => {
    const parsed = parseRuntimeEnv(spec.runtimeEnvYAML ?? "");
    return parsed.ok
      ? undefined
      : `failed to unmarshal RuntimeEnvYAML: ${spec.runtimeEnvYAML}: ${parsed.error}: correct spec.runtimeEnvYAML`;
  },
  (spec) => {
    try {
      if (spec.entrypointResources) parseResources(spec.entrypointResources);
      return undefined;
    } catch (error) {
      return `${INVALID}${(error as Error).message}`;
    }
  },
  refuse(
    (spec) => !spec.entrypoint?.trim(),
    `${INVALID}entrypoint must not be empty; it is the shell command that Ray runs as the job`,
  ),
  refuse(
    (spec) => /[\s/?#%\p{Cc}]/u.test(spec.jobId ?? ""),
    `${INVALID}jobId must not contain white space or any of / ? # %, since it is part of a URL`,
  ),
  refuse((spec) => (spec.entrypointNumCpus ?? 0) < 0, `${INVALID}entrypointNumCpus must not be negative`),
  refuse((spec) => (spec.entrypointNumGpus ?? 0) < 0, `${INVALID}entrypointNumGpus must not be negative`),
  oldRayWithMetadata,
  refuse(
    (spec) => spec.activeDeadlineSeconds !== undefined && spec.activeDeadlineSeconds <= 0,
    `${INVALID}activeDeadlineSeconds must be a positive integer`,
    "set spec.activeDeadlineSeconds to 1 or more, or remove it",
  ),
  refuse(
    (spec) => spec.preRunningDeadlineSeconds !== undefined && spec.preRunningDeadlineSeconds <= 0,
    `${INVALID}preRunningDeadlineSeconds must be a positive integer`,
    "set spec.preRunningDeadlineSeconds to 1 or more, or remove it",
  ),
  refuse(
    (spec) => (spec.backoffLimit ?? 0) < 0,
    `${INVALID}backoffLimit must be a positive integer`,
    "set spec.backoffLimit to 0 or more, or remove it",
  ),
];

function notBuilt(field: string, remedy: string): string {
  return `${INVALID}${field} is not supported yet: ${remedy}`;
}

/** The RayCluster gets the RayJob's annotations, so they are looked at as if they were its own. */
function cluster({ rayClusterSpec }: RayJobSpec, job: RayJob): string | undefined {
  if (!rayClusterSpec) return undefined;
  const { annotations, labels, name, namespace } = job.metadata;
  const asCluster = { metadata: { name, namespace, annotations, labels }, spec: rayClusterSpec };
  const problems = [
    ...clusterSpecProblems(rayClusterSpec, "spec.rayClusterSpec"),
    ...rayClusterProblems(asCluster).metadata,
  ];
  return problems.length > 0 ? `${INVALID}${inOneText(problems)}` : undefined;
}

/** A head that kubelet restarts has forgotten its job, which would be submitted to it a second time. */
function restartedHead({ rayClusterSpec, retryStrategy }: RayJobSpec, job: RayJob): string | undefined {
  const policy = rayClusterSpec?.headGroupSpec.template.spec?.restartPolicy;
  const mayBeRestarted =
    retryStrategy?.type !== "BlockingRecreate" || isFaultTolerant(rayClusterSpec, job.metadata.annotations);
  if (mayBeRestarted || !policy || policy === "Never") return undefined;
  return `${INVALID}rayClusterSpec.headGroupSpec.template.spec.restartPolicy must be Never or absent with retryStrategy.type BlockingRecreate, whose head Pod is neither restarted nor replaced, but is ${policy}`;
}

/** Ray took metadata of a submission from 2.6.0 on. */
function oldRayWithMetadata(spec: RayJobSpec): string | undefined {
  const version = spec.rayClusterSpec?.rayVersion;
  if (!version || Object.keys(spec.metadata ?? {}).length === 0) return undefined;
  const parts = /^v?(\d+)\.(\d+)/.exec(version);
  if (!parts)
    return `${INVALID}failed to parse Ray version: rayClusterSpec.rayVersion is ${JSON.stringify(version)}; write it like 2.56.0`;
  const [major, minor] = [Number(parts[1]), Number(parts[2])];
  const old = major < 2 || (major === 2 && minor < 6);
  return old
    ? `${INVALID}the Ray version must be at least 2.6.0 to use the metadata field: remove spec.metadata, or use a newer Ray and tell it in spec.rayClusterSpec.rayVersion`
    : undefined;
}
