/** Starts the one control plane that all integration tests share, with our CRDs, and takes it down after the last. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import type { CustomResourceDefinition } from "../../src/api/kubernetes.ts";
import { KubeClient } from "../../src/machinery/kube/client.ts";
import { HttpTransport } from "../../src/machinery/kube/http.ts";
import { loadKubeconfig } from "../../src/machinery/kube/kubeconfig.ts";
import { customResourceDefinitions as definitions, resourcePath } from "../../src/machinery/kube/resources.ts";
import { buildPrograms, type ControlPlane, startControlPlane } from "./controlPlane.ts";
import { actAs, grantWhatTheManifestGrants } from "./identity.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** Of the control plane; whoever has it may do everything. */
    controlPlane: string;
    /** Of the operator: it may do what the plain manifest grants it. */
    operator: string;
    /** What ServiceAccounts asked of it; for identity.ts to read. */
    auditLog: string;
    /** The folder of its programs; kubectl is among them. */
    programs: string;
    /** The folder that has helm; empty where it cannot be built. */
    helm: string;
    /** What the API server warned of when it was given our CRDs. */
    crdWarnings: string[];
  }
}

interface Project {
  provide(key: "controlPlane" | "operator" | "auditLog" | "programs" | "helm", value: string): void;
  provide(key: "crdWarnings", value: string[]): void;
}

export default async function setup(project: Project): Promise<() => Promise<void>> {
  const controlPlane = await startControlPlane();
  try {
    project.provide("crdWarnings", await install(controlPlane.kubeconfig));
    project.provide("operator", await identityOfTheManifest(controlPlane));
  } catch (error) {
    await controlPlane.close();
    throw error;
  }
  project.provide("controlPlane", controlPlane.kubeconfig);
  project.provide("auditLog", controlPlane.auditLog);
  project.provide("programs", controlPlane.programs);
  project.provide("helm", helmIfPossible());
  return () => controlPlane.close();
}

/** Creates the CRDs under deploy/crds, waits until they are served, and answers with the warnings. */
async function install(kubeconfig: string): Promise<string[]> {
  const transport = new HttpTransport(loadKubeconfig(kubeconfig));
  const client = new KubeClient(transport);
  const folder = new URL("../../deploy/crds/", import.meta.url);
  const warnings: string[] = [];
  const waiting = new Set<string>();
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".yaml"))) {
    const body = parse(readFileSync(new URL(file, folder), "utf8")) as CustomResourceDefinition;
    const answer = await transport.request({ method: "POST", path: resourcePath(definitions), body });
    if (answer.status !== 201) throw new Error(`${file} was refused: ${JSON.stringify(answer.body)}`);
    if (answer.headers["warning"] !== undefined) warnings.push(`${file}: ${answer.headers["warning"]}`);
    waiting.add(body.metadata.name!);
  }
  const signal = AbortSignal.timeout(600_000);
  for await (const { type, object } of await client.watch<CustomResourceDefinition>(definitions, { signal })) {
    if (type === "BOOKMARK" || type === "DELETED") continue;
    const established = object.status?.conditions?.find((condition) => condition.type === "Established");
    if (established?.status === "True") waiting.delete(object.metadata.name);
    if (waiting.size === 0) break;
  }
  await transport.close();
  return warnings;
}

async function identityOfTheManifest({ kubeconfig, folder }: ControlPlane): Promise<string> {
  await grantWhatTheManifestGrants(kubeconfig);
  return actAs(kubeconfig, "default", "kuberay-operator", join(folder, "operator.kubeconfig"));
}

/** A control plane may be given (KUBEBUILDER_ASSETS) where there is no Go; Helm is always built. Why not, it says itself. */
function helmIfPossible(): string {
  try {
    return buildPrograms("helm");
  } catch {
    return "";
  }
}
