/**
 * What a RayCluster may say though it surely is a mistake: told when it is admitted, and by `raykeeper validate`.
 *
 * May not: refuse anything, nor speak of what only might be wrong: a warning that is often false is soon read by nobody.
 * To add one, add an entry to a table, as in validate.ts. Its whole sentence fits into 256 characters: the API server
 * cuts off what is longer.
 */
import type { RayCluster, RayClusterSpec, WorkerGroupSpec } from "../../api/raycluster.ts";
import type { Settings } from "../settings.ts";
import { check, type Finding, type Rule, type Violation } from "../validation.ts";

export function rayClusterCautions({ spec }: RayCluster, settings: Settings): Violation[] {
  return spec ? clusterSpecCautions(spec, "spec", settings) : [];
}

/** Those of a cluster's spec, wherever it stands: `at` is its path. */
export function clusterSpecCautions(spec: RayClusterSpec, at: string, settings: Settings): Violation[] {
  const ofGroups = (spec.workerGroupSpecs ?? []).flatMap((group, index) =>
    check(workerRules, group, settings).map((one) => ({ ...one, at: `workerGroupSpecs[${index}].${one.at}` })),
  );
  return [...check(specRules, spec, settings), ...ofGroups].map((one) => ({ ...one, at: `${at}.${one.at}` }));
}

const specRules: readonly Rule<RayClusterSpec>[] = [
  { name: "image-is-ray-version", find: imageOfAnotherVersion },
  { name: "one-ray-version", find: workersOfAnotherVersion },
];

const workerRules: readonly Rule<WorkerGroupSpec>[] = [
  {
    name: "replicas-within-bounds",
    find: ({ replicas, minReplicas = 0, maxReplicas = Number.POSITIVE_INFINITY }) => {
      if (replicas === undefined || minReplicas > maxReplicas) return [];
      const bound = replicas < minReplicas ? minReplicas : replicas > maxReplicas ? maxReplicas : undefined;
      if (bound === undefined) return [];
      const text = `${replicas} is outside of minReplicas and maxReplicas, so there will be ${bound}`;
      return [{ at: "replicas", text, remedy: `set it to ${bound}, or change the bounds` }];
    },
  },
];

/** The Ray version that an image's tag begins with, `2.56.0-py310-gpu`: three numbers, or it may be anything else. */
function versionOf(template: { spec?: { containers?: readonly { image?: string }[] } } | undefined) {
  const image = template?.spec?.containers?.[0]?.image;
  const version = /:(\d+\.\d+\.\d+)(?![\d.])[^:/@]*(@|$)/.exec(image ?? "")?.[1];
  // Of images by other names the tag is often a version of something else.
  return version !== undefined && /(^|\/)ray(-[a-z0-9-]+)?:/.test(image!) ? { image: image!, version } : undefined;
}

function imageOfAnotherVersion({ rayVersion, headGroupSpec }: RayClusterSpec): Finding[] {
  const head = versionOf(headGroupSpec?.template);
  const told = /^v?(\d+\.\d+\.\d+)$/.exec(rayVersion ?? "")?.[1];
  if (!head || !told || head.version === told) return [];
  const text = `${rayVersion} is not the version of the head's image, ${head.image}`;
  return [{ at: "rayVersion", text, remedy: "let them agree" }];
}

function workersOfAnotherVersion({ headGroupSpec, workerGroupSpecs = [] }: RayClusterSpec): Finding[] {
  const head = versionOf(headGroupSpec?.template);
  return workerGroupSpecs.flatMap(({ template }, index) => {
    const worker = versionOf(template);
    if (!head || !worker || worker.version === head.version) return [];
    return [
      {
        at: `workerGroupSpecs[${index}].template.spec.containers[0].image`,
        text: `Ray ${worker.version} cannot join the head's Ray ${head.version}`,
        remedy: "use one version of Ray for all",
      },
    ];
  });
}
