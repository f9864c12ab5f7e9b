/** What simkube does beyond what a real API server can be asked for: time, forgetting, seeds, admission, single steps. */
import { beforeEach, describe, expect, it } from "vitest";
import { crds } from "../api/crds.ts";
import { rules } from "../api/rules.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { configMaps, namespaces, pods, rayClusters, rayJobs } from "../machinery/kube/resources.ts";
import { TransportError } from "../machinery/kube/transport.ts";
import { VirtualClock } from "../machinery/virtualClock.ts";
import { forbiddenRequest } from "./errors.ts";
import { type Schema, unknownRules } from "./schema.ts";
import { SimKube, type SimKubeOptions } from "./simkube.ts";

let clock: VirtualClock;
let simkube: SimKube;
let client: KubeClient;

function make(options: Partial<SimKubeOptions> = {}): void {
  clock = new VirtualClock();
  simkube = new SimKube({ clock, seed: 1, ...options });
  client = new KubeClient(simkube.transport, { clock });
}
beforeEach(() => make());

const configMap = (name: string, more: object = {}) => ({
  metadata: { name, namespace: "default", ...more },
  data: {},
});
const pod = (name: string) => ({
  metadata: { name, namespace: "default" },
  spec: { containers: [{ name: "main", image: "busybox" }] },
});

/** The types and versions of what a watch from `since` has told until now. */
async function told(path: string, query: Record<string, string>): Promise<string[]> {
  const { lines } = await simkube.transport.stream({ method: "GET", path, query: { watch: "1", ...query } });
  const seen: string[] = [];
  void (async () => {
    for await (const line of lines) {
      const { type, object } = JSON.parse(line);
      seen.push(
        type === "ERROR" ? `ERROR ${object.code} ${object.reason}` : `${type} ${object.metadata.resourceVersion}`,
      );
    }
    seen.push("end");
  })();
  return seen;
}

describe("a world with a seed", () => {
  const history = async () => {
    make();
    simkube.runControllers();
    await client.create(pods, { metadata: { generateName: "a-", namespace: "default" }, spec: pod("").spec } as never);
    await clock.advance(1000);
    return simkube.digest();
  };
  it("is the same each time", async () => {
    expect(await history()).toBe(await history());
  });
  it("has another digest when anything in it is different", async () => {
    await client.create(configMaps, configMap("a"));
    const before = simkube.digest();
    await client.patch(configMaps, "default", "a", { data: { a: "1" } });
    expect(simkube.digest()).not.toBe(before);
    await client.patch(configMaps, "default", "a", { data: { a: null } });
    expect(simkube.digest()).toBe(before);
  });
  it("lets the asker say what counts", async () => {
    const names = () => simkube.digest(({ kind, metadata }) => (kind === "ConfigMap" ? metadata.name : undefined));
    await client.create(configMaps, configMap("a"));
    const before = names();
    await client.patch(configMaps, "default", "a", { data: { a: "1" } });
    await client.create(pods, pod("b"));
    expect(names()).toBe(before);
  });
});

describe("what was read", () => {
  it("cannot be changed behind the server's back", async () => {
    await client.create(configMaps, configMap("a"));
    const { body } = await simkube.transport.request({
      method: "GET",
      path: "/api/v1/namespaces/default/configmaps/a",
    });
    expect(() => {
      (body as { data: Record<string, string> }).data["a"] = "1";
    }).toThrow(TypeError);
  });
  it("is not changed by what the writer does to his object afterwards", async () => {
    const mine = configMap("a", { labels: { a: "b" } });
    await client.create(configMaps, mine);
    mine.data = { changed: "yes" };
    expect(await client.get(configMaps, "default", "a")).toMatchObject({ data: {} });
  });
});

describe("the history", () => {
  it("ends a watch from before it with 410 inside the stream", async () => {
    await client.create(configMaps, configMap("a"));
    simkube.compact();
    const seen = await told("/api/v1/configmaps", { resourceVersion: "1" });
    await clock.advance(0);
    expect(seen).toEqual(["ERROR 410 Expired", "end"]);
  });
  it("answers the next page of a list from before it with 410", async () => {
    for (const name of ["a", "b", "c"]) await client.create(configMaps, configMap(name));
    const first = await client.list(configMaps, { limit: 1 });
    await client.create(configMaps, configMap("d"));
    simkube.compact();
    await expect(client.list(configMaps, { limit: 1, continue: first.continue })).rejects.toMatchObject({
      status: 410,
      reason: "Expired",
    });
  });
  it("is as long as was asked for", async () => {
    make({ history: 3 });
    const { metadata } = await client.create(configMaps, configMap("a"));
    for (const value of ["1", "2", "3"]) await client.patch(configMaps, "default", "a", { data: { value } });
    const { resourceVersion } = metadata;
    expect(await told("/api/v1/configmaps", { resourceVersion: resourceVersion! })).toEqual([]);
    await client.patch(configMaps, "default", "a", { data: { value: "4" } });
    const late = await told("/api/v1/configmaps", { resourceVersion: resourceVersion! });
    await clock.advance(0);
    expect(late[0]).toBe("ERROR 410 Expired");
  });
  it("does not reach into the future", async () => {
    const path = "/api/v1/configmaps";
    const { status, body } = await simkube.transport.request({ method: "GET", path, query: { resourceVersion: "99" } });
    expect(status).toBe(504);
    expect((body as { message: string }).message).toContain("Too large resource version");
  });
});

describe("a watch", () => {
  it("that fell behind gets a bookmark a minute later, and a quiet one sets no timer", async () => {
    const { resourceVersion } = await client.list(configMaps);
    const seen = await told("/api/v1/configmaps", { resourceVersion, allowWatchBookmarks: "true" });
    expect(clock.next()).toBeUndefined();
    const { metadata } = await client.create(pods, pod("a"));
    await clock.advance(59_000);
    expect(seen).toEqual([]);
    await clock.advance(1000);
    expect(seen).toEqual([`BOOKMARK ${metadata.resourceVersion}`]);
    expect(clock.next()).toBeUndefined();
  });
  it("ends after the time asked for", async () => {
    const { resourceVersion } = await client.list(configMaps);
    const query = { resourceVersion, timeoutSeconds: "30", allowWatchBookmarks: "true" };
    const seen = await told("/api/v1/configmaps", query);
    await clock.advance(30_000);
    expect(seen).toEqual([`BOOKMARK ${resourceVersion}`, "end"]);
  });
  it("that is cut throws, after what was told before", async () => {
    const events = await client.watch(configMaps, { resourceVersion: (await client.list(configMaps)).resourceVersion });
    const iterator = events[Symbol.asyncIterator]();
    const first = iterator.next();
    await client.create(configMaps, configMap("a"));
    expect((await first).value).toMatchObject({ type: "ADDED" });
    const second = iterator.next();
    simkube.endWatches("broken");
    await expect(second).rejects.toThrow("the connection was cut");
  });
  it("throws when its reader no longer wants to wait, as a real connection does", async () => {
    const stop = new AbortController();
    const { lines } = await simkube.transport.stream(
      { method: "GET", path: "/api/v1/configmaps", query: { watch: "1" } },
      { signal: stop.signal },
    );
    stop.abort();
    await expect(lines[Symbol.asyncIterator]().next()).rejects.toThrow(TransportError);
    expect(simkube.openWatches).toBe(0);
  });
});

describe("admission", () => {
  it("may refuse a write", async () => {
    make({
      admit({ verb, resource }) {
        if (resource.kind === "ConfigMap" && verb === "create") throw forbiddenRequest(resource, "a", "not today");
        return undefined;
      },
    });
    await expect(client.create(configMaps, configMap("a"))).rejects.toMatchObject({ status: 403 });
    await client.create(pods, pod("a"));
  });
  it("may change an object, and is asked with the old one on updates", async () => {
    const asked: string[] = [];
    make({
      admit({ verb, object, old, subresource = "" }) {
        asked.push(`${verb} ${subresource} ${old ? "old" : "-"} ${object ? "new" : "-"}`);
        if (object?.kind !== "ConfigMap") return undefined;
        return { ...object, metadata: { ...object.metadata, labels: { seen: "yes" } } };
      },
    });
    asked.length = 0;
    const made = await client.create(configMaps, configMap("a"));
    expect(made.metadata.labels).toEqual({ seen: "yes" });
    await client.patch(configMaps, "default", "a", { data: { a: "1" } });
    await client.delete(configMaps, "default", "a");
    expect(asked).toEqual(["create  - new", "update  old new", "delete  old -"]);
  });
});

describe("the garbage collector", () => {
  const ownedBy = (owner: { metadata: { name?: string; uid?: string } }) => ({
    ownerReferences: [
      { apiVersion: "v1", kind: "Pod", name: owner.metadata.name!, uid: owner.metadata.uid!, blockOwnerDeletion: true },
    ],
  });
  it("moves in steps, so that others may move in between", async () => {
    const owner = await client.create(pods, pod("owner"));
    for (const name of ["a", "b"]) await client.create(configMaps, configMap(name, ownedBy(owner)));
    simkube.settleControllers();
    await client.delete(pods, "default", "owner", { propagation: "Background" });
    const { garbage } = simkube.controllers;
    const left = async () => (await client.list(configMaps)).items.length;
    expect(await left()).toBe(2);
    expect(garbage.step()).toBe(true);
    expect(await left()).toBe(1);
    expect(garbage.step()).toBe(true);
    expect(await left()).toBe(0);
    expect(garbage.step()).toBe(false);
  });
  it("leaves alone what names an owner of a kind that nobody knows", async () => {
    const ownerReferences = [{ apiVersion: "example.com/v1", kind: "Thing", name: "t", uid: "u" }];
    await client.create(configMaps, configMap("a", { ownerReferences }));
    simkube.settleControllers();
    expect((await client.list(configMaps)).items).toHaveLength(1);
  });
});

describe("our own kinds", () => {
  beforeEach(() => make({ crds: crds() }));
  const container = { name: "ray", image: "rayproject/ray:2.56.0" };
  const template = { spec: { containers: [container] } };
  const rayCluster = { headGroupSpec: { rayStartParams: {}, template } };
  const rayJob = (spec: object) => ({
    apiVersion: "ray.io/v1",
    kind: "RayJob",
    metadata: { name: "a", namespace: "default" },
    spec: { entrypoint: "true", rayClusterSpec: rayCluster, ...spec },
  });

  it("keep their rules between fields", async () => {
    await expect(
      client.create(
        rayJobs,
        rayJob({ clusterSelector: { "ray.io/cluster": "x" }, retryStrategy: { type: "BlockingRecreate" } }),
      ),
    ).rejects.toThrow("retryStrategy.type BlockingRecreate is not supported with clusterSelector");
  });
  it("have no rule in CEL that is not enforced here", () => {
    const table = new Map(Object.values(rules).map((rule) => [rule.rule, rule]));
    for (const { spec } of crds()) {
      for (const { schema } of spec.versions)
        expect(unknownRules(schema!.openAPIV3Schema as Schema, table)).toEqual([]);
    }
  });
  it("keep what Pod templates say, quantities of both spellings included", async () => {
    const resources = { limits: { cpu: 1, memory: "2Gi" } };
    const metadata = { labels: { a: "b" }, annotations: { c: "d" } };
    const full = { metadata, spec: { containers: [{ ...container, resources }] } };
    const made = await client.create(
      rayJobs,
      rayJob({ rayClusterSpec: { headGroupSpec: { rayStartParams: {}, template: full } } }),
    );
    expect(made).toMatchObject({ spec: { rayClusterSpec: { headGroupSpec: { template: full } } } });
  });
  it("are gone with their definition", async () => {
    await client.create(rayClusters, {
      apiVersion: "ray.io/v1",
      kind: "RayCluster",
      metadata: { name: "a", namespace: "default" },
      spec: rayCluster,
    } as never);
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rayclusters.ray.io";
    await simkube.transport.request({ method: "DELETE", path });
    simkube.settleControllers();
    expect((await simkube.transport.request({ method: "GET", path })).status).toBe(404);
    await expect(client.list(rayClusters)).rejects.toMatchObject({ status: 404 });
  });
});

describe("a request", () => {
  it("for server-side apply or a strategic merge is told what to use instead", async () => {
    await client.create(configMaps, configMap("a"));
    for (const type of ["application/apply-patch+yaml", "application/strategic-merge-patch+json"]) {
      const { status, body } = await simkube.transport.request({
        method: "PATCH",
        path: "/api/v1/namespaces/default/configmaps/a",
        headers: { "content-type": type },
        body: {},
      });
      expect(status).toBe(415);
      expect((body as { message: string }).message).toContain("kubectl patch --type merge");
    }
  });
  it("for the log of a Pod that runs nowhere is refused in words", async () => {
    await client.create(pods, pod("a"));
    const path = "/api/v1/namespaces/default/pods/a/log";
    const { status, body } = await simkube.transport.request({ method: "GET", path });
    expect(status).toBe(400);
    expect((body as { message: string }).message).toContain("no node here");
  });
  it("for a log gets its lines, however they were cut", async () => {
    make({
      podLogs: async function* (namespace, name, { container, tailLines, follow }) {
        yield `${namespace}/${name} ${container} ${tailLines} ${follow}\nse`;
        yield new TextEncoder().encode("cond\nwithout end");
      },
    });
    await client.create(pods, pod("a"));
    const request = {
      method: "GET",
      path: "/api/v1/namespaces/default/pods/a/log",
      query: { tailLines: "5", follow: "true" },
    } as const;
    const lines: string[] = [];
    for await (const line of (await simkube.transport.stream(request)).lines) lines.push(line);
    expect(lines).toEqual(["default/a main 5 true", "second", "without end"]);
    expect((await simkube.transport.request(request)).body).toBe("default/a main 5 true\nsecond\nwithout end");
  });
  it("for a log since a time, or for the last seconds of it, gets no more than that", async () => {
    const asked: (number | undefined)[] = [];
    make({
      podLogs: async function* (_namespace, _name, { since }) {
        asked.push(since);
        yield "";
      },
    });
    await client.create(pods, pod("a"));
    const path = "/api/v1/namespaces/default/pods/a/log";
    const queries: Record<string, string>[] = [{}, { sinceTime: "2026-01-02T03:04:05Z" }, { sinceSeconds: "30" }];
    for (const query of queries) {
      await simkube.transport.request({ method: "GET", path, query });
    }
    expect(asked).toEqual([undefined, Date.UTC(2026, 0, 2, 3, 4, 5), clock.now() - 30_000]);
  });
  it("to go into a container is told that this is not to be had, and what is", async () => {
    await client.create(pods, pod("a"));
    for (const way of ["exec", "attach", "portforward"]) {
      const path = `/api/v1/namespaces/default/pods/a/${way}`;
      const { status, body } = await simkube.transport.request({ method: "POST", path });
      expect(status).toBe(501);
      expect((body as { message: string }).message).toContain("`kubectl proxy` leads to its Services");
    }
  });
  it("for the log of one container of several must say which", async () => {
    const containers = ["one", "two"].map((name) => ({ name, image: "busybox" }));
    await client.create(pods, { ...pod("a"), spec: { containers } });
    const { body } = await simkube.transport.request({
      method: "GET",
      path: "/api/v1/namespaces/default/pods/a/log",
    });
    expect((body as { message: string }).message).toContain("choose one of: [one two]");
  });
});

describe("a namespace", () => {
  it("goes once everything in it is gone", async () => {
    await client.create(namespaces, { metadata: { name: "mine" } });
    await client.create(configMaps, { metadata: { name: "a", namespace: "mine" } });
    await client.delete(namespaces, undefined, "mine");
    expect(await client.get(namespaces, undefined, "mine")).toMatchObject({ status: { phase: "Terminating" } });
    simkube.settleControllers();
    await expect(client.get(namespaces, undefined, "mine")).rejects.toMatchObject({ status: 404 });
  });
});
