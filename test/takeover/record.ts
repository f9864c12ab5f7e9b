/**
 * Makes the recordings: `node test/takeover/record.ts KUBERAY_PROGRAM KUBERAY_CRDS_FOLDER [SCENARIO…]`. See README.md.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse, stringify } from "yaml";
import type { CustomResourceDefinition } from "../../src/api/kubernetes.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { customResourceDefinitions, rayClusters, rayJobs, resourcePath } from "../../src/machinery/kube/resources.ts";
import { temporaryFolder } from "../integration/controlPlane.ts";
import { play } from "./play.ts";
import { scenarios } from "./scenarios.ts";
import { type Any, logIn, Stagehand, until } from "./stagehand.ts";

const [program, crdFolder, ...only] = process.argv.slice(2);
if (!program || !crdFolder) throw new Error("usage: record.ts KUBERAY_PROGRAM KUBERAY_CRDS_FOLDER [SCENARIO…]");

const target = fileURLToPath(new URL("./recorded", import.meta.url));
const log = logIn(await temporaryFolder("record"), "kuberay");
const hand = await Stagehand.come();
const alive = setInterval(() => {}, 60_000);
try {
  for (const file of readdirSync(crdFolder)) {
    await hand.client.create(
      customResourceDefinitions,
      parse(readFileSync(join(crdFolder, file), "utf8")) as CustomResourceDefinition & KubeObject,
    );
  }
  for (const type of [rayJobs, rayClusters]) {
    await until(
      "served",
      async () => (await hand.transport.request({ method: "GET", path: resourcePath(type) })).status === 200,
    );
  }
  hand.kuberay(program, log);
  const wanted = scenarios.filter(({ name }) => only.length === 0 || only.includes(name));
  mkdirSync(target, { recursive: true });
  const results = await Promise.allSettled(
    wanted.map(async (scenario) => {
      const namespace = await play(hand, scenario, log);
      const state = await everythingIn(namespace);
      writeFileSync(
        join(target, `${scenario.name}.yaml`),
        stringify(state, { lineWidth: 140, aliasDuplicateObjects: false }),
      );
      console.error(`recorded ${scenario.name}`);
    }),
  );
  for (const [index, result] of results.entries()) {
    if (result.status === "rejected") console.error(`${wanted[index]!.name}: ${result.reason}`);
  }
} finally {
  clearInterval(alive);
  await hand.leave();
}
process.exit(0);

async function everythingIn(namespace: string): Promise<unknown> {
  const list = async (path: string) => {
    const at = `${path.startsWith("v1/") ? "/api" : "/apis"}/${path.replace(/\/(?=[^/]*$)/, `/namespaces/${namespace}/`)}`;
    const { body } = await hand.transport.request({ method: "GET", path: at });
    const { items, kind, apiVersion } = body as { items: Any[]; kind: string; apiVersion: string };
    return items.map((item) => ({ apiVersion, kind: kind.replace(/List$/, ""), ...trimmed(item) }));
  };
  const kinds = [
    "ray.io/v1/rayjobs",
    "ray.io/v1/rayclusters",
    "v1/services",
    "v1/serviceaccounts",
    "rbac.authorization.k8s.io/v1/roles",
    "rbac.authorization.k8s.io/v1/rolebindings",
    "batch/v1/jobs",
    "v1/pods",
  ];
  const objects = (await Promise.all(kinds.map(list))).flat();
  const events = (await list("events.k8s.io/v1/events")) as unknown as Record<string, string>[];
  const jobs = [...hand.ray.heads].flatMap(([uid, head]) =>
    [...head.jobs].map(([id, { status }]) => ({ head: uid, id, status })),
  );
  const uids = new Set(objects.map(({ metadata }) => metadata.uid));
  return {
    objects: objects.filter(({ metadata }) => metadata.name !== "default"),
    /** What Ray knew. */
    ray: jobs.filter(({ head }) => uids.has(head)),
    events: events.map(({ type, reason, note }) => `${type} ${reason}: ${note}`).sort(),
  };
}

/** Without what says nothing about KubeRay. */
function trimmed({ metadata: { managedFields: _, ...metadata }, ...rest }: Any) {
  return { ...rest, metadata };
}
