import { describe, expect, it } from "vitest";
import { FakeRay, runsForEver, succeeds } from "../../test/sim/fakeRay.ts";
import type { RayInterest } from "../domain/rayjob/ray.ts";
import { VirtualClock } from "../machinery/virtualClock.ts";
import { Dashboard } from "./dashboard.ts";
import { Poller, type PollerOptions } from "./poller.ts";

function world(options: Partial<PollerOptions> = {}, script = runsForEver) {
  const clock = new VirtualClock();
  const ray = new FakeRay({ clock, script: () => script });
  const changed: string[] = [];
  const dashboard = new Dashboard({ transport: ray, askTimeout: 2000, commandTimeout: 10_000 });
  const poller = new Poller({ clock, dashboard, changed: ({ name }) => changed.push(name), ...options });
  return { clock, ray, changed, poller, start: clock.now() };
}

const interest = (
  name: string,
  more: Partial<RayInterest> & { attempt?: number; dashboard?: string; jobId?: string; uid?: string } = {},
): RayInterest => {
  const { attempt = 0, dashboard = "head:8265", jobId = name, uid = `uid-${name}`, ...rest } = more;
  return {
    pace: "steady",
    target: { uid, attempt, namespace: "default", name, rayClusterName: "c", jobId, dashboard },
    ...rest,
  };
};

const submit = (ray: FakeRay, id: string, head = "head:8265") =>
  ray.give(ray.heads.get(head)!, { entrypoint: "true", submission_id: id });

const asked = (ray: FakeRay, pattern: RegExp) => ray.requests.filter((request) => pattern.test(request)).length;

describe("the poller", () => {
  it("asks at once, for the job first and then for the session", async () => {
    const { clock, ray, poller, start } = world();
    ray.start("head:8265");
    poller.watch(interest("a"));
    await clock.advance(100);
    expect(poller.answer("uid-a", 0)).toEqual({
      requestedAt: start,
      job: { kind: "notFound" },
      session: "session_1",
      driverNode: "UNKNOWN",
    });
    expect(ray.requests).toEqual(["GET head:8265 /api/jobs/a", "GET head:8265 /api/version"]);
  });

  it("says so when an answer changed, and not when the same comes again", async () => {
    const { clock, ray, poller, changed } = world();
    ray.start("head:8265");
    submit(ray, "a");
    poller.watch(interest("a"));
    await clock.advance(60_000);
    // PENDING, then RUNNING.
    expect(changed).toEqual(["a", "a"]);
    expect(asked(ray, /jobs\/a/)).toBeGreaterThan(6);
  });

  it("asks once more, and at once, when an occasion comes up, and tells which answer is to that", async () => {
    const { clock, ray, poller, changed } = world();
    ray.start("head:8265");
    submit(ray, "a");
    poller.watch(interest("a"));
    await clock.advance(60_000);
    const before = [asked(ray, /jobs\/a/), changed.length] as const;
    poller.watch(interest("a", { occasion: "suspension" }));
    expect(poller.answer("uid-a", 0)?.occasion).toBeUndefined();
    await clock.advance(600);
    expect(asked(ray, /jobs\/a/)).toBe(before[0] + 1);
    expect(poller.answer("uid-a", 0)?.occasion).toBe("suspension");
    expect(changed).toHaveLength(before[1] + 1);
  });

  it("takes no answer for one to an occasion that came up when it had been asked for already", async () => {
    const { clock, ray, poller } = world();
    ray.start("head:8265").mood = { slow: 1500 };
    poller.watch(interest("a"));
    await clock.advance(500);
    poller.watch(interest("a", { occasion: "suspension" }));
    await clock.advance(2600);
    expect(poller.answer("uid-a", 0)).toBeDefined();
    expect(poller.answer("uid-a", 0)?.occasion).toBeUndefined();
    await clock.advance(4000);
    expect(poller.answer("uid-a", 0)?.occasion).toBe("suspension");
  });

  it("asks seldom while nothing changes, and still sees a job's end within 10 s", async () => {
    const { clock, ray, poller } = world({}, succeeds(600_000));
    ray.start("head:8265");
    submit(ray, "a");
    poller.watch(interest("a"));
    await clock.advance(601_000 + 10_000);
    expect(poller.answer("uid-a", 0)?.job).toMatchObject({ info: { status: "SUCCEEDED" } });
    expect(asked(ray, /jobs\/a/)).toBeLessThan(100);
  });

  it("asks every two seconds at least at the quick pace, and never when it is off", async () => {
    const { clock, ray, poller } = world();
    ray.start("head:8265");
    poller.watch(interest("a", { pace: "quick" }));
    await clock.advance(60_000);
    const quick = asked(ray, /jobs\/a/);
    expect(quick).toBeGreaterThanOrEqual(27);
    poller.watch(interest("a", { pace: "off" }));
    await clock.advance(60_000);
    expect(asked(ray, /jobs\/a/)).toBe(quick);
  });

  it("asks again for who waits for an answer to a later question, and tells him though nothing changed", async () => {
    const { clock, ray, poller, changed } = world();
    ray.start("head:8265");
    poller.watch(interest("a"));
    await clock.advance(60_000);
    changed.length = 0;
    const notBefore = clock.now();
    poller.watch(interest("a", { notBefore }));
    await clock.advance(600);
    expect(changed).toEqual(["a"]);
    expect(poller.answer("uid-a", 0)!.requestedAt).toBeGreaterThanOrEqual(notBefore);
  });

  it("asks soon after a nudge, even one that comes while a question is under way", async () => {
    const { clock, ray, poller } = world();
    ray.start("head:8265").mood = { slow: 400 };
    poller.watch(interest("a"));
    await clock.advance(60_000);
    const before = asked(ray, /jobs\/a/);
    poller.nudge("uid-a");
    await clock.advance(200);
    poller.nudge("uid-a");
    await clock.advance(1700);
    expect(asked(ray, /jobs\/a/) - before).toBeGreaterThanOrEqual(2);
  });

  it("keeps attempts apart", async () => {
    const { clock, ray, poller } = world({}, succeeds(0, 0));
    ray.start("head:8265");
    submit(ray, "a");
    poller.watch(interest("a"));
    await clock.advance(2000);
    expect(poller.answer("uid-a", 0)?.job.kind).toBe("known");
    poller.watch(interest("a", { attempt: 1, dashboard: "next:8265" }));
    expect(poller.answer("uid-a", 0)).toBeUndefined();
    expect(poller.answer("uid-a", 1)).toBeUndefined();
  });

  it("gives the answer to a question that was under way to nobody else: a namesake waits for its own", async () => {
    const { clock, ray, poller } = world({}, succeeds(0, 0));
    ray.start("head:8265").mood = { slow: 1000 };
    submit(ray, "a");
    poller.watch(interest("a", { uid: "old" }));
    await clock.advance(500);
    poller.forget("old");
    ray.start("head:8265").mood = { slow: 1000 };
    poller.watch(interest("a", { uid: "new" }));
    await clock.advance(5000);
    expect(poller.answer("old", 0)).toBeUndefined();
    expect(poller.answer("new", 0)).toMatchObject({ job: { kind: "notFound" }, session: "session_2" });
  });

  it("serves two hundred jobs of one head from one list, within a bound on the head's load", async () => {
    const { clock, ray, poller, changed } = world({}, succeeds(120_000));
    ray.start("head:8265");
    for (let index = 0; index < 200; index++) {
      submit(ray, `j${index}`);
      poller.watch(interest(`j${index}`));
    }
    await clock.advance(300_000);
    // A list, a version and now and then the nodes, every 0.5 s at most.
    expect(ray.requests.length / 300).toBeLessThan(4);
    expect(new Set(changed).size).toBe(200);
    for (let index = 0; index < 200; index++) {
      expect(poller.answer(`uid-j${index}`, 0)?.job).toMatchObject({ info: { status: "SUCCEEDED" } });
    }
  });

  it("believes no list that leaves a job out before Ray said so of the job itself", async () => {
    const { clock, ray, poller } = world();
    ray.start("head:8265");
    for (const name of ["a", "b", "c", "d"]) poller.watch(interest(name));
    for (const name of ["a", "b", "c"]) submit(ray, name);
    await clock.advance(500);
    expect(ray.requests).toContain("GET head:8265 /api/jobs/d");
    expect(poller.answer("uid-d", 0)?.job).toEqual({ kind: "notFound" });
    expect(ray.requests).not.toContain("GET head:8265 /api/jobs/a");
  });

  it("lets no hanging dashboard delay another", async () => {
    const { clock, ray, poller } = world({}, succeeds(60_000));
    for (let index = 0; index < 200; index++) {
      ray.start(`h${index}`).mood = index < 50 ? "hang" : "well";
      submit(ray, `j${index}`, `h${index}`);
      poller.watch(interest(`j${index}`, { dashboard: `h${index}` }));
    }
    await clock.advance(61_000 + 10_000);
    for (let index = 50; index < 200; index++) {
      expect(poller.answer(`uid-j${index}`, 0)?.job).toMatchObject({ info: { status: "SUCCEEDED" } });
    }
    expect(poller.answer("uid-j0", 0)?.job).toMatchObject({ kind: "none", error: expect.stringContaining("2 s") });
  });

  it("keeps to its bound on the rate, whatever the number of dashboards", async () => {
    const { clock, ray, poller } = world({ requestsPerSecond: 20 });
    for (let index = 0; index < 200; index++) {
      ray.start(`h${index}`);
      poller.watch(interest(`j${index}`, { dashboard: `h${index}` }));
    }
    await clock.advance(60_000);
    expect(ray.requests.length).toBeLessThanOrEqual(20 * 60 + 20);
    expect(ray.requests.length).toBeGreaterThan(20 * 55);
  });

  it("looks up the driver's node while the job runs, seldom while it is alive and each time once it is not", async () => {
    const { clock, ray, poller, changed } = world();
    const head = ray.start("head:8265");
    submit(ray, "a");
    poller.watch(interest("a"));
    await clock.advance(120_000);
    expect(poller.answer("uid-a", 0)?.driverNode).toBe("ALIVE");
    expect(asked(ray, /nodes/)).toBeLessThanOrEqual(10);
    changed.length = 0;
    head.nodes.set(head.headNode, "DEAD");
    await clock.advance(25_000);
    expect(poller.answer("uid-a", 0)?.driverNode).toBe("DEAD");
    expect(changed).toEqual(["a"]);
    head.nodes.clear();
    await clock.advance(10_000);
    expect(poller.answer("uid-a", 0)?.driverNode).toBe("MISSING");
  });

  it("asks nothing more once stopped or when nothing is of interest", async () => {
    const { clock, ray, poller } = world();
    ray.start("head:8265");
    poller.watch(interest("a"));
    await clock.advance(10_000);
    poller.forget("uid-a");
    const before = ray.requests.length;
    await clock.advance(60_000);
    expect(ray.requests.length).toBe(before);
    expect(clock.next()).toBeUndefined();
  });
});
