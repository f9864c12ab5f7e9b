/**
 * How often Ray is asked about a job.
 *
 * | situation                                                        | next question                              |
 * |------------------------------------------------------------------|--------------------------------------------|
 * | new of interest, another attempt, another dashboard              | at once                                    |
 * | the last answer is older than `notBefore`                        | at `notBefore`, no sooner than the gap     |
 * | nudged: a Pod of the job changed, a command was carried out      | at once, no sooner than the gap            |
 * | another occasion: the RayJob is to be suspended                  | at once, no sooner than the gap            |
 * | the answer changed                                               | after 1 s                                  |
 * | nothing changed, pace `quick` (submitting, near a deadline)      | 1 s, then 1.3 times longer, 2 s at most    |
 * | nothing changed, pace `steady`                                   | 1 s, then 1.3 times longer, 8 s at most    |
 * | no answer                                                        | as "nothing changed"                       |
 * | pace `off`                                                       | never                                      |
 *
 * A third longer each time, so that what a job's end is seen too late is small against how long it ran; 8 s, so that it
 * is seen within 10 s even where no Pod tells of it. The gap holds for a dashboard as a whole,
 * so a head that two hundred jobs share is asked at most twice a second, and then for the list of all of them.
 */
import type { PollPace } from "../domain/rayjob/ray.ts";

/** Milliseconds. */
export const FIRST_INTERVAL = 1000;
export const GROWTH = 1.3;
export const LONGEST: Record<PollPace, number> = { quick: 2000, steady: 8000, off: Number.POSITIVE_INFINITY };
/** Between two rounds at one dashboard. */
export const GAP = 500;
/** Up to this many jobs are asked for by id; the list costs Ray as much as all its jobs, so it must be worth it. */
export const ASK_BY_ID = 3;
/** While its node is alive, a driver's node is looked up this seldom: the page costs Ray as much as all its nodes. */
export const NODES_INTERVAL = 15_000;

/** Spreads jobs that started together: 0.9 to 1.1, always the same for the same seed. */
export function jitter(seed: string): number {
  let hash = 2166136261;
  for (let index = 0; index < seed.length; index++) {
    hash = Math.imul(hash ^ seed.charCodeAt(index), 16777619);
  }
  // The low bits of FNV are good enough only after one more stir.
  hash = Math.imul(hash ^ (hash >>> 15), 2246822507);
  return 0.9 + ((hash >>> 0) / 2 ** 32) * 0.2;
}
