/**
 * The line of a program's last output that tells why it ended.
 */

/** A word that an error has in its name, as Python, Java, Go and shells print them; not `.err` or `stderr`. */
const ERROR = /\b\w*(Error|Exception)\b|\b[Ee]rror:|\b[Ff]atal|\bpanic:|not found|[Dd]enied|No such|^raykeeper: /;
// biome-ignore lint/suspicious/noControlCharactersInRegex: terminal colours are made of one
const COLOURS = /\u001b\[[0-9;]*m/g;
/** A message that is short has been written to be read: it is taken as it is. */
const SHORT = 300;

/** The last line that names an error, or else the last line; a short text of one line as it is. */
export function tellingLine(text: string): string {
  const lines = text
    .replace(COLOURS, "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  if (lines.length <= 1) return lines[0] ?? "";
  return lines.findLast((line) => ERROR.test(line)) ?? lines.at(-1)!;
}

/** What a container's termination message says, on one line: the whole of a short one, the telling line of a log's end. */
export function lastWords(message: string | undefined): string | undefined {
  const text = message?.trim();
  if (!text) return undefined;
  const words = text.length <= SHORT ? text.replace(COLOURS, "").replace(/\s+/g, " ") : tellingLine(text);
  // A sentence goes on after them.
  return words.replace(/\.$/, "");
}
