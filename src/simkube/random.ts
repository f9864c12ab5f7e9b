/**
 * Names and identifiers that look random and, given a seed, are the same in every run.
 */

/** Letters and digits that spell no word and are not mistaken for one another, as Kubernetes uses for suffixes. */
const SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
/** A generated name must fit a label value; what is given is cut to leave room for the suffix. */
const LONGEST_BASE = 58;

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number from 0 up to, not including, `limit`. (Mulberry32: small, even, and not for secrets.) */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * limit);
  }

  /** `base` and five characters. */
  name(base: string): string {
    let suffix = "";
    for (let index = 0; index < 5; index++) suffix += SUFFIX_ALPHABET[this.below(SUFFIX_ALPHABET.length)];
    return base.slice(0, LONGEST_BASE) + suffix;
  }

  /** A version 4 UUID. */
  uid(): string {
    const digits = Array.from({ length: 32 }, (_, index) =>
      (index === 12 ? 4 : index === 16 ? 8 + this.below(4) : this.below(16)).toString(16),
    ).join("");
    return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }
}
