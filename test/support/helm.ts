/** The chart, rendered by Helm itself, and kustomize's bases, rendered by kubectl. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import type { KubeObject } from "../../src/api/object.ts";

const path = (relative: string) => fileURLToPath(new URL(`../../${relative}`, import.meta.url));
export const CHART = path("deploy/helm/raykeeper");

export interface Rendering {
  readonly release?: string;
  readonly namespace?: string;
  /** Of the chart. */
  readonly valuesFile?: string;
  readonly set?: readonly string[];
  readonly setJson?: readonly string[];
}

/** What `helm template` prints. Rejects with its words. */
export const renderChart = (helm: string, rendering?: Rendering): Promise<string> => run(helm, ["template"], rendering);

/** What Helm tells who installs, as `helm template` does not; it asks the API server for its version. Nothing is installed. */
export async function renderNotes(helm: string, kubeconfig: string, rendering?: Rendering): Promise<string> {
  const printed = await run(helm, ["install", "--dry-run=client", "--kubeconfig", kubeconfig], rendering);
  return printed.slice(printed.indexOf("\nNOTES:\n"));
}

async function run(
  helm: string,
  command: readonly string[],
  { release = "kuberay-operator", namespace = "ray", valuesFile, set = [], setJson = [] }: Rendering = {},
): Promise<string> {
  const values = [
    ...(valuesFile ? ["--values", valuesFile] : []),
    ...set.flatMap((one) => ["--set", one]),
    ...setJson.flatMap((one) => ["--set-json", one]),
  ];
  const args = [...command, release, CHART, "--namespace", namespace, ...values];
  const { stdout, stderr } = await promisify(execFile)(join(helm, "helm"), args, { maxBuffer: 1 << 26 });
  if (stderr !== "") throw new Error(stderr);
  return stdout;
}

/** What `kubectl kustomize` prints of a folder below deploy/kustomize. */
export async function renderKustomize(programs: string, base: string): Promise<string> {
  const args = ["kustomize", path(`deploy/kustomize/${base}`)];
  return (await promisify(execFile)(join(programs, "kubectl"), args, { maxBuffer: 1 << 26 })).stdout;
}

export function objectsOf(text: string): KubeObject[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as KubeObject | null)
    .filter((object) => object !== null);
}
