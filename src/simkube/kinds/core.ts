/**
 * The kinds about which there is little to say.
 */
import type { Lease, Namespace } from "../../api/kubernetes.ts";
import { type Cause, fault } from "../errors.ts";
import { equal, type Item, isFields, textAt, withMeta } from "../json.ts";
import type { Resource } from "../registry.ts";
import type { Schema } from "../schema.ts";
import { builtIn, open } from "./builtIn.ts";
import {
  configMapColumns,
  endpointSliceColumns,
  leaseColumns,
  namespaceColumns,
  nodeColumns,
  secretColumns,
  serviceAccountColumns,
} from "./columns.ts";

const texts: Schema = { type: "object", additionalProperties: { type: "string" } };
const list: Schema = { type: "array", items: open };

export const namespaces: Resource = builtIn({
  group: "",
  version: "v1",
  kind: "Namespace",
  plural: "namespaces",
  shortNames: ["ns"],
  namespaced: false,
  hasStatus: true,
  metadataThroughStatus: true,
  names: "label",
  schema: { type: "object", properties: { spec: open, status: open } },
  columns: namespaceColumns,
  firstStatus: () => ({ phase: "Active" }),
  complete: (item, old) => ({
    ...withMeta(item, { labels: { ...item.metadata.labels, "kubernetes.io/metadata.name": item.metadata.name } }),
    // What keeps a namespace until it is empty (cleanup.ts).
    ...(!old && { spec: { finalizers: ["kubernetes"] } }),
  }),
  held: (item) => ((item as unknown as Namespace).spec?.finalizers ?? []).length > 0,
  fields: { "status.phase": (item) => textAt(item, "status", "phase") ?? "" },
});

export const nodes: Resource = builtIn({
  group: "",
  version: "v1",
  kind: "Node",
  plural: "nodes",
  shortNames: ["no"],
  namespaced: false,
  hasStatus: true,
  metadataThroughStatus: true,
  schema: { type: "object", properties: { spec: open, status: open } },
  columns: nodeColumns,
  // A kubelet registers itself together with its status.
  firstStatus: ({ status }) => (isFields(status) ? status : {}),
  fields: {
    "spec.unschedulable": (item) => String((item.spec as { unschedulable?: boolean })?.unschedulable ?? false),
  },
});

export const serviceAccounts: Resource = builtIn({
  group: "",
  version: "v1",
  kind: "ServiceAccount",
  plural: "serviceaccounts",
  shortNames: ["sa"],
  answersDeletionWithObject: true,
  schema: {
    type: "object",
    properties: { secrets: list, imagePullSecrets: list, automountServiceAccountToken: { type: "boolean" } },
  },
  columns: serviceAccountColumns,
});

export const configMaps: Resource = builtIn({
  group: "",
  version: "v1",
  kind: "ConfigMap",
  plural: "configmaps",
  shortNames: ["cm"],
  schema: { type: "object", properties: { data: texts, binaryData: texts, immutable: { type: "boolean" } } },
  columns: configMapColumns,
  validate: (item, old) => [...keyFaults(item), ...immutableFaults(item, old)],
});

export const secrets: Resource = builtIn({
  group: "",
  version: "v1",
  kind: "Secret",
  plural: "secrets",
  schema: {
    type: "object",
    properties: {
      data: { type: "object", additionalProperties: { type: "string", format: "byte", nullable: true } },
      stringData: texts,
      type: { type: "string" },
      immutable: { type: "boolean" },
    },
  },
  columns: secretColumns,
  complete(item) {
    const { type = "Opaque", stringData, ...rest } = item;
    if (!isFields(stringData)) return { ...rest, type };
    const encoded = Object.entries(stringData).map(([key, text]) => [
      key,
      Buffer.from(String(text)).toString("base64"),
    ]);
    return { ...rest, type, data: { ...(item.data as object), ...Object.fromEntries(encoded) } };
  },
  validate: (item, old) => [
    ...keyFaults(item),
    ...immutableFaults(item, old),
    ...(old && item.type !== old.type ? [fault.invalid("type", item.type, "field is immutable")] : []),
  ],
  fields: { type: (item) => textAt(item, "type") ?? "" },
});

function keyFaults(item: Item): readonly Cause[] {
  const keys = Object.keys({ ...(item.data as object), ...(item.binaryData as object) });
  return keys
    .filter((key) => !/^[-._a-zA-Z0-9]+$/.test(key) || key.length > 253 || key === "." || key === "..")
    .map((key) =>
      fault.invalid(
        `data[${key}]`,
        key,
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
      ),
    );
}

function immutableFaults(item: Item, old: Item | undefined): readonly Cause[] {
  if (old?.immutable !== true) return [];
  return ["immutable", "data", "binaryData"]
    .filter((field) => !equal(item[field], old[field]))
    .map((field) => fault.forbidden(field, "field is immutable when `immutable` is set"));
}

/** Six digits after the second, no fewer: the API server reads these times strictly. */
const MICRO_TIME = String.raw`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$`;
const microTime: Schema = { type: "string", pattern: MICRO_TIME, nullable: true };

export const leases: Resource = builtIn({
  group: "coordination.k8s.io",
  version: "v1",
  kind: "Lease",
  plural: "leases",
  unconditionalUpdate: false,
  schema: {
    type: "object",
    properties: {
      spec: {
        type: "object",
        properties: {
          acquireTime: microTime,
          renewTime: microTime,
          holderIdentity: { type: "string" },
          leaseDurationSeconds: { type: "integer", format: "int32" },
          leaseTransitions: { type: "integer", format: "int32" },
          preferredHolder: { type: "string" },
          strategy: { type: "string" },
        },
      },
    },
  },
  columns: leaseColumns,
  validate(item) {
    const spec = (item as unknown as Lease).spec ?? {};
    const causes: Cause[] = [];
    if (spec.leaseDurationSeconds !== undefined && spec.leaseDurationSeconds <= 0) {
      causes.push(fault.invalid("spec.leaseDurationSeconds", spec.leaseDurationSeconds, "must be greater than 0"));
    }
    if ((spec.leaseTransitions ?? 0) < 0) {
      causes.push(fault.invalid("spec.leaseTransitions", spec.leaseTransitions, "must be greater than or equal to 0"));
    }
    return causes;
  },
});

export const endpointSlices: Resource = builtIn({
  group: "discovery.k8s.io",
  version: "v1",
  kind: "EndpointSlice",
  plural: "endpointslices",
  hasGeneration: true,
  schema: {
    type: "object",
    required: ["addressType", "endpoints"],
    properties: {
      addressType: { type: "string", enum: ["IPv4", "IPv6", "FQDN"] },
      endpoints: list,
      ports: { ...list, nullable: true },
    },
  },
  columns: endpointSliceColumns,
});
