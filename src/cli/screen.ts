/**
 * What a command shows: the job's log on stdout, everything about the way there on stderr.
 *
 * On a terminal the last line of stderr is live and is taken away before anything else is written; otherwise there are
 * plain lines only, each with its time, and no control characters.
 */

export interface Output {
  write(text: string): unknown;
  readonly isTTY?: boolean;
  readonly columns?: number;
}

export type Tone = "plain" | "good" | "warn" | "bad" | "dim";

const CODES: Readonly<Record<Tone, string>> = { plain: "", good: "32", warn: "33", bad: "31", dim: "2" };
const CLEAR_LINE = "\r\u001b[2K";

/** All that a terminal obeys, save line breaks and colours: messages are Ray's, a container's, anybody's. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is about them
const OBEYED = /\u001b(?!\[[0-9;]*m)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g;
export const harmless = (text: string): string => text.replace(OBEYED, "");

export interface ScreenOptions {
  readonly stdout: Output;
  readonly stderr: Output;
  /** Colours are used only when this is true and stderr is a terminal. */
  readonly colour: boolean;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Where the job's log goes: stderr when stdout is taken by `-o json`. */
  readonly logTo?: "stdout" | "stderr";
}

export class Screen {
  readonly #options: ScreenOptions;
  readonly #start: number;
  #live = "";
  /** The job's log ended in the middle of a line: whatever comes next starts on a line of its own. */
  #open = false;

  constructor(options: ScreenOptions) {
    this.#options = options;
    this.#start = options.now();
  }

  /** Milliseconds since the command started. */
  elapsed(at: number = this.#options.now()): number {
    return Math.max(0, at - this.#start);
  }

  paint(tone: Tone, text: string): string {
    return paintOn(this.#options.stderr, this.#options.colour)(tone, text);
  }

  /** One line of progress, with the time since the command started. */
  step(text: string, tone: Tone = "plain"): void {
    const time = `${(this.elapsed() / 1000).toFixed(1)}s`.padStart(8);
    this.line(`${this.paint("dim", time)}  ${this.paint(tone, text)}`);
  }

  /** One line on stderr as it is. */
  line(text: string): void {
    this.#above(() => {
      if (this.#open) {
        this.#log().write("\n");
        this.#open = false;
      }
      this.#options.stderr.write(`${harmless(text)}\n`);
    });
  }

  /** Whether there is a live line at all: stderr is a terminal. */
  get isLive(): boolean {
    return this.#options.stderr.isTTY === true;
  }

  /** Replaces the live line; ignored where there is no terminal. An empty text takes it away. */
  live(text: string): void {
    if (!this.#options.stderr.isTTY || this.#open) return;
    const width = (this.#options.stderr.columns ?? 80) - 1;
    const time = `${(this.elapsed() / 1000).toFixed(0)}s`.padStart(8);
    const next = text ? `${time}  ${harmless(text)}`.slice(0, width) : "";
    if (next === this.#live) return;
    this.#options.stderr.write(CLEAR_LINE + this.paint("dim", next));
    this.#live = next;
  }

  /** A piece of the job's log, unchanged. */
  log(text: string): void {
    if (!text) return;
    this.#above(() => this.#log().write(text));
    this.#open = !text.endsWith("\n");
  }

  #log(): Output {
    return this.#options.logTo === "stderr" ? this.#options.stderr : this.#options.stdout;
  }

  #above(write: () => void): void {
    const live = this.#live;
    if (live) this.#options.stderr.write(CLEAR_LINE);
    this.#live = "";
    write();
    if (live && !this.#open) {
      this.#options.stderr.write(this.paint("dim", live));
      this.#live = live;
    }
  }
}

/** Colours for a terminal; where there is none, or colours are not wanted, the text as it is. */
export function paintOn({ isTTY }: Output, colour: boolean): (tone: Tone, text: string) => string {
  return (tone, text) => {
    const code = colour && isTTY ? CODES[tone] : "";
    return code ? `\u001b[${code}m${text}\u001b[0m` : text;
  };
}

/** Whether colours are wanted: `--no-color`, NO_COLOR (set and not empty) and TERM=dumb say no. */
export function wantsColour(flag: boolean, env: Readonly<Record<string, string | undefined>>): boolean {
  return flag && !env["NO_COLOR"] && env["TERM"] !== "dumb";
}

/** `850ms`, `4.2s`, `3m05s`, `2h07m`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)}ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)}s`;
  const seconds = Math.round(milliseconds / 1000);
  const two = (count: number) => String(count).padStart(2, "0");
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3600)}h${two(Math.floor((seconds % 3600) / 60))}m`;
}

/** Words on lines that are no longer than the screen is wide; a word that is longer stays whole. */
export function wrap(text: string, columns = Number.POSITIVE_INFINITY, first = "", rest = first): string[] {
  if (first.length + text.length <= columns) return [`${first}${text}`.trimEnd()];
  const lines: string[] = [];
  let line = first;
  let empty = true;
  // The indentation of source in a traceback is part of it.
  const lead = /^\s*/.exec(text)?.[0] ?? "";
  for (const word of text.trim().split(/ +/)) {
    if (!empty && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = rest;
      empty = true;
    }
    line += empty ? (lines.length === 0 ? lead : "") + word : ` ${word}`;
    empty = false;
  }
  return [...lines, line];
}
