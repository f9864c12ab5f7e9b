/**
 * Tells users what happened, as Events beside the object.
 *
 * The same event again becomes a count on the first (its series), written at most every few seconds; an object that
 * talks too much is cut short. Never blocks and never fails its caller: what cannot be recorded is dropped and logged.
 */
import type { KubeObject, Stored } from "../api/object.ts";
import { type Clock, sleep } from "./clock.ts";
import { type KubeClient, WriteRefused } from "./kube/client.ts";
import { isAlreadyExists, isNamespaceTerminating, isNotFound, isUnknownOutcome, KubeError } from "./kube/errors.ts";
import { events as eventsType } from "./kube/resources.ts";
import { TransportError } from "./kube/transport.ts";
import { describe, type Logger, silent } from "./logger.ts";
import { type Metrics, noMetrics } from "./metrics.ts";
import { RateLimit } from "./rateLimit.ts";

/** What happened; domain's EventSpec is one. */
export interface Happening {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly action: string;
  readonly note: string;
}

interface EventObject extends KubeObject {
  eventTime: string;
  reportingController: string;
  reportingInstance: string;
  type: string;
  reason: string;
  action: string;
  note: string;
  regarding: Record<string, string | undefined>;
  series?: { count: number; lastObservedTime: string };
}

/** The server refuses longer ones. */
const LONGEST_NOTE = 1024;
/** A repetition within this time counts as the same series (client-go's figure). */
const SERIES_GAP = 6 * 60_000;
/** A series is written at most this often; what happens in between is in the next count. */
const SERIES_PAUSE = 30_000;
/** Events of one object: this many at once, then one every five minutes (client-go's figures). */
const BURST = 25;
const PER_SECOND = 1 / 300;
const MOST_WAITING = 1000;
const MOST_REMEMBERED = 4096;
const ATTEMPTS = 4;

interface Series {
  readonly object: EventObject;
  count: number;
  lastAt: number;
  /** Count the server knows; 0 while the event itself is not made. */
  written: number;
  writtenAt: number;
  /** Waiting in line, or for the pause to pass. */
  scheduled: boolean;
}

export class Events {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  readonly #controller: string;
  readonly #instance: string;
  readonly #log: Logger;
  readonly #metrics: Metrics;
  /** In the order of last use, so that the first is the one to forget. */
  readonly #series = new Map<string, Series>();
  readonly #talkers = new Map<string, RateLimit>();
  readonly #line: Series[] = [];
  #made = 0;
  #draining: Promise<void> | undefined;

  constructor(options: {
    readonly client: KubeClient;
    readonly clock: Clock;
    /** `reportingController`: who says so. */
    readonly controller: string;
    /** `reportingInstance`: which replica. */
    readonly instance: string;
    readonly log?: Logger;
    readonly metrics?: Metrics;
  }) {
    this.#client = options.client;
    this.#clock = options.clock;
    this.#controller = options.controller;
    this.#instance = options.instance;
    this.#log = options.log ?? silent;
    this.#metrics = options.metrics ?? noMetrics;
  }

  /** Records it in the background. */
  record(regarding: Stored, happening: Happening): void {
    const { type, reason, action } = happening;
    const note = cut(happening.note);
    const { uid, namespace } = regarding.metadata;
    const now = this.#clock.now();
    const key = JSON.stringify([uid, type, reason, action, note]);
    const known = this.#series.get(key);
    if (known && now - known.lastAt <= SERIES_GAP) {
      known.count++;
      known.lastAt = now;
      this.#remember(this.#series, key, known);
      this.#schedule(known);
      return;
    }
    const talker = this.#talkers.get(uid) ?? new RateLimit(this.#clock, PER_SECOND, BURST);
    this.#remember(this.#talkers, uid, talker);
    if (!talker.tryTake()) {
      this.#drop(reason, "its object has too many events");
      return;
    }
    const series: Series = {
      object: {
        metadata: { name: this.#newName(regarding), namespace: namespace ?? "default" },
        eventTime: microTime(now),
        reportingController: this.#controller,
        reportingInstance: this.#instance,
        type,
        reason,
        action,
        note,
        regarding: {
          apiVersion: regarding.apiVersion,
          kind: regarding.kind,
          namespace,
          name: regarding.metadata.name,
          uid,
          resourceVersion: regarding.metadata.resourceVersion,
        },
      },
      count: 1,
      lastAt: now,
      written: 0,
      writtenAt: Number.NEGATIVE_INFINITY,
      scheduled: false,
    };
    this.#remember(this.#series, key, series);
    this.#schedule(series);
  }

  /** Resolves when everything that is in line has been sent or dropped; for an orderly end. */
  async flushed(): Promise<void> {
    while (this.#draining) await this.#draining;
  }

  #schedule(series: Series): void {
    if (series.scheduled) return;
    series.scheduled = true;
    const pause = series.writtenAt + SERIES_PAUSE - this.#clock.now();
    // The first repetition shows at once that it is one; later ones are gathered.
    if (series.written > 1 && pause > 0) this.#clock.after(pause, () => this.#lineUp(series));
    else this.#lineUp(series);
  }

  #lineUp(series: Series): void {
    if (this.#line.length >= MOST_WAITING) {
      series.scheduled = false;
      this.#drop(series.object.reason, "too many events are waiting to be sent");
      return;
    }
    this.#line.push(series);
    this.#draining ??= this.#drain();
  }

  async #drain(): Promise<void> {
    for (let series = this.#line.shift(); series; series = this.#line.shift()) {
      series.scheduled = false;
      await this.#send(series);
    }
    // In the same breath as the last look at the line: whoever joins it from here on must start the next drain.
    this.#draining = undefined;
  }

  async #send(series: Series): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const { count } = series;
      try {
        await this.#write(series, count);
        series.written = count;
        series.writtenAt = this.#clock.now();
        return;
      } catch (error) {
        const passing = error instanceof TransportError || isUnknownOutcome(error) || isBusy(error);
        if (!passing || attempt === ATTEMPTS) {
          // WriteRefused is the lease's doing, and whoever leads now tells his own story; what goes with its namespace
          // nobody reads of any more.
          if (!(error instanceof WriteRefused || isNamespaceTerminating(error)))
            this.#drop(series.object.reason, describe(error));
          return;
        }
        await sleep(this.#clock, Math.max(retryAfter(error), 250 * 2 ** attempt));
      }
    }
  }

  async #write(series: Series, count: number): Promise<void> {
    const { object } = series;
    const { namespace, name } = object.metadata;
    const lastObservedTime = microTime(series.lastAt);
    if (series.written > 0) {
      try {
        await this.#client.patch(eventsType, namespace, name!, { series: { count, lastObservedTime } });
        return;
      } catch (error) {
        // Events live for an hour; a series may outlive its own.
        if (!isNotFound(error)) throw error;
      }
    }
    try {
      await this.#client.create(eventsType, count > 1 ? { ...object, series: { count, lastObservedTime } } : object);
    } catch (error) {
      // After an answer that did not come: it had been made. The name is nobody else's.
      if (!isAlreadyExists(error)) throw error;
    }
  }

  /** `<object>.<number>` as others name theirs; the time makes it unique over restarts, the counter within a millisecond. */
  #newName(regarding: Stored): string {
    const unique = (BigInt(this.#clock.now()) * 1_000_000n + BigInt(this.#made++ % 1_000_000)).toString(16);
    return `${regarding.metadata.name.slice(0, 253 - unique.length - 1).replace(/[.-]+$/, "")}.${unique}`;
  }

  #remember<V>(memory: Map<string, V>, key: string, value: V): void {
    memory.delete(key);
    memory.set(key, value);
    if (memory.size > MOST_REMEMBERED) memory.delete(memory.keys().next().value!);
  }

  #drop(reason: string, why: string): void {
    this.#metrics.count("raykeeper_events_dropped_total", { reason });
    this.#log.warn({ reason, why }, "an event was not recorded");
  }
}

/** `metav1.MicroTime`. */
export const microTime = (instant: number): string => new Date(instant).toISOString().replace("Z", "000Z");

const isBusy = (error: unknown) => error instanceof KubeError && error.status === 429;
const retryAfter = (error: unknown) => (error instanceof KubeError && error.retryAfter) || 0;

function cut(note: string): string {
  if (Buffer.byteLength(note) <= LONGEST_NOTE) return note;
  // Counted in bytes by the server; a character cut in two at the end is left out.
  const text = Buffer.from(note)
    .subarray(0, LONGEST_NOTE - 3)
    .toString("utf8");
  return `${text.replace(/\uFFFD+$/, "")}…`;
}
