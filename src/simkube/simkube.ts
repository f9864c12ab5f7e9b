/**
 * Kubernetes in memory: the map of this folder.
 *
 *     transport ──> requests.ts ──> verbs.ts ──> storage.ts (the log) ──> watch.ts ──> streams
 *                        │             │              └──> controllers: garbage.ts, jobs.ts, endpoints.ts, cleanup.ts
 *                   tables.ts      schema.ts, kinds/                       (each moved in steps: controllers.ts)
 *                   discovery.ts
 *
 * Answers: what a real API server and its controllers would, as far as this project asks them: see conformance.ts, which
 * a real one passes, too. In tests it is asked in process; http.ts serves it to an unmodified kubectl.
 * May not: look at any clock but the one it is given, or draw a random number that its seed does not fix.
 */
import { createHash } from "node:crypto";
import type { KubeObject } from "../api/object.ts";
import { rules as knownRules } from "../api/rules.ts";
import type { Cancel, Clock } from "../machinery/clock.ts";
import type { KubeRequest, KubeResponse, KubeStream, Transport } from "../machinery/kube/transport.ts";
import { TransportError } from "../machinery/kube/transport.ts";
import { Cleanup } from "./cleanup.ts";
import { runControllers, type SimController } from "./controllers.ts";
import { EndpointsController } from "./endpoints.ts";
import { badRequest } from "./errors.ts";
import { GarbageCollector } from "./garbage.ts";
import { JobController } from "./jobs.ts";
import { canonical, frozen, type Item, withMeta } from "./json.ts";
import { customResourceDefinitions, defined } from "./kinds/definition.ts";
import { builtInKinds } from "./kinds/index.ts";
import { Random } from "./random.ts";
import { Registry } from "./registry.ts";
import { copyLines, type PodLogs, type RequestParts, respond, type ServiceProxy, type Streamed } from "./requests.ts";
import type { Rule } from "./schema.ts";
import { Storage } from "./storage.ts";
import { type Admit, callOn, Verbs } from "./verbs.ts";
import { broken, Lines } from "./watch.ts";

export interface SimKubeOptions {
  readonly clock: Clock;
  /** CustomResourceDefinitions that are there from the start. */
  readonly crds?: readonly KubeObject[];
  /** CEL rules that are enforced, found by their text; others are not. Those of our own kinds when absent. */
  readonly rules?: readonly Rule[];
  /** Fixes UIDs and generated names; without one they differ from run to run. */
  readonly seed?: number;
  /** How many versions back a list or a watch may start; what lies further back is answered 410. */
  readonly history?: number;
  /** Milliseconds until a watch that fell behind gets a bookmark; 0 for never. */
  readonly bookmarkInterval?: number;
  /** Where the logs of containers are. */
  readonly podLogs?: PodLogs;
  /** What stands behind Services, for `services/<name>/proxy`. */
  readonly serviceProxy?: ServiceProxy;
  /** Asked before each write of an object, as an admission webhook is. */
  readonly admit?: Admit;
}

export class SimKube {
  readonly clock: Clock;
  readonly storage: Storage;
  readonly registry = new Registry();
  readonly verbs: Verbs;
  /** The controllers a cluster has of its own; nobody moves them until runControllers() or their step() is called. */
  readonly controllers: {
    readonly garbage: GarbageCollector;
    readonly jobs: JobController;
    readonly endpoints: EndpointsController;
    readonly cleanup: Cleanup;
  };
  /** A way in. All clients may share it, or wrap it each for himself. */
  readonly transport: Transport;
  readonly #parts: RequestParts;
  readonly #watches: RequestParts["watches"] = new Set();

  constructor({
    clock,
    crds = [],
    rules = Object.values(knownRules),
    seed = Math.floor(Math.random() * 2 ** 32),
    history = 10_000,
    bookmarkInterval = 60_000,
    podLogs = () => {
      throw badRequest("there is no node here that could have written a log");
    },
    serviceProxy,
    admit,
  }: SimKubeOptions) {
    this.clock = clock;
    this.storage = new Storage(history);
    const table = new Map(rules.map((rule) => [rule.rule, rule]));
    const parts = { storage: this.storage, registry: this.registry, random: new Random(seed), clock, rules: table };
    this.verbs = new Verbs({ ...parts, admit });
    for (const kind of builtInKinds) this.registry.add(kind);
    this.storage.listen(({ resource, type, object }) => {
      if (resource !== customResourceDefinitions.id) return;
      const kind = defined(object);
      if (type === "DELETED") this.registry.remove(kind.id);
      else this.registry.add(kind);
    });
    const moved = { ...parts, verbs: this.verbs };
    this.controllers = {
      garbage: new GarbageCollector(moved),
      jobs: new JobController(moved),
      endpoints: new EndpointsController(moved),
      cleanup: new Cleanup(moved),
    };
    this.#parts = { ...moved, bookmarkInterval, podLogs, serviceProxy, watches: this.#watches };
    this.transport = { request: (...args) => this.#request(...args), stream: (...args) => this.#stream(...args) };
    for (const name of ["default", "kube-system"]) {
      this.verbs.create(callOn(builtInKinds.find(({ kind }) => kind === "Namespace")!), { metadata: { name } });
    }
    for (const crd of crds) this.verbs.create(callOn(customResourceDefinitions), frozenOnce(crd));
  }
  /** Moves the controllers whenever there is work for them, until the function that it returns is called. */
  runControllers(): Cancel {
    return runControllers(this.#allControllers(), this.storage, this.clock);
  }

  /** Moves the controllers until none has work that is due now. */
  settleControllers(): void {
    const all = this.#allControllers();
    while (all.map((controller) => controller.step()).includes(true));
  }

  /** Answers a request as http.ts needs it: a log in its raw pieces, a watch as it is. */
  respond(request: KubeRequest, signal?: AbortSignal): Promise<Streamed> {
    return respond(request, this.#parts, signal);
  }

  /** How many watches are open. */
  get openWatches(): number {
    return this.#watches.size;
  }

  /** Breaks every open watch, as a network would, or ends it in good order, as a server that shuts down does. */
  endWatches(how: "broken" | "ended" = "broken"): void {
    for (const watch of [...this.#watches]) {
      if (how === "broken") watch.cut();
      else watch.lines.end();
    }
  }

  /** Forgets the past, so that lists and watches which start there are answered 410. */
  compact(): void {
    this.storage.compact();
  }

  /**
   * A short text that is the same for two worlds with the same content. `view` says what counts of an object, undefined
   * for nothing; when not given, all but its version.
   */
  digest(view?: (item: Item) => unknown): string {
    const lines: string[] = [];
    for (const { resource, key, item } of this.storage.everything()) {
      const seen = view ? view(item) : digestOf(item);
      if (seen !== undefined) lines.push(`${resource} ${key} ${canonical(seen)}`);
    }
    return sha256(lines.join("\n"));
  }

  #allControllers(): readonly SimController[] {
    return Object.values(this.controllers);
  }

  async #request(request: KubeRequest, { signal }: { readonly signal?: AbortSignal } = {}): Promise<KubeResponse> {
    if (signal?.aborted) throw broken(signal.reason);
    const streamed = await this.respond(request, signal);
    if (streamed.kind === "answer") return streamed.response;
    if (streamed.kind === "watch") {
      streamed.watch.lines.end();
      throw new TransportError("a watch is a stream", { maybeSent: true });
    }
    const pieces: (string | Uint8Array)[] = [];
    for await (const piece of streamed.pieces) pieces.push(piece);
    const body = Buffer.concat(pieces.map((piece) => Buffer.from(piece as string))).toString();
    return { status: 200, headers: streamed.headers, body };
  }

  async #stream(request: KubeRequest, { signal }: { readonly signal?: AbortSignal } = {}): Promise<KubeStream> {
    if (signal?.aborted) throw broken(signal.reason);
    const streamed = await this.respond(request, signal);
    if (streamed.kind === "watch") return { status: 200, headers: streamed.headers, lines: streamed.watch.lines };
    const lines = new Lines();
    if (streamed.kind === "answer") {
      const { status, headers, body } = streamed.response;
      lines.push(typeof body === "string" ? body : JSON.stringify(body));
      lines.end();
      return { status, headers, body, lines };
    }
    signal?.addEventListener("abort", () => lines.end(broken(signal.reason)), { once: true });
    void copyLines(streamed.pieces, lines);
    return { status: 200, headers: streamed.headers, lines };
  }
}

/** Definitions are large, and the simulator makes many worlds from the same few. */
const known = new WeakMap<KubeObject, KubeObject>();
function frozenOnce(crd: KubeObject): KubeObject {
  const copy = known.get(crd) ?? frozen(crd);
  known.set(crd, copy);
  return copy;
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 32);

/** Worlds that are told apart after each step differ in few objects; the digest of each object is made once. */
const digests = new WeakMap<Item, string>();
function digestOf(item: Item): string {
  const digest = digests.get(item) ?? sha256(canonical(withMeta(item, { resourceVersion: undefined })));
  digests.set(item, digest);
  return digest;
}
