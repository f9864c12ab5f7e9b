/**
 * What one run of a container has printed, kept in a file a line at a time with its time, to be read while it grows.
 *
 * A log is cut like kubelet's: beyond 10 MiB the older part goes to a second file, and what was there before is gone.
 */
import { type FileHandle, open, rename } from "node:fs/promises";

const LONGEST_LINE = 16 * 1024;
const LARGEST_FILE = 10 * 2 ** 20;

export interface ReadOptions {
  /** Go on until the container has ended. */
  readonly follow?: boolean;
  readonly tailLines?: number;
  /** Only lines since then, milliseconds since the epoch. */
  readonly since?: number;
  readonly timestamps?: boolean;
  readonly limitBytes?: number;
  readonly signal?: AbortSignal;
}

interface Part {
  readonly file: FileHandle;
  /** Position of its first byte in the whole log. */
  readonly from: number;
}

/** `<RFC 3339 time> <F|P> <text>`: P is a piece of a line that goes on in the next. */
export class ContainerLog {
  readonly #path: string;
  readonly #now: () => number;
  readonly #largest: number;
  #current: Part | undefined;
  #older: Part | undefined;
  #size = 0;
  #rest: Readonly<Record<"stdout" | "stderr", { text: Buffer }>> = {
    stdout: { text: Buffer.alloc(0) },
    stderr: { text: Buffer.alloc(0) },
  };
  #writing: Promise<void> = Promise.resolve();
  #ended = false;
  #grown = Promise.withResolvers<void>();

  /** `largest`: bytes in a file before the next is begun. */
  constructor(path: string, now: () => number, largest = LARGEST_FILE) {
    this.#path = path;
    this.#now = now;
    this.#largest = largest;
  }

  /** Takes what came from the container; each stream's lines stay whole. */
  write(stream: "stdout" | "stderr", chunk: Buffer): void {
    let text = Buffer.concat([this.#rest[stream].text, chunk]);
    const pieces: Buffer[] = [];
    for (;;) {
      const end = text.indexOf(10);
      const whole = end >= 0 && end <= LONGEST_LINE;
      if (!whole && text.length < LONGEST_LINE) break;
      const length = whole ? end : LONGEST_LINE;
      pieces.push(this.#entry(text.subarray(0, length), whole));
      text = text.subarray(whole ? length + 1 : length);
    }
    this.#rest[stream].text = text;
    if (pieces.length > 0) this.#append(Buffer.concat(pieces));
  }

  /** Nothing more will come. */
  end(): Promise<void> {
    for (const rest of Object.values(this.#rest)) {
      if (rest.text.length > 0) this.#append(this.#entry(rest.text, false));
      rest.text = Buffer.alloc(0);
    }
    this.#writing = this.#writing.then(() => {
      this.#ended = true;
      this.#tell();
    });
    return this.#writing;
  }

  async close(): Promise<void> {
    await this.end();
    await this.#current?.file.close();
    await this.#older?.file.close();
    this.#current = this.#older = undefined;
  }

  /** The text as `kubectl logs` shows it, in pieces. */
  async *read(options: ReadOptions = {}): AsyncGenerator<Buffer> {
    const { follow, tailLines, since, timestamps, signal } = options;
    await this.#writing;
    let left = options.limitBytes ?? Number.POSITIVE_INFINITY;
    let position = this.#older?.from ?? this.#current?.from ?? 0;
    if (tailLines !== undefined) position = await this.#positionOfTail(tailLines);
    let startOfLine = true;
    const stopped = aborted(signal);
    while (!signal?.aborted) {
      const grown = this.#grown.promise;
      const ended = this.#ended;
      let data: Buffer | undefined;
      [data, position] = await this.#readAt(position);
      if (data) {
        const shown: Buffer[] = [];
        for (const entry of entries(data)) {
          const old = since !== undefined && Date.parse(entry.time) < since;
          if (!old) {
            if (timestamps && startOfLine) shown.push(Buffer.from(`${entry.time} `));
            shown.push(entry.text);
            if (entry.whole) shown.push(Buffer.from("\n"));
          }
          startOfLine = entry.whole;
        }
        const piece = Buffer.concat(shown).subarray(0, left);
        left -= piece.length;
        if (piece.length > 0) yield piece;
        if (left <= 0) return;
      } else {
        if (!follow || ended) return;
        await Promise.race([grown, stopped]);
      }
    }
  }

  /** The last bytes as text, for a termination message. */
  async tail(lines: number, bytes: number): Promise<string> {
    const pieces: Buffer[] = [];
    for await (const piece of this.read({ tailLines: lines })) pieces.push(piece);
    const text = Buffer.concat(pieces);
    return text.subarray(Math.max(0, text.length - bytes)).toString();
  }

  #entry(text: Buffer, whole: boolean): Buffer {
    const head = `${new Date(this.#now()).toISOString()} ${whole ? "F" : "P"} `;
    return Buffer.concat([Buffer.from(head), text, Buffer.from("\n")]);
  }

  #append(data: Buffer): void {
    this.#writing = this.#writing.then(async () => {
      if (this.#current && this.#size - this.#current.from > this.#largest) {
        await this.#older?.file.close();
        await rename(this.#path, `${this.#path}.older`);
        this.#older = this.#current;
        this.#current = undefined;
      }
      this.#current ??= { file: await open(this.#path, "w+"), from: this.#size };
      await this.#current.file.write(data, 0, data.length, this.#size - this.#current.from);
      this.#size += data.length;
      this.#tell();
    });
    // A full disk must not end the node; the log then has a gap.
    this.#writing = this.#writing.catch(() => {});
  }

  #tell(): void {
    this.#grown.resolve();
    this.#grown = Promise.withResolvers();
  }

  /** Whole entries from `position` on, and where they end. */
  async #readAt(position: number): Promise<[Buffer | undefined, number]> {
    const oldest = this.#older ?? this.#current;
    if (!oldest || !this.#current) return [undefined, position];
    let from = Math.max(position, oldest.from);
    let part = from < this.#current.from ? oldest : this.#current;
    const end = part === this.#current ? this.#size : this.#current.from;
    if (from >= end) {
      part = this.#current;
      from = Math.max(from, part.from);
      if (from >= this.#size) return [undefined, from];
    }
    const length = Math.min(256 * 1024, (part === this.#current ? this.#size : this.#current.from) - from);
    const { buffer, bytesRead } = await part.file.read(Buffer.alloc(length), 0, length, from - part.from);
    const last = buffer.lastIndexOf(10, bytesRead - 1);
    if (last < 0) return [undefined, from];
    return [buffer.subarray(0, last + 1), from + last + 1];
  }

  async #positionOfTail(lines: number): Promise<number> {
    const starts: number[] = [];
    let position = this.#older?.from ?? this.#current?.from ?? 0;
    let startOfLine = true;
    for (;;) {
      const [data, next] = await this.#readAt(position);
      if (!data) break;
      let at = next - data.length;
      for (const entry of entries(data)) {
        if (startOfLine) starts.push(at);
        if (starts.length > lines) starts.shift();
        startOfLine = entry.whole;
        at += entry.length;
      }
      position = next;
    }
    return lines === 0 ? position : (starts[0] ?? position);
  }
}

function* entries(data: Buffer): Generator<{ time: string; whole: boolean; text: Buffer; length: number }> {
  for (let start = 0; start < data.length; ) {
    const end = data.indexOf(10, start);
    const line = data.subarray(start, end);
    const space = line.indexOf(32);
    yield {
      time: line.subarray(0, space).toString(),
      whole: line[space + 1] === 70,
      text: line.subarray(space + 3),
      length: line.length + 1,
    };
    start = end + 1;
  }
}

function aborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => signal?.addEventListener("abort", () => resolve(), { once: true }));
}
