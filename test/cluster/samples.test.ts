/**
 * The sample manifests for RayJob that users know from KubeRay, written anew under samples/ from what they show, and put
 * through the commands that its documentation has users type.
 *
 * Those that are not tried stand in a table with the reason.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { LABEL } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { rayClusters } from "../../src/machinery/kube/resources.ts";
import { root } from "../e2e/command.ts";
import { scenario, stopwatch, useCluster } from "./cluster.ts";

const cluster = useCluster("samples");
const folder = join(root, "test", "cluster", "samples");
const path = (sample: string) => join(folder, `ray-job.${sample}.yaml`);
afterEach(async () => {
  await Promise.all(cluster.rayJobs.store.list().map(({ metadata }) => cluster.remove(metadata.name)));
});

interface Sample {
  readonly job: string;
  readonly prints: RegExp;
  /** The user submits this himself. */
  readonly byHand?: readonly string[];
  /** What else it is there to show. */
  readonly shows?: (job: Stored<RayJob>) => Promise<void>;
}

const get = (name: string, field: string) =>
  cluster.kubectlSays(["get", `rayjobs.ray.io/${name}`, "-o", `jsonpath={.status.${field}}`]);

/** The submission id of whoever submits himself. */
const HAND = "by-hand";

/** Where a user looks for what his program has printed. */
function logOf(job: Stored<RayJob>): Promise<string> {
  const { submissionMode: mode = "K8sJobMode" } = job.spec;
  if (mode === "K8sJobMode") {
    return cluster.kubectlSays(["logs", "-l", `job-name=${job.metadata.name}`, "--tail", "-1"]);
  }
  return mode === "SidecarMode"
    ? cluster.kubectlSays(["logs", cluster.head(job)!.metadata.name, "-c", "ray-job-submitter"])
    : cluster.rayOnHead(job, "job", "logs", "--address", "http://127.0.0.1:8265", HAND);
}

const clusterGone = async ({ status }: Stored<RayJob>) => {
  const name = status!.rayClusterName!;
  await cluster.until("its RayCluster to be gone", () => !cluster.rayClusters.store.get(cluster.namespace, name));
};

const RUN: Readonly<Record<string, Sample>> = {
  sample: { job: "rayjob-sample", prints: /sample counter is at 5\n3 words/ },
  shutdown: { job: "rayjob-sample-shutdown", prints: /shutdown counter is at 5/, shows: clusterGone },
  resources: {
    job: "rayjob-resources",
    prints: /in all: CPU 2 GPU 2 Special 4\nbeside the program: CPU 1 GPU 1 Special 2/,
  },
  "custom-head-svc": {
    job: "rayjob-custom-head-svc",
    prints: /nodes 1/,
    async shows({ status }) {
      const wanted = "{.metadata.labels.team} {.metadata.annotations.example\\.com/owner}";
      expect(await cluster.kubectlSays(["get", "service", "my-head-svc", "-o", `jsonpath=${wanted}`])).toBe(
        "research research",
      );
      expect(status?.dashboardURL).toBe(`my-head-svc.${cluster.namespace}.svc.cluster.local:8265`);
    },
  },
  "sidecar-mode": { job: "rayjob-sidecar-mode", prints: /sidecar counter is at 5/ },
  "interactive-mode": {
    job: "rayjob-interactive-mode",
    prints: /^by hand$/m,
    byHand: ["python", "-c", "print('by hand')"],
  },
  "use-existing-raycluster": {
    job: "rayjob-use-existing-raycluster",
    prints: /nodes 1/,
    async shows({ status }) {
      expect(status?.rayClusterName).toBe("existing");
      expect(cluster.rayClusters.store.get(cluster.namespace, "existing")?.metadata.deletionTimestamp).toBeUndefined();
      await cluster.client.delete(rayClusters, cluster.namespace, "existing");
    },
  },
  "light-weight-submitter": { job: "rayjob-light-weight-submitter", prints: /^hello from a small submitter$/m },
  "deletion-rules": {
    job: "rayjob-deletion-rules",
    prints: /^hello$/m,
    async shows(job) {
      const { name } = job.metadata;
      const theCluster = () => cluster.rayClusters.store.get(cluster.namespace, job.status!.rayClusterName!);
      const workers = () =>
        cluster.podsOf(job).filter(({ metadata }) => metadata.labels?.[LABEL.nodeType] === "worker");
      await cluster.until("its workers to be gone", () => workers().length === 0);
      expect(cluster.head(job)?.metadata.deletionTimestamp, "the head's deletion").toBeUndefined();
      await cluster.until("its RayCluster to be gone", () => theCluster() === undefined);
      expect(cluster.rayJobs.store.get(cluster.namespace, name)?.metadata.deletionTimestamp).toBeUndefined();
      await cluster.nothingLeft(job);
    },
  },
  "kueue-toy-sample": { job: "rayjob-toy-", prints: /9 squared is 81/, shows: clusterGone },
};

/** Not written anew: this cluster has not what they are about. */
const NOT_TRIED: Readonly<Record<string, string>> = {
  "batch-inference": "four GPUs, and an image of its own",
  "platform-events": "a Ray that shows Kubernetes' events in its dashboard",
  sandbox: "the agent sandbox's controller",
  "tpu-jax": "TPUs",
  "tpu-v6e-singlehost": "TPUs",
  "tpu-v6e-16-multihost": "TPUs; multi-host groups are refused",
  "tpu-v6e-256-multihost": "TPUs; multi-host groups are refused",
  "volcano-scheduler-queue": "Volcano; batch schedulers are refused by the operator's flag",
  "yunikorn-scheduler": "YuniKorn; batch schedulers are refused by the operator's flag",
  "pytorch-mnist": "packages and data from the internet",
  "pytorch-resnet-image-classifier": "packages and data from the internet",
  "pytorch-text-classifier": "packages and data from the internet",
  "ray-data-image-resize": "packages and data from the internet",
};

it("each sample has its place in one of the tables", () => {
  const written = readdirSync(folder).sort();
  expect(written).toEqual(
    Object.keys(RUN)
      .map((sample) => `ray-job.${sample}.yaml`)
      .sort(),
  );
  for (const [sample, lacks] of Object.entries(NOT_TRIED))
    console.log(`[cluster] ${sample}: not tried, it takes ${lacks}`);
});

describe("kubectl create", () => {
  for (const [sample, { job: named, prints, byHand, shows }] of Object.entries(RUN)) {
    scenario(cluster, `sample ${sample} ends as Complete, and its log is where users look for it`, async (seen) => {
      const since = stopwatch();
      await cluster.kubectlSays(["create", "-f", path(sample)]);
      const created = await cluster.until("the RayJob", () =>
        cluster.rayJobs.store.list().find(({ metadata }) => metadata.name.startsWith(named)),
      );
      const { name } = created.metadata;
      if (byHand) await cluster.submitByHand(name, HAND, ...byHand);
      const job = await cluster.ended(name);
      seen(`${job.status?.jobDeploymentStatus} after ${since()}`);
      expect([await get(name, "jobStatus"), await get(name, "jobDeploymentStatus")]).toEqual(["SUCCEEDED", "Complete"]);
      expect(await logOf(job)).toMatch(prints);
      await shows?.(job);
    });
  }
});
