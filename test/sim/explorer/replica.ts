/**
 * One process of the operator in an explored world: what each of its calls meets is a choice point.
 *
 * Answers: an API request is answered, refused, delayed, lost on the way there or back, carried out after it was given
 * up, or is the last thing the process does. A line of a watch is late (with all that follow it), or the watch breaks, or
 * its past is forgotten, so that versions in between are never seen. A question to Ray meets a dashboard in any mood.
 * A process may also be paused: then its timers do not fire and it hears nothing, but its clock goes on.
 * May not: act by itself. A rival (`chooses: false`) meets nothing but its own lag.
 */
import type { KubeObject, Stored } from "../../../src/api/object.ts";
import { type Cancel, type Clock, sleep } from "../../../src/machinery/clock.ts";
import {
  type KubeRequest,
  type KubeResponse,
  type KubeStream,
  type RequestOptions,
  type Transport,
  TransportError,
} from "../../../src/machinery/kube/transport.ts";
import { type RayRequest, type RayResponse, type RayTransport, RayTransportError } from "../../../src/ray/transport.ts";
import { type PointKind, USUAL } from "./choices.ts";

export interface Surroundings {
  readonly clock: Clock;
  readonly kubernetes: Transport;
  readonly ray: RayTransport;
  choose(kind: PointKind, what: () => string, choices: readonly string[], site: string): string;
  /** Somebody else is quicker: makes, changes or deletes what the request is about. */
  forestall(request: KubeRequest, how: "touch" | "delete" | "same" | "stranger"): Promise<void>;
  /** A write is sent; it may be on its way for as long as its client waits. */
  sends(replica: Replica, request: KubeRequest): void;
  /** The server keeps no version but the newest. */
  forgetPast(): void;
  /** A command is sent to Ray. */
  commands(replica: Replica, request: RayRequest): void;
  /** Ray is about to be given this job by the operator itself. */
  submits(request: RayRequest): void;
  /** Something of the schedule is still going on until the function that is returned is called. */
  begin(): () => void;
  died(replica: Replica): void;
}

/** The client gives a write up after so long. */
const GIVEN_UP = 12_000;
const LATENCY = 2;
const never = <T>(): Promise<T> => new Promise(() => {});

const ANY_WRITE = [
  "429",
  "500",
  "refused",
  "slow",
  "reset-undone",
  "reset-done",
  "timeout-undone",
  "timeout-done",
  "late",
  "crash-before",
  "crash-after",
];
const WRITE = {
  POST: [...ANY_WRITE, "exists-ours", "exists-other"],
  POST_GENERATED: ANY_WRITE,
  PATCH: [...ANY_WRITE, "conflict", "gone"],
  DELETE: [...ANY_WRITE, "conflict", "gone"],
} as const;
const READ = ["429", "500", "reset", "crash-before"];
const EVENT = ["500", "timeout-done"];
const LEASE_READ = ["500", "reset", "slow", "crash-before"];
const LEASE_WRITE = [
  "500",
  "429",
  "conflict",
  "slow",
  "reset-undone",
  "reset-done",
  "timeout-undone",
  "timeout-done",
  "late",
  "deaf",
  "crash-before",
  "crash-after",
];
/** Longer than a lease lasts. */
const DEAF = 20_000;
/** Renewals and looks at somebody else's lease go on for ever, and are all alike: so many of each may go wrong. */
const LEASE_CALLS = 5;
const WATCH = ["late-3", "late-40", "broken", "relist"];
const ASK = ["503", "slow", "hang", "refused", "crash-after"];
const COMMAND = ["503", "slow", "refused", "timeout-undone", "timeout-done", "late", "crash-before", "crash-after"];

export class Replica {
  readonly name: string;
  readonly clock: Clock;
  readonly transport: Transport;
  readonly rayTransport: RayTransport;
  /** Writes that were granted, events aside. */
  writes = 0;
  /** What Ray said last, by question: what this process knows, and its successor does not. */
  readonly heard = new Map<string, string>();
  /** Watches that do not follow. */
  held = 0;
  #dead = false;
  /** Until then its lease is out of its reach. */
  #deafUntil = 0;
  #leaseCalls = { GET: 0, PUT: 0 };
  /** While it is paused: resolves when it goes on. */
  #pause: Promise<void> | undefined;
  readonly #around: Surroundings;
  readonly #lag: number;
  readonly #chooses: boolean;

  constructor(name: string, around: Surroundings, { lag = 0, chooses = true } = {}) {
    this.name = name;
    this.#around = around;
    this.#lag = lag;
    this.#chooses = chooses;
    const { clock } = around;
    this.clock = {
      now: () => clock.now(),
      after: (milliseconds, run): Cancel => {
        let cancelled = false;
        const fire = () => this.#dead || cancelled || run();
        const cancel = clock.after(milliseconds, () => (this.#pause ? void this.#pause.then(fire) : fire()));
        return () => {
          cancelled = true;
          cancel();
        };
      },
    };
    this.transport = {
      request: (request, options) => this.#whileAlive(() => this.#request(request, options)),
      stream: (request, options) => this.#whileAlive(() => this.#stream(request, options)),
    };
    this.rayTransport = { request: (request) => this.#whileAlive(() => this.#ask(request)) };
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** SIGKILL. */
  kill(): void {
    if (this.#dead) return;
    this.#dead = true;
    this.#around.died(this);
  }

  /** SIGSTOP, and SIGCONT after so long. */
  pause(milliseconds: number): void {
    const done = this.#around.begin();
    this.#pause = sleep(this.#around.clock, milliseconds).then(() => {
      this.#pause = undefined;
      done();
    });
  }

  /** What differs between two processes that have heard the same. */
  get mood(): string {
    return `${this.#pause ? "paused" : ""} ${this.#deafUntil > this.#around.clock.now() ? "deaf" : ""}`;
  }

  #choose(kind: PointKind, what: () => string, choices: readonly string[], site = nameless(what())): string {
    if (!this.#chooses || this.#dead) return USUAL;
    return this.#around.choose(kind, () => `${this.name}: ${what()}`, choices, site);
  }

  async #request(request: KubeRequest, options: RequestOptions = {}): Promise<KubeResponse> {
    const { kubernetes } = this.#around;
    if (request.path.includes("/leases")) return this.#lease(request, options.timeout ?? GIVEN_UP);
    const what = () => `${request.method} ${short(request.path)}${detail(request)}`;
    if (request.method === "GET") {
      switch (this.#choose("read", what, READ)) {
        case "429":
          return failure(429, { "retry-after": "1" });
        case "500":
          return failure(500);
        case "reset":
          throw new TransportError("connection reset", { maybeSent: true });
        case "crash-before":
          this.kill();
          return never();
        default:
          return kubernetes.request(request);
      }
    }
    if (request.path.includes("/events")) {
      this.#around.sends(this, request);
      switch (this.#choose("event", what, EVENT, request.method)) {
        case "500":
          return failure(500);
        case "timeout-done":
          await kubernetes.request(request);
          await this.#wait(GIVEN_UP);
          throw new TransportError("no answer in time", { maybeSent: true });
        default:
          return kubernetes.request(request);
      }
    }
    return this.#write(request, what);
  }

  /** A call about the lease. Its own time-out is short, so that several fit into the time in which it must be renewed. */
  async #lease(request: KubeRequest, timeout: number): Promise<KubeResponse> {
    const { clock, kubernetes } = this.#around;
    const reads = request.method === "GET";
    const { holderIdentity, acquireTime, renewTime } = (request.body as { spec?: Record<string, string> })?.spec ?? {};
    const renews = !reads && acquireTime !== renewTime;
    const noAnswer = async (): Promise<never> => {
      await this.#wait(timeout);
      throw new TransportError("no answer in time", { maybeSent: true });
    };
    if (clock.now() < this.#deafUntil) return noAnswer();
    const does = reads ? "looks at" : renews ? "renews" : holderIdentity ? "takes" : "gives back";
    const alike = reads || renews;
    const many = alike && this.#leaseCalls[reads ? "GET" : "PUT"]++ >= LEASE_CALLS;
    const choice = many ? USUAL : this.#choose("lease", () => `${does} the lease`, reads ? LEASE_READ : LEASE_WRITE);
    switch (choice) {
      case "500":
        return failure(500);
      case "429":
        return failure(429, { "retry-after": "2" });
      case "slow":
        await this.#wait(timeout - 500);
        return kubernetes.request(request);
      case "reset":
      case "reset-undone":
        throw new TransportError("connection reset", { maybeSent: true });
      case "reset-done":
        await kubernetes.request(request);
        throw new TransportError("connection reset", { maybeSent: true });
      case "timeout-undone":
        return noAnswer();
      case "timeout-done":
        await kubernetes.request(request);
        return noAnswer();
      case "late": {
        const done = this.#around.begin();
        clock.after(timeout + 1000, () => void kubernetes.request(request).finally(done));
        return noAnswer();
      }
      case "deaf":
        this.#deafUntil = clock.now() + DEAF;
        clock.after(DEAF, this.#around.begin());
        return noAnswer();
      case "conflict":
        if (request.method === "PUT") await this.#around.forestall(request, "touch");
        return request.method === "PUT" ? kubernetes.request(request) : failure(409);
      case "crash-before":
        this.kill();
        return never();
      case "crash-after":
        await kubernetes.request(request);
        this.kill();
        return never();
      default:
        return kubernetes.request(request);
    }
  }

  async #write(request: KubeRequest, what: () => string): Promise<KubeResponse> {
    const { clock, kubernetes } = this.#around;
    const send = async (sent = request): Promise<KubeResponse> => {
      const response = await kubernetes.request(sent);
      if (response.status < 300) this.writes++;
      // The answer takes its time, so that others may act between one write and the next.
      await sleep(clock, LATENCY);
      return response;
    };
    const generated = (request.body as KubeObject | undefined)?.metadata?.generateName !== undefined;
    const choices = WRITE[request.method === "POST" && generated ? "POST_GENERATED" : (request.method as "POST")];
    const choice = this.#choose("write", what, choices);
    if (choice !== "crash-before") this.#around.sends(this, request);
    switch (choice) {
      case "429":
        return failure(429, { "retry-after": "2" });
      case "500":
        return failure(500);
      case "refused":
        throw new TransportError("connection refused", { maybeSent: false });
      case "slow":
        await this.#wait(5000);
        return send();
      case "reset-undone":
        throw new TransportError("connection reset", { maybeSent: true });
      case "reset-done":
        await this.#whole(send());
        throw new TransportError("connection reset", { maybeSent: true });
      case "timeout-undone":
        await this.#wait(GIVEN_UP);
        throw new TransportError("no answer in time", { maybeSent: true });
      case "timeout-done":
        await this.#whole(send());
        await this.#wait(GIVEN_UP);
        throw new TransportError("no answer in time", { maybeSent: true });
      case "late": {
        // It hangs on the way, and arrives when nobody waits for it any more.
        const done = this.#around.begin();
        clock.after(GIVEN_UP + 3000, () => void send(givenUp(request)).finally(done));
        await this.#wait(GIVEN_UP);
        throw new TransportError("no answer in time", { maybeSent: true });
      }
      case "crash-before":
        this.kill();
        return never();
      case "crash-after":
        await this.#whole(send());
        this.kill();
        return never();
      case "conflict":
        if (request.method === "DELETE") return failure(409);
        await this.#around.forestall(request, "touch");
        return send();
      case "gone":
        await this.#around.forestall(request, "delete");
        return send();
      case "exists-ours":
        await this.#around.forestall(request, "same");
        return send();
      case "exists-other":
        await this.#around.forestall(request, "stranger");
        return send();
      default:
        return send();
    }
  }

  async #stream(request: KubeRequest, options?: { readonly signal?: AbortSignal }): Promise<KubeStream> {
    const stream = await this.#around.kubernetes.stream(request, options);
    return { ...stream, lines: this.#lines(request, stream.lines) };
  }

  async *#lines(request: KubeRequest, lines: AsyncIterable<string>): AsyncGenerator<string> {
    const { clock } = this.#around;
    for await (const line of lines) {
      if (this.#dead) await never();
      if (this.#pause) await this.#pause;
      if (this.#lag > 0) await sleep(clock, this.#lag);
      else if (!line.startsWith('{"type":"BOOKMARK"')) {
        const selector = request.query?.["labelSelector"] ?? "";
        const choice = this.#choose(
          "watch",
          () => `watch of ${short(request.path)} ${selector} shows ${shown(line)}`,
          WATCH,
          // An event's type and, as far as that is, its object: all else is in the state, and reading it takes long.
          `${request.path} ${selector} ${line.slice(0, 40)}`,
        );
        switch (choice) {
          case "late-3":
            await this.#hold(3000);
            break;
          case "late-40":
            await this.#hold(40_000);
            break;
          case "broken":
            throw new TransportError("the connection was cut", { maybeSent: true });
          case "relist":
            await this.#hold(6000);
            this.#around.forgetPast();
            yield JSON.stringify({ type: "ERROR", object: { ...status(410), message: "too old resource version" } });
            return;
        }
      }
      if (this.#dead) await never();
      yield line;
    }
    if (this.#dead) await never();
  }

  async #hold(milliseconds: number): Promise<void> {
    this.held++;
    await this.#wait(milliseconds);
    this.held--;
  }

  /**
   * A call that is only the beginning of what the schedule says: it is not over between the call and what follows, or the
   * life would be cut there as if nothing had happened.
   */
  async #whole<T>(call: Promise<T>): Promise<T> {
    const done = this.#around.begin();
    try {
      return await call;
    } finally {
      done();
    }
  }

  /** The schedule is not over while somebody waits because of it. */
  async #wait(milliseconds: number): Promise<void> {
    const done = this.#around.begin();
    await sleep(this.#around.clock, milliseconds);
    done();
  }

  async #ask(request: RayRequest): Promise<RayResponse> {
    const { clock, ray } = this.#around;
    const what = `${request.method} ${request.path}`;
    const asks = request.method === "GET";
    if (!asks) this.#around.commands(this, request);
    const send = async () => {
      if (request.method === "POST" && request.path === "/api/jobs/") this.#around.submits(request);
      const response = await ray.request(request).catch((error: unknown) => {
        this.heard.set(what, "none");
        throw error;
      });
      this.heard.set(what, `${response.status} ${/"status":"\w+"|session_\d+/.exec(response.body)?.[0] ?? ""}`);
      return response;
    };
    const noAnswer = async () => {
      await this.#wait(request.timeout);
      this.heard.set(what, "none");
      throw new RayTransportError(`no answer within ${request.timeout / 1000} s`, { maybeSent: true });
    };
    switch (this.#choose(asks ? "ask" : "command", () => what, asks ? ASK : COMMAND)) {
      case "503":
        this.heard.set(what, "none");
        return { status: 503, body: `{"status":"FAILED","message":"from a proxy"}` };
      case "slow": {
        // The answer is from before the wait: what it says may be over when it is heard.
        const answer = await this.#whole(send());
        await this.#wait(4000);
        return answer;
      }
      case "refused":
        this.heard.set(what, "none");
        throw new RayTransportError("connection refused", { maybeSent: false });
      case "hang":
      case "timeout-undone":
        return noAnswer();
      case "timeout-done":
        await this.#whole(send());
        return noAnswer();
      case "late": {
        const done = this.#around.begin();
        clock.after(request.timeout + 2000, () => void ray.request(request).then(done, done));
        return noAnswer();
      }
      case "crash-before":
        this.kill();
        return never();
      case "crash-after":
        await this.#whole(send());
        this.kill();
        return never();
      default:
        return send();
    }
  }

  /** Whatever is asked of, or answered to, a dead process stays so for ever. */
  async #whileAlive<T>(act: () => Promise<T>): Promise<T> {
    if (this.#dead) return never();
    try {
      const answer = await act();
      if (this.#pause) await this.#pause;
      return this.#dead ? never() : answer;
    } catch (error) {
      if (this.#pause) await this.#pause;
      if (this.#dead) return never();
      throw error;
    }
  }
}

const REASONS: Readonly<Record<number, string>> = {
  409: "Conflict",
  410: "Expired",
  429: "TooManyRequests",
  500: "InternalError",
};
const status = (code: number) => ({
  kind: "Status",
  apiVersion: "v1",
  status: "Failure",
  reason: REASONS[code],
  code,
  message: `the server says ${code}`,
});
const failure = (code: number, headers: Record<string, string> = {}): KubeResponse => ({
  status: code,
  headers,
  body: status(code),
});

/** What a request makes that was given up long before it is carried out bears this mark, for the oracles to know it by. */
export const GIVEN_UP_MARK = "explorer/given-up";

export function givenUp(request: KubeRequest): KubeRequest {
  if (request.method !== "POST") return request;
  const { metadata, ...rest } = request.body as KubeObject;
  const annotations = { ...metadata.annotations, [GIVEN_UP_MARK]: "true" };
  return { ...request, body: { ...rest, metadata: { ...metadata, annotations } } };
}

/** `rayjobs/demo/status` of an API path. */
const short = (path: string): string =>
  path.replace(/^\/apis?\/.*?\/namespaces\/[^/]+\/|^\/apis?\/([^/]+\/)?v\d\w*\//, "");

/** Without what is drawn at random. */
const nameless = (what: string): string => what.replace(/-[a-z0-9]{5}\b/g, "-*");

function detail({ method, path, body }: KubeRequest): string {
  const {
    kind,
    metadata,
    status: written,
  } = (body ?? {}) as Stored & {
    status?: { jobDeploymentStatus?: string; state?: string };
  };
  if (method === "POST") return ` ${kind} ${metadata?.name ?? `${metadata?.generateName}*`}`;
  if (path.endsWith("/status")) return ` ${written?.jobDeploymentStatus ?? written?.state ?? ""}`;
  return "";
}

function shown(line: string): string {
  const { type, object } = JSON.parse(line) as {
    type: string;
    object: Stored & { status?: { jobDeploymentStatus?: string; state?: string; phase?: string } };
  };
  const { jobDeploymentStatus, state, phase } = object.status ?? {};
  return `${type} ${object.metadata?.name} ${jobDeploymentStatus ?? state ?? phase ?? ""}`;
}
