import { beforeEach, describe, expect, it } from "vitest";
import type { Clock } from "./clock.ts";
import { KubeClient } from "./kube/client.ts";
import { type KubeRequest, type KubeResponse, TransportError } from "./kube/transport.ts";
import { Elector, LeaseLost } from "./leader.ts";
import { ok, refusal, ScriptedServer, stored } from "./testing/scriptedServer.ts";
import { settle, VirtualClock } from "./virtualClock.ts";

const LEASE = "/apis/coordination.k8s.io/v1/namespaces/ray-system/leases/ray-operator-leader";

interface LeaseSpec {
  holderIdentity: string;
  leaseTransitions: number;
  leaseDurationSeconds: number;
}

describe("leader election", () => {
  let clock: VirtualClock;
  let server: ScriptedServer;
  let lease: ReturnType<typeof stored<{ spec: LeaseSpec }>> | undefined;
  /** When set, the server answers so instead. */
  let outage: Error | "hang" | undefined;

  beforeEach(() => {
    clock = new VirtualClock();
    lease = undefined;
    outage = undefined;
    let version = 1;
    const keep = ({ body }: KubeRequest) => {
      lease = stored("ray-operator-leader", version++, body as { spec: LeaseSpec });
      return ok(lease);
    };
    const during = (act: (request: KubeRequest) => KubeResponse) => (request: KubeRequest) => outage ?? act(request);
    server = new ScriptedServer(clock)
      .on(
        `GET ${LEASE}`,
        during(() => (lease ? ok(lease) : refusal(404, "NotFound"))),
      )
      .on(`POST ${LEASE.replace("/ray-operator-leader", "")}`, during(keep))
      .on(
        `PUT ${LEASE}`,
        during((request) => {
          const { metadata } = request.body as { metadata: { resourceVersion: string } };
          if (metadata.resourceVersion !== lease?.metadata.resourceVersion) return refusal(409, "Conflict");
          return keep(request);
        }),
      );
  });

  function replica(identity: string, itsClock: Clock = clock) {
    const stop = new AbortController();
    const client = new KubeClient(server, { clock: itsClock });
    const elector = new Elector({ client, clock: itsClock, namespace: "ray-system", identity });
    const state = { elector, stop, leads: false, ended: undefined as unknown };
    void elector
      .run(stop.signal, async (leading) => {
        state.leads = true;
        await new Promise<void>((resolve) => leading.addEventListener("abort", () => resolve(), { once: true }));
        state.leads = false;
      })
      .then(
        () => (state.ended = "in order"),
        (error) => (state.ended = error),
      );
    return state;
  }

  it("lets one lead; the other waits and takes over when the first stops in order", async () => {
    const a = replica("a");
    await settle();
    const b = replica("b");
    await clock.advance(600_000);
    expect([a.leads, b.leads, a.elector.mayWrite(), b.elector.mayWrite()]).toEqual([true, false, true, false]);
    expect(b.elector.holder).toBe("a");
    a.stop.abort();
    await settle();
    expect([a.ended, a.elector.mayWrite()]).toEqual(["in order", false]);
    await clock.advance(2_000);
    expect([b.leads, b.elector.mayWrite()]).toEqual([true, true]);
    expect(lease!.spec).toMatchObject({ holderIdentity: "b", leaseTransitions: 1, leaseDurationSeconds: 15 });
  });

  it("waits for the whole duration after a leader has died, counted from when it was last seen to change", async () => {
    lease = stored("ray-operator-leader", 900, {
      metadata: { namespace: "ray-system" },
      spec: { holderIdentity: "dead", leaseTransitions: 4, leaseDurationSeconds: 15 },
    });
    const b = replica("b");
    await clock.advance(14_900);
    expect(b.leads).toBe(false);
    await clock.advance(2_100);
    expect(b.leads).toBe(true);
    expect(lease.spec.leaseTransitions).toBe(5);
  });

  it("stops writing well before the lease runs out, and ends when it cannot be renewed in time", async () => {
    const a = replica("a");
    await clock.advance(4_000);
    outage = new TransportError("no route", { maybeSent: true });
    // Last renewed at 4 s; a write takes up to 12 s, the lease lasts 15 s.
    await clock.advance(2_999);
    expect(a.elector.mayWrite()).toBe(true);
    await clock.advance(1);
    expect([a.elector.mayWrite(), a.ended]).toEqual([false, undefined]);
    await clock.advance(7_000);
    expect(a.ended).toBeInstanceOf(LeaseLost);
    expect(a.leads).toBe(false);
  });

  it("ends, too, when the server accepts requests and never answers", async () => {
    const a = replica("a");
    await clock.advance(4_000);
    outage = "hang";
    await clock.advance(10_000);
    expect(a.ended).toBeInstanceOf(LeaseLost);
    expect(a.elector.mayWrite()).toBe(false);
  });

  it("rides out a short outage", async () => {
    const a = replica("a");
    await clock.advance(4_000);
    outage = new TransportError("no route", { maybeSent: true });
    await clock.advance(5_000);
    outage = undefined;
    await clock.advance(60_000);
    expect([a.leads, a.elector.mayWrite()]).toEqual([true, true]);
  });

  it("tries again in time when one answer does not come", async () => {
    const a = replica("a");
    await clock.advance(4_000);
    outage = "hang";
    await clock.advance(2_500);
    outage = undefined;
    await clock.advance(60_000);
    expect([a.leads, a.elector.mayWrite()]).toEqual([true, true]);
  });

  it("renews with one request", async () => {
    replica("a");
    await clock.advance(60_000);
    expect(server.made(`GET ${LEASE}`)).toHaveLength(1);
    expect(server.made(`PUT ${LEASE}`)).toHaveLength(30);
  });

  it("ends at once when another has taken the lease", async () => {
    const a = replica("a");
    await clock.advance(4_000);
    lease = stored("ray-operator-leader", 901, { spec: { ...lease!.spec, holderIdentity: "thief" } });
    await clock.advance(2_000);
    expect(a.ended).toMatchObject({ name: "LeaseLost", message: expect.stringContaining("thief") });
    expect(a.elector.mayWrite()).toBe(false);
    expect(lease.spec.holderIdentity).toBe("thief");
  });

  it("gives the lease back when the work fails, and tells why it failed", async () => {
    const client = new KubeClient(server, { clock });
    const elector = new Elector({ client, clock, namespace: "ray-system", identity: "a" });
    const failed = elector.run(new AbortController().signal, async () => {
      throw new Error("a bug");
    });
    await expect(failed).rejects.toThrow("a bug");
    expect(lease!.spec.holderIdentity).toBe("");
  });

  it("keeps trying while the lease cannot be read at all", async () => {
    outage = new TransportError("no route", { maybeSent: false });
    const a = replica("a");
    await clock.advance(600_000);
    outage = undefined;
    await clock.advance(2_000);
    expect(a.leads).toBe(true);
  });

  describe("on a machine whose wall clock jumps", () => {
    const jumping = () => {
      const jump = { by: 0 };
      return { jump, clock: { now: () => clock.now() + jump.by, after: clock.after.bind(clock) } satisfies Clock };
    };

    it("forward, a waiting replica does not take a living leader for dead", async () => {
      const a = replica("a");
      await settle();
      const { jump, clock: its } = jumping();
      const b = replica("b", its);
      await clock.advance(3_000);
      jump.by = 3_600_000;
      await clock.advance(60_000);
      expect([a.leads, b.leads]).toEqual([true, false]);
    });

    it("forward, the leader does not write until it has renewed", async () => {
      const { jump, clock: its } = jumping();
      const a = replica("a", its);
      await clock.advance(3_000);
      jump.by = 3_600_000;
      expect(a.elector.mayWrite()).toBe(false);
      await clock.advance(2_000);
      expect([a.leads, a.elector.mayWrite()]).toEqual([true, true]);
    });

    it("back, the leader goes on renewing", async () => {
      const { jump, clock: its } = jumping();
      const a = replica("a", its);
      await clock.advance(3_000);
      jump.by = -3_600_000;
      expect(a.elector.mayWrite()).toBe(false);
      await clock.advance(60_000);
      expect([a.leads, a.elector.mayWrite()]).toEqual([true, true]);
    });

    it("back, the leader does not believe in its lease for longer", async () => {
      const { jump, clock: its } = jumping();
      const a = replica("a", its);
      await clock.advance(2_000);
      outage = new TransportError("no route", { maybeSent: true });
      jump.by = -1_000;
      await clock.advance(0);
      expect(a.elector.mayWrite()).toBe(false);
      // Caught up with the time of the last renewal; more of the lease has passed than the wall clock shows.
      await clock.advance(1_000);
      expect(a.elector.mayWrite()).toBe(true);
      await clock.advance(1_999);
      expect(a.elector.mayWrite()).toBe(true);
      await clock.advance(1);
      expect(a.elector.mayWrite()).toBe(false);
    });
  });
});
