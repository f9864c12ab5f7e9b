import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { VirtualClock } from "../virtualClock.ts";
import { KubeClient } from "./client.ts";
import { type Connection, type Credentials, file } from "./connection.ts";
import { isUnknownOutcome } from "./errors.ts";
import { HttpTransport } from "./http.ts";
import { pods } from "./resources.ts";
import { type KubeRequest, TransportError } from "./transport.ts";

const pem = (name: string) => readFileSync(join(import.meta.dirname, "testdata", name), "utf8");
const GET: KubeRequest = { method: "GET", path: "/api/v1/pods" };

type Handle = (request: IncomingMessage, response: ServerResponse, body: string) => void;

describe("the HTTP transport", () => {
  const closing: (() => unknown)[] = [];
  let clock: VirtualClock;
  let handle: Handle;
  let sockets: Set<Socket>;
  let opened: number;

  beforeEach(() => {
    clock = new VirtualClock();
    sockets = new Set();
    opened = 0;
    handle = (_, response) => json(response, { kind: "PodList" });
  });
  afterEach(async () => {
    for (const close of closing.splice(0).reverse()) await close();
  });

  const json = (response: ServerResponse, body: unknown, status = 200) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));

  async function listen(server: Server): Promise<number> {
    server.on("connection", (socket: Socket) => {
      opened++;
      sockets.add(socket);
      socket.on("close", () => sockets.delete(socket));
    });
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      let body = "";
      request.on("data", (chunk) => (body += chunk));
      request.on("end", () => handle(request, response, body));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    closing.push(() => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(resolve));
    });
    return (server.address() as AddressInfo).port;
  }

  async function plain(connection: Partial<Connection> = {}): Promise<HttpTransport> {
    return transportTo(`http://127.0.0.1:${await listen(createServer())}`, {}, connection);
  }

  const tlsServer = (certificate = "server") =>
    createTlsServer({
      cert: pem(`${certificate}.crt`),
      key: pem(`${certificate}.key`),
      ca: pem("authority.crt"),
      requestCert: true,
      rejectUnauthorized: false,
    });

  function transportTo(server: string, credentials: Credentials, connection: Partial<Connection> = {}): HttpTransport {
    const transport = new HttpTransport(
      { server, credentials: async () => credentials, refresh() {}, ...connection },
      { clock },
    );
    closing.push(() => transport.close());
    return transport;
  }

  async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
    const collected: T[] = [];
    for await (const item of items) collected.push(item);
    return collected;
  }
  const failure = (promise: Promise<unknown>): Promise<TransportError> =>
    promise.then(
      () => Promise.reject(new Error("it did not fail")),
      (error) => error,
    );

  describe("with one request", () => {
    it("sends path, query, headers and body as they are meant", async () => {
      let seen: unknown[] = [];
      handle = ({ method, url, headers }, response, body) => {
        seen = [
          method,
          url,
          headers["content-type"],
          headers.authorization,
          headers["impersonate-user"],
          JSON.parse(body),
        ];
        json(response, { ok: true }, 201);
      };
      const port = await listen(createServer());
      const transport = transportTo(
        `http://127.0.0.1:${port}/k8s/c-1/`,
        { token: "t" },
        { headers: { "impersonate-user": "eve" } },
      );
      const { status, body } = await transport.request({
        method: "PATCH",
        path: "/api/v1/namespaces/n/pods/%C3%B6",
        query: { labelSelector: "a=b,c in (d)" },
        headers: { "content-type": "application/merge-patch+json" },
        body: { text: "ö" },
      });
      expect([status, body]).toEqual([201, { ok: true }]);
      expect(seen).toEqual([
        "PATCH",
        "/k8s/c-1/api/v1/namespaces/n/pods/%C3%B6?labelSelector=a%3Db%2Cc+in+%28d%29",
        "application/merge-patch+json",
        "Bearer t",
        "eve",
        { text: "ö" },
      ]);
    });

    it("returns text where the answer is no JSON, and any status as an answer", async () => {
      handle = (_, response) =>
        response.writeHead(503, { "content-type": "text/plain", "Retry-After": "2" }).end("busy");
      const transport = await plain();
      expect(await transport.request(GET)).toMatchObject({
        status: 503,
        body: "busy",
        headers: { "retry-after": "2" },
      });
    });

    it("keeps its connections: a hundred requests, few of them", async () => {
      const transport = await plain();
      for (let round = 0; round < 10; round++) {
        await Promise.all(Array.from({ length: 10 }, () => transport.request(GET)));
      }
      expect(opened).toBeLessThanOrEqual(16);
    });

    it("knows that a refused connection carried nothing", async () => {
      const server = createServer();
      const port = await listen(server);
      await closing.pop()!();
      const transport = transportTo(`http://127.0.0.1:${port}`, {});
      expect((await failure(transport.request({ ...GET, method: "POST", body: {} }))).maybeSent).toBe(false);
    });

    it("does not know what became of a request whose connection broke", async () => {
      handle = (_, response) => response.socket!.destroy();
      const transport = await plain();
      const error = await failure(transport.request({ ...GET, method: "POST", body: {} }));
      expect(error).toBeInstanceOf(TransportError);
      expect(isUnknownOutcome(error)).toBe(true);
    });

    it("gives up when its time is over, and when its caller does", async () => {
      const asked = Promise.withResolvers<void>();
      handle = () => asked.resolve();
      const transport = await plain();
      const late = failure(transport.request(GET, { timeout: 5_000 }));
      await asked.promise;
      await clock.advance(5_000);
      expect(await late).toMatchObject({ maybeSent: true, message: "GET /api/v1/pods: no answer within 5 s" });
      const caller = new AbortController();
      const cancelled = failure(transport.request(GET, { signal: caller.signal }));
      caller.abort(new Error("never mind"));
      expect((await cancelled).message).toContain("never mind");
      expect(clock.next()).toBeUndefined();
    });

    it("takes an answer that is cut off for none", async () => {
      handle = (_, response) => {
        response.writeHead(200, { "content-type": "application/json" });
        response.end('{"kind":"Pod');
      };
      const transport = await plain();
      expect((await failure(transport.request(GET))).maybeSent).toBe(true);
    });
  });

  describe("with a stream", () => {
    const client = (transport: HttpTransport) => new KubeClient(transport, { clock });

    it("yields lines wherever the network cuts them, also within a character", async () => {
      const text = Buffer.from('{"a":"ö"}\n{"b":2}\n\nlast');
      handle = async (_, response) => {
        for (const byte of text) {
          response.write(Buffer.from([byte]));
          await new Promise((resolve) => setImmediate(resolve));
        }
        response.end();
      };
      const transport = await plain();
      const lines = await collect((await transport.stream(GET)).lines);
      expect(lines).toEqual(['{"a":"ö"}', '{"b":2}', "", "last"]);
      await expect.poll(() => sockets.size).toBe(0);
    });

    it("says so when the connection breaks in the middle of a line", async () => {
      handle = (_, response) => {
        response.write('{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"}}}\n{"type":"ADD', () =>
          response.socket!.destroy(),
        );
      };
      const events = await client(await plain()).watch(pods);
      const seen: string[] = [];
      const read = (async () => {
        for await (const { type } of events) seen.push(type);
      })();
      expect(await failure(read)).toBeInstanceOf(TransportError);
      expect(seen).toEqual(["ADDED"]);
    });

    it("takes a line that the server itself left unfinished for garbled", async () => {
      handle = (_, response) => response.end('{"type":"ADD');
      const events = await client(await plain()).watch(pods);
      expect((await failure(collect(events))).message).toContain("no watch event");
    });

    it("closes its connection when the reader leaves, and when its signal says so", async () => {
      handle = (_, response) => response.write("first\n");
      const transport = await plain();
      for await (const line of (await transport.stream(GET)).lines) {
        expect(line).toBe("first");
        break;
      }
      await expect.poll(() => sockets.size).toBe(0);
      const stop = new AbortController();
      const { lines } = await transport.stream(GET, { signal: stop.signal });
      const reading = failure(collect(lines));
      stop.abort(new TransportError("silent for too long", { maybeSent: true }));
      expect((await reading).message).toBe("silent for too long");
      await expect.poll(() => sockets.size).toBe(0);
    });

    it("has its own connection, so that requests do not wait behind it", async () => {
      handle = ({ url }, response) => (url!.includes("watch") ? response.write("\n") : json(response, {}));
      const transport = await plain();
      const streams = await Promise.all(
        Array.from({ length: 20 }, () => transport.stream({ ...GET, query: { watch: "true" } })),
      );
      expect((await transport.request(GET)).status).toBe(200);
      expect(opened).toBe(21);
      expect(streams).toHaveLength(20);
    });

    it("shows a refusal with its body", async () => {
      handle = (_, response) => json(response, { kind: "Status", code: 410, reason: "Expired" }, 410);
      await expect(client(await plain()).watch(pods)).rejects.toMatchObject({ status: 410, reason: "Expired" });
      await expect.poll(() => sockets.size).toBe(0);
    });

    it("does not wait for ever for the status", async () => {
      const asked = Promise.withResolvers<void>();
      handle = () => asked.resolve();
      const stream = failure((await plain()).stream(GET));
      await asked.promise;
      await clock.advance(30_000);
      expect((await stream).message).toContain("30 s");
    });
  });

  describe("with credentials that change", () => {
    it.each(["request", "stream"] as const)("asks for new ones after 401 and tries once more (%s)", async (how) => {
      let token = "expired";
      const shown: unknown[] = [];
      handle = ({ headers }, response) => {
        shown.push(headers.authorization);
        json(response, {}, headers.authorization === "Bearer good" ? 200 : 401);
      };
      const connection = {
        credentials: async () => ({ token }),
        refresh() {
          token = "good";
        },
      };
      const transport = await plain(connection);
      expect((await transport[how](GET)).status).toBe(200);
      expect(shown).toEqual(["Bearer expired", "Bearer good"]);
    });

    it("gives the 401 back when the new ones are no better", async () => {
      let asked = 0;
      handle = (_, response) => {
        asked++;
        json(response, {}, 401);
      };
      const transport = await plain();
      expect((await transport.request(GET)).status).toBe(401);
      expect(asked).toBe(2);
    });

    it("says what is wrong with them, and that nothing was sent", async () => {
      const credentials = () => Promise.reject(new Error("exec plugin aws is not installed"));
      const error = await failure((await plain({ credentials })).request(GET));
      expect(error).toMatchObject({ maybeSent: false, message: expect.stringContaining("aws is not installed") });
    });

    it("shows the client certificate that is on disk now", async () => {
      handle = ({ socket }, response) =>
        json(response, { name: (socket as TLSSocket).getPeerCertificate().subject?.CN });
      const port = await listen(tlsServer());
      const [crt, key] = ["crt", "key"].map((end) => join(tmpdir(), `raykeeper-test-${process.pid}.${end}`)) as [
        string,
        string,
      ];
      const use = (name: string) => {
        writeFileSync(crt, pem(`${name}.crt`));
        writeFileSync(key, pem(`${name}.key`));
      };
      closing.push(() => [crt, key].map((path) => rmSync(path)));
      use("alice");
      const [cert, itsKey] = [file(crt, clock, "certificate"), file(key, clock, "key")];
      const transport = transportTo(
        `https://127.0.0.1:${port}`,
        {},
        { credentials: async () => ({ ca: pem("authority.crt"), cert: await cert.read(), key: await itsKey.read() }) },
      );
      expect((await transport.request(GET)).body).toEqual({ name: "alice" });
      use("bob");
      await clock.advance(10_000);
      expect((await transport.request(GET)).body).toEqual({ name: "bob" });
    });
  });

  describe("over TLS", () => {
    it("trusts the authority given, and no other", async () => {
      const server = `https://127.0.0.1:${await listen(tlsServer())}`;
      expect((await transportTo(server, { ca: pem("authority.crt") }).request(GET)).status).toBe(200);
      for (const ca of [pem("other-authority.crt"), undefined]) {
        const error = await failure(transportTo(server, { ca }).request({ ...GET, method: "POST", body: {} }));
        expect(error.maybeSent).toBe(false);
        expect(error.message).toMatch(/certificate/);
      }
    });

    it("trusts anyone where it was told to", async () => {
      const server = `https://127.0.0.1:${await listen(tlsServer())}`;
      const transport = transportTo(server, {}, { insecureSkipTlsVerify: true });
      expect((await transport.request(GET)).status).toBe(200);
    });

    it("expects the server's name, or the one it was told", async () => {
      const server = `https://127.0.0.1:${await listen(tlsServer("renamed-server"))}`;
      const ca = pem("authority.crt");
      expect((await failure(transportTo(server, { ca }).request(GET))).message).toMatch(/altname|certificate/i);
      const transport = transportTo(server, { ca }, { tlsServerName: "kubernetes.test" });
      expect((await transport.request(GET)).status).toBe(200);
    });

    it("goes through a proxy, with its own eyes on the server's certificate", async () => {
      const port = await listen(tlsServer());
      const proxy = createServer();
      const asked: string[] = [];
      proxy.on("connect", (request, socket) => {
        asked.push(request.url!);
        const onward = connect(port, "127.0.0.1", () => {
          socket.write("HTTP/1.1 200 OK\r\n\r\n");
          onward.pipe(socket).pipe(onward);
        });
        onward.on("error", () => socket.destroy());
        socket.on("error", () => onward.destroy());
      });
      const proxyUrl = `http://127.0.0.1:${await listen(proxy)}`;
      const server = "https://localhost:6443";
      const transport = transportTo(server, { ca: pem("authority.crt") }, { proxyUrl });
      expect((await transport.request(GET)).status).toBe(200);
      handle = (_, response) => response.end("line\n");
      expect(await collect((await transport.stream(GET)).lines)).toEqual(["line"]);
      expect(asked).toEqual(["localhost:6443", "localhost:6443"]);
      await failure(transportTo(server, { ca: pem("other-authority.crt") }, { proxyUrl }).request(GET));
    });
  });

  it("refuses a server or proxy that is no URL it can use", () => {
    expect(() => transportTo("tcp://10.0.0.1", {})).toThrow('server "tcp://10.0.0.1" is no http or https URL');
    expect(() => transportTo("https://10.0.0.1", {}, { proxyUrl: "socks5://x" })).toThrow("proxy-url");
  });
});
