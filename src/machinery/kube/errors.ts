/**
 * What an API server's refusal means.
 *
 * KubeError: the server answered, and not with success. TransportError (transport.ts): it did not answer.
 */
import type { KubeResponse } from "./transport.ts";
import { TransportError } from "./transport.ts";

export interface StatusDetails {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly { readonly reason?: string; readonly message?: string; readonly field?: string }[];
  readonly retryAfterSeconds?: number;
}

const LONGEST_WAIT = 60_000;
/** What was refused may be quoted, whatever its size; the message goes into statuses, events and the log. */
const LONGEST_MESSAGE = 8 * 1024;

/** The server's answer to a request that it did not grant. */
export class KubeError extends Error {
  override readonly name = "KubeError";
  /** HTTP status. */
  readonly status: number;
  /** The API's word for it (`NotFound`, `AlreadyExists`, `Conflict`, …); empty when the answer carried none. */
  readonly reason: string;
  readonly details: StatusDetails;
  /** Milliseconds the server asks to be left alone for; a minute at most, since asking once more then does no harm. */
  readonly retryAfter?: number;

  constructor(
    status: number,
    reason: string,
    message: string,
    options: { details?: StatusDetails; retryAfter?: number } = {},
  ) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.details = options.details ?? {};
    this.retryAfter = options.retryAfter === undefined ? undefined : Math.min(options.retryAfter, LONGEST_WAIT);
  }
}

/** The error in an answer, from its `Status` object where it has one, otherwise from its text. */
export function errorFrom(response: Pick<KubeResponse, "status" | "headers" | "body">, request: string): KubeError {
  const fromHeader = Number.parseFloat(response.headers["retry-after"] ?? "");
  const retryAfter = Number.isFinite(fromHeader) ? Math.max(0, fromHeader * 1000) : undefined;
  return errorFromStatus(response.body, { status: response.status, request, retryAfter });
}

/** The error in a `Status` object, as a watch delivers it; `otherwise` fills in what it does not say. */
export function errorFromStatus(
  body: unknown,
  otherwise: { status: number; request: string; retryAfter?: number },
): KubeError {
  const said = isStatus(body) ? body : {};
  const status = said.code ?? otherwise.status;
  const text = typeof body === "string" ? body.trim().slice(0, 500) : "";
  const inBody = said.details?.retryAfterSeconds;
  return new KubeError(
    status,
    said.reason ?? "",
    said.message?.slice(0, LONGEST_MESSAGE) ||
      `${otherwise.request} was answered with status ${status}${text && `: ${text}`}`,
    {
      details: said.details,
      retryAfter: otherwise.retryAfter ?? (inBody ? inBody * 1000 : undefined),
    },
  );
}

interface Status {
  readonly code?: number;
  readonly reason?: string;
  readonly message?: string;
  readonly details?: StatusDetails;
}

const isStatus = (body: unknown): body is Status =>
  typeof body === "object" && body !== null && (body as { kind?: unknown }).kind === "Status";

const answered = (error: unknown, status: number): error is KubeError =>
  error instanceof KubeError && error.status === status;

export const isNotFound = (error: unknown): error is KubeError => answered(error, 404);
/** Another version, or another UID, than the precondition named. An object that exists already is not meant. */
export const isConflict = (error: unknown): error is KubeError =>
  answered(error, 409) && error.reason !== "AlreadyExists";
export const isAlreadyExists = (error: unknown): error is KubeError =>
  answered(error, 409) && error.reason === "AlreadyExists";
/** The version asked for is no longer in the server's history. */
export const isGone = (error: unknown): error is KubeError => answered(error, 410);
export const isTooManyRequests = (error: unknown): error is KubeError => answered(error, 429);
export const isInvalid = (error: unknown): error is KubeError => answered(error, 422);
export const isForbidden = (error: unknown): error is KubeError => answered(error, 403);
/** The namespace is being deleted, so nothing can be made in it any more: what asks for it goes soon, too. */
export const isNamespaceTerminating = (error: unknown): error is KubeError =>
  answered(error, 403) && (error.details.causes ?? []).some(({ reason }) => reason === "NamespaceTerminating");

/**
 * Whether a write that ended with this error may have been done all the same: no answer came, or one from a server (or a
 * proxy before it) that did not know either.
 */
export function isUnknownOutcome(error: unknown): boolean {
  if (error instanceof TransportError) return error.maybeSent;
  return error instanceof KubeError && error.status >= 500;
}
