/**
 * The operator may do what it does, and no more. (That nothing is denied to it holds in every test here: a world that is
 * closed throws what was. This is where each right is seen used.)
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { Job } from "../../src/api/kubernetes.ts";
import type { KubeObject, Stored } from "../../src/api/object.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import { type Clock, realClock } from "../../src/machinery/clock.ts";
import { KubeClient } from "../../src/machinery/kube/client.ts";
import { HttpTransport } from "../../src/machinery/kube/http.ts";
import { loadKubeconfig } from "../../src/machinery/kube/kubeconfig.ts";
import {
  validatingWebhookConfigurations as configurations,
  events,
  jobs,
  namespaces,
  rayClusters,
  rayJobs,
  resourcePath,
  secrets,
  services,
} from "../../src/machinery/kube/resources.ts";
import { silent } from "../../src/machinery/logger.ts";
import { leaderElectionPermissions, operatorPermissions } from "../../src/permissions.ts";
import { proxyRayTransport } from "../../src/ray/proxy.ts";
import { CertificateKeeper } from "../../src/webhook/keeper.ts";
import { fails, runsForEver } from "../sim/fakeRay.ts";
import { diligent } from "../sim/fakeSubmitter.ts";
import { objectsOf, renderChart } from "../support/helm.ts";
import { rayJob } from "../support/manifests.ts";
import { temporaryFolder } from "./controlPlane.ts";
import { actAs, grant } from "./identity.ts";
import { type Stage, swift, World } from "./world.ts";

const helm = inject("helm");
const whyNot = helm ? "" : " (SKIPPED: helm is built from source, and cannot be built here)";
const long = { ...runsForEver, pending: 200 };

describe("the operator, with the rights that the plain manifest gives it,", () => {
  let world: World;
  beforeAll(async () => {
    const env = {
      DELETE_RAYJOB_CR_AFTER_JOB_FINISHES: "true",
      RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS: "2",
    };
    world = await World.open({ env });
  });
  afterAll(() => world.close());

  it.concurrent("tries a job again when nothing of its first try is left, then deletes the RayJob", async () => {
    const stage = await world.stage({ jobs: [fails(800, "exit code 7")] });
    await stage.create({ backoffLimit: 1, retryStrategy: { type: "BlockingRecreate" } });
    await stage.until("its second try", () => stage.submissions.length === 2);
    await stage.nothingLeft();
    stage.judge();
  });

  it.concurrent("suspends a job that runs, and resumes it", async () => {
    const stage = await world.stage({ jobs: [long] });
    await stage.create();
    await stage.running();
    await stage.change({ suspend: true });
    await stage.phase("Suspended");
    await stage.change({ suspend: false });
    await stage.nothingLeft();
    stage.judge();
  });

  it.concurrent("replaces a worker that failed, and takes down a RayCluster that is suspended", async () => {
    const stage = await world.stage();
    await stage.share();
    const worker = stage.pods.find(({ metadata }) => metadata.labels?.["ray.io/node-type"] === "worker")!;
    await stage.kubelet.end(worker.metadata.uid, { exitCode: 1 });
    await stage.until("another worker", () =>
      stage.pods.some(
        ({ metadata }) => metadata.uid !== worker.metadata.uid && metadata.labels?.["ray.io/node-type"] === "worker",
      ),
    );
    await stage.client.patch<RayCluster>(rayClusters, stage.namespace, "shared", { spec: { suspend: true } });
    await stage.until("only the RayCluster to be left", () => stage.pods.length + stage.of(services).length === 0);
  });

  it.concurrent("says why a volume cannot be mounted, and lets go of a job whose head never ran", async () => {
    const stage = await world.stage({ pod: () => ({ ...swift, start: Number.POSITIVE_INFINITY }) });
    await stage.create({ submissionMode: "SidecarMode" });
    const head = await stage.until("the head to have a node", () =>
      stage.head?.spec?.nodeName ? stage.head : undefined,
    );
    await stage.client.create(events, {
      metadata: { name: "no-volume", namespace: stage.namespace },
      type: "Warning",
      reason: "FailedMount",
      action: "Mount",
      note: 'MountVolume.SetUp failed for volume "data": secret "data" not found',
      eventTime: new Date().toISOString().replace("Z", "000Z"),
      reportingController: "kubelet",
      reportingInstance: "node-1",
      regarding: {
        apiVersion: "v1",
        kind: "Pod",
        namespace: stage.namespace,
        name: head.metadata.name,
        uid: head.metadata.uid,
      },
    } as KubeObject);
    await stage.status("the volume to be named", ({ conditions = [] }) =>
      conditions.some(({ type, message }) => type === "Started" && message?.includes('secret "data" not found')),
    );
    await stage.delete();
    await stage.nothingLeft();
    stage.judge();
  });

  it.concurrent("makes the Secret that a RayCluster's token is in, and reads it to ask its Ray", async () => {
    const stage = await world.stage();
    const { rayClusterSpec } = rayJob().spec;
    await stage.create({ rayClusterSpec: { ...rayClusterSpec!, authOptions: { mode: "token" } } });
    await stage.until("a Ray that asks for a token", () => stage.ray?.token !== undefined);
    await stage.phase("Complete");
    await stage.nothingLeft();
    expect(stage.submissions).toHaveLength(1);
    stage.judge();
  });

  it.concurrent("gives a submitter that outlives its job no further try", async () => {
    const stage = await world.stage({ submitter: () => ({ ...diligent, hangs: true }) });
    await stage.create({ ttlSecondsAfterFinished: 600 });
    await stage.phase("Complete");
    const isLastTry = (job: Stored) => (job as Job & Stored).spec?.backoffLimit === 0;
    await stage.until("its last try", () => stage.of(jobs).some(isLastTry));
    stage.judge();
  });

  // Behind them, when all has been asked.
  it("uses every right that it has, save those that nobody can see used", () => {
    const used = new Set(world.requests.map(({ verb, group, resource }) => `${verb} ${group}/${resource}`));
    const unused = [...operatorPermissions, ...leaderElectionPermissions]
      .filter(({ when, unseen }) => when === undefined && unseen === undefined)
      .flatMap(({ group, resource, verbs }) => verbs.map((verb) => `${verb} ${group}/${resource}`))
      .filter((right) => !used.has(right));
    expect(unused).toEqual([]);
  });
});

describe.skipIf(!helm)(`the chart's identity${whyNot}`, () => {
  let world: World;
  let folder: string;
  beforeAll(async () => {
    world = await World.open({ operators: 0 });
    folder = await temporaryFolder("identity");
  });
  afterAll(async () => {
    await world.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const install = async (namespace: string, set: readonly string[]) => {
    const objects = objectsOf(await renderChart(helm, { namespace, set }));
    await grant(inject("controlPlane"), objects);
    return objects;
  };
  const runs = async (stage: Stage) => {
    await stage.create({ backoffLimit: 1, retryStrategy: { type: "BlockingRecreate" } });
    await stage.phase("Complete");
    await stage.released();
    expect(stage.submissions).toHaveLength(2);
    stage.judge();
  };

  it("for two namespaces suffices there, and touches nothing anywhere else", async () => {
    const [one, other, foreign] = await Promise.all(
      [0, 1, 2].map(() => world.stage({ jobs: [fails(800, "exit code 7")] })),
    );
    const set = ["singleNamespaceInstall=true", `watchNamespace={${one!.namespace},${other!.namespace}}`];
    const objects = await install(one!.namespace, set);
    expect(objects.filter(({ kind, metadata }) => kind?.startsWith("Cluster") && !isHook(metadata))).toEqual([]);
    const kubeconfig = await actAs(
      inject("controlPlane"),
      one!.namespace,
      "kuberay-operator",
      join(folder, "two-namespaces"),
    );
    await foreign!.create();
    world.startOperator({ kubeconfig, flags: [`--watch-namespace=${one!.namespace},${other!.namespace}`] });
    await Promise.all([one!, other!].map(runs));
    expect(foreign!.job?.status).toBeUndefined();
    await foreign!.delete();
    await world.killOperator();
  });

  it("reaches Ray through the API server where that was chosen, and not where it was not", async () => {
    const kinds = { proxied: true, direct: false };
    for (const [name, chosen] of Object.entries(kinds)) {
      const { metadata } = await world.client.create(namespaces, {
        metadata: { generateName: `${name}-` },
      } as KubeObject);
      const namespace = metadata.name;
      await install(namespace, ["singleNamespaceInstall=true", `useKubernetesProxy=${chosen}`]);
      await world.client.create(services, {
        metadata: { name: "head", namespace },
        spec: { ports: [{ name: "dashboard", port: 8265 }] },
      } as KubeObject);
      const kubeconfig = await actAs(inject("controlPlane"), namespace, "kuberay-operator", join(folder, name));
      const transport = new HttpTransport(loadKubeconfig(kubeconfig));
      const ray = proxyRayTransport(transport);
      for (const method of ["GET", "POST", "DELETE"] as const) {
        const dashboard = `head.${namespace}.svc.cluster.local:8265`;
        const { status } = await ray.request({ method, dashboard, path: "/api/jobs/", timeout: 30_000 });
        // Nobody is behind the Service: who is allowed to ask learns that.
        expect(status === 403, `${name} ${method}: ${status}`).toBe(!chosen);
      }
      await transport.close();
      await world.client.delete(namespaces, undefined, namespace);
    }
    // Those were ours, not the operator's.
    world.forgive((request) => request.resource === "services/proxy");
  });
});

describe.skipIf(!helm)(`the chart's identity, with the webhook,${whyNot}`, () => {
  it("keeps the webhook's certificates, and reads no other Secret and no other configuration", async () => {
    const admin = new HttpTransport(loadKubeconfig(inject("controlPlane")));
    const folder = await temporaryFolder("webhook");
    const namespace = "keeps-certificates";
    const name = "kuberay-operator-webhook";
    await admin.request({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: namespace } } });
    // In the namespaces that it watches it may get Secrets, for Rays that ask for a token.
    await admin.request({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: "watched" } } });
    const set = ["singleNamespaceInstall=true", "watchNamespace={watched}", "webhook.enabled=true"];
    const objects = objectsOf(await renderChart(helm, { namespace, set }));
    await grant(inject("controlPlane"), objects);
    // As it is installed, but asked about nothing: it would be asked about all other tests' objects, too.
    const installed = objects.find(({ kind }) => kind === configurations.kind) as KubeObject & { webhooks: object[] };
    const webhooks = installed.webhooks.map((webhook) => ({ ...webhook, rules: [] }));
    const path = resourcePath(configurations);
    const made = await admin.request({ method: "POST", path, body: { ...installed, webhooks } });
    expect(made.status, JSON.stringify(made.body)).toBe(201);

    const transport = new HttpTransport(
      loadKubeconfig(await actAs(inject("controlPlane"), namespace, "kuberay-operator", join(folder, "operator"))),
    );
    const client = new KubeClient(transport);
    const options = { client, log: silent, namespace, name, domain: "cluster.local" };
    // It is told after it is shown, so the second look finds all done.
    const enough = new AbortController();
    let looks = 0;
    const clock: Clock = {
      ...realClock,
      now: () => realClock.now(),
      after(delay, wake) {
        if (++looks === 1) enough.abort();
        return realClock.after(delay, wake);
      },
    };
    await new CertificateKeeper({ ...options, clock }).keep(() => {}, enough.signal);
    const secret = await client.get(secrets, namespace, name);
    await client.update(secrets, secret);
    type Told = KubeObject & { webhooks: { clientConfig: { caBundle?: string } }[] };
    const told = await client.get<Told>(configurations, undefined, `${name}.${namespace}`);
    expect(told.webhooks.every(({ clientConfig }) => clientConfig.caBundle)).toBe(true);
    await expect(client.get(secrets, namespace, "another")).rejects.toThrow(/forbidden/);
    await expect(client.get(configurations, undefined, "another")).rejects.toThrow(/forbidden/);

    await transport.close();
    await admin.request({ method: "DELETE", path: `${path}/${name}.${namespace}` });
    await admin.request({ method: "DELETE", path: `/api/v1/namespaces/${namespace}` });
    await admin.request({ method: "DELETE", path: "/api/v1/namespaces/watched" });
    await admin.close();
    rmSync(folder, { recursive: true, force: true });
  });
});

const isHook = ({ annotations }: KubeObject["metadata"]) => annotations?.["helm.sh/hook"] !== undefined;

describe.skipIf(!helm)(`the chart's roles for people${whyNot}`, () => {
  it("let an editor make a RayJob, and a viewer only see it", async () => {
    const namespace = "people";
    const objects = objectsOf(await renderChart(helm, { namespace }));
    const admin = new HttpTransport(loadKubeconfig(inject("controlPlane")));
    const folder = await temporaryFolder("people");
    await admin.request({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: namespace } } });
    const people = ["editor", "viewer"].flatMap((name) => [
      { apiVersion: "v1", kind: "ServiceAccount", metadata: { name, namespace } },
      {
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "RoleBinding",
        metadata: { name, namespace },
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: `rayjob-${name}-role` },
        subjects: [{ kind: "ServiceAccount", name, namespace }],
      },
    ]);
    await grant(inject("controlPlane"), [...objects, ...people]);
    const path = `/apis/ray.io/v1/namespaces/${namespace}/${rayJobs.plural}`;
    const statuses: Record<string, number[]> = {};
    for (const name of ["viewer", "editor"]) {
      const kubeconfig = await actAs(inject("controlPlane"), namespace, name, join(folder, name));
      const transport = new HttpTransport(loadKubeconfig(kubeconfig));
      const body = { ...rayJob(), metadata: { name: "demo", namespace } };
      const made = await transport.request({ method: "POST", path, query: { dryRun: "All" }, body });
      const seen = await transport.request({ method: "GET", path });
      statuses[name] = [made.status, seen.status];
      await transport.close();
    }
    expect(statuses).toEqual({ viewer: [403, 200], editor: [201, 200] });
    await admin.request({ method: "DELETE", path: `/api/v1/namespaces/${namespace}` });
    await admin.close();
    rmSync(folder, { recursive: true, force: true });
  });
});
