/**
 * One Helm command makes of a release of KubeRay's one of Raykeeper's, and another one goes back. KubeRay's chart is played
 * by one with the same objects, names, labels and selector; what its operator's jobs go through is test/takeover's matter.
 */
import { execFile } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { stringify } from "yaml";
import { HttpTransport } from "../../src/machinery/kube/http.ts";
import { loadKubeconfig } from "../../src/machinery/kube/kubeconfig.ts";
import { CHART } from "../support/helm.ts";
import { temporaryFolder } from "./controlPlane.ts";
import { grantWhatTheManifestGrants } from "./identity.ts";

const helm = inject("helm");
const whyNot = helm ? "" : " (SKIPPED: helm is built from source, and cannot be built here)";
const NAMESPACE = "takes-over";
const NAME = "kuberay-operator";
const RBAC = "rbac.authorization.k8s.io";

function kuberayChart(folder: string): string {
  const labels = { "app.kubernetes.io/name": NAME, "app.kubernetes.io/instance": NAME };
  const metadata = (name: string) => ({ name, labels: { ...labels, "helm.sh/chart": "kuberay-operator-1.7.0" } });
  const rules = [{ apiGroups: [""], resources: ["secrets"], verbs: ["get", "list"] }];
  const role = (kind: string, name: string) => ({ apiVersion: `${RBAC}/v1`, kind, metadata: metadata(name), rules });
  const binding = (kind: string, name: string) => ({
    apiVersion: `${RBAC}/v1`,
    kind: `${kind}Binding`,
    metadata: metadata(name),
    roleRef: { apiGroup: RBAC, kind, name },
    subjects: [{ kind: "ServiceAccount", name: NAME, namespace: NAMESPACE }],
  });
  const people = ["rayjob", "rayservice", "raycronjob"].flatMap((kind) => [
    `${kind}-editor-role`,
    `${kind}-viewer-role`,
  ]);
  const objects = [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: metadata(NAME) },
    role("ClusterRole", NAME),
    binding("ClusterRole", NAME),
    role("Role", `${NAME}-leader-election`),
    binding("Role", `${NAME}-leader-election`),
    ...people.map((name) => role("ClusterRole", name)),
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: metadata(NAME),
      spec: { selector: labels, ports: [{ name: "http", port: 8080, targetPort: "http" }] },
    },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: metadata(NAME),
      spec: {
        replicas: 1,
        strategy: { type: "Recreate" },
        selector: { matchLabels: labels },
        template: {
          metadata: { labels: { ...labels, "app.kubernetes.io/component": NAME } },
          spec: {
            serviceAccountName: NAME,
            containers: [
              {
                name: NAME,
                image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}",
                command: ["/manager"],
                args: ["--enable-metrics=true"],
                ports: [{ name: "http", containerPort: 8080 }],
              },
            ],
          },
        },
      },
    },
  ];
  const chart = join(folder, NAME);
  mkdirSync(join(chart, "templates"), { recursive: true });
  const values = { image: { repository: "quay.io/kuberay/operator", tag: "v1.7.0" }, reconcileConcurrency: 1 };
  writeFileSync(join(chart, "Chart.yaml"), stringify({ apiVersion: "v2", name: NAME, version: "1.7.0" }));
  writeFileSync(join(chart, "values.yaml"), stringify(values));
  writeFileSync(join(chart, "templates", "all.yaml"), objects.map((object) => JSON.stringify(object)).join("\n---\n"));
  return chart;
}

describe.skipIf(!helm)(`a release of KubeRay's${whyNot}`, () => {
  const transport = new HttpTransport(loadKubeconfig(inject("controlPlane")));
  let folder: string;
  const run = async (...args: string[]) => {
    const env = { ...process.env, KUBECONFIG: inject("controlPlane"), HELM_CACHE_HOME: folder };
    await promisify(execFile)(join(helm, "helm"), [...args, "--namespace", NAMESPACE], { env });
  };
  const get = async (path: string) => (await transport.request({ method: "GET", path })).body;
  const operator = async () => {
    type Deployment = { spec: { template: { spec: { containers: { image: string; args: string[] }[] } } } };
    const path = `/apis/apps/v1/namespaces/${NAMESPACE}/deployments/${NAME}`;
    const { containers } = ((await get(path)) as Deployment).spec.template.spec;
    return containers[0]!;
  };
  const rolesForPeople = async () => {
    type Roles = { items: { metadata: { name: string } }[] };
    const { items } = (await get(`/apis/${RBAC}/v1/clusterroles`)) as Roles;
    return items.map(({ metadata }) => metadata.name).filter((name) => /^ray.*-role$/.test(name));
  };

  beforeAll(async () => {
    folder = await temporaryFolder("upgrade");
    await transport.request({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: NAMESPACE } } });
    // The tests' own operators have their rights under these names, and get them back.
    for (const kind of ["clusterroles", "clusterrolebindings"])
      for (const name of [NAME, "rayjob-editor-role", "rayjob-viewer-role"])
        await transport.request({ method: "DELETE", path: `/apis/${RBAC}/v1/${kind}/${name}` });
    await run("install", NAME, kuberayChart(folder), "--set", "reconcileConcurrency=4");
  });
  afterAll(async () => {
    await run("uninstall", NAME);
    await grantWhatTheManifestGrants(inject("controlPlane"));
    await transport.request({ method: "DELETE", path: `/api/v1/namespaces/${NAMESPACE}` });
    await transport.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it("does not become one that runs KubeRay's image with our chart: --reuse-values is refused, with the remedy", async () => {
    const upgrade = run("upgrade", NAME, CHART, "--reuse-values", "--set", "crds.apply=false");
    await expect(upgrade).rejects.toThrow(
      /Upgrade with --reset-then-reuse-values instead of --reuse-values\.\n.*is KubeRay's image/,
    );
    expect(await operator()).toMatchObject({ image: "quay.io/kuberay/operator:v1.7.0" });
  });

  it("becomes one of ours with one command, with what its user had chosen, and goes back with another", async () => {
    // No kubelet is here to run the Job with the CRDs.
    await run("upgrade", NAME, CHART, "--reset-then-reuse-values", "--set", "crds.apply=false");
    expect(await operator()).toMatchObject({ image: expect.stringMatching(/raykeeper\/raykeeper:\d/) });
    expect((await operator()).args).toContain("--reconcile-concurrency=4");
    expect(await rolesForPeople()).toEqual(["rayjob-editor-role", "rayjob-viewer-role"]);

    await run("rollback", NAME, "1");
    expect(await operator()).toMatchObject({
      image: "quay.io/kuberay/operator:v1.7.0",
      args: ["--enable-metrics=true"],
    });
    expect(await rolesForPeople()).toHaveLength(6);
  });
});
