/**
 * RayTransport through the API server (`--use-kubernetes-proxy`), for an operator that cannot reach Pods and Services:
 * it runs outside the cluster, or a mesh stands between.
 *
 * The dashboard's address is that of the head Service, `<service>.<namespace>.svc...:<port>`; the proxy is asked for its
 * port named `dashboard`.
 */
import { type Transport, TransportError } from "../machinery/kube/transport.ts";
import { type RayRequest, type RayResponse, type RayTransport, RayTransportError } from "./transport.ts";

export function proxyRayTransport(kubernetes: Transport): RayTransport {
  return {
    async request({ method, dashboard, path, headers, body, timeout }: RayRequest): Promise<RayResponse> {
      const service = serviceOf(dashboard);
      const [pathname = "", query] = path.split("?");
      const request = {
        method,
        path: `/api/v1/namespaces/${service.namespace}/services/${service.name}:dashboard/proxy${pathname}`,
        query: query ? Object.fromEntries(new URLSearchParams(query)) : undefined,
        headers: { accept: "*/*", ...headers },
        // The transport spells JSON itself, so it gets the value; what was said byte for byte inside strings stays so.
        body: body === undefined ? undefined : JSON.parse(body),
      };
      try {
        const answer = await kubernetes.request(request, { timeout });
        const text = typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body ?? "");
        return { status: answer.status, body: text };
      } catch (error) {
        throw new RayTransportError((error as Error).message, {
          maybeSent: error instanceof TransportError ? error.maybeSent : true,
          cause: error,
        });
      }
    },
  };
}

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

function serviceOf(dashboard: string): { name: string; namespace: string } {
  const [name = "", namespace = "", kind] = dashboard.replace(/:\d+$/, "").split(".");
  // The operator may ask for any path of any namespace, so a label that is none must not become a piece of a path.
  if (!LABEL.test(name) || !LABEL.test(namespace) || kind !== "svc") {
    throw new RayTransportError(
      `"${dashboard}" does not name a Service, so it cannot be reached through the API server`,
      {
        maybeSent: false,
      },
    );
  }
  return { name, namespace };
}
