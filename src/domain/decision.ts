/**
 * What a reconcile may answer: the vocabulary between the pure core and the machinery that carries it out.
 *
 * A decision is a frontier: its effects are safe in any order and in any prefix, because the process may be killed
 * between any two of them. What must come later waits for the next pass, so a decision with effects does not also move
 * its object to the next phase. The machinery runs effects, then writes the status, then records the events.
 */
import type { KubeObject } from "../api/object.ts";
import type { Instant } from "./time.ts";

/** The kinds the operator writes. machinery/kube/resources.ts knows where each lives. */
export type WritableKind = "RayJob" | "RayCluster" | "Pod" | "Service" | "Job" | "Secret";
/** The kinds a live question may be about. */
export type ReadableKind = WritableKind | "ConfigMap" | "Event";

/** One object, once: the UID makes a delete or patch miss a namesake that came later. */
export interface ObjectRef {
  readonly kind: WritableKind;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

export type Effect<External = never> = KubeEffect | External;

/** A write to the API server. `why` is one plain sentence; it appears in logs and in the simulator's timeline. */
export type KubeEffect =
  | {
      readonly do: "create";
      readonly object: KubeObject & { kind: WritableKind; apiVersion: string };
      /**
       * Of a Secret: so many random bytes under each key, as base64 text. They are made when it is sent, so that nothing
       * that decides, or is told of a decision, ever has them.
       */
      readonly randomData?: Readonly<Record<string, number>>;
      readonly why: string;
      /** Announced when the object was really made by this call; `{name}` in the note becomes the object's name. */
      readonly event?: EventSpec;
      /** Announced when the server refused; `{error}` becomes its message. */
      readonly failureEvent?: EventSpec;
    }
  | {
      readonly do: "delete";
      readonly ref: ObjectRef;
      readonly propagation: "Background" | "Foreground" | "Orphan";
      /** Grace for Pods; absent means the object's own. */
      readonly gracePeriodSeconds?: number;
      readonly why: string;
      readonly event?: EventSpec;
      readonly failureEvent?: EventSpec;
    }
  | {
      readonly do: "patch";
      readonly ref: ObjectRef;
      /** JSON merge patch (RFC 7386) of spec or metadata; never of status. */
      readonly patch: Readonly<Record<string, unknown>>;
      /** The version that was looked at: a conflict means look again. */
      readonly resourceVersion: string;
      readonly why: string;
      readonly event?: EventSpec;
      readonly failureEvent?: EventSpec;
    };

/** A write that the API server refused, as it would be shown to a user. */
export interface RefusedWrite {
  /** Reason of the effect's `failureEvent`. */
  readonly reason: string;
  readonly message: string;
}

export interface EventSpec {
  readonly type: "Normal" | "Warning";
  /** CamelCase, a fixed word: alerts match on it. */
  readonly reason: string;
  /** CamelCase verb of what was done or tried (`Create`, `Delete`, `Validate`, …). */
  readonly action: string;
  readonly note: string;
}

/**
 * A question that only the API server itself may answer: *absence* seen in a cache may be a cache that lags.
 * The machinery asks, puts the answer into the next observation, and decides again in the same pass.
 */
export type LiveQuestion =
  /** Of a Secret, its metadata only. */
  | { readonly ask: "get"; readonly kind: ReadableKind; readonly namespace: string; readonly name: string }
  | {
      readonly ask: "list";
      readonly kind: ReadableKind;
      readonly namespace: string;
      /** `key=value` pairs, all of which must hold. */
      readonly labels: Readonly<Record<string, string>>;
    }
  /**
   * Warnings of one reason: what nobody writes into a status. They explain, and nothing irreversible may follow from
   * them: an answer may be some seconds old, and who may not read events gets none.
   */
  | { readonly ask: "warnings"; readonly kind: "Event"; readonly namespace: string; readonly reason: string }
  /**
   * What was said about a Pod of this name, which may be gone: it tells that there was one. Nothing proves that there was
   * none: events are kept for an hour as a rule, and who may not read them gets none.
   */
  | { readonly ask: "said"; readonly kind: "Event"; readonly namespace: string; readonly pod: string };

/** Names a question, as the key under which its answer is found. */
export function questionKey(question: LiveQuestion): string {
  if (question.ask === "warnings") return `warnings ${question.namespace} ${question.reason}`;
  if (question.ask === "said") return `said ${question.namespace}/${question.pod}`;
  return question.ask === "get"
    ? `get ${question.kind} ${question.namespace}/${question.name}`
    : `list ${question.kind} ${question.namespace} ${Object.entries(question.labels)
        .map(([key, value]) => `${key}=${value}`)
        .sort()
        .join(",")}`;
}

/**
 * Answers to the live questions of this pass: a `get` has one object or none, a `list` any number (metadata only),
 * `warnings` and `said` any number.
 */
export type LiveAnswers = ReadonlyMap<string, readonly KubeObject[]>;

export interface Decision<External = never> {
  /** In one plain sentence: what this pass found and means to do. For logs, `explain` and the timeline. */
  readonly summary: string;
  readonly effects: readonly Effect<External>[];
  /**
   * The whole desired `status`, or undefined to leave it. The machinery sends the difference to what was observed as one
   * merge patch on the status subresource, carrying the observed resourceVersion; no difference, no write.
   */
  readonly status?: Readonly<Record<string, unknown>>;
  /** Recorded after the status write succeeded (at once when there is none). */
  readonly events: readonly EventSpec[];
  /** Look again at this time at the latest, though nothing changed. */
  readonly wakeAt?: Instant;
  /** Ask these first and decide again with the answers; everything else in this decision is then ignored. */
  readonly ask?: readonly LiveQuestion[];
}
