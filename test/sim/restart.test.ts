/** The operator is killed at every write of a job's life, and another one carries on. */
import { describe, expect, it } from "vitest";
import type { RayJobSpec } from "../../src/api/rayjob.ts";
import { configFrom } from "../../src/config.ts";
import { jobs, pods, rayClusters, rayJobs, services } from "../../src/machinery/kube/resources.ts";
import { rayJob } from "../support/manifests.ts";
import { fails, type JobScript, succeeds } from "./fakeRay.ts";
import type { Lag, Meets } from "./process.ts";
import { World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

interface Story {
  readonly name: string;
  readonly spec: Partial<RayJobSpec>;
  readonly scripts: () => JobScript[];
  readonly phase: string;
}

const stories: readonly Story[] = [
  { name: "a job in K8sJobMode that succeeds", spec: {}, scripts: () => [succeeds(5000)], phase: "Complete" },
  {
    name: "a job in HTTPMode that succeeds",
    spec: { submissionMode: "HTTPMode" },
    scripts: () => [succeeds(5000)],
    phase: "Complete",
  },
  {
    name: "a job that fails, and succeeds at the second try",
    spec: { backoffLimit: 1 },
    scripts: () => [fails(5000), succeeds(5000)],
    phase: "Complete",
  },
];

/** The job's life with one thing happening at one write; undefined when there is no such write. */
async function live(story: Story, at: number | undefined, meets: Meets, lag?: Lag, more?: (world: World) => void) {
  const scripts = story.scripts();
  const world = new World({ job: () => scripts.shift() ?? succeeds(5000) });
  let met = false;
  const first = world.start({
    lag,
    fate({ method }, number) {
      if (number !== at) return "answer";
      met = true;
      // A server answers so to a write that carries a version or a UID.
      return typeof meets === "object" && meets.status === 409 && method === "POST" ? "answer" : meets;
    },
  });
  more?.(world);
  await world.client.create(rayJobs, rayJob(story.spec));
  let started = false;
  await world.until(story.phase, async () => {
    if (first.process.dead && !started) {
      started = true;
      world.start();
    }
    return (await world.job())?.status?.jobDeploymentStatus === story.phase;
  });
  // The write may be one of those that follow the verdict.
  for (let second = 0; second < 120; second++) {
    await world.clock.advance(1000);
    if (first.process.dead && !started) {
      started = true;
      world.start();
    }
  }
  const { status } = (await world.job())!;
  const left = [];
  for (const type of [rayClusters, pods, services, jobs]) {
    for (const { metadata } of await world.list(type))
      left.push(`${type.kind} ${metadata.name.replace(/-[a-z0-9]{5}$/, "")}`);
  }
  await world.close();
  return {
    met,
    writes: first.process.writes.length,
    end: {
      status: {
        phase: status?.jobDeploymentStatus,
        jobStatus: status?.jobStatus,
        attempt: status?.executionAttempt,
        succeeded: status?.succeeded,
        failed: status?.failed,
        attempts: status?.attempts?.map(({ number, jobStatus, reason }) => [number, jobStatus, reason]),
        conditions: status?.conditions?.map(({ type, status: holds }) => `${type}=${holds}`).sort(),
      },
      left,
      submissions: world.submissions.map((submission) => submission.split(" ")[1]!.replace(/-[a-z0-9]{5}$/, "")),
    },
  };
}

const accidents: readonly Meets[] = [
  "death before",
  "death after",
  "lost before",
  "lost after",
  "refused",
  { status: 409 },
  { status: 429 },
  { status: 500 },
];

/** Each accident at each write costs a whole life: the longer stories meet those from which the most can go wrong. */
const cases = stories.flatMap((story) =>
  accidents
    .filter((meets) => story === stories[0] || meets === "death after" || meets === "lost after")
    .map((meets) => ({ story, name: story.name, meets })),
);

it.each(cases)("$name ends the same when any one write meets $meets", async ({ story, meets }) => {
  const undisturbed = await live(story, undefined, meets);
  expect(undisturbed.end.submissions).toHaveLength(story.scripts().length);
  let number = 0;
  for (; ; number++) {
    const disturbed = await live(story, number, meets);
    if (!disturbed.met) break;
    expect(disturbed.end, `write ${number}`).toEqual(undisturbed.end);
  }
  expect(number).toBeGreaterThanOrEqual(undisturbed.writes);
});

it.each(stories)("$name ends the same when the caches lag", async (story) => {
  const undisturbed = await live(story, undefined, "answer");
  for (const lag of [300, 4000, 20_000]) {
    expect((await live(story, undefined, "answer", () => lag)).end, `all by ${lag} ms`).toEqual(undisturbed.end);
  }
  for (const plural of ["rayjobs", "rayclusters", "pods", "jobs", "services"]) {
    const lag = (path: string) => (path.endsWith(`/${plural}`) ? 6000 : 0);
    expect((await live(story, undefined, "answer", lag)).end, plural).toEqual(undisturbed.end);
  }
});

describe("two operators that both believe they lead", () => {
  it.each(stories.flatMap((story) => [0, 700, 5000].map((lag) => ({ story, name: story.name, lag }))))(
    "bring $name to the same end, one of them seeing all $lag ms late",
    async ({ story, lag }) => {
      const undisturbed = await live(story, undefined, "answer");
      const disturbed = await live(story, undefined, "answer", undefined, (world) => {
        world.start({ lag: () => lag });
      });
      expect(disturbed.end).toEqual(undisturbed.end);
    },
  );
});

describe("two replicas", () => {
  it("take turns: the second waits for the lease, and takes over when the first is killed", async () => {
    const world = new World({ job: () => succeeds(60_000) });
    worlds.push(world);
    const config = configFrom({});
    const first = world.start({ config });
    await world.until("the first leads", () => first.passes.length >= 0 && first.operator.ready);
    await world.clock.advance(3000);
    const second = world.start({ config });
    await world.client.create(rayJobs, rayJob());
    await world.until("RUNNING", async () => (await world.job())?.status?.jobStatus === "RUNNING");
    expect(second.passes).toEqual([]);
    first.process.kill();
    const { status } = await world.untilPhase("Complete");
    expect(second.passes.length).toBeGreaterThan(0);
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0 });
    expect(world.submissions).toHaveLength(1);
  });

  it("hand over at once when the first is stopped in good order", async () => {
    const world = new World({ job: () => succeeds(60_000) });
    worlds.push(world);
    const config = configFrom({});
    const first = world.start({ config });
    await world.clock.advance(3000);
    const second = world.start({ config });
    await world.clock.advance(3000);
    const at = world.clock.now();
    let stopped = false;
    void first.operator.stop().then(() => {
      stopped = true;
    });
    await world.client.create(rayJobs, rayJob());
    await world.until("the second leads", () => second.passes.length > 0, 10_000);
    expect(stopped).toBe(true);
    expect(world.clock.now() - at).toBeLessThan(6000);
    await world.untilPhase("Complete");
  });
});
