/**
 * What the image is: which files it has, who runs what in it, and under which name.
 *
 * The Dockerfile makes its image of the same files, and says the rest once more in its own words; layout.test.ts holds
 * the two against each other.
 * May not: read anything but what it is given and the folders of the packages.
 */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { Unpacked } from "./debian.ts";
import type { Node } from "./node.ts";
import type { Architecture, Layer } from "./oci.ts";
import type { Entry } from "./tar.ts";

export const USER = 65532;
const HOME = "/home/nonroot";
/** Where the image has its Node: the first line of the program names it. */
export const NODE = "/usr/local/bin/node";
/** The program; `.mjs` says that it is a module, where no package.json does. */
const PROGRAM = "/usr/local/lib/raykeeper/raykeeper.mjs";

export const imageName = (version: string): string => `docker.io/raykeeper/raykeeper:${version}`;

export const imageConfig = (version: string) => ({
  User: `${USER}:${USER}`,
  Entrypoint: ["/manager"],
  // HOME, because a user that /etc/passwd does not have, as OpenShift gives each namespace one, has none by himself.
  Env: ["PATH=/usr/local/bin", `HOME=${HOME}`],
  WorkingDir: "/",
  Labels: {
    "org.opencontainers.image.title": "raykeeper",
    "org.opencontainers.image.description": "A Kubernetes operator for Ray jobs",
    "org.opencontainers.image.version": version,
    "org.opencontainers.image.licenses": "Apache-2.0",
  },
});

const TRIPLET: Record<Architecture, string> = { amd64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" };
const LOADER: Record<Architecture, string> = { amd64: "ld-linux-x86-64.so.2", arm64: "ld-linux-aarch64.so.1" };

/**
 * The libraries that Node is linked to, and those of libc that load on demand beside it. Names of hosts are looked up by
 * libc itself; no locale, no conversion between character sets, no shell.
 */
const LIBRARIES: Record<string, readonly string[]> = {
  libc6: ["libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "libresolv.so.2", "librt.so.1"],
  "libgcc-s1": ["libgcc_s.so.1"],
  "libstdc++6": ["libstdc++.so.6"],
};

const text = (path: string, content: string): Entry => ({ path, file: Buffer.from(content), mode: 0o644 });

/** Node carries root certificates, time zones and locales itself; so the base has none. */
export function baseLayer(architecture: Architecture, packages: readonly Unpacked[]): Layer {
  return {
    title: `Debian: ${packages.map(({ name, version }) => `${name} ${version}`).join(", ")}`,
    entries: [
      { path: "tmp", folder: true, mode: 0o1777 },
      { path: HOME.slice(1), folder: true, mode: 0o755 },
      text(
        "etc/passwd",
        `root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:${USER}:${USER}:nonroot:${HOME}:/sbin/nologin\n`,
      ),
      text("etc/group", `root:x:0:\nnonroot:x:${USER}:\n`),
      // Without it libc would ask the DNS before /etc/hosts.
      text("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
      // By these two a scanner knows which packages it looks at.
      text(
        "etc/os-release",
        'PRETTY_NAME="Raykeeper (Debian GNU/Linux 12)"\nNAME="Debian GNU/Linux"\nID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n',
      ),
      ...packages.map(({ name, control }) => text(`var/lib/dpkg/status.d/${name}`, control)),
      ...packages.flatMap((each) => librariesOf(architecture, each)),
      {
        path: architecture === "amd64" ? "lib64/ld-linux-x86-64.so.2" : "lib/ld-linux-aarch64.so.1",
        link: `/lib/${TRIPLET[architecture]}/${LOADER[architecture]}`,
      },
    ],
  };
}

function librariesOf(architecture: Architecture, { name, folder }: Unpacked): Entry[] {
  const wanted = [...(LIBRARIES[name] ?? []), ...(name === "libc6" ? [LOADER[architecture]] : [])];
  // Where Debian's packages have them, before and after the merge of /lib into /usr/lib.
  const places = [`lib/${TRIPLET[architecture]}`, `usr/lib/${TRIPLET[architecture]}`];
  const entries = wanted.map((library): Entry => {
    for (const place of places) {
      // Reading follows the link that some names are; a copy under the name that is asked for does as well.
      try {
        return {
          path: `lib/${TRIPLET[architecture]}/${library}`,
          file: readFileSync(join(folder, place, library)),
          mode: 0o755,
        };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      }
    }
    throw new Error(`Debian's ${name} has no ${library}`);
  });
  for (const documentation of readdirSync(join(folder, "usr/share/doc"), { withFileTypes: true })) {
    const path = `usr/share/doc/${documentation.name}`;
    // The packages of GCC have theirs in common, and link to it.
    if (documentation.isSymbolicLink()) entries.push({ path, link: readlinkSync(join(folder, path)) });
    else entries.push({ path: `${path}/copyright`, file: readFileSync(join(folder, path, "copyright")), mode: 0o644 });
  }
  return entries;
}

export function nodeLayer({ version, program, licence }: Node): Layer {
  return {
    title: `Node ${version}`,
    entries: [
      { path: NODE.slice(1), file: program, mode: 0o755 },
      { path: "usr/local/share/doc/node/LICENSE", file: licence, mode: 0o644 },
    ],
  };
}

export function programLayer(version: string, files: { program: string; licence: string; licences: string }): Layer {
  return {
    title: `Raykeeper ${version}`,
    entries: [
      { path: PROGRAM.slice(1), file: Buffer.from(files.program), mode: 0o755 },
      // KubeRay's name for it, which manifests and charts start; and its own.
      { path: "manager", link: PROGRAM.slice(1) },
      { path: "usr/local/bin/raykeeper", link: "../lib/raykeeper/raykeeper.mjs" },
      text("usr/local/share/doc/raykeeper/LICENSE", files.licence),
      text("usr/local/share/doc/raykeeper/LICENSES-OF-PACKAGES", files.licences),
    ],
  };
}
