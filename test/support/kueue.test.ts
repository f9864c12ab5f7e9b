import { describe, expect, it } from "vitest";
import { LABEL } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJob, RayJobStatus } from "../../src/api/rayjob.ts";
import { KueueBooks, kueueView } from "./kueue.ts";

const rayJob = (suspend: boolean, status?: RayJobStatus, selector?: Record<string, string>) =>
  ({
    kind: "RayJob",
    metadata: { name: "demo", namespace: "default", uid: "u" },
    spec: { suspend, ...(selector && { clusterSelector: selector }) },
    status: status && { attempts: [], ...status },
  }) as unknown as Stored<RayJob>;

const child = (kind: string, owner: object = { apiVersion: "ray.io/v1", kind: "RayJob", uid: "u", controller: true }) =>
  ({
    kind,
    metadata: { name: "c", uid: kind, labels: { [LABEL.rayJobUID]: "u" }, ownerReferences: [owner] },
  }) as unknown as Stored;

function books() {
  const violations: string[] = [];
  const made = new KueueBooks(
    (what) => violations.push(what),
    () => false,
  );
  return { violations, made };
}

describe("Kueue's view", () => {
  it.each<[string, boolean, RayJobStatus | undefined, object]>([
    ["a RayJob that nobody has looked at holds nothing", true, undefined, { suspended: true, active: false }],
    ["in Suspending it is active still", true, { jobDeploymentStatus: "Suspending" }, { active: true }],
    [
      "in Retrying it is active, and not over",
      false,
      { jobDeploymentStatus: "Retrying" },
      { active: true, finished: false },
    ],
    ["in Suspended it holds nothing", true, { jobDeploymentStatus: "Suspended" }, { active: false, finished: false }],
    [
      "Complete is over",
      false,
      { jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" },
      { finished: true, succeeded: true },
    ],
    [
      "a job that was stopped is over, and no success",
      false,
      { jobDeploymentStatus: "Complete", jobStatus: "STOPPED" },
      { finished: true, succeeded: false },
    ],
    [
      "an invalid one is on hold, and not over",
      false,
      { jobDeploymentStatus: "ValidationFailed" },
      { onHold: true, finished: false },
    ],
    [
      "ready Pods are read off the RayCluster's state",
      false,
      { rayClusterStatus: { state: "ready" } },
      { podsReady: true },
    ],
  ])("%s", (_, suspend, status, view) => {
    expect(kueueView(rayJob(suspend, status))).toMatchObject(view);
  });
});

describe("Kueue's books", () => {
  it.each(["RayCluster", "Job", "Pod"])("notice a %s that is left when the quota is given away", (kind) => {
    const { made, violations } = books();
    made.stored("ADDED", child(kind), undefined);
    const suspending = rayJob(true, { jobDeploymentStatus: "Suspending" });
    made.stored("MODIFIED", suspending, rayJob(false, { jobDeploymentStatus: "Running" }));
    expect(violations).toEqual([]);
    made.stored("MODIFIED", rayJob(true, { jobDeploymentStatus: "Suspended" }), suspending);
    expect(violations).toEqual([`demo: Kueue would give its quota away, and yet there is ${kind} c`]);
  });

  it("agree when everything has gone before", () => {
    const { made, violations } = books();
    made.stored("ADDED", child("Pod"), undefined);
    made.stored("DELETED", child("Pod"), child("Pod"));
    made.stored(
      "MODIFIED",
      rayJob(true, { jobDeploymentStatus: "Suspended" }),
      rayJob(true, { jobDeploymentStatus: "Suspending" }),
    );
    expect(violations).toEqual([]);
  });

  it("leave out what Kueue does not manage: a RayJob with clusterSelector", () => {
    const { made, violations } = books();
    const selector = { [LABEL.cluster]: "shared" };
    made.stored("ADDED", child("Pod"), undefined);
    made.stored("MODIFIED", rayJob(true, { jobDeploymentStatus: "Suspended" }, selector), rayJob(true, {}, selector));
    expect(violations).toEqual([]);
  });

  it("notice an end that is taken back, since the Workload has ended for good", () => {
    const { made, violations } = books();
    const failed = rayJob(false, { jobDeploymentStatus: "Failed", jobStatus: "FAILED" });
    made.stored("MODIFIED", rayJob(false, { jobDeploymentStatus: "Retrying" }), failed);
    expect(violations).toEqual(["demo: Kueue saw its end, and then it was not over"]);
  });

  it("notice Pods that are called ready before the attempt has any", () => {
    const { made, violations } = books();
    const ready = { rayClusterStatus: { state: "ready" as const } };
    made.stored(
      "MODIFIED",
      rayJob(false, { executionAttempt: 1, ...ready }),
      rayJob(false, { executionAttempt: 0, ...ready }),
    );
    expect(violations).toEqual(["demo: Kueue saw the Pods of attempt 1 ready before there were any"]);
  });

  it("notice a RayCluster that Kueue would take for a job of its own", () => {
    const { made, violations } = books();
    made.stored("ADDED", child("RayCluster", { apiVersion: "ray.io/v1", kind: "RayJob", uid: "u" }), undefined);
    expect(violations).toEqual(["RayCluster c: Kueue does not see that RayJob u controls it"]);
  });
});
