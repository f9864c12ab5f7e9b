/**
 * Whether the API server is new enough for what the administrator switched on; asked before the operator starts.
 */
import type { Config } from "../config.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import type { Transport } from "../machinery/kube/transport.ts";
import { CannotRun, messageOf } from "./failure.ts";

/** Containers have a restart policy of their own from then on. */
const LEAST = { major: 1, minor: 35 };
const GATE = "SidecarSubmitterRestart feature gate";
const REMEDY = "Switch the feature gate off, or use a newer Kubernetes.";

/** Rejects with a CannotRun when it is not, or does not say which version it is. */
export async function checkServerVersion({ features }: Pick<Config, "features">, transport: Transport): Promise<void> {
  if (!features.SidecarSubmitterRestart) return;
  const version = await serverVersion(transport);
  if (version.major > LEAST.major || (version.major === LEAST.major && version.minor >= LEAST.minor)) return;
  throw new CannotRun(`${GATE} requires K8s 1.35+`, REMEDY);
}

async function serverVersion(transport: Transport): Promise<{ major: number; minor: number }> {
  const unknown = `${GATE} enabled but unable to detect K8s version. Feature requires K8s 1.35+.`;
  let said: { major?: string; minor?: string };
  try {
    said = (await new KubeClient(transport).raw("/version")) as typeof said;
  } catch (error) {
    throw new CannotRun(`${unknown} ${messageOf(error)}`, undefined, error);
  }
  // Some providers write `35+`.
  const [major, minor] = [said?.major, said?.minor].map((part) => Number.parseInt(part ?? "", 10));
  if (Number.isNaN(major) || Number.isNaN(minor)) throw new CannotRun(unknown, REMEDY);
  return { major: major!, minor: minor! };
}
