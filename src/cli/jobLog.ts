/**
 * The job's own log, as it is written.
 *
 * It is the submitter's, a Pod's or the head's sidecar's: read through the API server's log endpoint, and when the stream
 * breaks, or a second submitter takes over and begins again, nothing is shown twice. In HTTPMode there is no submitter, so Ray's dashboard
 * is asked through the API server's Service proxy.
 * May not: decide when the job has ended; whoever follows says so.
 */
import { isTerminal, type RayAddress } from "../domain/rayjob/ray.ts";
import { type Clock, sleep } from "../machinery/clock.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { isNotFound, KubeError } from "../machinery/kube/errors.ts";
import { pods, resourcePath } from "../machinery/kube/resources.ts";
import type { Transport } from "../machinery/kube/transport.ts";
import type { RayTransport } from "../ray/transport.ts";
import { messageOf } from "./failure.ts";

export interface LogOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onText: (text: string) => void;
  /** What the submitter says for itself between the lines of the job. */
  readonly onSubmitter?: (text: string) => void;
  /** Something a user should know: the log is cut, or cannot be read. */
  readonly onTrouble: (text: string) => void;
}

const RETRY_MS = 1000;
/** In HTTPMode nobody but the head has the log, and a cluster that goes at once takes it along. */
const KEEP_CLUSTER =
  "In HTTPMode only the Ray cluster has it: spec.ttlSecondsAfterFinished keeps the cluster for a while after the end";
/** How src/submitter/submit.py marks its own lines. */
const SUBMITTER = "raykeeper: ";
/** Said before the log begins. */
const HANDED_OVER = /^raykeeper: (Ray has job|submitted job) /;
/** Lines kept to recognise a replay by a second submitter. */
const REMEMBERED_LINES = 200_000;

/** What has been shown of one attempt's log, over all Pods and connections it came through. */
export class Shown {
  readonly #lines: string[] = [];
  /** The line a replay is expected to bring next; at the end there is no replay going on. */
  #next = 0;

  /** A Pod that has not been read before tells the log from its first line again. */
  restart(): void {
    this.#next = 0;
  }

  /** Whether this line is news; the replay of one that was shown is not. */
  isNew(line: string): boolean {
    if (this.#next < this.#lines.length) {
      if (this.#lines[this.#next] === line) {
        this.#next++;
        return false;
      }
      // Before the replay begins another submitter than ours may say something.
      if (this.#next === 0) return true;
    }
    if (this.#lines.length < REMEMBERED_LINES) this.#lines.push(line);
    this.#next = this.#lines.length;
    return true;
  }
}

export interface PodLog {
  readonly transport: Transport;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly shown: Shown;
  /** Whether the container has ended: its log is then complete when the stream ends. */
  readonly ended: () => boolean;
}

/** Follows one container's log to its end. Resolves when it is complete or cannot be had any more. */
export async function followPodLog(log: PodLog, options: LogOptions): Promise<void> {
  const { clock, signal, onText, onTrouble } = options;
  const client = new KubeClient(log.transport, { clock });
  const path = resourcePath(pods, log.namespace, log.pod, "log");
  const position = new Position();
  let troubled = false;
  while (!signal.aborted) {
    const complete = log.ended();
    try {
      const query: Record<string, string> = { container: log.container, follow: "true", timestamps: "true" };
      if (position.sinceTime) query["sinceTime"] = position.sinceTime;
      position.resume();
      for await (const line of await client.rawLines(path, query, signal)) {
        troubled = false;
        const text = position.take(line);
        if (text === undefined) continue;
        if (text.startsWith(SUBMITTER)) {
          // In a container that was started again, too, the log comes from its first line.
          if (HANDED_OVER.test(text)) log.shown.restart();
          options.onSubmitter?.(text.slice(SUBMITTER.length));
        } else if (log.shown.isNew(text)) onText(`${text}\n`);
      }
      // The stream ended in good order after the container had: that was all of it.
      if (complete) return;
    } catch (error) {
      if (signal.aborted) return;
      if (isNotFound(error)) return;
      // 400: the container is only being started, which is no trouble.
      const starting = error instanceof KubeError && error.status === 400;
      if (complete && !starting) return onTrouble(`the end of the job's log could not be read: ${messageOf(error)}`);
      if (!starting && !troubled) onTrouble(`the log's connection broke (${messageOf(error)}); reading on`);
      troubled = !starting;
    }
    await sleep(clock, RETRY_MS, signal).catch(() => {});
  }
}

/** How far one container's log has been read, by the time stamps of its lines. */
export class Position {
  #last = "";
  /** Lines read with the last time stamp: a server may give several the same. */
  #same = 0;
  #skip = 0;

  /** Where a new connection should begin; the server counts whole seconds, so some lines come again. */
  get sinceTime(): string | undefined {
    return this.#last ? this.#last.replace(/\.\d+/, "") : undefined;
  }

  /** A new connection begins. */
  resume(): void {
    this.#skip = this.#same;
  }

  /** The line's text without its time stamp, or undefined when it was read before. */
  take(line: string): string | undefined {
    const [, stamp, text] = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)) ?(.*)$/s.exec(line) ?? [];
    if (stamp === undefined || text === undefined) return line;
    const order = this.#last ? compareStamps(stamp, this.#last) : 1;
    if (order < 0) return undefined;
    if (order === 0) {
      if (this.#skip > 0) {
        this.#skip--;
        return undefined;
      }
      this.#same++;
      return text;
    }
    this.#last = stamp;
    this.#same = 1;
    this.#skip = 0;
    return text;
  }
}

/** Orders RFC 3339 stamps, whose fractions may have any number of digits. */
function compareStamps(a: string, b: string): number {
  const split = (stamp: string) => {
    const fraction = /\.(\d+)/.exec(stamp)?.[1] ?? "";
    return { second: Date.parse(stamp.replace(/\.\d+/, "")), fraction: fraction.padEnd(9, "0") };
  };
  const [left, right] = [split(a), split(b)];
  return left.second - right.second || left.fraction.localeCompare(right.fraction);
}

export interface RayLog {
  readonly transport: RayTransport;
  /** Asked before each request. */
  readonly at: () => RayAddress;
  readonly jobId: string;
  /** Whether the job is known to have ended: one more read, and the log is complete. */
  readonly ended: () => boolean;
  /** Resolves when the job has ended, so that the end of its log is read before a cluster that goes at once has gone. */
  readonly end?: Promise<void>;
}

/**
 * Reads the log that Ray's dashboard has of a job, again and again until it has ended, and shows what is new. Ray itself is
 * asked whether it has, before each read: then the log is complete though the cluster has gone when the RayJob says so.
 */
export async function followRayLog(log: RayLog, options: LogOptions): Promise<void> {
  const { clock, signal, onText, onTrouble } = options;
  const job = `/api/jobs/${encodeURIComponent(log.jobId)}`;
  const ask = async (path: string): Promise<object> => {
    const answer = await log.transport.request({ ...log.at(), method: "GET", path, timeout: 10_000 });
    const { status, body, remedy } = answer;
    if (status !== 200) throw new Error(`HTTP ${status}: ${body.slice(0, 200)}${remedy ? `. ${remedy}` : ""}`);
    return JSON.parse(answer.body) as object;
  };
  let shown = 0;
  let troubled = false;
  while (!signal.aborted) {
    const last = log.ended();
    let complete = last;
    try {
      complete ||= isTerminal(((await ask(job)) as { status?: string }).status);
      const { logs = "" } = (await ask(`${job}/logs`)) as { logs?: string };
      onText(logs.slice(shown));
      shown = Math.max(shown, logs.length);
      if (complete) return;
      troubled = false;
    } catch (error) {
      if (signal.aborted) return;
      if (last) return onTrouble(`the end of the job's log could not be read: ${messageOf(error)}. ${KEEP_CLUSTER}`);
      if (!troubled)
        onTrouble(`the job's log cannot be read through the API server (${messageOf(error)}); trying again`);
      troubled = true;
    }
    await Promise.race([sleep(clock, RETRY_MS, signal).catch(() => {}), ...(log.end ? [log.end] : [])]);
  }
}
