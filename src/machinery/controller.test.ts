import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { KubeObject, Stored } from "../api/object.ts";
import type { Decision, EventSpec, KubeEffect, LiveAnswers } from "../domain/decision.ts";
import { Controller, type ControllerOptions, type PassTrace } from "./controller.ts";
import { Events } from "./events.ts";
import { Freshness } from "./freshness.ts";
import { KubeClient } from "./kube/client.ts";
import { Informer } from "./kube/informer.ts";
import { pods, rayClusters, rayJobs } from "./kube/resources.ts";
import { TransportError } from "./kube/transport.ts";
import { adoptByOwner } from "./perform.ts";
import { list, ok, refusal, ScriptedServer, stored } from "./testing/scriptedServer.ts";
import { settle, VirtualClock } from "./virtualClock.ts";

interface Job extends KubeObject {
  status?: Record<string, unknown>;
}
interface Observed {
  job: Stored<Job>;
  clusters: Stored[];
  live: LiveAnswers;
}
interface Command {
  do: "stop";
  why: string;
}
type Decide = (observed: Observed, now: number) => Partial<Decision<Command>>;

const JOBS = "/apis/ray.io/v1/namespaces/default/rayjobs";
const CLUSTERS = "/apis/ray.io/v1/namespaces/default/rayclusters";
const EVENTS = "POST /apis/events.k8s.io/v1/namespaces/default/events";
const STATUS = `PATCH ${JOBS}/a/status`;
const ATTEMPT = "ray.io/execution-attempt";

const reset = () => new TransportError("connection reset", { maybeSent: true });
const event = (reason: string, note = reason): EventSpec => ({ type: "Normal", reason, action: "Test", note });
const cluster = (version: number, attempt: string, rest: { owner?: string; deletionTimestamp?: string } = {}) =>
  stored("c", version, {
    apiVersion: "ray.io/v1",
    kind: "RayCluster",
    metadata: {
      labels: { [ATTEMPT]: attempt },
      ownerReferences: [
        { apiVersion: "ray.io/v1", kind: "RayJob", name: "a", uid: rest.owner ?? "uid-a", controller: true },
      ],
      deletionTimestamp: rest.deletionTimestamp,
    },
  });
const wanted = () => {
  const { namespace, name, labels, ownerReferences } = cluster(0, "1").metadata;
  return {
    apiVersion: "ray.io/v1",
    kind: "RayCluster" as const,
    metadata: { namespace, name, labels, ownerReferences },
  };
};
const createCluster: KubeEffect = {
  do: "create",
  object: wanted(),
  why: "make the cluster",
  event: event("Made", "made {name}"),
  failureEvent: event("NotMade", "{name}: {error}"),
};
const deletePod: KubeEffect = {
  do: "delete",
  ref: { kind: "Pod", namespace: "default", name: "p", uid: "uid-p" },
  propagation: "Background",
  why: "remove the Pod",
  event: event("Removed"),
};

describe("the reconcile loop", () => {
  let clock: VirtualClock;
  let server: ScriptedServer;
  let stop: AbortController;
  let decide: Decide;
  let traces: PassTrace<Command>[];
  let handedOver: string[];
  let controller: Controller<Observed, Command>;
  let running: Promise<void>;
  let jobs: Informer<Job>;
  let clusters: Informer<KubeObject>;

  const job = (version: number, status?: Record<string, unknown>) =>
    stored("a", version, { apiVersion: "ray.io/v1", kind: "RayJob", status });
  const bodies = (request: string) => server.made(request).map(({ body }) => body);
  const results = () => traces.map(({ result }) => result);
  const watchOf = (plural: string) => server.watches.findLast(({ request }) => request.path.endsWith(plural))!;
  const notes = () => bodies(EVENTS).map((body) => (body as { note: string }).note);

  beforeEach(() => {
    clock = new VirtualClock();
    stop = new AbortController();
    decide = () => ({});
    traces = [];
    handedOver = [];
    server = new ScriptedServer(clock)
      .on(
        "GET /apis/ray.io/v1/rayjobs",
        list("10", [job(5, { phase: "New", counts: { failed: 1, ready: 0 }, list: [1, 2] })]),
      )
      .on("GET /apis/ray.io/v1/rayclusters", list("10"))
      .on("GET /api/v1/pods", list("10", [stored("p", 6)]))
      .on(EVENTS, ok(stored("event", 1), 201));
  });
  afterEach(async () => {
    stop.abort();
    await running;
  });

  async function start(options: Partial<ControllerOptions<Observed, Command>> = {}): Promise<void> {
    const client = new KubeClient(server, { clock });
    jobs = new Informer<Job>({ client, type: rayJobs, clock });
    clusters = new Informer({ client, type: rayClusters, clock });
    const podInformer = new Informer({ client, type: pods, clock });
    const caches = [jobs, clusters, podInformer];
    controller = new Controller<Observed, Command>({
      name: "rayjob",
      clock,
      client,
      freshness: new Freshness({ clock, client, caches }),
      events: new Events({ client, clock, controller: "test", instance: "test" }),
      adoptable: adoptByOwner(ATTEMPT),
      observe(key, live) {
        const [namespace, name] = key.split("/") as [string, string];
        const found = jobs.store.get(namespace, name);
        return found && { job: found, clusters: clusters.store.list(), live };
      },
      decide: (observed, now) => ({ summary: "", effects: [], events: [], ...decide(observed, now) }),
      primary: (observed) => observed.job,
      external: (command) => void handedOver.push(command.do),
      onPass: (trace) => traces.push(trace),
      ...options,
    });
    for (const informer of caches) informer.start(stop.signal);
    await settle();
    jobs.onChange(() => controller.enqueue("default/a"));
    running = controller.run(stop.signal);
    await settle();
  }

  describe("writing status", () => {
    const next = { phase: "Running", counts: { failed: 1, ready: 2 }, list: [1, 3] };

    it("sends the difference as one patch that names the version looked at, then the events", async () => {
      server.on(STATUS, ok(job(11, next)));
      decide = () => ({ status: next, events: [event("Moved")] });
      await start();
      expect(bodies(STATUS)).toEqual([
        { metadata: { resourceVersion: "5" }, status: { phase: "Running", counts: { ready: 2 }, list: [1, 3] } },
      ]);
      expect(notes()).toEqual(["Moved"]);
      await watchOf("rayjobs").send("MODIFIED", job(11, next));
      expect(results()).toEqual(["done", "done"]);
      expect(bodies(STATUS)).toHaveLength(1);
    });

    it("says with null what is gone", async () => {
      server.on(STATUS, ok(job(11)));
      decide = ({ job: { metadata } }) =>
        metadata.resourceVersion === "5" ? { status: { phase: "New", counts: { failed: 1 } } } : {};
      await start();
      expect(bodies(STATUS)).toMatchObject([{ status: { counts: { ready: null }, list: null } }]);
    });

    it("writes nothing where nothing differs, and still tells the events", async () => {
      decide = ({ job: { status } }) => ({ status, events: [event("Seen")] });
      await start();
      expect(bodies(STATUS)).toEqual([]);
      expect(notes()).toEqual(["Seen"]);
    });

    it("looks again after a conflict, with what is there by then, and sends nothing twice", async () => {
      server.on(STATUS, refusal(409, "Conflict"), ok(job(13, { phase: "from 12" })));
      decide = ({ job: { metadata } }) => ({
        status: { phase: `from ${metadata.resourceVersion}` },
        events: [event("Moved")],
      });
      await start();
      expect([results(), notes()]).toEqual([["again"], []]);
      await watchOf("rayjobs").send("MODIFIED", job(12));
      expect(bodies(STATUS)).toEqual([
        expect.objectContaining({ metadata: { resourceVersion: "5" } }),
        { metadata: { resourceVersion: "12" }, status: { phase: "from 12" } },
      ]);
      expect(notes()).toEqual(["Moved"]);
    });

    it("tells when the server refuses it, since the status itself cannot", async () => {
      server.on(STATUS, refusal(403, "Forbidden", { message: "may not" }));
      decide = () => ({ status: { phase: "Running" }, events: [event("Moved")] });
      await start();
      expect([results(), notes()]).toEqual([["again"], ["Failed to write the status: may not"]]);
    });

    it("reads the object live before the next decision when no answer came", async () => {
      server
        .on(STATUS, reset(), ok(job(13, { phase: "Running" })))
        .on(`GET ${JOBS}/a`, ok(job(12, { phase: "Running" })));
      const seen: unknown[] = [];
      decide = ({ job: { status } }) => {
        seen.push(status?.["phase"]);
        return { status: { phase: "Running" } };
      };
      await start();
      await clock.advance(1_000);
      expect(seen.slice(0, 2)).toEqual(["New", "Running"]);
      expect(bodies(STATUS)).toHaveLength(1);
    });
  });

  describe("carrying out effects", () => {
    const once = (...effects: NonNullable<Decision<Command>["effects"]>): Decide => {
      let done = false;
      return () => {
        if (done) return {};
        done = true;
        return { effects, status: { phase: "Next" }, events: [event("Moved")] };
      };
    };

    it("fills a Secret with random text when it is sent, another each time, and asks for no Secret's content", async () => {
      const SECRETS = "/api/v1/namespaces/default/secrets";
      const object = { apiVersion: "v1", kind: "Secret" as const, metadata: { namespace: "default", name: "s" } };
      server
        .on(`POST ${SECRETS}`, refusal(500, "InternalError"), ok(stored("s", 11), 201))
        .on(`GET ${SECRETS}/s`, ok(stored("s", 11)));
      let asked = false;
      decide = ({ live }) => {
        if (live.size === 0) return { ask: [{ ask: "get", kind: "Secret", namespace: "default", name: "s" }] };
        asked = true;
        if (bodies(`POST ${SECRETS}`).length === 2) return {};
        return { effects: [{ do: "create", object, randomData: { token: 32 }, why: "a secret" }] };
      };
      await start();
      await clock.advance(1000);
      expect(asked).toBe(true);
      const sent = bodies(`POST ${SECRETS}`) as { data: { token: string } }[];
      expect(sent).toMatchObject([object, object]);
      const texts = sent.map(({ data }) => Buffer.from(data.token, "base64").toString());
      expect(texts.map((text) => Buffer.from(text, "base64").length)).toEqual([32, 32]);
      expect(texts[0]).not.toBe(texts[1]);
      for (const { headers } of server.made(`GET ${SECRETS}/s`)) {
        expect(headers?.["accept"]).toContain("as=PartialObjectMetadata");
      }
    });

    it("makes, removes and hands over, in order, before the status; and tells what was really done", async () => {
      server
        .on(`POST ${CLUSTERS}`, ok(cluster(11, "1"), 201))
        .on("DELETE /api/v1/namespaces/default/pods/p", ok({ kind: "Status" }))
        .on(STATUS, ok(job(12, { phase: "Next" })));
      decide = once(createCluster, { do: "stop", why: "told to" }, deletePod);
      await start();
      const writes = server.requests.filter(({ method, path }) => method !== "GET" && !path.includes("/events"));
      expect(writes.map(({ method }) => method)).toEqual(["POST", "DELETE", "PATCH"]);
      expect(handedOver).toEqual(["stop"]);
      expect(notes()).toEqual(["made c", "Removed", "Moved"]);
      expect(bodies("DELETE /api/v1/namespaces/default/pods/p")[0]).toMatchObject({ preconditions: { uid: "uid-p" } });
    });

    it("decides nothing more until the caches have seen all of it", async () => {
      server.on(`POST ${CLUSTERS}`, ok(cluster(11, "1"), 201)).on(STATUS, ok(job(12, { phase: "Next" })));
      decide = once(createCluster);
      await start();
      controller.enqueue("default/a");
      await watchOf("rayjobs").send("MODIFIED", job(12));
      expect(results()).toEqual(["done", "waiting", "waiting"]);
      await watchOf("rayclusters").send("ADDED", cluster(11, "1"));
      expect(results()).toEqual(["done", "waiting", "waiting", "done"]);
    });

    it("goes on with the rest after one has failed, but leaves status and events to the next look", async () => {
      server
        .on(`POST ${CLUSTERS}`, refusal(403, "Forbidden", { message: "exceeded quota" }))
        .on("DELETE /api/v1/namespaces/default/pods/p", ok({ kind: "Status" }));
      decide = once(createCluster, deletePod);
      await start();
      expect(results()).toEqual(["again"]);
      expect(notes()).toEqual(["c: exceeded quota", "Removed"]);
      expect(traces[0]!.outcome).toMatchObject({ status: "skipped", writes: 1, failures: [{ kind: "refused" }] });
    });

    it("tells the user when the server took the status and kept only a part of it, and looks again", async () => {
      server.on(STATUS, ok(job(11, { phase: "Running", attempts: [{ number: 0 }] })));
      const written = { phase: "Running", attempts: [{ number: 0, jobId: "x" }] };
      decide = ({ job: { metadata } }) =>
        metadata.resourceVersion === "5" ? { status: written, events: [event("Moved")] } : {};
      await start();
      expect([results(), notes()]).toEqual([
        ["again"],
        [
          "Failed to write the status: the API server did not keep status.attempts[0].jobId of RayJob default/a: the CRD rayjobs.ray.io is not Raykeeper's",
        ],
      ]);
      expect(bodies(STATUS)).toHaveLength(1);
    });

    it("takes a deletion for done when the object is gone", async () => {
      server
        .on("DELETE /api/v1/namespaces/default/pods/p", refusal(404, "NotFound"))
        .on(STATUS, ok(job(12, { phase: "Next" })));
      decide = once(deletePod);
      await start();
      expect([results(), notes()]).toEqual([["done"], ["Moved"]]);
    });

    it("looks again when a deletion meets a conflict: a namesake stands there, or the server stumbled", async () => {
      server.on("DELETE /api/v1/namespaces/default/pods/p", refusal(409, "Conflict"));
      decide = once(deletePod);
      await start();
      expect([results(), notes()]).toEqual([["again"], []]);
    });

    it("takes a creation for done when the object is there and ours, without telling it again", async () => {
      server
        .on(`POST ${CLUSTERS}`, refusal(409, "AlreadyExists"))
        .on(`GET ${CLUSTERS}/c`, ok(cluster(9, "1")))
        .on(STATUS, ok(job(12, { phase: "Next" })));
      decide = once(createCluster);
      await start();
      expect([results(), notes()]).toEqual([["done"], ["Moved"]]);
    });

    it.each([
      ["of an earlier attempt", cluster(9, "0"), []],
      ["on its way out", cluster(9, "1", { deletionTimestamp: "2026-01-01T00:00:00Z" }), []],
      ["of someone else", cluster(9, "1", { owner: "other" }), [expect.stringContaining("belongs to someone else")]],
    ])("does not adopt an object %s", async (_, existing, told) => {
      server.on(`POST ${CLUSTERS}`, refusal(409, "AlreadyExists")).on(`GET ${CLUSTERS}/c`, ok(existing));
      decide = once(createCluster);
      await start();
      expect(results()).toEqual(["again"]);
      expect(notes()).toEqual(told);
      expect(bodies(STATUS)).toEqual([]);
    });

    it("does not make a second one when the answer to the first creation was lost", async () => {
      server.on(`POST ${CLUSTERS}`, reset()).on(`GET ${CLUSTERS}/c`, ok(cluster(11, "1")));
      decide = (observed) => (observed.clusters.length === 0 ? { effects: [createCluster] } : {});
      await start();
      await clock.advance(60_000);
      expect(bodies(`POST ${CLUSTERS}`)).toHaveLength(1);
      expect(results()).toEqual(["again", "done"]);
    });

    it("makes it after all when the lost creation turns out not to have been done", async () => {
      server
        .on(`POST ${CLUSTERS}`, reset(), ok(cluster(12, "1"), 201))
        .on(`GET ${CLUSTERS}/c`, refusal(404, "NotFound"));
      decide = (observed) => (observed.clusters.length === 0 ? { effects: [createCluster] } : {});
      await start();
      await clock.advance(1_000);
      expect(bodies(`POST ${CLUSTERS}`)).toHaveLength(2);
    });

    it("patches only the version that was looked at", async () => {
      server.on(`PATCH ${JOBS}/a`, refusal(409, "Conflict"));
      decide = once({
        do: "patch",
        ref: { kind: "RayJob", namespace: "default", name: "a", uid: "uid-a" },
        patch: { metadata: { finalizers: ["x"] } },
        resourceVersion: "5",
        why: "add the finalizer",
        failureEvent: event("NotPatched"),
      });
      await start();
      expect(bodies(`PATCH ${JOBS}/a`)).toEqual([{ metadata: { finalizers: ["x"], resourceVersion: "5" } }]);
      expect([results(), notes()]).toEqual([["again"], []]);
    });

    it("hands nothing over while it may not write", async () => {
      decide = once({ do: "stop", why: "told to" });
      await start({ mayWrite: () => false });
      expect([handedOver, results()]).toEqual([[], ["again"]]);
    });
  });

  describe("asking live", () => {
    const question = { ask: "list", kind: "Pod", namespace: "default", labels: { "ray.io/cluster": "c" } } as const;
    const key = "list Pod default ray.io/cluster=c";

    it("decides again in the same pass with the answers, each question once, metadata only", async () => {
      server
        .on("GET /api/v1/namespaces/default/pods", list("10", [stored("p", 6)]))
        .on(`GET ${CLUSTERS}/c`, refusal(404, "NotFound"));
      const get = { ask: "get", kind: "RayCluster", namespace: "default", name: "c" } as const;
      const seen: unknown[] = [];
      decide = ({ live }) => {
        seen.push([...live].map(([asked, found]) => [asked, found.length]));
        if (!live.has(key)) return { ask: [question], effects: [deletePod] };
        if (!live.has("get RayCluster default/c")) return { ask: [get] };
        return {};
      };
      await start();
      expect(seen).toEqual([
        [],
        [[key, 1]],
        [
          [key, 1],
          ["get RayCluster default/c", 0],
        ],
      ]);
      expect(traces).toMatchObject([{ result: "done", rounds: 3 }]);
      const [{ headers, query }] = server.made("GET /api/v1/namespaces/default/pods") as [(typeof server.requests)[0]];
      expect(headers!["accept"]).toContain("PartialObjectMetadataList");
      expect(query).toMatchObject({ labelSelector: "ray.io/cluster=c" });
    });

    it("does not ask for ever", async () => {
      server.on("GET /api/v1/namespaces/default/pods", list("10"));
      decide = () => ({ ask: [question] });
      await start();
      expect(traces[0]).toMatchObject({ result: "failed", error: { message: expect.stringContaining("5 rounds") } });
    });

    it("reads warnings at most every 20 s, whoever asks, and is not held up when they cannot be read", async () => {
      const path = "/apis/events.k8s.io/v1/namespaces/default/events";
      const warnings = { ask: "warnings", kind: "Event", namespace: "default", reason: "FailedMount" } as const;
      server.on(`GET ${path}`, list("10", [stored("e", 6)]), refusal(500, "InternalError"));
      const heard: unknown[] = [];
      decide = ({ live }) => {
        const said = live.get("warnings default FailedMount");
        if (!said) return { ask: [warnings] };
        heard.push(said.length);
        return { wakeAt: clock.now() + 15_000 };
      };
      await start();
      await clock.advance(45_000);
      expect(heard).toEqual([1, 1, 0, 0]);
      expect(server.made(`GET ${path}`)).toMatchObject([
        { query: { fieldSelector: "reason=FailedMount,type=Warning" } },
        {},
      ]);
      expect(results().every((result) => result === "done")).toBe(true);
    });

    it("asks what was said about a Pod, again when there is no answer, and goes without where it may not read it", async () => {
      const path = "/apis/events.k8s.io/v1/namespaces/default/events";
      const said = { ask: "said", kind: "Event", namespace: "default", pod: "head" } as const;
      const answers = [refusal(500, "InternalError"), list("10", [stored("e", 6)]), refusal(403, "Forbidden")];
      server.on(`GET ${path}`, ...answers);
      const heard: unknown[] = [];
      decide = ({ live }) => {
        const told = live.get("said default/head");
        if (!told) return { ask: [said] };
        heard.push(told.length);
        return { wakeAt: clock.now() + 15_000 };
      };
      await start();
      await clock.advance(20_000);
      expect(results().slice(0, 3)).toEqual(["failed", "done", "done"]);
      expect(heard).toEqual([1, 0]);
      const fieldSelector = "regarding.kind=Pod,regarding.name=head";
      expect(server.made(`GET ${path}`)[0]).toMatchObject({ query: { fieldSelector } });
    });

    it("says on the object that what has to be read may not be", async () => {
      server.on("GET /api/v1/namespaces/default/pods", refusal(403, "Forbidden"), list("10"));
      decide = ({ live }) => (live.has(key) ? {} : { ask: [question] });
      await start();
      await clock.advance(10);
      expect(results()).toEqual(["failed", "done"]);
      expect(bodies(EVENTS)).toMatchObject([{ reason: "FailedToRead", type: "Warning", regarding: { name: "a" } }]);
    });

    it("looks again later when there was no answer", async () => {
      server.on("GET /api/v1/namespaces/default/pods", refusal(500, "InternalError"), list("10"));
      decide = ({ live }) => (live.has(key) ? {} : { ask: [question] });
      await start();
      await clock.advance(10);
      expect(results()).toEqual(["failed", "done"]);
    });
  });

  describe("looking again", () => {
    it("wakes at the time that was decided", async () => {
      const at = clock.now() + 45_000;
      decide = (_, now) => (now < at ? { wakeAt: at } : {});
      await start();
      await clock.advance(44_999);
      expect(traces).toHaveLength(1);
      await clock.advance(1_000_000);
      expect(traces.map(({ startedAt }) => startedAt)).toEqual([at - 45_000, at]);
    });

    it("does not spin when the time to wake has always passed already", async () => {
      decide = (_, now) => ({ wakeAt: now - 1 });
      await start();
      await clock.advance(10_000);
      expect(traces.length).toBeLessThanOrEqual(101);
    });

    it("outlives exceptions in observe, decide and its listeners, with growing delays", async () => {
      decide = () => {
        throw new Error("a bug");
      };
      await start({
        onPass(trace) {
          traces.push(trace);
          throw new Error("another bug");
        },
      });
      await clock.advance(600_000);
      expect(traces.length).toBeGreaterThan(15);
      expect(traces.length).toBeLessThan(30);
      decide = () => ({});
      await clock.advance(60_000);
      expect(results().at(-1)).toBe("done");
    });

    it("lets one key that fails not hold up another", async () => {
      server.on(
        "GET /apis/ray.io/v1/rayjobs",
        list("10", [job(5), { ...job(5), metadata: { ...job(5).metadata, name: "b" } }]),
      );
      decide = ({ job: { metadata } }) => {
        if (metadata.name === "a") throw new Error("a bug");
        return {};
      };
      await start();
      controller.enqueue("default/b");
      await settle();
      expect(traces.at(-1)).toMatchObject({ key: "default/b", result: "done" });
    });

    it("has nothing to do for an object that is gone", async () => {
      await start();
      controller.enqueue("default/none");
      await settle();
      expect(traces.at(-1)).toMatchObject({ key: "default/none", result: "gone" });
    });
  });
});
