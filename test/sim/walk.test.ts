/**
 * Random walks: a user, nodes, dashboards and operators do whatever comes, then all calm down, and the job must come to
 * an end that is true, with nothing left over.
 *
 * A walk is named by its seed and is the same each time. `WALKS=2000 vitest run … test/sim/walk.test.ts` goes further.
 */
import { expect, it } from "vitest";
import type { Pod } from "../../src/api/kubernetes.ts";
import type { KubeObject } from "../../src/api/object.ts";
import { jobs, pods, type ResourceType, rayClusters, rayJobs, services } from "../../src/machinery/kube/resources.ts";
import { rayJob } from "../support/manifests.ts";
import { type FakeHead, fails, type Mood, succeeds } from "./fakeRay.ts";
import type { Meets } from "./process.ts";
import { type Running, World } from "./world.ts";

const WALKS = Number(process.env["WALKS"] ?? 24);
const ENDS = ["Complete", "Failed"];

/** Xorshift: the same numbers for the same seed. */
function dice(seed: number) {
  let state = Math.imul(seed + 1, 2654435761) >>> 0 || 1;
  const roll = () => {
    for (const shift of [13, -17, 5]) state = (state ^ (shift > 0 ? state << shift : state >>> -shift)) >>> 0;
    return state / 2 ** 32;
  };
  for (let warm = 0; warm < 10; warm++) roll();
  return {
    below: (count: number) => Math.floor(roll() * count),
    chance: (probability: number) => roll() < probability,
    pick: <T>(list: readonly T[]): T => list[Math.floor(roll() * list.length)]!,
  };
}

class Walk {
  /** What happened, for the message of a walk that fails. */
  readonly log: string[] = [];
  readonly world: World;
  readonly #dice: ReturnType<typeof dice>;
  readonly #operators: Running[] = [];
  /** Which head was given which job. */
  readonly #given = new Map<string, FakeHead>();

  constructor(seed: number) {
    this.#dice = dice(seed);
    const { pick } = this.#dice;
    this.world = new World({
      job: (request, head) => {
        this.#given.set(request.submission_id, head);
        return pick([succeeds(3000), succeeds(30_000), succeeds(200_000), succeeds(3000, 20_000), fails(5000)]);
      },
      submitter: () =>
        pick([
          { boot: 500 },
          { boot: 500 },
          { boot: 5000 },
          { boot: 500, failsAfterSubmission: 2000 },
          { boot: 500, failsEarly: true },
        ]),
    });
  }

  async run(): Promise<void> {
    const { below, pick } = this.#dice;
    this.#operate();
    await this.#apply();
    for (let step = 3 + below(12); step > 0; step--) {
      await this.world.clock.advance(pick([50, 200, 1000, 3000, 10_000, 60_000]));
      if (this.#operators.at(-1)!.process.dead) this.#operate();
      await this.#something();
    }
    await this.#calm();
    await this.#checkEnd();
  }

  #say(what: string): void {
    this.log.push(`${new Date(this.world.clock.now()).toISOString().slice(11, 23)} ${what}`);
  }

  /** Another operator, with worse or better luck, beside those that live. */
  #operate(): void {
    const { chance, pick } = this.#dice;
    const accidents: readonly Meets[] = ["lost before", "lost after", "refused", "death after", { status: 500 }];
    const rate = pick([0, 0, 0.02, 0.1]);
    const lag = pick([0, 0, 0, 500, 5000]);
    const of = pick(["", "/rayjobs", "/rayclusters", "/pods", "/jobs", "/services"]);
    this.#say(`an operator starts; ${rate} of its writes go wrong, it sees ${of || "all"} ${lag} ms late`);
    this.#operators.push(
      this.world.start({
        lag: (path) => (path.endsWith(of) ? lag : 0),
        fate: () => (chance(rate) ? pick(accidents) : "answer"),
      }),
    );
  }

  #killAll(): void {
    for (const { process } of this.#operators) process.kill();
  }

  async #apply(): Promise<void> {
    const { below, chance, pick } = this.#dice;
    const spec = {
      submissionMode: pick(["K8sJobMode", "HTTPMode"] as const),
      backoffLimit: below(3),
      suspend: chance(0.2),
      ...(chance(0.2) && { activeDeadlineSeconds: 20 + below(200) }),
      ...(chance(0.3) && { ttlSecondsAfterFinished: below(100) }),
    };
    this.#say(`apply ${JSON.stringify(spec)}`);
    await this.#may(() => this.world.client.create(rayJobs, rayJob(spec)));
  }

  /** The API server may have reasons to refuse: what is to be changed may be gone. */
  async #may(act: () => Promise<unknown>): Promise<void> {
    await act().catch((error: Error) => this.#say(`  refused: ${error.message}`));
  }

  #edit(spec: object): Promise<void> {
    this.#say(`edit ${JSON.stringify(spec)}`);
    return this.#may(() => this.world.client.patch(rayJobs, "default", "demo", { spec }));
  }

  #delete(type: ResourceType, name: string, options: { gracePeriodSeconds?: number } = {}): Promise<void> {
    this.#say(`delete ${type.kind} ${name} ${JSON.stringify(options)}`);
    return this.#may(() => this.world.client.delete(type, "default", name, { propagation: "Background", ...options }));
  }

  async #something(): Promise<void> {
    const { below, chance, pick } = this.#dice;
    const { clock, kubelet, ray } = this.world;
    const all = await this.world.list<Pod>(pods);
    const pod = all.length > 0 ? pick(all) : undefined;
    const heads = () => [...ray.heads.values()];
    const deeds: (() => Promise<void>)[] = [
      async () => {
        const outage = pick([0, 500, 5000, 100_000, 3_600_000]);
        this.#say(`nobody leads for ${outage} ms`);
        this.#killAll();
        await clock.advance(outage);
        this.#operate();
      },
      async () => pod && this.#delete(pods, pod.metadata.name, chance(0.5) ? { gracePeriodSeconds: 0 } : {}),
      async () => {
        if (!pod) return;
        this.#say(`evict ${pod.metadata.name}`);
        await kubelet.end(pod.metadata.uid, { exitCode: 137, podReason: "Evicted" });
      },
      async () => {
        const head = await this.world.head();
        if (!head) return;
        this.#say("Ray's container is killed in place");
        await kubelet.restart(head.metadata.uid, { exitCode: 137, reason: "OOMKilled" });
      },
      async () => {
        if (!pod || chance(0.7)) return;
        this.#say(`the node of ${pod.metadata.name} is lost`);
        await kubelet.lose(pod.metadata.uid);
      },
      async () => {
        const mood = pick<Mood>(["hang", "refuse", 500, 403, { slow: 4000 }]);
        this.#say(`dashboards: ${JSON.stringify(mood)}`);
        for (const head of heads()) head.mood = mood;
        await clock.advance(pick([1000, 20_000, 100_000]));
        for (const head of heads()) head.mood = "well";
      },
      () => this.#delete(jobs, "demo"),
      async () => {
        const [cluster] = await this.world.list(rayClusters);
        if (cluster && chance(0.5)) await this.#delete(rayClusters, cluster.metadata.name);
      },
      () => this.#edit({ suspend: chance(0.5) }),
      () => this.#edit({ suspend: chance(0.5) }),
      () => this.#edit({ backoffLimit: below(4) }),
      () => this.#edit({ submissionMode: pick(["K8sJobMode", "HTTPMode"]) }),
      () => this.#edit({ runtimeEnvYAML: pick(["[1]", "", "a: 1"]) }),
      async () => {
        if (chance(0.6)) return;
        await this.#delete(rayJobs, "demo");
        await clock.advance(pick([0, 1000, 40_000]));
        await this.#apply();
      },
      async () => {
        if (chance(0.3)) this.#operate();
      },
    ];
    await pick(deeds)();
    const status = (await this.world.job())?.status;
    this.#say(`  ${status?.jobDeploymentStatus ?? "no phase"} ${status?.jobStatus ?? ""}`);
  }

  /** One operator that meets no accident, a user who wants the job to run, an administrator who clears dead nodes. */
  async #calm(): Promise<void> {
    const { clock } = this.world;
    await this.#edit({ suspend: false, runtimeEnvYAML: "" });
    this.#killAll();
    this.#operators.push(this.world.start());
    for (let look = 0; look < 30; look++) {
      await clock.advance(20_000);
      for (const { metadata } of await this.world.list(pods)) {
        if (Date.parse(metadata.deletionTimestamp ?? "") + 60_000 < clock.now()) {
          await this.#delete(pods, metadata.name, { gracePeriodSeconds: 0 });
        }
      }
    }
  }

  async #checkEnd(): Promise<void> {
    const { world } = this;
    if ((await world.job()) === undefined) return;
    await world.until("ended", async () => ENDS.includes((await world.job())?.status?.jobDeploymentStatus ?? ""));
    await world.clock.advance(300_000);
    expect([...(await world.list(rayClusters)), ...(await world.list(services))]).toEqual([]);
    const { writes } = this.#operators.at(-1)!.process;
    const before = writes.length;
    await world.clock.advance(1_200_000);
    expect(writes.slice(before), "settled").toEqual([]);

    const { attempts = [], failed, succeeded, jobDeploymentStatus, jobStatus } = (await world.job())!.status!;
    for (const attempt of attempts) {
      const real = this.#given.get(attempt.jobId ?? "")?.jobs.get(attempt.jobId ?? "");
      if (attempt.jobStatus === "SUCCEEDED") expect(real?.status, `attempt ${attempt.number}`).toBe("SUCCEEDED");
    }
    expect(succeeded).toBe(jobDeploymentStatus === "Complete" && jobStatus === "SUCCEEDED" ? 1 : 0);
    const failures = attempts.filter((attempt) => attempt.reason && attempt.jobStatus !== "SUCCEEDED");
    if (attempts.length < 10) expect(failed, "failed attempts").toBe(failures.length);

    await this.#delete(rayJobs, "demo");
    await world.clock.advance(120_000);
    const left = await Promise.all(
      [rayJobs, rayClusters, services, jobs, pods].map((type) => world.list<KubeObject>(type)),
    );
    expect(left.flat().map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([]);
  }
}

it.each(Array.from({ length: WALKS }, (_, seed) => seed))("walk %i comes to a true end", async (seed) => {
  const walk = new Walk(seed);
  try {
    await walk.run();
    await walk.world.close();
  } catch (error) {
    (error as Error).message += `\n${walk.log.join("\n")}`;
    await walk.world.close().catch(() => {});
    throw error;
  }
});
