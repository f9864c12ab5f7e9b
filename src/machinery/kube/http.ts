/**
 * The transport to a real API server.
 *
 * Requests share one pool of kept connections; each watch has a connection of its own, so that none waits behind one
 * that lives for minutes. A changed certificate makes a new pool; a 401 makes the credentials be fetched anew, once.
 */
import { type Dispatcher, Pool, ProxyAgent } from "undici";
import { type Clock, realClock } from "../clock.ts";
import { describe } from "../logger.ts";
import { type Connection, ConnectionError, type Credentials } from "./connection.ts";
import {
  type KubeRequest,
  type KubeResponse,
  type KubeStream,
  type RequestOptions,
  type Transport,
  TransportError,
} from "./transport.ts";

const CONNECTIONS = 16;
const CONNECT_TIMEOUT = 10_000;
/** Servers, and what stands before them, close idle connections after a minute or more; closing first avoids the race. */
const KEEP_ALIVE = 30_000;
/** Until the status of a watch must be known. */
const STREAM_TIMEOUT = 30_000;

interface HttpOptions {
  readonly clock?: Clock;
  readonly userAgent?: string;
  /** Requests that may be under way at a time; watches are beside. */
  readonly connections?: number;
}

export class HttpTransport implements Transport {
  readonly #connection: Connection;
  readonly #clock: Clock;
  readonly #userAgent: string;
  readonly #connections: number;
  readonly #origin: string;
  readonly #prefix: string;
  #pool: { readonly tls: string; readonly dispatcher: Dispatcher } | undefined;

  /** Throws ConnectionError for a server or proxy that is no URL of a known scheme. */
  constructor(connection: Connection, options: HttpOptions = {}) {
    this.#connection = connection;
    this.#clock = options.clock ?? realClock;
    this.#userAgent = options.userAgent ?? "raykeeper";
    this.#connections = options.connections ?? CONNECTIONS;
    const { origin, pathname } = parseUrl(connection.server, "server");
    this.#origin = origin;
    this.#prefix = pathname.replace(/\/+$/, "");
    if (connection.proxyUrl) parseUrl(connection.proxyUrl, "proxy-url");
  }

  async request(request: KubeRequest, options: RequestOptions = {}): Promise<KubeResponse> {
    const response = await this.#requestOnce(request, options);
    if (response.status !== 401) return response;
    // Refused before anything was done, so that asking again is safe even for a write.
    this.#connection.refresh();
    return this.#requestOnce(request, options);
  }

  async stream(request: KubeRequest, options: { readonly signal?: AbortSignal } = {}): Promise<KubeStream> {
    const stream = await this.#streamOnce(request, options);
    if (stream.status !== 401) return stream;
    this.#connection.refresh();
    return this.#streamOnce(request, options);
  }

  /** Ends what is under way and closes the connections. */
  async close(): Promise<void> {
    await this.#pool?.dispatcher.destroy();
    this.#pool = undefined;
  }

  async #requestOnce(request: KubeRequest, { signal, timeout }: RequestOptions): Promise<KubeResponse> {
    const what = `${request.method} ${request.path}`;
    const credentials = await this.#credentials(what);
    const dispatcher = this.#poolFor(credentials);
    const limit = this.#limit(timeout, signal);
    try {
      const answer = await dispatcher.request({ ...this.#prepared(request, credentials), signal: limit.signal });
      const headers = flat(answer.headers);
      const text = await answer.body.text();
      return { status: answer.statusCode, headers, body: parseBody(text, headers, what) };
    } catch (error) {
      throw this.#broken(what, error, limit.signal);
    } finally {
      limit.end();
    }
  }

  async #streamOnce(request: KubeRequest, { signal }: { readonly signal?: AbortSignal }): Promise<KubeStream> {
    const what = `${request.method} ${request.path}`;
    const credentials = await this.#credentials(what);
    const dispatcher = this.#dispatcher(credentials, 1);
    const limit = this.#limit(STREAM_TIMEOUT, signal);
    try {
      const answer = await dispatcher.request({ ...this.#prepared(request, credentials), signal: limit.signal });
      const { statusCode: status, body } = answer;
      const headers = flat(answer.headers);
      if (status >= 200 && status <= 299) {
        limit.stopClock();
        const close = () => {
          limit.end();
          void dispatcher.destroy();
        };
        return { status, headers, lines: this.#lines(what, body, limit.signal, close) };
      }
      const text = await body.text();
      void dispatcher.destroy();
      limit.end();
      return { status, headers, body: parseBody(text, headers, what), lines: noLines() };
    } catch (error) {
      void dispatcher.destroy();
      limit.end();
      throw this.#broken(what, error, limit.signal);
    }
  }

  async *#lines(
    what: string,
    body: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
    close: () => void,
  ): AsyncGenerator<string> {
    const decoder = new TextDecoder();
    // Parts of a line that has not ended; joined once, since a large object comes in many chunks.
    let parts: string[] = [];
    try {
      for await (const chunk of body) {
        const [first, ...rest] = decoder.decode(chunk, { stream: true }).split("\n");
        parts.push(first!);
        if (rest.length === 0) continue;
        yield parts.join("");
        const last = rest.pop()!;
        yield* rest;
        parts = [last];
      }
      const remainder = parts.join("") + decoder.decode();
      if (remainder) yield remainder;
    } catch (error) {
      throw this.#broken(what, error, signal);
    } finally {
      close();
    }
  }

  async #credentials(what: string): Promise<Credentials> {
    try {
      return await this.#connection.credentials();
    } catch (cause) {
      throw new TransportError(`${what} was not sent: ${describe(cause)}`, { maybeSent: false, cause });
    }
  }

  #prepared(request: KubeRequest, credentials: Credentials): Dispatcher.RequestOptions {
    const query = new URLSearchParams(request.query).toString();
    const body = request.body === undefined ? undefined : JSON.stringify(request.body);
    return {
      origin: this.#origin,
      method: request.method,
      path: `${this.#prefix}${request.path}${query && `?${query}`}`,
      headers: {
        accept: "application/json",
        "user-agent": this.#userAgent,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(credentials.token ? { authorization: `Bearer ${credentials.token}` } : {}),
        ...this.#connection.headers,
        ...request.headers,
      },
      body,
      // Limits are set by signal, on the clock given.
      headersTimeout: 0,
      bodyTimeout: 0,
    };
  }

  #poolFor(credentials: Credentials): Dispatcher {
    const { ca, cert, key } = credentials;
    const tls = JSON.stringify([ca, cert, key]);
    if (this.#pool?.tls !== tls) {
      // What is under way on the old pool ends in peace.
      void this.#pool?.dispatcher.close();
      this.#pool = { tls, dispatcher: this.#dispatcher(credentials, this.#connections) };
    }
    return this.#pool.dispatcher;
  }

  #dispatcher({ ca, cert, key }: Credentials, connections: number): Dispatcher {
    const { proxyUrl, insecureSkipTlsVerify, tlsServerName } = this.#connection;
    const tls = {
      timeout: CONNECT_TIMEOUT,
      rejectUnauthorized: !insecureSkipTlsVerify,
      ...(ca ? { ca } : {}),
      ...(cert ? { cert, key } : {}),
      ...(tlsServerName ? { servername: tlsServerName } : {}),
    };
    const common = { keepAliveTimeout: KEEP_ALIVE, pipelining: 1, allowH2: false };
    try {
      if (proxyUrl) return new ProxyAgent({ uri: proxyUrl, requestTls: tls, connections, ...common });
      return new Pool(this.#origin, { connect: tls, connections, ...common });
    } catch (cause) {
      throw new TransportError(`no connection to ${this.#origin} can be made: ${describe(cause)}`, {
        maybeSent: false,
        cause,
      });
    }
  }

  /** A signal that the caller, or the time, aborts. */
  #limit(timeout: number | undefined, signal: AbortSignal | undefined) {
    const expiry = new AbortController();
    const expire = () => expiry.abort(new Error(`no answer within ${timeout! / 1000} s`));
    const cancel = timeout === undefined ? () => {} : this.#clock.after(timeout, expire);
    return {
      signal: signal ? AbortSignal.any([signal, expiry.signal]) : expiry.signal,
      stopClock: cancel,
      end: cancel,
    };
  }

  #broken(what: string, error: unknown, signal: AbortSignal): TransportError {
    if (error instanceof TransportError) return error;
    const cause = signal.aborted ? signal.reason : error;
    if (cause instanceof TransportError) return cause;
    const code = (error as { code?: unknown } | undefined)?.code;
    const neverSent = !signal.aborted && typeof code === "string" && isBeforeConnection(code);
    // A certificate that the server does not like may have been replaced on disk.
    if (typeof code === "string" && /TLS|SSL|CERT/.test(code)) this.#connection.refresh();
    return new TransportError(`${what}: ${describe(cause)}`, { maybeSent: !neverSent, cause });
  }
}

/** Codes of errors that come before a connection stands, so that no request can have been sent on it. */
function isBeforeConnection(code: string): boolean {
  return (
    ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"].includes(
      code,
    ) ||
    // Our own check of the server's certificate.
    /^(ERR_TLS_CERT|CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_)/.test(code)
  );
}

function parseUrl(text: string, what: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !["http:", "https:"].includes(url.protocol)) {
    throw new ConnectionError(`${what} "${text}" is no http or https URL`);
  }
  return url;
}

function parseBody(text: string, headers: Readonly<Record<string, string>>, what: string): unknown {
  if (!headers["content-type"]?.includes("json")) return text;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new TransportError(`${what}: the answer is no JSON: ${text.slice(0, 100)}`, { maybeSent: true, cause });
  }
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value ?? "")]));
}

async function* noLines(): AsyncGenerator<string> {}
