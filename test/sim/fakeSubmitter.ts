/**
 * The generated submitter as a program in a Pod: submits the job that its environment describes, follows it, ends.
 *
 * A model of src/submitter, good enough for what the operator can see of it: when it submits, whether it does, how it
 * exits.
 */
import type { Pod } from "../../src/api/kubernetes.ts";
import { SUBMITTER_CONTAINER } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import { isTerminal, type SubmitRequest } from "../../src/domain/rayjob/ray.ts";
import { type Clock, sleep } from "../../src/machinery/clock.ts";
import { Dashboard } from "../../src/ray/dashboard.ts";
import type { RayTransport } from "../../src/ray/transport.ts";
import type { ContainerEnd } from "./fakeKubelet.ts";

/** What a submitter does besides its work; milliseconds. */
export interface SubmitterScript {
  /** From its start to its first question. */
  readonly boot: number;
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
  const { dashboard: at, request, session: meantFor } = instructions(pod);
  const dashboard = new Dashboard({ transport: ray, askTimeout: 5000, commandTimeout: 15_000 });
  await sleep(clock, script.boot, signal);
  if (script.failsEarly) return { exitCode: 1 };
  let heard = clock.now();
  for (let submitted = false; ; await sleep(clock, 1000, signal)) {
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

/** A sidecar is told no session: it takes its own head's. */
function instructions(pod: Stored<Pod>): { dashboard: string; request: SubmitRequest; session?: string } {
  const container = pod.spec?.containers.find(({ name }) => name === SUBMITTER_CONTAINER);
  const env = new Map((container?.env ?? []).map(({ name, value = "" }) => [name, value.replaceAll("$$", "$")]));
  let text = env.get("RAYKEEPER_SUBMIT") ?? "";
  for (let part = 1; env.has(`RAYKEEPER_SUBMIT_${part}`); part++) text += env.get(`RAYKEEPER_SUBMIT_${part}`);
  const { session, ...request } = JSON.parse(text) as SubmitRequest & { session?: string };
  return { dashboard: env.get("RAY_DASHBOARD_ADDRESS")!.replace(/^https?:\/\//, ""), request, session };
}
