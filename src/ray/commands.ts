/**
 * Carries out what the RayJob's decisions want of Ray (submit, stop, forget), off the reconcile worker.
 *
 * Answers: how a command of an attempt fared, as an observation of a later pass.
 * May not: decide whether to try again; a command that a decision repeats is carried out again, though not at once.
 * One command of a kind and target is under way at a time, and one dashboard is given its commands one after the other,
 * since each submission starts a process on the head. Memory only.
 */
import type { RayCommand, RayObservation, RayOutcome, RayTarget } from "../domain/rayjob/ray.ts";
import { type Clock, sleep } from "../machinery/clock.ts";
import type { CommandResult, Dashboard } from "./dashboard.ts";

export interface RayCommandsOptions {
  readonly clock: Clock;
  readonly dashboard: Dashboard;
  /** Called when an outcome is there: the RayJob should be looked at again, and Ray be asked. Must not throw. */
  readonly finished: (target: RayTarget, command: RayCommand["do"], result: CommandResult) => void;
}

/** Milliseconds between the end of a command and its repetition: a decision that sees "refused" at once asks again at once. */
const PAUSE = 1000;

type Outcomes = Pick<RayObservation, RayCommand["do"]>;

export class RayCommands {
  readonly #options: RayCommandsOptions;
  readonly #attempts = new Map<
    string,
    { readonly attempt: number; readonly outcomes: { -readonly [K in keyof Outcomes]: Outcomes[K] } }
  >();
  /** The last command of each dashboard; the next one waits for it. */
  readonly #lines = new Map<string, Promise<void>>();
  readonly #stopped = new AbortController();

  constructor(options: RayCommandsOptions) {
    this.#options = options;
  }

  /** Hands a command over. Does nothing while the same one is under way. */
  run(command: RayCommand): void {
    const { target } = command;
    let known = this.#attempts.get(target.uid);
    if (known?.attempt !== target.attempt) {
      known = { attempt: target.attempt, outcomes: {} };
      this.#attempts.set(target.uid, known);
    }
    const before = known.outcomes[command.do];
    if (before && before.finishedAt === undefined) return;
    const started: RayOutcome = { startedAt: this.#options.clock.now() };
    known.outcomes[command.do] = started;

    const { outcomes } = known;
    const previous = this.#lines.get(target.dashboard) ?? Promise.resolve();
    const line = previous.then(async () => {
      const result = await this.#carryOut(command, before);
      if (this.#stopped.signal.aborted) return;
      outcomes[command.do] = { ...started, finishedAt: this.#options.clock.now(), ...result };
      // Forgotten meanwhile: the outcome is nobody's.
      if (this.#attempts.get(target.uid)?.outcomes === outcomes) this.#options.finished(target, command.do, result);
    });
    this.#lines.set(target.dashboard, line);
    void line.finally(() => {
      if (this.#lines.get(target.dashboard) === line) this.#lines.delete(target.dashboard);
    });
  }

  /** How the commands of this attempt fared. */
  outcomes(uid: string, attempt: number): Outcomes {
    const known = this.#attempts.get(uid);
    return known?.attempt === attempt ? known.outcomes : {};
  }

  /** Drops what is known about a RayJob. A request under way still reaches Ray. */
  forget(uid: string): void {
    this.#attempts.delete(uid);
  }

  /** Starts no further command. */
  stop(): void {
    this.#stopped.abort();
  }

  async #carryOut(command: RayCommand, before: RayOutcome | undefined): Promise<CommandResult> {
    const { clock, dashboard } = this.#options;
    const { signal } = this.#stopped;
    const pause = before?.finishedAt === undefined ? 0 : before.finishedAt + PAUSE - clock.now();
    if (pause > 0) await sleep(clock, pause, signal).catch(() => undefined);
    if (signal.aborted) return { result: "refused", message: "The operator is stopping; nothing was sent." };
    const { target } = command;
    switch (command.do) {
      case "submit":
        return dashboard.submit(target, command.request, command.session);
      case "stop":
        return dashboard.stop(target, target.jobId);
      case "forget":
        return dashboard.forget(target, target.jobId);
    }
  }
}
