/**
 * The lives a RayJob may have, each told as what a user does, what happens, and how it must end; whether or not the
 * operator is killed on the way.
 */
import { expect } from "vitest";
import { jobs, rayClusters } from "../../src/machinery/kube/resources.ts";
import { fails, runsForEver } from "../sim/fakeRay.ts";
import { type Scripts, type Stage, soon } from "./world.ts";

export type Mode = "K8sJobMode" | "HTTPMode";
const BOTH: readonly Mode[] = ["K8sJobMode", "HTTPMode"];

export interface Lifecycle {
  readonly name: string;
  readonly modes: readonly Mode[];
  /** Made anew for each life. */
  readonly scripts?: () => Scripts;
  live(stage: Stage, submissionMode: Mode): Promise<void>;
}

const long = { ...runsForEver, pending: 200 };
const bad = () => fails(800, "exit code 7");

export const lifecycles: readonly Lifecycle[] = [
  {
    name: "succeeds, and its cluster goes",
    modes: BOTH,
    async live(stage, submissionMode) {
      await stage.create({ submissionMode });
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, succeeded: 1, failed: 0 });
      await stage.released();
      expect(stage.submissions).toHaveLength(1);
    },
  },
  {
    name: "fails, and says what Ray says",
    modes: BOTH,
    scripts: () => ({ jobs: [bad()] }),
    async live(stage, submissionMode) {
      await stage.create({ submissionMode });
      const { status } = await stage.phase("Failed");
      expect(status).toMatchObject({ jobStatus: "FAILED", reason: "AppFailed", message: "exit code 7", failed: 1 });
      await stage.released();
      expect(stage.submissions).toHaveLength(1);
    },
  },
  {
    name: "fails, and succeeds at the second try",
    modes: BOTH,
    scripts: () => ({ jobs: [bad(), soon()] }),
    async live(stage, submissionMode) {
      await stage.create({ submissionMode, backoffLimit: 2 });
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ executionAttempt: 1, failed: 1, succeeded: 1, jobStatus: "SUCCEEDED" });
      expect(status?.attempts?.map(({ number, jobStatus }) => [number, jobStatus])).toEqual([
        [0, "FAILED"],
        [1, "SUCCEEDED"],
      ]);
      await stage.released();
      expect(stage.submissions).toHaveLength(2);
    },
  },
  {
    name: "fails, and is tried again when nothing of its first try is left",
    modes: BOTH,
    scripts: () => ({ jobs: [bad(), soon()] }),
    async live(stage, submissionMode) {
      await stage.create({ submissionMode, backoffLimit: 2, retryStrategy: { type: "BlockingRecreate" } });
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ executionAttempt: 1, failed: 1, succeeded: 1, jobStatus: "SUCCEEDED" });
      await stage.released();
      expect(stage.submissions).toHaveLength(2);
    },
  },
  {
    name: "fails as often as it may, and no oftener",
    modes: BOTH,
    scripts: () => ({ jobs: [bad(), bad(), bad()] }),
    async live(stage, submissionMode) {
      await stage.create({ submissionMode, backoffLimit: 2 });
      const { status } = await stage.phase("Failed");
      expect(status).toMatchObject({ executionAttempt: 2, failed: 3, succeeded: 0, reason: "AppFailed" });
      await stage.released();
      expect(stage.submissions).toHaveLength(3);
    },
  },
  {
    name: "is suspended while it runs, and runs to its end when resumed",
    modes: BOTH,
    scripts: () => ({ jobs: [long, soon()] }),
    async live(stage, submissionMode) {
      await stage.create({ submissionMode });
      await stage.running();
      await stage.change({ suspend: true });
      await stage.phase("Suspended");
      await stage.change({ suspend: false });
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ executionAttempt: 1, failed: 0, succeeded: 1 });
      await stage.released();
      expect(stage.submissions).toHaveLength(2);
    },
  },
  {
    name: "is deleted while it runs: stopped in Ray, and nothing is left",
    modes: BOTH,
    scripts: () => ({ jobs: [long] }),
    async live(stage, submissionMode) {
      await stage.create({ submissionMode });
      await stage.running();
      await stage.delete();
      await stage.nothingLeft();
      expect(stage.asked("POST", /\/stop$/)).toBeGreaterThan(0);
      expect(stage.submissions).toHaveLength(1);
    },
  },
  {
    name: "exceeds its deadline: stopped in Ray, and not tried again",
    modes: BOTH,
    scripts: () => ({ jobs: [long] }),
    async live(stage, submissionMode) {
      await stage.create({ submissionMode, backoffLimit: 3 });
      await stage.running();
      // A deadline that has passed already, so that the test waits for nothing.
      await stage.change({ activeDeadlineSeconds: 1 });
      const { status } = await stage.phase("Failed");
      expect(status).toMatchObject({ reason: "DeadlineExceeded", executionAttempt: 0 });
      expect(stage.asked("POST", /\/stop$/)).toBeGreaterThan(0);
      await stage.released();
      expect(stage.submissions).toHaveLength(1);
    },
  },
  {
    name: "loses its head: the attempt has failed, and the next one succeeds on a cluster of its own",
    modes: BOTH,
    scripts: () => ({ jobs: [long, soon()] }),
    async live(stage, submissionMode) {
      await stage.create({ submissionMode, backoffLimit: 1 });
      const before = await stage.running();
      await stage.kill(stage.head!);
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ executionAttempt: 1, failed: 1, succeeded: 1 });
      expect(status?.rayClusterName).not.toBe(before.status?.rayClusterName);
      await stage.released();
      expect(stage.submissions).toHaveLength(2);
    },
  },
  {
    name: "loses its submitter after the job was seen running, and succeeds all the same",
    modes: ["K8sJobMode"],
    scripts: () => ({ jobs: [long] }),
    async live(stage, submissionMode) {
      await stage.create({ submissionMode });
      await stage.running();
      await stage.until("a submitter to be there", () => stage.submitters[0]).then((pod) => stage.kill(pod));
      stage.end("SUCCEEDED");
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, failed: 0 });
      await stage.released();
      expect(stage.submissions).toHaveLength(1);
    },
  },
  {
    name: "loses its submitter's Job before anything was submitted, and submits once",
    modes: ["K8sJobMode"],
    scripts() {
      let first: string | undefined;
      return {
        submitter({ metadata: { uid } }) {
          first ??= uid;
          return { boot: uid === first ? Number.POSITIVE_INFINITY : 100 };
        },
      };
    },
    async live(stage, submissionMode) {
      await stage.create({ submissionMode });
      const uid = await stage.until("a submitter's Pod to run", () =>
        stage.submitters.some(({ status }) => status?.phase === "Running")
          ? stage.of(jobs)[0]?.metadata.uid
          : undefined,
      );
      expect(stage.submissions).toEqual([]);
      await stage.client.delete(jobs, stage.namespace, "demo", { uid, propagation: "Background" });
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, failed: 0 });
      await stage.released();
      expect(stage.submissions).toHaveLength(1);
    },
  },
  {
    name: "loses its RayCluster by a user's hand: the attempt has failed, and the next one succeeds",
    modes: BOTH,
    scripts: () => ({ jobs: [long, soon()] }),
    async live(stage, submissionMode) {
      await stage.create({ submissionMode, backoffLimit: 1 });
      await stage.running();
      await stage.client.delete(rayClusters, stage.namespace, stage.of(rayClusters)[0]!.metadata.name);
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ executionAttempt: 1, failed: 1, succeeded: 1 });
      await stage.released();
      expect(stage.submissions).toHaveLength(2);
    },
  },
  {
    name: "is deleted and made anew under the same name: the namesake is a job of its own",
    modes: BOTH,
    scripts: () => ({ jobs: [long, soon()] }),
    async live(stage, submissionMode) {
      await stage.create({ submissionMode });
      const { metadata } = await stage.running();
      await stage.delete();
      await stage.until("the RayJob to be gone", () => stage.job === undefined);
      await stage.create({ submissionMode });
      const job = await stage.phase("Complete");
      expect(job.metadata.uid).not.toBe(metadata.uid);
      expect(job.status).toMatchObject({ executionAttempt: 0, succeeded: 1, failed: 0 });
      await stage.released();
      expect(stage.submissions).toHaveLength(2);
    },
  },
  {
    name: "on somebody else's cluster succeeds, and leaves it as it was",
    modes: BOTH,
    async live(stage, submissionMode) {
      await stage.share();
      const was = stage.shared;
      await stage.select({ submissionMode });
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, succeeded: 1 });
      await stage.condition("ResourcesReleased", "True");
      expect(stage.submissions).toHaveLength(1);
      expect(stage.shared).toEqual(was);
    },
  },
  {
    name: "on somebody else's cluster is suspended while it runs, and runs to its end when resumed",
    modes: BOTH,
    scripts: () => ({ jobs: [long, soon()] }),
    async live(stage, submissionMode) {
      await stage.share();
      const was = stage.shared;
      await stage.select({ submissionMode });
      await stage.running();
      await stage.change({ suspend: true });
      await stage.phase("Suspended");
      await stage.until("the job to be stopped", () =>
        [...stage.ray!.jobs.values()].every(({ status }) => status === "STOPPED"),
      );
      await stage.change({ suspend: false });
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ executionAttempt: 1, failed: 0, succeeded: 1 });
      expect(stage.submissions).toHaveLength(2);
      expect(stage.shared).toEqual(was);
    },
  },
  {
    name: "on somebody else's cluster is deleted while it runs: stopped in Ray, and the cluster lives",
    modes: BOTH,
    scripts: () => ({ jobs: [long] }),
    async live(stage, submissionMode) {
      await stage.share();
      const was = stage.shared;
      await stage.select({ submissionMode });
      await stage.running();
      await stage.delete();
      await stage.until("the RayJob and its submitter to be gone", () => !stage.job && stage.of(jobs).length === 0);
      await stage.until("the job to be stopped", () =>
        [...stage.ray!.jobs.values()].every(({ status }) => status === "STOPPED"),
      );
      expect(stage.submissions).toHaveLength(1);
      expect(stage.shared).toEqual(was);
    },
  },
];

/** Each lifecycle in each mode, with a name for the test. */
export const lives = lifecycles.flatMap(({ modes, ...lifecycle }) =>
  modes.map((mode) => ({ ...lifecycle, mode, title: `a RayJob in ${mode} ${lifecycle.name}` })),
);
