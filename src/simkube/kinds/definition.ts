/**
 * CustomResourceDefinitions, and the kinds they define.
 *
 * Answers: the Resource that a definition describes. Its conversion is `None`: all versions are the same but for
 * apiVersion.
 */
import type { CustomResourceDefinition, CustomResourceDefinitionVersion } from "../../api/kubernetes.ts";
import { toWire } from "../../domain/time.ts";
import { type Cause, fault } from "../errors.ts";
import { at, type Item, isFields, withMeta } from "../json.ts";
import type { Column, Resource } from "../registry.ts";
import type { Schema } from "../schema.ts";
import { builtIn, open, relabelled } from "./builtIn.ts";
import { ageColumn, ago, nameColumn } from "./columns.ts";

/** Keeps a definition until nothing of its kind is left (cleanup.ts). */
export const CLEANUP = "customresourcecleanup.apiextensions.k8s.io";

export const customResourceDefinitions: Resource = builtIn({
  group: "apiextensions.k8s.io",
  version: "v1",
  kind: "CustomResourceDefinition",
  plural: "customresourcedefinitions",
  shortNames: ["crd", "crds"],
  categories: ["api-extensions"],
  namespaced: false,
  hasStatus: true,
  hasGeneration: true,
  metadataThroughStatus: true,
  schema: { type: "object", required: ["spec"], properties: { spec: open, status: open } },
  // Not on a thawed copy: a definition is large, and little of it is touched.
  complete(item, old, world) {
    const { spec } = item as unknown as CustomResourceDefinition;
    if (!isFields(spec) || !isFields(spec.names)) return item;
    const { kind } = spec.names;
    const names = { singular: kind?.toLowerCase(), listKind: `${kind}List`, ...spec.names };
    const condition = { status: "True", lastTransitionTime: toWire(world.now) };
    const before = (old as unknown as CustomResourceDefinition | undefined)?.status;
    const stored = (spec.versions ?? []).filter(({ storage }) => storage).map(({ name }) => name);
    return {
      ...(old ? item : withMeta(item, { finalizers: [...(item.metadata.finalizers ?? []), CLEANUP] })),
      spec: { conversion: { strategy: "None" }, ...spec, names },
      status: {
        acceptedNames: names,
        conditions: before?.conditions ?? [
          { type: "NamesAccepted", ...condition, reason: "NoConflicts", message: "no conflicts found" },
          {
            type: "Established",
            ...condition,
            reason: "InitialNamesAccepted",
            message: "the initial names have been accepted",
          },
        ],
        storedVersions: [...new Set([...(before?.storedVersions ?? []), ...stored])],
      },
    };
  },
  validate: (item, _old, _, part) => (part === "subresource" ? [] : faults(item)),
});

function faults(item: Item): readonly Cause[] {
  const { metadata, spec } = item as unknown as CustomResourceDefinition;
  const causes: Cause[] = [];
  for (const field of ["group", "scope"] as const) if (!spec[field]) causes.push(fault.required(`spec.${field}`));
  for (const field of ["plural", "kind"] as const) {
    if (!spec.names?.[field]) causes.push(fault.required(`spec.names.${field}`));
  }
  if (causes.length > 0) return causes;
  const name = `${spec.names.plural}.${spec.group}`;
  if (metadata.name !== name) {
    causes.push(fault.invalid("metadata.name", metadata.name, `must be spec.names.plural+"."+spec.group`));
  }
  if (spec.scope !== "Namespaced" && spec.scope !== "Cluster") {
    causes.push(fault.unsupported("spec.scope", spec.scope, ["Cluster", "Namespaced"]));
  }
  if ((spec.versions ?? []).filter(({ storage }) => storage).length !== 1) {
    causes.push(
      fault.invalid("spec.versions", spec.versions, "must have exactly one version marked as storage version"),
    );
  }
  for (const [index, { schema }] of (spec.versions ?? []).entries()) {
    if (!schema?.openAPIV3Schema) {
      causes.push(fault.required(`spec.versions[${index}].schema.openAPIV3Schema`, "schemas are required"));
    }
  }
  if (spec.conversion?.strategy !== "None") {
    causes.push(fault.unsupported("spec.conversion.strategy", spec.conversion?.strategy, ["None"]));
  }
  return causes;
}

/** The kind that a definition defines. */
export function defined(definition: Item): Resource {
  const { spec } = definition as unknown as CustomResourceDefinition;
  const { group, names } = spec;
  const storage = spec.versions.find((version) => version.storage)!;
  const store = relabelled(`${group}/${storage.name}`);
  const served = spec.versions.filter((version) => version.served);
  return {
    ...builtIn({ group, version: storage.name, kind: names.kind, plural: names.plural }),
    singular: names.singular ?? names.kind.toLowerCase(),
    listKind: names.listKind ?? `${names.kind}List`,
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    namespaced: spec.scope === "Namespaced",
    versions: served.map((version) => ({
      group,
      name: version.name,
      schema: version.schema!.openAPIV3Schema as Schema,
      columns: columns(version),
      show: relabelled(`${group}/${version.name}`),
      store,
    })),
    custom: true,
    hasGeneration: true,
    unconditionalUpdate: false,
    hasStatus: storage.subresources?.status !== undefined,
    fields: Object.fromEntries(
      (storage.selectableFields ?? []).map(({ jsonPath: path }) => [
        path.replace(/^\./, ""),
        (item: Item) => String(jsonPath(path)(item)[0] ?? ""),
      ]),
    ),
  };
}

function columns({ additionalPrinterColumns: own }: CustomResourceDefinitionVersion): readonly Column[] {
  if (!own?.length) return [nameColumn, ageColumn];
  return [
    nameColumn,
    ...own.map(({ name, type, format, description, priority, jsonPath: path }): Column => {
      const read = jsonPath(path);
      return {
        name,
        type: type as Column["type"],
        format,
        description,
        priority,
        cell(item, now) {
          const [value] = read(item);
          if (value === undefined || value === null) return null;
          if (type === "date") return ago(value, now);
          return type === "string" && typeof value !== "string" ? JSON.stringify(value) : value;
        },
      };
    }),
  ];
}

const paths = new Map<string, (value: unknown) => readonly unknown[]>();

/**
 * Reads the JSONPath of a column: members, `['member']`, `[0]`, `[*]` and `[?(@.field=="text")]`.
 * Anything else finds nothing.
 */
export function jsonPath(path: string): (value: unknown) => readonly unknown[] {
  const known = paths.get(path);
  if (known) return known;
  const steps: ((value: unknown) => readonly unknown[])[] = [];
  const pattern =
    /\.?\['([^']+)'\]|\[(\d+)\]|\[\*\]|\[\?\(@\.([\w.]+)\s*==\s*["']([^"']*)["']\)\]|\.((?:\\.|[^.[\\])+)/gy;
  let end = 0;
  for (let match = pattern.exec(path); match; match = pattern.exec(path)) {
    end = pattern.lastIndex;
    const [, quoted, index, filter, wanted, member] = match;
    const field = quoted ?? member?.replaceAll("\\", "");
    if (field !== undefined) steps.push((value) => [at(value, field)]);
    else if (index !== undefined) steps.push((value) => (Array.isArray(value) ? [value[Number(index)]] : []));
    else if (filter === undefined) steps.push((value) => (Array.isArray(value) ? value : []));
    else {
      const keys = filter.split(".");
      steps.push((value) => (Array.isArray(value) ? value.filter((one) => at(one, ...keys) === wanted) : []));
    }
  }
  const readable = end === path.length;
  const read = (value: unknown) =>
    readable
      ? steps
          .reduce<readonly unknown[]>((found, step) => found.flatMap(step), [value])
          .filter((one) => one !== undefined)
      : [];
  paths.set(path, read);
  return read;
}
