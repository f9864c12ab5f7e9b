/**
 * An explanation as one screen of text, and as JSON.
 *
 * May not: fetch, conclude, read a clock. What it says comes from src/domain/rayjob/explain.ts.
 */
import { tellingLine } from "../domain/lastWords.ts";
import type { AttemptStory, Explanation, Wait } from "../domain/rayjob/explain.ts";
import { fromWire, type Instant } from "../domain/time.ts";
import { type Tone, wrap } from "./screen.ts";
import { adviceLines, age, table } from "./summary.ts";

export interface Look {
  /** Text is wrapped to it; absent: not wrapped, and nothing is left out, as suits a pipe. */
  readonly columns?: number;
  readonly paint: (tone: Tone, text: string) => string;
  readonly now: Instant;
}

const TONES: Readonly<Record<string, Tone>> = {
  Complete: "good",
  Failed: "bad",
  ValidationFailed: "bad",
  Retrying: "warn",
};

/** Lines of a message that are shown on a terminal: its first, and the last ones, which tell how a traceback ended. */
const MESSAGE_LINES = 6;
const ATTEMPTS_SHOWN = 5;
const WAITS_SHOWN = 6;

export function explanationLines(explained: Explanation, look: Look): string[] {
  const { paint } = look;
  const lines = [...heading(explained, look), ...message(explained.why, look)];
  const section = (title: string, rows: readonly string[]) => {
    if (rows.length > 0) lines.push("", paint("dim", title), ...rows);
  };
  section("Waits for", waitLines(explained, look));
  section("Timers", timerLines(explained, look));
  section("Attempts", attemptLines(explained, look));
  section(
    "Also",
    explained.notes.flatMap((note) => wrap(note, look.columns, "  ")),
  );
  section("What you can do", adviceLines(explained.advice, look.columns));
  return lines;
}

function heading(explained: Explanation, look: Look): string[] {
  const { paint, now } = look;
  const { namespace, name, state, reason, since, attempt, rayClusterName, jobId } = explained;
  const at = fromWire(since);
  const how = reason && reason !== state ? `${state} (${reason})` : state;
  const when = at === undefined ? "" : ` for ${age(now - at)}`;
  const tone = state === "Complete" && explained.jobStatus !== "SUCCEEDED" ? "bad" : (TONES[state] ?? "plain");
  const facts = [
    since && `since ${since}`,
    attempt !== undefined && `attempt ${attempt}`,
    rayClusterName && `RayCluster ${rayClusterName}`,
    jobId && `Ray job ${jobId}`,
  ].filter(Boolean);
  return [
    `RayJob ${namespace}/${name}: ${paint(tone, how)}${when}`,
    ...(facts.length > 0 ? wrap(facts.join(", "), look.columns, "").map((line) => paint("dim", line)) : []),
  ];
}

/** What the operator or Ray says; of a traceback the first line and the end. */
function message(text: string, look: Look): string[] {
  const lines = text
    .trimEnd()
    .split("\n")
    .flatMap((line) => wrap(line, look.columns, "  "));
  if (look.columns === undefined || lines.length <= MESSAGE_LINES) return lines;
  return [lines[0]!, "  …", ...lines.slice(2 - MESSAGE_LINES)];
}

function waitLines({ waits, why }: Explanation, look: Look): string[] {
  // What the message has said in full is not said again.
  const news = waits.filter(({ text, name }) => !why.includes(afterName(text, name)));
  const shown = look.columns === undefined ? news : news.slice(0, WAITS_SHOWN);
  const more = news.length - shown.length;
  return [
    ...shown.flatMap((wait) => wrap(withAge(wait, look), look.columns, "  ")),
    ...(more > 0 ? [`  … and ${more} more`] : []),
  ];
}

const afterName = (text: string, name: string): string => {
  const start = text.indexOf(name);
  return text.slice(start < 0 ? 0 : start + name.length).replace(/\.$/, "");
};

function withAge({ text, since }: Wait, { now }: Look): string {
  const at = fromWire(since);
  return at === undefined ? text : `${text} (${age(now - at)})`;
}

function timerLines({ timers }: Explanation, look: Look): string[] {
  return timers.flatMap(({ label, endsAt, follows, setting }) => {
    const rest = (fromWire(endsAt) ?? look.now) - look.now;
    const when = rest > 0 ? `in ${age(rest)}` : "due";
    const length = setting ? ` (by the default of ${setting})` : "";
    return wrap(`${label}: ${follows}${length}`, look.columns, `  ${when.padEnd(8)} `, " ".repeat(11));
  });
}

function attemptLines({ attempts, why }: Explanation, look: Look): string[] {
  const [only] = attempts;
  if (!only || (attempts.length === 1 && only.outcome === "under way")) return [];
  const shown = attempts.slice(-ATTEMPTS_SHOWN);
  const rows = shown.map((attempt) => [
    `  ${attempt.number}`,
    attempt.jobId ?? "",
    attempt.seconds === undefined ? "" : age(attempt.seconds * 1000),
    how(attempt, attempts.length > 1 ? why : undefined, look),
  ]);
  const earlier = attempts.length - shown.length;
  const width = look.columns;
  return [
    ...(earlier > 0 ? [`  … ${earlier} earlier`] : []),
    ...table(rows).map((row) => (width !== undefined && row.length > width ? `${row.slice(0, width - 1)}…` : row)),
  ];
}

/** How an attempt ended; with its message where that has not been shown yet. */
function how({ outcome, reason, message }: AttemptStory, why: string | undefined, { columns }: Look): string {
  const end = reason ? `${outcome} (${reason})` : outcome;
  const line = message && tellingLine(message);
  if (why === undefined || !line || outcome === "suspended" || (columns !== undefined && why.includes(line)))
    return end;
  return `${end}: ${line}`;
}

/** For programs. Keys stay; new ones may come. What is not known is null. */
export function explanationJson(explained: Explanation) {
  const { waits, timers, attempts, notes, advice } = explained;
  return {
    namespace: explained.namespace,
    name: explained.name,
    uid: explained.uid,
    state: explained.state,
    since: explained.since ?? null,
    why: explained.why,
    reason: explained.reason ?? null,
    jobStatus: explained.jobStatus ?? null,
    attempt: explained.attempt ?? null,
    attemptsAllowed: explained.attemptsAllowed,
    jobId: explained.jobId ?? null,
    rayClusterName: explained.rayClusterName ?? null,
    waits: waits.map(({ kind, name, node, since, reason, text }) => ({
      kind,
      name,
      node: node ?? null,
      since: since ?? null,
      reason: reason ?? null,
      text,
    })),
    timers: timers.map(({ name, label, endsAt, follows, setting }) => ({
      name,
      label,
      endsAt,
      follows,
      setting: setting ?? null,
    })),
    attempts: attempts.map((attempt) => ({
      number: attempt.number,
      jobId: attempt.jobId ?? null,
      rayClusterName: attempt.rayClusterName ?? null,
      outcome: attempt.outcome,
      reason: attempt.reason ?? null,
      message: attempt.message ?? null,
      startTime: attempt.startTime ?? null,
      endTime: attempt.endTime ?? null,
      seconds: attempt.seconds ?? null,
    })),
    notes,
    advice: advice.map(({ text, command }) => ({ text, command: command ?? null })),
  };
}
