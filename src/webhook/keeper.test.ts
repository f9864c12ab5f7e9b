// How replicas keep one set of certificates together, on an API server in memory and a clock that stands still.
import { beforeEach, describe, expect, it } from "vitest";
import type { CustomResourceDefinition } from "../api/kubernetes.ts";
import type { KubeObject, Stored } from "../api/object.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { validatingWebhookConfigurations as configurations, secrets } from "../machinery/kube/resources.ts";
import type { Transport } from "../machinery/kube/transport.ts";
import { silent } from "../machinery/logger.ts";
import { VirtualClock } from "../machinery/virtualClock.ts";
import type { Certificate } from "../machinery/x509.ts";
import { SimKube } from "../simkube/simkube.ts";
import { CertificateKeeper } from "./keeper.ts";
import { certificatesOf } from "./keyRing.ts";

const NAME = "hook";
const NAMESPACE = "default";
const WHERE = `${NAME}.${NAMESPACE}`;
const lifetimes = { authority: 900_000, serving: 300_000, overlap: 60_000 };

/** The kind, as one that anything may be written into. */
const definition = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: `${configurations.plural}.${configurations.group}` },
  spec: {
    group: configurations.group,
    names: {
      kind: configurations.kind,
      plural: configurations.plural,
      singular: configurations.singular,
      listKind: `${configurations.kind}List`,
    },
    scope: "Cluster",
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
      },
    ],
  },
} as unknown as CustomResourceDefinition;

let clock: VirtualClock;
let transport: Transport;
let client: KubeClient;
let requests: string[];
let said: string[];
beforeEach(async () => {
  clock = new VirtualClock();
  const server = new SimKube({ clock, crds: [definition] });
  requests = [];
  said = [];
  transport = {
    request(request, options) {
      if (request.method !== "GET") requests.push(`${request.method} ${request.path.split("/").at(-2)}`);
      return server.transport.request(request, options);
    },
    stream: (request, options) => server.transport.stream(request, options),
  };
  client = new KubeClient(server.transport, { clock });
  const webhook = (name: string) => ({ name, clientConfig: { service: { name: NAME, namespace: NAMESPACE } } });
  await client.create(configurations, {
    metadata: { name: WHERE },
    webhooks: [webhook("a"), webhook("b")],
  } as KubeObject);
});

/** One replica; `shown` is what it has shown, the newest last. */
function replica() {
  const ending = new AbortController();
  const shown: Certificate[] = [];
  const log = { ...silent, warn: (fields: object) => void said.push((fields as { error: string }).error) };
  const own = new KubeClient(transport, { clock });
  const keeper = new CertificateKeeper({
    client: own,
    clock,
    log,
    namespace: NAMESPACE,
    name: NAME,
    domain: "cluster.local",
    lifetimes,
  });
  const done = keeper.keep((certificate) => shown.push(certificate), ending.signal);
  return {
    shown,
    end: () => {
      ending.abort();
      return done;
    },
  };
}

type Configuration = Stored & { webhooks: { clientConfig: { caBundle?: string; service: object } }[] };
const trusted = async () => {
  const { webhooks } = (await client.get(configurations, undefined, WHERE)) as Configuration;
  const bundles = webhooks.map(({ clientConfig }) =>
    certificatesOf(Buffer.from(clientConfig.caBundle ?? "", "base64").toString()),
  );
  expect(bundles[1]).toEqual(bundles[0]);
  expect(webhooks[0]!.clientConfig.service).toEqual({ name: NAME, namespace: NAMESPACE });
  return bundles[0]!;
};
const secretText = async (key: string) => {
  const { data } = (await client.get(secrets, NAMESPACE, NAME)) as Stored & { data: Record<string, string> };
  return Buffer.from(data[key] ?? "", "base64").toString();
};

describe("a replica", () => {
  it("makes the authority, tells the API server, and then writes no more", async () => {
    const one = replica();
    await clock.advance(100);
    expect(one.shown.map(({ certificate }) => certificate)).toEqual([await secretText("tls.crt")]);
    expect(await trusted()).toEqual([await secretText("ca.crt")]);
    expect(requests).toEqual(["POST default", "PATCH validatingwebhookconfigurations"]);
    await clock.advance(120_000);
    expect(requests).toHaveLength(2);
    await one.end();
  });

  it("that comes later shows what the first has made", async () => {
    const one = replica();
    await clock.advance(100);
    const two = replica();
    await clock.advance(100);
    expect(two.shown).toEqual(one.shown);
    expect(requests).toHaveLength(2);
    await Promise.all([one.end(), two.end()]);
  });

  it("tells again when somebody has told the API server otherwise", async () => {
    const one = replica();
    await clock.advance(100);
    const { webhooks } = (await client.get(configurations, undefined, WHERE)) as Configuration;
    const other = webhooks.map((each) => ({ ...each, clientConfig: { ...each.clientConfig, caBundle: "" } }));
    await client.patch(configurations, undefined, WHERE, { webhooks: other });
    await clock.advance(31_000);
    expect(await trusted()).toEqual([await secretText("ca.crt")]);
    await one.end();
  });

  it("says once that nobody asks the webhook where no configuration names it, and shows its certificate all the same", async () => {
    await client.delete(configurations, undefined, WHERE);
    const one = replica();
    await clock.advance(20_000);
    expect(one.shown).toHaveLength(1);
    expect(said).toEqual([`there is no ValidatingWebhookConfiguration ${WHERE}, so nobody asks the webhook`]);
    await one.end();
  });

  it("replaces a Secret that holds something else", async () => {
    await client.create(secrets, {
      metadata: { name: NAME, namespace: NAMESPACE },
      data: { "tls.crt": "eA==" },
    } as KubeObject);
    const one = replica();
    await clock.advance(100);
    expect(one.shown.map(({ certificate }) => certificate)).toEqual([await secretText("tls.crt")]);
    await one.end();
  });

  it("ends at once, and without complaint, though the API server has not answered", async () => {
    transport.request = (_, { signal } = {}) =>
      new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    const one = replica();
    await clock.advance(100);
    await one.end();
    expect(said).toEqual([]);
  });
});

describe("several replicas", () => {
  it("that begin at once agree on one authority, though each has made its own", async () => {
    const replicas = [replica(), replica(), replica()];
    await clock.advance(5_000);
    const certificates = replicas.map(({ shown }) => shown.at(-1)!.certificate);
    expect(new Set(certificates)).toEqual(new Set([await secretText("tls.crt")]));
    expect(await trusted()).toEqual([await secretText("ca.crt")]);
    expect(said).toEqual([]);
    await Promise.all(replicas.map(({ end }) => end()));
  });

  it("go through rotation after rotation, and at any time each shows what the API server trusts", async () => {
    const { X509Certificate } = await import("node:crypto");
    const replicas = [replica(), replica()];
    await clock.advance(5_000);
    const authorities = new Set<string>();
    for (let round = 0; round < 200; round++) {
      await clock.advance(11_000);
      const told = await trusted();
      for (const { shown } of replicas) {
        const now = new X509Certificate(shown.at(-1)!.certificate);
        const by = told.filter((one) => now.verify(new X509Certificate(one).publicKey));
        expect(by).toHaveLength(1);
        authorities.add(by[0]!);
      }
    }
    expect(authorities.size).toBeGreaterThan(2);
    expect(said).toEqual([]);
    await Promise.all(replicas.map(({ end }) => end()));
  });

  it("lose the Secret, and go on with the authority that is trusted, beside a new one", async () => {
    const replicas = [replica(), replica()];
    await clock.advance(5_000);
    const [before] = await trusted();
    await client.delete(secrets, NAMESPACE, NAME);
    await clock.advance(40_000);
    expect(await trusted()).toHaveLength(2);
    expect((await trusted())[0]).toBe(before);
    for (const { shown } of replicas) expect(shown).toHaveLength(1);
    await clock.advance(90_000);
    for (const { shown } of replicas) expect(shown).toHaveLength(2);
    await Promise.all(replicas.map(({ end }) => end()));
  });
});
