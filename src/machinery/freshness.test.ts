import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject } from "../api/object.ts";
import { Freshness } from "./freshness.ts";
import { KubeClient } from "./kube/client.ts";
import { Informer } from "./kube/informer.ts";
import { pods } from "./kube/resources.ts";
import { list, ok, refusal, ScriptedServer, stored } from "./testing/scriptedServer.ts";
import { settle, VirtualClock } from "./virtualClock.ts";

const POD = "GET /api/v1/namespaces/default/pods/a";

describe("the freshness barrier", () => {
  let clock: VirtualClock;
  let server: ScriptedServer;
  let informer: Informer<KubeObject>;
  let freshness: Freshness;
  let stop: AbortController;
  let woken: number;
  const check = () => freshness.check("key", () => woken++);

  beforeEach(async () => {
    clock = new VirtualClock();
    server = new ScriptedServer(clock).on("GET /api/v1/pods", list("10", [stored("old", 5)]));
    stop = new AbortController();
    woken = 0;
    const client = new KubeClient(server, { clock });
    informer = new Informer({ client, type: pods, clock });
    freshness = new Freshness({ clock, client, caches: [informer] });
    informer.start(stop.signal);
    await settle();
  });
  afterEach(() => stop.abort());

  it("is open where nothing was written", async () => {
    expect(await check()).toBe("fresh");
  });

  it("stays shut until the watch brings the object we made, and then wakes who waits, once", async () => {
    freshness.wrote("key", pods, stored("a", 12));
    expect(await check()).toBe(30_000);
    await server.watch.send("ADDED", stored("b", 11));
    expect([await check(), woken]).toEqual([30_000, 0]);
    await server.watch.send("ADDED", stored("a", 12));
    await server.watch.send("MODIFIED", stored("a", 13));
    expect([await check(), woken]).toEqual(["fresh", 1]);
  });

  it("is no concern of other keys", async () => {
    freshness.wrote("key", pods, stored("a", 12));
    expect(await freshness.check("other", () => {})).toBe("fresh");
  });

  it("opens when others' changes show that the cache has passed our write", async () => {
    freshness.wrote("key", pods, stored("old", 11));
    await server.watch.send("MODIFIED", stored("old", 11));
    expect(await check()).toBe("fresh");
    freshness.wrote("key", pods, stored("a", 12));
    // Made and deleted again by someone before the watch showed it: a bookmark is all that comes.
    expect(await check()).toBe(30_000);
    await server.watch.send("BOOKMARK", { metadata: { resourceVersion: "14" } });
    expect([await check(), woken]).toEqual(["fresh", 1]);
  });

  it("opens when the deletion of what we changed is seen, though versions cannot be compared", async () => {
    freshness.wrote("key", pods, stored("old", "opaque"));
    expect(await check()).toBe(30_000);
    await server.watch.send("DELETED", stored("old", "other"));
    expect(await check()).toBe("fresh");
  });

  it("waits for a deletion to show: as a timestamp, or as the object being gone", async () => {
    freshness.deleted("key", pods, "default", "old", "uid-old");
    expect(await check()).toBe(30_000);
    await server.watch.send("MODIFIED", stored("old", 11, { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }));
    expect(await check()).toBe("fresh");
    freshness.deleted("key", pods, "default", "never-seen", "uid");
    expect(await check()).toBe("fresh");
  });

  it("waits for an object to go whose last finalizer we removed: its version does not change by that", async () => {
    freshness.wrote("key", pods, stored("old", 5, { metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }));
    await server.watch.send("BOOKMARK", { metadata: { resourceVersion: "11" } });
    expect(await check()).toBe(30_000);
    await server.watch.send("DELETED", stored("old", 12));
    expect(await check()).toBe("fresh");
  });

  it("opens after 30 s with a live read, whose answer is in the cache then", async () => {
    server.on(POD, ok(stored("a", 15)));
    freshness.wrote("key", pods, stored("a", 12));
    await clock.advance(29_999);
    expect(await check()).toBe(1);
    await clock.advance(1);
    expect(await check()).toBe("fresh");
    expect(informer.store.get("default", "a")?.metadata.resourceVersion).toBe("15");
    // What the watch brings late does not set it back.
    await server.watch.send("ADDED", stored("a", 12));
    expect(informer.store.get("default", "a")?.metadata.resourceVersion).toBe("15");
  });

  it("takes out of the cache what a live read found gone", async () => {
    server.on("GET /api/v1/namespaces/default/pods/old", refusal(404, "NotFound"));
    freshness.deleted("key", pods, "default", "old", "uid-old");
    await clock.advance(30_000);
    expect(await check()).toBe("fresh");
    expect(informer.store.list()).toEqual([]);
  });

  it("stays shut while the live read fails, and opens when one succeeds", async () => {
    server.on(POD, refusal(500, "InternalError"), ok(stored("a", 12)));
    freshness.wrote("key", pods, stored("a", 12));
    await clock.advance(30_000);
    await expect(check()).rejects.toMatchObject({ status: 500 });
    expect(await check()).toBe("fresh");
  });

  it("does not stick when the clock is set back", async () => {
    server.on(POD, ok(stored("a", 12)));
    await clock.advance(3_600_000);
    freshness.wrote("key", pods, stored("a", 12));
    const setBack = new Freshness({
      clock: { ...clock, now: () => clock.now() - backwards, after: clock.after.bind(clock) },
      client: new KubeClient(server, { clock }),
      caches: [informer],
    });
    let backwards = 0;
    setBack.wrote("key", pods, stored("a", 12));
    backwards = 3_000_000;
    expect(await setBack.check("key", () => {})).toBe("fresh");
  });

  it("reads live at once after a write of unknown outcome: the object may be there", async () => {
    server.on(POD, ok(stored("a", 12)));
    freshness.unknown("key", pods, stored("a", ""));
    expect(await check()).toBe("fresh");
    expect(informer.store.get("default", "a")).toBeDefined();
  });

  it("finds what was made under a generated name, when no answer told which, by its labels", async () => {
    const labels = { "ray.io/cluster": "c", "ray.io/group": "g" };
    server.on("GET /api/v1/namespaces/default/pods", list("20", [stored("worker-x7", 12, { metadata: { labels } })]));
    freshness.unknown("key", pods, { metadata: { namespace: "default", generateName: "worker-", labels } });
    expect(await check()).toBe("fresh");
    expect(server.requests.at(-1)!.query).toMatchObject({ labelSelector: "ray.io/cluster=c,ray.io/group=g" });
    expect(informer.store.get("default", "worker-x7")).toBeDefined();
  });
});
