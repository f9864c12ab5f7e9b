/**
 * Kubernetes quantities (`500m`, `1.5Gi`, `1e3`), computed exactly.
 *
 * A quantity is a whole number of billionths, which is the finest step Kubernetes knows; anything finer is rounded away
 * from zero, as Kubernetes does. Never through floating point: 0.1 CPU ten times is 1 CPU.
 */
import type { Quantity as Spelling } from "./kubernetes.ts";

export interface Quantity {
  /** Billionths of a unit: of a CPU, of a byte. */
  readonly nano: bigint;
  /** The family of suffixes it is spelled with: `k`, `Ki`, or `e3`. */
  readonly format: "DecimalSI" | "BinarySI" | "DecimalExponent";
}

const NANO = 1_000_000_000n;
const zero: Quantity = { nano: 0n, format: "DecimalSI" };

/** Of as many digits as a number that is meant: reckoning with a million takes seconds, and nothing else goes on then. */
const PATTERN =
  /^(?<sign>[+-]?)(?<whole>\d{0,400})(?:\.(?<fraction>\d{0,400}))?(?:(?<binary>[KMGTPE]i)|(?<decimal>[numkMGTPE])|[eE](?<exponent>[+-]?\d{1,3}))?$/;
/** Powers of ten by suffix, in rising order. */
const DECIMAL = { n: -9, u: -6, m: -3, "": 0, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 } as const;
/** Powers of 1024 by suffix, in rising order. */
const BINARY = { Ki: 1, Mi: 2, Gi: 3, Ti: 4, Pi: 5, Ei: 6 } as const;

/** The quantity that is spelled; undefined for an absent one, or a text that spells none. */
export function parseQuantity(spelling: Spelling | null | undefined): Quantity | undefined {
  const parts = PATTERN.exec(String(spelling ?? ""))?.groups;
  if (!parts) return undefined;
  const { sign, whole = "", fraction = "", binary, decimal, exponent } = parts;
  if (whole === "" && fraction === "") return undefined;
  const power = Number(exponent ?? DECIMAL[(decimal ?? "") as keyof typeof DECIMAL]);
  const factor = binary ? 1024n ** BigInt(BINARY[binary as keyof typeof BINARY]) : 1n;
  const digits = BigInt(whole + fraction) * factor;
  const nano = shift(digits, power - fraction.length + 9);
  return {
    nano: sign === "-" ? -nano : nano,
    format: binary ? "BinarySI" : exponent === undefined ? "DecimalSI" : "DecimalExponent",
  };
}

/** `digits` × 10^`power`, rounded up. */
function shift(digits: bigint, power: number): bigint {
  return power >= 0 ? digits * 10n ** BigInt(power) : divideUp(digits, 10n ** BigInt(-power));
}

/** Quotient rounded away from zero. */
function divideUp(value: bigint, divisor: bigint): bigint {
  const rest = value % divisor;
  return value / divisor + (rest === 0n ? 0n : rest > 0n ? 1n : -1n);
}

/** The sum, spelled like the first summand that is not zero. */
export function addQuantities(...quantities: readonly Quantity[]): Quantity {
  let sum = zero;
  for (const quantity of quantities) {
    sum = { nano: sum.nano + quantity.nano, format: sum.nano === 0n ? quantity.format : sum.format };
  }
  return sum;
}

/** `count` times the quantity; `count` is a whole number. */
export function scaleQuantity(quantity: Quantity, count: number): Quantity {
  return { ...quantity, nano: quantity.nano * BigInt(count) };
}

/** Negative, zero or positive, as `a` is less than, equal to or more than `b`. */
export function compareQuantities(a: Quantity, b: Quantity): number {
  return a.nano < b.nano ? -1 : a.nano > b.nano ? 1 : 0;
}

/**
 * Whole units of what is spelled, rounded away from zero (`1500m` CPU is 2), as Kubernetes' own `Value()`; undefined for
 * an absent or unreadable one. Exact up to 2^53, that is 8 PiB.
 */
export function quantityValue(spelling: Spelling | null | undefined): number | undefined {
  const quantity = parseQuantity(spelling);
  return quantity && Number(divideUp(quantity.nano, NANO));
}

/** The canonical spelling: no fraction, and the largest suffix that needs none. */
export function formatQuantity({ nano, format }: Quantity): string {
  if (nano === 0n) return "0";
  // As upstream: below 1024 a binary amount is spelled with decimal suffixes, so that a fraction of a byte is not rounded.
  if (format === "BinarySI" && (nano >= 1024n * NANO || nano <= -1024n * NANO)) {
    const value = divideUp(nano, NANO);
    const suffix = Object.entries(BINARY).findLast(([, power]) => value % 1024n ** BigInt(power) === 0n);
    return suffix ? `${value / 1024n ** BigInt(suffix[1])}${suffix[0]}` : `${value}`;
  }
  const [suffix, power] = Object.entries(DECIMAL).findLast(
    ([, exponent]) => nano % 10n ** BigInt(exponent + 9) === 0n,
  )!;
  const number = nano / 10n ** BigInt(power + 9);
  return format === "DecimalExponent" && power !== 0 ? `${number}e${power}` : `${number}${suffix}`;
}
