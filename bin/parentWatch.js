// Ends this process when whoever started it is gone without a word (SIGKILL): npm, the shell npm put in between, or the
// launcher. Only under npm: somebody who types `nohup raykeeper … &` and logs out wants it to go on.
import { readFileSync } from "node:fs";

/** Parent of a process, and its name; undefined once the process is gone or where there is no /proc. */
function look(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [, parent] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { name: stat.slice(stat.indexOf("(") + 1, stat.lastIndexOf(")")), parent: Number(parent) };
  } catch {
    return undefined;
  }
}

/** Calls `orphaned` once when the parent, or npm behind the parent's shell, has gone. Does nothing outside npm. */
export function watchParent(orphaned) {
  if (!process.env.npm_lifecycle_event) return;
  const parent = process.ppid;
  const shell = look(parent);
  // A shell that did not replace itself by its only command outlives a killed npm, so npm is watched through it.
  const behind = shell && /^(sh|dash|bash|ash)$/.test(shell.name) ? shell.parent : undefined;
  const timer = setInterval(() => {
    const same = process.ppid === parent && (behind === undefined || look(parent)?.parent === behind);
    if (same) return;
    clearInterval(timer);
    orphaned();
  }, 250);
  timer.unref();
}
