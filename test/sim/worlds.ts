/** The worlds that a test makes: each is closed when its test is over, whatever became of it. */
import { afterEach } from "vitest";
import { type Scripts, World } from "./world.ts";

/** Of the file that calls this: what is put here is closed after each test. */
export function closedAfterEach(): World[] {
  const worlds: World[] = [];
  afterEach(async () => {
    for (const world of worlds.splice(0)) await world.close();
  });
  return worlds;
}

/** Makes worlds that are closed after each test. */
export function worldMaker(): (scripts?: Scripts) => World {
  const worlds = closedAfterEach();
  return (scripts) => {
    const made = new World(scripts);
    worlds.push(made);
    return made;
  };
}
