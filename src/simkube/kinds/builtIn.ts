/**
 * What the built-in kinds have in common, so that each of them says only what is its own.
 */
import { frozen, type Item, withField } from "../json.ts";
import type { Column, Resource } from "../registry.ts";
import type { Schema } from "../schema.ts";
import { plainColumns } from "./columns.ts";

type Own = Partial<Resource> & {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly schema?: Schema;
  readonly columns?: readonly Column[];
};

/** A built-in kind, served in one version: namespaced, without status, and with nothing special, unless it says so. */
export function builtIn({ version, schema, columns = plainColumns, ...own }: Own): Resource {
  const same = (item: Item) => item;
  return {
    id: `${own.group}/${own.plural}`,
    singular: own.kind.toLowerCase(),
    listKind: `${own.kind}List`,
    shortNames: [],
    categories: [],
    namespaced: true,
    versions: [{ group: own.group, name: version, schema, columns, show: same, store: same }],
    hasStatus: false,
    hasGeneration: false,
    custom: false,
    unconditionalUpdate: true,
    names: "subdomain",
    ...own,
  };
}

/** An object whose inside is taken as it comes. */
export const open: Schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

type Definitions = Readonly<Record<string, unknown>>;
const links = new WeakMap<Definitions, Map<string, Schema>>();

/**
 * The schema of that name, with `$ref`s replaced by what they mean (so a schema may contain itself). What its lists are
 * keyed by is left out: of built-in kinds the API server checks that with its own words.
 */
export function linked(definitions: Definitions, name: string): Schema {
  const known = links.get(definitions) ?? new Map<string, Schema>();
  links.set(definitions, known);
  const link = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(link);
    if (typeof part !== "object" || part === null) return part;
    if ("$ref" in part && typeof part.$ref === "string") return byName(part.$ref);
    return Object.fromEntries(
      Object.entries(part)
        .filter(([key]) => key !== "x-kubernetes-list-type")
        .map(([key, value]) => [key, link(value)]),
    );
  };
  const byName = (wanted: string): Schema => {
    const found = known.get(wanted);
    if (found) return found;
    // Entered before it is filled in, for those that contain themselves.
    const schema = {};
    known.set(wanted, schema);
    return Object.assign(schema, link(definitions[wanted]));
  };
  return byName(name);
}

/** `item` with another apiVersion; made once for each item, since lists and watches ask again and again. */
export function relabelled(apiVersion: string): (item: Item) => Item {
  const made = new WeakMap<Item, Item>();
  return (item) => {
    if (item.apiVersion === apiVersion) return item;
    let other = made.get(item);
    if (!other) {
      other = frozen(withField(item, "apiVersion", apiVersion));
      made.set(item, other);
    }
    return other;
  };
}
