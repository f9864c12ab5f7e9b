// What SidecarMode makes of a cluster, and what the container's status says of the submitter.
import { describe, expect, it } from "vitest";
import type { ContainerState, ContainerStatus } from "../../api/kubernetes.ts";
import type { RayClusterSpec } from "../../api/raycluster.ts";
import { defaultSettings } from "../settings.ts";
import { maySubmitYet, sidecarState, withSidecar } from "./sidecar.ts";
import { at, headPod, JOB_ID, rayJob, record, wire } from "./testing.ts";

const settings = { ...defaultSettings, submitterProgram: "the program" };
const spec = (cluster: object = {}) =>
  rayJob({
    submissionMode: "SidecarMode",
    rayClusterSpec: { ...rayJob().spec.rayClusterSpec, ...cluster } as RayClusterSpec,
  });
const podOf = ({ headGroupSpec }: RayClusterSpec) => headGroupSpec.template.spec!;

describe("the cluster of an attempt in SidecarMode", () => {
  it("has the submitter after the user's containers, with the head's image and what Kueue accounts for", () => {
    const beside = { name: "mine", image: "mine" };
    const ray = { name: "ray-head", image: "ray:1", imagePullPolicy: "Always" };
    const job = spec({ headGroupSpec: { template: { spec: { containers: [ray, beside] } } } });
    const pod = podOf(withSidecar(job, record(), settings));
    expect(pod.containers.map(({ name }) => name)).toEqual(["ray-head", "mine", "ray-job-submitter"]);
    expect(pod.restartPolicy).toBe("Never");
    expect(pod.containers[2]).toMatchObject({
      image: "ray:1",
      imagePullPolicy: "Always",
      args: ["the program"],
      resources: { requests: { cpu: "500m", memory: "200Mi" }, limits: { cpu: "1", memory: "1Gi" } },
    });
    expect(pod.containers[2]?.restartPolicy).toBeUndefined();
  });

  it("has it submit to its own head, whose session nobody can know yet", () => {
    const ports = [{ name: "dashboard", containerPort: 9000 }];
    const job = spec({ headGroupSpec: { template: { spec: { containers: [{ name: "ray", image: "r", ports }] } } } });
    const { env = [] } = podOf(withSidecar(job, record(), settings)).containers[1]!;
    const value = (name: string) => env.find((variable) => variable.name === name)?.value;
    expect(value("RAY_DASHBOARD_ADDRESS")).toBe("127.0.0.1:9000");
    expect(JSON.parse(value("RAYKEEPER_SUBMIT")!)).toEqual({ entrypoint: "python train.py", submission_id: JOB_ID });
  });

  it("has it told the token that its cluster wants", () => {
    const { env = [] } = podOf(withSidecar(spec({ authOptions: { mode: "token" } }), record(), settings))
      .containers[1]!;
    const { rayClusterName: name } = record();
    expect(env.slice(-2)).toEqual([
      { name: "RAY_AUTH_MODE", value: "token" },
      { name: "RAY_AUTH_TOKEN", valueFrom: { secretKeyRef: { name, key: "auth_token" } } },
    ]);
  });

  it("has its submitter started again with SidecarSubmitterRestart, and its head never", () => {
    const pod = podOf(withSidecar(spec(), record(), { ...settings, sidecarRestart: true }));
    expect([pod.restartPolicy, pod.containers[1]?.restartPolicy]).toEqual(["Never", "OnFailure"]);
  });
});

const terminated = (exitCode: number, finishedAt = wire("12:05:00"), message?: string): ContainerState => ({
  terminated: { exitCode, reason: exitCode === 0 ? "Completed" : "Error", finishedAt, message },
});
const running: ContainerState = { running: { startedAt: wire("12:05:01") } };

/** A head Pod whose submitter is in this state; with `policy` kubelet starts it again. */
function head(status: Partial<ContainerStatus>, policy?: string, phase = "Running") {
  const pod = headPod();
  const containers = [...pod.spec!.containers, { name: "ray-job-submitter", image: "r", restartPolicy: policy }];
  const submitter = { name: "ray-job-submitter", image: "r", imageID: "", ready: false, restartCount: 0, ...status };
  const containerStatuses = [...(pod.status?.containerStatuses ?? []), submitter];
  return { ...pod, spec: { ...pod.spec!, containers }, status: { ...pod.status, phase, containerStatuses } };
}

/** Whose Ray container has ended. */
function withoutRay<T extends ReturnType<typeof head>>(pod: T): T {
  const [ray, ...others] = pod.status.containerStatuses;
  return { ...pod, status: { ...pod.status, containerStatuses: [{ ...ray!, state: terminated(1) }, ...others] } };
}

describe("a sidecar", () => {
  it("is absent without a head", () => expect(sidecarState(undefined)).toEqual({ is: "absent" }));

  it.each([
    ["that has not started works", head({ state: { waiting: { reason: "ContainerCreating" } } }), "working"],
    ["that runs works", head({ state: running }), "working"],
    ["that ended well has finished", head({ state: terminated(0) }), "finished"],
    ["that ended well at its last restart has finished", head({ state: terminated(0), restartCount: 3 }), "finished"],
    ["that ended badly has failed", head({ state: terminated(1) }), "failed"],
    [
      "that runs again works",
      head({ state: running, lastState: terminated(1), restartCount: 2 }, "OnFailure"),
      "working",
    ],
    [
      "that runs a third time again has failed",
      head({ state: running, lastState: terminated(1), restartCount: 3 }, "OnFailure"),
      "failed",
    ],
  ])("%s", (_, pod, is) => {
    expect(sidecarState(pod).is).toBe(is);
  });

  it("that failed says so in KubeRay's words, with what it said last", () => {
    const words = "raykeeper: Ray does not take job x: no such file";
    expect(sidecarState(head({ state: terminated(1, wire("12:05:00"), `${words}\n`) }))).toMatchObject({
      why: "ContainerExited",
      at: at("12:05:01"),
      message: `Ray head pod container ray-job-submitter terminated with exit code 1: Error (${words})`,
    });
  });

  it("that kubelet starts again is given the time to come back before its end counts", () => {
    const ended = head({ state: terminated(1) }, "OnFailure");
    expect(sidecarState(ended)).toMatchObject({ is: "failed", at: at("12:05:31") });
    // Nothing comes back in a Pod that has ended.
    expect(sidecarState({ ...ended, status: { ...ended.status, phase: "Failed" } })).toMatchObject({
      at: at("12:05:01"),
    });
  });

  it("that kubelet has lost ended when its Pod changed last, not in 1970: an answer from before says nothing of it", () => {
    const lost = head({ state: { terminated: { exitCode: 137, reason: "ContainerStatusUnknown" } } });
    const conditions = [
      { type: "Initialized", status: "True", lastTransitionTime: wire("12:00:05") },
      { type: "Ready", status: "False", lastTransitionTime: wire("12:05:00") },
    ];
    const pod = { ...lost, status: { ...lost.status, conditions } };
    expect(sidecarState(pod)).toMatchObject({ is: "failed", at: at("12:05:31") });
  });

  it("that waits for its next start is read by nobody", () => {
    const state = { waiting: { reason: "CrashLoopBackOff" } };
    expect(sidecarState(head({ state, lastState: terminated(1), restartCount: 1 }, "OnFailure"))).toMatchObject({
      is: "working",
      pausing: true,
    });
  });

  it.each([
    ["runs", head({ state: running }), true],
    ["ended well", head({ state: terminated(0) }, "OnFailure"), false],
    ["ended badly", head({ state: terminated(1) }), false],
    ["ended badly, and is started again", head({ state: terminated(1) }, "OnFailure"), true],
    ["ended with its Pod", head({ state: terminated(1) }, "OnFailure", "Failed"), false],
    ["is left without Ray", withoutRay(head({ state: running })), false],
  ])("may submit yet, or not, when it %s", (_, pod, may) => {
    expect(maySubmitYet(pod)).toBe(may);
  });
});
