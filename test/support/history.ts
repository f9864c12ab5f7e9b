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
const PATIENCE = 600_000;

const numberOf = ({ metadata }: Stored): number => Number(metadata.resourceVersion);
const keyOf = ({ kind, metadata }: Stored): string => `${kind} ${metadata.namespace}/${metadata.name}`;

export class History {
  readonly #kinds: readonly ResourceType[];
  readonly #versions: Version[] = [];
  readonly #now = new Map<string, Stored>();
  /** Of each object that was ever heard of, its last version, also that of its deletion. */
  readonly #last = new Map<string, number>();
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
    const key = keyOf(object);
    this.#last.set(key, numberOf(object));
    if (type === "DELETED") this.#now.delete(key);
    else this.#now.set(key, object);
    this.changed();
  }

  /**
   * A version up to which everything in a namespace has been heard. Each watch tells at its own pace, so what one has told
   * already may follow from what another is yet to tell.
   */
  async heard(client: KubeClient, namespace: string): Promise<number> {
    const lists = await Promise.all(
      this.#kinds.map(async (type) => ({ type, ...(await client.listAll(type, { namespace })) })),
    );
    const isHeard = ({ type, items, resourceVersion }: (typeof lists)[number]) => {
      const listed = new Set(items.map((item) => keyOf({ ...item, kind: type.kind })));
      const gone = this.of(namespace, type).filter((object) => !listed.has(keyOf(object)));
      return (
        items.every((item) => (this.#last.get(keyOf({ ...item, kind: type.kind })) ?? 0) >= numberOf(item)) &&
        gone.every((object) => numberOf(object) > Number(resourceVersion))
      );
    };
    const behind = () => lists.filter((list) => !isHeard(list)).map(({ type }) => type.plural);
    await this.until(
      "the watches to catch up",
      () => behind().length === 0,
      () => `news of ${behind().join()} to come`,
    );
    return Math.min(...lists.map(({ resourceVersion }) => Number(resourceVersion)));
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
  versions(namespace: string, upTo = Number.POSITIVE_INFINITY): Version[] {
    return this.#versions
      .filter(({ object }) => object.metadata.namespace === namespace && numberOf(object) <= upTo)
      .sort((one, other) => numberOf(one.object) - numberOf(other.object));
  }

  /** What must hold at every moment and did not, in one namespace; `submissions` are `<head> <id>`. */
  violations(namespace: string, submissions: readonly string[], upTo?: number): readonly string[] {
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
    for (const { type, object } of this.versions(namespace, upTo)) {
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
