/**
 * Credentials from a program that the kubeconfig names (`client.authentication.k8s.io/v1` and `v1beta1`).
 *
 * The program is run once for all who wait, and again when what it gave has expired or was not accepted.
 */
import { execFile } from "node:child_process";
import { dirname, resolve } from "node:path";
import type { Clock } from "../clock.ts";
import { ConnectionError, type Credentials } from "./connection.ts";

export interface ExecConfig {
  readonly apiVersion?: string;
  readonly command?: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly installHint?: string;
  readonly provideClusterInfo?: boolean;
  readonly interactiveMode?: "Never" | "IfAvailable" | "Always";
}

const VERSIONS = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];
const LONGEST_RUN = 60_000;
/** Renewed this long before it expires, so that no request sets out with a token that dies on the way. */
const AHEAD = 10_000;

interface ExecCredential {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly status?: {
    readonly token?: string;
    readonly clientCertificateData?: string;
    readonly clientKeyData?: string;
    readonly expirationTimestamp?: string;
  };
}

export interface ExecPlugin {
  /** Rejects with ConnectionError. */
  credentials(): Promise<Credentials>;
  refresh(): void;
}

/** Throws ConnectionError when the configuration cannot work. `file` is the kubeconfig it stands in; a command with a slash is relative to it. */
export function execPlugin(
  exec: ExecConfig,
  options: { readonly clock: Clock; readonly file: string; readonly cluster: object; readonly env: NodeJS.ProcessEnv },
): ExecPlugin {
  const { apiVersion, command } = exec;
  if (!command) throw new ConnectionError(`${options.file}: users[].user.exec names no command`);
  if (!apiVersion || !VERSIONS.includes(apiVersion)) {
    throw new ConnectionError(
      `${options.file}: exec plugin ${command} speaks ${apiVersion ?? "no apiVersion"}; supported are ${VERSIONS.join(" and ")}`,
    );
  }
  if (exec.interactiveMode === "Always") {
    throw new ConnectionError(`${options.file}: exec plugin ${command} wants to ask a person, and there is none here`);
  }
  let known: { readonly credentials: Credentials; readonly until: number } | undefined;
  let running: Promise<Credentials> | undefined;

  async function run(): Promise<Credentials> {
    const info = {
      apiVersion,
      kind: "ExecCredential",
      spec: { interactive: false, ...(exec.provideClusterInfo ? { cluster: options.cluster } : {}) },
    };
    const env = {
      ...options.env,
      ...Object.fromEntries((exec.env ?? []).map(({ name, value }) => [name, value])),
      KUBERNETES_EXEC_INFO: JSON.stringify(info),
    };
    const program = command!.includes("/") ? resolve(dirname(options.file), command!) : command!;
    const credential = parse(await output(program, exec, env), command!, apiVersion!);
    const { token, clientCertificateData, clientKeyData, expirationTimestamp } = credential;
    const expires = expirationTimestamp ? Date.parse(expirationTimestamp) : Number.POSITIVE_INFINITY;
    const credentials = { token, cert: clientCertificateData, key: clientKeyData };
    known = { credentials, until: Number.isNaN(expires) ? 0 : expires - AHEAD };
    return credentials;
  }

  return {
    credentials() {
      if (known && options.clock.now() < known.until) return Promise.resolve(known.credentials);
      running ??= run().finally(() => {
        running = undefined;
      });
      return running;
    },
    refresh() {
      known = undefined;
    },
  };
}

function output(program: string, exec: ExecConfig, env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((done, fail) => {
    const options = { env, timeout: LONGEST_RUN, maxBuffer: 1 << 20 };
    execFile(program, [...(exec.args ?? [])], options, (error, stdout, stderr) => {
      if (!error) return done(stdout);
      const missing = error.code === "ENOENT";
      const hint = missing && exec.installHint ? ` ${exec.installHint.trim()}` : "";
      const why = missing ? "is not installed" : `failed: ${stderr.trim() || error.message}`;
      return fail(new ConnectionError(`exec plugin ${exec.command} ${why}.${hint}`));
    });
  });
}

function parse(stdout: string, command: string, apiVersion: string): NonNullable<ExecCredential["status"]> {
  let credential: ExecCredential | null = null;
  try {
    credential = JSON.parse(stdout);
  } catch {
    // Said below, in the same words as for JSON that is something else.
  }
  if (credential?.kind !== "ExecCredential") {
    throw new ConnectionError(`exec plugin ${command} printed no ExecCredential`);
  }
  if (credential.apiVersion !== apiVersion) {
    throw new ConnectionError(`exec plugin ${command} answered in ${credential.apiVersion}, not ${apiVersion}`);
  }
  const { status } = credential;
  if (!status?.token && !(status?.clientCertificateData && status.clientKeyData)) {
    throw new ConnectionError(`exec plugin ${command} returned neither a token nor a certificate with its key`);
  }
  return status;
}
