/**
 * What users of KubeRay reported, each in one sentence as they saw it turned into what they would have liked to see; on a
 * real API server, with its own Job controller and garbage collector. What takes minutes to see, or a node of one's own,
 * is shown in the simulator (test/sim/reports.test.ts); what is a matter of one decision, beside that.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { RayCluster, RayClusterSpec } from "../../src/api/raycluster.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { pods, rayClusters, rayJobs } from "../../src/machinery/kube/resources.ts";
import { fails, runsForEver } from "../sim/fakeRay.ts";
import { clusterSpec, rayJob } from "../support/manifests.ts";
import { type Scripts, type Stage, soon, swift, World } from "./world.ts";

const long = { ...runsForEver, pending: 200 };

let world: World;
beforeAll(async () => {
  // Nobody waits five minutes for a dashboard that is silent.
  world = await World.open({ env: { RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS: "20" } });
});
afterAll(() => world.close());

/** A test on a stage of its own, side by side with the others. */
function report(name: string, scripts: () => Scripts, tell: (stage: Stage) => Promise<void>): void {
  it.concurrent(name, async () => {
    const stage = await world.stage(scripts());
    await tell(stage);
    stage.judge();
  });
}

const condition = (job: Stored<RayJob>, type: string) => job.status?.conditions?.find((one) => one.type === type);
const uids = (objects: readonly Stored[]) => objects.map(({ metadata }) => metadata.uid).sort();
const cluster = (stage: Stage) => stage.pods.filter(({ metadata }) => metadata.labels?.["ray.io/node-type"]);
describe.concurrent("the submitter", () => {
  const belongings = (stage: Stage) => ({ pods: uids(cluster(stage)), clusters: uids(stage.of(rayClusters)) });
  const runsOn = async (stage: Stage, was: ReturnType<typeof belongings>) => {
    await stage.askedAgain();
    expect(stage.job?.status).toMatchObject({ jobDeploymentStatus: "Running", jobStatus: "RUNNING" });
    expect(belongings(stage)).toEqual(was);
    stage.end("SUCCEEDED");
    const { status } = await stage.phase("Complete");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, failed: 0 });
    expect(stage.submissions).toHaveLength(1);
  };

  report(
    "whose log stream drops, and which ends cleanly in the middle of the job, does not end the job",
    () => ({ jobs: [long] }),
    async (stage) => {
      await stage.create();
      await stage.running();
      const was = belongings(stage);
      await stage.kubelet.end(stage.submitters[0]!.metadata.uid, { exitCode: 0 });
      await stage.submitterJob("Complete");
      await runsOn(stage, was);
    },
  );

  report(
    "that is deleted in the middle of the job is made again, submits nothing, and the job's end is known",
    () => ({ jobs: [long] }),
    async (stage) => {
      await stage.create();
      await stage.running();
      const was = belongings(stage);
      const [first] = stage.submitters;
      await stage.client.delete(pods, stage.namespace, first!.metadata.name, { uid: first!.metadata.uid });
      await stage.until("another submitter to run", () =>
        stage.submitters.some(
          ({ metadata: { uid }, status }) => uid !== first!.metadata.uid && status?.phase === "Running",
        ),
      );
      await runsOn(stage, was);
    },
  );

  report(
    "evicted until its Job is out of retries does not fail the job that it had submitted",
    () => ({ jobs: [long] }),
    async (stage) => {
      await stage.create({ submitterConfig: { backoffLimit: 0 } });
      await stage.running();
      const was = belongings(stage);
      await stage.kubelet.end(stage.submitters[0]!.metadata.uid, { exitCode: 137, podReason: "Evicted" });
      await stage.submitterJob("Failed");
      await stage.condition("SubmitterHealthy", "False");
      await runsOn(stage, was);
      expect((await stage.events()).filter((event) => event.startsWith("Warning"))).toHaveLength(1);
    },
  );

  report(
    "that loses its connection twice and then sees the job's success turns no success into a failure",
    () => {
      const seen: string[] = [];
      return {
        jobs: [long],
        submitter({ metadata: { uid } }) {
          if (!seen.includes(uid)) seen.push(uid);
          return { boot: 100, ...(seen.length <= 2 && { failsAfterSubmission: 100 }) };
        },
      };
    },
    async (stage) => {
      await stage.create({ submitterConfig: { backoffLimit: 2 } });
      await stage.running();
      await stage.until("a third submitter", () => stage.submitters.length === 3);
      stage.end("SUCCEEDED");
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, failed: 0 });
      expect(stage.submissions).toHaveLength(1);
    },
  );

  report(
    "still has its cluster to fetch the last of the log from when the job has ended",
    () => ({ submitter: () => ({ boot: 100, hangs: true }) }),
    async (stage) => {
      await stage.create({ ttlSecondsAfterFinished: 0 });
      await stage.until("Ray to be done", () => [...(stage.ray?.jobs.values() ?? [])].some(({ endTime }) => endTime));
      await stage.askedAgain(1);
      await stage.kubelet.end(stage.submitters[0]!.metadata.uid, { exitCode: 0 });
      await stage.phase("Complete");
      await stage.released();
      const past = world.history.versions(stage.namespace);
      const going = past.findIndex(
        ({ type, object: { kind, metadata } }) =>
          kind === "RayCluster" && (type === "DELETED" || metadata.deletionTimestamp !== undefined),
      );
      const done = past.findIndex(
        ({ object }) =>
          object.metadata.labels?.["job-name"] === "demo" &&
          (object as { status?: { phase?: string } }).status?.phase === "Succeeded",
      );
      expect(done).toBeGreaterThan(-1);
      expect(going).toBeGreaterThan(done);
    },
  );

  report(
    "is not made, and burns no retries, before the dashboard serves",
    () => ({ dashboard: 6000 }),
    async (stage) => {
      await stage.create({ submitterConfig: { backoffLimit: 0 } });
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ executionAttempt: 0, failed: 0 });
      expect(stage.submitters).toHaveLength(1);
    },
  );
});

describe.concurrent("in HTTPMode", () => {
  const spec = { submissionMode: "HTTPMode" } as const;

  report(
    "a head that is replaced and knows no job is not given the job a second time",
    () => ({ jobs: [long] }),
    async (stage) => {
      await stage.create({ ...spec, backoffLimit: 0 });
      await stage.running();
      await stage.kubelet.restart(stage.head!.metadata.uid, { exitCode: 137, reason: "OOMKilled" });
      const job = await stage.phase("Failed");
      // By the Pod or by Ray's new session, whichever is seen first.
      expect(condition(job, "Failed")?.reason).toMatch(/^(HeadPodLost|RayJobLost)$/);
      await stage.released();
      expect(stage.submissions).toHaveLength(1);
    },
  );

  report(
    "a conflict on the status write after each submission makes no second submission",
    () => ({
      async gateway({ method, path, dashboard }, pass) {
        const answer = await pass();
        const namespace = dashboard.split(".")[1]!;
        if (method === "POST" && path === "/api/jobs/") {
          // Whatever the operator knows of the RayJob is old before it hears of its success.
          const metadata = { annotations: { touched: answer.body } };
          await world.client.patch(rayJobs, namespace, "demo", { metadata });
        }
        return answer;
      },
    }),
    async (stage) => {
      await stage.create(spec);
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ executionAttempt: 0, succeeded: 1 });
      expect(stage.asked("POST", /^\/api\/jobs\/$/)).toBe(1);
    },
  );

  let gaveUp = false;
  report(
    "a job server that takes a job but does not answer in time is asked before anything is submitted again",
    () => ({
      jobs: [long],
      async gateway({ method, path }, pass, hungUp) {
        const answer = await pass();
        if (method === "POST" && path === "/api/jobs/") {
          await hungUp;
          gaveUp = true;
        }
        return answer;
      },
    }),
    async (stage) => {
      await stage.create(spec);
      await stage.running();
      await stage.until("the operator to give its POST up", () => gaveUp);
      await stage.askedAgain();
      stage.end("SUCCEEDED");
      await stage.phase("Complete");
      expect(stage.asked("POST", /^\/api\/jobs\/$/)).toBe(1);
      expect(stage.submissions).toHaveLength(1);
    },
  );

  report(
    "a dashboard that refuses each submission ends the RayJob with what it said, and not never",
    () => ({
      gateway: async ({ method }, pass) => (method === "POST" ? { status: 500, body: "no space left" } : pass()),
    }),
    async (stage) => {
      await stage.create(spec);
      const { status } = await stage.phase("Failed");
      expect(status?.message).toContain("no space left");
      expect(stage.submissions).toEqual([]);
      await stage.released();
    },
  );
});

describe.concurrent("the verdict", () => {
  report(
    "of a deadline really stops the job in Ray, again when that failed, and is a terminal pair",
    () => {
      let stops = 0;
      return {
        jobs: [long],
        gateway: async ({ path }, pass) =>
          path.endsWith("/stop") && stops++ === 0 ? { status: 503, body: "busy" } : pass(),
      };
    },
    async (stage) => {
      await stage.create({ submissionMode: "HTTPMode" });
      await stage.running();
      await stage.change({ activeDeadlineSeconds: 1 });
      const { status } = await stage.phase("Failed");
      expect(status).toMatchObject({ reason: "DeadlineExceeded", jobStatus: "STOPPED" });
      // The first one did not come through.
      expect(stage.asked("POST", /\/stop$/)).toBeGreaterThan(0);
      await stage.released();
    },
  );

  it.concurrent("tells an application that failed from everything else that went wrong", async () => {
    const endings: Record<string, [Scripts, Partial<RayJob["spec"]>, ((stage: Stage) => Promise<unknown>)?]> = {
      application: [{ jobs: [fails(300, "exit code 7")] }, {}],
      submitter: [{ submitter: () => ({ boot: 100, failsEarly: true }) }, { submitterConfig: { backoffLimit: 0 } }],
      head: [{ jobs: [long] }, {}, async (stage) => stage.running().then(() => stage.kill(stage.head!))],
      dashboard: [
        { jobs: [long] },
        {},
        async (stage) => {
          await stage.running();
          stage.ray!.mood = 502;
        },
      ],
      deadline: [
        { jobs: [long] },
        {},
        async (stage) => stage.running().then(() => stage.change({ activeDeadlineSeconds: 1 })),
      ],
    };
    const told = await Promise.all(
      Object.entries(endings).map(async ([name, [scripts, spec, happens]]) => {
        const stage = await world.stage(scripts);
        await stage.create(spec);
        await happens?.(stage);
        const job = await stage.phase("Failed");
        stage.judge();
        return [name, condition(job, "Failed")?.reason] as const;
      }),
    );
    expect(Object.fromEntries(told)).toEqual({
      application: "ApplicationFailed",
      submitter: "SubmissionFailed",
      // By the Pod or by Ray's new session, whichever is seen first.
      head: expect.stringMatching(/^(HeadPodLost|RayJobLost)$/),
      dashboard: "StatusCheckTimeout",
      deadline: "DeadlineExceeded",
    });
  });
});

describe.concurrent("a RayJob", () => {
  report(
    "whose head never becomes ready ends at its deadline for that, and says what it waited for",
    () => ({ pod: () => ({ ...swift, ready: Number.POSITIVE_INFINITY }) }),
    async (stage) => {
      await stage.create({ preRunningDeadlineSeconds: 2 });
      const { status } = await stage.phase("Failed");
      expect(status?.reason).toBe("PreRunningDeadlineExceeded");
      await stage.released();
      expect(stage.submissions).toEqual([]);
    },
  );

  report(
    "born suspended shows no cluster that does not exist, and runs when it is resumed",
    () => ({}),
    async (stage) => {
      await stage.create({ suspend: true });
      await stage.phase("Suspended");
      expect(stage.past(({ status }) => status?.jobDeploymentStatus ?? "")).toEqual(["", "Suspended"]);
      expect(stage.past(({ status }) => status?.rayClusterName)).toEqual([undefined]);
      expect(stage.of(rayClusters)).toEqual([]);
      await stage.change({ suspend: false });
      await stage.phase("Complete");
      expect(stage.submissions).toHaveLength(1);
    },
  );

  it.concurrent.each([
    ["a name of 48 characters", "n".repeat(48)],
    ["a name that begins with a digit", "1st"],
  ])("with %s says at once what is wrong with it", async (_, name) => {
    const stage = await world.stage();
    const object = rayJob({}, name);
    await stage.client.create(rayJobs, { ...object, metadata: { name, namespace: stage.namespace } });
    const job = await stage.until("it to be refused", () => {
      const found = world.history.get<RayJob>("RayJob", stage.namespace, name);
      return found?.status?.jobDeploymentStatus === "ValidationFailed" && found;
    });
    expect(condition(job, "SpecValid")).toMatchObject({ status: "False", message: expect.stringContaining("name") });
    expect(stage.of(rayClusters)).toEqual([]);
  });
});

describe.concurrent("the next attempt", () => {
  report(
    "does not start while a worker of the last one is still Terminating, where BlockingRecreate asks for that",
    () => ({
      jobs: [fails(300, "exit code 7"), long],
      pod: ({ metadata: { labels } }) => ({
        ...swift,
        ...(labels?.["ray.io/node-type"] === "worker" &&
          labels["ray.io/execution-attempt"] === "0" && { terminate: Number.POSITIVE_INFINITY }),
      }),
    }),
    async (stage) => {
      await stage.create({ backoffLimit: 2, retryStrategy: { type: "BlockingRecreate" } });
      const worker = await stage.until("a worker", () =>
        stage.pods.find(({ metadata }) => metadata.labels?.["ray.io/node-type"] === "worker"),
      );
      const blocked = await stage.status("blocked", ({ conditions }) =>
        Boolean(conditions?.some(({ type, reason }) => type === "Retrying" && reason === "Blocked")),
      );
      expect(condition(blocked, "Retrying")?.message).toContain(worker.metadata.name);
      await stage.until("nothing but the worker to be left", () =>
        stage.pods.every(({ metadata }) => metadata.uid === worker.metadata.uid),
      );
      await stage.kill(worker);
      await stage.running();
      await stage.change({ suspend: true });
      await stage.phase("Suspended");
      await stage.change({ suspend: false });
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ executionAttempt: 2, failed: 1 });

      const past = world.history.versions(stage.namespace);
      const gone = past.findIndex(
        ({ type, object }) => type === "DELETED" && object.metadata.uid === worker.metadata.uid,
      );
      expect(gone).toBeGreaterThan(-1);
      const attempt = ({ object: { metadata } }: (typeof past)[number]) =>
        metadata.labels?.["ray.io/execution-attempt"];
      expect(past.findIndex((version) => attempt(version) === "1")).toBeGreaterThan(gone);
      const numbers = stage.past(({ status }) => status?.executionAttempt ?? -1);
      expect(numbers).toEqual([-1, 0, 1, 2]);
    },
  );
});

describe.concurrent("a RayCluster that others share", () => {
  for (const [how, job, phase] of [
    ["succeeds", soon(), "Complete"],
    ["fails", fails(300, "exit code 7"), "Failed"],
  ] as const) {
    report(
      `is left as it is by a job that ${how}, whatever the job says of a shutdown at its end`,
      () => ({ jobs: [job] }),
      async (stage) => {
        await stage.share();
        const was = stage.shared;
        await stage.select({ shutdownAfterJobFinishes: true, ttlSecondsAfterFinished: 0 });
        await stage.phase(phase);
        await stage.condition("ResourcesReleased", "True");
        expect(stage.shared).toEqual(was);
        expect(stage.submissions).toHaveLength(1);
      },
    );
  }

  report(
    "is not asked for by a job that would be tried again: that is refused, and the cluster stays",
    () => ({}),
    async (stage) => {
      await stage.share();
      const was = stage.shared;
      await stage.select({ backoffLimit: 1 });
      const { status } = await stage.phase("ValidationFailed");
      expect(status?.message).toContain("BackoffLimit is incompatible with ClusterSelector");
      expect(stage.shared).toEqual(was);
    },
  );

  report(
    "is rid of a job that passed its deadline, though the first stop failed, and lives",
    () => {
      let stops = 0;
      return {
        jobs: [long],
        gateway: async ({ path }, pass) =>
          path.endsWith("/stop") && stops++ === 0 ? { status: 503, body: "busy" } : pass(),
      };
    },
    async (stage) => {
      await stage.share();
      const was = stage.shared;
      await stage.select();
      await stage.running();
      await stage.change({ activeDeadlineSeconds: 1 });
      const { status } = await stage.phase("Failed");
      expect(status).toMatchObject({ reason: "DeadlineExceeded", jobStatus: "STOPPED" });
      expect(stage.asked("POST", /\/stop$/)).toBeGreaterThan(0);
      expect(stage.shared).toEqual(was);
    },
  );

  report(
    "is rid of a job that is suspended, and runs it under a new id when that is resumed",
    () => ({ jobs: [long, soon()] }),
    async (stage) => {
      await stage.share();
      const was = stage.shared;
      await stage.select();
      await stage.running();
      await stage.change({ suspend: true });
      await stage.phase("Suspended");
      expect([...stage.ray!.jobs.values()].map(({ status }) => status)).toEqual(["STOPPED"]);
      await stage.until("no submitter to be left", () => stage.submitters.length === 0);
      expect(stage.shared).toEqual(was);
      await stage.change({ suspend: false });
      const { status } = await stage.phase("Complete");
      expect(status).toMatchObject({ executionAttempt: 1, succeeded: 1, failed: 0 });
      expect(new Set(stage.submissions)).toHaveLength(2);
      expect(stage.shared).toEqual(was);
    },
  );

  report(
    "does not keep a job in Suspending that it was never given",
    () => ({ submitter: () => ({ boot: Number.POSITIVE_INFINITY }) }),
    async (stage) => {
      await stage.share();
      await stage.select();
      await stage.until("a submitter to run", () => stage.submitters.some(({ status }) => status?.phase === "Running"));
      await stage.change({ suspend: true });
      await stage.phase("Suspended");
      await stage.until("no submitter to be left", () => stage.submitters.length === 0);
      expect(stage.submissions).toEqual([]);
    },
  );
});

describe.concurrent("a RayCluster of its own", () => {
  const apply = (stage: Stage, spec: RayClusterSpec) =>
    stage.client.create(rayClusters, { metadata: { name: "own", namespace: stage.namespace }, spec } as KubeObject);
  const create = async (stage: Stage) => {
    await apply(stage, clusterSpec(1));
    await head(stage, "True");
  };
  /** Its HeadPodReady, once it is so. */
  const head = (stage: Stage, wanted: "True" | "False") =>
    stage.until(`HeadPodReady to be ${wanted}`, () => {
      const found = world.history.get<RayCluster>("RayCluster", stage.namespace, "own")?.status?.conditions;
      return found?.find(({ type, status }) => type === "HeadPodReady" && status === wanted);
    });

  report(
    "gets another head when its own was evicted",
    () => ({}),
    async (stage) => {
      await create(stage);
      const { uid } = stage.head!.metadata;
      await stage.kubelet.end(uid, { exitCode: 137, podReason: "Evicted" });
      await stage.until("another head", () => stage.head && stage.head.metadata.uid !== uid);
      await head(stage, "True");
    },
  );

  report(
    "makes a head that cannot live anew, but only after it has written down how often that went wrong",
    () => ({ pod: () => ({ ...swift, dies: { exitCode: 42, initContainer: "fetch-data" } }) }),
    async (stage) => {
      const spec = clusterSpec(0);
      spec.headGroupSpec.template.spec!.restartPolicy = "Never";
      await apply(stage, spec);
      const told = () => {
        const heads: string[] = [];
        const all = world.history.versions(stage.namespace).flatMap(({ type, object: { kind, metadata } }) => {
          const journal = kind === "RayCluster" && metadata.annotations?.["raykeeper.dev/pod-failures"];
          if (journal) return [`counted ${JSON.parse(journal).headgroup.count}`];
          if (kind !== "Pod") return [];
          if (!heads.includes(metadata.uid)) heads.push(metadata.uid);
          return type === "DELETED" ? [`deleted ${heads.indexOf(metadata.uid) + 1}`] : [];
        });
        return [...new Set(all)];
      };
      await stage.until(
        "two heads to be counted and deleted",
        () => told().includes("deleted 2") && told().length >= 4,
      );
      expect(told().slice(0, 4)).toEqual(["counted 1", "deleted 1", "counted 2", "deleted 2"]);
      const causes = world.history
        .versions(stage.namespace)
        .flatMap(({ object }) => (object as unknown as Stored<RayCluster>).status?.conditions ?? [])
        .map(({ message }) => message);
      expect(causes).toContainEqual(expect.stringContaining("init container fetch-data ended with exit code 42"));
    },
  );

  report(
    "gets a worker for one that cannot end because its node died, and a second head only when the first is gone",
    () => ({ pod: () => ({ ...swift, terminate: Number.POSITIVE_INFINITY }) }),
    async (stage) => {
      await create(stage);
      const ready = (type: string) => (pod: Stored<Pod>) =>
        pod.metadata.labels?.["ray.io/node-type"] === type &&
        pod.metadata.deletionTimestamp === undefined &&
        pod.status?.conditions?.some((one) => one.type === "Ready" && one.status === "True");
      const worker = await stage.until("a worker", () => stage.pods.find(ready("worker")));
      await stage.kubelet.lose(worker.metadata.uid);
      await stage.client.delete(pods, stage.namespace, worker.metadata.name);
      await stage.until("another worker", () => stage.pods.find(ready("worker")));
      expect(uids(stage.pods)).toContain(worker.metadata.uid);

      const first = stage.head!;
      await stage.kubelet.lose(first.metadata.uid);
      await stage.client.delete(pods, stage.namespace, first.metadata.name);
      await head(stage, "False");
      // Somebody says that the node is out of service, and Kubernetes takes the Pod's word no longer.
      await stage.kill(first);
      await stage.until("another head", () => stage.pods.find(ready("head")));
      const past = world.history.versions(stage.namespace);
      const gone = past.findIndex(
        ({ type, object }) => type === "DELETED" && object.metadata.uid === first.metadata.uid,
      );
      expect(gone).toBeGreaterThan(-1);
      const next = past.findIndex(({ object }) => object.metadata.uid === stage.head!.metadata.uid);
      expect(next).toBeGreaterThan(gone);
    },
  );

  report(
    "whose workers wait for the head in an init container gives that the worker's memory and CPU",
    () => ({}),
    async (stage) => {
      const spec = clusterSpec(1);
      const [container] = spec.workerGroupSpecs![0]!.template.spec!.containers;
      container!.resources = { limits: { cpu: "2", memory: "4Gi", "nvidia.com/gpu": "1" } };
      await apply(stage, spec);
      const worker = await stage.until("a worker", () => stage.pods.find(({ spec }) => spec?.initContainers?.length));
      const [wait] = worker.spec!.initContainers!;
      expect(wait!.name).toBe("wait-gcs-ready");
      // The requests that a limit brings along are the API server's.
      expect(wait!.resources).toEqual({ limits: { cpu: "2", memory: "4Gi" }, requests: { cpu: "2", memory: "4Gi" } });
    },
  );

  report(
    "with several hosts a replica does not make Pods to delete them again: it is refused until it is built",
    () => ({}),
    async (stage) => {
      const spec = clusterSpec(1);
      await apply(stage, { ...spec, workerGroupSpecs: [{ ...spec.workerGroupSpecs![0]!, numOfHosts: 4 }] });
      const refused = await stage.until("it to be refused", () => {
        const { status } = world.history.get<RayCluster>("RayCluster", stage.namespace, "own") ?? {};
        return status?.reason?.includes("numOfHosts") && status;
      });
      expect(refused.reason).toContain("set it to 1");
      expect(world.history.versions(stage.namespace).filter(({ object }) => object.kind === "Pod")).toEqual([]);
    },
  );

  report(
    "does not call itself ready while its head is not",
    () => ({ pod: () => ({ ...swift, ready: 3000 }) }),
    async (stage) => {
      await create(stage);
      await stage.kubelet.restart(stage.head!.metadata.uid, { exitCode: 1 });
      expect((await head(stage, "False")).reason).not.toBe("");
      await head(stage, "True");
      await stage.client.delete(pods, stage.namespace, stage.head!.metadata.name, { gracePeriodSeconds: 0 });
      await head(stage, "False");
      await head(stage, "True");
    },
  );
});
