import { beforeEach, describe, expect, it } from "vitest";
import { noMetrics } from "./metrics.ts";
import { Queue } from "./queue.ts";
import { settle, VirtualClock } from "./virtualClock.ts";

describe("the queue", () => {
  let clock: VirtualClock;
  let queue: Queue;
  let taken: string[];

  beforeEach(() => {
    clock = new VirtualClock();
    queue = new Queue({ clock });
    taken = [];
  });

  /** One worker that takes keys and finishes them at once. */
  async function work(): Promise<void> {
    for (let key = await queue.next(); key !== undefined; key = await queue.next()) {
      taken.push(key);
      queue.done(key);
    }
  }

  it("gives a key once, however often it was added", async () => {
    for (const key of ["a", "b", "a"]) queue.add(key);
    void work();
    await settle();
    expect(taken).toEqual(["a", "b"]);
  });

  it("never gives a key to two workers, and gives it again when it was added meanwhile", async () => {
    queue.add("a");
    expect(await queue.next()).toBe("a");
    expect(queue.isWorkedOn("a")).toBe(true);
    queue.add("a");
    void work();
    await settle();
    expect(taken).toEqual([]);
    queue.done("a");
    await settle();
    expect(taken).toEqual(["a"]);
  });

  it("keeps the earliest of the times a key was planned for", async () => {
    void work();
    queue.add("a", 5_000);
    queue.add("a", 9_000);
    queue.add("a", 2_000);
    await clock.advance(1_999);
    expect(taken).toEqual([]);
    await clock.advance(1);
    expect(taken).toEqual(["a"]);
    await clock.advance(60_000);
    expect(taken).toEqual(["a"]);
  });

  it("forgets the plan when the key is looked at before", async () => {
    void work();
    queue.add("a", 5_000);
    queue.add("a");
    await clock.advance(60_000);
    expect(taken).toEqual(["a"]);
  });

  it("backs off each key by itself, from 5 ms to a minute, until it is forgotten", () => {
    const delays = Array.from({ length: 16 }, () => queue.retry("bad"));
    expect(delays.slice(0, 4)).toEqual([5, 10, 20, 40]);
    expect(delays.at(-1)).toBe(60_000);
    expect(queue.retry("other")).toBe(5);
    queue.forget("bad");
    expect(queue.retry("bad")).toBe(5);
    expect(queue.retry("other", 30_000)).toBe(30_000);
  });

  it("lets its workers go when it is closed, and leaves no timer", async () => {
    const worker = work();
    queue.add("a", 1_000);
    await settle();
    queue.close();
    await worker;
    queue.add("b");
    expect(clock.next()).toBeUndefined();
    expect(taken).toEqual([]);
  });

  it("tells how long keys waited and how long the work on them took", async () => {
    const told: [string, number][] = [];
    const metrics = {
      ...noMetrics,
      observe: (name: string, _: unknown, value: number) => void told.push([name, value]),
    };
    const measured = new Queue({ clock, name: "x", metrics });
    measured.add("a");
    await clock.advance(2_000);
    const key = await measured.next();
    await clock.advance(3_000);
    measured.done(key!);
    expect(told).toEqual([
      ["workqueue_queue_duration_seconds", 2],
      ["workqueue_work_duration_seconds", 3],
    ]);
  });
});
