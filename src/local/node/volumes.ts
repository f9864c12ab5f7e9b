/**
 * What a Pod's volumes hold, and where its containers see them. Content is fixed when the Pod starts.
 */
import type { Container, Pod, Volume } from "../../api/kubernetes.ts";
import { ConfigError, type ConfigSource, configData } from "./configError.ts";
import { expand } from "./expand.ts";
import { amount, fieldValue, type PodFacts, resourceValue } from "./fields.ts";
import type { Mount } from "./runtime.ts";

export interface VolumeFile {
  /** Below the volume. */
  readonly path: string;
  readonly data: Buffer;
  readonly mode: number;
}

export type VolumeContent =
  | { readonly kind: "files"; readonly files: readonly VolumeFile[] }
  | { readonly kind: "empty"; readonly inMemory: boolean; readonly sizeLimit: number | undefined }
  | { readonly kind: "host"; readonly path: string; readonly type: string };

type Item = { readonly key: string; readonly path: string; readonly mode?: number };

/** What the volume holds. Throws ConfigError when it cannot be given (yet). */
export async function volumeContent(
  volume: Volume,
  pod: Pod,
  facts: PodFacts,
  source: ConfigSource,
): Promise<VolumeContent> {
  if (volume.emptyDir) {
    const { medium, sizeLimit } = volume.emptyDir;
    const limit = sizeLimit === undefined ? undefined : amount(sizeLimit);
    return { kind: "empty", inMemory: medium === "Memory", sizeLimit: limit || undefined };
  }
  if (volume.hostPath) return { kind: "host", path: volume.hostPath.path, type: volume.hostPath.type ?? "" };
  if (volume.configMap) {
    const { name = "", items, optional, defaultMode } = volume.configMap;
    return files(await keys(source, "configMap", name, items, optional, defaultMode));
  }
  if (volume.secret) {
    const { secretName = "", items, optional, defaultMode } = volume.secret;
    return files(await keys(source, "secret", secretName, items, optional, defaultMode));
  }
  if (volume.downwardAPI) return files(downward(volume.downwardAPI.items, pod, facts, volume.downwardAPI.defaultMode));
  if (volume.projected) {
    const { sources = [], defaultMode } = volume.projected;
    const parts: VolumeFile[] = [];
    for (const part of sources ?? []) {
      if (part.configMap) {
        const { name = "", items, optional } = part.configMap;
        parts.push(...(await keys(source, "configMap", name, items, optional, defaultMode)));
      } else if (part.secret) {
        const { name = "", items, optional } = part.secret;
        parts.push(...(await keys(source, "secret", name, items, optional, defaultMode)));
      } else if (part.downwardAPI) parts.push(...downward(part.downwardAPI.items, pod, facts, defaultMode));
      else
        throw new ConfigError(`volume "${volume.name}": the local node cannot project ${Object.keys(part).join(", ")}`);
    }
    return files(parts);
  }
  const kind = Object.keys(volume).find((key) => key !== "name") ?? "nothing";
  throw new ConfigError(`volume "${volume.name}": the local node has no volumes of kind ${kind}`);
}

const files = (list: readonly VolumeFile[]): VolumeContent => ({ kind: "files", files: list });

async function keys(
  source: ConfigSource,
  kind: "configMap" | "secret",
  name: string,
  items: readonly Item[] | undefined,
  optional: boolean | undefined,
  defaultMode = 0o644,
): Promise<VolumeFile[]> {
  const data = (await configData(source, kind, name, optional)) ?? {};
  if (!items?.length) return Object.entries(data).map(([path, value]) => ({ path, data: value, mode: defaultMode }));
  return items.flatMap(({ key, path, mode }) => {
    const value = data[key];
    if (value !== undefined) return [{ path: within(path), data: value, mode: mode ?? defaultMode }];
    if (optional) return [];
    throw new ConfigError(`${kind.toLowerCase()} "${name}" has no key "${key}"`);
  });
}

type DownwardItem = NonNullable<NonNullable<Volume["downwardAPI"]>["items"]>[number];

function downward(
  items: readonly DownwardItem[] | undefined,
  pod: Pod,
  facts: PodFacts,
  defaultMode = 0o644,
): VolumeFile[] {
  return (items ?? []).map(({ path, fieldRef, resourceFieldRef, mode }) => {
    const of = pod.spec?.containers.find((container) => container.name === resourceFieldRef?.containerName);
    const value = fieldRef
      ? fieldValue(fieldRef.fieldPath, pod, facts)
      : resourceFieldRef
        ? resourceValue(resourceFieldRef, of, facts)
        : "";
    return { path: within(path), data: Buffer.from(value), mode: mode ?? defaultMode };
  });
}

/** A path below a volume, which must not lead out of it. */
function within(path: string): string {
  if (path.startsWith("/") || path.split("/").includes(".."))
    throw new ConfigError(`"${path}" leads out of its volume`);
  return path;
}

/** Where a volume is on the node, and whether it may be written at all. */
export interface PlacedVolume {
  readonly folder: string;
  readonly readOnly: boolean;
}

export interface VolumeView extends Mount {
  readonly source: string;
  /** The part of the volume that is mounted, to be made when it is missing; empty for all of it. */
  readonly subPath: string;
}

/** A container's mounts of its Pod's volumes. */
export function volumeMounts(
  container: Container,
  volumes: ReadonlyMap<string, PlacedVolume>,
  environment: Readonly<Record<string, string>>,
): VolumeView[] {
  return (container.volumeMounts ?? []).map((mount) => {
    const volume = volumes.get(mount.name);
    if (!volume) throw new ConfigError(`there is no volume "${mount.name}" in the Pod`);
    const subPath = within(
      mount.subPathExpr ? expand(mount.subPathExpr, (name) => environment[name]) : (mount.subPath ?? ""),
    );
    return {
      source: subPath ? `${volume.folder}/${subPath}` : volume.folder,
      target: mount.mountPath.startsWith("/") ? mount.mountPath : `/${mount.mountPath}`,
      readOnly: volume.readOnly || mount.readOnly === true,
      subPath,
    };
  });
}
