/**
 * The narrow waist between the operator and Ray's dashboards: one request, one answer.
 *
 * Everything above (dashboard.ts, poller.ts, commands.ts) is the same whether this is HTTP to a dashboard (http.ts), a
 * request through the API server's proxy (proxy.ts), or a fake Ray in a test.
 */
import type { SecretRef } from "../domain/rayjob/ray.ts";

export interface RayRequest {
  readonly method: "GET" | "POST" | "DELETE";
  /** `host:port` of the dashboard, without scheme. */
  readonly dashboard: string;
  /** Absolute path, segments already percent-encoded; may carry a query. */
  readonly path: string;
  /** Whose token goes along; tokens.ts puts it into the headers. */
  readonly token?: SecretRef;
  /** Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The body as it goes out. */
  readonly body?: string;
  /** Milliseconds, for connecting, headers and body together; after them the outcome is unknown. */
  readonly timeout: number;
}

export interface RayResponse {
  readonly status: number;
  readonly body: string;
  /** What is known about a refusal beyond Ray's own words: a sentence that tells what to do. */
  readonly remedy?: string;
}

export interface RayTransport {
  /** Any HTTP status is an answer. Rejects with RayTransportError when none came. Redirects are not followed. */
  request(request: RayRequest): Promise<RayResponse>;
}

/** No answer came, or one that cannot be used (too large, cut off). */
export class RayTransportError extends Error {
  override readonly name = "RayTransportError";
  /** False only when the request surely never reached Ray (refused, name not found). */
  readonly maybeSent: boolean;

  constructor(message: string, options: { maybeSent: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.maybeSent = options.maybeSent;
  }
}
