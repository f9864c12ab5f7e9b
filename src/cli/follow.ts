/**
 * Watches one RayJob to its end: progress lines, the job's log, and at last the verdict.
 *
 * Gathers what is seen (informers on the RayJob, its RayClusters, Pods and events) and hands it to narrate.ts; follows
 * the log of each attempt through jobLog.ts. Only reads.
 */
import type { Event, Pod } from "../api/kubernetes.ts";
import { LABEL } from "../api/labels.ts";
import type { KubeObject, Stored } from "../api/object.ts";
import type { RayCluster } from "../api/raycluster.ts";
import type { RayJob } from "../api/rayjob.ts";
import { tokenSecret } from "../domain/raycluster/auth.ts";
import { type Advice, explain } from "../domain/rayjob/explain.ts";
import { isTerminal, type RayAddress, type SecretRef } from "../domain/rayjob/ray.ts";
import { defaultSettings } from "../domain/settings.ts";
import { realClock, sleep } from "../machinery/clock.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { Informer } from "../machinery/kube/informer.ts";
import { events, pods, type ResourceType, rayClusters, rayJobs } from "../machinery/kube/resources.ts";
import type { Transport } from "../machinery/kube/transport.ts";
import { proxyRayTransport } from "../ray/proxy.ts";
import { withTokens } from "../ray/tokens.ts";
import { followPodLog, followRayLog, type LogOptions, Shown } from "./jobLog.ts";
import { LastWords } from "./lastWords.ts";
import { activity, facts, type Seen, submitterContainer, submitterEnded, submitterPod } from "./narrate.ts";
import type { Screen } from "./screen.ts";
import { type Verdict, verdictOf } from "./summary.ts";

export interface FollowOptions {
  readonly transport: Transport;
  readonly screen: Screen;
  readonly rayJob: Stored<RayJob>;
  /** Ends the watching; `follow` then rejects with the signal's reason. */
  readonly signal: AbortSignal;
}

export interface Followed {
  /** As it was last seen. */
  readonly rayJob: Stored<RayJob>;
  readonly verdict: Verdict;
  /** What a user can do now, as `raykeeper explain` tells it. */
  readonly advice: readonly Advice[];
}

/** After the verdict the log may still be on its way; it is waited for this long. */
const LOG_PATIENCE_MS = 15_000;
const TICK_MS = 1000;

export async function follow({ transport, screen, rayJob: start, signal }: FollowOptions): Promise<Followed> {
  const { namespace = "default", name, uid } = start.metadata;
  const clock = realClock;
  const client = new KubeClient(transport, { clock });
  const stop = new AbortController();
  const until = AbortSignal.any([signal, stop.signal]);
  const troubled = new Set<string>();
  const informer = <T extends KubeObject>(type: ResourceType, labelSelector?: string) => {
    // An informer looks again for good; a user should hear once why nothing moves.
    const trouble = (fields: object) => {
      if (until.aborted || troubled.has(type.plural)) return;
      troubled.add(type.plural);
      screen.step(
        `cannot see ${type.plural}: ${(fields as { error?: string }).error ?? "no answer"}; trying on`,
        "warn",
      );
    };
    const log = { debug() {}, info() {}, warn: trouble, error: trouble };
    const made = new Informer<T>({ client, type, clock, namespaces: [namespace], labelSelector, log });
    made.onProgress(() => {
      troubled.delete(type.plural);
      changed();
    });
    return made;
  };
  const mine = `${LABEL.rayJobUID}=${uid}`;
  // A cluster that clusterSelector names, and its Pods, bear no label of this RayJob's.
  const selected = start.spec.clusterSelector?.[LABEL.cluster];
  const watched = {
    rayJobs: informer<RayJob>(rayJobs),
    rayClusters: informer<RayCluster>(rayClusters, selected ? undefined : mine),
    pods: informer<Pod>(pods, mine),
    ...(selected && { clusterPods: informer<Pod>(pods, `${LABEL.cluster}=${selected}`) }),
    events: informer<Event>(events),
  };
  let last = start;
  const words = new LastWords(client, () => changed());

  const look = (): Seen => {
    const found = watched.rayJobs.store.get(namespace, name);
    const rayJob = found?.metadata.uid === uid ? found : undefined;
    if (rayJob) last = rayJob;
    const cluster = rayJob?.status?.rayClusterName;
    const listed = [...watched.pods.store.list(namespace), ...(watched.clusterPods?.store.list(namespace) ?? [])];
    const seenPods = listed.map((pod) => words.of(pod));
    const rayCluster = cluster ? watched.rayClusters.store.get(namespace, cluster) : undefined;
    const subjects = new Set([uid, rayCluster?.metadata.uid, ...seenPods.map(({ metadata }) => metadata.uid)]);
    // What befell a shared cluster earlier is none of this job's story.
    const isNews = ({ metadata }: Stored<Event>) =>
      !selected || metadata.creationTimestamp >= start.metadata.creationTimestamp;
    return {
      rayJob,
      rayCluster,
      pods: seenPods,
      events: watched.events.store
        .list(namespace)
        .filter((event) => subjects.has(event.regarding?.uid) && isNews(event)),
      isAsking: (pod, status) => words.isAsking(pod, status),
    };
  };

  const told = new Set<string>();
  const log = new AttemptLogs(transport, namespace, look, {
    clock,
    signal: until,
    onText: (text) => screen.log(text),
    onSubmitter: (text) => screen.step(`submitter: ${text}`, "dim"),
    onTrouble: (text) => screen.step(text, "warn"),
  });
  const tell = (seen: Seen) => {
    for (const { key, text, tone } of facts(seen)) {
      if (told.has(key)) continue;
      told.add(key);
      screen.step(text, tone);
    }
    screen.live(activity(seen));
  };

  const ended = Promise.withResolvers<Verdict>();
  let waiting = false;
  // Several changes that come together are one moment.
  const changed = () => {
    if (waiting) return;
    waiting = true;
    setImmediate(() => {
      waiting = false;
      if (until.aborted || !watched.rayJobs.store.hasSynced) return;
      const seen = look();
      tell(seen);
      log.look(seen);
      const verdict = verdictOf(seen.rayJob);
      if (verdict) ended.resolve(verdict);
    });
  };
  const ticking = setInterval(() => screen.live(activity(look())), TICK_MS);
  signal.addEventListener("abort", () => ended.reject(signal.reason), { once: true });
  try {
    signal.throwIfAborted();
    for (const each of Object.values(watched)) each.start(until);
    const verdict = await ended.promise;
    await Promise.race([Promise.all([log.finished(), words.settled()]), sleep(clock, LOG_PATIENCE_MS, signal)]);
    return { rayJob: last, verdict, advice: adviceOn(last, look(), clock.now()) };
  } finally {
    clearInterval(ticking);
    stop.abort();
    screen.live("");
  }
}

function adviceOn(job: Stored<RayJob>, seen: Seen, now: number): readonly Advice[] {
  if (!seen.rayJob) return [];
  const rayClusters = seen.rayCluster ? [seen.rayCluster] : [];
  const { pods, events } = seen;
  const nothing = { jobs: [], services: [], ray: {}, live: new Map() };
  return explain({ job, settings: defaultSettings, rayClusters, pods, events, ...nothing }, now).advice;
}

/** The logs of a RayJob's attempts, one after the other. */
class AttemptLogs {
  readonly #transport: Transport;
  readonly #namespace: string;
  readonly #look: () => Seen;
  readonly #options: LogOptions;
  readonly #started = new Set<string>();
  readonly #shown = new Map<number | undefined, Shown>();
  /** Told of each change, until one is what they wait for. */
  readonly #waiting = new Set<() => void>();
  /** Ends when the log that is being read, and those before it, have ended. */
  #reading: Promise<void> = Promise.resolve();

  constructor(transport: Transport, namespace: string, look: () => Seen, options: LogOptions) {
    this.#transport = transport;
    this.#namespace = namespace;
    this.#look = look;
    this.#options = options;
  }

  finished(): Promise<void> {
    return this.#reading;
  }

  /** Begins to read a log that has come into sight. */
  look(seen: Seen): void {
    for (const tell of this.#waiting) tell();
    const { rayJob } = seen;
    const pod = submitterPod(seen);
    const { dashboardURL, jobId, executionAttempt } = rayJob?.status ?? {};
    if (pod) this.#begin(pod.metadata.uid, () => this.#readPod(pod, executionAttempt));
    else if (rayJob?.spec.submissionMode === "HTTPMode" && dashboardURL && jobId && rayJob.status?.jobStatus) {
      this.#begin(`${executionAttempt}/${jobId}`, () => this.#readRay(dashboardURL, jobId));
    }
  }

  #begin(key: string, read: () => Promise<void>): void {
    if (this.#started.has(key)) return;
    this.#started.add(key);
    this.#reading = this.#reading
      .then(read)
      .catch((error: unknown) => this.#options.onTrouble(`the job's log: ${String(error)}`));
  }

  #readPod(pod: Stored<Pod>, attempt: number | undefined): Promise<void> {
    const shown = this.#shown.get(attempt) ?? new Shown();
    this.#shown.set(attempt, shown);
    shown.restart();
    const { uid } = pod.metadata;
    const container = submitterContainer(pod);
    const ended = () => {
      const now = this.#look().pods.find(({ metadata }) => metadata.uid === uid);
      return now === undefined || submitterEnded(now);
    };
    return followPodLog(
      { transport: this.#transport, namespace: this.#namespace, pod: pod.metadata.name, container, shown, ended },
      this.#options,
    );
  }

  #readRay(dashboard: string, jobId: string): Promise<void> {
    let token: SecretRef | undefined;
    // Which token Ray wants, its RayCluster says: that may come into sight later than the job, and goes before its log.
    const at = (): RayAddress => {
      const { rayCluster } = this.#look();
      const name = rayCluster && tokenSecret(rayCluster);
      if (rayCluster) token = name === undefined ? undefined : { namespace: this.#namespace, name };
      return { dashboard, ...(token && { token }) };
    };
    const ended = () => {
      const status = this.#look().rayJob?.status;
      return status === undefined || status.jobId !== jobId || isTerminal(status.jobStatus);
    };
    const end = this.#once(ended);
    const { clock } = this.#options;
    const client = new KubeClient(this.#transport, { clock });
    const transport = withTokens(proxyRayTransport(this.#transport), { client, clock });
    return followRayLog({ transport, at, jobId, ended, end }, this.#options);
  }

  /** Resolves with the change after which it holds. */
  #once(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const tell = () => {
        if (!holds()) return;
        this.#waiting.delete(tell);
        resolve();
      };
      this.#waiting.add(tell);
      tell();
    });
  }
}
