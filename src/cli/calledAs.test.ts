import { describe, expect, it } from "vitest";
import { asCalled } from "./calledAs.ts";

describe("a call without a command", () => {
  it.each([
    ["/manager alone is the operator, as KubeRay's is", "manager", [], ["operator"]],
    [
      "/manager with KubeRay's flags is the operator",
      "manager",
      ["--enable-leader-election", "--feature-gates=A=true"],
      ["operator", "--enable-leader-election", "--feature-gates=A=true"],
    ],
    ["KubeRay's flags mean the operator under any name", "raykeeper", ["--qps", "5"], ["operator", "--qps", "5"]],
    ["/manager --help tells the operator's flags", "manager", ["--help"], ["operator", "--help"]],
    ["raykeeper --help tells the commands", "raykeeper", ["--help"], ["--help"]],
    ["/manager has the other commands too", "manager", ["explain", "rayjob", "a"], ["explain", "rayjob", "a"]],
    ["a wrong command stays one", "manager", ["explane"], ["explane"]],
    ["the version is asked for under any name", "manager", ["--version"], ["--version"]],
    ["raykeeper alone is no operator", "raykeeper", [], []],
  ])("%s", (_, name, args, meant) => {
    expect(asCalled(name, args)).toEqual(meant);
  });
});
