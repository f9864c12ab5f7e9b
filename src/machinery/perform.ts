/**
 * Carries a decision out: its effects, then its status as one patch, then its events.
 *
 * May not: send a write again. Whatever fails is noted, the rest goes on (effects are safe in any prefix), and the
 * caller looks again. After a failed effect the status is not written in this pass, since it is about to be decided anew.
 * Next: freshness.ts remembers each write; controller.ts decides when to look again.
 */
import { randomBytes } from "node:crypto";
import type { KubeObject, Stored } from "../api/object.ts";
import type { Decision, Effect, EventSpec, KubeEffect } from "../domain/decision.ts";
import type { Events } from "./events.ts";
import type { Freshness } from "./freshness.ts";
import { type KubeClient, WriteRefused } from "./kube/client.ts";
import {
  isAlreadyExists,
  isConflict,
  isNamespaceTerminating,
  isNotFound,
  isUnknownOutcome,
  KubeError,
} from "./kube/errors.ts";
import { mergePatch } from "./kube/mergePatch.ts";
import { byKind, resourceName } from "./kube/resources.ts";
import { describe } from "./logger.ts";

/**
 * What an object is that bears the name we wanted to create: `ours` (an earlier try was done after all), `leftover`
 * (goes by itself: look again later), `stranger` (the user must act).
 */
export type Kinship = "ours" | "leftover" | "stranger";
export type Adoptable = (existing: Stored, wanted: KubeObject) => Kinship;

export interface Tools {
  readonly client: KubeClient;
  readonly freshness: Freshness;
  readonly events: Events;
  readonly adoptable: Adoptable;
  /** Whether commands to others than the API server may be handed over now; the client guards its own writes. */
  readonly mayWrite?: () => boolean;
  /** Called before each step: a decision with many is long under way, but not stuck. */
  readonly alive?: () => void;
}

export interface Failure {
  /** What was tried, in the effect's own words; "write status" for the status. */
  readonly tried: string;
  /** `again`: overtaken by someone else's write, or by a leftover that is going: no error, look again. */
  readonly kind: "again" | "refused" | "unknown";
  readonly error: unknown;
}

export interface Outcome {
  /** Writes the server granted. */
  readonly writes: number;
  readonly status: "unchanged" | "written" | "skipped" | "failed";
  readonly failures: readonly Failure[];
}

/**
 * Adopts by owner and labels: the same controller UID, the same value of each of `labels`, and not being deleted.
 * Of the same owner but with other labels, or on its way out: a leftover.
 */
export function adoptByOwner(...labels: readonly string[]): Adoptable {
  return (existing, wanted) => {
    if (existing.metadata.deletionTimestamp) return "leftover";
    const owner = controllerUid(wanted);
    if (owner === undefined || controllerUid(existing) !== owner) return "stranger";
    const matches = labels.every((label) => existing.metadata.labels?.[label] === wanted.metadata.labels?.[label]);
    return matches ? "ours" : "leftover";
  };
}

const controllerUid = (object: KubeObject) => object.metadata.ownerReferences?.find((owner) => owner.controller)?.uid;

/** Whoever looks at the object sees no status at all, or an old one: without this event nothing would say why. */
const STATUS_REFUSED: EventSpec = {
  type: "Warning",
  reason: "FailedToUpdateStatus",
  action: "UpdateStatus",
  note: "Failed to write the status: {error}",
};

/** `key` is where freshness remembers the writes; `primary` the object that was decided about, as it was observed. */
export async function perform<External extends { do: string; why: string }>(
  decision: Decision<External>,
  primary: Stored,
  key: string,
  tools: Tools,
  external: (command: External) => void,
): Promise<Outcome> {
  const failures: Failure[] = [];
  let writes = 0;
  const announce = (event: EventSpec | undefined, fill: Record<string, string>) => {
    if (event) tools.events.record(primary, { ...event, note: filled(event.note, fill) });
  };

  for (const effect of decision.effects) {
    tools.alive?.();
    try {
      if (!isKubeEffect(effect)) {
        if (tools.mayWrite?.() === false) throw new WriteRefused("this process may not write now");
        external(effect);
        continue;
      }
      const done = await carryOut(effect, key, tools);
      if (done === undefined) continue;
      writes++;
      announce(effect.event, { name: done });
    } catch (error) {
      const kind = kindOf(error);
      failures.push({ tried: effect.why, kind, error });
      if (isKubeEffect(effect) && isShown(error)) {
        announce(effect.failureEvent, { name: nameOf(effect), error: describe(error) });
      }
    }
  }

  let status: Outcome["status"] = failures.length > 0 ? "skipped" : "unchanged";
  const difference = decision.status && mergePatch(statusOf(primary), decision.status);
  if (failures.length === 0 && difference) {
    tools.alive?.();
    try {
      await writeStatus(primary, difference, key, tools);
      status = "written";
      writes++;
    } catch (error) {
      status = "failed";
      failures.push({ tried: "write status", kind: kindOf(error), error });
      if (isShown(error)) announce(STATUS_REFUSED, { error: describe(error) });
    }
  }
  if (failures.length === 0) for (const event of decision.events) tools.events.record(primary, event);
  return { writes, status, failures };
}

/** Returns the object's name when this call did it, undefined when it was so already; throws otherwise. */
async function carryOut(effect: KubeEffect, key: string, tools: Tools): Promise<string | undefined> {
  switch (effect.do) {
    case "create":
      return create(effect, key, tools);
    case "delete":
      return remove(effect, key, tools);
    case "patch":
      return patch(effect, key, tools);
  }
}

async function create(effect: KubeEffect & { do: "create" }, key: string, tools: Tools): Promise<string | undefined> {
  const { object } = effect;
  const type = byKind(object.kind);
  try {
    const made = await tools.client.create(type, withRandomData(effect));
    tools.freshness.wrote(key, type, made);
    return made.metadata.name;
  } catch (error) {
    if (isUnknownOutcome(error)) tools.freshness.unknown(key, type, object);
    const { namespace, name } = object.metadata;
    if (!isAlreadyExists(error) || !name) throw error;
    const existing = await tools.client.get(type, namespace, name, { metadataOnly: true });
    const kinship = tools.adoptable(existing, object);
    if (kinship === "leftover") throw new Overtaken(`${object.kind} ${name} of an earlier time is still there`);
    if (kinship === "stranger") {
      throw new NameTaken(
        `a ${object.kind} named ${name} exists already and belongs to someone else; delete or rename it`,
      );
    }
    // An earlier try was done after all; the cache that did not show it must catch up first.
    tools.freshness.wrote(key, type, existing);
    return undefined;
  }
}

function withRandomData({ object, randomData }: KubeEffect & { do: "create" }): KubeObject {
  if (!randomData) return object;
  // A Secret's data is base64 of what is meant, which here is text that can stand in a variable or a header.
  const base64 = (bytes: Uint8Array | string) => Buffer.from(bytes).toString("base64");
  const data = Object.entries(randomData).map(([key, size]) => [key, base64(base64(randomBytes(size)))]);
  return { ...object, data: Object.fromEntries(data) } as KubeObject;
}

async function remove(effect: KubeEffect & { do: "delete" }, key: string, tools: Tools): Promise<string | undefined> {
  const { kind, namespace, name, uid } = effect.ref;
  const type = byKind(kind);
  const { propagation, gracePeriodSeconds } = effect;
  try {
    await tools.client.delete(type, namespace, name, { uid, propagation, gracePeriodSeconds });
    tools.freshness.deleted(key, type, namespace, name, uid);
    return name;
  } catch (error) {
    if (isUnknownOutcome(error)) tools.freshness.unknown(key, type, { metadata: { namespace, name } });
    // A conflict may be a namesake in its place, or the server's own collision: only another look can tell.
    if (!isNotFound(error)) throw error;
    tools.freshness.deleted(key, type, namespace, name, uid);
    return undefined;
  }
}

async function patch(effect: KubeEffect & { do: "patch" }, key: string, tools: Tools): Promise<string> {
  const { kind, namespace, name } = effect.ref;
  const type = byKind(kind);
  const metadata = { ...(effect.patch["metadata"] as object | undefined), resourceVersion: effect.resourceVersion };
  try {
    const patched = await tools.client.patch(type, namespace, name, { ...effect.patch, metadata });
    tools.freshness.wrote(key, type, patched);
    return name;
  } catch (error) {
    if (isUnknownOutcome(error)) tools.freshness.unknown(key, type, { metadata: { namespace, name } });
    throw error;
  }
}

async function writeStatus(primary: Stored, status: unknown, key: string, tools: Tools): Promise<void> {
  const { namespace, name, resourceVersion } = primary.metadata;
  const type = byKind(primary.kind!);
  try {
    const body = { metadata: { resourceVersion }, status };
    const answer = await tools.client.patch(type, namespace, name, body, { subresource: "status" });
    tools.freshness.wrote(key, type, answer);
    const lost = pruned(status, statusOf(answer), "status");
    if (lost.length > 0) {
      throw new NotKept(
        `the API server did not keep ${lost.join(", ")} of ${type.kind} ${namespace}/${name}: the CRD ${resourceName(type)} is not Raykeeper's`,
      );
    }
  } catch (error) {
    if (isUnknownOutcome(error)) tools.freshness.unknown(key, type, primary);
    throw error;
  }
}

/** What was decided about has moved on, or is about to: nothing is wrong. */
class Overtaken extends Error {
  override readonly name = "Overtaken";
}

/** The API server took the status and did not keep all of it: the CRD has no place for it. */
export class NotKept extends Error {
  override readonly name = "NotKept";
}

/** An object that is not ours bears the name. */
class NameTaken extends Error {
  override readonly name = "NameTaken";
}

function kindOf(error: unknown): Failure["kind"] {
  if (error instanceof Overtaken || error instanceof WriteRefused) return "again";
  if (isConflict(error) || isNotFound(error) || isNamespaceTerminating(error)) return "again";
  return isUnknownOutcome(error) ? "unknown" : "refused";
}

/** Whether the user should read of it: the server's own words, not a hiccup on the way to it. */
const isShown = (error: unknown) =>
  error instanceof NameTaken ||
  error instanceof NotKept ||
  (error instanceof KubeError && error.status !== 429 && kindOf(error) !== "again");

const isKubeEffect = <External>(effect: Effect<External>): effect is KubeEffect => {
  const { do: what } = effect as { do?: unknown };
  return what === "create" || what === "delete" || what === "patch";
};

function nameOf(effect: KubeEffect): string {
  if (effect.do !== "create") return effect.ref.name;
  return effect.object.metadata.name ?? effect.object.metadata.generateName ?? "";
}

function statusOf(primary: Stored): Readonly<Record<string, unknown>> {
  return ((primary as { status?: unknown }).status ?? {}) as Record<string, unknown>;
}

/** The outermost fields that were written and are not in the answer. What a patch takes away (null) is not meant. */
function pruned(written: unknown, kept: unknown, path: string): readonly string[] {
  if (written === null || typeof written !== "object") return [];
  const place = (typeof kept === "object" && kept !== null ? kept : {}) as Readonly<Record<string, unknown>>;
  return Object.entries(written).flatMap(([name, value]) => {
    if (value === null || value === undefined) return [];
    const field = Array.isArray(written) ? `${path}[${name}]` : `${path}.${name}`;
    return place[name] === undefined ? [field] : pruned(value, place[name], field);
  });
}

function filled(note: string, values: Readonly<Record<string, string>>): string {
  return note.replace(/\{(\w+)\}/g, (whole, key: string) => values[key] ?? whole);
}
