/**
 * Ray's versions, read leniently: `2.53.0`, `v2.53`, `2.53.0rc1`.
 *
 * May not: guess. A version that cannot be read is older than every other, so that the oldest behaviour is used.
 */

function parseVersion(text: string | undefined): readonly number[] | undefined {
  const match = /^v?(\d+)\.(\d+)(?:\.(\d+))?/.exec(text?.trim() ?? "");
  return match ? [Number(match[1]), Number(match[2]), Number(match[3] ?? 0)] : undefined;
}

export const isVersion = (text: string): boolean => parseVersion(text) !== undefined;

export function atLeastVersion(text: string | undefined, minimum: string): boolean {
  const version = parseVersion(text);
  const least = parseVersion(minimum)!;
  if (!version) return false;
  const differs = version.findIndex((part, index) => part !== least[index]);
  return differs === -1 || version[differs]! > least[differs]!;
}
