/**
 * The API server a command means: that of a kubeconfig, or the one around this Pod.
 */
import { ConnectionError } from "../machinery/kube/connection.ts";
import { HttpTransport } from "../machinery/kube/http.ts";
import { inCluster, isInCluster, loadKubeconfig } from "../machinery/kube/kubeconfig.ts";
import type { Transport } from "../machinery/kube/transport.ts";
import { VERSION } from "../shipped.ts";
import { CannotRun } from "./failure.ts";

export interface ConnectOptions {
  readonly kubeconfig?: string;
  readonly context?: string;
  /** Inside a Pod, take its service account unless a kubeconfig or context is named. */
  readonly inClusterFirst?: boolean;
  /** Requests that may be under way at a time. */
  readonly connections?: number;
}

export interface Connected {
  readonly transport: Transport;
  /** Names the server in messages. */
  readonly server: string;
  /** What the kubeconfig's context, or the Pod, is in. */
  readonly namespace: string;
  close(): Promise<void>;
}

/** Opens no connection yet. Throws CannotRun when there is nothing usable to connect with. */
export function connect({ kubeconfig, context, inClusterFirst = false, connections }: ConnectOptions): Connected {
  try {
    const named = kubeconfig !== undefined || context !== undefined;
    const connection = inClusterFirst && !named && isInCluster() ? inCluster() : loadKubeconfig(kubeconfig, context);
    const transport = new HttpTransport(connection, { userAgent: `raykeeper/${VERSION}`, connections });
    const { server, namespace = "default" } = connection;
    return { transport, server, namespace, close: () => transport.close() };
  } catch (error) {
    if (!(error instanceof ConnectionError)) throw error;
    throw new CannotRun(
      error.message,
      "Name a kubeconfig (--kubeconfig, $KUBECONFIG) and a context (--context) that it has.",
      error,
    );
  }
}
