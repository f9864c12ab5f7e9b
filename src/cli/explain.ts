/**
 * `raykeeper explain rayjob NAME`: what state a RayJob is in, why, what it waits for, and what can be done.
 *
 * Only reads, and only what belongs to the RayJob. What its user may not read is left out, and named.
 * Next: src/domain/rayjob/explain.ts concludes, explanation.ts prints.
 */
import type { Event, Job, Pod } from "../api/kubernetes.ts";
import { LABEL } from "../api/labels.ts";
import type { KubeObject, Stored } from "../api/object.ts";
import type { RayCluster } from "../api/raycluster.ts";
import type { RayJob } from "../api/rayjob.ts";
import { type Explained, explain } from "../domain/rayjob/explain.ts";
import { defaultSettings } from "../domain/settings.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { isNotFound, KubeError } from "../machinery/kube/errors.ts";
import { events, jobs, pods, type ResourceType, rayClusters, rayJobs } from "../machinery/kube/resources.ts";
import type { Transport } from "../machinery/kube/transport.ts";
import { findRayJob, serverTrouble } from "./apply.ts";
import { connect } from "./connect.ts";
import { explanationJson, explanationLines } from "./explanation.ts";
import { CannotRun, describeFailure } from "./failure.ts";
import { LastWords } from "./lastWords.ts";
import { harmless, type Output, paintOn, wantsColour } from "./screen.ts";

export interface ExplainOptions {
  readonly local?: boolean;
  readonly namespace?: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly output?: "json";
  readonly color: boolean;
}

/** The RayJob could not be read, or there is none: exit code 1. Usage is 2, as with every command. */
const NOT_EXPLAINED = 1;

/** Returns the exit code. Throws CannotRun for arguments that make no sense. */
export async function explainCommand(
  words: readonly string[],
  options: ExplainOptions,
  { stdout = process.stdout as Output, now = Date.now } = {},
): Promise<number> {
  const name = rayJobNamed(words);
  for (const flag of ["context", "kubeconfig"] as const) {
    if (options.local && options[flag] !== undefined) {
      throw new CannotRun(
        `--local and --${flag} exclude each other`,
        "--local means the cluster of raykeeper local up.",
      );
    }
  }
  try {
    const kubeconfig = options.local ? await (await import("./local.ts")).kubeconfigOfLocal() : options.kubeconfig;
    const connected = connect({ ...options, ...(kubeconfig !== undefined && { kubeconfig }) });
    try {
      const place = { namespace: options.namespace ?? connected.namespace, name };
      const { observed, unread } = await gather(connected.transport, place);
      const explained = explain(observed, now());
      const whole = { ...explained, notes: [...explained.notes, ...unread] };
      if (options.output === "json") {
        stdout.write(`${JSON.stringify(explanationJson(whole), undefined, 2)}\n`);
      } else {
        const paint = paintOn(stdout, wantsColour(options.color, process.env));
        const lines = explanationLines(whole, { columns: widthOf(stdout), paint, now: now() });
        stdout.write(harmless(`${lines.join("\n")}\n`));
      }
      return 0;
    } catch (error) {
      throw serverTrouble(error, connected.server) ?? error;
    } finally {
      await connected.close();
    }
  } catch (error) {
    if (!isAboutTheCluster(error)) throw error;
    process.stderr.write(`${describeFailure(error)}\n`);
    return NOT_EXPLAINED;
  }
}

const isAboutTheCluster = (error: unknown): boolean => error instanceof CannotRun || error instanceof KubeError;

const widthOf = ({ isTTY, columns }: Output): number | undefined => (isTTY ? Math.max(40, columns ?? 80) : undefined);

/** As kubectl takes it: `rayjob NAME` or `rayjob/NAME`, in the singular, the plural, or with the group. */
export function rayJobNamed(words: readonly string[]): string {
  const [first = "", ...rest] = words;
  const [kind = "", name, ...more] = first.includes("/") ? [...split(first), ...rest] : words;
  const remedy = "Write: raykeeper explain rayjob NAME";
  if (!/^rayjobs?(\.(v1\.)?ray\.io)?$/i.test(kind)) {
    throw new CannotRun(
      name === undefined ? `"${kind}" names no kind` : `cannot explain a ${kind}: only RayJobs are explained`,
      name === undefined ? `Write: raykeeper explain rayjob ${kind}` : remedy,
    );
  }
  if (!name) throw new CannotRun("the RayJob's name is missing", remedy);
  if (name.includes("/")) throw new CannotRun(`"${name}" is no name of a RayJob`, remedy);
  if (more.length > 0) throw new CannotRun("one RayJob is explained at a time", remedy);
  return name;
}

const split = (word: string): [string, string] => {
  const at = word.indexOf("/");
  return [word.slice(0, at), word.slice(at + 1)];
};

/** All that explain looks at; and in words what could not be read. */
export async function gather(
  transport: Transport,
  { namespace, name }: { readonly namespace: string; readonly name: string },
): Promise<{ readonly observed: Explained; readonly unread: readonly string[] }> {
  const client = new KubeClient(transport);
  const job = await findRayJob(client, namespace, name);
  if (!job) throw await missing(client, namespace, name);
  const unread: string[] = [];
  /** A user may be allowed to see RayJobs and nothing below. */
  const allowed = async <T>(type: ResourceType, reading: Promise<T>, otherwise: T): Promise<T> => {
    try {
      return await reading;
    } catch (error) {
      if (isNotFound(error)) return otherwise;
      if (!(error instanceof KubeError)) throw error;
      const note = `This is not the whole picture: ${type.plural} cannot be read (${error.message}).`;
      if (!unread.some((each) => each.includes(` ${type.plural} `))) unread.push(note);
      return otherwise;
    }
  };
  const list = async <T extends KubeObject>(type: ResourceType, selector: object): Promise<readonly Stored<T>[]> =>
    allowed(
      type,
      client.listAll<T>(type, { namespace, ...selector }).then(({ items }) => items),
      [],
    );
  const get = async <T extends KubeObject>(type: ResourceType, called: string | undefined) =>
    called === undefined
      ? []
      : allowed(
          type,
          client.get<T>(type, namespace, called).then((one) => [one]),
          [],
        );

  const cluster = job.status?.rayClusterName || job.spec.clusterSelector?.[LABEL.cluster];
  const mine = { labelSelector: `${LABEL.rayJobUID}=${job.metadata.uid}` };
  const [clusters, submitters, found, warnings] = await Promise.all([
    Promise.all([list<RayCluster>(rayClusters, mine), get<RayCluster>(rayClusters, cluster)]),
    Promise.all([list<Job>(jobs, mine), get<Job>(jobs, name)]),
    Promise.all([
      list<Pod>(pods, mine),
      cluster ? list<Pod>(pods, { labelSelector: `${LABEL.cluster}=${cluster}` }) : [],
      // KubeRay's submitters do not bear our label.
      list<Pod>(pods, { labelSelector: `${LABEL.jobName}=${name}` }),
    ]),
    list<Event>(events, { fieldSelector: "type=Warning" }),
  ]);
  const words = new LastWords(client);
  const seen = once(found.flat());
  for (const pod of seen) words.of(pod);
  await words.settled();
  const observed: Explained = {
    job,
    settings: defaultSettings,
    rayClusters: once(clusters.flat()),
    jobs: once(submitters.flat()),
    services: [],
    pods: seen.map((pod) => words.of(pod)),
    ray: {},
    live: new Map(),
    events: warnings,
  };
  return { observed, unread };
}

const once = <T extends Stored>(objects: readonly T[]): readonly T[] => [
  ...new Map(objects.map((object) => [object.metadata.uid, object])).values(),
];

async function missing(client: KubeClient, namespace: string, name: string): Promise<CannotRun> {
  const everywhere = await client
    .list<RayJob>(rayJobs, { fieldSelector: `metadata.name=${name}`, limit: 10 })
    .catch(() => ({ items: [] }));
  const places = everywhere.items.map(({ metadata }) => metadata.namespace);
  return new CannotRun(
    `there is no RayJob ${name} in namespace ${namespace}`,
    places.length > 0
      ? `There is one in namespace ${places.join(", ")}: give -n ${places[0]}`
      : `Those that there are: kubectl get rayjobs -n ${namespace}   (another namespace: -n NAME)`,
  );
}
