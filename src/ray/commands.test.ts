import { describe, expect, it } from "vitest";
import { FakeRay, runsForEver } from "../../test/sim/fakeRay.ts";
import type { RayCommand, RayTarget } from "../domain/rayjob/ray.ts";
import { VirtualClock } from "../machinery/virtualClock.ts";
import { RayCommands } from "./commands.ts";
import { Dashboard } from "./dashboard.ts";

const target = (more: Partial<RayTarget> = {}): RayTarget => ({
  uid: "uid-a",
  attempt: 0,
  namespace: "default",
  name: "a",
  rayClusterName: "c",
  jobId: "job-1",
  dashboard: "head:8265",
  ...more,
});

function world() {
  const clock = new VirtualClock();
  const ray = new FakeRay({ clock, script: () => runsForEver });
  const finished: string[] = [];
  const commands = new RayCommands({
    clock,
    dashboard: new Dashboard({ transport: ray, askTimeout: 2000, commandTimeout: 10_000 }),
    finished: ({ name }, command, { result }) => finished.push(`${name} ${command} ${result}`),
  });
  return { clock, ray, finished, commands };
}

const submission = (more: Partial<RayTarget> = {}): RayCommand => ({
  do: "submit",
  target: target(more),
  request: { entrypoint: "true", submission_id: more.jobId ?? "job-1" },
  session: "session_1",
  why: "The record says so.",
});

describe("commands to Ray", () => {
  it("are under way at once and show their outcome later", async () => {
    const { clock, ray, commands, finished } = world();
    ray.start("head:8265");
    const startedAt = clock.now();
    commands.run(submission());
    expect(commands.outcomes("uid-a", 0)).toEqual({ submit: { startedAt } });
    await clock.advance(100);
    expect(commands.outcomes("uid-a", 0).submit).toMatchObject({
      startedAt,
      finishedAt: startedAt + 10,
      result: "done",
    });
    expect(finished).toEqual(["a submit done"]);
  });

  it("are not sent twice while one is under way", async () => {
    const { clock, ray, commands } = world();
    const head = ray.start("head:8265");
    commands.run(submission());
    commands.run(submission());
    await clock.advance(5000);
    expect(ray.requests.filter((request) => request.startsWith("POST"))).toHaveLength(1);
    expect(head.submissions).toEqual(["job-1"]);
  });

  it("are repeated when asked for again, but not in a tight loop", async () => {
    const { clock, ray, commands, finished } = world();
    const again = () => commands.run(submission());
    again();
    for (let step = 0; step < 100; step++) {
      await clock.advance(100);
      again();
    }
    expect(finished.length).toBeGreaterThanOrEqual(9);
    expect(finished.length).toBeLessThanOrEqual(11);
    expect(finished[0]).toBe("a submit refused");
    expect(ray.requests.some((request) => request.startsWith("POST"))).toBe(false);
  });

  it("of unknown outcome say so", async () => {
    const { clock, ray, commands, finished } = world();
    ray.start("head:8265").mood = "hang";
    commands.run({ do: "stop", target: target(), why: "Deleted." });
    await clock.advance(10_000);
    expect(finished).toEqual(["a stop unknown"]);
  });

  it("to one head wait for each other; those to another do not", async () => {
    const { clock, ray, commands, finished } = world();
    ray.start("head:8265").mood = { slow: 4000 };
    ray.start("other:8265");
    commands.run({ do: "stop", target: target({ uid: "1", name: "first" }), why: "" });
    commands.run({ do: "stop", target: target({ uid: "2", name: "second" }), why: "" });
    commands.run({ do: "stop", target: target({ uid: "3", name: "third", dashboard: "other:8265" }), why: "" });
    await clock.advance(4000);
    expect(finished).toEqual(["third stop done", "first stop done"]);
    await clock.advance(4000);
    expect(finished).toHaveLength(3);
  });

  it("of an earlier attempt say nothing about the next", async () => {
    const { clock, ray, commands } = world();
    ray.start("head:8265");
    commands.run(submission());
    await clock.advance(100);
    expect(commands.outcomes("uid-a", 1)).toEqual({});
    commands.run(submission({ attempt: 1, jobId: "job-2" }));
    expect(commands.outcomes("uid-a", 0)).toEqual({});
  });

  it("are forgotten with their RayJob, and none is started after the end", async () => {
    const { clock, ray, commands, finished } = world();
    ray.start("head:8265");
    commands.run(submission());
    commands.forget("uid-a");
    commands.run(submission({ uid: "uid-b", jobId: "job-2" }));
    commands.stop();
    await clock.advance(5000);
    expect(finished).toEqual([]);
    expect(commands.outcomes("uid-a", 0)).toEqual({});
  });
});
