import { describe, expect, it } from "vitest";
import type { Explanation } from "../domain/rayjob/explain.ts";
import { explanationJson, explanationLines } from "./explanation.ts";
import { paintOn, wrap } from "./screen.ts";

const NOW = Date.UTC(2026, 0, 1, 12, 5);
const time = (text: string) => `2026-01-01T${text}Z`;

const starting: Explanation = {
  namespace: "default",
  name: "demo",
  uid: "u",
  state: "Initializing",
  since: time("12:00:00"),
  why: 'Waiting for RayCluster demo-c0000: ImagePullBackOff: Head Pod demo-c0000-head is not starting: container ray-head: ImagePullBackOff: Back-off pulling image "rayproject/ray:2.5x" (node node-1)',
  attempt: 1,
  attemptsAllowed: 2,
  jobId: "demo-j0001",
  rayClusterName: "demo-c0000",
  waits: [
    {
      kind: "Pod",
      name: "demo-c0000-head",
      since: time("12:00:02"),
      text: 'Pod demo-c0000-head is not starting: container ray-head: ImagePullBackOff: Back-off pulling image "rayproject/ray:2.5x" (node node-1).',
    },
    {
      kind: "Pod",
      name: "demo-c0000-small-group-worker-x7k2p",
      since: time("12:00:05"),
      text: "Pod demo-c0000-small-group-worker-x7k2p on node node-1 runs its init container wait-gcs-ready.",
    },
  ],
  timers: [
    {
      name: "preRunningDeadline",
      label: "preRunningDeadlineSeconds",
      endsAt: time("12:10:00"),
      follows: "the attempt fails: PreRunningDeadlineExceeded",
    },
  ],
  attempts: [
    {
      number: 0,
      jobId: "demo-j0000",
      outcome: "failed",
      reason: "AppFailed",
      message: "Job failed, last available logs:\nValueError: no data for the model, which is needed\nbye",
      seconds: 192,
    },
    { number: 1, jobId: "demo-j0001", outcome: "under way", seconds: 300 },
  ],
  notes: [],
  advice: [
    {
      text: "Correct the image's name or tag in spec.rayClusterSpec.headGroupSpec.template.spec.containers; for a private registry give imagePullSecrets there.",
    },
    {
      text: "An edit counts from the next attempt. To begin that at once, with the corrected manifest:",
      command: "raykeeper run --replace -n default demo.yaml",
    },
  ],
};

const plain = (_: unknown, text: string) => text;
const on = (columns: number | undefined, explained = starting) =>
  explanationLines(explained, { columns, paint: plain, now: NOW });

describe("the screen", () => {
  it("does not repeat a state whose reason is the same word", () => {
    const refused: Explanation = { ...starting, state: "ValidationFailed", reason: "ValidationFailed" };
    expect(on(80, refused)[0]).toBe("RayJob default/demo: ValidationFailed for 5m");
  });

  it("tells state, cause, what is waited for, timers, attempts and advice", () => {
    expect(on(80)).toEqual([
      "RayJob default/demo: Initializing for 5m",
      "since 2026-01-01T12:00:00Z, attempt 1, RayCluster demo-c0000, Ray job demo-j0001",
      "  Waiting for RayCluster demo-c0000: ImagePullBackOff: Head Pod demo-c0000-head",
      "  is not starting: container ray-head: ImagePullBackOff: Back-off pulling image",
      '  "rayproject/ray:2.5x" (node node-1)',
      "",
      "Waits for",
      "  Pod demo-c0000-small-group-worker-x7k2p on node node-1 runs its init container",
      "  wait-gcs-ready. (4m55s)",
      "",
      "Timers",
      "  in 5m    preRunningDeadlineSeconds: the attempt fails:",
      "           PreRunningDeadlineExceeded",
      "",
      "Attempts",
      "  0   demo-j0000   3m12s   failed (AppFailed): ValueError: no data for the mode…",
      "  1   demo-j0001   5m      under way",
      "",
      "What you can do",
      "  - Correct the image's name or tag in",
      "    spec.rayClusterSpec.headGroupSpec.template.spec.containers; for a private",
      "    registry give imagePullSecrets there.",
      "  - An edit counts from the next attempt. To begin that at once, with the",
      "    corrected manifest:",
      "      raykeeper run --replace -n default demo.yaml",
    ]);
  });

  it.each([40, 60, 80, 100, 200])("is never wider than %i columns, but for a word that is", (columns) => {
    for (const line of on(columns)) {
      const isOneWord = !line.trim().replace(/^- /, "").includes(" ");
      const isCommand = line.startsWith("      ");
      if (!isOneWord && !isCommand) expect(line.length, line).toBeLessThanOrEqual(columns);
    }
  });

  it("in a pipe is neither wrapped nor cut", () => {
    const lines = on(undefined);
    expect(lines).toContain(`  ${starting.why}`);
    expect(lines.join("\n")).toContain("failed (AppFailed): ValueError: no data for the model, which is needed");
  });

  it("of a traceback shows the first line and the end, and the whole of it in a pipe", () => {
    const frames = Array.from({ length: 30 }, (_, index) => `  File "x.py", line ${index}`);
    const why = ["Job entrypoint command failed with exit code 1:", ...frames, "ValueError: no"].join("\n");
    const failed = { ...starting, state: "Failed", why, waits: [] } as Explanation;
    const lines = on(80, failed);
    expect(lines.slice(2, 8)).toEqual([
      "  Job entrypoint command failed with exit code 1:",
      "  …",
      '    File "x.py", line 27',
      '    File "x.py", line 28',
      '    File "x.py", line 29',
      "  ValueError: no",
    ]);
    for (const frame of frames) expect(on(undefined, failed)).toContain(`  ${frame}`);
  });

  it("of a job that runs fits 80 columns and 24 lines", () => {
    const runs: Explanation = {
      ...starting,
      state: "Running",
      why: "Ray says RUNNING: Job is currently running.",
      jobStatus: "RUNNING",
      waits: [],
      attempts: [{ number: 0, outcome: "under way" }],
      advice: [{ text: "To stop it and start again later, suspend it.", command: "kubectl patch x" }],
    };
    expect(on(80, runs).length).toBeLessThanOrEqual(24);
    expect(on(80, runs).join("\n")).not.toContain("Attempts");
  });

  it("says a long refusal once", () => {
    const text = 'pods "demo-c0000-head" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true';
    const refused: Explanation = {
      ...starting,
      why: `Waiting for RayCluster demo-c0000: ${text}`,
      waits: [{ kind: "RayCluster", name: "", reason: "FailedCreateHeadPod", text }],
    };
    for (const columns of [80, undefined])
      expect(
        on(columns, refused)
          .join("\n")
          .match(/PodSecurity/g),
      ).toHaveLength(1);
  });

  it("says that a timer is due, and that its length is the operator's default", () => {
    const [timer] = starting.timers;
    const late = { ...starting, timers: [{ ...timer!, endsAt: time("12:04:00"), setting: "RAYJOB_X" }] };
    expect(on(200, late).join("\n")).toContain(
      "  due      preRunningDeadlineSeconds: the attempt fails: PreRunningDeadlineExceeded (by the default of RAYJOB_X)",
    );
  });

  it("shows the last attempts, and counts the earlier ones", () => {
    const attempts = Array.from({ length: 8 }, (_, number) => ({ number, outcome: "failed" as const, seconds: 1 }));
    expect(on(80, { ...starting, attempts })).toContain("  … 3 earlier");
  });

  it("has colours on a terminal that wants them only", () => {
    const lines = (isTTY: boolean, colour: boolean) =>
      explanationLines(starting, { columns: 80, paint: paintOn({ write() {}, isTTY }, colour), now: NOW }).join("\n");
    expect(lines(true, true)).toContain("\u001b[");
    expect(lines(true, false)).not.toContain("\u001b");
    expect(lines(false, true)).not.toContain("\u001b");
  });
});

describe("wrapping", () => {
  it.each([
    ["one two three", 9, ["> one two", "  three"]],
    ["a-word-that-is-longer-than-the-line b", 9, ["> a-word-that-is-longer-than-the-line", "  b"]],
    ["", 9, [">"]],
  ])("%j", (text, columns, lines) => {
    expect(wrap(text, columns, "> ", "  ")).toEqual(lines);
  });
});

describe("the JSON", () => {
  it("has the same keys whatever the state, null for what is not known", () => {
    const bare: Explanation = {
      namespace: "default",
      name: "demo",
      uid: "u",
      state: "New",
      why: "x",
      attemptsAllowed: 1,
      waits: [],
      timers: [],
      attempts: [],
      notes: [],
      advice: [],
    };
    expect(Object.keys(explanationJson(bare))).toEqual(Object.keys(explanationJson(starting)));
    expect(explanationJson(bare)).toMatchObject({ since: null, reason: null, attempt: null, jobId: null });
  });

  it("is what docs/explain.md says", () => {
    const json = explanationJson(starting);
    expect(json).toMatchObject({ state: "Initializing", since: time("12:00:00"), attempt: 1, attemptsAllowed: 2 });
    expect(Object.keys(json.waits[0]!)).toEqual(["kind", "name", "node", "since", "reason", "text"]);
    expect(Object.keys(json.timers[0]!)).toEqual(["name", "label", "endsAt", "follows", "setting"]);
    expect(Object.keys(json.attempts[0]!)).toEqual([
      "number",
      "jobId",
      "rayClusterName",
      "outcome",
      "reason",
      "message",
      "startTime",
      "endTime",
      "seconds",
    ]);
    expect(json.advice[0]).toEqual({ text: expect.any(String), command: null });
  });
});
