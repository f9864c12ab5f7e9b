/**
 * The webhook's certificate from files that somebody else renews: a Secret of cert-manager's, mounted.
 *
 * Who mounts one also tells the API server whom to trust (cert-manager's injector); the operator leaves that alone.
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import { type Clock, sleep } from "../machinery/clock.ts";
import { describe, type Logger } from "../machinery/logger.ts";
import type { Certificate } from "../machinery/x509.ts";

export interface CertificateFilesOptions {
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Milliseconds between two looks. */
  readonly patrol?: number;
}

const PATROL = 10_000;

/** kubelet mounts a Secret before the container starts, so what is not there by then will not come. */
export const hasCertificateFiles = (folder: string): boolean => existsSync(join(folder, "tls.crt"));

export class CertificateFiles {
  readonly #options: CertificateFilesOptions;

  constructor(options: CertificateFilesOptions) {
    this.#options = options;
  }

  /** Calls `show` with each certificate that is to be shown, until `signal` is aborted. */
  async keep(show: (certificate: Certificate) => void, signal: AbortSignal): Promise<void> {
    const { folder, clock, log, patrol = PATROL } = this.#options;
    let shown: Certificate | undefined;
    let complaint: string | undefined;
    while (!signal.aborted) {
      try {
        const [certificate, key] = await Promise.all(
          ["tls.crt", "tls.key"].map((name) => readFile(join(folder, name), "utf8")),
        );
        if (certificate !== shown?.certificate || key !== shown?.key) {
          const pair = { certificate: certificate!, key: key! };
          // While they are being changed, one may be of the old pair and one of the new.
          createSecureContext({ cert: pair.certificate, key: pair.key });
          show(pair);
          shown = pair;
          log.info({ folder }, "the webhook shows the certificate of its files");
        }
        complaint = undefined;
      } catch (error) {
        if (describe(error) !== complaint)
          log.warn({ folder, error: describe(error) }, "the webhook's certificate cannot be read");
        complaint = describe(error);
      }
      await sleep(clock, patrol, signal).catch(() => {});
    }
  }
}
