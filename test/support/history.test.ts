/** The judge of the histories is judged: it finds what must never be, though the watches tell of it in another order. */
import { describe, expect, it } from "vitest";
import { LABEL } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJobStatus } from "../../src/api/rayjob.ts";
import { History } from "./history.ts";

const metadata = (name: string, resourceVersion: number, more: object = {}) => ({
  name,
  namespace: "n",
  uid: "job",
  resourceVersion: String(resourceVersion),
  ...more,
});
const job = (version: number, status: RayJobStatus, spec: object = {}): Stored =>
  ({
    kind: "RayJob",
    metadata: metadata("demo", version),
    spec,
    status: { attempts: [], ...status },
  }) as unknown as Stored;
const pod = (version: number, attempt = 0): Stored => {
  const labels = { [LABEL.rayJobUID]: "job", [LABEL.executionAttempt]: String(attempt) };
  return { kind: "Pod", metadata: metadata("pod", version, { uid: "pod", labels }) } as unknown as Stored;
};

function judge(objects: readonly Stored[], submissions: readonly string[] = []): readonly string[] {
  const history = new History();
  for (const [index, object] of objects.entries()) history.add({ type: index === 0 ? "ADDED" : "MODIFIED", object });
  return history.violations("n", submissions);
}

describe("a history", () => {
  const start = job(1, { jobDeploymentStatus: "Initializing", executionAttempt: 0 });

  it("in which all is well is passed", () => {
    const end = job(3, { jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED", executionAttempt: 0 });
    expect(judge([start, end], ["head demo-aaaaa"])).toEqual([]);
  });

  it("in which an end does not last is not", () => {
    const end = job(2, { jobDeploymentStatus: "Failed", jobStatus: "FAILED", executionAttempt: 0 });
    const after = job(3, { jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED", executionAttempt: 0 });
    expect(judge([start, end, after])).toEqual([
      "demo: Kueue booked a failure, and then the other",
      "demo: Failed became Complete",
    ]);
  });

  it("is not judged beyond what all watches have told", async () => {
    const history = new History();
    const lists: Record<string, Stored[]> = { rayjobs: [job(5, {})], pods: [pod(4)] };
    const resourceVersion = "6";
    const client = {
      listAll: async ({ plural }: { plural: string }) => ({ items: lists[plural] ?? [], resourceVersion }),
    };
    history.add({ type: "ADDED", object: start });
    let upTo: number | undefined;
    const heard = history.heard(client as never, "n").then((version) => {
      upTo = version;
    });
    for (const object of [job(5, {}), pod(3)]) {
      await new Promise(setImmediate);
      history.add({ type: "MODIFIED", object });
      expect(upTo).toBeUndefined();
    }
    history.add({ type: "MODIFIED", object: pod(4) });
    history.add({ type: "MODIFIED", object: pod(7) });
    await heard;
    expect(upTo).toBe(6);
    expect(history.versions("n", upTo).map(({ object }) => object.metadata.resourceVersion)).toEqual([
      "1",
      "3",
      "4",
      "5",
    ]);
  });

  it("in which an attempt is skipped is not", () => {
    expect(judge([start, job(2, { jobDeploymentStatus: "Initializing", executionAttempt: 2 })])).toHaveLength(1);
  });

  it("in which a Pod came before its attempt was written down is not, whatever came first to our ears", () => {
    const history = new History();
    history.add({ type: "ADDED", object: start });
    history.add({ type: "MODIFIED", object: job(4, { jobDeploymentStatus: "Initializing", executionAttempt: 1 }) });
    history.add({ type: "ADDED", object: pod(3, 1) });
    expect(history.violations("n", [])).toEqual(["Pod pod was made for attempt 1 before that was journalled"]);
  });

  it("in which a job is Suspended while it holds a Pod is not", () => {
    const history = new History();
    history.add({ type: "ADDED", object: start });
    history.add({ type: "ADDED", object: pod(2) });
    const suspended = { jobDeploymentStatus: "Suspended", executionAttempt: 0 } as const;
    history.add({ type: "MODIFIED", object: job(3, suspended, { suspend: true }) });
    expect(history.violations("n", [])).toEqual(["demo: Kueue would give its quota away, and yet there is Pod pod"]);
  });

  it("in which Ray was given a job twice is not", () => {
    expect(judge([start], ["head demo-bcdfg", "other demo-bcdfg"])).toHaveLength(1);
  });
});
