/**
 * A log file that does not grow without end, rotated as KubeRay's is: the file that was asked for is always the newest;
 * at 500 MB it is renamed to `<name>-<time><ext>`, ten of those are kept, for 30 days at most.
 *
 * Every line is in the file (the kernel's hands) when `write` returns, so nothing is lost at SIGTERM or a crash; that is
 * why no library's background writer does it.
 * May not: throw. A disk that is full or gone must not end the operator: the line is left out, and the next one tries anew.
 */
import { closeSync, mkdirSync, openSync, readdirSync, renameSync, statSync, unlinkSync, writeSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";

export interface Rotation {
  readonly bytes: number;
  readonly files: number;
  /** Milliseconds. */
  readonly age: number;
}

export const KUBERAY_ROTATION: Rotation = { bytes: 500 * 1024 * 1024, files: 10, age: 30 * 24 * 3600_000 };
/** A file that cannot be written is tried again no more often than this. */
const PAUSE = 10_000;

export class RotatingFile {
  readonly #path: string;
  readonly #rotation: Rotation;
  readonly #now: () => number;
  readonly #failed: (error: unknown) => void;
  #file: { readonly descriptor: number; size: number } | undefined;
  #retryAt = 0;

  /** Throws when the file cannot be opened now. `failed` is told when it cannot be written later. */
  constructor(
    path: string,
    options: { rotation?: Rotation; now?: () => number; failed?: (error: unknown) => void } = {},
  ) {
    this.#path = path;
    this.#rotation = options.rotation ?? KUBERAY_ROTATION;
    this.#now = options.now ?? Date.now;
    this.#failed = options.failed ?? (() => {});
    this.#file = this.#open();
    this.#tidy();
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    try {
      if (!this.#file && this.#now() < this.#retryAt) return;
      this.#file ??= this.#open();
      if (this.#file.size > 0 && this.#file.size + bytes.length > this.#rotation.bytes) this.#rotate();
      for (let written = 0; written < bytes.length; ) {
        written += writeSync(this.#file.descriptor, bytes, written);
      }
      this.#file.size += bytes.length;
    } catch (error) {
      this.#retryAt = this.#now() + PAUSE;
      this.close();
      this.#failed(error);
    }
  }

  close(): void {
    const file = this.#file;
    this.#file = undefined;
    try {
      if (file) closeSync(file.descriptor);
    } catch {
      // There is nothing left to lose in it.
    }
  }

  #open() {
    mkdirSync(dirname(this.#path), { recursive: true });
    const descriptor = openSync(this.#path, "a");
    return { descriptor, size: statSync(this.#path).size };
  }

  #rotate(): void {
    this.close();
    renameSync(this.#path, this.#oldName());
    this.#file = this.#open();
    this.#tidy();
  }

  /** `<name>-2026-01-01T00-00-00.000<ext>`, and not one that is there. */
  #oldName(): string {
    const extension = extname(this.#path);
    const stem = basename(this.#path, extension);
    const taken = new Set(readdirSync(dirname(this.#path)));
    for (let at = this.#now(); ; at++) {
      const name = `${stem}-${new Date(at).toISOString().replaceAll(":", "-").replace("Z", "")}${extension}`;
      if (!taken.has(name)) return join(dirname(this.#path), name);
    }
  }

  #tidy(): void {
    const extension = extname(this.#path);
    const stem = basename(this.#path, extension);
    const old = readdirSync(dirname(this.#path))
      .flatMap((name) => {
        const at = name.startsWith(`${stem}-`) && name.endsWith(extension) && timeIn(name.slice(stem.length + 1));
        return typeof at === "number" ? [{ name, at }] : [];
      })
      .sort((a, b) => b.at - a.at);
    const oldest = this.#now() - this.#rotation.age;
    for (const [index, { name, at }] of old.entries()) {
      if (index >= this.#rotation.files || at < oldest) unlinkSync(join(dirname(this.#path), name));
    }
  }
}

function timeIn(text: string): number | undefined {
  const [, day, hour, minute, second] = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d\.\d{3})/.exec(text) ?? [];
  return day === undefined ? undefined : Date.parse(`${day}T${hour}:${minute}:${second}Z`);
}
