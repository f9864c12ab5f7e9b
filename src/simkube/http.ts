/**
 * The door for clients outside this process: HTTP over a loopback port or a Unix socket, as kubectl speaks it.
 *
 * Answers: bytes for requests; what they mean is requests.ts's business.
 * May not: be put on a public address. There is no TLS; the token, where one is set, keeps out other users of the same
 * machine, nobody else.
 */
import { timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isMap, isPair, isScalar, parse, parseDocument } from "yaml";
import type { KubeRequest } from "../machinery/kube/transport.ts";
import { ApiError, badRequest } from "./errors.ts";
import { fromProtobuf } from "./protobuf.ts";
import type { Streamed } from "./requests.ts";
import type { SimKube } from "./simkube.ts";

export interface ServeOptions {
  /** 127.0.0.1 when absent. */
  readonly host?: string;
  /** Any free port when absent or 0. */
  readonly port?: number;
  /** Instead of host and port. */
  readonly socketPath?: string;
  /** Bearer token that every request but those for health must carry. */
  readonly token?: string;
  /** Bytes; larger bodies are refused. 3 MiB when absent, as on a real API server. */
  readonly bodyLimit?: number;
}

export interface Served {
  /** `http://127.0.0.1:43127`, or the socket's path. */
  readonly address: string;
  readonly port?: number;
  /** Ends open watches in good order, then the server. */
  close(): Promise<void>;
}

const BODY_LIMIT = 3 * 1024 * 1024;
/** What is meant for whoever stands behind a Service, as Ray's own authorization is. */
const forOthers = (headers: IncomingHttpHeaders): Record<string, string> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => (name.startsWith("x-") ? [[name, String(value)]] : [])),
  );

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** Serves a SimKube until it is closed. Rejects when the address cannot be had. */
export async function serve(simkube: SimKube, options: ServeOptions = {}): Promise<Served> {
  const server = createServer((request, response) => {
    handle(simkube, options, request, response).catch((error: unknown) => response.destroy(error as Error));
  });
  // A watch may be quiet for as long as it likes.
  server.requestTimeout = 0;
  const { host = "127.0.0.1", port = 0, socketPath } = options;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(socketPath ? { path: socketPath } : { host, port }, resolve);
  });
  const bound = server.address() as AddressInfo | string | null;
  const at = typeof bound === "object" ? bound : undefined;
  return {
    address: at ? `http://${at.family === "IPv6" ? `[${at.address}]` : at.address}:${at.port}` : String(bound),
    port: at?.port,
    async close() {
      simkube.endWatches("ended");
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeIdleConnections();
      // What still talks now is a followed log, or a client that does not let go.
      setImmediate(() => server.closeAllConnections());
      await closed;
    },
  };
}

async function handle(
  simkube: SimKube,
  options: ServeOptions,
  incoming: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  let streamed: Streamed;
  try {
    streamed = await simkube.respond(await read(incoming, options), gone.signal);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { status } = error;
    streamed = {
      kind: "answer",
      response: { status: status.code!, headers: { "content-type": "application/json" }, body: status },
    };
  }
  if (streamed.kind === "answer") {
    const { status, headers, body } = streamed.response;
    const text = typeof body === "string" ? body : `${JSON.stringify(body)}\n`;
    // A body that was refused unread must not be taken for the next request.
    const last = incoming.complete ? {} : { connection: "close" };
    response.writeHead(status, { ...headers, ...last, "content-length": Buffer.byteLength(text) }).end(text);
    return;
  }
  response.writeHead(200, streamed.headers);
  response.flushHeaders();
  const pieces = streamed.kind === "log" ? streamed.pieces : withLineEnds(streamed.watch.lines);
  try {
    for await (const piece of pieces) {
      if (gone.signal.aborted) break;
      if (!response.write(piece)) await drained(response, gone.signal);
    }
    response.end();
  } catch {
    // The status is out already; a broken connection is all that can still tell of a failure.
    response.destroy();
  }
}

async function* withLineEnds(lines: AsyncIterable<string>): AsyncGenerator<string> {
  for await (const line of lines) yield `${line}\n`;
}

function drained(response: ServerResponse, gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (gone.aborted) return resolve();
    response.once("drain", resolve);
    gone.addEventListener("abort", () => resolve(), { once: true });
  });
}

async function read(incoming: IncomingMessage, options: ServeOptions): Promise<KubeRequest> {
  const url = new URL(incoming.url ?? "/", "http://localhost");
  const healthy = /^\/(healthz|readyz|livez)/.test(url.pathname);
  if (options.token && !healthy && !authorised(incoming.headers.authorization, options.token)) {
    throw new ApiError(401, "Unauthorized", "Unauthorized");
  }
  const method = METHODS.find((known) => known === incoming.method);
  if (!method)
    throw new ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource");
  const bytes = await readBody(incoming, options.bodyLimit ?? BODY_LIMIT);
  const type = incoming.headers["content-type"] ?? "";
  const query = Object.fromEntries(url.searchParams);
  return {
    method,
    path: url.pathname,
    query,
    headers: { ...forOthers(incoming.headers), accept: incoming.headers.accept ?? "", "content-type": type },
    body: bytes.length > 0 ? parseBody(bytes, type, method, query["fieldValidation"] === "Strict") : undefined,
  };
}

function authorised(header: string | undefined, token: string): boolean {
  const [given, wanted] = [Buffer.from(header ?? ""), Buffer.from(`Bearer ${token}`)];
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

async function readBody(incoming: IncomingMessage, limit: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of incoming as AsyncIterable<Buffer>) {
    size += piece.length;
    if (size > limit) {
      throw new ApiError(413, "RequestEntityTooLarge", `Request entity too large: limit is ${limit}`);
    }
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function parseBody(bytes: Buffer, type: string, method: string, strict: boolean): unknown {
  // Refused later by its type, with a message that says what to do instead.
  if (type.startsWith("application/apply-patch")) return undefined;
  if (type.startsWith("application/vnd.kubernetes.protobuf")) return fromProtobuf(bytes);
  const yaml = type.includes("yaml");
  const text = bytes.toString("utf8");
  let body: unknown;
  try {
    body = yaml ? parse(text, { uniqueKeys: false }) : JSON.parse(text);
  } catch (error) {
    throw badRequest(`error decoding the body: ${(error as Error).message}`);
  }
  if (strict && (method === "POST" || method === "PUT")) {
    const twice = duplicates(text);
    if (twice.length > 0) {
      throw badRequest(
        `strict decoding error: ${twice.map((path) => `duplicate field ${JSON.stringify(path)}`).join(", ")}`,
      );
    }
  }
  return body;
}

/** The paths of fields that a text names twice. JSON is read as the YAML that it is, since its own parser cannot tell. */
export function duplicates(text: string): readonly string[] {
  const found: string[] = [];
  const look = (node: unknown, path: string): void => {
    if (isMap(node)) {
      const seen = new Set<string>();
      for (const pair of node.items) {
        if (!isPair(pair) || !isScalar(pair.key)) continue;
        const field = path ? `${path}.${String(pair.key.value)}` : String(pair.key.value);
        if (seen.has(field)) found.push(field);
        seen.add(field);
        look(pair.value, field);
      }
    } else if (typeof node === "object" && node !== null && "items" in node && Array.isArray(node.items)) {
      for (const [index, item] of node.items.entries()) look(item, `${path}[${index}]`);
    }
  };
  look(parseDocument(text, { uniqueKeys: false }).contents, "");
  return found;
}
