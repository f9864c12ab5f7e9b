/**
 * The webhook with its certificates, as the configuration has it: from mounted files where there are some, else its own.
 */
import type { Config } from "../config.ts";
import type { Clock } from "../machinery/clock.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import type { Transport } from "../machinery/kube/transport.ts";
import type { Logger } from "../machinery/logger.ts";
import type { OperatorMetrics } from "../serve/catalogue.ts";
import { CertificateFiles, hasCertificateFiles } from "./files.ts";
import { CertificateKeeper } from "./keeper.ts";
import { serveWebhook, type Webhook } from "./server.ts";

export interface StartOptions {
  readonly config: Config;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: OperatorMetrics;
  /** The operator's own. */
  readonly namespace: string;
}

/** Undefined where none is wanted. */
export function startWebhook({ config, transport, clock, log, metrics, namespace }: StartOptions): Webhook | undefined {
  const { webhook, settings, watchNamespaces } = config;
  if (!webhook) return undefined;
  const { name, address, certificateFolder: folder } = webhook;
  // Every replica writes here, not the leader alone: the version that each write carries keeps them apart.
  const client = new KubeClient(transport, { clock, metrics });
  const certificates = hasCertificateFiles(folder)
    ? new CertificateFiles({ folder, clock, log })
    : new CertificateKeeper({ client, clock, log, namespace, name, domain: settings.clusterDomain });
  return serveWebhook({ address, certificates, settings, watchNamespaces, clock, log, metrics });
}
