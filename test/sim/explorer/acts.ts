/**
 * What others than the operator may do when the world is in a new state: users, nodes, dashboards, other operators.
 *
 * To add one: a line in the table. `can` says whether there is anything to do it to; what goes on over a time holds the
 * schedule open with `life.beginAct()`.
 */
import type { Pod } from "../../../src/api/kubernetes.ts";
import { ANNOTATION, LABEL, NODE_TYPE, SUBMITTER_CONTAINER } from "../../../src/api/labels.ts";
import type { KubeObject, Stored } from "../../../src/api/object.ts";
import type { RayCluster } from "../../../src/api/raycluster.ts";
import type { RayJob } from "../../../src/api/rayjob.ts";
import { isAlreadyExists, isConflict, isNotFound } from "../../../src/machinery/kube/errors.ts";
import { jobs, pods, rayClusters, rayJobs } from "../../../src/machinery/kube/resources.ts";
import type { KubeRequest } from "../../../src/machinery/kube/transport.ts";
import type { Mood } from "../fakeRay.ts";
import type { Life } from "./life.ts";
import { givenUp } from "./replica.ts";
import { SHARED } from "./selected.ts";

export interface Act {
  readonly name: string;
  /** Whether the end may differ from that of an undisturbed life. */
  readonly changesEnd: boolean;
  /** Done where operators are elected, and only there. */
  readonly elected?: boolean;
  readonly can: (life: Life) => boolean;
  readonly act: (life: Life) => Promise<unknown> | unknown;
}

const MINUTE = 60_000;
const all = <T extends KubeObject>(life: Life, resource: string) =>
  life.world.kube.storage.all(resource) as unknown as readonly Stored<T>[];
const job = (life: Life): Stored<RayJob> | undefined => all<RayJob>(life, "ray.io/rayjobs")[0];
const alive = (life: Life): boolean => job(life) !== undefined && !job(life)!.metadata.deletionTimestamp;
const over = (life: Life): boolean => ["Complete", "Failed"].includes(job(life)?.status?.jobDeploymentStatus ?? "");
const cluster = (life: Life) =>
  all<RayCluster>(life, "ray.io/rayclusters").find(({ metadata }) => !metadata.deletionTimestamp);
const runningPod = (life: Life, type: string | undefined): Stored<Pod> | undefined =>
  life.world.kubelet.running.find(
    ({ metadata: { labels = {} } }) =>
      labels[LABEL.nodeType] === type &&
      (labels[LABEL.rayJobUID] !== undefined || (type !== undefined && labels[LABEL.cluster] === SHARED)),
  );
const anyHead = (life: Life): Stored<Pod> | undefined =>
  all<Pod>(life, "/pods").find(({ metadata }) => metadata.labels?.[LABEL.nodeType] === NODE_TYPE.head);
/** Its RayCluster may have one head only, and does not know which that is. */
const awaitsHead = (life: Life): boolean => {
  const { metadata, status } = cluster(life) ?? {};
  return metadata?.annotations?.[ANNOTATION.oneHead] === "true" && status?.head?.podUID === undefined;
};
const sidecarRuns = (pod: Stored<Pod> | undefined): boolean =>
  pod?.status?.containerStatuses?.some(({ name, state }) => name === SUBMITTER_CONTAINER && state?.running) ?? false;
const submitterJob = (life: Life) => all(life, "batch/jobs").find(({ metadata }) => !metadata.deletionTimestamp);

const patch = (life: Life, spec: object) => quietly(life.world.client.patch(rayJobs, "default", "demo", { spec }));

/** What a user does to an object that has just gone, or changed, is done in vain. */
export async function quietly(done: Promise<unknown>): Promise<void> {
  await done.catch((error) => {
    if (!isNotFound(error) && !isConflict(error) && !isAlreadyExists(error)) throw error;
  });
}

/** `act` happens after a while, and the schedule is not over before. */
function later(life: Life, milliseconds: number, act: () => Promise<unknown> | unknown): void {
  const done = life.beginAct();
  life.world.clock.after(milliseconds, () => void Promise.resolve(act()).finally(done));
}

function mood(life: Life, how: Mood, milliseconds: number): void {
  const heads = [...life.world.ray.heads.values()];
  for (const head of heads) head.mood = how;
  life.oracles.rayDisturbed = true;
  later(life, milliseconds, () => {
    for (const head of heads) head.mood = "well";
  });
}

async function resume(life: Life): Promise<void> {
  life.oracles.resumed();
  await patch(life, { suspend: false });
}

/** A request that made something of an attempt which is over by now. */
function tooLate(life: Life, kind: string): KubeRequest | undefined {
  const { metadata, status = {} } = job(life) ?? {};
  const ended = over(life) || status.jobDeploymentStatus === "Suspended";
  return life.asked.find(({ body }) => {
    const { kind: what, metadata: of } = body as KubeObject;
    const { [LABEL.rayJobUID]: uid, [LABEL.executionAttempt]: attempt } = of.labels ?? {};
    return what === kind && uid === metadata?.uid && (ended || Number(attempt) < (status.executionAttempt ?? 0));
  });
}

/** Who deletes a cluster that RayJobs select makes it again, sooner or later. */
async function deleteCluster(life: Life, propagation: "Background" | "Foreground"): Promise<void> {
  await quietly(life.world.client.delete(rayClusters, "default", cluster(life)!.metadata.name, { propagation }));
  if (life.lifecycle.cluster) later(life, 2 * MINUTE, () => quietly(life.createCluster()));
}

async function lose(life: Life, pod: Stored<Pod>, milliseconds: number, end: (pod: Stored<Pod>) => Promise<unknown>) {
  await life.world.kubelet.lose(pod.metadata.uid);
  later(life, milliseconds, () => end(pod));
}

async function hush(life: Life, { metadata: { uid } }: Stored<Pod>): Promise<void> {
  await life.world.kubelet.hush(uid);
  later(life, MINUTE, () => life.world.kubelet.reportsAgain(uid));
}

const hasHead = (life: Life) => life.world.ray.heads.size > 0;
const head = (life: Life) => runningPod(life, NODE_TYPE.head);
const remove = (life: Life, pod: Stored<Pod>) =>
  quietly(life.world.client.delete(pods, "default", pod.metadata.name, { gracePeriodSeconds: 0 }));

const OTHER = "python other.py";

export const acts: readonly Act[] = [
  // Users.
  { name: "suspend", changesEnd: true, can: alive, act: (l) => patch(l, { suspend: true }) },
  {
    name: "suspend-resume",
    changesEnd: true,
    can: (l) => alive(l) && !over(l),
    async act(life) {
      await patch(life, { suspend: true });
      later(life, 8000, () => resume(life));
    },
  },
  {
    name: "blink",
    changesEnd: true,
    can: (l) => alive(l) && !over(l),
    async act(life) {
      await patch(life, { suspend: true });
      await resume(life);
    },
  },
  { name: "resume", changesEnd: true, can: (l) => job(l)?.spec.suspend === true && alive(l), act: resume },
  {
    name: "delete",
    changesEnd: true,
    can: alive,
    act: (l) => quietly(l.world.client.delete(rayJobs, "default", "demo")),
  },
  {
    name: "recreate",
    changesEnd: true,
    can: alive,
    async act(life) {
      const { uid } = job(life)!.metadata;
      await quietly(life.world.client.delete(rayJobs, "default", "demo"));
      const done = life.beginAct();
      const again = () => {
        if (job(life)?.metadata.uid === uid) return void life.world.clock.after(50, again);
        void life.create().finally(done);
      };
      again();
    },
  },
  {
    name: "edit",
    changesEnd: false,
    can: alive,
    // Each says something else than the one before: on a tour the second would else be none.
    act: (l) => patch(l, { entrypoint: job(l)?.spec.entrypoint === OTHER ? "python another.py" : OTHER }),
  },
  {
    name: "open-barrier",
    changesEnd: true,
    can: (l) =>
      job(l)?.status?.jobDeploymentStatus === "Retrying" && job(l)?.spec.retryStrategy?.type === "BlockingRecreate",
    act: (l) => patch(l, { retryStrategy: { type: "Recreate", blockingTimeoutSeconds: null } }),
  },
  {
    name: "edit-badly",
    // What it says of the spec when it is over, stays.
    changesEnd: true,
    can: (l) => alive(l) && !over(l),
    async act(life) {
      await patch(life, { entrypointResources: "no JSON" });
      later(life, 20_000, () => patch(life, { entrypointResources: null }));
    },
  },
  {
    name: "delete-cluster",
    changesEnd: true,
    can: (l) => cluster(l) !== undefined,
    act: (l) => deleteCluster(l, "Background"),
  },
  {
    name: "delete-cluster-slowly",
    changesEnd: true,
    can: (l) => cluster(l) !== undefined,
    act: (l) => deleteCluster(l, "Foreground"),
  },
  {
    name: "make-cluster",
    changesEnd: false,
    can: (l) => l.lifecycle.cluster !== undefined && cluster(l) === undefined,
    // One of that name may be there yet, on its way out.
    act: (l) => quietly(l.createCluster()),
  },
  {
    name: "delete-submitter",
    changesEnd: true,
    can: (l) => submitterJob(l) !== undefined,
    act: (l) => quietly(l.world.client.delete(jobs, "default", "demo", { propagation: "Background" })),
  },
  // The API server carries out what an operator has given up long ago.
  {
    name: "late-cluster",
    changesEnd: false,
    can: (l) => tooLate(l, "RayCluster") !== undefined,
    act: (l) => l.kubernetes.request(givenUp(tooLate(l, "RayCluster")!)),
  },
  {
    name: "late-submitter",
    changesEnd: false,
    can: (l) => tooLate(l, "Job") !== undefined,
    act: (l) => l.kubernetes.request(givenUp(tooLate(l, "Job")!)),
  },
  // Kueue, and who tells it what to do.
  {
    name: "preempt",
    changesEnd: true,
    can: (l) => l.kueue?.mayEvict ?? false,
    act: (l) => l.kueue!.evict("Preempted"),
  },
  {
    name: "deactivate",
    changesEnd: true,
    can: (l) => l.kueue?.workload?.active ?? false,
    act: (l) => l.kueue!.evict("Deactivated"),
  },
  {
    name: "delete-workload",
    changesEnd: true,
    can: (l) => l.kueue?.workload !== undefined && !l.kueue.workload.finished,
    act: (l) => quietly(l.kueue!.deleteWorkload()),
  },
  // Nodes.
  { name: "delete-head", changesEnd: true, can: (l) => anyHead(l) !== undefined, act: (l) => remove(l, anyHead(l)!) },
  {
    // It runs, and submits where it is a sidecar's, and is removed by force, while nobody leads who would write it down.
    name: "head-vanishes-unseen",
    changesEnd: true,
    can: (l) => anyHead(l) !== undefined && !l.chief.dead && awaitsHead(l),
    act(life) {
      const pod = anyHead(life)!;
      life.outage(40_000);
      later(life, 20_000, () => remove(life, pod));
    },
  },
  {
    name: "evict-head",
    changesEnd: true,
    can: (l) => head(l) !== undefined,
    act: (l) => l.world.kubelet.end(head(l)!.metadata.uid, { exitCode: 137, podReason: "Evicted" }),
  },
  {
    name: "kill-head",
    changesEnd: true,
    can: (l) => head(l) !== undefined,
    act(life) {
      const { metadata, spec } = head(life)!;
      const end = { exitCode: 137, reason: "OOMKilled" };
      const { kubelet } = life.world;
      return spec?.restartPolicy === "Never" ? kubelet.end(metadata.uid, end) : kubelet.restart(metadata.uid, end);
    },
  },
  {
    name: "kill-sidecar",
    changesEnd: true,
    can: (l) => sidecarRuns(head(l)),
    act: (l) => l.world.kubelet.endContainer(head(l)!.metadata.uid, SUBMITTER_CONTAINER, { exitCode: 137 }),
  },
  {
    name: "lose-head",
    changesEnd: true,
    can: (l) => head(l) !== undefined,
    // It comes back after its Pods were evicted.
    act: (l) => lose(l, head(l)!, 8 * MINUTE, (pod) => l.world.kubelet.comesBack(pod.metadata.uid)),
  },
  {
    name: "lose-head-for-good",
    changesEnd: true,
    can: (l) => head(l) !== undefined,
    // Somebody removes the Pod by force, late.
    act: (l) => lose(l, head(l)!, 30 * MINUTE, (pod) => remove(l, pod)),
  },
  {
    name: "lose-worker",
    changesEnd: false,
    can: (l) => runningPod(l, NODE_TYPE.worker) !== undefined,
    act: (l) => lose(l, runningPod(l, NODE_TYPE.worker)!, 30 * MINUTE, (pod) => remove(l, pod)),
  },
  {
    name: "lose-submitter",
    changesEnd: true,
    can: (l) => runningPod(l, undefined) !== undefined,
    act: (l) => lose(l, runningPod(l, undefined)!, 8 * MINUTE, (pod) => l.world.kubelet.comesBack(pod.metadata.uid)),
  },
  {
    // For a minute: nobody evicts it, and what runs there runs on.
    name: "hush-head",
    changesEnd: true,
    can: (l) => head(l) !== undefined,
    act(life) {
      mood(life, "hang", MINUTE);
      return hush(life, head(life)!);
    },
  },
  {
    name: "hush-worker",
    changesEnd: false,
    can: (l) => runningPod(l, NODE_TYPE.worker) !== undefined,
    act: (l) => hush(l, runningPod(l, NODE_TYPE.worker)!),
  },
  {
    name: "hush-submitter",
    changesEnd: true,
    can: (l) => runningPod(l, undefined) !== undefined,
    act: (l) => hush(l, runningPod(l, undefined)!),
  },
  {
    name: "evict-worker",
    changesEnd: false,
    can: (l) => runningPod(l, NODE_TYPE.worker) !== undefined,
    act: (l) =>
      l.world.kubelet.end(runningPod(l, NODE_TYPE.worker)!.metadata.uid, { exitCode: 137, podReason: "Evicted" }),
  },
  {
    name: "evict-submitter",
    changesEnd: true,
    can: (l) => runningPod(l, undefined) !== undefined,
    act: (l) => l.world.kubelet.end(runningPod(l, undefined)!.metadata.uid, { exitCode: 137, podReason: "Evicted" }),
  },
  {
    name: "delete-submitter-pod",
    changesEnd: true,
    can: (l) => runningPod(l, undefined) !== undefined,
    act: (l) => remove(l, runningPod(l, undefined)!),
  },
  {
    name: "stick",
    changesEnd: false,
    can: (l) => l.behaviours.size > 0,
    act(life) {
      const stuck = [...life.behaviours];
      for (const [, behaviour] of stuck) behaviour.terminate = Number.POSITIVE_INFINITY;
      later(life, 2 * MINUTE, async () => {
        for (const [uid, behaviour] of stuck) {
          behaviour.terminate = 1000;
          const pod = all<Pod>(life, "/pods").find(({ metadata }) => metadata.uid === uid);
          if (pod?.metadata.deletionTimestamp) await remove(life, pod);
        }
      });
    },
  },
  // Dashboards.
  { name: "dashboard-hangs", changesEnd: false, can: hasHead, act: (l) => mood(l, "hang", 30_000) },
  { name: "dashboard-500", changesEnd: false, can: hasHead, act: (l) => mood(l, 500, 30_000) },
  { name: "dashboard-gone", changesEnd: true, can: hasHead, act: (l) => mood(l, "refuse", 8 * MINUTE) },
  {
    name: "ray-forgets",
    changesEnd: true,
    // One that nobody has seen yet cannot be told from one that has never come.
    can: (l) => job(l)?.status?.attempts?.at(-1)?.observedTime !== undefined && hasHead(l),
    act(life) {
      life.oracles.rayDisturbed = true;
      for (const { jobs } of life.world.ray.heads.values()) jobs.clear();
    },
  },
  // Operators.
  {
    name: "rival",
    changesEnd: false,
    can: (l) => l.rivals === 0,
    act: (l) => l.rival(0),
  },
  {
    name: "rival-late",
    changesEnd: false,
    can: (l) => l.rivals === 0,
    act: (l) => l.rival(6000),
  },
  {
    name: "outage",
    changesEnd: false,
    can: (l) => !l.chief.dead,
    act(life) {
      life.oracles.leaderless = true;
      life.outage(60 * MINUTE);
    },
  },
  {
    name: "stop-leader",
    changesEnd: false,
    elected: true,
    can: (l) => !l.chief.dead,
    act: (l) => l.stop(l.chief),
  },
  {
    // For longer than its lease, or for so long that it has just run out for its writes.
    name: "pause-leader",
    changesEnd: false,
    elected: true,
    can: (l) => !l.chief.dead,
    act: (l) => l.chief.pause(20_000),
  },
  {
    name: "pause-leader-shortly",
    changesEnd: false,
    elected: true,
    can: (l) => !l.chief.dead,
    act: (l) => l.chief.pause(5000),
  },
];

const byName = new Map(acts.map((act) => [act.name, act]));
export const actOf = (name: string): Act => {
  const act = byName.get(name);
  if (!act) throw new Error(`nobody knows how to ${name}`);
  return act;
};
