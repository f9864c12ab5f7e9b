import { describe, expect, it } from "vitest";
import type { Event, Pod } from "../../api/kubernetes.ts";
import { LABEL } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { RayJobStatus } from "../../api/rayjob.ts";
import { conditionAdvice, phaseAdvice } from "./advice.ts";
import { type Explained, type Explanation, explain } from "./explain.ts";
import {
  at,
  CLUSTER,
  decide,
  HEAD_UID,
  headPod,
  headService,
  JOB_ID,
  NAME,
  observed,
  rayCluster,
  rayJob,
  record,
  says,
  seenRunning,
  statusWith,
  submitted,
  submitterJob,
  UID,
  unknownToRay,
  wire,
  written,
} from "./testing.ts";
import { tokenTrouble } from "./tokenTrouble.ts";

const NOW = "12:02:00";

/** What explain says at that time of an observation, the rest of which is usual. */
const explained = (changes: Partial<Explained>, now = NOW): Explanation =>
  explain({ ...observed(), events: [], ...changes }, at(now));

const starting = (spec = {}) =>
  rayJob(
    spec,
    statusWith(record(), {
      jobDeploymentStatus: "Initializing",
      conditions: [
        condition("Started", "False", "WaitingForCluster", `Waiting for RayCluster ${CLUSTER} to be ready.`),
      ],
    }),
  );

const condition = (type: string, status: "True" | "False", reason: string, message = "", time = "12:00:00") => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: wire(time),
});

/** A job whose head Pod does not come up, for what its status says. */
const held = (status: object, extra: Partial<Explained> = {}) =>
  explained({
    job: starting(),
    rayClusters: [rayCluster({ ready: false })],
    pods: [headPod({ status: { phase: "Pending", conditions: [], containerStatuses: [], ...status } })],
    ...extra,
  });

const waiting = (reason: string, message: string, lastState?: object) => ({
  containerStatuses: [{ name: "ray-head", ready: false, state: { waiting: { reason, message } }, lastState }],
});

const unschedulable = (message: string) => ({
  conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }],
});

const warning = (reason: string, note: string, uid = HEAD_UID) =>
  ({
    metadata: { name: "e", uid: `e-${note}`, resourceVersion: "1", creationTimestamp: wire("12:01:00") },
    type: "Warning",
    reason,
    note,
    regarding: { kind: "Pod", uid },
  }) as unknown as Stored<Event>;

const texts = (list: readonly { text: string }[]) => list.map(({ text }) => text).join("\n");
const commands = ({ advice }: Explanation) => advice.flatMap(({ command }) => command ?? []);

describe("a RayJob whose cluster does not start", () => {
  it("waits for an image that cannot be pulled, and its template is to be corrected", () => {
    const said = held(waiting("ImagePullBackOff", 'Back-off pulling image "rayproject/ray:2.5x"'));
    expect(said.why).toContain(`Waiting for RayCluster ${CLUSTER} to be ready: Pod ${CLUSTER}-head`);
    expect(said.waits).toEqual([
      {
        kind: "Pod",
        name: `${CLUSTER}-head`,
        node: "node-1",
        since: wire("12:00:02"),
        reason: "ImagePullBackOff",
        text: `Pod ${CLUSTER}-head is not starting: container ray-head: ImagePullBackOff: Back-off pulling image "rayproject/ray:2.5x" (node node-1).`,
      },
    ]);
    expect(texts(said.advice)).toContain("spec.rayClusterSpec.headGroupSpec.template.spec.containers");
    expect(texts(said.advice)).toContain("imagePullSecrets");
    expect(commands(said)).toContain("raykeeper run --replace -n default demo.yaml");
  });

  it("names the worker group whose image it is", () => {
    const worker = headPod({
      metadata: {
        name: `${CLUSTER}-small-worker-x7k2p`,
        uid: "w",
        labels: { [LABEL.cluster]: CLUSTER, [LABEL.nodeType]: "worker", [LABEL.group]: "small" },
      },
      status: { phase: "Pending", conditions: [], ...waiting("ErrImagePull", "no such image") },
    });
    const job = starting();
    job.spec.rayClusterSpec!.workerGroupSpecs = [{ groupName: "big" }, { groupName: "small" }] as never;
    const said = explained({ job, rayClusters: [rayCluster({ ready: false })], pods: [headPod(), worker] });
    expect(texts(said.advice)).toContain("spec.rayClusterSpec.workerGroupSpecs[1].template.spec");
  });

  it.each([
    ["Insufficient cpu", "0/3 nodes are available: 3 Insufficient cpu.", "No node has enough cpu free"],
    ["taint", "0/1 nodes are available: 1 node(s) had untolerated taint {gpu: x}.", "add tolerations"],
    ["selector", "0/1 nodes: 1 node(s) didn't match Pod's node affinity/selector.", "nodeSelector and affinity"],
    ["claim", "pod has unbound immediate PersistentVolumeClaims.", "A PersistentVolumeClaim of the Pod has no volume"],
  ])("says what keeps it from being scheduled: %s", (_, message, advice) => {
    const said = held(unschedulable(message));
    expect(said.waits[0]).toMatchObject({ reason: "Unschedulable", text: expect.stringContaining(message) });
    expect(texts(said.advice)).toContain(advice);
  });

  it("names a PersistentVolumeClaim that is missing, which the scheduler tells", () => {
    const said = held(unschedulable('0/1 nodes are available: persistentvolumeclaim "data" not found.'));
    expect(texts(said.advice)).toContain("Create the PersistentVolumeClaim data in namespace default");
  });

  it.each(["ConfigMap", "Secret"])("names a %s that is missing in a container's environment", (kind) => {
    const said = held(waiting("CreateContainerConfigError", `${kind.toLowerCase()} "settings" not found`));
    expect(texts(said.waits)).toContain(`${kind.toLowerCase()} "settings" not found`);
    expect(texts(said.advice)).toContain(`Create the ${kind} settings in namespace default`);
    expect(commands(said)).toEqual([`kubectl get -n default ${kind.toLowerCase()}`]);
  });

  it.each(["configmap", "secret"])("names a %s that is missing as a volume, which only events tell", (kind) => {
    const note = `MountVolume.SetUp failed for volume "code" : ${kind} "code" not found`;
    const later = "Unable to attach or mount volumes: unmounted volumes=[code]: timed out waiting for the condition";
    const said = held(waiting("ContainerCreating", ""), {
      events: [warning("FailedMount", note), warning("FailedMount", later), warning("FailedMount", "other", "x")],
    });
    expect(said.waits[0]?.text).toBe(`Pod ${CLUSTER}-head cannot get a volume: FailedMount: ${note} (node node-1).`);
    expect(said.why).toContain(note);
    expect(texts(said.advice)).toMatch(/Create the (ConfigMap|Secret) code/);
  });

  it("does not hold an old volume warning against a Pod that has started", () => {
    const said = held(
      {
        phase: "Running",
        conditions: [{ type: "Ready", status: "False", reason: "ContainersNotReady" }],
        containerStatuses: [{ name: "ray-head", ready: false, state: { running: {} } }],
      },
      { events: [warning("FailedMount", 'configmap "code" not found')] },
    );
    expect(texts(said.waits)).toBe(`Pod ${CLUSTER}-head on node node-1 runs, and is not ready yet.`);
  });

  it("shows the log of an init container that fails", () => {
    const terminated = { exitCode: 1, reason: "Error", message: "no such bucket" };
    const said = held({
      initContainerStatuses: [
        {
          name: "fetch",
          state: { waiting: { reason: "CrashLoopBackOff", message: "back-off" } },
          lastState: { terminated },
        },
      ],
    });
    expect(texts(said.waits)).toContain(
      "init container fetch: CrashLoopBackOff, it last ended with exit code 1 (Error): no such bucket",
    );
    expect(commands(said)).toContain(`kubectl logs -n default ${CLUSTER}-head -c fetch --previous`);
  });

  it("asks for memory for a head that is killed for using too much", () => {
    const said = held(waiting("CrashLoopBackOff", "back-off", { terminated: { exitCode: 137, reason: "OOMKilled" } }));
    expect(texts(said.advice)).toContain("Give container ray-head more memory");
  });

  it("says when failed Pods are replaced, by the count that the cluster keeps", () => {
    const failures = { headgroup: { count: 3, at: wire("12:01:50"), youngest: wire("12:00:02"), generation: 1 } };
    const annotations = { "raykeeper.dev/pod-failures": JSON.stringify(failures) };
    const said = explained({
      job: starting(),
      rayClusters: [rayCluster({ ready: false, metadata: { annotations, generation: 1 } })],
    });
    expect(said.timers).toEqual([
      {
        name: "podReplacement",
        label: "Pods of headgroup",
        endsAt: wire("12:02:10"),
        follows: "what failed is replaced (3 failures in a row)",
      },
    ]);
  });

  it.each([
    ["exceeded quota: team", "ResourceQuota is used up", "kubectl describe -n default resourcequota"],
    [
      'violates PodSecurity "restricted:latest": runAsNonRoot != true',
      "the Pod security standard restricted:latest",
      "kubectl get namespace default --show-labels",
    ],
  ])("says what the API server refuses, and what helps: %s", (words, advice, command) => {
    const refusal = condition("ReplicaFailure", "True", "FailedCreateHeadPod", `pods "x" is forbidden: ${words}`);
    const said = explained({
      job: starting(),
      rayClusters: [rayCluster({ ready: false, status: { conditions: [refusal] } })],
    });
    expect(said.why).toContain(words);
    expect(texts(said.advice)).toContain(advice);
    expect(commands(said)).toContain(command);
  });

  it("says that another's RayCluster has its name", () => {
    const said = explained({ job: starting(), rayClusters: [rayCluster({ metadata: { ownerReferences: [] } })] });
    expect(texts(said.waits)).toBe(`RayCluster ${CLUSTER} exists and does not belong to this RayJob.`);
  });

  it("shows both deadlines, the nearer one first", () => {
    const said = explained({ job: starting({ activeDeadlineSeconds: 600, preRunningDeadlineSeconds: 180 }) });
    expect(said.timers.map(({ name, endsAt }) => [name, endsAt])).toEqual([
      ["preRunningDeadline", wire("12:03:00")],
      ["activeDeadline", wire("12:10:00")],
    ]);
  });

  it("shows until when a silent dashboard is waited for", () => {
    const job = starting();
    job.status = { ...job.status, jobStatusCheckFailureStartTime: wire("12:01:00") };
    const said = explained({ job, rayClusters: [rayCluster()], pods: [headPod()] });
    expect(texts(said.waits)).toBe("Ray's dashboard does not answer.");
    expect(said.timers).toMatchObject([
      { name: "statusCheck", endsAt: wire("12:06:00"), setting: "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS" },
    ]);
  });

  const own = { namespace: "default", name: "own" };
  it.each<[string, string, readonly (string | RegExp)[], readonly string[]]>([
    [
      "not there",
      tokenTrouble.missing(own),
      [/^Put the token that Ray was started with into Secret own, key auth_token/],
      ["kubectl describe secret -n default own"],
    ],
    ["without the key", tokenTrouble.withoutKey(own), [/^Put the token/], ["kubectl describe secret -n default own"]],
    ["without a token", tokenTrouble.unusable(own), [/^Put the token/], ["kubectl describe secret -n default own"]],
    [
      "another than Ray's",
      tokenTrouble.wrong(own),
      [/^Put the token/, /^Or have Ray started anew/],
      [
        "kubectl describe secret -n default own",
        `kubectl patch -n default rayjob ${NAME} --type merge -p '{"spec":{"suspend":true}}'`,
      ],
    ],
    ["not to be read", tokenTrouble.forbidden(own, "no"), [/^Give the operator's ServiceAccount the right/], []],
    ["not named", tokenTrouble.unsaid, [/^Say in authOptions of the RayCluster's spec/], []],
    ["unreadable for a moment", tokenTrouble.unreadable(own, "connection refused"), [], []],
  ])("and whose Ray refuses, the token being %s, is told what to do", (_, why, advice, run) => {
    const job = starting();
    const message = `RayCluster ${CLUSTER} is ready; its dashboard does not answer: HTTP 401: Unauthorized. ${why}`;
    job.status = { ...job.status, jobStatusCheckFailureStartTime: wire("12:01:00") };
    job.status.conditions = [condition("Started", "False", "WaitingForCluster", message)];
    const said = explained({ job, rayClusters: [rayCluster()], pods: [headPod()] });
    expect(said.why).toBe(message);
    expect(said.advice.map(({ text }) => text)).toEqual(advice.map((words) => expect.stringMatching(words)));
    expect(commands(said)).toEqual(run);
  });

  it("because somebody else's Secret bears the name of its token's is told to look at it", () => {
    const cluster = rayCluster({ ready: false });
    const message = "Secret default/c exists and does not belong to this RayCluster: delete it, or name it";
    cluster.status = {
      ...cluster.status,
      conditions: [condition("ReplicaFailure", "True", "FailedCreateAuthSecret", message)],
    };
    const said = explained({ job: starting(), rayClusters: [cluster] });
    expect(said.why).toContain(message);
    expect(commands(said)).toContain("kubectl describe secret -n default c");
  });

  it("whose selected cluster does not exist says so", () => {
    const chosen = record({ ownsCluster: false, rayClusterName: "shared" });
    const said = explained({
      job: rayJob(
        { clusterSelector: { "ray.io/cluster": "shared" } },
        { ...statusWith(chosen), jobDeploymentStatus: "Initializing" },
      ),
    });
    expect(texts(said.waits)).toBe("The RayCluster shared does not exist.");
    expect(texts(said.advice)).toContain("Create it: the RayJob goes on by itself.");
  });
});

describe("a RayJob that runs", () => {
  const runs = (status: Partial<RayJobStatus> = {}, changes: Partial<Explained> = {}, current = seenRunning()) =>
    explained({
      job: rayJob({}, statusWith(current, status)),
      rayClusters: [rayCluster()],
      pods: [headPod()],
      jobs: [submitterJob()],
      ...changes,
    });

  it("says so, waits for nothing, and can be suspended", () => {
    const said = runs();
    expect(said).toMatchObject({ state: "Running", since: wire("12:00:40"), waits: [], timers: [], notes: [] });
    expect(said.why).toBe("Ray says RUNNING: Job is currently running.");
    expect(commands(said)).toEqual([
      `kubectl patch -n default rayjob ${NAME} --type merge -p '{"spec":{"suspend":true}}'`,
    ]);
  });

  it("and whose status another operator writes, too, says so as long as that is news", () => {
    const note = 'The status of this RayJob is written by "manager", too.';
    const about = (uid: string) => ({ events: [warning("AnotherOperator", note, uid)] });
    const [job, cluster] = [rayJob().metadata.uid, rayCluster().metadata.uid];
    for (const uid of [job, cluster]) expect(runs({}, about(uid)).notes).toEqual([note]);
    expect(runs({}, about("another")).notes).toEqual([]);
    const old = { ...warning("AnotherOperator", note, job), eventTime: wire("11:40:00") };
    expect(runs({}, { events: [old as never] }).notes).toEqual([]);
  });

  it("and whose Ray is silent tells until when that is borne", () => {
    const said = runs({
      jobStatusCheckFailureStartTime: wire("12:01:30"),
      message: "Ray does not answer at x: refused",
    });
    expect(said.waits).toMatchObject([
      { kind: "Ray", since: wire("12:01:30"), text: "Ray does not answer at x: refused" },
    ]);
    expect(said.timers).toMatchObject([{ name: "statusCheck", endsAt: wire("12:06:30") }]);
    expect(said.timers[0]?.follows).toContain("JobStatusCheckTimeoutExceeded");
  });

  it("and whose Ray refuses the token is told what to do", () => {
    const secret = { namespace: "default", name: "own" };
    const message = `Ray does not answer at x: HTTP 403: Forbidden. ${tokenTrouble.wrong(secret)}`;
    const said = runs({ jobStatusCheckFailureStartTime: wire("12:01:30"), message });
    expect(said.waits).toMatchObject([{ kind: "Ray", text: message }]);
    expect(commands(said)[0]).toBe("kubectl describe secret -n default own");
  });

  it("and whose driver's node looks dead tells how long that is borne", () => {
    const said = runs({}, {}, seenRunning({ driverNodeDeadTime: wire("12:01:50") }));
    expect(said.timers).toMatchObject([{ name: "deadNode", endsAt: wire("12:02:20") }]);
  });

  it("and whose deadline has passed is being stopped, for a bounded time", () => {
    const stopped = seenRunning({ endTime: wire("12:01:50"), reason: "DeadlineExceeded", message: "Too late." });
    const said = runs({}, {}, stopped);
    expect(said.why).toBe("Too late. The job is being stopped.");
    expect(said.timers).toMatchObject([{ name: "stop", endsAt: wire("12:02:20") }]);
  });

  it("on a selected cluster may be stopped for longer, and is never tried again", () => {
    const chosen = { ownsCluster: false, endTime: wire("12:01:50"), reason: "DeadlineExceeded" } as const;
    expect(runs({}, {}, seenRunning(chosen)).timers).toMatchObject([{ name: "stop", endsAt: wire("12:02:50") }]);
    const failed = [condition("Failed", "True", "HeadPodLost", "Lost.")];
    const said = runs({ jobDeploymentStatus: "Failed", conditions: failed }, {}, seenRunning(chosen));
    expect(texts(said.advice)).not.toContain("backoffLimit");
  });

  it("and has ended waits for its log, with the grace", () => {
    const said = runs({ jobStatus: "SUCCEEDED", rayJobInfo: { endTime: wire("12:01:55") } });
    expect(said.why).toBe("Ray says SUCCEEDED; the submitter finishes the log.");
    expect(said.timers).toMatchObject([{ name: "logGrace", endsAt: wire("12:06:55") }]);
  });

  it("without its submitter shows where the log is", () => {
    const said = runs({
      conditions: [condition("SubmitterHealthy", "False", "JobFailed", "Job submission has failed.")],
    });
    expect(said.notes).toEqual(["The submitter: Job submission has failed."]);
    expect(commands(said)).toContain(`kubectl exec -n default ${CLUSTER}-head -- ray job logs ${JOB_ID} --follow`);
  });

  it("is told commands that a shell takes as they are meant, whatever an id or a message has in it", () => {
    const conditions = [condition("SubmitterHealthy", "False", "JobFailed", "Job submission has failed.")];
    const jobId = "it's;touch$IFS-x";
    const lost = runs({ conditions }, {}, seenRunning({ jobId }));
    expect(commands(lost)).toContain(
      `kubectl exec -n default ${CLUSTER}-head -- ray job logs 'it'\\''s;touch$IFS-x' --follow`,
    );
    const message = "Ray does not answer at x: HTTP 503: Secret a/b;touch$IFS-x has no key auth_token";
    const silent = runs({ jobStatusCheckFailureStartTime: wire("12:01:30"), message });
    expect(commands(silent)[0]).toBe("kubectl describe secret -n a 'b;touch$IFS-x'");
  });

  it("with an invalid edit says that it is ignored", () => {
    const said = runs({ conditions: [condition("SpecValid", "False", "Invalid", "The RayJob spec is invalid: x")] });
    expect(said.notes[0]).toBe(
      "An edit is not valid, and is ignored until it is corrected: The RayJob spec is invalid: x",
    );
    expect(commands(said)).toContain(`kubectl edit -n default rayjob ${NAME}`);
  });

  it("and has lost a worker to the memory limit says so", () => {
    const worker = headPod({
      metadata: { name: "w", uid: "w", labels: { [LABEL.nodeType]: "worker", [LABEL.cluster]: CLUSTER } },
      status: {
        phase: "Failed",
        containerStatuses: [{ name: "ray", state: { terminated: { exitCode: 137, reason: "OOMKilled" } } }],
      },
    });
    expect(texts(runs({}, { pods: [headPod(), worker] }).waits)).toContain(
      "was killed for using more memory than its limit",
    );
  });

  it("and is not with Ray yet waits for its submitter, and says what ails that", () => {
    const pod = headPod({
      metadata: {
        name: "demo-abc",
        uid: "s",
        labels: {},
        ownerReferences: [{ kind: "Job", uid: "uid-submitter", controller: true }],
      },
      status: { phase: "Pending", conditions: [], ...waiting("ImagePullBackOff", "no") },
    });
    expect(texts(runs({}, {}, submitted()).waits)).toBe(`The submitter, Job ${NAME}, submits the job.`);
    expect(texts(runs({}, { pods: [headPod(), pod] }, submitted()).waits)).toContain("Pod demo-abc is not starting");
  });
});

describe("a RayJob between two attempts", () => {
  const pod = (name: string, changes: object = {}) =>
    headPod({
      metadata: {
        name,
        uid: name,
        deletionTimestamp: wire("12:01:30"),
        deletionGracePeriodSeconds: 30,
        ...changes,
      },
    });
  const retrying = (reason: string, pods: readonly Stored<Pod>[], spec = {}) =>
    explained({
      job: rayJob(
        { backoffLimit: 2, retryStrategy: { type: "BlockingRecreate", blockingTimeoutSeconds: 600 }, ...spec },
        statusWith(
          seenRunning({
            retryStrategy: "BlockingRecreate",
            endTime: wire("12:01:00"),
            reason: "AppFailed",
            message: "boom",
            jobStatus: "FAILED",
          }),
          {
            jobDeploymentStatus: "Retrying",
            reason: "AppFailed",
            conditions: [condition("Retrying", "True", reason, "Waiting.", "12:01:00")],
          },
        ),
      ),
      pods,
    });

  it("names the Pod that holds the barrier, its node, and since when it is terminating", () => {
    const said = retrying("Blocked", [pod("a")]);
    expect(said).toMatchObject({ state: "Retrying", reason: "Blocked", since: wire("12:01:00"), attemptsAllowed: 3 });
    expect(said.waits).toEqual([
      {
        kind: "Pod",
        name: "a",
        node: "node-1",
        since: wire("12:01:00"),
        reason: "Terminating",
        text: `Pod a on node node-1 (terminating since ${wire("12:01:00")}) must be gone.`,
      },
    ]);
    expect(said.timers).toMatchObject([{ name: "blockingTimeout", endsAt: wire("12:11:00") }]);
    expect(commands(said)).toEqual([
      "kubectl get node node-1",
      "kubectl delete -n default pod a --force --grace-period=0",
      `kubectl patch -n default rayjob ${NAME} --type merge -p '{"spec":{"retryStrategy":{"type":"Recreate","blockingTimeoutSeconds":null}}}'`,
    ]);
  });

  it("names five Pods, and counts the others", () => {
    const said = retrying(
      "Blocked",
      ["a", "b", "c", "d", "e", "f", "g"].map((name) => pod(name)),
    );
    expect(said.waits).toHaveLength(6);
    expect(said.waits.at(-1)?.text).toBe("2 more must be gone.");
  });

  it("says who holds a Pod by a finalizer, against which force is of no use", () => {
    const said = retrying("Blocked", [pod("a", { finalizers: ["example.com/hold"] })]);
    expect(texts(said.advice)).toContain("Pod a is held by its finalizers (example.com/hold)");
    expect(commands(said).join()).not.toContain("--force");
  });

  it("is not held up by a Pod with strategy Recreate", () => {
    const seen = retrying("Deleting", [pod("a")]);
    expect(seen.waits).toHaveLength(1);
    const job = rayJob({}, statusWith(seenRunning({ endTime: wire("12:01:00") }), { jobDeploymentStatus: "Retrying" }));
    expect(explained({ job, pods: [pod("a")] }).waits).toEqual([]);
  });

  it.each([
    ["blocked", "Blocked"],
    ["not said to be blocked yet", "Deleting"],
  ])(
    "and suspended meanwhile, %s, says that no attempt follows, that the clock stands, and how to resume",
    (_, reason) => {
      const said = retrying(reason, [pod("a")], { suspend: true });
      expect(said.why).toContain("spec.suspend is set: what is left of it goes on being deleted");
      expect(said.why).toContain("no attempt follows until the RayJob is resumed");
      expect(said.why).toContain("the clock of blockingTimeoutSeconds stands still");
      expect(said.timers).toEqual([]);
      expect(said.waits).toHaveLength(1);
      expect(texts(said.advice)).not.toContain("overlap");
      expect(commands(said).at(-1)).toBe(
        `kubectl patch -n default rayjob ${NAME} --type merge -p '{"spec":{"suspend":false}}'`,
      );
    },
  );

  it("and suspended by Kueue is not to be resumed by hand", () => {
    const job = rayJob(
      { suspend: true },
      statusWith(seenRunning({ endTime: wire("12:01:00") }), { jobDeploymentStatus: "Retrying" }),
      { labels: { [LABEL.kueueQueueName]: "q" } },
    );
    expect(texts(explained({ job }).advice)).toContain("Kueue starts it when there is quota");
  });

  it("waits for a valid spec", () => {
    const said = retrying("SpecInvalid", []);
    expect(texts(said.advice)).toContain("the next attempt then starts by itself");
  });

  it("tells how the attempt before ended", () => {
    expect(retrying("Deleting", []).attempts).toEqual([
      {
        number: 0,
        jobId: JOB_ID,
        rayClusterName: CLUSTER,
        outcome: "failed",
        reason: "AppFailed",
        message: "boom",
        startTime: wire("12:00:00"),
        endTime: wire("12:01:00"),
        seconds: 60,
      },
    ]);
  });

  it("after the loss of a head says what the operator's own decision said", () => {
    const lost = observed({
      job: rayJob({ backoffLimit: 1 }, statusWith(seenRunning())),
      rayClusters: [rayCluster()],
      pods: [headPod({ metadata: { uid: "another" } })],
      jobs: [submitterJob()],
      ray: { answer: unknownToRay({ at: "12:10:00", session: "session-2" }) },
    });
    const decision = decide(lost, at("12:10:01"));
    const job = { ...lost.job, status: decision.status as RayJobStatus };
    const said = explained({ ...lost, job, events: [] }, "12:10:05");
    expect(said.state).toBe("Retrying");
    expect(said.why).toContain("Ray lost the job");
    expect(said.attempts).toMatchObject([{ outcome: "failed", reason: "RayJobLost", seconds: 601 }]);
  });
});

describe("a RayJob that is suspended", () => {
  const suspended = (metadata = {}, spec = {}) =>
    explained({
      job: rayJob(
        { suspend: true, ...spec },
        {
          jobDeploymentStatus: "Suspended",
          conditions: [condition("Suspended", "True", "Suspended", "Nothing", "12:00:30")],
        },
        metadata,
      ),
    });

  it("tells how to resume it", () => {
    expect(suspended()).toMatchObject({ state: "Suspended", since: wire("12:00:30"), waits: [] });
    expect(commands(suspended())[0]).toContain(`'{"spec":{"suspend":false}}'`);
  });

  it("by Kueue waits for quota, and is not to be resumed by hand", () => {
    const said = suspended({ labels: { [LABEL.kueueQueueName]: "team-a" } });
    expect(said.why).toBe("It waits for quota: Kueue holds it in queue team-a.");
    expect(commands(said)).toEqual([
      `kubectl describe -n default workloads.kueue.x-k8s.io -l kueue.x-k8s.io/job-uid=${UID}`,
    ]);
  });

  it("on a selected cluster waits for no quota, whatever its labels say: Kueue leaves it alone, and it is to be resumed", () => {
    const labels = { [LABEL.kueueQueueName]: "team-a" };
    const said = suspended({ labels }, { clusterSelector: { "ray.io/cluster": "shared" } });
    expect(said.why).not.toContain("quota");
    expect(commands(said)).toEqual([
      `kubectl label -n default rayjob ${NAME} ${LABEL.kueueQueueName}-`,
      expect.stringContaining(`'{"spec":{"suspend":false}}'`),
    ]);
  });

  it("and was resumed with a spec that cannot be run says what to correct, and starts nothing", () => {
    const conditions = [
      condition("Suspended", "True", "Suspended", "", "12:01:30"),
      condition("SpecValid", "False", "Invalid", "The RayJob spec is invalid: x", "12:01:40"),
    ];
    const job = rayJob({}, statusWith(seenRunning(), { jobDeploymentStatus: "Suspended", conditions }));
    const said = explained({ job });
    expect(said.why).toBe(
      "It has been resumed, and stays suspended until its spec is valid. The RayJob spec is invalid: x",
    );
    expect(said.notes).toEqual([]);
    expect(commands(said)).toEqual([`kubectl edit -n default rayjob ${NAME}`]);
  });

  it("and being suspended names what is still there", () => {
    const said = explained({
      job: rayJob(
        { suspend: true },
        statusWith(seenRunning({ endTime: wire("12:01:00") }), { jobDeploymentStatus: "Suspending" }),
      ),
      pods: [headPod()],
    });
    expect(texts(said.waits)).toBe(`Pod ${CLUSTER}-head on node node-1 must be gone.`);
  });
});

describe("a RayJob that is over", () => {
  const over = (
    status: Partial<RayJobStatus>,
    spec = {},
    changes: Partial<Explained> = {},
    current = seenRunning({ endTime: wire("12:01:30") }),
  ) =>
    explained({
      job: rayJob(spec, statusWith(current, { endTime: wire("12:01:40"), ...status })),
      jobs: [submitterJob("complete")],
      ...changes,
    });

  it("well, with its Pods kept by policy, says what they hold and how to free it", () => {
    const keeps = `RayCluster ${CLUSTER} with 3 Pods (cpu 3) is kept, because shutdownAfterJobFinishes is not set.`;
    const said = over(
      {
        jobDeploymentStatus: "Complete",
        jobStatus: "SUCCEEDED",
        message: "Job finished successfully.",
        conditions: [condition("ResourcesReleased", "False", "KeptByPolicy", keeps)],
      },
      { shutdownAfterJobFinishes: false },
      { rayClusters: [rayCluster()] },
    );
    expect(said).toMatchObject({ state: "Complete", since: wire("12:01:40"), notes: [keeps], timers: [] });
    expect(said.attempts).toMatchObject([{ outcome: "succeeded" }]);
    expect(commands(said)).toEqual([`kubectl delete -n default raycluster ${CLUSTER}`]);
  });

  it("well, tells when its cluster goes", () => {
    const said = over(
      { jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" },
      { ttlSecondsAfterFinished: 3600 },
      { rayClusters: [rayCluster()] },
    );
    expect(said.timers).toMatchObject([
      { name: "timeToLive", endsAt: wire("13:01:40"), follows: "the RayCluster is deleted" },
    ]);
  });

  it.each([
    ["its cluster is going already", { ttlSecondsAfterFinished: 60 }, { deletionTimestamp: wire("12:01:50") }],
    ["its cluster goes at once, for no TTL is set", {}, {}],
  ])("after a retry that was blocked for too long has no timer of a TTL: %s", (_, spec, metadata) => {
    const status = { jobDeploymentStatus: "Failed", reason: "RetryBlockedTimeoutExceeded" } as const;
    expect(over(status, spec, { rayClusters: [rayCluster({ metadata })] }).timers).toEqual([]);
  });

  it("and has freed everything says so, and has no timer any more", () => {
    const said = over({
      jobDeploymentStatus: "Complete",
      jobStatus: "SUCCEEDED",
      conditions: [condition("ResourcesReleased", "True", "Released")],
    });
    expect(said).toMatchObject({ notes: ["Nothing of it holds a machine any more."], timers: [], waits: [] });
  });

  it("because its program failed points to the log, and to backoffLimit", () => {
    const failed = condition("Failed", "True", "ApplicationFailed", "exit code 1");
    const said = over({
      jobDeploymentStatus: "Failed",
      jobStatus: "FAILED",
      reason: "AppFailed",
      conditions: [failed],
    });
    expect(said).toMatchObject({ state: "Failed", reason: "ApplicationFailed", why: "exit code 1" });
    expect(commands(said)).toEqual([
      `kubectl logs -n default job/${NAME}`,
      "raykeeper run --replace -n default demo.yaml",
    ]);
    expect(texts(said.advice)).toContain("set spec.backoffLimit");
  });

  it("by its deadline tells which field gives more time", () => {
    const failed = condition("Failed", "True", "DeadlineExceeded", "too late");
    const said = over(
      { jobDeploymentStatus: "Failed", reason: "DeadlineExceeded", conditions: [failed] },
      { activeDeadlineSeconds: 60 },
    );
    expect(texts(said.advice)).toContain("spec.activeDeadlineSeconds is 60");
  });

  it("because its head was killed for memory asks for more of it", () => {
    const failed = condition("Failed", "True", "HeadPodLost", "Ray lost the job: head Pod x ended: OOMKilled.");
    const said = over({ jobDeploymentStatus: "Failed", reason: "AppFailed", conditions: [failed] });
    expect(texts(said.advice)).toContain("Give the head more memory");
  });

  it("that somebody stopped is no failure of the attempt", () => {
    const stopped = condition("Failed", "True", "ApplicationStopped", "Job was intentionally stopped.");
    const said = over({ jobDeploymentStatus: "Complete", jobStatus: "STOPPED", conditions: [stopped] });
    expect(said).toMatchObject({ reason: "ApplicationStopped", attempts: [{ outcome: "stopped" }] });
  });

  it("was run by KubeRay: says what it can", () => {
    const said = explained({
      job: rayJob(
        { backoffLimit: 3 },
        {
          jobDeploymentStatus: "Failed",
          jobStatus: "FAILED",
          reason: "AppFailed",
          message: "boom",
          failed: 4,
          jobId: JOB_ID,
          rayClusterName: CLUSTER,
          startTime: wire("12:00:00"),
          endTime: wire("12:01:00"),
        },
      ),
    });
    expect(said).toMatchObject({
      state: "Failed",
      why: "boom",
      attempts: [{ number: 3, outcome: "failed", reason: "AppFailed", seconds: 60 }],
      notes: [
        "It was run by KubeRay, which keeps no conditions and no list of attempts. 4 failed attempts are counted.",
      ],
    });
    expect(texts(said.advice)).toContain("Its spec.backoffLimit of 3 is used up");
  });
});

describe("a RayJob that nobody runs", () => {
  it("is new; when that lasts, the operator may not be running", () => {
    expect(explained({ job: rayJob() }, "12:00:02")).toMatchObject({
      state: "New",
      why: "The operator has not taken it up yet.",
    });
    expect(explained({ job: rayJob() }).why).toBe("The operator has not taken it up yet: is it running?");
  });

  it("is managed by somebody else", () => {
    const said = explained({ job: rayJob({ managedBy: "kueue.x-k8s.io/multikueue" }) });
    expect(said).toMatchObject({ state: "ManagedElsewhere", timers: [] });
  });

  it("was refused, and starts when it is corrected", () => {
    const job = rayJob(
      {},
      {
        jobDeploymentStatus: "ValidationFailed",
        reason: "ValidationFailed",
        message: "The RayJob spec is invalid: x",
        conditions: [condition("SpecValid", "False", "Invalid", "The RayJob spec is invalid: x", "12:00:01")],
      },
    );
    expect(explained({ job })).toMatchObject({
      why: "The RayJob spec is invalid: x",
      since: wire("12:00:01"),
      notes: [],
    });
    expect(commands(explained({ job }))).toEqual([`kubectl edit -n default rayjob ${NAME}`]);
  });

  it("is being deleted, and says what still holds it", () => {
    const job = rayJob({}, statusWith(seenRunning()), { deletionTimestamp: wire("12:01:00") });
    const said = explained({ job, pods: [headPod()] });
    expect(said).toMatchObject({ state: "Deleting", since: wire("12:01:00"), timers: [] });
    expect(texts(said.advice)).toContain("ray.io/rayjob-finalizer");
  });
});

describe("the advice", () => {
  it("on every phase, condition and cause is sentences, and placed in the job's namespace", () => {
    const job = rayJob({}, undefined, { namespace: "team" });
    const subject = {
      job,
      record: seenRunning(),
      message: "m",
      head: headPod(),
      hasSubmitter: true,
      remnants: [headPod({ metadata: { deletionTimestamp: wire("12:00:00") } })],
    };
    const all = [
      ...Object.values(phaseAdvice),
      ...Object.values(conditionAdvice).flatMap((reasons) => Object.values(reasons)),
    ];
    const given = all.flatMap((advise) => advise(subject));
    expect(given.length).toBeGreaterThan(20);
    for (const { text, command } of given) {
      expect(text).toMatch(/^[A-Z].*[.:?]$/s);
      if (command && /^kubectl (?!get (node|pods -A))/.test(command)) expect(command).toContain("-n team");
    }
  });

  it("on every cause of a failure says something", () => {
    const subject = {
      job: rayJob(),
      record: seenRunning(),
      message: "m",
      head: headPod(),
      hasSubmitter: true,
      remnants: [],
    };
    for (const [cause, advise] of Object.entries(conditionAdvice.Failed)) {
      if (cause === "JobSucceeded" || cause === "ValidationFailed") continue;
      expect(advise(subject), cause).not.toEqual([]);
    }
  });
});

it("a job that the operator has just written down is explained in the words of its conditions", () => {
  const seen = observed({
    job: rayJob({}, statusWith(seenRunning())),
    rayClusters: [rayCluster()],
    pods: [headPod()],
    jobs: [submitterJob("complete", { at: "12:09:00" })],
    ray: { answer: says("FAILED", { message: "Job entrypoint command failed with exit code 3" }) },
  });
  const decision = decide(seen, at("12:10:01"));
  const job = { ...seen.job, status: decision.status as RayJobStatus };
  expect(explained({ ...seen, job }, "12:10:05").why).toBe("Job entrypoint command failed with exit code 3");
});

describe("a submitter that cannot start", () => {
  const message = `RayCluster ${CLUSTER} is ready; job ${JOB_ID} is being submitted.`;
  const waits = (pod?: Stored<Pod>) =>
    observed({
      job: rayJob(
        {},
        statusWith(submitted(), {
          conditions: [
            condition("Started", "False", "WaitingForSubmission", message),
            condition("SpecValid", "True", "Valid"),
          ],
        }),
      ),
      rayClusters: [rayCluster()],
      pods: pod ? [headPod(), pod] : [headPod()],
      jobs: [submitterJob()],
      services: [headService()],
      ray: { answer: unknownToRay() },
    });
  const submitterPod = (status: object, name = "demo-x") =>
    headPod({
      metadata: {
        name,
        uid: "s",
        labels: {},
        ownerReferences: [{ kind: "Job", uid: "uid-submitter", controller: true }],
      },
      status: { phase: "Pending", conditions: [], ...status },
    });

  it("is told by the condition: a job that is never submitted says why", () => {
    const seen = waits(submitterPod(waiting("ImagePullBackOff", "no such image")));
    const { status } = decide(seen, at("12:10:01"));
    const told = (status as RayJobStatus).conditions?.find(({ type }) => type === "Started");
    expect(told?.message).toBe(
      `${message} Its submitter cannot start: Pod demo-x is not starting: container ray-head: ImagePullBackOff: no such image (node node-1).`,
    );
    const said = explained({ ...seen, job: { ...seen.job, status: status as RayJobStatus } }, "12:10:05");
    expect(said.why).toBe(told?.message);
    expect(texts(said.advice)).toContain("imagePullSecrets");
  });

  it("and is unschedulable for another number of nodes each time is no write each time", () => {
    const unschedulable = (message: string) =>
      submitterPod({ conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message }] });
    const seen = waits(unschedulable("0/5 nodes are available: 5 Insufficient cpu."));
    const first = written(seen, decide(seen, at("12:10:01")));
    const later = (message: string) => decide({ ...first, pods: [headPod(), unschedulable(message)] }, at("12:20:00"));
    expect(later("0/107 nodes are available: 107 Insufficient cpu.").status).toBeUndefined();
    const other = later("0/107 nodes are available: 107 Insufficient memory.").status as RayJobStatus;
    expect(other.conditions?.find(({ type }) => type === "Started")?.message).toContain("107 Insufficient memory");
  });

  it("and has another Pod by now is told with that one's name", () => {
    const inVain = (name: string) => submitterPod(waiting("ImagePullBackOff", "no such image"), name);
    const seen = waits(inVain("demo-7xk2p"));
    const first = written(seen, decide(seen, at("12:10:01")));
    const told = (name: string) => decide({ ...first, pods: [headPod(), inVain(name)] }, at("12:20:00")).status;
    expect(told("demo-7xk2p")).toBeUndefined();
    const { conditions } = told("demo-4wznq") as RayJobStatus;
    expect(conditions?.find(({ type }) => type === "Started")?.message).toMatch(/demo-4wznq(?!.*demo-7xk2p)/);
  });

  it.each([
    [
      "the Job",
      [],
      { reason: "FailedToCreateRayJobSubmitter", uid: "uid-job" },
      'Failed to create new Kubernetes Job default/demo: jobs.batch "demo" is forbidden: exceeded quota: q',
    ],
    [
      "its Pod",
      [submitterJob()],
      { reason: "FailedCreate", uid: "uid-submitter" },
      'Error creating: pods "demo-x" is forbidden: exceeded quota: q',
    ],
  ])("is told where the API server refuses %s, of which only events tell", (_, jobs, { reason, uid }, note) => {
    const seen = { ...waits(), jobs };
    const event = (seconds: string, text: string) => ({
      ...warning(reason, text, seen.job.metadata.uid),
      regarding: { uid: uid === "uid-job" ? seen.job.metadata.uid : uid },
      eventTime: `2026-01-01T12:${seconds}.000000Z`,
    });
    const said = explained({ ...seen, events: [event("10:04", note), event("10:03", "an earlier one")] }, "12:10:05");
    expect(texts(said.waits)).toContain(note);
    expect(texts(said.waits)).not.toContain("earlier");
    expect(said.waits[0]).toMatchObject({ kind: "Job", reason });
    expect(texts(said.advice)).toContain("ResourceQuota");
    // Of an attempt before this one's submission.
    expect(texts(explained({ ...seen, events: [event("00:00", note)] }, "12:10:05").waits)).not.toContain(note);
  });

  it("costs no write while the submitter starts, or starts again", () => {
    const failed = { phase: "Failed", containerStatuses: [{ name: "s", state: { terminated: { exitCode: 1 } } }] };
    const pods = [undefined, submitterPod(waiting("ContainerCreating", "")), submitterPod(failed)];
    for (const pod of pods) expect(decide(waits(pod), at("12:10:01")).status).toBeUndefined();
  });
});
