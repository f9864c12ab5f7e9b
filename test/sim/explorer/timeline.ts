/** One life again, with everything that happened in it in lines that a person can read. */
import { scheduleOf } from "./choices.ts";
import { Life } from "./life.ts";

/** Lives the seed's schedule to its end; returns what was violated. */
export async function replay(seed: string, print: (line: string) => void): Promise<readonly string[]> {
  const schedule = scheduleOf(seed);
  let first: number | undefined;
  let last = "";
  let repeated = 0;
  const tell = (time: number, who: string, what: string) => {
    first ??= time;
    const line = `${who.padEnd(12)} ${what}`;
    if (line === last) {
      repeated++;
      return;
    }
    if (repeated > 0) print(`${"".padStart(10)}              (${repeated} times more)`);
    repeated = 0;
    last = line;
    print(`${((time - first) / 1000).toFixed(3).padStart(10)} s  ${line}`);
  };
  const { violations, end } = await new Life(schedule, { tell }).run();
  print(`end: ${end}`);
  for (const violation of violations) print(`VIOLATED: ${violation}`);
  return violations;
}
