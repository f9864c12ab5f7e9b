import { describe, expect, it } from "vitest";
import { notPermitted } from "./sandbox.ts";

describe("a machine on which no sandbox can be made", () => {
  it("is told how to permit namespaces", () => {
    const { message, remedy } = notPermitted("unshare: unshare failed: Operation not permitted");
    expect(message).toContain("does not permit namespaces (unshare: unshare failed: Operation not permitted)");
    expect(remedy).toContain("kernel.apparmor_restrict_unprivileged_userns=0");
    expect(remedy).toContain("kernel.unprivileged_userns_clone=1");
  });

  it("is told which modules it lacks", () => {
    expect(notPermitted("Error: Unknown device type.").remedy).toContain("modprobe");
  });
});
