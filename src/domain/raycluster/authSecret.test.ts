// The Secret with a cluster's token: made once, before its Pods; never a second one, never out of somebody else's.
import { describe, expect, it } from "vitest";
import type { Stored } from "../../api/object.ts";
import { questionKey } from "../decision.ts";
import { SECRET_GONE, SECRET_REFUSED } from "./authSecret.ts";
import { rayCluster, World } from "./testing.ts";

const authenticated = (secretName?: string, name = "demo") =>
  rayCluster({ authOptions: { mode: "token", ...(secretName && { secretName }) } }, { name });
const owner = (uid: string, name = "demo") => ({
  apiVersion: "ray.io/v1",
  kind: "RayCluster",
  name,
  uid,
  controller: true,
});
const secret = (metadata: Partial<Stored["metadata"]> = {}): Stored => ({
  kind: "Secret",
  metadata: {
    name: "demo",
    namespace: "ns1",
    uid: "secret-uid",
    resourceVersion: "7",
    creationTimestamp: "2026-03-01T12:00:00Z",
    ...metadata,
  },
});
const failure = (w: World) => w.condition("ReplicaFailure");
const made = (w: World, kind: string) => w.writes.filter((write) => write.startsWith(`create ${kind}`));

describe("the Secret of a cluster's token", () => {
  it("is made in a pass before the first Pods, and only then", () => {
    const w = new World(authenticated());
    const first = w.pass();
    expect(w.writes).toEqual(["create Secret demo", "create Service demo-head-svc"]);
    expect(first.effects[0]).toMatchObject({
      randomData: { auth_token: 32 },
      object: {
        metadata: {
          name: "demo",
          namespace: "ns1",
          labels: { "ray.io/cluster": "demo" },
          ownerReferences: [{ kind: "RayCluster", uid: "cluster-uid", controller: true, blockOwnerDeletion: true }],
        },
      },
    });
    expect(first.wakeAt).toBe(w.now + 1000);
    w.settle();
    expect(made(w, "Pod")).toHaveLength(3);
    expect(made(w, "Secret")).toHaveLength(1);
  });

  it("is no part of a decision: nobody who is told of one learns a token", () => {
    const w = new World(authenticated());
    expect(JSON.stringify(w.decide())).not.toMatch(/"data"|"stringData"/);
  });

  it.each([
    ["nothing of authentication", rayCluster()],
    ["a Secret of its user's", authenticated("own")],
    ["that it wants none", rayCluster({ authOptions: { mode: "disabled" } })],
  ])("is neither made nor looked for where the cluster says %s", (_, cluster) => {
    const w = new World(cluster);
    w.settle();
    expect(made(w, "Secret")).toEqual([]);
    expect(w.asked.map(questionKey).filter((key) => key.includes("Secret"))).toEqual([]);
    expect(made(w, "Pod")).toHaveLength(3);
  });

  it("is not asked for by a pass that makes no Pod", () => {
    const w = new World(authenticated());
    w.settle();
    w.allReady();
    w.asked.length = 0;
    w.settle();
    expect(w.asked).toEqual([]);
  });

  it("is used as it is where an earlier pass, or KubeRay, had made it", () => {
    const w = new World(authenticated());
    w.secrets.push(secret({ ownerReferences: [owner("cluster-uid")] }));
    w.settle();
    expect(made(w, "Secret")).toEqual([]);
    expect(made(w, "Pod")).toHaveLength(3);
  });

  it.each<[string, Partial<Stored["metadata"]>]>([
    ["a deleted cluster's of the same name", { ownerReferences: [owner("another-uid")] }],
    ["on its way out", { ownerReferences: [owner("cluster-uid")], deletionTimestamp: "2026-03-01T12:00:00Z" }],
  ])("is waited for, and not used, while it is %s", (_, metadata) => {
    const w = new World(authenticated());
    w.secrets.push(secret(metadata));
    expect(w.settle().wakeAt).toBe(w.now + 1000);
    expect(made(w, "Pod")).toEqual([]);
    expect(failure(w)).toBeUndefined();
    w.secrets = [];
    w.settle();
    expect([made(w, "Secret").length, made(w, "Pod").length]).toEqual([1, 3]);
  });

  it.each([
    ["nobody's", {}],
    ["of another cluster whose long name ends alike", { ownerReferences: [owner("other-uid", "other")] }],
  ])("that is %s is not used, and the cluster says what to do", (_, metadata) => {
    const w = new World(authenticated());
    w.secrets.push(secret(metadata));
    expect(w.settle().wakeAt).toBe(w.now + 30_000);
    expect(made(w, "Pod")).toEqual([]);
    expect(failure(w)).toMatchObject({
      status: "True",
      reason: "FailedCreateAuthSecret",
      message:
        "Secret ns1/demo exists and does not belong to this RayCluster: delete it, or name it in spec.authOptions.secretName if its token is to be used",
    });
    expect(w.events.filter(({ reason }) => reason === SECRET_REFUSED)).toHaveLength(1);
  });

  it("that has vanished is not made anew while a Pod lives: it would not know the new token", () => {
    const w = new World(authenticated());
    w.settle();
    w.allReady();
    w.settle();
    w.secrets = [];
    w.remove(w.workers()[0]!.metadata.name);
    w.settle();
    expect([made(w, "Secret").length, w.pods.length]).toEqual([1, 2]);
    expect(failure(w)).toMatchObject({ status: "True", reason: SECRET_GONE, message: /^Secret ns1\/demo is gone/ });
    expect(w.events.filter(({ reason }) => reason === SECRET_GONE)).toHaveLength(1);
    // Put back by hand, it belongs to nobody; the Pods were started with it.
    w.secrets.push(secret());
    w.settle();
    expect(w.pods).toHaveLength(3);
    expect(failure(w)).toBeUndefined();
  });

  it("is made anew when the last Pod that knew the old one is gone", () => {
    const w = new World(authenticated());
    w.settle();
    w.spec({ workerGroupSpecs: [] });
    w.settle();
    w.reap();
    w.secrets = [];
    w.terminate("demo-head");
    w.settle();
    expect(made(w, "Secret")).toHaveLength(1);
    w.reap();
    w.settle();
    expect(made(w, "Secret")).toHaveLength(2);
    expect(w.names()).toEqual(["demo-head"]);
  });

  it("that the API server refuses is told in its words", () => {
    const w = new World(authenticated());
    w.pass();
    w.secrets = [];
    w.refused = [{ reason: SECRET_REFUSED, message: "secrets is forbidden: exceeded quota" }];
    const decision = w.pass();
    expect(failure(w)).toMatchObject({ reason: "FailedCreateAuthSecret", message: /exceeded quota/ });
    expect(decision.wakeAt).toBeLessThanOrEqual(w.now + 30_000);
    expect(made(w, "Pod")).toEqual([]);
  });
});
