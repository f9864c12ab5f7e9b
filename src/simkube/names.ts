/**
 * How names, labels and the rest of an object's metadata must look.
 */
import type { ObjectMeta } from "../api/object.ts";
import { type Cause, fault } from "./errors.ts";
import { type Item, isFields } from "./json.ts";
import type { Resource } from "./registry.ts";

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const LABEL_1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const QUALIFIED = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;
const LABEL_VALUE = /^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$/;
const ANNOTATIONS_LIMIT = 256 * 1024;

const forms: Readonly<Record<Resource["names"], { form: RegExp; limit: number; why: string }>> = {
  label: {
    form: LABEL,
    limit: 63,
    why: "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
  },
  label1035: {
    form: LABEL_1035,
    limit: 63,
    why: "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
  },
  subdomain: {
    form: SUBDOMAIN,
    limit: 253,
    why: "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
  },
};

/** What is wrong with a name of the given form. */
export function nameFaults(field: string, name: unknown, form: Resource["names"]): readonly Cause[] {
  const { form: pattern, limit, why } = forms[form];
  const text = String(name);
  if (!pattern.test(text)) return [fault.invalid(field, name, why)];
  return text.length > limit ? [fault.invalid(field, name, `must be no more than ${limit} characters`)] : [];
}

function keyFaults(field: string, key: string): readonly Cause[] {
  const parts = key.split("/");
  const name = parts.at(-1)!;
  const prefix = parts.length > 1 ? parts[0]! : undefined;
  const fine =
    parts.length <= 2 && QUALIFIED.test(name) && name.length <= 63 && (prefix === undefined || SUBDOMAIN.test(prefix));
  return fine
    ? []
    : [
        fault.invalid(
          field,
          key,
          "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ),
      ];
}

export function labelFaults(field: string, labels: unknown): readonly Cause[] {
  if (!isFields(labels)) return [];
  return Object.entries(labels).flatMap(([key, value]) => [
    ...keyFaults(field, key),
    ...(typeof value === "string" && value.length > 63
      ? [fault.invalid(field, value, "must be no more than 63 bytes")]
      : LABEL_VALUE.test(String(value))
        ? []
        : [
            fault.invalid(
              field,
              value,
              "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
            ),
          ]),
  ]);
}

/** What is wrong with an object's metadata; what is the same as in `old` is taken as it is. */
export function metadataFaults(resource: Resource, item: Item, old: Item | undefined): readonly Cause[] {
  const meta = item.metadata;
  const causes: Cause[] = [];
  if (!old) causes.push(...nameFaults("metadata.name", meta.name, resource.names));
  if (meta.labels !== old?.metadata.labels) causes.push(...labelFaults("metadata.labels", meta.labels));
  if (meta.annotations !== old?.metadata.annotations) causes.push(...annotationFaults(meta));
  if (meta.ownerReferences !== old?.metadata.ownerReferences) causes.push(...ownerFaults(meta));
  if (meta.finalizers !== old?.metadata.finalizers) causes.push(...finalizerFaults(meta, old?.metadata));
  return causes;
}

function annotationFaults({ annotations = {} }: ObjectMeta): readonly Cause[] {
  const size = Object.entries(annotations).reduce(
    (sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(String(value)),
    0,
  );
  return [
    ...Object.keys(annotations).flatMap((key) => keyFaults("metadata.annotations", key.toLowerCase())),
    ...(size > ANNOTATIONS_LIMIT ? [fault.tooLong("metadata.annotations", ANNOTATIONS_LIMIT)] : []),
  ];
}

function ownerFaults({ ownerReferences = [] }: ObjectMeta): readonly Cause[] {
  const causes = ownerReferences.flatMap((owner, index) =>
    (["apiVersion", "kind", "name", "uid"] as const)
      .filter((field) => !owner[field])
      .map((field) =>
        fault.invalid(`metadata.ownerReferences[${index}].${field}`, owner[field] ?? "", `${field} must not be empty`),
      ),
  );
  const controllers = ownerReferences.filter(({ controller }) => controller);
  if (controllers.length > 1) {
    causes.push(
      fault.invalid(
        "metadata.ownerReferences",
        ownerReferences,
        `Only one reference can have Controller set to true. Found "true" in references for ${controllers.map(({ name }) => name).join(" and ")}`,
      ),
    );
  }
  return causes;
}

function finalizerFaults(meta: ObjectMeta, old: ObjectMeta | undefined): readonly Cause[] {
  const finalizers = meta.finalizers ?? [];
  const causes = finalizers.flatMap((finalizer) => keyFaults("metadata.finalizers", String(finalizer)));
  const added = finalizers.filter((finalizer) => !old?.finalizers?.includes(finalizer));
  if (old?.deletionTimestamp && added.length > 0) {
    causes.push(
      fault.forbidden(
        "metadata.finalizers",
        `no new finalizers can be added if the object is being deleted, found new finalizers []string{${added.map((name) => JSON.stringify(name)).join(", ")}}`,
      ),
    );
  }
  return causes;
}

const METADATA_TYPES: Readonly<Record<string, "string" | "integer" | "texts" | "list">> = {
  name: "string",
  generateName: "string",
  namespace: "string",
  selfLink: "string",
  uid: "string",
  resourceVersion: "string",
  generation: "integer",
  creationTimestamp: "string",
  deletionTimestamp: "string",
  deletionGracePeriodSeconds: "integer",
  labels: "texts",
  annotations: "texts",
  ownerReferences: "list",
  finalizers: "list",
  managedFields: "list",
};

/**
 * Metadata without fields that no object has (their paths go to `unknown`), without nulls. Returns what cannot be read
 * at all in `unreadable`, as the API server answers 400 to such a body.
 */
export function cleanMetadata(metadata: unknown, unknown: string[], unreadable: string[]): Record<string, unknown> {
  if (metadata === undefined || metadata === null) return {};
  if (!isFields(metadata)) {
    unreadable.push("metadata");
    return {};
  }
  const clean: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(metadata)) {
    const type = METADATA_TYPES[field];
    if (!type) unknown.push(`metadata.${field}`);
    else if (value === null) continue;
    else if (!readable(type, value)) unreadable.push(`metadata.${field}`);
    // What is empty is not there, as on the wire of a real server.
    else if (type !== "integer" && Object.keys(value as object).length === 0) continue;
    else if (field !== "managedFields" && field !== "selfLink") clean[field] = value;
  }
  return clean;
}

function readable(type: "string" | "integer" | "texts" | "list", value: unknown): boolean {
  if (type === "texts") return isFields(value) && Object.values(value).every((text) => typeof text === "string");
  if (type === "list") return Array.isArray(value);
  return type === "integer" ? Number.isInteger(value) : typeof value === "string";
}
