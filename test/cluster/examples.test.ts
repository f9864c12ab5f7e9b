/**
 * Every manifest under examples/, given to `raykeeper run` as a user would, on real containers. Only their requests are
 * made small. The one whose attempts must not overlap is judged by the node's own clock.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { parseAllDocuments, stringify } from "yaml";
import { ANNOTATION, LABEL, NODE_TYPE } from "../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { rayClusters } from "../../src/machinery/kube/resources.ts";
import { raykeeper, root } from "../e2e/command.ts";
import { ended, followPods, type Life, started } from "../support/podLives.ts";
import { scenario, small, useCluster } from "./cluster.ts";

const cluster = useCluster("examples");
const folder = join(root, "examples");
const watching = new AbortController();
afterAll(() => watching.abort());
afterEach(async () => {
  await Promise.all(cluster.rayJobs.store.list().map(({ metadata }) => cluster.remove(metadata.name)));
});

interface Expected {
  readonly code: number;
  /** What the user sees. */
  readonly prints: RegExp;
  readonly status: object;
  /** What becomes of its RayCluster; it goes at once where nothing is said. */
  readonly cluster?: "stays" | "goes later";
}
const SQUARES = /squares: \[0, 1, 4, 9, 16\]/;
const succeeded = { jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" };
const EXPECTED: Readonly<Record<string, Expected>> = {
  "rayjob.yaml": { code: 0, prints: /4 tasks on 2 workers/, status: succeeded },
  "rayjob-http.yaml": { code: 0, prints: SQUARES, status: succeeded },
  "rayjob-sidecar.yaml": { code: 0, prints: SQUARES, status: succeeded },
  "rayjob-token.yaml": { code: 0, prints: /without the token: 401\n.*squares: \[0, 1, 4, 9, 16\]/s, status: succeeded },
  "rayjob-submitter.yaml": { code: 0, prints: SQUARES, status: succeeded },
  "rayjob-selected-cluster.yaml": {
    code: 0,
    prints: SQUARES,
    status: { ...succeeded, rayClusterName: "shared" },
    cluster: "stays",
  },
  "rayjob-deletion-rules.yaml": { code: 0, prints: SQUARES, status: succeeded, cluster: "goes later" },
  "rayjob-fails.yaml": {
    code: 1,
    prints: /this program always fails/,
    status: { jobDeploymentStatus: "Failed", jobStatus: "FAILED", reason: "AppFailed" },
  },
};
/** These have tests of their own below. */
const RETRY = "rayjob-retry.yaml";
const INTERACTIVE = "rayjob-interactive.yaml";

const manifest = (file: string): KubeObject[] =>
  parseAllDocuments(readFileSync(join(folder, file), "utf8")).map((document) => small(document.toJS() as KubeObject));

/** Runs it to its end; answers with what was printed. */
async function runs(file: string, code: number, spec: Partial<RayJob["spec"]> = {}): Promise<string> {
  const input = manifest(file)
    .map((object) =>
      stringify(object.kind === "RayJob" ? { ...object, spec: { ...(object as RayJob).spec, ...spec } } : object),
    )
    .join("---\n");
  const args = ["run", "--kubeconfig", cluster.kubeconfig, "-n", cluster.namespace, "-"];
  const { stdout, stderr, ...finished } = await raykeeper(args, { input }).finished;
  expect(finished.code, `${stdout}\n${stderr}`).toBe(code);
  return stdout;
}

const jobOf = (file: string): string => manifest(file).find(({ kind }) => kind === "RayJob")!.metadata.name!;

it("there is no example that nobody runs here", () => {
  expect(readdirSync(folder).sort()).toEqual([...Object.keys(EXPECTED), RETRY, INTERACTIVE].sort());
});

describe("raykeeper run", () => {
  for (const [file, expected] of Object.entries(EXPECTED)) {
    scenario(cluster, `examples/${file} ends as it says, with exit code ${expected.code}`, async (seen) => {
      const printed = await runs(file, expected.code);
      expect(printed).toMatch(expected.prints);
      const { status, metadata } = await cluster.ended(jobOf(file));
      expect(status).toMatchObject({ executionAttempt: 0, ...expected.status });
      const [from, to] = [metadata.creationTimestamp, status!.endTime!].map((time) => Date.parse(time));
      seen(`${status?.jobDeploymentStatus} ${(to! - from!) / 1000} s after its creation`);
      const left = () => cluster.rayClusters.store.get(cluster.namespace, status!.rayClusterName!);
      if (!expected.cluster) await cluster.until("its RayCluster to be gone", () => left() === undefined);
      else expect(left()?.metadata.deletionTimestamp).toBeUndefined();
      if (expected.cluster === "stays") {
        await cluster.remove(metadata.name);
        await cluster.client.delete(rayClusters, cluster.namespace, status!.rayClusterName!);
      }
    });
  }
});

scenario(
  cluster,
  "examples/rayjob-token.yaml in HTTPMode has its log through the API server, which hands the token on",
  async () => {
    const spec = { submissionMode: "HTTPMode", ttlSecondsAfterFinished: 30 } as const;
    expect(await runs("rayjob-token.yaml", 0, spec)).toMatch(/without the token: 401\n.*squares: \[0, 1, 4, 9, 16\]/s);
    expect((await cluster.ended("token")).status).toMatchObject(succeeded);
  },
);

scenario(
  cluster,
  `examples/${INTERACTIVE} waits for its user's job, follows it, and its cluster goes`,
  async (seen) => {
    const input = manifest(INTERACTIVE)
      .map((object) => stringify(object))
      .join("---\n");
    await cluster.kubectlSays(["create", "-f", "-"], { input });
    await cluster.submitByHand("interactive", "mine", "python", "-c", "import ray; ray.init()");
    const { status } = await cluster.ended("interactive");
    expect(status).toMatchObject({ ...succeeded, executionAttempt: 0, jobId: "mine" });
    await cluster.until(
      "its RayCluster to be gone",
      () => !cluster.rayClusters.store.get(cluster.namespace, status!.rayClusterName!),
    );
    seen("Waiting, then Running with the user's id, Complete, and the cluster gone");
  },
);

const noOverlap = `examples/${RETRY} fails twice, then succeeds, and never has Pods of two attempts, though its workers take 20 s to end`;
scenario(cluster, noOverlap, async (seen) => {
  const lives = await followPods(cluster.client, cluster.namespace, watching.signal);
  // What the workers say at their ends; nobody can ask for it afterwards.
  const words = new Map<string, Promise<string[]>>();
  cluster.pods.onChange(({ new: pod }) => {
    if (pod?.metadata.labels?.[LABEL.nodeType] !== NODE_TYPE.worker || words.has(pod.metadata.uid)) return;
    if (pod.status?.phase === "Running") words.set(pod.metadata.uid, cluster.followLog(pod));
  });

  const printed = await runs(RETRY, 0);
  expect([...printed.matchAll(/^attempt (\d) begins$/gm)].map(([, number]) => number)).toEqual(["0", "1", "2"]);
  const job = await cluster.ended("retry");
  expect(job.status).toMatchObject({ ...succeeded, executionAttempt: 2, failed: 2, succeeded: 1 });
  for (const key of ["jobId", "rayClusterName", "raySession", "headPodUID"] as const) {
    expect(new Set(job.status?.attempts?.map((record) => record[key])).size, key).toBe(3);
  }

  everyPodSaysWhoseItIs(lives, job);
  const of = (attempt: number) => lives.filter((life) => life.attempt === String(attempt));
  for (const attempt of [0, 1]) {
    const [before, after] = [of(attempt), of(attempt + 1)];
    // Nothing of the next one is even created before the last Pod is gone; so no container runs, either.
    expect(Math.max(...before.map(({ gone }) => gone))).toBeLessThan(Math.min(...after.map(({ made }) => made)));
    const [lastEnd, firstStart] = [Math.max(...before.map(ended)), Math.min(...after.map(started))];
    expect(lastEnd).toBeLessThanOrEqual(firstStart);
    seen(
      `attempt ${attempt}'s last container ended ${(firstStart - lastEnd) / 1000} s before attempt ${attempt + 1}'s first began`,
    );
    // There was something to wait for: the worker was given its time, and took it.
    const worker = before.find(isWorker)!;
    // Both times are cut to seconds.
    expect(ended(worker) - Number(worker.told)).toBeGreaterThanOrEqual(19_000);
    expect(worker.last.status?.containerStatuses?.map(({ state }) => state?.terminated?.exitCode)).toEqual([0]);
    // The Downward API reads the annotation here, and the label in the head, whose program has printed it above.
    const said = await words.get(worker.last.metadata.uid);
    expect(said).toContain(`attempt ${attempt}: told to end, takes 20 s for it`);
  }
});

const isWorker = ({ last }: Life) => last.metadata.labels?.[LABEL.nodeType] === NODE_TYPE.worker;

function everyPodSaysWhoseItIs(lives: readonly Life[], job: Stored<RayJob>): void {
  expect(lives.map(({ attempt }) => attempt).sort()).toEqual([0, 0, 0, 1, 1, 1, 2, 2, 2].map(String));
  for (const { name, last, attempt } of lives) {
    expect(last.metadata.labels?.[LABEL.rayJobUID], name).toBe(job.metadata.uid);
    expect(last.metadata.annotations?.[ANNOTATION.executionAttempt], name).toBe(attempt);
  }
}
