import { beforeEach, describe, expect, it } from "vitest";
import { list, ok, refusal, ScriptedServer, stored } from "../testing/scriptedServer.ts";
import { settle, VirtualClock } from "../virtualClock.ts";
import { KubeClient, WriteRefused } from "./client.ts";
import { isAlreadyExists, isConflict, isGone, isInvalid, isNotFound, isUnknownOutcome, KubeError } from "./errors.ts";
import { byKind, pods, rayJobs, resourcePath } from "./resources.ts";
import { TransportError } from "./transport.ts";

const POD = "/api/v1/namespaces/default/pods/a";
const reset = () => new TransportError("connection reset", { maybeSent: true });

describe("the client", () => {
  let clock: VirtualClock;
  let server: ScriptedServer;
  let client: KubeClient;

  beforeEach(() => {
    clock = new VirtualClock();
    server = new ScriptedServer(clock);
    client = new KubeClient(server, { clock });
  });

  it("knows where each kind lives", () => {
    expect(resourcePath(rayJobs, "ns", "a", "status")).toBe("/apis/ray.io/v1/namespaces/ns/rayjobs/a/status");
    expect(resourcePath(pods)).toBe("/api/v1/pods");
    expect(resourcePath(byKind("Node"), "ignored", "n")).toBe("/api/v1/nodes/n");
    expect(() => byKind("Unicorn")).toThrow("Unicorn");
  });

  it.each(["../../theirs/secrets/x", "a/b", "a%2Fb", "..", "."])(
    "asks nobody for %s: that would be a path",
    async (name) => {
      const error = await client.get(byKind("Secret"), "default", name).catch((caught: unknown) => caught);
      expect(isNotFound(error)).toBe(true);
      expect(server.requests).toEqual([]);
    },
  );

  it.each([
    [404, "NotFound", isNotFound],
    [409, "AlreadyExists", isAlreadyExists],
    [409, "Conflict", isConflict],
    [410, "Expired", isGone],
    [422, "Invalid", isInvalid],
  ])("tells %s %s apart", async (status, reason, is) => {
    server.on(`GET ${POD}`, refusal(status, reason, { message: "no such luck", details: { name: "a" } }));
    const error: KubeError = await client.get(pods, "default", "a").catch((caught) => caught);
    expect(is(error)).toBe(true);
    expect([isAlreadyExists, isConflict].filter((other) => other !== is).some((other) => other(error))).toBe(false);
    expect(error).toMatchObject({ message: "no such luck", details: { name: "a" }, status, reason });
  });

  it("takes no megabytes of what was refused into its message", async () => {
    server.on(`GET ${POD}`, refusal(422, "Invalid", { message: `Invalid value: "${"a".repeat(1_000_000)}"` }));
    const error: KubeError = await client.get(pods, "default", "a").catch((caught) => caught);
    expect(error.message).toMatch(/^Invalid value: "a{1000,9000}$/);
  });

  it("says what it asked for when the answer is no Kubernetes answer", async () => {
    server.on(`GET ${POD}`, { status: 502, headers: {}, body: "<h1>Bad gateway</h1>" });
    await expect(client.get(pods, "default", "a")).rejects.toThrow(
      `GET ${POD} was answered with status 502: <h1>Bad gateway</h1>`,
    );
  });

  it.each([
    ["a page", "<html>Please log in</html>"],
    ["nothing", undefined],
    ["some object", { items: [] }],
  ])("does not take %s for the API's answer, whatever the status says", async (_, body) => {
    server.on(`GET ${POD}`, ok(body)).on("GET /api/v1/pods", ok(body)).on(`PATCH ${POD}`, ok(body));
    for (const asked of [client.get(pods, "default", "a"), client.list(pods), client.patch(pods, "default", "a", {})]) {
      await expect(asked).rejects.toThrow("was answered with something else");
    }
  });

  it("tells of an answer that it does not take which fields it had, and not what was in them", async () => {
    server.on(`GET ${POD}`, ok({ metadata: { name: "a" }, data: { auth_token: "c2VzYW1l" } }));
    await expect(client.get(pods, "default", "a")).rejects.toThrow(
      `GET ${POD} was answered with something else: an object with metadata, data`,
    );
  });

  it("gives items of a list their kind, also when only metadata was asked for", async () => {
    const { apiVersion: _, kind: __, ...bare } = stored("a", 1);
    const partial = { ...stored("b", 2), apiVersion: "meta.k8s.io/v1", kind: "PartialObjectMetadata" };
    server.on("GET /apis/ray.io/v1/rayjobs", list("5", [bare, partial]));
    const { items } = await client.list(rayJobs, { metadataOnly: true, labelSelector: "x=y" });
    expect(items.map(({ apiVersion, kind }) => `${apiVersion} ${kind}`)).toEqual([
      "ray.io/v1 RayJob",
      "ray.io/v1 RayJob",
    ]);
    expect(server.requests[0]!.headers!["accept"]).toContain("as=PartialObjectMetadataList");
    expect(server.requests[0]!.query).toEqual({ labelSelector: "x=y" });
  });

  it("reads again after 429, when the server said it may, and gives up in the end", async () => {
    const busy = refusal(429, "TooManyRequests", { details: { retryAfterSeconds: 3 } });
    server.on(`GET ${POD}`, busy, busy, ok(stored("a", 1)));
    const got = client.get(pods, "default", "a");
    await clock.advance(6_000);
    expect((await got).metadata.name).toBe("a");
    server.on(`GET ${POD}`, busy);
    const failed = client.get(pods, "default", "a").catch((error) => error);
    await clock.advance(60_000);
    expect(await failed).toMatchObject({ status: 429, retryAfter: 3_000 });
  });

  it("reads again once when the connection was closed under it", async () => {
    server.on(`GET ${POD}`, reset(), ok(stored("a", 1)));
    expect((await client.get(pods, "default", "a")).metadata.name).toBe("a");
    server.on(`GET ${POD}`, reset());
    await expect(client.get(pods, "default", "a")).rejects.toThrow("connection reset");
  });

  it.each([
    ["no answer", reset(), true],
    ["500", refusal(500, "InternalError"), true],
    ["a refused connection", new TransportError("refused", { maybeSent: false }), false],
    ["429", refusal(429, "TooManyRequests"), false],
  ])("never sends a write twice: %s", async (_, answer, unknown) => {
    server.on("POST /api/v1/namespaces/default/pods", answer);
    const error = await client.create(pods, stored("a", 1)).catch((caught) => caught);
    await clock.advance(60_000);
    expect(server.requests).toHaveLength(1);
    expect(isUnknownOutcome(error)).toBe(unknown);
  });

  it("deletes under preconditions, and tells a lingering object from one that is gone", async () => {
    server.on(`DELETE ${POD}`, ok(stored("a", 9)), ok({ kind: "Status", status: "Success" }));
    expect(
      await client.delete(pods, "default", "a", { uid: "u", propagation: "Foreground", gracePeriodSeconds: 0 }),
    ).toMatchObject({
      metadata: { name: "a" },
    });
    expect(server.requests[0]!.body).toEqual({
      apiVersion: "v1",
      kind: "DeleteOptions",
      preconditions: { uid: "u" },
      propagationPolicy: "Foreground",
      gracePeriodSeconds: 0,
    });
    expect(await client.delete(pods, "default", "a")).toBeUndefined();
  });

  it("sends no write while it may not, asked after the wait for its turn", async () => {
    let leads = true;
    client = new KubeClient(server, { clock, qps: 1, burst: 1, mayWrite: () => leads });
    server.on(`GET ${POD}`, ok(stored("a", 1)));
    await client.get(pods, "default", "a");
    const write = client.create(pods, stored("a", 1)).catch((error) => error);
    await settle();
    leads = false;
    await clock.advance(1_000);
    expect(await write).toBeInstanceOf(WriteRefused);
    expect(server.requests).toHaveLength(1);
  });

  it("keeps to its rate", async () => {
    client = new KubeClient(server, { clock, qps: 10, burst: 3 });
    server.on(`GET ${POD}`, ok(stored("a", 1)));
    const all = Promise.all(Array.from({ length: 8 }, () => client.get(pods, "default", "a")));
    await settle();
    expect(server.requests).toHaveLength(3);
    await clock.advance(200);
    expect(server.requests).toHaveLength(5);
    await clock.advance(300);
    await all;
    expect(server.requests).toHaveLength(8);
  });

  it("throws KubeError for the error a watch delivers", async () => {
    const events = await client.watch(pods, { resourceVersion: "1" });
    void server.watch.send("ERROR", { kind: "Status", code: 410, reason: "Expired", message: "too old" });
    const error = await events[Symbol.asyncIterator]()
      .next()
      .catch((caught) => caught);
    expect(error).toBeInstanceOf(KubeError);
    expect(isGone(error)).toBe(true);
  });
});
