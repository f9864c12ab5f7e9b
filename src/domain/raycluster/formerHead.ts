/**
 * A sidecar's head that was made and vanished before anybody wrote its UID down: its operator died, or its caches lagged,
 * and the Pod was deleted meanwhile. It may have had its job, which a second head would run again within the attempt. The
 * Pod is gone; what the scheduler and kubelet said of it is not, for an hour as a rule.
 *
 * Answers: what to ask before the first head is made; the UID of a head that there was.
 * May not: prove that there was none. Events may be lost, and who may not read them is told of none.
 *
 * An undisturbed life asks nothing: so soon after the journal has said that a head may be made, none can have had its job.
 */
import type { Event } from "../../api/kubernetes.ts";
import { LABEL } from "../../api/labels.ts";
import { type LiveQuestion, questionKey } from "../decision.ts";
import { fromWire, type Instant, seconds } from "../time.ts";
import { headPodName } from "./names.ts";
import type { ObservedRayCluster } from "./observe.ts";
import { awaitsOneHead } from "./oneHead.ts";

/** A Pod takes longer than this until it has a node, Ray runs in it, and its dashboard has taken a job. */
const AT_ONCE = seconds(2);

export function formerHead(
  { cluster, rayJob, live }: ObservedRayCluster,
  now: Instant,
): { readonly ask: LiveQuestion } | { readonly uid: string | undefined } {
  const { name, namespace = "", labels = {} } = cluster.metadata;
  const begunAt = fromWire(rayJob?.status?.attempts?.at(-1)?.submissionStartTime);
  const submits = labels[LABEL.jobSubmissionMode] === "SidecarMode" && awaitsOneHead(cluster);
  if (!submits || begunAt === undefined || now <= begunAt + AT_ONCE) return { uid: undefined };
  const question: LiveQuestion = { ask: "said", kind: "Event", namespace, pod: headPodName(name) };
  const told = live.get(questionKey(question)) as readonly Event[] | undefined;
  if (!told) return { ask: question };
  return {
    uid: told.find((event) => event.regarding?.kind === "Pod" && event.regarding.uid && wasOnNode(event))?.regarding
      ?.uid,
  };
}

/** Others speak of Pods that never were, with a UID: a policy, of one that it has refused. */
const wasOnNode = ({ reason, reportingController, deprecatedSource }: Event): boolean =>
  reason === "Scheduled" || reportingController === "kubelet" || deprecatedSource?.component === "kubelet";
