/**
 * One process of the operator in the simulated world: its share of time, network and fate.
 *
 * A process that is killed does nothing more: its timers do not fire, its requests are neither sent nor answered. What
 * its next write meets (an answer, an error, the process's own end) is asked of a Fate: a choice point.
 */
import { type Cancel, type Clock, sleep } from "../../src/machinery/clock.ts";
import type {
  KubeRequest,
  KubeResponse,
  KubeStream,
  RequestOptions,
  Transport,
} from "../../src/machinery/kube/transport.ts";
import { TransportError } from "../../src/machinery/kube/transport.ts";
import type { RayRequest, RayTransport } from "../../src/ray/transport.ts";

/** What a request of the operator meets. */
export type Meets =
  | "answer"
  /** The process ends before the request is sent, or after the server has done it and before the answer is read. */
  | "death before"
  | "death after"
  /** No answer: it was never sent; it was lost on the way; it was done and the answer lost. */
  | "refused"
  | "lost before"
  | "lost after"
  /** The server answers so without having done anything. */
  | { readonly status: number };

/** Milliseconds by which what a watch says comes late, by the watch's path. */
export type Lag = (path: string) => number;

/** Asked once for each write to the API server (Leases and Events aside), with its number from 0. */
export type Fate = (write: KubeRequest, number: number) => Meets;

export class Process {
  readonly clock: Clock;
  readonly transport: Transport;
  readonly rayTransport: RayTransport;
  /** Writes that reached the API server and were granted, without Leases and Events: `PATCH /apis/…`. */
  readonly writes: string[] = [];
  #dead = false;
  #asked = 0;
  readonly #fate: Fate;
  readonly #lag: Lag;
  readonly #kubernetes: Transport;

  constructor(
    world: { clock: Clock; transport: Transport; ray: RayTransport },
    { fate = () => "answer", lag = () => 0 }: { fate?: Fate; lag?: Lag } = {},
  ) {
    this.#kubernetes = world.transport;
    this.#fate = fate;
    this.#lag = lag;
    this.clock = {
      now: () => world.clock.now(),
      after: (milliseconds: number, run: () => void): Cancel =>
        world.clock.after(milliseconds, () => this.#dead || run()),
    };
    this.transport = {
      request: (request, options) => this.#whileAlive(() => this.#request(request, options)),
      stream: (request, options) => this.#whileAlive(() => this.#stream(request, options)),
    };
    this.rayTransport = { request: (request: RayRequest) => this.#whileAlive(() => world.ray.request(request)) };
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** SIGKILL. */
  kill(): void {
    this.#dead = true;
  }

  async #request(request: KubeRequest, options?: RequestOptions): Promise<KubeResponse> {
    if (!isCounted(request)) return this.#kubernetes.request(request, options);
    const meets = this.#fate(request, this.#asked++);
    if (typeof meets === "object") return failure(meets.status);
    if (meets === "death before") {
      this.kill();
      return never();
    }
    if (meets === "refused") throw new TransportError("connection refused", { maybeSent: false });
    if (meets === "lost before") throw new TransportError("connection reset", { maybeSent: true });
    const response = await this.#kubernetes.request(request, options);
    if (response.status < 300) this.writes.push(`${request.method} ${request.path}`);
    if (meets === "lost after") throw new TransportError("connection reset", { maybeSent: true });
    if (meets === "death after") this.kill();
    return response;
  }

  async #stream(request: KubeRequest, options?: { readonly signal?: AbortSignal }): Promise<KubeStream> {
    const stream = await this.#kubernetes.stream(request, options);
    const isDead = () => this.#dead;
    const late = delayed(stream.lines, this.clock, this.#lag(request.path));
    async function* lines() {
      for await (const line of late) {
        if (isDead()) await never();
        yield line;
      }
      if (isDead()) await never();
    }
    return { ...stream, lines: lines() };
  }

  /** Whatever is asked of, or answered to, a dead process stays so for ever. */
  async #whileAlive<T>(act: () => Promise<T>): Promise<T> {
    if (this.#dead) return never();
    try {
      const answer = await act();
      return this.#dead ? never() : answer;
    } catch (error) {
      if (this.#dead) return never();
      throw error;
    }
  }
}

/** Each line `lag` milliseconds after it came, in their order. */
async function* delayed(lines: AsyncIterable<string>, clock: Clock, lag: number): AsyncGenerator<string> {
  const stamped: { line?: string; error?: unknown; at: number }[] = [];
  let arrived = Promise.withResolvers<void>();
  const push = (entry: { line?: string; error?: unknown }) => {
    stamped.push({ ...entry, at: clock.now() + lag });
    arrived.resolve();
  };
  void (async () => {
    for await (const line of lines) push({ line });
  })().then(
    () => push({}),
    (error) => push({ error }),
  );
  while (true) {
    const next = stamped.shift();
    if (!next) {
      await arrived.promise;
      arrived = Promise.withResolvers<void>();
      continue;
    }
    if (next.at > clock.now()) await sleep(clock, next.at - clock.now());
    if (next.error !== undefined) throw next.error;
    if (next.line === undefined) return;
    yield next.line;
  }
}

const never = <T>(): Promise<T> => new Promise(() => {});

const isCounted = ({ method, path }: KubeRequest): boolean => method !== "GET" && !/\/(events|leases)(\/|$)/.test(path);

function failure(status: number): KubeResponse {
  const reason = { 409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable" }[status];
  const body = {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    reason,
    code: status,
    message: `injected ${status}`,
  };
  return { status, headers: {}, body };
}
