/**
 * The validating webhook: HTTPS for the API server, which asks before it writes a RayJob or RayCluster.
 *
 * Served by every replica, not by the leader alone: an answer needs nothing but the object and the settings.
 * Fails closed: what cannot be answered is an error, and the API server then refuses the write.
 * May not: know a rule (domain/admission.ts), nor where its certificate comes from (keeper.ts, files.ts).
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server } from "node:https";
import type { Socket } from "node:net";
import type { Settings } from "../domain/settings.ts";
import { type Clock, sleep } from "../machinery/clock.ts";
import { describe, type Logger } from "../machinery/logger.ts";
import type { Certificate } from "../machinery/x509.ts";
import type { OperatorMetrics } from "../serve/catalogue.ts";
import type { Check } from "../serve/health.ts";
import { parseAddress } from "../serve/http.ts";
import { type AdmissionRequest, answer, KINDS } from "./review.ts";

export interface WebhookOptions {
  /** `:9443`. */
  readonly address: string;
  readonly certificates: { keep(show: (certificate: Certificate) => void, signal: AbortSignal): Promise<void> };
  readonly settings: Settings;
  /** Empty: all. What is elsewhere is another operator's. */
  readonly watchNamespaces: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Pick<OperatorMetrics, "count" | "observe" | "gauge">;
}

export interface Webhook {
  /** Whether it has a certificate and listens. */
  readonly check: Check;
  /** Resolves with the port when it listens; rejects when it cannot. */
  readonly listening: Promise<number>;
  /**
   * Ends it. For `linger` milliseconds it goes on answering: until every API server has heard that this replica leaves,
   * some still ask it. Requests under way are answered in any case, if they come to their end soon.
   */
  close(linger?: number): Promise<void>;
}

/** In which requests under way are answered at the end; as long as the API server waits for an answer (configuration.ts). */
const LAST_ANSWERS = 10_000;
/**
 * Longer than the 90 s for which the API server keeps an idle connection: were it closed here, a question might be on its
 * way, and lost.
 */
const KEEP_ALIVE = 120_000;
/** An object may have 3 MiB on its way to the API server, and comes here as it is and as it was. */
const MOST_BYTES = 8 * 1024 * 1024;

export function serveWebhook(options: WebhookOptions): Webhook {
  const { certificates, clock, log } = options;
  const ending = new AbortController();
  const { promise: listening, resolve, reject } = Promise.withResolvers<number>();
  // Whoever does not ask need not hear.
  listening.catch(() => {});
  let server: Server | undefined;
  let leaving = false;
  /** All of them: the server itself knows only those that have asked. */
  const connections = new Set<Socket>();
  const underWay: Record<string, number> = {};
  const show = ({ certificate: cert, key }: Certificate) => {
    if (leaving) return;
    if (server) {
      server.setSecureContext({ cert, key, minVersion: "TLSv1.2" });
      return;
    }
    server = createServer({ cert, key, minVersion: "TLSv1.2" }, (request, response) =>
      respond(options, request, response, () => leaving, underWay),
    );
    server.keepAliveTimeout = KEEP_ALIVE;
    server.on("connection", (connection: Socket) => {
      connections.add(connection);
      connection.once("close", () => connections.delete(connection));
    });
    server.on("error", (error) => {
      log.error({ error: describe(error), address: options.address }, "the webhook cannot listen");
      reject(error);
    });
    server.listen(parseAddress(options.address), () => {
      const { port } = server!.address() as { port: number };
      log.info({ port }, "the webhook listens");
      resolve(port);
    });
  };
  const keeping = certificates.keep(show, ending.signal);
  return {
    get check() {
      const ok = server?.listening === true;
      return { name: "webhook", ok, note: ok ? "listens" : "has no certificate yet, or cannot listen" };
    },
    listening,
    async close(linger = 0) {
      leaving = true;
      // What is shown lives longer than this, so its keeping ends meanwhile.
      ending.abort();
      if (server?.listening && linger > 0) await sleep(clock, linger);
      await Promise.all([keeping, server?.listening && lastAnswers(server)]);
    },
  };

  async function lastAnswers(open: Server): Promise<void> {
    const closed = new Promise<void>((done) => open.close(() => done()));
    open.closeIdleConnections();
    // Whoever has connected and asks nothing would hold up the end of the process for ever.
    const answered = new AbortController();
    await Promise.race([closed, sleep(clock, LAST_ANSWERS, answered.signal).catch(() => {})]);
    answered.abort();
    for (const connection of connections) connection.destroy();
    await closed;
  }
}

async function respond(
  options: WebhookOptions,
  request: IncomingMessage,
  response: ServerResponse,
  isLeaving: () => boolean,
  underWay: Record<string, number>,
): Promise<void> {
  const { clock, metrics, log } = options;
  const webhook = request.url?.split("?")[0] ?? "";
  const kind = KINDS[webhook];
  if (!kind) return end(response, 404, { message: "there is no such webhook" }, isLeaving());
  const startedAt = clock.now();
  const inFlight = (more: 1 | -1) => {
    underWay[webhook] = (underWay[webhook] ?? 0) + more;
    metrics.gauge("controller_runtime_webhook_requests_in_flight", { webhook }, underWay[webhook]);
  };
  inFlight(1);
  let code = 200;
  try {
    const review = await readReview(request);
    const { namespace = "" } = review.request;
    const { watchNamespaces, settings } = options;
    const ours = watchNamespaces.length === 0 || watchNamespaces.includes(namespace);
    const verdict = ours ? answer(kind, review.request, settings) : { uid: review.request.uid, allowed: true };
    if (!verdict.allowed) {
      log.info({ kind: kind.kind, namespace, refused: verdict.status?.message }, "the webhook refused a write");
    }
    end(response, 200, { apiVersion: review.apiVersion, kind: "AdmissionReview", response: verdict }, isLeaving());
  } catch (error) {
    code = error instanceof Unreadable ? error.code : 500;
    if (code === 500) log.error({ error: describe(error), webhook }, "the webhook could not answer");
    end(response, code, { message: describe(error) }, true);
  } finally {
    inFlight(-1);
    metrics.count("controller_runtime_webhook_requests_total", { webhook, code: String(code) });
    metrics.observe("controller_runtime_webhook_latency_seconds", { webhook }, (clock.now() - startedAt) / 1000);
  }
}

/** A request that is no question. */
class Unreadable extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

async function readReview(request: IncomingMessage): Promise<{ apiVersion: string; request: AdmissionRequest }> {
  if (request.method !== "POST") throw new Unreadable(405, "a webhook is asked by POST");
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of request) {
    size += (piece as Buffer).length;
    if (size > MOST_BYTES) throw new Unreadable(413, `the review is larger than ${MOST_BYTES} bytes`);
    pieces.push(piece as Buffer);
  }
  let review: { apiVersion?: string; kind?: string; request?: AdmissionRequest };
  try {
    review = JSON.parse(Buffer.concat(pieces).toString()) as typeof review;
  } catch (error) {
    throw new Unreadable(400, `the review is no JSON: ${describe(error)}`);
  }
  const { apiVersion, kind, request: question } = review ?? {};
  const isReview = kind === "AdmissionReview" && apiVersion === "admission.k8s.io/v1" && question?.uid;
  if (!isReview) throw new Unreadable(400, "the body is no AdmissionReview of admission.k8s.io/v1");
  return { apiVersion, request: question };
}

function end(response: ServerResponse, code: number, body: object, close: boolean): void {
  response.writeHead(code, {
    "content-type": "application/json",
    // So that the API server asks another replica the next time.
    ...(close && { connection: "close" }),
  });
  response.end(JSON.stringify(body));
}
