/**
 * A tar archive of given entries that depends on nothing but them: sorted, with no time, owned by root.
 *
 * Next: layout.ts says which entries the image has, oci.ts packs the archives as an image.
 */

/** A file, a folder or a symbolic link; `path` without a leading slash. */
export type Entry =
  | { readonly path: string; readonly file: Uint8Array; readonly mode: 0o644 | 0o755 }
  | { readonly path: string; readonly folder: true; readonly mode: 0o755 | 0o1777 }
  | { readonly path: string; readonly link: string };

const BLOCK = 512;
/** What GNU tar fills its output up to. */
const RECORD = 20 * BLOCK;

/** POSIX ustar. The folders that lead to an entry are added where `entries` lack them. */
export function tar(entries: readonly Entry[]): Buffer {
  const pieces: Uint8Array[] = [];
  let size = 0;
  const add = (piece: Uint8Array) => {
    pieces.push(piece);
    size += piece.length;
  };
  for (const entry of withFolders(entries)) {
    add(header(entry));
    if (!("file" in entry)) continue;
    add(entry.file);
    add(Buffer.alloc(-entry.file.length & (BLOCK - 1)));
  }
  // Two empty blocks end it.
  const end = size + 2 * BLOCK;
  add(Buffer.alloc(2 * BLOCK + ((RECORD - (end % RECORD)) % RECORD)));
  return Buffer.concat(pieces);
}

/** The entries in the order of their paths, each after the folders it is in. Throws if one path is there twice. */
export function withFolders(entries: readonly Entry[]): Entry[] {
  const all = new Map<string, Entry>();
  for (const entry of entries) {
    if (all.has(entry.path)) throw new Error(`${entry.path} is there twice`);
    all.set(entry.path, entry);
  }
  for (const { path } of entries) {
    const names = path.split("/");
    for (let depth = 1; depth < names.length; depth++) {
      const folder = names.slice(0, depth).join("/");
      if (!all.has(folder)) all.set(folder, { path: folder, folder: true, mode: 0o755 });
    }
  }
  const order = (path: string) => path.split("/").join("\0");
  return [...all.values()].sort((a, b) => (order(a.path) < order(b.path) ? -1 : 1));
}

function header(entry: Entry): Buffer {
  const block = Buffer.alloc(BLOCK);
  const { path } = entry;
  if (Buffer.byteLength(path) > 99 || ("link" in entry && Buffer.byteLength(entry.link) > 100)) {
    throw new Error(`${path} is too long a name for a tar archive`);
  }
  const octal = (value: number, at: number, length: number) =>
    block.write(`${value.toString(8).padStart(length - 1, "0")}\0`, at, "latin1");
  block.write("folder" in entry ? `${path}/` : path, 0, "utf8");
  octal("link" in entry ? 0o777 : entry.mode, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal("file" in entry ? entry.file.length : 0, 124, 12);
  octal(0, 136, 12);
  block.write("        ", 148, "latin1");
  block.write("file" in entry ? "0" : "folder" in entry ? "5" : "2", 156, "latin1");
  if ("link" in entry) block.write(entry.link, 157, "utf8");
  block.write("ustar\x0000", 257, "latin1");
  block.write(
    `${block
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, "0")}\0 `,
    148,
    "latin1",
  );
  return block;
}
