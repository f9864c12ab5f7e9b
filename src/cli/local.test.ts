import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { exportLine } from "./local.ts";

describe("the line that `local up` prints", () => {
  it("is plain for a plain path", () => {
    expect(exportLine("/home/me/raykeeper/.cache/local/default/kubeconfig")).toBe(
      "export KUBECONFIG=/home/me/raykeeper/.cache/local/default/kubeconfig",
    );
  });

  it("gives a shell the whole path, whatever is in it", () => {
    const path = `/home/me/it's "mine" $HOME; true/kubeconfig`;
    expect(execFileSync("sh", ["-c", `${exportLine(path)}; printf %s "$KUBECONFIG"`], { encoding: "utf8" })).toBe(path);
  });
});
