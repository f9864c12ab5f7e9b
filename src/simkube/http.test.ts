/** simkube's door, as clients of all kinds knock on it. What is behind it: conformance.test.ts. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, request } from "undici";
import { afterEach, describe, expect, it } from "vitest";
import { realClock } from "../machinery/clock.ts";
import { duplicates, type Served, type ServeOptions, serve } from "./http.ts";
import { SimKube, type SimKubeOptions } from "./simkube.ts";

let served: Served | undefined;
let simkube: SimKube;
async function open(options: ServeOptions = {}, more: Partial<SimKubeOptions> = {}): Promise<string> {
  simkube = new SimKube({ clock: realClock, seed: 1, ...more });
  served = await serve(simkube, options);
  return served.address;
}
afterEach(async () => {
  await served?.close();
  served = undefined;
});

const MAPS = "/api/v1/namespaces/default/configmaps";
async function post(address: string, body: string | Buffer, type: string, query = "") {
  const {
    statusCode,
    headers,
    body: answer,
  } = await request(`${address}${MAPS}${query}`, {
    method: "POST",
    body,
    headers: { "content-type": type },
  });
  return {
    status: statusCode,
    headers,
    body: (await answer.json()) as { message: string; data: object; metadata: object },
  };
}

describe("the door", () => {
  it("with a token lets in who has it, and anybody who asks for its health", async () => {
    const address = await open({ token: "secret" });
    const ask = async (path: string, authorization?: string) => {
      const { statusCode, body } = await request(`${address}${path}`, {
        headers: authorization ? { authorization } : {},
      });
      await body.dump();
      return statusCode;
    };
    expect(await ask("/api/v1/pods")).toBe(401);
    expect(await ask("/api/v1/pods", "Bearer wrong!")).toBe(401);
    expect(await ask("/api/v1/pods", "Bearer secret")).toBe(200);
    expect(await ask("/readyz")).toBe(200);
  });
  it("may be a socket in a folder instead of a port", async () => {
    const socketPath = join(mkdtempSync(join(tmpdir(), "simkube-")), "api.sock");
    expect(await open({ socketPath })).toBe(socketPath);
    const client = new Client("http://localhost", { socketPath });
    const { statusCode, body } = await client.request({ method: "GET", path: "/version" });
    expect(statusCode).toBe(200);
    expect(await body.json()).toMatchObject({ gitVersion: "v1.35.4" });
    await client.close();
  });
  it("says so when its port is taken", async () => {
    await open();
    await expect(serve(simkube, { port: served!.port! })).rejects.toThrow("EADDRINUSE");
  });
  it("ends open watches in good order when it closes", async () => {
    const address = await open();
    const { body } = await request(`${address}/api/v1/pods?watch=1`);
    const text = body.text();
    await served!.close();
    served = undefined;
    expect(await text).toBe("");
  });
  it("stops listening for a watcher who has left", async () => {
    const address = await open();
    const gone = new AbortController();
    const { body } = await request(`${address}${MAPS}?watch=1`, { signal: gone.signal });
    body.on("error", () => {});
    gone.abort();
    await expect.poll(() => simkube.openWatches).toBe(0);
  });
});

describe("a way to a Service", () => {
  it("is gone with the headers that are meant for whoever stands behind it, and without the API server's own", async () => {
    const seen: (Readonly<Record<string, string>> | undefined)[] = [];
    const address = await open(
      { token: "secret" },
      {
        serviceProxy: async (_, { headers }) => {
          seen.push(headers);
          return { status: 200, headers: {}, body: "ok" };
        },
      },
    );
    const headers = { authorization: "Bearer secret", "x-ray-authorization": "Bearer sesame", accept: "text/plain" };
    const services = "/api/v1/namespaces/default/services";
    const service = { metadata: { name: "head" }, spec: { ports: [{ name: "dashboard", port: 8265 }] } };
    await simkube.transport.request({ method: "POST", path: services, body: service });
    const { body } = await request(`${address}${services}/head:dashboard/proxy/api/version`, { headers });
    expect(await body.text()).toBe("ok");
    expect(seen).toEqual([{ accept: "text/plain", "content-type": "", "x-ray-authorization": "Bearer sesame" }]);
  });
});

describe("a body", () => {
  it("may be YAML", async () => {
    const { status, body } = await post(
      await open(),
      "metadata: {name: a}\ndata:\n  text: |\n    x\n",
      "application/yaml",
    );
    expect(status).toBe(201);
    expect(body.data).toEqual({ text: "x\n" });
  });
  it("that cannot be parsed is refused in words", async () => {
    const { status, body } = await post(await open(), "{", "application/json");
    expect(status).toBe(400);
    expect(body.message).toContain("error decoding the body");
  });
  it("that is too large is refused, and the connection is not misread afterwards", async () => {
    const address = await open({ bodyLimit: 1000 });
    expect((await post(address, JSON.stringify({ data: { a: "x".repeat(100_000) } }), "application/json")).status).toBe(
      413,
    );
    expect((await post(address, JSON.stringify({ metadata: { name: "a" } }), "application/json")).status).toBe(201);
  });
  it("that says a thing twice is refused by those who ask to be strict", async () => {
    const twice = '{"metadata":{"name":"a"},"data":{"a":"1","a":"2"}}';
    const address = await open();
    const { status, body } = await post(address, twice, "application/json", "?fieldValidation=Strict");
    expect(status).toBe(400);
    expect(body.message).toBe('strict decoding error: duplicate field "data.a"');
    expect((await post(address, twice, "application/json")).status).toBe(201);
  });
  it("that says a thing twice within a list is told where", () => {
    expect(duplicates('{"a":[{"b":1},{"c":{"d":1,"d":2}}],"a":0}')).toEqual(["a[1].c.d", "a"]);
    expect(duplicates('{"a":{"x":1},"b":{"x":1}}')).toEqual([]);
  });
  it("in protobuf is read for the kinds that kubectl creates from arguments", async () => {
    const { status, body } = await post(
      await open(),
      configMap(["key", "välue"]),
      "application/vnd.kubernetes.protobuf",
    );
    expect(status).toBe(201);
    expect(body).toMatchObject({ metadata: { name: "a" }, data: { key: "välue" } });
  });
  it("in protobuf of another kind, or with a field that cannot be read, is refused with the way out", async () => {
    const address = await open();
    for (const bytes of [object("Job", []), object("ConfigMap", field(9, "new")), Buffer.from("k8s\0\x0a\x7f")]) {
      const { status, body } = await post(address, bytes, "application/vnd.kubernetes.protobuf");
      expect(status).toBe(415);
      expect(body.message).toContain("kubectl create -f");
    }
  });
});

describe("a log", () => {
  it("arrives byte for byte, and stays open while it is followed", async () => {
    const pieces = [Buffer.from("50%\r"), Buffer.from([0xff, 0x0a, 0x68]), Buffer.from("end")];
    let goOn = () => {};
    const waiting = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const address = await open(
      {},
      {
        podLogs: async function* () {
          yield pieces[0]!;
          await waiting;
          yield* pieces.slice(1);
        },
      },
    );
    const pod = { metadata: { name: "a" }, spec: { containers: [{ name: "main", image: "busybox" }] } };
    await simkube.transport.request({ method: "POST", path: "/api/v1/namespaces/default/pods", body: pod });
    const { body } = await request(`${address}/api/v1/namespaces/default/pods/a/log?follow=true`);
    const seen: Buffer[] = [];
    for await (const piece of body) {
      seen.push(piece as Buffer);
      goOn();
    }
    expect(seen.length).toBeGreaterThan(1);
    expect(Buffer.concat(seen)).toEqual(Buffer.concat(pieces));
  });
});

/** A field of a message, as Protocol Buffers write it. */
function field(number: number, value: string | number[]): number[] {
  const bytes = typeof value === "string" ? [...Buffer.from(value)] : value;
  return [(number << 3) | 2, bytes.length, ...bytes];
}
function object(kind: string, bytes: number[]): Buffer {
  const type = field(1, [...field(1, "v1"), ...field(2, kind)]);
  return Buffer.from([...Buffer.from("k8s\0"), ...type, ...field(2, bytes)]);
}
function configMap(...data: [string, string][]): Buffer {
  const metadata = field(1, [...field(1, "a"), ...field(2, ""), ...field(8, [])]);
  const entries = data.flatMap(([key, value]) => field(2, [...field(1, key), ...field(2, value)]));
  return object("ConfigMap", [...metadata, ...entries]);
}
