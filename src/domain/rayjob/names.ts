/**
 * Names of what a RayJob makes, and of its submissions.
 *
 * A generated name is a function of the RayJob's UID and the attempt's number, so deciding twice names the same thing,
 * while a namesake created later, or the next attempt, gets another.
 */

/** No vowels and none of 0, 1, 3: no word arises by chance, and no two characters look alike. KubeRay's, 27 of them. */
const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
const SUFFIX_LENGTH = 5;

/** `<rayjob>-<5 characters>`; `purpose` keeps the cluster's and the submission's suffix apart. */
export function generatedName(rayJob: string, uid: string, attempt: number, purpose: "cluster" | "job"): string {
  return `${rayJob}-${suffix(`${uid}/${attempt}/${purpose}`)}`;
}

/** The Service of a RayJob's head; it stays the same from attempt to attempt. */
export const headServiceName = (rayJob: string): string => `${rayJob}-head-svc`;

/** Ray takes any text for a submission id, and then finds no job under one of these in its URL. */
export const fitsIntoURL = (jobId: string): boolean => !/[\s/?#%\p{Cc}]|^\.\.?$/u.test(jobId);

/** FNV-1a with a final stir; spread is all that is asked of it, not secrecy. */
function suffix(seed: string): string {
  let hash = 2166136261;
  for (let index = 0; index < seed.length; index++) hash = Math.imul(hash ^ seed.charCodeAt(index), 16777619);
  hash = Math.imul(hash ^ (hash >>> 15), 2246822507);
  hash = (hash ^ (hash >>> 13)) >>> 0;
  let text = "";
  for (let place = 0; place < SUFFIX_LENGTH; place++) {
    text += ALPHABET[hash % ALPHABET.length];
    hash = Math.floor(hash / ALPHABET.length);
  }
  return text;
}
