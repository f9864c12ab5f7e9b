/**
 * Why Ray is not shown the token that it wants, as sentences that go on after Ray's own words; they reach the RayJob's
 * status, and advice.ts meets them again there.
 *
 * May not: contain a token.
 */
import { TOKEN_KEY } from "../raycluster/auth.ts";
import type { SecretRef } from "./ray.ts";

const placeOf = ({ namespace, name }: SecretRef): string => `Secret ${namespace}/${name}`;

export const tokenTrouble = {
  /** The RayCluster names no Secret. */
  unsaid:
    "Ray wants a token, and spec.authOptions of its RayCluster does not say that it has one: set mode to token, and secretName to the Secret that has it",
  missing: (secret: SecretRef): string =>
    `${placeOf(secret)} does not exist, whose key ${TOKEN_KEY} should have Ray's token: create it, with the token that Ray was started with`,
  withoutKey: (secret: SecretRef): string => `${placeOf(secret)} has no key ${TOKEN_KEY}: put Ray's token there`,
  unusable: (secret: SecretRef): string =>
    `${placeOf(secret)} has no token under the key ${TOKEN_KEY}: one has visible ASCII characters only`,
  forbidden: (secret: SecretRef, error: string): string =>
    `${placeOf(secret)}, which has Ray's token, may not be read by the operator (${error}): give it the right to get Secrets`,
  unreadable: (secret: SecretRef, error: string): string =>
    `${placeOf(secret)}, which has Ray's token, could not be read (${error})`,
  /** Ray has another. */
  wrong: (secret: SecretRef): string =>
    `Ray does not take the token of ${placeOf(secret)}, key ${TOKEN_KEY}: its head was started with another. Put that one back, or have the head started anew`,
} as const;

/** In which of them a Secret is named, and which. */
const NAMED = /Secret ([^/\s]+)\/([^\s,:]+)/;
const KINDS = [
  ["unsaid", /spec\.authOptions of its RayCluster does not say/],
  ["wrong", /Ray does not take the token of Secret/],
  ["forbidden", /which has Ray's token, may not be read/],
  ["lacking", new RegExp(`Secret \\S+ (does not exist, whose key|has no (key|token under the key)) ${TOKEN_KEY}`)],
] as const;

/** What a message that ends with one of the sentences is about; undefined where it has none that a user can do something about. */
export function readTokenTrouble(
  message: string,
): { readonly is: (typeof KINDS)[number][0]; readonly secret: SecretRef } | undefined {
  const [is] = KINDS.find(([, words]) => words.test(message)) ?? [];
  const [, namespace = "", name = ""] = NAMED.exec(message) ?? [];
  return is && { is, secret: { namespace, name } };
}
