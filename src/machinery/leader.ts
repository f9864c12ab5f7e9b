/**
 * Which replica may write: the holder of a Lease, for as long as it surely holds it.
 *
 * Takes the lease when it is free or has not been renewed for its whole duration *as seen here* (no two clocks are
 * compared), renews it, and stops the process's work when it is lost.
 * `mayWrite` is stricter than holding: it turns false while a write sent now could still arrive after the lease has run
 * out. A process that is paused longer than that between the question and the sending is caught by preconditions
 * (resourceVersion, UID) only.
 */
import type { KubeObject, Stored } from "../api/object.ts";
import { type Cancel, type Clock, sleep } from "./clock.ts";
import { microTime } from "./events.ts";
import { type KubeClient, WRITE_TIMEOUT } from "./kube/client.ts";
import { isAlreadyExists, isConflict, isNotFound } from "./kube/errors.ts";
import { leases } from "./kube/resources.ts";
import { describe, type Logger, silent } from "./logger.ts";
import { type Metrics, noMetrics } from "./metrics.ts";

interface Lease extends KubeObject {
  spec?: {
    holderIdentity?: string;
    leaseDurationSeconds?: number;
    acquireTime?: string;
    renewTime?: string;
    leaseTransitions?: number;
  };
}

/** KubeRay's lock, so that its operator and this one never lead at the same time. */
export const LOCK_NAME = "ray-operator-leader";

export interface ElectorOptions {
  /** Must not be guarded by this elector's `mayWrite`: the lease itself is written before it is held. */
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly namespace: string;
  readonly name?: string;
  /** Who this is; unique for each start of the process. */
  readonly identity: string;
  /** Milliseconds; 15 s, 10 s and 2 s when absent. */
  readonly leaseDuration?: number;
  readonly renewDeadline?: number;
  readonly retryPeriod?: number;
  /** The longest a guarded write may be under way: `writeTimeout` of the client that does the work. */
  readonly writeTimeout?: number;
  readonly log?: Logger;
  readonly metrics?: Metrics;
}

/** The lease was lost; whoever led must end. */
export class LeaseLost extends Error {
  override readonly name = "LeaseLost";
}

export class Elector {
  readonly #options: Required<ElectorOptions>;
  readonly #client: KubeClient;
  #lease: Stored<Lease> | undefined;
  /** The lease has stood as it is for its whole duration. */
  #expired = false;
  #cancelExpiry: Cancel = () => {};
  /** While leading: since when, and until when, writes are surely covered. */
  #covered: { readonly from: number; readonly until: number } | undefined;
  #cancelCover: Cancel = () => {};
  #over = false;

  constructor(options: ElectorOptions) {
    this.#options = {
      name: LOCK_NAME,
      leaseDuration: 15_000,
      renewDeadline: 10_000,
      retryPeriod: 2_000,
      writeTimeout: WRITE_TIMEOUT,
      log: silent,
      metrics: noMetrics,
      ...options,
    };
    // Several tries must fit into the deadline, or one dead connection would cost the lease.
    const timeout = this.#options.renewDeadline / 4;
    this.#options.metrics.gauge("leader_election_master_status", { name: this.#options.name }, 0);
    this.#client = options.client.with({ readTimeout: timeout, writeTimeout: timeout });
  }

  /** Whether a write sent now will have ended before anyone else can hold the lease. */
  mayWrite(): boolean {
    const now = this.#options.clock.now();
    return !this.#over && this.#covered !== undefined && now >= this.#covered.from && now < this.#covered.until;
  }

  /** Who holds the lease, as far as is known; for display. */
  get holder(): string | undefined {
    return this.#lease?.spec?.holderIdentity || undefined;
  }

  /**
   * Waits for the lease and leads. `lead` gets a signal that is aborted when it must stop. Resolves after `signal` was
   * aborted and `lead` has ended, the lease given back so that a successor need not wait; rejects with LeaseLost when
   * the lease was lost, or with what `lead` threw.
   */
  async run(signal: AbortSignal, lead: (leading: AbortSignal) => Promise<void>): Promise<void> {
    const { name, identity, log, metrics } = this.#options;
    try {
      await this.#acquire(signal);
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    log.info({ lease: name, identity }, "this replica leads now");
    metrics.gauge("leader_election_master_status", { name }, 1);
    const ended = new AbortController();
    const leading = AbortSignal.any([signal, ended.signal]);
    const work = (async () => lead(leading))();
    const renewal = this.#renewUntilLost(leading);
    try {
      await Promise.race([work, renewal]);
      // Renewal ends when `signal` is aborted; the lease is still ours until the work has ended.
      await work;
      ended.abort();
      await renewal;
      await this.#release();
    } catch (error) {
      this.#over = true;
      ended.abort(error);
      // What still runs should end before anyone is told, but cannot hold up the bad news for ever.
      await Promise.race([work.catch(() => {}), sleep(this.#options.clock, this.#options.writeTimeout)]);
      if (!(error instanceof LeaseLost)) await this.#release();
      throw error;
    } finally {
      this.#over = true;
      this.#cancelCover();
      this.#cancelExpiry();
      metrics.gauge("leader_election_master_status", { name }, 0);
    }
  }

  async #acquire(signal: AbortSignal): Promise<void> {
    const { clock, log, name, retryPeriod } = this.#options;
    let waitedFor: string | undefined;
    while (true) {
      signal.throwIfAborted();
      try {
        if (await this.#take()) return;
        if (this.holder !== waitedFor) log.info({ lease: name, holder: this.holder }, "another replica leads; waiting");
        waitedFor = this.holder;
      } catch (error) {
        log.warn({ lease: name, error: describe(error) }, "the lease could not be read or written; trying again");
      }
      await sleep(clock, retryPeriod, signal);
    }
  }

  /** Throws LeaseLost when the lease is lost; resolves when `signal` is aborted. */
  async #renewUntilLost(signal: AbortSignal): Promise<void> {
    const { clock, log, name, retryPeriod, renewDeadline } = this.#options;
    const lost = Promise.withResolvers<never>();
    const giveUp = () => lost.reject(new LeaseLost(`the lease ${name} could not be renewed in time`));
    let cancel = clock.after(renewDeadline, giveUp);
    let startedAt = clock.now();
    try {
      while (true) {
        // From start to start, so that a slow server does not stretch the time between renewals; a clock set back must not.
        const pause = Math.min(retryPeriod, startedAt + retryPeriod - clock.now());
        await Promise.race([sleep(clock, pause, signal).catch(() => {}), lost.promise]);
        if (signal.aborted) return;
        startedAt = clock.now();
        try {
          // A renewal that hangs must not keep the deadline from being noticed.
          const held = await Promise.race([this.#take(), lost.promise]);
          if (!held) throw new LeaseLost(`the lease ${name} is held by ${this.holder ?? "nobody"} now`);
          cancel();
          cancel = clock.after(renewDeadline, giveUp);
        } catch (error) {
          if (error instanceof LeaseLost) throw error;
          log.warn({ lease: name, error: describe(error) }, "the lease could not be renewed; trying again");
        }
      }
    } finally {
      cancel();
      lost.promise.catch(() => {});
    }
  }

  /** One try to take or renew the lease. True when it is ours now. */
  async #take(): Promise<boolean> {
    const { clock, namespace, name, identity } = this.#options;
    const startedAt = clock.now();
    const leading = this.#covered !== undefined;
    // What we wrote last is most likely still there; if it is not, the server says so and we look.
    if (!(leading && (await this.#renewUnseen()))) {
      const lease = await this.#client.get<Lease>(leases, namespace, name).catch((error) => {
        if (isNotFound(error)) return undefined;
        throw error;
      });
      this.#look(lease);
      const ours = lease?.spec?.holderIdentity === identity;
      // One that led and finds another's name, or none, has lost it, even if it could have it back.
      if (leading && !ours) return false;
      if (!ours && this.holder && !this.#expired) return false;
      try {
        this.#look(await this.#write(lease));
      } catch (error) {
        // Another replica was quicker; the next look tells which.
        if (!leading && (isConflict(error) || isAlreadyExists(error))) return false;
        throw error;
      }
    }
    this.#cover(startedAt);
    return true;
  }

  /** Renews from memory. False when the lease is not as remembered. */
  async #renewUnseen(): Promise<boolean> {
    if (this.#lease?.spec?.holderIdentity !== this.#options.identity) return false;
    try {
      this.#look(await this.#write(this.#lease));
      return true;
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return false;
      throw error;
    }
  }

  #write(lease: Stored<Lease> | undefined): Promise<Stored<Lease>> {
    const { clock, namespace, name, identity, leaseDuration } = this.#options;
    const spec = lease?.spec ?? {};
    const ours = spec.holderIdentity === identity;
    const now = microTime(clock.now());
    const wanted: Lease = {
      ...(lease ?? { metadata: { namespace, name } }),
      spec: {
        ...spec,
        holderIdentity: identity,
        leaseDurationSeconds: Math.ceil(leaseDuration / 1000),
        acquireTime: ours ? (spec.acquireTime ?? now) : now,
        renewTime: now,
        leaseTransitions: (spec.leaseTransitions ?? 0) + (lease && !ours ? 1 : 0),
      },
    };
    return lease ? this.#client.update<Lease>(leases, wanted) : this.#client.create<Lease>(leases, wanted);
  }

  #look(lease: Stored<Lease> | undefined): void {
    const changed = lease?.metadata.resourceVersion !== this.#lease?.metadata.resourceVersion;
    this.#lease = lease;
    if (!changed) return;
    const { clock, leaseDuration } = this.#options;
    const seconds = lease?.spec?.leaseDurationSeconds;
    this.#expired = false;
    this.#cancelExpiry();
    // A timer, not a difference of times: a wall clock set forward must not make a living holder look dead.
    this.#cancelExpiry = clock.after(seconds ? seconds * 1000 : leaseDuration, () => {
      this.#expired = true;
    });
  }

  /** Counts from before the request was sent: the server may have written it at any time since. */
  #cover(from: number): void {
    const { clock, leaseDuration, writeTimeout } = this.#options;
    const until = from + leaseDuration - writeTimeout;
    this.#covered = { from, until };
    this.#cancelCover();
    // The time alone would not do: a wall clock set back would prolong it. The timer alone would not do either: a
    // process that was suspended answers questions before its timers have fired.
    this.#cancelCover = clock.after(until - clock.now(), () => {
      this.#covered = { from, until: Number.NEGATIVE_INFINITY };
    });
  }

  async #release(): Promise<void> {
    const { clock, log, name, identity } = this.#options;
    this.#over = true;
    const lease = this.#lease;
    if (lease?.spec?.holderIdentity !== identity) return;
    const now = microTime(clock.now());
    try {
      const spec = { ...lease.spec, holderIdentity: "", leaseDurationSeconds: 1, acquireTime: now, renewTime: now };
      await this.#client.update<Lease>(leases, { ...lease, spec });
    } catch (error) {
      log.warn({ lease: name, error: describe(error) }, "the lease was not given back; it runs out by itself");
    }
  }
}
