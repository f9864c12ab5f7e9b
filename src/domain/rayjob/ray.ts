/**
 * What Ray said, and what is asked of it: the vocabulary between the RayJob's decisions, the poller that asks dashboards
 * in the background, and the client that carries commands out off the reconcile worker.
 */
import type { Instant } from "../time.ts";

export type RayJobStatus = "PENDING" | "RUNNING" | "STOPPED" | "SUCCEEDED" | "FAILED";

export const isTerminal = (status: string | undefined): boolean =>
  status === "STOPPED" || status === "SUCCEEDED" || status === "FAILED";

/** Ray's job object (`GET /api/jobs/{id}`), as far as decisions read it. */
export interface RayJobInfo {
  readonly status: RayJobStatus;
  readonly message: string;
  readonly startTime?: Instant;
  readonly endTime?: Instant;
  /** Hex id of the node the driver runs on; Ray writes it together with RUNNING. */
  readonly driverNodeId?: string;
}

export type JobAnswer =
  | { readonly kind: "known"; readonly info: RayJobInfo }
  /** HTTP 404 from Ray's own job server. */
  | { readonly kind: "notFound" }
  /** No answer: no connection, time-out, or any status other than 2xx and 404, whatever its body. */
  | { readonly kind: "none"; readonly error: string };

/** One round of questions about one job. */
export interface RayAnswer {
  /** When the round's first request started: the answer counts only against facts older than this. */
  readonly requestedAt: Instant;
  /** It was asked for this, and so after it was known: no time says since when. */
  readonly occasion?: Occasion;
  readonly job: JobAnswer;
  /** `session_name`, asked after the job so that "not found" and this session belong together; absent when not learnt. */
  readonly session?: string;
  /** State of the driver's node in Ray's node list; UNKNOWN when it could not be learnt, or there is no driver node yet. */
  readonly driverNode: "ALIVE" | "DEAD" | "MISSING" | "UNKNOWN";
}

/** A Ray to be asked. */
export interface RayAddress {
  /** `host:port` of the dashboard, without scheme. */
  readonly dashboard: string;
  /** The Secret with the token that it wants; absent where it wants none. */
  readonly token?: SecretRef;
}

/** A Secret, whose key `auth_token` is meant. */
export interface SecretRef {
  readonly namespace: string;
  readonly name: string;
}

/** Which job of which attempt is meant. Answers and outcomes are kept under `uid` and `attempt`, never under a name alone. */
export interface RayTarget extends RayAddress {
  readonly uid: string;
  readonly attempt: number;
  readonly namespace: string;
  readonly name: string;
  readonly rayClusterName: string;
  readonly jobId: string;
}

/** Body of `POST /api/jobs/`; keys are Ray's. */
export interface SubmitRequest {
  readonly entrypoint: string;
  readonly submission_id: string;
  readonly runtime_env?: Readonly<Record<string, unknown>>;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly entrypoint_num_cpus?: number;
  readonly entrypoint_num_gpus?: number;
  readonly entrypoint_resources?: Readonly<Record<string, number>>;
}

/** An effect on Ray. It is handed over and not waited for; its outcome is an observation of a later pass. */
export type RayCommand =
  | {
      readonly do: "submit";
      readonly target: RayTarget;
      readonly request: SubmitRequest;
      /** The record's session: the client asks for it immediately before the POST and does not send when it differs. */
      readonly session: string;
      readonly why: string;
    }
  | { readonly do: "stop"; readonly target: RayTarget; readonly why: string }
  | { readonly do: "forget"; readonly target: RayTarget; readonly why: string };

export interface RayOutcome {
  readonly startedAt: Instant;
  /** Absent while the request is under way. */
  readonly finishedAt?: Instant;
  /** `unknown`: sent, and no answer came; Ray may have done it. `refused`: surely not done. */
  readonly result?: "done" | "refused" | "unknown";
  readonly message?: string;
}

/** All that is known from Ray about one attempt. Empty after a start of the operator: nothing here is ever relied on to persist. */
export interface RayObservation {
  readonly answer?: RayAnswer;
  readonly submit?: RayOutcome;
  readonly stop?: RayOutcome;
  readonly forget?: RayOutcome;
}

/** How urgently a job should be asked about. */
export type PollPace = "quick" | "steady" | "off";

/** What shall be done that cannot be taken back: Ray is asked once more before, since the job may just have ended. */
export type Occasion = "suspension";

/** Tells the poller what to ask; derived from the observation on every pass. */
export interface RayInterest {
  readonly target: RayTarget;
  readonly pace: PollPace;
  /** An answer whose request started before this instant is of no use any more: ask again soon. */
  readonly notBefore?: Instant;
  /** An answer that was not asked for on this occasion is of no use any more, either. */
  readonly occasion?: Occasion;
}
