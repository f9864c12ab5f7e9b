/**
 * The controllers that a cluster has of its own, and what moves them.
 *
 * Answers: what a controller is to the one who moves it: the runner here in everyday use, the explorer in the simulator.
 */
import type { Cancel, Clock } from "../machinery/clock.ts";
import { ApiError } from "./errors.ts";
import type { Storage } from "./storage.ts";

/**
 * Learns of changes at once, acts on them only in steps, so that whoever moves it decides what happens in between.
 */
export interface SimController {
  readonly name: string;
  /** Does one unit of work (one write, or finding that nothing is to be done for one object). False when idle. */
  step(): boolean;
  /** When time alone will make work (milliseconds since the epoch); undefined when it will not. */
  wakeAt(): number | undefined;
}

/** Makes a write that may be refused (by admission, or because the world has moved on). Returns the refusal, if any. */
export function attempt(write: () => unknown): ApiError | undefined {
  try {
    write();
    return undefined;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

/** Keys to look at, each once, in the order they were added. */
export class Dirty<T> {
  readonly #keys = new Map<string, T>();

  add(key: string, value: T): void {
    if (!this.#keys.has(key)) this.#keys.set(key, value);
  }

  take(): T | undefined {
    for (const [key, value] of this.#keys) {
      this.#keys.delete(key);
      return value;
    }
    return undefined;
  }
}

/**
 * Moves controllers whenever there is something to do: after each change, and when time has come. One step of each at a
 * time, so that none runs away. Returns what stops it.
 */
export function runControllers(controllers: readonly SimController[], storage: Storage, clock: Clock): Cancel {
  let pending: Cancel | undefined;
  let pendingAt = Number.POSITIVE_INFINITY;
  let stopped = false;

  const wake = (at: number) => {
    if (stopped || at >= pendingAt) return;
    pending?.();
    pendingAt = at;
    pending = clock.after(at - clock.now(), run);
  };
  const run = () => {
    pending = undefined;
    pendingAt = Number.POSITIVE_INFINITY;
    const worked = controllers.map((controller) => controller.step()).includes(true);
    if (worked) return wake(clock.now());
    for (const controller of controllers) {
      const at = controller.wakeAt();
      if (at !== undefined) wake(at);
    }
  };
  const stopListening = storage.listen(() => wake(clock.now()));
  wake(clock.now());
  return () => {
    stopped = true;
    stopListening();
    pending?.();
  };
}
