/**
 * The webhook's own certificate authority as a value: which certificates there are, and which must be made now.
 *
 * Answers: the ring as it should be at a time; the very same ring when nothing is due.
 * An authority is never used before every API server trusts it, nor dropped while anything that it signed may be shown:
 * the next one is added to the trusted ones first, signs when that is surely known everywhere, and the old one goes when
 * no replica can still show what it signed.
 * Next: keeper.ts keeps the ring in a Secret, and tells the API server whom to trust.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { type Certificate, issue } from "../machinery/x509.ts";

export interface KeyRing {
  /** What signs. */
  readonly authority: Certificate;
  /** What will sign. */
  readonly next?: Certificate;
  /** PEM, one certificate each: `authority`, `next`, and what has signed until lately. */
  readonly trusted: readonly string[];
  /** What the webhook shows. */
  readonly serving: Certificate;
}

/** Milliseconds. */
export interface Lifetimes {
  readonly authority: number;
  readonly serving: number;
  /** In which whom to trust, and what is shown, has reached every API server and every replica. */
  readonly overlap: number;
}

const DAY = 86_400_000;
export const LIFETIMES: Lifetimes = { authority: 365 * DAY, serving: 90 * DAY, overlap: 3_600_000 };
/** Whatever lives is renewed when this part of its life is over: time enough to notice that it failed. */
const RENEWED_AT = 2 / 3;
/** Clocks of different machines differ. */
const SKEW = 60_000;

/** Successors beside the authority that signs; each loss of the Secret makes one. */
const MOST_SUCCESSORS = 8;

export interface Circumstances {
  readonly names: { readonly dnsNames: readonly string[]; readonly addresses?: readonly string[] };
  readonly lifetimes: Lifetimes;
  /** PEM of whom the API server is told to trust already. */
  readonly told: readonly string[];
}

/** The ring as it should be now. Without one, a new one. */
export function turned(ring: KeyRing | undefined, around: Circumstances, now: number): KeyRing {
  if (!ring || hasEnded(ring.authority, now)) return begin(ring, around, now);
  const { overlap } = around.lifetimes;
  let { authority, next, trusted, serving } = ring;
  if (next && madeAt(next) + overlap <= now && around.told.includes(next.certificate)) {
    [authority, next] = [next, undefined];
  }
  if (!next && isDue(authority, now)) {
    next = newAuthority(around, now);
    trusted = [...trusted, next.certificate];
  }
  if (!signed(authority, serving) || isDue(serving, now) || !isFor(serving, around)) {
    serving = newServing(authority, around, now);
  }
  const kept = trusted.filter(
    (pem) => pem === authority.certificate || pem === next?.certificate || madeAt(serving) + overlap > now,
  );
  const same = authority === ring.authority && next === ring.next && serving === ring.serving;
  return same && kept.length === ring.trusted.length
    ? ring
    : { authority, ...(next && { next }), trusted: kept, serving };
}

/** Whoever lost the Secret may have done so on purpose: what is remembered goes on for a while, beside a successor. */
export function succeeded(ring: KeyRing, around: Circumstances, now: number): KeyRing {
  if (hasEnded(ring.authority, now)) return begin(ring, around, now);
  const next = newAuthority(around, now);
  // Where somebody else writes that Secret, too, it is lost again and again.
  const lately = ring.trusted.slice(-MOST_SUCCESSORS);
  const kept = ring.trusted.filter((pem) => pem === ring.authority.certificate || lately.includes(pem));
  return { ...ring, next, trusted: [...kept, next.certificate] };
}

/** No authority that anybody could trust. */
function begin(ring: KeyRing | undefined, around: Circumstances, now: number): KeyRing {
  const authority = ring?.next && !hasEnded(ring.next, now) ? ring.next : newAuthority(around, now);
  return { authority, trusted: [authority.certificate], serving: newServing(authority, around, now) };
}

function newAuthority({ names, lifetimes }: Circumstances, now: number): Certificate {
  const commonName = `${names.dnsNames[0] ?? "webhook"} authority`.slice(-64);
  return issue({ commonName, from: now - SKEW, until: now + lifetimes.authority, use: "authority" });
}

/** Never outlives who signs it. */
function newServing(authority: Certificate, { names, lifetimes }: Circumstances, now: number): Certificate {
  const until = Math.min(now + lifetimes.serving, endOf(authority));
  const commonName = (names.dnsNames[0] ?? "webhook").slice(0, 64);
  return issue({ commonName, from: now - SKEW, until, use: "server", ...names }, authority);
}

const read = ({ certificate }: Certificate) => new X509Certificate(certificate);
const endOf = (one: Certificate): number => read(one).validToDate.getTime();
const madeAt = (one: Certificate): number => read(one).validFromDate.getTime() + SKEW;
const hasEnded = (one: Certificate, now: number): boolean => endOf(one) <= now;
const isDue = (one: Certificate, now: number): boolean => now >= madeAt(one) + (endOf(one) - madeAt(one)) * RENEWED_AT;
const signed = (authority: Certificate, one: Certificate): boolean => read(one).verify(read(authority).publicKey);
const isFor = (one: Certificate, { names }: Circumstances): boolean =>
  names.dnsNames.every((name) => read(one).checkHost(name)) &&
  (names.addresses ?? []).every((address) => read(one).checkIP(address));

/** As the Secret has it; names as cert-manager's and other tools have them, where there are such. */
export function toSecretData({ authority, next, trusted, serving }: KeyRing): Record<string, string> {
  const texts = {
    "ca.crt": bundle([authority.certificate, ...trusted]),
    "ca.key": authority.key,
    ...(next && { "next-ca.crt": next.certificate, "next-ca.key": next.key }),
    "tls.crt": serving.certificate,
    "tls.key": serving.key,
  };
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, Buffer.from(text).toString("base64")]));
}

/** Undefined when it holds no ring that could be used: somebody else's, or damaged. */
export function fromSecretData(data: Readonly<Record<string, string>> | undefined): KeyRing | undefined {
  const text = (name: string) => Buffer.from(data?.[name] ?? "", "base64").toString();
  const pair = (certificate: string, key: string): Certificate | undefined => {
    try {
      const one = { certificate, key };
      return read(one).checkPrivateKey(createPrivateKey(key)) ? one : undefined;
    } catch {
      return undefined;
    }
  };
  const trusted = certificatesOf(text("ca.crt"));
  const authority = pair(trusted[0] ?? "", text("ca.key"));
  const serving = pair(text("tls.crt"), text("tls.key"));
  const next = pair(text("next-ca.crt"), text("next-ca.key"));
  return authority && serving && { authority, ...(next && { next }), trusted, serving };
}

/** The certificates of a bundle one by one. */
export const certificatesOf = (pem: string): string[] =>
  [...pem.matchAll(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g)].map(([one]) => `${one}\n`);

/** Several as one text, each once. */
export const bundle = (certificates: readonly string[]): string => [...new Set(certificates)].join("");
