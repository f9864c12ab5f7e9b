/** Ray wants a token (authOptions): who is given it, and what a user sees when it is not the right one. */
import { describe, expect, it } from "vitest";
import type { Job, Secret } from "../../src/api/kubernetes.ts";
import { LABEL } from "../../src/api/labels.ts";
import type { KubeObject } from "../../src/api/object.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob, RayJobSpec } from "../../src/api/rayjob.ts";
import { allResources, jobs, pods, rayClusters, rayJobs, secrets } from "../../src/machinery/kube/resources.ts";
import type { Logger } from "../../src/machinery/logger.ts";
import { clusterSpec, rayCluster, rayJob } from "../support/manifests.ts";
import { runsForEver, succeeds } from "./fakeRay.ts";
import type { Meets } from "./process.ts";
import type { Running, World } from "./world.ts";
import { worldMaker } from "./worlds.ts";

const world = worldMaker();

type Auth = NonNullable<RayCluster["spec"]["authOptions"]>;
const MODES = ["K8sJobMode", "HTTPMode", "SidecarMode"] as const;
const TOKEN: Auth = { mode: "token" };
const OWN: Auth = { mode: "token", secretName: "own" };
const authenticated = (spec: Partial<RayJobSpec> = {}, authOptions = TOKEN): RayJob =>
  rayJob({ rayClusterSpec: { ...clusterSpec(), authOptions }, ...spec });

const secret = (name: string, token: string, key = "auth_token"): KubeObject =>
  ({
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace: "default" },
    data: { [key]: Buffer.from(token).toString("base64") },
  }) as KubeObject;
const put = (w: World, token: string, name = "own") => w.client.create(secrets, secret(name, token));
const change = (w: World, token: string, name = "own") =>
  w.client.patch(secrets, "default", name, { data: { auth_token: Buffer.from(token).toString("base64") } });

const condition = (job: RayJob | undefined, type: string) => job?.status?.conditions?.find((one) => one.type === type);
const isSilent = (job: RayJob | undefined) => job?.status?.message?.startsWith("Ray does not answer") === true;
const running = (w: World) => w.until("RUNNING", async () => (await w.job())?.status?.jobStatus === "RUNNING");
const head = (w: World) => [...w.ray.heads.values()][0]!;
const owned = async (w: World) => (await w.list<Secret>(secrets)).filter(({ metadata }) => metadata.ownerReferences);
const says = (w: World, type: "Started", words: RegExp) =>
  w.until(`${type} to say ${words}`, async () => words.test(condition(await w.job(), type)?.message ?? ""));

/** How often an operator reads a Secret in full: to speak to Ray. */
function reads({ process }: Running): () => number {
  let count = 0;
  const { request } = process.transport;
  Object.assign(process.transport, {
    request: (...args: Parameters<typeof request>) => {
      const [{ method, path, headers }] = args;
      if (method === "GET" && path.includes("/secrets/") && headers?.["accept"] === "application/json") count++;
      return request(...args);
    },
  });
  return () => count;
}

/** Everything that the API server has, or ever had, save Secrets. */
async function everything(w: World): Promise<string> {
  const types = allResources.filter((type) => type !== secrets);
  const lists = await Promise.all(types.map((type) => w.list(type).catch(() => [])));
  return JSON.stringify(lists);
}

describe.each(MODES)("a RayJob with a token, in %s", (submissionMode) => {
  it("succeeds: everybody shows the token, nobody tells it, and its Secret goes with the cluster", async () => {
    const w = world({ job: () => succeeds(20_000) });
    const said: unknown[] = [];
    const log: Logger = { debug: tell, info: tell, warn: tell, error: tell };
    function tell(...words: unknown[]) {
      said.push(words);
    }
    w.start({ log });
    await w.client.create(rayJobs, authenticated({ submissionMode }));
    await running(w);
    const [made, ...others] = await owned(w);
    expect(others).toEqual([]);
    const { metadata, data } = made!;
    const token = Buffer.from(data!["auth_token"]!, "base64").toString();
    expect(Buffer.from(token, "base64")).toHaveLength(32);
    const [cluster] = await w.list<RayCluster>(rayClusters);
    expect(metadata).toMatchObject({
      name: cluster!.metadata.name,
      labels: { [LABEL.cluster]: cluster!.metadata.name },
      ownerReferences: [{ kind: "RayCluster", uid: cluster!.metadata.uid, controller: true }],
    });
    expect(head(w).token).toBe(token);
    const meanwhile = await everything(w);
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", succeeded: 1 });
    expect(w.submissions).toHaveLength(1);
    for (const told of [meanwhile, await everything(w), JSON.stringify(said)]) expect(told).not.toContain(token);
    await w.until("the Secret gone", async () => (await w.list(secrets)).length === 0);
  });

  it("costs one write more than without, and one read of the token", async () => {
    const w = world({ job: () => succeeds(300_000) });
    const running = w.start();
    const asked = reads(running);
    await w.client.create(rayJobs, authenticated({ submissionMode }));
    await w.untilPhase("Complete");
    await w.clock.advance(120_000);
    const most = { K8sJobMode: 17, HTTPMode: 16, SidecarMode: 18 }[submissionMode];
    expect(running.process.writes.length, running.process.writes.join("\n")).toBeLessThanOrEqual(most);
    expect(asked()).toBe(1);
  });

  it("uses a Secret of the user's own, and makes none", async () => {
    const w = world();
    const { process } = w.start();
    // As a file leaves it: the line break is no part of the token.
    await put(w, "open-sesame\n");
    await w.client.create(rayJobs, authenticated({ submissionMode }, OWN));
    await running(w);
    expect(head(w).token).toBe("open-sesame");
    await w.untilPhase("Complete");
    expect(process.writes.filter((write) => write.includes("/secrets"))).toEqual([]);
    expect((await w.list(secrets)).map(({ metadata }) => metadata.name)).toEqual(["own"]);
  });
});

describe("a Secret of the user's own", () => {
  it("that is missing keeps the Pods from starting, in words, until it is there", async () => {
    const w = world();
    w.start();
    await w.client.create(rayJobs, authenticated({}, OWN));
    await says(w, "Started", /secret "own" not found/);
    await put(w, "sesame");
    expect((await w.untilPhase("Complete")).status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0 });
  });

  it("without the key keeps the Pods from starting, in words", async () => {
    const w = world();
    w.start();
    await w.client.create(secrets, secret("own", "sesame", "token"));
    await w.client.create(rayJobs, authenticated({}, OWN));
    await says(w, "Started", /couldn't find key auth_token in Secret default\/own/);
  });

  it("that is changed while the job runs does no harm to an operator that knows the old token", async () => {
    const w = world({ job: () => succeeds(600_000) });
    const asked = reads(w.start());
    await put(w, "sesame");
    await w.client.create(rayJobs, authenticated({}, OWN));
    await running(w);
    await change(w, "another");
    expect((await w.untilPhase("Complete")).status?.jobStatus).toBe("SUCCEEDED");
    expect(asked()).toBe(1);
  });

  it.each(MODES)(
    "that is changed, in %s, is told of by an operator that is new, which goes on when it is put back",
    async (submissionMode) => {
      const w = world({ job: () => succeeds(600_000) });
      const first = w.start();
      await put(w, "sesame");
      await w.client.create(rayJobs, authenticated({ submissionMode }, OWN));
      await running(w);
      first.process.kill();
      await change(w, "another");
      const asked = reads(w.start());
      await w.until("told", async () => isSilent(await w.job()));
      expect((await w.job())?.status).toMatchObject({
        jobDeploymentStatus: "Running",
        jobStatus: "RUNNING",
        message: expect.stringMatching(
          /Ray does not answer at .*: HTTP 403: .* Ray does not take the token of Secret default\/own, key auth_token: its head was started with another/,
        ),
      });
      const [before, since] = [asked(), w.clock.now()];
      await w.clock.advance(60_000);
      // Ray is asked every other second, the API server is not.
      expect(asked() - before).toBeLessThanOrEqual(6);
      await change(w, "sesame");
      await w.until("heard again", async () => !isSilent(await w.job()));
      expect(w.clock.now() - since).toBeLessThan(75_000);
      const { status } = await w.untilPhase("Complete");
      expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0, succeeded: 1 });
      expect(w.submissions).toHaveLength(1);
    },
  );

  it("that is never put right ends the attempt as a Ray that is silent does, and the message says why", async () => {
    const w = world({ job: () => runsForEver });
    const first = w.start();
    await put(w, "sesame");
    await w.client.create(rayJobs, authenticated({}, OWN));
    await running(w);
    first.process.kill();
    await w.client.delete(secrets, "default", "own");
    w.start();
    const { status } = await w.untilPhase("Failed");
    expect(status).toMatchObject({
      reason: "JobStatusCheckTimeoutExceeded",
      message: expect.stringMatching(/HTTP 401: .*Secret default\/own does not exist, whose key auth_token/),
    });
  });

  it("that is new with a new head is learnt with the first refusal", async () => {
    const w = world();
    w.start();
    await put(w, "sesame");
    await w.client.create(rayJobs, authenticated({ submissionMode: "InteractiveMode" }, OWN));
    await w.untilPhase("Waiting");
    await change(w, "another");
    await w.client.delete(pods, "default", (await w.head()).metadata.name);
    await w.until("another head", async () => [...w.ray.heads.values()].some(({ token }) => token === "another"));
    w.ray.give(head(w), { entrypoint: "x", submission_id: "mine" });
    await w.client.patch(rayJobs, "default", "demo", { spec: { jobId: "mine" } });
    expect((await w.untilPhase("Complete")).status?.jobStatus).toBe("SUCCEEDED");
  });
});

describe("the Secret that the operator made", () => {
  it.each(["suspended", "deleted"])("is missing: a RayJob that is %s goes its way all the same", async (how) => {
    const w = world({ job: () => runsForEver });
    const first = w.start();
    await w.client.create(rayJobs, authenticated());
    await running(w);
    first.process.kill();
    await w.client.delete(secrets, "default", (await owned(w))[0]!.metadata.name);
    w.start();
    if (how === "suspended") {
      await w.client.patch(rayJobs, "default", "demo", { spec: { suspend: true } });
      await w.untilPhase("Suspended");
    } else {
      await w.client.delete(rayJobs, "default", "demo");
      await w.until("gone", async () => (await w.job()) === undefined);
    }
    await w.until("nothing left", async () => (await w.list(rayClusters)).length + (await w.list(pods)).length === 0);
  });

  it("is not made anew while there are Pods: the RayCluster says what is missing, and goes on when it is back", async () => {
    const w = world({ job: () => succeeds(120_000) });
    w.start();
    await w.client.create(rayJobs, authenticated());
    await running(w);
    const [lost] = await owned(w);
    await w.client.delete(secrets, "default", lost!.metadata.name);
    const worker = (await w.list(pods)).find(({ metadata }) => metadata.labels?.[LABEL.nodeType] === "worker")!;
    await w.kubelet.end(worker.metadata.uid, { exitCode: 1 });
    const failure = async () => {
      const [cluster] = await w.list<RayCluster>(rayClusters);
      return cluster?.status?.conditions?.find(({ type }) => type === "ReplicaFailure");
    };
    await w.until("told", async () => (await failure())?.reason === "AuthSecretGone");
    expect((await failure())?.message).toMatch(/^Secret default\/demo-\w+ is gone, .*auth_token/);
    expect((await w.events()).filter((event) => event.includes("AuthSecretGone"))).toHaveLength(1);
    await w.clock.advance(20_000);
    expect(await w.list(secrets)).toEqual([]);
    const { name } = lost!.metadata;
    await put(w, Buffer.from(lost!.data!["auth_token"]!, "base64").toString(), name);
    await w.until("whole again", async () => (await failure()) === undefined);
    expect((await w.untilPhase("Complete")).status?.jobStatus).toBe("SUCCEEDED");
  });

  it("outlives a suspension of its RayCluster, and stays the same", async () => {
    const w = world();
    w.start();
    const spec = { ...clusterSpec(), authOptions: TOKEN };
    await w.client.create(rayClusters, { ...rayCluster("lone"), spec } as KubeObject);
    const is = (state: string) =>
      w.until(state, async () => (await w.get<RayCluster>(rayClusters, "lone"))?.status?.state === state);
    const suspend = (value: boolean) => w.client.patch(rayClusters, "default", "lone", { spec: { suspend: value } });
    await is("ready");
    const [before] = await owned(w);
    await suspend(true);
    await is("suspended");
    await suspend(false);
    await is("ready");
    expect(await owned(w)).toEqual([before]);
    expect(head(w).token).toBe(Buffer.from(before!.data!["auth_token"]!, "base64").toString());
  });

  it("has a name that a stranger's Secret bears: told, left alone, and made when that one is gone", async () => {
    const w = world();
    w.start();
    await put(w, "known to somebody", "lone");
    const spec = { ...clusterSpec(), authOptions: TOKEN };
    await w.client.create(rayClusters, { ...rayCluster("lone"), spec } as KubeObject);
    await w.client.create(
      rayJobs,
      rayJob({
        rayClusterSpec: undefined,
        shutdownAfterJobFinishes: false,
        clusterSelector: { [LABEL.cluster]: "lone" },
      }),
    );
    await says(
      w,
      "Started",
      /Secret default\/lone exists and does not belong to this RayCluster: delete it, or name it in/,
    );
    expect(await w.list(pods)).toEqual([]);
    await w.client.delete(secrets, "default", "lone");
    expect((await w.untilPhase("Complete")).status?.jobStatus).toBe("SUCCEEDED");
    expect(await owned(w)).toHaveLength(1);
  });

  it("of a deleted RayCluster of the same name is waited for, and not used", async () => {
    const w = world();
    w.start();
    const lone = { ...rayCluster("lone"), spec: { ...clusterSpec(), authOptions: TOKEN } } as KubeObject;
    const ready = () =>
      w.until("ready", async () => (await w.get<RayCluster>(rayClusters, "lone"))?.status?.state === "ready");
    await w.client.create(rayClusters, lone);
    await ready();
    const [before] = await owned(w);
    await w.client.delete(rayClusters, "default", "lone");
    await w.client.create(rayClusters, lone);
    await ready();
    const [after] = await owned(w);
    expect(after!.data).not.toEqual(before!.data);
    expect(head(w).token).toBe(Buffer.from(after!.data!["auth_token"]!, "base64").toString());
  });
});

describe.each(["K8sJobMode", "HTTPMode"] as const)("a RayJob on a selected RayCluster, in %s,", (submissionMode) => {
  it("goes by that cluster's token, of which it says nothing itself", async () => {
    const w = world({ job: () => succeeds(5000) });
    w.start();
    await put(w, "sesame");
    const spec = { ...clusterSpec(), authOptions: OWN };
    await w.client.create(rayClusters, { ...rayCluster("shared"), spec } as KubeObject);
    const selecting = { rayClusterSpec: undefined, clusterSelector: { [LABEL.cluster]: "shared" } };
    await w.client.create(rayJobs, rayJob({ ...selecting, submissionMode, shutdownAfterJobFinishes: false }));
    expect((await w.untilPhase("Complete")).status?.jobStatus).toBe("SUCCEEDED");
    expect(head(w).token).toBe("sesame");
  });

  it("is stopped there with the token when it is deleted", async () => {
    const w = world({ job: () => runsForEver });
    const first = w.start();
    await put(w, "sesame");
    const spec = { ...clusterSpec(), authOptions: OWN };
    await w.client.create(rayClusters, { ...rayCluster("shared"), spec } as KubeObject);
    const selecting = { rayClusterSpec: undefined, clusterSelector: { [LABEL.cluster]: "shared" } };
    await w.client.create(rayJobs, rayJob({ ...selecting, submissionMode, shutdownAfterJobFinishes: false }));
    await running(w);
    first.process.kill();
    w.start();
    await w.client.delete(rayJobs, "default", "demo");
    await w.until("gone", async () => (await w.job()) === undefined);
    expect([...head(w).jobs.values()].map(({ status }) => status)).toEqual(["STOPPED"]);
  });
});

describe("a user's own submitter", () => {
  const template = (env: { name: string; value: string }[] = []) => ({
    submitterPodTemplate: {
      spec: { containers: [{ name: "mine", image: "small", command: ["/submitter"], args: ["--", "echo"], env }] },
    },
  });

  it("is told what KubeRay's light-weight submitter asks for", async () => {
    const w = world({ job: () => succeeds(5000) });
    w.start();
    await w.client.create(rayJobs, authenticated(template() as Partial<RayJobSpec>));
    const { status } = await w.untilPhase("Complete");
    expect(status?.jobStatus).toBe("SUCCEEDED");
    const [job] = await w.list<Job>(jobs);
    const { env } = job!.spec!.template.spec!.containers[0]!;
    expect(env).toEqual([
      { name: "PYTHONUNBUFFERED", value: "1" },
      { name: "RAY_DASHBOARD_ADDRESS", value: status!.dashboardURL },
      { name: "RAY_JOB_SUBMISSION_ID", value: status!.jobId },
      { name: "RAY_AUTH_MODE", value: "token" },
      {
        name: "RAY_AUTH_TOKEN",
        valueFrom: { secretKeyRef: { name: status!.rayClusterName, key: "auth_token" } },
      },
    ]);
  });

  it("keeps a token of its own", async () => {
    const w = world({ job: () => succeeds(5000) });
    w.start();
    await put(w, "sesame");
    const own = template([{ name: "RAY_AUTH_TOKEN", value: "sesame" }]) as Partial<RayJobSpec>;
    await w.client.create(rayJobs, authenticated(own, OWN));
    expect((await w.untilPhase("Complete")).status?.jobStatus).toBe("SUCCEEDED");
    const { env = [] } = (await w.list<Job>(jobs))[0]!.spec!.template.spec!.containers[0]!;
    expect(env.filter(({ name }) => name.startsWith("RAY_AUTH"))).toEqual([
      { name: "RAY_AUTH_TOKEN", value: "sesame" },
      { name: "RAY_AUTH_MODE", value: "token" },
    ]);
  });
});

describe("an accident at the Secret's creation", () => {
  const accidents: readonly Meets[] = [
    "death before",
    "death after",
    "lost before",
    "lost after",
    "refused",
    { status: 429 },
    { status: 500 },
  ];
  it.each(accidents)("(%s) leaves one token for all Pods, and the job runs once", async (meets) => {
    const w = world({ job: () => succeeds(5000) });
    let met = false;
    const first = w.start({
      fate({ method, path }) {
        if (met || method !== "POST" || !path.endsWith("/secrets")) return "answer";
        met = true;
        return meets;
      },
    });
    await w.client.create(rayJobs, authenticated());
    await w.until("the accident", () => met);
    if (first.process.dead) w.start();
    const { status } = await w.untilPhase("Complete");
    expect(status).toMatchObject({ jobStatus: "SUCCEEDED", executionAttempt: 0 });
    expect(w.submissions).toHaveLength(1);
  });

  it("two operators that both believe that they lead make one", async () => {
    const w = world({ job: () => succeeds(5000) });
    const both = [w.start(), w.start({ lag: () => 700 })];
    await w.client.create(rayJobs, authenticated());
    await running(w);
    const made = both.flatMap(({ process }) => process.writes).filter((write) => /^POST .*\/secrets$/.test(write));
    expect(made).toHaveLength(1);
    expect(await owned(w)).toHaveLength(1);
    expect((await w.untilPhase("Complete")).status?.jobStatus).toBe("SUCCEEDED");
    expect(w.submissions).toHaveLength(1);
  });
});

it("a Ray that wants a token of which its RayCluster says nothing is told of", async () => {
  const w = world();
  w.start();
  const { rayClusterSpec } = rayJob().spec;
  const { template } = rayClusterSpec!.headGroupSpec;
  const env = [
    { name: "RAY_AUTH_MODE", value: "token" },
    { name: "RAY_AUTH_TOKEN", value: "sesame" },
  ];
  const containers = [{ ...template.spec!.containers[0]!, env }];
  const headGroupSpec = { ...rayClusterSpec!.headGroupSpec, template: { spec: { containers } } };
  await w.client.create(rayJobs, rayJob({ rayClusterSpec: { ...rayClusterSpec!, headGroupSpec } }));
  await says(
    w,
    "Started",
    /HTTP 401: .*spec\.authOptions of its RayCluster does not say that it has one: set mode to token/,
  );
});
