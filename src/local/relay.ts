/**
 * The way into the sandbox: a port of the machine's loopback, answered from inside.
 *
 * The socket is opened outside and handed in, for a socket belongs to the network in which it was made. What arrives
 * is let in only with the cluster's certificate, and passed to the API server in the sandbox's own network.
 */
import { connect, type Server } from "node:net";
import { createServer, type TLSSocket } from "node:tls";
import type { Certificate } from "../machinery/x509.ts";

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** Answers what comes to `entrance`, until that is closed. */
export function relay(entrance: Server, { certificate, key }: Certificate, target: Target): void {
  const gate = createServer({ cert: certificate, key, ca: certificate, requestCert: true, rejectUnauthorized: true });
  // A client that was not let in, or left: nobody inside needs to know.
  gate.on("tlsClientError", () => {});
  gate.on("secureConnection", (outer: TLSSocket) => {
    const inner = connect(target);
    const end = () => {
      outer.destroy();
      inner.destroy();
    };
    for (const socket of [outer, inner]) {
      socket.setNoDelay(true);
      socket.on("error", end);
      socket.on("close", end);
    }
    outer.pipe(inner).pipe(outer);
  });
  entrance.on("connection", (socket) => gate.emit("connection", socket));
}
