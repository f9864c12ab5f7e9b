/**
 * The `ray start` command of a node, from its group's settings and its container's resources.
 *
 * Answers: which parameters does this node start with, and how do they read as a command.
 * May not: change what the user set; a parameter is only ever added where there is none.
 *
 * What a user wrote in `rayStartParams` is shell text and stays so (`$REDIS_PASSWORD` is meant to be expanded).
 */
import type { Container } from "../../api/kubernetes.ts";
import { parseQuantity } from "../../api/quantity.ts";
import type { HeadGroupSpec, RayCluster, WorkerGroupSpec } from "../../api/raycluster.ts";
import type { Settings } from "../settings.ts";
import { gcsPort, headServiceFQDN } from "./names.ts";

export type StartParams = Readonly<Record<string, string>>;

export const DEFAULT_AGENT_PORT = 52365;

/** Resource names of container limits that Ray knows under a name of its own. */
const ACCELERATORS: Readonly<Record<string, string>> = {
  "aws.amazon.com/neuroncore": "neuron_cores",
  "google.com/tpu": "TPU",
};

/** `ray start` takes these with a value; every other boolean is a switch. */
const NOT_SWITCHES: ReadonlySet<string> = new Set(["log-color", "include-dashboard", "include-log-monitor"]);

/** Whether a Kubernetes resource name means GPUs: `…gpu`, or a slice of one as NVIDIA's MIG names it. */
export const isGPU = (resource: string): boolean =>
  /gpu$/.test(resource) || /nvidia\.com\/mig-\d+g\.\d+gb$/.test(resource);

export function headStartParams(cluster: RayCluster): StartParams {
  const group = cluster.spec.headGroupSpec;
  return withContainerResources(
    { "dashboard-host": "0.0.0.0", ...common(group) },
    group.template.spec?.containers?.[0],
  );
}

export function workerStartParams(cluster: RayCluster, group: WorkerGroupSpec, settings: Settings): StartParams {
  return withContainerResources(
    { address: `${headServiceFQDN(cluster, settings)}:${gcsPort(cluster)}`, ...common(group) },
    group.template.spec?.containers?.[0],
  );
}

/** The command as KubeRay spells it, double spaces included: tools look for it in `KUBERAY_GEN_RAY_START_CMD`. */
export function startText(nodeType: "head" | "worker", params: StartParams): string {
  const flags = Object.keys(params)
    .sort()
    .map((key) => flag(key, params[key]!));
  return `ray start ${nodeType === "head" ? "--head " : ""}${flags.join("")}`;
}

/** How a generated script is run. A login shell reads the image's profile, which some images need to find Ray. */
export const shell = (settings: Settings): string[] => ["/bin/bash", settings.loginShell ? "-cl" : "-c", "--"];

/**
 * Command and arguments of the Ray container. A command of the user's own runs first, its words joined by spaces as
 * KubeRay joins them, so that a template written for KubeRay does the same here; one that starts Ray itself is kept.
 */
export function startCommand(
  container: Container,
  text: string,
  settings: Settings,
): Pick<Container, "command" | "args"> {
  const words = [...(container.command ?? []), ...(container.args ?? [])];
  const own = words.map((word) => ` ${word} `).join("");
  if (own.includes("ray start")) return {};
  const start = `ulimit -n \${RAY_START_ULIMIT_OPEN_FILES:-65536}; ${text}`;
  return { command: shell(settings), args: [own ? `${own} && ${start}` : start] };
}

function common(group: HeadGroupSpec | WorkerGroupSpec): StartParams {
  const labels = Object.entries(group.labels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    "metrics-export-port": "8080",
    "dashboard-agent-listen-port": String(DEFAULT_AGENT_PORT),
    ...group.rayStartParams,
    ...logicalResources(group.resources),
    ...(labels.length > 0 && { labels: labels.map(([key, value]) => `${key}=${value}`).join(",") }),
    // Without it `ray start` returns at once and the container ends.
    block: "true",
  };
}

/** `resources` of the group: Ray's own notion of what the node has, whatever the container has. */
function logicalResources(resources: Readonly<Record<string, string>> | undefined): StartParams {
  const params: Record<string, string> = {};
  const custom: Record<string, number> = {};
  for (const [name, quantity] of Object.entries(resources ?? {})) {
    const value = amount(quantity);
    if (value === undefined) continue;
    const lower = name.toLowerCase();
    if (lower === "cpu") params["num-cpus"] = String(Math.ceil(value));
    else if (lower === "memory") params["memory"] = String(Math.ceil(value));
    else if (isGPU(lower)) params["num-gpus"] = String(Math.ceil(value));
    else custom[name] = value;
  }
  return { ...params, ...(Object.keys(custom).length > 0 && { resources: quotedJson(custom) }) };
}

function withContainerResources(given: StartParams, container: Container | undefined): StartParams {
  const params: Record<string, string> = { ...given };
  const limits = container?.resources?.limits ?? {};
  const requests = container?.resources?.requests ?? {};
  const addIfAbsent = (key: string, value: number | undefined) => {
    if (value && !(key in params)) params[key] = String(Math.ceil(value));
  };
  addIfAbsent("num-cpus", amount(limits["cpu"]) || amount(requests["cpu"]));
  addIfAbsent("memory", amount(limits["memory"]));

  const limitNames = Object.keys(limits).sort();
  addIfAbsent(
    "num-gpus",
    limitNames
      .filter(isGPU)
      .map((name) => amount(limits[name]))
      .find(Boolean),
  );

  const accelerator = limitNames.find((name) => name in ACCELERATORS && amount(limits[name]));
  if (accelerator) {
    const known = parseResources(params["resources"]);
    // Text that is no JSON is the user's to explain to Ray; adding to it is not possible.
    if (known && !Object.values(ACCELERATORS).some((name) => name in known)) {
      params["resources"] = quotedJson({ ...known, [ACCELERATORS[accelerator]!]: amount(limits[accelerator])! });
    }
  }
  return params;
}

function parseResources(text: string | undefined): Record<string, number> | undefined {
  if (text === undefined) return {};
  try {
    const parsed: unknown = JSON.parse(text.replace(/^['"` ]+|['"` ]+$/g, "") || "{}");
    return typeof parsed === "object" && parsed !== null ? (parsed as Record<string, number>) : undefined;
  } catch {
    return undefined;
  }
}

/** JSON with sorted keys in single quotes: the command passes through a shell. */
function quotedJson(values: Record<string, number>): string {
  const sorted = Object.fromEntries(Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1)));
  return `'${JSON.stringify(sorted).replaceAll("'", "'\\''")}'`;
}

function flag(key: string, value: string): string {
  const lower = value.toLowerCase();
  const isSwitch = (lower === "true" || lower === "false") && !NOT_SWITCHES.has(key);
  if (!isSwitch) return ` --${key}=${value} `;
  return lower === "true" ? ` --${key} ` : "";
}

/** A quantity as a number, fractions included, or undefined where it is absent or unreadable. */
function amount(quantity: string | number | undefined): number | undefined {
  const parsed = parseQuantity(quantity);
  return parsed && Number(parsed.nano) / 1e9;
}
