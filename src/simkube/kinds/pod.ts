/**
 * Pods: what is filled in, what is refused, and how one ends.
 *
 * May not: run anything. A node (the local one, or a test's) binds Pods, writes their status and finishes their deletion.
 */
import structural from "../../api/generated/structural.json" with { type: "json" };
import type { Container, Pod, PodSpec, Probe } from "../../api/kubernetes.ts";
import { toWire } from "../../domain/time.ts";
import { type Cause, fault } from "../errors.ts";
import { equal, type Item, textAt, thawed, withField } from "../json.ts";
import { nameFaults } from "../names.ts";
import type { Resource } from "../registry.ts";
import { builtIn, linked, open } from "./builtIn.ts";
import { podColumns } from "./columns.ts";

const podSpec = linked(structural, "PodSpec");

/** Kubernetes allows these to change while the Pod lives; all else in `spec` is fixed once it exists. */
const CHANGEABLE =
  "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

export const pods: Resource = builtIn({
  group: "",
  version: "v1",
  kind: "Pod",
  plural: "pods",
  shortNames: ["po"],
  categories: ["all"],
  hasStatus: true,
  hasGeneration: true,
  metadataThroughStatus: true,
  answersDeletionWithObject: true,
  schema: { type: "object", required: ["spec"], properties: { spec: podSpec, status: open } },
  columns: podColumns,
  firstStatus: (item) => ({ phase: "Pending", qosClass: qosClass((item as unknown as Pod).spec) }),
  complete(item) {
    const pod = thawed(item) as Item & Pod;
    if (pod.spec) completePodSpec(pod.spec);
    return pod;
  },
  validate(item, old, _, part) {
    if (part === "subresource") return [];
    if (old) return unchanged(item, old);
    return podSpecFaults((item as unknown as Pod).spec, "spec");
  },
  gracePeriod(item, requested) {
    const { spec, status } = item as unknown as Pod;
    // Nobody is there to end it, or it has ended.
    if (!spec?.nodeName || status?.phase === "Succeeded" || status?.phase === "Failed") return 0;
    const seconds = requested ?? spec.terminationGracePeriodSeconds ?? 30;
    return seconds < 0 ? 1 : seconds;
  },
  fields: {
    "spec.nodeName": (pod) => textAt(pod, "spec", "nodeName") ?? "",
    "spec.restartPolicy": (pod) => textAt(pod, "spec", "restartPolicy") ?? "",
    "spec.schedulerName": (pod) => textAt(pod, "spec", "schedulerName") ?? "",
    "spec.serviceAccountName": (pod) => textAt(pod, "spec", "serviceAccountName") ?? "",
    "status.phase": (pod) => textAt(pod, "status", "phase") ?? "",
    "status.podIP": (pod) => textAt(pod, "status", "podIP") ?? "",
  },
});

/** Fills in what a Pod's specification leaves out. Also for the template of a Job. */
export function completePodSpec(spec: PodSpec): void {
  spec.restartPolicy ??= "Always";
  spec.terminationGracePeriodSeconds ??= 30;
  spec.dnsPolicy ??= "ClusterFirst";
  spec.securityContext ??= {};
  spec.schedulerName ??= "default-scheduler";
  spec.enableServiceLinks ??= true;
  for (const container of [...(spec.initContainers ?? []), ...(spec.containers ?? [])]) completeContainer(container);
  for (const volume of spec.volumes ?? []) {
    for (const source of [volume.configMap, volume.downwardAPI, volume.projected]) {
      if (source) source.defaultMode ??= 0o644;
    }
    if (volume.secret) volume.secret.defaultMode ??= 0o644;
    if (volume.hostPath) volume.hostPath.type ??= "";
    for (const { serviceAccountToken, downwardAPI } of volume.projected?.sources ?? []) {
      if (serviceAccountToken) serviceAccountToken.expirationSeconds ??= 3600;
      for (const { fieldRef } of downwardAPI?.items ?? []) if (fieldRef) fieldRef.apiVersion ??= "v1";
    }
    for (const { fieldRef } of volume.downwardAPI?.items ?? []) if (fieldRef) fieldRef.apiVersion ??= "v1";
    // A volume of no kind is an empty directory.
    if (Object.keys(volume).length === 1) volume.emptyDir = {};
  }
}

function completeContainer(container: Container): void {
  container.terminationMessagePath ??= "/dev/termination-log";
  container.terminationMessagePolicy ??= "File";
  container.imagePullPolicy ??= isLatest(container.image) ? "Always" : "IfNotPresent";
  container.resources ??= {};
  const { limits } = container.resources;
  if (limits) container.resources.requests = { ...limits, ...container.resources.requests };
  for (const port of container.ports ?? []) port.protocol ??= "TCP";
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.fieldRef) valueFrom.fieldRef.apiVersion ??= "v1";
    if (valueFrom?.resourceFieldRef) valueFrom.resourceFieldRef.divisor ??= "0";
  }
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) {
    if (probe) completeProbe(probe);
  }
}

function completeProbe(probe: Probe): void {
  probe.timeoutSeconds ??= 1;
  probe.periodSeconds ??= 10;
  probe.successThreshold ??= 1;
  probe.failureThreshold ??= 3;
  if (probe.httpGet) {
    probe.httpGet.path ??= "/";
    probe.httpGet.scheme ??= "HTTP";
  }
}

const isLatest = (image = "") => !image.includes("@") && (!/:[^/]*$/.test(image) || image.endsWith(":latest"));

const RESTART_POLICIES = ["Always", "OnFailure", "Never"];
const DNS_POLICIES = ["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
const PULL_POLICIES = ["Always", "IfNotPresent", "Never"];

/** What is wrong with a Pod's specification that stands at `path`, beyond what its schema says. */
export function podSpecFaults(spec: PodSpec | undefined, path: string): readonly Cause[] {
  if (!spec) return [fault.required(path)];
  const causes: Cause[] = [];
  if (spec.containers.length === 0) causes.push(fault.required(`${path}.containers`));
  if (!RESTART_POLICIES.includes(spec.restartPolicy!)) {
    causes.push(fault.unsupported(`${path}.restartPolicy`, spec.restartPolicy, RESTART_POLICIES));
  }
  if (!DNS_POLICIES.includes(spec.dnsPolicy!)) {
    causes.push(fault.unsupported(`${path}.dnsPolicy`, spec.dnsPolicy, DNS_POLICIES));
  }
  const volumes = new Set((spec.volumes ?? []).map(({ name }) => name));
  const names = new Set<string>();
  for (const list of ["initContainers", "containers"] as const) {
    for (const [index, container] of (spec[list] ?? []).entries()) {
      const here = `${path}.${list}[${index}]`;
      causes.push(...containerFaults(container, here, volumes));
      if (names.has(container.name)) causes.push(fault.duplicate(`${here}.name`, container.name));
      names.add(container.name);
    }
  }
  for (const [index, { name }] of (spec.volumes ?? []).entries()) {
    causes.push(...nameFaults(`${path}.volumes[${index}].name`, name, "label"));
  }
  return causes;
}

function containerFaults(container: Container, path: string, volumes: ReadonlySet<string>): readonly Cause[] {
  const causes: Cause[] = [];
  if (container.name) causes.push(...nameFaults(`${path}.name`, container.name, "label"));
  else causes.push(fault.required(`${path}.name`));
  if (!container.image) causes.push(fault.required(`${path}.image`));
  if (!PULL_POLICIES.includes(container.imagePullPolicy!)) {
    causes.push(fault.unsupported(`${path}.imagePullPolicy`, container.imagePullPolicy, PULL_POLICIES));
  }
  for (const [index, { containerPort }] of (container.ports ?? []).entries()) {
    if (containerPort < 1 || containerPort > 65535) {
      causes.push(
        fault.invalid(`${path}.ports[${index}].containerPort`, containerPort, "must be between 1 and 65535, inclusive"),
      );
    }
  }
  for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
    if (!volumes.has(mount.name)) causes.push(fault.notFound(`${path}.volumeMounts[${index}].name`, mount.name));
    if (!mount.mountPath) causes.push(fault.required(`${path}.volumeMounts[${index}].mountPath`));
  }
  for (const [index, variable] of (container.env ?? []).entries()) {
    if (!variable.name) causes.push(fault.required(`${path}.env[${index}].name`));
    if (variable.value && variable.valueFrom) {
      causes.push(
        fault.invalid(`${path}.env[${index}].valueFrom`, "", "may not be specified when `value` is not empty"),
      );
    }
  }
  return causes;
}

/** Refuses to change a living Pod's specification beyond what Kubernetes lets change. */
function unchanged(item: Item, old: Item): readonly Cause[] {
  if (item.spec === old.spec) return [];
  const causes = podSpecFaults((item as unknown as Pod).spec, "spec");
  if (causes.length > 0) return causes;
  const fixed = (pod: Item) => {
    const spec = (pod as unknown as Pod).spec!;
    const imageless = (containers: readonly Container[] = []) => containers.map((one) => withField(one, "image", ""));
    return {
      ...spec,
      containers: imageless(spec.containers),
      initContainers: imageless(spec.initContainers),
      activeDeadlineSeconds: 0,
      tolerations: [],
    };
  };
  return equal(fixed(item), fixed(old)) ? [] : [fault.forbidden("spec", CHANGEABLE)];
}

function qosClass(spec: PodSpec | undefined): string {
  const all = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map(({ resources }) => resources ?? {});
  if (all.every(({ requests, limits }) => !requests && !limits)) return "BestEffort";
  const guaranteed = all.every(
    ({ requests, limits }) => limits?.cpu && limits.memory && equal({ ...limits, ...requests }, limits),
  );
  return guaranteed ? "Guaranteed" : "Burstable";
}

/** The Pod after it was given to a node. Throws nothing; the caller has seen that it had none. */
export function bound(pod: Item, nodeName: string, now: number): Item {
  const status = (pod as unknown as Pod).status ?? {};
  const others = (status.conditions ?? []).filter(({ type }) => type !== "PodScheduled");
  const scheduled = { type: "PodScheduled", status: "True", lastProbeTime: null, lastTransitionTime: toWire(now) };
  return {
    ...pod,
    spec: { ...(pod.spec as object), nodeName },
    status: { ...status, conditions: [...others, scheduled] },
  } as unknown as Item;
}
