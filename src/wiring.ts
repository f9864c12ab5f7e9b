/**
 * The map: who watches what, which change makes whom look again, and who carries out what is decided. Read this first.
 *
 *   RayJobs ───────────────┐
 *   RayClusters ───────────┼──> RayJob controller ──> decideRayJob ──> API server, Ray
 *   submitter Jobs, Pods ──┤         ^
 *   Ray's answers ─────────┘         │ (a RayJob's cluster and its Pods concern the RayJob, too)
 *   RayClusters, RayJobs ──┬──> RayCluster controller ──> decideRayCluster ──> API server
 *   Pods, Services ────────┘
 *
 * Caches are filled by every replica; controllers, the poller and commands to Ray run in the leader only.
 * May not: decide anything about a RayJob or RayCluster. That is domain/, and all it may look at is gathered here.
 */

import type { Job, Pod, Service } from "./api/kubernetes.ts";
import { CREATED_BY, LABEL, NODE_TYPE } from "./api/labels.ts";
import type { KubeObject, Stored } from "./api/object.ts";
import type { RayCluster } from "./api/raycluster.ts";
import type { RayJob } from "./api/rayjob.ts";
import type { Config } from "./config.ts";
import type { LiveAnswers, RefusedWrite } from "./domain/decision.ts";
import { decideRayCluster } from "./domain/raycluster/decide.ts";
import { headServiceName } from "./domain/raycluster/names.ts";
import type { ObservedRayCluster } from "./domain/raycluster/observe.ts";
import { CLUSTER_REFUSED } from "./domain/rayjob/cluster.ts";
import { decideRayJob } from "./domain/rayjob/decide.ts";
import { rayInterest } from "./domain/rayjob/interest.ts";
import { headServiceName as rayJobHeadServiceName } from "./domain/rayjob/names.ts";
import type { ObservedRayJob } from "./domain/rayjob/observe.ts";
import type { RayCommand } from "./domain/rayjob/ray.ts";
import { currentRecord } from "./domain/rayjob/records.ts";
import { SUBMITTER_REFUSED } from "./domain/rayjob/submitter.ts";
import { describeGaps, type Journal } from "./journal.ts";
import { type Clock, sleep } from "./machinery/clock.ts";
import { Controller, type PassTrace } from "./machinery/controller.ts";
import { Events } from "./machinery/events.ts";
import { Freshness } from "./machinery/freshness.ts";
import { KubeClient, WRITE_TIMEOUT } from "./machinery/kube/client.ts";
import { Informer } from "./machinery/kube/informer.ts";
import { jobs, pods, rayClusters, rayJobs, resourceName, services } from "./machinery/kube/resources.ts";
import { type Change, objectKey, type Store, trimMetadata } from "./machinery/kube/store.ts";
import type { Transport } from "./machinery/kube/transport.ts";
import { Elector } from "./machinery/leader.ts";
import { describe, type Logger } from "./machinery/logger.ts";
import { noMetrics } from "./machinery/metrics.ts";
import { adoptByOwner, NotKept } from "./machinery/perform.ts";
import { RepeatedRefusals, refusedWrites } from "./machinery/refusals.ts";
import type { Vitals } from "./machinery/vitals.ts";
import { RayCommands } from "./ray/commands.ts";
import { Dashboard } from "./ray/dashboard.ts";
import { Poller } from "./ray/poller.ts";
import { withTokens } from "./ray/tokens.ts";
import type { RayTransport } from "./ray/transport.ts";
import { fieldManager, Rivals, trimKeepingOthers } from "./rivals.ts";
import type { OperatorMetrics } from "./serve/catalogue.ts";
import type { Check } from "./serve/health.ts";

export interface OperatorOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly config: Config;
  readonly rayTransport: RayTransport;
  readonly log: Logger;
  readonly metrics?: OperatorMetrics;
  /** Told by every part that must never stop. */
  readonly vitals?: Vitals;
  /** Which replica this is; unique for each start of the process. */
  readonly identity: string;
  /** The operator's own namespace, where its lease is unless the configuration says otherwise. */
  readonly namespace?: string;
  /** Asked before the start, and when something written down is missing, whether the API server keeps it. */
  readonly journal?: Journal;
  /** Ends the operator in good order when aborted. */
  readonly signal?: AbortSignal;
  /** Each pass of each controller: for the simulator and tests. */
  readonly onPass?: (trace: PassTrace<RayCommand>) => void;
}

export interface Operator {
  /** Ends it in good order: passes under way are finished, the lease is given back. */
  stop(): Promise<void>;
  /** Resolves when it has ended in good order; rejects when it could not go on (the lease or the journal was lost). */
  readonly done: Promise<void>;
  /** What must be so before this replica can do its part, and how it stands: what `/readyz` tells. */
  readonly checks: readonly Check[];
  /** Whether all of them hold. */
  readonly ready: boolean;
  /** Whether this replica does the work. */
  readonly leading: boolean;
  /** What it watches, for metrics to read. */
  readonly caches: Readonly<Pick<Caches, "rayJobs" | "rayClusters" | "rayPods">>;
}

/** Starts the operator; it runs until `stop()`, `signal` or the loss of its lease. */
export function startOperator(options: OperatorOptions): Operator {
  const { transport, clock, config, identity, log, metrics = noMetrics, namespace = "default" } = options;
  const stopping = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stopping.signal]) : stopping.signal;

  const elector = new Elector({
    client: new KubeClient(transport, { clock, metrics }),
    clock,
    namespace: config.leaderElection.namespace ?? namespace,
    name: config.leaderElection.leaseName,
    identity,
    leaseDuration: config.leaderElection.leaseDuration,
    renewDeadline: config.leaderElection.renewDeadline,
    retryPeriod: config.leaderElection.retryPeriod,
    log,
    metrics,
  });
  const holdsLease = () => !config.leaderElection.enabled || elector.mayWrite();
  const journal = new JournalWatch({ ...options, signal, giveUp: (error) => stopping.abort(error) });
  const mayWrite = () => !journal.suspended && holdsLease();
  const { qps, burst } = config;
  const signature = fieldManager(config.leaderElection.namespace ?? namespace);
  const client = new KubeClient(transport, { clock, qps, burst, mayWrite, metrics, fieldManager: signature });
  const caches = makeCaches(options, client, signature);
  let leading = false;

  const run = async () => {
    await options.journal?.kept(signal);
    caches.rayJobs.onChange(journal.seen);
    for (const informer of Object.values(caches)) informer.start(signal);
    await Promise.all(Object.values(caches).map((informer) => informer.synced()));
    log.info({ identity }, "the caches are filled");
    const work = async (signal: AbortSignal) => {
      leading = true;
      try {
        await lead({ ...options, client, signature, caches, mayWrite, holdsLease, watch: journal, signal });
      } finally {
        leading = false;
      }
    };
    await (config.leaderElection.enabled ? elector.run(signal, work) : work(signal));
    if (journal.lost) throw journal.lost;
  };
  const leadershipCheck = (): Check => {
    if (signal.aborted) return { name: "leadership", ok: false, note: "this replica is ending" };
    const { holder } = elector;
    const note = leading
      ? "this replica leads"
      : holder
        ? `standing by; ${holder} leads`
        : "nobody is known to lead yet";
    return { name: "leadership", ok: true, note };
  };
  const done = run().catch((error) => {
    // Stopped before the caches were filled.
    if (signal.aborted && error === signal.reason && error !== journal.lost) return;
    log.error({ error: describe(error) }, "the operator ends");
    stopping.abort(error);
    throw error;
  });
  // Whoever only stops it need not ask how it ended.
  done.catch(() => {});
  const journalCheck = (): Check => {
    const waits = options.journal?.waitingFor;
    return { name: "crds", ok: waits === undefined, note: waits ?? "they keep the journal" };
  };
  const checks = () => [...(options.journal ? [journalCheck()] : []), cachesCheck(caches), leadershipCheck()];
  return {
    stop() {
      stopping.abort(new Error("the operator is being stopped"));
      return done;
    },
    done,
    caches,
    get checks() {
      return checks();
    },
    get ready() {
      return checks().every(({ ok }) => ok);
    },
    get leading() {
      return leading;
    },
  };
}

type Caches = ReturnType<typeof makeCaches>;

/** One cache a kind, holding what decisions read and no more; the selectors are KubeRay's. */
function makeCaches({ config, clock, log, metrics, vitals }: OperatorOptions, client: KubeClient, signature: string) {
  const trim = trimKeepingOthers(signature);
  const shared = { client, clock, log, metrics, vitals, namespaces: config.watchNamespaces };
  const byRayJob = (object: KubeObject): string[] =>
    [ownerUid(object, "RayJob"), object.metadata.labels?.[LABEL.rayJobUID]].filter(isUnique);
  const byCluster = (object: KubeObject): string[] =>
    [object.metadata.labels?.[LABEL.cluster]]
      .filter((name) => name !== undefined)
      .map((name) => objectKey(object.metadata.namespace, name));
  return {
    rayJobs: new Informer<RayJob>({
      ...shared,
      type: rayJobs,
      trim,
      indexes: {
        uid: ({ metadata }) => [metadata.uid],
        cluster: ({ metadata, status }) =>
          status?.rayClusterName ? [objectKey(metadata.namespace, status.rayClusterName)] : [],
      },
    }),
    rayClusters: new Informer<RayCluster>({ ...shared, type: rayClusters, trim, indexes: { rayJob: byRayJob } }),
    rayPods: new Informer<Pod>({
      ...shared,
      type: pods,
      labelSelector: `${LABEL.nodeType} in (head,worker,redis-cleanup)`,
      trim: trimPod,
      indexes: { rayJob: byRayJob, cluster: byCluster },
    }),
    submitterPods: new Informer<Pod>({
      ...shared,
      type: pods,
      labelSelector: `${LABEL.rayJobUID},!${LABEL.nodeType}`,
      trim: trimPod,
      indexes: { rayJob: byRayJob },
    }),
    jobs: new Informer<Job>({
      ...shared,
      type: jobs,
      labelSelector: `${LABEL.createdBy}=${CREATED_BY}`,
      indexes: { rayJob: byRayJob },
    }),
    services: new Informer<Service>({
      ...shared,
      type: services,
      // A cluster's head Service has it, and a RayJob's. Whose name a stranger bears, the API server tells.
      labelSelector: `${LABEL.nodeType}=${NODE_TYPE.head}`,
      indexes: { rayJob: byRayJob, cluster: byCluster },
    }),
  };
}

/** A cache that is not filled keeps the operator from starting; the note says which, and why. */
function cachesCheck(caches: Caches): Check {
  const missing = Object.values(caches)
    .filter(({ store }) => !store.hasSynced)
    .map(({ type, trouble }) => `${resourceName(type)} (${trouble ?? "being listed"})`);
  const note = missing.length === 0 ? "filled" : `waiting for ${[...new Set(missing)].join(", ")}`;
  return { name: "caches", ok: missing.length === 0, note };
}

const isUnique = (value: string | undefined, index: number, all: readonly (string | undefined)[]): value is string =>
  value !== undefined && all.indexOf(value) === index;

const controller = (object: KubeObject, kind: string) =>
  object.metadata.ownerReferences?.find((owner) => owner.controller && owner.kind === kind);
const ownerUid = (object: KubeObject, kind: string): string | undefined => controller(object, kind)?.uid;

/** Pods are most of what the operator remembers; of their containers, decisions read names and resources. */
function trimPod(pod: Stored<Pod>): Stored<Pod> {
  const { spec, ...rest } = trimMetadata(pod);
  if (!spec) return rest as Stored<Pod>;
  const containers = spec.containers.map(({ name, image, resources, restartPolicy }) => ({
    name,
    image,
    resources,
    restartPolicy,
  }));
  const { nodeName, restartPolicy } = spec;
  return { ...rest, spec: { containers, nodeName, restartPolicy } } as Stored<Pod>;
}

/** Milliseconds that an operator which ends may take to tell the events it has in hand. */
const LAST_WORDS = 2000;

interface Leading extends OperatorOptions {
  readonly client: KubeClient;
  readonly signature: string;
  readonly caches: Caches;
  readonly mayWrite: () => boolean;
  readonly holdsLease: () => boolean;
  readonly watch: JournalWatch;
  readonly signal: AbortSignal;
}

/** What only the leader does, until `signal` is aborted. */
async function lead(options: Leading): Promise<void> {
  const { client, clock, config, caches, identity, log, metrics, vitals, mayWrite, signal } = options;
  // The submitter's Pods are left out: they are made by the Job controller, so none of our writes is waited for there.
  const { submitterPods: _, ...written } = caches;
  const freshness = new Freshness({ clock, client, caches: Object.values(written), log, metrics });
  // Told also while nothing else may be written: it is how the user learns why.
  const telling = client.with({ mayWrite: options.holdsLease });
  const events = (controller: string) =>
    new Events({ client: telling, clock, controller, instance: identity, log, metrics });
  const told = [events("rayjob-controller"), events("raycluster-controller")] as const;

  const dashboard = new Dashboard({
    transport: withTokens(options.rayTransport, { client, clock }),
    askTimeout: config.useKubernetesProxy ? 10_000 : 5_000,
    // As long as the lease is sure to hold for a write that goes out now.
    commandTimeout: WRITE_TIMEOUT,
    mayAct: mayWrite,
  });
  const poller = new Poller({
    clock,
    dashboard,
    seed: identity,
    changed: ({ namespace, name }) => rayJobController.enqueue(objectKey(namespace, name)),
    onRound({ result, seconds }) {
      metrics?.count("raykeeper_dashboard_polls_total", { result });
      metrics?.observe("raykeeper_dashboard_poll_seconds", {}, seconds);
    },
  });
  const commands = new RayCommands({
    clock,
    dashboard,
    finished({ uid, namespace, name, jobId }, command, { result, message }) {
      log.info({ rayJob: objectKey(namespace, name), jobId, command, result, message }, "Ray was told");
      poller.nudge(uid);
      rayJobController.enqueue(objectKey(namespace, name));
    },
  });

  const shared = { clock, client, freshness, mayWrite, log, metrics, vitals, workers: config.reconcileConcurrency };
  const refusedForGood = new RepeatedRefusals([CLUSTER_REFUSED, SUBMITTER_REFUSED], clock);
  const rayJobController = new Controller<ObservedRayJob, RayCommand>({
    ...shared,
    name: "rayjob",
    events: told[0],
    observe(key, live) {
      const job = lookUp(caches.rayJobs.store, key);
      const from = { poller, commands, config, clusters: rayClusterController, live };
      return job && { ...observeRayJob(job, caches, from), refused: refusedForGood.of(key) };
    },
    decide(observed, now) {
      const interest = rayInterest(observed, now);
      if (interest) poller.watch(interest);
      else poller.forget(observed.job.metadata.uid);
      return decideRayJob(observed, now);
    },
    primary: ({ job }) => job,
    external: (command) => commands.run(command),
    adoptable: adoptByOwner(LABEL.executionAttempt),
    onPass(trace) {
      options.watch.passed(trace);
      refusedForGood.heard(trace);
      options.onPass?.(trace);
    },
  });

  const refused = new Map<string, readonly RefusedWrite[]>();
  const rayClusterController = new Controller<ObservedRayCluster>({
    ...shared,
    name: "raycluster",
    events: told[1],
    observe(key, live) {
      const cluster = lookUp(caches.rayClusters.store, key);
      return cluster && { ...observeRayCluster(cluster, caches, config, live), refused: refused.get(key) ?? [] };
    },
    decide: decideRayCluster,
    primary: ({ cluster }) => cluster,
    adoptable: adoptByOwner(),
    onPass(trace) {
      options.watch.passed(trace);
      if (trace.result === "gone") refused.delete(trace.key);
      if (trace.outcome) refused.set(trace.key, refusedWrites(trace));
      options.onPass?.(trace);
    },
  });

  const rivals = new Rivals({
    ours: options.signature,
    clock,
    log,
    counted: (kind) => metrics?.count("raykeeper_foreign_status_writes_total", { kind }),
  });
  caches.rayJobs.onChange((change) => rivals.changed("RayJob", change, told[0]));
  caches.rayClusters.onChange((change) => rivals.changed("RayCluster", change, told[1]));
  connect(caches, {
    rayJob(key, uid, moved) {
      rayJobController.enqueue(key);
      if (moved) poller.nudge(uid);
    },
    rayCluster: (key) => rayClusterController.enqueue(key),
    forget(uid) {
      poller.forget(uid);
      commands.forget(uid);
    },
  });

  try {
    await Promise.all([rayJobController.run(signal), rayClusterController.run(signal)]);
  } finally {
    poller.stop();
    commands.stop();
    // While the lease still holds, and without keeping a successor waiting for long.
    const flushed = Promise.all(told.map((each) => each.flushed()));
    await Promise.race([flushed, sleep(clock, LAST_WORDS)]);
  }
}

/**
 * Notices that the API server no longer keeps what is written down: somebody has put other CRDs there. Nothing is written
 * while it asks; when it is so, the operator ends, because what its caches show can no longer be trusted either. The next
 * start waits for the CRDs.
 */
class JournalWatch {
  readonly #options: OperatorOptions & { signal: AbortSignal; giveUp(error: Error): void };
  #asking = false;
  lost: Error | undefined;

  constructor(options: OperatorOptions & { signal: AbortSignal; giveUp(error: Error): void }) {
    this.#options = options;
  }

  /** Whether nothing may be written for now. */
  get suspended(): boolean {
    return this.#asking || this.lost !== undefined;
  }

  /** The server's answer to a write tells what it has kept. */
  passed({ outcome }: PassTrace<RayCommand>): void {
    for (const { error } of outcome?.failures ?? []) if (error instanceof NotKept) this.#suspect(error.message);
  }

  /** A record that was there never goes away by itself. */
  readonly seen = ({ old, new: now }: Change<RayJob>): void => {
    if (!now || old?.metadata.uid !== now.metadata.uid) return;
    if (!old.status?.attempts?.length || now.status?.attempts?.length) return;
    this.#suspect(
      `status.attempts of RayJob ${keyOf(now)} is gone: another operator (KubeRay's?) or somebody's write has removed it`,
    );
  };

  #suspect(finding: string): void {
    const { journal, log, signal } = this.#options;
    log.error({}, finding);
    if (journal === undefined || this.suspended || signal.aborted) return;
    this.#asking = true;
    this.#ask(journal)
      .catch((error) => {
        if (!signal.aborted) log.error({ error: describe(error) }, "whether the journal is kept cannot be told");
      })
      .finally(() => {
        this.#asking = false;
      });
  }

  async #ask(journal: Journal): Promise<void> {
    const { clock, giveUp, signal, log } = this.#options;
    for (;;) {
      try {
        const gaps = await journal.gaps(signal);
        if (gaps?.length) {
          this.lost = new Error(`the journal is not kept any more: ${describeGaps(gaps)}`);
          giveUp(this.lost);
        }
        return;
      } catch (error) {
        if (signal.aborted) return;
        log.warn({ error: describe(error) }, "the CRDs cannot be read; nothing is written until they can");
        await sleep(clock, 1000, signal);
      }
    }
  }
}

interface Listeners {
  /** `moved`: something happened that Ray may know more about. */
  readonly rayJob: (key: string, uid: string, moved: boolean) => void;
  readonly rayCluster: (key: string) => void;
  /** The RayJob of this UID is gone. */
  readonly forget: (uid: string) => void;
}

/** Which change concerns whom. What is in the caches already comes as a change first. */
function connect(caches: Caches, tell: Listeners): void {
  const jobs = caches.rayJobs.store;
  const rayJob = (job: Stored<RayJob>, moved: boolean) => tell.rayJob(keyOf(job), job.metadata.uid, moved);
  /** The RayJobs an object belongs to, by owner, label, or because it is (of) the RayCluster that they name. */
  const rayJobsOf = (object: KubeObject, clusterName: string | undefined): readonly Stored<RayJob>[] => {
    const uids = [ownerUid(object, "RayJob"), object.metadata.labels?.[LABEL.rayJobUID]].filter(isUnique);
    const { namespace } = object.metadata;
    const named = clusterName === undefined ? [] : jobs.byIndex("cluster", objectKey(namespace, clusterName));
    return [...new Set([...uids.flatMap((uid) => jobs.byIndex("uid", uid)), ...named])];
  };
  const clusterOf = (object: KubeObject): string | undefined =>
    controller(object, "RayCluster")?.name ?? object.metadata.labels?.[LABEL.cluster];

  caches.rayJobs.onChange(({ old, new: now }) => {
    if (old && old.metadata.uid !== now?.metadata.uid) tell.forget(old.metadata.uid);
    tell.rayJob(keyOf((now ?? old)!), (now ?? old)!.metadata.uid, false);
    // The head of a sidecar's cluster waits for that; one that comes later is told of as it comes.
    if (!now || !mayHaveSidecar(now) || mayHaveSidecar(old)) return;
    const cluster = caches.rayClusters.store.get(now.metadata.namespace ?? "", now.status?.rayClusterName ?? "");
    if (cluster) tell.rayCluster(keyOf(cluster));
  });
  caches.rayClusters.onChange(({ old, new: now }) => {
    const cluster = (now ?? old)!;
    tell.rayCluster(keyOf(cluster));
    for (const job of rayJobsOf(cluster, cluster.metadata.name)) rayJob(job, false);
  });
  caches.rayPods.onChange((change) => {
    const pod = (change.new ?? change.old)!;
    const cluster = clusterOf(pod);
    if (cluster !== undefined) tell.rayCluster(objectKey(pod.metadata.namespace, cluster));
    for (const job of rayJobsOf(pod, cluster)) rayJob(job, hasMoved(change));
  });
  caches.submitterPods.onChange((change) => {
    for (const job of rayJobsOf((change.new ?? change.old)!, undefined)) rayJob(job, hasMoved(change));
  });
  caches.jobs.onChange(({ old, new: now }) => {
    for (const job of rayJobsOf((now ?? old)!, undefined)) rayJob(job, true);
  });
  caches.services.onChange(({ old, new: now }) => {
    const service = (now ?? old)!;
    const cluster = clusterOf(service);
    if (cluster !== undefined) tell.rayCluster(objectKey(service.metadata.namespace, cluster));
    for (const job of rayJobsOf(service, undefined)) rayJob(job, false);
  });
}

function mayHaveSidecar(job: RayJob | undefined): boolean {
  const record = job?.status?.attempts?.at(-1);
  return record?.submissionMode === "SidecarMode" && record.submissionStartTime !== undefined;
}

/** Whether a Pod came, went, or is in another phase: worth asking Ray at once. */
function hasMoved({ old, new: now }: Change<Pod>): boolean {
  const shape = (pod: Pod | undefined) => `${pod?.status?.phase} ${pod?.metadata.deletionTimestamp !== undefined}`;
  return shape(old) !== shape(now);
}

function observeRayJob(
  job: Stored<RayJob>,
  caches: Caches,
  from: {
    poller: Poller;
    commands: RayCommands;
    config: Config;
    clusters: { isWorkingOn(key: string): boolean };
    live: LiveAnswers;
  },
): ObservedRayJob {
  const { namespace = "", name, uid } = job.metadata;
  // Of a RayJob that KubeRay ran, the number is read out of what it wrote.
  const named = caches.rayClusters.store.get(namespace, job.status?.rayClusterName ?? "");
  const record = currentRecord({ job, rayClusters: named ? [named] : [] });
  const attempt = record?.number;
  // While suspended only the record names it, and a selected cluster may yet have to be told to stop the job.
  const clusterName = job.status?.rayClusterName || record?.rayClusterName;
  const ofCluster = <T extends KubeObject>(store: Store<T>) =>
    clusterName ? store.byIndex("cluster", objectKey(namespace, clusterName)) : [];
  const answer = attempt === undefined ? undefined : from.poller.answer(uid, attempt);
  return {
    job,
    settings: from.config.settings,
    rayClusters: distinct(
      caches.rayClusters.store.byIndex("rayJob", uid),
      clusterName ? [caches.rayClusters.store.get(namespace, clusterName)] : [],
    ),
    jobs: distinct(caches.jobs.store.byIndex("rayJob", uid), [caches.jobs.store.get(namespace, name)]),
    services: distinct(
      caches.services.store.byIndex("rayJob", uid),
      [caches.services.store.get(namespace, rayJobHeadServiceName(name))],
      ofCluster(caches.services.store),
    ),
    pods: distinct(
      caches.rayPods.store.byIndex("rayJob", uid),
      caches.submitterPods.store.byIndex("rayJob", uid),
      ofCluster(caches.rayPods.store),
    ),
    neighbours: clusterName
      ? caches.rayJobs.store.byIndex("cluster", objectKey(namespace, clusterName)).filter((other) => other !== job)
      : [],
    clusterInFlight: clusterName !== undefined && from.clusters.isWorkingOn(objectKey(namespace, clusterName)),
    ray: { ...(answer && { answer }), ...(attempt !== undefined && from.commands.outcomes(uid, attempt)) },
    live: from.live,
  };
}

function observeRayCluster(
  cluster: Stored<RayCluster>,
  caches: Caches,
  config: Config,
  live: LiveAnswers,
): ObservedRayCluster {
  const { namespace = "", name } = cluster.metadata;
  const key = objectKey(namespace, name);
  const owner = controller(cluster, "RayJob");
  const rayJob = owner && caches.rayJobs.store.get(namespace, owner.name);
  return {
    cluster,
    ...(rayJob && { rayJob }),
    pods: caches.rayPods.store.byIndex("cluster", key),
    services: distinct(caches.services.store.byIndex("cluster", key), [
      caches.services.store.get(namespace, headServiceName(cluster)),
    ]),
    settings: config.settings,
    live,
  };
}

const keyOf = ({ metadata }: Stored): string => objectKey(metadata.namespace, metadata.name);

function lookUp<T extends KubeObject>(store: Store<T>, key: string): Stored<T> | undefined {
  const slash = key.indexOf("/");
  return store.get(key.slice(0, slash), key.slice(slash + 1));
}

function distinct<T extends KubeObject>(...lists: readonly (readonly (Stored<T> | undefined)[])[]): Stored<T>[] {
  const all = new Map<string, Stored<T>>();
  for (const object of lists.flat()) if (object) all.set(object.metadata.uid, object);
  return [...all.values()];
}
