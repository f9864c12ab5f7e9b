// Which API server the operator refuses to start with.
import { describe, expect, it } from "vitest";
import { configFrom } from "../config.ts";
import type { Transport } from "../machinery/kube/transport.ts";
import { TransportError } from "../machinery/kube/transport.ts";
import { checkServerVersion } from "./serverVersion.ts";

const ON = configFrom({ flags: { "feature-gates": "SidecarSubmitterRestart=true" } });
const OFF = configFrom({});

function server(answer: unknown): Transport & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    async request({ path }) {
      asked.push(path);
      if (answer instanceof Error) throw answer;
      return { status: 200, headers: {}, body: answer };
    },
    stream: () => Promise.reject(new Error("nothing is watched")),
  };
}

describe("with SidecarSubmitterRestart the operator", () => {
  it.each([
    ["1", "35"],
    ["1", "36+"],
    ["2", "0"],
  ])("starts on API server %s.%s", async (major, minor) => {
    await expect(checkServerVersion(ON, server({ major, minor }))).resolves.toBeUndefined();
  });

  it.each([
    ["1", "34"],
    ["1", "34+"],
    ["0", "99"],
  ])("refuses API server %s.%s, in KubeRay's words", async (major, minor) => {
    await expect(checkServerVersion(ON, server({ major, minor }))).rejects.toMatchObject({
      name: "CannotRun",
      message: "SidecarSubmitterRestart feature gate requires K8s 1.35+",
    });
  });

  it.each([
    ["says no version", {}],
    ["says nothing that is one", { major: "one", minor: "" }],
    ["does not answer", new TransportError("connection refused", { maybeSent: false })],
  ])("refuses an API server that %s", async (_, answer) => {
    await expect(checkServerVersion(ON, server(answer))).rejects.toThrow(
      "SidecarSubmitterRestart feature gate enabled but unable to detect K8s version. Feature requires K8s 1.35+.",
    );
  });
});

it("without it the operator does not ask", async () => {
  const any = server({ major: "1", minor: "20" });
  await checkServerVersion(OFF, any);
  expect(any.asked).toEqual([]);
});
