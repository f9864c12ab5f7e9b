import { beforeEach, describe, expect, it } from "vitest";
import type { Pod } from "../api/kubernetes.ts";
import type { Stored } from "../api/object.ts";
import { KubeClient } from "../machinery/kube/client.ts";
import { pods } from "../machinery/kube/resources.ts";
import { VirtualClock } from "../machinery/virtualClock.ts";
import { SimKube } from "../simkube/simkube.ts";
import { LastWords } from "./lastWords.ts";

let asked: unknown[];
let words: LastWords;
let heard: number;
let pod: Stored<Pod>;

beforeEach(async () => {
  asked = [];
  heard = 0;
  const simkube = new SimKube({
    clock: new VirtualClock(),
    seed: 1,
    podLogs: async function* (_namespace, name, { container, tailLines, previous }) {
      asked.push({ name, container, tailLines, previous });
      yield "Traceback (most recent call last):\n  raise KeyError('model')\nKeyError: 'model'\nbye\n";
    },
  });
  const client = new KubeClient(simkube.transport);
  pod = await client.create<Pod>(pods, {
    metadata: { name: "head", namespace: "default" },
    spec: { containers: [{ name: "ray-head", image: "i" }] },
  });
  words = new LastWords(client, () => heard++);
});

const ended = (state: object, lastState: object = {}): Stored<Pod> => ({
  ...pod,
  status: { containerStatuses: [{ name: "ray-head", state, lastState }] } as unknown as Pod["status"],
});
const crash = { exitCode: 1, reason: "Error", finishedAt: "2026-01-01T00:00:00Z" };

describe("the last words of a container", () => {
  it("that ended with exit code 1 and no message are the line of its log that tells why", async () => {
    const seen = ended({ terminated: crash });
    const status = seen.status!.containerStatuses![0]!;
    words.of(seen);
    expect(words.isAsking(seen, status)).toBe(true);
    await words.settled();
    expect(words.of(seen).status!.containerStatuses![0]!.state!.terminated!.message).toBe("KeyError: 'model'");
    expect(words.isAsking(seen, status)).toBe(false);
    expect([asked, heard]).toEqual([[{ name: "head", container: "ray-head", tailLines: 40, previous: false }], 1]);
  });

  it("are those of its life before, while it waits to be started again", async () => {
    const seen = ended({ waiting: { reason: "CrashLoopBackOff" } }, { terminated: crash });
    words.of(seen);
    await words.settled();
    expect(words.of(seen).status!.containerStatuses![0]!.lastState!.terminated!.message).toBe("KeyError: 'model'");
    expect(asked).toMatchObject([{ previous: true }]);
  });

  it.each([
    ["it ended well", { terminated: { ...crash, exitCode: 0 } }],
    ["kubelet has its message", { terminated: { ...crash, message: "no such bucket" } }],
    ["it was killed for its memory", { terminated: { ...crash, exitCode: 137, reason: "OOMKilled" } }],
    ["it runs", { running: {} }],
  ])("are not asked for when %s", async (_, state) => {
    words.of(ended(state));
    await words.settled();
    expect(asked).toEqual([]);
  });

  it("that cannot be had are done without", async () => {
    const gone = ended({ terminated: crash });
    gone.metadata = { ...gone.metadata, name: "gone" };
    words.of(gone);
    await words.settled();
    expect(words.of(gone).status!.containerStatuses![0]!.state!.terminated!.message).toBeUndefined();
  });
});
