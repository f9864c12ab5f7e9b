import { beforeEach, describe, expect, it } from "vitest";
import { crds } from "../api/crds.ts";
import type { KubeObject } from "../api/object.ts";
import type { RayJob } from "../api/rayjob.ts";
import { realClock } from "../machinery/clock.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { configMaps, namespaces, rayJobs } from "../machinery/kube/resources.ts";
import { TransportError } from "../machinery/kube/transport.ts";
import { SimKube } from "../simkube/simkube.ts";
import { type ApplyOptions, apply, serverTrouble } from "./apply.ts";
import { CannotRun } from "./failure.ts";
import { parseManifest } from "./manifest.ts";

const manifest = `apiVersion: ray.io/v1
kind: RayJob
metadata:
  name: a
spec:
  entrypoint: python a.py
  backoffLimit: 1
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: code
data:
  a.py: print(1)
`;

let simkube: SimKube;
let client: KubeClient;
let said: string[];
beforeEach(() => {
  simkube = new SimKube({ clock: realClock, crds: crds(), seed: 1 });
  client = new KubeClient(simkube.transport);
  said = [];
});

const applied = (text: string, options: Partial<ApplyOptions> = {}) =>
  apply(parseManifest(text, "job.yaml"), {
    transport: simkube.transport,
    clock: realClock,
    namespace: "default",
    signal: new AbortController().signal,
    say: (line) => said.push(line),
    ...options,
  });

async function refused(text: string, options?: Partial<ApplyOptions>): Promise<string> {
  const error = await applied(text, options).catch((reason: unknown) => reason);
  if (!(error instanceof CannotRun)) throw new Error(`not refused: ${error}`);
  return `${error.message}${error.remedy ? ` | ${error.remedy}` : ""}`;
}

describe("applying a manifest", () => {
  it("creates what is not there, the RayJob last", async () => {
    const { metadata } = await applied(manifest);
    expect(metadata).toMatchObject({ name: "a", namespace: "default" });
    expect(said).toEqual(["ConfigMap default/code created", "RayJob default/a created"]);
  });

  it("changes what stands beside the RayJob when it is there already", async () => {
    await client.create(configMaps, {
      metadata: { name: "code", namespace: "default" },
      data: { "a.py": "old", kept: "x" },
    } as KubeObject);
    await applied(manifest);
    expect(said[0]).toBe("ConfigMap default/code configured");
    expect(await client.get(configMaps, "default", "code")).toMatchObject({ data: { "a.py": "print(1)", kept: "x" } });
  });

  it("goes to the namespace that is asked for, unless the manifest names another", async () => {
    await client.create(namespaces, { metadata: { name: "team" } });
    expect((await applied(manifest, { namespace: "team", onlyNamespace: "team" })).metadata.namespace).toBe("team");
    const elsewhere = manifest.replace("  name: a", "  name: a\n  namespace: other");
    expect(await refused(elsewhere, { onlyNamespace: "team" })).toContain(
      "job.yaml:5: the RayJob is meant for namespace other, not team",
    );
  });
});

describe("a namespace that is not there", () => {
  const elsewhere = manifest.replace("  name: a", "  name: a\n  namespace: team");

  it("is the server's to complain about", async () => {
    expect(await refused(elsewhere)).toContain('namespaces "team" not found');
  });

  it("is made where that is wanted, on an embedded cluster", async () => {
    expect((await applied(elsewhere, { makeNamespaces: true })).metadata.namespace).toBe("team");
  });
});

describe("a RayJob that is there already", () => {
  it("is refused, with the two ways out", async () => {
    await applied(manifest);
    expect(await refused(manifest)).toBe(
      "RayJob default/a exists already (new) | Give --follow to watch it, or --replace to delete it and run it anew.",
    );
  });

  it("is followed as it is", async () => {
    const first = await applied(manifest);
    const second = await applied(manifest.replace("backoffLimit: 1", "backoffLimit: 2"), { existing: "follow" });
    expect(second.metadata.uid).toBe(first.metadata.uid);
    expect((await client.get<RayJob>(rayJobs, "default", "a")).spec.backoffLimit).toBe(1);
  });

  it("is missed by who asks to follow it, and never run for that", async () => {
    expect(await refused(manifest, { existing: "follow" })).toBe(
      "there is no RayJob default/a to follow | Leave out --follow to run it.",
    );
    expect(await refused(manifest.replace("name: a", "generateName: a-"), { existing: "follow" })).toContain(
      "job.yaml:4: a RayJob with a generateName is a new one each time",
    );
    expect((await client.list(rayJobs, { namespace: "default" })).items).toEqual([]);
  });

  it("is replaced once it is gone", async () => {
    const first = await applied(
      manifest.replace("metadata:\n  name: a", "metadata:\n  name: a\n  finalizers: [ray.io/rayjob-finalizer]"),
    );
    const stop = simkube.runControllers();
    const replacing = applied(manifest, { existing: "replace" });
    const deleting = new Promise<void>((resolve) => {
      const look = async () => {
        const now = await client.get(rayJobs, "default", "a");
        if (now.metadata.deletionTimestamp) resolve();
        else setTimeout(look, 10);
      };
      void look();
    });
    await deleting;
    await client.patch(rayJobs, "default", "a", { metadata: { finalizers: null } });
    const second = await replacing;
    stop();
    expect(second.metadata.uid).not.toBe(first.metadata.uid);
  });
});

describe("what the server does not accept", () => {
  it("an unknown field is named with its line", async () => {
    expect(await refused(manifest.replace("backoffLimit", "backofLimit"))).toBe(
      "the server does not accept the RayJob a: unknown field spec.backofLimit (job.yaml:7)",
    );
  });

  it("a wrong value is named with its field, its line, and the server's words", async () => {
    expect(await refused(manifest.replace("backoffLimit: 1", "backoffLimit: many"))).toMatch(
      /^the server does not accept the RayJob a: spec\.backoffLimit: .*integer.* \(job\.yaml:7\)$/,
    );
  });

  it("a cluster without RayJobs is told apart from one without this RayJob", async () => {
    simkube = new SimKube({ clock: realClock, seed: 1 });
    expect(await refused(manifest)).toContain("this cluster does not know the kind RayJob");
  });
});

describe("an API server that does not answer", () => {
  const remedy = (message: string) =>
    serverTrouble(new TransportError(message, { maybeSent: false }), "https://x")?.remedy;

  it("makes the kubeconfig suspect, unless this machine's own loopback is down", () => {
    expect(remedy("GET /api: connect ECONNREFUSED 127.0.0.1:6443")).toContain("kubectl config current-context");
    expect(remedy("GET /api: connect ENETUNREACH 127.0.0.1:6443")).toContain("ip link set lo up");
  });
});
