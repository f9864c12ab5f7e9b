import { beforeEach, describe, expect, it } from "vitest";
import { Events } from "./events.ts";
import { KubeClient } from "./kube/client.ts";
import { TransportError } from "./kube/transport.ts";
import { noMetrics } from "./metrics.ts";
import { ok, refusal, ScriptedServer, stored } from "./testing/scriptedServer.ts";
import { VirtualClock } from "./virtualClock.ts";

const CREATE = "POST /apis/events.k8s.io/v1/namespaces/default/events";
const happening = { type: "Warning", reason: "Failed", action: "Create", note: "no luck" } as const;

interface Body {
  metadata: { name: string };
  note: string;
  series?: { count: number; lastObservedTime: string };
}

describe("events", () => {
  let clock: VirtualClock;
  let server: ScriptedServer;
  let events: Events;
  let dropped: number;
  const job = stored("a", 7, { apiVersion: "ray.io/v1", kind: "RayJob" });
  const bodies = (method: string) =>
    server.requests.filter((request) => request.method === method).map(({ body }) => body as Body);

  beforeEach(() => {
    clock = new VirtualClock();
    server = new ScriptedServer(clock).on(CREATE, ok(stored("event", 1), 201));
    dropped = 0;
    const metrics = { ...noMetrics, count: () => dropped++ };
    events = new Events({
      client: new KubeClient(server, { clock }),
      clock,
      controller: "raykeeper",
      instance: "pod-1",
      metrics,
    });
  });

  /** Lets whatever was made be patched, under whichever name it got. */
  async function flush(): Promise<void> {
    await events.flushed();
    for (const { metadata } of bodies("POST")) {
      server.on(`PATCH /apis/events.k8s.io/v1/namespaces/default/events/${metadata.name}`, ok(stored("event", 2)));
    }
  }

  it("are written beside their object", async () => {
    events.record(job, happening);
    await events.flushed();
    expect(server.made(CREATE)[0]!.body).toMatchObject({
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { namespace: "default", name: expect.stringMatching(/^a\.[0-9a-f]+$/) },
      eventTime: "2026-01-01T00:00:00.000000Z",
      reportingController: "raykeeper",
      reportingInstance: "pod-1",
      ...happening,
      regarding: {
        apiVersion: "ray.io/v1",
        kind: "RayJob",
        namespace: "default",
        name: "a",
        uid: "uid-a",
        resourceVersion: "7",
      },
    });
  });

  it("that repeat become a count on the first, written at most every 30 s", async () => {
    events.record(job, happening);
    await flush();
    await clock.advance(1_000);
    for (let time = 0; time < 50; time++) {
      events.record(job, happening);
      await clock.advance(1_000);
    }
    await clock.advance(60_000);
    expect(bodies("POST")).toHaveLength(1);
    expect(bodies("PATCH").map(({ series }) => series?.count)).toEqual([2, 31, 51]);
    expect(bodies("PATCH")[2]!.series!.lastObservedTime).toBe("2026-01-01T00:00:50.000000Z");
  });

  it("that repeat after a pause are new events", async () => {
    events.record(job, happening);
    await flush();
    await clock.advance(7 * 60_000);
    events.record(job, happening);
    await events.flushed();
    expect(bodies("POST")).toHaveLength(2);
  });

  it("that say something else are events of their own", async () => {
    for (const note of ["one", "two"]) events.record(job, { ...happening, note });
    await flush();
    events.record(job, { ...happening, note: "one" });
    await events.flushed();
    expect(bodies("POST").map(({ note }) => note)).toEqual(["one", "two"]);
    expect(bodies("PATCH").map(({ series }) => series?.count)).toEqual([2]);
  });

  it("of an object that talks without end are cut short, and no other object's", async () => {
    for (let time = 0; time < 100; time++) events.record(job, { ...happening, note: `note ${time}` });
    events.record(stored("b", 1), happening);
    await events.flushed();
    expect(bodies("POST")).toHaveLength(26);
    expect(dropped).toBeGreaterThan(74);
    await clock.advance(300_000);
    events.record(job, { ...happening, note: "later" });
    await events.flushed();
    expect(bodies("POST")).toHaveLength(27);
  });

  it("are made anew when the server has meanwhile thrown the first away", async () => {
    events.record(job, happening);
    await events.flushed();
    const { name } = bodies("POST")[0]!.metadata;
    server.on(`PATCH /apis/events.k8s.io/v1/namespaces/default/events/${name}`, refusal(404, "NotFound"));
    await clock.advance(60_000);
    events.record(job, happening);
    await events.flushed();
    expect(bodies("POST").map(({ series }) => series?.count)).toEqual([undefined, 2]);
  });

  it("are tried again under the same name when no answer came", async () => {
    server.on(CREATE, new TransportError("reset", { maybeSent: true }), refusal(409, "AlreadyExists"));
    events.record(job, happening);
    await clock.advance(10_000);
    await events.flushed();
    expect(new Set(bodies("POST").map(({ metadata }) => metadata.name)).size).toBe(1);
    expect(bodies("POST")).toHaveLength(2);
    expect(dropped).toBe(0);
  });

  it("that the server refuses are dropped, and do not hold up the next", async () => {
    server.on(CREATE, refusal(403, "Forbidden"), ok(stored("event", 1), 201));
    events.record(job, happening);
    events.record(job, { ...happening, note: "another" });
    await events.flushed();
    expect(bodies("POST")).toHaveLength(2);
    expect(dropped).toBe(1);
  });

  it("with a long note are cut to what the server takes, between characters", async () => {
    events.record(job, { ...happening, note: "ö".repeat(2_000) });
    await events.flushed();
    const { note } = bodies("POST")[0]!;
    expect(Buffer.byteLength(note)).toBeLessThanOrEqual(1024);
    expect(note).toMatch(/^ö+…$/);
  });

  it("of an object with the longest name still have a name that the server takes", async () => {
    const name = `${"x".repeat(233)}.${"y".repeat(19)}`;
    server.on(CREATE, ok(stored("event", 1), 201));
    events.record(stored(name, 1), happening);
    await events.flushed();
    expect(bodies("POST")[0]!.metadata.name.length).toBeLessThanOrEqual(253);
  });
});
