/**
 * Long work on the screen: downloads, and whatever else tells how far it is.
 */
import type { Progress } from "../local/rayEnvironment.ts";
import type { Screen } from "./screen.ts";

/** Without a terminal a line now and then is enough: the first of a step, then at most one in this time. */
const QUIET_MS = 5000;

/** Shows long work: a live line on a terminal, now and then a plain line elsewhere. */
export function showProgress(screen: Screen): (progress: Progress) => void {
  let step: string | undefined;
  let said = Number.NEGATIVE_INFINITY;
  return (progress) => {
    const text = progressText(progress);
    screen.live(text);
    if (screen.isLive) return;
    if (progress.step === step && screen.elapsed() - said < QUIET_MS) return;
    step = progress.step;
    said = screen.elapsed();
    screen.step(text);
  };
}

export function progressText({ step, detail, done, total }: Progress): string {
  const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`;
  const share = total ? `, ${Math.floor((100 * (done ?? 0)) / total)}% of ${megabytes(total)}` : "";
  return `${step}${detail ? `: ${detail}` : ""}${share}`;
}
