/**
 * A certificate for the embedded cluster's port on the loopback, which every user of the machine can reach.
 *
 * One self-signed certificate serves both sides: the server shows it, and lets in only who shows it as well. It exists
 * in the kubeconfig alone, whose mode keeps others out. (A token would not do: kubectl sends none without TLS.)
 */
import { type Certificate, issue } from "../machinery/x509.ts";

const DAY = 86_400_000;

/** For 127.0.0.1 and localhost, from a day before `now` on for five years. */
export const selfSigned = (now: number): Certificate =>
  issue({
    commonName: "raykeeper local cluster",
    from: now - DAY,
    until: now + 5 * 365 * DAY,
    use: "any",
    dnsNames: ["localhost"],
    addresses: ["127.0.0.1"],
  });
