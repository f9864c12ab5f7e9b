/**
 * An image as one file: an archive in the OCI image layout, which containerd, Podman, Skopeo and Docker (25 and newer)
 * read; for an older Docker the same blobs are named once more in its own manifest.json.
 *
 * The bytes follow from the arguments and the zlib of the Node that runs this. No time is in it.
 */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { type Entry, tar } from "./tar.ts";

export type Architecture = "amd64" | "arm64";

export interface Layer {
  /** What it holds, for `docker history`. */
  readonly title: string;
  readonly entries: readonly Entry[];
}

export interface Image {
  /** `registry/repository:tag`. */
  readonly name: string;
  readonly architecture: Architecture;
  /** The OCI image config's `config`. */
  readonly config: object;
  /** The lowest first. */
  readonly layers: readonly Layer[];
}

/** Compresses a layer; callers may remember what it answered. The same bytes must give the same. */
export type Compress = (bytes: Buffer, digest: string) => Buffer;

/** As distroless images do it: nobody learns anything from when an archive of given bytes was packed. */
const NO_TIME = "1970-01-01T00:00:00Z";

export const sha256 = (bytes: Uint8Array | string): string => createHash("sha256").update(bytes).digest("hex");

/** The archive, and the digest by which a registry or runtime knows the image. */
export function imageArchive(
  { name, architecture, config, layers }: Image,
  compress: Compress = (bytes) => gzipSync(bytes, { level: 9 }),
): { archive: Buffer; digest: string } {
  const blobs = new Map<string, Entry>();
  const blob = (mediaType: string, bytes: Buffer) => {
    const digest = sha256(bytes);
    const path = `blobs/sha256/${digest}`;
    blobs.set(path, { path, file: bytes, mode: 0o644 });
    return { mediaType, digest: `sha256:${digest}`, size: bytes.length };
  };
  const json = (value: object) => Buffer.from(JSON.stringify(value));

  const packed = layers.map(({ entries }) => {
    const bytes = tar(entries);
    const digest = sha256(bytes);
    const descriptor = blob("application/vnd.oci.image.layer.v1.tar+gzip", compress(bytes, digest));
    return { descriptor, diffId: `sha256:${digest}` };
  });
  const configuration = blob(
    "application/vnd.oci.image.config.v1+json",
    json({
      created: NO_TIME,
      architecture,
      os: "linux",
      config,
      rootfs: { type: "layers", diff_ids: packed.map(({ diffId }) => diffId) },
      history: layers.map(({ title }) => ({ created: NO_TIME, created_by: title })),
    }),
  );
  const manifest = blob(
    "application/vnd.oci.image.manifest.v1+json",
    json({
      schemaVersion: 2,
      mediaType: "application/vnd.oci.image.manifest.v1+json",
      config: configuration,
      layers: packed.map(({ descriptor }) => descriptor),
    }),
  );
  const index = {
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.index.v1+json",
    manifests: [
      {
        ...manifest,
        platform: { architecture, os: "linux" },
        annotations: {
          // containerd takes the whole name from the first, everybody else the tag from the second.
          "io.containerd.image.name": name,
          "org.opencontainers.image.ref.name": name.slice(name.lastIndexOf(":") + 1),
        },
      },
    ],
  };
  const inBlobs = (digest: string) => `blobs/${digest.replace(":", "/")}`;
  const docker = [
    {
      Config: inBlobs(configuration.digest),
      RepoTags: [name.replace(/^docker\.io\//, "")],
      Layers: packed.map(({ descriptor }) => inBlobs(descriptor.digest)),
    },
  ];
  const archive = tar([
    { path: "oci-layout", file: json({ imageLayoutVersion: "1.0.0" }), mode: 0o644 },
    { path: "index.json", file: json(index), mode: 0o644 },
    { path: "manifest.json", file: json(docker), mode: 0o644 },
    ...blobs.values(),
  ]);
  return { archive, digest: manifest.digest };
}
