/**
 * The webhook's certificates, kept for all replicas in one Secret, and told to the API server.
 *
 * Every replica does the same, again and again: read whom the API server is told to trust; read the Secret, and turn it
 * where that is due; tell the API server where it is told something else; show what the Secret has. Each write carries the
 * version that was read, so of several that race one wins, and the others look again. What is told is read before the
 * Secret: whoever has overtaken us there has written it since, and our write is refused.
 * May not: hold up the operator, nor its end, though the API server does not answer. What fails is tried again; meanwhile
 * the webhook shows what it has.
 * Next: keyRing.ts for what is due when; files.ts for certificates that somebody else makes.
 */
import type { KubeObject } from "../api/object.ts";
import { type Clock, sleep } from "../machinery/clock.ts";
import type { KubeClient } from "../machinery/kube/client.ts";
import { KubeError } from "../machinery/kube/errors.ts";
import { secrets, validatingWebhookConfigurations } from "../machinery/kube/resources.ts";
import { describe, type Logger } from "../machinery/logger.ts";
import type { Certificate } from "../machinery/x509.ts";
import {
  bundle,
  certificatesOf,
  fromSecretData,
  type KeyRing,
  LIFETIMES,
  type Lifetimes,
  succeeded,
  toSecretData,
  turned,
} from "./keyRing.ts";

export interface KeeperOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly namespace: string;
  /** Of Service and Secret; the configuration's is this, a dot and the namespace, since that stands in no namespace. */
  readonly name: string;
  /** The cluster's DNS domain. */
  readonly domain: string;
  /** Other names under which it is reached: in tests, by its address. */
  readonly addresses?: readonly string[];
  readonly lifetimes?: Lifetimes;
  /** Milliseconds between two looks. */
  readonly patrol?: number;
}

interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly { readonly clientConfig: { readonly caBundle?: string } }[];
}
interface Secret extends KubeObject {
  readonly type?: string;
  readonly data?: Readonly<Record<string, string>>;
}

export const configurationName = (name: string, namespace: string): string => `${name}.${namespace}`;

const PATROL = 30_000;
const RETRY = 2_000;

export class CertificateKeeper {
  readonly #options: KeeperOptions;
  /** What was seen last, for when the Secret is lost. */
  #ring: KeyRing | undefined;
  #complaint: string | undefined;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /** Calls `show` with each certificate that is to be shown, until `signal` is aborted. */
  async keep(show: (certificate: Certificate) => void, signal: AbortSignal): Promise<void> {
    const { clock, log, patrol = PATROL } = this.#options;
    let shown: Certificate | undefined;
    while (!signal.aborted) {
      let pause = patrol;
      try {
        const { ring, configuration } = await this.#look(signal);
        if (ring.serving.certificate !== shown?.certificate) {
          show(ring.serving);
          shown = ring.serving;
        }
        await this.#tell(configuration, ring);
        if (configuration) this.#complaint = undefined;
      } catch (error) {
        if (signal.aborted) return;
        pause = Math.min(RETRY, patrol);
        // Of several replicas that race, all but one; they look again.
        if (!isRace(error)) this.#complain(log, describe(error));
      }
      await sleep(clock, pause, signal).catch(() => {});
    }
  }

  #complain(log: Logger, complaint: string): void {
    if (complaint === this.#complaint) return;
    this.#complaint = complaint;
    log.warn({ error: complaint }, "the webhook's certificates are not in order; looking again");
  }

  /** The ring that is stored, and what the API server was told before it was read. */
  async #look(signal: AbortSignal): Promise<{ ring: KeyRing; configuration: WebhookConfiguration | undefined }> {
    const { client, namespace, name, domain, addresses, lifetimes = LIFETIMES, clock, log } = this.#options;
    const configuration = await found(
      client.get<WebhookConfiguration>(validatingWebhookConfigurations, undefined, configurationName(name, namespace), {
        signal,
      }),
    );
    const secret = await found(client.get<Secret>(secrets, namespace, name, { signal }));
    const told = toldBy(configuration);
    const dnsNames = [`${name}.${namespace}.svc`, `${name}.${namespace}.svc.${domain}`];
    const around = { names: { dnsNames, ...(addresses && { addresses }) }, lifetimes, told };

    const stored = fromSecretData(secret?.data);
    const now = clock.now();
    const ring = stored || !this.#ring ? turned(stored, around, now) : succeeded(this.#ring, around, now);
    if (ring !== stored) {
      const data = toSecretData(ring);
      const metadata = { name, namespace, ...(secret && { resourceVersion: secret.metadata.resourceVersion }) };
      if (secret)
        await client.update<Secret>(secrets, { ...secret, data, metadata: { ...secret.metadata, ...metadata } });
      else await client.create<Secret>(secrets, { metadata, type: "Opaque", data } as Secret);
      log.info(
        { secret: `${namespace}/${name}`, authorities: ring.trusted.length },
        "the webhook's certificates were renewed",
      );
    }
    this.#ring = ring;
    return { ring, configuration };
  }

  /** Whom to trust. The configuration itself is the administrator's; without one there is nobody to be told. */
  async #tell(configuration: WebhookConfiguration | undefined, { trusted }: KeyRing): Promise<void> {
    const { client, namespace, name, log } = this.#options;
    const where = configurationName(name, namespace);
    if (!configuration) {
      this.#complain(log, `there is no ValidatingWebhookConfiguration ${where}, so nobody asks the webhook`);
      return;
    }
    const told = toldBy(configuration);
    const isTold = told.length === trusted.length && trusted.every((one) => told.includes(one));
    if (isTold) return;
    const caBundle = Buffer.from(bundle(trusted)).toString("base64");
    const webhooks = configuration.webhooks?.map((one) => ({
      ...one,
      clientConfig: { ...one.clientConfig, caBundle },
    }));
    const { resourceVersion } = configuration.metadata;
    await client.patch(validatingWebhookConfigurations, undefined, where, { metadata: { resourceVersion }, webhooks });
    log.info({ configuration: where, authorities: trusted.length }, "the API server was told whom to trust as webhook");
  }
}

/** Those that all of the configuration's webhooks trust. */
function toldBy(configuration: WebhookConfiguration | undefined): string[] {
  const bundles = (configuration?.webhooks ?? []).map(({ clientConfig: { caBundle = "" } }) =>
    certificatesOf(Buffer.from(caBundle, "base64").toString()),
  );
  const [first = [], ...others] = bundles;
  const agreed = others.every((other) => other.length === first.length && first.every((one) => other.includes(one)));
  return agreed ? first : [];
}

/** Undefined for what does not exist. */
async function found<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof KubeError && error.status === 404) return undefined;
    throw error;
  }
}

const isRace = (error: unknown): boolean => error instanceof KubeError && error.status === 409;
