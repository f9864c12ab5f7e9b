/**
 * The Secret with the token that the operator makes for a cluster.
 *
 * Answers: may Pods be made that need it; what is to be done before.
 * May not: make a second token. The Pods name the Secret, they do not carry the token. So that all of them know the same
 * one, it is made while there is no Pod of the cluster; a Secret that vanishes later is not made anew.
 */
import type { Secret } from "../../api/kubernetes.ts";
import { LABEL } from "../../api/labels.ts";
import type { KubeObject, Stored } from "../../api/object.ts";
import type { RayCluster } from "../../api/raycluster.ts";
import { type KubeEffect, type LiveQuestion, questionKey, type RefusedWrite } from "../decision.ts";
import { type Instant, seconds } from "../time.ts";
import { isTokenGenerated, TOKEN_KEY, tokenSecret } from "./auth.ts";
import { isOwned, isTerminating, type ObservedRayCluster } from "./observe.ts";
import { ownerReference } from "./pod.ts";

const TOKEN_BYTES = 32;

/** The event when the API server refuses the Secret. */
export const SECRET_REFUSED = "FailedToCreateAuthSecret";
/** As a refusal: the Secret was there, and is not to be made anew. */
export const SECRET_GONE = "AuthSecretGone";

/** Nothing tells of a change: Secrets are not watched. */
const PATROL = seconds(30);
const SOON = seconds(1);

/** Asked before Pods are made: where the operator keeps the token, its Secret comes first. */
export function tokenQuestion(cluster: Stored<RayCluster>): LiveQuestion | undefined {
  const name = tokenSecret(cluster);
  if (name === undefined || !isTokenGenerated(cluster)) return undefined;
  return { ask: "get", kind: "Secret", namespace: cluster.metadata.namespace ?? "", name };
}

/** Why Pods that need the token have to wait, and what is done about it. */
export interface TokenStep {
  readonly summary: string;
  readonly make?: KubeEffect;
  /** What a user has to see to; told as a refusal is. */
  readonly trouble?: RefusedWrite;
  readonly wakeAt: Instant;
}

/** `pods`: what the API server itself has of the cluster's. Undefined when nothing stands in the way of more. */
export function tokenStep(
  { cluster, live, refused }: ObservedRayCluster,
  pods: readonly KubeObject[],
  now: Instant,
): TokenStep | undefined {
  const question = tokenQuestion(cluster);
  if (!question) return undefined;
  const secret = live.get(questionKey(question))?.[0];
  const mine = pods.filter((pod) => isOwned(pod, cluster));
  const place = `Secret ${cluster.metadata.namespace}/${tokenSecret(cluster)}`;
  if (secret && (isTerminating(secret) || isOfNamesake(secret, cluster))) {
    return { summary: `Waits for ${place} of an earlier time to be gone.`, wakeAt: now + SOON };
  }
  // Its Pods have been started with what is there, whoever put it there: those that come later get the same.
  if (secret && (isOwned(secret, cluster) || mine.length > 0)) return undefined;
  if (secret) {
    return held(
      SECRET_REFUSED,
      `${place} exists and does not belong to this RayCluster: delete it, or name it in spec.authOptions.secretName if its token is to be used`,
      now,
    );
  }
  if (mine.some((pod) => !isTerminating(pod))) {
    return held(
      SECRET_GONE,
      `${place} is gone, with the token that the cluster's Pods were started with: put it back with that token under the key ${TOKEN_KEY}, or suspend and resume the RayCluster, which then gets another`,
      now,
    );
  }
  if (mine.length > 0) return { summary: "Waits for the last Pods that know the old token.", wakeAt: now + SOON };
  const again = refused?.some(({ reason }) => reason === SECRET_REFUSED);
  return {
    summary: `Makes ${place}, with the token that all Pods will know.`,
    make: createSecret(cluster),
    wakeAt: now + (again ? PATROL : SOON),
  };
}

const held = (reason: string, message: string, now: Instant): TokenStep => ({
  summary: message,
  trouble: { reason, message },
  wakeAt: now + PATROL,
});

/** Of a deleted cluster of the same name: the garbage collector is on its way. */
const isOfNamesake = ({ metadata: { ownerReferences } }: KubeObject, { metadata }: Stored<RayCluster>): boolean =>
  ownerReferences?.some(
    ({ controller, kind, name, uid }) =>
      controller && kind === "RayCluster" && name === metadata.name && uid !== metadata.uid,
  ) ?? false;

function createSecret(cluster: Stored<RayCluster>): KubeEffect {
  const { namespace, name } = cluster.metadata;
  const object: Secret & KubeObject & { kind: "Secret"; apiVersion: string } = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: {
      name: tokenSecret(cluster)!,
      namespace,
      labels: { [LABEL.cluster]: name },
      ownerReferences: [ownerReference(cluster)],
    },
    type: "Opaque",
  };
  return {
    do: "create",
    object,
    randomData: { [TOKEN_KEY]: TOKEN_BYTES },
    why: "The Pods of the cluster need its token.",
    event: {
      type: "Normal",
      reason: "CreatedAuthSecret",
      action: "Create",
      note: `Created Secret ${namespace}/{name}, which has the cluster's token`,
    },
    failureEvent: {
      type: "Warning",
      reason: SECRET_REFUSED,
      action: "Create",
      note: `Failed to create Secret ${namespace}/${object.metadata.name} for the RayCluster ${namespace}/${name}: {error}`,
    },
  };
}
