import { createServer as createHttp } from "node:http";
import { get } from "node:https";
import { type AddressInfo, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { selfSigned } from "./certificate.ts";
import { relay } from "./relay.ts";

const ours = selfSigned(Date.now());
const api = createHttp((request, response) => response.end(`you asked for ${request.url}`));
const entrance = createServer();
beforeAll(async () => {
  await new Promise<void>((resolve) => api.listen(0, "127.0.0.1", resolve));
  await new Promise<void>((resolve) => entrance.listen(0, "127.0.0.1", resolve));
  relay(entrance, ours, { host: "127.0.0.1", port: (api.address() as AddressInfo).port });
});
afterAll(() => {
  entrance.close();
  api.close();
});

const ask = (credentials: object) =>
  new Promise<string>((resolve, reject) => {
    const { port } = entrance.address() as AddressInfo;
    get(
      { host: "127.0.0.1", port, path: "/version", agent: false, ca: ours.certificate, ...credentials },
      (response) => {
        let text = "";
        response.on("data", (chunk) => {
          text += chunk;
        });
        response.on("end", () => resolve(text));
      },
    ).on("error", reject);
  });

describe("the way into an embedded cluster", () => {
  it("lets in who has the kubeconfig's certificate, which stands for 127.0.0.1", async () => {
    expect(await ask({ cert: ours.certificate, key: ours.key })).toBe("you asked for /version");
  });

  it("keeps out who has none, or another's", async () => {
    await expect(ask({})).rejects.toThrow();
    const other = selfSigned(Date.now());
    await expect(ask({ cert: other.certificate, key: other.key })).rejects.toThrow();
  });
});
