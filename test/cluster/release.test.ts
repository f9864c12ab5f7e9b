/**
 * What the chart does with the webhook, on a release of its own beside that of all scenarios: brought along and taken away
 * by upgrades, with its own certificates and with cert-manager's, and uninstalled.
 *
 * It watches the scenarios' namespace alone. There, both operators are asked about each write, so that the one which always
 * runs tells an invalid RayJob all the same.
 */
import { afterEach, expect, inject } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import { realClock } from "../../src/machinery/clock.ts";
import { isNotFound } from "../../src/machinery/kube/errors.ts";
import { secrets } from "../../src/machinery/kube/resources.ts";
import { type Certificate, issue } from "../../src/machinery/x509.ts";
import { run } from "../e2e/command.ts";
import { isReady, scenario, stopwatch, useCluster } from "./cluster.ts";
import { CHART, SOON_READY } from "./operator.ts";
import {
  askReplica,
  bundleOf,
  configurationOf,
  INVALID,
  type Judged,
  judgedMeanwhile,
  timesAsked,
  trust,
  verdict,
} from "./webhook.ts";

const cluster = useCluster("release");
const { namespace } = cluster;
const NAME = "second";
const PLACE = { namespace, webhook: `${NAME}-webhook` };

async function helm(...args: string[]): Promise<void> {
  const { helm: program } = inject("tools");
  const { code, stderr } = await run(program, ["--kubeconfig", cluster.kubeconfig, "--namespace", namespace, ...args]);
  expect(code, `helm ${args.join(" ")}: ${stderr}`).toBe(0);
}

/** As for whoever rules this namespace alone. */
function install(...values: string[]): Promise<void> {
  const own = [
    `fullnameOverride=${NAME}`,
    `serviceAccount.name=${NAME}`,
    "singleNamespaceInstall=true",
    "crds.apply=false",
  ];
  const set = [...own, SOON_READY, ...values].flatMap((value) => ["--set", value]);
  return helm("upgrade", "--install", NAME, CHART, "--wait", "--timeout", "3m", ...set);
}
const uninstall = () => helm("uninstall", NAME, "--ignore-not-found", "--wait");
afterEach(uninstall);

const replicas = (): Stored<Pod>[] =>
  cluster.pods.store
    .list(namespace)
    .filter((pod) => pod.metadata.labels?.["app.kubernetes.io/instance"] === NAME && isReady(pod));

const isConfigured = () =>
  configurationOf(cluster, PLACE).then(
    () => true,
    (error: unknown) => {
      if (isNotFound(error)) return false;
      throw error;
    },
  );

/** How often its replicas were asked, all together. */
const asked = async () => (await Promise.all(replicas().map(timesAsked))).reduce((sum, one) => sum + one.asked, 0);

/** The API server asks it, and believes the answer. */
async function isAsked(): Promise<void> {
  await expect.poll(() => verdict(cluster), { timeout: 60_000 }).toBe("201");
  const before = await asked();
  expect(await verdict(cluster)).toBe("201");
  expect(await asked()).toBeGreaterThan(before);
}

scenario(
  cluster,
  "the chart's webhook is switched on, upgraded, switched off and uninstalled: nobody is left without an answer while it is on, nor afterwards",
  async (seen) => {
    await install();
    expect(await isConfigured()).toBe(false);

    const since = stopwatch();
    await install("webhook.enabled=true", "replicas=2");
    await isAsked();
    seen(`switched on: asked, and believed, ${since()} later`);
    const trusted = await bundleOf(cluster, PLACE);
    expect(trusted).toHaveLength(1);
    const both = await cluster.until("two replicas", () => replicas().length === 2 && replicas());
    for (const replica of both) {
      expect(await askReplica(cluster, replica, PLACE, trusted)).toMatchObject({ allowed: true });
      expect(await askReplica(cluster, replica, PLACE, trusted, INVALID)).toMatchObject({ allowed: false });
    }

    const upgrade = await judgedMeanwhile(cluster, () =>
      install("webhook.enabled=true", "replicas=2", "reconcileConcurrency=2"),
    );
    seen(`upgraded: ${upgrade.times} RayJobs judged meanwhile, ${upgrade.wrong.length} without an answer`);
    expect(upgrade.wrong).toEqual([]);
    expect(await bundleOf(cluster, PLACE)).toEqual(trusted);
    await isAsked();

    const off = await judgedMeanwhile(cluster, () => install());
    goesAtOnce("switched off", off);
    expect(await isConfigured()).toBe(false);

    await install("webhook.enabled=true");
    await isAsked();
    goesAtOnce("uninstalled", await judgedMeanwhile(cluster, uninstall));
    expect(await isConfigured()).toBe(false);
    expect(await verdict(cluster)).toBe("201");

    /** Helm takes the Service away a moment before what says that it is to be asked. */
    function goesAtOnce(how: string, { times, wrong, rightAtLast }: Judged): void {
      seen(`${how}: ${times} RayJobs judged meanwhile, ${wrong.length} without an answer`);
      for (const one of wrong) expect(one).toContain(`service "${PLACE.webhook}" not found`);
      expect(rightAtLast).toBeGreaterThan(0);
    }
  },
);

scenario(cluster, "a certificate of cert-manager's serves, and its renewal too, without a restart", async (seen) => {
  const span = { from: realClock.now() - 60_000, until: realClock.now() + 86_400_000 };
  const authority = issue({ commonName: "an issuer's", use: "authority", ...span });
  const dnsNames = [`${PLACE.webhook}.${namespace}.svc`, `${PLACE.webhook}.${namespace}.svc.cluster.local`];
  const newPair = () => issue({ commonName: PLACE.webhook, use: "server", dnsNames, ...span }, authority);
  /** As cert-manager's Certificate named `mine` has it. */
  const secretOf = ({ certificate, key }: Certificate): KubeObject & { type: string; data: object } => ({
    metadata: {
      name: "mine",
      namespace,
      annotations: { "cert-manager.io/certificate-name": "mine", "cert-manager.io/issuer-name": "an-issuer" },
    },
    type: "kubernetes.io/tls",
    data: Object.fromEntries(
      Object.entries({ "tls.crt": certificate, "tls.key": key, "ca.crt": authority.certificate }).map(
        ([name, text]) => [name, Buffer.from(text).toString("base64")],
      ),
    ),
  });
  const first = newPair();
  await cluster.client.create(secrets, secretOf(first));
  const from = "cert-manager.io/inject-ca-from";
  await install(
    "webhook.enabled=true",
    "webhook.secretName=mine",
    `webhook.annotations.${from.replaceAll(".", "\\.")}=${namespace}/mine`,
  );
  // What cert-manager's injector does where it sees that annotation.
  const { metadata } = await configurationOf(cluster, PLACE);
  expect(metadata.annotations?.[from]).toBe(`${namespace}/mine`);
  await trust(cluster, PLACE, [authority.certificate]);
  await isAsked();
  const [pod] = replicas();
  const shown = async () => (await askReplica(cluster, pod!, PLACE, [authority.certificate])).certificate;
  const one = (pem: string) => pem.replace(/\s/g, "");
  expect(one(await shown())).toBe(one(first.certificate));

  const renewed = newPair();
  const since = stopwatch();
  const { times, wrong } = await judgedMeanwhile(cluster, async () => {
    await cluster.client.update(secrets, secretOf(renewed));
    // The kubelet looks after a Pod's Secrets about once a minute, and when the Pod changes.
    await cluster.kubectlSays(["annotate", "pod", pod!.metadata.name, "example.com/look=now"]);
    await expect.poll(async () => one(await shown()), { timeout: 150_000 }).toBe(one(renewed.certificate));
  });
  seen(
    `the renewed one is shown ${since()} after it was stored; ${times} RayJobs judged meanwhile, ${wrong.length} without an answer`,
  );
  expect(wrong).toEqual([]);
  const now = cluster.pods.store.get(namespace, pod!.metadata.name)!;
  expect([now.metadata.uid, now.status?.containerStatuses?.[0]?.restartCount]).toEqual([pod!.metadata.uid, 0]);
  expect(await bundleOf(cluster, PLACE)).toEqual([authority.certificate]);
  await isAsked();
});
