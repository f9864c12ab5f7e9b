/** The operator is killed again and again while RayJobs live their lives, and each life must end as it would have. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runsForEver } from "../sim/fakeRay.ts";
import { lives } from "./lifecycles.ts";
import { World } from "./world.ts";

/** Moments are counted in versions seen, so a seed repeats them as far as a real server's timing lets it. */
const KILLS = 25;
const given = process.env["RAYKEEPER_SEED"];
const seeds = given === undefined ? [1, 2].map(() => Math.floor(Math.random() * 2 ** 31)) : [Number(given)];

describe.each(seeds)(`with the operator killed ${KILLS} times, at moments of seed %i`, (seed) => {
  const end = new AbortController();
  let world: World;
  let killing: Promise<void>;
  beforeAll(async () => {
    console.log(`[integration] the operator is killed at the moments of RAYKEEPER_SEED=${seed}`);
    world = await World.open();
    killing = world.killAtRandom(seed, KILLS, end.signal);
    // Told by the hook that waits for it.
    killing.catch(() => {});
  });
  afterAll(async () => {
    end.abort();
    await killing;
    const { kills } = world;
    const lived = world.stages.size;
    await world.close();
    // All ended before much was disturbed: then this showed nothing. One life that is looked at alone is short.
    if (lived === lives.length) expect(kills).toBeGreaterThan(KILLS / 2);
  });

  it.concurrent.each(lives)("$title", async ({ scripts, mode, live }) => {
    const stage = await world.stage(scripts?.());
    await live(stage, mode);
    stage.judge();
  });
});

describe("what happens while the operator is down", () => {
  let world: World;
  beforeAll(async () => {
    world = await World.open();
  });
  afterAll(() => world.close());

  it("is judged by what Ray says: a job that succeeded is Complete, whatever became of its submitter", async () => {
    const told = ["Complete", "Failed"] as const;
    const stages = await Promise.all(told.map(() => world.stage({ jobs: [{ ...runsForEver, pending: 200 }] })));
    for (const stage of stages) await stage.create({ backoffLimit: 3, submitterConfig: { backoffLimit: 0 } });
    for (const stage of stages) await stage.running();
    await world.killOperator();
    await world.releaseLease();
    for (const [exitCode, stage] of stages.entries()) {
      await stage.kubelet.end(stage.submitters[0]!.metadata.uid, { exitCode });
      await stage.submitterJob(told[exitCode]!);
      stage.end("SUCCEEDED");
    }
    world.startOperator();
    for (const stage of stages) {
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, failed: 0 });
      await stage.released();
      expect(stage.submissions).toHaveLength(1);
      stage.judge();
    }
  });
});

describe("two replicas", () => {
  let world: World;
  beforeAll(async () => {
    world = await World.open({ operators: 2 });
  });
  afterAll(() => world.close());

  it("take turns: when the leader is killed, the other carries on as soon as the lease has run out", async () => {
    const stage = await world.stage({ jobs: [{ ...runsForEver, pending: 200 }] });
    await stage.create();
    await stage.running();
    const before = await world.leader();
    await world.killOperator(before);
    await stage.change({ suspend: true });
    await stage.phase("Suspended");
    expect(await world.leader()).not.toBe(before);
    await stage.change({ suspend: false });
    const { status } = await stage.phase("Complete");
    expect(status).toMatchObject({ executionAttempt: 1, succeeded: 1, failed: 0 });
    expect(stage.submissions).toHaveLength(2);
    stage.judge();
  });
});
