// The webhook over real HTTPS, as an API server asks it.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { connect as tcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as tls } from "node:tls";
import { afterEach, describe, expect, it } from "vitest";
import { rayCluster } from "../domain/raycluster/testing.ts";
import { rayJob } from "../domain/rayjob/testing.ts";
import { defaultSettings } from "../domain/settings.ts";
import { realClock } from "../machinery/clock.ts";
import { silent } from "../machinery/logger.ts";
import { VirtualClock } from "../machinery/virtualClock.ts";
import { type Certificate, issue } from "../machinery/x509.ts";
import { PrometheusMetrics } from "../serve/metrics.ts";
import { CertificateFiles, hasCertificateFiles } from "./files.ts";
import { serveWebhook, type Webhook, type WebhookOptions } from "./server.ts";

const span = { from: Date.now() - 60_000, until: Date.now() + 3_600_000 };
const authority = issue({ commonName: "authority", use: "authority", ...span });
const other = issue({ commonName: "authority", use: "authority", ...span });
const certificate = (by: Certificate) =>
  issue({ commonName: "webhook", use: "server", addresses: ["127.0.0.1"], ...span }, by);

let webhook: Webhook;
afterEach(() => webhook?.close());
const metrics = new PrometheusMetrics();

/** Shows what `show` is called with, the first certificate at once. */
async function serve(more: Partial<WebhookOptions> = {}) {
  let show: (certificate: Certificate) => void = () => {};
  webhook = serveWebhook({
    address: "127.0.0.1:0",
    certificates: {
      keep: async (shows) => {
        show = shows;
        shows(certificate(authority));
      },
    },
    settings: defaultSettings,
    watchNamespaces: [],
    clock: realClock,
    log: silent,
    metrics,
    ...more,
  });
  return { port: await webhook.listening, show: (by: Certificate) => show(certificate(by)) };
}

interface Answer {
  readonly status: number;
  readonly connection: string | undefined;
  readonly body: {
    response?: { uid: string; allowed: boolean; status?: object; warnings?: string[] };
    message?: string;
  };
}

function ask(port: number, path: string, body: unknown, ca = authority, method = "POST"): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asking = request({ host: "127.0.0.1", port, path, method, ca: ca.certificate, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => {
        text += piece;
      });
      response.on("end", () =>
        resolve({ status: response.statusCode!, connection: response.headers.connection, body: JSON.parse(text) }),
      );
    });
    asking.on("error", reject);
    asking.end(typeof body === "string" ? body : JSON.stringify(body));
  });
}

const RAY_JOB = "/validate-ray-io-v1-rayjob?timeout=10s";
const RAY_CLUSTER = "/validate-ray-io-v1-raycluster?timeout=10s";
const review = (object: object | null, more: object = {}) => ({
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  request: { uid: "u1", operation: "CREATE", namespace: "default", name: "demo", object, oldObject: null, ...more },
});

describe("the webhook", () => {
  it("admits what is valid, with warnings if there are any", async () => {
    const { port } = await serve();
    const { status, body } = await ask(port, RAY_JOB, review(rayJob()));
    expect([status, body]).toEqual([
      200,
      { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: { uid: "u1", allowed: true } },
    ]);
    const warned = await ask(port, RAY_JOB, review(rayJob({ activeDeadlineSeconds: 1, preRunningDeadlineSeconds: 2 })));
    expect(warned.body.response).toMatchObject({ allowed: true, warnings: [expect.stringContaining("never reached")] });
  });

  it("refuses with everything that is wrong, each with its field, as the API server itself would", async () => {
    const { port } = await serve();
    const { body } = await ask(port, RAY_JOB, review(rayJob({ backoffLimit: -1, jobId: "a b" })));
    expect(body.response).toMatchObject({
      uid: "u1",
      allowed: false,
      status: {
        code: 422,
        reason: "Invalid",
        message: expect.stringMatching(
          /^RayJob\.ray\.io "demo" is invalid: \[spec\.jobId: .*, spec\.backoffLimit: .*\]$/,
        ),
        details: {
          name: "demo",
          group: "ray.io",
          kind: "RayJob",
          causes: [{ field: "spec.jobId" }, { field: "spec.backoffLimit", reason: "FieldValueInvalid" }],
        },
      },
    });
  });

  it.each([
    ["too long", "a".repeat(48), "RayJob name should be no more than 47 characters"],
    ["no DNS-1035 label", "1a", "RayJob name should be a valid DNS1035 label"],
  ])("refuses a RayJob whose name is %s", async (_, name, text) => {
    const { port } = await serve();
    const { body } = await ask(port, RAY_JOB, review(rayJob({}, undefined, { name })));
    expect(JSON.stringify(body.response?.status)).toContain(
      `RayJob.ray.io \\"${name}\\" is invalid: metadata.name: ${text}`,
    );
  });

  it("judges RayClusters at their own path: names, groups of one name", async () => {
    const { port } = await serve();
    const group = rayCluster().spec.workerGroupSpecs![0]!;
    const asked = await ask(
      port,
      RAY_CLUSTER,
      review(rayCluster({ workerGroupSpecs: [group, group] }, { name: "a.b" })),
    );
    const message = JSON.stringify(asked.body.response?.status);
    expect(message).toContain("metadata.name: RayCluster name should be a valid DNS1035 label");
    expect(message).toContain("spec.workerGroupSpecs[1].groupName: worker group names must be unique");
  });

  it("knows what was stored: an edit that makes it invalid is refused, one of suspend alone is not", async () => {
    const { port } = await serve();
    const edit = (object: object, oldObject: object) =>
      ask(port, RAY_JOB, review(object, { operation: "UPDATE", oldObject }));
    const invalid = rayJob({ backoffLimit: -1 });
    expect((await edit(invalid, rayJob())).body.response?.allowed).toBe(false);
    expect((await edit(rayJob({ backoffLimit: -1, suspend: true }), invalid)).body.response?.allowed).toBe(true);
  });

  it("lets deletions pass, which nobody should ask about", async () => {
    const { port } = await serve();
    const { body } = await ask(port, RAY_JOB, review(null, { operation: "DELETE", oldObject: rayJob() }));
    expect(body.response?.allowed).toBe(true);
  });

  it("has no word about namespaces that this operator does not watch", async () => {
    const { port } = await serve({ watchNamespaces: ["team-a"] });
    const asked = (namespace: string) => ask(port, RAY_JOB, review(rayJob({ backoffLimit: -1 }), { namespace }));
    expect((await asked("team-b")).body.response?.allowed).toBe(true);
    expect((await asked("team-a")).body.response?.allowed).toBe(false);
  });

  it.each<[string, unknown, number]>([
    ["no JSON", "{", 400],
    ["something else", { kind: "AdmissionReview", apiVersion: "admission.k8s.io/v1beta1" }, 400],
    ["nothing at all", "null", 400],
    ["an object that no rule can read", review("text" as unknown as object), 500],
  ])("fails, and so refuses, when it is asked %s", async (_, body, code) => {
    const { port } = await serve();
    expect((await ask(port, RAY_JOB, body)).status).toBe(code);
  });

  it("answers to nothing else", async () => {
    const { port } = await serve();
    expect((await ask(port, "/other", review(rayJob()))).status).toBe(404);
    expect((await ask(port, RAY_JOB, "", authority, "GET")).status).toBe(405);
    expect((await ask(port, RAY_JOB, "x".repeat(9 * 1024 * 1024)).catch(() => ({ status: 413 }))).status).toBe(413);
  });

  it("keeps a connection for longer than the API server does, so that none is closed while a question is on its way", async () => {
    const { port } = await serve();
    const agent = new Agent({ keepAlive: true, ca: authority.certificate });
    const told = await new Promise<string>((resolve, reject) => {
      const asking = request({ host: "127.0.0.1", port, path: RAY_JOB, method: "POST", agent }, (response) => {
        response.resume();
        resolve(String(response.headers["keep-alive"]));
      });
      asking.on("error", reject);
      asking.end(JSON.stringify(review(rayJob())));
    });
    agent.destroy();
    expect(Number(/timeout=(\d+)/.exec(told)?.[1])).toBeGreaterThan(90);
  });

  it("counts and times its answers, under controller-runtime's names", async () => {
    const { port } = await serve();
    await ask(port, RAY_JOB, review(rayJob()));
    const text = await metrics.registry.metrics();
    expect(text).toMatch(
      /^controller_runtime_webhook_requests_total\{webhook="\/validate-ray-io-v1-rayjob",code="200"\} \d/m,
    );
    expect(text).toMatch(
      /^controller_runtime_webhook_latency_seconds_count\{webhook="\/validate-ray-io-v1-rayjob"\} \d/m,
    );
    expect(text).toMatch(/^controller_runtime_webhook_requests_in_flight\{webhook="\/validate-ray-io-v1-rayjob"\} 0$/m);
  });
});

describe("its certificate", () => {
  it("is believed by who trusts the authority, and by nobody else", async () => {
    const { port } = await serve();
    await expect(ask(port, RAY_JOB, review(rayJob()), other)).rejects.toThrow(/certificate|self-signed|signature/i);
  });

  it("is changed without a pause: the next connection sees the new one", async () => {
    const { port, show } = await serve();
    show(other);
    expect((await ask(port, RAY_JOB, review(rayJob()), other)).status).toBe(200);
    await expect(ask(port, RAY_JOB, review(rayJob()), authority)).rejects.toThrow();
  });

  it("is awaited: without one the webhook is not ready", async () => {
    let show: (certificate: Certificate) => void = () => {};
    webhook = serveWebhook({
      address: "127.0.0.1:0",
      certificates: {
        keep: async (shows) => {
          show = shows;
        },
      },
      settings: defaultSettings,
      watchNamespaces: [],
      clock: realClock,
      log: silent,
      metrics,
    });
    expect(webhook.check).toMatchObject({ name: "webhook", ok: false });
    show(certificate(authority));
    await webhook.listening;
    expect(webhook.check.ok).toBe(true);
  });

  it("is read from mounted files, and read again when they change; half a change is waited out", async () => {
    const folder = mkdtempSync(join(tmpdir(), "certificates-"));
    const write = (pair: Partial<Certificate>) => {
      if (pair.certificate) writeFileSync(join(folder, "tls.crt"), pair.certificate);
      if (pair.key) writeFileSync(join(folder, "tls.key"), pair.key);
    };
    expect(hasCertificateFiles(folder)).toBe(false);
    const [one, two] = [certificate(authority), certificate(other)];
    write(one);
    expect(hasCertificateFiles(folder)).toBe(true);
    const clock = new VirtualClock();
    const ending = new AbortController();
    const shown: Certificate[] = [];
    let news: () => void = () => {};
    const files = new CertificateFiles({ folder, clock, log: { ...silent, warn: () => news() } });
    const nextNews = () =>
      new Promise<void>((resolve) => {
        news = resolve;
      });
    const first = nextNews();
    const keeping = files.keep((pair) => {
      shown.push(pair);
      news();
    }, ending.signal);
    await first;
    expect(shown).toEqual([one]);
    write({ certificate: two.certificate });
    const half = nextNews();
    await whenSet(clock);
    await clock.advance(10_000);
    await half;
    expect(shown).toEqual([one]);
    write({ key: two.key });
    const whole = nextNews();
    await whenSet(clock);
    await clock.advance(10_000);
    await whole;
    expect(shown).toEqual([one, two]);
    ending.abort();
    await keeping;
    rmSync(folder, { recursive: true });
  });

  /** Until somebody sleeps on the clock. */
  async function whenSet(clock: VirtualClock): Promise<void> {
    while (clock.next() === undefined) await new Promise((resolve) => setImmediate(resolve));
  }
});

describe("the end", () => {
  it("comes when those who still ask have been answered, and told to ask another", async () => {
    const clock = new VirtualClock();
    const { port } = await serve({ clock });
    const closed = webhook.close(5_000);
    const { status, connection } = await ask(port, RAY_JOB, review(rayJob()));
    expect([status, connection]).toEqual([200, "close"]);
    await clock.advance(5_000);
    await closed;
    await expect(ask(port, RAY_JOB, review(rayJob()))).rejects.toThrow("ECONNREFUSED");
  });

  it.each(["tcp", "tls"])("does not wait for ever for whoever has connected by %s and asks nothing", async (by) => {
    const clock = new VirtualClock();
    const { port } = await serve({ clock });
    const silentOne =
      by === "tcp" ? tcp({ port, host: "127.0.0.1" }) : tls({ port, host: "127.0.0.1", ca: authority.certificate });
    silentOne.on("error", () => {});
    await new Promise((connected) => silentOne.once(by === "tcp" ? "connect" : "secureConnect", connected));
    // A request on another connection: the server has seen the first one by then.
    await ask(port, RAY_JOB, review(rayJob()));
    const gone = new Promise((resolve) => silentOne.once("close", resolve));
    const closed = webhook.close();
    while (clock.next() === undefined) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(10_000);
    await closed;
    await gone;
  });

  it("is in order even before there was a certificate", async () => {
    webhook = serveWebhook({
      address: "127.0.0.1:0",
      certificates: { keep: async () => {} },
      settings: defaultSettings,
      watchNamespaces: [],
      clock: realClock,
      log: silent,
      metrics,
    });
    await webhook.close(5_000);
  });

  it("is told of when the port is taken", async () => {
    const { port } = await serve();
    const second = serveWebhook({
      address: `127.0.0.1:${port}`,
      certificates: { keep: async (show) => show(certificate(authority)) },
      settings: defaultSettings,
      watchNamespaces: [],
      clock: realClock,
      log: silent,
      metrics,
    });
    await expect(second.listening).rejects.toThrow("EADDRINUSE");
    expect(second.check.ok).toBe(false);
    await second.close();
  });
});
