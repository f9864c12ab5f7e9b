// What is admitted with a warning, in which words, and what is not worth one.
import { describe, expect, it } from "vitest";
import type { RayJob, RayJobSpec } from "../../api/rayjob.ts";
import { rayClusterCautions } from "../raycluster/cautions.ts";
import { headGroup, rayCluster, workerGroup } from "../raycluster/testing.ts";
import { defaultSettings } from "../settings.ts";
import { sentence } from "../validation.ts";
import { rayJobCautions, rayJobEditCautions } from "./cautions.ts";
import { rayJob } from "./testing.ts";

const said = (job: RayJob) => rayJobCautions(job, defaultSettings).map(sentence);
const cluster = rayJob().spec.rayClusterSpec!;
const image = (name: string) => ({ template: { spec: { containers: [{ name: "ray", image: name }] } } });
const selector = { clusterSelector: { "ray.io/cluster": "c" }, rayClusterSpec: undefined };
const rules = (...conditions: object[]) => ({
  shutdownAfterJobFinishes: false,
  deletionStrategy: { deletionRules: conditions.map((condition) => ({ policy: "DeleteCluster" as const, condition })) },
});

describe("a RayJob is warned of", () => {
  it.each<[string, Partial<RayJobSpec>, RegExp]>([
    [
      "a cluster beside a selector",
      { ...selector, shutdownAfterJobFinishes: false, rayClusterSpec: cluster },
      /^spec\.rayClusterSpec: .*clusterSelector/,
    ],
    ["a shutdown of a selected cluster", selector, /^spec\.shutdownAfterJobFinishes: .*never deleted/],
    [
      "submitterConfig in HTTPMode",
      { submissionMode: "HTTPMode", submitterConfig: {} },
      /^spec\.submitterConfig: has no effect/,
    ],
    [
      "submitterPodTemplate in InteractiveMode",
      { submissionMode: "InteractiveMode", entrypoint: undefined, submitterPodTemplate: { spec: { containers: [] } } },
      /^spec\.submitterPodTemplate: has no effect/,
    ],
    ["an entrypoint in InteractiveMode", { submissionMode: "InteractiveMode" }, /^spec\.entrypoint: has no effect/],
    [
      "a deadline for the start behind that for all",
      { activeDeadlineSeconds: 60, preRunningDeadlineSeconds: 60 },
      /^spec\.preRunningDeadlineSeconds: is never reached/,
    ],
    [
      "a success without a deletion rule",
      rules({ jobDeploymentStatus: "Failed" }),
      /none is for Complete with SUCCEEDED jobStatus, Complete with STOPPED jobStatus: .*jobDeploymentStatus Complete$/,
    ],
    [
      "failures that Ray never told of, without a deletion rule",
      rules({ jobDeploymentStatus: "Complete" }, { jobStatus: "FAILED" }),
      /none is for Failed with STOPPED jobStatus, Failed with no jobStatus: .*jobDeploymentStatus Failed$/,
    ],
    [
      "a version that is not the image's",
      { rayClusterSpec: { ...cluster, rayVersion: "2.9.0" } },
      /^spec\.rayClusterSpec\.rayVersion: 2\.9\.0 is not the version of .*ray:2\.56\.0/,
    ],
    [
      "workers of another version",
      { rayClusterSpec: { ...cluster, workerGroupSpecs: [workerGroup(image("rayproject/ray:2.9.0-py310-gpu"))] } },
      /^spec\.rayClusterSpec\.workerGroupSpecs\[0\]\.template\.spec\.containers\[0\]\.image: Ray 2\.9\.0 cannot join/,
    ],
    [
      "replicas that will not be",
      { rayClusterSpec: { ...cluster, workerGroupSpecs: [workerGroup({ replicas: 5, maxReplicas: 3 })] } },
      /^spec\.rayClusterSpec\.workerGroupSpecs\[0\]\.replicas: 5 .* there will be 3/,
    ],
  ])("%s", (_, spec, words) => {
    expect(said(rayJob(spec))).toEqual([expect.stringMatching(words)]);
  });

  it("more groups than Kueue admits, where it is Kueue's", () => {
    const groups = (count: number) =>
      Array.from({ length: count }, (_, index) => workerGroup({ groupName: `g${index}` }));
    const job = (count: number, labels = {}, submissionMode: RayJobSpec["submissionMode"] = "K8sJobMode") =>
      rayJob({ submissionMode, rayClusterSpec: { ...cluster, workerGroupSpecs: groups(count) } }, undefined, {
        labels,
      });
    const queue = { "kueue.x-k8s.io/queue-name": "q" };
    expect(said(job(17, queue))).toEqual([
      expect.stringMatching(/^spec\.rayClusterSpec\.workerGroupSpecs: are 17, .*16/),
    ]);
    expect(said(job(16, queue))).toEqual([]);
    expect(said(job(17, queue, "HTTPMode"))).toEqual([]);
    expect(said(job(17))).toEqual([]);
  });

  it("a queue's label where Kueue manages nothing, so that it would stay suspended for good", () => {
    const labels = { "kueue.x-k8s.io/queue-name": "q" };
    const selecting = { rayClusterSpec: undefined, clusterSelector: { "ray.io/cluster": "shared" } };
    expect(said(rayJob(selecting, undefined, { labels }))).toContainEqual(
      expect.stringMatching(/^metadata\.labels: kueue\.x-k8s\.io\/queue-name .*never start it.*clusterSelector/),
    );
    expect(said(rayJob(selecting)).join()).not.toContain("Kueue");
    expect(said(rayJob({}, undefined, { labels })).join()).not.toContain("Kueue");
  });
});

it.each<[string, Partial<RayJobSpec>]>([
  ["the smallest one", {}],
  ["deletion rules for every end", rules({ jobDeploymentStatus: "Complete" }, { jobDeploymentStatus: "Failed" })],
  [
    "an image of one's own, whose tag is its own version",
    { rayClusterSpec: { ...cluster, headGroupSpec: headGroup(image("registry:5000/team/train:1.4.2")) } },
  ],
  [
    "an image by its digest",
    { rayClusterSpec: { ...cluster, headGroupSpec: headGroup(image("rayproject/ray@sha256:00")) } },
  ],
  [
    "a nightly image",
    { rayClusterSpec: { ...cluster, headGroupSpec: headGroup(image("rayproject/ray:nightly-py310")) } },
  ],
  [
    "the version with a suffix in the tag",
    { rayClusterSpec: { ...cluster, headGroupSpec: headGroup(image("rayproject/ray-ml:2.56.0-gpu")) } },
  ],
  ["a preRunning deadline before the other", { activeDeadlineSeconds: 60, preRunningDeadlineSeconds: 59 }],
  ["submitterConfig where there is a submitter", { submitterConfig: { backoffLimit: 1 } }],
])("%s is worth no warning", (_, spec) => {
  expect(said(rayJob(spec))).toEqual([]);
});

it("a RayCluster of its own is looked at in the same way", () => {
  expect(rayClusterCautions(rayCluster({ rayVersion: "2.9.0" }), defaultSettings).map(({ at }) => at)).toEqual([
    "spec.rayVersion",
  ]);
});

describe("an edit is warned of that comes too late", () => {
  const edit = (jobDeploymentStatus: "" | "Running" | "Complete" | "Suspended") =>
    rayJobEditCautions(
      rayJob({ entrypoint: "other", backoffLimit: 2, activeDeadlineSeconds: 9 }),
      rayJob({}, { jobDeploymentStatus }),
      defaultSettings,
    ).map(sentence);

  it("for the attempt that runs, or for good; what may be changed at any time is not", () => {
    expect(edit("Running")).toEqual([expect.stringMatching(/^spec\.entrypoint: .*counts from the next one/)]);
    expect(edit("Complete")).toEqual([expect.stringMatching(/^spec\.entrypoint: the RayJob has ended/)]);
    expect(edit("")).toEqual([]);
    expect(edit("Suspended")).toEqual([]);
  });
});

it("a warning fits into what the API server passes on", () => {
  const all = [
    ...said(
      rayJob({
        ...selector,
        ...rules({ jobStatus: "SUCCEEDED" }),
        shutdownAfterJobFinishes: true,
        rayClusterSpec: cluster,
      }),
    ),
    ...said(rayJob({ activeDeadlineSeconds: 1, preRunningDeadlineSeconds: 2, submissionMode: "InteractiveMode" })),
    ...said(
      rayJob({
        rayClusterSpec: {
          ...cluster,
          rayVersion: "2.9.0",
          workerGroupSpecs: [workerGroup({ ...image("ray:1.2.3"), replicas: -1 })],
        },
      }),
    ),
  ];
  expect(all.length).toBeGreaterThan(6);
  for (const sentence of all) expect(sentence.length, sentence).toBeLessThanOrEqual(256);
});
