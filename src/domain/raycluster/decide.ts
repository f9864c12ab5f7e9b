/**
 * What to do about a RayCluster now.
 *
 * Answers: one decision from all that is observed: the head and its Service, the workers, suspension, the status.
 * May not: fetch, wait or remember. The rules are in the files beside this one; here is only their order.
 * Next: head.ts, scale.ts, services.ts, suspend.ts; failures.ts for Pods that fail; status.ts for what is reported.
 */
import { GROUP, LABEL } from "../../api/labels.ts";
import type { Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import { type Decision, type EventSpec, type KubeEffect, type LiveQuestion, questionKey } from "../decision.ts";
import { earliest, type Instant, seconds } from "../time.ts";
import { inOneText, sentence, type Violation } from "../validation.ts";
import { type TokenStep, tokenQuestion, tokenStep } from "./authSecret.ts";
import { deleteAllPods, deletePod } from "./effects.ts";
import { FAILURES_ANNOTATION, type FailureJournal, type Patience, patience, readJournal } from "./failures.ts";
import { formerHead } from "./formerHead.ts";
import { keepsLostHead, planHead } from "./head.ts";
import { waitsForJournal } from "./journalFirst.ts";
import {
  type ClusterPods,
  isManagedElsewhere,
  isOwned,
  isTerminating,
  type ObservedRayCluster,
  sortPods,
} from "./observe.ts";
import { awaitsOneHead, hasLostOneHead, hasOneHead, oneHeadUID, secondHeads } from "./oneHead.ts";
import { type Plan, together } from "./plan.ts";
import { planGroup, planOrphans } from "./scale.ts";
import { planHeadService } from "./services.ts";
import { nextStatus, nextStuckAt } from "./status.ts";
import { type SuspendPhase, suspendStep } from "./suspend.ts";
import { rayClusterViolations } from "./validate.ts";
import { volumeWatch } from "./warnings.ts";

/**
 * Pods made in one pass. A cluster of a thousand comes up in several, between which others get their turn.
 */
const MOST_CREATES = 50;
/** When a cache that lags is looked at again, should no change arrive before. */
const CACHE_LAG = seconds(1);

export function decideRayCluster(observed: ObservedRayCluster, now: Instant): Decision {
  const { cluster } = observed;
  // Garbage collection takes everything: all of it has the cluster as its owner.
  if (isTerminating(cluster)) return quiet("The cluster is being deleted.");
  if (isManagedElsewhere(cluster)) return quiet(`The cluster is managed by ${cluster.spec.managedBy}.`);

  const pods = sortPods(observed);
  const volumes = volumeWatch(cluster.metadata.namespace ?? "", pods.all, now);
  if (volumes.questions.some((question) => !observed.live.has(questionKey(question)))) {
    return { ...quiet("Does a volume keep a Pod from starting?"), ask: volumes.questions };
  }
  const violations = rayClusterViolations(cluster, observed.settings);
  const invalid = inOneText(violations.map(sentence));

  const suspend = suspendStep(observed, pods);
  const step = suspend ?? (invalid ? refuse(invalid) : run(observed, pods, now));
  const plan = together([step.plan ?? {}]);
  if (plan.creates.length > 0 && pods.heads.length === 0 && waitsForJournal(observed)) {
    return quiet("The head would submit: its RayJob has to write that down first.");
  }

  const { namespace = "", name, uid } = cluster.metadata;
  const aboutToken = plan.creates.length > 0 ? tokenQuestion(cluster) : undefined;
  const questions: readonly LiveQuestion[] = [
    { ask: "list", kind: "Pod", namespace, labels: { [LABEL.cluster]: name } },
    { ask: "get", kind: "RayCluster", namespace, name },
    ...(aboutToken ? [aboutToken] : []),
  ];
  const [live, clusters] = questions.map((question) => observed.live.get(questionKey(question)));
  // A Service that was made for a cluster which is deleted goes at once, and would be made again, for as long as the
  // cache lags.
  const makes = plan.creates.length > 0 || plan.others.some((effect) => effect.do === "create");
  const needsLive = makes || suspend?.needsLiveAbsence === true;
  const isAsked = questions.every((question) => observed.live.has(questionKey(question)));
  if (needsLive && !isAsked) return { summary: step.summary, effects: [], events: [], ask: questions };
  // Another operator may have written down a head that is gone by now.
  if (
    needsLive &&
    clusters!.some((one) => one.metadata.uid === uid && oneHeadUID(one as RayCluster) !== oneHeadUID(cluster))
  ) {
    return { ...quiet("The cache lags: the head has been written down."), wakeAt: now + CACHE_LAG };
  }
  // Whoever deleted it may have been told that nothing of it is left.
  if (needsLive && !clusters!.some((one) => one.metadata.uid === uid && !isTerminating(one))) {
    return { ...quiet("The cache lags: the cluster is deleted."), wakeAt: now + CACHE_LAG };
  }

  // Pods that the API server has and the cache does not: made twice, were anything made now.
  const seen = new Set(pods.all.map((pod) => pod.metadata.uid));
  const unseen = needsLive ? live!.filter((pod) => isOwned(pod, cluster) && !seen.has(pod.metadata.uid!)) : [];
  // A Pod whose label a user took off, to look at it in peace, is never in the cache: it only holds up a suspension.
  const behind = unseen.some((pod) => suspend !== undefined || pod.metadata.labels?.[LABEL.nodeType] !== undefined);
  if (!behind && plan.creates.length > 0 && pods.heads.length === 0) {
    const former = formerHead(observed, now);
    if ("ask" in former) return { ...quiet("Was there a head before?"), ask: [former.ask] };
    if (former.uid !== undefined) {
      const head = { ...cluster.status?.head, podUID: former.uid };
      const summary = `Writes down the head that there was, and is no more: Pod ${former.uid}.`;
      return { ...quiet(summary), status: { ...cluster.status, head } };
    }
  }
  const phase: SuspendPhase = suspend === undefined ? "running" : behind ? "suspending" : suspend.next;

  const secret = plan.creates.length > 0 && !behind ? tokenStep(observed, live!, now) : undefined;
  const effects = [
    ...(secret?.make ? [secret.make] : []),
    ...plan.others,
    ...plan.deletes,
    ...(suspend && behind ? deleteAllPods(cluster, unseen.filter((pod) => !isTerminating(pod)) as Stored[]) : []),
    ...(behind || secret ? [] : plan.creates.slice(0, MOST_CREATES)),
  ];
  const told = secret?.trouble ? { ...observed, refused: [secret.trouble] } : observed;
  const { status, wakeAt: reportAt } = nextStatus(told, pods, phase, invalid, now);
  const lagAt = behind ? now + CACHE_LAG : undefined;
  const wakeAt = earliest(plan.wakeAt, reportAt, nextStuckAt(pods, now), volumes.wakeAt, lagAt, secret?.wakeAt);
  const summary = secret?.summary ?? step.summary;
  const rest = { summary, events: invalidEvents(cluster, violations, invalid), wakeAt };

  // A refusal is reported before the same is tried again: the status of a pass that fails is not written.
  if (status && observed.refused?.length) return { ...rest, effects: [], status };
  if (effects.length > 0 && !mayReport(cluster, effects)) return { ...rest, effects };
  return { ...rest, effects, status, events: [...rest.events, ...(status ? tokenEvents(cluster, secret) : [])] };
}

interface Step {
  readonly summary: string;
  readonly plan?: Plan;
}

const quiet = (summary: string): Decision => ({ summary, effects: [], events: [] });

const refuse = (invalid: string): Step => ({ summary: `The spec is not acted upon: ${invalid}` });

function run(observed: ObservedRayCluster, pods: ClusterPods, now: Instant): Step {
  const { cluster, settings } = observed;
  const journal = readJournal(cluster);
  const generation = cluster.metadata.generation ?? 0;
  // What is never replaced is not counted.
  const head = hasOneHead(cluster) ? { retryAt: 0 } : patience(journal[GROUP.head], pods.heads, generation, now);
  const groups = pods.groups.map((group) => ({
    group,
    patience: patience(journal[group.spec.groupName], group.pods, generation, now),
  }));

  const uncounted = journalled(journal, [
    [GROUP.head, head],
    ...groups.map(({ group, patience }) => [group.spec.groupName, patience] as const),
  ]);
  if (uncounted) {
    return {
      summary: "Counts Pods that failed, before they are replaced.",
      plan: { others: [patchJournal(cluster, uncounted)] },
    };
  }
  if (awaitsOneHead(cluster)) return beginWithHead(observed, pods, head, now);
  const late = secondHeads(cluster, pods.heads).filter((pod) => !isTerminating(pod));
  if (late.length > 0) {
    const summary = "Deletes a head that came late, from a request that had been given up.";
    const why = "The cluster may have one head Pod only, and had it.";
    return { summary, plan: { deletes: late.map((pod) => deletePod(cluster, pod, "head", why)) } };
  }
  if (hasLostOneHead(cluster, pods.heads) || (keepsLostHead(cluster) && pods.heads.length === 0)) {
    return { summary: "The head is lost, and the cluster may not have another.", plan: planHeadService(observed) };
  }
  let room = MOST_CREATES;
  const workers = groups.map(({ group, patience }) => {
    const plan = planGroup(cluster, group, patience, settings, now, room);
    room -= plan.creates?.length ?? 0;
    return plan;
  });
  const plan = together([
    planHeadService(observed),
    planHead(observed, pods, head, now),
    ...workers,
    planOrphans(cluster, pods.orphans),
  ]);
  const { creates, deletes, others } = plan;
  const work = creates.length + deletes.length + others.length;
  const summary =
    work === 0
      ? "Its Pods and Services are as they shall be."
      : `Makes ${creates.length} Pods, deletes ${deletes.length}, and writes ${others.length} other objects.`;
  return { summary, plan };
}

/** The head comes first, and its UID is written down before anything else is made. */
function beginWithHead(observed: ObservedRayCluster, pods: ClusterPods, head: Patience, now: Instant): Step {
  if (pods.heads.length > 0) return { summary: "Writes down which Pod is the head, the only one in its life." };
  const plan = together([planHeadService(observed), planHead(observed, pods, head, now)]);
  return { summary: "Makes the head, the only one in its life.", plan };
}

/** The journal with what is new in it, or undefined when nothing is. Groups that are gone are forgotten on the way. */
function journalled(
  journal: FailureJournal,
  groups: readonly (readonly [string, Patience])[],
): FailureJournal | undefined {
  if (groups.every(([, { record }]) => record === undefined)) return undefined;
  return Object.fromEntries(
    groups.flatMap(([name, { record }]) => {
      const entry = record ?? journal[name];
      return entry ? [[name, entry]] : [];
    }),
  );
}

function patchJournal(cluster: ObservedRayCluster["cluster"], journal: FailureJournal): KubeEffect {
  const { namespace, name, uid, resourceVersion } = cluster.metadata;
  return {
    do: "patch",
    ref: { kind: "RayCluster", namespace: namespace!, name, uid },
    patch: { metadata: { annotations: { [FAILURES_ANNOTATION]: JSON.stringify(journal) } } },
    resourceVersion,
    why: "The count of failures must outlive the operator, or Pods would be replaced without delay after a restart.",
  };
}

/**
 * Whether a pass with effects also writes the status. Not when it changes the cluster itself, whose version the status
 * must carry; nor the very first one, which would be overtaken at once by what its own effects bring about.
 */
function mayReport(cluster: RayCluster, effects: readonly KubeEffect[]): boolean {
  const changesCluster = effects.some((effect) => effect.do === "patch" && effect.ref.kind === "RayCluster");
  return !changesCluster && (cluster.status?.conditions?.length ?? 0) > 0;
}

/** Once for each new text: the condition that goes out with it says the same. */
function tokenEvents({ status }: RayCluster, step: TokenStep | undefined): EventSpec[] {
  if (!step?.trouble) return [];
  const { reason, message: note } = step.trouble;
  const isKnown = status?.conditions?.some(({ type, message }) => type === "ReplicaFailure" && message === note);
  return isKnown ? [] : [{ type: "Warning", reason, action: "Create", note }];
}

/** Once for each new text, not once for each pass. */
function invalidEvents(cluster: RayCluster, violations: readonly Violation[], invalid: string): EventSpec[] {
  if (!invalid || cluster.status?.reason === invalid) return [];
  const where = `${cluster.metadata.namespace}/${cluster.metadata.name}`;
  const [metadata, spec] = ["metadata", "spec"].map((part) => violations.filter(({ at }) => at.startsWith(part)));
  const event = (reason: string, found: readonly Violation[]): EventSpec[] =>
    found.length === 0
      ? []
      : [
          {
            type: "Warning",
            reason,
            action: "Validate",
            note: `The RayCluster ${where} is not acted upon: ${inOneText(found.map(sentence))}`,
          },
        ];
  return [...event("InvalidRayClusterMetadata", metadata!), ...event("InvalidRayClusterSpec", spec!)];
}
