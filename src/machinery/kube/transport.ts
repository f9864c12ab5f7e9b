/**
 * The narrow waist between the operator and an API server: one request, one answer, or one stream of lines.
 *
 * Everything above (client, reflector, leader election) is the same whether this is HTTP to a real server (http.ts) or
 * simkube in this process; the simulator replaces this and the clock, nothing else.
 */

export interface KubeRequest {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Absolute path without query, segments already percent-encoded: `/api/v1/namespaces/default/pods/a`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Lower-case names. `accept` and `content-type` matter; authentication is the transport's own business. */
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON value; sent as `application/json` unless `headers` say otherwise. */
  readonly body?: unknown;
}

export interface KubeResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed when the answer is JSON, otherwise the text. */
  readonly body: unknown;
}

export interface KubeStream {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** For a status other than 2xx: the whole body, parsed when it is JSON. */
  readonly body?: unknown;
  /** Lines of the body as they come, without the line end; throws TransportError when the connection breaks. */
  readonly lines: AsyncIterable<string>;
}

export interface RequestOptions {
  readonly signal?: AbortSignal;
  /** Milliseconds until the request is given up with an unknown outcome. */
  readonly timeout?: number;
}

export interface Transport {
  /** Any HTTP status is an answer. Rejects with TransportError when none came. */
  request(request: KubeRequest, options?: RequestOptions): Promise<KubeResponse>;
  /** A long-lived GET (watch, log). Resolves once the status is known. */
  stream(request: KubeRequest, options?: { readonly signal?: AbortSignal }): Promise<KubeStream>;
}

/** No answer came. */
export class TransportError extends Error {
  override readonly name = "TransportError";
  /** False only when the request surely never reached the server (refused, name not found). A write is otherwise of unknown outcome. */
  readonly maybeSent: boolean;

  constructor(message: string, options: { maybeSent: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.maybeSent = options.maybeSent;
  }
}
