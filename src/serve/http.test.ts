import { afterEach, describe, expect, it } from "vitest";
import { parseAddress, type Serving, servePages } from "./http.ts";

let serving: Serving | undefined;
afterEach(() => serving?.close());

describe("a served page", () => {
  it("is asked anew for each request, and a failing one is a 500 with its message", async () => {
    let asked = 0;
    serving = await servePages("127.0.0.1:0", {
      "/healthz": () => ({ body: `${++asked}` }),
      "/readyz": () => {
        throw new Error("not synced yet");
      },
    });
    const at = (path: string) => fetch(`http://127.0.0.1:${serving!.port}${path}`);
    expect(await (await at("/healthz")).text()).toBe("1");
    expect(await (await at("/healthz?verbose")).text()).toBe("2");
    const failing = await at("/readyz");
    expect([failing.status, await failing.text()]).toEqual([500, "not synced yet\n"]);
    expect((await at("/other")).status).toBe(404);
  });

  it("cannot take an address that is taken", async () => {
    serving = await servePages("127.0.0.1:0", {});
    await expect(servePages(`127.0.0.1:${serving!.port}`, {})).rejects.toThrow("EADDRINUSE");
  });
});

describe("an address", () => {
  it.each([
    [":8080", { port: 8080 }],
    ["127.0.0.1:1", { host: "127.0.0.1", port: 1 }],
    ["[::1]:443", { host: "::1", port: 443 }],
  ])("%s is understood", (text, parsed) => expect(parseAddress(text)).toEqual(parsed));

  it.each(["8080", "localhost", ":99999", ":x"])("%s is refused", (text) => {
    expect(() => parseAddress(text)).toThrow("is no address to listen on");
  });

  it("of 0 serves nothing", async () => expect(await servePages("0", {})).toBeUndefined());
});
