import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject, Stored } from "../../api/object.ts";
import type { Logger } from "../logger.ts";
import { list, ok, refusal, ScriptedServer, stored } from "../testing/scriptedServer.ts";
import { settle, VirtualClock } from "../virtualClock.ts";
import { KubeClient } from "./client.ts";
import { Informer, type InformerOptions } from "./informer.ts";
import { pods } from "./resources.ts";
import { TransportError } from "./transport.ts";

const LIST = "GET /api/v1/pods";
const reset = () => new TransportError("connection reset", { maybeSent: true });

describe("an informer", () => {
  let clock: VirtualClock;
  let server: ScriptedServer;
  let stop: AbortController;
  let changes: string[];
  let logged: string[];

  beforeEach(() => {
    clock = new VirtualClock();
    server = new ScriptedServer(clock);
    stop = new AbortController();
    changes = [];
    logged = [];
  });
  afterEach(() => stop.abort());

  async function start(options: Partial<InformerOptions<KubeObject>> = {}): Promise<Informer<KubeObject>> {
    const log = (_: object, message: string) => void logged.push(message);
    const logger: Logger = { debug: log, info: log, warn: log, error: log };
    const client = new KubeClient(server, { clock });
    const informer = new Informer<KubeObject>({ client, type: pods, clock, log: logger, ...options });
    informer.onChange(({ old, new: now }) => {
      const version = (object: Stored | undefined) =>
        object && `${object.metadata.name}@${object.metadata.resourceVersion}`;
      changes.push(`${version(old) ?? "-"} ${version(now) ?? "-"}`);
    });
    informer.start(stop.signal);
    await settle();
    return informer;
  }
  const names = (informer: Informer<KubeObject>) => informer.store.list().map(({ metadata }) => metadata.name);

  it("shows what the list held, then what the watch brings", async () => {
    server.on(LIST, list("10", [stored("a", 3), stored("b", 4)]));
    const informer = await start();
    await informer.synced();
    await server.watch.send("ADDED", stored("c", 11));
    await server.watch.send("MODIFIED", stored("a", 12));
    await server.watch.send("DELETED", stored("b", 13));
    expect(names(informer)).toEqual(["a", "c"]);
    expect(changes).toEqual(["- a@3", "- b@4", "- c@11", "a@3 a@12", "b@4 -"]);
    expect(informer.store.highWater).toBe("13");
    expect(server.watch.request.query).toMatchObject({ resourceVersion: "10", allowWatchBookmarks: "true" });
  });

  it("reads a long list page by page", async () => {
    server.on(LIST, list("10", [stored("a", 3)], "more"), list("10", [stored("b", 4)]));
    const informer = await start();
    expect(names(informer)).toEqual(["a", "b"]);
    expect(server.made(LIST).map(({ query }) => query)).toEqual([{ limit: "500" }, { limit: "500", continue: "more" }]);
  });

  it("takes the list in one piece when its pages expire while they are turned", async () => {
    server.on(LIST, list("10", [stored("a", 3)], "more"), refusal(410, "Expired"), list("20", [stored("b", 12)]));
    const informer = await start();
    expect(names(informer)).toEqual(["b"]);
    expect(server.made(LIST).at(-1)!.query).toEqual({});
  });

  it("keeps trying while the list fails, however long", async () => {
    const bad = [refusal(500, "InternalError"), refusal(410, "Expired"), refusal(403, "Forbidden"), reset(), reset()];
    server.on(LIST, ...bad, ...bad, ...bad, ...bad, ok("<html>no API</html>"), list("10", [stored("a", 3)]));
    const informer = await start();
    expect(informer.store.hasSynced).toBe(false);
    await clock.advance(20 * 60_000);
    await informer.synced();
    expect(names(informer)).toEqual(["a"]);
  });

  it("warns once of a right that is missing, and again of the next trouble", async () => {
    const warnings: string[] = [];
    const log: Logger = {
      debug() {},
      info() {},
      warn: (fields) => void warnings.push((fields as { error: string }).error),
      error() {},
    };
    const denied = refusal(403, "Forbidden", { message: "may not list pods" });
    const other = refusal(403, "Forbidden", { message: "unknown user" });
    server.on(LIST, denied, denied, denied, other, list("10")).refuseWatches(other);
    await start({ log });
    await clock.advance(30_000);
    await server.watch.send("ADDED", stored("a", 11));
    expect(warnings).toEqual(["may not list pods", "unknown user"]);
    server.refuseWatches(other);
    await server.watch.cut();
    await clock.advance(1_000);
    expect(warnings.slice(3)).toEqual(["unknown user"]);
  });

  it("keeps trying while its credentials are not accepted", async () => {
    server
      .on(LIST, list("10"), list("20"))
      .refuseWatches(...Array.from({ length: 30 }, () => refusal(401, "Unauthorized")));
    const informer = await start();
    await clock.advance(15 * 60_000);
    await server.watch.send("ADDED", stored("a", 21));
    expect(names(informer)).toEqual(["a"]);
    expect(server.made(LIST)).toHaveLength(1);
  });

  it("leaves a busy server alone for as long as it asks", async () => {
    const busy = refusal(429, "TooManyRequests", { headers: { "retry-after": "7" } });
    server.on(LIST, busy, list("10"));
    await start();
    await clock.advance(6_999);
    expect(server.made(LIST)).toHaveLength(1);
    await clock.advance(1);
    expect(server.made(LIST)).toHaveLength(2);
  });

  it("waits as asked, too, when a watch is refused with 429", async () => {
    server.on(LIST, list("10")).refuseWatches(refusal(429, "TooManyRequests", { headers: { "retry-after": "40" } }));
    await start();
    await clock.advance(39_999);
    expect(server.watches).toHaveLength(0);
    await clock.advance(1);
    expect(server.watches).toHaveLength(1);
    expect(server.made(LIST)).toHaveLength(1);
  });

  it("goes on from the last version it saw when the connection breaks", async () => {
    server.on(LIST, list("10"));
    const informer = await start();
    await server.watch.send("ADDED", stored("a", 11));
    await server.watch.cut();
    await clock.advance(1_000);
    expect(server.watches).toHaveLength(2);
    expect(server.watch.request.query).toMatchObject({ resourceVersion: "11" });
    await server.watch.send("ADDED", stored("b", 12));
    expect(names(informer)).toEqual(["a", "b"]);
    expect(server.made(LIST)).toHaveLength(1);
  });

  it("goes on from a bookmark", async () => {
    server.on(LIST, list("10"));
    const informer = await start();
    await server.watch.send("BOOKMARK", { metadata: { resourceVersion: "99" } });
    expect(informer.store.highWater).toBe("99");
    await server.watch.end();
    await clock.advance(1_000);
    expect(server.watch.request.query).toMatchObject({ resourceVersion: "99" });
  });

  it.each([
    ["cut in the middle", '{"type":"ADDED","object":{"metadata":{"na'],
    ["garbled", "\u0000\u0001!!"],
    ["not an event", '{"hello":"world"}'],
    ["null", "null"],
  ])("survives a line that is %s", async (_, line) => {
    server.on(LIST, list("10"));
    const informer = await start();
    await server.watch.send("ADDED", stored("a", 11));
    await server.watch.sendLine(line);
    await clock.advance(1_000);
    expect(server.watch.request.query).toMatchObject({ resourceVersion: "11" });
    await server.watch.send("ADDED", stored("b", 12));
    expect(names(informer)).toEqual(["a", "b"]);
  });

  it("lists anew when the same place is garbled again and again", async () => {
    server.on(LIST, list("10"), list("20", [stored("a", 15)]));
    const informer = await start();
    for (let time = 0; time < 3; time++) {
      await server.watch.sendLine("!!");
      await clock.advance(5_000);
    }
    expect(server.made(LIST)).toHaveLength(2);
    expect(names(informer)).toEqual(["a"]);
  });

  it.each([
    ["an ERROR event", (): unknown => server.watch.send("ERROR", { kind: "Status", code: 410, reason: "Expired" })],
    [
      "the status",
      async () => {
        server.refuseWatches(refusal(410, "Expired"));
        await server.watch.cut();
        await clock.advance(1_000);
      },
    ],
  ])(
    "lists anew at once when history is gone (410 as %s), and tells of deletions the watch missed",
    async (_, expire) => {
      server.on(
        LIST,
        list("10", [stored("a", 3), stored("b", 4), stored("c", 5)]),
        list("50", [stored("a", 3), stored("c", 40)]),
      );
      const informer = await start();
      changes.length = 0;
      await expire();
      await settle();
      expect(names(informer)).toEqual(["a", "c"]);
      expect(changes).toEqual(["c@5 c@40", "b@4 -"]);
      expect(server.watch.request.query).toMatchObject({ resourceVersion: "50" });
    },
  );

  it("slows down when a version just listed is said to be gone, every time", async () => {
    server.on(LIST, list("10"));
    server.refuseWatches(...Array.from({ length: 100 }, () => refusal(410, "Expired")));
    await start();
    await clock.advance(60_000);
    expect(server.made(LIST).length).toBeLessThan(10);
    await clock.advance(3_600_000);
    expect(server.watches).not.toHaveLength(0);
  });

  it("sees an object that was deleted and made anew, while it was not looking, as the new one", async () => {
    const again = stored("a", 40, { metadata: { uid: "other" } });
    server.on(LIST, list("10", [stored("a", 3)]), list("50", [again]));
    const informer = await start();
    await server.watch.send("ERROR", { kind: "Status", code: 410, reason: "Expired" });
    expect(informer.store.get("default", "a")?.metadata.uid).toBe("other");
  });

  it("takes a connection that has been silent for too long for dead", async () => {
    server.on(LIST, list("10"));
    await start();
    await clock.advance(140_000);
    await server.watch.send("BOOKMARK", { metadata: { resourceVersion: "11" } });
    await clock.advance(149_000);
    expect(server.watches).toHaveLength(1);
    await clock.advance(2_000);
    expect(server.watches[0]!.closed).toBe(true);
    expect(server.watches).toHaveLength(2);
    expect(server.watch.request.query).toMatchObject({ resourceVersion: "11" });
  });

  it("does not become a busy loop when each watch ends as soon as it has begun", async () => {
    server.on(LIST, list("10"));
    await start();
    for (let time = 0; time < 100; time++) {
      await server.watch.end();
      await clock.advance(1_000);
    }
    expect(server.watches.length).toBeLessThan(20);
  });

  it("renews at once a watch that the server has ended in its time", async () => {
    server.on(LIST, list("10"));
    await start();
    await clock.advance(100_000);
    await server.watch.end();
    expect(server.watches).toHaveLength(2);
  });

  it("goes on when a handler throws, and tells the others", async () => {
    server.on(LIST, list("10", [stored("a", 3)]));
    const informer = await start();
    const seen: string[] = [];
    informer.onChange(() => {
      throw new Error("a bug");
    });
    informer.onChange((change) => seen.push(change.new!.metadata.name));
    await server.watch.send("ADDED", stored("b", 11));
    expect(seen).toEqual(["a", "b"]);
    expect(logged.filter((message) => message.includes("handler"))).toHaveLength(2);
    expect(names(informer)).toEqual(["a", "b"]);
  });

  it("watches several namespaces into one store, and has synced when all have", async () => {
    const inB = stored("b", 7, { metadata: { namespace: "two" } });
    server.on("GET /api/v1/namespaces/default/pods", list("10", [stored("a", 3)]));
    server.on("GET /api/v1/namespaces/two/pods", refusal(500, "InternalError"), list("8", [inB]), list("30"));
    const informer = await start({ namespaces: ["default", "two"] });
    expect(informer.store.hasSynced).toBe(false);
    expect(informer.store.highWater).toBe("");
    await clock.advance(1_000);
    expect(names(informer)).toEqual(["a", "b"]);
    expect([informer.store.highWater, informer.store.highWaterOf("default")]).toEqual(["8", "10"]);
    // A relist of one leaves the other's objects alone.
    const two = server.watches.find(({ request }) => request.path.includes("two"))!;
    await two.send("ERROR", { kind: "Status", code: 410, reason: "Expired" });
    expect(names(informer)).toEqual(["a"]);
  });

  it("keeps in memory only what decisions read", async () => {
    const annotations = { "kubectl.kubernetes.io/last-applied-configuration": "{…}", keep: "me" };
    server.on(LIST, list("10", [stored("a", 3, { metadata: { managedFields: [{}], annotations } })]));
    const informer = await start();
    const { metadata } = informer.store.get("default", "a")!;
    expect(metadata.managedFields).toBeUndefined();
    expect(metadata.annotations).toEqual({ keep: "me" });
  });

  it("stops when told to, and leaves no timer", async () => {
    server.on(LIST, list("10"));
    await start();
    stop.abort();
    await settle();
    expect(server.watch.closed).toBe(true);
    expect(clock.next()).toBeUndefined();
  });
});
