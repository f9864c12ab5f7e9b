/**
 * Whether the API server keeps what the operator writes down.
 *
 * A server prunes fields that the CRD does not name, without a word: from the writes it takes and from what it reads out.
 * With KubeRay's own CRDs, `status.attempts` would be gone, and every promise with it. So the operator asks before it
 * starts, and waits, saying so; and it asks again when an answer lacks what was written, or a RayJob its record.
 * May not: change anything. Putting the CRDs there is `raykeeper crds --apply` (cli/crds.ts).
 */
import { crds } from "./api/crds.ts";
import type { CustomResourceDefinition, JSONSchemaProps } from "./api/kubernetes.ts";
import { type Clock, sleep } from "./machinery/clock.ts";
import type { KubeClient } from "./machinery/kube/client.ts";
import { isForbidden, isNotFound } from "./machinery/kube/errors.ts";
import { customResourceDefinitions } from "./machinery/kube/resources.ts";
import { describe, type Logger } from "./machinery/logger.ts";

/** What the server would not keep, a definition at a time. */
export interface Gap {
  /** `rayjobs.ray.io` */
  readonly crd: string;
  /** The outermost fields that are missing; absent: the whole definition is. */
  readonly fields?: readonly string[];
}

const REMEDY = "put Raykeeper's CRDs there: raykeeper crds --apply (the Helm chart's hook does it, too)";
const AGAIN = 5_000;
/** The log is reminded this often while nothing changes. */
const REMIND = 60_000;

/** In words that tell what to do. */
export const describeGaps = (gaps: readonly Gap[]): string =>
  `${gaps
    .map(({ crd, fields }) => (fields ? `CRD ${crd} does not keep ${fields.join(", ")}` : `there is no CRD ${crd}`))
    .join("; ")}; ${REMEDY}`;

export interface JournalOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
}

export class Journal {
  readonly #options: JournalOptions;
  #waitingFor: string | undefined;

  constructor(options: JournalOptions) {
    this.#options = options;
  }

  /** What it waits for, in words; undefined while it does not wait. */
  get waitingFor(): string | undefined {
    return this.#waitingFor;
  }

  /** Resolves once the server keeps the journal, or cannot be asked; until then it says what is missing. */
  async kept(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    let told = Number.NEGATIVE_INFINITY;
    for (;;) {
      let trouble: string;
      try {
        const gaps = await this.gaps(signal);
        if (gaps === undefined) {
          log.warn({}, "whether the CRDs keep the journal cannot be read; each write's answer will tell");
        } else if (gaps.length === 0 && this.#waitingFor !== undefined) log.info({}, "the CRDs keep the journal now");
        if (!gaps?.length) break;
        trouble = `not started: ${describeGaps(gaps)}`;
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        trouble = `not started: the CRDs cannot be read: ${describe(error)}`;
      }
      if (trouble !== this.#waitingFor || clock.now() - told >= REMIND) {
        log.warn({}, trouble);
        told = clock.now();
      }
      this.#waitingFor = trouble;
      await sleep(clock, AGAIN, signal);
    }
    this.#waitingFor = undefined;
  }

  /**
   * What would not be kept; undefined when nobody lets us see. The OpenAPI documents, which every service account may
   * read, also in an installation for one namespace; where they are not to be had, the definitions themselves.
   */
  async gaps(signal?: AbortSignal): Promise<readonly Gap[] | undefined> {
    const published = await this.#published(signal);
    const gaps: Gap[] = [];
    for (const crd of crds()) {
      const { kind, plural } = crd.spec.names;
      const name = `${plural}.${crd.spec.group}`;
      const theirs = published === "hidden" || published === "none" ? undefined : published.get(kind);
      const found = theirs ?? (await this.#defined(name, signal));
      if (found === "hidden") {
        if (published === "hidden") return undefined;
        gaps.push({ crd: name });
      } else if (found === undefined) gaps.push({ crd: name });
      else {
        const fields = missing(statusOf(schemaOf(crd)), statusOf(found), "status");
        if (fields.length > 0) gaps.push({ crd: name, fields });
      }
    }
    return gaps;
  }

  /** The schemas of `ray.io/v1` by kind, as the server publishes them. */
  async #published(signal?: AbortSignal): Promise<ReadonlyMap<string, JSONSchemaProps> | "none" | "hidden"> {
    type Published = JSONSchemaProps & { "x-kubernetes-group-version-kind"?: readonly { kind?: string }[] };
    let said: { components?: { schemas?: Readonly<Record<string, Published>> } };
    try {
      said = (await this.#options.client.raw("/openapi/v3/apis/ray.io/v1", undefined, signal)) as typeof said;
    } catch (error) {
      if (isForbidden(error)) return "hidden";
      if (isNotFound(error)) return "none";
      throw error;
    }
    const schemas = Object.values(said.components?.schemas ?? {});
    return new Map(
      schemas.flatMap((schema) =>
        (schema["x-kubernetes-group-version-kind"] ?? []).map(({ kind = "" }) => [kind, schema] as const),
      ),
    );
  }

  async #defined(name: string, signal?: AbortSignal): Promise<JSONSchemaProps | "hidden" | undefined> {
    try {
      const { client } = this.#options;
      return schemaOf(
        await client.get<CustomResourceDefinition>(customResourceDefinitions, undefined, name, { signal }),
      );
    } catch (error) {
      if (isForbidden(error)) return "hidden";
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

const schemaOf = ({ spec }: Pick<CustomResourceDefinition, "spec">): JSONSchemaProps | undefined =>
  spec.versions.find(({ name }) => name === "v1")?.schema?.openAPIV3Schema;

const statusOf = (schema: JSONSchemaProps | undefined): JSONSchemaProps | undefined => propertiesOf(schema)["status"];

const propertiesOf = (schema: JSONSchemaProps | undefined) =>
  (schema?.properties ?? {}) as Readonly<Record<string, JSONSchemaProps>>;

/** The outermost fields of `ours` for which `theirs` has no place. */
function missing(
  ours: JSONSchemaProps | undefined,
  theirs: JSONSchemaProps | undefined,
  path: string,
): readonly string[] {
  if (ours === undefined) return [];
  if (theirs === undefined) return [path];
  const keepsAll = theirs["x-kubernetes-preserve-unknown-fields"] === true;
  const found = Object.entries(propertiesOf(ours)).flatMap(([name, property]) => {
    const place = propertiesOf(theirs)[name];
    return place === undefined && keepsAll ? [] : missing(property, place, `${path}.${name}`);
  });
  const [our, their] = [ours, theirs].map((schema) => within(schema));
  return our === undefined || (their === undefined && keepsAll)
    ? found
    : [...found, ...missing(our, their, `${path}[]`)];
}

/** The schema of a list's items, or of a map's values; of a map of plain values, none. */
function within({ items, additionalProperties }: JSONSchemaProps): JSONSchemaProps | undefined {
  if (typeof items === "object") return items as JSONSchemaProps;
  return typeof additionalProperties === "object" ? (additionalProperties as JSONSchemaProps) : undefined;
}
