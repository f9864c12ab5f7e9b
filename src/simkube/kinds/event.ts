/**
 * Events: one store, served as `v1` (which `kubectl describe` reads) and as `events.k8s.io/v1` (which controllers
 * write). The two spell the same things differently.
 */
import { type Cause, fault } from "../errors.ts";
import { at, equal, frozen, type Item, textAt } from "../json.ts";
import type { Resource } from "../registry.ts";
import type { Schema } from "../schema.ts";
import { builtIn, open } from "./builtIn.ts";
import { eventColumns } from "./columns.ts";

/** core's name of a field, and that of events.k8s.io. */
const SPELLINGS = [
  ["involvedObject", "regarding"],
  ["message", "note"],
  ["reportingComponent", "reportingController"],
  ["source", "deprecatedSource"],
  ["firstTimestamp", "deprecatedFirstTimestamp"],
  ["lastTimestamp", "deprecatedLastTimestamp"],
  ["count", "deprecatedCount"],
] as const;
const toNew = new Map<string, string>(SPELLINGS);
const toOld = new Map<string, string>(SPELLINGS.map(([old, now]) => [now, old]));

function respelled(apiVersion: string, spelling: ReadonlyMap<string, string>): (item: Item) => Item {
  const made = new WeakMap<Item, Item>();
  return (item) => {
    if (item.apiVersion === apiVersion) return item;
    let other = made.get(item);
    if (!other) {
      const fields = Object.entries(item).map(([field, value]) => [spelling.get(field) ?? field, value]);
      other = frozen({ ...Object.fromEntries(fields), apiVersion }) as Item;
      made.set(item, other);
    }
    return other;
  };
}

const text: Schema = { type: "string" };
const time: Schema = { type: "string", format: "date-time", nullable: true };
const common = {
  type: text,
  reason: text,
  action: text,
  eventTime: time,
  reportingInstance: text,
  series: { ...open, nullable: true },
  related: { ...open, nullable: true },
};
const core: Schema = {
  type: "object",
  properties: {
    ...common,
    involvedObject: open,
    message: text,
    reportingComponent: text,
    source: open,
    firstTimestamp: time,
    lastTimestamp: time,
    count: { type: "integer" },
  },
};
const current: Schema = {
  type: "object",
  properties: Object.fromEntries(
    Object.entries(core.properties!).map(([field, schema]) => [toNew.get(field) ?? field, schema]),
  ),
};

const show = respelled("events.k8s.io/v1", toNew);
const store = respelled("v1", toOld);
const same = (item: Item) => item;

export const events: Resource = {
  ...builtIn({
    group: "",
    version: "v1",
    kind: "Event",
    plural: "events",
    shortNames: ["ev"],
    columns: eventColumns,
    validate: (item, old, { version }) => [...faults(item), ...(version.group ? strictFaults(item, old) : [])],
    fields: {
      ...Object.fromEntries(
        ["kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"].flatMap((field) =>
          (["involvedObject", "regarding"] as const).map((object) => [
            `${object}.${field}`,
            (item: Item) => textAt(item, "involvedObject", field) ?? "",
          ]),
        ),
      ),
      reason: (item) => textAt(item, "reason") ?? "",
      type: (item) => textAt(item, "type") ?? "",
      reportingComponent: (item) => textAt(item, "reportingComponent") ?? "",
      reportingController: (item) => textAt(item, "reportingComponent") ?? "",
      source: (item) => textAt(item, "source", "component") ?? textAt(item, "reportingComponent") ?? "",
    },
  }),
  versions: [
    { group: "", name: "v1", schema: core, columns: eventColumns, show: same, store: same },
    { group: "events.k8s.io", name: "v1", schema: current, columns: eventColumns, show, store },
  ],
};

/** Times with microseconds are read strictly: six digits, no fewer. */
const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$/;

/** What an event must say, in whichever version: one with eventTime is of the new kind, and held to more. */
function faults(item: Item): readonly Cause[] {
  const causes: Cause[] = [];
  for (const path of [["eventTime"], ["series", "lastObservedTime"]]) {
    const found = at(item, ...path);
    if (found != null && !MICRO_TIME.test(String(found))) {
      causes.push(fault.invalid(path.join("."), found, "must be a time with six digits after the second"));
    }
  }
  const { namespace } = item.metadata;
  const about = textAt(item, "involvedObject", "namespace");
  const elsewhere = namespace !== "default" && namespace !== (about ?? "");
  if (at(item, "eventTime") == null) {
    if (about === undefined ? elsewhere : about !== namespace) causes.push(mismatch(about));
    return causes;
  }
  if (about === undefined && namespace !== "default" && namespace !== "kube-system") causes.push(mismatch(about));
  const limits = { reportingComponent: 63, reportingInstance: 128, action: 128, reason: 128 };
  for (const [field, limit] of Object.entries(limits)) {
    const value = textAt(item, field);
    const name = field === "reportingComponent" ? "reportingController" : field;
    if (!value) causes.push(fault.required(name));
    else if (value.length > limit) causes.push(fault.invalid(name, "", `can have at most ${limit} characters`));
  }
  if (Buffer.byteLength(textAt(item, "message") ?? "") > 1024) {
    causes.push(fault.invalid("message", "", "can have at most 1024 characters"));
  }
  return causes;
}

const mismatch = (about: string | undefined) =>
  fault.invalid("involvedObject.namespace", about ?? "", "does not match event.namespace");

/** Through events.k8s.io an event is made complete, and only its series changes afterwards. */
const FIXED =
  "involvedObject reason message source firstTimestamp lastTimestamp count type eventTime action related reportingComponent reportingInstance".split(
    " ",
  );

function strictFaults(item: Item, old: Item | undefined): readonly Cause[] {
  const causes = equal(item.series, old?.series) ? [] : seriesFaults(item);
  if (old) {
    const changed = FIXED.filter((field) => !equal(item[field], old[field]));
    return [...causes, ...changed.map((field) => fault.invalid(field, item[field] ?? "", "field is immutable"))];
  }
  if (at(item, "eventTime") == null) causes.push(fault.required("eventTime"));
  if (item.type !== "Normal" && item.type !== "Warning") {
    causes.push(fault.invalid("type", "", `has invalid value: ${textAt(item, "type") ?? ""}`));
  }
  for (const field of ["firstTimestamp", "lastTimestamp", "count", "source"]) {
    const empty = item[field] == null || item[field] === 0 || equal(item[field], {});
    if (!empty) causes.push(fault.invalid(field, "", "needs to be unset"));
  }
  return causes;
}

function seriesFaults({ series }: Item): Cause[] {
  if (series == null) return [];
  const causes: Cause[] = [];
  if (Number(at(series, "count") ?? 0) < 2) causes.push(fault.invalid("series.count", "", "should be at least 2"));
  if (at(series, "lastObservedTime") == null) causes.push(fault.required("series.lastObservedTime"));
  return causes;
}
