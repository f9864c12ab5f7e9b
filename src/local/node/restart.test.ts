import { describe, expect, it } from "vitest";
import type { Container, Pod } from "../../api/kubernetes.ts";
import { backOff, countOfLate, kindOf, restarts } from "./restart.ts";

const pod = (restartPolicy: string) => ({ metadata: {}, spec: { restartPolicy, containers: [] } }) as unknown as Pod;
const container = (rest: Partial<Container> = {}): Container => ({ name: "c", ...rest });

describe("whether an ended container runs again", () => {
  it.each([
    ["Always", 0, true],
    ["Always", 1, true],
    ["OnFailure", 0, false],
    ["OnFailure", 137, true],
    ["Never", 0, false],
    ["Never", 1, false],
  ])("with the Pod's policy %s and exit code %i: %s", (policy, code, expected) => {
    expect(restarts(pod(policy), container(), "main", code)).toBe(expected);
  });

  it("is the container's own policy before the Pod's", () => {
    expect(restarts(pod("Never"), container({ restartPolicy: "OnFailure" }), "main", 1)).toBe(true);
    expect(restarts(pod("Always"), container({ restartPolicy: "Never" }), "main", 1)).toBe(false);
  });

  it("is a rule on exit codes before any policy", () => {
    const rule = { action: "Restart", exitCodes: { operator: "In", values: [42] } };
    const ruled = container({ restartPolicy: "Never", restartPolicyRules: [rule] });
    expect(restarts(pod("Never"), ruled, "main", 42)).toBe(true);
    expect(restarts(pod("Never"), ruled, "main", 1)).toBe(false);
  });

  it("does not repeat an init container that succeeded", () => {
    expect(restarts(pod("Always"), container(), "init", 0)).toBe(false);
    expect(restarts(pod("Always"), container(), "init", 1)).toBe(true);
  });

  it("knows a sidecar by the policy of an init container", () => {
    expect(kindOf(container({ restartPolicy: "Always" }), true)).toBe("sidecar");
    expect(kindOf(container({ restartPolicy: "Always" }), false)).toBe("main");
  });
});

describe("how soon it runs again", () => {
  it("is at once after the first end, then after 10 s, doubling up to five minutes", () => {
    const delays: number[] = [];
    for (let late = 0; delays.length < 8; late = countOfLate(late, 1000)) delays.push(backOff(late) / 1000);
    expect(delays).toEqual([0, 10, 20, 40, 80, 160, 300, 300]);
  });

  it("forgets earlier trouble after ten minutes of running", () => {
    expect(countOfLate(5, 601_000)).toBe(0);
  });
});
