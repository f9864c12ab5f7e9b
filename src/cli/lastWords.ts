/**
 * The last words of containers that ended badly and left no message: the end of their log.
 *
 * kubelet does the same for containers whose `terminationMessagePolicy` is FallbackToLogsOnError; most have none. So the
 * words are put where kubelet would have put them, and whoever reads Pods needs to know nothing of it.
 */
import type { ContainerState, ContainerStatus, Pod } from "../api/kubernetes.ts";
import type { Stored } from "../api/object.ts";
import { tellingLine } from "../domain/lastWords.ts";
import type { KubeClient } from "../machinery/kube/client.ts";
import { pods, resourcePath } from "../machinery/kube/resources.ts";

type Terminated = NonNullable<ContainerState["terminated"]>;

const TAIL_LINES = "40";

/** One end of one container. */
interface End {
  readonly key: string;
  readonly container: string;
  readonly previous: boolean;
}

export class LastWords {
  readonly #client: KubeClient;
  readonly #heard = new Map<string, string>();
  readonly #asked = new Map<string, Promise<void>>();
  readonly #onHeard: () => void;

  constructor(client: KubeClient, onHeard: () => void = () => {}) {
    this.#client = client;
    this.#onHeard = onHeard;
  }

  /** The Pod with the words that are known; those that are not are asked for. */
  of(pod: Stored<Pod>): Stored<Pod> {
    if (pod.metadata.deletionTimestamp || !pod.status) return pod;
    const spoken = (statuses: readonly ContainerStatus[] | undefined) =>
      statuses?.map((status) => this.#add(pod, status));
    const { containerStatuses, initContainerStatuses } = pod.status;
    return {
      ...pod,
      status: {
        ...pod.status,
        ...(containerStatuses && { containerStatuses: spoken(containerStatuses) }),
        ...(initContainerStatuses && { initContainerStatuses: spoken(initContainerStatuses) }),
      },
    };
  }

  /** Whether these very ends are still being asked about. */
  isAsking(pod: Stored<Pod>, { name, state, lastState }: ContainerStatus): boolean {
    return [state, lastState].some((one) => {
      const end = endOf(pod, name, one?.terminated, one === lastState);
      return end !== undefined && this.#asked.has(end.key) && !this.#heard.has(end.key);
    });
  }

  /** When everything that was asked for has been answered. */
  async settled(): Promise<void> {
    await Promise.all(this.#asked.values());
  }

  #add(pod: Stored<Pod>, status: ContainerStatus): ContainerStatus {
    const { name, state, lastState } = status;
    const now = endOf(pod, name, state?.terminated, false);
    // A log of the life before is to be had only while there is none of a later one that has ended, too.
    const before = now ? undefined : endOf(pod, name, lastState?.terminated, true);
    const end = now ?? before;
    if (!end) return status;
    this.#ask(pod, end);
    const message = this.#heard.get(end.key);
    if (!message) return status;
    return now
      ? { ...status, state: { ...state, terminated: { ...state!.terminated!, message } } }
      : { ...status, lastState: { ...lastState, terminated: { ...lastState!.terminated!, message } } };
  }

  #ask(pod: Stored<Pod>, { key, container, previous }: End): void {
    if (this.#asked.has(key)) return;
    const { namespace, name } = pod.metadata;
    const query = { container, tailLines: TAIL_LINES, ...(previous && { previous: "true" }) };
    const asking = this.#client
      .raw(resourcePath(pods, namespace, name, "log"), query)
      .then(
        (log) => tellingLine(typeof log === "string" ? log : ""),
        // Rotated, gone, or not allowed: then there are none.
        () => "",
      )
      .then((words) => {
        this.#heard.set(key, words);
        this.#onHeard();
      });
    this.#asked.set(key, asking);
  }
}

function endOf(
  { metadata }: Stored<Pod>,
  container: string,
  terminated: Terminated | undefined,
  previous: boolean,
): End | undefined {
  if (!terminated || terminated.exitCode === 0 || terminated.message || terminated.reason === "OOMKilled")
    return undefined;
  const stamp = terminated.containerID ?? terminated.finishedAt ?? "";
  return { key: `${metadata.uid}/${container}/${stamp}`, container, previous };
}
