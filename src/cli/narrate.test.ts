import { describe, expect, it } from "vitest";
import { activity, facts, type Seen, submitterContainer, submitterEnded, submitterPod } from "./narrate.ts";

const at = (second: number) => `2026-01-01T00:00:${String(second).padStart(2, "0")}Z`;

/** A RayJob whose current attempt's record is the last of `attempts`. */
function rayJob(
  status: Record<string, unknown>,
  attempts: Record<string, unknown>[] = [{ number: 0, startTime: at(0), jobId: "job-1" }],
) {
  return {
    metadata: { name: "job", namespace: "default", uid: "J", resourceVersion: "1", creationTimestamp: at(0) },
    status: {
      jobDeploymentStatus: "Initializing",
      rayClusterName: "job-abcde",
      executionAttempt: attempts.at(-1)?.["number"],
      attempts,
      ...status,
    },
  };
}

function pod(name: string, status: Record<string, unknown>, labels: Record<string, string> = {}) {
  return {
    metadata: {
      name: `job-abcde-${name}`,
      uid: name,
      resourceVersion: "1",
      creationTimestamp: at(1),
      labels: {
        "ray.io/cluster": "job-abcde",
        "ray.io/node-type": name === "head" ? "head" : "worker",
        "ray.io/execution-attempt": "0",
        ...labels,
      },
    },
    spec: { containers: [{ name: "ray" }] },
    status,
  };
}

const ready = (is: boolean, since = 5) => ({
  phase: "Running",
  conditions: [{ type: "Ready", status: is ? "True" : "False", lastTransitionTime: at(since) }],
});

const cluster = (state = "") => ({
  metadata: { name: "job-abcde", uid: "C" },
  spec: { workerGroupSpecs: [{ groupName: "small", replicas: 2 }] },
  status: { state },
});

const seen = (parts: Record<string, unknown>): Seen => ({ pods: [], events: [], ...parts }) as unknown as Seen;
const texts = (parts: Record<string, unknown>) => facts(seen(parts)).map(({ text }) => text);

/** What a follower prints that sees these moments one after the other. */
function told(...moments: Record<string, unknown>[]): string[] {
  const keys = new Set<string>();
  return moments.flatMap((moment) =>
    facts(seen(moment)).flatMap(({ key, text }) => {
      if (keys.has(key)) return [];
      keys.add(key);
      return [text];
    }),
  );
}

describe("following a job that succeeds", () => {
  const record = { number: 0, startTime: at(0), jobId: "job-1" };
  const submitted = { ...record, submissionStartTime: at(9), observedTime: at(11) };
  const running = { ...submitted, runningTime: at(12) };
  const pods = [pod("small-worker-b", ready(true)), pod("head", ready(true)), pod("small-worker-a", ready(true))];
  const moments = [
    { rayJob: rayJob({}) },
    { rayJob: rayJob({}), rayCluster: cluster(), pods: [pod("head", ready(false))] },
    {
      rayJob: rayJob({}),
      rayCluster: cluster(),
      pods: [pod("head", ready(true)), pod("small-worker-b", ready(false))],
    },
    { rayJob: rayJob({}), rayCluster: cluster("ready"), pods },
    { rayJob: rayJob({}, [submitted]), rayCluster: cluster("ready"), pods },
    {
      rayJob: rayJob({ jobDeploymentStatus: "Running", jobStatus: "RUNNING" }, [running]),
      rayCluster: cluster("ready"),
      pods,
    },
    { rayJob: rayJob({ jobDeploymentStatus: "Complete", jobStatus: "SUCCEEDED" }, [running]) },
  ];

  it("tells each step once, in order", () => {
    expect(told(...moments, ...moments)).toEqual([
      "RayCluster job-abcde: creating",
      "Pods ready 1/3: head",
      "Pods ready 3/3: head, small-worker-a, small-worker-b",
      "RayCluster job-abcde: ready",
      "submitting the job as job-1",
      "submitted: Ray has the job",
      "running",
      "Ray says SUCCEEDED",
    ]);
  });

  it("tells what the journal knows even when only the end was seen", () => {
    expect(told(moments.at(-1)!)).toEqual([
      "RayCluster job-abcde: creating",
      "submitting the job as job-1",
      "running",
      "Ray says SUCCEEDED",
    ]);
  });

  it("says what it is waiting for", () => {
    expect(moments.map((moment) => activity(seen(moment)))).toEqual([
      "waiting for the RayCluster …",
      "waiting for head not ready …",
      "waiting for small-worker-b not ready …",
      "waiting for the RayCluster …",
      "submitted; waiting for Ray to run it …",
      "running …",
      "Ray says SUCCEEDED; finishing …",
    ]);
  });
});

describe("following a job that is retried", () => {
  const first = {
    number: 0,
    startTime: at(0),
    jobId: "job-1",
    jobStatus: "FAILED",
    reason: "AppFailed",
    message: "boom\nand more",
  };

  it("tells how the attempt ended while it is cleared away, once, and then the next one", () => {
    const retrying = {
      type: "Retrying",
      status: "True",
      reason: "Deleting",
      message: "waiting for Pod x",
      lastTransitionTime: at(20),
    };
    expect(
      told(
        {
          rayJob: rayJob({ jobDeploymentStatus: "Retrying", rayClusterName: undefined, conditions: [retrying] }, [
            first,
          ]),
        },
        { rayJob: rayJob({}, [first, { number: 1, startTime: at(30), jobId: "job-2" }]) },
      ),
    ).toEqual([
      "retrying: waiting for Pod x",
      "attempt 0 failed (FAILED, AppFailed): boom",
      "attempt 1: RayCluster job-abcde: creating",
    ]);
  });

  it("tells Ray's word on the failure once, though a condition and an event repeat it, and not under the next attempt", () => {
    const retrying = {
      type: "Retrying",
      status: "True",
      reason: "Deleting",
      message: "Cleaning up before the next attempt; attempt 1 of 2 failed (ApplicationFailed): boom\nand more",
      lastTransitionTime: at(20),
    };
    const event = (uid: string, reason: string, note: string, kind: string) => ({
      metadata: { uid },
      type: "Warning",
      reason,
      note,
      regarding: { kind, name: kind === "RayJob" ? "job" : "job-abcde-head" },
    });
    const events = [
      event("e1", "AttemptFailed", "Attempt 0 failed (AppFailed, ApplicationFailed): boom\nand more", "RayJob"),
      event("e2", "FailedToCreateService", "port taken", "RayJob"),
      event("e3", "FailedMount", "no such ConfigMap", "Pod"),
    ];
    const next = [first, { number: 1, startTime: at(30), jobId: "job-2" }];
    expect(
      told(
        {
          rayJob: rayJob({ jobDeploymentStatus: "Retrying", rayClusterName: undefined, conditions: [retrying] }, [
            first,
          ]),
          events,
        },
        { rayJob: rayJob({}, next), events },
      ),
    ).toEqual([
      "RayJob job: FailedToCreateService: port taken",
      "Pod job-abcde-head: FailedMount: no such ConfigMap",
      "retrying: Cleaning up before the next attempt; attempt 1 of 2 failed (ApplicationFailed)",
      "attempt 0 failed (FAILED, AppFailed): boom",
      "attempt 1: RayCluster job-abcde: creating",
    ]);
  });

  it("tells of an attempt that came and went unseen", () => {
    expect(texts({ rayJob: rayJob({ rayClusterName: undefined }, [first, { number: 1 }]) })).toEqual([
      "attempt 0 failed (FAILED, AppFailed): boom",
    ]);
  });
});

describe("what is wrong is told", () => {
  const waiting = (reason: string, message?: string) => ({
    phase: "Pending",
    containerStatuses: [{ name: "ray", state: { waiting: { reason, message } } }],
  });
  const job = rayJob({});

  it.each([
    [
      "an image that cannot be pulled",
      { pods: [pod("head", waiting("ImagePullBackOff", 'Back-off pulling image "x"'))] },
      'Pod head, container ray: ImagePullBackOff: Back-off pulling image "x"',
    ],
    [
      "a Pod that fits on no node",
      {
        pods: [
          pod("small-worker-a", {
            phase: "Pending",
            conditions: [{ type: "PodScheduled", status: "False", reason: "Unschedulable", message: "0/1 nodes" }],
          }),
        ],
      },
      "Pod small-worker-a: Unschedulable: 0/1 nodes",
    ],
    [
      "a container that died",
      {
        pods: [
          pod("head", {
            phase: "Running",
            containerStatuses: [
              { name: "ray", state: { terminated: { exitCode: 137, reason: "OOMKilled", finishedAt: at(7) } } },
            ],
          }),
        ],
      },
      "Pod head, container ray ended: OOMKilled, exit code 137",
    ],
    [
      "a warning event",
      {
        events: [
          {
            metadata: { uid: "e" },
            type: "Warning",
            reason: "FailedMount",
            note: "no such ConfigMap",
            regarding: { kind: "Pod", name: "job-abcde-head" },
          },
        ],
      },
      "Pod head: FailedMount: no such ConfigMap",
    ],
  ])("%s", (_, parts, line) => {
    expect(told({ rayJob: job, ...parts }, { rayJob: job, ...parts })).toEqual([
      "RayCluster job-abcde: creating",
      line,
    ]);
  });

  it("but not that a container is being created, nor a probe's failure while Ray starts", () => {
    const event = {
      metadata: { uid: "e" },
      type: "Warning",
      reason: "Unhealthy",
      note: "probe",
      regarding: { kind: "Pod", name: "x" },
    };
    expect(texts({ rayJob: job, pods: [pod("head", waiting("ContainerCreating"))], events: [event] })).toHaveLength(1);
  });

  it("a lost submitter, without an end of the job", () => {
    const condition = {
      type: "SubmitterHealthy",
      status: "False",
      reason: "Deleted",
      message: "Pod x is gone",
      lastTransitionTime: at(9),
    };
    expect(texts({ rayJob: rayJob({ conditions: [condition] }) })).toContain("the submitter: Pod x is gone");
  });

  it("a RayJob that was deleted", () => expect(texts({})).toEqual(["the RayJob was deleted"]));
});

describe("the job's log", () => {
  const labels = (attempt: string) => ({
    "ray.io/cluster": "",
    "ray.io/node-type": "",
    "ray.io/execution-attempt": attempt,
  });
  const started = { containerStatuses: [{ name: "s", state: { running: {} } }] };

  it("is that of the current attempt's submitter, once it has started", () => {
    const job = rayJob({}, [{ number: 1 }]);
    const pods = [
      pod("head", ready(true)),
      pod("old", started, labels("0")),
      pod("new", started, labels("1")),
      pod("newer", {}, labels("1")),
    ];
    expect(submitterPod(seen({ rayJob: job, pods }))?.metadata.uid).toBe("new");
  });
});

describe("the submitter of SidecarMode", () => {
  const submitter = "ray-job-submitter";
  const head = (state: object, restartPolicy?: string) => ({
    ...pod("head", { phase: "Running", containerStatuses: [{ name: "ray" }, { name: submitter, state }] }),
    spec: { containers: [{ name: "ray" }, { name: submitter, restartPolicy }] },
  });

  it("is a container of the head Pod, once it has started", () => {
    const job = rayJob({});
    expect(submitterPod(seen({ rayJob: job, pods: [head({ waiting: {} })] }))).toBeUndefined();
    const pods = [head({ running: {} }), pod("worker-1", {})];
    const found = submitterPod(seen({ rayJob: job, pods }))!;
    expect([found.metadata.uid, submitterContainer(found)]).toEqual(["head", submitter]);
  });

  it.each([
    ["has ended when it succeeded", 0, "OnFailure", true],
    ["has ended when it failed", 1, undefined, true],
    ["has not when kubelet starts it again", 1, "OnFailure", false],
  ])("%s", (_, exitCode, restartPolicy, ended) => {
    expect(submitterEnded(head({ terminated: { exitCode } }, restartPolicy) as never)).toBe(ended);
  });
});
