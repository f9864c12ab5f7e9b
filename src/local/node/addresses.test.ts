import { expect, it } from "vitest";
import { Addresses } from "./addresses.ts";

it("gives every Pod its own address, never the gateway's, and waits with using one again", () => {
  const addresses = new Addresses("10.244");
  const first = addresses.take();
  expect(first).toBe("10.244.0.2");
  addresses.giveBack(first);
  const next = Array.from({ length: 300 }, () => addresses.take());
  expect(new Set(next).size).toBe(300);
  expect(next[0]).toBe("10.244.0.3");
  expect(next).toContain("10.244.1.10");
});

it("says so when all are taken, and goes on once one was given back", () => {
  const addresses = new Addresses("10.244");
  for (let count = 0; count < 0xfffd; count++) addresses.take();
  expect(() => addresses.take()).toThrow("no address is left");
  addresses.giveBack("10.244.7.7");
  expect(addresses.take()).toBe("10.244.7.7");
});
