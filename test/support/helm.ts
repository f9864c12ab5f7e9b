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
}

/** What `helm template` prints. Rejects with its words. */
export async function renderChart(
  helm: string,
  { release = "kuberay-operator", namespace = "ray", valuesFile, set = [] }: Rendering = {},
): Promise<string> {
  const values = [...(valuesFile ? ["--values", valuesFile] : []), ...set.flatMap((one) => ["--set", one])];
  const args = ["template", release, CHART, "--namespace", namespace, ...values];
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
