/**
 * The container that runs the submitter's program, in whichever Pod: the Kubernetes Job's, or the head's.
 *
 * The program is src/submitter/submit.py. All it needs reaches it as data: the request as JSON in environment variables,
 * the program as one argument. No shell reads any of it.
 */
import type { Container, EnvVar } from "../../api/kubernetes.ts";
import { SUBMITTER_CONTAINER } from "../../api/labels.ts";
import type { AttemptRecord } from "../../api/rayjob.ts";
import type { Settings } from "../settings.ts";
import type { SubmitRequest } from "./ray.ts";

/** Kueue accounts for the submitter by these amounts. */
const RESOURCES = { requests: { cpu: "500m", memory: "200Mi" }, limits: { cpu: "1", memory: "1Gi" } };

/** Linux takes 128 KiB in one argument or variable. */
const CHUNK = 96 * 1024;

/** `ray`: the head's Ray container, whose image it takes. `dashboard`: `host:port`, as seen from its Pod. */
export function submitterContainer(
  ray: Container | undefined,
  record: AttemptRecord,
  request: SubmitRequest,
  dashboard: string,
  settings: Settings,
): Container {
  return {
    name: SUBMITTER_CONTAINER,
    image: ray?.image,
    ...(ray?.imagePullPolicy ? { imagePullPolicy: ray.imagePullPolicy } : {}),
    ...command(settings),
    env: environment(record, request, dashboard),
    resources: RESOURCES,
    // What it said last is then in its Pod's status, and so in the RayJob's, when its log is gone.
    terminationMessagePolicy: "FallbackToLogsOnError",
  };
}

/** A login shell only finds `python` (some images set PATH in a profile); the program stays an argument of its own. */
function command(settings: Settings): { command: string[]; args: string[] } {
  const program = literally(settings.submitterProgram);
  return settings.loginShell
    ? { command: ["/bin/bash", "-lc", `exec python -u -c "$0"`], args: [program] }
    : { command: ["python", "-u", "-c"], args: [program] };
}

function environment(record: AttemptRecord, request: SubmitRequest, dashboard: string): EnvVar[] {
  const submission = asciiJSON({ ...request, session: record.raySession });
  const chunks = submission.match(new RegExp(`.{1,${CHUNK}}`, "gs")) ?? [];
  return [
    { name: "PYTHONUNBUFFERED", value: "1" },
    { name: "RAY_DASHBOARD_ADDRESS", value: literally(dashboard) },
    { name: "RAY_JOB_SUBMISSION_ID", value: literally(record.jobId ?? "") },
    ...chunks.map((value, index) => ({ name: index === 0 ? "RAYKEEPER_SUBMIT" : `RAYKEEPER_SUBMIT_${index}`, value })),
  ];
}

/** kubelet expands `$(NAME)` in arguments and variables, and makes `$` of `$$`. */
const literally = (text: string): string => text.replaceAll("$", "$$$$");

/**
 * JSON without a dollar, for kubelet, and without a character that the container's locale might read differently, or
 * that a cut could halve.
 */
function asciiJSON(value: unknown): string {
  return JSON.stringify(value).replace(
    /[$\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
