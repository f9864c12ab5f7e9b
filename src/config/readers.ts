/**
 * How what an administrator wrote becomes a value: one reader for each kind of value.
 *
 * Answers: the value, or (as a TypeError whose message ends the sentence "X must be …") what was expected instead.
 * May not: know which option is being read.
 */
import type { Container, EnvVar } from "../api/kubernetes.ts";
import { SUBMITTER_CONTAINER } from "../api/labels.ts";

export interface Reader<T = unknown> {
  (value: unknown): T;
  /** For who cannot run it, as the chart: what a text must match, and the words that end the sentence otherwise. */
  readonly told?: { readonly pattern: string; readonly expected: string };
}

function wrong(expected: string): never {
  throw new TypeError(expected);
}

export const text: Reader<string> = (value) => (typeof value === "string" ? value : wrong("a text"));

/** Where to listen; how it is read: serve/http.ts. */
export const address: Reader<string> = (value) => {
  const [, port] = /^(?:\[[^\]]+\]|[^:[\]]*):(\d{1,5})$/.exec(text(value)) ?? [];
  return port !== undefined && Number(port) <= 65_535
    ? (value as string)
    : wrong("an address to listen on, such as :9443 or 127.0.0.1:9443");
};

export const boolean: Reader<boolean> = (value) => {
  if (typeof value === "boolean") return value;
  // Go's flag package takes these spellings, so manifests of KubeRay have them.
  if (typeof value === "string" && /^(1|t|true)$/i.test(value)) return true;
  if (typeof value === "string" && /^(0|f|false)$/i.test(value)) return false;
  return wrong("true or false");
};

const number = (value: unknown): unknown => (typeof value === "string" && value.trim() !== "" ? Number(value) : value);

export const integer =
  (least: number): Reader<number> =>
  (value) => {
    const read = number(value);
    return Number.isSafeInteger(read) && (read as number) >= least
      ? (read as number)
      : wrong(`a whole number, ${least} or more`);
  };

/** An integer as a text has it. */
export function count(least: 0 | 1): Reader<number> {
  const told = {
    pattern: least === 0 ? "^[0-9]{1,15}$" : "^0*[1-9][0-9]{0,14}$",
    expected: `a whole number, ${least} or more`,
  };
  const read = (value: unknown) => (new RegExp(told.pattern).test(text(value)) ? Number(value) : wrong(told.expected));
  return Object.assign(read, { told });
}

export const positive: Reader<number> = (value) => {
  const read = number(value);
  return typeof read === "number" && Number.isFinite(read) && read > 0 ? read : wrong("a number above 0");
};

export const oneOf =
  <W extends string>(...words: readonly W[]): Reader<W> =>
  (value) =>
    words.includes(value as W) ? (value as W) : wrong(`one of ${words.join(", ")}`);

/** KubeRay compares with the one word that departs from its default, in any case, and takes all else for the default. */
export const unless =
  (word: string): Reader<boolean> =>
  (value) =>
    String(value).toLowerCase() !== word;
export const only =
  (word: string): Reader<boolean> =>
  (value) =>
    String(value).toLowerCase() === word;

export type LogLevel = "debug" | "info" | "warn" | "error" | "fatal";

/** zap takes names, and numbers that grow with the detail. Above `error` nothing is ever logged. */
export const logLevel: Reader<LogLevel> = (value) => {
  const word = String(value).toLowerCase();
  if (word === "warning") return "warn";
  if (["dpanic", "panic", "fatal"].includes(word)) return "fatal";
  if (["debug", "info", "warn", "error"].includes(word)) return word as LogLevel;
  if (/^[1-9]\d*$/.test(word)) return "debug";
  return wrong("debug, info, warn, error, panic or a number above 0");
};

const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isName = (value: unknown): value is string =>
  typeof value === "string" && value.length <= 63 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(value);

/** Separated by commas; a namespace that cannot exist would be watched without a word. */
export const namespaces: Reader<readonly string[]> = (value) => {
  const names = text(value)
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
  return names.every(isName) ? [...new Set(names)] : wrong("names of namespaces, separated by commas");
};

/** Absent, and what a template writes where nothing was chosen, is an empty list. */
const list =
  <T>(expected: string, isOne: (entry: Record<string, unknown>) => boolean): Reader<readonly T[]> =>
  (value) => {
    if (value === null || value === undefined) return [];
    if (!Array.isArray(value) || !value.every((entry) => isMap(entry) && isOne(entry))) return wrong(expected);
    const names = value.map(({ name }) => name as string);
    const twice = names.find((name, index) => names.indexOf(name) !== index);
    return twice === undefined ? (value as T[]) : wrong(`${expected}, each name once (there are two "${twice}")`);
  };

/** Core Containers. The rest of what makes one valid, the API server says when a Pod is made. */
export const containers: Reader<readonly Container[]> = list<Container>(
  `a list of containers, each with a name (a DNS label other than ${SUBMITTER_CONTAINER}) and an image`,
  ({ name, image }) => isName(name) && name !== SUBMITTER_CONTAINER && typeof image === "string" && image !== "",
);

export const envVars: Reader<readonly EnvVar[]> = list<EnvVar>(
  "a list of environment variables, each with a name and a value (a text: write numbers in quotes) or valueFrom",
  ({ name, value, valueFrom, ...others }) =>
    typeof name === "string" &&
    name !== "" &&
    Object.keys(others).length === 0 &&
    (valueFrom === undefined
      ? value === undefined || typeof value === "string"
      : value === undefined && isMap(valueFrom)),
);

/** Labels or annotations. Those by which Pods are found, and their attempt known, are the operator's own. */
export const metadata: Reader<Readonly<Record<string, string>>> = (value) => {
  if (value === null || value === undefined) return {};
  if (!isMap(value) || !Object.values(value).every((one) => typeof one === "string")) {
    return wrong("a map of texts (write numbers and true or false in quotes)");
  }
  const ours = Object.keys(value).find((key) => /^([^/]*\.)?(ray\.io|raykeeper\.dev)\//.test(key));
  return ours === undefined
    ? (value as Record<string, string>)
    : wrong(`a map without "${ours}", which the operator sets itself`);
};

/** With one that the API server refuses, no Pod of any cluster could be made. */
export const labels: Reader<Readonly<Record<string, string>>> = (value) => {
  const read = metadata(value);
  const bad = Object.values(read).find(
    (one) => one !== "" && !/^(?!.{64})[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$/.test(one),
  );
  return bad === undefined
    ? read
    : wrong(
        "a map of labels, whose values are at most 63 letters, digits, -, _ and ., with a letter or digit at both ends",
      );
};
