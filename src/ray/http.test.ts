import { createServer, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { httpRayTransport } from "./http.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function serving(listener: RequestListener): Promise<string> {
  const server: Server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function transport() {
  const made = httpRayTransport();
  closing.push(() => made.close());
  return made;
}

const get = (dashboard: string, timeout = 5000) => ({
  method: "GET" as const,
  dashboard,
  path: "/api/version",
  timeout,
});

describe("HTTP to a dashboard", () => {
  it("carries method, path, query, headers and body as they are", async () => {
    const at = await serving(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      response.end(JSON.stringify([request.method, request.url, request.headers["content-type"], body]));
    });
    const answer = await transport().request({
      method: "POST",
      dashboard: at,
      path: "/api/jobs/a%2Fb?x=1",
      headers: { "content-type": "application/json" },
      body: '{"é":"`"}',
      timeout: 5000,
    });
    expect(JSON.parse(answer.body)).toEqual(["POST", "/api/jobs/a%2Fb?x=1", "application/json", '{"é":"`"}']);
  });

  it("follows no redirect", async () => {
    const at = await serving((_, response) => response.writeHead(302, { location: "/login" }).end());
    expect((await transport().request(get(at))).status).toBe(302);
  });

  it.each([
    ["the headers", () => {}],
    ["the rest of the body", (response: { write(text: string): unknown }) => response.write("half")],
  ])("gives up on a server that keeps back %s, with an unknown outcome", async (_, answer) => {
    const at = await serving((_request, response) => answer(response));
    await expect(transport().request(get(at, 200))).rejects.toMatchObject({
      name: "RayTransportError",
      maybeSent: true,
      message: "no answer within 0.2 s",
    });
  });

  it("knows that nothing was sent when the connection is refused", async () => {
    const at = await serving(() => {});
    await closing.pop()!();
    await expect(transport().request(get(at))).rejects.toMatchObject({ name: "RayTransportError", maybeSent: false });
  });

  it("does not know it when the connection breaks", async () => {
    const at = await serving((request) => request.socket.destroy());
    await expect(transport().request(get(at))).rejects.toMatchObject({ name: "RayTransportError", maybeSent: true });
  });

  it("reads no more of an answer than it should", async () => {
    const at = await serving((_, response) => {
      const page = Buffer.alloc(1024 * 1024);
      const more = () => {
        while (response.write(page));
      };
      response.on("drain", more);
      more();
    });
    await expect(transport().request(get(at, 20_000))).rejects.toThrow("larger than 32 MiB");
  });

  it("reads long answers of many dashboards in the memory of a few, short ones meanwhile, and long ones again after", async () => {
    const page = Buffer.alloc(1024 * 1024);
    const held: ServerResponse[] = [];
    const at = await serving((request, response) => {
      if (request.url === "/short") return void response.end("short");
      for (let sent = 0; sent < 25; sent++) response.write(page);
      held.push(response);
    });
    const one = transport();
    const ask = (path: string) => one.request({ ...get(at, 60_000), path });
    const long = Array.from({ length: 3 }, () => ask("/long"));
    await expect(Promise.race(long)).rejects.toThrow("too many dashboards answer at length");
    expect(await ask("/short")).toMatchObject({ body: "short" });
    await expect.poll(() => held.length).toBe(3);
    for (const response of held.splice(0)) response.end();
    const ends = await Promise.allSettled(long);
    expect(ends.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
    const again = ask("/long");
    await expect.poll(() => held.length).toBe(1);
    held.pop()!.end();
    expect((await again).body).toHaveLength(25 * page.length);
  });
});
