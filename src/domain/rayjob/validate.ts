/**
 * Whether a RayJob can be run, beyond what its schema says.
 *
 * Answers: everything that is wrong with it, each with its field and remedy. The first stands in KubeRay's order and words
 * where KubeRay refuses it, too: tools match on these.
 *
 * To add a rule, add an entry to `rules` below: its name, the field (`at`), when it is `broken`, the words (`text`) and
 * what to do about it (`remedy`). With `kuberay` the text is KubeRay's, to the letter, and the rule stands in KubeRay's
 * order: `prefixed` when KubeRay puts "The RayJob spec is invalid: " before it (leave that out of the text), `bare` when
 * not; the remedy then names the field, since that is not repeated before KubeRay's words. Without `kuberay` the text is
 * ours, and the field is said before it, so the text does not repeat it. A rule that may find several things, or whose
 * words depend on the object, has `find` instead, which returns a list of `{ at, text, remedy }`. Every rule is asked on
 * its own, about any RayJob: one that would only repeat what another has found must exclude that itself.
 *
 * A field whose behaviour is not built is refused (those of the cluster, in ../raycluster/validate.ts); nothing is silently
 * ignored.
 */
import { LABEL, SUBMITTER_CONTAINER } from "../../api/labels.ts";
import type { RayJob, RayJobSpec } from "../../api/rayjob.ts";
import { parseRuntimeEnv } from "../../api/runtimeEnv.ts";
import { isFaultTolerant } from "../raycluster/oneHead.ts";
import { clusterSpecViolations, KUBERNETES_TOKENS, rayClusterAnnotationViolations } from "../raycluster/validate.ts";
import type { Settings } from "../settings.ts";
import { check, type Finding, inOneText, type Rule, sentence, type Violation } from "../validation.ts";
import { fitsIntoURL } from "./names.ts";
import { selects } from "./records.ts";
import { parseResources } from "./request.ts";
import { hasOwnCommand } from "./submitterPod.ts";
import { maySuspend } from "./suspend.ts";
import { deletionValidation } from "./validateDeletion.ts";

/** What is wrong, as a status and an event tell it. */
export interface Problem {
  /** What the first violation is about; part of the event's reason. */
  readonly of: "Metadata" | "Spec" | "Status";
  readonly text: string;
}

/** All that keeps a RayJob from being run; undefined when nothing does. */
export function validateRayJob(job: RayJob, settings: Settings): Problem | undefined {
  const [first, ...others] = rayJobViolations(job, settings);
  if (!first) return undefined;
  const of = partOf(first);
  const words = first.kuberay ? `${first.text}: ${first.remedy}` : sentence(first);
  const headline = first.kuberay === "bare" ? words : `The RayJob ${of.toLowerCase()} is invalid: ${words}`;
  return { of, text: inOneText([headline, ...others.map(sentence)]) };
}

/** Every violation, in the order metadata, spec, status. */
export function rayJobViolations(job: RayJob, settings: Settings): Violation[] {
  // An empty object has no spec where the schema is an older one.
  return check(rules, { ...job, spec: job.spec ?? {} }, settings);
}

function partOf({ at }: Violation): Problem["of"] {
  if (at.startsWith("metadata")) return "Metadata";
  return at.startsWith("status") ? "Status" : "Spec";
}

/** So that the RayCluster's name, six characters longer, fits its own limit of 53. */
const LONGEST_NAME = 47;
const DNS_1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const DNS_1123 = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;
const DNS_1035_TEXT =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name', or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

const modeIs = (spec: RayJobSpec, mode: string): boolean => spec.submissionMode === mode;
const isBlocking = (spec: RayJobSpec): boolean => spec.retryStrategy?.type === "BlockingRecreate";
const STRATEGIES = ["Recreate", "BlockingRecreate"];
const MODES = ["K8sJobMode", "HTTPMode", "SidecarMode", "InteractiveMode"];
const headPod = (spec: RayJobSpec) => spec.rayClusterSpec?.headGroupSpec?.template?.spec;
const isSubmitter = ({ name }: { name: string }): boolean => name === SUBMITTER_CONTAINER;
const selected = (spec: RayJobSpec): string | undefined => spec.clusterSelector?.[LABEL.cluster];
/** The template of the submitter's Pod, where it counts. */
const submitterTemplate = (spec: RayJobSpec) =>
  (spec.submissionMode ?? "K8sJobMode") === "K8sJobMode" ? spec.submitterPodTemplate : undefined;
const submitsItself = (spec: RayJobSpec): boolean => hasOwnCommand({ submitterPodTemplate: submitterTemplate(spec) });
const HEAD_RESTART = "spec.rayClusterSpec.headGroupSpec.template.spec.restartPolicy";

/** In KubeRay's order; ours stand where they belong by subject. */
const rules: readonly Rule<RayJob>[] = [
  {
    name: "name-length",
    kuberay: "prefixed",
    find: ({ metadata: { name = "" } }) =>
      name.length <= LONGEST_NAME
        ? []
        : [
            {
              at: "metadata.name",
              text: `RayJob name should be no more than ${LONGEST_NAME} characters`,
              remedy: `shorten metadata.name, which has ${name.length}`,
            },
          ],
  },
  {
    name: "name-dns-1035",
    kuberay: "prefixed",
    at: "metadata.name",
    broken: ({ metadata }) => !DNS_1035.test(metadata.name ?? ""),
    text: `RayJob name should be a valid DNS1035 label: [${DNS_1035_TEXT}]`,
    remedy: "choose another metadata.name",
  },
  {
    name: "submission-mode-known",
    find: ({ spec: { submissionMode } }) =>
      !submissionMode || MODES.includes(submissionMode)
        ? []
        : [
            {
              at: "spec.submissionMode",
              text: `${JSON.stringify(submissionMode)} is unknown`,
              remedy: `use one of ${MODES.join(", ")}`,
            },
          ],
  },
  {
    name: "suspend-needs-shutdown",
    kuberay: "prefixed",
    at: "spec.suspend",
    // On a selected cluster nothing is shut down at the end, and nothing but the job by a suspension; rules shut down, too.
    broken: ({ spec }) => spec.suspend === true && !maySuspend(spec),
    text: "a RayJob with shutdownAfterJobFinishes set to false is not allowed to be suspended",
    remedy: "set spec.shutdownAfterJobFinishes to true, or spec.suspend to false",
  },
  {
    name: "ttl-not-negative",
    kuberay: "prefixed",
    at: "spec.ttlSecondsAfterFinished",
    broken: ({ spec }) => (spec.ttlSecondsAfterFinished ?? 0) < 0,
    text: "TTLSecondsAfterFinished must be a non-negative integer",
    remedy: "set spec.ttlSecondsAfterFinished to 0 or more",
  },
  {
    name: "ttl-needs-shutdown",
    kuberay: "prefixed",
    at: "spec.ttlSecondsAfterFinished",
    broken: ({ spec }) => (spec.ttlSecondsAfterFinished ?? 0) > 0 && !spec.shutdownAfterJobFinishes,
    text: "a RayJob with shutdownAfterJobFinishes set to false cannot have TTLSecondsAfterFinished",
    remedy: "set spec.shutdownAfterJobFinishes to true, or remove spec.ttlSecondsAfterFinished",
  },
  ...deletionValidation,
  {
    name: "cluster-or-selector",
    kuberay: "prefixed",
    at: "spec.rayClusterSpec",
    broken: ({ spec }) => spec.rayClusterSpec === undefined && !selects(spec),
    text: "one of RayClusterSpec or ClusterSelector must be set",
    remedy: "describe a cluster in spec.rayClusterSpec, or name one that runs in spec.clusterSelector",
  },
  {
    name: "selector-names-cluster",
    kuberay: "bare",
    at: "spec.clusterSelector",
    broken: ({ spec }) => selects(spec) && !selected(spec),
    text: "cluster name in ClusterSelector should not be empty",
    remedy: `set spec.clusterSelector["${LABEL.cluster}"] to the RayCluster's name`,
  },
  {
    name: "selector-name-valid",
    at: `spec.clusterSelector["${LABEL.cluster}"]`,
    broken: ({ spec }) => Boolean(selected(spec)) && !DNS_1123.test(selected(spec)!),
    text: "cannot be the name of a RayCluster",
    remedy: "give the name of a RayCluster in the RayJob's namespace",
  },
  {
    name: "selector-not-in-sidecar-mode",
    kuberay: "bare",
    at: "spec.clusterSelector",
    broken: ({ spec }) => selects(spec) && modeIs(spec, "SidecarMode"),
    text: "ClusterSelector is not supported in SidecarMode",
    remedy: "remove spec.clusterSelector, or set spec.submissionMode to K8sJobMode, HTTPMode or InteractiveMode",
  },
  {
    name: "selector-without-backoff-limit",
    kuberay: "prefixed",
    at: "spec.backoffLimit",
    broken: ({ spec }) => selects(spec) && (spec.backoffLimit ?? 0) > 0,
    text: "BackoffLimit is incompatible with ClusterSelector mode",
    remedy:
      "remove spec.backoffLimit, or give the job a cluster of its own in spec.rayClusterSpec instead of spec.clusterSelector",
  },
  {
    name: "interactive-without-backoff-limit",
    kuberay: "prefixed",
    at: "spec.backoffLimit",
    broken: ({ spec }) => modeIs(spec, "InteractiveMode") && (spec.backoffLimit ?? 0) > 0,
    text: "BackoffLimit is incompatible with InteractiveMode",
    remedy: "remove spec.backoffLimit, or choose another spec.submissionMode",
  },
  {
    name: "sidecar-without-submitter-template",
    kuberay: "bare",
    at: "spec.submitterPodTemplate",
    broken: ({ spec }) => modeIs(spec, "SidecarMode") && spec.submitterPodTemplate !== undefined,
    text: "Currently, SidecarMode doesn't support SubmitterPodTemplate",
    remedy: "remove spec.submitterPodTemplate, or choose another spec.submissionMode",
  },
  {
    name: "sidecar-without-submitter-config",
    kuberay: "bare",
    at: "spec.submitterConfig",
    broken: ({ spec }) => modeIs(spec, "SidecarMode") && spec.submitterConfig !== undefined,
    text: "Currently, SidecarMode doesn't support SubmitterConfig",
    remedy: "remove spec.submitterConfig, or choose another spec.submissionMode",
  },
  {
    name: "selector-without-blocking-recreate",
    at: "spec.retryStrategy.type",
    broken: ({ spec }) => selects(spec) && isBlocking(spec),
    text: "BlockingRecreate is not supported with clusterSelector",
    remedy: "remove spec.retryStrategy",
  },
  {
    name: "sidecar-head-never-restarted",
    kuberay: "bare",
    at: HEAD_RESTART,
    broken: ({ spec }) =>
      modeIs(spec, "SidecarMode") && !["Never", "", undefined].includes(headPod(spec)?.restartPolicy),
    text: "restartPolicy for head Pod should be Never or unset when using SidecarMode",
    remedy: `remove ${HEAD_RESTART}`,
  },
  {
    name: "sidecar-name-free",
    // Names are unique among both lists together: the API server would refuse the Pod, again and again.
    find: ({ spec }) =>
      !modeIs(spec, "SidecarMode")
        ? []
        : (["containers", "initContainers"] as const).flatMap((list) =>
            (headPod(spec)?.[list] ?? []).flatMap((container, index) =>
              isSubmitter(container)
                ? [
                    {
                      at: `spec.rayClusterSpec.headGroupSpec.template.spec.${list}[${index}].name`,
                      text: `a container of the head Pod is named ${SUBMITTER_CONTAINER}, as SidecarMode names its own`,
                      remedy: "name it otherwise",
                    },
                  ]
                : [],
            ),
          ),
  },
  {
    name: "retry-strategy-known",
    find: ({ spec: { retryStrategy: { type } = {} } }) =>
      !type || STRATEGIES.includes(type)
        ? []
        : [
            {
              at: "spec.retryStrategy.type",
              text: `${JSON.stringify(type)} is unknown`,
              remedy: `use one of ${STRATEGIES.join(", ")}`,
            },
          ],
  },
  {
    name: "blocking-timeout-needs-blocking-recreate",
    at: "spec.retryStrategy.blockingTimeoutSeconds",
    broken: ({ spec }) => spec.retryStrategy?.blockingTimeoutSeconds !== undefined && !isBlocking(spec),
    text: "retryStrategy.blockingTimeoutSeconds requires type BlockingRecreate",
    remedy: "set spec.retryStrategy.type to that, or remove blockingTimeoutSeconds",
  },
  {
    name: "blocking-timeout-positive",
    at: "spec.retryStrategy.blockingTimeoutSeconds",
    broken: ({ spec }) => (spec.retryStrategy?.blockingTimeoutSeconds ?? 1) < 1,
    text: "must be a positive integer",
    remedy: "set it to 1 or more, or remove it",
  },
  {
    name: "submitter-template-has-container",
    at: "spec.submitterPodTemplate.spec.containers",
    broken: ({ spec }) => {
      const template = submitterTemplate(spec);
      return template !== undefined && !template.spec?.containers?.length;
    },
    text: "must have at least one container, whose first is the submitter",
    remedy: "describe it, or remove spec.submitterPodTemplate",
  },
  {
    name: "submitter-template-restart-policy",
    at: "spec.submitterPodTemplate.spec.restartPolicy",
    broken: ({ spec }) => !["Never", "OnFailure", "", undefined].includes(submitterTemplate(spec)?.spec?.restartPolicy),
    text: "must be Never or OnFailure, since a Kubernetes Job takes no other",
    remedy: "set it to Never, or remove it",
  },
  {
    name: "submitter-template-is-no-node",
    at: `spec.submitterPodTemplate.metadata.labels["${LABEL.nodeType}"]`,
    // By that label Ray's nodes are told from everything else.
    broken: ({ spec }) => submitterTemplate(spec)?.metadata?.labels?.[LABEL.nodeType] !== undefined,
    text: "cannot be set, since the submitter is no node of Ray",
    remedy: "remove the label",
  },
  {
    name: "submitter-backoff-limit-not-negative",
    at: "spec.submitterConfig.backoffLimit",
    broken: ({ spec }) => (spec.submitterConfig?.backoffLimit ?? 0) < 0,
    text: "must be a non-negative integer",
    remedy: "set it to 0 or more, or remove it",
  },
  {
    name: "cluster-not-suspended",
    at: "spec.rayClusterSpec.suspend",
    broken: ({ spec }) => spec.rayClusterSpec?.suspend === true,
    text: "cannot be set in a RayJob",
    remedy: "set suspend of the RayJob, which starts no cluster at all",
  },
  {
    name: "cluster-without-upgrade-strategy",
    at: "spec.rayClusterSpec.upgradeStrategy",
    broken: ({ spec }) => Boolean(spec.rayClusterSpec?.upgradeStrategy?.type),
    text: "cannot be set for the RayCluster of a RayJob",
    remedy: "remove it",
  },
  {
    name: KUBERNETES_TOKENS,
    kuberay: "prefixed",
    at: "spec.rayClusterSpec.authOptions.enableK8sTokenAuth",
    broken: ({ spec }) => spec.rayClusterSpec?.authOptions?.enableK8sTokenAuth === true,
    text: "K8s token auth mode is currently not supported for RayJob",
    remedy: "remove it: with authOptions.mode token, the token is in a Secret",
  },
  { name: "cluster", find: clusterOfRayJob },
  { name: "blocking-recreate-head-never-restarted", find: restartedHead },
  {
    name: "runtime-env-readable",
    kuberay: "bare",
    find: ({ spec: { runtimeEnvYAML = "" } }) => {
      const parsed = parseRuntimeEnv(runtimeEnvYAML);
      const text = parsed.ok ? "" : `failed to unmarshal RuntimeEnvYAML: ${shortened(runtimeEnvYAML)}: ${parsed.error}`;
      return parsed.ok ? [] : [{ at: "spec.runtimeEnvYAML", text, remedy: "correct spec.runtimeEnvYAML" }];
    },
  },
  { name: "entrypoint-resources-readable", find: unreadableResources },
  {
    name: "entrypoint-present",
    at: "spec.entrypoint",
    // In InteractiveMode the user submits, and so does a submitter's command of his own: they bring the entrypoint along.
    broken: ({ spec }) => !spec.entrypoint?.trim() && !modeIs(spec, "InteractiveMode") && !submitsItself(spec),
    text: "must not be empty",
    remedy: "give the shell command that Ray runs as the job",
  },
  {
    name: "job-id-in-url",
    at: "spec.jobId",
    broken: ({ spec }) => !fitsIntoURL(spec.jobId ?? ""),
    text: "must not contain white space or any of / ? # %, nor be . or .., since it is part of a URL",
    remedy: "choose another, or remove it, and one is made up",
  },
  {
    name: "entrypoint-cpus-not-negative",
    at: "spec.entrypointNumCpus",
    broken: ({ spec }) => (spec.entrypointNumCpus ?? 0) < 0,
    text: "must not be negative",
    remedy: "set it to 0 or more, or remove it",
  },
  {
    name: "entrypoint-gpus-not-negative",
    at: "spec.entrypointNumGpus",
    broken: ({ spec }) => (spec.entrypointNumGpus ?? 0) < 0,
    text: "must not be negative",
    remedy: "set it to 0 or more, or remove it",
  },
  { name: "metadata-needs-ray-2.6", kuberay: "prefixed", find: oldRayWithMetadata },
  {
    name: "active-deadline-positive",
    kuberay: "prefixed",
    at: "spec.activeDeadlineSeconds",
    broken: ({ spec }) => spec.activeDeadlineSeconds !== undefined && spec.activeDeadlineSeconds <= 0,
    text: "activeDeadlineSeconds must be a positive integer",
    remedy: "set spec.activeDeadlineSeconds to 1 or more, or remove it",
  },
  {
    name: "pre-running-deadline-positive",
    kuberay: "prefixed",
    at: "spec.preRunningDeadlineSeconds",
    broken: ({ spec }) => spec.preRunningDeadlineSeconds !== undefined && spec.preRunningDeadlineSeconds <= 0,
    text: "preRunningDeadlineSeconds must be a positive integer",
    remedy: "set spec.preRunningDeadlineSeconds to 1 or more, or remove it",
  },
  {
    name: "backoff-limit-not-negative",
    kuberay: "prefixed",
    at: "spec.backoffLimit",
    broken: ({ spec }) => (spec.backoffLimit ?? 0) < 0,
    text: "backoffLimit must be a positive integer",
    remedy: "set spec.backoffLimit to 0 or more, or remove it",
  },
  {
    name: "waiting-is-interactive",
    kuberay: "prefixed",
    at: "status.jobDeploymentStatus",
    broken: ({ spec, status }) => status?.jobDeploymentStatus === "Waiting" && !modeIs(spec, "InteractiveMode"),
    text: "JobDeploymentStatus cannot be `Waiting` when SubmissionMode is not InteractiveMode",
    remedy: "set spec.submissionMode back to InteractiveMode, in which this attempt was started",
  },
];

/** As KubeRay quotes it, but not so much that the reason after it is cut away; what is in it is for few eyes, too. */
const shortened = (yaml = ""): string => (yaml.length > 200 ? `${yaml.slice(0, 200)}…` : yaml);

/** The RayCluster gets the RayJob's annotations, so they are looked at as if they were its own. */
function clusterOfRayJob({ spec: { rayClusterSpec }, metadata: { annotations } }: RayJob, settings: Settings) {
  if (!rayClusterSpec) return [];
  return [
    // Of a RayJob that is said in KubeRay's words.
    ...clusterSpecViolations(rayClusterSpec, "spec.rayClusterSpec", settings).filter(
      ({ rule }) => rule !== KUBERNETES_TOKENS,
    ),
    ...rayClusterAnnotationViolations(annotations, settings),
  ];
}

/** A head that kubelet restarts has forgotten its job, which would be submitted to it a second time. */
function restartedHead({ spec: { rayClusterSpec, retryStrategy }, metadata }: RayJob): Finding[] {
  const policy = rayClusterSpec?.headGroupSpec?.template?.spec?.restartPolicy;
  const mayBeRestarted =
    retryStrategy?.type !== "BlockingRecreate" || isFaultTolerant(rayClusterSpec, metadata.annotations);
  if (mayBeRestarted || !policy || policy === "Never") return [];
  return [
    {
      at: HEAD_RESTART,
      text: `must be Never or absent with retryStrategy.type BlockingRecreate, whose head Pod is neither restarted nor replaced, but is ${policy}`,
      remedy: "remove it",
    },
  ];
}

function unreadableResources({ spec: { entrypointResources } }: RayJob): Finding[] {
  try {
    if (entrypointResources) parseResources(entrypointResources);
    return [];
  } catch (error) {
    return [{ at: "spec.entrypointResources", text: (error as Error).message, remedy: "correct it" }];
  }
}

/** Ray took metadata of a submission from 2.6.0 on. */
function oldRayWithMetadata({ spec }: RayJob): Finding[] {
  const version = spec.rayClusterSpec?.rayVersion;
  if (!version || Object.keys(spec.metadata ?? {}).length === 0) return [];
  const parts = /^v?(\d+)\.(\d+)/.exec(version);
  const at = "spec.rayClusterSpec.rayVersion";
  if (!parts) {
    const text = `failed to parse Ray version: rayClusterSpec.rayVersion is ${JSON.stringify(version)}`;
    return [{ at, text, remedy: `write ${at} like 2.56.0` }];
  }
  const [major, minor] = [Number(parts[1]), Number(parts[2])];
  if (major > 2 || (major === 2 && minor >= 6)) return [];
  const text = "the Ray version must be at least 2.6.0 to use the metadata field";
  return [{ at, text, remedy: `remove spec.metadata, or use a newer Ray and tell it in ${at}` }];
}
