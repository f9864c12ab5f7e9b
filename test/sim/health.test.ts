/** What kubelet is told of an operator: when it is restarted, and when it counts as ready. */
import { describe, expect, it } from "vitest";
import { configFrom } from "../../src/config.ts";
import { rayJobs } from "../../src/machinery/kube/resources.ts";
import type { KubeRequest, Transport } from "../../src/machinery/kube/transport.ts";
import { silent } from "../../src/machinery/logger.ts";
import { settle } from "../../src/machinery/virtualClock.ts";
import { Vitals } from "../../src/machinery/vitals.ts";
import { startOperator } from "../../src/wiring.ts";
import { rayJob } from "../support/manifests.ts";
import { World } from "./world.ts";
import { closedAfterEach } from "./worlds.ts";

const worlds = closedAfterEach();

/** A world with an operator whose requests meet what `meet` does instead of an answer. */
function start(meet: (request: KubeRequest) => Promise<never> | undefined) {
  const world = new World();
  worlds.push(world);
  const { transport: kube } = world.kube;
  const transport: Transport = {
    request: (request, options) => meet(request) ?? kube.request(request, options),
    stream: (request, options) => meet(request) ?? kube.stream(request, options),
  };
  const vitals = new Vitals(() => world.clock.now());
  const end = new AbortController();
  const operator = startOperator({
    transport,
    rayTransport: world.ray,
    clock: world.clock,
    config: configFrom({ flags: { "enable-leader-election": false } }),
    log: silent,
    identity: "operator",
    vitals,
    signal: end.signal,
  });
  return { world, vitals, operator, end };
}

const HOUR = 3600_000;

describe("an operator is alive", () => {
  it("through hours in which the API server is away, so that no replica is restarted for that", async () => {
    let away = false;
    const { world, vitals, end } = start(() => (away ? Promise.reject(new Error("connection refused")) : undefined));
    await world.client.create(rayJobs, rayJob());
    await world.clock.advance(20_000);
    away = true;
    for (let minute = 0; minute < 120; minute++) {
      await world.clock.advance(60_000);
      expect(vitals.overdue()).toEqual([]);
    }
    end.abort();
  });

  it("while nothing happens", async () => {
    const { world, vitals, end } = start(() => undefined);
    await world.clock.advance(3 * HOUR);
    expect(vitals.overdue()).toEqual([]);
    end.abort();
  });

  it("no longer when a watch hangs for good, against every time-out it should have had", async () => {
    let hangs = false;
    const { world, vitals, end } = start(({ path }) =>
      hangs && path.endsWith("/rayjobs") ? new Promise<never>(() => {}) : undefined,
    );
    await world.clock.advance(20_000);
    hangs = true;
    await world.clock.advance(HOUR);
    expect(vitals.overdue()).toMatchObject([{ part: "watch of rayjobs.ray.io" }]);
    end.abort();
    await settle();
    expect(vitals.overdue()).toEqual([]);
  });

  it("no longer when a pass never ends", async () => {
    const { world, vitals, end } = start(({ method, path }) =>
      method === "PATCH" && path.endsWith("/status") ? new Promise<never>(() => {}) : undefined,
    );
    await world.client.create(rayJobs, rayJob());
    await world.clock.advance(HOUR);
    expect(vitals.overdue()).toMatchObject([{ part: "pass rayjob default/demo" }]);
    end.abort();
  });
});

describe("an operator is ready", () => {
  it("when its caches are filled; until then it says which are not, and why", async () => {
    let forbidden = true;
    const { world, operator, end } = start(({ path }) =>
      forbidden && path.endsWith("/pods") ? Promise.reject(new Error("pods is forbidden")) : undefined,
    );
    await world.clock.advance(1000);
    expect(operator.ready).toBe(false);
    expect(operator.checks[0]).toEqual({ name: "caches", ok: false, note: "waiting for pods (pods is forbidden)" });
    forbidden = false;
    await world.clock.advance(60_000);
    expect(operator.ready).toBe(true);
    expect(operator.checks).toEqual([
      { name: "caches", ok: true, note: "filled" },
      { name: "leadership", ok: true, note: "this replica leads" },
    ]);
    end.abort();
    expect(operator.checks[1]).toEqual({ name: "leadership", ok: false, note: "this replica is ending" });
  });

  it("also while it stands by, and says who leads", async () => {
    const world = new World();
    worlds.push(world);
    const config = configFrom({});
    const first = world.start({ config });
    await world.clock.advance(5000);
    const second = world.start({ config });
    await world.clock.advance(5000);
    expect([first.operator.leading, second.operator.leading]).toEqual([true, false]);
    expect(second.operator.ready).toBe(true);
    expect(second.operator.checks[1]).toEqual({ name: "leadership", ok: true, note: "standing by; operator-0 leads" });
  });
});
