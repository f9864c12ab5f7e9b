/**
 * Which objects a list, a watch or a Service means.
 *
 * Answers: whether an object matches a label selector or a field selector.
 * May not: know which fields of a kind can be selected by; the kind says (registry.ts).
 */
import { badRequest } from "./errors.ts";
import type { Fields, Item } from "./json.ts";

export type Matches = (item: Item) => boolean;

type Requirement = (labels: Readonly<Record<string, string>>) => boolean;

const LABEL_KEY = `(?:[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9](?:[-_.A-Za-z0-9]*[A-Za-z0-9])?`;
const LABEL_VALUE = `(?:[A-Za-z0-9](?:[-_.A-Za-z0-9]*[A-Za-z0-9])?)?`;
const FORMS: readonly [RegExp, (key: string, value: string) => Requirement][] = [
  [
    new RegExp(`^(${LABEL_KEY})\\s*==?\\s*(${LABEL_VALUE})$`),
    (key, value) => (labels) => Object.hasOwn(labels, key) && labels[key] === value,
  ],
  [new RegExp(`^(${LABEL_KEY})\\s*!=\\s*(${LABEL_VALUE})$`), (key, value) => (labels) => labels[key] !== value],
  [
    new RegExp(`^(${LABEL_KEY})\\s+in\\s*\\(([^)]*)\\)$`),
    (key, values) => (labels) => Object.hasOwn(labels, key) && among(values).includes(labels[key]!),
  ],
  [
    new RegExp(`^(${LABEL_KEY})\\s+notin\\s*\\(([^)]*)\\)$`),
    (key, values) => (labels) => !Object.hasOwn(labels, key) || !among(values).includes(labels[key]!),
  ],
  [new RegExp(`^(${LABEL_KEY})$`), (key) => (labels) => Object.hasOwn(labels, key)],
  [new RegExp(`^!\\s*(${LABEL_KEY})$`), (key) => (labels) => !Object.hasOwn(labels, key)],
];

const among = (values: string) => values.split(",").map((value) => value.trim());

/** Reads a label selector as it stands in a query: `a=b,c!=d,e in (x,y),f notin (z),g,!h`. Throws 400 when it is none. */
export function labelSelector(text: string): (labels: Readonly<Record<string, string>>) => boolean {
  const requirements = text
    // Commas between parentheses separate values, not requirements.
    .split(/,(?![^(]*\))/)
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .map((part): Requirement => {
      for (const [form, make] of FORMS) {
        const [, key, value = ""] = form.exec(part) ?? [];
        if (key !== undefined) return make(key, value);
      }
      throw badRequest(`unable to parse requirement: found '${part}', expected: a label selector's requirement`);
    });
  return (labels) => requirements.every((requirement) => requirement(labels));
}

/** Reads a field selector: `a=b`, `a==b`, `a!=b`, joined by commas. */
function fieldSelector(text: string): readonly { field: string; value: string; equal: boolean }[] {
  return text
    .split(/(?<!\\),/)
    .filter((part) => part !== "")
    .map((part) => {
      const [, field, operator, value] = /^(.*?)(!=|==|=)(.*)$/.exec(part) ?? [];
      if (field === undefined) throw badRequest(`invalid selector: '${part}'; can't understand '${part}'`);
      return { field, value: value!.replace(/\\([,=\\])/g, "$1"), equal: operator !== "!=" };
    });
}

/** What both selectors of a query mean together. `read` reads a field of an object. */
export function selection(
  query: { readonly labelSelector?: string; readonly fieldSelector?: string },
  read: (item: Item, field: string) => string,
  known: (field: string) => boolean,
): Matches | undefined {
  const byLabel = query.labelSelector ? labelSelector(query.labelSelector) : undefined;
  const byField = query.fieldSelector ? fieldSelector(query.fieldSelector) : [];
  for (const { field } of byField) {
    if (!known(field)) throw badRequest(`field label not supported: ${field}`);
  }
  if (!byLabel && byField.length === 0) return undefined;
  return (item) => {
    if (byLabel && !byLabel(item.metadata.labels ?? {})) return false;
    return byField.every(({ field, value, equal }) => (read(item, field) === value) === equal);
  };
}

/** A selector as it stands in a Job's spec: `matchLabels` and `matchExpressions`. */
export function matchesSelector(selector: Fields | undefined, labels: Readonly<Record<string, string>>): boolean {
  if (!selector) return false;
  const wanted = Object.entries((selector.matchLabels ?? {}) as Record<string, string>);
  const expressions = (selector.matchExpressions ?? []) as { key: string; operator: string; values?: string[] }[];
  return (
    wanted.every(([key, value]) => labels[key] === value) &&
    expressions.every(({ key, operator, values = [] }) => {
      const present = Object.hasOwn(labels, key);
      if (operator === "In") return present && values.includes(labels[key]!);
      if (operator === "NotIn") return !present || !values.includes(labels[key]!);
      return operator === "Exists" ? present : operator === "DoesNotExist" && !present;
    })
  );
}
