/**
 * Name resolution without a name server: the lines of /etc/hosts for all Services of the cluster.
 *
 * There is no proxy either: a Service's name leads to its Pods directly, so its ports are the Pods' (`targetPort` is
 * not honoured), and a Service with several Pods leads to the first.
 */
import type { EndpointSlice } from "../../api/kubernetes.ts";

export interface Naming {
  /** Whose short names (`service`, without namespace) resolve; absent: nobody's. */
  readonly namespace?: string;
  /** The cluster's domain: `cluster.local`. */
  readonly domain: string;
}

/** Lines for all endpoints that a Service publishes, sorted; a Service without any has no line, like a name that does not resolve. */
export function serviceLines(slices: readonly EndpointSlice[], { namespace, domain }: Naming): string[] {
  const lines = slices.flatMap((slice) => {
    const service = slice.metadata.labels?.["kubernetes.io/service-name"];
    const home = slice.metadata.namespace ?? "";
    if (!service) return [];
    const names = [`${service}.${home}.svc.${domain}`, `${service}.${home}.svc`, `${service}.${home}`];
    if (home === namespace) names.push(service);
    return (slice.endpoints ?? [])
      .filter((endpoint) => endpoint.conditions?.ready !== false)
      .flatMap((endpoint) => endpoint.addresses.slice(0, 1))
      .map((address) => `${address}\t${names.join(" ")}`);
  });
  return [...new Set(lines)].sort();
}

/** The text of a hosts file. */
export function hostsFile(own: readonly string[], services: readonly string[]): string {
  return ["127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback", ...own, ...services, ""].join("\n");
}
