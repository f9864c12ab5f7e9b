/**
 * What `kubectl get` shows of each kind: the server makes the cells.
 */
import type { ContainerStatus, Job, Node, Pod, Service } from "../../api/kubernetes.ts";
import { fromWire } from "../../domain/time.ts";
import { at, type Item, listAt, textAt } from "../json.ts";
import type { Column } from "../registry.ts";

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

/** A duration as kubectl shows it: two units where one would be too coarse. */
export function humanDuration(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000);
  if (seconds < -1) return "<invalid>";
  if (seconds < 0) return "0s";
  const two = (big: number, bigName: string, small: number, smallName: string) => {
    const rest = Math.floor((seconds % big) / small);
    return `${Math.floor(seconds / big)}${bigName}${rest === 0 ? "" : `${rest}${smallName}`}`;
  };
  if (seconds < 2 * MINUTE) return `${seconds}s`;
  if (seconds < 10 * MINUTE) return two(MINUTE, "m", 1, "s");
  if (seconds < 3 * HOUR) return `${Math.floor(seconds / MINUTE)}m`;
  if (seconds < 8 * HOUR) return two(HOUR, "h", MINUTE, "m");
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)}h`;
  if (seconds < 8 * DAY) return two(DAY, "d", HOUR, "h");
  if (seconds < 2 * YEAR) return `${Math.floor(seconds / DAY)}d`;
  return two(YEAR, "y", DAY, "d");
}

/** How long ago a wire time was. */
export function ago(time: unknown, now: number): string {
  const instant = typeof time === "string" ? fromWire(time) : undefined;
  return instant === undefined ? "<unknown>" : humanDuration(now - instant);
}

export const nameColumn: Column = {
  name: "Name",
  type: "string",
  format: "name",
  cell: (item) => item.metadata.name,
};
export const ageColumn: Column = {
  name: "Age",
  type: "string",
  cell: (item, now) => ago(item.metadata.creationTimestamp, now),
};
const count = (name: string, cell: Column["cell"]): Column => ({ name, type: "integer", cell });
const text = (name: string, cell: Column["cell"], priority = 0): Column => ({ name, type: "string", priority, cell });

export const plainColumns: readonly Column[] = [
  nameColumn,
  text("Created At", (item) => item.metadata.creationTimestamp),
];

export const podColumns: readonly Column[] = [
  nameColumn,
  text("Ready", (item) => {
    const { spec, status } = item as unknown as Pod;
    const restartable = (spec?.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === "Always");
    const names = new Set(restartable.map(({ name }) => name));
    const ready = (statuses: readonly ContainerStatus[] = []) => statuses.filter((one) => one.ready).length;
    const total = (spec?.containers.length ?? 0) + restartable.length;
    const initReady = ready((status?.initContainerStatuses ?? []).filter(({ name }) => names.has(name)));
    return `${ready(status?.containerStatuses) + initReady}/${total}`;
  }),
  text("Status", (item) => podStatus(item as unknown as Pod)),
  text("Restarts", (item, now) => {
    const { status } = item as unknown as Pod;
    const all = status?.containerStatuses ?? [];
    const restarts = all.reduce((sum, { restartCount }) => sum + restartCount, 0);
    const last =
      all
        .map((one) => one.lastState?.terminated?.finishedAt ?? "")
        .sort()
        .at(-1) ?? "";
    return restarts > 0 && last ? `${restarts} (${ago(last, now)} ago)` : `${restarts}`;
  }),
  ageColumn,
  text("IP", (item) => textAt(item, "status", "podIP") ?? "<none>", 1),
  text("Node", (item) => textAt(item, "spec", "nodeName") ?? "<none>", 1),
  text("Nominated Node", (item) => textAt(item, "status", "nominatedNodeName") ?? "<none>", 1),
  text("Readiness Gates", () => "<none>", 1),
];

/** The word that tells most: why a container waits or has ended, before the phase. */
function podStatus({ metadata, spec, status }: Pod): string {
  let reason = status?.reason ?? status?.phase ?? "Unknown";
  if ((status?.conditions ?? []).some(({ type, reason }) => type === "PodScheduled" && reason === "SchedulingGated")) {
    reason = "SchedulingGated";
  }
  let initialising = false;
  for (const [index, container] of (status?.initContainerStatuses ?? []).entries()) {
    const { waiting, terminated } = container.state ?? {};
    const policy = spec?.initContainers?.find(({ name }) => name === container.name)?.restartPolicy;
    if (terminated?.exitCode === 0 || (policy === "Always" && container.started)) continue;
    initialising = true;
    if (terminated) reason = `Init:${terminated.reason ?? exit(terminated)}`;
    else if (waiting?.reason && waiting.reason !== "PodInitializing") reason = `Init:${waiting.reason}`;
    else reason = `Init:${index}/${spec?.initContainers?.length ?? 0}`;
    break;
  }
  if (!initialising) {
    let running = false;
    for (const { state, ready } of [...(status?.containerStatuses ?? [])].reverse()) {
      if (state?.waiting?.reason) reason = state.waiting.reason;
      else if (state?.terminated) reason = state.terminated.reason ?? exit(state.terminated);
      else if (ready && state?.running) running = true;
    }
    if (reason === "Completed" && running) {
      const ready = status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
      reason = ready ? "Running" : "NotReady";
    }
  }
  if (!metadata.deletionTimestamp) return reason;
  if (status?.reason === "NodeLost") return "Unknown";
  return status?.phase === "Succeeded" || status?.phase === "Failed" ? reason : "Terminating";
}

const exit = ({ signal, exitCode }: { signal?: number; exitCode: number }) =>
  signal ? `Signal:${signal}` : `ExitCode:${exitCode}`;

export const jobColumns: readonly Column[] = [
  nameColumn,
  text("Status", (item) => {
    const { metadata, status, spec } = item as unknown as Job;
    const holds = (wanted: string) =>
      status?.conditions?.some(({ type, status }) => type === wanted && status === "True");
    if (holds("Complete")) return "Complete";
    if (holds("Failed")) return "Failed";
    if (metadata.deletionTimestamp) return "Terminating";
    if (holds("Suspended") || spec?.suspend) return "Suspended";
    if (holds("FailureTarget")) return "FailureTarget";
    return holds("SuccessCriteriaMet") ? "SuccessCriteriaMet" : "Running";
  }),
  text("Completions", (item) => {
    const { spec, status } = item as unknown as Job;
    const succeeded = status?.succeeded ?? 0;
    if (spec?.completions !== undefined) return `${succeeded}/${spec.completions}`;
    return (spec?.parallelism ?? 1) > 1 ? `${succeeded}/1 of ${spec?.parallelism}` : `${succeeded}/1`;
  }),
  text("Duration", (item, now) => {
    const { status } = item as unknown as Job;
    const start = fromWire(status?.startTime);
    if (start === undefined) return "";
    const failed = status?.conditions?.find(({ type, status }) => type === "Failed" && status === "True");
    return humanDuration((fromWire(status?.completionTime ?? failed?.lastTransitionTime) ?? now) - start);
  }),
  ageColumn,
  text(
    "Containers",
    (item) =>
      containers(item)
        .map(({ name }) => name)
        .join(","),
    1,
  ),
  text(
    "Images",
    (item) =>
      containers(item)
        .map(({ image }) => image)
        .join(","),
    1,
  ),
  text("Selector", (item) => labels(at(item, "spec", "selector", "matchLabels")), 1),
];

const containers = (item: Item) => listAt(item, "spec", "template", "spec", "containers");
const labels = (value: unknown) =>
  Object.entries((value ?? {}) as Record<string, string>)
    .map(([key, value]) => `${key}=${value}`)
    .join(",") || "<none>";

export const serviceColumns: readonly Column[] = [
  nameColumn,
  text("Type", (item) => textAt(item, "spec", "type")),
  text("Cluster-IP", (item) => textAt(item, "spec", "clusterIP") || "<none>"),
  text("External-IP", (item) => textAt(item, "spec", "externalName") ?? "<none>"),
  text("Port(s)", (item) => {
    const { spec } = item as unknown as Service;
    const ports = (spec?.ports ?? []).map(
      ({ port, nodePort, protocol }) => `${port}${nodePort ? `:${nodePort}` : ""}/${protocol}`,
    );
    return ports.join(",") || "<none>";
  }),
  ageColumn,
  text("Selector", (item) => labels(at(item, "spec", "selector")), 1),
];

export const eventColumns: readonly Column[] = [
  text("Last Seen", (item, now) => {
    const seen = at(item, "series", "lastObservedTime") ?? at(item, "lastTimestamp") ?? at(item, "eventTime");
    return ago(seen, now);
  }),
  text("Type", (item) => textAt(item, "type")),
  text("Reason", (item) => textAt(item, "reason")),
  text("Object", (item) => {
    const { kind, name } = (at(item, "involvedObject") ?? {}) as { kind?: string; name?: string };
    return kind ? `${kind.toLowerCase()}/${name}` : name;
  }),
  text("Subobject", (item) => textAt(item, "involvedObject", "fieldPath") ?? "", 1),
  text(
    "Source",
    (item) => {
      const component = textAt(item, "source", "component") || textAt(item, "reportingComponent") || "";
      const host = textAt(item, "source", "host") || textAt(item, "reportingInstance");
      return host ? `${component}, ${host}` : component;
    },
    1,
  ),
  text("Message", (item) => textAt(item, "message")?.trim()),
  text("First Seen", (item, now) => ago(at(item, "firstTimestamp") ?? at(item, "eventTime"), now), 1),
  text("Count", (item) => `${at(item, "series", "count") ?? at(item, "count") ?? 1}`, 1),
  { ...nameColumn, priority: 1 },
];

export const nodeColumns: readonly Column[] = [
  nameColumn,
  text("Status", (item) => {
    const { spec, status } = item as unknown as Node;
    const ready = status?.conditions?.find(({ type }) => type === "Ready")?.status;
    const word = ready === "True" ? "Ready" : ready ? "NotReady" : "Unknown";
    return spec?.unschedulable ? `${word},SchedulingDisabled` : word;
  }),
  text("Roles", (item) => {
    const prefix = "node-role.kubernetes.io/";
    const roles = Object.keys(item.metadata.labels ?? {}).filter((label) => label.startsWith(prefix));
    return roles.map((label) => label.slice(prefix.length)).join(",") || "<none>";
  }),
  ageColumn,
  text("Version", (item) => textAt(item, "status", "nodeInfo", "kubeletVersion") ?? ""),
];

export const namespaceColumns: readonly Column[] = [
  nameColumn,
  text("Status", (item) => textAt(item, "status", "phase")),
  ageColumn,
];
const entries = (value: unknown) => Object.keys((value ?? {}) as object).length;
export const configMapColumns: readonly Column[] = [
  nameColumn,
  count("Data", (item) => entries(item.data) + entries(item.binaryData)),
  ageColumn,
];
export const secretColumns: readonly Column[] = [
  nameColumn,
  text("Type", (item) => item.type),
  count("Data", (item) => entries(item.data)),
  ageColumn,
];
export const serviceAccountColumns: readonly Column[] = [
  nameColumn,
  count("Secrets", (item) => listAt(item, "secrets").length),
  ageColumn,
];
export const leaseColumns: readonly Column[] = [
  nameColumn,
  text("Holder", (item) => textAt(item, "spec", "holderIdentity") ?? ""),
  ageColumn,
];
export const endpointSliceColumns: readonly Column[] = [
  nameColumn,
  text("AddressType", (item) => item.addressType),
  text(
    "Ports",
    (item) =>
      listAt(item, "ports")
        .map(({ port }) => port)
        .join(",") || "<unset>",
  ),
  text(
    "Endpoints",
    (item) =>
      listAt(item, "endpoints")
        .flatMap(({ addresses }) => addresses)
        .join(",") || "<unset>",
  ),
  ageColumn,
];
