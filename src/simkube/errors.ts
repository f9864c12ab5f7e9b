/**
 * The catalogue of refusals, in the API server's words, so that clients which read them find what they expect.
 *
 * Answers: the Status object for each kind of refusal, and the phrases for what is wrong with a field.
 * Next: requests.ts turns an ApiError into a response.
 */

/** What is wrong with one field. */
export interface Cause {
  readonly field: string;
  readonly reason: string;
  readonly message: string;
}

export interface Status {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata: Record<string, never>;
  readonly status: "Success" | "Failure";
  readonly message?: string;
  readonly reason?: string;
  readonly details?: Readonly<Record<string, unknown>>;
  readonly code?: number;
}

export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: Status;

  constructor(code: number, reason: string, message: string, details?: Readonly<Record<string, unknown>>) {
    super(message);
    this.status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, details, code };
  }
}

/** What names a kind of object in a message. */
export interface Named {
  readonly group: string;
  readonly plural: string;
  readonly kind: string;
}

const qualified = (plural: string, group: string) => (group ? `${plural}.${group}` : plural);
const details = (resource: Named, name: string, more?: object) => ({
  name,
  ...(resource.group && { group: resource.group }),
  kind: resource.plural,
  ...more,
});

export const notFound = (resource: Named, name: string) =>
  new ApiError(
    404,
    "NotFound",
    `${qualified(resource.plural, resource.group)} "${name}" not found`,
    details(resource, name),
  );

export const noSuchPath = () => new ApiError(404, "NotFound", "the server could not find the requested resource", {});

export const alreadyExists = (resource: Named, name: string) =>
  new ApiError(
    409,
    "AlreadyExists",
    `${qualified(resource.plural, resource.group)} "${name}" already exists`,
    details(resource, name),
  );

export const conflict = (resource: Named, name: string, why = CHANGED) =>
  new ApiError(
    409,
    "Conflict",
    `Operation cannot be fulfilled on ${qualified(resource.plural, resource.group)} "${name}": ${why}`,
    details(resource, name),
  );
const CHANGED = "the object has been modified; please apply your changes to the latest version and try again";

export const badRequest = (message: string) => new ApiError(400, "BadRequest", message);

export const forbiddenRequest = (resource: Named, name: string, why: string, causes?: readonly Cause[]) =>
  new ApiError(
    403,
    "Forbidden",
    `${qualified(resource.plural, resource.group)} "${name}" is forbidden: ${why}`,
    details(resource, name, causes && { causes }),
  );

export const expired = (message: string) => new ApiError(410, "Expired", message);

export const unsupportedMediaType = (message: string) => new ApiError(415, "UnsupportedMediaType", message);

export const notImplemented = (message: string) => new ApiError(501, "NotImplemented", message);

export const methodNotAllowed = () =>
  new ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {});

export const tooLargeVersion = (wanted: number, current: number) =>
  new ApiError(504, "Timeout", `Too large resource version: ${wanted}, current: ${current}`, {
    causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
    retryAfterSeconds: 1,
  });

/** A JSON patch that does not apply. */
export const patchDoesNotApply = (message: string) =>
  new ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {
    causes: [{ reason: "UnexpectedServerResponse", message }],
  });

export function invalid(resource: Named, name: string, causes: readonly Cause[]): ApiError {
  const told = causes.map((cause) => `${cause.field}: ${cause.message}`);
  const list = told.length === 1 ? told[0] : `[${told.join(", ")}]`;
  return new ApiError(422, "Invalid", `${qualified(resource.kind, resource.group)} "${name}" is invalid: ${list}`, {
    ...details(resource, name),
    kind: resource.kind,
    causes,
  });
}

/** The answer to a deletion that left nothing behind. */
export const deleted = (resource: Named, name: string, uid: string): Status => ({
  kind: "Status",
  apiVersion: "v1",
  metadata: {},
  status: "Success",
  details: details(resource, name, { uid }),
});

const show = (value: unknown): string => (value === undefined ? "null" : JSON.stringify(value));
const few = (count: number, thing: string) => `${count} ${thing}${count === 1 ? "" : "s"}`;

/** Phrases for what is wrong with a field. */
export const fault = {
  /** Without a value when there is none worth showing. */
  invalid: (field: string, value: unknown, why: string): Cause => ({
    field,
    reason: "FieldValueInvalid",
    message: value === undefined ? `Invalid value: ${why}` : `Invalid value: ${show(value)}: ${why}`,
  }),
  /** For a value whose type is wrong: the type stands in for the value. */
  type: (field: string, found: string, wanted: string): Cause => ({
    field,
    reason: "FieldValueTypeInvalid",
    message: `Invalid value: "${found}": ${field} in body must be of type ${wanted}: "${found}"`,
  }),
  required: (field: string, why?: string): Cause => ({
    field,
    reason: "FieldValueRequired",
    message: why ? `Required value: ${why}` : "Required value",
  }),
  unsupported: (field: string, value: unknown, supported: readonly unknown[]): Cause => ({
    field,
    reason: "FieldValueNotSupported",
    message: `Unsupported value: ${show(value)}: supported values: ${supported.map(show).join(", ")}`,
  }),
  forbidden: (field: string, why: string): Cause => ({
    field,
    reason: "FieldValueForbidden",
    message: `Forbidden: ${why}`,
  }),
  duplicate: (field: string, value: unknown): Cause => ({
    field,
    reason: "FieldValueDuplicate",
    message: `Duplicate value: ${show(value)}`,
  }),
  notFound: (field: string, value: unknown): Cause => ({
    field,
    reason: "FieldValueNotFound",
    message: `Not found: ${show(value)}`,
  }),
  tooLong: (field: string, limit: number): Cause => ({
    field,
    reason: "FieldValueTooLong",
    message: `Too long: may not be more than ${few(limit, "byte")}`,
  }),
  tooMany: (field: string, count: number, limit: number): Cause => ({
    field,
    reason: "FieldValueTooMany",
    message: `Too many: ${count}: must have at most ${few(limit, "item")}`,
  }),
};
