// Whom the API server notes as the writer of a status, and what is told of it.
import { describe, expect, it } from "vitest";
import type { Stored } from "./api/object.ts";
import { VirtualClock } from "./machinery/virtualClock.ts";
import { fieldManager, Rivals, trimKeepingOthers } from "./rivals.ts";

const ours = fieldManager("ray-system");
const entry = (manager: string, time: string, subresource = "status") => ({
  manager,
  operation: "Update",
  apiVersion: "ray.io/v1",
  time,
  fieldsType: "FieldsV1",
  fieldsV1: { "f:status": {} },
  subresource,
});
const job = (managedFields: object[], spec: object = {}, uid = "u") =>
  ({ metadata: { name: "demo", namespace: "default", uid, managedFields }, spec }) as unknown as Stored;
const trim = (object: Stored) => trimKeepingOthers(ours)(object);

function rivals() {
  const clock = new VirtualClock();
  const [logged, counted, told] = [[] as string[], [] as string[], [] as string[]];
  const log = { error: ({ manager }: { manager?: string }) => logged.push(manager ?? "") } as never;
  const watch = new Rivals({ ours, clock, log, counted: (kind) => counted.push(kind) });
  const events = {
    record: (_: Stored, { reason, note }: { reason: string; note: string }) => told.push(`${reason} ${note}`),
  };
  const see = (old: Stored | undefined, now: Stored | undefined) =>
    watch.changed("RayJob", { old: old && trim(old), new: now && trim(now) }, events);
  return { clock, logged, counted, told, see };
}

const WE = entry(ours, "2026-01-01T12:00:00Z");
const theirs = (time: string, manager = fieldManager("team-a")) => entry(manager, `2026-01-01T${time}Z`);

describe("of managedFields", () => {
  it("nothing is kept where nobody else has written the status", () => {
    const users = entry("kubectl-client-side-apply", "2026-01-01T11:00:00Z", "");
    expect(trim(job([WE, users])).metadata.managedFields).toBeUndefined();
  });

  it("who else has written it, and when, is kept, without the list of fields", () => {
    expect(trim(job([WE, theirs("12:00:01")])).metadata.managedFields).toEqual([
      { manager: "raykeeper-operator.team-a", time: "2026-01-01T12:00:01Z", subresource: "status" },
    ]);
  });
});

describe("another operator for the same objects", () => {
  it("is told of by event, number and log, by the name under which it writes", () => {
    const { see, logged, counted, told } = rivals();
    see(job([WE]), job([WE, theirs("12:00:01", "manager")]));
    expect(told).toEqual([
      expect.stringMatching(/^AnotherOperator The status of this RayJob is written by "manager", too/),
    ]);
    expect([logged, counted]).toEqual([["manager"], ["RayJob"]]);
  });

  it("that goes on writing is counted each time, and logged every ten minutes", async () => {
    const { see, logged, counted, clock } = rivals();
    const states = ["12:00:01", "12:00:02", "12:00:03"].map((time) => job([WE, theirs(time)]));
    see(states[0], states[1]);
    see(states[1], states[2]);
    await clock.advance(10 * 60_000);
    see(states[0], states[2]);
    expect([counted.length, logged.length]).toEqual([3, 2]);
  });

  it.each<[string, Stored | undefined, Stored | undefined]>([
    ["what it wrote before we came", undefined, job([theirs("11:00:00", "manager"), WE])],
    [
      "what it wrote before, while we write",
      job([theirs("11:00:00", "manager")]),
      job([theirs("11:00:00", "manager"), WE]),
    ],
    ["our own writes", job([WE]), job([entry(ours, "2026-01-01T12:00:09Z")])],
    ["an object that is gone", job([WE]), undefined],
    ["a namesake", job([WE]), job([theirs("12:00:01")], {}, "v")],
    [
      "an object that is managed by another controller",
      job([WE], { managedBy: "kueue.x-k8s.io/multikueue" }),
      job([WE, theirs("12:00:01")], { managedBy: "kueue.x-k8s.io/multikueue" }),
    ],
  ])("is not concluded from %s", (_, old, now) => {
    const { see, counted, told } = rivals();
    see(old, now);
    expect([counted, told]).toEqual([[], []]);
  });
});
