/**
 * Ray, as far as the operator sees it: heads with a session, a job table and a node list, behind the RayTransport.
 *
 * Knows: what Ray's job server answers to each request, word for word where the operator reads words.
 * May not: use real time. What a job does, and how a dashboard feels, is asked of the scripts given.
 */
import type { RayJobStatus, SubmitRequest } from "../../src/domain/rayjob/ray.ts";
import { type Clock, sleep } from "../../src/machinery/clock.ts";
import { type RayRequest, type RayResponse, type RayTransport, RayTransportError } from "../../src/ray/transport.ts";

/** What a job does once Ray has it. Milliseconds; `Infinity` stays there. */
export interface JobScript {
  readonly pending: number;
  readonly running: number;
  readonly end: "SUCCEEDED" | "FAILED";
  readonly message?: string;
  /** Node the driver runs on; the head's by default. */
  readonly node?: string;
}

export const succeeds = (running = 10_000, pending = 1000): JobScript => ({ pending, running, end: "SUCCEEDED" });
export const fails = (running = 10_000, message = "Job entrypoint command failed with exit code 1"): JobScript => ({
  pending: 1000,
  running,
  end: "FAILED",
  message,
});
export const runsForEver: JobScript = { pending: 1000, running: Number.POSITIVE_INFINITY, end: "SUCCEEDED" };

/** How a dashboard feels: an HTTP status it answers everything with, or … */
export type Mood = "well" | "hang" | "refuse" | number | { readonly slow: number };

export interface FakeJob {
  readonly request: SubmitRequest;
  readonly script: JobScript;
  status: RayJobStatus;
  message: string;
  startTime: number;
  endTime?: number;
  driverNodeId?: string;
}

export class FakeHead {
  readonly session: string;
  readonly jobs = new Map<string, FakeJob>();
  /** Hex node id to state; the first is the head's own. */
  readonly nodes = new Map<string, "ALIVE" | "DEAD">();
  mood: Mood = "well";
  /** What every request must show. */
  token: string | undefined;
  alive = true;
  /** Every POST of a job that Ray accepted, in order. */
  readonly submissions: string[] = [];
  readonly #clock: Clock;
  readonly #changed: () => void;

  constructor(clock: Clock, session: string, changed: () => void) {
    this.#clock = clock;
    this.session = session;
    this.#changed = changed;
    this.nodes.set(`${session.replace(/\W/g, "")}0`, "ALIVE");
  }

  get headNode(): string {
    return this.nodes.keys().next().value!;
  }

  /** Starts a job, whose id must not be taken. */
  submit(request: SubmitRequest, script: JobScript): void {
    const job: FakeJob = {
      request,
      script,
      status: "PENDING",
      message: "Job has not started yet. It may be waiting for resources or for the runtime environment to be set up.",
      startTime: this.#clock.now(),
    };
    this.jobs.set(request.submission_id, job);
    this.submissions.push(request.submission_id);
    this.#later(script.pending, job, "PENDING", () => {
      job.status = "RUNNING";
      job.message = "Job is currently running.";
      job.driverNodeId = script.node ?? this.headNode;
      this.#later(script.running, job, "RUNNING", () => this.end(job, script.end, script.message));
    });
  }

  end(job: FakeJob, status: "SUCCEEDED" | "FAILED" | "STOPPED", message?: string): void {
    job.status = status;
    job.message =
      message ??
      { SUCCEEDED: "Job finished successfully.", FAILED: "Job failed.", STOPPED: "Job was intentionally stopped." }[
        status
      ];
    job.endTime = this.#clock.now();
    this.#changed();
  }

  #later(delay: number, job: FakeJob, from: RayJobStatus, run: () => void): void {
    if (delay === Number.POSITIVE_INFINITY) return;
    this.#clock.after(delay, () => {
      if (!this.alive || job.status !== from || this.jobs.get(job.request.submission_id) !== job) return;
      run();
      this.#changed();
    });
  }
}

export interface FakeRayOptions {
  readonly clock: Clock;
  /** The script of a job that is submitted. */
  readonly script?: (request: SubmitRequest, head: FakeHead) => JobScript;
  /** Which head answers at this `host:port`, if any. By default the one started under that address. */
  readonly resolve?: (dashboard: string) => string | undefined;
  /** Milliseconds each request takes. */
  readonly latency?: number;
}

export class FakeRay implements RayTransport {
  /** Heads by what `resolve` calls them. */
  readonly heads = new Map<string, FakeHead>();
  /** Every request that was made: `GET host:port /path`. */
  readonly requests: string[] = [];
  readonly #options: FakeRayOptions;
  readonly #watchers = new Set<() => void>();
  #sessions = 0;

  constructor(options: FakeRayOptions) {
    this.#options = options;
  }

  /** A head comes up, with a new session and an empty table, in place of one of that name. */
  start(name: string): FakeHead {
    this.stop(name);
    const head = new FakeHead(this.#options.clock, `session_${++this.#sessions}`, () => this.#changed());
    this.heads.set(name, head);
    this.#changed();
    return head;
  }

  /** The head is gone, and its jobs with it. */
  stop(name: string): void {
    const head = this.heads.get(name);
    if (!head) return;
    head.alive = false;
    this.heads.delete(name);
    this.#changed();
  }

  /** Calls back whenever a head or job changed; returns how to stop that. */
  onChange(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  #changed(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }

  /** The head behind an address, whatever its mood. */
  at(dashboard: string): FakeHead | undefined {
    const { resolve = (address: string) => address } = this.#options;
    const name = resolve(dashboard);
    return name === undefined ? undefined : this.heads.get(name);
  }

  /** Gives a job to a head as a submitter does, script and all; false when its id is taken. */
  give(head: FakeHead, request: SubmitRequest): boolean {
    // Asked for its script only when it is taken, as each script is one job's.
    if (head.jobs.has(request.submission_id)) return false;
    head.submit(request, (this.#options.script ?? (() => succeeds()))(request, head));
    return true;
  }

  async request(request: RayRequest): Promise<RayResponse> {
    const { clock, latency = 5 } = this.#options;
    this.requests.push(`${request.method} ${request.dashboard} ${request.path}`);
    const mood = this.at(request.dashboard)?.mood ?? "refuse";
    if (mood === "hang") {
      await sleep(clock, request.timeout);
      throw new RayTransportError(`no answer within ${request.timeout / 1000} s`, { maybeSent: true });
    }
    const takes = typeof mood === "object" ? mood.slow : latency;
    if (takes > request.timeout) {
      await sleep(clock, request.timeout);
      throw new RayTransportError(`no answer within ${request.timeout / 1000} s`, { maybeSent: true });
    }
    await sleep(clock, takes);
    const head = this.at(request.dashboard);
    if (mood === "refuse" || !head) throw new RayTransportError("connection refused", { maybeSent: false });
    if (typeof mood === "number") return { status: mood, body: `{"status":"FAILED","message":"from a proxy"}` };
    return refusal(head, request) ?? this.#answer(head, request);
  }

  #answer(head: FakeHead, { method, path, body }: RayRequest): RayResponse {
    const json = (value: unknown): RayResponse => ({ status: 200, body: JSON.stringify(value) });
    if (path === "/api/version") return json({ version: "4", ray_version: "2.56.0", session_name: head.session });
    if (path.startsWith("/nodes?")) {
      const summary = [...head.nodes].map(([nodeId, state]) => ({ raylet: { nodeId, state } }));
      return json({ result: true, msg: "Node summary fetched.", data: { summary } });
    }
    if (path === "/api/jobs/" && method === "GET") return json([...head.jobs.values()].map(toJson));
    if (path === "/api/jobs/" && method === "POST") {
      const request = JSON.parse(body!) as SubmitRequest;
      if (this.give(head, request))
        return json({ job_id: request.submission_id, submission_id: request.submission_id });
      return {
        status: 500,
        body: `Traceback (most recent call last):\nValueError: Job with submission_id ${request.submission_id} already exists. Please use a different submission_id.`,
      };
    }
    const [, encoded = "", action] = /^\/api\/jobs\/([^/]+)(\/stop)?$/.exec(path) ?? [];
    const id = decodeURIComponent(encoded);
    const job = head.jobs.get(id);
    if (!job) return { status: 404, body: `Job ${id} does not exist` };
    if (action) {
      const running = job.status === "PENDING" || job.status === "RUNNING";
      if (running) head.end(job, "STOPPED");
      return json({ stopped: running });
    }
    if (method === "DELETE") {
      head.jobs.delete(id);
      return json({ deleted: true });
    }
    return json(toJson(job));
  }
}

/** Ray's middleware, in its words. */
function refusal({ token }: FakeHead, { headers }: RayRequest): RayResponse | undefined {
  const shown = headers?.["authorization"] ?? headers?.["x-ray-authorization"];
  if (token === undefined || shown === `Bearer ${token}`) return undefined;
  return shown === undefined
    ? { status: 401, body: "Unauthorized: Missing authentication token" }
    : { status: 403, body: "Forbidden: Invalid authentication token" };
}

const toJson = (job: FakeJob) => ({
  type: "SUBMISSION",
  job_id: null,
  submission_id: job.request.submission_id,
  status: job.status,
  message: job.message,
  entrypoint: job.request.entrypoint,
  metadata: job.request.metadata ?? {},
  start_time: job.startTime,
  end_time: job.endTime ?? null,
  driver_node_id: job.driverNodeId ?? null,
});
