/**
 * What only a real kubelet and scheduler say of Pods that cannot start; and what its user is told, by the RayJob's
 * conditions, by `raykeeper explain`, and by what to do about it.
 */
import { afterAll, beforeAll, expect } from "vitest";
import type { PodSpec } from "../../src/api/kubernetes.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { findCondition } from "../../src/domain/rayjob/conditions.ts";
import { raykeeper } from "../e2e/command.ts";
import { scenario, smallRayJob, useCluster } from "./cluster.ts";

const cluster = useCluster("start");

interface Trouble {
  readonly name: string;
  readonly title: string;
  /** What is wrong with the head's Pod. */
  readonly change: (pod: PodSpec) => void;
  /** The RayJob's condition Started says so. */
  readonly condition: RegExp;
  /** `raykeeper explain` says so, and advises so. */
  readonly explains: RegExp;
  readonly advises: RegExp;
}

const volume = (pod: PodSpec, source: object) => {
  pod.volumes = [...(pod.volumes ?? []), { name: "data", ...source }];
  const [head] = pod.containers;
  head!.volumeMounts = [...(head!.volumeMounts ?? []), { name: "data", mountPath: "/data" }];
};

const TROUBLES: readonly Trouble[] = [
  {
    name: "image",
    title: "an image that cannot be pulled",
    change: (pod) => {
      pod.containers[0]!.image = "registry.invalid/team/ray:2.56.0";
    },
    condition: /container ray-head: (ErrImagePull|ImagePullBackOff): .*registry\.invalid\/team\/ray:2\.56\.0/,
    explains: /registry\.invalid\/team\/ray:2\.56\.0/,
    advises: /Correct the image's name or tag/,
  },
  {
    name: "claim",
    title: "a PersistentVolumeClaim that does not exist",
    change: (pod) => volume(pod, { persistentVolumeClaim: { claimName: "results" } }),
    condition: /cannot be scheduled: .*persistentvolumeclaim "results" not found/,
    explains: /persistentvolumeclaim "results" not found/,
    advises: /Create the PersistentVolumeClaim results/,
  },
  {
    name: "volume",
    title: "a ConfigMap that does not exist, as a volume",
    change: (pod) => volume(pod, { configMap: { name: "program" } }),
    // The Pod's status has nothing of it: kubelet tells it in events only.
    condition: /cannot get a volume: FailedMount: .*configmap "program" not found/,
    explains: /configmap "program" not found/,
    advises: /Create the ConfigMap program/,
  },
  {
    name: "variable",
    title: "a ConfigMap that does not exist, for a variable",
    change: (pod) => {
      const from = { configMapKeyRef: { name: "settings", key: "mode" } };
      pod.containers[0]!.env = [...(pod.containers[0]!.env ?? []), { name: "MODE", valueFrom: from }];
    },
    condition: /container ray-head: CreateContainerConfigError: configmap "settings" not found/,
    explains: /configmap "settings" not found/,
    advises: /Create the ConfigMap settings/,
  },
  {
    name: "memory",
    title: "less memory than Ray needs to start",
    change: (pod) => {
      pod.containers[0]!.resources = { requests: { cpu: "50m", memory: "60Mi" }, limits: { memory: "60Mi" } };
    },
    condition: /container ray-head.* was killed for using more memory than its limit \(OOMKilled/,
    explains: /OOMKilled/,
    advises: /Give (container ray-head|it) more memory/,
  },
];

beforeAll(async () => {
  await Promise.all(
    TROUBLES.map(({ name, change }) => {
      const job: RayJob = smallRayJob(name, { entrypoint: "true" });
      change(job.spec.rayClusterSpec!.headGroupSpec.template.spec!);
      return cluster.apply(job);
    }),
  );
});
afterAll(() => Promise.all(TROUBLES.map(({ name }) => cluster.remove(name))));

for (const { name, title, condition, explains, advises } of TROUBLES) {
  scenario(cluster, `${title}: the user is told so, and what to do`, async (seen) => {
    const job = await cluster.status(name, `the condition to say ${condition}`, (status) =>
      condition.test(findCondition(status, "Started")?.message ?? ""),
    );
    seen(`condition: ${findCondition(job.status!, "Started")!.message}`);
    const explained = async () => {
      const args = ["explain", "rayjob", name, "-n", cluster.namespace, "--kubeconfig", cluster.kubeconfig];
      const { stdout, stderr } = await raykeeper(args).finished;
      return stdout + stderr;
    };
    // What it reads (events among it) may come a little later.
    await expect.poll(explained, { timeout: 120_000, interval: 2000 }).toMatch(explains);
    const text = await explained();
    expect(text).toMatch(advises);
    seen(`raykeeper explain:\n${text}`);
    const { status } = cluster.rayJobs.store.get(cluster.namespace, name)!;
    expect(status).toMatchObject({ jobDeploymentStatus: "Initializing", executionAttempt: 0 });
  });
}
