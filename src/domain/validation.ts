/**
 * The form of all validation: a table of named rules, every one of which is asked.
 *
 * Answers: all that is wrong with an object at once, each with the field to change. Controller, webhook and
 * `raykeeper validate` ask the same tables, so none of them can accept what another refuses.
 * May not: look at anything but the object and the settings.
 * Next: rayjob/validate.ts and raycluster/validate.ts have the tables.
 */
import type { Settings } from "./settings.ts";

/** One thing that is wrong. */
export interface Finding {
  /** The field to change: `spec.backoffLimit`, `spec.rayClusterSpec.workerGroupSpecs[1].groupName`. */
  readonly at: string;
  /** What is wrong with it; in KubeRay's words, to the letter, where KubeRay has some. */
  readonly text: string;
  /** What to do about it. */
  readonly remedy: string;
}

export interface Violation extends Finding {
  /** Name of the rule: stable, for machines. */
  readonly rule: string;
  readonly kuberay?: KubeRaySays;
}

/** KubeRay refuses it as well: with its sentence about an invalid spec in front of the text, or without. */
export type KubeRaySays = "prefixed" | "bare";

/** `find` is for what may be wrong in several places, or is said in words that depend on the object. */
export type Rule<Subject> = { readonly name: string; readonly kuberay?: KubeRaySays } & (
  | (Finding & { readonly broken: (subject: Subject, settings: Settings) => boolean })
  | { readonly find: (subject: Subject, settings: Settings) => readonly Finding[] }
);

/** Every violation, in the order of the table. */
export function check<Subject>(rules: readonly Rule<Subject>[], subject: Subject, settings: Settings): Violation[] {
  return rules.flatMap((rule) => {
    const { name, kuberay } = rule;
    const found =
      "find" in rule
        ? rule.find(subject, settings)
        : rule.broken(subject, settings)
          ? [{ at: rule.at, text: rule.text, remedy: rule.remedy }]
          : [];
    return found.map((finding) => ({ rule: name, ...(kuberay && { kuberay }), ...finding }));
  });
}

/** One violation as a sentence that begins with its field. */
export const sentence = ({ at, text, remedy }: Finding): string => `${at}: ${text}: ${remedy}`;

/** What a status or an event may hold. */
const MAX_MESSAGE = 1024;

/** Several sentences as one text of bounded length, for a status or an event. */
export const inOneText = (sentences: readonly string[]): string => {
  const all = sentences.join("; ");
  return all.length > MAX_MESSAGE ? `${all.slice(0, MAX_MESSAGE - 1)}…` : all;
};
