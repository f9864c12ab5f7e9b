/**
 * The operator's two small HTTP servers: health (for the kubelet) and metrics (for Prometheus).
 *
 * May not: know what is measured (metrics.ts) or what healthy means; both are asked per request.
 */
import { createServer, type RequestListener, type Server } from "node:http";

export interface Serving {
  /** The port in use; differs from the one asked for when that was 0. */
  readonly port: number;
  close(): Promise<void>;
}

/** What a path answers. Throwing is a 500 with the message. */
export type Pages = Readonly<Record<string, () => Page | Promise<Page>>>;
export interface Page {
  readonly status?: number;
  readonly type?: string;
  readonly body: string;
}

/**
 * Serves `pages` on an address as KubeRay's flags spell it: `:8080`, `127.0.0.1:8080`, `[::1]:8080`.
 * `0` or the empty string means not at all: undefined. Rejects when the address is taken or cannot be read.
 */
export async function servePages(address: string, pages: Pages): Promise<Serving | undefined> {
  if (address === "" || address === "0") return undefined;
  const { host, port } = parseAddress(address);
  const server = createServer(answer(pages));
  // Idle keep-alive connections of a scraper must not hold up the end of the process.
  server.keepAliveTimeout = 30_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, () => {
      server.off("error", reject);
      resolve();
    });
  });
  return { port: (server.address() as { port: number }).port, close: () => close(server) };
}

/** Splits `host:port`; an absent host means every address. */
export function parseAddress(address: string): { host?: string; port: number } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]*)):(\d{1,5})$/.exec(address) ?? [];
  if (port === undefined || Number(port) > 65_535) {
    throw new Error(`"${address}" is no address to listen on; it should look like :8080 or 127.0.0.1:8080`);
  }
  const host = bracketed ?? plain;
  return host ? { host, port: Number(port) } : { port: Number(port) };
}

function answer(pages: Pages): RequestListener {
  return async (request, response) => {
    const page = pages[request.url?.split("?")[0] ?? ""];
    try {
      const {
        status = 200,
        type = "text/plain; charset=utf-8",
        body,
      } = page ? await page() : { status: 404, body: "not found\n" };
      response.writeHead(status, { "content-type": type });
      response.end(request.method === "HEAD" ? undefined : body);
    } catch (error) {
      response.writeHead(500, { "content-type": "text/plain; charset=utf-8" });
      response.end(`${(error as Error).message}\n`);
    }
  };
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
