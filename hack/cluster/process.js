// Runs programs for the other modules: told what they printed when they fail, ended when this process is told to end.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";

const running = new Set();
let interrupted = false;

/** An error whose message says all that its reader needs; no stack. */
export class Failure extends Error {}

/** What the program printed. Throws a Failure when it does not exit with 0, with the last it said. */
export function run(command, args, { input, ...options } = {}) {
  return new Promise((done, failed) => {
    if (interrupted) return failed(new Failure("interrupted"));
    // A SIGKILL of this process takes it along.
    const tied = ["--pdeathsig", "KILL", command, ...args];
    const child = spawn("setpriv", tied, {
      ...options,
      stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    });
    running.add(child);
    let output = "";
    let told = "";
    child.stdout.on("data", (data) => {
      output += data;
      told = (told + data).slice(-2000);
    });
    child.stderr.on("data", (data) => {
      told = (told + data).slice(-2000);
      options.onStderr?.(String(data));
    });
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
    child.on("error", (error) => {
      running.delete(child);
      failed(new Failure(`${command} could not be started: ${error.message}`));
    });
    child.on("close", (code, signal) => {
      running.delete(child);
      if (code === 0) return done(output);
      failed(
        new Failure(`${[command, ...args].join(" ").slice(0, 300)} ended with ${signal ?? code}:\n${told.trim()}`),
      );
    });
  });
}

export const succeeds = (command, args, options) =>
  run(command, args, options).then(
    () => true,
    () => false,
  );

/** Has work that goes on fail, with all that it has started, and answers when it has. */
export async function interrupt(work) {
  interrupted = true;
  // unshare takes no other signal.
  for (const child of running) child.kill("SIGKILL");
  await work.catch(() => {});
  interrupted = false;
}

/** Asks until the answer is true; nobody tells when it changes. `failing` may throw to end it early. */
export async function until(what, seconds, ask, failing = () => {}) {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    if (await ask()) return;
    await failing();
    if (interrupted) throw new Failure("interrupted");
    if (performance.now() > deadline) throw new Failure(`${what} after ${seconds} s`);
    await new Promise((awake) => setTimeout(awake, 100));
  }
}

/** A process as a file can name it: with its start, since numbers are used again. */
export function identity(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" ? undefined : `${pid} ${fields[19]}`;
  } catch {
    return undefined;
  }
}

/** The process that a file names, if it lives. */
export function processOf(file) {
  let text;
  try {
    text = readFileSync(file, "utf8").trim();
  } catch {
    return undefined;
  }
  const pid = Number(text.split(" ")[0]);
  return pid > 1 && identity(pid) === text ? pid : undefined;
}

/** One `up` or `down` at a time on this machine. The name is in no folder, and goes with its holder. */
export async function alone() {
  const lock = createServer();
  await new Promise((done, failed) => {
    lock.once("error", () =>
      failed(new Failure("another cluster:up or cluster:down is at work: wait until it is done")),
    );
    lock.listen("\0raykeeper-cluster", done);
  });
  lock.unref();
}
