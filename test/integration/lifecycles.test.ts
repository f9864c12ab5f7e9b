/** A RayJob's lives on a real API server, undisturbed. */
import { afterAll, beforeAll, describe, it } from "vitest";
import { lives } from "./lifecycles.ts";
import { World } from "./world.ts";

let world: World;
beforeAll(async () => {
  world = await World.open();
});
afterAll(() => world.close());

describe("on a real API server", () => {
  it.concurrent.each(lives)("$title", async ({ scripts, mode, live }) => {
    const stage = await world.stage(scripts?.());
    await live(stage, mode);
    stage.judge();
  });
});
