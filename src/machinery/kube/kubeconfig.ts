/**
 * Finds the server and the credentials: from kubeconfig files as kubectl reads them, or from the Pod we run in.
 *
 * Refuses, in words, what it cannot honour (basic authentication, legacy auth providers), rather than connect as
 * somebody else.
 */
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { parse as parseYaml } from "yaml";
import { type Clock, realClock } from "../clock.ts";
import { type Connection, ConnectionError, type Credentials, file, given, type Source } from "./connection.ts";
import { type ExecConfig, execPlugin } from "./execPlugin.ts";

interface Cluster {
  readonly server?: string;
  readonly "certificate-authority"?: string;
  readonly "certificate-authority-data"?: string;
  readonly "insecure-skip-tls-verify"?: boolean;
  readonly "tls-server-name"?: string;
  readonly "proxy-url"?: string;
}

interface User {
  readonly "client-certificate"?: string;
  readonly "client-certificate-data"?: string;
  readonly "client-key"?: string;
  readonly "client-key-data"?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly username?: string;
  readonly password?: string;
  readonly exec?: ExecConfig;
  readonly "auth-provider"?: { readonly name?: string };
  readonly as?: string;
  readonly "as-uid"?: string;
  readonly "as-groups"?: readonly string[];
}

interface Context {
  readonly cluster?: string;
  readonly user?: string;
  readonly namespace?: string;
}

/** An entry and the file it comes from, to which its paths are relative. */
interface Entry<T> {
  readonly value: T;
  readonly file: string;
}

interface Kubeconfig {
  readonly files: readonly string[];
  readonly currentContext?: string;
  readonly clusters: ReadonlyMap<string, Entry<Cluster>>;
  readonly users: ReadonlyMap<string, Entry<User>>;
  readonly contexts: ReadonlyMap<string, Entry<Context>>;
}

export interface Surroundings {
  readonly env?: NodeJS.ProcessEnv;
  readonly clock?: Clock;
  readonly home?: string;
}

/**
 * The connection that `context` (or the current context) of the kubeconfig describes. Read from `path`, else the files
 * in `KUBECONFIG`, else `~/.kube/config`. Throws ConnectionError.
 */
export function loadKubeconfig(path?: string, context?: string, surroundings: Surroundings = {}): Connection {
  const { env = process.env, clock = realClock, home = homedir() } = surroundings;
  const config = readFiles(path, env, home);
  const name = context ?? config.currentContext;
  const where = config.files.join(delimiter);
  if (!name) throw new ConnectionError(`${where}: there is no current-context; name one`);
  const chosen = config.contexts.get(name)?.value;
  if (!chosen) throw new ConnectionError(`${where}: there is no context "${name}"`);
  const cluster = config.clusters.get(chosen.cluster ?? "");
  if (!cluster?.value.server) {
    throw new ConnectionError(`${where}: context "${name}" names cluster "${chosen.cluster}", which has no server`);
  }
  const user = chosen.user ? config.users.get(chosen.user) : undefined;
  if (chosen.user && !user) {
    throw new ConnectionError(`${where}: context "${name}" names user "${chosen.user}", which does not exist`);
  }
  return connect(cluster, user, chosen.namespace, clock, env);
}

/** Whether this process runs in a Pod with a service account. */
export function isInCluster(env: NodeJS.ProcessEnv = process.env): boolean {
  return Boolean(env["KUBERNETES_SERVICE_HOST"] && env["KUBERNETES_SERVICE_PORT"]);
}

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** The connection of a Pod's service account; the kubelet renews token and authority on disk. Throws ConnectionError. */
export function inCluster(surroundings: Surroundings & { readonly directory?: string } = {}): Connection {
  const { env = process.env, clock = realClock, directory = SERVICE_ACCOUNT } = surroundings;
  const [host, port] = [env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]];
  if (!host || !port) throw new ConnectionError("this process does not run in a Pod of a cluster");
  const namespaceFile = join(directory, "namespace");
  const ca = file(join(directory, "ca.crt"), clock, "the cluster's certificate authority");
  const token = file(join(directory, "token"), clock, "the service account's token");
  return {
    server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
    namespace: existsSync(namespaceFile) ? readFileSync(namespaceFile, "utf8").trim() : undefined,
    async credentials() {
      return { ca: await ca.read(), token: (await token.read()).trim() };
    },
    refresh() {
      ca.refresh();
      token.refresh();
    },
  };
}

/** Of several files, the first to name something wins, and files that do not exist are passed over, as kubectl does it. */
function readFiles(path: string | undefined, env: NodeJS.ProcessEnv, home: string): Kubeconfig {
  const listed = env["KUBECONFIG"]?.split(delimiter).filter(Boolean) ?? [];
  const candidates = path ? [path] : listed.length > 0 ? listed : [join(home, ".kube", "config")];
  const files = candidates.filter((candidate) => existsSync(candidate)).map((found) => resolve(found));
  if (files.length === 0) throw new ConnectionError(`there is no kubeconfig at ${candidates.join(delimiter)}`);
  const clusters = new Map<string, Entry<Cluster>>();
  const users = new Map<string, Entry<User>>();
  const contexts = new Map<string, Entry<Context>>();
  let currentContext: string | undefined;
  for (const from of files) {
    const content = readYaml(from);
    currentContext ||= content["current-context"] as string | undefined;
    collect(clusters, content, "clusters", "cluster", from);
    collect(users, content, "users", "user", from);
    collect(contexts, content, "contexts", "context", from);
  }
  return { files, currentContext, clusters, users, contexts };
}

function readYaml(path: string): Readonly<Record<string, unknown>> {
  let content: unknown;
  try {
    content = parseYaml(readFileSync(path, "utf8"));
  } catch (error) {
    throw new ConnectionError(`${path} cannot be read: ${(error as Error).message}`);
  }
  if (content === null || content === undefined) return {};
  if (typeof content !== "object" || Array.isArray(content)) throw new ConnectionError(`${path} is no kubeconfig`);
  return content as Record<string, unknown>;
}

function collect<T>(
  into: Map<string, Entry<T>>,
  content: Readonly<Record<string, unknown>>,
  list: string,
  key: string,
  from: string,
): void {
  const entries = content[list] ?? [];
  if (!Array.isArray(entries)) throw new ConnectionError(`${from}: ${list} is no list`);
  for (const entry of entries as Record<string, unknown>[]) {
    const name = entry?.["name"];
    if (typeof name === "string" && !into.has(name)) into.set(name, { value: (entry[key] ?? {}) as T, file: from });
  }
}

function connect(
  cluster: Entry<Cluster>,
  user: Entry<User> | undefined,
  namespace: string | undefined,
  clock: Clock,
  env: NodeJS.ProcessEnv,
): Connection {
  const server = cluster.value.server!.replace(/\/+$/, "");
  const insecureSkipTlsVerify = cluster.value["insecure-skip-tls-verify"];
  const ca = source(cluster, "certificate-authority-data", "certificate-authority", clock);
  if (insecureSkipTlsVerify && ca) {
    throw new ConnectionError(
      `${cluster.file}: a certificate authority together with insecure-skip-tls-verify is a contradiction`,
    );
  }
  const identity = user ? identify(user, cluster, clock, env) : anonymous;
  return {
    server,
    namespace,
    insecureSkipTlsVerify,
    tlsServerName: cluster.value["tls-server-name"],
    proxyUrl: cluster.value["proxy-url"],
    headers: user && impersonation(user),
    async credentials() {
      return { ca: await ca?.read(), ...(await identity.credentials()) };
    },
    refresh() {
      ca?.refresh();
      identity.refresh();
    },
  };
}

interface Identity {
  credentials(): Promise<Omit<Credentials, "ca">>;
  refresh(): void;
}

const anonymous: Identity = { credentials: async () => ({}), refresh() {} };

function identify(user: Entry<User>, cluster: Entry<Cluster>, clock: Clock, env: NodeJS.ProcessEnv): Identity {
  const { value } = user;
  const cert = source(user, "client-certificate-data", "client-certificate", clock);
  const key = source(user, "client-key-data", "client-key", clock);
  if (cert ? !key : key) throw new ConnectionError(`${user.file}: a client certificate and its key go together`);
  // As in client-go the file, which may be renewed, goes before the token written down beside it.
  const tokenPath = value.tokenFile && resolve(dirname(user.file), value.tokenFile);
  const token = tokenPath ? file(tokenPath, clock, "the token file") : value.token ? given(value.token) : undefined;
  const exec = value.exec && execPlugin(value.exec, { clock, file: user.file, cluster: clusterInfo(cluster), env });
  if (!cert && !token && !exec) {
    if (value["auth-provider"]) {
      throw new ConnectionError(
        `${user.file}: auth-provider "${value["auth-provider"].name}" is no longer supported by Kubernetes; use its exec plugin`,
      );
    }
    if (value.username || value.password) {
      throw new ConnectionError(
        `${user.file}: Kubernetes no longer accepts a username and password; use a token, a client certificate or an exec plugin`,
      );
    }
  }
  return {
    async credentials() {
      const fromPlugin = exec && !token && !cert ? await exec.credentials() : {};
      const own = { cert: await cert?.read(), key: await key?.read(), token: (await token?.read())?.trim() };
      return { ...own, ...fromPlugin };
    },
    refresh() {
      for (const part of [cert, key, token, exec]) part?.refresh();
    },
  };
}

/** Data in the file goes before a path; a path is relative to the file it stands in. */
function source<T extends object>(
  entry: Entry<T>,
  dataField: keyof T & string,
  pathField: keyof T & string,
  clock: Clock,
): Source | undefined {
  const { [dataField]: data, [pathField]: path } = entry.value as Record<string, string | undefined>;
  if (data) return given(Buffer.from(data, "base64").toString("utf8"));
  if (path) return file(resolve(dirname(entry.file), path), clock, pathField);
  return undefined;
}

function impersonation({ value }: Entry<User>): Record<string, string | string[]> {
  return {
    ...(value.as ? { "impersonate-user": value.as } : {}),
    ...(value["as-uid"] ? { "impersonate-uid": value["as-uid"] } : {}),
    ...(value["as-groups"]?.length ? { "impersonate-group": [...value["as-groups"]] } : {}),
  };
}

/** What an exec plugin with `provideClusterInfo` is told. */
function clusterInfo({ value, file: from }: Entry<Cluster>): object {
  const path = value["certificate-authority"];
  const ca = value["certificate-authority-data"] ?? (path && readBase64(resolve(dirname(from), path)));
  return {
    server: value.server,
    "certificate-authority-data": ca,
    "insecure-skip-tls-verify": value["insecure-skip-tls-verify"],
    "tls-server-name": value["tls-server-name"],
    "proxy-url": value["proxy-url"],
  };
}

const readBase64 = (path: string) => (existsSync(path) ? readFileSync(path).toString("base64") : undefined);
