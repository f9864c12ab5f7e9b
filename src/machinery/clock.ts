/**
 * Time, as everything outside `domain/` sees it.
 *
 * Answers: what time is it, and call me later. The real clock and a virtual one (virtualClock.ts) are interchangeable,
 * so the same controllers run in production and in the simulator.
 * May not: be by-passed. `Date.now`, `setTimeout` and `setInterval` elsewhere in machinery/, ray/ or simkube/ would make
 * a behaviour that the simulator cannot explore.
 */

/** Stops a timer; calling it again, or after the timer has fired, does nothing. */
export type Cancel = () => void;

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Calls `run` once, `milliseconds` from now (0 or less: as soon as possible, never synchronously). */
  after(milliseconds: number, run: () => void): Cancel;
}

/** The machine's own clock. Its timers do not keep a process alive by themselves. */
export const realClock: Clock = {
  now: () => Date.now(),
  after(milliseconds, run) {
    // Node clamps longer delays to 1 ms; nobody waits three weeks for one timer, so waking early and asking again is fine.
    const timer = setTimeout(run, Math.min(Math.max(milliseconds, 0), 0x7fffffff));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Resolves after `milliseconds`, or rejects with the signal's reason when it is aborted first. */
export function sleep(clock: Clock, milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = clock.after(milliseconds, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    signal?.addEventListener("abort", abort, { once: true });
  });
}
