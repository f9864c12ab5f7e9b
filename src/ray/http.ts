/**
 * The real RayTransport: HTTP straight to a dashboard's `host:port`.
 *
 * Knows: connections, time-outs, how much of a body is read. May not: know what is asked.
 */
import { Agent } from "undici";
import { type RayRequest, type RayResponse, type RayTransport, RayTransportError } from "./transport.ts";

/** A job object is a few kilobytes; the list of a head that ran thousands of jobs is megabytes. More than this is no answer. */
const BODY_LIMIT = 32 * 1024 * 1024;

/** Errors after which the request surely never reached Ray: no connection was ever made. */
const NOT_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Close it with `close()` when the operator ends. */
export function httpRayTransport(): RayTransport & { close(): Promise<void> } {
  // Few connections to each dashboard: asking is serial there. Kept shorter than aiohttp's 75 s, so that a request never
  // rides on a connection that the other side is about to close.
  const agent = new Agent({ connections: 4, pipelining: 1, keepAliveTimeout: 30_000, connect: { timeout: 10_000 } });
  return {
    async request({ method, dashboard, path, headers, body, timeout }: RayRequest): Promise<RayResponse> {
      const signal = AbortSignal.timeout(timeout);
      try {
        const answer = await agent.request({
          origin: `http://${dashboard}`,
          path,
          method,
          headers,
          body,
          signal,
          headersTimeout: timeout,
          bodyTimeout: timeout,
        });
        return { status: answer.statusCode, body: await readBounded(answer.body) };
      } catch (error) {
        if (error instanceof RayTransportError) throw error;
        throw new RayTransportError(describe(error, timeout), {
          maybeSent: !NOT_SENT.has(codeOf(error)),
          cause: error,
        });
      }
    },
    close: () => agent.destroy(),
  };
}

async function readBounded(stream: AsyncIterable<Uint8Array> & { destroy(): unknown }): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of stream) {
    size += chunk.byteLength;
    if (size > BODY_LIMIT) {
      stream.destroy();
      throw new RayTransportError(`the answer is larger than ${BODY_LIMIT / 1024 / 1024} MiB`, { maybeSent: true });
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

const codeOf = (error: unknown): string =>
  (error as { code?: string }).code ?? (error as { cause?: { code?: string } }).cause?.code ?? "";

function describe(error: unknown, timeout: number): string {
  if ((error as Error).name === "TimeoutError") return `no answer within ${timeout / 1000} s`;
  // Node tries each address of a name and gathers the errors; the first says enough.
  const first = error instanceof AggregateError ? error.errors[0] : error;
  return (first as Error).message || codeOf(first) || String(first);
}
