// How the webhook's authority is replaced without a moment in which somebody is shown what he does not trust.
import { X509Certificate } from "node:crypto";
import { describe, expect, it } from "vitest";
import { type Circumstances, fromSecretData, type KeyRing, succeeded, toSecretData, turned } from "./keyRing.ts";

const START = Date.parse("2026-03-01T12:00:00Z");
const lifetimes = { authority: 900_000, serving: 300_000, overlap: 60_000 };
const around = (told: readonly string[] = []): Circumstances => ({
  names: { dnsNames: ["a.ns.svc"] },
  lifetimes,
  told,
});
const first = turned(undefined, around(), START);
const signs = (authority: { certificate: string }, ring: KeyRing) =>
  new X509Certificate(ring.serving.certificate).verify(new X509Certificate(authority.certificate).publicKey);

describe("the ring", () => {
  it("begins with one authority, which is trusted and has signed what is shown", () => {
    expect(first.trusted).toEqual([first.authority.certificate]);
    expect(signs(first.authority, first)).toBe(true);
    expect(turned(first, around(first.trusted), START + 1000)).toBe(first);
  });

  it("shows a new certificate when two thirds of the life of the old one are over, by the same authority", () => {
    expect(turned(first, around(first.trusted), START + 199_000)).toBe(first);
    const renewed = turned(first, around(first.trusted), START + 200_000);
    expect(renewed.authority).toBe(first.authority);
    expect(renewed.serving).not.toBe(first.serving);
  });

  it("has a successor trusted first, then sign, and the old one dropped last", () => {
    const due = START + 600_000;
    const prepared = turned(first, around(first.trusted), due);
    expect(prepared.authority).toBe(first.authority);
    expect(prepared.trusted).toEqual([first.authority.certificate, prepared.next!.certificate]);
    expect(signs(first.authority, prepared)).toBe(true);

    const soon = turned(prepared, around(prepared.trusted), due + 59_000);
    expect(soon).toBe(prepared);
    const untold = turned(prepared, around(first.trusted), due + 61_000);
    expect(untold.authority).toBe(first.authority);

    const switched = turned(prepared, around(prepared.trusted), due + 61_000);
    expect(switched.authority).toEqual(prepared.next);
    expect(switched.next).toBeUndefined();
    expect(signs(switched.authority, switched)).toBe(true);
    expect(switched.trusted).toEqual(prepared.trusted);

    const done = turned(switched, around(switched.trusted), due + 122_000);
    expect(done.trusted).toEqual([switched.authority.certificate]);
    expect(done.serving).toBe(switched.serving);
  });

  it("is always of a trusted authority, at whatever moments it is looked at", () => {
    let [ring, told] = [first, first.trusted];
    const authorities = new Set<string>();
    for (let now = START; now < START + 10 * lifetimes.authority; now += 17_000) {
      ring = turned(ring, around(told), now);
      expect(told.some((certificate) => signs({ certificate }, ring))).toBe(true);
      expect(new X509Certificate(ring.serving.certificate).validToDate.getTime()).toBeGreaterThan(now);
      expect(ring.trusted.length).toBeLessThanOrEqual(2);
      told = ring.trusted;
      authorities.add(ring.authority.certificate);
    }
    expect(authorities.size).toBeGreaterThan(5);
  });

  it("begins anew when nobody has looked for longer than an authority lives", () => {
    const late = turned(first, around(first.trusted), START + 2_000_000);
    expect(late.trusted).toEqual([late.authority.certificate]);
    expect(late.authority).not.toEqual(first.authority);
    expect(signs(late.authority, late)).toBe(true);
  });

  it("is for the name it is reached by: another name, another certificate", () => {
    const renamed = turned(first, { ...around(first.trusted), names: { dnsNames: ["b.ns.svc"] } }, START + 1);
    expect(new X509Certificate(renamed.serving.certificate).checkHost("b.ns.svc")).toBe("b.ns.svc");
    expect(renamed.authority).toBe(first.authority);
  });

  it("goes on beside a successor when the Secret was lost", () => {
    const again = succeeded(first, around(first.trusted), START + 1);
    expect(again.serving).toBe(first.serving);
    expect(again.trusted).toEqual([first.authority.certificate, again.next!.certificate]);
  });

  it("does not grow without end where the Secret is lost again and again, and is trusted all the while", () => {
    let ring = first;
    for (let loss = 1; loss <= 100; loss++) ring = succeeded(ring, around(ring.trusted), START + loss);
    expect(ring.serving).toBe(first.serving);
    expect(ring.trusted).toHaveLength(10);
    expect(ring.trusted).toContain(first.authority.certificate);
    expect(ring.trusted.at(-1)).toBe(ring.next!.certificate);
  });
});

describe("the Secret", () => {
  it("holds all of the ring", () => {
    const prepared = turned(first, around(first.trusted), START + 600_000);
    expect(fromSecretData(toSecretData(first))).toEqual(first);
    expect(fromSecretData(toSecretData(prepared))).toEqual(prepared);
  });

  it("with the key of another certificate, or none at all, is no ring", () => {
    const other = toSecretData(turned(undefined, around(), START));
    expect(fromSecretData({ ...toSecretData(first), "ca.key": other["ca.key"]! })).toBeUndefined();
    expect(fromSecretData({ ...toSecretData(first), "tls.crt": "" })).toBeUndefined();
    expect(fromSecretData(undefined)).toBeUndefined();
    expect(fromSecretData({ "ca.crt": "bm9uZQ==" })).toBeUndefined();
  });
});
