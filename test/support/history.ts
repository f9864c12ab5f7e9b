import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { KubeClient } from "../../src/machinery/kube/client.ts";
import { jobs, pods, type ResourceType, rayClusters, rayJobs, services } from "../../src/machinery/kube/resources.ts";
import { Invariants } from "../sim/invariants.ts";

export interface Version {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: Stored;
}

const KINDS: readonly ResourceType[] = [rayJobs, rayClusters, pods, services, jobs];
/** Milliseconds; a busy machine takes its time, and nothing is judged by how long it takes. */
const PATIENCE = 180_000;

export class History {
  readonly #kinds: readonly ResourceType[];
  readonly #versions: Version[] = [];
  readonly #now = new Map<string, Stored>();
  readonly #waiting = new Set<() => void>();
  #broken: unknown;

  /** `more`: kinds that only some worlds have. */
  constructor(more: readonly ResourceType[] = []) {
    this.#kinds = [...KINDS, ...more];
  }

  /** Follows all kinds, in one namespace or in all, until `signal` is aborted. */
  async follow(client: KubeClient, signal: AbortSignal, namespace?: string): Promise<void> {
    for (const type of this.#kinds) {
      const { items, resourceVersion } = await client.listAll(type, { namespace });
      for (const object of items) this.add({ type: "ADDED", object });
      // The server ends no watch before that; one that has a gap could not be judged.
      const events = await client.watch(type, { namespace, resourceVersion, timeoutSeconds: 36_000, signal });
      const read = async () => {
        for await (const event of events) if (event.type !== "BOOKMARK") this.add(event);
        throw new Error(`the watch of ${type.plural} has ended`);
      };
      read().catch((error: unknown) => {
        if (signal.aborted) return;
        this.#broken = error;
        this.changed();
      });
    }
  }

  /** One version more, in whatever order the watches tell. */
  add(version: Version): void {
    const { type, object } = version;
    this.#versions.push(version);
    const key = `${object.kind} ${object.metadata.namespace}/${object.metadata.name}`;
    if (type === "DELETED") this.#now.delete(key);
    else this.#now.set(key, object);
    this.changed();
  }

  /** How many versions have been seen. */
  get length(): number {
    return this.#versions.length;
  }

  /** Something that somebody waits for may have come. */
  changed(): void {
    for (const look of [...this.#waiting]) look();
  }

  /** Resolves as soon as `look` finds something; says what there was when it never does. */
  until<T>(what: string, look: () => T | undefined | false, describe: () => string, signal?: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void) => {
        clearTimeout(timer);
        this.#waiting.delete(check);
        settle();
      };
      const timer = setTimeout(() => {
        end(() => reject(new Error(`waited ${PATIENCE / 1000} s for ${what}; there is\n${describe()}`)));
      }, PATIENCE);
      const check = () => {
        if (this.#broken) return end(() => reject(this.#broken));
        if (signal?.aborted) return end(() => reject(signal.reason));
        const found = look();
        if (found !== undefined && found !== false) end(() => resolve(found));
      };
      signal?.addEventListener("abort", check, { once: true });
      this.#waiting.add(check);
      check();
    });
  }

  get<T extends KubeObject>(kind: string, namespace: string, name: string): Stored<T> | undefined {
    return this.#now.get(`${kind} ${namespace}/${name}`) as Stored<T> | undefined;
  }

  list(namespace: string): Stored[] {
    return [...this.#now.values()].filter(({ metadata }) => metadata.namespace === namespace);
  }

  of<T extends KubeObject>(namespace: string, type: ResourceType): Stored<T>[] {
    return this.list(namespace).filter(({ kind }) => kind === type.kind) as unknown as Stored<T>[];
  }

  /** The versions of one namespace, in the order in which they were stored. */
  versions(namespace: string): Version[] {
    const number = ({ object }: Version) => Number(object.metadata.resourceVersion);
    return this.#versions
      .filter(({ object }) => object.metadata.namespace === namespace)
      .sort((one, other) => number(one) - number(other));
  }

  /** What must hold at every moment and did not, in one namespace; `submissions` are `<head> <id>`. */
  violations(namespace: string, submissions: readonly string[]): readonly string[] {
    const stored = new Map<string, Stored>();
    let tell: (change: { type: Version["type"]; object: never; old?: never }) => void = () => {};
    const invariants = new Invariants({
      storage: {
        listen: (listener) => {
          tell = listener as typeof tell;
        },
        all: () => [...stored.values()].filter(({ kind }) => kind === "RayJob") as never,
      },
    });
    for (const { type, object } of this.versions(namespace)) {
      const key = `${object.kind} ${object.metadata.name}`;
      const old = stored.get(key);
      if (type === "DELETED") stored.delete(key);
      else stored.set(key, object);
      // A namesake is another object, whatever it was before.
      const before = old?.metadata.uid === object.metadata.uid ? old : undefined;
      tell({ type, object: object as never, old: before as never });
    }
    for (const submission of submissions) {
      const [head = "", id = ""] = submission.split(" ");
      invariants.submitted(head, id);
    }
    return invariants.violations;
  }
}
