/**
 * Objects in other shapes than their own: rows of a table for `kubectl get`, metadata only for those who need no more.
 */
import { frozen, type Item } from "./json.ts";
import type { ServedVersion } from "./registry.ts";

/** How a response shows objects, as the request's `accept` header asks. */
export type Shape = "object" | "Table" | "PartialObjectMetadata";

/** The first shape in an `accept` header that we can give; undefined when there is none. */
export function acceptedShape(accept: string | undefined): Shape | undefined {
  for (const range of (accept || "application/json").split(",")) {
    const [type, ...parameters] = range.split(";").map((part) => part.trim());
    const as = parameters.find((parameter) => parameter.startsWith("as="))?.slice(3);
    if (type !== "application/json" && type !== "*/*" && type !== "application/*") continue;
    if (as === undefined) return "object";
    if (as === "Table") return "Table";
    if (as === "PartialObjectMetadata" || as === "PartialObjectMetadataList") return "PartialObjectMetadata";
  }
  return undefined;
}

const partial = new WeakMap<Item, object>();

export function partialObjectMetadata(item: Item): object {
  let made = partial.get(item);
  if (!made) {
    made = frozen({ kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: item.metadata });
    partial.set(item, made);
  }
  return made;
}

/** What a row carries besides its cells: `includeObject` of the request. */
export type Included = "None" | "Metadata" | "Object";

/** Rows for `items`, which are as stored; `withColumns` is false for all but the first table of a watch. */
export function table(
  items: readonly Item[],
  version: ServedVersion,
  options: { now: number; include: Included; withColumns: boolean; metadata?: object },
): object {
  return {
    kind: "Table",
    apiVersion: "meta.k8s.io/v1",
    metadata: options.metadata ?? {},
    columnDefinitions: options.withColumns
      ? version.columns.map(({ name, type = "string", format = "", description = "", priority = 0 }) => ({
          name,
          // The cells of dates are ages, which are text.
          type: type === "date" ? "string" : type,
          format,
          description,
          priority,
        }))
      : null,
    rows: items.map((item) => ({
      cells: version.columns.map((column) => column.cell(item, options.now) ?? (column.type === "string" ? "" : null)),
      ...(options.include !== "None" && {
        object: options.include === "Object" ? version.show(item) : partialObjectMetadata(version.show(item)),
      }),
    })),
  };
}
