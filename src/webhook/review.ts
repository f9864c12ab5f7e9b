/**
 * The API server's question and answer about a write (`admission.k8s.io/v1`), to and from domain/admission.ts.
 *
 * The names of paths and the shape of a refusal are KubeRay's; the texts are the rules'.
 */
import type { RayCluster } from "../api/raycluster.ts";
import type { RayJob } from "../api/rayjob.ts";
import { type Admission, admitRayCluster, admitRayJob } from "../domain/admission.ts";
import type { Settings } from "../domain/settings.ts";
import { sentence } from "../domain/validation.ts";

export interface AdmissionRequest {
  readonly uid: string;
  readonly operation: "CREATE" | "UPDATE" | "DELETE" | "CONNECT";
  readonly namespace?: string;
  readonly name?: string;
  readonly object?: unknown;
  readonly oldObject?: unknown;
}

export interface AdmissionResponse {
  readonly uid: string;
  readonly allowed: boolean;
  readonly status?: {
    readonly status: "Failure";
    readonly code: number;
    readonly reason: string;
    readonly message: string;
    readonly details: object;
  };
  readonly warnings?: readonly string[];
}

interface Kind {
  readonly kind: "RayJob" | "RayCluster";
  readonly admit: (request: AdmissionRequest, settings: Settings) => Admission;
}

/** By path, as KubeRay's own. */
export const KINDS: Readonly<Record<string, Kind>> = {
  "/validate-ray-io-v1-rayjob": {
    kind: "RayJob",
    admit: ({ object, oldObject }, settings) =>
      admitRayJob({ object: object as RayJob, ...(oldObject ? { old: oldObject as RayJob } : {}) }, settings),
  },
  "/validate-ray-io-v1-raycluster": {
    kind: "RayCluster",
    admit: ({ object, oldObject }, settings) =>
      admitRayCluster(
        { object: object as RayCluster, ...(oldObject ? { old: oldObject as RayCluster } : {}) },
        settings,
      ),
  },
};

/** Longer ones the API server cuts off. */
const LONGEST_WARNING = 256;
const MOST_CAUSES = 50;

export function answer({ kind, admit }: Kind, request: AdmissionRequest, settings: Settings): AdmissionResponse {
  const { uid, operation } = request;
  if (operation !== "CREATE" && operation !== "UPDATE") return { uid, allowed: true };
  const { violations, warnings } = admit(request, settings);
  const told = warnings.map(sentence).map((text) => text.slice(0, LONGEST_WARNING));
  const also = told.length > 0 ? { warnings: told } : {};
  if (violations.length === 0) return { uid, allowed: true, ...also };
  const name = (request.object as { metadata?: { name?: string } }).metadata?.name ?? request.name ?? "";
  const said = violations.map(sentence);
  return {
    uid,
    allowed: false,
    status: {
      status: "Failure",
      code: 422,
      reason: "Invalid",
      message: `${kind}.ray.io "${name}" is invalid: ${said.length === 1 ? said[0] : `[${said.join(", ")}]`}`,
      details: {
        name,
        group: "ray.io",
        kind,
        causes: violations.slice(0, MOST_CAUSES).map(({ at, text, remedy }) => ({
          reason: "FieldValueInvalid",
          field: at,
          message: `${text}: ${remedy}`,
        })),
      },
    },
    ...also,
  };
}
