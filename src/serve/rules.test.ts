import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { Metric } from "../machinery/metrics.ts";
import { METRICS } from "./catalogue.ts";

interface Alert {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly description: string };
}
interface PrometheusRule {
  readonly apiVersion: string;
  readonly kind: string;
  readonly spec: { readonly groups: readonly { readonly name: string; readonly rules: readonly Alert[] }[] };
}

const { apiVersion, kind, spec } = parse(
  readFileSync(new URL("../../deploy/prometheus/rules.yaml", import.meta.url), "utf8"),
) as PrometheusRule;
const alerts = spec.groups.flatMap(({ rules }) => rules);

/** Labels that Prometheus itself puts on what it scrapes. */
const OF_PROMETHEUS = ["pod", "instance", "job"];
const FUNCTIONS = new Set(["absent", "changes", "rate", "increase", "sum", "max", "histogram_quantile"]);
const KEYWORDS = new Set(["by", "and"]);
/** In the order tried; what matches none of them is no PromQL that these rules have need of. */
const TOKENS: readonly (readonly [kind: string, shape: RegExp])[] = [
  ["space", /^\s+/],
  ["string", /^"(?:[^"\\]|\\.)*"/],
  ["range", /^\[\d+[smhd]\]/],
  ["number", /^\d+(?:\.\d+)?/],
  ["matcher", /^(?:=~|!~|!=|==|>=|<=|=|>|<)/],
  ["word", /^[a-z_][a-z0-9_]*/i],
  ["sign", /^[(){},/]/],
];

function tokens(expr: string): { kind: string; text: string }[] {
  const found: { kind: string; text: string }[] = [];
  for (let rest = expr; rest !== ""; ) {
    const match = TOKENS.map(([kind, shape]) => ({ kind, text: shape.exec(rest)?.[0] })).find(({ text }) => text);
    if (!match?.text) throw new Error(`this is no PromQL: ${rest}`);
    if (match.kind !== "space") found.push({ kind: match.kind, text: match.text });
    rest = rest.slice(match.text.length);
  }
  return found;
}

/** The metrics an expression asks for, each with the labels that are matched on it. Throws for brackets that do not match. */
function asked(expr: string): { metric: string; labels: string[]; ranged: boolean }[] {
  const all = tokens(expr);
  const open: string[] = [];
  const found: { metric: string; labels: string[]; ranged: boolean }[] = [];
  all.forEach(({ kind, text }, at) => {
    const next = all[at + 1]?.text;
    if (text === "(" || text === "{") open.push(text);
    if ((text === ")" && open.pop() !== "(") || (text === "}" && open.pop() !== "{")) throw new Error("brackets");
    const grouping = all.slice(0, at).findLast(({ text }) => text === "(" || text === ")");
    const inGroup = grouping?.text === "(" && all[all.indexOf(grouping) - 1]?.text === "by";
    if (kind !== "word" || open.at(-1) === "{" || KEYWORDS.has(text) || inGroup) return;
    if (next === "(" || next === "by") {
      if (!FUNCTIONS.has(text)) throw new Error(`${text} is no function`);
      return;
    }
    const labels: string[] = [];
    let end = at + 1;
    if (next === "{") {
      for (end = at + 2; all[end]?.text !== "}"; end++) if (all[end]?.kind === "word") labels.push(all[end]!.text);
      end++;
    }
    found.push({ metric: text, labels, ranged: all[end]?.kind === "range" });
  });
  if (open.length > 0) throw new Error("a bracket is not closed");
  return found;
}

/** A name as it is asked for: a histogram is asked for one of its series. */
function metricOf(name: string): { readonly metric: Metric; readonly grows: boolean } | undefined {
  const known: Readonly<Record<string, Metric>> = METRICS;
  const [, base = "", series] = /^(\w+?)(_bucket|_sum|_count)?$/.exec(name) ?? [];
  const histogram = series && known[base]?.type === "histogram" ? known[base] : undefined;
  if (histogram) return { metric: histogram, grows: true };
  const metric = known[name];
  return metric && metric.type !== "histogram" ? { metric, grows: metric.type === "counter" } : undefined;
}

describe("the alerts", () => {
  it("are a PrometheusRule, and each says how bad it is, and what it means", () => {
    expect([apiVersion, kind]).toEqual(["monitoring.coreos.com/v1", "PrometheusRule"]);
    expect(new Set(alerts.map(({ alert }) => alert)).size).toBe(alerts.length);
    for (const { labels, annotations, for: duration } of alerts) {
      expect(["critical", "warning", "info"]).toContain(labels.severity);
      expect(duration ?? "1m").toMatch(/^\d+[smhd]$/);
      expect(annotations.summary.length).toBeLessThan(120);
      expect(annotations.description).not.toBe("");
    }
  });

  it.each(alerts.map(({ alert, expr }) => [alert, expr]))("%s asks only for what there is", (_, expr) => {
    const wanted = asked(expr);
    expect(wanted).not.toEqual([]);
    for (const { metric, labels, ranged } of wanted) {
      if (metric === "process_start_time_seconds") continue;
      const known = metricOf(metric);
      expect(known, metric).toBeDefined();
      expect(ranged, `${metric} is asked for its ${ranged ? "growth" : "value"}`).toBe(known!.grows);
      const { labels: own, constant = [] } = known!.metric;
      const has = [...own, ...constant, ...OF_PROMETHEUS];
      expect(labels.filter((label) => !has.includes(label))).toEqual([]);
    }
  });

  it.each(alerts.map(({ alert, expr, annotations }) => [alert, expr, annotations] as const))(
    "%s speaks of no label that its result does not have",
    (_, expr, { summary, description }) => {
      const kept = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, names]) => names!.split(", "));
      const spoken = [...`${summary} ${description}`.matchAll(/\$labels\.(\w+)/g)].map(([, label]) => label!);
      const has = kept.length > 0 ? kept : OF_PROMETHEUS;
      expect(spoken.filter((label) => !has.includes(label))).toEqual([]);
    },
  );

  it.each(["sum(rate(x[5m])", "sum(x]", "summ(x)", "sum by (a (x)", "x{a=}y}"])("would fail for %s", (expr) => {
    expect(() => {
      for (const { metric } of asked(expr)) if (!metricOf(metric)) throw new Error(metric);
    }).toThrow();
  });
});
