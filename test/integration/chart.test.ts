/**
 * The chart as Helm renders it: as it was when somebody last looked at it (test/integration/chart/*.golden.yaml, renewed by
 * `npm run integration -- chart -u`), as a real API server takes it, and as the kustomize bases and the plain manifest have it.
 */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, inject, it } from "vitest";
import { SUBMITTER_CONTAINER } from "../../src/api/labels.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { configFrom } from "../../src/config.ts";
import { HttpTransport } from "../../src/machinery/kube/http.ts";
import { loadKubeconfig } from "../../src/machinery/kube/kubeconfig.ts";
import { WEBHOOK } from "../../src/permissions.ts";
import { VERSION } from "../../src/shipped.ts";
import { webhookConfiguration } from "../../src/webhook/configuration.ts";
import { objectsOf, type Rendering, renderChart, renderKustomize, renderNotes } from "../support/helm.ts";

const folder = fileURLToPath(new URL("./chart/", import.meta.url));
const cases = readdirSync(folder)
  .filter((file) => file.endsWith(".values.yaml"))
  .map((file) => file.replace(".values.yaml", ""));
const valuesFile = (name: string) => `${folder}${name}.values.yaml`;

const helm = inject("helm");
const whyNot = helm ? "" : " (SKIPPED: helm is built from source, and cannot be built here)";
const render = (rendering?: Rendering) => renderChart(helm, rendering);

type Told = KubeObject & {
  readonly kind: string;
  readonly rules?: unknown;
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: { readonly template?: { readonly spec?: { readonly containers: readonly Container[] } } };
};
interface Container {
  readonly args: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
}
const find = (objects: readonly KubeObject[], kind: string) =>
  objects.filter((object) => object.kind === kind) as Told[];
const operatorOf = (objects: readonly KubeObject[]) =>
  find(objects, "Deployment")[0]!.spec!.template!.spec!.containers[0]!;

const gate = (name: string, enabled: boolean) => [`featureGates[0].name=${name}`, `featureGates[0].enabled=${enabled}`];

describe.skipIf(!helm)(`the chart${whyNot}`, () => {
  it.each(cases)("renders %s as before", async (name) => {
    const rendered = (await render({ valuesFile: valuesFile(name) })).replaceAll(VERSION, "VERSION");
    await expect(rendered).toMatchFileSnapshot(`${folder}${name}.golden.yaml`);
  });

  it.each(cases)("tells the operator with %s what it understands", async (name) => {
    const objects = objectsOf(await render({ valuesFile: valuesFile(name) }));
    const { args, env = [] } = operatorOf(objects);
    const flags = Object.fromEntries(
      args.map((arg) => {
        const [flag = "", ...value] = arg.slice(2).split("=");
        return [flag, value.join("=")];
      }),
    );
    const { config, ...others } = flags;
    const file = config && find(objects, "ConfigMap")[0]!.data!["config.yaml"];
    const variables = Object.fromEntries(env.map(({ name: variable, value }) => [variable, value]));
    // It throws what the operator would refuse to start with.
    expect(configFrom({ flags: others, file, env: variables }).warnings).toEqual([]);
  });

  it("takes a values file of KubeRay's, and makes of it what it makes of none", async () => {
    expect(await render({ valuesFile: `${folder}kuberay.yaml` })).toBe(await render());
  });

  it("keeps the selector and the names of KubeRay's chart, so that its release can be upgraded in place", async () => {
    const objects = objectsOf(await render({ release: "any" }));
    expect(find(objects, "Deployment")[0]).toMatchObject({
      metadata: { name: "kuberay-operator" },
      spec: {
        strategy: { type: "Recreate" },
        selector: {
          matchLabels: { "app.kubernetes.io/name": "kuberay-operator", "app.kubernetes.io/instance": "any" },
        },
      },
    });
  });

  it.each([
    ["a value that does not exist", ["replica=2"], "additional properties 'replica' not allowed"],
    ["a value of the wrong kind", ["replicas=two"], "at '/replicas': got string, want integer"],
    ["a rate of requests that is none", ["kubeClient.qps=-1"], "at '/kubeClient/qps'"],
    ["a namespace twice", ["watchNamespace={team-a,team-a}"], "at '/watchNamespace'"],
    ["KubeRay's image", ["image.repository=quay.io/kuberay/operator"], "is KubeRay's image. Leave"],
    ["a tag of KubeRay's image", ["image.tag=v1.4.2"], "Leave image.tag out, or where"],
    ["replicas that would all act", ["replicas=2", "leaderElectionEnabled=false"], "need leaderElectionEnabled"],
    ["a batch scheduler", ["batchScheduler.name=volcano"], "batch schedulers are not supported yet; remove it"],
    ["the old way to choose one", ["batchScheduler.enabled=true"], "batch schedulers are not supported yet; remove it"],
    [
      "a feature gate that gates nothing yet",
      gate("RayCronJob", true),
      "RayCronJob is not supported yet; leave the gate off",
    ],
    ["a feature gate that does not exist", gate("Warp", false), "there is no feature gate Warp"],
    ["to switch off what all rests on", gate("RayClusterStatusConditions", false), "cannot be switched off"],
    [
      "a variable of what is not built",
      ["env[0].name=USE_INGRESS_ON_OPENSHIFT", "env[0].value=true"],
      "ingresses are not supported yet; unset it",
    ],
    [
      "a variable whose value is no text",
      ["env[0].name=CLUSTER_DOMAIN", "env[0].value=7"],
      "a variable's value is a text, and 7 is none. Write it in quotes",
    ],
    [
      "a default for Pods without the file that would carry it",
      ["configuration.defaultPodLabels.a=b"],
      "Set that to true",
    ],
    [
      "a webhook that nobody would ask",
      ["env[0].name=ENABLE_WEBHOOKS", "env[0].value=true"],
      "Set webhook.enabled instead",
    ],
    [
      "a webhook that listens where nobody asks",
      ["webhook.enabled=true", "env[0].name=RAYKEEPER_WEBHOOK_ADDRESS", "env[0].value=:8443"],
      'must end in :9443, where the chart\'s Service looks for the webhook, and ":8443" does not',
    ],
    [
      "an address of the webhook with which the operator would not start",
      ["webhook.enabled=true", "env[0].name=RAYKEEPER_WEBHOOK_ADDRESS", "env[0].value=::9443"],
      '"::9443" does not',
    ],
    [
      "a folder where no certificate is mounted",
      ["webhook.enabled=true", "env[0].name=RAYKEEPER_WEBHOOK_CERT_DIR", "env[0].value=/certs"],
      "Set webhook.secretName instead",
    ],
    [
      "a feature of a later KubeRay",
      ["nodeEventForwarder.enabled=true"],
      "nodeEventForwarder.enabled is not supported yet",
    ],
  ])("refuses %s, in words", async (_, set, words) => {
    await expect(render({ set })).rejects.toThrow(words);
  });

  it.each(["[::]:9443", "0.0.0.0:9443", ":9443"])(
    "takes a webhook's address with the port that is asked: %s",
    async (value) => {
      const set = ["webhook.enabled=true", "env[0].name=RAYKEEPER_WEBHOOK_ADDRESS", `env[0].value=${value}`];
      const { env } = operatorOf(objectsOf(await render({ set })));
      expect(env).toContainEqual({ name: "RAYKEEPER_WEBHOOK_ADDRESS", value });
    },
  );

  it.each([
    ["RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "5m"],
    ["RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "0"],
    ["RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS", "-1"],
  ])("refuses a variable in the words of the operator that would not start with it: %s=%s", async (name, value) => {
    let words = "";
    try {
      configFrom({ env: { [name]: value } });
    } catch (error) {
      words = (error as Error).message;
    }
    expect(words).toContain(name);
    const env = JSON.stringify([{ name, value }]);
    await expect(render({ setJson: [`env=${env}`] })).rejects.toThrow(`env: ${words}`);
  });

  it.each<[string, object, string]>([
    ["a label of its own", { defaultPodLabels: { "ray.io/cluster": "x" } }, 'without "ray.io/cluster", which'],
    ["a label that cannot be", { defaultPodLabels: { team: "a b" } }, "/defaultPodLabels/team': 'a b' does not match"],
    ["an annotation of its own", { defaultPodAnnotations: { "raykeeper.dev/attempt": "1" } }, 'without "raykeeper.dev'],
    ["a sidecar without an image", { headSidecarContainers: [{ name: "x" }] }, "missing property 'image'"],
    [
      "its submitter's name",
      { workerSidecarContainers: [{ name: SUBMITTER_CONTAINER, image: "i" }] },
      "operator's own",
    ],
    ["a name twice", { defaultContainerEnvs: [{ name: "A" }, { name: "A" }] }, "two of the name A"],
    ["a number for a text", { defaultContainerEnvs: [{ name: "A", value: 7 }] }, "got number, want string"],
    ["two values", { defaultContainerEnvs: [{ name: "A", value: "", valueFrom: { fieldRef: {} } }] }, "Leave one out"],
  ])("refuses a configuration file that the operator would not start with: %s", async (_, fields, words) => {
    const file = JSON.stringify({ apiVersion: "config.ray.io/v1alpha1", kind: "Configuration", ...fields });
    expect(() => configFrom({ file })).toThrow(`The configuration file's ${Object.keys(fields)[0]} must be`);
    const setJson = [`configuration=${JSON.stringify({ enabled: true, ...fields })}`];
    await expect(render({ setJson })).rejects.toThrow(words);
  });

  it("takes a variable that the operator can read", async () => {
    const env = [
      { name: "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", value: "007" },
      { name: "RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS", value: "" },
      { name: "CLUSTER_DOMAIN", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
    ];
    const objects = objectsOf(await render({ setJson: [`env=${JSON.stringify(env)}`] }));
    expect(operatorOf(objects).env).toEqual(env);
  });

  it.each([
    ...["image", "serviceAccount", "crds", "webhook", "logging", "configuration", "metrics", "kubeClient", "service"],
    ...["livenessProbe", "readinessProbe", "metrics.serviceMonitor", "image.repository", "service.port"],
    ...["kubeClient.qps", "leaderElectionEnabled", "reconcileConcurrency", "operatorCommand", "webhook.enabled"],
  ])("refuses null for %s by its name, and not with an error of a template", async (path) => {
    await expect(render({ set: [`${path}=null`] })).rejects.toThrow(
      `\n  ${path} is null, and the chart cannot do without.`,
    );
  });

  it("takes null as Helm's users mean it elsewhere: the chart's default is taken away", async () => {
    const set = ["resources=null", "securityContext=null", "service.type=null", "replicas=null", "image.tag=null"];
    const objects = objectsOf(await render({ set }));
    expect(operatorOf(objects)).not.toHaveProperty("resources");
  });

  it("knows the values of another chart, as --reuse-values brings them", async () => {
    await expect(render({ set: ["crds=null", "webhook=null"] })).rejects.toThrow("--reset-then-reuse-values");
  });

  it("says that a webhook fails closed for which nobody has rights", async () => {
    const notes = (...set: string[]) => renderNotes(helm, inject("controlPlane"), { set });
    const closed = "ValidatingWebhookConfiguration kuberay-operator-webhook.ray, no RayJob and no RayCluster";
    expect(await notes("webhook.enabled=true", "rbacEnable=false")).toContain(closed);
    expect(await notes("rbacEnable=false")).toContain("No role is rendered");
    expect(await notes("rbacEnable=false")).not.toContain(closed);
    expect(await notes("webhook.enabled=true", "rbacEnable=false", "webhook.secretName=mine")).not.toContain(closed);
  });

  it("says all that is wrong at once", async () => {
    const set = ["image.tag=nightly", "batchScheduler.enabled=true"];
    await expect(render({ set })).rejects.toThrow(/image\.tag.*\n.*batchScheduler/);
  });

  it("agrees with kustomize and the plain manifest on what the operator may do, and on its Pod", async () => {
    const chart = objectsOf(await render({ namespace: "default" }));
    const kustomize = objectsOf(await renderKustomize(inject("programs"), "default"));
    const rules = (objects: readonly KubeObject[], kind: string, name: string) =>
      find(objects, kind).find(({ metadata }) => metadata.name === name)?.rules;
    for (const [kind, name] of [
      ["ClusterRole", "kuberay-operator"],
      ["ClusterRole", "rayjob-editor-role"],
      ["ClusterRole", "rayjob-viewer-role"],
      ["Role", "kuberay-operator-leader-election"],
    ] as const) {
      expect(rules(kustomize, kind, name), `${kind} ${name}`).toEqual(rules(chart, kind, name));
      expect(rules(kustomize, kind, name), `${kind} ${name}`).toBeDefined();
    }
    // Flags at their defaults are told by the chart, and left out by the others.
    const [{ args: _, ...ofChart }, { args: __, ...ofKustomize }] = [operatorOf(chart), operatorOf(kustomize)];
    expect(ofKustomize).toEqual(ofChart);
  });
});

describe("kustomize", () => {
  it("makes of the base with webhooks KubeRay's: a namespace of its own, and an operator that serves them", async () => {
    const objects = objectsOf(await renderKustomize(inject("programs"), "default-with-webhooks"));
    const placed = objects.flatMap(({ metadata }) => metadata.namespace ?? []);
    expect(new Set(placed)).toEqual(new Set(["ray-system"]));
    expect(operatorOf(objects).env).toEqual([{ name: "ENABLE_WEBHOOKS", value: "true" }]);
    const [configuration] = find(objects, "ValidatingWebhookConfiguration");
    const { webhooks, metadata } = webhookConfiguration(WEBHOOK, "ray-system", "kuberay-operator");
    expect(configuration).toMatchObject({ webhooks, metadata });
    const bound = find(objects, "ClusterRole").find((one) => one.metadata.name === WEBHOOK);
    expect(bound?.rules).toMatchObject([{ resourceNames: [metadata.name] }]);
  });

  it("makes of the default base what the plain manifest has", async () => {
    const plain = readFileSync(fileURLToPath(new URL("../../deploy/raykeeper.yaml", import.meta.url)), "utf8");
    const byName = (text: string) => new Map(objectsOf(text).map((one) => [`${one.kind} ${one.metadata.name}`, one]));
    expect(byName(await renderKustomize(inject("programs"), "default"))).toEqual(byName(plain));
  });

  it("makes of the base for one namespace an operator that watches its own, with nothing cluster-wide", async () => {
    const objects = objectsOf(await renderKustomize(inject("programs"), "one-namespace"));
    expect(objects.map(({ kind }) => kind).filter((kind) => kind?.startsWith("Cluster"))).toEqual([]);
    const { args, env } = operatorOf(objects);
    expect(args).toContain("--watch-namespace=$(POD_NAMESPACE)");
    expect(env).toMatchObject([{ name: "POD_NAMESPACE" }]);
  });
});

describe("a real API server takes it without a word of warning:", () => {
  const transport = new HttpTransport(loadKubeconfig(inject("controlPlane")));
  afterAll(() => transport.close());

  /** Applies on the server's side, without keeping anything; answers with what was refused or warned of. */
  async function complaints(objects: readonly KubeObject[]): Promise<string[]> {
    const said: string[] = [];
    for (const object of objects) {
      const name = `${object.kind} ${object.metadata.namespace ?? ""}/${object.metadata.name}`;
      const answer = await transport.request({
        method: "PATCH",
        path: await pathOf(object),
        query: { fieldManager: "tests", force: "true", dryRun: "All", fieldValidation: "Strict" },
        headers: { "content-type": "application/apply-patch+yaml" },
        body: object,
      });
      if (answer.status !== 200 && answer.status !== 201) said.push(`${name}: ${JSON.stringify(answer.body)}`);
      if (answer.headers["warning"] !== undefined) said.push(`${name}: ${answer.headers["warning"]}`);
    }
    return said;
  }

  /** As the server itself tells where the kind lives. */
  async function pathOf(object: KubeObject): Promise<string> {
    const base = object.apiVersion === "v1" ? "/api/v1" : `/apis/${object.apiVersion}`;
    const { body } = await transport.request({ method: "GET", path: base });
    const { resources } = body as { resources: { kind: string; name: string; namespaced: boolean }[] };
    const resource = resources.find(({ kind, name }) => kind === object.kind && !name.includes("/"))!;
    const { namespace, name } = object.metadata;
    if (resource.namespaced && !namespace) throw new Error(`${object.kind} ${name} has no namespace`);
    return `${base}${resource.namespaced ? `/namespaces/${namespace}` : ""}/${resource.name}/${name}`;
  }

  async function namespaces(objects: readonly KubeObject[]): Promise<void> {
    for (const name of new Set(objects.map(({ metadata }) => metadata.namespace))) {
      if (!name) continue;
      // Warns of what the strictest of the Pod security standards forbids, too.
      const metadata = { name, labels: { "pod-security.kubernetes.io/warn": "restricted" } };
      await transport.request({ method: "POST", path: "/api/v1/namespaces", body: { metadata } });
    }
  }

  it.skipIf(!helm).each(cases)(`the chart with %s${whyNot}`, async (name) => {
    const objects = objectsOf(await render({ valuesFile: valuesFile(name) }));
    await namespaces(objects);
    expect(await complaints(objects)).toEqual([]);
  });

  it.each(["default", "one-namespace", "default-with-webhooks"])("kustomize's base %s", async (base) => {
    const objects = objectsOf(await renderKustomize(inject("programs"), base));
    await namespaces(objects);
    expect(await complaints(objects)).toEqual([]);
  });
});
