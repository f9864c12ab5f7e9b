/**
 * The submitter as a program in a Pod: submits a job, follows it, ends.
 *
 * Models, good enough for what the operator can see of them (when they submit, whether they do, how they exit): of
 * src/submitter, which is told the job by its environment; and of `ray job submit`, as a user's own command.
 */
import type { Container, Pod } from "../../src/api/kubernetes.ts";
import { SUBMITTER_CONTAINER } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import { isTerminal, type RayAddress, type SubmitRequest } from "../../src/domain/rayjob/ray.ts";
import { type Clock, sleep } from "../../src/machinery/clock.ts";
import { Dashboard } from "../../src/ray/dashboard.ts";
import type { RayTransport } from "../../src/ray/transport.ts";
import type { ContainerEnd } from "./fakeKubelet.ts";

/** What a submitter does besides its work; milliseconds. */
export interface SubmitterScript {
  /** From its start to its first question. */
  readonly boot: number;
  /** Between its questions; a second when absent. */
  readonly every?: number;
  /** It fails before it has submitted. */
  readonly failsEarly?: boolean;
  /** It fails this long after Ray has the job. */
  readonly failsAfterSubmission?: number;
  /** It never ends by itself. */
  readonly hangs?: boolean;
}

/** Without any answer from Ray, before giving up. */
const PATIENCE = 600_000;

export const diligent: SubmitterScript = { boot: 500 };

/** Runs until the job has ended, it must give up, or `signal` says that its Pod is gone. */
export async function runSubmitter(
  pod: Stored<Pod>,
  script: SubmitterScript,
  { clock, ray, signal }: { clock: Clock; ray: RayTransport; signal: AbortSignal },
): Promise<ContainerEnd> {
  const { at, request, session: meantFor } = instructions(pod);
  const dashboard = new Dashboard({ transport: ray, askTimeout: 5000, commandTimeout: 15_000 });
  await sleep(clock, script.boot, signal);
  if (script.failsEarly) return { exitCode: 1 };
  let heard = clock.now();
  for (let submitted = false; ; await sleep(clock, script.every ?? 1000, signal)) {
    const job = await dashboard.job(at, request.submission_id);
    signal.throwIfAborted();
    if (job.kind === "none") {
      if (clock.now() - heard > PATIENCE) return { exitCode: 1 };
      continue;
    }
    heard = clock.now();
    if (job.kind === "notFound") {
      // Ray has lost it: the operator judges that. A head that is not the one it was sent to gets nothing.
      if (submitted) return { exitCode: 0 };
      const session = await dashboard.session(at);
      if (meantFor !== undefined && session !== meantFor) return { exitCode: 1 };
      signal.throwIfAborted();
      if (session === undefined) continue;
      submitted = (await dashboard.submit(at, request, session)).result === "done";
      continue;
    }
    submitted = true;
    if (script.failsAfterSubmission !== undefined) {
      await sleep(clock, script.failsAfterSubmission, signal);
      return { exitCode: 1 };
    }
    if (isTerminal(job.info.status) && !script.hangs) return { exitCode: 0 };
  }
}

/** The token that a container is told of: what Ray in it wants, and what its SDK shows. */
export function tokenOf({ env = [] }: Pick<Container, "env"> = {}): string | undefined {
  const value = (called: string) => env.find(({ name }) => name === called)?.value;
  return value("RAY_AUTH_MODE") === "token" ? value("RAY_AUTH_TOKEN")?.trim() : undefined;
}

/** What a submitter's requests go through: they show the token that its container is told of. */
export function showingToken(pod: Pod, ray: RayTransport): RayTransport {
  const containers = pod.spec?.containers ?? [];
  const token = tokenOf(containers.find(({ name }) => name === SUBMITTER_CONTAINER) ?? containers[0]);
  if (token === undefined) return ray;
  return {
    request: (request) =>
      ray.request({ ...request, headers: { ...request.headers, authorization: `Bearer ${token}` } }),
  };
}

/** Whether a user's own command runs in the Pod, instead of the operator's program. */
export const hasOwnCommand = (pod: Stored<Pod>): boolean =>
  !pod.spec?.containers.some(({ env }) => env?.some(({ name }) => name === "RAYKEEPER_SUBMIT"));

/** Ray's CLI: hands its job over without asking for it first, follows it, and ends as the job did. */
export async function runOwnCommand(
  pod: Stored<Pod>,
  script: SubmitterScript,
  { clock, ray, signal }: { clock: Clock; ray: RayTransport; signal: AbortSignal },
): Promise<ContainerEnd> {
  const { env = [], args = [] } = pod.spec!.containers[0]!;
  const variable = (called: string) => env.find(({ name }) => name === called)?.value ?? "";
  const [dashboard, id] = [variable("RAY_DASHBOARD_ADDRESS"), variable("RAY_JOB_SUBMISSION_ID")];
  await sleep(clock, script.boot, signal);
  if (script.failsEarly) return { exitCode: 1 };
  const body = JSON.stringify({ entrypoint: args.at(-1) ?? "", submission_id: id });
  try {
    const { status } = await ray.request({ dashboard, method: "POST", path: "/api/jobs/", body, timeout: 15_000 });
    signal.throwIfAborted();
    if (status >= 300) return { exitCode: 1 };
  } catch {
    signal.throwIfAborted();
    return { exitCode: 1 };
  }
  const asked = new Dashboard({ transport: ray, askTimeout: 5000, commandTimeout: 15_000 });
  for (; ; await sleep(clock, 1000, signal)) {
    const job = await asked.job({ dashboard }, id);
    signal.throwIfAborted();
    if (job.kind !== "known") return { exitCode: 1 };
    if (isTerminal(job.info.status)) return { exitCode: job.info.status === "FAILED" ? 1 : 0 };
  }
}

/** A sidecar is told no session: it takes its own head's. */
function instructions(pod: Stored<Pod>): { at: RayAddress; request: SubmitRequest; session?: string } {
  const container = pod.spec?.containers.find(({ env }) => env?.some(({ name }) => name === "RAYKEEPER_SUBMIT"));
  const env = new Map((container?.env ?? []).map(({ name, value = "" }) => [name, value.replaceAll("$$", "$")]));
  let text = env.get("RAYKEEPER_SUBMIT") ?? "";
  for (let part = 1; env.has(`RAYKEEPER_SUBMIT_${part}`); part++) text += env.get(`RAYKEEPER_SUBMIT_${part}`);
  const { session, ...request } = JSON.parse(text) as SubmitRequest & { session?: string };
  return { at: { dashboard: env.get("RAY_DASHBOARD_ADDRESS")!.replace(/^https?:\/\//, "") }, request, session };
}
