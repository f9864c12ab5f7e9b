/**
 * What a RayCluster may say, beyond what its schema already refuses.
 *
 * Answers: which fields are wrong, in words that name the field and the remedy. A field whose behaviour is not built is
 * refused here, never ignored.
 * May not: look at anything but the object.
 */
import type { PodTemplateSpec } from "../../api/kubernetes.ts";
import { ANNOTATION, GROUP } from "../../api/labels.ts";
import { quantityValue } from "../../api/quantity.ts";
import type { HeadGroupSpec, RayCluster, RayClusterSpec, WorkerGroupSpec } from "../../api/raycluster.ts";

/** A name, the random end of a RayJob's cluster and the suffix of a Service fit a DNS label (63) together. */
const MAX_NAME = 53;
const MAX_MESSAGE = 1024;

/** One sentence for each mistake, beginning with the field. Empty when the cluster may be acted upon. */
export function rayClusterProblems(cluster: RayCluster): { metadata: string[]; spec: string[] } {
  return { metadata: metadataProblems(cluster), spec: clusterSpecProblems(cluster.spec, "spec") };
}

/** Mistakes of a cluster's spec, wherever it stands: `at` is its path, `spec` or a RayJob's `spec.rayClusterSpec`. */
export function clusterSpecProblems(spec: RayClusterSpec, at: string): string[] {
  const groups = spec.workerGroupSpecs ?? [];
  return [
    ...notBuilt.filter(({ used }) => used(spec)).map(({ field, remedy }) => `${at}.${field}: ${remedy}`),
    ...groupProblems(spec.headGroupSpec, `${at}.headGroupSpec`),
    ...headProblems(spec.headGroupSpec, `${at}.headGroupSpec`),
    ...groups.flatMap((group, index) => workerProblems(group, groups, `${at}.workerGroupSpecs[${index}]`)),
  ];
}

/** All mistakes as one text of bounded length, for a status or an event. */
export const inOneText = (problems: readonly string[]): string => problems.join("; ").slice(0, MAX_MESSAGE);

const NO_AUTOSCALING = "autoscaling is not supported yet";

const notBuilt: readonly { field: string; used: (spec: RayClusterSpec) => boolean; remedy: string }[] = [
  {
    field: "enableInTreeAutoscaling",
    used: (spec) => spec.enableInTreeAutoscaling === true,
    remedy: `${NO_AUTOSCALING}; remove it and set replicas of the worker groups`,
  },
  {
    field: "autoscalerOptions",
    used: (spec) => spec.autoscalerOptions !== undefined,
    remedy: `${NO_AUTOSCALING}; remove it`,
  },
  {
    field: "gcsFaultToleranceOptions",
    used: (spec) => spec.gcsFaultToleranceOptions !== undefined,
    remedy: "fault tolerance of the GCS is not supported yet; remove it",
  },
  {
    field: "authOptions",
    // An empty mode means token, as KubeRay documents it.
    used: (spec) => spec.authOptions !== undefined && spec.authOptions.mode !== "disabled",
    remedy: "token authentication is not supported yet; remove it or set mode to disabled",
  },
  {
    field: "tlsOptions",
    used: (spec) => spec.tlsOptions?.enabled === true,
    remedy: "TLS between Ray nodes is not supported yet; remove it",
  },
  {
    field: "networkPolicy",
    used: (spec) => spec.networkPolicy !== undefined,
    remedy: "generated NetworkPolicies are not supported yet; remove it and create them yourself",
  },
  {
    field: "historyServerOptions",
    used: (spec) => spec.historyServerOptions !== undefined,
    remedy: "the history server's collector is not supported yet; remove it",
  },
  {
    field: "upgradeStrategy.type",
    used: (spec) => spec.upgradeStrategy?.type === "Recreate",
    remedy: "Recreate is not supported yet; use None and replace the RayCluster to change its Pods",
  },
  {
    field: "headGroupSpec.enableIngress",
    used: (spec) => spec.headGroupSpec.enableIngress === true,
    remedy: "generated Ingresses are not supported yet; remove it and create one for the head Service yourself",
  },
];

const annotationsNotBuilt: readonly { key: string; used: (value: string) => boolean; remedy: string }[] = [
  {
    key: ANNOTATION.ftEnabled,
    used: (value) => value.toLowerCase() === "true",
    remedy: "fault tolerance of the GCS is not supported yet; remove it",
  },
  {
    key: ANNOTATION.externalStorageNamespace,
    used: () => true,
    remedy: "fault tolerance of the GCS is not supported yet; remove it",
  },
  {
    key: ANNOTATION.enableServeService,
    used: (value) => value === "true",
    remedy: "the Service for Ray Serve is not supported yet; remove it and create one yourself",
  },
];

function metadataProblems({ metadata }: RayCluster): string[] {
  const problems: string[] = [];
  const name = metadata.name ?? "";
  if (name.length > MAX_NAME) {
    problems.push(
      `metadata.name: has ${name.length} characters; at most ${MAX_NAME} leave room for the names of Pods and Services`,
    );
  }
  if (!/^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name)) {
    problems.push(
      `metadata.name: must consist of lower-case letters, digits and '-', begin with a letter and end with a letter or digit`,
    );
  }
  for (const { key, used, remedy } of annotationsNotBuilt) {
    const value = metadata.annotations?.[key];
    if (value !== undefined && used(value)) problems.push(`metadata.annotations[${key}]: ${remedy}`);
  }
  return problems;
}

/** What holds for the head's group and for each group of workers. */
function groupProblems(group: HeadGroupSpec | WorkerGroupSpec, at: string): string[] {
  const problems: string[] = [];
  const params = group.rayStartParams ?? {};
  if (!group.template?.spec?.containers?.length) {
    problems.push(`${at}.template.spec.containers: needs at least one container, the first of which runs Ray`);
  }
  const both = ["num-cpus", "num-gpus", "memory", "resources"].filter((param) => param in params);
  if (group.resources && Object.keys(group.resources).length > 0 && both.length > 0) {
    problems.push(
      `${at}.resources: cannot be used together with rayStartParams ${both.join(", ")}; keep one of the two`,
    );
  }
  for (const [name, amount] of Object.entries(group.resources ?? {})) {
    if (quantityValue(amount) === undefined)
      problems.push(`${at}.resources[${name}]: "${amount}" is not a quantity such as 2, 500m or 1Gi`);
  }
  if ("labels" in params) problems.push(`${at}.rayStartParams.labels: set the group's labels field instead`);
  for (const [key, value] of Object.entries(group.labels ?? {})) {
    if (!isLabelKey(key)) problems.push(`${at}.labels: "${key}" is not a valid label key`);
    if (!isLabelValue(value)) problems.push(`${at}.labels[${key}]: "${value}" is not a valid label value`);
  }
  return problems;
}

function headProblems(group: HeadGroupSpec, at: string): string[] {
  const problems: string[] = [];
  const env = rayEnv(group.template);
  if ("RAY_REDIS_ADDRESS" in env) {
    problems.push(
      `${at}.template: RAY_REDIS_ADDRESS asks for fault tolerance of the GCS, which is not supported yet; remove it`,
    );
  }
  if ("redis-username" in (group.rayStartParams ?? {}) || "REDIS_USERNAME" in env) {
    problems.push(
      `${at}: redis-username and REDIS_USERNAME belong to fault tolerance of the GCS, which is not supported yet; remove them`,
    );
  }
  if (["1", "true"].includes(env["RAY_enable_autoscaler_v2"]?.toLowerCase() ?? "")) {
    problems.push(`${at}.template: RAY_enable_autoscaler_v2: ${NO_AUTOSCALING}; remove it`);
  }
  return problems;
}

function workerProblems(group: WorkerGroupSpec, all: readonly WorkerGroupSpec[], at: string): string[] {
  const { groupName, minReplicas, maxReplicas } = group;
  const problems = groupProblems(group, at);
  const say = (field: string, words: string) => problems.push(`${at}.${field}: ${words}`);
  if (!groupName || !isLabelValue(groupName)) {
    say(
      "groupName",
      `"${groupName}" must be a valid label value: letters, digits, '-', '_' and '.', at most 63, a letter or digit at both ends`,
    );
  }
  if (Object.values(GROUP).some((reserved) => reserved === groupName)) {
    say("groupName", `"${groupName}" is reserved; choose another`);
  }
  if (all.find((other) => other.groupName === groupName) !== group) {
    say("groupName", `"${groupName}" is the name of an earlier group; worker group names must be unique`);
  }
  if (minReplicas === undefined || maxReplicas === undefined) {
    say("minReplicas, maxReplicas", "both must be set");
  } else {
    if (minReplicas < 0 || maxReplicas < 0) say("minReplicas, maxReplicas", "must not be negative");
    if (minReplicas > maxReplicas) say("minReplicas", `${minReplicas} is larger than maxReplicas, ${maxReplicas}`);
  }
  if ((group.numOfHosts ?? 1) > 1)
    say("numOfHosts", "groups of several hosts a replica are not supported yet; set it to 1 and raise replicas");
  if (group.idleTimeoutSeconds !== undefined) say("idleTimeoutSeconds", `${NO_AUTOSCALING}; remove it`);
  if (group.priority) say("priority", `${NO_AUTOSCALING}; remove it`);
  return problems;
}

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
