/**
 * The operator's own identity on the tests' API server: a ServiceAccount with exactly the rights that an installation gives
 * it, and what the server's audit log says it did with them.
 */
import { readFileSync, statSync, writeFileSync } from "node:fs";
import type { KubeObject } from "../../src/api/object.ts";
import { HttpTransport } from "../../src/machinery/kube/http.ts";
import { loadKubeconfig } from "../../src/machinery/kube/kubeconfig.ts";
import { objectsOf } from "../support/helm.ts";

const RBAC = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
/** Seconds; longer than any run of the tests. */
const VALID = 86_400;

/** Creates what of these objects is about rights, and no more; what is there already stays. */
export async function grant(kubeconfig: string, objects: readonly KubeObject[]): Promise<void> {
  const transport = new HttpTransport(loadKubeconfig(kubeconfig));
  for (const object of objects) {
    if (!RBAC.includes(object.kind ?? "")) continue;
    const { namespace } = object.metadata;
    const base = object.apiVersion === "v1" ? "/api/v1" : `/apis/${object.apiVersion}`;
    const path = `${base}${namespace ? `/namespaces/${namespace}` : ""}/${object.kind!.toLowerCase()}s`;
    const { status, body } = await transport.request({ method: "POST", path, body: object });
    if (status !== 201 && status !== 409) throw new Error(`${object.kind}: ${JSON.stringify(body)}`);
  }
  await transport.close();
}

/** What whoever installs the plain manifest grants: the rights of the tests' operators. */
export async function grantWhatTheManifestGrants(kubeconfig: string): Promise<void> {
  const manifest = readFileSync(new URL("../../deploy/raykeeper.yaml", import.meta.url), "utf8");
  await grant(kubeconfig, objectsOf(manifest));
}

/** Writes a kubeconfig with a token of the ServiceAccount, whose namespace is that of the Pod it would be mounted into. */
export async function actAs(kubeconfig: string, namespace: string, name: string, file: string): Promise<string> {
  const transport = new HttpTransport(loadKubeconfig(kubeconfig));
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: VALID } };
  const answer = await transport.request({ method: "POST", path, body });
  await transport.close();
  const { token } = (answer.body as { status?: { token?: string } }).status ?? {};
  if (!token) throw new Error(`no token for ${namespace}/${name}: ${JSON.stringify(answer.body)}`);
  const config = JSON.parse(readFileSync(kubeconfig, "utf8"));
  config.users[0].user = { token };
  config.contexts[0].context.namespace = namespace;
  writeFileSync(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}

export interface Request {
  readonly user: string;
  readonly allowed: boolean;
  readonly verb: string;
  readonly group: string;
  /** With its subresource; the path of what is no resource. */
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
}

/** How far the log has got: where a later reading begins. */
export const endOf = (auditLog: string): number => statSync(auditLog).size;

/** What ServiceAccounts asked of the server, in order. */
export function requestsIn(auditLog: string, from = 0): Request[] {
  const lines = readFileSync(auditLog).subarray(from).toString("utf8").split("\n");
  return lines
    .filter((line) => line !== "")
    .map((line) => {
      const { user, verb, objectRef, requestURI, annotations } = JSON.parse(line) as AuditEvent;
      const { apiGroup = "", resource, subresource, namespace = "", name = "" } = objectRef ?? {};
      return {
        user: user.username,
        allowed: annotations?.["authorization.k8s.io/decision"] === "allow",
        verb,
        group: apiGroup,
        resource:
          resource === undefined ? requestURI.split("?")[0]! : [resource, subresource].filter(Boolean).join("/"),
        namespace,
        name,
      };
    });
}

interface AuditEvent {
  readonly user: { readonly username: string };
  readonly verb: string;
  readonly requestURI: string;
  readonly objectRef?: {
    readonly apiGroup?: string;
    readonly resource?: string;
    readonly subresource?: string;
    readonly namespace?: string;
    readonly name?: string;
  };
  readonly annotations?: Readonly<Record<string, string>>;
}

/** What was refused, each once, in words. */
export const denied = (requests: readonly Request[]): string[] => [
  ...new Set(
    requests
      .filter(({ allowed }) => !allowed)
      .map(({ user, verb, group, resource, namespace }) => `${user}: ${verb} ${group}/${resource} in "${namespace}"`),
  ),
];
