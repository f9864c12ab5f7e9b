/**
 * The environment variables of KubeRay's operator.
 *
 * One whose feature is not built, or is never otherwise here, may be set to its default; another value is refused, or
 * where it could do no harm, warned of.
 */
import type { Settings } from "../domain/settings.ts";
import { seconds } from "../domain/time.ts";
import { address, count, only, type Reader, text, unless } from "./readers.ts";

interface Variable<T = never> {
  readonly read: Reader<T>;
  readonly default: string;
  readonly what: string;
  readonly apply?: (value: T) => Partial<Settings>;
  /** What a value other than `only` meets. */
  readonly only?: T;
  readonly refused?: string;
  readonly noEffect?: string;
}

const variable = <T>(entry: Variable<T>) => entry as unknown as Variable;

export const VARIABLES: Readonly<Record<string, Variable>> = {
  CLUSTER_DOMAIN: variable({
    read: text,
    default: "cluster.local",
    what: "the cluster's DNS domain, at the end of every Service's name",
    apply: (clusterDomain) => ({ clusterDomain }),
  }),
  RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS: variable({
    read: count(0),
    default: "300",
    what: "how long a job that has ended waits for its submitter to finish the log",
    apply: (grace) => ({ transitionGrace: seconds(grace) }),
  }),
  RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS: variable({
    read: count(1),
    default: "300",
    what: "how long Ray may be silent, while its head looks well, before the job fails with `JobStatusCheckTimeoutExceeded`",
    apply: (timeout) => ({ statusCheckTimeout: seconds(timeout) }),
  }),
  DELETE_RAYJOB_CR_AFTER_JOB_FINISHES: variable({
    read: only("true"),
    default: "false",
    what: "with `shutdownAfterJobFinishes`, the RayJob itself is deleted after its TTL",
    apply: (deleteRayJobAfterFinish) => ({ deleteRayJobAfterFinish }),
  }),
  ENABLE_LOGIN_SHELL: variable({
    read: only("true"),
    default: "false",
    what: "generated commands run in `bash -l`",
    apply: (loginShell) => ({ loginShell }),
  }),
  ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE: variable({
    read: only("true"),
    default: "false",
    what: "the head Service has a ClusterIP instead of being headless",
    apply: (headClusterIPService) => ({ headClusterIPService }),
  }),
  ENABLE_PROBES_INJECTION: variable({
    read: unless("false"),
    default: "true",
    what: "liveness and readiness probes on Ray containers that have none",
    apply: (probesInjection) => ({ probesInjection }),
  }),
  ENABLE_INIT_CONTAINER_INJECTION: variable({
    read: unless("false"),
    default: "true",
    what: "an init container of each worker waits for the head's GCS",
    apply: (initContainerInjection) => ({ initContainerInjection }),
  }),
  ENABLE_DETERMINISTIC_HEAD_POD_NAME: variable({
    read: only("true"),
    default: "false",
    what: "the head Pod is named `<cluster>-head`; here it always is",
  }),
  RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV: variable({
    read: count(0),
    default: "300",
    only: 300,
    what: "how often a RayCluster is looked at when nothing changes",
    noEffect: "a RayCluster is looked at when something of it changes, and when a timer of its own runs out",
  }),
  ENABLE_WEBHOOKS: variable({
    read: only("true"),
    default: "false",
    what: "validating webhooks for RayJob and RayCluster are served on port 9443 (docs/validation.md)",
  }),
  RAYKEEPER_WEBHOOK_NAME: variable({
    read: text,
    default: "kuberay-operator-webhook",
    what: "name of the webhook's Service and of the Secret of its certificates; its ValidatingWebhookConfiguration is named so, too, with a dot and the operator's namespace after it",
  }),
  RAYKEEPER_WEBHOOK_ADDRESS: variable({
    read: address,
    default: ":9443",
    what: "where the webhook listens",
  }),
  RAYKEEPER_WEBHOOK_CERT_DIR: variable({
    read: text,
    default: "/tmp/k8s-webhook-server/serving-certs",
    what: "folder of the webhook's certificate (`tls.crt`, `tls.key`), where one is mounted; without one it makes its own",
  }),
  ENABLE_RANDOM_POD_DELETE: variable({
    read: only("true"),
    default: "false",
    only: false,
    what: "with autoscaling, the operator may choose which Pods to delete",
    refused: "autoscaling is not supported yet; unset it",
  }),
  ENABLE_GCS_FT_REDIS_CLEANUP: variable({
    read: unless("false"),
    default: "true",
    only: true,
    what: "a Job removes a deleted RayCluster's data from Redis",
    refused: "fault tolerance of the GCS is not supported yet; unset it",
  }),
  ENABLE_ZERO_DOWNTIME: variable({
    read: unless("false"),
    default: "true",
    only: true,
    what: "RayService upgrades without downtime",
    refused: "RayService is not supported yet; unset it",
  }),
  USE_INGRESS_ON_OPENSHIFT: variable({
    read: only("true"),
    default: "false",
    only: false,
    what: "an Ingress instead of a Route on OpenShift",
    refused: "ingresses are not supported yet; unset it",
  }),
};

/** The value of a variable that is no setting: as it is set, or its default. */
export const chosen = (env: Readonly<Record<string, string | undefined>>, name: keyof typeof VARIABLES): string =>
  env[name] || VARIABLES[name]!.default;

/** The settings that the environment chooses. What is wrong is added to `problems`, what has no effect to `warnings`. */
export function readEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  problems: string[],
  warnings: string[],
): Partial<Settings> {
  const settings: Partial<Settings> = {};
  for (const [name, { read, apply, only, refused, noEffect }] of Object.entries(VARIABLES)) {
    const written = env[name];
    if (written === undefined || written === "") continue;
    try {
      const value = read(written);
      Object.assign(settings, apply?.(value));
      if (value === only) continue;
      if (refused) problems.push(`${name}=${written}: ${refused}.`);
      if (noEffect) warnings.push(`${name}=${written} makes no difference: ${noEffect}.`);
    } catch (error) {
      problems.push(`${name} must be ${(error as Error).message}, not ${JSON.stringify(written)}.`);
    }
  }
  return settings;
}
