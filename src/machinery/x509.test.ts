// Certificates of our own, as Node's reader and Node's TLS see them. (kube-apiserver's view: test/integration/webhook.test.ts.)
import { X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { issue } from "./x509.ts";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const span = { from: NOW - 60_000, until: NOW + 86_400_000 };
const authority = issue({ commonName: "an authority", use: "authority", ...span });
const read = ({ certificate }: { certificate: string }) => new X509Certificate(certificate);

describe("a certificate", () => {
  const names = { dnsNames: ["a.ns.svc", "localhost"], addresses: ["127.0.0.1"] };
  const server = issue({ commonName: "a.ns.svc", use: "server", ...span, ...names }, authority);

  it("is signed by who issued it, and by nobody else", () => {
    const other = issue({ commonName: "an authority", use: "authority", ...span });
    expect(read(server).verify(read(authority).publicKey)).toBe(true);
    expect(read(server).checkIssued(read(authority))).toBe(true);
    expect(read(server).verify(read(other).publicKey)).toBe(false);
    // Two authorities of one name are told apart by the key's id.
    expect(read(server).checkIssued(read(other))).toBe(false);
  });

  it("is for its names, for as long as it is said, and for servers only", () => {
    expect(read(server)).toMatchObject({ subject: "CN=a.ns.svc", issuer: "CN=an authority", ca: false });
    expect(read(server).checkHost("localhost")).toBe("localhost");
    expect(read(server).checkHost("b.ns.svc")).toBeUndefined();
    expect(read(server).checkIP("127.0.0.1")).toBe("127.0.0.1");
    expect(read(server).validFromDate.getTime()).toBe(span.from);
    expect(read(server).validToDate.getTime()).toBe(span.until);
    expect(read(server).keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
  });

  it("of an authority may sign others", () => {
    expect(read(authority)).toMatchObject({ ca: true, subject: "CN=an authority", issuer: "CN=an authority" });
  });
});
