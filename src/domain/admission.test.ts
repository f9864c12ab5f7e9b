// What the webhook lets pass, whatever the rules say, and what not.
import { describe, expect, it } from "vitest";
import type { RayJobSpec } from "../api/rayjob.ts";
import { admitRayCluster, admitRayJob } from "./admission.ts";
import { rayCluster } from "./raycluster/testing.ts";
import { rayJob } from "./rayjob/testing.ts";
import { validateRayJob } from "./rayjob/validate.ts";
import { defaultSettings } from "./settings.ts";

const INVALID: Partial<RayJobSpec> = { backoffLimit: -1 };
const rules = ({ violations }: ReturnType<typeof admitRayJob>) => violations.map(({ rule }) => rule);
const admit = (object: ReturnType<typeof rayJob>, old?: ReturnType<typeof rayJob>) =>
  admitRayJob({ object, ...(old && { old }) }, defaultSettings);

describe("a RayJob", () => {
  it("that is valid is admitted; one that is not is refused; so is an edit that makes it invalid", () => {
    expect(admit(rayJob())).toEqual({ violations: [], warnings: [] });
    expect(rules(admit(rayJob(INVALID)))).toEqual(["backoff-limit-not-negative"]);
    expect(rules(admit(rayJob(INVALID), rayJob()))).toEqual(["backoff-limit-not-negative"]);
  });

  it("that is invalid already is admitted while its spec does not change: labels, finalizers", () => {
    expect(admit(rayJob(INVALID, undefined, { finalizers: [] }), rayJob(INVALID))).toEqual({
      violations: [],
      warnings: [],
    });
  });

  it("that is invalid may end: a deletion in progress is admitted, whatever else changes", () => {
    const leaving = rayJob({ ...INVALID, jobId: "a b" }, undefined, { deletionTimestamp: "2026-03-01T12:00:00Z" });
    expect(rules(admit(leaving, rayJob()))).toEqual([]);
  });

  it("that is invalid may be suspended and resumed, with its mistakes as warnings", () => {
    const suspended = admit(rayJob({ ...INVALID, suspend: true }), rayJob(INVALID));
    expect(suspended.violations).toEqual([]);
    expect(suspended.warnings.map(({ rule }) => rule)).toEqual(["backoff-limit-not-negative"]);
    expect(rules(admit(rayJob({ ...INVALID, suspend: false }), rayJob({ ...INVALID, suspend: true })))).toEqual([]);
  });

  it("is admitted when nothing but suspend changes, though it cannot be suspended; together with more it is not", () => {
    const old = rayJob({ shutdownAfterJobFinishes: false });
    expect(rules(admit(rayJob({ shutdownAfterJobFinishes: false, suspend: true }), old))).toEqual([]);
    const more = rayJob({ shutdownAfterJobFinishes: false, suspend: true, jobId: "other" });
    expect(rules(admit(more, old))).toEqual(["suspend-needs-shutdown"]);
  });

  it("that is invalid already may be suspended by a queue, which puts templates back with the same write", () => {
    const template = (nodeSelector?: object) => {
      const spec = rayJob().spec.rayClusterSpec!;
      const pod = { spec: { ...spec.headGroupSpec.template.spec, nodeSelector } };
      return { rayClusterSpec: { ...spec, headGroupSpec: { ...spec.headGroupSpec, template: pod } } } as object;
    };
    const running = rayJob({ ...INVALID, ...template({ zone: "a" }) });
    const stopped = admit(rayJob({ ...INVALID, ...template(), suspend: true }), running);
    expect(stopped.violations).toEqual([]);
    expect(stopped.warnings.map(({ rule }) => rule)).toEqual(["backoff-limit-not-negative"]);
    const worse = rayJob({ ...INVALID, ...template(), jobId: "a b", suspend: true });
    expect(rules(admit(worse, running))).toEqual(["job-id-in-url", "backoff-limit-not-negative"]);
    expect(rules(admit(rayJob({ ...INVALID, ...template() }), running))).toEqual(["backoff-limit-not-negative"]);
  });

  it("of another controller's is let alone", () => {
    expect(rules(admit(rayJob({ ...INVALID, managedBy: "kueue.x-k8s.io/multikueue" } as object)))).toEqual([]);
  });

  it("is warned of what is surely a mistake, and of an edit that comes too late", () => {
    const job = rayJob({ activeDeadlineSeconds: 1, preRunningDeadlineSeconds: 2 });
    expect(admit(job).warnings.map(({ rule }) => rule)).toEqual(["pre-running-deadline-reached"]);
    const running = rayJob({}, { jobDeploymentStatus: "Running" });
    expect(admit(rayJob({ entrypoint: "x" }), running).warnings.map(({ rule }) => rule)).toEqual([
      "edit-comes-too-late",
    ]);
  });

  it.each<[Partial<RayJobSpec>]>([
    [{}],
    [INVALID],
    [{ submissionMode: "SidecarMode", submitterConfig: {} }],
    [{ entrypoint: "" }],
    [{ suspend: true, shutdownAfterJobFinishes: false }],
    [{ clusterSelector: { "ray.io/cluster": "x" }, rayClusterSpec: undefined }],
  ])("gets the same verdict from the webhook and from the controller: %j", (spec) => {
    expect(rules(admit(rayJob(spec))).length > 0).toBe(validateRayJob(rayJob(spec), defaultSettings) !== undefined);
  });
});

describe("a RayCluster", () => {
  const invalid = rayCluster({ networkPolicy: {} });
  const judge = (object: ReturnType<typeof rayCluster>, old?: ReturnType<typeof rayCluster>) =>
    admitRayCluster({ object, ...(old && { old }) }, defaultSettings).violations.map(({ rule }) => rule);

  it("is judged by the same exceptions", () => {
    expect(judge(rayCluster())).toEqual([]);
    expect(judge(invalid)).toEqual(["network-policy-not-built"]);
    expect(judge(invalid, rayCluster())).toEqual(["network-policy-not-built"]);
    expect(judge(invalid, invalid)).toEqual([]);
    expect(judge(rayCluster({ networkPolicy: {}, suspend: true }), invalid)).toEqual([]);
    expect(judge(rayCluster({ networkPolicy: {}, managedBy: "someone" }))).toEqual([]);
    expect(
      judge(rayCluster({ networkPolicy: {} }, { deletionTimestamp: "2026-03-01T12:00:00Z" }), rayCluster()),
    ).toEqual([]);
  });
});
