/**
 * The whole life of each Pod of a RayJob: when it was made and was gone, in the order that the API server gives to all
 * that happens, and when its containers ran, as the node tells.
 */
import type { Pod } from "../../src/api/kubernetes.ts";
import { LABEL } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { KubeClient } from "../../src/machinery/kube/client.ts";
import { pods } from "../../src/machinery/kube/resources.ts";

export interface Life {
  readonly name: string;
  readonly attempt: string | undefined;
  /** Places in the one order that the API server gives to all that happens. */
  readonly made: number;
  gone: number;
  /** When somebody asked for its deletion. */
  told?: number;
  last: Stored<Pod>;
}

/** The life of each Pod that bears an attempt's number, from now on. */
export async function followPods(client: KubeClient, namespace: string, signal: AbortSignal): Promise<readonly Life[]> {
  const lives: Life[] = [];
  const { resourceVersion } = await client.list<Pod>(pods, { namespace });
  const options = { namespace, resourceVersion, timeoutSeconds: 3600, signal };
  const events = await client.watch<Pod>(pods, options);
  const read = async () => {
    for await (const { type, object } of events) {
      if (type === "BOOKMARK" || !object.metadata.labels?.[LABEL.rayJobUID]) continue;
      const { uid, name, labels, resourceVersion, deletionTimestamp, deletionGracePeriodSeconds = 0 } = object.metadata;
      const place = Number(resourceVersion);
      let life = lives.find(({ last }) => last.metadata.uid === uid);
      if (!life) {
        const attempt = labels?.[LABEL.executionAttempt];
        life = { name, attempt, made: place, gone: Number.POSITIVE_INFINITY, last: object };
        lives.push(life);
      }
      life.last = object;
      if (deletionTimestamp) life.told ??= Date.parse(deletionTimestamp) - 1000 * deletionGracePeriodSeconds;
      if (type === "DELETED") life.gone = place;
    }
    throw new Error("the watch of the Pods has ended");
  };
  read().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  return lives;
}

/** When the node says that the first of its containers started, and the last of them ended. */
export const started = ({ last }: Life) =>
  Math.min(...containers(last).map(({ state }) => Date.parse((state?.terminated ?? state?.running)!.startedAt!)));
export const ended = ({ last }: Life) =>
  Math.max(...containers(last).map(({ state }) => Date.parse(state!.terminated!.finishedAt!)));
const containers = ({ status }: Stored<Pod>) => [
  ...(status?.initContainerStatuses ?? []),
  ...(status?.containerStatuses ?? []),
];
