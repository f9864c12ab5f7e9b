/**
 * Time as a value: instants, durations, and their spelling on the wire.
 *
 * May not: read a clock. `now` is always an argument.
 */

/** Milliseconds since the epoch. */
export type Instant = number;
/** Milliseconds. */
export type Duration = number;

export const seconds = (count: number): Duration => count * 1000;
export const minutes = (count: number): Duration => count * 60_000;

/** The wire's spelling (`metav1.Time`): RFC 3339 in UTC with a resolution of one second, rounded down. */
export function toWire(instant: Instant): string {
  return new Date(Math.floor(instant / 1000) * 1000).toISOString().replace(".000Z", "Z");
}

/** The instant a wire time names; undefined for an absent or unreadable one. */
export function fromWire(text: string | null | undefined): Instant | undefined {
  if (!text) return undefined;
  const instant = Date.parse(text);
  return Number.isNaN(instant) ? undefined : instant;
}

/** How long ago `start` was, 0 when it lies ahead; undefined when there is no start. */
export function since(start: Instant, now: Instant): Duration;
export function since(start: Instant | undefined, now: Instant): Duration | undefined;
export function since(start: Instant | undefined, now: Instant): Duration | undefined {
  return start === undefined ? undefined : Math.max(0, now - start);
}

/** The earliest of the instants given, ignoring those that are absent. */
export function earliest(...instants: readonly (Instant | undefined)[]): Instant | undefined {
  return instants.reduce(
    (first, next) => (first === undefined || (next !== undefined && next < first) ? next : first),
    undefined,
  );
}

/** The end of the second that a wire time names: wire times are rounded down, so the fact was surely not later. */
export const endOfSecond = (wire: string | undefined): Instant => (fromWire(wire) ?? 0) + seconds(1);
