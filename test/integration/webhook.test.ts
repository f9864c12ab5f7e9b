/** The webhook as a real API server asks it: verdicts, certificates that are replaced meanwhile, and nobody at home. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from "vitest";
import type { KubeObject } from "../../src/api/object.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { defaultSettings } from "../../src/domain/settings.ts";
import { realClock, sleep } from "../../src/machinery/clock.ts";
import { KubeClient } from "../../src/machinery/kube/client.ts";
import { HttpTransport } from "../../src/machinery/kube/http.ts";
import { loadKubeconfig } from "../../src/machinery/kube/kubeconfig.ts";
import {
  validatingWebhookConfigurations as configurations,
  rayClusters,
  rayJobs,
  resourcePath,
  secrets,
} from "../../src/machinery/kube/resources.ts";
import type { KubeResponse } from "../../src/machinery/kube/transport.ts";
import { silent } from "../../src/machinery/logger.ts";
import { noMetrics } from "../../src/machinery/metrics.ts";
import { type Certificate, issue } from "../../src/machinery/x509.ts";
import { webhookConfiguration } from "../../src/webhook/configuration.ts";
import { CertificateKeeper, configurationName } from "../../src/webhook/keeper.ts";
import { certificatesOf, LIFETIMES, type Lifetimes } from "../../src/webhook/keyRing.ts";
import { serveWebhook, type Webhook } from "../../src/webhook/server.ts";
import { rayCluster, rayJob } from "../support/manifests.ts";
import { temporaryFolder } from "./controlPlane.ts";

const NAMESPACE = "webhook";
const NAME = "hook";
const ACCOUNT = "operator";
const WHERE = configurationName(NAME, NAMESPACE);
const transport = new HttpTransport(loadKubeconfig(inject("controlPlane")));
const client = new KubeClient(transport);

/** The API server learns of a changed configuration by a watch, so a verdict may be that of a moment ago. */
async function eventually<T>(ask: () => Promise<T>, holds: (answer: T) => boolean): Promise<T> {
  const until = realClock.now() + 600_000;
  for (;;) {
    const answer = await ask();
    if (holds(answer) || realClock.now() > until) return answer;
    await sleep(realClock, 50);
  }
}

let replicas: Webhook[] = [];
interface Replica {
  readonly port?: number;
  readonly lifetimes?: Lifetimes;
  readonly patrol?: number;
}

/** A replica as the operator runs one; here it is reached by its address, since nobody routes Services. */
async function replica({ port = 0, lifetimes = LIFETIMES, patrol = 200 }: Replica = {}) {
  const certificates = new CertificateKeeper({
    client: new KubeClient(transport),
    clock: realClock,
    log: silent,
    namespace: NAMESPACE,
    name: NAME,
    domain: "cluster.local",
    addresses: ["127.0.0.1"],
    lifetimes,
    patrol,
  });
  const webhook = serveWebhook({
    address: `127.0.0.1:${port}`,
    certificates,
    settings: defaultSettings,
    watchNamespaces: [],
    clock: realClock,
    log: silent,
    metrics: noMetrics,
  });
  replicas.push(webhook);
  return { webhook, port: await webhook.listening };
}

/** As it is installed, but asking at a port, and only about this namespace. */
async function configure(port: number, caBundle?: string): Promise<void> {
  const configuration = webhookConfiguration(NAME, NAMESPACE, ACCOUNT);
  const webhooks = configuration.webhooks.map(({ clientConfig: { service }, ...rest }) => ({
    ...rest,
    clientConfig: { url: `https://127.0.0.1:${port}${service.path}`, ...(caBundle && { caBundle }) },
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": NAMESPACE } },
  }));
  await client.create(configurations, { ...configuration, webhooks } as KubeObject);
}

const bundle = async () => {
  const { webhooks } = (await client.get(configurations, undefined, WHERE)) as unknown as {
    webhooks: { clientConfig: { caBundle?: string } }[];
  };
  return certificatesOf(Buffer.from(webhooks[0]!.clientConfig.caBundle ?? "", "base64").toString());
};

let count = 0;
const fresh = (spec: object = {}) => {
  const job = rayJob(spec as never) as RayJob;
  return { ...job, metadata: { name: `job-${++count}`, namespace: NAMESPACE } };
};
const post = (body: object, dryRun = true): Promise<KubeResponse> =>
  transport.request({
    method: "POST",
    path: resourcePath(rayJobs, NAMESPACE),
    ...(dryRun && { query: { dryRun: "All" } }),
    body,
  });
const patch = (name: string, body: object): Promise<KubeResponse> =>
  transport.request({
    method: "PATCH",
    path: resourcePath(rayJobs, NAMESPACE, name),
    headers: { "content-type": "application/merge-patch+json" },
    body,
  });
const messageOf = ({ body }: KubeResponse) => (body as { message?: string }).message ?? "";
const INVALID = { backoffLimit: -1, jobId: "a b" };

beforeAll(async () => {
  await transport.request({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: NAMESPACE } } });
});
const clear = async () => {
  await Promise.all(replicas.map((one) => one.close()));
  replicas = [];
  await client.delete(configurations, undefined, WHERE).catch(() => {});
  await client.delete(secrets, NAMESPACE, NAME).catch(() => {});
  // Nobody is asked any more once the server has heard of it.
  await eventually(
    () => post(fresh(INVALID)),
    ({ status }) => status === 201,
  );
};
beforeEach(clear);
afterEach(clear);
afterAll(() => transport.close());

/** Installed, and heard of by the API server. */
async function installed(options: Replica = {}) {
  const one = await replica(options);
  await configure(one.port);
  const refused = await eventually(
    () => post(fresh(INVALID)),
    ({ status }) => status === 422,
  );
  expect(messageOf(refused)).toContain("vrayjob.kb.io");
  return one;
}

describe("the API server", () => {
  it("refuses with all that is wrong, each with its field, and admits with warnings what is valid", async () => {
    await installed();
    const refused = await post(fresh(INVALID));
    expect(refused.status).toBe(422);
    expect(messageOf(refused)).toMatch(
      /^admission webhook "vrayjob\.kb\.io" denied the request: RayJob\.ray\.io "job-\d+" is invalid: \[spec\.jobId: .*, spec\.backoffLimit: /,
    );
    const { causes } = (refused.body as { details: { causes: { field: string }[] } }).details;
    expect(causes.map(({ field }) => field)).toEqual(["spec.jobId", "spec.backoffLimit"]);

    const warned = await post(fresh({ activeDeadlineSeconds: 5, preRunningDeadlineSeconds: 10 }));
    expect(warned.status, messageOf(warned)).toBe(201);
    expect(warned.headers["warning"]).toContain("spec.preRunningDeadlineSeconds: is never reached");
  });

  it("refuses a RayCluster at its own webhook, and the old version of a RayJob at the same", async () => {
    await installed();
    const cluster = rayCluster("demo");
    const refused = await transport.request({
      method: "POST",
      path: resourcePath(rayClusters, NAMESPACE),
      query: { dryRun: "All" },
      body: {
        ...cluster,
        metadata: { name: "demo", namespace: NAMESPACE },
        spec: { ...cluster.spec, networkPolicy: {} },
      },
    });
    expect([refused.status, messageOf(refused)]).toEqual([422, expect.stringContaining("vraycluster.kb.io")]);
    const old = await transport.request({
      method: "POST",
      path: resourcePath({ ...rayJobs, version: "v1alpha1" }, NAMESPACE),
      query: { dryRun: "All" },
      body: { ...fresh(INVALID), apiVersion: "ray.io/v1alpha1" },
    });
    expect(messageOf(old)).toContain('admission webhook "vrayjob.kb.io" denied');
  });

  it("keeps an edit out that makes a RayJob invalid; one that was invalid before may be suspended, labelled and deleted", async () => {
    const job = fresh({ ...INVALID, suspend: true });
    const { name } = job.metadata;
    await client.create(rayJobs, { ...job, metadata: { ...job.metadata, finalizers: ["example.com/held"] } });
    const valid = fresh();
    await client.create(rayJobs, valid);
    await installed();

    expect((await patch(valid.metadata.name, { spec: INVALID })).status).toBe(422);
    expect((await patch(name, { spec: { jobId: "also bad/" } })).status).toBe(422);
    const resumed = await patch(name, { spec: { suspend: false } });
    expect(resumed.status, messageOf(resumed)).toBe(200);
    expect(resumed.headers["warning"]).toContain("spec.jobId: must not contain white space");
    expect((await patch(name, { metadata: { labels: { team: "a" } } })).status).toBe(200);
    await client.delete(rayJobs, NAMESPACE, name);
    expect((await patch(name, { metadata: { finalizers: null } })).status).toBe(200);
    await client.delete(rayJobs, NAMESPACE, valid.metadata.name);
  });

  it("fails closed when no replica answers; what exists can still be labelled and deleted", async () => {
    const job = fresh();
    const { name } = job.metadata;
    await client.create(rayJobs, { ...job, metadata: { ...job.metadata, finalizers: ["example.com/held"] } });
    const { webhook } = await installed();
    await webhook.close();

    const refused = await post(fresh());
    expect(refused.status).toBe(500);
    expect(messageOf(refused)).toContain('failed calling webhook "vrayjob.kb.io"');
    expect((await patch(name, { spec: { suspend: true } })).status).toBe(500);
    expect((await patch(name, { metadata: { labels: { team: "a" } } })).status).toBe(200);
    await client.delete(rayJobs, NAMESPACE, name);
    const released = await patch(name, { metadata: { finalizers: null } });
    expect(released.status, messageOf(released)).toBe(200);
  });

  it("does not ask about what the operator itself writes, so that an operator alone need not wait for its own webhook", async () => {
    const { webhook } = await installed();
    await webhook.close();
    const cluster = rayCluster("demo");
    const create = (user: string) =>
      transport.request({
        method: "POST",
        path: resourcePath(rayClusters, NAMESPACE),
        query: { dryRun: "All" },
        headers: { "impersonate-user": user, "impersonate-group": "system:masters" },
        body: { ...cluster, metadata: { name: "demo", namespace: NAMESPACE } },
      });
    const allowed = await create(`system:serviceaccount:${NAMESPACE}:${ACCOUNT}`);
    expect(allowed.status, messageOf(allowed)).toBe(201);
    expect((await create(`system:serviceaccount:${NAMESPACE}:other`)).status).toBe(500);
  });

  it("does not ask a server whose certificate is of another authority, until the operator has told it the right one", async () => {
    const { port } = await replica({ patrol: 600_000 });
    const span = { from: realClock.now() - 60_000, until: realClock.now() + 3_600_000 };
    const stranger = issue({ commonName: "stranger", use: "authority", ...span });
    await configure(port, Buffer.from(stranger.certificate).toString("base64"));
    const refused = await eventually(
      () => post(fresh()),
      ({ status }) => status === 500,
    );
    expect(messageOf(refused)).toMatch(
      /failed calling webhook "vrayjob\.kb\.io": .*certificate signed by unknown authority/,
    );

    await replica({ patrol: 200 });
    const admitted = await eventually(
      () => post(fresh()),
      ({ status }) => status === 201,
    );
    expect(admitted.status, messageOf(admitted)).toBe(201);
  });
});

describe("the certificates", () => {
  it("are replaced again and again, authority and all, while requests go on, and none of those fails", async () => {
    // An authority's successor is trusted after ten seconds here, and signs after four more. Each change of whom the API
    // server trusts makes it open a new connection, which meets the certificate of the moment.
    const lifetimes = { authority: 15_000, serving: 12_000, overlap: 4_000 };
    await installed({ lifetimes, patrol: 100 });
    const seen = new Set<string>();
    while (seen.size < 4) {
      for (const one of await bundle()) seen.add(one);
      const { status, body } = await post(fresh(INVALID));
      expect([status, JSON.stringify(body)]).toEqual([422, expect.stringContaining("denied the request")]);
    }
  });

  it("are one set, though several replicas race for the first", async () => {
    await configure(1);
    const started = await Promise.all([replica(), replica(), replica(), replica()]);
    const secret = (await client.get(secrets, NAMESPACE, NAME)) as unknown as { data: Record<string, string> };
    const text = (key: string) => Buffer.from(secret.data[key] ?? "", "base64").toString();
    const told = await eventually(bundle, (one) => one.length > 0);
    expect(told).toEqual([text("ca.crt")]);
    const { connect } = await import("node:tls");
    const shown = await Promise.all(
      started.map(
        ({ port }) =>
          new Promise<string>((resolve, reject) => {
            const socket = connect({ host: "127.0.0.1", port, ca: text("ca.crt") }, () => {
              resolve(socket.getPeerX509Certificate()!.toString());
              socket.end();
            });
            socket.on("error", reject);
          }),
      ),
    );
    expect(new Set(shown)).toEqual(new Set([text("tls.crt")]));
  });
});

describe("the operator's process", () => {
  it("serves the webhook with a mounted certificate, follows its renewal, and ends in good order", async () => {
    const folder = await temporaryFolder("webhook");
    const span = { from: realClock.now() - 60_000, until: realClock.now() + 3_600_000 };
    const [first, second] = ["first", "second"].map((commonName) => issue({ commonName, use: "authority", ...span }));
    const mount = (authority: Certificate) => {
      const pair = issue({ commonName: "hook", use: "server", addresses: ["127.0.0.1"], ...span }, authority);
      writeFileSync(join(folder, "tls.crt"), pair.certificate);
      writeFileSync(join(folder, "tls.key"), pair.key);
    };
    const base64 = (authority: Certificate) => Buffer.from(authority.certificate).toString("base64");
    mount(first!);
    const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url));
    const flags = ["--metrics-addr=0", "--health-probe-bind-address=0", `--watch-namespace=${NAMESPACE}`];
    const operator = spawn(
      "setpriv",
      [
        ...["--pdeathsig", "KILL", process.execPath, main, "operator", "--enable-leader-election=false"],
        ...["--kubeconfig", inject("controlPlane"), ...flags],
      ],
      {
        stdio: ["ignore", "pipe", "inherit"],
        env: {
          ...process.env,
          ENABLE_WEBHOOKS: "true",
          RAYKEEPER_WEBHOOK_ADDRESS: "127.0.0.1:0",
          RAYKEEPER_WEBHOOK_CERT_DIR: folder,
        },
      },
    );
    const ended = once(operator, "exit");
    let port = 0;
    for await (const line of createInterface({ input: operator.stdout })) {
      const entry = JSON.parse(line) as { msg?: string; port?: number };
      if (entry.msg === "the webhook listens") {
        port = entry.port!;
        break;
      }
    }
    operator.stdout.resume();
    await configure(port, base64(first!));
    const refused = await eventually(
      () => post(fresh(INVALID)),
      ({ status }) => status === 422,
    );
    expect(messageOf(refused)).toContain("spec.jobId");

    mount(second!);
    await client.delete(configurations, undefined, WHERE);
    await configure(port, base64(second!));
    const renewed = await eventually(
      () => post(fresh(INVALID)),
      ({ status, body }) => status === 422 && JSON.stringify(body).includes("denied"),
    );
    expect(renewed.status, messageOf(renewed)).toBe(422);

    operator.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
    rmSync(folder, { recursive: true, force: true });
  });
});
