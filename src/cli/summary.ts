/**
 * The end of a run: its verdict, exit code, time per phase, and the row that `kubectl get rayjob` would show.
 *
 * May not: fetch, print, read a clock.
 */
import type { Stored } from "../api/object.ts";
import type { RayJob } from "../api/rayjob.ts";
import type { Advice } from "../domain/rayjob/explain.ts";
import { fromWire, type Instant } from "../domain/time.ts";
import { duration, wrap } from "./screen.ts";

export interface Verdict {
  /** 0 succeeded, 1 failed, 2 could not be run. */
  readonly exitCode: 0 | 1 | 2;
  readonly word: string;
  readonly message: string;
}

/** The verdict on a RayJob, or undefined while it has not ended. `undefined` stands for one that is gone. */
export function verdictOf(rayJob: RayJob | undefined): Verdict | undefined {
  if (!rayJob) return { exitCode: 1, word: "DELETED", message: "The RayJob was deleted before it ended." };
  const { jobDeploymentStatus, jobStatus, message = "", conditions } = rayJob.status ?? {};
  const failure = conditions?.find(({ type, status }) => type === "Failed" && status === "True");
  const reason = failure?.reason ?? rayJob.status?.reason;
  switch (jobDeploymentStatus) {
    case "Complete":
      return { exitCode: jobStatus === "SUCCEEDED" ? 0 : 1, word: jobStatus || "Complete", message };
    case "Failed":
      return { exitCode: 1, word: [jobStatus || "FAILED", reason].filter(Boolean).join(", "), message };
    case "ValidationFailed":
      return { exitCode: 2, word: "ValidationFailed", message };
    default:
      return undefined;
  }
}

export interface Phase {
  readonly name: string;
  readonly milliseconds: number;
}

/** How long the last attempt spent where, as far as its record tells (to the second). */
export function phasesOf(rayJob: RayJob): Phase[] {
  const { attempts, endTime, rayJobInfo } = rayJob.status ?? {};
  const record = attempts?.at(-1);
  if (!record) return [];
  const begins: [string, Instant | undefined][] = [
    ["RayCluster starting", fromWire(record.startTime)],
    // A sidecar submits when its head is up, and is journalled as doing so from the start.
    ["submitting", record.submissionMode === "SidecarMode" ? undefined : fromWire(record.submissionStartTime)],
    ["running", fromWire(record.runningTime)],
    ["finishing", record.runningTime ? fromWire(rayJobInfo?.endTime ?? record.endTime) : undefined],
    ["", fromWire(endTime ?? record.endTime)],
  ];
  const reached = begins.filter((begin): begin is [string, Instant] => begin[1] !== undefined);
  return reached
    .slice(0, -1)
    .map(([name, at], index) => ({ name, milliseconds: Math.max(0, reached[index + 1]![1] - at) }));
}

/** The columns of `kubectl get rayjob`, in its order. */
const COLUMNS: readonly [string, (rayJob: Stored<RayJob>, now: Instant) => string | undefined][] = [
  ["NAME", (job) => job.metadata.name],
  ["JOB STATUS", (job) => job.status?.jobStatus],
  ["DEPLOYMENT STATUS", (job) => job.status?.jobDeploymentStatus],
  ["RAY CLUSTER NAME", (job) => job.status?.rayClusterName],
  ["START TIME", (job) => job.status?.startTime],
  ["END TIME", (job) => job.status?.endTime],
  ["AGE", (job, now) => age(now - (fromWire(job.metadata.creationTimestamp) ?? now))],
];

/** The lines of the summary. `before` are phases the command itself timed. */
export function summaryLines(
  rayJob: Stored<RayJob>,
  verdict: Verdict,
  now: Instant,
  before: readonly Phase[],
  total: number,
): string[] {
  const { executionAttempt: attempt } = rayJob.status ?? {};
  const lines = [
    `RayJob ${rayJob.metadata.namespace}/${rayJob.metadata.name}: ${verdict.word}${attempt === undefined ? "" : `, attempt ${attempt}`}`,
  ];
  if (verdict.message)
    lines.push(
      ...verdict.message
        .trimEnd()
        .split("\n")
        .map((line) => `  ${line}`),
    );
  const phases = [...before, ...phasesOf(rayJob), { name: "total", milliseconds: total }];
  lines.push(
    "",
    ...table([["PHASE", "TIME"], ...phases.map(({ name, milliseconds }) => [name, duration(milliseconds)])]),
  );
  lines.push("", ...table([COLUMNS.map(([name]) => name), COLUMNS.map(([, cell]) => cell(rayJob, now) ?? "")]));
  return lines;
}

/** At most so many pieces of advice: `explain` has all of them. */
const ADVICE_SHOWN = 3;

/**
 * What can be done about a job that failed. `gone`: its cluster was made for the occasion, so commands lead nowhere, and
 * only what is to be changed in the manifest is said.
 */
export function failureAdvice(
  { rayJob, verdict, advice }: { rayJob: Stored<RayJob>; verdict: Verdict; advice: readonly Advice[] },
  gone: boolean,
  columns: number | undefined,
): string[] {
  if (verdict.exitCode !== 1) return [];
  const useful = gone ? advice.filter(({ command }) => command === undefined) : advice;
  const { namespace, name } = rayJob.metadata;
  const more = gone ? [] : [`  More: raykeeper explain rayjob ${name} -n ${namespace}`];
  const shown = adviceLines(useful.slice(0, ADVICE_SHOWN), columns);
  return shown.length > 0 ? ["", "WHAT YOU CAN DO", ...shown, ...more] : [];
}

/** The summary for programs. Keys stay; new ones may come. */
export function summaryJson(rayJob: Stored<RayJob>, verdict: Verdict, before: readonly Phase[], total: number) {
  const { status, metadata } = rayJob;
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    exitCode: verdict.exitCode,
    verdict: verdict.word,
    message: verdict.message,
    attempt: status?.executionAttempt ?? null,
    jobId: status?.jobId ?? null,
    jobStatus: status?.jobStatus ?? null,
    jobDeploymentStatus: status?.jobDeploymentStatus ?? null,
    rayClusterName: status?.rayClusterName ?? null,
    startTime: status?.startTime ?? null,
    endTime: status?.endTime ?? null,
    phases: [...before, ...phasesOf(rayJob), { name: "total", milliseconds: total }].map(({ name, milliseconds }) => ({
      name,
      seconds: milliseconds / 1000,
    })),
    attempts: status?.attempts ?? [],
  };
}

/** Advice as a list, each with its command on a line of its own, which is not wrapped: it is meant to be copied. */
export function adviceLines(advice: readonly Advice[], columns?: number): string[] {
  return advice.flatMap(({ text, command }) => [
    ...wrap(text, columns, "  - ", "    "),
    ...(command ? [`      ${command}`] : []),
  ]);
}

/** Columns three spaces apart, as kubectl prints them. */
export function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join("   ")
      .trimEnd(),
  );
}

/** As kubectl writes an age: `45s`, `3m12s`, `5h4m`, `3d`. */
export function age(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [minutes, hours, days] = [Math.floor(seconds / 60), Math.floor(seconds / 3600), Math.floor(seconds / 86_400)];
  const pair = (large: number, unit: string, small: number, smallUnit: string) =>
    `${large}${unit}${small ? `${small}${smallUnit}` : ""}`;
  if (seconds < 120) return `${seconds}s`;
  if (minutes < 10) return pair(minutes, "m", seconds % 60, "s");
  if (hours < 3) return `${minutes}m`;
  if (hours < 8) return pair(hours, "h", minutes % 60, "m");
  if (hours < 48) return `${hours}h`;
  if (days < 8) return pair(days, "d", hours % 24, "h");
  return `${days}d`;
}
