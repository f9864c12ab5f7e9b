/**
 * Which server to talk to, and as whom.
 *
 * Filled by kubeconfig.ts, used by http.ts. Credentials are asked for with every request, because files and tokens are
 * replaced while the process runs.
 */
import { readFile } from "node:fs/promises";
import type { Clock } from "../clock.ts";

export interface Connection {
  /** Scheme, host, port, and the path below which the API lives, without a slash at the end. */
  readonly server: string;
  /** The namespace commands mean when they name none. */
  readonly namespace?: string;
  readonly insecureSkipTlsVerify?: boolean;
  /** The name to ask for and to expect in the server's certificate, instead of the host's. */
  readonly tlsServerName?: string;
  readonly proxyUrl?: string;
  /** More headers for every request (impersonation). */
  readonly headers?: Readonly<Record<string, string | string[]>>;
  /** What to show now. Rejects with a sentence for the user when it cannot be had. */
  credentials(): Promise<Credentials>;
  /** The server did not accept what was shown: forget what is remembered of it. */
  refresh(): void;
}

/** Certificates and keys are PEM. */
export interface Credentials {
  /** Authorities to trust instead of the system's. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
}

/** Something about who we are or where the server is cannot be used as it stands; the message says what to do. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}

/** A replaced file is noticed after this long; tokens and certificates stay valid for longer than that after they were replaced. */
const REMEMBERED = 10_000;

/** A value that is given, or that a file holds and may change. */
export interface Source {
  read(): Promise<string>;
  refresh(): void;
}

export const given = (value: string): Source => ({ read: async () => value, refresh() {} });

export function file(path: string, clock: Clock, what: string): Source {
  let known: { readonly text: string; readonly at: number } | undefined;
  let stale = false;
  return {
    async read() {
      const now = clock.now();
      if (known && !stale && now >= known.at && now - known.at < REMEMBERED) return known.text;
      try {
        known = { text: await readFile(path, "utf8"), at: now };
        stale = false;
      } catch (error) {
        // Caught between removal and replacement: what we have may still be good.
        if (!known) throw new ConnectionError(`${what} cannot be read: ${(error as Error).message}`);
      }
      return known.text;
    },
    refresh() {
      stale = true;
    },
  };
}
