/**
 * The tokens with which Ray is spoken to: a RayTransport before another one.
 *
 * Answers: which token does this Ray want; why did it refuse, and what is to be done about that.
 * May not: tell a token to anybody but Ray, or keep Ray from being asked: without a token Ray says itself that it wants one.
 *
 * Secrets are not watched: that takes the right to list all of them. One is read when it is first needed, and again when
 * Ray refuses what is known, though not at each refusal. So a Secret that is changed while the head lives on does no
 * harm: the head goes by what it was started with, and so does this until a new head says otherwise.
 */
import type { Secret } from "../api/kubernetes.ts";
import { TOKEN_KEY } from "../domain/raycluster/auth.ts";
import type { SecretRef } from "../domain/rayjob/ray.ts";
import { tokenTrouble } from "../domain/rayjob/tokenTrouble.ts";
import { type Clock, sleep } from "../machinery/clock.ts";
import type { KubeClient } from "../machinery/kube/client.ts";
import { isForbidden, isNotFound } from "../machinery/kube/errors.ts";
import { secrets } from "../machinery/kube/resources.ts";
import { describe } from "../machinery/logger.ts";
import { type RayRequest, type RayResponse, type RayTransport, RayTransportError } from "./transport.ts";

/** Not `authorization`: that one is the API server's where it is the proxy. */
const HEADER = "x-ray-authorization";

/** Milliseconds. */
const READ_TIMEOUT = 5_000;
/** Between two looks at a Secret while Ray refuses what is in it. */
const LOOK_AGAIN = 10_000;
/** What nobody has needed for so long is forgotten. */
const KEPT = 600_000;

/** What a Secret gives: a token, or why there is none and what to do. */
type Found = { readonly token: string } | { readonly remedy: string };

interface Known {
  readonly found: Promise<Found>;
  readonly readAt: number;
  usedAt: number;
}

/** `client` reads the Secrets. */
export function withTokens(transport: RayTransport, options: { client: KubeClient; clock: Clock }): RayTransport {
  const { clock } = options;
  const tokens = new Tokens(options);
  return {
    async request(request: RayRequest): Promise<RayResponse> {
      const { token: ref } = request;
      if (!ref) {
        const answer = await transport.request(request);
        return isRefusal(answer) ? { ...answer, remedy: tokenTrouble.unsaid } : answer;
      }
      // The time-out is for all of it: whoever sends a command may count on it that nothing goes out later.
      const deadline = clock.now() + request.timeout;
      const send = (found: Found) => transport.request(bearing(request, found, deadline - clock.now()));
      const first = tokens.known(ref);
      const found = await inTime(first.found, deadline, clock);
      const answer = await send(found);
      if (!isRefusal(answer)) return answer;
      const newer = await inTime(tokens.readAgain(ref, first).found, deadline, clock);
      // Refused is not done, so a command may be sent again, too.
      const last = isSame(found, newer) ? answer : await send(newer);
      return isRefusal(last) ? { ...last, remedy: remedyOf(newer, ref) } : last;
    },
  };
}

const remedyOf = (found: Found, ref: SecretRef): string => ("remedy" in found ? found.remedy : tokenTrouble.wrong(ref));

const isSame = (one: Found, other: Found): boolean =>
  ("token" in one ? one.token : undefined) === ("token" in other ? other.token : undefined);

function bearing({ headers, ...request }: RayRequest, found: Found, timeout: number): RayRequest {
  if (timeout <= 0) throw tooLate();
  const shown = "token" in found && { [HEADER]: `Bearer ${found.token}` };
  return { ...request, headers: { ...headers, ...shown }, timeout };
}

async function inTime<T>(waited: Promise<T>, deadline: number, clock: Clock): Promise<T> {
  const over = new AbortController();
  const late = sleep(clock, Math.max(0, deadline - clock.now()), over.signal).then(() => {
    throw tooLate();
  });
  try {
    return await Promise.race([waited, late]);
  } finally {
    late.catch(() => {});
    over.abort();
  }
}

const tooLate = () => new RayTransportError("the Secret with Ray's token was not read in time", { maybeSent: false });

/** Ray's own: the API server, which may be the proxy, says it in a Status. */
function isRefusal({ status, body }: RayResponse): boolean {
  return (status === 401 || status === 403) && !/^\s*\{.*"kind"\s*:\s*"Status"/s.test(body);
}

const placeOf = ({ namespace, name }: SecretRef): string => `${namespace}/${name}`;

class Tokens {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();
  #sweptAt = 0;

  constructor({ client, clock }: { client: KubeClient; clock: Clock }) {
    this.#client = client.with({ readTimeout: READ_TIMEOUT });
    this.#clock = clock;
  }

  known(ref: SecretRef): Known {
    const now = this.#clock.now();
    this.#sweep(now);
    const known = this.#known.get(placeOf(ref)) ?? this.#read(ref);
    known.usedAt = now;
    return known;
  }

  /** Ray has refused what is `known`: what the Secret has now, unless that was looked at just before. */
  readAgain(ref: SecretRef, known: Known): Known {
    const latest = this.#known.get(placeOf(ref)) ?? known;
    return latest !== known || this.#clock.now() - latest.readAt < LOOK_AGAIN ? latest : this.#read(ref);
  }

  #read(ref: SecretRef): Known {
    const now = this.#clock.now();
    const known: Known = { found: this.#find(ref), readAt: now, usedAt: now };
    this.#known.set(placeOf(ref), known);
    return known;
  }

  async #find(ref: SecretRef): Promise<Found> {
    try {
      const { data = {} } = await this.#client.get<Secret>(secrets, ref.namespace, ref.name);
      const coded = data[TOKEN_KEY];
      if (coded === undefined) return { remedy: tokenTrouble.withoutKey(ref) };
      // As Ray reads it: a file that ends with a line break is a token all the same.
      const token = Buffer.from(coded, "base64").toString("utf8").trim();
      return /^[\x21-\x7e]+$/.test(token) ? { token } : { remedy: tokenTrouble.unusable(ref) };
    } catch (error) {
      if (isNotFound(error)) return { remedy: tokenTrouble.missing(ref) };
      const why = isForbidden(error) ? tokenTrouble.forbidden : tokenTrouble.unreadable;
      return { remedy: why(ref, describe(error)) };
    }
  }

  #sweep(now: number): void {
    if (now - this.#sweptAt < KEPT / 10) return;
    this.#sweptAt = now;
    for (const [place, { usedAt }] of this.#known) if (now - usedAt >= KEPT) this.#known.delete(place);
  }
}
