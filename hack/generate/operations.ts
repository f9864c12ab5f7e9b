/**
 * The tables of docs/operations.md, from the tables that the operator goes by. The rest of the page is written by hand; a
 * table stands between `<!-- <name>: generated -->` and `<!-- end -->`.
 */
import { readFileSync } from "node:fs";
import { GATES } from "../../src/config/gates.ts";
import { options } from "../../src/config/options.ts";
import { VARIABLES } from "../../src/config/variables.ts";
import type { Catalogue, Metric } from "../../src/machinery/metrics.ts";
import { MACHINERY_METRICS } from "../../src/machinery/metrics.ts";
import { RAY_METRICS } from "../../src/serve/catalogue.ts";

const PAGE = "docs/operations.md";

const code = (text: string | undefined): string => (text ? `\`${text}\`` : "");
const table = (head: readonly string[], rows: readonly (readonly string[])[]): string =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");

const shown = (value: unknown): string =>
  value === undefined || value === "" || typeof value === "object" ? "" : code(String(value));

function configuration(): string {
  const rows = options.map(([, { flag, field, default: standard, what, refused }]) => [
    code(flag && `--${flag}`),
    code(field),
    shown(standard),
    refused ? `${what}. **Refused**: ${refused}` : what,
  ]);
  return table(["flag", "field of the file", "default", ""], rows);
}

function variables(): string {
  const rows = Object.entries(VARIABLES).map(([name, { default: standard, what, refused, noEffect }]) => [
    code(name),
    code(standard),
    refused
      ? `${what}. Any other value is **refused**: ${refused}`
      : noEffect
        ? `${what}. No effect: ${noEffect}`
        : what,
  ]);
  return table(["variable", "default", ""], rows);
}

function gates(): string {
  const all: readonly [string, { on: boolean; what: string; refused?: string; noEffect?: string }][] =
    Object.entries(GATES);
  const rows = all.map(([name, { on, what, refused, noEffect }]) => [
    code(name),
    on ? "on" : "off",
    refused
      ? `${what}. ${on ? "Off" : "On"} is **refused**: ${refused}`
      : noEffect
        ? `${what}. No effect: ${noEffect}`
        : what,
  ]);
  return table(["gate", "default", ""], rows);
}

function metrics(catalogue: Catalogue): string {
  const rows = Object.entries<Metric>(catalogue).map(([name, { type, labels, constant = [], help }]) => [
    code(name),
    type,
    [...labels, ...constant].map(code).join(", "),
    help,
  ]);
  return table(["metric", "type", "labels", ""], rows);
}

const TABLES: Readonly<Record<string, () => string>> = {
  configuration,
  variables,
  gates,
  "metrics of Ray": () => metrics(RAY_METRICS),
  "metrics of the machinery": () => metrics(MACHINERY_METRICS),
};

/** The page as it should be. Throws when it has no place for one of the tables. */
export function operationsPage(): [path: string, content: string] {
  let page = readFileSync(new URL(`../../${PAGE}`, import.meta.url), "utf8");
  for (const [name, make] of Object.entries(TABLES)) {
    const begin = `<!-- ${name}: generated -->\n`;
    const from = page.indexOf(begin);
    const to = page.indexOf("\n<!-- end -->", from);
    if (from < 0 || to < 0) throw new Error(`${PAGE} has no place for the table "${name}"`);
    page = `${page.slice(0, from + begin.length)}${make()}${page.slice(to)}`;
  }
  return [PAGE, page];
}
