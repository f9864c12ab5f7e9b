/**
 * The real RayTransport: HTTP straight to a dashboard's `host:port`.
 *
 * Knows: connections, time-outs, how much of a body is read. May not: know what is asked.
 */
import { Agent } from "undici";
import { type RayRequest, type RayResponse, type RayTransport, RayTransportError } from "./transport.ts";

const MiB = 1024 * 1024;
/** The list of a head that ran thousands of jobs is megabytes. More than this is no answer. */
const BODY_LIMIT = 32 * MiB;
/** A job object is a few kilobytes: what every answer may have. */
const FREE = MiB;
/**
 * What goes beyond, of all the answers that are being read at a time. A dashboard is run by whoever made the cluster; dozens
 * of them that answer without end must not take the memory of all.
 */
const ALLOWANCE = 64 * MiB;

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
  const large = new Allowance();
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
        return { status: answer.statusCode, body: await large.read(answer.body) };
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

/** Reads bodies, each to its limit, all together to theirs. */
class Allowance {
  #left = ALLOWANCE;

  async read(stream: AsyncIterable<Uint8Array> & { destroy(): unknown }): Promise<string> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    let taken = 0;
    const refuse = (why: string) => {
      stream.destroy();
      return new RayTransportError(why, { maybeSent: true });
    };
    try {
      for await (const chunk of stream) {
        size += chunk.byteLength;
        if (size > BODY_LIMIT) throw refuse(`the answer is larger than ${BODY_LIMIT / MiB} MiB`);
        const more = Math.max(0, size - FREE) - taken;
        if (more > this.#left)
          throw refuse("too many dashboards answer at length at the same time; this one is asked again");
        taken += more;
        this.#left -= more;
        chunks.push(chunk);
      }
    } finally {
      this.#left += taken;
    }
    return Buffer.concat(chunks).toString("utf8");
  }
}

const codeOf = (error: unknown): string =>
  (error as { code?: string }).code ?? (error as { cause?: { code?: string } }).cause?.code ?? "";

function describe(error: unknown, timeout: number): string {
  if ((error as Error).name === "TimeoutError") return `no answer within ${timeout / 1000} s`;
  // Node tries each address of a name and gathers the errors; the first says enough.
  const first = error instanceof AggregateError ? error.errors[0] : error;
  return (first as Error).message || codeOf(first) || String(first);
}
