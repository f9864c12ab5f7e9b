// Which texts are one text in other numbers.
import { expect, it } from "vitest";
import { sameButForNumbers, wordsStand } from "./rewording.ts";
import { minutes } from "./time.ts";

it.each([
  ["0/5 nodes are available: 3 Insufficient cpu.", "0/103 nodes are available: 53 Insufficient cpu."],
  ["denied at 2026-01-01T12:00:05.123Z", "denied at 2026-01-02T00:59:00.007Z"],
  ["request 8f3ac2d1-4b1d denied", "request 1c09aa77-9e2f denied"],
  ["exceeded quota: q, used: cpu=9500m, limited: cpu=10", "exceeded quota: q, used: cpu=10, limited: cpu=10"],
  ["no image at all", "no image at all"],
  ["used_12", "used_7"],
])("%j says the same as %j", (one, other) => expect(sameButForNumbers(one, other)).toBe(true));

it.each([
  ["5 Insufficient cpu", "5 Insufficient memory"],
  ["exceeded quota: q", 'admission webhook "w" denied the request'],
  ["3 Insufficient cpu", "3 Insufficient cpu, 2 node(s) were unschedulable"],
])("%j and %j are two things", (one, other) => expect(sameButForNumbers(one, other)).toBe(false));

it("words stand for a minute at first, then for as long as that of which they tell had gone on, ten minutes at most", () => {
  const pauses = [0, 1, 3, 9, 60].map((minute) => wordsStand(0, minutes(minute)) / minutes(1));
  expect(pauses).toEqual([1, 1, 3, 9, 10]);
});

it("a long word is compared in no time: minutes, where it is begun at each of its letters", () => {
  const long = "a".repeat(1_000_000);
  expect(sameButForNumbers(`${long}1`, `${long}2`)).toBe(true);
  expect(sameButForNumbers(long, `${long} b`)).toBe(false);
});
