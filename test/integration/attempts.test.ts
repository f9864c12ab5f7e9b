/**
 * BlockingRecreate on a real API server: whoever keeps a Pod keeps the next attempt waiting, whatever becomes of the
 * operator and whatever the user does meanwhile; and nobody waits a moment longer than that Pod.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import { LABEL, NODE_TYPE } from "../../src/api/labels.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJobSpec } from "../../src/api/rayjob.ts";
import { findCondition } from "../../src/domain/rayjob/conditions.ts";
import { pods } from "../../src/machinery/kube/resources.ts";
import { runsForEver } from "../sim/fakeRay.ts";
import { type Stage, soon, World } from "./world.ts";

const HOLD = "example.com/hold";
const long = { ...runsForEver, pending: 200 };

let world: World;
beforeAll(async () => {
  world = await World.open();
});
afterAll(() => world.close());

/** A RayJob whose attempt 0 has failed, and of whose Pods somebody holds the worker with a finalizer. */
async function blocked(retryStrategy: Partial<RayJobSpec["retryStrategy"]> = {}) {
  const stage = await world.stage({ jobs: [long, soon()] });
  await stage.create({ backoffLimit: 2, retryStrategy: { type: "BlockingRecreate", ...retryStrategy } });
  await stage.running();
  const worker = stage.pods.find(({ metadata }) => metadata.labels?.[LABEL.nodeType] === NODE_TYPE.worker)!;
  const { name, uid } = worker.metadata;
  const finalizers = (value: readonly string[] | null) =>
    stage.client.patch(pods, stage.namespace, name, { metadata: { uid, finalizers: value } });
  await finalizers([HOLD]);
  stage.end("FAILED", "exit code 7");
  const held = await stage.until("the worker, and nothing else, to be left in Terminating", () => {
    const [left, ...others] = stage.pods;
    return others.length === 0 && left?.metadata.deletionGracePeriodSeconds === 0 && left;
  });
  expect(held.metadata).toMatchObject({ uid, finalizers: [HOLD] });
  return { stage, held, release: () => finalizers(null) };
}

/** The condition, once it names no Pod but this one: what is left is told every ten seconds. */
async function saysBlocked(stage: Stage, { metadata: { name } }: Stored<Pod>) {
  const { status } = await stage.status("blocked by one Pod", (status) => {
    const { reason, message = "" } = findCondition(status, "Retrying") ?? {};
    const named = message.match(/\bPod \S+/g) ?? [];
    return reason === "Blocked" && named.join() === `Pod ${name}` && message.includes("terminating since");
  });
  return findCondition(status!, "Retrying")!;
}

/**
 * When somebody asked for its deletion, as its versions tell: once kubelet is done with a Pod that a finalizer holds, the
 * API server puts that moment in the place of the first.
 */
const askedToGo = ({ metadata: { uid, namespace = "" } }: Stored<Pod>): readonly string[] =>
  world.history
    .versions(namespace)
    .flatMap(({ object: { metadata } }) => {
      const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = metadata;
      return metadata.uid === uid && deletionTimestamp
        ? [new Date(Date.parse(deletionTimestamp) - deletionGracePeriodSeconds * 1000)]
        : [];
    })
    .map((asked) => asked.toISOString().replace(".000Z", "Z"));

/** What was done to the RayJob has been taken note of. */
const noticed = (stage: Stage) =>
  stage.status("the last edit to be noticed", ({ observedGeneration }, { metadata }) => {
    return observedGeneration === metadata.generation;
  });

async function restart(): Promise<void> {
  await world.killOperator();
  await world.releaseLease();
  world.startOperator();
}

/** Whoever operates now has looked at all that there is: it has brought a RayJob that came later to its end. */
async function elsewhereAJobRuns(): Promise<void> {
  const other = await world.stage();
  await other.create();
  await other.phase("Complete");
  other.judge();
}

/** The place in the history of the first version of anything of `attempt`; -1 when there is none. */
const begins = (stage: Stage, attempt: number) =>
  world.history
    .versions(stage.namespace)
    .findIndex(({ object }) => object.metadata.labels?.[LABEL.executionAttempt] === String(attempt));

const goes = (stage: Stage, { metadata: { uid } }: Stored<Pod>) =>
  world.history
    .versions(stage.namespace)
    .findIndex(({ type, object }) => type === "DELETED" && object.metadata.uid === uid);

it.concurrent("a Pod that a finalizer holds blocks the next attempt through restarts of the operator, a suspend and a resume, and once it is let go the attempt starts", async () => {
  const { stage, held, release } = await blocked();
  const told = await saysBlocked(stage, held);
  expect(told.status).toBe("True");
  const { metadata, spec } = held;
  expect(spec?.nodeName).toBeTruthy();
  const [, since] = told.message.split(
    `Attempt 1 waits until nothing of attempt 0 is left: Pod ${metadata.name} on node ${spec?.nodeName} (terminating since `,
  );
  expect(askedToGo(held), told.message).toContain(since?.slice(0, "2026-01-01T00:00:00Z".length));

  const meanwhile: readonly (() => Promise<unknown>)[] = [
    restart,
    () => stage.change({ suspend: true }),
    restart,
    () => stage.change({ suspend: false }),
    restart,
  ];
  for (const happens of meanwhile) {
    await happens();
    await noticed(stage);
    await elsewhereAJobRuns();
    expect(stage.job?.status).toMatchObject({ jobDeploymentStatus: "Retrying", executionAttempt: 0, failed: 1 });
    expect(stage.job?.status?.attempts).toHaveLength(1);
    expect(stage.pods.map(({ metadata }) => metadata.uid)).toEqual([held.metadata.uid]);
  }
  expect(begins(stage, 1)).toBe(-1);

  await release();
  const { status } = await stage.phase("Complete");
  expect(status).toMatchObject({ executionAttempt: 1, failed: 1, succeeded: 1 });
  expect(findCondition(status!, "Retrying")).toMatchObject({ status: "False", reason: "NotRetrying" });
  expect(goes(stage, held)).toBeGreaterThan(-1);
  expect(begins(stage, 1)).toBeGreaterThan(goes(stage, held));
  expect(stage.past(({ status }) => status?.executionAttempt ?? -1)).toEqual([-1, 0, 1]);
  expect(stage.submissions).toHaveLength(2);
  const events = await stage.events();
  for (const reason of ["RetryBlocked", "RetryUnblocked"]) {
    expect(events.filter((event) => event.includes(` ${reason}: `))).toHaveLength(1);
  }
  stage.judge();
});

it.concurrent("blockingTimeoutSeconds ends the wait: the RayJob has failed, says what did not go, and no attempt follows when it goes after all", async () => {
  const { stage, held, release } = await blocked({ blockingTimeoutSeconds: 2 });
  const { status } = await stage.phase("Failed");
  expect(status).toMatchObject({ reason: "RetryBlockedTimeoutExceeded", executionAttempt: 0, failed: 1 });
  expect(status?.message).toContain(`Pod ${held.metadata.name} on node ${held.spec?.nodeName}`);
  expect(findCondition(status!, "Failed")).toMatchObject({ status: "True", reason: "RetryBlockedTimeout" });
  expect(stage.pods.map(({ metadata }) => metadata.uid)).toEqual([held.metadata.uid]);
  await release();
  await stage.released();
  expect(stage.job?.status).toMatchObject({ jobDeploymentStatus: "Failed", executionAttempt: 0 });
  expect(begins(stage, 1)).toBe(-1);
  stage.judge();
});
