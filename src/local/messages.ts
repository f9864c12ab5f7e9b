/**
 * What the two halves of an embedded cluster tell each other: cluster.ts outside, inside.ts in the sandbox.
 */
import type { Certificate } from "../machinery/x509.ts";
import type { RayEnvironment } from "./rayEnvironment.ts";

/** The first message, which carries the listening socket. */
export interface Begin {
  readonly kind: "begin";
  /** This cluster's folder in the cache. */
  readonly folder: string;
  readonly python: string;
  readonly certificate: Certificate;
  readonly operator: boolean;
  readonly operatorArguments: readonly string[];
}

export type ToInside =
  | Begin
  | { readonly kind: "pulled"; readonly version: string; readonly ray?: RayEnvironment; readonly error?: string }
  | { readonly kind: "signalOperator"; readonly id: number; readonly signal: NodeJS.Signals }
  | { readonly kind: "startOperator"; readonly id: number }
  | { readonly kind: "stop" };

export type ToOutside =
  | { readonly kind: "here" }
  | { readonly kind: "ready" }
  | { readonly kind: "failed"; readonly message: string; readonly remedy?: string }
  | { readonly kind: "pull"; readonly version: string }
  | { readonly kind: "answer"; readonly id: number; readonly error?: string };
