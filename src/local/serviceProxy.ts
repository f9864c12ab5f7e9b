/**
 * The way from the API server to what stands behind a Service: `services/<name>/proxy`, as kubectl and `raykeeper run`
 * use it to reach a Ray dashboard from outside of the sandbox.
 */
import { request } from "undici";
import type { Service } from "../api/kubernetes.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { services } from "../machinery/kube/resources.ts";
import type { Transport } from "../machinery/kube/transport.ts";
import type { ServiceProxy } from "../simkube/requests.ts";

const TIMEOUT_MS = 30_000;

/** Resolves Services by their cluster names, so it works only where those resolve: in the sandbox. */
export function throughService(transport: Transport, domain: string): ServiceProxy {
  return async ({ namespace, service, port }, { method, path, query, headers = {}, body }) => {
    const { spec } = await new KubeClient(transport).get<Service>(services, namespace, service);
    const found = spec?.ports?.find(
      ({ name, port: number }) => port === "" || port === name || port === String(number),
    );
    if (!found) throw new Error(`Service ${namespace}/${service} has no port ${port}`);
    const target = typeof found.targetPort === "number" ? found.targetPort : found.port;
    const search = query && Object.keys(query).length > 0 ? `?${new URLSearchParams(query)}` : "";
    const answer = await request(`http://${service}.${namespace}.svc.${domain}:${target}${path}${search}`, {
      method,
      headers: {
        accept: headers["accept"] || "*/*",
        // Not `authorization`, which is for the API server.
        ...Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("x-"))),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: TIMEOUT_MS,
    });
    const type = answer.headers["content-type"];
    const text = await answer.body.text();
    return { status: answer.statusCode, headers: { "content-type": String(type ?? "text/plain") }, body: text };
  };
}
