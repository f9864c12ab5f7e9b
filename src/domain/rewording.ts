/**
 * Others' words about something that goes on (a refusal, a Pod that cannot be scheduled) may differ each time they are
 * heard: a time, a count of nodes, the number of a request. In a condition each new text is a write.
 *
 * Answers: whether two texts say the same in other numbers; for how long the words that were told stand.
 */
import { type Duration, type Instant, minutes } from "./time.ts";

/**
 * A word with a digit in it: a number, a time, a random name. Looked for where letters begin only: from each of a hundred
 * thousand letters in a row (the API server quotes what it refuses) it would take a minute, in which nothing else goes on.
 */
const NUMBER = /(?<![a-z])[a-z]*\d\w*/gi;

export const sameButForNumbers = (one: string, other: string): boolean =>
  one.replace(NUMBER, "#") === other.replace(NUMBER, "#");

const SHORTEST = minutes(1);
const LONGEST = minutes(10);

/** As long as it had gone on when it was told last, so the pauses double: what lasts for days is no write a minute. */
export const wordsStand = (since: Instant, toldAt: Instant): Duration =>
  Math.min(LONGEST, Math.max(SHORTEST, toldAt - since));
