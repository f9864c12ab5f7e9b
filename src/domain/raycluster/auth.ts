/**
 * Token authentication: whoever speaks to Ray shows a token, which a Secret keeps.
 *
 * Answers: does a cluster ask for one, which Secret has it, and which variables tell a process of it.
 * May not: see a token. It is made where the Secret is written (machinery/perform.ts) and read where Ray is spoken to
 * (ray/tokens.ts); here is only its place.
 * Next: authSecret.ts makes the Secret.
 */
import type { Container, EnvVar } from "../../api/kubernetes.ts";
import type { RayClusterSpec } from "../../api/raycluster.ts";

/** Where in its Secret a token is. */
export const TOKEN_KEY = "auth_token";
/** KubeRay cuts the cluster's name here. */
const NAME_LENGTH = 50;

/** What is read of a RayCluster, also of one that is yet to be made. */
export interface Authenticated {
  readonly metadata: { readonly name?: string };
  readonly spec: RayClusterSpec;
}

/** Who writes authOptions and no mode wants tokens: so KubeRay documents it. */
export const asksForToken = ({ authOptions }: Pick<RayClusterSpec, "authOptions">): boolean =>
  authOptions !== undefined && (authOptions.mode ?? "token") === "token";

/** The Secret that has the cluster's token; undefined where none is asked for. */
export function tokenSecret({ metadata, spec }: Authenticated): string | undefined {
  if (!asksForToken(spec)) return undefined;
  return spec.authOptions?.secretName || generatedName(metadata.name ?? "");
}

/** Whether the operator makes the Secret. */
export const isTokenGenerated = ({ spec }: Authenticated): boolean =>
  asksForToken(spec) && !spec.authOptions?.secretName;

const generatedName = (cluster: string): string => cluster.slice(-NAME_LENGTH).replace(/^[^a-zA-Z]/, "r");

/** What a container needs beside its own variables to speak to Ray. */
export function tokenVariables(cluster: Authenticated, { env }: Pick<Container, "env">): EnvVar[] {
  const name = tokenSecret(cluster);
  if (name === undefined) return [];
  const own = new Set(env?.map((entry) => entry.name));
  const wanted: EnvVar[] = [
    { name: "RAY_AUTH_MODE", value: "token" },
    { name: "RAY_AUTH_TOKEN", valueFrom: { secretKeyRef: { name, key: TOKEN_KEY } } },
  ];
  return wanted.filter((entry) => !own.has(entry.name));
}
