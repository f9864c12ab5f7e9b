/**
 * An embedded cluster, seen from outside: made, reached and taken away.
 *
 * The cluster itself (API server, node, operator) is in a sandbox of namespaces; this half starts it, downloads what
 * its Pods need (the sandbox has no way out), and hands in the port on which it is reached.
 * Next: inside.ts is the other half; sandbox.ts says why nothing outlives this process.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { open, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { CannotRun, messageOf } from "../cli/failure.ts";
import { HttpTransport } from "../machinery/kube/http.ts";
import { loadKubeconfig } from "../machinery/kube/kubeconfig.ts";
import type { Transport } from "../machinery/kube/transport.ts";
import type { Certificate } from "../machinery/x509.ts";
import { defaultCacheDir } from "./cache.ts";
import { selfSigned } from "./certificate.ts";
import type { Begin, ToInside, ToOutside } from "./messages.ts";
import { findPython, type Progress, prepareRay } from "./rayEnvironment.ts";
import { newRunFolder } from "./runFolder.ts";
import { checkSandbox, sandboxed, toolPath } from "./sandbox.ts";

export interface LocalClusterOptions {
  readonly cacheDir?: string;
  /** Whether the operator runs in it; true when absent. */
  readonly operator?: boolean;
  /** More flags for the operator. */
  readonly operatorArguments?: readonly string[];
  /** On the loopback; any free one when absent. */
  readonly port?: number;
  /** Where to write the kubeconfig; in the cluster's own folder when absent. */
  readonly kubeconfig?: string;
  readonly progress?: (progress: Progress) => void;
  /** Aborted: the cluster is taken down, whether it is up already or not. */
  readonly signal?: AbortSignal;
}

export interface LocalCluster {
  /** `https://127.0.0.1:<port>` */
  readonly server: string;
  /** A file that lets its reader in. */
  readonly kubeconfig: string;
  readonly transport: Transport;
  /** The cluster's folder in the cache, with its logs; removed when it ends. */
  readonly folder: string;
  /** Resolves when the cluster has ended, whoever ended it. */
  readonly ended: Promise<void>;
  /** Sends the operator a signal and waits for its end. It stays away until it is started again. */
  killOperator(signal?: NodeJS.Signals): Promise<void>;
  startOperator(): Promise<void>;
  /** What the operator has logged. */
  operatorLog(): Promise<string>;
  /** Takes everything down. Nothing of the cluster is left when this resolves, except for the cached Ray. */
  close(): Promise<void>;
}

/** A cluster that has to be killed is given this long to end by itself. */
const PATIENCE = 5_000;

/** Starts an embedded cluster; it is usable when this resolves. Throws CannotRun with what the user can do. */
export async function startLocalCluster(options: LocalClusterOptions = {}): Promise<LocalCluster> {
  const { signal, progress } = options;
  const cacheDir = options.cacheDir ?? defaultCacheDir();
  signal?.throwIfAborted();
  progress?.({ step: "Embedded cluster", detail: "starting" });
  await checkSandbox();
  const { executable: python } = await findPython();
  const folder = await newRunFolder(cacheDir);
  let entrance: Server | undefined;
  try {
    entrance = await listen(options.port ?? 0);
    const { port } = entrance.address() as AddressInfo;
    const server = `https://127.0.0.1:${port}`;
    const certificate = selfSigned(Date.now());
    const kubeconfig = options.kubeconfig ?? join(folder, "kubeconfig");
    await rm(kubeconfig, { force: true });
    await writeFile(kubeconfig, kubeconfigText(server, certificate), { mode: 0o600 });
    const inside = await Inside.start(folder, { cacheDir, python, progress, signal });
    try {
      await inside.begin(entrance, {
        kind: "begin",
        folder,
        python,
        certificate,
        operator: options.operator ?? true,
        operatorArguments: options.operatorArguments ?? [],
      });
    } catch (error) {
      await inside.close();
      throw error;
    }
    const transport = new HttpTransport(loadKubeconfig(kubeconfig), { userAgent: "raykeeper" });
    let closing: Promise<void> | undefined;
    const close = () => {
      closing ??= inside
        .close()
        .then(() => transport.close())
        .then(() => rm(folder, { recursive: true, force: true }));
      return closing;
    };
    signal?.addEventListener("abort", () => void close().catch(() => {}), { once: true });
    return {
      server,
      kubeconfig,
      transport,
      folder,
      ended: inside.ended,
      killOperator: (name = "SIGKILL") => inside.ask({ kind: "signalOperator", id: 0, signal: name }),
      startOperator: () => inside.ask({ kind: "startOperator", id: 0 }),
      operatorLog: () => readFile(join(folder, "operator.log"), "utf8"),
      close,
    };
  } catch (error) {
    entrance?.close();
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

interface Outside {
  readonly cacheDir: string;
  readonly python: string;
  readonly progress: LocalClusterOptions["progress"];
  readonly signal: AbortSignal | undefined;
}

/** The process in the sandbox, and the conversation with it. */
class Inside {
  readonly ended: Promise<void>;
  readonly #child: ReturnType<typeof spawn>;
  readonly #outside: Outside;
  readonly #waiting = new Map<number, { resolve: () => void; reject: (error: Error) => void }>();
  readonly #ready = Promise.withResolvers<void>();
  readonly #here = Promise.withResolvers<void>();
  #questions = 0;

  static async start(folder: string, outside: Outside): Promise<Inside> {
    const log = await open(join(folder, "cluster.log"), "a", 0o600);
    try {
      const program = fileURLToPath(new URL("inside.ts", import.meta.url));
      const [command, ...args] = sandboxed([process.execPath, program]);
      const child = spawn(command!, args, {
        stdio: ["ignore", log.fd, log.fd, "ipc"],
        env: { ...process.env, PATH: toolPath },
        // Ctrl-C on the terminal is for this process, which ends the others in order.
        detached: true,
      });
      return new Inside(child, folder, outside);
    } finally {
      await log.close();
    }
  }

  private constructor(child: ReturnType<typeof spawn>, folder: string, outside: Outside) {
    this.#child = child;
    this.#outside = outside;
    this.#ready.promise.catch(() => {});
    this.#here.promise.catch(() => {});
    const end = Promise.withResolvers<void>();
    this.ended = end.promise;
    child.on("message", (message: ToOutside) => void this.#hear(message));
    child.once("error", (error) => this.#fail(error));
    child.once("close", () => {
      end.resolve();
      void readFile(join(folder, "cluster.log"), "utf8")
        .catch(() => "")
        .then((log) => this.#fail(new CannotRun(`the embedded cluster ended by itself\n${lastLines(log)}`)));
    });
  }

  /** Hands in the entrance, and resolves when the cluster is up. */
  async begin(entrance: Server, begin: Begin): Promise<void> {
    const { signal } = this.#outside;
    const aborted = Promise.withResolvers<never>();
    aborted.promise.catch(() => {});
    const abort = () => aborted.reject(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    try {
      await Promise.race([this.#here.promise, aborted.promise]);
      this.#child.send(begin, entrance);
      await Promise.race([this.#ready.promise, aborted.promise]);
      // Ours is only a copy.
      entrance.close();
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  ask(question: Extract<ToInside, { id: number }>): Promise<void> {
    const id = ++this.#questions;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#tell({ ...question, id });
    });
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return this.ended;
    // When the sandbox's first process ends, the kernel has ended all the others before we hear of it.
    this.#tell({ kind: "stop" });
    const killing = setTimeout(() => this.#child.kill("SIGKILL"), PATIENCE);
    await this.ended;
    clearTimeout(killing);
  }

  async #hear(message: ToOutside): Promise<void> {
    switch (message.kind) {
      case "here":
        return this.#here.resolve();
      case "ready":
        return this.#ready.resolve();
      case "failed":
        return this.#fail(new CannotRun(message.message, message.remedy));
      case "answer": {
        const waiting = this.#waiting.get(message.id);
        this.#waiting.delete(message.id);
        return message.error === undefined ? waiting?.resolve() : waiting?.reject(new Error(message.error));
      }
      case "pull": {
        const { version } = message;
        try {
          this.#tell({ kind: "pulled", version, ray: await prepareRay({ ...this.#outside, version }) });
        } catch (error) {
          const remedy = error instanceof CannotRun && error.remedy ? `. ${error.remedy}` : "";
          this.#tell({ kind: "pulled", version, error: messageOf(error) + remedy });
        }
      }
    }
  }

  #tell(message: ToInside): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  #fail(error: Error): void {
    this.#here.reject(error);
    this.#ready.reject(error);
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

async function listen(port: number): Promise<Server> {
  const server = createServer();
  server.listen({ port, host: "127.0.0.1" });
  try {
    await once(server, "listening");
  } catch (error) {
    const taken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
    throw taken ? new CannotRun(`port ${port} is taken`, "Choose another, or none to get a free one.") : error;
  }
  return server;
}

function kubeconfigText(server: string, { certificate, key }: Certificate): string {
  const encoded = (text: string) => Buffer.from(text).toString("base64");
  const name = "raykeeper-local";
  // JSON is YAML.
  return `${JSON.stringify(
    {
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name, cluster: { server, "certificate-authority-data": encoded(certificate) } }],
      users: [{ name, user: { "client-certificate-data": encoded(certificate), "client-key-data": encoded(key) } }],
      contexts: [{ name, context: { cluster: name, user: name, namespace: "default" } }],
      "current-context": name,
    },
    undefined,
    2,
  )}\n`;
}

const lastLines = (log: string) => log.trimEnd().split("\n").slice(-10).join("\n");
