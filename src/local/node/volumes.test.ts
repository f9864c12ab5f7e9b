import { describe, expect, it } from "vitest";
import type { Pod, Volume } from "../../api/kubernetes.ts";
import type { ConfigSource } from "./configError.ts";
import type { PodFacts } from "./fields.ts";
import { type VolumeContent, volumeContent, volumeMounts } from "./volumes.ts";

const facts: PodFacts = { podIP: "10.244.0.7", hostIP: "10.244.0.1", nodeName: "local", allocatable: { cpu: "4" } };
const pod = { metadata: { name: "p", labels: { b: "2", a: 'say "hi"' } }, spec: { containers: [] } } as unknown as Pod;
const source: ConfigSource = {
  configMap: async (name) =>
    name === "code" ? { "job.py": Buffer.from("print(1)"), other: Buffer.from("o") } : undefined,
  secret: async (name) => (name === "key" ? { id: Buffer.from([0, 255]) } : undefined),
};
const content = (volume: Omit<Volume, "name">) => volumeContent({ name: "v", ...volume }, pod, facts, source);
const texts = (found: VolumeContent) =>
  found.kind === "files" ? found.files.map(({ path, data, mode }) => [path, data.toString(), mode.toString(8)]) : found;

describe("a volume's content", () => {
  it("is a ConfigMap's data, a file a key, with the volume's mode", async () => {
    expect(texts(await content({ configMap: { name: "code", defaultMode: 0o400 } }))).toEqual([
      ["job.py", "print(1)", "400"],
      ["other", "o", "400"],
    ]);
  });

  it("is the items named, under their paths and modes", async () => {
    const items = [{ key: "job.py", path: "src/main.py", mode: 0o755 }];
    expect(texts(await content({ configMap: { name: "code", items } }))).toEqual([["src/main.py", "print(1)", "755"]]);
  });

  it("is a Secret's bytes as they are", async () => {
    const found = (await content({ secret: { secretName: "key" } })) as Extract<VolumeContent, { kind: "files" }>;
    expect([...found.files[0]!.data]).toEqual([0, 255]);
  });

  it("is labels in the spelling of the Downward API", async () => {
    const items = [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }];
    expect(texts(await content({ downwardAPI: { items } }))).toEqual([["labels", 'a="say \\"hi\\""\nb="2"', "644"]]);
  });

  it("is all that a projected volume names", async () => {
    const sources = [
      { configMap: { name: "code", items: [{ key: "other", path: "o" }] } },
      { downwardAPI: { items: [{ path: "name", fieldRef: { fieldPath: "metadata.name" } }] } },
    ];
    expect(texts(await content({ projected: { sources } }))).toEqual([
      ["o", "o", "644"],
      ["name", "p", "644"],
    ]);
  });

  it("is nothing at first in an emptyDir, whose limit is in bytes", async () => {
    expect(await content({ emptyDir: { medium: "Memory", sizeLimit: "64Mi" } })).toEqual({
      kind: "empty",
      inMemory: true,
      sizeLimit: 64 * 2 ** 20,
    });
  });

  it.each([
    [{ configMap: { name: "absent" } }, 'configmap "absent" not found'],
    [{ configMap: { name: "code", items: [{ key: "nope", path: "n" }] } }, 'configmap "code" has no key "nope"'],
    [{ configMap: { name: "code", items: [{ key: "other", path: "../up" }] } }, "leads out of its volume"],
    [{ persistentVolumeClaim: { claimName: "c" } }, "no volumes of kind persistentVolumeClaim"],
    [{ projected: { sources: [{ serviceAccountToken: { path: "t" } }] } }, "cannot project serviceAccountToken"],
  ])("%j is refused in words", async (volume, why) => {
    await expect(content(volume)).rejects.toThrow(why);
  });

  it("may be missing where it is optional", async () => {
    expect(texts(await content({ secret: { secretName: "absent", optional: true } }))).toEqual([]);
  });
});

describe("a container's mounts", () => {
  const volumes = new Map([
    ["data", { folder: "/state/data", readOnly: false }],
    ["code", { folder: "/state/code", readOnly: true }],
  ]);
  const mounts = (
    ...volumeMountList: {
      name: string;
      mountPath: string;
      subPath?: string;
      subPathExpr?: string;
      readOnly?: boolean;
    }[]
  ) => volumeMounts({ name: "c", volumeMounts: volumeMountList }, volumes, { POD: "p" });

  it("show a volume where the container wants it, read-only where either side says so", () => {
    const found = mounts(
      { name: "data", mountPath: "/d", readOnly: true },
      { name: "code", mountPath: "/c" },
      { name: "data", mountPath: "/w" },
    );
    expect(found.map(({ source, target, readOnly }) => [source, target, readOnly])).toEqual([
      ["/state/data", "/d", true],
      ["/state/code", "/c", true],
      ["/state/data", "/w", false],
    ]);
  });

  it("show a part of a volume, whose name may hold variables", () => {
    expect(mounts({ name: "data", mountPath: "/d", subPathExpr: "logs/$(POD)" })[0]!.source).toBe("/state/data/logs/p");
    expect(() => mounts({ name: "data", mountPath: "/d", subPath: "a/../../b" })).toThrow("leads out of its volume");
  });
});
