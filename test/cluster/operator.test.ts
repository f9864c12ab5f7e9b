/**
 * What becomes of the operator's own Pods, on a real cluster: deleted in every phase of a job, and, of two replicas, the
 * leader killed by SIGKILL. The job is run as often as it should be, its attempts are counted right, and it ends as if
 * nothing had happened.
 */
import { afterAll, afterEach, expect } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import { realClock } from "../../src/machinery/clock.ts";
import { Informer } from "../../src/machinery/kube/informer.ts";
import { leases, pods } from "../../src/machinery/kube/resources.ts";
import { LOCK_NAME } from "../../src/machinery/leader.ts";
import { Gate } from "../support/gate.ts";
import { isReady, scenario, smallRayJob, stopwatch, useCluster } from "./cluster.ts";
import { OPERATOR } from "./operator.ts";
import { operatorReplicas } from "./webhook.ts";

type Lease = KubeObject & { spec?: { holderIdentity?: string; leaseTransitions?: number } };

const cluster = useCluster("operator");
const lease = cluster.observe(
  new Informer<Lease>({ client: cluster.client, type: leases, clock: realClock, namespaces: [OPERATOR.namespace] }),
);
let gate: Gate;
afterEach(async () => {
  gate.open();
  await cluster.remove("survivor");
  gate.remove();
});
afterAll(() => operatorReplicas(cluster, 1));

/** An identity begins with the name of its Pod. */
const holder = () => lease.store.get(OPERATOR.namespace, LOCK_NAME)?.spec?.holderIdentity;
const leads = (pod: Stored<Pod>) => Boolean(holder()?.startsWith(`${pod.metadata.name}_`));
const leader = () => cluster.until("an operator to lead", () => cluster.operators.store.list().find(leads));

/** Deletes the operator's Pod, and waits until another one leads. */
async function deleteOperator(phase: string, seen: (what: string) => void): Promise<void> {
  const before = await leader();
  const since = stopwatch();
  await cluster.client.delete(pods, OPERATOR.namespace, before.metadata.name, { uid: before.metadata.uid });
  await cluster.until("another operator to lead", () =>
    cluster.operators.store.list().find((pod) => pod.metadata.uid !== before.metadata.uid && leads(pod)),
  );
  seen(`its Pod deleted (${phase}); the next one leads ${since()} later`);
}

const deletedInEveryPhase =
  "the operator's Pod is deleted in every phase: a failed attempt counts once, each attempt is run once";
scenario(cluster, deletedInEveryPhase, async (seen) => {
  gate = new Gate();
  const entrypoint = `[ "$ATTEMPT" = 0 ] && { echo run >> /gate/runs; exit 1; }; ${gate.entrypoint()}`;
  const created = await cluster.apply(smallRayJob("survivor", { entrypoint, backoffLimit: 1 }, gate));
  await deleteOperator("new", seen);
  await cluster.phase("survivor", "Initializing");
  await cluster.until("the head Pod", () => cluster.head(created));
  await deleteOperator("Initializing", seen);
  const submits = ({ submissionStartTime }: { submissionStartTime?: string } = {}) => submissionStartTime !== undefined;
  await cluster.status("survivor", "about to be submitted", ({ attempts }) => submits(attempts?.at(-1)));
  await deleteOperator("submitting", seen);
  await cluster.status("survivor", "attempt 0 to have failed", ({ failed }) => failed === 1);
  await deleteOperator("Retrying", seen);
  await cluster.status(
    "survivor",
    "attempt 1 to run",
    ({ jobStatus, executionAttempt }) => executionAttempt === 1 && jobStatus === "RUNNING",
  );
  await expect.poll(() => gate.runs(), { timeout: 60_000 }).toBe(2);
  await deleteOperator("Running", seen);
  gate.open();
  await deleteOperator("finishing", seen);
  const { status } = await cluster.ended("survivor");
  await deleteOperator("cleaning up", seen);
  expect(status).toMatchObject({
    jobDeploymentStatus: "Complete",
    jobStatus: "SUCCEEDED",
    executionAttempt: 1,
    failed: 1,
    succeeded: 1,
  });
  expect(status!.attempts?.map(({ number, jobStatus }) => `${number} ${jobStatus}`)).toEqual([
    "0 FAILED",
    "1 SUCCEEDED",
  ]);
  await cluster.until("its RayCluster to be gone", () =>
    cluster.rayClusters.store.list().every(({ metadata }) => metadata.name !== status!.rayClusterName),
  );
  expect(gate.runs()).toBe(2);
});

scenario(
  cluster,
  "of two replicas the leader is killed: another process takes over, and the job is Complete, run once",
  async (seen) => {
    gate = new Gate();
    await operatorReplicas(cluster, 2);
    await cluster.apply(smallRayJob("survivor", { entrypoint: gate.entrypoint() }, gate));
    await cluster.running("survivor");
    await expect.poll(() => gate.runs(), { timeout: 60_000 }).toBe(1);
    const before = await leader();
    const identity = holder();
    const since = stopwatch();
    await cluster.killContainer(before, before.spec!.containers[0]!.name);
    // Nobody leads now; the job ends meanwhile.
    gate.open();
    // Most often the other replica; the killed one, which kubelet starts again at once, may be quicker on a busy machine.
    const after = await cluster.until(
      "another process to lead",
      () => holder() !== identity && cluster.operators.store.list().find(leads),
    );
    const which = after.metadata.uid === before.metadata.uid ? "the killed one, started again," : "the other replica";
    seen(`${which} leads ${since()} after the kill`);
    const { status } = await cluster.ended("survivor");
    seen(`Complete ${since()} after the kill`);
    expect(status).toMatchObject({ jobDeploymentStatus: "Complete", executionAttempt: 0, succeeded: 1 });
    expect(status!.failed ?? 0).toBe(0);
    expect(gate.runs()).toBe(1);
    // The killed one is started again in its Pod, and leaves the lease to its holder.
    await cluster.until("the killed replica to be back", () =>
      cluster.operators.store
        .list()
        .some(
          (pod) =>
            pod.metadata.uid === before.metadata.uid &&
            isReady(pod) &&
            pod.status?.containerStatuses?.[0]?.restartCount === 1,
        ),
    );
    expect(leads(after)).toBe(true);
  },
);
