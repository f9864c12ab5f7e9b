/**
 * The container that submits, in whichever Pod: the Kubernetes Job's, or the head's.
 *
 * The program is src/submitter/submit.py. All it needs reaches it as data: the request as JSON in environment variables,
 * the program as one argument. No shell reads any of it. A user's own command gets the environment that KubeRay gives.
 * Next: submitterPod.ts for the Pod around it, sidecar.ts for the head's.
 */
import type { Container, EnvVar } from "../../api/kubernetes.ts";
import { SUBMITTER_CONTAINER } from "../../api/labels.ts";
import type { AttemptRecord } from "../../api/rayjob.ts";
import { type Authenticated, tokenVariables } from "../raycluster/auth.ts";
import type { Settings } from "../settings.ts";
import type { SubmitRequest } from "./ray.ts";

/** Kueue accounts for the submitter by these amounts. */
const RESOURCES = { requests: { cpu: "500m", memory: "200Mi" }, limits: { cpu: "1", memory: "1Gi" } };

/** Linux takes 128 KiB in one argument or variable. */
const CHUNK = 96 * 1024;

/** Whom it submits to: the RayCluster, and its dashboard as `host:port`, as seen from its Pod. */
export interface Destination {
  readonly cluster: Authenticated;
  readonly dashboard: string;
}

/** It takes the image of the head's Ray container. */
export function submitterContainer(
  record: AttemptRecord,
  request: SubmitRequest,
  to: Destination,
  settings: Settings,
): Container {
  const ray = to.cluster.spec.headGroupSpec.template.spec?.containers?.[0];
  const container = { ...imageOf(ray), name: SUBMITTER_CONTAINER, resources: RESOURCES };
  return withProgram(container, record, request, to, settings);
}

/** What pulls the same image as that container. */
export const imageOf = (ray: Container | undefined): Pick<Container, "image" | "imagePullPolicy"> => ({
  image: ray?.image,
  ...(ray?.imagePullPolicy ? { imagePullPolicy: ray.imagePullPolicy } : {}),
});

/** The container as it is, save that it runs the program. */
export function withProgram(
  container: Container,
  record: AttemptRecord,
  request: SubmitRequest,
  to: Destination,
  settings: Settings,
): Container {
  const submission = asciiJSON({ ...request, session: record.raySession });
  const chunks = submission.match(new RegExp(`.{1,${CHUNK}}`, "gs")) ?? [];
  const told = chunks.map((value, index) => ({
    name: index === 0 ? "RAYKEEPER_SUBMIT" : `RAYKEEPER_SUBMIT_${index}`,
    value,
  }));
  return {
    ...KEEPS_LAST_WORDS,
    ...container,
    ...command(settings, container),
    env: withVariables(container, [...addresses(record, to), ...told], to),
  };
}

/** The container as it is, command and arguments included: it knows where to submit what, and under which id. */
export function withOwnCommand(container: Container, record: AttemptRecord, to: Destination): Container {
  return { ...KEEPS_LAST_WORDS, ...container, env: withVariables(container, addresses(record, to), to) };
}

/** What it said last is then in its Pod's status, and so in the RayJob's, when its log is gone. */
const KEEPS_LAST_WORDS: Pick<Container, "terminationMessagePolicy"> = {
  terminationMessagePolicy: "FallbackToLogsOnError",
};

/** KubeRay's name for all submitters of an operator; as a variable of a template's container it is about that one. */
const LOGIN_SHELL = "ENABLE_LOGIN_SHELL";

/** A login shell only finds `python` (some images set PATH in a profile); the program stays an argument of its own. */
function command(
  { submitterProgram, loginShell }: Settings,
  { env }: Container,
): { command: string[]; args: string[] } {
  const program = literally(submitterProgram);
  const asked = env?.some(({ name, value }) => name === LOGIN_SHELL && value?.toLowerCase() === "true");
  return loginShell || asked
    ? { command: ["/bin/bash", "-lc", `exec python -u -c "$0"`], args: [program] }
    : { command: ["python", "-u", "-c"], args: [program] };
}

/** KubeRay's contract with every submitter. The address has no scheme. */
const addresses = (record: AttemptRecord, { dashboard }: Destination): EnvVar[] => [
  { name: "PYTHONUNBUFFERED", value: "1" },
  { name: "RAY_DASHBOARD_ADDRESS", value: literally(dashboard) },
  { name: "RAY_JOB_SUBMISSION_ID", value: literally(record.jobId ?? "") },
];

/**
 * Ours last, and in place of the user's of the same name, so that each name is there once; save what Ray is to be shown,
 * where the user's counts.
 */
const withVariables = (container: Container, ours: readonly EnvVar[], { cluster }: Destination): EnvVar[] => [
  ...(container.env ?? []).filter(({ name }) => !ours.some((our) => our.name === name)),
  ...ours,
  ...tokenVariables(cluster, container),
];

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
