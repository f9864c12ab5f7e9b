/**
 * A Python environment with one version of Ray, made once and kept in the cache.
 *
 * The environment is built for the path where the local node mounts it into Pods (`MOUNTED_AT`, where Ray's own images
 * have it), so it survives a move of the project. Outside a Pod use its `python`, not its scripts.
 * May not: write outside the cache folder, or leave half an environment under the final name.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { access, mkdir, open, readdir, readFile, rename, rm, stat, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { CannotRun } from "../cli/failure.ts";
import { cacheFolder, defaultCacheDir } from "./cache.ts";
import { lock } from "./lock.ts";

/** Where Pods find the environment. */
export const MOUNTED_AT = "/home/ray/anaconda3";

export interface RayEnvironment {
  readonly version: string;
  /** The virtual environment's folder. */
  readonly root: string;
  readonly bin: string;
  /** The interpreter of the environment; works inside and outside of a Pod. */
  readonly python: string;
  /** Where the interpreter's own library lives; a Pod needs to see it. */
  readonly basePrefix: string;
}

/** Where long work is. With `total`, `done` counts bytes. */
export interface Progress {
  readonly step: string;
  readonly detail?: string;
  readonly done?: number;
  readonly total?: number;
}

export interface PrepareOptions {
  /** `2.56.0` */
  readonly version: string;
  readonly cacheDir?: string;
  /** Interpreter to build with; `RAYKEEPER_PYTHON`, else `python3`. */
  readonly python?: string;
  readonly progress?: (progress: Progress) => void;
  readonly signal?: AbortSignal;
}

export interface Interpreter {
  readonly executable: string;
  readonly version: readonly [number, number];
  readonly basePrefix: string;
}

const OLDEST_PYTHON = 9;

/** The environment for this version of Ray: at once when it is in the cache, else installed from PyPI. Throws CannotRun. */
export async function prepareRay(options: PrepareOptions): Promise<RayEnvironment> {
  const { version } = options;
  if (!/^\d+\.\d+\.\d+(?:rc\d+|\.post\d+)?$/.test(version)) {
    throw new CannotRun(`"${version}" is no version of Ray`, "Name an image like rayproject/ray:2.56.0.");
  }
  const interpreter = await findPython(options.python);
  const folder = await cacheFolder(options.cacheDir ?? defaultCacheDir(), "ray");
  const name = `${version}-py${interpreter.version.join(".")}-${process.arch}`;
  const root = join(folder, name);
  const environment: RayEnvironment = {
    version,
    root,
    bin: join(root, "bin"),
    python: join(root, "bin", "python"),
    basePrefix: interpreter.basePrefix,
  };
  if (await usable(environment)) return environment;

  const waiting = setTimeout(
    () => options.progress?.({ step: `Ray ${version}`, detail: "waiting for another preparation of it" }),
    1000,
  );
  const unlock = await lock(join(folder, `.${name}.lock`), options.signal).finally(() => clearTimeout(waiting));
  try {
    if (await usable(environment)) return environment;
    const building = join(folder, `.${name}.building`);
    await rm(building, { recursive: true, force: true });
    await rm(root, { recursive: true, force: true });
    try {
      await build(building, interpreter, options);
      await rename(building, root);
    } finally {
      await rm(building, { recursive: true, force: true });
    }
    return environment;
  } finally {
    await unlock();
  }
}

/** The interpreter it was built with must still be there: its path is a link to it. */
async function usable({ python, root, basePrefix }: RayEnvironment): Promise<boolean> {
  try {
    await access(python);
    return (await readFile(join(root, "base-prefix"), "utf8")) === basePrefix;
  } catch {
    return false;
  }
}

/** The interpreter to build with and to run the node's helper. Throws CannotRun when there is none that will do. */
export async function findPython(command = process.env["RAYKEEPER_PYTHON"] || "python3"): Promise<Interpreter> {
  const remedy = `Install Python 3.${OLDEST_PYTHON} or newer, or name one in RAYKEEPER_PYTHON.`;
  const script =
    "import json, os, sys; print(json.dumps([os.path.realpath(sys.executable), sys.version_info[:2], os.path.realpath(sys.base_prefix)]))";
  const { code, output } = await run(command, ["-I", "-c", script]).catch((error: NodeJS.ErrnoException) => {
    throw error.code === "ENOENT"
      ? new CannotRun("setpriv is not installed", "Install util-linux with your package manager.")
      : error;
  });
  if (code === 127 || /^setpriv: failed to execute/.test(output))
    throw new CannotRun(`${command} was not found`, remedy);
  if (code !== 0) throw new CannotRun(`${command} does not work: ${lastLine(output)}`, remedy);
  const [executable, version, basePrefix] = JSON.parse(output) as [string, [number, number], string];
  if (version[0] !== 3 || version[1] < OLDEST_PYTHON) {
    throw new CannotRun(`${command} is Python ${version.join(".")}`, remedy);
  }
  return { executable, version, basePrefix };
}

/** Bytes that an empty virtual environment takes, with room to unpack it. */
const ROOM_FOR_PIP = 30e6;

async function build(root: string, interpreter: Interpreter, options: PrepareOptions): Promise<void> {
  const { version, progress, signal } = options;
  const step = `Ray ${version}`;
  progress?.({ step, detail: "making a virtual environment" });
  const made = await run(interpreter.executable, ["-I", "-m", "venv", root], { signal });
  if (made.code !== 0) {
    // venv keeps to itself why its pip could not be unpacked.
    const { bavail, bsize } = await statfs(dirname(root));
    throw bavail * bsize < ROOM_FOR_PIP ? diskFull() : withoutVenv(made.output, interpreter);
  }

  const temporary = join(root, "tmp");
  await mkdir(temporary);
  const download = new Download(step, temporary, progress);
  const python = join(root, "bin", "python");
  // pip 26 and 23 alike print "Downloading <file> (<size>)" a file; how far it is shows in the folder it downloads to.
  const installed = await run(
    python,
    ["-I", "-m", "pip", "install", "--no-cache-dir", "--progress-bar", "off", "--no-input", `ray[default]==${version}`],
    { signal, environment: { TMPDIR: temporary }, onLine: (line) => download.line(line) },
  ).finally(() => download.end());
  if (installed.code !== 0) throw notInstalled(installed.output, version, interpreter);
  await rm(temporary, { recursive: true, force: true });
  await relocate(root);
  await writeFile(join(root, "base-prefix"), interpreter.basePrefix);
  progress?.({ step, detail: "ready" });
}

/** Bytes; how far the download of a smaller file is would be gone before it is read. */
const SMALL = 1e6;

/** Follows one file after the other by its size on disk. */
class Download {
  readonly #step: string;
  readonly #folder: string;
  readonly #progress: PrepareOptions["progress"];
  readonly #timer: NodeJS.Timeout;
  #file: { name: string; total: number } | undefined;

  constructor(step: string, folder: string, progress: PrepareOptions["progress"]) {
    this.#step = step;
    this.#folder = folder;
    this.#progress = progress;
    this.#timer = setInterval(() => void this.#look(), 300);
  }

  line(line: string): void {
    const started = /^\s*Downloading (\S+) \(([\d.]+) ?([kMG]?)B\)/.exec(line);
    if (started) {
      const unit = { k: 1e3, M: 1e6, G: 1e9 }[started[3]!] ?? 1;
      const name = started[1]!.replace(/^.*\//, "");
      this.#file = { name, total: Math.round(Number(started[2]) * unit) };
      this.#tell(0);
    } else if (line.startsWith("Installing collected packages")) {
      this.#file = undefined;
      this.#progress?.({ step: this.#step, detail: "installing" });
    }
  }

  async #look(): Promise<void> {
    const file = this.#file;
    if (!file) return;
    for (const entry of await readdir(this.#folder).catch(() => [])) {
      const found = await stat(join(this.#folder, entry, file.name)).catch(() => undefined);
      if (found && this.#file === file) {
        this.#tell(Math.min(found.size, file.total));
      }
    }
  }

  #tell(done: number): void {
    const { name, total } = this.#file!;
    // `ray-2.56.0-cp311-….whl`: the first two words say it all.
    const detail = `downloading ${name.split("-").slice(0, 2).join(" ")}`;
    this.#progress?.({ step: this.#step, detail, ...(total >= SMALL ? { done, total } : {}) });
  }

  end(): void {
    clearInterval(this.#timer);
    this.#file = undefined;
  }
}

/** Makes the scripts start the interpreter where Pods will find it. */
async function relocate(root: string): Promise<void> {
  const bin = join(root, "bin");
  for (const name of await readdir(bin)) {
    const file = join(bin, name);
    if (!(await stat(file)).isFile() || !(await startsWith(file, "#!"))) continue;
    const text = await readFile(file, "utf8");
    const end = text.indexOf("\n");
    const first = text.slice(0, end);
    // A long or odd path is started through /bin/sh by pip's scripts: the path is then in the second line.
    if (text.includes(`${root}/bin/`)) await writeFile(file, text.replaceAll(`${root}/bin/`, `${MOUNTED_AT}/bin/`));
    else if (first.includes(root)) await writeFile(file, first.replace(root, MOUNTED_AT) + text.slice(end));
  }
}

async function startsWith(file: string, prefix: string): Promise<boolean> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(prefix.length), 0, prefix.length, 0);
    return buffer.subarray(0, bytesRead).toString("latin1") === prefix;
  } finally {
    await handle.close();
  }
}

function withoutVenv(output: string, interpreter: Interpreter): CannotRun {
  if (/No space left on device/.test(output)) return diskFull();
  const name = `python${interpreter.version.join(".")}-venv`;
  return /ensurepip|No module named venv/.test(output)
    ? new CannotRun(
        `${interpreter.executable} cannot make virtual environments`,
        `On Debian or Ubuntu: apt install ${name}`,
      )
    : new CannotRun(`${interpreter.executable} could not make a virtual environment: ${lastLine(output)}`);
}

/** Turns what pip printed into a cause and a remedy. */
export function notInstalled(output: string, version: string, interpreter: Interpreter): CannotRun {
  if (/No space left on device/.test(output)) return diskFull();
  const missing = /No matching distribution found for ray/.test(output);
  const known = /\(from versions: ([^)]*)\)/.exec(output)?.[1]?.split(", ") ?? [];
  const versions = known.filter((name) => /^\d/.test(name));
  if (missing && versions.length > 0) {
    return new CannotRun(
      `there is no Ray ${version} on PyPI for Python ${interpreter.version.join(".")} on ${process.arch}`,
      `Nearest versions: ${nearest(version, versions).join(", ")}.`,
    );
  }
  const network =
    /connection broken|NewConnectionError|Temporary failure in name resolution|timed out|ProxyError|SSLError/i;
  if (missing || network.test(output)) {
    return new CannotRun(
      `Ray ${version} could not be downloaded: PyPI cannot be reached`,
      "Check the network, or point pip at a mirror (PIP_INDEX_URL). Once downloaded, Ray stays in the cache.",
    );
  }
  return new CannotRun(`Ray ${version} could not be installed: ${lastError(output)}`);
}

const diskFull = () =>
  new CannotRun(
    "no space left on the disk that holds the cache",
    "Ray needs about 500 MB; free some, or name another folder in RAYKEEPER_CACHE.",
  );

/** The three released versions closest to the one asked for, oldest first. */
export function nearest(version: string, versions: readonly string[]): string[] {
  const number = (text: string) => {
    const [major = 0, minor = 0, patch = 0] = text.split(".").map((part) => Number.parseInt(part, 10));
    return major * 1e8 + minor * 1e4 + patch;
  };
  const distance = (text: string) => Math.abs(number(text) - number(version));
  return versions
    .filter((text) => /^[\d.]+$/.test(text))
    .sort((a, b) => distance(a) - distance(b))
    .slice(0, 3)
    .sort((a, b) => number(a) - number(b));
}

const lines = (output: string) => output.split("\n").filter((line) => line.trim());
const lastLine = (output: string) => lines(output).at(-1)?.trim() ?? "it printed nothing";
const lastError = (output: string) =>
  lines(output)
    .findLast((line) => /^ERROR|error:/i.test(line))
    ?.trim() ?? lastLine(output);

interface RunOptions {
  readonly signal?: AbortSignal;
  readonly environment?: Record<string, string>;
  readonly onLine?: (line: string) => void;
}

/** Runs a program that must not outlive this one. Output and errors come back as one text. */
async function run(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<{ code: number | null; output: string }> {
  const child: ChildProcess = spawn("setpriv", ["--pdeathsig", "KILL", command, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...options.environment, LC_ALL: "C.UTF-8", PYTHONUNBUFFERED: "1" },
    signal: options.signal,
    killSignal: "SIGKILL",
  });
  let output = "";
  for (const stream of [child.stdout!, child.stderr!]) {
    createInterface({ input: stream }).on("line", (line) => {
      output += `${line}\n`;
      options.onLine?.(line);
    });
  }
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve({ code, output }));
  });
}
