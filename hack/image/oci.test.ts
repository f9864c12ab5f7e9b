import { spawnSync } from "node:child_process";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { type Image, imageArchive, sha256 } from "./oci.ts";

const image: Image = {
  name: "docker.io/raykeeper/raykeeper:1.2.3",
  architecture: "arm64",
  config: { User: "1:1", Entrypoint: ["/tool"] },
  layers: [
    { title: "below", entries: [{ path: "etc/name", file: Buffer.from("below"), mode: 0o644 }] },
    { title: "above", entries: [{ path: "tool", file: Buffer.from("above"), mode: 0o755 }] },
  ],
};
const { archive, digest } = imageArchive(image);
const read = (path: string): Buffer => spawnSync("tar", ["--extract", "--to-stdout", path], { input: archive }).stdout;
const json = (path: string) => JSON.parse(read(path).toString());
const blob = (of: string) => read(`blobs/${of.replace(":", "/")}`);

describe("an image archive", () => {
  const index = json("index.json");
  const manifest = JSON.parse(blob(digest).toString());
  const config = JSON.parse(blob(manifest.config.digest).toString());

  it("says by which name and for which machines the image is to be had", () => {
    expect(json("oci-layout")).toEqual({ imageLayoutVersion: "1.0.0" });
    expect(index.manifests).toHaveLength(1);
    expect(index.manifests[0]).toMatchObject({
      digest,
      platform: { os: "linux", architecture: "arm64" },
      annotations: { "io.containerd.image.name": image.name, "org.opencontainers.image.ref.name": "1.2.3" },
    });
    expect(config).toMatchObject({ os: "linux", architecture: "arm64", config: image.config });
  });

  it("has every part under the digest and size by which it is named", () => {
    for (const part of [index.manifests[0], manifest.config, ...manifest.layers]) {
      expect([`sha256:${sha256(blob(part.digest))}`, blob(part.digest).length]).toEqual([part.digest, part.size]);
    }
  });

  it("names its layers from below, packed and unpacked", () => {
    const unpacked = manifest.layers.map((layer: { digest: string }) => gunzipSync(blob(layer.digest)));
    expect(config.rootfs.diff_ids).toEqual(unpacked.map((bytes: Buffer) => `sha256:${sha256(bytes)}`));
    expect(unpacked[0].toString()).toContain("etc/name");
    expect(unpacked[1].toString()).toContain("tool");
  });

  it("is one that an older Docker loads, too", () => {
    const [docker] = json("manifest.json");
    expect(docker.RepoTags).toEqual(["raykeeper/raykeeper:1.2.3"]);
    expect(`sha256:${sha256(read(docker.Config))}`).toBe(manifest.config.digest);
    expect(docker.Layers.map((path: string) => `sha256:${sha256(read(path))}`)).toEqual(
      manifest.layers.map((layer: { digest: string }) => layer.digest),
    );
  });

  it("has the same bytes each time", () => {
    expect(imageArchive(image).archive.equals(archive)).toBe(true);
  });
});
