/**
 * What the local node can "pull": an image of Ray stands for the Ray of that version from PyPI; nothing else runs here.
 */

export type ImageMeaning = { readonly rayVersion: string } | { readonly refused: string };

/** `rayproject/ray:2.56.0-py311-gpu` means Ray 2.56.0; so does any repository whose name begins with `ray`. */
export function meaningOf(image: string): ImageMeaning {
  const [path = "", digest] = image.split("@");
  const slash = path.lastIndexOf("/");
  const [name = "", tag] = path.slice(slash + 1).split(":");
  const can = "the local node runs images of Ray only, like rayproject/ray:2.56.0; the tag picks the version";
  if (!/^ray(?:$|[-_])/.test(name)) return { refused: `"${image}" is no image of Ray: ${can}` };
  const version = /^v?(\d+\.\d+\.\d+(?:rc\d+)?)(?:$|[-.+_])/.exec(tag ?? "")?.[1];
  if (version) return { rayVersion: version };
  const lacks =
    digest && !tag ? "a digest does not tell the version of Ray" : `tag "${tag ?? "latest"}" names no version of Ray`;
  return { refused: `"${image}": ${lacks}: ${can}` };
}
