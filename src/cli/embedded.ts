/**
 * The embedded cluster made for one run: its Ray prepared, started, and taken away whatever happens.
 *
 * Next: src/local has the cluster itself. The operator in it is `raykeeper operator`, a process of its own as in production.
 */
import { startLocalCluster } from "../local/cluster.ts";
import { meaningOf } from "../local/node/image.ts";
import { prepareRay } from "../local/rayEnvironment.ts";
import type { Transport } from "../machinery/kube/transport.ts";
import { CannotRun } from "./failure.ts";
import { showProgress } from "./longWork.ts";
import type { Manifest, ManifestObject } from "./manifest.ts";
import type { Screen } from "./screen.ts";
import type { Phase } from "./summary.ts";

export interface EmbeddedOptions {
  readonly screen: Screen;
  readonly signal: AbortSignal;
  /** Gets the time that each step took. */
  readonly before: Phase[];
}

/** Runs `use` on an embedded cluster. Nothing of the cluster is left when this settles. Throws CannotRun. */
export async function embedded<T>(
  manifest: Manifest,
  options: EmbeddedOptions,
  use: (transport: Transport) => Promise<T>,
): Promise<T> {
  const { screen, signal, before } = options;
  const timed = async <R>(name: string, work: () => Promise<R>): Promise<R> => {
    const start = screen.elapsed();
    const result = await work();
    screen.live("");
    before.push({ name, milliseconds: screen.elapsed() - start });
    return result;
  };
  const progress = showProgress(screen);
  await timed("preparing Ray", async () => {
    for (const version of rayVersions(manifest)) {
      const { root } = await prepareRay({ version, signal, progress });
      screen.step(`Ray ${version}: ready (${root})`);
    }
  });
  const cluster = await timed("starting the cluster", () => startLocalCluster({ signal, progress }));
  screen.step("the embedded cluster is up");
  const lost = cluster.ended.then(() => {
    throw new CannotRun(
      "the embedded cluster ended by itself",
      "Run the command again; if it happens again, please report it.",
    );
  });
  try {
    return await Promise.race([use(cluster.transport), lost]);
  } finally {
    await cluster.close();
  }
}

interface Templates {
  readonly headGroupSpec?: Group;
  readonly workerGroupSpecs?: readonly Group[];
}
interface Group {
  readonly template?: { readonly spec?: { readonly containers?: readonly { readonly image?: string }[] } };
}

/**
 * The versions of Ray that the manifest's first containers name. A manifest without readable images has none: the API
 * server will say what it lacks.
 */
export function rayVersions({ file, rayJob, beside }: Manifest): string[] {
  const { spec } = rayJob.object as { spec?: { rayClusterSpec?: Templates } };
  const clusters = beside.filter(({ object }) => object.kind === "RayCluster");
  const groups = [
    ...groupsOf(rayJob, "spec.rayClusterSpec", spec?.rayClusterSpec),
    ...clusters.flatMap((item) => groupsOf(item, "spec", (item.object as { spec?: Templates }).spec)),
  ];
  const versions = new Set<string>();
  for (const { item, path, group } of groups) {
    const image = group?.template?.spec?.containers?.[0]?.image;
    if (typeof image !== "string") continue;
    const meaning = meaningOf(image);
    if ("refused" in meaning) {
      const line = item.line(`${path}.template.spec.containers[0].image`);
      throw new CannotRun(
        `${file}:${line}: ${meaning.refused}`,
        "Name such an image, or run the job on a real cluster (without --local).",
      );
    }
    versions.add(meaning.rayVersion);
  }
  return [...versions];
}

const groupsOf = (item: ManifestObject, at: string, spec: Templates | undefined) => [
  { item, path: `${at}.headGroupSpec`, group: spec?.headGroupSpec },
  ...(spec?.workerGroupSpecs ?? []).map((group, index) => ({ item, path: `${at}.workerGroupSpecs[${index}]`, group })),
];
