/**
 * An API server that does what a test tells it to, answer by answer: for faults that no real server produces on demand.
 * For anything that should behave like Kubernetes, simkube is the better partner.
 */
import type { KubeObject, ObjectMeta, Stored } from "../../api/object.ts";
import type { Clock } from "../clock.ts";
import {
  type KubeRequest,
  type KubeResponse,
  type KubeStream,
  type RequestOptions,
  type Transport,
  TransportError,
} from "../kube/transport.ts";
import { settle } from "../virtualClock.ts";

export type Answer =
  | KubeResponse
  | Error
  /** Never answers; ends when the caller gives up. */
  | "hang"
  | ((request: KubeRequest) => KubeResponse | Error | "hang");

export class ScriptedServer implements Transport {
  readonly requests: KubeRequest[] = [];
  readonly watches: ScriptedWatch[] = [];
  readonly #answers = new Map<string, Answer[]>();
  readonly #refusals: (KubeResponse | Error)[] = [];
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Answers to `METHOD /path`, in order; the last one stands for all further requests. */
  on(request: string, ...answers: Answer[]): this {
    this.#answers.set(request, answers);
    return this;
  }

  /** The next watches are refused so, in order; those after them are accepted. */
  refuseWatches(...refusals: (KubeResponse | Error)[]): this {
    this.#refusals.push(...refusals);
    return this;
  }

  /** Requests of this kind so far, watches not counted. */
  made(request: string): KubeRequest[] {
    return this.requests.filter(({ method, path }) => `${method} ${path}` === request);
  }

  async request(request: KubeRequest, options: RequestOptions = {}): Promise<KubeResponse> {
    this.requests.push(request);
    const key = `${request.method} ${request.path}`;
    const answers = this.#answers.get(key);
    if (!answers) throw new Error(`the script has no answer to ${key}`);
    const answer = answers.length > 1 ? answers.shift()! : answers[0]!;
    const given = typeof answer === "function" ? answer(request) : answer;
    if (given === "hang") return this.#hang(options);
    if (given instanceof Error) throw given;
    return given;
  }

  async stream(request: KubeRequest, options: { readonly signal?: AbortSignal } = {}): Promise<KubeStream> {
    const refusal = this.#refusals.shift();
    if (refusal instanceof Error) throw refusal;
    if (refusal) return { ...refusal, lines: nothing() };
    const watch = new ScriptedWatch(request, options.signal);
    this.watches.push(watch);
    return { status: 200, headers: {}, lines: watch.lines() };
  }

  #hang({ signal, timeout }: RequestOptions): Promise<never> {
    return new Promise((_, reject) => {
      const giveUp = () => reject(new TransportError("given up", { maybeSent: true }));
      if (timeout !== undefined) this.#clock.after(timeout, giveUp);
      signal?.addEventListener("abort", giveUp, { once: true });
    });
  }

  /** The newest watch. */
  get watch(): ScriptedWatch {
    const watch = this.watches.at(-1);
    if (!watch) throw new Error("nobody watches");
    return watch;
  }
}

export class ScriptedWatch {
  readonly request: KubeRequest;
  /** The client has let go of it. */
  closed = false;
  readonly #queue: (string | Error | "end")[] = [];
  #wake: () => void = () => {};

  constructor(request: KubeRequest, signal?: AbortSignal) {
    this.request = request;
    signal?.addEventListener("abort", () => this.#push(signal.reason as Error), { once: true });
  }

  send(type: string, object: unknown): Promise<void> {
    return this.sendLine(JSON.stringify({ type, object }));
  }

  sendLine(line: string): Promise<void> {
    this.#push(line);
    return settle();
  }

  /** The server ends the watch in good order. */
  end(): Promise<void> {
    this.#push("end");
    return settle();
  }

  /** The connection breaks. */
  cut(): Promise<void> {
    this.#push(new TransportError("connection reset", { maybeSent: true }));
    return settle();
  }

  async *lines(): AsyncGenerator<string> {
    try {
      while (true) {
        const next = this.#queue.shift();
        if (next === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
        else if (next === "end") return;
        else if (typeof next === "string") yield next;
        else throw next;
      }
    } finally {
      this.closed = true;
    }
  }

  #push(item: string | Error): void {
    this.#queue.push(item);
    this.#wake();
  }
}

export const ok = (body: unknown, status = 200): KubeResponse => ({ status, headers: {}, body });

export const refusal = (
  code: number,
  reason: string,
  options: { message?: string; headers?: Record<string, string>; details?: object } = {},
): KubeResponse => ({
  status: code,
  headers: options.headers ?? {},
  body: { kind: "Status", code, reason, message: options.message ?? reason, details: options.details },
});

export const list = (resourceVersion: string, items: readonly unknown[] = [], more?: string): KubeResponse =>
  ok({ kind: "List", metadata: { resourceVersion, continue: more }, items });

/** An object as a server would hold it. */
export function stored<T extends object = object>(
  name: string,
  resourceVersion: string | number,
  rest: T & { metadata?: ObjectMeta } = {} as T,
): Stored<KubeObject & T> {
  const { metadata, ...other } = rest;
  return {
    apiVersion: "v1",
    kind: "Pod",
    ...other,
    metadata: {
      namespace: "default",
      name,
      uid: `uid-${name}`,
      creationTimestamp: "2026-01-01T00:00:00Z",
      ...metadata,
      resourceVersion: String(resourceVersion),
    },
  } as unknown as Stored<KubeObject & T>;
}

async function* nothing(): AsyncGenerator<string> {}
