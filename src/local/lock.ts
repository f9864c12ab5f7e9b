/**
 * A lock between processes that cannot outlive its holder.
 *
 * flock(1) holds it for us and ends with us: its standard input is a pipe of this process, and the kernel closes that
 * even after SIGKILL.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { CannotRun } from "../cli/failure.ts";

/** Waits until `file` is ours alone; the answer gives it back. */
export async function lock(file: string, signal?: AbortSignal): Promise<() => Promise<void>> {
  const holder = spawn("flock", ["--exclusive", file, "sh", "-c", "echo locked; exec cat >/dev/null"], {
    stdio: ["pipe", "pipe", "inherit"],
    signal,
  });
  const ended = new Promise<void>((resolve, reject) => {
    holder.once("error", (error) => reject(noFlock(error)));
    holder.once("close", () => resolve());
  });
  ended.catch(() => {});
  await Promise.race([
    once(holder.stdout, "data"),
    ended.then(() => {
      throw new CannotRun(`could not lock ${file}`);
    }),
  ]);
  return async () => {
    holder.stdin.end();
    await ended.catch(() => {});
  };
}

function noFlock(error: Error): Error {
  return "code" in error && error.code === "ENOENT"
    ? new CannotRun("flock is not installed", "Install util-linux with your package manager.", error)
    : error;
}
