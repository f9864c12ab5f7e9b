/**
 * What KubeRay does with what Raykeeper has left: `node test/takeover/back.ts KUBERAY_PROGRAM [SCENARIO…]`. See README.md.
 *
 * Raykeeper brings each scenario about, is killed, KubeRay comes; a line tells what has changed when it has had a while.
 */
import { crds } from "../../src/api/crds.ts";
import type { Pod } from "../../src/api/kubernetes.ts";
import type { KubeObject } from "../../src/api/object.ts";
import type { RayCluster } from "../../src/api/raycluster.ts";
import type { RayJob } from "../../src/api/rayjob.ts";
import { isTerminal } from "../../src/domain/rayjob/ray.ts";
import { realClock, sleep } from "../../src/machinery/clock.ts";
import {
  customResourceDefinitions,
  jobs,
  pods,
  rayClusters,
  rayJobs,
  resourcePath,
} from "../../src/machinery/kube/resources.ts";
import { temporaryFolder } from "../integration/controlPlane.ts";
import { play } from "./play.ts";
import { scenarios } from "./scenarios.ts";
import { logIn, Stagehand, until } from "./stagehand.ts";

const [program, ...only] = process.argv.slice(2);
if (!program) throw new Error("usage: back.ts KUBERAY_PROGRAM [SCENARIO…]");
/** Seconds that KubeRay is given; it looks at everything every 3 s. */
const WHILE = Number(process.env["WHILE"] ?? 60);

const folder = await temporaryFolder("back");
const hand = await Stagehand.come();
const alive = setInterval(() => {}, 60_000);
try {
  for (const crd of crds()) await hand.client.create(customResourceDefinitions, crd as KubeObject);
  for (const type of [rayJobs, rayClusters]) {
    await until(
      "served",
      async () => (await hand.transport.request({ method: "GET", path: resourcePath(type) })).status === 200,
    );
  }
  const ours = hand.raykeeper(logIn(folder, "raykeeper"));
  const wanted = scenarios.filter(({ name }) => only.length === 0 || only.includes(name));
  const played = await Promise.allSettled(wanted.map((scenario) => play(hand, scenario, logIn(folder, "raykeeper"))));
  await hand.stop(ours);
  const there = played.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  for (const each of played) if (each.status === "rejected") console.error(String(each.reason).split("\n")[0]);
  const before = new Map(await Promise.all(there.map(async (name) => [name, await look(name)] as const)));
  hand.kuberay(program, logIn(folder, "kuberay"));
  await sleep(realClock, WHILE * 1000);
  await tell("after a while", before);
  for (const head of hand.ray.heads.values()) {
    for (const job of head.jobs.values()) if (!isTerminal(job.status)) head.end(job, "SUCCEEDED");
  }
  await sleep(realClock, WHILE * 1000);
  await tell("after Ray's jobs have ended", before);
} finally {
  clearInterval(alive);
  await hand.leave();
}
process.exit(0);

type Looks = Awaited<ReturnType<typeof look>>;

async function tell(when: string, before: ReadonlyMap<string, Looks>): Promise<void> {
  console.log(`${when}:`);
  for (const [name, was] of before) {
    const is = await look(name);
    const gone = was.all.filter((each) => !is.all.includes(each));
    const made = is.all.filter((each) => !was.all.includes(each));
    const says = `${was.phase} -> ${is.phase}; submitted ${is.submitted - was.submitted}; journal ${was.journal} -> ${is.journal}`;
    console.log(
      `  ${name}: ${says}${gone.length ? `; gone: ${gone.join(", ")}` : ""}${made.length ? `; made: ${made.join(", ")}` : ""}`,
    );
  }
}

async function look(namespace: string) {
  const list = async <T extends KubeObject>(type: typeof pods) =>
    (await hand.client.listAll<T>(type, { namespace })).items;
  const [job] = await list<RayJob>(rayJobs);
  const clusters = await list<RayCluster>(rayClusters);
  const all = [...clusters, ...(await list<Pod>(pods)), ...(await list(jobs))];
  return {
    phase: job
      ? `${job.status?.jobDeploymentStatus}/${job.status?.jobStatus ?? ""}`
      : (clusters[0]?.status?.state ?? "no cluster"),
    journal: job?.status?.attempts === undefined ? "none" : `of ${job.status.attempts.length}`,
    submitted: hand.submissions.filter((each) => each.startsWith(`${namespace} `)).length,
    all: all.map(
      ({ kind, metadata }) =>
        `${kind} ${metadata.name}${metadata.deletionTimestamp ? " (going)" : ""}#${metadata.generation ?? ""}`,
    ),
  };
}
