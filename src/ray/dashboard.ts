/**
 * Ray's dashboard, as the operator uses it: asks about jobs and nodes, submits, stops, forgets.
 *
 * Answers: what Ray says, as the values of domain/rayjob/ray.ts. What is no answer is decided here and nowhere else:
 * anything but 2xx and 404, whatever its body; a body that cannot be read; a 404 that did not come from Ray.
 * May not: remember, retry or pace. poller.ts asks again, commands.ts carries out.
 */
import type { JobAnswer, RayAddress, RayJobInfo, RayJobStatus, SubmitRequest } from "../domain/rayjob/ray.ts";
import { type RayResponse, type RayTransport, RayTransportError } from "./transport.ts";

export interface DashboardOptions {
  readonly transport: RayTransport;
  /** Milliseconds for a question. KubeRay's: 2 s direct, 10 s through the API server. */
  readonly askTimeout: number;
  /** Milliseconds for a command. Ray starts an actor before it answers a submission, so this is longer. */
  readonly commandTimeout: number;
  /** Asked immediately before a command goes out: false once the lease may have been lost. */
  readonly mayAct?: () => boolean;
}

export interface CommandResult {
  /** `refused`: surely not done. `unknown`: Ray may have done it. */
  readonly result: "done" | "refused" | "unknown";
  readonly message: string;
}

/** State of each node Ray lists, by hex node id; undefined when it could not be learnt. */
export type NodeStates = ReadonlyMap<string, "ALIVE" | "DEAD">;

export class Dashboard {
  readonly #options: DashboardOptions;

  constructor(options: DashboardOptions) {
    this.#options = options;
  }

  /** `GET /api/jobs/{id}`: never rejects, since "no answer" is an answer to decide with. */
  async job(at: RayAddress, jobId: string): Promise<JobAnswer> {
    const response = await this.#ask(at, `/api/jobs/${encodeURIComponent(jobId)}`);
    if (typeof response === "string") return { kind: "none", error: response };
    if (isRaysNotFound(response)) return { kind: "notFound" };
    if (!isSuccess(response)) return { kind: "none", error: describe(response) };
    const info = readJob(parse(response.body), jobId);
    return info ? { kind: "known", info } : { kind: "none", error: `an answer that is no job: ${cut(response.body)}` };
  }

  /**
   * `GET /api/jobs/`: the jobs Ray lists, by submission id. A job that is not in it is not thereby "not found":
   * Ray gathers the list entry by entry, so ask for it by its id. A string says why there is no answer.
   */
  async jobs(at: RayAddress): Promise<ReadonlyMap<string, RayJobInfo> | string> {
    const response = await this.#ask(at, "/api/jobs/");
    if (typeof response === "string") return response;
    const list = isSuccess(response) ? parse(response.body) : undefined;
    if (!Array.isArray(list)) return describe(response);
    const jobs = new Map<string, RayJobInfo>();
    for (const entry of list) {
      const id = isObject(entry) && typeof entry["submission_id"] === "string" ? entry["submission_id"] : undefined;
      const info = id === undefined ? undefined : readJob(entry, id);
      if (id !== undefined && info) jobs.set(id, info);
    }
    return jobs;
  }

  /** `session_name` of `GET /api/version`; undefined when it was not learnt. */
  async session(at: RayAddress): Promise<string | undefined> {
    const response = await this.#ask(at, "/api/version");
    if (typeof response === "string" || !isSuccess(response)) return undefined;
    const body = parse(response.body);
    const session = isObject(body) ? body["session_name"] : undefined;
    return typeof session === "string" && session !== "" ? session : undefined;
  }

  /** `GET /nodes`: every node of this session, the dead ones too. `nocache`, because Ray caches this page for any time. */
  async nodes(at: RayAddress): Promise<NodeStates | undefined> {
    const response = await this.#ask(at, "/nodes?view=summary&nocache=1");
    if (typeof response === "string" || !isSuccess(response)) return undefined;
    const body = parse(response.body) as { data?: { summary?: unknown } } | undefined;
    const summary = body?.data?.summary;
    if (!Array.isArray(summary)) return undefined;
    const states = new Map<string, "ALIVE" | "DEAD">();
    for (const node of summary as { raylet?: { nodeId?: unknown; state?: unknown } }[]) {
      const { nodeId, state } = node?.raylet ?? {};
      if (typeof nodeId === "string" && (state === "ALIVE" || state === "DEAD")) states.set(nodeId, state);
    }
    return states;
  }

  /**
   * Submits, having made sure immediately before that this is still the record's session. A POST cannot be made
   * conditional on the session, so a head that restarts between the two requests may yet be given the job.
   */
  async submit(at: RayAddress, request: SubmitRequest, session: string): Promise<CommandResult> {
    const now = await this.session(at);
    if (now === undefined)
      return { result: "refused", message: "Ray did not say which session it is; nothing was sent." };
    if (now !== session) {
      return { result: "refused", message: `Ray is in session ${now}, not in ${session}; nothing was sent.` };
    }
    return this.#command(at, "POST", "/api/jobs/", JSON.stringify(request), (response) => {
      // A repeated POST whose first answer was lost. Ray keeps the ids of one session apart, so it is our own job.
      if (response.body.includes("Please use a different submission_id")) {
        return { result: "done", message: "Ray knows this submission id already." };
      }
      return undefined;
    });
  }

  /** Asks Ray to stop the job. Done means that Ray has taken note; ask for the job to see it end. */
  stop(at: RayAddress, jobId: string): Promise<CommandResult> {
    return this.#command(at, "POST", `/api/jobs/${encodeURIComponent(jobId)}/stop`, undefined, goneIsDone);
  }

  /** Deletes Ray's record of a job that has ended, so that its id may be used again. */
  forget(at: RayAddress, jobId: string): Promise<CommandResult> {
    return this.#command(at, "DELETE", `/api/jobs/${encodeURIComponent(jobId)}`, undefined, goneIsDone);
  }

  async #command(
    at: RayAddress,
    method: "POST" | "DELETE",
    path: string,
    body: string | undefined,
    special: (response: RayResponse) => CommandResult | undefined,
  ): Promise<CommandResult> {
    if (this.#options.mayAct?.() === false) {
      return { result: "refused", message: "This operator no longer surely leads; nothing was sent." };
    }
    try {
      const response = await this.#options.transport.request({
        ...place(at),
        method,
        path,
        headers: { "content-type": "application/json" },
        body,
        timeout: this.#options.commandTimeout,
      });
      if (isSuccess(response)) return { result: "done", message: cut(response.body) };
      const answer = special(response);
      if (answer) return answer;
      // 4xx: not taken. The job agent's own refusal reaches us as a 500 of the head that quotes it. Anything else may come
      // from a proxy or from halfway through Ray's own work.
      const refused =
        (response.status >= 400 && response.status < 500) ||
        /Request failed with status code 4\d\d/.test(response.body);
      return { result: refused ? "refused" : "unknown", message: describe(response) };
    } catch (error) {
      const sent = !(error instanceof RayTransportError) || error.maybeSent;
      return { result: sent ? "unknown" : "refused", message: (error as Error).message };
    }
  }

  /** The response, or in words why there is none. */
  async #ask(at: RayAddress, path: string): Promise<RayResponse | string> {
    try {
      return await this.#options.transport.request({
        ...place(at),
        method: "GET",
        path,
        timeout: this.#options.askTimeout,
      });
    } catch (error) {
      return (error as Error).message;
    }
  }
}

const place = ({ dashboard, token }: RayAddress): RayAddress => ({ dashboard, ...(token && { token }) });

const isSuccess = ({ status }: RayResponse): boolean => status >= 200 && status < 300;

/** Ray never answers with a Kubernetes Status: that 404 is the API server's, about the Service or a Pod behind it. */
function isRaysNotFound({ status, body }: RayResponse): boolean {
  if (status !== 404) return false;
  const parsed = parse(body);
  return !(isObject(parsed) && parsed["kind"] === "Status");
}

const goneIsDone = (response: RayResponse): CommandResult | undefined =>
  isRaysNotFound(response) ? { result: "done", message: "Ray does not know this job." } : undefined;

/** It goes into the RayJob's status: with one that is too large for the API server no verdict could be written. */
const LONGEST_MESSAGE = 32 * 1024;

const STATUSES: ReadonlySet<unknown> = new Set<RayJobStatus>(["PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"]);

/** Ray's job object, or undefined when this is none, or another job's (ids of drivers share the path). */
function readJob(body: unknown, jobId: string): RayJobInfo | undefined {
  if (!isObject(body) || !STATUSES.has(body["status"])) return undefined;
  const id = body["submission_id"];
  if (typeof id === "string" && id !== jobId) return undefined;
  return {
    status: body["status"] as RayJobStatus,
    message: typeof body["message"] === "string" ? body["message"].slice(0, LONGEST_MESSAGE) : "",
    startTime: instant(body["start_time"]),
    endTime: instant(body["end_time"]),
    driverNodeId: typeof body["driver_node_id"] === "string" ? body["driver_node_id"] || undefined : undefined,
  };
}

/** The end of the year 9999: the API server takes no later time, and with it no status that has one. */
const LATEST = 253_402_300_799_999;

/** Milliseconds since the epoch; Ray writes null or 0 where there is none, and what is no time for a status is none either. */
const instant = (value: unknown): number | undefined =>
  typeof value === "number" && value > 0 && value <= LATEST ? Math.floor(value) : undefined;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A traceback's last line is what a user can act on. */
function describe({ status, body, remedy }: RayResponse): string {
  // The head quotes the agent's traceback and ends it with a full stop on a line of its own.
  const lines = body.split("\n").filter((line) => /\w/.test(line));
  const text = lines[0]?.startsWith("Traceback") ? lines.at(-1)! : body;
  return `HTTP ${status}: ${cut(text)}${remedy ? `. ${remedy}` : ""}`;
}

const cut = (text: string): string => (text.length > 500 ? `${text.slice(0, 500)}…` : text.trim());
