/**
 * What a RayCluster may say, beyond what its schema already refuses.
 *
 * Answers: which fields are wrong, each with what is wrong and the remedy. A field whose behaviour is not built is refused
 * here, never ignored.
 * May not: look at anything but the object and the settings.
 *
 * To add a rule, add an entry to the table of its subject: the object's metadata, its annotations, a spec (which may
 * stand in a RayJob: there `at` is relative to it), any group, the head's group, a worker group. `kuberay` marks words that
 * are KubeRay's, to the letter.
 */
import type { PodTemplateSpec } from "../../api/kubernetes.ts";
import { ANNOTATION, GROUP } from "../../api/labels.ts";
import { quantityValue } from "../../api/quantity.ts";
import type { HeadGroupSpec, RayCluster, RayClusterSpec, WorkerGroupSpec } from "../../api/raycluster.ts";
import type { Settings } from "../settings.ts";
import { check, type Finding, type Rule, type Violation } from "../validation.ts";
import { asksForToken } from "./auth.ts";
import { isServiceName } from "./names.ts";
import { atLeastVersion, isVersion } from "./version.ts";

/** A name, the random end of a RayJob's cluster and the suffix of a Service fit a DNS label (63) together. */
const MAX_NAME = 53;

/** Every violation, in the order metadata, spec. Empty when the cluster may be acted upon. */
export function rayClusterViolations(cluster: RayCluster, settings: Settings): Violation[] {
  return [
    ...check(metadataRules, cluster, settings),
    ...rayClusterAnnotationViolations(cluster.metadata.annotations, settings),
    ...(cluster.spec ? clusterSpecViolations(cluster.spec, "spec", settings) : []),
  ];
}

/** Those of a RayCluster's annotations, which it has from its RayJob, if one made it. */
export function rayClusterAnnotationViolations(
  annotations: Readonly<Record<string, string>> | undefined,
  settings: Settings,
): Violation[] {
  return check(annotationRules, annotations ?? {}, settings);
}

/** Violations of a cluster's spec, wherever it stands: `at` is its path, `spec` or a RayJob's `spec.rayClusterSpec`. */
export function clusterSpecViolations(spec: RayClusterSpec, at: string, settings: Settings): Violation[] {
  const { headGroupSpec: head, workerGroupSpecs = [] } = spec;
  const below = (path: string, found: readonly Violation[]) =>
    found.map((one) => ({ ...one, at: one.at === "" ? path : `${path}.${one.at}` }));
  const ofHead = head ? [...check(groupRules, head, settings), ...check(headRules, head, settings)] : [];
  // Once for all of them: who may write a spec can write one of many thousand groups.
  const firsts = new Map<string, WorkerGroupSpec>();
  for (const group of workerGroupSpecs) if (!firsts.has(group.groupName)) firsts.set(group.groupName, group);
  const ofWorkers = workerGroupSpecs.flatMap((group, index) =>
    below(`workerGroupSpecs[${index}]`, [
      ...check(groupRules, group, settings),
      ...check(workerRules, { group, namesake: firsts.get(group.groupName) }, settings),
    ]),
  );
  return below(at, [...check(specRules, spec, settings), ...below("headGroupSpec", ofHead), ...ofWorkers]);
}

const metadataRules: readonly Rule<RayCluster>[] = [
  {
    name: "name-length",
    find: ({ metadata: { name = "" } }) =>
      name.length <= MAX_NAME
        ? []
        : [
            {
              at: "metadata.name",
              text: `RayCluster name should be no more than ${MAX_NAME} characters, but has ${name.length} characters`,
              remedy: "shorten it; the names of Pods and Services begin with it",
            },
          ],
  },
  {
    name: "name-dns-1035",
    at: "metadata.name",
    broken: ({ metadata: { name = "" } }) => !/^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name),
    text: "RayCluster name should be a valid DNS1035 label",
    remedy: "use lower-case letters, digits and '-', begin with a letter and end with a letter or digit",
  },
];

export const KUBERNETES_TOKENS = "kubernetes-token-auth-not-built";
const NO_AUTOSCALING = "autoscaling is not supported yet";
const NO_FAULT_TOLERANCE = "fault tolerance of the GCS is not supported yet";

const annotation = (
  name: string,
  key: string,
  used: (value: string) => boolean,
  text: string,
  remedy: string,
): Rule<Readonly<Record<string, string>>> => ({
  name,
  at: `metadata.annotations[${key}]`,
  broken: (annotations) => annotations[key] !== undefined && used(annotations[key]),
  text,
  remedy,
});

const annotationRules: readonly Rule<Readonly<Record<string, string>>>[] = [
  annotation(
    "ft-enabled-not-built",
    ANNOTATION.ftEnabled,
    (value) => value.toLowerCase() === "true",
    NO_FAULT_TOLERANCE,
    "remove it",
  ),
  annotation(
    "external-storage-namespace-not-built",
    ANNOTATION.externalStorageNamespace,
    () => true,
    NO_FAULT_TOLERANCE,
    "remove it",
  ),
  annotation(
    "serve-service-not-built",
    ANNOTATION.enableServeService,
    (value) => value === "true",
    "the Service for Ray Serve is not supported yet",
    "remove it and create one yourself",
  ),
];

const specRules: readonly Rule<RayClusterSpec>[] = [
  {
    name: "autoscaling-not-built",
    at: "enableInTreeAutoscaling",
    broken: (spec) => spec.enableInTreeAutoscaling === true,
    text: NO_AUTOSCALING,
    remedy: "remove it and set replicas of the worker groups",
  },
  {
    name: "autoscaler-options-not-built",
    at: "autoscalerOptions",
    broken: (spec) => spec.autoscalerOptions !== undefined,
    text: NO_AUTOSCALING,
    remedy: "remove it",
  },
  {
    name: "fault-tolerance-not-built",
    at: "gcsFaultToleranceOptions",
    broken: (spec) => spec.gcsFaultToleranceOptions !== undefined,
    text: NO_FAULT_TOLERANCE,
    remedy: "remove it",
  },
  {
    name: KUBERNETES_TOKENS,
    at: "authOptions.enableK8sTokenAuth",
    broken: (spec) => spec.authOptions?.enableK8sTokenAuth === true,
    text: "authentication by Kubernetes' own tokens is not supported yet",
    remedy: "remove it: with authOptions.mode token, the token is in a Secret",
  },
  { name: "auth-needs-version", kuberay: "prefixed", find: versionOfAuth },
  {
    name: "auth-secret-name",
    find: (spec) => {
      const { secretName = "" } = (asksForToken(spec) && spec.authOptions) || {};
      return secretName === "" || isObjectName(secretName)
        ? []
        : [
            {
              at: "authOptions.secretName",
              text: `"${secretName}" is no name for a Secret`,
              remedy: "use lower-case letters, digits, '-' and '.', with a letter or digit at both ends",
            },
          ];
    },
  },
  {
    name: "tls-not-built",
    at: "tlsOptions",
    broken: (spec) => spec.tlsOptions?.enabled === true,
    text: "TLS between Ray nodes is not supported yet",
    remedy: "remove it",
  },
  {
    name: "network-policy-not-built",
    at: "networkPolicy",
    broken: (spec) => spec.networkPolicy !== undefined,
    text: "generated NetworkPolicies are not supported yet",
    remedy: "remove it and create them yourself",
  },
  {
    name: "history-server-not-built",
    at: "historyServerOptions",
    broken: (spec) => spec.historyServerOptions !== undefined,
    text: "the history server's collector is not supported yet",
    remedy: "remove it",
  },
  {
    name: "upgrade-recreate-not-built",
    at: "upgradeStrategy.type",
    broken: (spec) => spec.upgradeStrategy?.type === "Recreate",
    text: "Recreate is not supported yet",
    remedy: "use None and replace the RayCluster to change its Pods",
  },
];

const isObjectName = (name: string): boolean =>
  name.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(name);

/** Ray knows tokens from there on; older ones would run open to everybody. */
const AUTH_SINCE = "2.52.0";

function versionOfAuth(spec: RayClusterSpec): Finding[] {
  if (!asksForToken(spec)) return [];
  const { rayVersion } = spec;
  const broken = (text: string): Finding[] => [
    {
      at: "rayVersion",
      text: `authOptions.mode is 'token' but ${text}`,
      remedy: `set it to the images' version, ${AUTH_SINCE} or newer, or set authOptions.mode to disabled`,
    },
  ];
  if (!rayVersion) return broken(`RayVersion was not specified. Ray version ${AUTH_SINCE} or later is required`);
  if (!isVersion(rayVersion)) {
    const quoted = JSON.stringify(rayVersion);
    const why = /^\s*v?\d/.test(rayVersion)
      ? `illegal version string ${quoted}`
      : `could not parse ${quoted} as version`;
    return broken(`RayVersion format is invalid: ${rayVersion}, ${why}`);
  }
  return atLeastVersion(rayVersion, AUTH_SINCE)
    ? []
    : broken(`minimum Ray version is ${AUTH_SINCE}, got ${rayVersion}`);
}

type Group = HeadGroupSpec | WorkerGroupSpec;
/** As KubeRay calls it. */
const called = (group: Group): string => ("groupName" in group ? group.groupName : "Head");

/** What holds for the head's group and for each group of workers. */
const groupRules: readonly Rule<Group>[] = [
  {
    name: "group-has-container",
    kuberay: "prefixed",
    find: (group) =>
      group.template?.spec?.containers?.length
        ? []
        : [
            {
              at: "template.spec.containers",
              text: `${"groupName" in group ? "workerGroupSpec" : "headGroupSpec"} should have at least one container`,
              remedy: "add one; the first runs Ray",
            },
          ],
  },
  {
    name: "resources-given-once",
    kuberay: "prefixed",
    find: (group) => {
      const { resources = {}, rayStartParams = {} } = group;
      const both = ["num-cpus", "num-gpus", "memory", "resources"].filter((param) => param in rayStartParams);
      return Object.keys(resources).length === 0 || both.length === 0
        ? []
        : [
            {
              at: "resources",
              text: `resource fields should not be set in both rayStartParams and Resources for ${called(group)} group; please use only one`,
              remedy: `remove this, or rayStartParams ${both.join(", ")}`,
            },
          ];
    },
  },
  {
    name: "resources-are-quantities",
    find: ({ resources = {} }) =>
      Object.entries(resources)
        .filter(([, amount]) => quantityValue(amount) === undefined)
        .map(([name, amount]) => ({
          at: `resources[${name}]`,
          text: `"${amount}" is not a quantity`,
          remedy: "write it like 2, 500m or 1Gi",
        })),
  },
  {
    name: "labels-not-in-start-parameters",
    kuberay: "prefixed",
    find: (group) =>
      "labels" in (group.rayStartParams ?? {})
        ? [
            {
              at: "rayStartParams.labels",
              text: `rayStartParams['labels'] is not supported for ${called(group)} group; please use the top-level Labels field instead`,
              remedy: "move them to the group's labels field",
            },
          ]
        : [],
  },
  {
    name: "label-keys-valid",
    find: ({ labels = {} }) =>
      Object.keys(labels)
        .filter((key) => !isLabelKey(key))
        .map((key) => ({ at: "labels", text: `"${key}" is not a valid label key`, remedy: KEY_REMEDY })),
  },
  {
    name: "label-values-valid",
    find: ({ labels = {} }) =>
      Object.entries(labels)
        .filter(([, value]) => !isLabelValue(value))
        .map(([key, value]) => ({
          at: `labels[${key}]`,
          text: `"${value}" is not a valid label value`,
          remedy: LABEL_REMEDY,
        })),
  },
];

const headRules: readonly Rule<HeadGroupSpec>[] = [
  {
    name: "head-service-name",
    find: ({ headService }) => {
      const name = headService?.metadata?.name;
      return !name || isServiceName(name)
        ? []
        : [
            {
              at: "headService.metadata.name",
              text: `"${name}" is no name for a Service`,
              remedy: "use lower-case letters, digits and '-', at most 63, with a letter or digit at both ends",
            },
          ];
    },
  },
  {
    name: "ingress-not-built",
    at: "enableIngress",
    broken: (head) => head.enableIngress === true,
    text: "generated Ingresses are not supported yet",
    remedy: "remove it and create one for the head Service yourself",
  },
  {
    name: "redis-address-not-built",
    at: "template",
    broken: ({ template }) => "RAY_REDIS_ADDRESS" in rayEnv(template),
    text: `RAY_REDIS_ADDRESS asks for fault tolerance of the GCS, which is not supported yet`,
    remedy: "remove it",
  },
  {
    name: "redis-username-not-built",
    at: "",
    broken: ({ template, rayStartParams = {} }) =>
      "redis-username" in rayStartParams || "REDIS_USERNAME" in rayEnv(template),
    text: "redis-username and REDIS_USERNAME belong to fault tolerance of the GCS, which is not supported yet",
    remedy: "remove them",
  },
  {
    name: "autoscaler-v2-not-built",
    at: "template",
    broken: ({ template }) => ["1", "true"].includes(rayEnv(template)["RAY_enable_autoscaler_v2"]?.toLowerCase() ?? ""),
    text: `RAY_enable_autoscaler_v2: ${NO_AUTOSCALING}`,
    remedy: "remove it",
  },
];

interface WorkerGroup {
  readonly group: WorkerGroupSpec;
  /** The first of its name: itself, as a rule. */
  readonly namesake: WorkerGroupSpec | undefined;
}

const LABEL_REMEDY = "use letters, digits, '-', '_' and '.', at most 63, a letter or digit at both ends";
const KEY_REMEDY = `${LABEL_REMEDY}; a DNS name and '/' may stand before it`;

const say = (at: string, text: string, remedy: string): Finding => ({ at, text, remedy });

const workerRules: readonly Rule<WorkerGroup>[] = [
  {
    name: "group-name-valid",
    find: ({ group: { groupName } }) =>
      groupName && isLabelValue(groupName)
        ? []
        : [say("groupName", `"${groupName ?? ""}" must be a valid label value`, LABEL_REMEDY)],
  },
  {
    name: "group-name-not-reserved",
    find: ({ group: { groupName } }) =>
      Object.values(GROUP).some((reserved) => reserved === groupName)
        ? [say("groupName", `"${groupName}" is reserved`, "choose another")]
        : [],
  },
  {
    name: "group-name-unique",
    kuberay: "prefixed",
    find: ({ group, namesake }) =>
      namesake === group
        ? []
        : [
            say(
              "groupName",
              "worker group names must be unique",
              `rename it; "${group.groupName}" is the name of an earlier group`,
            ),
          ],
  },
  {
    name: "group-has-bounds",
    at: "minReplicas, maxReplicas",
    broken: ({ group }) => group.minReplicas === undefined || group.maxReplicas === undefined,
    text: "both must be set",
    remedy: "without autoscaling set both to replicas",
  },
  {
    name: "group-bounds-not-negative",
    at: "minReplicas, maxReplicas",
    broken: ({ group: { minReplicas = 0, maxReplicas = 0 } }) => minReplicas < 0 || maxReplicas < 0,
    text: "must not be negative",
    remedy: "set both to 0 or more",
  },
  {
    name: "group-bounds-in-order",
    find: ({ group: { minReplicas, maxReplicas } }) =>
      minReplicas === undefined || maxReplicas === undefined || minReplicas <= maxReplicas
        ? []
        : [
            say(
              "minReplicas",
              `${minReplicas} is larger than maxReplicas, ${maxReplicas}`,
              "lower it, or raise maxReplicas",
            ),
          ],
  },
  {
    name: "group-suspend-needs-gate",
    kuberay: "prefixed",
    find: ({ group }, { deletionPolicy }) =>
      group.suspend !== true || deletionPolicy
        ? []
        : [
            say(
              "suspend",
              `worker group ${group.groupName} can be suspended only when the RayJobDeletionPolicy feature gate is enabled`,
              "remove it, or have the operator's administrator switch the gate on",
            ),
          ],
  },
  {
    name: "multi-host-not-built",
    at: "numOfHosts",
    broken: ({ group }) => (group.numOfHosts ?? 1) > 1,
    text: "groups of several hosts a replica are not supported yet",
    remedy: "set it to 1 and raise replicas",
  },
  {
    name: "group-idle-timeout-not-built",
    at: "idleTimeoutSeconds",
    broken: ({ group }) => group.idleTimeoutSeconds !== undefined,
    text: NO_AUTOSCALING,
    remedy: "remove it",
  },
  {
    name: "group-priority-not-built",
    at: "priority",
    broken: ({ group }) => Boolean(group.priority),
    text: NO_AUTOSCALING,
    remedy: "remove it",
  },
];

/** Literal variables of the Ray container; those from elsewhere have an empty value. */
function rayEnv(template: PodTemplateSpec | undefined): Record<string, string> {
  const env = template?.spec?.containers?.[0]?.env ?? [];
  return Object.fromEntries(env.map(({ name, value }) => [name, value ?? ""]));
}

const isLabelValue = (value: string): boolean =>
  value === "" || (value.length <= 63 && /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/.test(value));

function isLabelKey(key: string): boolean {
  const parts = key.split("/");
  const name = parts.at(-1)!;
  const prefix = parts.length === 2 ? parts[0]! : undefined;
  const label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
  return (
    parts.length <= 2 &&
    name !== "" &&
    isLabelValue(name) &&
    (prefix === undefined || (prefix.length <= 253 && new RegExp(`^${label}(\\.${label})*$`).test(prefix)))
  );
}
