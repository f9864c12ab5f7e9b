/**
 * The webhook of the operator that all scenarios have in their way: what kubectl shows, and what becomes of writes while
 * replicas come and go, none is left, or certificates are replaced.
 *
 * How the chart brings it along, takes it away, and takes somebody else's certificate: release.test.ts.
 */
import { X509Certificate } from "node:crypto";
import { afterAll, afterEach, expect } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import type { Stored } from "../../src/api/object.ts";
import type { RayJobSpec } from "../../src/api/rayjob.ts";
import { realClock } from "../../src/machinery/clock.ts";
import { rayJobs, secrets } from "../../src/machinery/kube/resources.ts";
import { fromSecretData, type KeyRing, LIFETIMES, toSecretData, turned } from "../../src/webhook/keyRing.ts";
import { isReady, scenario, smallRayJob, stopwatch, useCluster } from "./cluster.ts";
import { OPERATOR, OPERATOR_USER } from "./operator.ts";
import { askReplica, bundleOf, INVALID, judgedMeanwhile, operatorReplicas, timesAsked, trust } from "./webhook.ts";

const cluster = useCluster("webhook");
afterAll(() => operatorReplicas(cluster, 1));
afterEach(async () => {
  await operatorReplicas(cluster, 2);
  await Promise.all(cluster.rayJobs.store.list().map(({ metadata }) => cluster.remove(metadata.name)));
});

const manifest = (name: string, spec: Partial<RayJobSpec>) =>
  JSON.stringify(smallRayJob(name, { entrypoint: "true", ...spec }));
/** Who writes as the operator is not asked about: so an invalid RayJob comes to be, as from before there was a webhook. */
const AS_OPERATOR = ["--as", OPERATOR_USER, "--as-group", "system:masters"];
const patch = (name: string, change: object) =>
  cluster.kubectl(["patch", "rayjob", name, "--type", "merge", "-p", JSON.stringify(change)]);
const MISTAKES = [
  "The RayJob %s is invalid:",
  "* spec.jobId: must not contain white space",
  "* spec.backoffLimit: backoffLimit must be a positive integer: set spec.backoffLimit to 0 or more",
];

scenario(
  cluster,
  "kubectl create shows every mistake with its field, a warning for what is surely none meant, or nothing",
  async (seen) => {
    const create = (name: string, spec: Partial<RayJobSpec>) =>
      cluster.kubectl(["create", "--dry-run=server", "-f", "-"], { input: manifest(name, spec) });
    const refused = await create("wrong", INVALID);
    seen(refused.stderr.trim());
    expect(refused.code).toBe(1);
    for (const line of MISTAKES) expect(refused.stderr).toContain(line.replace("%s", '"wrong"'));

    const warned = await create("odd", { activeDeadlineSeconds: 5, preRunningDeadlineSeconds: 10 });
    seen(warned.stderr.trim());
    expect(warned).toMatchObject({ code: 0, stdout: expect.stringContaining("rayjob.ray.io/odd created") });
    expect(warned.stderr).toMatch(/^Warning: spec\.preRunningDeadlineSeconds: /);

    const valid = await create("right", {});
    expect(valid).toMatchObject({ code: 0, stderr: "" });
  },
);

scenario(
  cluster,
  "an edit that brings a mistake is refused; what was invalid before can be suspended, labelled, corrected and deleted",
  async (seen) => {
    await cluster.kubectlSays(["create", "-f", "-"], { input: manifest("edited", { suspend: true }) });
    const refused = await patch("edited", { spec: INVALID });
    seen(refused.stderr.trim());
    expect(refused.code).toBe(1);
    for (const line of MISTAKES) expect(refused.stderr).toContain(line.replace("%s", '"edited"'));
    expect((await cluster.client.get(rayJobs, cluster.namespace, "edited")).metadata.generation).toBe(1);

    await cluster.kubectlSays([...AS_OPERATOR, "create", "-f", "-"], {
      input: manifest("old", { ...INVALID, suspend: true }),
    });
    expect((await patch("old", { spec: { entrypoint: "false" } })).stderr).toContain("spec.jobId: must not contain");
    const resumed = await patch("old", { spec: { suspend: false } });
    seen(resumed.stderr.trim());
    expect(resumed.code).toBe(0);
    expect(resumed.stderr).toContain("Warning: spec.jobId: must not contain white space");
    expect((await patch("old", { spec: { suspend: true } })).code).toBe(0);
    await cluster.kubectlSays(["label", "rayjob", "old", "team=a"]);
    expect(await patch("old", { spec: { backoffLimit: 1, jobId: "a-b" } })).toMatchObject({ code: 0, stderr: "" });

    await cluster.kubectlSays([
      ...AS_OPERATOR,
      "patch",
      "rayjob",
      "old",
      "--type",
      "merge",
      "-p",
      JSON.stringify({ metadata: { finalizers: ["example.com/held"] }, spec: INVALID }),
    ]);
    await cluster.kubectlSays(["delete", "rayjob", "old", "--wait=false"]);
    expect(await patch("old", { spec: { entrypoint: "false" } })).toMatchObject({ code: 0, stderr: "" });
    expect((await patch("old", { metadata: { finalizers: null } })).code).toBe(0);
    await cluster.until("it to be gone", () => !cluster.rayJobs.store.get(cluster.namespace, "old"));
  },
);

scenario(
  cluster,
  "each of two replicas serves; while they are replaced, and while one is dead, RayJobs are judged",
  async (seen) => {
    const both = await operatorReplicas(cluster, 2);
    const trusted = await bundleOf(cluster, OPERATOR);
    for (const replica of both) {
      const before = await timesAsked(replica);
      const wrong = await askReplica(cluster, replica, OPERATOR, trusted, INVALID);
      expect(wrong).toMatchObject({
        allowed: false,
        status: { message: expect.stringContaining("spec.backoffLimit: ") },
      });
      expect(await askReplica(cluster, replica, OPERATOR, trusted)).toMatchObject({ allowed: true });
      const after = await timesAsked(replica);
      expect([after.asked - before.asked, after.timed - before.timed]).toEqual([2, 2]);
    }

    const restart = ["-n", OPERATOR.namespace, "rollout"];
    const target = `deployment/${OPERATOR.name}`;
    const rollout = await judgedMeanwhile(cluster, async () => {
      await cluster.kubectlSays([...restart, "restart", target]);
      await cluster.kubectlSays([...restart, "status", target, "--timeout", "120s"]);
      await operatorReplicas(cluster, 2);
    });
    seen(`${rollout.times} RayJobs judged while both were replaced, ${rollout.wrong.length} without an answer`);
    expect(rollout.wrong).toEqual([]);

    const [victim] = await operatorReplicas(cluster, 2);
    const now = () => cluster.operators.store.get(OPERATOR.namespace, victim!.metadata.name);
    await cluster.killContainer(victim!, victim!.spec!.containers[0]!.name);
    const without = await judgedMeanwhile(cluster, async () => {
      await cluster.until("the dead one to be noticed", () => !isReady(now()!));
      await cluster.until("the dead one to be back", () => isReady(now()!));
    });
    seen(
      `${without.times} RayJobs judged from the kill until it was ready again, ${without.wrong.length} without an answer, the last ${without.rightAtLast} all with one`,
    );
    // Until the node's rules leave it out, some are sent to it.
    for (const one of without.wrong) expect(one).toContain("failed calling webhook");
    expect(without.rightAtLast).toBeGreaterThan(20);
  },
);

scenario(
  cluster,
  "without any replica RayJobs are refused and told why, all else goes on; with one they are created again",
  async (seen) => {
    await cluster.kubectlSays(["create", "-f", "-"], { input: manifest("kept", { suspend: true }) });
    const kept = await cluster.phase("kept", "Suspended");
    await operatorReplicas(cluster, 0);
    const refused = await cluster.kubectl(["create", "-f", "-"], { input: manifest("refused", {}) });
    seen(refused.stderr.trim());
    expect(refused.code).toBe(1);
    // The last is said where the node's rules still lead to the Pod that has just gone.
    expect(refused.stderr).toMatch(
      /failed calling webhook "vrayjob\.kb\.io": failed to call webhook: Post "https:\/\/kuberay-operator-webhook\.raykeeper-system\.svc:443\/.*(connection refused|no endpoints available|no route to host|deadline exceeded)/,
    );
    expect((await patch("kept", { spec: { suspend: false } })).stderr).toContain("failed calling webhook");

    await cluster.kubectlSays(["label", "rayjob", "kept", "team=a"]);
    await cluster.kubectlSays([
      "create",
      "deployment",
      "other",
      `--image=${kept.spec.rayClusterSpec!.headGroupSpec.template.spec!.containers[0]!.image}`,
      "--",
      "sleep",
      "3600",
    ]);
    const bystander = ({ metadata }: Stored<Pod>) => metadata.name.startsWith("other-");
    await cluster.until("somebody else's Pod to be ready", () =>
      cluster.pods.store.list().filter(bystander).some(isReady),
    );
    await cluster.kubectlSays(["delete", "deployment", "other"]);
    await cluster.kubectlSays(["delete", "rayjob", "kept", "--wait=false"]);

    const since = stopwatch();
    await operatorReplicas(cluster, 1);
    seen(`RayJobs are created again ${since()} after the operator was wanted again`);
    await cluster.nothingLeft(kept);
  },
);

const DAY = 86_400_000;
const signedBy = (certificate: string, authority: string) =>
  new X509Certificate(certificate).verify(new X509Certificate(authority).publicKey);

scenario(
  cluster,
  "the authority is succeeded, and then its Secret deleted: old and new are trusted, and each RayJob is judged",
  async (seen) => {
    const replicas = await operatorReplicas(cluster, 2);
    const shown = async () => {
      const trusted = await bundleOf(cluster, OPERATOR);
      return Promise.all(replicas.map(async (one) => (await askReplica(cluster, one, OPERATOR, trusted)).certificate));
    };
    const stored = async () => {
      const secret = await cluster.client.get(secrets, OPERATOR.namespace, OPERATOR.webhook);
      return { secret, ring: fromSecretData((secret as unknown as { data: Record<string, string> }).data)! };
    };
    const first = await bundleOf(cluster, OPERATOR);
    // What operators would have left that made an authority eight months ago, and its successor two hours ago.
    const service = `${OPERATOR.webhook}.${OPERATOR.namespace}.svc`;
    const around = { names: { dnsNames: [service, `${service}.cluster.local`] }, lifetimes: LIFETIMES, told: [] };
    const begun = turned(undefined, around, realClock.now() - 245 * DAY);
    const { next: successor, ...due } = turned(begun, around, realClock.now() - DAY / 12);
    const ring: KeyRing = { ...due, next: successor!, trusted: [...due.trusted, ...first] };

    const { times, wrong } = await judgedMeanwhile(cluster, async () => {
      await trust(cluster, OPERATOR, [...ring.trusted]);
      const { secret } = await stored();
      await cluster.client.update(secrets, { ...secret, data: toSecretData(ring) } as typeof secret);
      await expect
        .poll(async () => (await shown()).every((one) => signedBy(one, successor!.certificate)), { timeout: 90_000 })
        .toBe(true);
      const trusted = await bundleOf(cluster, OPERATOR);
      expect(trusted).toEqual(expect.arrayContaining([due.authority.certificate, successor!.certificate]));
      seen(`both replicas show what the successor has signed; ${trusted.length} authorities are trusted`);

      const before = await shown();
      const { secret: doomed } = await stored();
      await cluster.client.delete(secrets, OPERATOR.namespace, OPERATOR.webhook, { uid: doomed.metadata.uid });
      await expect
        .poll(async () => (await bundleOf(cluster, OPERATOR)).some((one) => !trusted.includes(one)), {
          timeout: 90_000,
        })
        .toBe(true);
      const both = await bundleOf(cluster, OPERATOR);
      expect(both).toContain(successor!.certificate);
      expect((await stored()).ring).toMatchObject({ authority: successor, next: { certificate: both.at(-1) } });
      expect(await shown()).toEqual(before);
      seen("the Secret deleted: another has a new authority, which is trusted beside the one that signs");
    });
    seen(`${times} RayJobs judged meanwhile, ${wrong.length} without an answer`);
    expect(wrong).toEqual([]);
  },
);
