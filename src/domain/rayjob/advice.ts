/**
 * What a user can do: an entry for every phase, every reason of a condition, every trouble of a Pod.
 *
 * The first two tables are total by their types: a new phase, reason or failure cause does not compile without an entry.
 * `nothing` is an entry, too: it says that there is nothing to do.
 * May not: judge. explain.ts says which entries apply.
 */
import type { Pod } from "../../api/kubernetes.ts";
import { LABEL, NODE_TYPE, SUBMITTER_CONTAINER } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { AttemptRecord, FailureCause, JobFailedReason, RayJob } from "../../api/rayjob.ts";
import { TOKEN_KEY } from "../raycluster/auth.ts";
import type { PodProblem } from "../raycluster/explain.ts";
import type { Reasons } from "./conditions.ts";
import type { State } from "./explain.ts";
import { isSelected, queueOf } from "./records.ts";
import { wantsSuspension } from "./suspend.ts";
import { readTokenTrouble } from "./tokenTrouble.ts";

export interface Advice {
  /** A sentence: what to do, or what to look at. */
  readonly text: string;
  /** A command that does it, or shows it. */
  readonly command?: string;
}

/** What the sentences speak of. */
export interface Subject {
  readonly job: Stored<RayJob>;
  readonly record: AttemptRecord | undefined;
  /** What the advice answers to: the message of the condition, or of the Pod's problem. */
  readonly message: string;
  /** The current attempt's head Pod, while there is one. */
  readonly head: Stored<Pod> | undefined;
  /** Whether the submitter's Kubernetes Job is still there to be asked for its log. */
  readonly hasSubmitter: boolean;
  /** What an attempt that is over has left behind and is waited for. */
  readonly remnants: readonly Stored[];
}

type Advise = (subject: Subject) => readonly Advice[];

const nothing: Advise = () => [];

const placed = (subject: Subject, verb: string, rest: string): string =>
  `kubectl ${verb} -n ${subject.job.metadata.namespace} ${rest}`;

/** For a shell, into which commands are copied: ids and what messages name may be anybody's text. */
const word = (text: string | undefined): string =>
  /^[\w.:/@-]*$/.test(text ?? "") ? (text ?? "") : `'${text!.replaceAll("'", "'\\''")}'`;

const patch = (subject: Subject, spec: object): string =>
  placed(subject, "patch", `rayjob ${subject.job.metadata.name} --type merge -p '${JSON.stringify({ spec })}'`);

/** By phase: what a user can do in it, whatever else is the matter. */
export const phaseAdvice: Readonly<Record<State, Advise>> = {
  New: () => [
    {
      text: "See whether the operator runs, watches this namespace and may read RayJobs.",
      command: `kubectl get pods -A -l app.kubernetes.io/component=kuberay-operator`,
    },
  ],
  Deleting: (subject) => [
    {
      text: `It goes when its finalizers are gone: ${subject.job.metadata.finalizers?.join(", ") || "none is left"}. ray.io/rayjob-finalizer is the operator's, which asks Ray once to stop the job; does the operator run?`,
    },
  ],
  ManagedElsewhere: (subject) => [
    { text: `Ask ${subject.job.spec.managedBy}, or take spec.managedBy away (a new RayJob is needed for that).` },
  ],
  Initializing: nothing,
  Waiting: (subject) => [
    {
      text: "Submit a job to the cluster's dashboard, and tell its submission id.",
      command: placed(
        subject,
        "patch",
        `rayjob ${subject.job.metadata.name} --type merge -p '{"spec":{"jobId":"ID"}}'`,
      ),
    },
    { text: "Suspend the RayJob, or delete it, to end the waiting." },
  ],
  Running: (subject) =>
    subject.job.spec.shutdownAfterJobFinishes
      ? [{ text: "To stop it and start again later, suspend it.", command: patch(subject, { suspend: true }) }]
      : [],
  Retrying: (subject) => (wantsSuspension(subject.job) ? resume(subject) : []),
  Suspending: nothing,
  Suspended: nothing,
  Complete: nothing,
  Failed: again,
  ValidationFailed: (subject) => [
    {
      text: "Correct the field that the message names; a corrected RayJob starts by itself.",
      command: placed(subject, "edit", `rayjob ${subject.job.metadata.name}`),
    },
  ],
};

/** By condition and reason: what a user can do about it. */
export const conditionAdvice: {
  readonly [Type in keyof Reasons]: Readonly<Record<Reasons[Type], Advise>>;
} = {
  SpecValid: {
    Valid: nothing,
    Invalid: (subject) => [
      {
        text: "Correct the field that the message names, or take the edit back.",
        command: placed(subject, "edit", `rayjob ${subject.job.metadata.name}`),
      },
    ],
  },
  Started: { WaitingForCluster: nothing, WaitingForSubmission: nothing, Submitted: nothing },
  SubmitterHealthy: {
    Following: nothing,
    Finished: followInRay,
    JobFailed: followInRay,
    Deleted: followInRay,
    ContainerExited: followInRay,
    RestartLimit: followInRay,
  },
  Retrying: {
    NotRetrying: nothing,
    Deleting: freeRemnants,
    Blocked: (subject) => [...freeRemnants(subject), ...(wantsSuspension(subject.job) ? [] : overlap(subject))],
    SpecInvalid: (subject) => [
      {
        text: "Correct the field that the message names; the next attempt then starts by itself.",
        command: placed(subject, "edit", `rayjob ${subject.job.metadata.name}`),
      },
    ],
  },
  Suspended: {
    NotSuspended: nothing,
    Suspending: freeRemnants,
    Suspended: resume,
  },
  Succeeded: { JobSucceeded: nothing, JobFailed: nothing },
  ResourcesReleased: {
    Released: nothing,
    InUse: nothing,
    KeptByPolicy: (subject) => [
      {
        text: "When you have seen enough of it, delete the RayCluster that is kept.",
        command: placed(subject, "delete", `raycluster ${word(subject.record?.rayClusterName)}`),
      },
    ],
  },
  Failed: {
    JobSucceeded: nothing,
    ApplicationFailed: (subject) => [...readLog(subject, "The program's log says why."), ...retryItself(subject)],
    ApplicationStopped: (subject) =>
      readLog(
        subject,
        "Somebody stopped it through Ray (ray job stop, the dashboard, its SDK). Its log may tell when.",
      ),
    SubmissionFailed: (subject) => [
      ...readLog(subject, "The job did not reach Ray; the submitter's log says why."),
      ...retryItself(subject),
    ],
    RayJobLost: (subject) => [...afterHeadLoss(subject), ...retryItself(subject)],
    HeadPodFailed: (subject) => [
      {
        text: "The message names the container that ended, and how: correct the image, the command or the memory of spec.rayClusterSpec.headGroupSpec.",
      },
      ...retryItself(subject),
    ],
    HeadPodLost: (subject) => [...afterHeadLoss(subject), ...retryItself(subject)],
    DriverNodeDead: (subject) => [
      {
        text: "The Pod that ran the job's driver is gone or out of reach: see its end, and its node.",
        command: placed(subject, "get", `events --field-selector type=Warning --sort-by .lastTimestamp`),
      },
      ...retryItself(subject),
    ],
    RayClusterLost: (subject) => [
      {
        text: "Somebody or something deleted the RayCluster (the audit log of the API server knows who). To free its machines for a while, suspend the RayJob instead.",
      },
      ...retryItself(subject),
    ],
    DeadlineExceeded: (subject) => [
      {
        text: `Give it more time: spec.activeDeadlineSeconds is ${subject.job.spec.activeDeadlineSeconds ?? "not set any more"}. A passed deadline is not retried.`,
      },
      ...readLog(subject, "Its log tells how far it came."),
    ],
    PreRunningDeadlineExceeded: (subject) => [
      {
        text: `Remove what the message names, or give it more time: spec.preRunningDeadlineSeconds is ${subject.job.spec.preRunningDeadlineSeconds ?? "not set any more"}.`,
      },
    ],
    StatusCheckTimeout: (subject) => [
      {
        text: "Ray's dashboard on the head must answer the operator at port 8265: look for an overloaded head (CPU, memory), a NetworkPolicy, or a dashboard that has died.",
        ...(subject.head && { command: placed(subject, "logs", `${subject.head.metadata.name} --tail 50`) }),
      },
      { text: "The time-out is the operator's RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS. It is not retried." },
    ],
    RetryBlockedTimeout: (subject) => [
      {
        text: `Something of the failed attempt did not go in time: see to its node, or allow more time (spec.retryStrategy.blockingTimeoutSeconds is ${subject.job.spec.retryStrategy?.blockingTimeoutSeconds ?? "not set any more"}).`,
        command: placed(subject, "get", `pods -o wide -l ${LABEL.rayJobUID}=${subject.job.metadata.uid}`),
      },
    ],
    ValidationFailed: nothing,
  },
};

/** The finer cause of a failure whose RayJob has no conditions, because KubeRay ran it. */
export const causeOf: Readonly<Record<Exclude<JobFailedReason, "">, FailureCause | undefined>> = {
  SubmissionFailed: "SubmissionFailed",
  DeadlineExceeded: "DeadlineExceeded",
  PreRunningDeadlineExceeded: "PreRunningDeadlineExceeded",
  AppFailed: "ApplicationFailed",
  // KubeRay overwrote the reason, so what was the matter before is not known.
  JobDeploymentStatusTransitionGracePeriodExceeded: undefined,
  JobStatusCheckTimeoutExceeded: "StatusCheckTimeout",
  ValidationFailed: "ValidationFailed",
  RetryBlockedTimeoutExceeded: "RetryBlockedTimeout",
};

function again({ job }: Subject): readonly Advice[] {
  const { namespace, name } = job.metadata;
  return [
    {
      text: "A RayJob that has failed stays as it is. To run it anew, delete and create it; with its manifest at hand in one step:",
      command: `raykeeper run --replace -n ${namespace} ${name}.yaml`,
    },
  ];
}

function retryItself({ job, record }: Subject): readonly Advice[] {
  if (isSelected(record)) return [];
  const { backoffLimit = 0 } = job.spec;
  const text =
    backoffLimit > 0
      ? `Its spec.backoffLimit of ${backoffLimit} is used up; a higher one allows more attempts.`
      : "To have such a failure tried again by itself, set spec.backoffLimit.";
  return [{ text }];
}

/** Where the job's log can be read now. */
function readLog(subject: Subject, text: string): readonly Advice[] {
  const { job, record, head, hasSubmitter } = subject;
  if (record?.submissionMode === "SidecarMode") {
    return head ? [{ text, command: placed(subject, "logs", `${head.metadata.name} -c ${SUBMITTER_CONTAINER}`) }] : [];
  }
  if (hasSubmitter) return [{ text, command: placed(subject, "logs", `job/${job.metadata.name}`) }];
  return head ? [{ text, command: rayLog(subject) }] : [];
}

const rayLog = (subject: Subject): string =>
  placed(subject, "exec", `${subject.head?.metadata.name} -- ray job logs ${word(subject.record?.jobId)}`);

function followInRay(subject: Subject): readonly Advice[] {
  return subject.head
    ? [{ text: "The job is not affected. Its log can be read from Ray.", command: `${rayLog(subject)} --follow` }]
    : [];
}

function afterHeadLoss(subject: Subject): readonly Advice[] {
  if (/OOMKilled/.test(subject.message)) {
    return [{ text: `Give the head more memory: ${HEAD_PATH}.containers[0].resources.limits.memory.` }];
  }
  if (subject.head && /exit code \d/.test(subject.message)) {
    const text = "Ray ended by itself in the head: its log says why, while the Pod is there.";
    return [{ text, command: placed(subject, "logs", `${subject.head.metadata.name} --previous --tail 50`) }];
  }
  const headName = /head Pod (\S+?)[:;,. ]/.exec(subject.message)?.[1] ?? `${subject.record?.rayClusterName}-head`;
  return [
    {
      text: "See why the head went (eviction, preemption, its node). A PriorityClass, requests equal to limits, or a node pool that is not preemptible protect it.",
      command: placed(subject, "get", `events --field-selector involvedObject.name=${word(headName)}`),
    },
  ];
}

function resume(subject: Subject): readonly Advice[] {
  if (queueOf(subject.job)) {
    const workload = `workloads.kueue.x-k8s.io -l kueue.x-k8s.io/job-uid=${subject.job.metadata.uid}`;
    return [
      {
        text: "Kueue starts it when there is quota. See what its Workload waits for.",
        command: placed(subject, "describe", workload),
      },
    ];
  }
  const when = subject.remnants.length > 0 ? "starts when nothing of the last one is left" : "then starts";
  const resumed = { text: `Resume it: the next attempt ${when}.`, command: patch(subject, { suspend: false }) };
  const { name, labels } = subject.job.metadata;
  if (!labels?.[LABEL.kueueQueueName]) return [resumed];
  return [
    {
      text: "Take the queue's name off: Kueue suspends a RayJob that has one, and starts none that selects a RayCluster.",
      command: placed(subject, "label", `rayjob ${name} ${LABEL.kueueQueueName}-`),
    },
    resumed,
  ];
}

const overlap = (subject: Subject): readonly Advice[] => [
  {
    text: "If an overlap with what is left does no harm, let the next attempt begin beside it.",
    command: patch(subject, { retryStrategy: { type: "Recreate", blockingTimeoutSeconds: null } }),
  },
];

/** How to make what is left go. Forcing is named last, with what it takes. */
function freeRemnants(subject: Subject): readonly Advice[] {
  const slow = subject.remnants.find((object) => object.metadata.deletionTimestamp !== undefined);
  const pod = subject.remnants.find(
    (object) => object.kind === "Pod" && object.metadata.deletionTimestamp !== undefined,
  ) as Stored<Pod> | undefined;
  if (pod?.metadata.finalizers?.length) {
    const held = pod.metadata.finalizers.join(", ");
    return [{ text: `Pod ${pod.metadata.name} is held by its finalizers (${held}): see to whoever set them.` }];
  }
  if (pod) {
    const node = pod.spec?.nodeName;
    return [
      {
        text: `A Pod goes when kubelet on its node has ended it. See whether ${node ? `node ${node}` : "its node"} reports.`,
        ...(node && { command: `kubectl get node ${node}` }),
      },
      {
        text: "Only if you are sure that nothing of it runs any more (the machine is off), remove it by force.",
        command: placed(subject, "delete", `pod ${pod.metadata.name} --force --grace-period=0`),
      },
    ];
  }
  if (!slow) return [];
  const kind = (slow.kind ?? "object").toLowerCase();
  return [
    {
      text: `${slow.kind} ${slow.metadata.name} goes when its finalizers are gone: ${slow.metadata.finalizers?.join(", ") || "none is left"}.`,
      command: placed(subject, "get", `${kind} ${slow.metadata.name} -o jsonpath='{.metadata.finalizers}'`),
    },
  ];
}

const HEAD_PATH = "spec.rayClusterSpec.headGroupSpec.template.spec";

/** Where in the RayJob the template of this Pod stands; the head's, where it is not known which Pod is meant. */
function pathOf(pod: Pod | undefined, { job }: Subject): string {
  const { labels = {} } = pod?.metadata ?? {};
  const type = labels[LABEL.nodeType];
  const group = job.spec.rayClusterSpec?.workerGroupSpecs?.findIndex(
    ({ groupName }) => groupName === labels[LABEL.group],
  );
  if (type === NODE_TYPE.worker && group !== undefined && group >= 0) {
    return `spec.rayClusterSpec.workerGroupSpecs[${group}].template.spec`;
  }
  // Without a template of its own the submitter takes its image from the head's.
  return pod && !type && job.spec.submitterPodTemplate ? "spec.submitterPodTemplate.spec" : HEAD_PATH;
}

/** A trouble of a Pod, or one of its cluster where there is no Pod to show it. */
export interface Trouble extends PodProblem {
  readonly pod?: Stored<Pod>;
  /** What has no Pod to show it, where that is not the cluster. */
  readonly object?: { readonly kind: string; readonly name: string };
}

interface TroubleRule {
  /** Held against `reason: message`. */
  readonly match: RegExp;
  readonly advise: (trouble: Trouble, found: RegExpExecArray, subject: Subject) => readonly Advice[];
  /** An edit of the RayJob would be needed, which counts from the next attempt only. */
  readonly edit?: true;
}

/** First match wins: what names the thing that is missing before what only names its kind. */
const troubleRules: readonly TroubleRule[] = [
  {
    match: /^RayClusterNotFound:/,
    advise: (_, __, subject) => [
      {
        text: "Create it: the RayJob goes on by itself. Or name one that exists in spec.clusterSelector, in a new RayJob.",
        command: placed(subject, "get", "rayclusters"),
      },
    ],
  },
  {
    match: /(configmap|secret|persistentvolumeclaim) "([^"]+)" not found/i,
    advise: (_, [, kind = "", name], subject) => [
      {
        text: `Create the ${KINDS[kind.toLowerCase()]} ${name} in namespace ${subject.job.metadata.namespace}; the Pod then goes on by itself. Or is its name misspelt?`,
        command: placed(subject, "get", kind.toLowerCase()),
      },
    ],
  },
  {
    match: /couldn't find key (\S+) in (ConfigMap|Secret) \S+?\/(\S+)/,
    advise: (_, [, key, kind = "", name], subject) => [
      {
        text: `Add the key ${key} to ${kind} ${name}; the Pod then goes on by itself.`,
        command: placed(subject, "describe", `${kind.toLowerCase()} ${word(name)}`),
      },
    ],
  },
  { match: /^RaySilent:/, advise: ({ message }, _, subject) => showToken(message, subject) },
  {
    match: /^FailedCreateAuthSecret: Secret (\S+)\/([^\s,]+) exists/,
    advise: (_, [, namespace, name]) => [
      {
        text: "See whose it is. With it out of the way the operator makes one with a token of its own.",
        command: `kubectl describe secret -n ${word(namespace)} ${word(name)}`,
      },
    ],
  },
  {
    match: /unbound immediate PersistentVolumeClaims/,
    advise: (_, __, subject) => [
      {
        text: "A PersistentVolumeClaim of the Pod has no volume: see its events (storage class, quota, zone).",
        command: placed(subject, "describe", "pvc"),
      },
    ],
  },
  {
    match: /^(ErrImagePull|ImagePullBackOff|InvalidImageName|ErrImageNeverPull|ImageInspectError|RegistryUnavailable):/,
    edit: true,
    advise: ({ pod }, _, subject) => [
      {
        text: `Correct the image's name or tag in ${pathOf(pod, subject)}.containers; for a private registry give imagePullSecrets there.`,
      },
    ],
  },
  {
    match: /OOMKilled/,
    edit: true,
    advise: ({ pod, container }, _, subject) => [
      {
        text: `Give ${container ? `container ${container}` : "it"} more memory: ${pathOf(pod, subject)}.containers[].resources.limits.memory.`,
      },
    ],
  },
  {
    match: /Insufficient ([^\s,.]+)/,
    edit: true,
    advise: ({ pod }, [, resource], subject) => [
      {
        text: `No node has enough ${resource} free: add or free a node, or ask for less in ${pathOf(pod, subject)}.containers[].resources.`,
        command: "kubectl describe nodes | grep -A 8 'Allocated resources'",
      },
    ],
  },
  {
    match: /untolerated taint/,
    edit: true,
    advise: ({ pod }, _, subject) => [
      {
        text: `The nodes that are left have taints: add tolerations in ${pathOf(pod, subject)}, or take the taints away.`,
        command: "kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints[*].key",
      },
    ],
  },
  {
    match: /node affinity\/selector|node\(s\) didn't match/,
    edit: true,
    advise: ({ pod }, _, subject) => [
      {
        text: `No node has the labels that are asked for: nodeSelector and affinity in ${pathOf(pod, subject)}.`,
        command: "kubectl get nodes --show-labels",
      },
    ],
  },
  {
    match: /^SchedulingGated:/,
    advise: ({ pod }, _, subject) => [
      {
        text: "A scheduling gate holds the Pod: whoever set it (Kueue, a topology controller) must take it away.",
        command: placed(subject, "get", `pod ${pod?.metadata.name} -o jsonpath='{.spec.schedulingGates}'`),
      },
    ],
  },
  {
    match: /exceeded quota/,
    advise: (_, __, subject) => [
      {
        text: "The namespace's ResourceQuota is used up: free some of it, or ask for less.",
        command: placed(subject, "describe", "resourcequota"),
      },
    ],
  },
  {
    match: /violates PodSecurity "([^"]+)"/,
    edit: true,
    advise: (_, [, level], { job: { metadata } }) => [
      {
        text: `Namespace ${metadata.namespace} enforces the Pod security standard ${level}: give the Pod's template the securityContext that the refusal asks for, or have the namespace's label pod-security.kubernetes.io/enforce changed.`,
        command: `kubectl get namespace ${metadata.namespace} --show-labels`,
      },
    ],
  },
  {
    match: /^(FailedMount|FailedAttachVolume|FailedMapVolume):/,
    advise: ({ pod }, _, subject) => [
      {
        text: "See the Pod's volumes, and the events of the claims behind them.",
        command: placed(subject, "describe", `pod ${pod?.metadata.name}`),
      },
    ],
  },
  {
    match: /^(NodeSilent|Terminating):/,
    advise: ({ pod }) => [
      {
        text: "Its node does not answer. Kubernetes removes the Pod after its toleration (5 min as a rule); delete the node if it is gone for good.",
        command: `kubectl get node ${pod?.spec?.nodeName ?? ""}`.trim(),
      },
    ],
  },
  {
    match: /^(Evicted|Preempted|Preempting|NodeAffinity|Shutdown|Terminated|NodeShutdown):/,
    advise: () => [
      {
        text: "Its node needed the room. Requests equal to limits, a PriorityClass, or another node pool make that rarer.",
      },
    ],
  },
  {
    match: /^(CreateContainerConfigError|CreateContainerError|RunContainerError|StartError|ContainerCannotRun):/,
    edit: true,
    advise: ({ pod }, _, subject) => [
      { text: `The container cannot be made as ${pathOf(pod, subject)} describes it: command, env, mounts.` },
    ],
  },
  {
    match: /^[A-Za-z]*:/,
    advise: ({ pod, container, ended }, _, subject) =>
      pod && container && ended
        ? [
            {
              text: `The container's log says why.`,
              command: placed(
                subject,
                "logs",
                `${pod.metadata.name} -c ${container}${ended === "before" ? " --previous" : ""}`,
              ),
            },
          ]
        : pod
          ? [{ text: "See its events.", command: placed(subject, "describe", `pod ${pod.metadata.name}`) }]
          : [],
  },
];

/** Ray does not answer, perhaps because it is not shown the token that it wants. */
function showToken(message: string, subject: Subject): readonly Advice[] {
  const { is, secret } = readTokenTrouble(message) ?? {};
  if (!is || !secret) return [];
  const look = `kubectl describe secret -n ${word(secret.namespace)} ${word(secret.name)}`;
  const putBack: Advice = {
    text: `Put the token that Ray was started with into Secret ${secret.name}, key ${TOKEN_KEY}: the operator finds it by itself.`,
    command: look,
  };
  const anew: Advice = {
    text: "Or have Ray started anew, with what the Secret has then: suspend the RayJob, and resume it.",
    command: patch(subject, { suspend: true }),
  };
  switch (is) {
    case "lacking":
      return [putBack];
    case "wrong":
      return isSelected(subject.record) ? [putBack] : [putBack, anew];
    case "forbidden":
      return [
        { text: `Give the operator's ServiceAccount the right to get Secrets in namespace ${secret.namespace}.` },
      ];
    case "unsaid":
      return [{ text: "Say in authOptions of the RayCluster's spec which Secret has the token." }];
  }
}

const KINDS: Readonly<Record<string, string>> = {
  configmap: "ConfigMap",
  secret: "Secret",
  persistentvolumeclaim: "PersistentVolumeClaim",
};

/** What can be done about troubles, the same advice once; and how an edit becomes an attempt, where one is needed. */
export function troubleAdvice(troubles: readonly Trouble[], subject: Subject): readonly Advice[] {
  const met = troubles.flatMap((trouble) => {
    const text = `${trouble.reason}: ${trouble.message}`;
    for (const rule of troubleRules) {
      const found = rule.match.exec(text);
      if (found) return [{ rule, advice: rule.advise(trouble, found, subject) }];
    }
    return [];
  });
  const advice = met.flatMap((each) => each.advice);
  return met.some(({ rule }) => rule.edit) ? [...advice, nextAttempt(subject)] : advice;
}

function nextAttempt({ job }: Subject): Advice {
  const { namespace, name } = job.metadata;
  return {
    text: "An edit counts from the next attempt. To begin that at once, with the corrected manifest:",
    command: `raykeeper run --replace -n ${namespace} ${name}.yaml`,
  };
}

/** The same advice is given once. */
export function distinct(advice: readonly Advice[]): readonly Advice[] {
  const seen = new Set<string>();
  return advice.filter(({ text, command }) => {
    const key = `${text}\n${command ?? ""}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/** Of a table that is total by its type and met by text from the wire: another version's word has no entry. */
export function adviceFor(type: string, reason: string, subject: Subject): readonly Advice[] {
  const reasons = (conditionAdvice as Readonly<Record<string, Readonly<Record<string, Advise>>>>)[type];
  return reasons?.[reason]?.(subject) ?? [];
}
